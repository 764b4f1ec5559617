"""Locate XML elements in bytes, so that they can be changed and the rest of a file kept as it is."""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

# Comments, CDATA, instructions: an unclosed one ends with the data; otherwise, each would be searched to the end.
_NO_TAG = rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
# Tags; attributes may contain ">" but not "<".
_TOKEN = re.compile(rb"""%s|<(/?)(?=([^\s<>/"'=]+))\2(?:[^<>"']|"[^"<]*"|'[^'<]*')*>""" % _NO_TAG, re.DOTALL)
_ATTRIBUTE = re.compile(rb"""\s([^\s<>/"'=]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")


class ElementSpan(NamedTuple):
    """The position of an XML element in bytes."""

    name: str  # name without the prefix
    prefix: bytes  # prefix with the colon; b"" if there is none
    start: int
    content: int  # end of its start tag
    end: int  # end of the element; -1: unknown
    attributes: dict[str, str]  # attributes by name, with prefixes


def child_elements(data: bytes, start: int) -> Iterator[ElementSpan]:
    """Yield the children of the element that begins at `start` in well-formed XML, in order."""
    depth, opening = 0, None
    for token in _TOKEN.finditer(data, start):
        if token[2] is None:
            continue
        if token[1]:
            depth -= 1
            if depth == 1 and opening is not None:
                yield _span(opening, token.end())
        else:
            is_empty = token[0].endswith(b"/>")
            if depth == 1:
                opening = token
                if is_empty:
                    yield _span(token, token.end())
            depth += not is_empty
        if depth <= 0:
            return


def _span(opening: "re.Match[bytes]", end: int) -> ElementSpan:
    prefix, colon, name = opening[2].rpartition(b":")
    attributes = {match[1]: match[2] or match[3] or b"" for match in _ATTRIBUTE.finditer(opening[0])}
    return ElementSpan(
        _text(name),
        prefix + colon,
        opening.start(),
        opening.end(),
        end,
        {_text(name): unescape(_text(value)) for name, value in attributes.items()},
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def element_at(data: bytes, start: int) -> ElementSpan:
    """Return the element that begins at `start` in well-formed XML; where it ends is not looked for."""
    opening = _TOKEN.match(data, start)
    assert opening is not None
    return _span(opening, opening.end() if opening[0].endswith(b"/>") else -1)
