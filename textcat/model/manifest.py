"""Read and check a model's manifest, which says what the folder holds and how the model was trained, without arrays."""

import math
import os
from dataclasses import dataclass, field
from typing import Any

from textcat.base.folders import FolderFormat
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.expected_recall import N_WEIGHTS
from textcat.model import CARD, ModelError
from textcat.recipes.recipe import Recipe

VOCABULARY = "vocabulary.json"
TOKENIZER = "tokenizer.json"  # tables that find most tokens without spaCy, if the language allows it
ARRAYS = ("bias", "thresholds", "idf")
BIAS, THRESHOLDS, IDF = ARRAYS
WEIGHTS = "weights"  # of models with dense weights
PARTS = ("weights_indptr", "weights_indices", "weights_data")  # of models with sparse weights, in CSR form
CENTROIDS = ("centroids_indptr", "centroids_indices", "centroids_data")  # of models with a shortlist, in CSR form
RELATED = ("related_indptr", "related_indices", "related_data")  # which topics go with which, in CSR form, and the
RELATED_CURVES = "related_curves"  # curves from scores without their evidence to probabilities
SUPPORT_ROWS = ("kept_indptr", "kept_indices", "kept_data")  # of support documents, in CSR form,
SUPPORT_ALPHAS = ("alpha_indptr", "alpha_indices", "alpha_data")  # their coefficients by topic, in CSR form,
SUPPORT = "documents.json"  # and their ids, titles, and maybe texts;
SUPPORT_VECTORS = ("kept_words", "kept_vectors")  # columns with vectors, and these, if the rows have dimensions
COUNT_ARRAYS, COUNTS = "counts.npz", "counts.json"  # of updatable models; only `learn` reads them
CALIBRATION = "calibration"  # an array that only models with probabilities have
PROMISES = "promises"  # one that only models with promises have,
HELD_OUT = "held_out"  # and one that models with probabilities have if training scored held-out documents
FILES = frozenset({*(f"{name}.npy" for name in ARRAYS), VOCABULARY})
# What each scorer stores beside the bias, by the scorer's name.
_OF_SCORER = {
    "dense": frozenset({f"{WEIGHTS}.npy"}),
    "sparse": frozenset(f"{name}.npy" for name in PARTS),
    "listed": frozenset(f"{name}.npy" for name in (*PARTS, *CENTROIDS)),
}
_TOGETHER = (  # files of which a model has all or none
    frozenset(f"{name}.npy" for name in (*RELATED, RELATED_CURVES)),
    frozenset({*(f"{name}.npy" for name in SUPPORT_ROWS + SUPPORT_ALPHAS), SUPPORT}),
    frozenset(f"{name}.npy" for name in SUPPORT_VECTORS),
    frozenset({COUNT_ARRAYS, COUNTS}),
)
_OPTIONAL = frozenset({f"{CALIBRATION}.npy", f"{PROMISES}.npy", f"{HELD_OUT}.npy", TOKENIZER}).union(*_TOGETHER)
MAY_BE = _OPTIONAL.union(*_OF_SCORER.values())
_MOST_BEST = 100_000  # topics of a document that raise others: a stored scorer with more is damaged


@dataclass(frozen=True)
class Statistics:
    """Hold what the features have counted in training."""

    n_documents: int
    n_terms: int
    average_lengths: dict[str, float]

    def __post_init__(self) -> None:
        if any(type(length) is not float for length in self.average_lengths.values()):
            raise ValueError("the average lengths are not numbers")


@dataclass(frozen=True)
class SupportTexts:
    """Hold the ids, titles and, if they are kept, texts of support documents, as `SUPPORT` has them."""

    ids: list[str]
    titles: list[str]
    texts: list[dict[str, str]] | None  # by zone
    vector_step: float | None = None  # `ColumnVectors.step`; None: the rows have no dimensions

    def __post_init__(self) -> None:
        pieces = [piece for zones in self.texts or () for piece in (*zones.keys(), *zones.values())]
        "".join([*self.ids, *self.titles, *pieces]).encode()  # no lone surrogates
        if any(len(texts) != len(self.ids) for texts in (self.titles, self.texts) if texts is not None):
            raise ValueError("the lists of support documents do not fit together")
        if self.vector_step is not None and not 0 < self.vector_step < math.inf:
            raise ValueError("no vectors have such a step")


