"""Explain why a document has a topic: terms with their positions, and training documents that change the score."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.markup import html_table, html_text
from textcat.features.char_ngrams import words_with_ngrams
from textcat.features.rows import Rows
from textcat.features.scripts import shown
from textcat.features.spans import Place, Span, places, word_places
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Zoned, zones_of_document
from textcat.model.counterfactual import Without, without
from textcat.model.decisions import Decisions
from textcat.model.scorer import Scorer
from textcat.model.support import SupportDocuments
from textcat.model.topic_names import find_topic, topic_label
from textcat.reading import document_stream

_N_SIMILAR = 2  # number of similar words listed for a word that no support document has
_STRENGTHS = 5  # number of strengths of marks


class Reason(NamedTuple):
    """A term of an explanation: its value in the document's vector, its weight for the topic, and their product.

    The weight and the contribution of a word include those of the n-grams of characters in it. "~wheatish~" stands for
    the n-grams of a word that the model does not know.
    """

    term: str
    value: float
    weight: float
    contribution: float
    spans: tuple[Span, ...] = ()  # the places of the term in the document
    like: tuple[str, ...] = ()  # for a word that no support document has: similar words of support documents

    @property
    def label(self) -> str:
        """The term; with similar words if it is known only by its vector, such as "barley (like wheat, corn)"."""
        return f"{self.term} (like {', '.join(self.like)})" if self.like else self.term

    def as_dict(self) -> dict[str, Any]:
        """Return the entries as JSON values; `like` only if there are such words."""
        entries = {**self._asdict(), "spans": [span._asdict() for span in self.spans], "like": [*self.like]}
        return entries if self.like else {name: value for name, value in entries.items() if name != "like"}


class Neighbour(NamedTuple):
    """A support document (a training document with a non-zero coefficient), and its contribution to the score.

    `positive` says whether the support document has the topic.
    """

    id: str
    title: str
    contribution: float
    positive: bool  # whether the support document has the topic


class SpeakingTopic(NamedTuple):
    """A topic that the document probably has, and how much it raises the score of the explained topic."""

    topic: str
    contribution: float
    name: str | None = None  # the topic's name, if the model has names

    @property
    def label(self) -> str:
        """The topic's name and id, or its id alone."""
        return topic_label(self.topic, {} if self.name is None else {self.topic: self.name})


@dataclass(frozen=True)
class Explanation:
    """Explain why a document has or lacks a topic.

    The score is the bias, plus the contributions of all terms, plus those of related topics if the model has any.
    """

    topic: str
    score: float
    bias: float
    threshold: float  # the score above which a document gets the topic; unused if each document gets exactly one topic
    probability: float | None
    reasons: list[Reason]  # strongest first
    rest: float  # the sum of the contributions of all terms that are not listed
    name: str | None = None  # the topic's name, if the model has names
    related: list[SpeakingTopic] = field(default_factory=list)  # strongest first
    rule: str = ""  # the rule that gives or removes the topic; "": the score alone decides
    _neighbours: "Callable[[], list[Neighbour]] | None" = field(default=None, repr=False, compare=False)
    _without: "Callable[[], Without] | None" = field(default=None, repr=False, compare=False)

    @cached_property
    def documents(self) -> list[Neighbour]:
        """The training documents that raise the score most, then those that lower it most; [] if the model keeps none.

        If n terms were asked for, at most n / 2 documents of each kind are listed (for the first kind, n / 2 is rounded
        up). The contributions of all training documents and the bias add up to the score. The list is computed at the
        first access.
        """
        return [] if self._neighbours is None else self._neighbours()

    @cached_property
    def _fall(self) -> "Without | None":
        return None if self._without is None else self._without()

    @property
    def without(self) -> list[str] | None:
        """The smallest set of words found whose removal takes the topic away; None if the document lacks the topic.

        Each occurrence of a removed word is replaced by an unknown word: n-grams with it disappear, too, the document
        keeps its length, and its vector is normalised again. The list is empty if the document keeps the topic as long
        as it has a known word. The set is computed at the first access.
        """
        return None if self._fall is None else self._fall.words

    @property
    def least(self) -> bool | None:
        """Whether no smaller set than `without` exists; None if the document lacks the topic.

        False means that the search was stopped: each word of the set is needed, but a smaller set may exist.
        """
        return None if self._fall is None else self._fall.least

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    def __getitem__(self, i: Any) -> Any:
        return self.reasons[i]

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON values, with its training documents and words to remove."""
        reasons = [reason.as_dict() for reason in self.reasons]
        documents = [document._asdict() for document in self.documents]
        finite = self.threshold if np.isfinite(self.threshold) else None
        plain = {name: getattr(self, name) for name in ("topic", "score", "bias", "probability", "rest")}
        least_set = {"without": self.without, "least": self.least}
        named = {} if self.name is None else {"name": self.name}
        related = {"related": [topic._asdict() for topic in self.related]} if self.related else {}
        listed = {"reasons": reasons, "documents": documents, **related}
        rule = {"rule": self.rule} if self.rule else {}
        return {**named, **plain, "threshold": finite, **rule, **listed, **least_set}

    @property
    def label(self) -> str:
        """The topic's name and id, or its id alone."""
        return topic_label(self.topic, {} if self.name is None else {self.topic: self.name})

    def html(self, document: str | Zoned | Mapping[str, Any]) -> str:
        """Return the texts of a document as HTML in which the listed terms are marked.

        Parameters
        ----------
        document : str, document with `zones`, or dict
            The document that was explained.

        Returns
        -------
        str
            A `div` with `data-zone` for each zone. A `mark` has the class `for` or `against`, a `data-strength` of 1 to
            5 (its share of the strongest contribution), and a `title` with its terms and their contributions. Texts
            are escaped.
        """
        texts = zones_of_document(next(document_stream([document])), 0)
        zones = ((zone, self._marked(zone, text)) for zone, text in texts.items() if text)
        return "\n".join(f'<div class="zone" data-zone="{html_text(zone)}">{marked}</div>' for zone, marked in zones)

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
        caption = f"{self.label}: score {self.score:.4f}, threshold {self.threshold:.4f}, bias {self.bias:+.4f}"
        caption += f"; by the rule: {self.rule}" if self.rule else ""
        terms = html_table(
            ("term", "adds"), ((reason.label, f"{reason.contribution:+.4f}") for reason in self), caption=caption
        )
        if self.related:
            added = ((topic.label, f"{topic.contribution:+.4f}") for topic in self.related)
            terms += html_table(("topic that often goes with it", "adds"), added)
        documents = [(document.id, document.title, f"{document.contribution:+.4f}") for document in self.documents]
        return terms + (html_table(("training document", "title", "adds"), documents) if documents else "")


