"""Read Markdown: the text as it is shown; the title is that of the front matter, or else the first main heading."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textcat.reading.formats.documents import ExtractedText, document_format, tidy_lines
from textcat.reading.formats.mail import without_tags
from textcat.reading.records import InputSettings, RecordSpan

if TYPE_CHECKING:
    from markdown_it.token import Token

_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n")
_TITLE = re.compile(r"""^title[ \t]*[:=][ \t]*(["']?)(.+?)\1[ \t]*$""", re.MULTILINE)
_AT_ONCE = 1 << 18  # characters: what is parsed takes a hundred times as much memory
_NESTED = 100  # lists and quotes in each other; what is nested deeper is left out


def _read(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    from markdown_it import MarkdownIt

    title, text = _without_matter(settings.text_of(span).replace("\r\n", "\n"))
    parser = MarkdownIt("commonmark", {"maxNesting": _NESTED}).enable(["table", "strikethrough"])
    pieces: list[str] = []
    for part in _parts(text):
        is_title = False
        for token in parser.parse(part):
            if token.type == "heading_open":
                is_title = not title and token.tag == "h1"
            elif token.type == "inline":
                shown = "".join(_inline(token.children or ()))
                if is_title:
                    title, is_title = shown, False
                else:
                    pieces.append(shown)
            elif token.type == "html_block":
                pieces.append(without_tags(token.content))
            else:
                pieces.append(token.content)  # of code; others have none
    return ExtractedText(title, tidy_lines("\n".join(pieces)))


def _without_matter(text: str) -> tuple[str, str]:
    """Return the title in the front matter ("" if there is none), and the text after the front matter."""
    mark = _MATTER.match(text)
    end = text.find(f"\n{mark[1]}", mark.end() - 1) if mark else -1
    if not mark or end < 0:
        return "", text
    title = _TITLE.search(text[mark.end() : end])
    return title[2] if title else "", text[end + 4 :].partition("\n")[2]


def _parts(text: str) -> Iterator[str]:
    """Divide a long text into parts, and yield these; a part ends where a paragraph ends, or else a line."""
    start = 0
    while len(text) - start > _AT_ONCE:
        most = start + _AT_ONCE
        end = max(text.rfind("\n\n", start, most), start) or text.rfind("\n", start, most)
        end = end + 1 if end > start else most
        yield text[start:end]
        start = end
    yield text[start:]


def _inline(tokens: "Iterable[Token]") -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type != "html_inline":  # a tag
            yield token.content


FORMAT = document_format(_read)
