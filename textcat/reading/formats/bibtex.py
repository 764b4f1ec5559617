"""Read BibTeX: an entry is a reference, with the field names of `references`; LaTeX accents become letters."""

import re
import unicodedata
from collections.abc import Iterator

from textcat.reading.faults import UnreadableError
from textcat.reading.formats.references import StartCutter, reference_content, reference_fields, spans_from
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_START = re.compile(rb"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_HEAD = re.compile(r"\s*@([A-Za-z]+)\s*[{(]\s*(?:([^\s,{}()=\"]+)\s*)?(,|[})])")
_NAME = re.compile(r"[\s,]*([A-Za-z][\w:.+/-]*)\s*=\s*")
# One token of a value: text outside of braces and quotes, or a character that opens or closes them.
_TOKEN = re.compile(r"\\.|[{}\"]|[^\\{}\"]+", re.DOTALL)
_BARE = re.compile(r"[^\s,{}#\"]+")
_KIND = re.compile(rb"\s*@([A-Za-z]+)")
_NO_REFERENCES = frozenset({b"comment", b"preamble", b"string"})
_TAGS = {
    "type": ("ENTRYTYPE",),
    "id": ("ID",),
    "title": ("title",),
    "abstract": ("abstract",),
    "authors": ("author",),
    "year": ("year",),
    "date": ("date",),
    "journal": ("journal", "journaltitle", "booktitle"),
    "volume": ("volume",),
    "issue": ("number", "issue"),
    "pages": ("pages",),
    "publisher": ("publisher",),
    "issn": ("issn",),
    "doi": ("doi",),
    "url": ("url",),
    "language": ("language", "langid"),
    "keywords": ("keywords", "keyword"),
    "notes": ("note", "annote"),
}
_MARKS = {
    '"': "\u0308",
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "c": "\u0327",
    "v": "\u030c",
    "u": "\u0306",
    "H": "\u030b",
    "k": "\u0328",
    "r": "\u030a",
    "d": "\u0323",
    "b": "\u0331",
}
_LETTERS = {
    **dict(zip(("ss", "o", "O", "l", "L", "ae", "AE", "oe", "OE", "aa", "AA", "i", "j"), "ßøØłŁæÆœŒåÅij", strict=True)),
    "textendash": "–",
    "textemdash": "—",
    "textquoteright": "’",
    "textquoteleft": "‘",
}
_ACCENT = re.compile(r"""\\(["'`^~=.]|[cvuHkrdb](?![A-Za-z]))\s*(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))""")
_AND = re.compile(r"\sand\s")
_COMMAND = re.compile(r"\\([A-Za-z]+)(?:\{\}|\s+|(?![A-Za-z]))")
_ESCAPED = re.compile(r"\\([&%$#_{}])")


def latex_text(value: str) -> str:
    """Return a value as plain text: LaTeX's accents and letters become characters, braces and extra spaces vanish."""
    if "\\" in value:
        value = _ACCENT.sub(lambda match: _accented(match[1], (match[2] or match[3]).lstrip("\\")), value)
        value = _COMMAND.sub(lambda match: _LETTERS.get(match[1], ""), value)
        value = _ESCAPED.sub(lambda match: {"{": "\0", "}": "\1"}.get(match[1], match[1]), value)
    value = value.replace("{", "").replace("}", "").replace("\0", "{").replace("\1", "}")
    return " ".join(value.replace("---", "—").replace("--", "–").replace("~", " ").split())


def _accented(mark: str, letter: str) -> str:
    return unicodedata.normalize("NFC", letter + _MARKS[mark])


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    text = span.text(settings)
    head = _HEAD.match(text)
    if not head:
        raise UnreadableError("does not begin like '@article{key,': correct it")
    values = {"ENTRYTYPE": [head[1].lower()], "ID": [head[2]] if head[2] else []}
    position = head.end()
    while match := _NAME.match(text, position):
        value, position = _value(text, match.end())
        values.setdefault(match[1].lower(), []).append(value)
    return reference_content(_fields(values), settings)


def _value(text: str, position: int) -> tuple[str, int]:
    """Return the value that begins at `position`, and the position after it; parts joined by # are one value."""
    parts = []
    while True:
        opening = text[position : position + 1]
        if opening in ("{", '"'):
            end = _end_of_quoted(text, position, opening)
            parts.append(text[position + 1 : end - 1])
        elif bare := _BARE.match(text, position):
            end = bare.end()
            parts.append(bare[0])
        else:
            raise UnreadableError(f"has no value at its character {position + 1}: correct it")
        position = end
        while text[position : position + 1].isspace():
            position += 1
        if text[position : position + 1] != "#":
            return "".join(parts), position
        position += 1
        while text[position : position + 1].isspace():
            position += 1


def _end_of_quoted(text: str, start: int, opening: str) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start + 1):
        if token[0] == "{":
            depth += 1
        elif depth == 0 and token[0] == {"{": "}", '"': '"'}[opening]:
            return token.end()
        elif token[0] == "}":
            depth -= 1
    raise UnreadableError(f"has a value that is not closed, which begins at its character {start + 1}: close it")


def _fields(values: dict[str, list[str]]) -> dict[str, object]:
    authors = [name for value in values.get("author", ()) for name in _AND.split(value)]
    keywords = [word for name in ("keywords", "keyword") for value in values.pop(name, ()) for word in _split(value)]
    texts = {name: [*filter(None, map(latex_text, content))] for name, content in values.items()}
    texts |= {"author": [*filter(None, map(latex_text, authors))], "keywords": keywords}
    if texts.get("pages"):
        texts["pages"] = [pages.replace("–", "-") for pages in texts["pages"]]
    return reference_fields(texts, _TAGS)


def _split(keywords: str) -> list[str]:
    return [*filter(None, map(latex_text, keywords.split(";" if ";" in keywords else ",")))]


def _spans(block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    for span in spans_from(_START, block, settings):
        kind = _KIND.match(span.data)
        if not kind or kind[1].lower() not in _NO_REFERENCES:
            yield span


FORMAT = RecordFormat(_spans, by_record(_content), "Entry {}", lambda *_: StartCutter(_START))
