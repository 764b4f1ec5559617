"""Why a document has a topic: the terms that speak for it, where they stand, and the least without which it falls."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.errors import TextcatError
from textcat.features.rows import Rows
from textcat.features.spans import Place, Span, places
from textcat.features.zones import Zoned, zones_of_document
from textcat.model.shortlist import NOT_LISTED
from textcat.model.weights import weights_of_topic
from textcat.reading import document_stream
from textcat.surrogates import join_surrogates

if TYPE_CHECKING:
    from textcat.model.counterfactual import Without
    from textcat.model.tagger import Tagger

_STRENGTHS = 5  # steps in which marks are stronger or weaker


class Reason(NamedTuple):
    """What one term adds to a document's score for a topic: its value in the row, its weight, and their product."""

    term: str
    value: float
    weight: float
    contribution: float
    spans: tuple[Span, ...] = ()  # where it stands


class Neighbour(NamedTuple):
    """A training document that the model keeps, and what it adds to a document's score for a topic."""

    id: str
    title: str
    contribution: float
    positive: bool  # whether it has the topic


@dataclass(frozen=True)
class Explanation:
    """Why a document has, or has not, a topic. Contributions of all terms and the bias add up to the score."""

    topic: str
    score: float
    bias: float
    threshold: float  # a document has the topic if it scores above; of one topic a document: if none scores higher
    probability: float | None
    reasons: list[Reason]  # strongest first
    rest: float  # the sum of the contributions of terms that are not listed
    _neighbours: "Callable[[], list[Neighbour]] | None" = field(default=None, repr=False, compare=False)
    _without: "Callable[[], Without] | None" = field(default=None, repr=False, compare=False)

    @cached_property
    def documents(self) -> list[Neighbour]:
        """The training documents that raise the score most, then those that lower it most; empty if none are kept.

        There are half as many of each kind as terms are listed. The contributions of all documents and the bias add up
        to the score. The documents are searched for at the first access.
        """
        return [] if self._neighbours is None else self._neighbours()

    @cached_property
    def _fall(self) -> "Without | None":
        return None if self._without is None else self._without()

    @property
    def without(self) -> list[str] | None:
        """The smallest set found of words without which the document loses the tag; None: no tag.

        A word is left out wherever it occurs, as if an unknown word stood there: its n-grams are left out, too, and the
        row is normalised again. The set is empty if the document keeps the tag even without all words. It is searched
        for at the first access.
        """
        return None if self._fall is None else self._fall.words

    @property
    def least(self) -> bool | None:
        """Whether `without` is known to be the smallest set; None: no tag.

        If False, the search was given up: no word of the set can be spared, but there may be a smaller set.
        """
        return None if self._fall is None else self._fall.least

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    def __getitem__(self, i: Any) -> Any:
        return self.reasons[i]

    def as_dict(self) -> dict[str, Any]:
        """Return the whole explanation as a dict of values that JSON can hold."""
        reasons = [{**reason._asdict(), "spans": [span._asdict() for span in reason.spans]} for reason in self.reasons]
        documents = [document._asdict() for document in self.documents]
        finite = self.threshold if np.isfinite(self.threshold) else None
        plain = {name: getattr(self, name) for name in ("topic", "score", "bias", "probability", "rest")}
        least_set = {"without": self.without, "least": self.least}
        return {**plain, "threshold": finite, "reasons": reasons, "documents": documents, **least_set}

    def html(self, document: str | Zoned | Mapping[str, Any]) -> str:
        """Return the texts of a document as HTML, in which marks show the terms.

        Parameters
        ----------
        document : str, document with `zones`, or dict
            The document that was explained.

        Returns
        -------
        str
            A `div` with `data-zone` for each zone. A `mark` has the class `for` or `against`, a `data-strength` of 1 to
            5, by its share of the strongest contribution, and a `title` with its terms and their contributions. Texts
            are escaped.
        """
        texts = zones_of_document(next(document_stream([document], "text")), 0)
        zones = ((zone, self._marked(zone, text)) for zone, text in texts.items() if text)
        return "\n".join(f'<div class="zone" data-zone="{escape_html(zone)}">{marked}</div>' for zone, marked in zones)

    def _marked(self, zone: str, text: str) -> str:
        spans = [(span, reason) for reason in self.reasons for span in reason.spans if span.zone == zone]
        edges = sorted({0, len(text), *(edge for span, _ in spans for edge in (span.start, span.end))})
        begin: dict[int, list[Reason]] = {}
        end: dict[int, list[Reason]] = {}
        for span, reason in spans:
            if span.end > span.start:
                begin.setdefault(span.start, []).append(reason)
                end.setdefault(span.end, []).append(reason)
        strongest = max((abs(reason.contribution) for reason in self.reasons), default=0.0)
        open_: list[Reason] = []
        pieces = []
        for start, stop in pairwise(edges):
            for reason in end.get(start, ()):
                open_.remove(reason)
            open_ += begin.get(start, ())
            pieces.append(_mark(text[start:stop], open_, strongest))
        return "".join(pieces)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape_html(reason.term)}</td><td>{reason.contribution:+.4f}</td></tr>"
            for reason in self.reasons
        )
        caption = f"{self.topic}: score {self.score:.4f}, threshold {self.threshold:.4f}, bias {self.bias:+.4f}"
        head = "<tr><th>term</th><th>adds</th></tr>"
        documents = "".join(
            f"<tr><td>{escape_html(document.id)}</td><td>{escape_html(document.title)}</td><td>{document.contribution:+.4f}</td></tr>"
            for document in self.documents
        )
        if documents:
            documents = f"<table><tr><th>training document</th><th>title</th><th>adds</th></tr>{documents}</table>"
        return f"<p>{escape_html(caption)}</p><table>{head}{rows}</table>{documents}"


