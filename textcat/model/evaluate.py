"""Evaluate a model: load it, open a corpus, and choose the documents to measure it on."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from textcat.base.frames import is_table
from textcat.base.progress import Stages
from textcat.corpus.cards import is_shipped
from textcat.corpus.catalogue import SPLIT, corpus_of
from textcat.corpus.documents import RECORDS, TABLE, Corpus, Document, topic_counts
from textcat.corpus.fetch import warn_once
from textcat.evaluation.evaluation import Evaluation
from textcat.model import storage
from textcat.model.measure import evaluate_tagger, no_test_documents, was_trained_on
from textcat.model.tagger import Tagger
from textcat.reading.in_memory import as_documents
from textcat.reading.labels import folded_name

_log = logging.getLogger(__name__)
_SEPARATORS = (";", "|", ",", "/", " ")  # separator of topics in one string


def evaluate(
    model: Tagger | str | Path,
    corpus: Any,
    *,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    bands: str | Iterable[str] | None = None,
    stages: Stages | None = None,
) -> Evaluation:
    """Measure a model on labelled documents.

    With fewer than 1,000 topics, the ranking of documents for each topic and the decisions are measured. With more
    topics, the top-ranked topics of each document are measured, and topics that the model lacks count as not found.
    Bands (sets of topics to average over) are defined by the sizes of topics in training. House rules are not applied.

    If the documents have a test part, only the test part is measured, otherwise all documents are; but a table or
    records with a column or field `split` must have a test part. If `corpus` is the path of the corpus that the model
    was trained on, the test part that training set aside is measured. If `corpus` is a `Corpus` without a test part,
    and the model was trained on it, the stored evaluation is returned: its `measured_on` names the documents.

    Parameters
    ----------
    model : Tagger, str or Path
        A tagger, or the folder of one.
    corpus : Corpus, DataFrame, iterable of dict, str or Path
        The documents: a corpus, a table of pandas or polars, records, or the name or the path of a corpus.
    text, topics, topics_separator : str or sequence of str, str or sequence of str, str
        The columns or fields of the texts and topics, as for `textcat.train`.
    bands : str or iterable of str, optional
        As `spec` in `textcat.evaluate_scores`, or with many topics in `textcat.evaluate_at_k`.
    stages : Stages, optional
        Times the work, and draws its progress.

    Returns
    -------
    Evaluation

    Raises
    ------
    TextcatError
        If the model or the corpus cannot be read, no document has a topic of the model, or the corpus has no test
        documents and the model has no stored evaluation on it.
    """
    tagger = storage.load(model, with_rules=False) if isinstance(model, str | Path) else model
    corpus = corpus_to_measure(tagger, corpus, text=text, topics=topics, topics_separator=topics_separator)
    return evaluate_tagger(tagger, corpus, bands=bands, stages=stages)


def corpus_to_measure(tagger: Tagger, source: Any, **columns: Any) -> Corpus:
    """Return the corpus to measure a tagger on, given a corpus, a table, records, or the name or path of a corpus.

    Its test part is measured. If the source has none, all its documents become the test part, unless the tagger was
    trained on it: then it is returned as it is. `columns` are the arguments of `evaluate` that name columns. Log a
    warning if some of the documents are not measured, or if the tagger may have been trained on the documents.
    """
    called = "" if isinstance(source, Corpus) else str(source) if isinstance(source, str | Path) else "the table"
    if isinstance(source, Corpus | str | Path):
        corpus = corpus_of(source, tagger.facts.origin, **columns)
    else:
        corpus = _corpus_in_memory(tagger, source, **columns)
    if called and not is_shipped(called) and (said := measured_part(tagger, corpus, called)):
        _log.warning(said)
    return with_test_documents(tagger, corpus)


def _corpus_in_memory(tagger: Tagger, source: Any, **columns: Any) -> Corpus:
    """Return a corpus made from a table or records; if no document belongs to a part, all become its test part.

    Raise TextcatError if some belong to parts, but none to the test part.
    """
    documents = as_documents(source, trained_on=tagger.facts.text_columns, **columns)
    if tagger.facts.corpus in (TABLE, RECORDS) and _may_be_those_of_training(tagger, documents):
        _log.warning(
            "The model was trained on %s documents, with as many of each topic as these: if they are the same, the "
            "figures are too good, so measure it on others.",
            f"{len(documents):,}",
        )
    name = TABLE if is_table(source) else RECORDS
    if not any(document.split for document in documents):
        return Corpus(name, [], documents, ())
    tested = [document for document in documents if document.split == "test"]
    if not tested:
        raise no_test_documents(name)
    others = [document for document in documents if document.split in ("", "train")]
    return Corpus(name, others, tested, tuple(sorted(topic_counts(others))))


def _may_be_those_of_training(tagger: Tagger, documents: Sequence[Document]) -> bool:
    """Return whether there are as many documents, and as many of each of their topics, as a tagger was trained on."""
    counts, sizes = topic_counts(documents), dict(zip(tagger.topics, tagger.facts.train_sizes.tolist(), strict=True))
    shared = counts.keys() & sizes.keys()
    are_as_many = len(documents) == tagger.facts.train_documents
    return are_as_many and bool(shared) and all(counts[topic] == sizes[topic] for topic in shared)


def measured_part(tagger: Tagger, corpus: Corpus, called: str) -> str:
    """Return a sentence that names the measured part of a corpus; "" if the corpus has a single part.

    `called` is the corpus's name or path, which the sentence mentions.
    """
    if not (corpus.train and corpus.test):
        return ""
    own = tagger.facts.origin
    is_own = own.get("test_size") is not None and _are_alike(("name_or_path", *SPLIT), own, corpus.origin)
    set_aside = f" that training set aside (--test-size {own['test_size']:g})" if is_own else ""
    return (
        f"measured on the {len(corpus.test):,} test documents of {called}{set_aside}; "
        f"its {len(corpus.train):,} training documents are left out."
    )


def with_test_documents(tagger: Tagger, corpus: Corpus) -> Corpus:
    """Return a corpus whose test part is to be measured.

    If a corpus has no test documents, and the tagger was not trained on it, nor on it and on what it has learnt since,
    all its documents become the test part. Any other corpus is returned as it is. Warn if the tagger was probably
    trained on documents that are measured, or if their topics are written in another way than the tagger's.
    """
    if not corpus.test and was_trained_on(tagger, corpus):
        return corpus
    source, own, documents = corpus.origin, tagger.facts.origin, corpus.test or corpus.train
    is_own = bool(source.get("name_or_path")) and source["name_or_path"] == own.get("name_or_path")
    n_trained_on = _n_trained_on(tagger, corpus)
    if is_own and not corpus.test and tagger.evaluation is not None and n_trained_on == len(documents):
        return corpus
    _warn_of_topics_written_otherwise(tagger, documents)
    if not is_own:
        if n_trained_on:
            warn_once(
                f"The model {tagger.folder} was trained on {n_trained_on:,} of the {len(documents):,} documents of "
                f"{corpus.name}, so the figures are too good: measure it on others."
            )
    elif not corpus.test or not _are_alike(SPLIT, own, source):
        warn_once(
            f"The model was trained on documents of {corpus.name}, so these figures are too good: measure it on "
            "others, or name no corpus, to measure it as after its training."
        )
    elif own.get("test_size") is not None and len(corpus.train) > tagger.facts.train_documents:
        warn_once(
            f"Corpus {corpus.name} has {len(corpus.train):,} training documents, and the model was trained on "
            f"{tagger.facts.train_documents:,}: if documents were added since, its test part is another one, and these "
            "figures are too good; measure it on others."
        )
    return corpus if corpus.test else replace(corpus, train=[], test=corpus.train)


def _n_trained_on(tagger: Tagger, corpus: Corpus) -> int:
    """Return how many documents to measure on an updatable model was trained on, also by `learn`; 0 if unknown.

    Documents with the same words count as the same.
    """
    trained_on = np.zeros(0) if tagger.folder is None else storage.texts_trained_on(tagger.folder)
    if not len(trained_on):
        return 0
    sketches = corpus.sketches[len(corpus.train) if corpus.test else 0 :]
    return int(np.count_nonzero(np.isin(sketches["fingerprint"], trained_on) & (sketches["words"] > 0)))


def _are_alike(names: Iterable[str], origin: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(origin.get(name) == other.get(name) for name in names)


def _warn_of_topics_written_otherwise(tagger: Tagger, documents: Sequence[Document]) -> None:
    """Warn of unknown topics that join several of the tagger's, or look like one but for case."""
    unknown = {topic for document in documents for topic in document.topics}.difference(tagger.topics)
    alike = {folded_name(topic): topic for topic in tagger.topics}
    if several := sorted(topic for topic in unknown if folded_name(topic) in alike):
        warn_once(
            f"{len(several):,} topics of the documents to measure on, such as {several[0]!r}, differ from those of the "
            f"model, such as {alike[folded_name(several[0])]!r}, in case, Unicode form or invisible characters "
            "only, and do not count: if they are the same, write them in the same way."
        )
    known = set(tagger.topics)
    for sign in _SEPARATORS:
        joined = sorted(
            topic for topic in unknown if sign in topic and known.issuperset(map(str.strip, topic.split(sign)))
        )
        if joined:
            warn_once(
                f"{len(joined):,} topics of the documents to measure on, such as {joined[0]!r}, are several of the "
                f"model's, joined by {sign!r}: give --topics-separator {sign!r} (in Python topics_separator={sign!r})."
            )
            return
