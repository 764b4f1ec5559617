"""Open corpora by name or path: find them on disk, download and verify them, and read their documents."""

import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from textcat.base.disk import expanded, user_cache
from textcat.base.errors import TextcatError, similar_files
from textcat.base.frames import is_table, named_columns
from textcat.corpus import descriptions
from textcat.corpus.cards import RECORD_READERS, Card, card, cards, holds_documents, tree_digest
from textcat.corpus.descriptions import read_descriptions
from textcat.corpus.documents import RECORDS, TABLE, Corpus, Document
from textcat.corpus.vocabulary import Vocabulary, read_vocabulary_stream
from textcat.reading import (
    EVERY_FIELD,
    FIELDS_OF_TOPICS,
    NEWS,
    REFERENCES,
    SCANS,
    STEP,
    SUBJECTS,
    ByteStream,
    DamagedError,
    InputSettings,
    Record,
    UnreadableError,
    folders_of,
    format_of,
    is_matched,
    is_url,
    matches,
    named_format,
    open_file,
    part_of,
    plain_name,
    read_documents,
    shared_depth,
    unpacked_stream,
)
from textcat.reading.labels import unlabelled_because

if TYPE_CHECKING:
    from textcat.base.progress import Bar
    from textcat.reading import ForkedCorpus

__all__ = ["Card", "cache_folder", "card", "cards", "open_corpus"]

_log = logging.getLogger(__name__)
_STREAMED_BYTES = 2**26  # the largest file of a corpus, maybe compressed, that two processes hold at the same time
_NAMED = 3  # files that are left out, by their names, in a warning
_NO_DATA = re.compile(r"[._]|(readme|licen[cs]e|changelog|citation|copying|notice)\b", re.IGNORECASE)
_LOOKED_INTO = 9  # the number of files that are searched for a list of subjects; some may be empty
_TIMEOUT = 30  # seconds without a byte before the next mirror is tried
_PARTIAL = ".partial-"  # start of the name of a download's temporary folder
_STALE = 24 * 3600  # seconds after which such a folder belongs to no running download
_REASONS = {
    "ChunkedEncodingError": "the connection broke off",
    "ConnectTimeout": "no answer",
    "ConnectionError": "no connection",
    "ReadTimeout": "no answer",
}


def cache_folder() -> Path:
    """Return the user's folder for downloaded corpora; it need not exist. Raise TextcatError without a home folder."""
    return user_cache() / "corpora"


def cache_folders() -> list[Path]:
    """Return the one cache folder in a list, which is empty if the user has no home folder."""
    with suppress(TextcatError):
        return [cache_folder()]
    return []


def _search_folders(card: Card, corpus_dir: str | Path | None = None) -> list[Path]:
    """Return the folders to search for the corpus that a card describes, in the order of the search.

    These are `corpus_dir`, the folder in the variable ``TEXTCAT_CORPORA``, the card's folder, and the user's cache.
    """
    variable = os.environ.get("TEXTCAT_CORPORA")
    if variable and not expanded(variable).is_dir():
        warn_once(f"TEXTCAT_CORPORA names {variable}, and there is no such folder.")
    named = [folder for folder in (corpus_dir, variable) if folder]
    return [*(expanded(folder) for folder in named), card.folder, *cache_folders()]


@cache
def warn_once(sentence: str) -> None:
    """Log a warning, unless it has been logged before."""
    _log.warning(sentence)


def locate_corpus(card: Card, corpus_dir: str | Path | None = None) -> Path | None:
    """Return the path of a corpus on disk; None if no searched folder has one of the card's `files`.

    A card describes a corpus. `corpus_dir` is searched first.
    """
    paths = (folder / file for folder in _search_folders(card, corpus_dir) for file in card.files)
    return next((path for path in paths if path.exists()), None)


