"""Read the cards of corpora. A card states what a corpus is, where it comes from, and how to read and verify it."""

import hashlib
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from textcat.base.disk import expanded, shipped
from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.records import check_entries, field_types
from textcat.base.settings import read_toml
from textcat.corpus.documents import TOPIC_RULES
from textcat.reading import (
    CATEGORIES,
    FOLDERS,
    LAST,
    SETTINGS,
    InputSettings,
    LabelSettings,
    is_message,
    is_wanted_story,
    named_format,
    placed,
    plain_name,
)

_ENCODED = ("test", "encoding")
_FIELDS = (
    *("id_field", "text_fields", "topics_field", "topics_separator", "split_field", "date_field"),
    *_ENCODED,
)
_COLUMNS = (*_FIELDS, "columns", "plain_quotes")
#: The options of each reader: settings of `InputSettings`, and of `LabelSettings`. Readers are formats, with four
#: exceptions: texts are read by folders, json includes JSON Lines, records are files of several formats, and news is
#: any format of agencies and feeds.
READERS = {
    "annif": _ENCODED,
    "bibtex": _FIELDS,
    "csv": _COLUMNS,
    "endnote": _FIELDS,
    "folders": ("headers", "encoding", "main_text"),
    "json": _FIELDS,
    "jsonl": _FIELDS,
    "lines": _ENCODED,
    "mbox": ("topics_field", "topics_separator", "encoding"),
    "nbib": _FIELDS,
    "news": ("topics_scheme", *_ENCODED),
    "parquet": _FIELDS,
    "rcv1": ("train", "test", "version", "encoding"),
    "records": _COLUMNS,
    "refer": _FIELDS,
    "reuters": ("split", "encoding"),
    "ris": _FIELDS,
    "tsv": _COLUMNS,
    "warc": (*_ENCODED, "main_text"),
    "wos": _FIELDS,
}
_FORMATS = {"folders": FOLDERS, "json": "", "news": "", "records": ""}
#: The readers of files with many records each.
RECORD_READERS = ("jsonl", "csv", "tsv", "parquet", "json", "ris", "nbib", "bibtex", "refer", "wos")


@dataclass(frozen=True)
class Card:
    """A card: a corpus's files, their checksums, and how they are read.

    All fields except `name`, `folder`, `depth` and `others` are keys of the TOML file of this card.
    """

    name: str  # the name of the card's file, without .toml
    folder: Path  # the folder of the card, which may contain the corpus, too
    reader: str  # a name in `READERS`
    files: list[str]  # names of the archive, folder or file on disk; a download is saved under the first one
    title: str = ""
    licence: str = ""
    citation: str = ""
    urls: list[str] = field(default_factory=list)  # URLs of the first of `files`, tried in this order
    obtain: str = ""  # how to get it if it cannot be downloaded: one or two sentences
    topics: str = "train"  # which topics are used, see `Corpus.from_documents`
    descriptions: str = ""  # the file with descriptions of topics, in the source or next to the card
    vocabulary: str = ""  # the file with names of topics, in the source, next to it or next to the card
    vocabulary_language: str = ""  # the language of the names; "": unknown, or English if the file has several
    options: dict[str, Any] = field(default_factory=dict)  # settings that the reader uses, see `READERS`
    counts: dict[str, int] = field(default_factory=dict)  # published numbers: documents, train, test, topics
    # checksums of the corpus's files by name; only these files are read
    sha256: dict[str, str] = field(default_factory=dict)
    tree: str = ""  # instead of `sha256`: one checksum over all files that are read, see `tree_digest`
    depth: int = 0  # for data without a card: the number of outer folders whose names are not topics
    # for data without a card: files that the reader reads, although their names do not match
    others: tuple[str, ...] = ()

    def wanted(self, name: str) -> bool:
        """Return whether a file belongs to the corpus; `name` is its path within the data."""
        if self.sha256:
            return PurePosixPath(name).name in self.sha256
        if self.describes(name) or self.names_topics(name) or name in self.others:
            return True
        if self.reader == "rcv1":
            return is_wanted_story(name, self.settings().labels or LabelSettings())
        if self.reader == "folders":
            return placed(name).count("/") > self.depth or name.rpartition("/")[2] == CATEGORIES
        return holds_documents(self.reader, name)

    def settings(self, settings: InputSettings | None = None) -> InputSettings:
        """Return the given settings, with the format and other settings replaced by those of the card.

        If no settings are given, the defaults of `InputSettings` are used.
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in self.options.items()
        }
        labels = {name: values.pop(name) for name in LabelSettings._fields if name in values}
        settings, form = settings or InputSettings(), _FORMATS.get(self.reader, self.reader)
        if form == FOLDERS and settings.format == "text":
            form = "text"  # whatever the files' names are
        return settings._replace(format=form, labels=LabelSettings(**labels), **values)

    def check_settings(self, settings: InputSettings) -> None:
        """Raise TextcatError if a setting would have no effect because the card fixes it or the reader ignores it."""
        for name, (setting, _) in SETTINGS.items():
            is_taken = name in READERS[self.reader] and name not in self.options
            if setting.option and not is_taken and not settings.is_default(name):
                asked = f"{setting.option} {settings.in_words(name)}".rstrip()
                raise TextcatError(
                    f"Corpus {self.name} is read as its card says, so {asked} would change nothing: leave it out, or "
                    "write a card of your own."
                )

    def describes(self, name: str) -> bool:
        """Return whether a file of the source is the card's file of descriptions of topics."""
        return bool(self.descriptions) and f"/{name}".endswith(f"/{plain_name(self.descriptions)}")

    def names_topics(self, name: str) -> bool:
        """Return whether a file of the source is the card's vocabulary, which names the topics."""
        return bool(self.vocabulary) and f"/{name}".endswith(f"/{plain_name(self.vocabulary)}")


