"""Read and check a model's manifest: the folder's contents and how the model was trained, without arrays."""

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
TOKENIZER = "tokenizer.json"  # tables that tokenize most texts without spaCy, if the language allows it
ARRAYS = ("bias", "thresholds", "idf")
BIAS, THRESHOLDS, IDF = ARRAYS
WEIGHTS = "weights"  # of models with dense weights
PARTS = ("weights_indptr", "weights_indices", "weights_data")  # of models with sparse weights, in CSR form
CENTROIDS = ("centroids_indptr", "centroids_indices", "centroids_data")  # of models with a shortlist, in CSR form
RELATED = ("related_indptr", "related_indices", "related_data")  # shares of related topics, in CSR form, and the
RELATED_CURVES = "related_curves"  # calibration curves for scores without related topics
SUPPORT_ROWS = ("kept_indptr", "kept_indices", "kept_data")  # of support documents, in CSR form,
SUPPORT_ALPHAS = ("alpha_indptr", "alpha_indices", "alpha_data")  # their coefficients by topic, in CSR form,
SUPPORT = "documents.json"  # and their ids, titles, and maybe texts;
# columns with vectors, and the vectors, if rows have dimensions of vectors
SUPPORT_VECTORS = ("kept_words", "kept_vectors")
COUNT_ARRAYS, COUNTS = "counts.npz", "counts.json"  # of updatable models; tagging does not read them
CALIBRATION = "calibration"  # an array of models with probabilities only
PROMISES = "promises"  # an array of models with promises only,
HELD_OUT = "held_out"  # and an array of models with probabilities if training scored held-out documents
FILES = frozenset({*(f"{name}.npy" for name in ARRAYS), VOCABULARY})
# The arrays of each scorer besides the bias, by the scorer's name.
_OF_SCORER = {
    "dense": frozenset({f"{WEIGHTS}.npy"}),
    "sparse": frozenset(f"{name}.npy" for name in PARTS),
    "listed": frozenset(f"{name}.npy" for name in (*PARTS, *CENTROIDS)),
}
_TOGETHER = (  # groups of files: a model has all files of a group or none
    frozenset(f"{name}.npy" for name in (*RELATED, RELATED_CURVES)),
    frozenset({*(f"{name}.npy" for name in SUPPORT_ROWS + SUPPORT_ALPHAS), SUPPORT}),
    frozenset(f"{name}.npy" for name in SUPPORT_VECTORS),
    frozenset({COUNT_ARRAYS, COUNTS}),
)
_OPTIONAL = frozenset({f"{CALIBRATION}.npy", f"{PROMISES}.npy", f"{HELD_OUT}.npy", TOKENIZER}).union(*_TOGETHER)
MAY_BE = _OPTIONAL.union(*_OF_SCORER.values())
_MOST_BEST = 100_000  # maximum number of a document's topics that raise others: a stored scorer with more is damaged


@dataclass(frozen=True)
class Statistics:
    """Counts of documents and terms from fitting the features."""

    n_documents: int
    n_terms: int
    average_lengths: dict[str, float]

    def __post_init__(self) -> None:
        if any(type(length) is not float for length in self.average_lengths.values()):
            raise ValueError("the average lengths are not numbers")


@dataclass(frozen=True)
class SupportTexts:
    """Ids, titles and, if they are kept, texts of support documents: the contents of the file `SUPPORT`."""

    ids: list[str]
    titles: list[str]
    texts: list[dict[str, str]] | None  # by zone
    vector_step: float | None = None  # `ColumnVectors.step`; None: rows have no dimensions of vectors

    def __post_init__(self) -> None:
        pieces = [piece for zones in self.texts or () for piece in (*zones.keys(), *zones.values())]
        "".join([*self.ids, *self.titles, *pieces]).encode()  # raises an error for lone surrogates
        if any(len(texts) != len(self.ids) for texts in (self.titles, self.texts) if texts is not None):
            raise ValueError("the lists of support documents do not fit together")
        if self.vector_step is not None and not 0 < self.vector_step < math.inf:
            raise ValueError("no vectors have such a step")


@dataclass(frozen=True)
class RelatedSettings:
    """The scalar settings of `RelatedTopics`."""

    best: int
    weight: float
    least: float
    unseen: list[int]  # the columns of topics without training documents

    def __post_init__(self) -> None:
        if not (0 < self.best <= _MOST_BEST and 0 <= self.weight < math.inf and 0 < self.least < math.inf):
            raise ValueError("no related topics have such numbers")


@dataclass(frozen=True)
class ScorerSettings:
    """The name of a scorer's class and, for "listed", the size of shortlists and the settings of related topics."""

    name: str
    size: int = 0
    related: RelatedSettings | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The entries of a model's manifest, in the order in which they are written.

    Raise ValueError for an impossible combination of files, and for lists without an entry for each topic.
    """

    format: int = 0
    versions: dict[str, str]
    corpus: str
    origin: dict[str, Any]
    recipe: Recipe
    train_documents: int
    train_dates: list[str] = field(default_factory=list)  # first and last date, if the documents have dates
    topics: list[str]
    # None or "": the topic has no name; []: no topic has a name
    topic_names: list[str | None] = field(default_factory=list)
    names_language: str | None = None
    # for each topic, the columns of its nearest broader topics; []: there are none
    broader: list[list[int]] = field(default_factory=list)
    choices: dict[str, Any] = field(default_factory=dict)
    scorer: ScorerSettings
    train_sizes: list[int]
    expected_recall: list[float] = field(default_factory=list)  # `ExpectedRecall.weights`; []: no promises
    facts: dict[str, list[Any]]
    features: Statistics
    evaluation: Evaluation | None  # without the facts about topics, which are in `facts`
    files: dict[str, str]  # checksums of the files
    sha256: str = ""  # checksum of the manifest's file

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
        # raises an error for lone surrogates
        "".join([*self.topics, *self.names.values(), self.names_language or ""]).encode()

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
        """The language of the topics' names or, if it is unknown, of the texts."""
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
    version=15,
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
