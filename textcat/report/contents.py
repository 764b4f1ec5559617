"""Compute the data of a report, as JSON values, which its script draws."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.evaluation.metrics import positives_by_topic
from textcat.model.topic_names import topic_label
from textcat.report import figures
from textcat.report.figures import rounded_values

if TYPE_CHECKING:
    from textcat.base.calibration import Calibration
    from textcat.corpus.documents import Document
    from textcat.evaluation.evaluation import Evaluation, ScoredDocuments
    from textcat.model.tagger import Tagger

_EXAMPLES = 3  # number of false positives, and of false negatives, of a topic
_TERMS = 12  # number of terms with the largest weights
_AGAINST = 6  # number of terms with the lowest weights
_REASONS = 12  # number of terms highlighted in a document
REASONS_WITH_NUMBERS = 5  # number of highlighted terms that are also listed
_CONFUSED = 200  # number of pairs of confused topics
_EXCERPT, _AROUND, _HEAD = 420, 50, 140  # characters of an excerpt: in all, around highlighted ones, at the beginning
# Number of topics above which each topic gets fewer thresholds and examples, so that the file stays small.
_MANY = 120


class Measured(NamedTuple):
    """The input of a report: a tagger, documents, their evaluation, and the calibration of their scores."""

    tagger: Tagger
    documents: Sequence[Document]
    evaluation: Evaluation
    calibration: Calibration | None

    @property
    def scored(self) -> ScoredDocuments:
        """The scores and labels that the evaluation was computed from."""
        assert self.evaluation.scored is not None
        return self.evaluation.scored

    @property
    def scores(self) -> NDArray[Any]:
        """The scores of the documents, of shape (n_documents, n_topics)."""
        return self.scored.scores

    @property
    def given(self) -> NDArray[np.bool_]:
        """Whether each document gets each topic: shape (n_documents, n_topics)."""
        return self.scored.given


def report_contents(measured: Measured, advance: Callable[[int], None]) -> dict[str, Any]:
    """Return the data of a report as JSON values: measures of each topic, a curve per band, and confused topics.

    `advance` is called with 1 after each topic.
    """
    evaluation, scored, names = measured.evaluation, measured.scored, measured.tagger.topics
    mistaken = figures.confused_pairs(scored.relevant, measured.given)
    topics = []
    for j, column in enumerate(positives_by_topic(scored.relevant)):
        topics.append(_topic(measured, j, column))
        advance(1)
    calibrated = None
    if measured.calibration is not None:
        probabilities = measured.calibration.probabilities(measured.scores).ravel()
        labels = scored.relevant.toarray().ravel() > 0
        calibrated = [rounded_values(row, 4) for row in figures.reliability(probabilities, labels)]
    return {
        "names": list(names),
        "labels": [topic_label(name, measured.tagger.topic_names) for name in names],
        "documents": evaluation.test_documents,
        "bands": {name: rounded_values(curve, 3) for name, curve in figures.band_curves(scored).items()},
        "in_bands": {band.name: sorted(band.topics) for band in scored.bands},
        "calibration": calibrated,
        "forecast": _forecast(measured.tagger.facts.choices.get("forecast")),
        "topics": topics,
        "confusion": mistaken[:_CONFUSED],
        "n_confusion": len(mistaken),
    }


def _forecast(forecast: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the data of the learning curve; None if training made no forecast."""
    return None if forecast is None else {name: forecast[name] for name in ("documents", "measured", "forecast")}


def _topic(measured: Measured, j: int, places: NDArray[np.intp]) -> dict[str, Any]:
    """Return the data of topic j, given the positions of its positive documents (`places`)."""
    tagger, evaluation = measured.tagger, measured.evaluation
    row, scores, assigned = evaluation.topics[j], measured.scores[:, j], measured.given[:, j]
    is_positive = np.zeros(len(scores), bool)
    is_positive[places] = True
    threshold = None if tagger.decisions.single else float(tagger.decisions.thresholds[j])
    share = max(len(tagger.topics) / _MANY, 1)
    cuts = figures.sample_thresholds(scores, is_positive, threshold, most=max(int(160 / share), 24))
    histogram = figures.score_histogram(scores, is_positive)
    calibration = None
    if measured.calibration is not None:
        p = measured.calibration.of_topics(np.array([j])).probabilities(scores[:, np.newaxis])[:, 0]
        calibration = [rounded_values(values, 4) for values in figures.reliability(p, is_positive)]
    wrong = figures.worst_errors(scores, is_positive, assigned, max(int(_EXAMPLES / share), 1))
    return {
        "train": row.train_positives,
        "n": row.test_positives,
        "ap": row.average_precision,
        "given": [int(assigned.sum()), int((assigned & is_positive).sum())],
        "cuts": [rounded_values(cuts.thresholds), cuts.retrieved.tolist(), cuts.hits.tolist()],
        "chosen": cuts.chosen,
        "histogram": [*rounded_values(histogram[:2]), histogram.positives.tolist(), histogram.negatives.tolist()],
        "calibration": calibration,
        "terms": _terms(tagger, row.topic),
        "wrong": [[example_of(measured, i, j) for i in documents] for documents in wrong],
    }