def fetch_corpus(card: Card, progress: "Bar | None" = None, corpus_dir: str | Path | None = None) -> Path:
    """Find a corpus on disk, or download it into the user's cache; verify it as a whole, and return its path.

    `corpus_dir` is searched first. A damaged copy in the cache is downloaded again. A download gets its name only after
    it is verified, so a partial download is never used. Before a download, the licence is logged.

    A TextcatError says what is wrong with the files, what went wrong at each URL, or that the card names no URL.
    """
    path = locate_corpus(card, corpus_dir)
    if path is not None:
        try:
            _verify(card, path)
            return path
        except TextcatError as error:
            if not card.urls or path.parent not in cache_folders():
                raise
            _log.warning("%s It is fetched again.", error)
    if not card.urls:
        raise TextcatError(f"The card of {card.name} names no URL to download from. {_by_hand(card)}")
    if not (card.sha256 or card.tree):
        raise TextcatError(
            f"The card of {card.name} has neither 'sha256' nor 'tree', so a download cannot be verified: add one. "
            f"{_by_hand(card)}"
        )
    _log.info("%s. %s", card.title, card.licence)
    target, failures = cache_folder() / card.files[0], []
    _check_writable(target.parent)
    for url in card.urls:
        try:
            _download(card, url, target, progress)
            return target
        except (OSError, ValueError, TextcatError) as error:  # ValueError: an unknown kind of URL
            failures.append(f"{url}: {_reason(error)}")
            _log.warning("No download from %s", failures[-1])
    raise TextcatError(f"Corpus {card.name} could not be downloaded ({'; '.join(failures)}). {_by_hand(card)}")


def open_corpus(
    name_or_path: str | Path | Card,
    corpus_dir: str | Path | None = None,
    download: bool = True,
    progress: "Bar | None" = None,
    settings: InputSettings | None = None,
    test_size: float | None = None,
    seed: int = 0,
    keep_groups: bool = False,
    as_read: Callable[[Record], object] | None = None,
    vocabulary: str | Path | None = None,
    vocabulary_language: str | None = None,
) -> Corpus:
    """Open a corpus by name, card, path or URL.

    Parameters
    ----------
    name_or_path : str, Path or Card
        The name of a shipped corpus; the path of a card (``.toml``); or the data itself, as a path, a pattern such as
        ``news/*.jsonl``, or a URL: JSON Lines, a JSON array, CSV, TSV, Parquet, SGML files in Reuters' format, RCV1's
        XML, mailboxes, or a folder per topic; files, folders or archives of them, compressed or not. If a corpus
        is shipped under a name that is also a path, the shipped corpus is opened.
    corpus_dir : str or Path, optional
        Folder to look in first.
    download : bool
        Download a corpus that is found in no folder.
    progress : Bar, optional
        Draws the number of bytes downloaded and read.
    settings : InputSettings, optional
        How data without a card are read; if it names a format, all files are read in this format. For a corpus with a
        card, it may have only settings that the card's reader uses and that the card does not fix.
    test_size, seed, keep_groups : float or int, int, bool
        If the corpus has no test part, make one of some training documents: see `Corpus.split`.
    as_read : callable, optional
        Called with each record as soon as it is read.
    vocabulary : str or Path, optional
        File with the names of the topics, in place of the card's: see `Vocabulary.read`.
    vocabulary_language : str, optional
        Language of these names: see `Vocabulary.read`.

    Returns
    -------
    Corpus
        Its documents are in the order of their files' names, however they are packed. If all documents are for test,
        the corpus has no topics: a model can be evaluated on it, but not trained.

    Raises
    ------
    TextcatError
        If there is no such corpus, its files are missing, damaged or not as the card describes them, two documents
        have the same id, or a setting would change nothing, as the card says how the corpus is read.
    """
    origin: dict[str, Any] = {}
    if isinstance(name_or_path, Card):
        described, data = name_or_path, ""
    else:
        described, data = _describe(str(name_or_path), settings)
        stays = str(name_or_path) in cards() or is_url(data)  # the same wherever it is opened from
        path = expanded(data or name_or_path)
        origin["name_or_path"] = str(name_or_path) if stays else os.path.abspath(path)
        if settings is not None:
            origin["settings"] = {k: v for k, v in settings._asdict().items() if not settings.is_default(k)}
    if not data:
        described.check_settings(settings or InputSettings())
        located = locate_corpus(described, corpus_dir)
        if located is None and not (download and described.urls):
            folders = ", ".join(map(str, _search_folders(described, corpus_dir)))
            raise TextcatError(f"Corpus {described.name} is in none of {folders}. {_by_hand(described)}")
        data = str(located or fetch_corpus(described, progress))
    words = Vocabulary.read(vocabulary, vocabulary_language) if vocabulary else None
    if words and origin:
        origin |= {"vocabulary": os.path.abspath(words.place), "vocabulary_language": vocabulary_language}
    corpus = replace(_open(described, data, settings, as_read, words, progress), origin=origin)
    return corpus if test_size is None else corpus.split(test_size, seed=seed, keep_groups=keep_groups)