def _mark(text: str, reasons: Sequence[Reason], strongest: float) -> str:
    if not reasons or not strongest:
        return html_text(text)
    different = list(dict.fromkeys(reasons))
    total = sum(reason.contribution for reason in different)
    strength = min(_STRENGTHS, 1 + int(_STRENGTHS * min(abs(total) / strongest, 1)))
    title = ", ".join(f"{reason.label} {reason.contribution:+.4f}" for reason in different)
    side = "for" if total >= 0 else "against"
    return f'<mark class="{side}" data-strength="{strength}" title="{html_text(title)}">{html_text(text)}</mark>'


class Explainer(NamedTuple):
    """The parts of a tagger, and the vector (row) and scores of one document, to explain its topics."""

    features: TfIdf
    scorer: Scorer
    decisions: Decisions
    topics: Sequence[str]
    topic_names: Mapping[str, str]
    support: SupportDocuments | None
    counted: tuple[Any, ...]  # the counts of the document's terms
    row: Rows
    scores: np.ndarray  # shape (1, n_topics)
    holding: np.ndarray | None = None  # which conditions of rules hold for the document, shape (1, n_conditions)

    def explanations(self, topics: Sequence[str], n: int | None, *, places_in: Any) -> list[Explanation]:
        """Return an explanation for each of the topics, given by their ids or names, as `Tagger.explain_all` does.

        `places_in` is the document, to locate the terms in it; None: positions are not needed.
        """
        row, scores = self.row, self.scores
        rules, by_scores = self.decisions.rules, self.decisions.without_rules
        given = by_scores.decide(scores, row.has_terms)
        explained = []
        for topic in (find_topic(self.topics, self.topic_names, topic) for topic in topics):
            column = self.topics.index(topic)
            weights = self.scorer.weights_of(column, row.indices)
            if scores[0, column] <= self.scorer.unlisted_score:
                raise TextcatError(
                    f"The topic {topic!r} is none of those that the model lists for the document: only these have a "
                    "score that terms add up to."
                )
            explained.append((topic, column, weights, row.data * weights))
        words = _WordsOfNgrams.of(self.features, self.counted, row) if self.features.chars else None
        summed = [words.sums(sums) if words else sums for *_, sums in explained]
        terms = np.flatnonzero(words.is_term) if words else np.arange(len(row.indices))
        strongest = [terms[np.argsort(-np.abs(sums[terms]), kind="stable")[:n]] for sums in summed]
        places_of = self._places({int(j) for order in strongest for j in order}, words, places_in)
        like = self._similar_words({int(row.indices[j]) for j in places_of if j < len(row.indices)})
        topic_names, related_to, explanations = self.topic_names, self.scorer.related(row, self.topics), []
        for (topic, column, weights, _), contributions, order in zip(explained, summed, strongest, strict=True):
            reasons = []
            for j in order.tolist():
                value, adds = float(words.values[j] if words else row.data[j]), float(contributions[j])
                weight = adds / value if words else float(weights[j])
                alike = like.get(int(row.indices[j]), ()) if j < len(row.indices) else ()
                reasons.append(Reason(places_of[j].name, value, weight, adds, places_of[j].spans, alike))
            score, rest = scores[:, column], np.delete(contributions, order).sum(dtype=np.float64)
            threshold = float(self.decisions.thresholds[column])
            curves = self.decisions.calibration and self.decisions.calibration.of_topics(np.array([column]))
            probability = float(curves.probabilities(score)[0]) if curves else None
            numbers = float(score[0]), float(self.scorer.bias[column]), threshold, probability
            neighbours = partial(self._neighbours, column, n) if self.support else None
            adding = related_to(column) if related_to else []
            related = [SpeakingTopic(other, adds, topic_names.get(other)) for other, adds in adding]
            from_related = sum(topic.contribution for topic in related)
            parts = self.features, self.scorer, by_scores
            fall = partial(without, *parts, self.counted, column, from_related) if given[0, column] else None
            rule = "" if rules is None else rules.reason(given, scores, column, self.holding)
            described = topic, *numbers, reasons, float(rest), topic_names.get(topic), related, rule
            explanations.append(Explanation(*described, neighbours, fall))
        return explanations

    def _places(self, listed: set[int], words: "_WordsOfNgrams | None", places_in: Any) -> dict[int, Place]:
        """Return the names of terms and, in the document `places_in`, their places, by their positions.

        A position is that of the term's column in `row.indices` or, behind these, that of an unknown word in `words`.
        """
        n_columns, names = len(self.row.indices), self.features.listed_names()
        unknown = {j: words.unknown[j - n_columns] for j in listed if words and j >= n_columns}
        columns = {j: int(self.row.indices[j]) for j in listed if j < n_columns}
        if places_in is None:
            by_column, of_words = {column: Place(shown(names[column]), ()) for column in columns.values()}, {}
        else:
            by_column = places(self.features, places_in, columns.values())
            of_words = word_places(self.features, places_in, unknown.values())
        places_of = {j: by_column[column] for j, column in columns.items()}
        for j, (prefix, word) in unknown.items():
            places_of[j] = Place(f"{prefix}~{shown(word)}~", of_words.get((prefix, word), ()))
        return places_of

    def _similar_words(self, columns: Collection[int]) -> dict[int, tuple[str, ...]]:
        """Return similar words of support documents for each given column that occurs in no support document."""
        if self.support is None:
            return {}
        names = self.features.listed_names()
        similar = self.support.similar_columns(columns, _N_SIMILAR)
        return {column: tuple(names[other] for other in others) for column, others in similar.items()}

    def _neighbours(self, column: int, n: int | None) -> list[Neighbour]:
        support = self.support
        assert support is not None
        documents, parts = support.contributions(column, self.row, len(self.features.idf_))
        numbers, place = np.unique(support.first_of[documents], return_inverse=True)
        contributions = np.bincount(place, parts, minlength=len(numbers))
        order = np.argsort(-contributions, kind="stable")
        n_for = int((contributions > 0).sum())
        speaking, against = order[:n_for], order[n_for:][::-1]
        if n is not None:
            speaking, against = speaking[: (n + 1) // 2], against[: n // 2]
        order = np.concatenate([speaking, against])
        start = int(support.alphas.indptr[column])
        is_positive = np.zeros(len(numbers), bool)
        is_positive[place] = np.asarray(support.alphas.data[start : start + len(documents)]) > 0
        entries = zip(*(array[order].tolist() for array in (numbers, contributions, is_positive)), strict=True)
        return [Neighbour(support.ids[i], support.titles[i], adds, positive) for i, adds, positive in entries]


class _WordsOfNgrams(NamedTuple):
    """The words of a document that its n-grams of characters are in: with a column in the document's row, or unknown.

    What an n-gram contributes is shared by the words that it is in, in proportion to their occurrences.
    """

    values: np.ndarray  # the values of the row's entries, then those of unknown words, float64
    unknown: list[tuple[str, str]]  # unknown words: the prefix of their zone, such as "title:" or "", and the term
    is_term: np.ndarray  # whether each of `values` is that of a term, not of an n-gram of characters, bool
    # For each n-gram in a word: the n-gram's entry of the row, the word's position in `values`, and its share.
    ngrams: np.ndarray
    words: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, features: TfIdf, counted: tuple[Any, ...], row: Rows) -> "_WordsOfNgrams":
        """Find the words of a document's n-grams, given the counts of its terms and its row."""
        parts, counts, _ = counted
        names, n_columns = features.listed_names(), len(row.indices)
        entry_of = {names[column]: i for i, column in enumerate(row.indices.tolist())}
        unknown: dict[tuple[str, str], int] = {}
        found: list[tuple[int, int, int]] = []
        starts = np.append(0, counts.ends)
        for source, space in zip(parts.sources.tolist(), parts.spaces.tolist(), strict=True):
            prefix = f"{parts.names[space]}:" if parts.names[space] else ""
            entries = slice(starts[source], starts[source + 1])
            occurrences = counts.counts[entries]
            for i, term, ngrams in words_with_ngrams(counts.terms, counts.ids[entries], counts.chars, features):
                known = [entry for ngram in ngrams if (entry := entry_of.get(f"{prefix}~{ngram}~", -1)) >= 0]
                if known:
                    word = entry_of.get(f"{prefix}{term}", -1)
                    word = word if word >= 0 else n_columns + unknown.setdefault((prefix, term), len(unknown))
                    found += ((entry, word, int(occurrences[i])) for entry in known)
        ngrams, words, times = np.array(found, np.int64).reshape(-1, 3).T
        shares = times / np.bincount(ngrams, times, n_columns)[ngrams]
        values = np.append(row.data.astype(np.float64), np.zeros(len(unknown)))
        is_term = np.ones(len(values), bool)
        is_term[ngrams] = False
        is_unknown = words >= n_columns
        np.add.at(values, words[is_unknown], shares[is_unknown] * row.data[ngrams[is_unknown]])
        return cls(values, [*unknown], is_term, ngrams, words, shares)

    def sums(self, contributions: np.ndarray) -> np.ndarray:
        """Return the contributions of the row's entries, n-grams' shared by words, then those of unknown words."""
        sums = np.append(contributions.astype(np.float64), np.zeros(len(self.unknown)))
        sums[~self.is_term] = 0
        np.add.at(sums, self.words, self.shares * contributions[self.ngrams])
        return sums


