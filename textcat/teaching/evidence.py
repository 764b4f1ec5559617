"""Explain a document's score for a topic, and list the terms with the largest weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textcat.corpus.documents import Document
from textcat.features.language import stop_word_test
from textcat.teaching.view import View

if TYPE_CHECKING:
    from textcat.model.explain import Explanation


def evidence_for(view: View, topic: str, position: int, n: int = 30) -> Explanation:
    """Explain a document's score: the terms that are evidence for and against the topic, and where they occur.

    Parameters
    ----------
    view : View
    topic : str
    position : int
        Position of the document in the pool.
    n : int, default=30
        Number of terms: the n that contribute most to the score; function words are left out.

    Returns
    -------
    Explanation
    """
    from textcat.model.explain import explanation_in_words

    position, features = view.pool.checked(position), view.pool.features
    document = Document("", view.pool.document(position))
    explanation = view.tagger(topic, position).explain(document, topic, None)
    all_apart = features.zone_terms is True
    prefixes = tuple(f"{zone}:" for zone in document.zones) if all_apart else features.zone_prefixes()
    # Function words are omitted: persons seldom decide by them, whatever their contributions.
    is_stop = stop_word_test(features.tokens.language_of_words if features.tokens else "xx")
    return explanation_in_words(explanation, prefixes, n, is_stop)


def terms(view: View, topic: str, n: int = 20) -> list[tuple[str, float]]:
    """Return the n terms with the largest weights for a topic, and these weights.

    Parameters
    ----------
    view : View
    topic : str
    n : int, default=20

    Returns
    -------
    list of (str, float)
    """
    return view.tagger(topic).terms(topic, n)
