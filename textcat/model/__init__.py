"""The tagger and its folder. This module names the files of the folder, and reads its manifest without numpy."""

import os
from collections.abc import Mapping
from enum import Enum
from typing import Any

from textcat.base.disk import MANIFEST, FolderFormat
from textcat.base.errors import TextcatError

CARD = "README.md"  # the model card, for people: no checksum counts it, so it may be edited, and nothing depends on it
MOST_CARD_BYTES = 1 << 16  # of a card that is read or copied
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
SUPPORT = "documents.json"  # and their ids, titles, and maybe texts
COUNT_ARRAYS, COUNTS = "counts.npz", "counts.json"  # of updatable models; only `learn` reads them
CALIBRATION = "calibration"  # an array that only models with probabilities have
FILES = frozenset({*(f"{name}.npy" for name in ARRAYS), VOCABULARY})
# What each scorer stores beside the bias, by the scorer's name.
_OF_SCORER = {
    "dense": frozenset({f"{WEIGHTS}.npy"}),
    "sparse": frozenset(f"{name}.npy" for name in PARTS),
    "listed": frozenset(f"{name}.npy" for name in (*PARTS, *CENTROIDS)),
}
_RELATED = frozenset(f"{name}.npy" for name in (*RELATED, RELATED_CURVES))
_SUPPORT = frozenset({*(f"{name}.npy" for name in SUPPORT_ROWS + SUPPORT_ALPHAS), SUPPORT})
_COUNTS = frozenset({COUNT_ARRAYS, COUNTS})
_OPTIONAL = frozenset({f"{CALIBRATION}.npy", TOKENIZER}) | _RELATED | _SUPPORT | _COUNTS
MAY_BE = _OPTIONAL.union(*_OF_SCORER.values())
SUM = "sha256"  # of the manifest's other entries
_ENTRIES = {
    **dict.fromkeys(("versions", "recipe", "facts", "features", "files", "scorer"), dict),
    **dict.fromkeys(("topics", "train_sizes"), list),
    **dict.fromkeys(("corpus", SUM), str),
    "train_documents": int,
}


class Reason(str, Enum):
    """List the reasons why a document has no evidence for any topic; outputs show the values."""

    NO_KNOWN_TERM = "no_known_term"  # it is empty, or none of its terms is one of the model's


class ModelError(TextcatError):
    """Raised for a folder that is not a model, a damaged model, or a model of another format."""


MODEL = FolderFormat(
    name="model",
    content="the model",
    negation="not a model",
    error=ModelError,
    version=11,
    files=FILES | MAY_BE,
    checksum=SUM,
    origin="Train one with `textcat train CORPUS --out FOLDER`, or copy one with `textcat pull SOURCE FOLDER`.",
    remedy="train the model again",
    unchecked=frozenset({CARD}),
)


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a model's manifest, without its arrays; raise ModelError if it cannot be read."""
    with MODEL.open(folder) as (manifest, _):
        check_entries(folder, manifest)
        return manifest


def manifest_status(folder: str | os.PathLike[str]) -> os.stat_result | None:
    """Return the `os.stat` of a model's manifest, which changes when the model is replaced; None without a manifest."""
    try:
        return os.stat(os.path.join(folder, MANIFEST))
    except OSError:
        return None


def names_in(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of topics in a manifest, by the topics' ids; topics without a name are missing."""
    names = manifest.get("topic_names") or ()
    return {topic: name for topic, name in zip(manifest["topics"], names, strict=False) if name}


def check_entries(folder: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
    """Raise ModelError if an entry of a manifest is missing or of a wrong type."""
    wrong = [key for key, kind in _ENTRIES.items() if not isinstance(manifest.get(key), kind)]
    files = set(manifest["files"]) if not wrong else set()
    if (
        wrong
        or files & _RELATED not in (frozenset(), _RELATED)
        or files & _SUPPORT not in (frozenset(), _SUPPORT)
        or files & _COUNTS not in (frozenset(), _COUNTS)
        or files - _OPTIONAL != FILES | _OF_SCORER.get(str(manifest["scorer"].get("name")), frozenset())
        or not _are_names(manifest.get("topic_names", []), len(manifest["topics"]))
        or not isinstance(manifest.get("names_language", ""), str)
        or not isinstance(manifest.get("choices", {}), dict)
        or not _are_dates(manifest.get("train_dates", ["", ""]))
    ):
        raise MODEL.damaged_manifest(folder)


def _are_dates(dates: Any) -> bool:
    """Return whether `dates` are two texts, the first and the last date of the training documents."""
    return isinstance(dates, list) and [*map(type, dates)] == [str, str]


def _are_names(names: Any, n_topics: int) -> bool:
    """Return whether `names` is an empty list, or a list with a text or None for each topic."""
    is_list = isinstance(names, list) and len(names) in (0, n_topics)
    return is_list and all(name is None or isinstance(name, str) for name in names)
