"""The tagger: features, a scorer, and decisions. It scores, tags and explains documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from textcat.base.frames import answer_in_kind
from textcat.base.settings import check_whole_number
from textcat.corpus.documents import largest_topics_table
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.promises import Promise, Status
from textcat.features.rows import Rows
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Zoned
from textcat.model import Reason
from textcat.model.decisions import Decisions
from textcat.model.facts import TrainingFacts
from textcat.model.rules import Rules, read_rules
from textcat.model.scorer import Scorer
from textcat.model.selection import BATCH_DOCUMENTS, Selection, Tag, Tags, n_at_once, reasons_of
from textcat.model.support import SupportDocuments
from textcat.model.topic_names import find_topic, topic_label
from textcat.model.training_counts import TrainingCounts
from textcat.reading import document_stream

if TYPE_CHECKING:
    from textcat.model.explain import Explanation


class Scored(NamedTuple):
    """The scores of documents, and for each document whether it has a term of the model."""

    scores: np.ndarray  # shape (n_documents, n_topics), float32
    has_terms: np.ndarray  # shape (n_documents,), bool


Records: TypeAlias = Iterable[str | Zoned | Mapping[str, Any]] | Any


@dataclass(frozen=True, eq=False, repr=False)
class Tagger:
    """A trained tagger: `textcat.train` makes one, `textcat.load` reads one.

    Parameters
    ----------
    features : TfIdf
        Fitted.
    scorer : Scorer
        Turns document vectors into scores: `Dense`, `Sparse` or `Listed`.
    decisions : Decisions
        Turns scores into the topics that documents get, and into probabilities.
    topics : tuple of str
    facts : TrainingFacts
        What it records about its training: numbers of documents, the recipe, the corpus and others.
    evaluation : Evaluation, optional
        The evaluation made after training; without scores if the tagger was read from a folder.
    support : SupportDocuments, optional
        The support documents, if they are kept for explanations.
    training_counts : TrainingCounts, optional
        Counts that `textcat.learn` needs; None if the tagger was read from a folder.
    topic_names, names_language : dict of str to str, str
        The preferred names of topics, by id, if training had a vocabulary; and their language, "" if unknown.
    broader : dict of str to tuple of str
        By topic: its nearest broader topics; topics without any are missing.
    folder : Path, optional
        The folder it was read from.
    """

    features: TfIdf
    scorer: Scorer
    decisions: Decisions
    topics: tuple[str, ...]
    facts: TrainingFacts
    evaluation: Evaluation | None = None
    support: SupportDocuments | None = None
    training_counts: TrainingCounts | None = None
    topic_names: Mapping[str, str] = field(default_factory=dict)
    names_language: str = ""
    broader: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", self.decisions.checked(self.topics))

    def __repr__(self) -> str:
        return f"Tagger({len(self.topics):,} topics, {self._description()})"

    def _description(self) -> str:
        """Return one line: the number of features, the training documents, and the learner."""
        documents = f"{self.facts.train_documents:,} documents of {self.facts.corpus!r}"
        return f"{len(self.features.idf_):,} features, trained on {documents} by {self.facts.recipe.learner['name']}"

    def _repr_html_(self) -> str:
        order = np.argsort(-self.facts.train_sizes, kind="stable").tolist()
        sizes = {self.topics[j]: int(self.facts.train_sizes[j]) for j in order}
        rows = (
            (topic_label(topic, self.topic_names), size, ", ".join(term for term, _ in self.terms(topic, 5)))
            for topic, size in sizes.items()
        )
        caption = f"Tagger: {len(self.topics):,} topics, {self._description()}"
        head = ("topic", "training documents", "terms of largest weight")
        return largest_topics_table(caption, head, rows, len(self.topics))

    def scores(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Score documents for every topic.

        Parameters
        ----------
        documents : iterable of str, Document or dict, or DataFrame or Series of pandas or polars
        text : str or sequence of str, optional
            The columns, or the fields of a dict, that hold the text, as in `Corpus.from_records`. The defaults are the
            columns named in training, if the table or dict has all of them; otherwise the defaults of
            `Corpus.from_records`.

        Returns
        -------
        scores : ndarray of shape (n_documents, n_topics), float32
            Signed, unscaled; larger = more relevant. Not a probability. For a DataFrame or Series, a DataFrame of the
            same library and index, with a column per topic.

        Raises
        ------
        TextcatError
            If a single text or a single record is given, a column is missing, or a document has no text.
        """
        return answer_in_kind(documents, self.scored(documents, text=text).scores, self.topics)

    def scored(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Scored:
        """Return the scores of documents, and for each document whether it has a term of the model.

        Parameters
        ----------
        documents, text
            As for `scores`, which lists the errors raised.

        Returns
        -------
        Scored
            `scores`, of shape (n_documents, n_topics), and `has_terms`, of shape (n_documents,).
        """
        blocks = [
            (self.scorer.scores(rows), rows.has_terms)
            for rows in self.features.row_blocks(self._stream(documents, text))
        ]
        if not blocks:
            return Scored(np.zeros((0, len(self.topics)), np.float32), np.zeros(0, bool))
        return Scored(*map(np.concatenate, zip(*blocks, strict=True)))

    def _row_blocks(self, documents: Iterable[Any]) -> Iterator[tuple[Rows, np.ndarray | None]]:
        """Yield the vectors of some documents at a time, and which conditions of rules hold for them (see `select`)."""
        if self.decisions.holding(()) is None:
            yield from zip(self.features.row_blocks(documents), repeat(None))
            return
        read: list[Any] = []

        def kept() -> Iterator[Any]:
            for document in documents:
                read.append(document)
                yield document

        for rows in self.features.row_blocks(kept()):
            n = len(rows.indptr) - 1
            yield rows, self.decisions.holding(read[:n])
            del read[:n]

    def _stream(self, documents: Records, text: str | Sequence[str] | None) -> Iterator[Any]:
        return document_stream(documents, text, self.facts.text_columns)

    def predict_proba(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Return the probability that each document has each topic; those of a document need not add up to 1.

        Parameters
        ----------
        documents, text
            As for `scores`.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_topics), float64, or DataFrame

        Raises
        ------
        TextcatError
            As for `scores`, or if the tagger has no probabilities because its recipe has the strategy "zero", or too
            few documents were trained on.
        """
        probabilities = self.decisions.curves().probabilities(self.scores(documents, text=text))
        return answer_in_kind(documents, probabilities, self.topics)

    def predict(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Return whether each document gets each topic: 1 or 0.

        Parameters
        ----------
        documents, text
            As for `scores`, which lists the errors raised.

        Returns
        -------
        given : ndarray of shape (n_documents, n_topics), int64, or DataFrame
        """
        given = [np.zeros((0, len(self.topics)), bool)]
        for rows, holding in self._row_blocks(self._stream(documents, text)):
            given.append(self.decisions.decide(self.scorer.scores(rows), rows.has_terms, holding))
        return answer_in_kind(documents, np.concatenate(given).astype(np.int64), self.topics)

    def expected_recalls(self, documents: Records, *, text: str | Sequence[str] | None = None) -> np.ndarray:
        """Return the expected recall of each document's tags above the thresholds: the share of its topics among them.

        Parameters
        ----------
        documents, text
            As for `scores`, which lists the errors raised.

        Returns
        -------
        recalls : ndarray of shape (n_documents,), float64

        Raises
        ------
        TextcatError
            As for `scores`, or if the tagger makes no promises.
        """
        expected = [np.zeros(0)]
        for rows, holding in self._row_blocks(self._stream(documents, text)):
            expected.append(self.decisions.expected_recalls(self.scorer.scores(rows), rows.has_terms, holding))
        return np.concatenate(expected)

    def tag(
        self,
        documents: Records,
        *,
        top: int | None = None,
        all_topics: bool = False,
        min_probability: float | None = None,
        text: str | Sequence[str] | None = None,
    ) -> Tags:
        """Return the topics of each document, the highest score first; by default, those above their thresholds.

        A document without any term of the model gets no topic. With a recipe for one topic per document (`single`),
        each document gets exactly one topic, even without a term, unless the other arguments or rules say otherwise.

        Parameters
        ----------
        documents, text
            As for `scores`.
        top, all_topics, min_probability
            As for `select`.

        Returns
        -------
        Tags
            A list of tags per document; `reasons` marks documents without any term of the model; `to_frame` returns the
            tags as a table.
        """
        selection = Selection(top, all_topics, min_probability).checked()
        tagged = [*self._tagged(_batches(self._stream(documents, text), BATCH_DOCUMENTS), selection)]
        tags, reasons = (tags for tags, _ in tagged), (reason for _, reason in tagged)
        has_status = self.decisions.promises is not None
        return Tags(tags, documents, self.topic_names, reasons, has_status=has_status)

    def tag_stream(
        self,
        documents: Records,
        *,
        batch: int = 1024,
        top: int | None = None,
        all_topics: bool = False,
        min_probability: float | None = None,
        text: str | Sequence[str] | None = None,
    ) -> Iterator[list[Tag]]:
        """Yield the tags of each document, as `tag` returns them, while documents are being read.

        Memory does not grow with the number of documents; the stream may be endless. Documents are scored in batches of
        at most 16 MB of scores.

        Parameters
        ----------
        documents, text
            As for `scores`.
        batch : int, default=1024
            The number of documents to read before their tags are yielded. Larger batches are faster; with 1, no
            document is read ahead.
        top, all_topics, min_probability
            As for `select`.

        Yields
        ------
        list of Tag
        """
        check_whole_number(batch, 1, "The number of documents in a batch")
        selection = Selection(top, all_topics, min_probability).checked()
        tagged = self._tagged(_batches(self._stream(documents, text), batch), selection)
        return (tags for tags, _ in tagged)

    def select(
        self,
        scores: np.ndarray,
        *,
        top: int | None = None,
        all_topics: bool = False,
        min_probability: float | None = None,
        has_terms: np.ndarray | None = None,
        holding: np.ndarray | None = None,
        given: np.ndarray | None = None,
    ) -> list[list[Tag]]:
        """Select the tags of documents by their scores; each document's highest score comes first.

        Topics of equal scores keep their order in `topics`.

        Parameters
        ----------
        scores : ndarray of shape (n_documents, n_topics), float32
        top : int >= 1, optional
            Return this many topics of each document, those with the highest scores (with one topic per document: the
            highest probabilities), regardless of thresholds and rules.
        all_topics : bool, default=False
            Return all topics of each document, regardless of thresholds and rules; with a shortlist, all topics on it.
        min_probability : float in [0, 1], optional
            Return only topics with at least this probability, regardless of thresholds; if each document gets exactly
            one topic (`single`), it gets none below this probability.
        has_terms : ndarray of shape (n_documents,), bool, optional
            Which documents have a term of the model, as returned by `scored`; by default, all. The other documents get
            no topic, unless each document must get one (`single`).
        holding : ndarray of shape (n_documents, n_conditions), bool, optional
            Which conditions of rules hold for which documents, as returned by `Decisions.holding`; by default none.
        given : ndarray of shape (n_documents, n_topics), bool, optional
            The result of `Decisions.decide`, if it is known; it is not used with `top`, `all_topics` or
            `min_probability`.

        Returns
        -------
        list of list of Tag

        Raises
        ------
        TextcatError
            If the number of topics is invalid, or `min_probability` is given and the tagger has no probabilities.
        """
        selection = Selection(top, all_topics, min_probability).checked()
        return self._selected(scores, has_terms, holding, selection, given)

    def _tagged(
        self, batches: Iterable[Iterable[Any]], selection: Selection
    ) -> Iterator[tuple[list[Tag], Reason | None]]:
        """Yield each document's tags, and the reason if it gives no evidence; documents are scored in batches."""
        step = n_at_once(self.scorer)
        for rows, holding in chain.from_iterable(map(self._row_blocks, batches)):
            for start in range(0, len(rows.indptr) - 1, step):
                held = rows.part(start, start + step)
                of_held = None if holding is None else holding[start : start + step]
                tags = self._tags_of_rows(held, held.has_terms, of_held, selection)
                yield from zip(tags, reasons_of(held.has_terms), strict=True)

    def _tags_of_rows(
        self, rows: Rows, has_terms: np.ndarray, holding: np.ndarray | None, selection: Selection
    ) -> list[list[Tag]]:
        if selection.top is None or self.decisions.single:
            return self._selected(self.scorer.scores(rows), has_terms, holding, selection)
        columns, values = self.scorer.top(rows, selection.top)
        n_documents, n = columns.shape
        tags = self._tags(np.repeat(np.arange(n_documents), n), columns.ravel(), values.ravel(), n_documents)
        return self._with_evidence(selection.likely(tags), has_terms)

    def _selected(
        self,
        scores: np.ndarray,
        has_terms: np.ndarray | None,
        holding: np.ndarray | None,
        selection: Selection,
        given: np.ndarray | None = None,
    ) -> list[list[Tag]]:
        if selection.all_topics or selection.top:
            columns = self.decisions.first_topics(scores, selection.top)
            rows, columns = np.repeat(np.arange(len(scores)), columns.shape[1]), columns.ravel()
            tags = selection.likely(self._tags(rows, columns, scores[rows, columns], len(scores)))
            return self._with_evidence(tags, has_terms)
        decisions = self.decisions
        if selection.min_probability is not None:
            decisions, given = decisions.with_min_probability(selection.min_probability), None
        if given is None:
            given = decisions.decide(scores, has_terms, holding)
        rows, columns = np.nonzero(given)
        by_score = np.lexsort((columns, -scores[rows, columns], rows))
        rows, columns = rows[by_score], columns[by_score]
        statuses = None
        if decisions.rules is not None and (automatic := decisions.automatic(scores, given, holding)) is not None:
            of_tags = automatic[rows, columns].tolist()
            statuses = [Status.AUTOMATIC if is_automatic else Status.REVIEW for is_automatic in of_tags]
        return self._tags(rows, columns, scores[rows, columns], len(scores), statuses)

    def _with_evidence(self, tags: list[list[Tag]], has_terms: np.ndarray | None) -> list[list[Tag]]:
        """Drop the tags of documents without a term of the model, unless each document must have a topic."""
        if has_terms is None or self.decisions.single or has_terms.all():
            return tags
        return [
            tags_of_document if has_term else [] for tags_of_document, has_term in zip(tags, has_terms, strict=True)
        ]

    def _tags(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        n_documents: int,
        statuses: Sequence[Status | None] | None = None,
    ) -> list[list[Tag]]:
        """Return the tags of each document, given cells of a score matrix (sorted by rows) and their values.

        By default, the status of each tag follows from its score. Topics that are not on a document's shortlist are
        dropped, unless there are rules.
        """
        unlisted = values <= self.scorer.unlisted_score
        if unlisted.any() and self.decisions.rules is None:  # such topics have neither score nor probability
            rows, columns, values = rows[~unlisted], columns[~unlisted], values[~unlisted]
        probabilities: Iterable[float | None] = repeat(None)
        if (calibration := self.decisions.calibration) is not None:
            probabilities = calibration.of_topics(columns).probabilities(values).tolist()
        names = map(self.topics.__getitem__, columns.tolist())
        statuses = self.decisions.statuses(values, columns) if statuses is None else statuses
        tags = list(map(Tag, names, values.tolist(), probabilities, statuses))
        ends = np.cumsum(np.bincount(rows, minlength=n_documents)).tolist()
        return [tags[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def promises(self) -> dict[str, Promise]:
        """The promises of each topic, by the topic's id; {} if the model makes none."""
        promises = self.decisions.promises
        return {} if promises is None else promises.by_topic(self.topics)

    def with_rules(self, path: str | PathLike[str] | None) -> "Tagger":
        """Return the tagger with the rules in a file, instead of those beside its folder.

        Parameters
        ----------
        path : str or Path, optional
            A TOML file: see docs/how-to/rules.md. None: without rules.

        Returns
        -------
        Tagger

        Raises
        ------
        TextcatError
            If the file cannot be read, names a topic that the tagger lacks, uses broader topics that the tagger does
            not have, or contradicts itself.
        """
        return self.with_rules_of("" if path is None else read_rules(path))

    def with_rules_of(self, text: str) -> "Tagger":
        """Return the tagger with the rules in the text of a file; "": without rules."""
        rules = Rules.parse(text, self.topics, self.topic_names, self.broader) if text else None
        return replace(self, decisions=replace(self.decisions, rules=rules))

    def terms(self, topic: str, n: int = 20) -> list[tuple[str, float]]:
        """Return the n terms with the largest weights for a topic, and these weights, the largest first.

        Parameters
        ----------
        topic : str
            The id of the topic, or its name.
        n : int, default=20

        Returns
        -------
        list of (str, float)
        """
        check_whole_number(n, 0, "The number of terms")
        weights = self.weights_of(topic)
        names = self.features.get_feature_names_out()
        return [(names[j], float(weights[j])) for j in np.argsort(-weights, kind="stable")[:n].tolist()]

    def weights_of(self, topic: str) -> np.ndarray:
        """Return the weights of a topic, given its id or name: shape (n_features,)."""
        return self.scorer.weights_of(self.topics.index(find_topic(self.topics, self.topic_names, topic)))

    def explain(self, document: str | Zoned | Mapping[str, Any], topic: str, n: int | None = 10) -> "Explanation":
        """Explain why a document has, or does not have, a topic: list terms for and against it, with their positions.

        Parameters
        ----------
        document : str, Document or dict
        topic : str
            The id of the topic, or its name.
        n : int or None, default=10
            The number of terms to list, those that change the score most; None: all.

        Returns
        -------
        Explanation

        Raises
        ------
        TextcatError
            If the model has no such topic, or if the topic is not on the model's shortlist for the document.
        """
        return self.explain_all(document, [topic], n)[0]

    def explain_all(
        self,
        document: str | Zoned | Mapping[str, Any],
        topics: Sequence[str] | None = None,
        n: int | None = 10,
        *,
        with_spans: bool = True,
    ) -> "list[Explanation]":
        """Explain several topics of a document.

        Parameters
        ----------
        document, n
            As for `explain`, which lists the errors raised.
        topics : sequence of str, optional
            By default the tags of the document.
        with_spans : bool, default=True
            False: positions of terms may be missing, which is faster.

        Returns
        -------
        list of Explanation
        """
        if n is not None:
            check_whole_number(n, 0, "The number of terms")
        from textcat.model.explain import Explainer  # imported here, so that tagging need not import it

        zoned = next(self._stream([document], None))
        counted = self.features.counted_texts([zoned])
        row = self.features.rows_of_counts(*counted)
        scores = self.scorer.scores(row)
        holding = self.decisions.holding([zoned])
        if topics is None:
            topics = [tag.topic for tag in self.select(scores, has_terms=row.has_terms, holding=holding)[0]]
        parts = self.features, self.scorer, self.decisions, self.topics, self.topic_names, self.support
        explainer = Explainer(*parts, counted, row, scores, holding)
        return explainer.explanations(topics, n, places_in=zoned if with_spans else None)


def _batches(stream: Iterator[Any], n: int) -> Iterator[list[Any]]:
    return iter(lambda: list(islice(stream, n)), [])
