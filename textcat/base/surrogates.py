"""Convert texts with lone surrogates, which no encoding can hold, so that they can be encoded and printed.

A lone surrogate is one half of a surrogate pair. If a file name is not UTF-8, Python also decodes each of its invalid
bytes to a lone surrogate.
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
    """Return a text with the bytes that Python keeps as surrogates decoded as UTF-8; invalid bytes stay surrogates.

    Different bytes give different texts, and the bytes can be restored from the text.
    """
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def surrogate_bytes(text: str) -> bytes:
    """Return a text in UTF-8, for checksums and arrays; a lone surrogate is encoded like any other character."""
    return text.encode("utf-8", "surrogatepass")
