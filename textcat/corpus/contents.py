"""Read the files of a corpus by its card: the documents, and files with descriptions, names and checksums."""

import hashlib
import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textcat.base.errors import TextcatError, first_of
from textcat.corpus.cards import RECORD_READERS, Card, is_wanted, tree_digest
from textcat.corpus.descriptions import read_descriptions
from textcat.corpus.documents import Corpus, Document
from textcat.corpus.vocabulary import Vocabulary, read_vocabulary_stream
from textcat.reading import (
    EVERY_FIELD,
    STEP,
    ByteStream,
    DamagedError,
    InputSettings,
    LabelSettings,
    Record,
    UnreadableError,
    is_url,
    open_file,
    plain_name,
    read_documents,
    unpacked_stream,
)
from textcat.reading.columns import usual_name
from textcat.reading.labels import unlabelled_because

if TYPE_CHECKING:
    from textcat.base.progress import Bar

_log = logging.getLogger(__name__)


def read_corpus(
    card: Card,
    data: str,
    settings: InputSettings | None,
    as_read: Callable[[Record], object] | None,
    vocabulary: Vocabulary | None,
    progress: "Bar | None",
    unused: bool = True,
) -> Corpus:
    """Read the corpus that a card describes from `data`, the path or URL of its files.

    `vocabulary` names the topics in place of the card's; the other arguments are as for `open_corpus`. TextcatError is
    raised if files are missing, damaged or not as the card describes them.
    """
    _log.info("Reading %s from %s", card.name, data)
    contents = _Contents(card, data, settings)
    labels = contents.settings.labels or LabelSettings()
    reading = contents.settings._replace(labels=labels._replace(unused=unused))
    documents = read_documents([data], reading, contents.wanted, contents.open, as_read, progress)
    contents.read_beside()
    contents.check_complete()
    if card.files == [Path(data).name] and not card.urls:
        _log_empty_texts(card, documents)
    parts = {document.split or "train" for document in documents}
    unlabelled = ""
    if card.reader in ("records", *RECORD_READERS) and not any(document.topics for document in documents):
        unlabelled = _why_unlabelled(data, contents)
    if "test" in parts and "train" not in parts:  # a model can be evaluated on them, while training refuses them
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
        broader, language = vocabulary.broader_of(corpus.topics), vocabulary.language
        corpus = replace(corpus, names_language=language, broader=broader, replacements=vocabulary.replacements)
    return replace(corpus, unlabelled=unlabelled)


def _log_empty_texts(card: Card, documents: list[Document]) -> None:
    empty = [document.id for document in documents if not any(map(str.strip, document.zones.values()))]
    if empty:
        shown = first_of(empty)
        _log.warning(
            "%s: %d of %d documents %s no text: %s. If that is wrong, name the field that "
            "has their texts, or leave them out.",
            *(card.name, len(empty), len(documents), "has" if len(empty) == 1 else "have", shown),
        )


def _why_unlabelled(data: str, contents: "_Contents") -> str:
    """Return why no record has a topic, as the end of a sentence; "" if the records have no fields.

    Raise TextcatError if the settings name a field of topics, and no record has this field.
    """
    settings = contents.settings
    documents = read_documents([data], settings._replace(fields=EVERY_FIELD), contents.wanted, contents.open)
    names = dict.fromkeys(name for document in documents for name in document.fields or ())
    is_named = not settings.is_default("topics_field") or settings.topic_fields
    looked_for = settings.topic_fields or (settings.topics_field,)
    if not is_named and "topics" not in names:
        looked_for = (usual_name(names, "topics") or "topics",)
    why = unlabelled_because(looked_for, names)
    if is_named and names and names.keys().isdisjoint(looked_for):
        raise TextcatError(f"{data}: {why}.")
    return why if names else ""


class _Contents:
    """Collect checksums, descriptions of topics and the vocabulary (names of topics) while a corpus is read.

    `settings` and `wanted` are the arguments by which `read_documents` reads the corpus.
    """

    def __init__(self, card: Card, data: str, settings: InputSettings | None = None) -> None:
        self._card, self._data = card, data
        # Every file of a folder has the requested format, whatever its name.
        of_one_format = settings is not None and settings.format not in ("", "text")
        self.wanted = None if of_one_format else is_wanted(card, settings or InputSettings())
        self.settings = card.settings(settings)
        self._sums: dict[str, str] = {}
        self.descriptions: dict[str, str] = {}
        self.vocabulary: Vocabulary | None = None

    def open(self, name: str, stream: ByteStream) -> ByteStream | None:
        """Return a stream of a file's bytes that checks the file's checksum, or None if the file has no documents.

        A file that describes or names topics has no documents; it is read here.
        """
        stream = self._checked(name, stream)
        return None if self._read_topics(name, stream, f"{name} in {self._data}") else stream

    def _read_topics(self, name: str, stream: ByteStream, location: str) -> bool:
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

        TextcatError is raised if the card names such a file and it does not exist.
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
                    self._read_topics(
                        plain, self._checked(plain, stream) if plain in card.sha256 else stream, str(path)
                    )
            except UnreadableError as fault:
                raise TextcatError(f"{path} {fault}: fetch or copy it again.") from None

    def verify(self, name: str, stream: ByteStream) -> None:
        """Read a file only to verify its checksum."""
        stream = self._checked(name, stream)
        while stream.read(STEP):
            pass

    def _checked(self, name: str, stream: ByteStream) -> ByteStream:
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


def verify(card: Card, path: Path) -> None:
    """Read a corpus without parsing it; raise a TextcatError for a truncated, missing or changed file."""
    contents = _Contents(card, str(path))
    read_documents([path], contents.settings, contents.wanted, contents.verify)
    if card.sha256:
        contents.read_beside()
    contents.check_complete()
