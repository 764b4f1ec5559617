"""Define how inputs are read, and what reading returns: batches of blocks, records, and rejections."""

import codecs
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, auto
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

#: Where a batch begins or ends: a few whole numbers whose meaning only the reading side knows. A list of them, as JSON
#: gives it back, serves as well.
Checkpoint: TypeAlias = tuple[int, ...]

START_OVER = "start again with --restart"  # how `textcat tag` begins a run again, as error messages say
LAST = re.compile(r"last ([1-9]\d*)")  # of `LabelSettings.test`
#: What Annif calls the columns of topics and ids, where a table has the former and none of the usual name.
ANNIFS = ("subject_uris", "document_id")
_LABEL_FIELDS = (("id_field", "ids"), ("topics_field", "topics"), ("split_field", "parts"))

_REPEATED = re.compile(r"(?<=/)#\d+/")  # of the name of a file whose path an archive has several times

log = logging.getLogger(__name__)


class LabelSettings(NamedTuple):
    """Hold the settings for labels and parts that are particular to some formats."""

    split: str = "modapte"  # the rule of Reuters-21578 that puts a story into a part; or "modlewis", "modhayes"
    #: Which stories of RCV1 are for training and for test: a range of dates, "1996-08-26 to 1996-09-01", or of itemids,
    #: "2286 to 26150", with the last one included. "": no story; all other stories are unused. If both are "", there
    #: are no parts. For other formats, `test` may be "last 50000": that many documents, the last ones in the order of
    #: their files, are for test.
    train: str = ""
    test: str = ""
    version: str = "1"  # the version of RCV1's codes: "1" as the files have them, "2" corrected as in RCV1-v2
    #: What is done with mail headers at the start of a text file. "keep": they stay in the text; there is no title.
    #: "title": they stay in the text, and the Subject is also the title. "subject": the Subject becomes the title, and
    #: all headers are removed from the text. "drop": all headers are removed, and there is no title.
    headers: str = "keep"


#: Usual names of topics in an object of JSON that has its text by the default name.
FIELDS_OF_TOPICS = ("label", "labels", "cats")
# Names by which columns are found, in any case, where the default ones are missing: only if exactly one of them occurs.
_USUAL_NAMES = {
    "body": (
        *(
            "text",
            "body",
            "story",
            "content",
            "contents",
            "article",
            "abstract",
            "description",
            "message",
            "review",
            "document",
        ),
        *("comment", "summary", "full_text", "fulltext"),
    ),
    "title": ("title", "headline", "heading"),
    "topics": (
        *("topics", "labels", "label", "cats", "categories", "category", "class", "tags", "tag", "topic", "section"),
    ),
    "id": ("id", "nr", "no", "number", "doc_id", "docid", "document_id", "guid", "uuid", "identifier"),
}


_SHORTEST = 4096  # bytes looked at in any case before a record is taken for too long

#: The value of `InputSettings.fields` for all of them.
ALL_FIELDS = ("*",)
#: The value of `InputSettings.fields` for all of them, those of texts among them.
EVERY_FIELD = ("*", "texts")


class Setting(NamedTuple):
    """Describe a setting of `InputSettings`, where its type and default stand.

    The options of commands, the keys of cards, and the tables of the documentation are made from these descriptions.
    """

    help: str  # one sentence
    #: Which commands have an option for it: "reading": all that read documents; "labels": those that read topics, too;
    #: "files": none, but --for has it; "": none.
    group: str = ""
    option: str = ""  # its name on the command line; "": the setting's own, with dashes
    default: str = ""  # the default in words, if its value does not tell
    more: str = ""  # what the documentation of Python adds
    repeated: bool = False  # the option may be repeated; of others, commas separate several values
    metavar: str | None = None  # what stands for a value in the help


