"""Return explanations in whole words: what their characters and zones add is added to them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from textcat.model.explain import Reason

if TYPE_CHECKING:
    from textcat.features.spans import Span
    from textcat.model.explain import Explanation


def in_words(explanation: Explanation, prefixes: tuple[str, ...], n: int) -> Explanation:
    """Return an explanation whose reasons are words and n-grams of words.

    What an n-gram of characters adds goes in equal parts to the words in which it stands, and what a word adds as one
    of its zone goes to the word. What signs add is part of the rest. So contributions still add up to the score; where
    more than the word's own is added up, a reason's weight is its contribution divided by its value.

    Parameters
    ----------
    explanation : Explanation
        With all of its reasons.
    prefixes : tuple of str
        How the names of terms begin that zones have for themselves, such as "title:".
    n : int
        How many reasons are listed, the strongest.

    Returns
    -------
    Explanation
    """
    sums: dict[str, float] = defaultdict(float)
    values: dict[str, float] = {}
    spans: dict[str, dict[Span, None]] = defaultdict(dict)
    parts: list[Reason] = []
    for reason in explanation.reasons:
        term = reason.term
        term = term.partition(":")[2] if term.startswith(prefixes) else term
        if len(term) > 2 and term[0] == term[-1] == "~":
            parts.append(reason)
        elif any(map(str.isalnum, term)):
            sums[term] += reason.contribution
            values[term] = max(values.get(term, 0.0), reason.value)
            spans[term].update(dict.fromkeys(reason.spans))
    words = sorted((span, term) for term, places in spans.items() if " " not in term for span in places)
    starts = [(span.zone, span.start) for span, _ in words]
    for reason in parts:
        for span in reason.spans:
            k = bisect_right(starts, (span.zone, span.start)) - 1
            if k >= 0 and words[k][0].zone == span.zone and span.start < words[k][0].end:
                sums[words[k][1]] += reason.contribution / len(reason.spans)
    listed = sorted(sums, key=lambda term: (-abs(sums[term]), term))[:n]
    reasons = [
        Reason(term, values[term], sums[term] / values[term], sums[term], tuple(sorted(spans[term]))) for term in listed
    ]
    rest = explanation.score - explanation.bias - sum(reason.contribution for reason in reasons)
    return replace(explanation, reasons=reasons, rest=rest)
