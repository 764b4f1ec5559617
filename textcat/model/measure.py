"""Measure a tagger on a corpus: with few topics, each topic's ranking; with many, each document's first topics."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.evaluation.at_k import KS, MANY_TOPICS, evaluate_at_k
from textcat.evaluation.evaluation import Evaluation, MeasuredOn, evaluate
from textcat.features.rows import Rows
from textcat.model.selection import first_topics
from textcat.progress import Advance, Stages, advance_over

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from textcat.model.tagger import Tagger

_log = logging.getLogger(__name__)
CELLS_AT_ONCE = 1 << 24  # scores held at the same time while measuring many topics: 64 MB


def evaluate_tagger(
    tagger: "Tagger", corpus: Corpus, *, bands: str | Iterable[str] | None = None, stages: Stages | None = None
) -> Evaluation:
    """Measure the ranking of a corpus' test documents: see `Tagger.evaluate`."""
    corpus = with_test_documents(tagger, corpus)
    if not corpus.test:
        return _kept_evaluation(tagger, corpus, bands)
    if not relevant_topics(tagger, corpus).nnz:
        theirs = sorted({topic for document in corpus.test for topic in document.topics})
        raise TextcatError(
            f"No test document of corpus {corpus.name} has a topic of the model (such as {tagger.topics[0]!r}): "
            + (f"they have other ones, such as {theirs[0]!r}; " if theirs else "they have no topics at all; ")
            + "name the corpus that the model was trained on, or one with its topics."
        )
    with (stages or Stages()).stage("evaluate", len(corpus.test)) as advance:
        documents = advance_over(corpus.test, advance)
        scores = _score_blocks(tagger, documents) if has_many_topics(tagger) else tagger.scores(documents)
        return measure_test_documents(tagger, corpus, scores, bands=bands)


def measure_test_documents(
    tagger: "Tagger",
    corpus: Corpus,
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    *,
    bands: str | Iterable[str] | None = None,
) -> Evaluation:
    """Measure scores of a corpus's test documents; topics that the tagger does not know count as not found."""
    unknown = [len({*document.topics} - {*tagger.topics}) for document in corpus.test]
    unjudged = _with_topics_of(tagger, corpus).unjudged(corpus.test)
    relevant = relevant_topics(tagger, corpus)
    return measure_scores(
        tagger, scores, relevant, bands=bands, n_unknown=np.array(unknown, np.int64), unjudged=unjudged
    )


def measure_scores(
    tagger: "Tagger",
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    relevant: Any,
    *,
    bands: str | Iterable[str] | None = None,
    n_unknown: NDArray[Any] | None = None,
    measured_on: MeasuredOn = MeasuredOn.TEST,
    unjudged: Any = None,
) -> Evaluation:
    """Measure scores of documents and the tagger's decisions on them.

    With many topics, scores may come in blocks, and `n_unknown` has each document's number of unknown topics: see
    `textcat.evaluate_at_k`. Documents that were not judged for a topic, according to `unjudged`, rank last for it and
    count as irrelevant, so the topic is measured on the other documents.
    """
    if has_many_topics(tagger):
        options: dict[str, Any] = {"n_unknown": n_unknown, "measured_on": measured_on, "unjudged": unjudged}
        return measure_at_k(tagger, scores, relevant, bands=bands, **options)
    assert isinstance(scores, np.ndarray)
    return evaluate(
        _last_unjudged(scores, unjudged),
        relevant,
        tagger.topics,
        tagger.train_sizes,
        tagger.train_documents,
        spec=bands,
        threshold=tagger.cut_scores(scores),
        facts=tagger.facts,
        measured_on=measured_on,
    )


def measure_at_k(
    tagger: "Tagger",
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    relevant: Any,
    *,
    bands: str | Iterable[str] | None = None,
    unjudged: Any = None,
    **options: Any,
) -> Evaluation:
    """Measure the first topics of each document; scores may come in blocks, options are those of `evaluate_at_k`."""
    blocks = _without_unjudged([scores] if isinstance(scores, np.ndarray) else scores, unjudged)
    top = (first_topics(tagger, block, max(KS)) for block in blocks)
    sizes = tagger.train_sizes, tagger.train_documents
    return evaluate_at_k(top, relevant, tagger.topics, *sizes, spec=bands, **options)


def score_rows(
    tagger: "Tagger", rows: "csr_matrix", advance: Advance = lambda n: None
) -> NDArray[Any] | Iterator[NDArray[Any]]:
    """Return the scores of rows as an array, or with many topics as an iterator of blocks, which calls `advance`."""
    return score_row_blocks(tagger, rows, advance) if has_many_topics(tagger) else tagger.score_rows(Rows.of(rows))


