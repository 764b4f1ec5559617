"""Parameters of estimators as scikit-learn expects them, without importing it, and checks of their values."""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from numbers import Integral
from typing import Any, TypeVar, cast

_Self = TypeVar("_Self", bound="Parameters")


class Parameters:
    """Add scikit-learn's `get_params` and `set_params` to a record of settings, which makes it an estimator.

    As in scikit-learn, two estimators are equal only if they are the same object.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {field.name: field.default for field in fields(cast(Any, cls))}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        If `deep` is True, the parameters of a parameter are returned, too, under names such as "tokens__lang".
        """
        parameters = {name: getattr(self, name) for name in self._defaults()}
        for name, value in list(parameters.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                parameters |= {f"{name}__{inner}": setting for inner, setting in value.get_params().items()}
        return parameters

    def set_params(self: _Self, **parameters: Any) -> _Self:
        """Change parameters by name, and return the object.

        As in scikit-learn, `tokens__lang` is the parameter `lang` of the parameter `tokens`.
        """
        names = self._defaults()
        # as in scikit-learn, parameters of a parameter are those of its new value, whatever their order
        for name, value in sorted(parameters.items(), key=lambda item: "__" in item[0]):
            outer, _, inner = name.partition("__")
            if outer not in names:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}.")
            if not inner:
                setattr(self, name, value)
            elif hasattr(of_outer := getattr(self, outer), "set_params"):
                of_outer.set_params(**{inner: value})
            else:
                raise ValueError(
                    f"The {outer!r} parameter of {type(self).__name__} is {of_outer!r}, which has no parameter "
                    f"{inner!r}: give an object that has it."
                )
        return self

    def __repr__(self) -> str:
        defaults, parameters = self._defaults(), self.get_params(deep=False)
        changed = [f"{name}={value!r}" for name, value in parameters.items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))


def is_whole(least: float, most: float = math.inf, *, optional: bool = False) -> Callable[[Any], bool]:
    """Return a function that says whether a value is a whole number in a range; with `optional`, None passes, too."""
    return lambda n: (
        optional if n is None else isinstance(n, Integral) and not isinstance(n, bool) and least <= int(n) <= most
    )