def corpus_of(source: Any, **columns: Any) -> Corpus:
    """Return `source` if it is a Corpus; otherwise make a corpus of it.

    A table or records in memory are converted; a name, card, path or URL is opened. `columns` are arguments of
    `column_settings`, which name the columns or fields of texts and topics. TextcatError is raised if they are given
    together with a Corpus, or if the corpus cannot be made.
    """
    if isinstance(source, str | Path | Card):
        return open_corpus(source, settings=column_settings(**columns))
    if hasattr(source, "shape") and not is_table(source):
        kind = type(source).__name__
        raise TextcatError(
            f"A {kind} of shape {source.shape} has rows of features, but a tagger makes its own of texts: give "
            "documents with topics; or train a learner on the rows, as in textcat.PAUM(probability=True).fit(X, y)."
        )
    if not isinstance(source, Corpus):
        return Corpus.from_records(source, name=TABLE if is_table(source) else RECORDS, **columns)
    if column_settings(**columns):
        named = ", ".join(f"{name}={value!r}" for name, value in columns.items() if value)
        raise TextcatError(
            f"Corpus {source.name} has its texts and topics already: leave out the columns of a table, {named}."
        )
    return source


def column_settings(
    text: str | Sequence[str] | None = None, topics: str | Sequence[str] = "topics", topics_separator: str = ""
) -> InputSettings | None:
    """Return the settings to read files by, given columns or fields as for `Corpus.from_records`.

    Return None if all arguments have their defaults.
    """
    settings = InputSettings(topics_separator=topics_separator, text_fields=named_columns(text))
    if isinstance(topics, str):
        settings = settings._replace(topics_field=topics)
    else:
        settings = settings._replace(topic_fields=named_columns(topics))
    return None if settings == InputSettings() else settings


def stream_corpus(name_or_path: str, corpus_dir: str | Path | None = None, **options: Any) -> "ForkedCorpus | None":
    """Begin to read a corpus in another process, and return the object that receives its texts.

    Return None if the corpus is not a file on disk, if the file is too large, or if another process would be unsafe or
    no faster. `options` are further arguments of `open_corpus`. Nothing is downloaded.
    """
    path = locate_corpus(card(name_or_path), corpus_dir) if name_or_path in cards() else expanded(name_or_path)
    if path is None or not path.is_file() or path.stat().st_size > _STREAMED_BYTES:
        return None
    from textcat.reading import read_forked

    return read_forked(partial(open_corpus, name_or_path, corpus_dir, download=False, **options))


def reopen_corpus(origin: Mapping[str, Any], **options: Any) -> Corpus:
    """Open a corpus again, given its `Corpus.origin` or `Tagger.origin`.

    `options` are further arguments of `open_corpus`. TextcatError is raised if the origin does not say how to open the
    corpus.
    """
    try:
        values = origin.get("settings", {}).items()
        settings: dict[str, Any] = {k: _as_tuples(v) for k, v in values}
        return open_corpus(**{**origin, "settings": InputSettings(**settings)}, **options)
    except (TypeError, AttributeError) as error:
        message = "The model does not say how to open the corpus it was trained on: name the corpus."
        raise TextcatError(message) from error