def score_row_blocks(tagger: "Tagger", rows: "csr_matrix", advance: Advance = lambda n: None) -> Iterator[NDArray[Any]]:
    """Yield the scores of rows block by block, because those of all rows and many topics would not fit into memory."""
    n = max(CELLS_AT_ONCE // len(tagger.topics), 1)
    for start in range(0, rows.shape[0], n):
        block = rows[start : start + n]
        yield tagger.score_rows(Rows.of(block))
        advance(block.shape[0])


def _score_blocks(tagger: "Tagger", documents: Iterable[Document]) -> Iterator[NDArray[Any]]:
    stream, n = iter(documents), max(CELLS_AT_ONCE // len(tagger.topics), 1)
    return map(tagger.scores, iter(lambda: list(islice(stream, n)), []))


def has_many_topics(tagger: "Tagger") -> bool:
    """Return whether a tagger has so many topics that it is measured by the first topics of each document."""
    return len(tagger.topics) >= MANY_TOPICS


def with_test_documents(tagger: "Tagger", corpus: Corpus) -> Corpus:
    """Return a corpus with all documents in its test part, if it has none and the tagger was not trained on it."""
    if corpus.test or was_trained_on(tagger, corpus):
        return corpus
    source = corpus.origin.get("name_or_path")
    if source and source == tagger.origin.get("name_or_path"):
        _log.warning(
            "The model was trained on documents of %s, so these figures are too good: measure it on others, or "
            "name no corpus, to measure it as after its training.",
            corpus.name,
        )
    return replace(corpus, train=[], test=corpus.train)


def was_trained_on(tagger: "Tagger", corpus: Corpus) -> bool:
    """Return whether a corpus has the name, the topics and the number of documents of a tagger's training corpus."""
    trained_on = tagger.corpus, tagger.topics, tagger.train_documents
    return trained_on == (corpus.name, corpus.topics, len(corpus.train))


def relevant_topics(tagger: "Tagger", corpus: Corpus) -> Any:
    """Return the tagger's topics of each test document: a sparse 0/1 matrix (n_test_documents, n_topics)."""
    return _with_topics_of(tagger, corpus).labels(corpus.test)


def _with_topics_of(tagger: "Tagger", corpus: Corpus) -> Corpus:
    return Corpus(corpus.name, corpus.train, corpus.test, tagger.topics)


def _kept_evaluation(tagger: "Tagger", corpus: Corpus, spec: str | Iterable[str] | None) -> Evaluation:
    """Return the evaluation that is stored in the tagger; raise TextcatError if it is not of this corpus."""
    kept = tagger.evaluation
    if kept is None or not was_trained_on(tagger, corpus):
        raise TextcatError(
            f"Corpus {corpus.name} has no test documents to evaluate on: name another file of labelled "
            "documents, give some the split 'test', or set some aside (--test-size, Corpus.split)."
        )
    names = [row.band for row in kept.bands]
    if spec is not None and [spec] != names and [*spec] != names:
        raise TextcatError(
            f"The corpus has no test documents, and what was measured after training on {kept.measured_on} "
            f"was kept of {', '.join(names)} alone: train again with other bands."
        )
    return kept


def _without_unjudged(blocks: Iterable[NDArray[Any]], unjudged: Any) -> Iterator[NDArray[Any]]:
    """Yield blocks of scores, with -inf where a document was not judged for a topic."""
    start, by_document = 0, None if unjudged is None else unjudged.tocsr()
    for block in blocks:
        if by_document is not None:
            of_block = by_document[start : start + len(block)].tocoo()
            block, start = block.copy(), start + len(block)
            block[of_block.row, of_block.col] = -np.inf
        yield block


def _last_unjudged(scores: NDArray[Any], unjudged: Any) -> NDArray[Any]:
    """Return scores that are below all others wherever a document was not judged for the topic.

    Neither average precision nor F1 depends on documents that are not relevant and rank last.
    """
    if unjudged is None:
        return scores
    cells, scores = unjudged.tocoo(), scores.copy()
    scores[cells.row, cells.col] = np.inf
    lowest = scores.min(axis=0, initial=np.inf)
    below = np.nextafter(np.where(np.isfinite(lowest), lowest, 0).astype(scores.dtype), scores.dtype.type(-np.inf))
    scores[cells.row, cells.col] = below[cells.col]
    return scores
