"""Find the changes between two models on documents: per topic with significance, and examples of changed decisions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.evaluation.significance import holm, mcnemar
from textcat.report import figures
from textcat.report.contents import REASONS_WITH_NUMBERS, Measured, excerpt_of
from textcat.report.figures import rounded_values

_EXAMPLES = 3  # number of decisions of a topic shown that became right, and as many that became wrong
_TERMS = 12  # number of terms whose weights differ most
_MANY = 120  # number of topics above which each topic has fewer examples


def decision_changes(before: Measured, after: Measured) -> dict[str, Any]:
    """Return how the decisions of a later model differ from those of an earlier model, per topic and in total."""
    labels = after.scored.relevant.toarray() > 0
    right = [measured.given == labels for measured in (before, after)]
    gained, lost = right[1] & ~right[0], right[0] & ~right[1]
    p_values = mcnemar(lost.sum(axis=0), gained.sum(axis=0))
    corrected = holm(p_values)
    # The models' scores have different scales: those of the earlier model are converted to the scale of the later.
    spread = [measured.scores.std(axis=0, dtype=np.float64) for measured in (before, after)]
    scales = np.divide(spread[1], spread[0], out=np.ones_like(spread[1]), where=spread[0] > 0)
    topics = []
    for j, (was, now) in enumerate(zip(before.evaluation.topics, after.evaluation.topics, strict=True)):
        topics.append(
            {
                "ap": was.average_precision,
                "f1": was.f1,
                "given": [int(before.given[:, j].sum()), int((before.given[:, j] & labels[:, j]).sum())],
                "curve": _curve(before, j, labels[:, j]),
                "better": int(gained[:, j].sum()),
                "worse": int(lost[:, j].sum()),
                "p": rounded_values([p_values[j], corrected[j]], 3),
                "terms": _terms(before, after, now.topic, scales[j]),
                "examples": [_examples(before, after, j, pairs[:, j], scales[j]) for pairs in (gained, lost)],
            }
        )
    return {"topics": topics, "better": int(gained.sum()), "worse": int(lost.sum())}


def _curve(measured: Measured, j: int, is_positive: NDArray[np.bool_]) -> list[list[Any]]:
    """Return two lists for topic j: the numbers of documents, and of positives, that score above each threshold.

    There are up to 80 thresholds. `is_positive` is a mask of the documents that have the topic.
    """
    cuts = figures.sample_thresholds(measured.scores[:, j], is_positive, most=80)
    return [cuts.retrieved.tolist(), cuts.hits.tolist()]


def _terms(before: Measured, after: Measured, topic: str, scale: float) -> list[list[Any]]:
    """Return the terms whose weights for a topic differ most between two models: a list [term, before, after] each.

    A term that a model lacks has the weight 0. The earlier model's weights are multiplied by `scale`, so that both
    models' weights are on the same scale.
    """
    weights = []
    for tagger, times in ((before.tagger, scale), (after.tagger, 1.0)):
        values = tagger.weights_of(topic) * times
        places = np.flatnonzero(values)
        weights.append(dict(zip(tagger.features.get_feature_names_out()[places], values[places].tolist(), strict=True)))
    was, now = weights
    differing = sorted(was.keys() | now.keys(), key=lambda term: (-abs(now.get(term, 0) - was.get(term, 0)), term))
    return [[str(term), *rounded_values([was.get(term, 0), now.get(term, 0)], 4)] for term in differing[:_TERMS]]


def _examples(
    before: Measured, after: Measured, j: int, changed: NDArray[np.bool_], scale: float
) -> list[dict[str, Any]]:
    """Return the changed decisions on topic j whose scores are furthest from the thresholds of both models.

    `changed` is a mask of documents; the earlier model's scores are multiplied by `scale`.
    """
    documents = np.flatnonzero(changed)
    n = max(int(_EXAMPLES * _MANY / max(len(after.tagger.topics), _MANY)), 1)
    margins = np.abs(_margins(after, documents, j)) + scale * np.abs(_margins(before, documents, j))
    surest: Sequence[int] = documents[np.argsort(-margins, kind="stable")[:n]].tolist()
    return [_example(before, after, i, j, scale) for i in surest]


def _margins(measured: Measured, documents: NDArray[np.intp], j: int) -> NDArray[np.float64]:
    """Return the scores of documents for topic j minus the topic's threshold."""
    threshold = np.broadcast_to(measured.scored.threshold, measured.scores.shape)[documents, j]
    return np.nan_to_num(measured.scores[documents, j].astype(np.float64) - threshold, posinf=1e9, neginf=-1e9)


def _example(before: Measured, after: Measured, i: int, j: int, scale: float) -> dict[str, Any]:
    """Return document i, on which the models decide differently for topic j, with the terms that explain the change.

    These are the terms whose contributions to the score differ most between the models. The earlier model's
    contributions are multiplied by `scale`.
    """
    document, topic = after.documents[i], after.tagger.topics[j]
    explained = [list(measured.tagger.explain(document, topic, None)) for measured in (before, after)]
    was, now = (
        {reason.term: reason.contribution * times for reason in reasons}
        for reasons, times in zip(explained, (scale, 1.0), strict=True)
    )
    spans = {reason.term: reason.spans for reasons in explained for reason in reasons}
    change = {term: now.get(term, 0.0) - was.get(term, 0.0) for term in spans}
    strongest = sorted(change, key=lambda term: (-abs(change[term]), term))
    return {
        "id": document.id,
        "topics": list(document.topics),
        "margins": [
            rounded_values(times * _margins(measured, np.array([i]), j), 3)[0]
            for measured, times in ((before, scale), (after, 1.0))
        ],
        "text": excerpt_of(document.zones, [(span, change[term]) for term in strongest[:12] for span in spans[term]]),
        "reasons": [
            [term, *rounded_values([was.get(term, 0), now.get(term, 0)], 3)]
            for term in strongest[:REASONS_WITH_NUMBERS]
        ],
    }
