"""Open corpora by name, path or URL."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, similar_files
from textcat.base.frames import is_table, named_columns
from textcat.corpus.cards import Card, card, is_shipped
from textcat.corpus.contents import read_corpus
from textcat.corpus.documents import RECORDS, TABLE, Corpus
from textcat.corpus.fetch import locate_corpus, obtain_corpus
from textcat.corpus.guess import guess_card
from textcat.corpus.vocabulary import Vocabulary
from textcat.reading import InputSettings, Record, is_url, matches

if TYPE_CHECKING:
    from textcat.base.progress import Bar
    from textcat.reading import ForkedCorpus

#: The arguments of `open_corpus` for a test part made from training documents.
SPLIT = ("test_size", "seed", "keep_groups")
# maximum bytes of a corpus's file, possibly compressed, that two processes hold at the same time
_STREAMED_BYTES = 2**26


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
    origin: Mapping[str, Any] | None = None,
    unused: bool = True,
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
        If the corpus has no test part, split one off the training documents: see `Corpus.split`.
    as_read : callable, optional
        Called with each record as soon as it is read.
    vocabulary : str or Path, optional
        File with the names of the topics, instead of the card's: see `Vocabulary.read`.
    vocabulary_language : str, optional
        Language of these names: see `Vocabulary.read`.
    origin : mapping, optional
        A `Corpus.origin`. If it is that of this corpus, and no `test_size` is given, the corpus gets the same test
        part; without `settings`, it is also read in the same way.
    unused : bool
        False: leave out the documents that are in neither part, which takes less time.

    Returns
    -------
    Corpus
        Its documents are in the order of their files' names, however they are packed. If all documents are for test,
        the corpus has no topics: a model can be evaluated on it, but not trained.

    Raises
    ------
    TextcatError
        If there is no such corpus, its files are missing, damaged or not as the card describes them, two documents have
        the same id, or a setting has no effect because the card fixes it or its reader ignores it.
    """
    data, place = ("", "") if isinstance(name_or_path, Card) else _locate(str(name_or_path))
    if origin and test_size is None and origin.get("name_or_path") == place:
        test_size, seed, keep_groups = origin.get("test_size"), origin.get("seed", 0), origin.get("keep_groups", False)
        if settings is None:
            settings = _settings_of(origin)
            if vocabulary is None:
                vocabulary, vocabulary_language = origin.get("vocabulary"), origin.get("vocabulary_language")
    if data:
        described = guess_card(data, settings)
    else:
        described = name_or_path if isinstance(name_or_path, Card) else card(name_or_path)
        described.check_settings(settings or InputSettings())
        data = str(obtain_corpus(described, corpus_dir, download=download, progress=progress))
    words = Vocabulary.read(vocabulary, vocabulary_language) if vocabulary else None
    own: dict[str, Any] = {"name_or_path": place} if place else {}
    if own and settings is not None:
        own["settings"] = settings.as_entries()
    if own and words:
        own |= {"vocabulary": os.path.abspath(words.place), "vocabulary_language": vocabulary_language}
    corpus = replace(read_corpus(described, data, settings, as_read, words, progress, unused), origin=own)
    if not unused:
        corpus = replace(corpus, unused=[])
    return corpus if test_size is None else corpus.split(test_size, seed=seed, keep_groups=keep_groups)


def corpus_of(source: Any, origin: Mapping[str, Any] | None = None, **columns: Any) -> Corpus:
    """Return `source` if it is a Corpus; otherwise open or convert it.

    A table or records in memory are converted; a name, card, path or URL is opened, with `origin` as for `open_corpus`.
    `columns` are arguments of `column_settings`, which name the columns or fields of texts and topics. TextcatError is
    raised if they are given together with a Corpus, or if the corpus cannot be made.
    """
    if isinstance(source, Corpus):
        _refuse_columns(source, **columns)
        return source
    if isinstance(source, str | Path | Card):
        return open_corpus(source, settings=column_settings(**columns), origin=origin)
    if hasattr(source, "shape") and not is_table(source):
        kind = type(source).__name__
        raise TextcatError(
            f"A {kind} of shape {source.shape} has rows of features, but a tagger makes its own of texts: give "
            "documents with topics; or train a learner on the rows, as in textcat.PAUM(probability=True).fit(X, y)."
        )
    return Corpus.from_records(source, name=TABLE if is_table(source) else RECORDS, **columns)


