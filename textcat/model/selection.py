"""Select the topics of documents by their scores, and compute the probability of each selected topic."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.calibration import Calibration, check_probability
from textcat.base.errors import TextcatError
from textcat.base.frames import Frame, empty_frame
from textcat.base.markup import html_table
from textcat.features.rows import Rows
from textcat.model import Reason
from textcat.model.scorer import highest_scores

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger

BATCH_DOCUMENTS = 4096  # the documents that are read at a time while tagging
_SHOWN = 20  # documents that a notebook shows
SCORE_BYTES = 16 << 20  # the most bytes of scores held in memory at a time


class Tag(NamedTuple):
    """A topic of a document, with its score (signed, unscaled), and its probability if the model is calibrated."""

    topic: str
    score: float
    probability: float | None = None


class Tags(list[list[Tag]]):
    """A list that has a list of tags for each document.

    Parameters
    ----------
    tags : iterable of list of Tag
    documents : iterable
        The documents that were tagged. If they are a table, `to_frame` makes a table of the same library and index.
    names : mapping of str to str
        The names of topics, by id.
    reasons : sequence of Reason or None
        For each document, why it gives no evidence for any topic; None where it gives some.
    """

    def __init__(
        self,
        tags: Iterable[list[Tag]],
        documents: Any = None,
        names: Mapping[str, str] | None = None,
        reasons: Iterable[Reason | None] = (),
    ):
        super().__init__(tags)
        self._frame, self._names, self.reasons = Frame.of(documents), dict(names or {}), [*reasons]

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return super().__repr__()
        return f"<Tags of {len(self):,} documents: {sum(map(len, self)):,} tags, of {sum(map(bool, self)):,} documents>"

    def _repr_html_(self) -> str:
        labels = [str(number) for number in range(len(self))] if self._frame is None else self._frame.row_names
        rows = ((label, ", ".join(map(self._shown, tags))) for label, tags in zip(labels[:_SHOWN], self, strict=False))
        below = f"<p>and {len(self) - _SHOWN:,} more documents</p>" if len(self) > _SHOWN else ""
        return html_table(("document", "topics"), rows, caption=f"Tags of {len(self):,} documents") + below

    def _shown(self, tag: Tag) -> str:
        certainty = f"score {tag.score:.3f}" if tag.probability is None else f"{tag.probability:.3f}"
        return f"{self._names.get(tag.topic, tag.topic)} ({certainty})"

    def to_frame(self) -> Any:
        """Return a table with a row per tag of a document, and columns for topic, name, score and probability.

        The table is of the library of the table that was tagged, otherwise of pandas. Its index is the document's; for
        polars, a column "index" has the number of each document, from 0. A document without topics has no row. If a
        topic has no name, the column "name" has the topic's id.
        """
        tags = list(chain.from_iterable(self))
        columns: dict[str, list[Any]] = {
            "topic": [tag.topic for tag in tags],
            "name": [self._names.get(tag.topic, tag.topic) for tag in tags],
            "score": [tag.score for tag in tags],
            "probability": [tag.probability for tag in tags],
        }
        return (self._frame or empty_frame(len(self))).long_answer(columns, list(map(len, self)))


class Selection(NamedTuple):
    """The options by which a document's topics are selected; `Tagger.select` explains each."""

    top: int | None = None
    all_topics: bool = False
    min_probability: float | None = None

    def checked(self) -> "Selection":
        """Return this selection; raise TextcatError if an option has a value that it cannot have.

        `top` and `all_topics` cannot be given together.
        """
        if self.top is not None and self.all_topics:
            raise TextcatError(f"Every topic and the {self.top} highest cannot be asked for together: choose one.")
        if self.top is not None and (not isinstance(self.top, Integral) or self.top < 1):
            raise TextcatError(f"The {self.top} highest topics cannot be given: ask for 1 or more.")
        if self.min_probability is not None:
            check_probability(self.min_probability)
        return self

    def likely(self, tags: list[list[Tag]]) -> list[list[Tag]]:
        """Return the tags of each document whose probability is at least `min_probability`; all tags if it is None."""
        if (least := self.min_probability) is None:
            return tags
        return [[tag for tag in tags_of_document if (tag.probability or 0) >= least] for tags_of_document in tags]


