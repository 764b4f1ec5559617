"""Read HTTP responses as web archives store them: status, fields, and the body, unpacked within bounds."""

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from textcat.base.errors import install_hint
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.documents import missing_module

_STATUS = re.compile(rb"HTTP/[0-9.]{1,8}[ \t]+([0-9]{3})(?![0-9])")
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_FIELD = re.compile(rb"^([\w-]+)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,1000})?\r?\n")
_STEP = 1 << 16  # bytes unpacked at a time
_LOOKED_AT = 100  # number of first bytes that show whether a page is compressed


def media_type(value: str) -> str:
    """Return the media type in a value of Content-Type, without its parameters: "text/html"."""
    return value.partition(";")[0].strip().lower()


class HttpResponse(NamedTuple):
    """An HTTP response: its status, its fields by their names in lower case, and its body as sent."""

    status: int  # 0: the data do not begin like a response
    fields: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> "HttpResponse":
        """Parse a response of HTTP."""
        status, stop = _STATUS.match(data), _END_OF_HEAD.search(data)
        n = stop.end() if stop else len(data)
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(data[:n]):
            fields.setdefault(name.decode().lower(), value.decode("latin-1").replace("\0", " ").strip())
        return cls(int(status[1]) if status else 0, fields, data[n:])

    def content(self, most: int, is_cut: bool = False) -> bytes:
        """Return the body after the transfer and content encodings are undone, if it is stored with them.

        UnreadableError is raised if it has more than `most` bytes, if it is damaged, or, unless `is_cut` is True, if it
        is cut off.
        """
        body = self.body
        if "chunked" in self.fields.get("transfer-encoding", "").lower():
            body = _without_chunks(body)
        codings = self.fields.get("content-encoding", "").lower().split(",")
        for coding in reversed([name.strip() for name in codings if name.strip() not in ("", "identity", "none")]):
            if coding not in _CODINGS:
                raise UnreadableError(f"has a body in the encoding {coding[:40]!r}, which is not read: leave it out")
            body = _CODINGS[coding](body, most, is_cut)
        return body


def _without_chunks(body: bytes) -> bytes:
    """Return a body without chunk framing; from an invalid chunk on, the rest is returned unchanged."""
    parts, position = [], 0
    while (size := _CHUNK.match(body, position)) and (n := int(size[1], 16)):
        parts.append(body[size.end() : size.end() + n])
        position = size.end() + n
        position += 2 if body.startswith(b"\r\n", position) else body.startswith(b"\n", position)
    return b"".join(parts) if size else b"".join([*parts, body[position:]])


def _joined(pieces: Iterator[bytes], most: int) -> bytes:
    """Return the pieces of a body as one; raise UnreadableError as soon as they are more than `most` bytes."""
    parts, left = [], most
    for piece in pieces:
        parts.append(piece)
        left -= len(piece)
        if left < 0:
            raise UnreadableError(
                f"has a body that unpacks to more than {most} bytes, the most of a record: leave it out"
            )
    return b"".join(parts)


def _inflate(body: bytes, window: int, is_cut: bool) -> Iterator[bytes]:
    """Yield a body unpacked by zlib; `window` is zlib's parameter `wbits`, which tells the container format."""
    inflate = zlib.decompressobj(window)
    try:
        while not inflate.eof and (piece := inflate.decompress(body, _STEP)):
            yield piece
            body = inflate.unconsumed_tail
    except zlib.error as error:
        raise _damaged(error) from None
    if not inflate.eof and not is_cut:
        raise _damaged("it is cut off")


def _damaged(reason: object) -> UnreadableError:
    return UnreadableError(f"has a damaged body ({reason}): leave it out, or fetch the page again")


def _gunzipped(body: bytes, most: int, is_cut: bool) -> bytes:
    if not body.startswith(b"\x1f\x8b"):  # stored uncompressed
        return body
    return _joined(_inflate(body, 31, is_cut), most)


def _inflated(body: bytes, most: int, is_cut: bool) -> bytes:
    if body[:_LOOKED_AT].lstrip().startswith(b"<"):  # stored uncompressed
        return body
    # The standard requires two header bytes, which some servers omit.
    is_by_standard = len(body) > 1 and body[0] & 15 == 8 and not int.from_bytes(body[:2], "big") % 31
    return _joined(_inflate(body, 15 if is_by_standard else -15, is_cut), most)


def _unbrotlied(body: bytes, most: int, is_cut: bool) -> bytes:
    if body[:_LOOKED_AT].lstrip().startswith(b"<"):  # stored uncompressed
        return body
    try:
        import brotli
    except ImportError as error:
        hint = install_hint("web")
        fault = f"has a body packed by Brotli: run `{hint}` to read it, then start again"
        raise UnreadableError(fault, needs=missing_module(error).needs) from None

    def pieces() -> Iterator[bytes]:
        unpack, packed = brotli.Decompressor(), body
        try:
            while not unpack.is_finished() and (piece := unpack.process(packed, output_buffer_limit=_STEP)):
                yield piece
                packed = b""
        except brotli.error as error:
            raise _damaged(error) from None
        if not unpack.is_finished() and not is_cut:
            raise _damaged("it is cut off")

    return _joined(pieces(), most)


_CODINGS = {
    "br": _unbrotlied,
    "deflate": _inflated,
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
}