def explanation_in_words(
    explanation: Explanation, prefixes: tuple[str, ...], n: int, is_stop: Callable[[str], Any]
) -> Explanation:
    """Shorten an explanation that lists all terms to the n strongest words and n-grams of words.

    A term that starts with one of the prefixes of zones ("title:") is added to the same term without prefix. Stop words
    and punctuation are removed from the ends of an n-gram of words, and its contribution is added to the term that is
    left; its places are marked only if this term is not a term of the explanation itself. Contributions of terms that
    become empty, and of parts of unknown words, are added to `rest`, so the sum is still the score. A reason's weight
    is its contribution divided by its value.
    """
    terms = {reason.term for reason in explanation.reasons}
    sums: dict[str, float] = defaultdict(float)
    values: dict[str, float] = {}
    spans: dict[str, dict[Span, None]] = defaultdict(dict)
    like: dict[str, tuple[str, ...]] = {}
    for reason in explanation.reasons:
        term = reason.term
        term = term.partition(":")[2] if term.startswith(prefixes) else term
        if len(term) > 2 and term[0] == term[-1] == "~":
            continue
        if kept := _without_ends(term, is_stop):
            sums[kept] += reason.contribution
            if kept == term or not terms.intersection((kept, *(f"{prefix}{kept}" for prefix in prefixes))):
                values[kept] = max(values.get(kept, 0.0), reason.value)
                spans[kept].update(dict.fromkeys(reason.spans))
                like[kept] = reason.like
    listed = sorted(sums, key=lambda term: (-abs(sums[term]), term))[:n]
    reasons = [
        Reason(term, values[term], sums[term] / values[term], sums[term], tuple(sorted(spans[term])), like[term])
        for term in listed
    ]
    others = sum(topic.contribution for topic in explanation.related)
    rest = explanation.score - explanation.bias - others - sum(reason.contribution for reason in reasons)
    return replace(explanation, reasons=reasons, rest=rest)


def _without_ends(term: str, is_stop: Callable[[str], Any]) -> str:
    """Return a term without the stop words and punctuation at its ends; "" if it consists of nothing else.

    `is_stop` returns whether a word is a stop word.
    """
    words = term.split(" ")
    telling = [i for i, word in enumerate(words) if _has_letter(word) and not is_stop(word)]
    return " ".join(words[telling[0] : telling[-1] + 1]) if telling else ""


def _has_letter(term: str) -> bool:
    return any(map(str.isalnum, term))
