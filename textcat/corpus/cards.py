"""Cards: what a named corpus is, where it comes from, how it is read, and how its files are known to be whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, get_type_hints

from textcat.documents import TOPIC_RULES
from textcat.errors import TextcatError
from textcat.files import describe_type, did_you_mean, has_type, read_toml, shipped
from textcat.reading.formats import rcv1
from textcat.reading.records import InputSettings, LabelSettings
from textcat.reading.sources import by_name

_FIELDS = ("id", "text", "topics", "separator", "split", "encoding")
#: The options of each reader. The readers are formats, but that texts are read by folders, and json may be lines, too.
READERS = {
    "csv": (*_FIELDS, "quotes"),
    "folders": ("headers", "encoding"),
    "json": _FIELDS,
    "jsonl": _FIELDS,
    "lines": ("encoding",),
    "mbox": ("topics", "separator", "encoding"),
    "parquet": _FIELDS,
    "rcv1": ("train", "test", "version", "encoding"),
    "reuters": ("split", "encoding"),
    "tsv": (*_FIELDS, "quotes"),
}
_LABELS = ("train", "test", "version", "headers", "split")
_FORMATS = {"folders": "text", "json": ""}


@dataclass(frozen=True)
class Card:
    """Describe a corpus; the fields are those of a card's TOML file, besides `name` and `folder`.

    Parameters
    ----------
    name : str
        The name of the card's file without ``.toml``.
    folder : Path
        The folder the card lies in; the corpus may lie there too.
    reader : str
        A name in `READERS`.
    files : list of str
        Names of the archive, folder or file on disk, the first one being what a download is called.
    title, licence, citation : str
    urls : list of str
        Where to download the first of `files` from; tried in this order.
    obtain : str
        How to get it where no URL gives it to everybody: one or two sentences.
    topics : {"train", "both", "described"}
        Which topics count, see `Corpus.from_documents`.
    descriptions : str
        Name of the file, in the source or beside the card, that says what topics are about, see `read_descriptions`.
    options : dict of str to str
        Options of the reader, such as the split rule; the names of several fields are separated by commas.
    counts : dict of str to int
        Published numbers for listings: ``documents``, ``train``, ``test``, ``topics``.
    sha256 : dict of str to str
        Sum of each file the corpus is made of, by file name; no other file is read then.
    tree : str
        Instead of `sha256`, one sum over all files read, see `tree_digest`.
    depth : int
        Of data without a card, how many folders around everything are no topics.
    """

    name: str
    folder: Path
    reader: str
    files: list[str]
    title: str = ""
    licence: str = ""
    citation: str = ""
    urls: list[str] = field(default_factory=list)
    obtain: str = ""
    topics: str = "train"
    descriptions: str = ""
    options: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    tree: str = ""
    depth: int = 0

    def wanted(self, name: str) -> bool:
        """Return whether a file of the source belongs to the corpus."""
        if self.sha256:
            return PurePosixPath(name).name in self.sha256
        if self.reader == "rcv1":
            labels = self.settings().labels or LabelSettings()
            return self.describes(name) or rcv1.wanted(name, labels)
        if self.reader == "folders":
            return self.describes(name) or name.count("/") > self.depth
        return self.describes(name) or holds_documents(self.reader, name)

    def settings(self, settings: InputSettings | None = None) -> InputSettings:
        """Return the settings by which the corpus is read: those given, with the card's format and options."""
        settings, options = settings or InputSettings(), self.options
        if "text" in options:
            settings = settings._replace(text_fields=tuple(name.strip() for name in options["text"].split(",")))
        names = {"id": "id_field", "topics": "topics_field", "separator": "topics_separator", "encoding": "encoding"}
        labels = {name: options[name] for name in _LABELS if name in options}
        if "split" in options and self.reader != "reuters":
            names["split"] = "split_field"
            del labels["split"]
        changes: dict[str, Any] = {field: options[name] for name, field in names.items() if name in options}
        return settings._replace(
            format=_FORMATS.get(self.reader, self.reader),
            quotes=settings.quotes and options.get("quotes") != "none",
            labels=LabelSettings(**labels),
            **changes,
        )

    def describes(self, name: str) -> bool:
        """Return whether a file of the source says what topics are about."""
        return bool(self.descriptions) and f"/{name}".endswith(f"/{self.descriptions}")


