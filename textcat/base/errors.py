"""Define the exception that explains a mistake of the user or bad input in a sentence, and hints for such sentences."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

DISTRIBUTION = "textcat-margin"  # the name on PyPI, where `textcat` belongs to others


class TextcatError(Exception):
    """An error that the user can fix: the message says what happened, which value caused it, and the remedy."""

    damage = ""  # for a folder that textcat wrote: a clause on what is damaged, without a path


def install_hint(extra: str) -> str:
    """Return the command that installs an extra of the package, such as "pip install 'textcat-margin[cluster]'"."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def first_of(names: Sequence[str], most: int = 3) -> str:
    """Return up to `most` names, separated by commas, for a sentence; "…" stands for further names."""
    return ", ".join(names[:most]) + ", …" * (len(names) > most)


_LONGER = 3  # maximum number of names that continue a wrong one and are named


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?``, where x is the one of `names` most similar to `wrong`; "" if none is similar.

    Up to three names that continue `wrong`, as "tau_pos" and "learner.tau_neg" continue "tau", are named instead.
    """
    from difflib import get_close_matches

    names = list(names)
    longer = [name for name in names if f".{wrong}_" in f".{name}"]
    near = longer if 0 < len(longer) <= _LONGER else get_close_matches(wrong, names, n=1)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def similar_files(path: Path) -> str:
    """Return `` Did you mean 'folder/x'?`` with the path in the same folder that is most similar to a missing path.

    Return "" if the path exists, if its folder does not exist, or if no path in the folder is similar.
    """
    if path.exists() or not path.parent.is_dir():
        return ""
    return did_you_mean(str(path), [str(path.parent / name) for name in os.listdir(path.parent)])
