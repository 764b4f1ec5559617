"""Read WARC and WET, the archives of the web: a record with a page or a plain text is a document.

A record begins with a head of fields; its Content-Length determines its end. If no record follows there, the record is
cut off or damaged, and reading continues at the next head. Records without a page, such as requests and pictures, are
left out.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from textcat.base.surrogates import mark_surrogates
from textcat.reading.columns import titled_zones
from textcat.reading.compression import DAMAGED_MEMBER, WARC
from textcat.reading.dates import iso_date
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats.documents import ExtractedText, clean
from textcat.reading.formats.html import decode_page, extract_text
from textcat.reading.formats.http import HttpResponse, media_type
from textcat.reading.formats.news import left_out
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_HEAD = re.compile(rb"WARC/[01]\.[0-9]{1,2}\r?\n")
_LONGEST_VERSION = 16  # bytes of the line that `_HEAD` matches
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_BEHIND_FIELDS = re.compile(rb"\n\r?\n|WARC/[01]\.[0-9]{1,2}\r?\n")  # the end of a head, or the next head
_LONGEST_HEAD = 1 << 16
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?\n", re.IGNORECASE)
_LINE_ENDS = re.compile(rb"[\r\n]*")
_FIELD = re.compile(rb"^([\w-]+)[ \t]*:[ \t]*([^\r\n]*(?:\r?\n[ \t]+[^\r\n]*)*)", re.MULTILINE)
_NO_PAGES = frozenset(("continuation", "metadata", "request", "revisit", "warcinfo"))
_PAGES = frozenset(("text/html", "application/xhtml+xml", "text/plain"))
_LOOKS_LIKE_PAGE = re.compile(rb"\s*(?:<\?xml[^<>]{0,200}>\s*)?<(?:!DOCTYPE\s+html|html)[\s>]", re.IGNORECASE)


class _Extent(NamedTuple):
    """The end of a record."""

    end: int  # end; -1: more data are needed
    declared: int  # the end declared in the head; -1: none is declared


def _extent(data: bytes, start: int, is_whole: bool) -> _Extent:
    """Return where the record that begins at `start` ends; `is_whole` says whether no data follow.

    If its head declares no end, or a wrong one, it ends at the next head.
    """
    n, behind, declared = len(data), start, -1
    if not (head := _HEAD.match(data, start)):
        if n - start < _LONGEST_VERSION and not is_whole:
            return _Extent(-1, -1)
    elif stop := _BEHIND_FIELDS.search(data, head.end() - 1, start + _LONGEST_HEAD):
        if stop[0].startswith(WARC):
            return _Extent(stop.start(), -1)
        behind = stop.end()
        if (declared := _declared_end(data, head)) >= 0:
            is_end = _is_end(data, behind, declared, is_whole)
            if is_end is not False:
                return _Extent(declared if is_end else -1, declared)
    else:
        behind = head.end()
        if n - start < _LONGEST_HEAD and not is_whole:
            return _Extent(-1, -1)
    next_head = _HEAD.search(data, behind)
    return _Extent(next_head.start() if next_head else n if is_whole else -1, declared)


def _is_end(data: bytes, start: int, end: int, is_whole: bool) -> bool | None:
    """Return whether the body of a record that begins at `start` ends at `end`; None: more data are needed to tell.

    If it does, another record or, if that is damaged, an empty line follows. If the record is cut off, `end` may be the
    end of another record, which then lies inside its supposed body.
    """
    if end > len(data):
        return False if is_whole else None
    next_start = _start_of_next(data, end)
    following = data[next_start : next_start + len(WARC)]
    if following != WARC and WARC.startswith(following) and not is_whole:
        return None
    follows = following == WARC or (is_whole and not following)
    if not (follows or data.startswith((b"\r\n\r\n", b"\n\n"), end)):
        return False
    for head in _HEAD.finditer(data, start, end):
        end_of_other = _declared_end(data, head)
        if not follows or (0 <= end_of_other <= len(data) and _start_of_next(data, end_of_other) == next_start):
            return False
    return True


def _declared_end(data: bytes, head: "re.Match[bytes]") -> int:
    """Return where a record ends according to its head; -1 if the head is cut off, or declares no length."""
    stop = _BEHIND_FIELDS.search(data, head.end() - 1, head.start() + _LONGEST_HEAD)
    length = _LENGTH.search(data, head.start(), stop.end()) if stop else None
    return stop.end() + int(length[1]) if stop and length else -1


class RecordCutter:
    """Find where records end in the bytes of a WARC, so that it is cut there into blocks of whole records."""

    def __init__(self, settings: InputSettings) -> None:
        self._settings = settings
        self._head = b""  # bytes of the record that is being skipped, with the start of what follows
        self._cut = 0, 0  # the length returned last, and the number of records that end in it
        # remaining bytes of the record that is being skipped; 0: it begins; -1: it ends at the next head
        self._left = 0

    def cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of the data."""
        end = n = 0
        while (extent := _extent(data, _start_of_next(data, end), False)).end >= 0:
            end, n = extent.end, n + 1
        if not end and len(data) >= self._settings.most_held and 0 <= extent.declared <= len(data):
            end, n = extent.declared, 1  # it must not be longer, so its end remains unknown
        self._cut = end, n
        return end

    def count(self, data: bytes) -> int:
        """Return how many records end in the data."""
        length, n = self._cut
        return n if length == len(data) else sum(1 for _ in _records(data))

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of the data belong to the record that is being skipped, and whether it ends there."""
        n, ends = self._skipped(data)
        self._left, self._cut = 0 if ends else self._left, (n, int(ends))
        return n, ends

    def _skipped(self, data: bytes) -> tuple[int, bool]:
        if not self._left:
            start = _start_of_next(data, 0)
            if len(data) - start < _LONGEST_HEAD and not _END_OF_HEAD.search(data, start):
                return 0, False
            self._head = data[start : start + 2 * _LONGEST_HEAD]
            declared = _extent(data, start, False).declared
            self._left = declared if declared > len(data) else -1
            if self._left < 0:
                return start + len(WARC), False
        if self._left < 0:
            head = _HEAD.search(data)
            return (head.start(), True) if head else (max(len(data) - _LONGEST_VERSION, 0), False)
        n = min(self._left, len(data))
        damage = data.find(DAMAGED_MEMBER, 0, n)
        if damage >= 0 or n == self._left:
            return damage if damage >= 0 else n, True
        n = max(n - len(DAMAGED_MEMBER), 0)  # part of the head may be in the data
        self._left -= n
        return n, False

    def fault(self, length: int) -> UnreadableError:
        """Return the error for a skipped record of the given length: it is cut off, holds no page, or is too long."""
        if length <= self._settings.max_bytes:
            return _damage("is cut off")
        try:
            head, body = _head_and_body(self._head)
            _page(_fields(head), body)
        except UnreadableError as fault:
            return fault
        return self._settings.too_long(length)


def _start_of_next(data: bytes, position: int) -> int:
    """Return the position after any line ends at `position`, where the next record begins."""
    return _LINE_ENDS.match(data, position).end()  # type: ignore[union-attr]  # it always matches


def _records(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each record begins and ends, the last one where the data end."""
    end = 0
    while (start := _start_of_next(data, end)) < len(data):
        end = _extent(data, start, True).end
        yield start, end


