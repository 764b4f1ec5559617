"""The trained thing: features, one ranker per topic, thresholds; it scores, tags and explains documents."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from textcat.documents import Corpus, html_table
from textcat.errors import TextcatError
from textcat.evaluation.evaluation import Evaluation, one_topic
from textcat.evaluation.thresholds import Calibration
from textcat.features.rows import Rows
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Zoned
from textcat.model._product import highest, product, sparse_product
from textcat.model._product import top as sparse_top
from textcat.model.shortlist import NOT_LISTED, Shortlist
from textcat.model.support import SupportDocuments
from textcat.model.training_counts import TrainingCounts
from textcat.progress import Stages
from textcat.reading import document_stream

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from textcat.model.explain import Explanation
    from textcat.recipe import Recipe

Records: TypeAlias = Iterable[str | Zoned | Mapping[str, Any]]
BATCH_DOCUMENTS = 4096  # documents that are read at the same time while tagging,
SCORE_BYTES = 16 << 20  # and the bytes of their scores that are held


class Tag(NamedTuple):
    """A topic of a document, its score (signed, unscaled), and its calibrated probability, if the model has them."""

    topic: str
    score: float
    probability: float | None = None


@dataclass(eq=False, repr=False)
class Tagger:
    """A trained tagger: make one by `textcat.train`, or read one by `textcat.load`.

    Parameters
    ----------
    features : TfIdf
        Fitted; of a tagger that was read from a folder, what was saved of it.
    weights, bias : ndarray of shape (n_features, n_topics), (n_topics,), float32
        A document's scores are its row times the weights, plus the bias. Weights of many topics may be a csr_array.
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
    shortlist, support, training_counts : optional
        With thousands of topics, which of them a document is ranked for; the support documents that the tagger keeps
        to explain by; and what `textcat.learn` needs, None in a tagger that was read from a folder.
    converged : ndarray of shape (n_topics,), bool, optional
        Whether training converged; None in a tagger that was read from a folder, of which `facts` tell it in words.
    """

    features: TfIdf
    weights: "np.ndarray | csr_array"
    bias: np.ndarray
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
    shortlist: Shortlist | None = None
    support: SupportDocuments | None = None
    training_counts: TrainingCounts | None = None
    converged: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weights, np.ndarray):
            rows = self.weights.tocsr()
            if not rows.has_canonical_format:
                rows = rows.copy()
                rows.sum_duplicates()
            self.weights = csr_weights(rows.indptr, rows.indices, rows.data, len(self.topics))

    def __repr__(self) -> str:
        return f"Tagger({len(self.topics):,} topics, {_description(self)})"

    def _repr_html_(self) -> str:
        order = np.argsort(-self.train_sizes, kind="stable").tolist()
        sizes = {self.topics[j]: f"{self.train_sizes[j]:,}" for j in order}
        rows = ((topic, size, ", ".join(term for term, _ in self.terms(topic, 5))) for topic, size in sizes.items())
        caption = f"Tagger: {len(self.topics):,} topics, {_description(self)}"
        return html_table(caption, ("topic", "training documents", "terms of largest weight"), rows, len(self.topics))

    @classmethod
    def fit(
        cls,
        corpus: Corpus,
        recipe: "Recipe | None" = None,
        *,
        n_jobs: int | None = None,
        rows_dir: str | os.PathLike[str] | None = None,
        keep_support: str | None = None,
        updatable: bool = False,
        stages: Stages | None = None,
    ) -> "Tagger":
        """Train a tagger on the training documents of a corpus: the same as `textcat.train`.

        Parameters
        ----------
        corpus, recipe, n_jobs, rows_dir, keep_support, updatable, stages
            As for `textcat.train`, which also says what is raised.

        Returns
        -------
        Tagger
        """
        import textcat  # through the front door: training knows this module, and this module must not know training

        options: dict[str, Any] = {"keep_support": keep_support, "updatable": updatable, "stages": stages}
        return textcat.train(corpus, recipe, n_jobs=n_jobs, rows_dir=rows_dir, **options)

    def scores(self, documents: Records, *, text: str | Sequence[str] = "text") -> np.ndarray:
        """Score documents for every topic.

        Parameters
        ----------
        documents : iterable of str, Document or dict
        text : str or sequence of str
            The fields of a dict that hold its text, as in `Corpus.from_records`.

        Returns
        -------
        scores : ndarray of shape (n_documents, n_topics), float32
            Signed, unscaled; larger = more relevant. Not a probability.

        Raises
        ------
        TextcatError
            If a table, a single text or a single record is given, or a dict has no text.
        """
        blocks = list(map(self.score_rows, self.features.row_blocks(document_stream(documents, text))))
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.topics)), np.float32)

    def score_rows(self, rows: Rows) -> np.ndarray:
        """Return the scores of rows, as `scores` does of documents."""
        if self.shortlist is not None:
            rows = rows._replace(data=rows.data.astype(np.float32, copy=False))
            return self.shortlist.scores(rows, self.weights, self.bias)
        if not _is_compiled(self, rows):
            product_ = self.features.matrix(rows) @ self.weights
            return np.asarray((product_.toarray() if self.sparse_weights else product_) + self.bias)
        if self.sparse_weights:
            return np.asarray(sparse_product(*rows, *self.sparse_parts, self.bias))
        return np.asarray(product(*rows, self.weights, self.bias))

    @property
    def sparse_weights(self) -> bool:
        """Whether the weights are kept without their zeros."""
        return not isinstance(self.weights, np.ndarray)

    @property
    def sparse_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The CSR arrays of sparse weights: where each feature starts, the topics, and the weights."""
        weights: Any = self.weights
        return weights.indptr, weights.indices, weights.data

    @property
    def n_held(self) -> int:
        """The number of documents, at least 1, whose scores may be in memory at the same time."""
        return max(1, min(BATCH_DOCUMENTS, SCORE_BYTES // (self.bias.itemsize * max(len(self.topics), 1))))

    def predict_proba(self, documents: Records, *, text: str | Sequence[str] = "text") -> np.ndarray:
        """Return the probability that each document belongs to each topic; they need not add up to 1 for a document.

        Parameters
        ----------
        documents, text
            As for `scores`.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_topics), float64

        Raises
        ------
        TextcatError
            As for `scores`, or if the tagger has no probabilities, as its recipe has the strategy "zero".
        """
        return self._curves().probabilities(self.scores(documents, text=text))

    def tag(
        self,
        documents: Records,
        *,
        top: int | None = None,
        everything: bool = False,
        min_probability: float | None = None,
        text: str | Sequence[str] = "text",
    ) -> list[list[Tag]]:
        """Return the topics of each document, the highest score first: by default those that score above thresholds.

        With a recipe for one topic per document (`single`), that is exactly one topic.

        Parameters
        ----------
        documents, text
            As for `scores`.
        top, everything, min_probability
            As for `select`.

        Returns
        -------
        list of list of Tag
        """
        choice: dict[str, Any] = {"top": top, "everything": everything, "min_probability": min_probability}
        return list(self.tag_stream(documents, batch=BATCH_DOCUMENTS, text=text, **choice))

    def tag_stream(
        self,
        documents: Records,
        *,
        batch: int = 1024,
        top: int | None = None,
        everything: bool = False,
        min_probability: float | None = None,
        text: str | Sequence[str] = "text",
    ) -> Iterator[list[Tag]]:
        """Yield the tags of each document, as `tag` gives them, while documents are being read.

        Memory does not grow with the number of documents, which may be endless, nor with the number of topics: as many
        documents are scored at a time as have 16 MB of scores, or one.

        Parameters
        ----------
        documents, text
            As for `scores`.
        batch : int, default=1024
            How many documents are read before their tags are yielded. Larger batches are faster; 1 reads none ahead.
        top, everything, min_probability
            As for `select`.

        Yields
        ------
        list of Tag
        """
        if batch < 1:
            raise TextcatError(f"Documents cannot be tagged in batches of {batch}: give 1 or more.")
        _check_choice(top, everything)
        stream = document_stream(documents, text)
        batches = iter(lambda: list(islice(stream, batch)), [])
        blocks = chain.from_iterable(_held_blocks(self, documents) for documents in batches)
        choice: dict[str, Any] = {"everything": everything, "min_probability": min_probability}
        return chain.from_iterable(_tags_of_rows(self, rows, top, **choice) for rows in blocks)

    def select(
        self,
        scores: np.ndarray,
        *,
        top: int | None = None,
        everything: bool = False,
        min_probability: float | None = None,
    ) -> list[list[Tag]]:
        """Return the tags of documents, given their scores; each document's highest score first.

        Of equal scores, the topic that stands first in `topics` comes first.

        Parameters
        ----------
        scores : ndarray of shape (n_documents, n_topics), float32
        top : int >= 1, optional
            Return this many topics of each document, those with the highest scores (with one topic per document: the
            highest probabilities), in place of those above their thresholds.
        everything : bool, default=False
            Return all topics of each document; with a shortlist, all that are listed for it.
        min_probability : float in [0, 1], optional
            Return no topic of a lower probability; it replaces the thresholds, unless each document gets one topic.

        Returns
        -------
        list of list of Tag

        Raises
        ------
        TextcatError
            If the number of topics is not possible, or the tagger has no probabilities to compare.
        """
        _check_choice(top, everything)
        if everything or top:
            columns = self.first_topics(scores, top)
            rows, columns = np.repeat(np.arange(len(scores)), columns.shape[1]), columns.ravel()
            tags = _tags(self, rows, columns, scores[rows, columns], len(scores))
            return tags if min_probability is None else _likely(tags, min_probability)
        tagger = self if min_probability is None else self.with_min_probability(min_probability)
        rows, columns = np.nonzero(tagger.decide(scores))
        by_score = np.lexsort((columns, -scores[rows, columns], rows))
        rows, columns = rows[by_score], columns[by_score]
        return _tags(self, rows, columns, scores[rows, columns], len(scores))

    def with_min_probability(self, probability: float) -> "Tagger":
        """Return a tagger whose thresholds are the scores of a probability."""
        return replace(self, thresholds=self._curves().threshold(probability))

    def _curves(self) -> Calibration:
        if self.calibration is None:
            raise TextcatError(
                "The model has no probabilities, as its recipe has the strategy 'zero': "
                "train it by one with another strategy in [tags], such as 'probability'."
            )
        return self.calibration

    def first_topics(self, scores: np.ndarray, n: int | None) -> np.ndarray:
        """Return the first topics in each document's ranking; topics with equal scores keep the order of `topics`.

        Parameters
        ----------
        scores : ndarray of shape (n_documents, n_topics), float32
        n : int or None
            How many topics; None: all.

        Returns
        -------
        columns : ndarray of shape (n_documents, n), int
        """
        values = _comparable(self, scores)
        if n is not None and values.dtype == np.float32:
            return np.asarray(highest(np.ascontiguousarray(values), min(n, values.shape[1]))[0])
        return np.argsort(-values, axis=1, kind="stable")[:, :n]

    @property
    def single(self) -> bool:
        """Whether each document gets exactly one topic, that of the highest probability."""
        return bool(self.recipe.get("tags", {}).get("strategy") == "single")

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Return which documents get which topics, given their scores: bool of shape (n_documents, n_topics)."""
        return np.asarray(scores > self.cut_scores(scores))

    def cut_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the thresholds of scores: one per topic, or if `single` one per score."""
        return one_topic(_comparable(self, scores)) if self.single else self.thresholds

    def terms(self, topic: str, n: int = 20) -> list[tuple[str, float]]:
        """Return the n terms with the largest weights for a topic, and the weights, the largest first.

        Parameters
        ----------
        topic : str
        n : int, default=20

        Returns
        -------
        list of (str, float)
        """
        weights = self.weights_of(topic)
        names = self.features.get_feature_names_out()
        return [(names[j], float(weights[j])) for j in np.argsort(-weights, kind="stable")[:n].tolist()]

    def explain(self, document: str | Zoned | Mapping[str, Any], topic: str, n: int | None = 10) -> "Explanation":
        """Return why a document has, or has not, a topic: the terms that speak for or against it, and where they stand.

        Parameters
        ----------
        document : str, Document or dict
        topic : str
        n : int or None, default=10
            How many terms are listed: those that change the score most; None: all.

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
        from textcat.model.explain import explain_document  # here, so that tagging need not import it

        return explain_document(self, next(document_stream([document], "text")), topics, n)

    def weights_of(self, topic: str, features: np.ndarray | None = None) -> np.ndarray:
        """Return a topic's weights.

        Parameters
        ----------
        topic : str
        features : ndarray of int, optional
            The features whose weights are asked for, by default all.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        if topic not in self.topics:
            raise TextcatError(f"The model has no topic {topic!r}; `textcat topics MODEL` lists what it has.")
        column = self.topics.index(topic)
        if self.sparse_weights:
            return _sparse_column(self.sparse_parts, column, features)
        return np.asarray(self.weights[slice(None) if features is None else features, column])

    def evaluate(
        self, corpus: Corpus, *, bands: str | Iterable[str] | None = None, stages: Stages | None = None
    ) -> Evaluation:
        """Measure the ranking of a corpus' test documents.

        With fewer than 1,000 topics, this measures how each topic ranks the documents, and the decisions. With more, it
        measures the first topics of each document, and topics that the model does not know count as not found. Bands
        are made by the sizes of topics in training. If the corpus has no test documents and the model was trained on
        it, what was measured after training is returned: `measured_on` says how.

        Parameters
        ----------
        corpus : Corpus
        bands : str or iterable of str, optional
            As `spec` in `textcat.evaluate`, or with many topics in `textcat.evaluate_at_k`.
        stages : Stages, optional
            Times the work, and draws its progress.

        Returns
        -------
        Evaluation

        Raises
        ------
        TextcatError
            If the corpus has no test documents, and no evaluation on it was kept; or no test document has a topic of
            the model.
        """
        from textcat.model.measure import evaluate_tagger  # here, so that tagging need not import it

        return evaluate_tagger(self, corpus, bands=bands, stages=stages)


def _description(tagger: Tagger) -> str:
    learner = tagger.recipe.get("learner", {}).get("name", "paum")
    documents = f"{tagger.train_documents:,} documents of {tagger.corpus!r}"
    return f"{len(tagger.features.idf_):,} features, trained on {documents} by {learner}"


def _is_compiled(tagger: Tagger, rows: Rows) -> bool:
    """Return whether all numbers have the type that compiled code multiplies: others are multiplied by scipy."""
    return bool(rows.data.dtype == tagger.weights.dtype == tagger.bias.dtype == np.float32)


def _held_blocks(tagger: Tagger, documents: Iterable[Any]) -> Iterator[Rows]:
    """Yield the rows of documents in blocks whose scores fit in memory."""
    step = tagger.n_held
    for rows in tagger.features.row_blocks(documents):
        for start in range(0, len(rows.indptr) - 1, step):
            indptr = rows.indptr[start : start + step + 1]
            entries = slice(indptr[0], indptr[-1])
            yield Rows(indptr - indptr[0], rows.indices[entries], rows.data[entries])


def _tags_of_rows(
    tagger: Tagger, rows: Rows, top: int | None, *, everything: bool, min_probability: float | None
) -> list[list[Tag]]:
    """Return the tags of rows: see `select`."""
    if top is None or tagger.single or not tagger.sparse_weights or not _is_compiled(tagger, rows):
        choice: dict[str, Any] = {"everything": everything, "min_probability": min_probability}
        return tagger.select(tagger.score_rows(rows), top=top, **choice)
    n = min(top, len(tagger.topics))
    if tagger.shortlist is None:
        columns, values = sparse_top(*rows, *tagger.sparse_parts, tagger.bias, n)
    else:
        columns, values = tagger.shortlist.top(rows, tagger.weights, tagger.bias, n)
    n_documents, n = columns.shape
    tags = _tags(tagger, np.repeat(np.arange(n_documents), n), columns.ravel(), values.ravel(), n_documents)
    return tags if min_probability is None else _likely(tags, min_probability)


def _tags(
    tagger: Tagger, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_documents: int
) -> list[list[Tag]]:
    if tagger.shortlist is not None:  # how likely the others are, nobody knows
        listed = values > NOT_LISTED
        rows, columns, values = rows[listed], columns[listed], values[listed]
    probabilities: Iterable[float | None] = repeat(None)
    if tagger.calibration is not None:
        probabilities = tagger.calibration.of_topics(columns).probabilities(values).tolist()
    names = map(tagger.topics.__getitem__, columns.tolist())
    tags = list(map(Tag, names, values.tolist(), probabilities))
    ends = np.cumsum(np.bincount(rows, minlength=n_documents)).tolist()
    return [tags[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _comparable(tagger: Tagger, scores: np.ndarray) -> np.ndarray:
    """Return values that order a document's topics: scores, or log odds if each document has one topic."""
    if not tagger.single or tagger.calibration is None:
        return scores
    return np.asarray(scores * tagger.calibration.a + tagger.calibration.b)  # probabilities may all round to 1


def _sparse_column(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray], column: int, features: np.ndarray | None
) -> np.ndarray:
    starts, topics, values = parts
    weights = np.zeros(len(starts) - 1 if features is None else len(features), values.dtype)
    if features is None:
        entries = np.flatnonzero(topics == column)
        weights[np.searchsorted(starts, entries, side="right") - 1] = values[entries]
        return weights
    for i, (start, end) in enumerate(zip(starts[features].tolist(), starts[features + 1].tolist(), strict=True)):
        place = start + int(np.searchsorted(topics[start:end], np.int32(column)))  # topics are in order
        if place < end and topics[place] == column:
            weights[i] = values[place]
    return weights


def _check_choice(top: int | None, everything: bool) -> None:
    if top is not None and everything:
        raise TextcatError(f"Every topic and the {top} highest cannot be asked for together: choose one.")
    if top is not None and top < 1:
        raise TextcatError(f"The {top} highest topics cannot be given: ask for 1 or more.")


def _likely(tags: list[list[Tag]], min_probability: float) -> list[list[Tag]]:
    return [[tag for tag in of_document if (tag.probability or 0) >= min_probability] for of_document in tags]


def csr_weights(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_topics: int) -> "csr_array":
    """Return weights around arrays as they are, which may be mapped: scipy would copy those of indices, to one type."""
    from scipy.sparse import csr_array  # here, so that tagging with dense weights need not import it

    weights = csr_array((len(indptr) - 1, n_topics), dtype=data.dtype)
    weights.indptr, weights.indices = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    weights.data = data
    weights.has_canonical_format = True
    return weights