class InputSettings(NamedTuple):
    """Hold the settings by which inputs are read. The same inputs and settings give the same batches."""

    format: Annotated[
        str,
        Setting(
            "Format of all inputs, if name and content do not tell.",
            "reading",
            more='A name in `textcat.reading.formats.FORMATS`; "": it is found by name, or else by content.',
        ),
    ] = ""
    text_fields: Annotated[
        tuple[str, ...],
        Setting(
            "Field or column of text; several in order; no other is read as text.",
            "reading",
            option="--text-field",
            repeated=True,
            default="text, or else body, with a title",
            more='Of several, a field "title" is the zone title; the others are joined by line ends to the zone body. '
            'By default, "title", if there is one, and "text", or else "body"; or all zones in "zones".',
        ),
    ] = ()
    id_field: Annotated[str, Setting("Field or column of the id.", "reading")] = "id"
    topics_field: Annotated[
        str,
        Setting(
            "Field or column of the topics; of several, each is a topic, and holds 1 or 0.",
            "labels",
            default="topics",
            repeated=True,
        ),
    ] = "topics"
    topic_fields: Annotated[
        tuple[str, ...],
        Setting(
            "Fields or columns that are a topic each, and hold 1 where a document has it, else 0.",
            option="--topics-field",
            more="They take the place of `topics_field`.",
        ),
    ] = ()
    topics_separator: Annotated[
        str, Setting("Separator of topics in one string, such as ';'.", "labels", default="a string is one topic")
    ] = ""
    split_field: Annotated[str, Setting("Field or column of the part: train, test or unused.", "labels")] = "split"
    date_field: Annotated[str, Setting("Field or column of the date.", "reading")] = "date"
    topics_scheme: Annotated[
        str,
        Setting("Scheme of the subjects of news that are topics, such as medtop.", "labels", default="all schemes"),
    ] = ""
    encoding: Annotated[
        str,
        Setting(
            "Encoding of the inputs.",
            "reading",
            default="that of the format, mostly utf-8",
            more='"": UTF-8, or UTF-16 and UTF-32 if a file starts with their byte order mark; latin-1 for Reuters '
            "SGML, and for RCV1 the one that the file declares.",
        ),
    ] = ""
    columns: Annotated[
        tuple[str, ...],
        Setting("Names of the columns of CSV and TSV.", "reading", default="those in the first row", metavar="NAME,…"),
    ] = ()
    plain_quotes: Annotated[bool, Setting("Take quotes in CSV and TSV for ordinary characters.", "reading")] = False
    lines: Annotated[bool, Setting("Read text files as one document per line.", "reading")] = False
    main_text: Annotated[
        bool,
        Setting(
            "Read the main text of web pages, without navigation and comments.",
            "reading",
            more="False: all visible text, or the text of the element ``main``. Pages are files of HTML, and in WARC.",
        ),
    ] = False
    max_bytes: Annotated[int, Setting("Largest size of an uncompressed record; larger ones are rejected.")] = 16 << 20
    block_bytes: Annotated[int, Setting("Approximate size of a batch.")] = 1 << 20
    fields: Annotated[
        tuple[str, ...],
        Setting(
            "Further fields of JSON, CSV, TSV and Parquet that records keep, to be shown or written again.",
            more='A record without such a field has no entry for it. ``("*",)``: all fields but a single one that is '
            "the title or the body, which is in the zones.",
        ),
    ] = ()
    labels: Annotated[
        LabelSettings | None,
        Setting("Read topics, dates and parts, too; unreadable input then raises an error instead of a rejection."),
    ] = None
    for_files: Annotated[
        tuple[tuple[str, tuple[tuple[str, Any], ...]], ...],
        Setting(
            "Options for some files, as in --for '*.csv --text-field abstract'; --skip leaves them out.",
            "reading",
            option="--for",
            repeated=True,
            metavar="'PATTERN OPTIONS'",
            more='In Python, other values of settings: ``(("*.csv", (("text_fields", ("abstract",)),)),)``. A pattern '
            "matches a name, or a path from any folder on; of several that match, the last counts.",
        ),
    ] = ()
    skip: Annotated[bool, Setting("Leave the file out.", "files", more="Only in `for_files`.")] = False

    def for_file(self, name: str) -> "InputSettings":
        """Return the settings for the file at a path, which may lead into an archive, after `for_files` is applied."""
        return _settings_for(self, name) if self.for_files else self

    def is_default(self, name: str) -> bool:
        """Return whether a setting has its default value."""
        return bool(getattr(self, name) == self._field_defaults[name])

    def in_words(self, name: str) -> str:
        """Return the value of a setting as errors show it after its option; "" for a switch."""
        value = getattr(self, name)
        return "" if isinstance(value, bool) else value if isinstance(value, str) else ", ".join(map(str, value))

    @property
    def most_held(self) -> int:
        """Return how many bytes are looked at before a record is taken for too long."""
        return max(self.max_bytes, _SHORTEST) + 2  # with the line end

    def too_long(self, length: int) -> "UnreadableError":
        """Return the error for a record with too many bytes."""
        return UnreadableError(
            f"has {length} bytes, but a record may have at most {self.max_bytes}: split it or leave it out"
        )

    def filled(self, zones: dict[str, str]) -> dict[str, str]:
        """Return all zones (texts by name, such as title) if labels are wanted, otherwise only zones that have text.

        If no zone has text, the result is an empty zone "body".
        """
        if self.labels is not None:
            return zones
        return {name: text for name, text in zones.items() if text} or {"body": ""}

    def part_in(self, text: str) -> str:
        """Return the text if it is a part of a corpus ("train", "test", "unused") or ""; else raise UnreadableError."""
        if text not in ("", "train", "test", "unused"):
            raise UnreadableError(f"has the split {text!r}: it must be one of train, test, unused")
        return text

    def text_of(self, span: "RecordSpan") -> str:
        """Return the text of a span.

        UnreadableError is raised if the bytes have a NUL, as those of pictures and of UTF-16 have.
        """
        encoding = self.encoding or "utf-8"
        text = span.decoded(encoding)
        if "\0" in text:
            first_nul = span.offset + max(span.data.find(b"\0"), 0)
            raise UnreadableError(
                f"has a NUL byte (byte {first_nul}), so it is not text in {encoding}: leave it out or convert it"
            )
        return text

    def in_utf8(self) -> bool:
        """Return whether the encoding is UTF-8."""
        return not self.encoding or codecs.lookup(self.encoding).name == "utf-8"

    def without_mark(self, block: "Block") -> tuple[bytes, int]:
        """Return the data of a block without the byte order mark of UTF-8, and the offset of the data returned."""
        if block.offset == 0 and block.data.startswith(codecs.BOM_UTF8) and self.in_utf8():
            return block.data[3:], 3
        return block.data, block.offset

    def texts_among(self, names: Collection[str]) -> tuple[str, tuple[str, ...]]:
        """Return, given the names of all fields, the field of the title ("": no title) and the fields of the body.

        UnreadableError is raised if there is no field of texts.
        """
        if self.text_fields:
            for field in self.text_fields:
                _check_field(field, names, "text_fields", "texts")
            return title_and_body(self.text_fields)
        title = "title" if "title" in names else ""
        if text := next((field for field in ("text", "body") if field in names), ""):
            return title, (text,)
        if usual := usual_name(names, "body"):
            return title or usual_name(names, "title"), (usual,)
        if self.columns and title:
            return title, ()  # whoever names the columns says that there is no other text
        raise _no_field("text", names, "text_fields", "texts")

    def check_labels(self, names: Collection[str]) -> None:
        """Raise UnreadableError if a field that the settings name for ids, topics or parts is not among `names`.

        A table must have a column of topics even if the settings do not name one; an object without a field of topics
        has none. If labels are not wanted, only the field of ids is checked.
        """
        for name, what in _LABEL_FIELDS[: 1 if self.labels is None else None]:
            if what == "topics":
                for field in () if isinstance(names, Mapping) else self.topic_fields or (self.topics_field,):
                    _check_field(field, names, name, what)
            elif not self.is_default(name):
                _check_field(getattr(self, name), names, name, what)
        if not self.is_default("date_field") and not isinstance(names, Mapping):  # an object may have no date
            _check_field(self.date_field, names, "date_field", "dates")

    def _with_usual_names(self, names: Collection[str], body: Sequence[str]) -> "InputSettings":
        """Return the settings with other names for a table's columns of topics and ids if default names are missing.

        These are usual names, such as "labels" and "number" (see `usual_name`); names that the user gave are not
        replaced. A column of ids is looked for only if the text, too, has been found by a usual name; otherwise,
        positions are the ids.
        """
        settings = self
        if self.labels is not None and self.is_default("topics_field") and self.topics_field not in names:
            settings = settings._replace(topics_field=usual_name(names, "topics") or self.topics_field)
        by_usual_name = self.is_default("text_fields") and body[:1] not in [(), ("text",), ("body",)]
        if by_usual_name and self.is_default("id_field") and self.id_field not in names:
            settings = settings._replace(id_field=usual_name(names, "id") or self.id_field)
        return settings

    def columns_among(self, names: Sequence[str]) -> "ColumnNames":
        """Return the columns of a table to read; raise UnreadableError if one of these is missing or occurs twice."""
        title, body = self.texts_among(names)
        settings, (topics, name) = self, ANNIFS
        if self.is_default("topics_field") and self.topics_field not in names and topics in names:
            settings = settings._replace(topics_field=topics)
            if self.is_default("id_field") and self.id_field not in names and name in names:
                settings = settings._replace(id_field=name)
        settings = settings._with_usual_names(names, body)
        settings.check_labels(names)
        answer = "" if settings.topics_field == "answer" else "answer"  # that of Prodigy
        labels = [settings.id_field, settings.topics_field, self.split_field, self.date_field, "labelled_for", answer]
        if self.labels is None:
            labels[1:] = ["", "", self.date_field, "", ""]
        fields = tuple(further_fields(names, title, body, self))
        present: Any = (name if name in names else "" for name in labels)
        which = ColumnNames(title, body, *present)._replace(fields=fields)
        if self.topic_fields and self.labels is not None:
            which = which._replace(topics="", topic_fields=self.topic_fields)
        counts = Counter(names)
        for name in which.names():
            if counts[name] > 1:
                raise UnreadableError(f"has {counts[name]} columns {name!r}: rename all but one")
        return which


