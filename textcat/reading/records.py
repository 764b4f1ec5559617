"""What reading gives: batches of blocks of input, the records they hold, and what cannot be read."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

#: Where a batch begins or ends: a few whole numbers whose meaning only the reading side knows. A list of them, as JSON
#: gives it back, serves as well.
Checkpoint: TypeAlias = tuple[int, ...]


class LabelSettings(NamedTuple):
    """How the labels of documents are read, where a format has its own way.

    Parameters
    ----------
    split : {"modapte", "modlewis", "modhayes"}
        The rule of Reuters-21578 that puts a story into a part.
    train, test : str
        Which stories of RCV1 are for training and for test, first and last included: ``"1996-08-26 to 1996-09-01"`` by
        date, ``"2286 to 26150"`` by itemid. The others are unused; ``""`` is no story, and both ``""`` make no parts.
    version : {"1", "2"}
        Of RCV1: the codes as they stand, or corrected as RCV1-v2.
    headers : {"keep", "title", "subject", "drop"}
        What becomes of the mail headers at the start of a text file: ``"keep"`` leaves the text as it is, without
        title; ``"title"`` leaves it as it is, too, and makes the Subject the title besides; ``"subject"`` makes the
        Subject the title and drops the others; ``"drop"`` drops all.
    """

    split: str = "modapte"
    train: str = ""
    test: str = ""
    version: str = "1"
    headers: str = "keep"


class InputSettings(NamedTuple):
    """How inputs are read. The same inputs and settings give the same batches.

    Parameters
    ----------
    format : str
        A name in `textcat.reading.formats.FORMATS`, for every input; ``""``: the name tells it, then the content.
    text_fields : tuple of str
        The fields of JSON, CSV, TSV and Parquet that hold the text, in order. A field ``title`` is the zone title; the
        others are joined by line ends to the zone body. The default is ``text``, or else ``body``.
    id_field, topics_field, split_field : str
        The fields that hold the id, the topics and the part ("train", "test" or "unused").
    topics_separator : str
        What stands between the topics of a single string; ``""``: the string is one topic.
    encoding : str
        ``""`` is the format's own: UTF-8; UTF-16 and UTF-32 where the file starts with their byte order mark; for
        Reuters SGML latin-1; for RCV1 what the file declares.
    quotes : bool
        Whether quotes may enclose the values of CSV and TSV; if not, they are ordinary characters.
    lines : bool
        A text file holds one document a line.
    max_bytes : int
        The longest record, in bytes as it stands uncompressed in its source; a longer one is rejected.
    block_bytes : int
        About how much of the input a batch holds.
    labels : LabelSettings, optional
        Read topics, date and part, too; then whatever cannot be read is an error, not a Rejection.
    """

    format: str = ""
    text_fields: tuple[str, ...] = ("text",)
    id_field: str = "id"
    topics_field: str = "topics"
    topics_separator: str = ""
    split_field: str = "split"
    encoding: str = ""
    quotes: bool = True
    lines: bool = False
    max_bytes: int = 16 << 20
    block_bytes: int = 1 << 20
    labels: LabelSettings | None = None


_DEFAULT = InputSettings()


class Record(NamedTuple):
    """One document of the input.

    Parameters
    ----------
    id : str
        What the record calls itself; a text file's is its source, and any other record without one has
        ``source:position``. Not necessarily unique.
    source : str
        The input's path or URL, behind it the path inside a folder or archive: ``a.zip/b/c.xml``.
    position : int
        Where in its source, from 1: the line it starts on, the row, or the number of the document.
    zones : dict of str to str
        Its texts; at least one, which may be empty.
    topics : tuple of str
        Each once. These three are filled only where `InputSettings.labels` asks for them.
    date, split : str
    """

    id: str
    source: str
    position: int
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""


class Rejection(NamedTuple):
    """Something of the input that could not be read.

    Parameters
    ----------
    source : str
    position : int
        As in `Record`; 0 where all of the source, or the rest of it, is meant.
    reason : str
        One sentence.
    offset, length : int
        The bytes meant, in the uncompressed source, and of UTF-16 in what it becomes as UTF-8; -1 where unknown, or
        without end.
    """

    source: str
    position: int
    reason: str
    offset: int = -1
    length: int = -1


class Block(NamedTuple):
    """Whole records of one source and one format, as they stand in it.

    Parameters
    ----------
    source : str
    format : str
    data : bytes
    position : int
        That of the first line, row or document in `data`.
    offset : int
        Of `data` in the uncompressed source; -1 where it has none.
    header : bytes
        What stands at the head of the source and is needed to read the records: the names of the columns.
    decoded : bool
        Whether the source was in an encoding such as UTF-16, and `data` are UTF-8.
    """

    source: str
    format: str
    data: bytes
    position: int = 1
    offset: int = 0
    header: bytes = b""
    decoded: bool = False


class Batch(NamedTuple):
    """A stretch of the inputs, cut between records: part of a file, or many small files.

    Reading from `end` gives exactly the batches that follow this one when nothing disturbs the reading.

    Parameters
    ----------
    blocks : tuple of Block or Rejection
        In the order of the inputs. The Rejections are of what could not even be cut into blocks.
    start, end : Checkpoint
        Where it begins, and what follows begins.
    read : int
        How many bytes of the inputs, as they are stored, are consumed up to its end; all of them are the sum of the
        sources' sizes.
    """

    blocks: tuple[Block | Rejection, ...]
    start: Checkpoint
    end: Checkpoint
    read: int

    @property
    def source(self) -> str:
        """The source that the batch ends in."""
        return self.blocks[-1].source

    @property
    def size(self) -> int:
        """How many bytes it holds, uncompressed."""
        return sum(len(block.data) for block in self.blocks if isinstance(block, Block))


class UnreadableError(Exception):
    """Why a file or a record cannot be read, as the rest of a sentence that begins with its name.

    Parameters
    ----------
    fault : str
    kind : {"", "access", "damage", "unsafe", "link", "story"}
        What an error about a corpus makes of it, which says more of where it is than a Rejection.
    detail : str
        Of this kind: what is damaged; what an archive holds that is not safe; a sentence that names the story.
    """

    def __init__(self, fault: str, kind: str = "", detail: str = "") -> None:
        super().__init__(fault, kind, detail)

    def __str__(self) -> str:
        """Return the rest of the sentence."""
        return str(self.args[0])


class _RefusedError(Exception):
    """What cannot be read although labels are wanted: source, position, subject of the sentence, and the reason."""

    def __init__(self, source: str, position: int, subject: str, fault: UnreadableError) -> None:
        super().__init__(source, position, subject, fault)
        self.source, self.subject, self.fault = source, subject, fault


def reject(
    settings: InputSettings,
    fault: UnreadableError,
    source: str,
    subject: str = "The file",
    position: int = 0,
    offset: int = -1,
    length: int = -1,
) -> Rejection:
    """Return the Rejection of what cannot be read; raise where labels are wanted, as no document may be missing then.

    Parameters
    ----------
    settings : InputSettings
    fault : UnreadableError
    source : str
    subject : str
        Begins the sentence.
    position, offset, length : int
        As in `Rejection`.

    Returns
    -------
    Rejection
    """
    if settings.labels is not None:
        raise _RefusedError(source, position, subject, fault) from None
    return Rejection(source, position, f"{subject} {fault}.", offset, length)


class _Span(NamedTuple):
    """One record as it stands in its source: at which position and offset, and its bytes."""

    position: int
    offset: int
    data: bytes


class _Content(NamedTuple):
    """What a record says: its id, "" if it has none, its texts, and its labels."""

    id: str
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""


def read_spans(
    spans: Iterable[_Span],
    parse: Callable[[_Span], _Content],
    block: Block,
    settings: InputSettings,
    unit: str = "The file",
) -> Iterator[Record | Rejection]:
    """Yield each span's record, or why it is none.

    Parameters
    ----------
    spans : iterable of _Span
    parse : callable
        Returns the content of a span or raises UnreadableError.
    block : Block
        What the spans are from.
    settings : InputSettings
    unit : str
        What a span is called in a sentence, with ``{}`` for its position.

    Yields
    ------
    Record or Rejection
    """
    for span in spans:
        try:
            if len(span.data) > settings.max_bytes:
                raise too_long(len(span.data), settings)
            content = parse(span)
            name = content.id or f"{block.source}:{span.position}"
            yield Record(name, block.source, span.position, *content[1:])
        except UnreadableError as fault:
            subject = unit.format(span.position)
            yield reject(settings, fault, block.source, subject, span.position, span.offset, len(span.data))


def too_long(length: int, settings: InputSettings) -> UnreadableError:
    """Return the error of a record that is longer than records may be.

    Parameters
    ----------
    length : int
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    UnreadableError
    """
    return UnreadableError(f"has {length} bytes and is not read, as a record may have {settings.max_bytes} at most")


def title_and_body(title: str, body: str, settings: InputSettings) -> dict[str, str]:
    """Return the zones; an empty title is kept only with labels, so that all documents of a corpus have the same.

    Parameters
    ----------
    title : str
    body : str
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    dict of str to str
    """
    return {"title": title, "body": body} if title or settings.labels is not None else {"body": body}


def filled(zones: dict[str, str], settings: InputSettings) -> dict[str, str]:
    """Return the zones with a text, at least an empty body; with labels all, as for `title_and_body`.

    Parameters
    ----------
    zones : dict of str to str
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    dict of str to str
    """
    if settings.labels is not None:
        return zones
    return {name: text for name, text in zones.items() if text} or {"body": ""}


def text_names(
    settings: InputSettings, names: Container[str], known: Iterable[str], kind: str
) -> tuple[str, list[str]]:
    """Return the field of the title, "" if there is none, and the fields of the body, in order.

    Parameters
    ----------
    settings : InputSettings
    names : container of str
        The fields that there are.
    known : iterable of str
        The same, for the message.
    kind : {"column", "field"}

    Returns
    -------
    (str, list of str)

    Raises
    ------
    UnreadableError
        If one that is asked for is not there.
    """
    fields = list(settings.text_fields)
    if settings.text_fields == _DEFAULT.text_fields and "text" not in names:
        fields = ["body"] if "body" in names else fields
    for field in fields:
        check_field(field, names, known, kind, "--text-field")
    if fields == ["title"]:
        return "", fields
    return "title" if "title" in names else "", [field for field in fields if field != "title"]


def check_field(field: str, names: Container[str], known: Iterable[str], kind: str, option: str) -> None:
    """Raise UnreadableError if a field is not among the names.

    Parameters
    ----------
    field : str
    names : container of str
    known : iterable of str
    kind : str
    option : str
        The option that names the field, for messages.
    """
    if field not in names:
        what = {"--text-field": "texts", "--id-field": "ids", "--topics-field": "topics"}.get(option, "parts")
        raise UnreadableError(f"has no {kind} {field!r} (but {', '.join(known):.200}): name the {what}' with {option}")


def label_options(settings: InputSettings) -> list[tuple[str, str, bool]]:
    """Return the names of the fields of id, topics and part, with their options, and whether they are the default."""
    named = [(settings.id_field, "--id-field", settings.id_field == _DEFAULT.id_field)]
    if settings.labels is not None:
        named.append((settings.topics_field, "--topics-field", settings.topics_field == _DEFAULT.topics_field))
        named.append((settings.split_field, "--split-field", settings.split_field == _DEFAULT.split_field))
    return named


def topics_in(text: str, settings: InputSettings) -> tuple[str, ...]:
    """Return the topics of a string, each once.

    Parameters
    ----------
    text : str
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    tuple of str
    """
    parts = text.split(settings.topics_separator) if settings.topics_separator else [text]
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def checked_part(part: str, parts: Container[str] = ("", "train", "test", "unused")) -> str:
    """Return the name of a part.

    Parameters
    ----------
    part : str
    parts : container of str

    Returns
    -------
    str

    Raises
    ------
    UnreadableError
        If it is none.
    """
    if part not in parts:
        raise UnreadableError(f"has the split {part!r}: it must be one of train, test, unused")
    return part


def without_mark(block: Block, settings: InputSettings) -> tuple[bytes, int]:
    """Return the data without the byte order mark that a file in UTF-8 may start with, and the data's offset.

    Parameters
    ----------
    block : Block
        Whole records of one file.
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    (bytes, int)
    """
    if block.offset == 0 and block.data.startswith(codecs.BOM_UTF8) and is_utf8(settings.encoding):
        return block.data[3:], 3
    return block.data, block.offset


def text_of(span: _Span, encoding: str) -> str:
    """Decode a span.

    Parameters
    ----------
    span : _Span
    encoding : str

    Returns
    -------
    str

    Raises
    ------
    UnreadableError
        If it is not in that encoding, or has a NUL byte, which no text has, but a picture or UTF-16.
    """
    encoding = encoding or "utf-8"
    try:
        text = span.data.decode(encoding)
    except UnicodeError as error:
        place = span.offset + getattr(error, "start", 0)
        raise UnreadableError(f"is not {encoding} (byte {place}): name its encoding with --encoding") from None
    if "\0" in text:
        place = span.offset + max(span.data.find(b"\0"), 0)
        raise UnreadableError(
            f"has a NUL byte (byte {place}), so it is no text in {encoding}: leave it out, or convert it"
        )
    return text


def is_encoding(name: str) -> bool:
    """Return whether there is an encoding of texts with this name."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # it needs more than a byte
    return True


@lru_cache(maxsize=8)
def is_utf8(encoding: str) -> bool:
    """Return whether a name, or "", means UTF-8."""
    return not encoding or codecs.lookup(encoding).name == "utf-8"


@lru_cache(maxsize=8)
def is_like_ascii(encoding: str) -> bool:
    """Return whether ASCII's characters are the bytes they are in ASCII, so that lines can be cut."""
    if encoding.lower().startswith(("hz", "iso2022", "iso-2022")):
        return False  # but after an escape they are parts of others
    ascii_bytes = bytes(range(128))
    try:
        return ascii_bytes.decode(encoding or "utf-8") == ascii_bytes.decode("ascii")
    except UnicodeError:
        return False
