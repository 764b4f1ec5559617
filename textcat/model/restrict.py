"""Restrict a tagger to some of its topics, with the same scores."""

from dataclasses import replace

import numpy as np

from textcat.model.tagger import Tagger


def restrict_topics(tagger: Tagger, topics: tuple[str, ...]) -> Tagger:
    """Return a copy of a tagger with only the given topics, in the order of the tagger's topics."""
    chosen = set(topics)
    columns = np.array([j for j, topic in enumerate(tagger.topics) if topic in chosen], np.intp)
    return replace(
        tagger,
        scorer=tagger.scorer.of_topics(columns, tagger.topics),
        decisions=tagger.decisions.of_topics(columns),
        topics=tuple(tagger.topics[j] for j in columns.tolist()),
        facts=tagger.facts.of_topics(columns),
        support=None,  # whose topics are those of the model
    )