def holds_documents(reader: str, name: str) -> bool:
    """Return whether the name of a file inside a source says that a reader takes it.

    Parameters
    ----------
    reader, name : str
        One of `READERS`, and the file's name with ``/`` between folders.

    Returns
    -------
    bool
    """
    if reader == "folders":  # a text lies in a topic's folder, a README beside the folders does not
        return "/" in name
    if reader == "json":
        return name.lower().endswith(".json")
    return by_name(name, InputSettings(lines=reader == "lines")).format == reader


_KEYS = {f.name: f for f in fields(Card) if f.name not in ("name", "folder", "depth")}
_TYPES = get_type_hints(Card)


def cards() -> dict[str, Card]:
    """Return the cards that come with textcat, by name."""
    return {path.stem: read_card(path) for path in _shipped_cards()}


def card(name_or_path: str | Path) -> Card:
    """Return the card of a shipped corpus by its name, or read one of the user's own by the path of a ``.toml`` file.

    Raises
    ------
    TextcatError
        If there is no such name, or the file is missing or no card.
    """
    if str(name_or_path).endswith(".toml"):
        return read_card(Path(name_or_path))
    known = [path.stem for path in _shipped_cards()]
    if str(name_or_path) not in known:
        hint = did_you_mean(str(name_or_path), known)
        raise TextcatError(f"No corpus {str(name_or_path)!r}. Known corpora: {', '.join(known)}.{hint}")
    return read_card(shipped("corpora") / f"{name_or_path}.toml")


def _shipped_cards() -> list[Path]:
    return sorted(shipped("corpora").glob("*.toml"), key=lambda path: path.stem)


def read_card(path: Path) -> Card:
    """Read and check a card.

    Raises
    ------
    TextcatError
        If the file is missing, is not TOML, or has a key that is unknown, missing or of the wrong type.
    """
    entries = read_toml(path, "card")
    _check(path, entries)
    return Card(name=path.stem, folder=path.parent, **entries)


def tree_digest(sums: Mapping[str, str]) -> str:
    r"""Return one sum for a set of files, however they are packed.

    It is the sha256 of the lines ``"<sha256>  <name>\n"`` sorted by name, after leading folders that all names share
    are taken off: what ``find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`` prints inside the folder.
    `sums` has the sha256 of each file, by its name with ``/``.
    """
    folders = [name.split("/")[:-1] for name in sums]
    shared = 0
    while folders and all(len(f) > shared and f[shared] == folders[0][shared] for f in folders):
        shared += 1
    lines = sorted((name.split("/", shared)[-1], digest) for name, digest in sums.items())
    listing = "".join(f"{digest}  {name}\n" for name, digest in lines)
    # Names that are not UTF-8 come as surrogates from folders and archives alike.
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()


def _check(path: Path, entries: Mapping[str, Any]) -> None:
    for key, value in entries.items():
        if key not in _KEYS:
            raise TextcatError(f"The card {path} has an unknown key {key!r}.{did_you_mean(key, list(_KEYS))}")
        if not has_type(value, _TYPES[key]):
            raise TextcatError(f"In the card {path}, {key!r} is {value!r}: it must be {describe_type(_TYPES[key])}.")
    for key, declared in _KEYS.items():
        if key not in entries and declared.default is MISSING and declared.default_factory is MISSING:
            raise TextcatError(f"The card {path} has no {key!r}: add it.")
    _check_choice(path, "reader", entries["reader"], list(READERS))
    _check_choice(path, "topics", entries.get("topics", "train"), list(TOPIC_RULES))
    for option in entries.get("options", {}):
        _check_choice(path, "options", option, list(READERS[entries["reader"]]))
    if not entries["files"]:
        raise TextcatError(f"The card {path} names no 'files': add the name of the archive or folder on disk.")


def _check_choice(path: Path, key: str, value: str, known: list[str]) -> None:
    if value not in known:
        raise TextcatError(
            f"In the card {path}, {key!r} names {value!r}. Known: {', '.join(known)}.{did_you_mean(value, known)}"
        )
