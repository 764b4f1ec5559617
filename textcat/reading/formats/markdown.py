"""Read Markdown as displayed text; the title is that of the front matter, or else the first main heading."""

import re
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textcat.reading.formats.documents import ExtractedText, document_format, tidy_lines
from textcat.reading.formats.mail import without_tags
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import RecordSpan

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n")
_TITLE = re.compile(r"""^title[ \t]*[:=][ \t]*(["']?)(.+?)\1[ \t]*$""", re.MULTILINE)
_AT_ONCE = 1 << 18  # maximum characters parsed at once: parsing takes a hundred times as much memory
_NESTED = 100  # maximum nesting of lists and quotes; deeper text is left out


def _read(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    title, text = _without_matter(span.text(settings).replace("\r\n", "\n"))
    parser = commonmark_parser()
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
                pieces.append(token.content)  # tokens of code
    return ExtractedText(title, tidy_lines("\n".join(pieces)))


def commonmark_parser() -> "MarkdownIt":
    """Return a parser of CommonMark, tables and strikethrough; it takes linear time even with many open brackets."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _NESTED}).enable(["table", "strikethrough"])
    helpers: Any = SimpleNamespace(**vars(parser.helpers))
    helpers.parseLinkLabel = _label_end
    parser.helpers = helpers
    return parser


def _label_end(state: "StateInline", start: int, disableNested: bool = False) -> int:
    """Return the position of the bracket that ends the label of a link, given that of its first; -1 if there is none.

    The library's function of this name scans to the end of the paragraph for each open bracket. This one caches its
    results, skips inner pairs of brackets, ends at an inner bracket that is never closed, and does not scan beyond the
    last closing bracket.
    """
    ends: dict[Any, int] = state.cache  # cache for one paragraph; the library's own keys are numbers
    if ("]", state.posMax) not in ends:
        ends["]", state.posMax] = state.src.rfind("]", 0, state.posMax)
    if start > ends["]", state.posMax]:
        return -1
    key = start, disableNested, state.posMax
    if key not in ends:
        before, state.pos = state.pos, start + 1
        ends[key] = _walked(state, ends, disableNested)
        state.pos = before
    return ends[key]


def _walked(state: "StateInline", ends: dict[Any, int], is_link: bool) -> int:
    level = 1
    while state.pos < state.posMax:
        position, mark = state.pos, state.src[state.pos]
        if mark == "]":
            level -= 1
            if not level:
                return position
        state.md.inline.skipToken(state)
        if mark != "[":
            continue
        if state.pos != position + 1:  # a link
            if is_link:
                return -1
            continue
        inner = ends.get((position, is_link, state.posMax))
        if inner == -1:
            return -1
        if inner is None:
            level += 1
        else:
            state.pos = inner + 1
    return -1


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
