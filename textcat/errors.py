"""The one exception that explains a user's mistake, or bad input, in a sentence; and how to install an extra."""

DISTRIBUTION = "textcat-margin"  # the name on the package index, where `textcat` is somebody else's


class TextcatError(Exception):
    """Something the user can mend: the message says what happened, the value, and the remedy."""


def install_hint(extra: str) -> str:
    """Return the command that installs an optional part, such as "pip install 'textcat-margin[cluster]'"."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
