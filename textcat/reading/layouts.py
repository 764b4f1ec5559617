"""Find what the places of files mean: parts of a corpus, and the folders of a Maildir, whose names are no topics."""

import re

_PART = re.compile(
    r"(?:^|[-_. ])(?:(train(?:ing)?)|(test(?:ing)?)|(?:validation|valid|val|dev(?:elopment)?))"
    r"(?:[-_. ]?(?:set|data|split))?(?:-\d{5}-of-\d{5})?$",
    re.IGNORECASE,
)
# A message has a name of three parts, and maybe flags.
_MESSAGE = re.compile(r"(?:(.*)/)?(?:cur|new)/((?:[^/]+[:;!]2,[^/]*)|(?:[0-9]+\.[^/.]+\.[^/]+))")
_MAILDIR = frozenset(("cur", "new"))
_BOOKKEEPING = re.compile(r"(?:dovecot|courier|maildir|subscriptions|tmp$)", re.IGNORECASE)
_INBOX = "INBOX"


def part_of(name: str) -> str:
    """Return the part that the name of a folder, or of a file without its ending, calls; "" if it calls none.

    A validation part is "unused": it is for neither training nor testing.
    """
    match = _PART.search(name)
    return "" if not match else "train" if match[1] else "test" if match[2] else "unused"


def without_part(name: str) -> str:
    """Return a name without the part that it calls: "spam" of "spam-train"."""
    return _PART.sub("", name)


def is_message(path: str) -> bool:
    """Return whether a path is that of a message in a Maildir, such as ``spam/cur/1700.M1P1.host:2,S``."""
    return _message(path) is not None


def placed(path: str) -> str:
    """Return the path that gives a file's place: a message of a Maildir lies in the folder above cur and new.

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
    """Return whether a folder is a Maildir, given the names of the folders in it."""
    return names >= _MAILDIR


def is_bookkeeping(name: str) -> bool:
    """Return whether a file or folder in a Maildir holds no mail: that of a mail server, or mail that is on its way."""
    return bool(_BOOKKEEPING.match(name))