def n_held(tagger: "Tagger") -> int:
    """Return the number of documents to score at a time, at least 1, so that scores take at most `SCORE_BYTES`."""
    return max(1, min(BATCH_DOCUMENTS, SCORE_BYTES // (tagger.scorer.bias.itemsize * max(len(tagger.topics), 1))))


def reasons_of(has_terms: np.ndarray) -> list[Reason | None]:
    """Return for each document why it gives no evidence: None if it has a term that the model knows."""
    return [None if known else Reason.NO_KNOWN_TERM for known in has_terms.tolist()]


def tags_of_batches(
    tagger: "Tagger", batches: Iterable[Iterable[Any]], selection: Selection
) -> Iterator[tuple[list[Tag], Reason | None]]:
    """Yield the tags of each document, and why it gives no evidence; documents come and are scored in batches."""
    for batch in batches:
        for rows in _held_blocks(tagger, batch):
            tags = _tags_of_rows(tagger, rows, selection)
            yield from zip(tags, reasons_of(rows.has_terms), strict=True)


def _held_blocks(tagger: "Tagger", documents: Iterable[Any]) -> Iterator[Rows]:
    """Yield the rows of documents in blocks whose scores fit in memory."""
    step = n_held(tagger)
    for rows in tagger.features.row_blocks(documents):
        for start in range(0, len(rows.indptr) - 1, step):
            indptr = rows.indptr[start : start + step + 1]
            entries = slice(indptr[0], indptr[-1])
            yield Rows(indptr - indptr[0], rows.indices[entries], rows.data[entries])


def _tags_of_rows(tagger: "Tagger", rows: Rows, selection: Selection) -> list[list[Tag]]:
    has_terms = rows.has_terms
    if selection.top is None or tagger.single:
        return selected_tags(tagger, tagger.scorer.scores(rows), has_terms, selection)
    columns, values = tagger.scorer.top(rows, selection.top)
    n_documents, n = columns.shape
    tags = _tags(tagger, np.repeat(np.arange(n_documents), n), columns.ravel(), values.ravel(), n_documents)
    return _with_evidence(tagger, selection.likely(tags), has_terms)


def _with_evidence(tagger: "Tagger", tags: list[list[Tag]], has_terms: np.ndarray | None) -> list[list[Tag]]:
    """Return the tags, but none for documents without a known term, unless each document must have a topic."""
    if has_terms is None or tagger.single or has_terms.all():
        return tags
    return [tags_of_document if known else [] for tags_of_document, known in zip(tags, has_terms, strict=True)]


def selected_tags(
    tagger: "Tagger",
    scores: np.ndarray,
    has_terms: np.ndarray | None,
    selection: Selection,
) -> list[list[Tag]]:
    """Return the tags of documents, given their scores: see `Tagger.select`."""
    if selection.all_topics or selection.top:
        columns = first_topics(tagger, scores, selection.top)
        rows, columns = np.repeat(np.arange(len(scores)), columns.shape[1]), columns.ravel()
        tags = selection.likely(_tags(tagger, rows, columns, scores[rows, columns], len(scores)))
        return _with_evidence(tagger, tags, has_terms)
    if selection.min_probability is not None:
        tagger = tagger.with_min_probability(selection.min_probability)
    rows, columns = np.nonzero(tagger.decide(scores, has_terms))
    by_score = np.lexsort((columns, -scores[rows, columns], rows))
    rows, columns = rows[by_score], columns[by_score]
    return _tags(tagger, rows, columns, scores[rows, columns], len(scores))


def _tags(
    tagger: "Tagger", rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_documents: int
) -> list[list[Tag]]:
    unlisted = values <= tagger.scorer.unlisted_score
    if unlisted.any():  # such topics have neither score nor probability
        rows, columns, values = rows[~unlisted], columns[~unlisted], values[~unlisted]
    probabilities: Iterable[float | None] = repeat(None)
    if tagger.calibration is not None:
        probabilities = tagger.calibration.of_topics(columns).probabilities(values).tolist()
    names = map(tagger.topics.__getitem__, columns.tolist())
    tags = list(map(Tag, names, values.tolist(), probabilities))
    ends = np.cumsum(np.bincount(rows, minlength=n_documents)).tolist()
    return [tags[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def first_topics(tagger: "Tagger", scores: np.ndarray, n: int | None) -> np.ndarray:
    """Return the columns of each document's n best topics, the best first; of all topics if n is None.

    Topics of equal scores keep their order.
    """
    values = comparable(tagger, scores)
    return highest_scores(values, values.shape[1] if n is None else n)[0]


def comparable(tagger: "Tagger", scores: np.ndarray) -> np.ndarray:
    """Return values by which a document's topics are ranked: scores, or log odds if each document gets one topic."""
    if not tagger.single or tagger.calibration is None:
        return scores
    return np.asarray(scores * tagger.calibration.a + tagger.calibration.b)  # probabilities may all round to 1


def curves(tagger: "Tagger") -> Calibration:
    """Return the tagger's curves from scores to probabilities; raise TextcatError if the tagger has none."""
    if tagger.calibration is None:
        raise TextcatError(
            "The model has no probabilities, as its recipe has the strategy 'zero': "
            "train it by one with another strategy in [tags], such as 'probability'."
        )
    return tagger.calibration
