"""Measure a tagger on a corpus: the ranking of each topic or, with many topics, each document's top-ranked topics."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError
from textcat.base.progress import Advance, Stages, advance_over
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.at_k import KS, evaluate_at_k
from textcat.evaluation.bands import MANY_TOPICS
from textcat.evaluation.evaluation import BandQuality, Evaluation, MeasuredOn, evaluate_scores
from textcat.evaluation.promises import check_promises
from textcat.features.rows import Rows
from textcat.model.tagger import Tagger
from textcat.model.topic_names import facts_with_names

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_log = logging.getLogger(__name__)
# share of the test documents up to which twins are ignored, because they change measures by less than the intervals
_FEW_TWINS = 0.05
CELLS_AT_ONCE = 1 << 24  # number of scores in memory at the same time while measuring many topics: 64 MB


def evaluate_tagger(
    tagger: Tagger,
    corpus: Corpus,
    *,
    bands: str | Iterable[str] | None = None,
    stages: Stages | None = None,
) -> Evaluation:
    """Measure a tagger on the test documents of a corpus; if it has none, return the stored evaluation of training."""
    if not corpus.test:
        return _stored_evaluation(tagger, corpus, bands)
    expected = expected_topics(tagger, corpus)
    if not expected.relevant.nnz:
        theirs = sorted({topic for document in corpus.test for topic in document.topics})
        if hint := corpus.unlabelled:
            raise TextcatError(f"No test document of corpus {corpus.name} has a topic, as {hint}.")
        raise TextcatError(
            f"No test document of corpus {corpus.name} has a topic of the model (such as {tagger.topics[0]!r}): "
            + (f"they have other ones, such as {theirs[0]!r}; " if theirs else "they have no topics at all; ")
            + "name the corpus that the model was trained on, or one with its topics."
        )
    with (stages or Stages()).stage("evaluate", len(corpus.test)) as advance:
        documents = advance_over(corpus.test, advance)
        scores: Any
        if has_many_topics(tagger):
            scores, has_terms = _score_blocks(tagger, documents), None
        else:
            scores, has_terms = tagger.scored(documents)
        return measure_test_documents(tagger, expected, scores, has_terms, bands=bands)


class Expected(NamedTuple):
    """The labels of test documents, for a tagger's topics."""

    relevant: Any  # sparse 0/1 matrix (n_test_documents, n_topics)
    # number of topics of each document that the tagger lacks: with many topics, they count as not found
    n_unknown: NDArray[np.int64]
    unjudged: Any  # as `Corpus.unjudged` returns it
    twins: NDArray[np.bool_]  # `Corpus.twins`


def expected_topics(tagger: Tagger, corpus: Corpus) -> Expected:
    """Return the labels of a corpus' test documents, for a tagger's topics."""
    known, with_topics = frozenset(tagger.topics), _with_topics_of(tagger, corpus)
    return Expected(
        with_topics.labels(corpus.test),
        np.array([len({*document.topics} - known) for document in corpus.test], np.int64),
        with_topics.unjudged(corpus.test),
        corpus.twins,
    )


def measure_test_documents(
    tagger: Tagger,
    expected: Expected,
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    has_terms: NDArray[np.bool_] | None = None,
    *,
    bands: str | Iterable[str] | None = None,
) -> Evaluation:
    """Measure a tagger by its scores of a corpus' test documents; see `measure_scores`.

    If at least one of twenty test documents repeats a training document, warn of these twins, and measure the other
    documents by themselves, too; with many topics, whose scores come in blocks, twins are only counted.
    """
    relevant, unknown, unjudged, twins = expected
    is_ranked = not has_many_topics(tagger)
    options: dict[str, Any] = {"bands": bands, "unjudged": unjudged}
    measured = measure_scores(tagger, scores, relevant, has_terms=has_terms, n_unknown=unknown, **options)
    n = int(twins.sum())
    if n < max(1, _FEW_TWINS * len(twins)):
        return measured
    rows: tuple[BandQuality, ...] = ()
    if isinstance(scores, np.ndarray) and is_ranked:
        others = np.flatnonzero(~twins)
        if relevant[others].nnz:
            options["unjudged"] = None if unjudged is None else unjudged[others]
            options["has_terms"] = None if has_terms is None else has_terms[others]
            rows = measure_scores(tagger, scores[others], relevant[others], **options).bands
    _warn_of_twins(f"{n:,} of {len(twins):,} test documents repeat training documents", measured.bands[0], rows)
    return replace(measured, twins=n, without_twins=rows)