def _spans(block: Block, _: InputSettings) -> Iterator[RecordSpan]:
    for position, (start, end) in enumerate(_records(block.data), block.position):
        yield RecordSpan(position, block.offset + start, block.data[start:end])


def _fields(head: bytes) -> dict[str, str]:
    """Return the fields of a head by their names in lower case; of several with one name, the first."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(head):
        text = mark_surrogates(" ".join(value.decode("utf-8", "replace").replace("\0", " ").split()))
        fields.setdefault(name.decode().lower(), text)
    return fields


def _head_and_body(data: bytes) -> tuple[bytes, bytes]:
    """Divide a record into its head and its body; raise UnreadableError if the head is invalid."""
    if not _HEAD.match(data):
        raise UnreadableError("does not begin with WARC/ and a version: check whether the file is complete")
    stop = _END_OF_HEAD.search(data, 0, _LONGEST_HEAD)
    if not stop:
        raise _damage("is cut off within its head")
    return data[: stop.end()], data[stop.end() :]


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    """Return the content of a record.

    Its id is its WARC-Record-ID, as many records may have the same address, and its date the WARC-Date.
    """
    head, body = _head_and_body(span.data)
    fields = _fields(head)
    if head.startswith(DAMAGED_MEMBER):
        raise _damage(f"stands for a part of the compressed file that is damaged ({fields.get('fault', '')})")
    length = fields.get("content-length", "")
    if not length.isdecimal():
        raise _damage("has no Content-Length")
    if len(body) != int(length):
        n = f"{len(body)} bytes, but its Content-Length is {length}"
        raise _damage(f"is cut off: it has {n}" if len(body) < int(length) else f"has {n}")
    form, response = _page(fields, body)
    if response is not None:
        body = response.content(settings.max_bytes, "warc-truncated" in fields)
        form = form or ("text/html" if _LOOKS_LIKE_PAGE.match(body[:_LONGEST_HEAD]) else "")
        if not form:
            raise _other_than_text()
    text = decode_page(body, form, settings)
    is_plain = media_type(form) == "text/plain"
    page = ExtractedText("", text.strip()) if is_plain else extract_text(text, settings)
    language = fields.get("warc-identified-content-language", "").split(",")[0].strip() or page.language
    date = iso_date(fields.get("warc-date", ""))
    uri = fields.get("warc-target-uri", "").strip("<>")
    further = {"uri": uri, "date": date, "language": language, "published": page.date, "author": page.author}
    zones = titled_zones(" ".join(clean(page.title).split()), [clean(page.body)], settings)
    id_ = fields.get("warc-record-id", "").strip("<>")
    return Record(id_, zones, (), date, fields=settings.kept(further), language=language)


def _damage(what: str) -> UnreadableError:
    return UnreadableError(f"{what}: fetch or copy the file again", FaultKind.DAMAGE, f"a record {what}")


def _page(fields: dict[str, str], body: bytes) -> tuple[str, HttpResponse | None]:
    """Return the Content-Type of the page in a record, "" if it has none, and the HTTP response around the page.

    An error of the kind LEFT_OUT says why there is no page. `fields` are those of the record's head.
    """
    kind = fields.get("warc-type", "").lower()
    if kind not in ("response", "resource", "conversion"):
        what = f"a {kind} record" if kind in _NO_PAGES else "a record of an unknown type"
        raise left_out(f"is {what}, not a page", f"what is {what}, not a page, is left out")
    if "warc-segment-number" in fields:
        raise left_out("is one of several parts of a page", "pages in several parts are left out")
    if fields.get("warc-target-uri", "").strip("<>").lower().startswith("metadata:"):
        raise left_out("is a log of the crawler, not a page", "logs of the crawler are left out")
    form, response = fields.get("content-type", ""), None
    if kind == "response" and media_type(form) == "application/http":
        response = HttpResponse.of(body)
        if response.status != 200:
            raise left_out(f"has the HTTP status {response.status}", "responses of an HTTP status but 200 are left out")
        form = response.fields.get("content-type", "") or fields.get("warc-identified-payload-type", "")
    if media_type(form) not in _PAGES and (form or response is None):
        raise _other_than_text()
    return form, response


def _other_than_text() -> UnreadableError:
    return left_out("is neither HTML nor plain text", "records that are neither HTML nor plain text are left out")


FORMAT = RecordFormat(_spans, by_record(_content), "Record {}", lambda _, __, settings: RecordCutter(settings))