def _as_tuples(value: Any) -> Any:
    """Return a value of JSON in which every list is replaced by a tuple."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _describe(text: str, settings: InputSettings | None) -> tuple[Card, str]:
    """Return the card (the description) of a corpus, and the path or URL of its data.

    If `text` is the name of a corpus or the path of a card, the second value is "". Data without a card get a card that
    is guessed from the names of their files.
    """
    path = expanded(text)
    if is_url(text):
        return _guess_card(text, settings), text
    if path.suffix == ".toml":
        return card(path), ""
    if text not in cards():
        if path.exists() or matches(str(path)):
            return _guess_card(str(path), settings), str(path)
        if path.suffix or path.name != text:
            raise TextcatError(f"There is no file or folder {text}.{similar_files(path)}")
    return card(text), ""


def _guess_card(data: str, settings: InputSettings | None) -> Card:
    """Return a card (a description of a corpus) for data without one, judging by the names of its files.

    `data` is the path or URL of the data.
    """
    settings = settings or InputSettings()
    names: list[str] = []
    read_documents([data], settings, names.append)  # which returns nothing, so that no file is read
    _tell_patterns_without_files(data, names, settings)
    described = _descriptions_among(names)
    names = [name for name in names if name != described]
    reader = "folders" if settings.format == "text" else settings.format
    if not reader:
        reader = "annif" if _list_subjects(data, names, settings) else _reader_of(names, settings)
        if reader in ("", "folders", "json", "jsonl", "records") and _hold_news(data, names, settings):
            reader = "news"
    others: tuple[str, ...] = ()
    if not settings.format and reader in ("", "records", *RECORD_READERS):
        others = _records_in_texts(data, names, settings)
        reader = "records" if others else reader
    elif reader == "lines":  # files of lines are often called by their topic only
        others = tuple(name for name in names if "." not in name.rpartition("/")[2] and not _is_no_data(name))
    if not reader:
        raise TextcatError(
            f"{data} holds no file of a known format and no folder per topic: name the format with --format, or give "
            "it a card (.toml) with a reader."
        )
    name = Path(data).name
    guessed = Card(name, Path(data).parent, reader, [name], descriptions=described, depth=shared_depth(names))
    guessed = replace(guessed, others=others)
    if not settings.format:
        _tell_files_left_out(data, guessed, names, settings)
    return guessed


def _tell_patterns_without_files(data: str, names: list[str], settings: InputSettings) -> None:
    for pattern, values in settings.for_files:
        skips = dict(values).get("skip")  # what is to be left out may well be absent
        if not skips and not any(is_matched(name, pattern) for name in names):
            _log.warning("No file of %s is matched by --for %r: its options change nothing.", data, pattern)


def _tell_empty_texts(card: Card, documents: list[Document]) -> None:
    empty = [document.id for document in documents if not any(map(str.strip, document.zones.values()))]
    if empty:
        shown = ", ".join(empty[:_NAMED]) + ", …" * (len(empty) > _NAMED)
        _log.warning(
            "%s: %d of %d documents %s no text: %s. They count like the others; leave them out, or name the field "
            "that has their texts.",
            *(card.name, len(empty), len(documents), "has" if len(empty) == 1 else "have", shown),
        )


def _is_wanted(card: Card, settings: InputSettings) -> Callable[[str], bool]:
    """Return a function that takes the name of a file and returns whether the file is read.

    A file is read if the card (the description of the corpus) says so, or if `settings.for_files` names a format for
    it.
    """
    return lambda name: card.wanted(name) or bool(settings.for_files and settings.for_file(name).format)


def _tell_files_left_out(data: str, card: Card, names: list[str], settings: InputSettings) -> None:
    wanted = _is_wanted(card, settings)
    left_out = [name for name in names if not (wanted(name) or settings.for_file(name).skip or _is_no_data(name))]
    if left_out:
        shown = ", ".join(left_out[:_NAMED]) + ", …" * (len(left_out) > _NAMED)
        _log.warning(
            "%s: %d of %d files are not read, as the others are read as %s: %s. If they hold documents, name their "
            "format, such as --for '%s --format text'.",
            *(data, len(left_out), len(names), card.reader, shown, PurePosixPath(left_out[0]).name),
        )


def _is_no_data(name: str) -> bool:
    return bool(_NO_DATA.match(PurePosixPath(name).name))


def _records_in_texts(data: str, names: list[str], settings: InputSettings) -> tuple[str, ...]:
    """Return the names of those texts beside topics' folders that hold many records, such as lists of references.

    If the corpus is a single file, it counts whatever its name. TextcatError is raised if all files are of a format
    that is known and not read.
    """
    texts = names
    if len(names) > 1:
        texts = [name for name in _beside_topics(names) if named_format(name) == "text" and not _is_no_data(name)]
    forms = _formats_of(data, texts, settings)
    refused = [(name, form) for name, form in forms.items() if isinstance(form, UnreadableError)]
    if refused and len(refused) == len(names):
        name, fault = refused[0]
        raise TextcatError(f"{data} {fault}." if len(names) == 1 else f"{name} in {data} {fault}.")
    return tuple(name for name, form in forms.items() if form in REFERENCES or form in ("annif", *RECORD_READERS))


def _list_subjects(data: str, names: list[str], settings: InputSettings) -> bool:
    """Return whether files list the subjects of the texts next to them, as in a full-text corpus of Annif.

    `names` are the names of all files in `data`.
    """
    texts = {name[:-4] for name in names if name.lower().endswith(".txt")}
    beside = [name for name in names if name[:-4] in texts and name.lower().endswith((".key", ".tsv"))]
    return SUBJECTS in _formats_of(data, beside[:_LOOKED_INTO], settings).values()


def _hold_news(data: str, names: list[str], settings: InputSettings) -> bool:
    """Return whether XML files, of which `names` has the names with those of others, are news or scanned pages."""
    xml = [name for name in names if named_format(name) == "rcv1"][:_LOOKED_INTO]
    return not (NEWS | SCANS).isdisjoint(_formats_of(data, xml, settings).values())


def _formats_of(data: str, names: list[str], settings: InputSettings) -> dict[str, str | UnreadableError]:
    """Return the format of each of the named files, or why it is not read, as far as its name and content tell it."""
    forms: dict[str, str | UnreadableError] = {}

    def look(name: str, stream: ByteStream) -> None:
        try:
            forms[name] = format_of(stream, name, settings)
        except UnreadableError as fault:
            forms[name] = fault.with_traceback(None)

    if names:
        read_documents([data], settings, frozenset(names).__contains__, look)
    return forms


def _reader_of(names: list[str], settings: InputSettings) -> str:
    """Return the name of the reader (a way to read files, as a card names it) for these files; "" if none fits."""

    def holds(reader: str, name: str) -> bool:
        # Not all that RCV1's reader takes: a topic's folder may well hold XML files with numbers.
        return name.lower().endswith("newsml.xml") if reader == "rcv1" else holds_documents(reader, name)

    # Files in a topic's folder are its documents, whatever their format.
    beside = _beside_topics(names)
    among = dict.fromkeys(("reuters", "rcv1", "jsonl"), names)
    among |= dict.fromkeys(RECORD_READERS[1:], beside) | {"mbox": names, "warc": names}
    fitting = [reader for reader, candidates in among.items() if any(holds(reader, name) for name in candidates)]
    if fitting:
        several = fitting[0] in RECORD_READERS and {*fitting[1:]} & {*RECORD_READERS}
        return "records" if several else fitting[0]
    if settings.lines and names:
        return "lines"
    return "folders" if any("/" in name for name in names) else ""


def _beside_topics(names: list[str]) -> list[str]:
    """Return the names of those files that are in no topic's folder."""
    depth = shared_depth(names)
    return [name for name in names if all(part_of(one) or one.lower() == "unused" for one in folders_of(name)[depth:])]


