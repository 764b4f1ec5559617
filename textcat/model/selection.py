"""Tags of documents, and the options that select them."""

from collections.abc import Iterable, Mapping
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from textcat.base.calibration import check_probability
from textcat.base.errors import TextcatError
from textcat.base.frames import Frame, empty_frame
from textcat.base.markup import html_table
from textcat.evaluation.promises import Status
from textcat.model import Reason
from textcat.model.scorer import Scorer

BATCH_DOCUMENTS = 4096  # number of documents to read at a time while tagging
_SHOWN = 20  # number of documents that a notebook shows
SCORE_BYTES = 16 << 20  # maximum bytes of scores in memory at a time


class Tag(NamedTuple):
    """A topic of a document, with its score (signed, unscaled), and its probability if the model is calibrated.

    If the model makes promises, `status` is "automatic" (the tag may be given without a person) or "review" (a person
    should check it); it is None for a topic below all thresholds.
    """

    topic: str
    score: float
    probability: float | None = None
    status: Status | None = None


class Tags(list[list[Tag]]):
    """A list of the tags of each document: a list of lists of `Tag`.

    Parameters
    ----------
    tags : iterable of list of Tag
    documents : iterable
        The documents that were tagged. If they are a table, `to_frame` makes a table of the same library and index.
    names : mapping of str to str
        The names of topics, by id.
    reasons : sequence of Reason or None
        For each document, why it gives no evidence for any topic; None if it gives evidence.
    has_status : bool, default=False
        Whether the tagger makes promises, so that its tags have a status.
    """

    def __init__(
        self,
        tags: Iterable[list[Tag]],
        documents: Any = None,
        names: Mapping[str, str] | None = None,
        reasons: Iterable[Reason | None] = (),
        *,
        has_status: bool = False,
    ):
        super().__init__(tags)
        self._has_status = has_status
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
        """Return a table with one row per tag, and columns for topic, name, score and probability.

        If the tagger makes promises, there is a column for the status, too. The table is of the same library as the
        table that was tagged, otherwise of pandas. Its index is that of the documents; for polars, a column "index" has
        the number of each document, from 0. A document without topics has no row. If a topic has no name, the column
        "name" has the topic's id.
        """
        tags = list(chain.from_iterable(self))
        columns: dict[str, list[Any]] = {
            "topic": [tag.topic for tag in tags],
            "name": [self._names.get(tag.topic, tag.topic) for tag in tags],
            "score": [tag.score for tag in tags],
            "probability": [tag.probability for tag in tags],
        }
        if self._has_status:
            columns["status"] = [tag.status and str(tag.status) for tag in tags]
        return (self._frame or empty_frame(len(self))).long_answer(columns, list(map(len, self)))


class Selection(NamedTuple):
    """The options that select a document's topics; `Tagger.select` explains each."""

    top: int | None = None
    all_topics: bool = False
    min_probability: float | None = None

    def checked(self) -> "Selection":
        """Return this selection; raise TextcatError if an option has an invalid value.

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


def n_at_once(scorer: Scorer) -> int:
    """Return how many documents to score at once, so that their scores take at most `SCORE_BYTES`; at least 1."""
    return max(1, min(BATCH_DOCUMENTS, SCORE_BYTES // max(scorer.bias.nbytes, 1)))


def reasons_of(has_terms: np.ndarray) -> list[Reason | None]:
    """Return for each document the reason why it has no evidence; None if it has a term that the model knows."""
    return [None if has_term else Reason.NO_KNOWN_TERM for has_term in has_terms.tolist()]
