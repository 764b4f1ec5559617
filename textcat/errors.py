"""The exception that explains a user's mistake, or bad input, in a sentence, and hints that end such sentences."""

import os
from collections.abc import Iterable
from pathlib import Path

DISTRIBUTION = "textcat-margin"  # the name on the package index, where `textcat` is somebody else's


class TextcatError(Exception):
    """Report an error that the user can mend: the message says what happened, the value, and the remedy."""


def install_hint(extra: str) -> str:
    """Return the command that installs an optional part, such as "pip install 'textcat-margin[cluster]'"."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` with the nearest known name, or an empty string if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(wrong, list(names), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def similar_files(path: Path) -> str:
    """Return `` Did you mean 'folder/x'?`` with the path most like a missing one, or an empty string."""
    if path.exists() or not path.parent.is_dir():
        return ""
    return did_you_mean(str(path), [str(path.parent / name) for name in os.listdir(path.parent)])