def _mark(text: str, reasons: Sequence[Reason], strongest: float) -> str:
    if not reasons or not strongest:
        return escape_html(text)
    different = list(dict.fromkeys(reasons))
    total = sum(reason.contribution for reason in different)
    strength = min(_STRENGTHS, 1 + int(_STRENGTHS * min(abs(total) / strongest, 1)))
    title = ", ".join(f"{reason.term} {reason.contribution:+.4f}" for reason in different)
    side = "for" if total >= 0 else "against"
    return f'<mark class="{side}" data-strength="{strength}" title="{escape_html(title)}">{escape_html(text)}</mark>'


def escape_html(text: str) -> str:
    """Return a text as HTML that can be written as UTF-8: no page can hold lone surrogates and NUL."""
    return escape(join_surrogates(text.replace("\0", "\ufffd")))


def explain_document(
    tagger: "Tagger", document: Any, topics: Sequence[str] | None, n: int | None, *, with_spans: bool = True
) -> list[Explanation]:
    """Explain topics of a document, by default its tags: see `Tagger.explain_all`. Without spans it takes less time."""
    counted = tagger.features.counted_texts([document])
    row = tagger.features.rows_of_counts(*counted)
    scores = tagger.score_rows(row)
    assigned = tagger.decide(scores)[0]
    if topics is None:
        topics = [tag.topic for tag in tagger.select(scores)[0]]
    explained = []
    for topic in topics:
        weights = weights_of_topic(tagger, topic, row.indices)
        column = tagger.topics.index(topic)
        if tagger.shortlist is not None and scores[0, column] <= NOT_LISTED:
            raise TextcatError(
                f"The topic {topic!r} is none of the {tagger.shortlist.size} that the model lists for the document: "
                "only these have a score that terms add up to."
            )
        explained.append((topic, column, weights, row.data * weights))
    strongest = [np.argsort(-np.abs(sums), kind="stable")[:n] for *_, sums in explained]
    listed = {column for order in strongest for column in row.indices[order].tolist()}
    if with_spans or tagger.features.vocabulary_ is None:
        places_of = places(tagger.features, document, listed)
    else:
        names = tagger.features.listed_names()
        places_of = {j: Place(names[j], ()) for j in listed}
    explanations = []
    for (topic, column, weights, contributions), order in zip(explained, strongest, strict=True):
        arrays = (array[order].tolist() for array in (row.indices, row.data, weights, contributions))
        entries = zip(*arrays, strict=True)
        reasons = [Reason(places_of[j].name, x, weight, sum_, places_of[j].spans) for j, x, weight, sum_ in entries]
        score, rest = scores[:, column], np.delete(contributions, order).sum(dtype=np.float64)
        numbers = float(score[0]), float(tagger.bias[column]), float(tagger.thresholds[column])
        calibration = tagger.calibration and tagger.calibration.of_topics(np.array([column]))
        probability = float(calibration.probabilities(score)[0]) if calibration else None
        neighbours = partial(_neighbours, tagger, row, column, n) if tagger.support else None
        fall = partial(_fall, tagger, counted, column) if assigned[column] else None
        explanations.append(Explanation(topic, *numbers, probability, reasons, float(rest), neighbours, fall))
    return explanations


def term_contributions(
    tagger: "Tagger", document: str | Zoned, topics: Sequence[str], n: int
) -> list[dict[str, float]]:
    """Return, for each topic, the terms with the strongest contributions to the score, the strongest first."""
    explained = explain_document(tagger, document, topics, n, with_spans=False)
    return [{reason.term: reason.contribution for reason in explanation} for explanation in explained]


def _neighbours(tagger: "Tagger", row: Rows, column: int, n: int | None) -> list[Neighbour]:
    support = tagger.support
    assert support is not None
    documents, contributions = support.contributions(column, row, len(tagger.features.idf_))
    order = np.argsort(-contributions, kind="stable")
    n_for = int((contributions > 0).sum())
    speaking, against = order[:n_for], order[n_for:][::-1]
    if n is not None:
        speaking, against = speaking[: (n + 1) // 2], against[: n // 2]
    order = np.concatenate([speaking, against])
    entries = zip(documents[order].tolist(), contributions[order].tolist(), order.tolist(), strict=True)
    start = int(support.alphas.indptr[column])
    alphas = support.alphas.data
    return [Neighbour(support.ids[i], support.titles[i], adds, bool(alphas[start + k] > 0)) for i, adds, k in entries]


def _fall(tagger: "Tagger", counted: tuple[Any, ...], column: int) -> "Without":
    from textcat.model.counterfactual import without  # here, as it is looked for only if asked for

    return without(tagger, counted, column)


def explanation_in_words(explanation: Explanation, prefixes: tuple[str, ...], n: int) -> Explanation:
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