def _described() -> Iterator[tuple[str, Setting, Any]]:
    for name, annotated in InputSettings.__annotations__.items():
        setting: Setting = annotated.__metadata__[0]
        option = setting.option or ("--" + name.replace("_", "-") if setting.group else "")
        yield name, setting._replace(option=option), annotated.__origin__


#: The description and the type of each setting, by its name.
SETTINGS = {name: (setting, kind) for name, setting, kind in _described()}


def _parameters() -> Iterator[str]:
    for name, (setting, kind) in SETTINGS.items():
        written = kind.__name__ if isinstance(kind, type) else str(kind)
        yield f"    {name} : {written}\n        {setting.help} {setting.more}".rstrip()


InputSettings.__doc__ = "\n".join([InputSettings.__doc__ or "", "", "    Parameters", "    ----------", *_parameters()])


@lru_cache(maxsize=1024)
def _settings_for(settings: InputSettings, name: str) -> InputSettings:
    path = _REPEATED.sub("", name)
    for pattern, values in settings.for_files:
        if is_matched(name, pattern) or is_matched(path, pattern):
            settings = settings._replace(**dict(values))
    return settings


def is_matched(name: str, pattern: str) -> bool:
    """Return whether the path of a file is matched by a pattern of `InputSettings.for_files`."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")  # the star stands for slashes, too


def usual_names(what: str) -> tuple[str, ...]:
    """Return the usual names, in lower case, of fields of a kind: "body", "title", "topics" or "id"."""
    return _USUAL_NAMES[what]


def usual_name(names: Collection[str], what: str) -> str:
    """Return the only one of `names` that is a usual name of a kind of field, such as "headline" for titles.

    `what` is the kind: "body", "title", "topics" or "id". Return "" if none of `names` is usual, or if several are.
    """
    found = [name for name in names if name.strip().lower() in usual_names(what)]
    return found[0] if len(found) == 1 else ""


def has_usual_name(names: Iterable[str]) -> bool:
    """Return whether any of the column names is a default name such as "text", or a usual one such as "headline"."""
    default = ("text", "body", "title", "id", "topics", "split", "date", "labelled_for", *ANNIFS)
    return not {name.strip().lower() for name in names}.isdisjoint({*default, *chain(*_USUAL_NAMES.values())})


def title_and_body(fields: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the field of the title ("": none) and the fields of the body, given the fields of texts that are named.

    "title" is the field of the title if it is one of several; a text of one field is a body, whatever its name.
    """
    if len(fields) == 1 or "title" not in fields:
        return "", fields
    return "title", tuple(field for field in fields if field != "title")


