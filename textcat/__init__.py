"""Text categorisation with margin perceptrons: documents in, ranked topics out."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# The main names, and where they come from: imported at their first use, so that `import textcat` is cheap.
# Type checkers and editors read them in __init__.pyi: write it anew with `python tests/test_front_door.py --write`.
_HOMES = {
    "Alma": "margin.learners",
    "Corpus": "documents",
    "Cramma": "margin.learners",
    "Document": "documents",
    "DynamicMargin": "margin.learners",
    "InputSettings": "reading.records",
    "LMargitron": "margin.learners",
    "Micra": "margin.learners",
    "OutputSettings": "tagging.output",
    "PA": "margin.learners",
    "PAM": "margin.learners",
    "PAUM": "margin.learners",
    "Problem": "margin.problems",
    "Recipe": "recipe",
    "Romma": "margin.learners",
    "Solution": "margin.problems",
    "TMargitron": "margin.learners",
    "Tagger": "model.tagger",
    "TextcatError": "errors",
    "TfIdf": "features.tfidf",
    "Tokens": "features.tokens",
    "evaluate": "evaluation.ranking",
    "load": "model.storage",
    "open_corpus": "corpus.catalogue",
    "open_rows": "features.store",
    "read_recipe": "recipe",
    "rules": "margin",
    "save": "model.storage",
    "solve": "margin.solve",
    "tag_archive": "tagging.run",
    "train": "training.train",
    "write_rows": "features.store",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'textcat' has no attribute {name!r}; it has {', '.join(_HOMES)}")
    return getattr(import_module(f"textcat.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
