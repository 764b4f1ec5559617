"""The tagger: features, one ranker per topic and thresholds. It scores, tags and explains documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError
from textcat.base.frames import answer_in_kind
from textcat.base.progress import Stages
from textcat.base.settings import check_whole_number
from textcat.corpus.documents import largest_topics_table
from textcat.evaluation.evaluation import Evaluation, one_topic
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Zoned
from textcat.model.scorer import Scorer
from textcat.model.selection import (
    BATCH_DOCUMENTS,
    Selection,
    Tag,
    Tags,
    comparable,
    curves,
    selected_tags,
    tags_of_batches,
)
from textcat.model.support import SupportDocuments
from textcat.model.topic_names import find_topic, topic_label
from textcat.model.training_counts import TrainingCounts
from textcat.reading import document_stream, named_in_training

if TYPE_CHECKING:
    from textcat.model.explain import Explanation
    from textcat.recipes.recipe import Recipe


def checked_thresholds(thresholds: Any, topics: Sequence[str]) -> np.ndarray:
    """Return thresholds as an array; raise TextcatError unless each topic has one, and none of them is NaN."""
    values = np.asanyarray(thresholds)  # as it is mapped into memory, perhaps
    if values.shape != (len(topics),) or values.dtype.kind not in "fiu":
        raise TextcatError(
            f"The thresholds {thresholds!r:.80} are not {len(topics):,} numbers: give one for each topic."
        )
    if np.isnan(values).any():
        topic = topics[int(np.isnan(values).argmax())]
        raise TextcatError(
            f"The threshold of {topic!r} is NaN: give a number, or inf for a topic that no document gets."
        )
    return values


class Scored(NamedTuple):
    """Hold the scores of documents, and which of them have a term that the model knows: others give no evidence."""

    scores: np.ndarray  # shape (n_documents, n_topics), float32
    has_terms: np.ndarray  # shape (n_documents,), bool


Records: TypeAlias = Iterable[str | Zoned | Mapping[str, Any]] | Any


@dataclass(eq=False, repr=False)
class Tagger:
    """Hold a trained tagger: make one by `textcat.train`, or read one by `textcat.load`.

    Parameters
    ----------
    features : TfIdf
        Fitted.
    scorer : Scorer
        Turns rows into scores: `Dense`, `Sparse` or `Listed`.
    thresholds : ndarray of shape (n_topics,), float32
        A document gets a topic if its score is above the threshold.
    topics : tuple of str
    train_sizes, train_documents : ndarray of shape (n_topics,), int
        Number of positive training documents of each topic, and of all training documents.
    facts : mapping of str to sequence of length n_topics
        What training knows about each topic: tau_pos, epochs, updates, support, stopped and others.
    recipe, corpus, origin : dict, str, dict
        The recipe, the name of the corpus, and its `Corpus.origin`.
    calibration : Calibration, optional
        The curves from scores to probabilities.
    evaluation : Evaluation, optional
        What was measured after training; without the scores if the tagger was read from a folder.
    support : SupportDocuments, optional
        The support documents, if they are kept for explanations.
    training_counts : TrainingCounts, optional
        Counts that `textcat.learn` needs; None if the tagger was read from a folder.
    topic_names, names_language : dict of str to str, str
        The preferred names of topics, by id, if training had a vocabulary; and their language, or "" if not known.
    converged : ndarray of shape (n_topics,), bool, optional
        Whether training converged; None if the tagger was read from a folder. `facts` has the same in words.
    choices : dict of str to dict
        What training chose by itself, and the figures by which it did, such as {"rows": {"chosen": "words", …}}.
    train_dates : (str, str), optional
        The first and the last date of the training documents, in ISO 8601; None if they have no dates.
    """

    features: TfIdf
    scorer: Scorer
    thresholds: np.ndarray
    topics: tuple[str, ...]
    train_sizes: np.ndarray
    train_documents: int
    facts: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)
    corpus: str = ""
    calibration: Calibration | None = None
    evaluation: Evaluation | None = None
    origin: dict[str, Any] = field(default_factory=dict)
    support: SupportDocuments | None = None
    training_counts: TrainingCounts | None = None
    topic_names: Mapping[str, str] = field(default_factory=dict)
    names_language: str = ""
    converged: np.ndarray | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    train_dates: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        self.thresholds = checked_thresholds(self.thresholds, self.topics)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "thresholds" and "topics" in vars(self):  # `__post_init__` checks those that come before the topics
            value = checked_thresholds(value, self.topics)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"Tagger({len(self.topics):,} topics, {self._description()})"

    def _description(self) -> str:
        """Return one line: the number of features, the training documents, and the learner."""
        learner = self.recipe.get("learner", {}).get("name", "paum")
        documents = f"{self.train_documents:,} documents of {self.corpus!r}"
        return f"{len(self.features.idf_):,} features, trained on {documents} by {learner}"

    def _repr_html_(self) -> str:
        order = np.argsort(-self.train_sizes, kind="stable").tolist()
        sizes = {self.topics[j]: int(self.train_sizes[j]) for j in order}
        rows = (
            (topic_label(topic, self.topic_names), size, ", ".join(term for term, _ in self.terms(topic, 5)))
            for topic, size in sizes.items()
        )
        caption = f"Tagger: {len(self.topics):,} topics, {self._description()}"
        head = ("topic", "training documents", "terms of largest weight")
        return largest_topics_table(caption, head, rows, len(self.topics))

    @classmethod
    def fit(
        cls,
        corpus: Any,
        recipe: "Recipe | str | PathLike[str] | None" = None,
        **options: Any,
    ) -> "Tagger":
        """Train a tagger on the training documents of a corpus: the same as `textcat.train`.

        Parameters
        ----------
        corpus, recipe, **options
            As for `textcat.train`, which also says what is raised.

        Returns
        -------
        Tagger
        """
        import textcat  # through the front door: training knows this module, and this module must not know training

        return textcat.train(corpus, recipe, **options)

    def scores(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Score documents for every topic.

        Parameters
        ----------
        documents : iterable of str, Document or dict, or DataFrame or Series of pandas or polars
        text : str or sequence of str, optional
            The columns, or the fields of a dict, that hold the text, as in `Corpus.from_records`. By default, they are
            `text_columns` if a table or a dict has all of these, otherwise those that `Corpus.from_records` takes.

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
        """Return the scores of documents, and which documents have a term that the model knows.

        Parameters
        ----------
        documents, text
            As for `scores`, which also says what is raised.

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

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns or fields of texts that training named; () if it named none."""
        return named_in_training(self.origin)

    def _stream(self, documents: Records, text: str | Sequence[str] | None) -> Iterator[Any]:
        return document_stream(documents, text, self.text_columns)

    def predict_proba(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Return the probability that each document has each topic; a document's probabilities need not add up to 1.

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
            As for `scores`, or if the tagger has no probabilities, as its recipe has the strategy "zero".
        """
        probabilities = curves(self).probabilities(self.scores(documents, text=text))
        return answer_in_kind(documents, probabilities, self.topics)

    def predict(self, documents: Records, *, text: str | Sequence[str] | None = None) -> Any:
        """Return whether each document gets each topic: 1 or 0.

        Parameters
        ----------
        documents, text
            As for `scores`, which also says what is raised.

        Returns
        -------
        given : ndarray of shape (n_documents, n_topics), int64, or DataFrame
        """
        given = self.decide(*self.scored(documents, text=text)).astype(np.int64)
        return answer_in_kind(documents, given, self.topics)

    def tag(
        self,
        documents: Records,
        *,
        top: int | None = None,
        all_topics: bool = False,
        min_probability: float | None = None,
        text: str | Sequence[str] | None = None,
    ) -> Tags:
        """Return the topics of each document, the highest score first: by default those that score above thresholds.

        A document without a term that the model knows gets no topic. With a recipe for one topic per document
        (`single`), each document gets exactly one topic.

        Parameters
        ----------
        documents, text
            As for `scores`.
        top, all_topics, min_probability
            As for `select`.

        Returns
        -------
        Tags
            A list of tags per document; `reasons` says which documents have no known term, and `to_frame` returns the
            tags as a table.
        """
        selection = Selection(top, all_topics, min_probability).checked()
        tagged = [*tags_of_batches(self, _batches(self._stream(documents, text), BATCH_DOCUMENTS), selection)]
        return Tags((tags for tags, _ in tagged), documents, self.topic_names, (reason for _, reason in tagged))

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

        Memory does not grow with the number of documents, which may be endless. Documents are scored in batches of at
        most 16 MB of scores.

        Parameters
        ----------
        documents, text
            As for `scores`.
        batch : int, default=1024
            The number of documents to read before their tags are yielded. Larger batches are faster; 1 reads none
            ahead.
        top, all_topics, min_probability
            As for `select`.

        Yields
        ------
        list of Tag
        """
        check_whole_number(batch, 1, "The number of documents in a batch")
        selection = Selection(top, all_topics, min_probability).checked()
        tagged = tags_of_batches(self, _batches(self._stream(documents, text), batch), selection)
        return (tags for tags, _ in tagged)

    def select(
        self,
        scores: np.ndarray,
        *,
        top: int | None = None,
        all_topics: bool = False,
        min_probability: float | None = None,
        has_terms: np.ndarray | None = None,
    ) -> list[list[Tag]]:
        """Return the tags of documents, given their scores; each document's highest score first.

        Topics of equal scores keep their order in `topics`.

        Parameters
        ----------
        scores : ndarray of shape (n_documents, n_topics), float32
        top : int >= 1, optional
            Return this many topics of each document, those with the highest scores (with one topic per document: the
            highest probabilities); thresholds do not count.
        all_topics : bool, default=False
            Return all topics of each document; with a shortlist, all topics on it.
        min_probability : float in [0, 1], optional
            Return only topics of this probability or a higher one; thresholds count only if each document gets one
            topic.
        has_terms : ndarray of shape (n_documents,), bool, optional
            Which documents have a term that the model knows, as `scored` returns it; by default all. The others get no
            topic, unless each document must get one (`single`).

        Returns
        -------
        list of list of Tag

        Raises
        ------
        TextcatError
            If the number of topics is not possible, or the tagger has no probabilities to compare.
        """
        return selected_tags(self, scores, has_terms, Selection(top, all_topics, min_probability).checked())

    def with_min_probability(self, probability: float) -> "Tagger":
        """Return a copy of the tagger whose thresholds are the scores that have the given probability."""
        return replace(self, thresholds=curves(self).threshold(probability))

    @property
    def single(self) -> bool:
        """Whether each document gets exactly one topic: the topic of the highest probability."""
        return bool(self.recipe.get("tags", {}).get("strategy") == "single")

    def decide(self, scores: np.ndarray, has_terms: np.ndarray | None = None) -> np.ndarray:
        """Return whether each document gets each topic, given the scores.

        Parameters
        ----------
        scores, has_terms
            As for `select`.

        Returns
        -------
        given : ndarray of shape (n_documents, n_topics), bool
        """
        above = np.asarray(scores > self.cut_scores(scores))
        if has_terms is not None and not self.single:
            above &= has_terms[:, None]
        return above

    def cut_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the thresholds that scores are compared with: one per topic or, if `single`, one per score.

        If `single`, each document gets exactly one topic, so that its thresholds depend on its other scores.
        """
        return one_topic(comparable(self, scores)) if self.single else self.thresholds

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
        weights = self.weights_of(find_topic(self.topics, self.topic_names, topic))
        names = self.features.get_feature_names_out()
        return [(names[j], float(weights[j])) for j in np.argsort(-weights, kind="stable")[:n].tolist()]

    def weights_of(self, topic: str) -> np.ndarray:
        """Return the weights of a topic, given its id: shape (n_features,)."""
        return self.scorer.weights_of(self.topics.index(topic))

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
        self, document: str | Zoned | Mapping[str, Any], topics: Sequence[str] | None = None, n: int | None = 10
    ) -> "list[Explanation]":
        """Explain several topics of a document, which is read once.

        Parameters
        ----------
        document, n
            As for `explain`, which also says what is raised.
        topics : sequence of str, optional
            By default the tags of the document.

        Returns
        -------
        list of Explanation
        """
        if n is not None:
            check_whole_number(n, 0, "The number of terms")
        from textcat.model.explain import explain_document  # here, so that tagging need not import it

        return explain_document(self, next(document_stream([document], None, self.text_columns)), topics, n)

    def evaluate(
        self, corpus: Any, *, bands: str | Iterable[str] | None = None, stages: Stages | None = None, **columns: Any
    ) -> Evaluation:
        """Measure the tagger on the test documents of a corpus, or on all documents of a table: see `textcat.evaluate`.

        Parameters
        ----------
        corpus, bands, stages, **columns
            As for `textcat.evaluate`, which also says what is raised.

        Returns
        -------
        Evaluation
        """
        from textcat.model.measure import evaluate_tagger  # here, so that tagging need not import it

        return evaluate_tagger(self, corpus, bands=bands, stages=stages, **columns)


def _batches(stream: Iterator[Any], n: int) -> Iterator[list[Any]]:
    return iter(lambda: list(islice(stream, n)), [])
