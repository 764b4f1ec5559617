"""Archives of the web: records of WARC, plain, and packed record by record with a byte changed."""

from __future__ import annotations

import gzip
import re

from .checks import check_file, check_sources, source
from .inputs import chosen, documents, with_settings
from .target import Target

_HEAD = b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%d>\r\nWARC-Date: 2024-05-01T10:00:00Z\r\n"
_PAGE = (
    b"<html lang=en><head><meta charset=latin-1><title>Tin</title></head><body><nav>Home</nav><p>Tin rose.</p></html>"
)


def _record(kind: bytes, number: int, body: bytes, more: bytes = b"") -> bytes:
    return _HEAD % (kind, number) + more + b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(body), body)


def _response(number: int, body: bytes, fields: bytes, status: bytes = b"200 OK") -> bytes:
    http = b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, fields, body)
    return _record(b"response", number, http, b"Content-Type: application/http; msgtype=response\r\n")


_HTML, _GZIP = b"Content-Type: text/html; charset=utf-8\r\n", gzip.compress(_PAGE, mtime=0)
_CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(_GZIP), _GZIP)
_WARC = b"".join((
    _record(b"warcinfo", 1, b"software: a\r\n"),
    _response(2, _PAGE, _HTML),
    _record(b"request", 3, b"GET / HTTP/1.1\r\n\r\n"),
    _response(4, _CHUNKED, _HTML + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
    _response(5, b"no", _HTML, b"404 Not Found"),
    _response(6, b"\x89PNG", b"Content-Type: image/png\r\n"),
    _record(b"revisit", 7, b""),
))  # fmt: skip
_WET = _record(
    b"conversion", 1, b"Tin rose.", b"Content-Type: text/plain\r\nWARC-Identified-Content-Language: eng,deu\r\n"
)
_WORDS = (
    *(b"WARC/1.0\r\n", b"WARC/1.1\n", b"WARC/", b"\r\n\r\n", b"\n\n", b"\r\n", b"Content-Length: 0\r\n"),
    *(b"Content-Length: 99999999999999999\r\n", b"Content-Length: 40\r\n", b"Content-Length: -1\r\n", b"WARC-Type: "),
    *(b"response", b"resource", b"conversion", b"continuation", b"damaged", b"Content-Type: ", b"application/http"),
    *(b"text/html", b"text/plain", b"charset=utf-16", b"charset=rot13", b"charset=idna", b"Content-Encoding: "),
    *(b"gzip", b"deflate", b"br", b"gzip, br", b"Transfer-Encoding: chunked\r\n", b"ffffffff\r\n", b"0\r\n", b"\0"),
    *(b"WARC-Truncated: length\r\n", b"WARC-Segment-Number: 1\r\n", b"WARC-Type: damaged\r\nFault: a\r\n", b"\xff"),
    *(b"HTTP/1.1 200 OK", b"\x1f\x8b\x08"),
)


def _check(data: bytes) -> None:
    settings, way, data = chosen(data)
    settings = settings._replace(format="warc", fields=() if settings.plain_quotes else ("*",))
    settings = settings._replace(encoding="" if settings.encoding == "utf-16" else settings.encoding)
    check_file("a.warc", "warc", data, settings, way)
    documents("warc", "a.warc", data)


def _check_members(data: bytes) -> None:
    """Check that records in members of their own are read as plain ones, and what is damaged as a whole in any way."""
    settings, _, data = chosen(data)
    place, flipped, data = data[:1], data[1:2], data[2:]
    records = [part for part in re.split(rb"(?=WARC/1)", data) if part]
    packed = b"".join(gzip.compress(record, 1, mtime=0) for record in records)
    settings = settings._replace(format="warc", encoding="", block_bytes=1 << 20, max_bytes=1 << 20)
    plain, found = (
        check_sources([source("a.warc", all_, settings)], settings)[1] for all_ in (b"".join(records), packed)
    )
    assert plain == found, "packed records are read otherwise"
    if place and flipped and packed:
        at = place[0] * len(packed) >> 8
        packed = packed[:at] + (b"" if flipped == b"\0" else bytes([packed[at] ^ flipped[0]])) + packed[at + 1 :]
        as_file, forwards = (check_sources([source("a.warc", packed, settings, way)], settings)[1] for way in (0, 1))
        assert as_file == forwards, "what can be sought in is read otherwise"


WARC = Target(_check, lambda: with_settings(_WARC, _WET, _WARC[:-9], _WARC[400:] + _WET), _WORDS)
WARC_GZ = Target(_check_members, lambda: with_settings(b"\0\0" + _WARC, b"\x40\1" + _WARC, b"\x80\0" + _WARC), _WORDS)