def holds_documents(reader: str, name: str) -> bool:
    """Return whether a reader, such as "csv", reads documents from a file, judging by the file's name."""
    if reader == "folders":  # a text is in a topic's folder; a README next to the folders is not
        return "/" in name
    if reader == "json":
        return plain_name(name).lower().endswith(".json")
    if reader == "records":
        return any(holds_documents(kind, name) for kind in RECORD_READERS)
    if reader == "news":
        return named_format(name) in ("rcv1", "jsonl") or holds_documents("json", name)
    if reader == "endnote":
        return plain_name(name).lower().endswith(".xml")
    if reader == "annif":
        return name.lower().endswith((".txt", ".tsv", ".key", ".csv", ".json", ".jsonl"))
    if reader == "mbox" and is_message(name):
        return True
    return named_format(name) == ("text" if reader == "lines" else reader)


def is_wanted(card: Card, settings: InputSettings) -> Callable[[str], bool]:
    """Return a function that takes the name of a file and returns whether the file is read.

    A file is read if the card says so, or if `settings.for_files` names a format for it.
    """
    return lambda name: card.wanted(name) or bool(settings.for_files and settings.for_file(name).format)


_NO_ENTRIES = ("name", "folder", "depth", "others")
ENTRY_TYPES = {key: kind for key, kind in field_types(Card).items() if key not in _NO_ENTRIES}


def cards() -> dict[str, Card]:
    """Return the cards (descriptions of corpora) that come with textcat, by name."""
    return {name: read_card(path) for name, path in _shipped_cards().items()}


def is_shipped(name: str) -> bool:
    """Return whether a corpus of this name has a card that comes with textcat."""
    return name in _shipped_cards()


def card(name_or_path: str | Path) -> Card:
    """Return the card of a shipped corpus by its name, or read a card from a ``.toml`` file.

    A TextcatError is raised if the name is unknown or the file is no card.
    """
    name, shipped_cards = str(name_or_path), _shipped_cards()
    path = expanded(name) if name.endswith(".toml") else shipped_cards.get(name)
    if path is None:
        hint = did_you_mean(name, shipped_cards)
        raise TextcatError(f"No corpus {name!r}. Known corpora: {', '.join(shipped_cards)}.{hint}")
    return read_card(path)


def _shipped_cards() -> dict[str, Path]:
    return dict(sorted((path.stem, path) for path in shipped("corpora").glob("*.toml")))


def read_card(path: Path) -> Card:
    """Read a card, the description of a corpus, from its file; raise a TextcatError if it is missing or not valid.

    A card is invalid if it is not TOML, a key is missing or unknown, or a value has a wrong type or is not allowed.
    """
    entries, where = read_toml(path, "card"), f"in the card {path}"
    check_entries(entries, ENTRY_TYPES, where)
    for key, what in (
        ("reader", "one of the readers"),
        ("files", "a list with the name of the file or folder on disk"),
    ):
        if not entries.get(key):
            raise TextcatError(f"There is no {key!r} {where}: add {what}.")
    card = Card(path.stem, path.parent, **entries)
    for key, value, allowed in (("reader", card.reader, READERS), ("topics", card.topics, TOPIC_RULES)):
        if value not in allowed:
            known = f"Known: {', '.join(allowed)}.{did_you_mean(value, allowed)}"
            raise TextcatError(f"The field {key!r} {where} cannot be {value!r}. {known}")
    types = {option: SETTINGS[option][1] if option in SETTINGS else str for option in READERS[card.reader]}
    check_entries(card.options, types, f"of 'options' {where}")
    test = card.options.get("test", "")
    if test and card.reader != "rcv1" and not LAST.fullmatch(test):
        raise TextcatError(f"The field 'test' {where} cannot be {test!r}; give such as 'last 1000', of the documents.")
    return card


def tree_digest(sums: Mapping[str, str]) -> str:
    r"""Return one checksum for a set of files; it is the same however the files are packed.

    It is the sha256 of the lines ``"<sha256>  <name>\n"`` sorted by name, without the leading folders that all names
    share: ``find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`` prints it inside the folder. `sums` has the
    sha256 of each file, by its name with ``/``.
    """
    shared = len(posixpath.commonprefix([name.split("/")[:-1] for name in sums]))
    lines = sorted((name.split("/", shared)[-1], digest) for name, digest in sums.items())
    listing = "".join(f"{digest}  {name}\n" for name, digest in lines)
    # Names that are not UTF-8 contain surrogates, both in folders and in archives.
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
