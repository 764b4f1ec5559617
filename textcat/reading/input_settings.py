"""The settings by which inputs are read."""

import codecs
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from textcat.reading.faults import UnreadableError

LAST = re.compile(r"last ([1-9]\d*)")  # a value of `LabelSettings.test`
#: The value of `InputSettings.fields` for all further fields.
ALL_FIELDS = ("*",)
#: The value of `InputSettings.fields` for all fields, including those of texts.
EVERY_FIELD = ("*", "texts")
_REPEATED = re.compile(r"(?<=/)#\d+/")  # the prefix of a repeated path in an archive
_SHORTEST = 4096  # minimum bytes read before a record is rejected as too long


class LabelSettings(NamedTuple):
    """Settings for labels and parts, some of them for particular formats."""

    split: str = "modapte"  # the rule of Reuters-21578 that assigns stories to parts; or "modlewis", "modhayes"
    unused: bool = True  # False: of Reuters-21578's unused stories, only the id is read
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


class Setting(NamedTuple):
    """A setting of `InputSettings`: its help text, its option, and how its default is shown.

    The options of commands, the keys of cards, and the tables of the documentation are made from these descriptions.
    """

    help: str  # one sentence
    #: Which commands have an option for it: "reading": all that read documents; "labels": those that also read topics;
    #: "files": none, but --for accepts it; "": none.
    group: str = ""
    option: str = ""  # its name on the command line; "": the setting's own, with dashes
    default: str = ""  # the default in words, if its value is not clear
    more: str = ""  # additional text for the documentation of Python
    repeated: bool = False  # the option may be repeated; otherwise, commas separate several values
    metavar: str | None = None  # placeholder for a value in the help


class InputSettings(NamedTuple):
    """The settings by which inputs are read.

    The same inputs and settings always give the same batches.
    """

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
            "Field or column of text; may be several, in order.",
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
            "Field or column of the topics; or several, each of which is a topic and holds 1 or 0.",
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
        Setting("Also read topics, dates and parts; unreadable input then raises an error instead of a rejection."),
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
        """Return the settings for the file at a path (possibly inside an archive), with `for_files` applied."""
        return _settings_for(self, name) if self.for_files else self

    def is_default(self, name: str) -> bool:
        """Return whether a setting has its default value."""
        return bool(getattr(self, name) == self._field_defaults[name])

    def as_entries(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, as JSON entries for `from_entries`."""
        return {name: value for name, value in self._asdict().items() if not self.is_default(name)}

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any]) -> "InputSettings":
        """Rebuild settings from the result of `as_entries`, also after a round trip through JSON."""
        return cls(**{name: _as_tuples(value) for name, value in entries.items()})

    def in_words(self, name: str) -> str:
        """Return the value of a setting as error messages show it after the name of its option; "" for a switch."""
        value = getattr(self, name)
        return "" if isinstance(value, bool) else value if isinstance(value, str) else ", ".join(map(str, value))

    @property
    def most_held(self) -> int:
        """Return the maximum number of bytes to read before a record is rejected as too long."""
        return max(self.max_bytes, _SHORTEST) + 2  # including the line end

    def too_long(self, length: int) -> UnreadableError:
        """Return the error for a record with too many bytes."""
        return UnreadableError(
            f"has {length} bytes, but a record may have at most {self.max_bytes}: split it or leave it out"
        )

    def filled(self, zones: dict[str, str]) -> dict[str, str]:
        """Return all zones if the settings ask for labels, otherwise only those that have text.

        If no zone has text, the result is an empty zone "body".
        """
        if self.labels is not None:
            return zones
        return {name: text for name, text in zones.items() if text} or {"body": ""}

    def kept(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return the further fields of a record that have a value and that `fields` names; None if it names none."""
        if not self.fields:
            return None
        wanted = fields.keys() if "*" in self.fields else {*self.fields}
        return {name: value for name, value in fields.items() if name in wanted and value not in ("", None, [])}

    def part_in(self, text: str) -> str:
        """Return a text unchanged if it names a part of a corpus: "train", "test", "unused" or "".

        Raise UnreadableError for any other text.
        """
        if text not in ("", "train", "test", "unused"):
            raise UnreadableError(
                f"has the split {text!r}: it must be one of train, test, unused (if the field is for something else, "
                "rename it)"
            )
        return text

    def in_utf8(self) -> bool:
        """Return whether the encoding is UTF-8."""
        return not self.encoding or codecs.lookup(self.encoding).name == "utf-8"


def _described() -> Iterator[tuple[str, Setting, Any]]:
    for name, annotated in InputSettings.__annotations__.items():
        setting: Setting = annotated.__metadata__[0]
        option = setting.option or ("--" + name.replace("_", "-") if setting.group else "")
        yield name, setting._replace(option=option), annotated.__origin__


#: The description and the type of each setting, by name.
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


def _as_tuples(value: Any) -> Any:
    """Return a value of JSON in which every list is replaced by a tuple."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
