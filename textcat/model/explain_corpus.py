"""Explain the topics of many documents."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError
from textcat.base.frames import Frame, named_columns
from textcat.corpus.cards import is_shipped
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.model import storage
from textcat.model.explain import Explanation
from textcat.model.tagger import Tagger
from textcat.reading import InputSettings, Record, Rejection, document_stream, read_records


class Explained(NamedTuple):
    """A document with the explanations of some of its topics.

    The document has an `id`, and its texts by zone in `zones`.
    """

    document: Document | Record
    explanations: list[Explanation]


def explain(
    model: Tagger | str | Path,
    corpus: Any,
    topics: str | Sequence[str] | None = None,
    n: int | None = 10,
    *,
    text: str | Sequence[str] | None = None,
) -> list[Explained]:
    """Explain why documents have, or do not have, topics.

    Parameters
    ----------
    model : Tagger, str or Path
        A tagger, or the folder of one.
    corpus : Corpus, DataFrame, iterable of dict, str or Document, str or Path
        The documents: a corpus (its test documents or, if it has none, its training documents); a table of pandas or
        polars, or a column of texts; records, texts or documents; or the name or the path of a corpus. The documents
        need no topics.
    topics : str or sequence of str, optional
        Ids or names of the topics; by default, the tags of each document.
    n : int or None, default=10
        The number of terms to list, those that change the score most; None: all.
    text : str or sequence of str, optional
        The columns or fields that hold the text, as for `Tagger.scores`.

    Returns
    -------
    list of Explained
        For each document: its id (the index of a table; for texts, a number from 0), its texts, and an `Explanation` of
        each topic.

    Raises
    ------
    TextcatError
        If the model or the documents cannot be read, or the model has no such topic.
    """
    tagger = model if isinstance(model, Tagger) else storage.load(model)
    chosen = [topics] if isinstance(topics, str) else topics
    return [
        Explained(document, tagger.explain_all(document, chosen, n))
        for document in documents_to_explain(tagger, corpus, text)
    ]


def documents_to_explain(tagger: Tagger, source: Any, text: str | Sequence[str] | None) -> Iterator[Document | Record]:
    """Return an iterator over the documents of a corpus, table, iterable, name or path: see `explain`."""
    if isinstance(source, str | Path):
        settings = InputSettings(text_fields=named_columns(text))
        return read_unlabelled(str(source), settings, tagger.decisions.read_fields)
    if isinstance(source, Corpus):
        if text is not None:
            raise TextcatError(
                f"Corpus {source.name} has its texts already: leave out the columns of a table, {text!r}."
            )
        return iter(source.test or source.train)
    frame = Frame.of(source)
    documents = enumerate(document_stream(source, text, tagger.facts.text_columns))
    names = None if frame is None else frame.row_names
    return (_named(document, str(number) if names is None else names[number]) for number, document in documents)


def _named(document: Any, name: str) -> Document:
    if isinstance(document, str):
        return Document(name, {"body": document})
    about = {fact: getattr(document, fact) for fact in ("date", "fields", "language") if hasattr(document, fact)}
    return Document(getattr(document, "id", "") or name, document.zones, **about)


def read_unlabelled(name_or_path: str, settings: InputSettings, fields: tuple[str, ...]) -> Iterator[Document | Record]:
    """Yield documents of a corpus, given its name or card, or of files at a path or URL; labels are ignored.

    For a corpus, the test documents are read or, if it has none, the training documents; records of files keep the
    further fields `fields`. TextcatError is raised if a document cannot be read.
    """
    if is_shipped(name_or_path) or name_or_path.endswith(".toml"):
        corpus = open_corpus(name_or_path, settings=None if settings == InputSettings() else settings)
        yield from corpus.test or corpus.train
        return
    for record in read_records([name_or_path], settings._replace(fields=fields)):
        if isinstance(record, Rejection):
            raise TextcatError(str(record))
        yield record