def titled_zones(title: str, texts: Sequence[str], settings: InputSettings) -> dict[str, str]:
    """Return the zones of a document: the title, and the texts, joined by line ends, as the body.

    An empty title is a zone only if labels are wanted.
    """
    body = texts[0] if len(texts) == 1 else "\n".join(filter(None, texts))
    return {"title": title, "body": body} if title or settings.labels is not None else {"body": body}


def further_fields(names: Iterable[str], title: str, body: Sequence[str], settings: InputSettings) -> list[str]:
    """Return the names of the fields that records keep in addition to their zones.

    These are the fields in `settings.fields` that exist; if it asks for all fields, all except the title and a body
    that is a single field.
    """
    if settings.fields == EVERY_FIELD:
        return [*names]
    if settings.fields != ALL_FIELDS:
        return [name for name in settings.fields if name in names]
    return [name for name in names if name != title and [name] != [*body]]


@lru_cache(maxsize=1024)
def log_usual_names(source: str, which: "ColumnNames", settings: InputSettings) -> None:
    """Log which columns or fields of a source were found by usual names (see `usual_name`), not by default names.

    `which` names the columns that are read.
    """
    body = which.body[0] if which.body and settings.is_default("text_fields") else ""
    taken = {"text": body, "title": which.title if body else ""}
    taken |= {what: getattr(which, what) for what in ("topics", "id") if settings.is_default(f"{what}_field")}
    usual = {what: name for what, name in taken.items() if name not in ("", what, "body", *ANNIFS)}
    if usual:
        columns = ", ".join(f"{what} from {name!r}" for what, name in usual.items())
        log.warning("%s: %s, by their usual names; --text-field and others choose.", source, columns)