@dataclass(frozen=True)
class RelatedSettings:
    """Hold the numbers of `RelatedTopics`."""

    best: int
    weight: float
    least: float
    unseen: list[int]  # the columns of topics without training documents

    def __post_init__(self) -> None:
        if not (0 < self.best <= _MOST_BEST and 0 <= self.weight < math.inf and 0 < self.least < math.inf):
            raise ValueError("no related topics have such numbers")


@dataclass(frozen=True)
class ScorerSettings:
    """Hold the name of a scorer's class and, for "listed", the size of shortlists and the numbers of related topics."""

    name: str
    size: int = 0
    related: RelatedSettings | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Hold the entries of a model's manifest, in the order in which they are written.

    Raise ValueError for files that no model has together, and for lists that do not have an entry per topic.
    """

    format: int = 0
    versions: dict[str, str]
    corpus: str
    origin: dict[str, Any]
    recipe: Recipe
    train_documents: int
    train_dates: list[str] = field(default_factory=list)  # the first and the last one, if the documents have dates
    topics: list[str]
    topic_names: list[str | None] = field(default_factory=list)  # None or "": the topic has none; []: no topic has one
    names_language: str | None = None
    broader: list[list[int]] = field(default_factory=list)  # of each topic, columns of the nearest; []: none is known
    choices: dict[str, Any] = field(default_factory=dict)
    scorer: ScorerSettings
    train_sizes: list[int]
    expected_recall: list[float] = field(default_factory=list)  # `ExpectedRecall.weights`; []: no promises
    facts: dict[str, list[Any]]
    features: Statistics
    evaluation: Evaluation | None  # without the facts of topics, which are in `facts`
    files: dict[str, str]  # their checksums
    sha256: str = ""  # of the manifest's file

    def __post_init__(self) -> None:
        n, files = len(self.topics), self.files.keys()
        if (
            any(files & some not in (frozenset(), some) for some in _TOGETHER)
            or files - _OPTIONAL != FILES | _OF_SCORER.get(self.scorer.name, frozenset())
            or len({*self.topics}) != n
            or any(len(values) != n for values in (self.train_sizes, *self.facts.values()))
            or len(self.topic_names) not in (0, n)
            or len(self.broader) not in (0, n)
            or any(not 0 <= column < n for columns in self.broader for column in columns)
            or len(self.train_dates) not in (0, 2)
            or len(self.expected_recall) not in (0, N_WEIGHTS)
            or not all(map(math.isfinite, self.expected_recall))
            or self.train_documents < 1
        ):
            raise ValueError("its files, or its facts of topics and documents, do not fit together")
        "".join([*self.topics, *self.names.values(), self.names_language or ""]).encode()  # no lone surrogates

    @property
    def id(self) -> str:
        """The model's id, which outputs, servers and journals show: see `model_id`."""
        return model_id(self.sha256)

    @property
    def names(self) -> dict[str, str]:
        """The names of topics by id; topics without a name are missing."""
        return {topic: name for topic, name in zip(self.topics, self.topic_names, strict=False) if name}

    @property
    def broader_topics(self) -> dict[str, tuple[str, ...]]:
        """The nearest broader topics of each topic that has some."""
        pairs = zip(self.topics, self.broader, strict=False)
        return {topic: tuple(map(self.topics.__getitem__, columns)) for topic, columns in pairs if columns}

    @property
    def language(self) -> str:
        """The language of the topics' names or, if it is not known, of the texts."""
        return self.names_language or self.recipe.tokens.lang

    @property
    def sizes(self) -> dict[str, int]:
        """The number of positive training documents of each topic."""
        return dict(zip(self.topics, self.train_sizes, strict=True))


def model_id(checksum: str) -> str:
    """Return the id of a model: the first 12 digits of the sha256 of its manifest's file."""
    return checksum[:12]


MODEL = FolderFormat(
    name="model",
    content="the model",
    negation="not a model",
    error=ModelError,
    manifest=Manifest,
    version=13,
    files=FILES | MAY_BE,
    checksum="sha256",
    origin="Train one with `textcat train CORPUS --out FOLDER`, or copy one with `textcat pull SOURCE FOLDER`.",
    remedy="train the model again",
    unchecked=frozenset({CARD}),
)


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read a model's manifest, without its arrays; raise ModelError if it cannot be read."""
    with MODEL.open(folder) as model:
        return model.manifest