def _warn_of_twins(sentence: str, with_twins: BandQuality, without_twins: Sequence[BandQuality]) -> None:
    if without_twins:
        names = ("macro_average_precision", "macro_f1", "micro_f1")
        with_, without = ([_rounded(band[name]) for name in names] for band in (with_twins, without_twins[0]))
        sentence += f"; without these, MAP is {without[0]}, macro F1 {without[1]} and micro F1 {without[2]}"
        sentence += f", instead of {with_[0]}, {with_[1]} and {with_[2]}"
    _log.warning(
        "%s (docs/how-to/duplicates.md); a test part of one's own is drawn without twins by --keep-groups.", sentence
    )


def _rounded(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".removeprefix("0")


def measure_scores(
    tagger: Tagger,
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    relevant: Any,
    *,
    bands: str | Iterable[str] | None = None,
    has_terms: NDArray[np.bool_] | None = None,
    n_unknown: NDArray[Any] | None = None,
    measured_on: MeasuredOn = MeasuredOn.TEST,
    unjudged: Any = None,
) -> Evaluation:
    """Measure a tagger by its scores of documents, and by its decisions on the documents.

    With many topics, `scores` may be an iterable of arrays, for some documents each, and `n_unknown` has each
    document's number of unknown topics: see `textcat.evaluate_at_k`. Documents that were not judged for a topic,
    according to `unjudged`, rank last for it and count as irrelevant, so the topic is measured on the other documents.
    `has_terms` is as in `Tagger.select`.
    """
    if has_many_topics(tagger):
        return measure_at_k(
            tagger, scores, relevant, bands=bands, n_unknown=n_unknown, measured_on=measured_on, unjudged=unjudged
        )
    assert isinstance(scores, np.ndarray)
    facts = facts_with_names(tagger.facts.per_topic, tagger.topics, tagger.topic_names)
    threshold = tagger.decisions.cut_scores(scores)
    ranked = _last_unjudged(scores, unjudged, threshold)
    measured = evaluate_scores(
        ranked,
        relevant,
        tagger.topics,
        tagger.facts.train_sizes,
        tagger.facts.train_documents,
        spec=bands,
        threshold=threshold,
        has_terms=None if tagger.decisions.single else has_terms,
        facts=facts,
        measured_on=measured_on,
    )
    # Out-of-fold scores are not used: the promises were made from them.
    if (promises := tagger.decisions.promises) is None or measured_on is not MeasuredOn.TEST:
        return measured
    given = tagger.decisions.without_rules.decide(ranked, has_terms)
    missed = tagger.facts.recipe.promise.missed
    return replace(measured, promises=check_promises(promises, tagger.topics, ranked, relevant, given, missed))


def measure_at_k(
    tagger: Tagger,
    scores: NDArray[Any] | Iterable[NDArray[Any]],
    relevant: Any,
    *,
    bands: str | Iterable[str] | None = None,
    unjudged: Any = None,
    **options: Any,
) -> Evaluation:
    """Measure the top-ranked topics of each document; `scores` may be an iterable of arrays for some documents each.

    The `options` are arguments of `evaluate_at_k`.
    """
    blocks = without_unjudged([scores] if isinstance(scores, np.ndarray) else scores, unjudged)
    top = (tagger.decisions.first_topics(block, max(KS)) for block in blocks)
    sizes = tagger.facts.train_sizes, tagger.facts.train_documents
    return evaluate_at_k(top, relevant, tagger.topics, *sizes, spec=bands, **options)


def score_rows(
    tagger: Tagger, rows: "csr_matrix", advance: Advance = lambda n: None
) -> NDArray[Any] | Iterator[NDArray[Any]]:
    """Return the scores of document vectors (`rows`) as an array or, with many topics, an iterator over blocks of it.

    The iterator calls `advance` with the number of rows of each block.
    """
    return score_row_blocks(tagger, rows, advance) if has_many_topics(tagger) else tagger.scorer.scores(Rows.of(rows))


def score_row_blocks(tagger: Tagger, rows: "csr_matrix", advance: Advance = lambda n: None) -> Iterator[NDArray[Any]]:
    """Yield the scores of document vectors (`rows`) in blocks, as those for many topics would not fit into memory.

    After each block, `advance` is called with the number of its rows.
    """
    n = max(CELLS_AT_ONCE // len(tagger.topics), 1)
    for start in range(0, rows.shape[0], n):
        block = rows[start : start + n]
        yield tagger.scorer.scores(Rows.of(block))
        advance(block.shape[0])


def _score_blocks(tagger: Tagger, documents: Iterable[Document]) -> Iterator[NDArray[Any]]:
    stream, n = iter(documents), max(CELLS_AT_ONCE // len(tagger.topics), 1)
    return map(tagger.scores, iter(lambda: list(islice(stream, n)), []))


def has_many_topics(tagger: Tagger) -> bool:
    """Return whether a tagger is measured by the top-ranked topics of each document, because it has many topics.

    A tagger with fewer topics is measured by the ranking of each topic.
    """
    return len(tagger.topics) >= MANY_TOPICS


def no_test_documents(corpus_name: str) -> TextcatError:
    """Return the error that a corpus has no test documents."""
    return TextcatError(
        f"Corpus {corpus_name} has no test documents to evaluate on: name another file of labelled documents, give "
        "some the split 'test', or set some aside (--test-size, Corpus.split)."
    )


def was_trained_on(tagger: Tagger, corpus: Corpus) -> bool:
    """Return whether a corpus has the name, topics and number of documents of the tagger's training corpus."""
    trained_on = tagger.facts.corpus, tagger.topics, tagger.facts.train_documents
    return trained_on == (corpus.name, corpus.topics, len(corpus.train))


def relevant_topics(tagger: Tagger, corpus: Corpus) -> Any:
    """Return the labels of the test documents, for the tagger's topics: sparse, 0/1, (n_test_documents, n_topics)."""
    return _with_topics_of(tagger, corpus).labels(corpus.test)


def _with_topics_of(tagger: Tagger, corpus: Corpus) -> Corpus:
    return Corpus(corpus.name, corpus.train, corpus.test, tagger.topics)


def _stored_evaluation(tagger: Tagger, corpus: Corpus, spec: str | Iterable[str] | None) -> Evaluation:
    """Return the evaluation stored in the tagger.

    Raise TextcatError if there is none, or if it was made for other bands (sets of topics to average over) than `spec`
    asks for.
    """
    kept = tagger.evaluation
    if kept is None:
        raise no_test_documents(corpus.name)
    names = [row.band for row in kept.bands]
    if spec is not None and [spec] != names and [*spec] != names:
        raise TextcatError(
            f"The corpus has no test documents, and what was measured after training on {kept.measured_on} "
            f"was kept of {', '.join(names)} alone: train again with other bands."
        )
    return kept


def without_unjudged(blocks: Iterable[NDArray[Any]], unjudged: Any) -> Iterator[NDArray[Any]]:
    """Yield blocks of scores (n_documents, n_topics), with -inf where a document was not judged for a topic."""
    start, by_document = 0, None if unjudged is None else unjudged.tocsr()
    for block in blocks:
        if by_document is not None:
            of_block = by_document[start : start + len(block)].tocoo()
            block, start = block.copy(), start + len(block)
            block[of_block.row, of_block.col] = -np.inf
        yield block


def _last_unjudged(scores: NDArray[Any], unjudged: Any, threshold: NDArray[Any]) -> NDArray[Any]:
    """Return scores in which documents that were not judged for a topic rank last for this topic, and do not get it.

    Average precision and F1 do not change with the number of irrelevant documents that rank last, without the topic.
    `unjudged` is a matrix (n_documents, n_topics) that is not 0 where a document was not judged; None: all were judged.
    `threshold` is as in `evaluate_scores`.
    """
    if unjudged is None:
        return scores
    cells, scores = unjudged.tocoo(), scores.copy()
    scores[cells.row, cells.col] = np.inf
    lowest = scores.min(axis=0, initial=np.inf)
    lowest = np.where(np.isfinite(lowest), lowest, 0).astype(scores.dtype)[cells.col]
    least = np.broadcast_to(threshold, scores.shape)[cells.row, cells.col].astype(scores.dtype)
    scores[cells.row, cells.col] = np.nextafter(np.minimum(lowest, least), scores.dtype.type(-np.inf))
    return scores
