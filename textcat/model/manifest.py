"""A model's folder → what its manifest says of it, without loading arrays or the libraries that these need."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from textcat.errors import TextcatError

FORMAT = 2  # 1: no features by hash, no average lengths of zones
MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.json"
ARRAYS = ("weights", "bias", "thresholds", "idf")
CALIBRATION = "calibration"  # an array that only models with probabilities have
FILES = {*(f"{name}.npy" for name in ARRAYS), VOCABULARY}
MAY_BE = {f"{CALIBRATION}.npy"}
SUM = "sha256"  # of the manifest's other entries
ENTRIES = {
    "versions": dict,
    "corpus": str,
    "recipe": dict,
    "train_documents": int,
    "topics": list,
    "train_sizes": list,
    "facts": dict,
    "features": dict,
    "files": dict,
    SUM: str,
}


class ModelError(TextcatError):
    """A folder that is no model, a damaged one, or one of a newer format."""


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model says of itself, without its arrays.

    Parameters
    ----------
    folder : path

    Raises
    ------
    TextcatError
        If the folder is no model, the manifest is damaged, or its format is newer than this version knows.
    """
    path = Path(folder).expanduser() / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(
            f"{folder} is not a model: it has no {MANIFEST}. Train one with `textcat train CORPUS --out FOLDER`."
        ) from None
    except OSError as error:
        raise ModelError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
        raise ModelError(f"{path} is damaged, or not a model's manifest: train the model again.")
    if manifest["format"] > FORMAT:
        raise ModelError(
            f"{folder} has model format {manifest['format']}, and this version of textcat reads up to {FORMAT}: "
            "upgrade textcat."
        )
    wrong = [key for key, kind in ENTRIES.items() if not isinstance(manifest.get(key), kind)]
    if (
        wrong
        or manifest["format"] < 1
        or manifest[SUM] != sum_of_entries(manifest)
        or set(manifest["files"]) - MAY_BE != FILES
    ):
        raise ModelError(f"{path} is damaged, it is not as it was written: train the model again.")
    return manifest


def sum_of_entries(manifest: dict[str, Any]) -> str:
    """Return the digest of a manifest's entries, but for the one that holds it."""
    entries = {key: value for key, value in manifest.items() if key != SUM}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
