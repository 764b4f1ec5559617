"""What is not imported, so that commands and workers start sooner and stay smaller: the one place for this.

It rests on what spaCy and pyarrow import, which is no part of their interfaces: `tests/test_lean_imports.py` fails when
that changes.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from types import ModuleType


def keep_imports_lean() -> None:
    """Keep out of this process what training and tagging never use: pandas, and the commands of spaCy."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())
    if version("spacy").startswith("3.8.") and "spacy" not in sys.modules:
        # Half of the time that spaCy takes to be imported: it imports all its commands, but for one name only.
        commands, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
        info.info = None  # type: ignore[attr-defined]
        sys.modules.update({"spacy.cli": commands, "spacy.cli.info": info})
    # numpy, if it has not been loaded yet, would start threads that are never used: they wait busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _WithoutPandas(MetaPathFinder):
    """Makes pandas as absent as if it were not installed: pyarrow and scikit-learn import it, and it takes 60 MB."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is kept out of textcat's own processes", name=fullname)
