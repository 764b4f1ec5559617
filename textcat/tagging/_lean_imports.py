"""What is not imported, so that commands and workers start sooner and stay smaller: the one place for this.

It rests on what spaCy, scikit-learn and pyarrow import, which is no part of their interfaces: it changes with them, and
then `tests/test_lean_imports.py` fails.
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from importlib.metadata import version
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any


def keep_imports_lean() -> None:
    """Keep out of this process what training and tagging never use: pandas, scipy.stats, and the commands of spaCy."""
    sys.meta_path.insert(0, _LeanFinder())
    if version("spacy").startswith("3.8.") and "spacy" not in sys.modules:
        # Half of the time that spaCy takes to be imported: it imports all its commands, but for one name only.
        commands, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
        info.info = None  # type: ignore[attr-defined]
        sys.modules.update({"spacy.cli": commands, "spacy.cli.info": info})
    # numpy, if it has not been loaded yet, would start threads that are never used: they wait busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _LeanFinder(MetaPathFinder):
    """Makes pandas as absent as if it were not installed, and loads others only when something in them is used.

    pyarrow and scikit-learn import pandas, which takes 60 MB; scikit-learn imports scipy.stats, which takes longer than
    all the rest of it, and scipy all names of numpy.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is kept out of textcat's own processes", name=fullname)
        if fullname not in ("scipy.stats", "numpy.f2py"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