def _descriptions_among(names: list[str]) -> str:
    """Return the name of the file that describes topics, in the common folder of all files; "" if there is none."""
    if len(names) < 2:  # a single file is the data
        return ""
    folder = os.path.commonpath(names)
    candidates = (f"{folder}/{name}" if folder else name for name in descriptions.NAMES)
    return next((name for name in candidates if name in names), "")


def _open(
    card: Card,
    data: str,
    settings: InputSettings | None,
    as_read: Callable[[Record], object] | None,
    vocabulary: Vocabulary | None,
    progress: "Bar | None",
) -> Corpus:
    _log.info("Reading %s from %s", card.name, data)
    contents = _Contents(card, data)
    # Every file of a folder is of the format that has been asked for, whatever its name.
    of_one_format = settings is not None and settings.format not in ("", "text")
    wanted = None if of_one_format else _is_wanted(card, settings or InputSettings())
    documents = read_documents([data], card.settings(settings), wanted, contents.open, as_read, progress)
    contents.read_beside()
    contents.check_complete()
    if card.files == [Path(data).name] and not card.urls:
        _tell_empty_texts(card, documents)
    parts = {document.split or "train" for document in documents}
    unlabelled = ""
    if card.reader in ("records", *RECORD_READERS) and not any(document.topics for document in documents):
        unlabelled = _why_unlabelled(data, card.settings(settings), wanted, contents)
    if "test" in parts and "train" not in parts:  # a model can be measured on them; what trains refuses them
        tests = [document for document in documents if document.split == "test"]
        return Corpus(card.name, [], tests, (), unlabelled=unlabelled)
    vocabulary, names, about = vocabulary or contents.vocabulary, {}, {}
    if vocabulary is not None:
        documents = vocabulary.current(documents)
        topics = {topic for document in documents for topic in document.topics}
        names, about = vocabulary.of(topics), vocabulary.descriptions_of(topics)
        if card.topics == "described":
            names, about = vocabulary.names | names, vocabulary.descriptions | about
    corpus = Corpus.from_documents(card.name, documents, card.topics, about | contents.descriptions, names)
    if vocabulary is not None:
        corpus = replace(corpus, names_language=vocabulary.language, replacements=vocabulary.replacements)
    return replace(corpus, unlabelled=unlabelled)


