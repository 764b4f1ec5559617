"""A tagger and some of its topics → a tagger of these topics, with the same scores."""

from dataclasses import replace
from typing import Any

import numpy as np

from textcat.model.shortlist import Restriction
from textcat.model.tagger import Tagger
from textcat.model.weights import wide


def restrict_topics(tagger: Tagger, topics: tuple[str, ...]) -> Tagger:
    """Return a copy of a tagger with only the given topics, in the order of the tagger's topics."""
    columns = np.array([j for j, topic in enumerate(tagger.topics) if topic in topics], np.intp)
    weights: Any = tagger.weights
    restriction = Restriction(columns, tagger.topics, weights, tagger.bias)
    weights = (weights if isinstance(weights, np.ndarray) else wide(weights))[:, columns]
    return replace(
        tagger,
        weights=np.ascontiguousarray(weights) if isinstance(weights, np.ndarray) else weights,
        bias=tagger.bias[columns],
        thresholds=tagger.thresholds[columns],
        topics=tuple(tagger.topics[j] for j in columns.tolist()),
        train_sizes=tagger.train_sizes[columns],
        facts={name: [values[j] for j in columns.tolist()] for name, values in tagger.facts.items()},
        calibration=None if tagger.calibration is None else tagger.calibration.of_topics(columns),
        support=None,  # whose topics are those of the model
        shortlist=None if tagger.shortlist is None else replace(tagger.shortlist, restriction=restriction),
    )
