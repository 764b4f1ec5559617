"""Avoid unneeded imports, so that commands and workers start sooner and stay smaller.

This depends on what spaCy, scikit-learn and pyarrow import, which is not part of their interfaces: if that changes,
`tests/test_lean_imports.py` fails.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

_LAZY = ("numpy._core._add_newdocs", "numpy.f2py", "scipy.stats")


def keep_imports_lean() -> None:
    """Prevent the import of pandas and of spaCy's commands, and import other slow modules only at their first use."""
    sys.meta_path.insert(0, _LeanFinder())
    # numpy, if it has not been loaded yet, would start threads that are never used: they wait busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _LeanFinder:  # no MetaPathFinder, whose module takes longer to be imported than this one
    """Make pandas appear not installed, replace spaCy's commands, and load the modules in `_LAZY` at their first use.

    pyarrow and scikit-learn import pandas, which takes 60 MB. scikit-learn imports scipy.stats, which takes longer than
    the rest of scikit-learn. spaCy imports its commands, which takes half of its import time.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is kept out of textcat's own processes", name=fullname)
        if fullname in ("spacy.cli", "spacy.cli.info") and _commands_are_left_out():
            return ModuleSpec(fullname, _NoCommands(), is_package=True)  # type: ignore[arg-type]
        if fullname not in _LAZY:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _commands_are_left_out() -> bool:
    from importlib.metadata import version

    return version("spacy").startswith("3.8.")


class _NoCommands:
    """Load, in place of the module of spaCy's commands, a module that has only the name `info`, which spaCy imports."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        module.info = None  # type: ignore[attr-defined]
