"""Determine the encoding of a file; convert its bytes to UTF-8, and its line ends to line feeds."""

import codecs
import re
from functools import lru_cache

import numpy as np

from textcat.reading.faults import encoding_error
from textcat.reading.streams import LINE_END, ByteStream

_MARKS = (  # UTF-32 first, because its mark begins with UTF-16's
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
# The first bytes of XML and JSON in UTF-16.
_UTF_16_LE, _UTF_16_BE = re.compile(rb"[<{\[]\0[ -~\r\n]\0"), re.compile(rb"\0[<{\[]\0[ -~\r\n]")
_RETURN, _LINE_FEED = b"\r\n"
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_LOOKED_AT = 1 << 16  # bytes among which there must be a line feed, otherwise carriage returns end lines


def as_utf8(stream: ByteStream, encoding: str) -> ByteStream | None:
    """Return a stream converted to UTF-8, or None if its encoding extends ASCII and needs no conversion."""
    encoding = exact_encoding(encoding, stream.peek(4, until=LINE_END))
    if is_like_ascii(encoding):
        return None
    decoder, n_read = codecs.getincrementaldecoder(encoding)(), 0

    def take(n: int) -> bytes:
        nonlocal n_read
        while True:
            data = stream.read(n)
            try:
                text = decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                raise encoding_error(encoding, n_read + max(getattr(error, "start", 0), 0)) from None
            n_read += len(data)
            if text or not data:
                return text

    return ByteStream(take, stream.consumed, stream.prompt)


def with_line_feeds(stream: ByteStream, only_if_alone: bool) -> ByteStream:
    """Return a stream in which carriage returns that end lines, as on old Macs, are replaced by line feeds.

    Byte positions do not change. With `only_if_alone`, nothing is replaced unless the stream begins with many bytes
    without a line feed, because a carriage return may also be part of a value.
    """
    if only_if_alone:
        head = stream.peek(_LOOKED_AT, until=LINE_END)
        if b"\n" in head or b"\r" not in head:
            return stream
    return _WithLineFeeds(stream)


class _WithLineFeeds(ByteStream):
    def __init__(self, stream: ByteStream) -> None:
        super().__init__(self._translated, stream.consumed, stream.prompt, stream.close)
        self._stream, self.file, self.ends_within_line = stream, stream.file, stream.ends_within_line  # type: ignore[method-assign]

    def read(self, n: int) -> bytes:
        return super().read(n) if self.kept else self._translated(n)

    def skip(self, n: int) -> None:
        if self.kept:
            super().skip(n)
        else:
            self._stream.skip(n)

    def _translated(self, n: int) -> bytes:
        data = self._stream.read(n)
        # A line feed that follows is peeked at, not read, so that a resumed run reads the same.
        behind = self._stream.peek(1) if data.endswith(b"\r") else b""
        if _has_lone_return(data + behind):
            data = _LONE_RETURN.sub(b"\n", data + behind)[: len(data)]
        return data


def _has_lone_return(data: bytes) -> bool:
    if b"\r" not in data:
        return False
    codes = np.frombuffer(data + b"\0", np.uint8)  # some thirty times as fast as counting both
    return bool(np.any(codes[np.flatnonzero(codes == _RETURN) + 1] != _LINE_FEED))


def is_encoding(name: str) -> bool:
    """Return whether a text encoding of this name exists."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # a NUL takes more than one byte
    return True


@lru_cache(maxsize=8)
def is_like_ascii(encoding: str) -> bool:
    """Return whether an encoding extends ASCII, so that its bytes can be cut into lines."""
    if encoding.lower().startswith(("hz", "iso2022", "iso-2022")):
        return False  # but after an escape, ASCII bytes are parts of other characters
    ascii_bytes = bytes(range(128))
    try:
        return ascii_bytes.decode(encoding or "utf-8") == ascii_bytes.decode("ascii")
    except UnicodeError:
        return False


def exact_encoding(encoding: str, head: bytes) -> str:
    """Return the encoding of a file, given the encoding that the user named ("": none) and the first four bytes.

    If the user named none, UTF-16 or UTF-32, a byte order mark of UTF-16 or UTF-32 decides. Without a mark, the order
    of bytes in UTF-16 or UTF-32 is guessed from the first byte, as in "utf-16-le". If there is no mark and the user
    named no encoding, XML and JSON in UTF-16 are recognised by their first two characters; for all other files return
    "", which stands for UTF-8.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-16", "utf-32"):
        return encoding
    by_mark = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
    if not name and not by_mark:
        return "utf-16-le" if _UTF_16_LE.match(head) else "utf-16-be" if _UTF_16_BE.match(head) else ""
    return by_mark or (f"{name}-{'be' if head.startswith(bytes(1)) else 'le'}" if name else "")


def unmarked_encoding(encoding: str, head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark at the start of a file, and the encoding of the bytes after it.

    The mark is one of UTF-16 or UTF-32; b"" if there is none. The arguments are those of `exact_encoding`.
    """
    encoding = exact_encoding(encoding, head)
    mark = next((mark for mark, marked in _MARKS if marked == encoding and head.startswith(mark)), b"")
    return mark, f"{encoding}-{'le' if mark.startswith(codecs.BOM_UTF16_LE) else 'be'}" if mark else encoding


def is_cut_by_characters(encoding: str) -> bool:
    """Return whether the bytes of each character in an encoding are independent of other characters.

    This holds for UTF-16, UTF-32 and single-byte encodings, but not if escapes switch between character sets, as in
    ISO-2022. The encoding "" stands for that of a byte order mark.
    """
    name = codecs.lookup(encoding).name if encoding else "utf-16"
    return name.startswith(("utf-16", "utf-32")) or is_of_single_bytes(name)


def is_of_single_bytes(encoding: str) -> bool:
    """Return whether each byte is a character in an encoding, given Python's name of the encoding."""
    text = bytes(range(256)).decode(encoding, "replace")
    return len(text) == 256 and text.count("\ufffd") < 128  # encodings with escapes use no byte with the highest bit


def text_start(head: bytes, encoding: str) -> bytes:
    """Decode the first bytes of a text; return them as UTF-8, without a byte order mark and leading blank lines."""
    encoding = exact_encoding(encoding, head)
    if not is_like_ascii(encoding):
        head = head.decode(encoding, "ignore").encode()
    if b"\r" in head and b"\n" not in head:
        head = head.replace(b"\r", b"\n")
    return head.removeprefix(codecs.BOM_UTF8).lstrip()
