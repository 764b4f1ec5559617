"""Avoid unneeded imports, so that commands and workers start sooner and stay smaller.

This depends on which modules spaCy, scipy, joblib, typer and pyarrow import. These packages may change their imports
without notice; `tests/test_lean_imports.py` fails if they do.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

# Modules that another package imports for one name and never uses: that name, and the importing package with its
# version.
_UNUSED = {
    "rich.markdown": ("Markdown", "typer", "0.29."),
    "rich.traceback": ("Traceback", "typer", "0.29."),
    "spacy.cli": ("info", "spacy", "3.8."),
    "spacy.cli.info": ("info", "spacy", "3.8."),
}
# Modules that few users need: they are loaded at their first use.
_LATER = {"asyncio", "numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing"}


def keep_imports_lean() -> None:
    """Prevent the import of pandas and of unused modules, and load those in `_LATER` only at their first use."""
    sys.meta_path.insert(0, _LeanFinder())
    # if numpy is not loaded yet: keep its threads from starting, as they would wait busily and never be used
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _LeanFinder:  # not a subclass of MetaPathFinder, whose module takes longer to import than this one
    """Make pandas appear not installed, replace modules in `_UNUSED`, and load those in `_LATER` at their first use.

    pyarrow and scikit-learn import pandas, which takes 60 MB. scipy imports all parts of numpy, four of which take
    longer to import than all others, and joblib imports asyncio for functions that textcat does not use. spaCy imports
    its commands, which takes half of its import time; typer imports Markdown and tracebacks, which takes half the time
    of printing a help text.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is kept out of textcat's own processes", name=fullname)
        if fullname in _UNUSED and _is_left_out(*_UNUSED[fullname][1:]):
            stand_in = _StandIn(_UNUSED[fullname][0])
            return ModuleSpec(fullname, stand_in, is_package=True)  # type: ignore[arg-type]
        if fullname not in _LATER:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _is_left_out(package: str, version: str) -> bool:
    from textcat.base.disk import installed_version

    return installed_version(package).startswith(version)


class _StandIn:
    """Load, in place of a module, an empty one with a single name whose value is None."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, self._name, None)
