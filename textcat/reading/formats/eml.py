"""Mail in a file of its own (.eml): read as one message of an mbox, but that its HTML is parsed."""

import re
from functools import partial

from textcat.reading.formats.documents import _Documents, _parser, _Said, _whole
from textcat.reading.formats.html import _page
from textcat.reading.formats.mbox import _message
from textcat.reading.records import InputSettings, UnreadableError, _Span

_HEADED = re.compile(rb"(?:From [^\n]*\n)?[!-9;-~]{1,998}[ \t]*:")


def _read(span: _Span, settings: InputSettings) -> _Said:
    if not _HEADED.match(span.data):
        raise UnreadableError("begins with no header, so it is no mail: mend it, or leave it out")
    _, title, body, topics, date = _message(span, span.data, settings, lambda text: _page(text).body)
    return _Said(title, body, topics, date)


FORMAT = _Documents(_whole, partial(_parser, _read))
