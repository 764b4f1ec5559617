"""Score a text that is much longer than the training documents in parts, and join the probabilities of the parts.

How often the text names a topic may count, too.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.features.rows import Rows
from textcat.features.tfidf import DOCUMENTS_PER_BLOCK
from textcat.features.zones import checked_documents, longest_zone, zones_of_document
from textcat.model.shortlist import NOT_LISTED
from textcat.reading.document import Document

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger

_BLANK = re.compile(r"\s")
_LEAST, _MOST = 1e-12, 1 - 1e-7  # probabilities are kept between these, so that log odds are finite in float32
# The first part of a text says most. Roots of probabilities favour topics of several parts over those of one. Both were
# chosen on 1,013 questions to librarians in Finnish, and rank the subjects of 1,500 abstracts in English better, too.
_OF_FIRST = 2.0


class Scored(NamedTuple):
    """Hold the scores of documents, and which of them have a term that the model knows: others give no evidence."""

    scores: np.ndarray  # shape (n_documents, n_topics), float32
    has_terms: np.ndarray  # shape (n_documents,), bool


class Part(NamedTuple):
    """Hold one part of a long document: a piece of each zone that is so long, and where these pieces start.

    Texts are in the normal form in which they are read (see `Tokens`).
    """

    document: Document
    starts: dict[str, int]  # the position of each piece in the text of its zone


def are_long(tagger: "Tagger", documents: Iterable[Any]) -> np.ndarray:
    """Return for each document whether the tagger scores it in parts: a bool array.

    It does so if a zone that it reads has more than `Tagger.part_length` characters in the form in which it is read.
    """
    length, features = tagger.part_length, tagger.features
    if not length:
        return np.array([False for _ in documents], bool)
    texts = (zones_of_document(document, i) for i, document in enumerate(documents))
    return np.array([longest_zone(zones, features.zones, features.tokens_) > length for zones in texts], bool)


def runs_of_documents(tagger: "Tagger", documents: Iterable[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """Yield the documents in order: lists of documents to score as a whole (False), or of long documents (True)."""
    stream = checked_documents(documents)
    while block := list(islice(stream, DOCUMENTS_PER_BLOCK)):
        long = are_long(tagger, block)
        edges = [0, *(np.flatnonzero(long[1:] != long[:-1]) + 1).tolist(), len(block)]
        for start, end in pairwise(edges):
            yield bool(long[start]), block[start:end]


def cut(text: str, length: int) -> list[int]:
    """Return where the fewest parts of at most about `length` characters start that are of nearly equal length.

    A part ends at the first white space behind its share of the text; in a script without white space, at its share.
    """
    n = max(1, -(-len(text) // length))
    shares = [i * len(text) // n for i in range(n + 1)]
    starts = [0]
    for start, end in pairwise(shares[1:]):
        blank = _BLANK.search(text, start, end)
        starts.append(blank.end() if blank else start)
    return starts


def parts_of_document(tagger: "Tagger", document: Any) -> list[Part]:
    """Divide a document into parts: the i-th part has the i-th piece of each zone that has so many."""
    length, as_read = tagger.part_length, tagger.features.tokens_.as_read
    zones = {zone: as_read(text) for zone, text in zones_of_document(document, 0).items()}
    starts = {zone: cut(text, length) for zone, text in zones.items()}
    ends = {zone: [*starts[zone][1:], len(text)] for zone, text in zones.items()}
    parts = []
    for i in range(max(map(len, starts.values()), default=0)):
        pieces = {zone: zones[zone][starts[zone][i] : ends[zone][i]] for zone in zones if i < len(starts[zone])}
        parts.append(Part(Document("", pieces), {zone: starts[zone][i] for zone in pieces}))
    return parts


def rows_of_parts(tagger: "Tagger", parts: list[Part]) -> Rows:
    """Return a row for each part of a document."""
    features = tagger.features
    return features.rows_of_counts(*features.counted_texts([part.document for part in parts]))


def probabilities_of_parts(tagger: "Tagger", rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for blocks of parts the columns of the listed topics, and their probabilities: (n_parts, size).

    A column is -1, and its probability 0, where fewer topics are listed.
    """
    shortlist, calibration = tagger.shortlist, tagger.calibration
    assert shortlist is not None
    assert calibration is not None
    for start in range(0, len(rows.indptr) - 1, DOCUMENTS_PER_BLOCK):
        indptr = rows.indptr[start : start + DOCUMENTS_PER_BLOCK + 1]
        data = rows.data[indptr[0] : indptr[-1]].astype(np.float32, copy=False)
        block = Rows(indptr - indptr[0], rows.indices[indptr[0] : indptr[-1]], data)
        listed, scores = shortlist.listed_scores(block, tagger.weights, tagger.bias)
        curves = calibration.of_topics(listed.ravel())
        probabilities = curves.probabilities(scores.ravel()).reshape(listed.shape)
        yield listed, np.where(listed < 0, 0.0, probabilities)


