"""Recognise the folders and messages of a Maildir, whose names are not topics."""

import re

# A message's name has three parts, and possibly flags.
_MESSAGE = re.compile(r"(?:(.*)/)?(?:cur|new)/((?:[^/]+[:;!]2,[^/]*)|(?:[0-9]+\.[^/.]+\.[^/]+))")
_MAILDIR = frozenset(("cur", "new"))
_BOOKKEEPING = re.compile(r"(?:dovecot|courier|maildir|subscriptions|tmp$)", re.IGNORECASE)
_INBOX = "INBOX"


def is_message(path: str) -> bool:
    """Return whether a path is that of a message in a Maildir, such as ``spam/cur/1700.M1P1.host:2,S``."""
    return _message(path) is not None


def placed(path: str) -> str:
    """Return the path of a message of a Maildir without the folder "cur" or "new"; other paths stay as they are.

    The outermost folder of a Maildir is its inbox; the dot that begins the name of any other folder is left out.
    """
    match = _message(path)
    if not match:
        return path
    above, _, folder = (match[1] or _INBOX).rpartition("/")
    return f"{above}/{folder.removeprefix('.')}/{match[2]}".lstrip("/")


def _message(path: str) -> re.Match[str] | None:
    return _MESSAGE.fullmatch(path) if "cur/" in path or "new/" in path else None  # each file of a folder is asked for


def is_maildir(names: set[str]) -> bool:
    """Return whether a folder is a Maildir, given the names of its subfolders."""
    return names >= _MAILDIR


def is_bookkeeping(name: str) -> bool:
    """Return whether a file or folder in a Maildir is a mail server's own, or a message that is being delivered."""
    return bool(_BOOKKEEPING.match(name))