class ColumnNames(NamedTuple):
    """Name the columns that are read; "" stands for no column."""

    title: str
    body: tuple[str, ...]
    id: str
    topics: str = ""
    split: str = ""
    date: str = ""
    labelled_for: str = ""
    answer: str = ""
    fields: tuple[str, ...] = ()
    topic_fields: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the names of all columns that are read, each once."""
        return list(dict.fromkeys([*self.used_names(), *self.fields]))

    def used_names(self) -> list[str]:
        """Return the names of the columns of ids, texts and labels that are read, each once."""
        labels = (self.topics, *self.topic_fields, self.split, self.date, self.labelled_for, self.answer)
        return list(dict.fromkeys(filter(None, (self.id, self.title, *self.body, *labels))))


def _check_field(field: str, names: Collection[str], setting: str, what: str) -> None:
    if field not in names:
        raise _no_field(field, names, setting, what)


def _no_field(field: str, names: Collection[str], setting: str, what: str) -> "UnreadableError":
    kind, option = "field" if isinstance(names, Mapping) else "column", SETTINGS[setting][0].option
    return UnreadableError(
        f"has no {kind} {field!r} (only {', '.join(names):.200}): name the {what}' {kind} with {option} (in some "
        "files only, with --for)"
    )


#: The version of records of which there is only one with each id.
NO_VERSION = (0, -1)


class Record(NamedTuple):
    """Hold one document of the input."""

    #: The record's own id, which need not be unique. The id of a text file is its source; the id of any other record
    #: without an id of its own is ``source:position``.
    id: str
    #: The input's path or URL, followed by the path inside a folder or archive: ``a.zip/b/c.xml``.
    source: str
    #: The place in the source, counted from 1: the line on which the record starts, its row, or its number.
    position: int
    zones: dict[str, str]  # at least one zone; its text may be empty
    # Topics, split and labelled_for are set only if `InputSettings.labels` asks for labels.
    topics: tuple[str, ...] = ()
    date: str = ""  # in ISO 8601 if the form of the source is known
    split: str = ""
    labelled_for: tuple[str, ...] | None = None  # topics that it was judged for; None: all
    fields: dict[str, Any] | None = None  # the fields that `InputSettings.fields` asks for; None: it asks for none
    language: str = ""  # that the source names
    #: Of news, the number, and the microseconds from the year 1 to its date (-1: unknown): see `without_superseded`.
    version: tuple[int, int] = NO_VERSION
    left_out: str = ""  # why news is not read, such as that it is canceled, as a sentence; "": it is read
    due: float | None = None  # when news that is left out is to be read again, see `Rejection`


class FaultKind(IntEnum):
    """Name the kind of a fault in the input, which decides how an error about a corpus is worded."""

    CONTENT = auto()  # the text of the fault includes the remedy
    ENCODING = auto()
    ACCESS = auto()
    DAMAGE = auto()  # the detail is what is damaged
    UNSAFE = auto()  # the detail is what in an archive must not be read
    LINK = auto()  # to a folder; or a device, a pipe or a socket
    DANGLING = auto()  # a link that leads nowhere
    UNLISTED = auto()  # a folder that cannot be listed
    STORY = auto()  # the detail is a sentence that names the story
    CHANGED = auto()  # the input shrank or was replaced while it was read
    LEFT_OUT = auto()  # whole, but no document, as a package of news; the detail says so of all of this kind, or is ""


# What may be read later although it has not changed.
_PASSING = frozenset({FaultKind.ACCESS, FaultKind.CHANGED, FaultKind.DANGLING, FaultKind.UNLISTED})
_OF_ALL = _PASSING | {FaultKind.LINK}


class Rejection(NamedTuple):
    """Describe a part of the input that could not be read."""

    source: str
    position: int  # as in `Record`; 0: the whole source, or the rest of it, could not be read
    reason: str  # one sentence
    #: Offset and length of the rejected bytes in the uncompressed source (converted to UTF-8 if it is in an encoding
    #: such as UTF-16); -1 if unknown.
    offset: int = -1
    length: int = -1
    kind: FaultKind = FaultKind.CONTENT
    #: When the source is to be read again, in seconds since 1970; 0: as soon as it can be; None: when it has changed.
    due: float | None = None

    @property
    def is_of_all(self) -> bool:
        """Return whether nothing of the source could be read, as it could not be opened, listed or looked at."""
        return self.kind in _OF_ALL and not self.position and self.offset < 0

    def __str__(self) -> str:
        return f"{self.source}{f':{self.position}' if self.position else ''}: {self.reason}"


class Block(NamedTuple):
    """Hold the bytes of some whole records of one source and one format, as the source stores them."""

    source: str
    format: str
    data: bytes
    position: int = 1  # of the first line, row or document
    offset: int = 0  # of the data in the uncompressed source; -1: the data are not stored like this in the source
    header: bytes = b""  # the first row of CSV and TSV, with the names of the columns
    decoded: bool = False  # True: the source is in an encoding such as UTF-16, and the data were converted to UTF-8


class PipeState(NamedTuple):
    """Hold the number and the checksum of the bytes that a pipe has given."""

    n_bytes: int
    sha256: str


class Batch(NamedTuple):
    """Hold consecutive records of the inputs: a part of a file, or many small files.

    If reading starts again from `end`, it gives exactly the batches that follow this one, but no checksum of a file
    that is read only from there on.
    """

    blocks: tuple[Block | Rejection, ...]  # the Rejections stand for input that could not be cut into blocks
    start: Checkpoint
    end: Checkpoint
    read: int  # how many bytes of the inputs, as they are stored, had been read at the end of the batch
    pipes: Mapping[str, PipeState] = {}  # the state of each observed pipe at the end of the batch, by its name
    sums: Mapping[str, str] = {}  # checksum of each file that was read to its end since the batch before, by its name

    @property
    def source(self) -> str:
        """Return the name of the source in which the batch ends."""
        return self.blocks[-1].source

    @property
    def size(self) -> int:
        """Return the number of uncompressed bytes in the batch."""
        return sum(len(block.data) for block in self.blocks if isinstance(block, Block))


class UnreadableError(Exception):
    """Report a file or record that cannot be read; the reason ends a sentence whose subject is that file or record."""

    def __init__(self, fault: str, kind: FaultKind = FaultKind.CONTENT, detail: str = "", n_expected: int = -1) -> None:
        super().__init__(fault, kind, detail, n_expected)
        self.fault, self.kind, self.detail = fault, kind, detail
        self.n_expected = n_expected  # bytes that the stored input should have; -1 where this is not the fault

    def __str__(self) -> str:
        """Return the reason."""
        return self.fault


class RefusedError(Exception):
    """Report unreadable input when labels are wanted, so that no document may be missing.

    `source` is the name of the source. `part` is the unreadable part, such as "Line 3", or "" for the whole source.
    `fault` is the reason.
    """

    def __init__(self, source: str, part: str, fault: UnreadableError) -> None:
        super().__init__(source, part, fault)
        self.source, self.part, self.fault = source, part, fault


def reject_or_raise(
    settings: InputSettings,
    fault: UnreadableError,
    source: str,
    part: str = "",
    position: int = 0,
    offset: int = -1,
    length: int = -1,
    subject: str = "The file",
) -> Rejection:
    """Return the Rejection of unreadable input; raise RefusedError if labels are wanted, as no document may be missing.

    The reason in the Rejection begins with `part`, such as "Line 3", or with `subject` if `part` is "".
    """
    if settings.labels is not None:
        raise RefusedError(source, part, fault) from None
    subject = "The folder" if fault.kind is FaultKind.UNLISTED else subject
    due = 0.0 if fault.kind in _PASSING else None
    return Rejection(source, position, f"{part or subject} {fault}.", offset, length, fault.kind, due)


# --- what the formats have in common ----------------------------------------------------------------------------------


class _Cutter(Protocol):
    """Cut a file between records. Each file has its own cutter, which may remember where inside a record it is."""

    def cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of `data`."""

    def count(self, data: bytes) -> int:
        """Return by how many lines or records, as the format counts them, `data` advance the position in the file.

        `data` are whole records, or a part of one record.
        """

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of `data` belong to the record that is being skipped, and whether it ends there."""


class RecordSpan(NamedTuple):
    """Hold one record as its source stores it: its position, offset and bytes."""

    position: int
    offset: int
    data: bytes

    def decoded(self, encoding: str) -> str:
        """Return the text of the record; raise UnreadableError if it is not in the given encoding."""
        try:
            return self.data.decode(encoding)
        except UnicodeError as error:
            raise encoding_error(encoding, self.offset + getattr(error, "start", 0)) from None


class RecordContent(NamedTuple):
    """Hold the content of a record: its id ("" if it has none), its texts, and its labels."""

    id: str
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""
    labelled_for: tuple[str, ...] | None = None
    fields: dict[str, Any] | None = None
    language: str = ""
    version: tuple[int, int] = NO_VERSION
    left_out: str = ""  # as the end of a sentence whose subject is the record
    due: float | None = None  # when it is to be read again, if it is left out, see `Rejection`


class RecordFormat(NamedTuple):
    """Describe how the files of a format become records, by functions that cut files and parse records."""

    spans: Callable[[Block, InputSettings], Iterable[RecordSpan]]  # returns the spans of the records in a block
    parser: Callable[[Block, InputSettings], Callable[[RecordSpan], RecordContent]]  # returns a parser of such a span
    unit: str = ""  # what a span is called in messages, with {} for its position: "Line {}"; "": it is the whole file
    #: Takes the first row of CSV and TSV, the name of the format and settings; returns the cutter of a file. A cutter
    #: runs in the process that reads the inputs, and must be cheap. None: a file is one document or has groups of rows.
    cutter: Callable[[bytes, str, InputSettings], _Cutter] | None = None

    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        """Yield the records of a block; for a record that cannot be read, yield a Rejection."""
        parse = self.parser(block, settings)
        return self.read(self.spans(block, settings), parse, block, settings)

    def read(
        self,
        spans: Iterable[RecordSpan],
        parse: Callable[[RecordSpan], RecordContent],
        block: Block,
        settings: InputSettings,
    ) -> Iterator[Record | Rejection]:
        """Parse spans of a block, and yield the records.

        For a span that cannot be read, a Rejection is yielded.
        """
        for span in spans:
            length = len(span.data)
            try:
                if length > settings.max_bytes:
                    raise settings.too_long(length)
                content = parse(span)
                name = content.id or f"{block.source}:{span.position}"
                record = Record(name, block.source, span.position, *content[1:])
                yield (
                    record
                    if not content.left_out
                    else record._replace(
                        left_out=f"{self.unit.format(span.position) or 'The file'} {content.left_out}."
                    )
                )
            except UnreadableError as fault:
                if fault.kind is FaultKind.LEFT_OUT and settings.labels is not None:
                    sentence = f"{self.unit.format(span.position) or 'The file'} {fault}"
                    log_left_out(block.source, f"{fault.detail or sentence}.")
                    continue
                part, stored = self.unit.format(span.position), length if span.offset >= 0 else -1
                yield reject_or_raise(settings, fault, block.source, part, span.position, span.offset, stored)


class VersionState(IntEnum):
    """Name what became of a version of news when its batch was read."""

    READ = auto()
    OLDER = auto()  # left out, as a newer version is in the same batch
    LEFT_OUT = auto()  # left out on its own account, as one that is canceled


class ItemVersion(NamedTuple):
    """Hold which version of a news item stands where in the input."""

    id: str
    version: tuple[int, int]  # as in `Record`
    source: str
    position: int
    state: VersionState


def without_superseded(
    items: Iterable[Record | Rejection], all_versions: bool = False, versions: list[ItemVersion] | None = None
) -> Iterator[Record | Rejection]:
    """Yield records and rejections; a record becomes a rejection if it is to be left out, or is an older version.

    Of records with the same id and with versions, the largest version counts; of the same version, the last one. With
    `all_versions`, older ones count, too. The records with versions are appended to the list `versions`, in their
    order.
    """
    items = list(items)
    newest: dict[str, Record] = {}
    for item in items if not all_versions else ():
        if isinstance(item, Record) and item.version != NO_VERSION:
            before = newest.get(item.id)
            if before is None or item.version >= before.version:
                newest[item.id] = item
    for item in items:
        if not isinstance(item, Record):
            yield item
            continue
        reason, state = item.left_out, VersionState.LEFT_OUT if item.left_out else VersionState.READ
        if (winner := newest.get(item.id, item)) is not item:
            reason, state = superseded_reason(item.id, bool(winner.left_out)), VersionState.OLDER
        if versions is not None and item.version != NO_VERSION:
            versions.append(ItemVersion(item.id, item.version, item.source, item.position, state))
        due = item.due if state is VersionState.LEFT_OUT else None
        yield Rejection(item.source, item.position, reason, kind=FaultKind.LEFT_OUT, due=due) if reason else item


def superseded_reason(id_: str, is_withdrawn: bool) -> str:
    """Return why an older version of news is left out; `is_withdrawn`: the newest one is canceled or the like."""
    if is_withdrawn:
        return f"It is an older version of {id_!r}, whose newest one is canceled, killed, withheld or under embargo."
    return f"It is an older version of {id_!r}, or the same again: the newest one counts."


@lru_cache(maxsize=1024)
def log_left_out(source: str, reason: str) -> None:
    """Log why a corpus is read without a record of a source."""
    log.warning("%s: %s", source, reason)


def shrunk_error(n_expected: int, n_found: int, what: str = "its rest is") -> UnreadableError:
    """Return the error for an input that has fewer bytes than when reading began.

    `what` completes the sentence "so … missing", as "its rest is" does.
    """
    sizes = f"had {n_expected:,} bytes when reading began, but has {n_found:,} now"
    fault = f"{sizes}, so {what} missing: restore it, then start again"
    return UnreadableError(fault, FaultKind.CHANGED, sizes, n_expected)


def encoding_error(encoding: str, position: object) -> UnreadableError:
    """Return the error for bytes that are invalid in an encoding; `position` is the number of the first such byte."""
    fault = f"is not {encoding} (byte {position})"
    return UnreadableError(f"{fault}: name its encoding with --encoding", FaultKind.ENCODING, fault)


def is_encoding(name: str) -> bool:
    """Return whether a text encoding of this name exists."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # it needs more than a byte
    return True


@lru_cache(maxsize=8)
def is_like_ascii(encoding: str) -> bool:
    """Return whether an encoding extends ASCII, so that its bytes can be cut into lines."""
    if encoding.lower().startswith(("hz", "iso2022", "iso-2022")):
        return False  # but after an escape they are parts of others
    ascii_bytes = bytes(range(128))
    try:
        return ascii_bytes.decode(encoding or "utf-8") == ascii_bytes.decode("ascii")
    except UnicodeError:
        return False