def _why_unlabelled(
    data: str, settings: InputSettings, wanted: Callable[[str], bool] | None, contents: "_Contents"
) -> str:
    """Return why no record has a topic, as the end of a sentence; raise TextcatError if the named field is in none."""
    documents = read_documents([data], settings._replace(fields=EVERY_FIELD), wanted, contents.open)
    names = dict.fromkeys(name for document in documents for name in document.fields or ())
    is_named = not settings.is_default("topics_field") or settings.topic_fields
    looked_for = settings.topic_fields or (settings.topics_field, *(() if is_named else FIELDS_OF_TOPICS))
    why = unlabelled_because(looked_for, names)
    if is_named and names and names.keys().isdisjoint(looked_for):
        raise TextcatError(f"{data}: {why}.")
    return why if names else ""


class _Contents:
    """Collect checksums, descriptions of topics and the vocabulary (names of topics) while a corpus is read."""

    def __init__(self, card: Card, data: str) -> None:
        self._card, self._data = card, data
        self._sums: dict[str, str] = {}
        self.descriptions: dict[str, str] = {}
        self.vocabulary: Vocabulary | None = None

    def open(self, name: str, stream: ByteStream) -> ByteStream | None:
        """Return a stream of a file's bytes that checks the file's checksum, or None if the file has no documents.

        A file that describes or names topics has no documents; it is read here.
        """
        stream = self._summed(name, stream)
        return None if self._take(name, stream, f"{name} in {self._data}") else stream

    def _take(self, name: str, stream: ByteStream, location: str) -> bool:
        """Read a file if it describes or names topics, and return True; return False for any other file."""
        if self._card.names_topics(name):
            self.vocabulary = read_vocabulary_stream(name, stream, self._card.vocabulary_language, location)
        elif self._card.describes(name):
            data = b"".join(iter(lambda: stream.read(STEP), b""))
            self.descriptions.update(read_descriptions(name, data, location))
        else:
            return False
        return True

    def read_beside(self) -> None:
        """Read files that describe or name topics and that are not in the source, but next to it or next to the card.

        TextcatError is raised if the card names such a file and it is nowhere.
        """
        card, folders = self._card, [self._card.folder]
        if not is_url(self._data):
            folders.insert(0, Path(self._data).parent)
        for setting, is_it in (("descriptions", card.describes), ("vocabulary", card.names_topics)):
            name = getattr(card, setting)
            if not name or any(map(is_it, self._sums)):
                continue
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is None:
                raise TextcatError(
                    f"Corpus {card.name} has no file {name}, neither in its source nor beside it, nor beside its card "
                    f"in {card.folder}: put it there, or take {setting!r} out of the card."
                )
            try:
                with closing(open_file(str(path))) as stored:
                    stream, plain = unpacked_stream(stored, name), plain_name(name)
                    self._take(plain, self._summed(plain, stream) if plain in card.sha256 else stream, str(path))
            except UnreadableError as fault:
                raise TextcatError(f"{path} {fault}: fetch or copy it again.") from None

    def verify(self, name: str, stream: ByteStream) -> None:
        """Read a file only to compare its checksum."""
        stream = self._summed(name, stream)
        while stream.read(STEP):
            pass

    def _summed(self, name: str, stream: ByteStream) -> ByteStream:
        """Return a stream that computes the checksum of its bytes, and at the end compares it with the card's.

        At the end, the stream raises DamagedError if the checksums differ.
        """
        card, digest, self._sums[name] = self._card, hashlib.sha256(), ""
        if not (card.sha256 or card.tree):
            return stream

        def take(n: int) -> bytes:
            data = stream.read(n)
            digest.update(data)
            if not data:
                self._sums[name] = digest.hexdigest()
                if card.sha256 and self._sums[name] != card.sha256[name.rpartition("/")[2]]:
                    raise DamagedError(self._data, f"{name} has not the checksum the card of {card.name} gives")
            return data

        return ByteStream(take, stream.consumed, stream.prompt)

    def check_complete(self) -> None:
        """Raise DamagedError if a file is missing or the checksum over all files is wrong.

        TextcatError is raised if no file was read at all.
        """
        card = self._card
        if missing := sorted(set(card.sha256) - {name.rpartition("/")[2] for name in self._sums}):
            raise DamagedError(self._data, f"{', '.join(missing)} not in it")
        if card.tree and tree_digest(self._sums) != card.tree:
            raise DamagedError(self._data, f"its files have not the checksum the card of {card.name} gives")
        if not self._sums:
            fault = f"holds no file the reader {card.reader!r} reads: check the path and the card"
            raise TextcatError(f"{self._data} {fault}.")


