"""Read mail: an mbox file, in which each message is a document, or a file with a single message (.eml)."""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from functools import cache, partial
from html import unescape
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from textcat.base.surrogates import mark_surrogates
from textcat.reading.columns import titled_zones
from textcat.reading.dates import iso_date
from textcat.reading.faults import UnreadableError, encoding_error
from textcat.reading.formats.charsets import decoded_as, encoding_meant
from textcat.reading.formats.documents import ExtractedText, document_format
from textcat.reading.formats.html import decode_declared, extract_page
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import labels_in
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

if TYPE_CHECKING:
    from email.message import Message

#: The line before a message: "From ", an address, and a date with its time.
SEPARATOR = re.compile(rb"From [^\n]{1,400}?[0-9]:[0-9][0-9][^\n]{0,400}(?:\n|\Z)")
_HEADED = re.compile(rb"(?:From [^\n]*\n)?[!-9;-~]{1,998}[ \t]*:")
_START = b"\nFrom "
_LONGEST_SEPARATOR = 1000  # maximum bytes of the separator, with the blank line before it
# maximum bytes of headers: Python's time grows faster than their length
_HEADER = re.compile(
    rb"^(content-[a-z-]+|subject|message-id|date):[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
_LONGEST = 1 << 16
_MOST_LEVELS = 32  # maximum nesting of parts: each line is compared with the boundaries of all enclosing parts
# A tag ends at the first ">" outside of quotes; if quotes are not closed before the next tag, at any ">". A lookahead
# finds its name, so that it matches whole or not at all.
_TAG = re.compile(r"""<(?:[/!?]|(?=([a-zA-Z][^\s/<>"']*))\1)(?:(?:[^<>"']|"[^"<]*"|'[^'<]*')*|[^<>]*)>""")
_HIDDEN = {name: re.compile(f"</{name}[^<>]*>", re.IGNORECASE) for name in ("script", "style")}
# Encoded words of a header, with further ones in the same charset: a character's bytes may be divided between two
# words.
_ENCODED = r"=\?[^?\s]{1,100}\?[bBqQ]\?[^?]*(?:\?(?!=)[^?]*){0,8}\?="
_ENCODED_WORDS = re.compile(rf"{_ENCODED}(?:\s+{_ENCODED})*")
_UNSAID = ("", "ascii", "us-ascii")  # default charsets, often set without intention
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


class _MessageCutter:
    """Cut an mbox before the separator lines of its messages."""

    def cut(self, data: bytes) -> int:
        # The last message ends with the file.
        position = len(data)
        while (position := data.rfind(_START, 0, position)) > 0:
            if _starts(data, position) and data.find(b"\n", position + 1) > 0:
                return position + 1
        return 0

    def count(self, data: bytes) -> int:
        return bool(SEPARATOR.match(data.removeprefix(BOM_UTF8))) + sum(1 for _ in _inner_starts(data))

    def skip(self, data: bytes) -> tuple[int, bool]:
        for start in _inner_starts(data):
            if data.find(b"\n", start) > 0:
                return start, True
        return max(len(data) - _LONGEST_SEPARATOR, 0), False


def _inner_starts(data: bytes) -> Iterator[int]:
    position = data.find(_START)
    while position >= 0:
        if _starts(data, position):
            yield position + 1
        position = data.find(_START, position + 1)


def _starts(data: bytes, line_end: int) -> bool:
    """Return whether the line that ends at `line_end` is blank and a separator line with a date follows."""
    before = data[max(line_end - 2, 0) : line_end]
    return before.endswith((b"\n", b"\n\r")) and bool(SEPARATOR.match(data, line_end + 1))


def _spans(block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    (data, offset), position = block.without_mark(settings), block.position
    starts = [0, *_inner_starts(data), len(data)]
    for start, end in pairwise(starts):
        message = data[start:end]
        if message.strip():
            yield RecordSpan(position, offset + start, message)
        position += bool(SEPARATOR.match(message))


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    """Return the content of a message of an mbox.

    Its id is the Message-ID, its title the Subject, and its body the plain-text parts that are not attachments or, if
    there are none, the HTML parts without tags. If the settings ask for labels, the header that `topics_field` names
    has the topics.
    """
    separator = SEPARATOR.match(span.data)
    if not separator:
        raise UnreadableError(
            'does not start with a line such as "From a@b.org Thu Jan  1 00:00:00 1970": correct the file'
        )
    data = _QUOTED_FROM.sub(rb"\1", span.data[separator.end() :])
    name, said = _message(span, data, settings, without_tags)
    return Record(name, titled_zones(said.title, [said.body], settings), said.topics, said.date)


def _file(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    """Return the content of a file that is one message; its HTML is parsed, unlike that of messages in an mbox."""
    if not _HEADED.match(span.data):
        raise UnreadableError("does not begin with a header, so it is not a mail: correct it or leave it out")
    if b"\n" not in span.data:  # line ends of old Macs
        span = span._replace(data=span.data.replace(b"\r", b"\n"))
    return _message(span, span.data, settings, lambda text: extract_page(text).body)[1]


def _message(
    span: RecordSpan, data: bytes, settings: InputSettings, text_of_html: Callable[[str], str]
) -> tuple[str, ExtractedText]:
    """Return the id and the content of the message in `data`.

    `text_of_html` returns the text of an HTML part. Byte positions in error messages come from `span`: they count
    from the start of the file.
    """
    if b"\0" in span.data:
        raise UnreadableError(f"has a NUL byte (byte {span.offset + span.data.find(0)}): leave it out")
    for header in _HEADER.finditer(span.data):
        if header.end() - header.start() > _LONGEST:
            raise UnreadableError(f"has a {header[1].decode().title()} of more than {_LONGEST:,} bytes: shorten it")
    import email  # imported here and below, because the import takes as long as that of all these formats
    from email.policy import compat32

    try:
        # The older policy, because the default one takes quadratic time for long headers of parts.
        message = email.message_from_bytes(data, _part_class(), policy=compat32)
        title, body = _header(message, "Subject"), _body(message, settings.encoding, text_of_html)
        name = _header(message, "Message-ID")
        date = iso_date(_header(message, "Date"))
        if settings.labels is None:
            return name, ExtractedText(title, body, (), date)
        # Unless a header with topics is named, such as X-Gmail-Labels, the file's location determines the topics.
        field = settings.topics_field
        topics = "" if settings.is_default("topics_field") else _header(message, field)
        return name, ExtractedText(title, body, labels_in(topics, field, settings.topics_separator).topics, date)
    except UnreadableError:
        raise
    except Exception as error:  # the library raises many types of exceptions for odd headers and deeply nested parts
        raise UnreadableError(f"is not a readable mail ({error!r:.80}): correct it or leave it out") from None


@cache
def _part_class() -> type["Message"]:
    from email.message import Message

    class Part(Message):
        """A part that knows its depth, and raises an error if it is nested too deeply."""

        _level = 0

        def attach(self, payload: Any) -> None:
            payload._level = self._level + 1
            if payload._level > _MOST_LEVELS:
                raise UnreadableError(f"has parts in more than {_MOST_LEVELS} others: leave it out, or unpack it")
            super().attach(payload)

    return Part


def _header(message: "Message", name: str) -> str:
    text = next((text for key, text in message.raw_items() if key.lower() == name.lower()), "")
    if not text.isascii():  # unencoded bytes are UTF-8, or in the charset of the message
        charsets = map(_charset, message.walk())
        text = decoded_as(text.encode("utf-8", "surrogateescape"), "", *islice(filter(None, charsets), 1))
    return " ".join(mark_surrogates(_ENCODED_WORDS.sub(_decoded_words, text)).split())


def _decoded_words(match: re.Match[str]) -> str:
    from email.errors import MessageError
    from email.header import decode_header

    try:
        words = decode_header(match[0])
    except (ValueError, MessageError):  # these types are not really encoded
        return match[0]
    texts = (
        word if isinstance(word, str) else decoded_as(word, _encoding_of((charset or "").partition("*")[0]))
        for word, charset in words
    )
    return "".join(texts)


def _body(message: "Message", encoding: str, text_of_html: Callable[[str], str]) -> str:
    parts = [part for part in message.walk() if part.get_content_disposition() != "attachment"]
    for kind, text_of, by_default in (
        ("text/plain", str, partial(decoded_as, encoding="")),
        ("text/html", text_of_html, decode_declared),
    ):
        texts = [text_of(_decoded(part, encoding, by_default)) for part in parts if part.get_content_type() == kind]
        if texts:
            return "\n".join(texts).strip()
    return ""


def _decoded(part: "Message", encoding: str, by_default: Callable[[bytes], str]) -> str:
    """Decode the text of a part: by its own charset, or else by `encoding`, or, if that is "", by `by_default`."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    if charset := _charset(part):
        return decoded_as(data, charset)
    if not encoding:
        return by_default(data)
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        raise encoding_error(encoding, getattr(error, "start", 0)) from None


def _charset(part: "Message") -> str:
    return _encoding_of(str(part.get_content_charset("")))


def _encoding_of(charset: str) -> str:
    return "" if charset in _UNSAID else encoding_meant(charset)


def without_tags(text: str) -> str:
    """Return the visible text of HTML.

    It takes linear time even if the HTML is invalid; Python's parser does not.
    """
    shown, begin, at = [], 0, 0
    while (start := text.find("<", at)) >= 0:
        at = _end_of_markup(text, start)
        if at > start + 1:
            shown.append(text[begin:start])
            begin = at
    return unescape(" ".join(filter(None, [*shown, text[begin:]])))


def _end_of_markup(text: str, start: int) -> int:
    """Return the end of the tag, comment or hidden element that a "<" begins, or else the position after the "<"."""
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return end + 3 if end >= 0 else len(text)
    tag = _TAG.match(text, start)
    if not tag:
        return start + 1
    closing = _HIDDEN.get((tag[1] or "").lower())
    last = closing.search(text, tag.end()) if closing else tag
    return last.end() if last else len(text)


FILE = document_format(_file, larger=True)
MBOX = RecordFormat(_spans, by_record(_content), "Message {}", lambda *_: _MessageCutter())