def occurrences_of_names(tagger: "Tagger", document: Any) -> np.ndarray | None:
    """Return how often a document names each topic, in the zones that the tagger reads: shape (n_topics,), int64.

    None is returned if names do not count.
    """
    if not tagger.name_weight:
        return None
    used = tagger.features.zones
    texts = [text for zone, text in zones_of_document(document, 0).items() if used is None or zone in used]
    return tagger.names_in_texts.counts(texts)


def log_odds_of_names(tagger: "Tagger", occurrences: np.ndarray | None) -> np.ndarray:
    """Return what `occurrences_of_names` add to the log odds of a long document: shape (n_topics,)."""
    return np.zeros(len(tagger.topics)) if occurrences is None else tagger.name_weight * np.log1p(occurrences)


def scores_of_parts(tagger: "Tagger", rows: Rows, of_names: np.ndarray) -> np.ndarray:
    """Return the scores of a long document for every topic, given the rows of its n parts: shape (n_topics,), float32.

    The probability of a score is ``1 - (1 - m)^n`` with ``m = ((2 √p_1 + √p_2 + … + √p_n) / (n + 1))²``, where p_i is
    the probability of part i, or 0 if the part does not list the topic. `of_names` is added to the log odds of this
    probability: see `log_odds_of_names`. A topic that no part lists is not listed.
    """
    n_topics, n, start = len(tagger.topics), len(rows.indptr) - 1, 0
    total = np.zeros(n_topics)
    for listed, probabilities in probabilities_of_parts(tagger, rows):
        roots = np.sqrt(probabilities)
        if start == 0:
            roots[0] *= _OF_FIRST
        start, is_listed = start + len(listed), listed >= 0
        total += np.bincount(listed[is_listed], roots[is_listed], minlength=n_topics)
    joined = -np.expm1(n * np.log1p(-np.minimum((total / (n - 1 + _OF_FIRST)) ** 2, _MOST)))
    joined = np.clip(joined, _LEAST, _MOST)
    curves = tagger.calibration
    assert curves is not None
    slope = np.where(curves.a > 0, curves.a, 1.0)  # a flat curve has one probability: any score has it
    scores = (np.log(joined / (1 - joined)) + of_names - curves.b) / slope
    return np.where(total > 0, np.maximum(scores, NOT_LISTED + 1), NOT_LISTED).astype(np.float32)


def score_blocks(tagger: "Tagger", documents: Iterable[Any]) -> Iterator[Scored]:
    """Yield the scores of documents for every topic in blocks; long documents are scored in parts."""
    if not tagger.part_length:
        yield from (_scored(tagger, rows) for rows in tagger.features.row_blocks(documents))
        return
    for are_in_parts, run in runs_of_documents(tagger, documents):
        if are_in_parts:
            yield from (score_long_document(tagger, document) for document in run)
        else:
            yield from (_scored(tagger, rows) for rows in tagger.features.row_blocks(run))


def _scored(tagger: "Tagger", rows: Rows) -> Scored:
    return Scored(tagger.score_rows(rows), rows.has_terms)


def score_long_document(tagger: "Tagger", document: Any) -> Scored:
    """Return the scores of a long document for every topic, scored in parts."""
    rows = rows_of_parts(tagger, parts_of_document(tagger, document))
    scores = scores_of_parts(tagger, rows, log_odds_of_names(tagger, occurrences_of_names(tagger, document)))
    return Scored(scores[None], np.array([rows.has_terms.any()]))