def _verify(card: Card, path: Path) -> None:
    """Read a corpus without parsing it; raise a TextcatError for a truncated, missing or changed file."""
    contents = _Contents(card, str(path))
    read_documents([path], card.settings(), card.wanted, contents.verify)
    if card.sha256:
        contents.read_beside()
    contents.check_complete()


def _download(card: Card, url: str, target: Path, progress: "Bar | None") -> None:
    from pooch import HTTPDownloader
    from pooch.downloaders import choose_downloader

    for left_over in target.parent.glob(f"{_PARTIAL}*"):
        if time.time() - left_over.stat().st_mtime > _STALE:
            shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=target.parent) as folder:
        partial = Path(folder, target.name)
        download = choose_downloader(url, progressbar=progress)
        if isinstance(download, HTTPDownloader):
            download.kwargs["timeout"] = _TIMEOUT
        download(url, str(partial), None)
        _verify(card, partial)
        os.replace(partial, target)


def _check_writable(folder: Path) -> None:
    """Create the folder for a download; raise a TextcatError if nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TextcatError(
            f"Nothing can be written to the cache {folder} ({error.strerror}): name another folder in XDG_CACHE_HOME, "
            "or free or unlock this one."
        ) from None


def _reason(error: Exception) -> str:
    if (response := getattr(error, "response", None)) is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, DamagedError):
        return "the file it gives is cut off or not the one the card describes"
    reasons = (_REASONS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _REASONS)
    return next(reasons, str(error))


def _by_hand(card: Card) -> str:
    return f"{card.obtain} Put {card.files[0]} into a folder and name the folder in TEXTCAT_CORPORA.".lstrip()
