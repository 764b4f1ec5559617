"""Texts that no encoding can hold: bytes of a file's name that are not UTF-8, and halves of surrogate pairs.

Python represents both as lone surrogates. Which function is right depends on what becomes of the text.
"""


def escape_undecodable(text: str) -> str:
    r"""Return a text with lone surrogates as escapes such as ``\udc80``, which tell them apart."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def mark_surrogates(text: str) -> str:
    """Return a text with a question mark for each lone surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def join_surrogates(text: str) -> str:
    """Return a text with each surrogate pair joined into one character, and each lone surrogate replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def decode_surrogates(text: str) -> str:
    """Return a text, whose non-ASCII bytes were kept as surrogates, decoded as UTF-8; invalid bytes become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def surrogate_bytes(text: str) -> bytes:
    """Return the bytes of any text, lone surrogates included, for checksums and for arrays of our own."""
    return text.encode("utf-8", "surrogatepass")
