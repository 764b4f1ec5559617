"""Build formats in which a file is one document, from a function that extracts its text: HTML, mail, .docx, PDF."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from textcat.base.errors import install_hint
from textcat.base.surrogates import mark_surrogates
from textcat.reading.columns import titled_zones
from textcat.reading.faults import UnreadableError
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, Rejection, by_record

#: How many times larger than other records files with pictures may be.
LARGER = 4
_NO_LXML = "needs lxml, which is not installed: run `pip install lxml`, then start again"
_MISSING = f"needs a package that is not installed: run `{install_hint('documents')}`, then start again"


class ExtractedText(NamedTuple):
    """Hold the title, body, topics, date, language and author that were extracted from a file."""

    title: str
    body: str
    topics: tuple[str, ...] = ()
    date: str = ""
    language: str = ""
    author: str = ""


_Reader = Callable[[RecordSpan, InputSettings], ExtractedText]


def document_format(read: _Reader, larger: bool = False) -> RecordFormat:
    """Return a format in which each file is one document, given a function that extracts its title and body.

    If `larger` is True, files may have more bytes than other records, because they hold more than text.
    """
    return (_LargerFormat if larger else RecordFormat)(whole_file, by_record(partial(_content, read)))


class _LargerFormat(RecordFormat):
    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        return super().records(block, settings._replace(max_bytes=LARGER * settings.max_bytes))


def whole_file(block: Block, settings: InputSettings) -> list[RecordSpan]:
    """Return the `RecordSpan` of the only record in a block, the whole file, in a list; the file may be empty."""
    data, offset = block.without_mark(settings)
    return [RecordSpan(block.position, offset, data)]


def _content(read: _Reader, block: Block, settings: InputSettings, span: RecordSpan) -> Record:
    said = read(span, settings)
    title, body = " ".join(clean(said.title).split()), clean(said.body)
    return Record(block.source, titled_zones(title, [body], settings), said.topics, said.date)


def missing_module(error: ImportError) -> UnreadableError:
    """Return the error for a file that cannot be read because a module is not installed, or cannot be imported.

    Only of a module that is not installed can be told later whether the file can be read.
    """
    name = error.name or ""
    needs = name if isinstance(error, ModuleNotFoundError) else ""
    return UnreadableError(_NO_LXML if name.partition(".")[0] == "lxml" else _MISSING, needs=needs)


def clean(text: str) -> str:
    """Return a text without soft hyphens; NUL becomes a space, and a lone surrogate a question mark."""
    return mark_surrogates(text.replace("\xad", "").replace("\0", " "))


def tidy_lines(text: str) -> str:
    """Return a text without blank lines, in which single spaces separate the words of a line."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


def broken_file(what: str, error: BaseException) -> UnreadableError:
    """Return the error for a file that cannot be read by a library; `what` is its kind, such as "PDF"."""
    detail = " ".join(str(error).split()) or type(error).__name__
    return UnreadableError(f"is not a readable {what} ({detail:.120}): repair it or leave it out")
