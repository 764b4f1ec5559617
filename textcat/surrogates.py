"""Encode and print texts with lone surrogates, which no encoding can hold.

They stand for bytes of a file's name that are not UTF-8, and for halves of surrogate pairs.
"""


def escape_undecodable(text: str) -> str:
    r"""Return a text with each lone surrogate replaced by an escape such as ``\udc80``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def mark_surrogates(text: str) -> str:
    """Return a text with each lone surrogate replaced by a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def join_surrogates(text: str) -> str:
    """Return a text with each surrogate pair joined into one character, and each lone surrogate replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def decode_surrogates(text: str) -> str:
    """Decode the bytes that a text keeps as surrogates as UTF-8; invalid bytes become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def surrogate_bytes(text: str) -> bytes:
    """Return the UTF-8 bytes of a text that may have lone surrogates, for checksums and arrays."""
    return text.encode("utf-8", "surrogatepass")