def _refuse_columns(corpus: Corpus, **columns: Any) -> None:
    """Raise TextcatError if columns are named for a Corpus, which has none."""
    if column_settings(**columns):
        named = ", ".join(f"{name}={value!r}" for name, value in columns.items() if value)
        raise TextcatError(
            f"Corpus {corpus.name} has its texts and topics already: leave out the columns of a table, {named}."
        )


def column_settings(
    text: str | Sequence[str] | None = None, topics: str | Sequence[str] = "topics", topics_separator: str = ""
) -> InputSettings | None:
    """Return the settings to read files by, given names of columns or fields.

    The arguments are those of `Corpus.from_records`. Return None if all of them have their defaults.
    """
    settings = InputSettings(topics_separator=topics_separator, text_fields=named_columns(text))
    if isinstance(topics, str):
        settings = settings._replace(topics_field=topics)
    else:
        settings = settings._replace(topic_fields=named_columns(topics))
    return None if settings == InputSettings() else settings


def stream_corpus(name_or_path: str, corpus_dir: str | Path | None = None, **options: Any) -> "ForkedCorpus | None":
    """Begin to read a corpus in another process, and return the object that receives its texts.

    The corpus arrives without its unused documents, which take time to be sent. Return None if the corpus is not a file
    on disk, if the file is too large, or if another process would be unsafe or no faster. `options` are further
    arguments of `open_corpus`. Nothing is downloaded.
    """
    path = locate_corpus(card(name_or_path), corpus_dir) if is_shipped(name_or_path) else expanded(name_or_path)
    if path is None or not path.is_file() or path.stat().st_size > _STREAMED_BYTES:
        return None
    from textcat.reading import read_forked

    def opened(**observers: Any) -> Corpus:
        corpus = open_corpus(name_or_path, corpus_dir, download=False, unused=False, **options, **observers)
        # Found and sent together with the corpus: the receiver still counts terms.
        _ = corpus.twins, corpus.n_repeats, corpus.train_dates
        return corpus

    return read_forked(opened)


def reopen_corpus(origin: Mapping[str, Any], **options: Any) -> Corpus:
    """Open a corpus again, given its `Corpus.origin` or `Tagger.origin`.

    `options` are further arguments of `open_corpus`. TextcatError is raised if the origin is not enough to open the
    corpus.
    """
    try:
        name_or_path = origin["name_or_path"]
        _settings_of(origin)
    except (KeyError, TypeError, AttributeError) as error:
        message = "The model does not say how to open the corpus it was trained on: name the corpus."
        raise TextcatError(message) from error
    return open_corpus(name_or_path, origin=origin, **options)


def settings_like(origin: Mapping[str, Any], name_or_path: str | Path) -> InputSettings | None:
    """Return the settings of reading that a `Corpus.origin` records, to read other data in the same way.

    Return None if it records none, or if `name_or_path` is a card or the name of one, as cards have their own settings.
    """
    is_described = is_shipped(str(name_or_path)) or Path(name_or_path).suffix == ".toml"
    return None if is_described or not origin.get("settings") else _settings_of(origin)


def _settings_of(origin: Mapping[str, Any]) -> InputSettings:
    return InputSettings.from_entries(origin.get("settings", {}))


def _locate(text: str) -> tuple[str, str]:
    """Return the path or URL of a corpus' data, and a name by which the corpus is opened from any folder.

    If `text` is the name of a corpus or the path of a card, the first value is "".
    """
    path = expanded(text)
    if is_url(text):
        return text, text
    if path.suffix == ".toml":
        return "", os.path.abspath(path)
    if not is_shipped(text):
        if path.exists() or matches(str(path)):
            return str(path), os.path.abspath(path)
        if path.suffix or path.name != text:
            raise TextcatError(f"There is no file or folder {text}.{similar_files(path)}")
    return "", text
