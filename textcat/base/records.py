"""Read records: dataclasses whose fields have the types of the entries of a JSON object or a TOML table."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from functools import cache
from itertools import chain
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from textcat.base.errors import TextcatError, did_you_mean

_Record = TypeVar("_Record")
#: Exceptions of `read_record`, and of methods of records, for entries that do not fit the record.
MISFITS = (TextcatError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)

_WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_WORDS |= {dict: "a table", list: "a list", date: "a date such as 1990-12-31, without quotes"}
_IN_TOML: dict[Any, type] = {Mapping: dict, Sequence: list, tuple: list}  # what a file has in place of a type
_PLURALS: dict[Any, str] = {int: "integers", float: "numbers", str: "strings", list[str]: "lists of strings"}


def read_record(cls: type[_Record], entries: Mapping[str, Any], where: str) -> _Record:
    """Return an object of a dataclass, given values by field; raise one of `MISFITS` (exceptions) if they do not fit.

    If the type of a field is a dataclass, or a list of a dataclass, its value is made in the same way, or by the method
    `from_dict` of that dataclass, if there is one. `where` is as in `check_entries`.
    """
    kinds = field_types(cast(Any, cls))
    check_entries(entries, kinds, where)
    return cls(**{name: _read_value(kinds[name], value, where) for name, value in entries.items()})


def _read_value(annotation: Any, value: Any, where: str) -> Any:
    for kind, entry_type in _kinds(annotation):
        if kind is list and is_dataclass(entry_type):
            return [_read_value(entry_type, entries, where) for entries in value]
        if is_dataclass(kind) and value is not None:
            return kind.from_dict(value) if hasattr(kind, "from_dict") else read_record(cast(Any, kind), value, where)
    return value


def check_entries(entries: Mapping[str, Any], types: Mapping[str, Any], where: str) -> None:
    """Raise TextcatError unless each entry has a name in `types`, and a value of the type given there.

    `where` is the part of the message that names the source of the entries, such as "in the card wheat.toml".
    """
    for name, value in entries.items():
        if name not in types:
            known = f"Known: {', '.join(sorted(types))}.{did_you_mean(name, types)}"
            raise TextcatError(f"There is no field {name!r} {where}. {known}")
        if not has_type(value, types[name]):
            what = describe_type(types[name])
            raise TextcatError(f"The field {name!r} {where} cannot be {value!r:.100}; give {what}.")


def entries_of(record: Any) -> dict[str, Any]:
    """Return the entries from which `read_record` makes a record, without those that equal their defaults."""
    defaults = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(record)}
    values = {name: getattr(record, name) for name in defaults}
    return {name: _as_entry(value) for name, value in values.items() if value != defaults[name]}


def _as_entry(value: Any) -> Any:
    if is_dataclass(value):
        return value.as_dict() if hasattr(value, "as_dict") else entries_of(value)
    return [_as_entry(entry) for entry in value] if isinstance(value, list) else value


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def has_type(value: Any, annotation: Any) -> bool:
    """Return whether a value of a JSON or TOML file has the type `annotation`, such as ``float | None``.

    Whole numbers pass as floats; true and false do not pass as numbers.
    """
    return _have_type([value], annotation)


def _have_type(values: Sequence[Any], annotation: Any) -> bool:
    for actual in {*map(type, values)}:  # a million texts are checked at once
        for kind, entry_type in _kinds(annotation):
            if kind in (actual, Any) or (kind is float and actual is int) or (actual is dict and is_dataclass(kind)):
                alike: list[Any] = [value for value in values if type(value) is actual] if kind in (dict, list) else []
                entries = chain.from_iterable(map(dict.values, alike) if kind is dict else alike)
                if _have_type([*entries], entry_type):
                    break
        else:
            return False
    return True


def describe_type(annotation: Any) -> str:
    """Return a type in words, such as "a number or a text" or "a list of strings"."""
    return " or ".join(
        f"{_WORDS.get(kind, 'a value')}{f' of {_PLURALS[entry_type]}' if entry_type in _PLURALS else ''}"
        for kind, entry_type in _kinds(annotation)
        if kind is not type(None)
    )


@cache
def _kinds(annotation: Any) -> list[tuple[Any, Any]]:
    """Return a pair for each type that an annotation allows: the bare type, and the type of its entries.

    For ``list[str] | None``, these are (list, str) and (NoneType, Any). The entries of a table are its values.
    """
    allowed = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    of_files = [
        (_IN_TOML.get(plain, plain), get_args(kind)) for kind in allowed for plain in [get_origin(kind) or kind]
    ]
    return [(kind, arguments[kind is dict] if arguments else Any) for kind, arguments in of_files]