def _terms(tagger: Tagger, topic: str) -> list[list[Any]]:
    """Return a list [term, weight] for each of the terms with the highest, and with the lowest negative, weights."""
    weights = tagger.weights_of(topic)
    names = tagger.features.get_feature_names_out()
    order = np.argsort(-weights, kind="stable")
    chosen = [*order[:_TERMS], *(k for k in order[max(len(order) - _AGAINST, _TERMS) :] if weights[k] < 0)]
    return [[str(names[k]), *rounded_values([weights[k]], 4)] for k in chosen if weights[k]]


def example_of(measured: Measured, document: int, topic: int) -> dict[str, Any]:
    """Return a document with its labels, its score for a topic, and an excerpt with highlighted evidence."""
    document_, name = measured.documents[document], measured.tagger.topics[topic]
    reasons = list(measured.tagger.explain(document_, name, _REASONS))
    probability = None
    if measured.calibration is not None:
        curve = measured.calibration.of_topics(np.array([topic]))
        probability = rounded_values(curve.probabilities(measured.scores[document, [topic]]), 3)[0]
    return {
        "id": document_.id,
        "topics": list(document_.topics),
        "score": rounded_values(measured.scores[document, [topic]], 4)[0],
        "p": probability,
        "text": excerpt_of(
            document_.zones, [(span, reason.contribution) for reason in reasons for span in reason.spans]
        ),
        "reasons": [
            [reason.label, *rounded_values([reason.contribution], 3)] for reason in reasons[:REASONS_WITH_NUMBERS]
        ],
    }


def excerpt_of(
    texts: Mapping[str, str], marks: Sequence[tuple[tuple[str, int, int], float]]
) -> list[str | tuple[int, str]]:
    """Return an excerpt of a document's text, as a list of parts.

    A part is a text or, if it is highlighted, a tuple (strength, text). The strength is 1 to 3 if the words raise the
    topic's score, and -1 to -3 if they lower it. `texts` has the text of each zone (named part). `marks` has tuples
    ((zone, start, end), contribution to the score). The excerpt has the beginning of the text, and then the text around
    the marks with the largest contributions, until it is long enough.
    """
    # Line breaks become blanks, which take less space; offsets stay.
    zones = {"": "", **{zone: re.sub(r"\s", " ", part) for zone, part in texts.items()}}
    text = "\n".join(part for part in zones.values() if part)
    start_of, start = {}, 0
    for zone, part in zones.items():
        start_of[zone] = start
        start += len(part) + 1 if part else 0
    worth, values = np.zeros(len(text)), [(abs(value), value, *span) for span, value in marks if span[0] in zones]
    kept = np.zeros(len(text), bool)
    kept[:_HEAD] = True
    for _, value, zone, first, last in sorted(values, key=lambda mark: -mark[0]):
        here = slice(start_of[zone] + first, start_of[zone] + last)
        worth[here] += value
        if kept.sum() < _EXCERPT:
            kept[max(here.start - _AROUND, 0) : here.stop + _AROUND] = True
    if not values:
        kept[:_EXCERPT] = True
    for edge in np.flatnonzero(kept[1:] != kept[:-1]).tolist():  # do not cut words
        while kept[edge + 1] and not text[edge].isspace() and edge >= 0 and not kept[edge]:
            kept[edge] = True
            edge -= 1
        while kept[edge] and edge + 1 < len(text) and not kept[edge + 1] and not text[edge + 1].isspace():
            kept[edge + 1] = True
            edge += 1
    strongest = np.abs(worth).max(initial=0) or 1
    levels = (np.sign(worth) * np.ceil(np.abs(worth) / strongest * 3)).astype(int)
    parts: list[Any] = []
    if not text:
        return []
    runs = np.flatnonzero(np.r_[True, (levels[1:] != levels[:-1]) | (kept[1:] != kept[:-1]), True]).tolist()
    for first, last in itertools.pairwise(runs):
        level = int(levels[first])
        piece = text[first:last] if kept[first] else " … "
        if kept[first] and level:
            parts.append((level, piece))
        elif parts and isinstance(parts[-1], str):
            parts[-1] += piece if not (piece == " … " and parts[-1].endswith(" … ")) else ""
        else:
            parts.append(piece)
    return parts
