"""A tagger ↔ a folder of safe files: a manifest with checksums, the vocabulary, arrays that can be memory-mapped."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from textcat import __version__
from textcat.errors import TextcatError
from textcat.evaluation.thresholds import Calibration
from textcat.features.vectorizer import Vectorizer
from textcat.model.manifest import (
    ARRAYS,
    CALIBRATION,
    FILES,
    FORMAT,
    MANIFEST,
    MAY_BE,
    SUM,
    VOCABULARY,
    ModelError,
    read_manifest,
    sum_of_entries,
)
from textcat.model.tagger import Tagger
from textcat.recipe import Recipe

_LIBRARIES = ("spacy", "scikit-learn", "scipy", "numpy")
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD
_ATTEMPTS = 10  # to read a model that others keep replacing
_NUMBERS = (np.dtype(np.float32), np.dtype(np.float64))
# What comes of files that are not as `save` writes them.
_DAMAGES = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def save(tagger: Tagger, folder: str | os.PathLike[str]) -> Path:
    """Write a tagger as a folder, whole or not at all.

    The files are written into a temporary sibling, which then takes the folder's place.

    Parameters
    ----------
    tagger : Tagger
    folder : path
        An older model there is replaced; anything else there is refused.

    Returns
    -------
    Path

    Raises
    ------
    TextcatError
        If the folder is no model's, or cannot be written.
    """
    folder = Path(folder).expanduser().resolve()  # the folder a link points to is replaced, the link stays
    check_target(folder)
    sibling = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        sibling.mkdir(parents=True)
        arrays = {
            "weights": tagger.weights,
            "bias": tagger.bias,
            "thresholds": tagger.thresholds,
            "idf": tagger.features.idf_,
        }
        if tagger.calibration is not None:
            arrays[CALIBRATION] = np.stack([tagger.calibration.a, tagger.calibration.b])
        for name, array in arrays.items():
            np.save(sibling / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        vocabulary = tagger.features.vocabulary_  # None where columns are hashes
        terms = None if vocabulary is None else list(vocabulary)
        (sibling / VOCABULARY).write_text(json.dumps(terms), encoding="utf-8")
        (sibling / MANIFEST).write_text(json.dumps(_manifest(tagger, sibling), indent=1), encoding="utf-8")
        for path in sibling.iterdir():
            _sync(path)
        _replace(sibling, folder)
    except OSError as error:
        raise ModelError(f"Cannot write the model to {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(sibling, ignore_errors=True)
    return folder


def check_target(folder: str | os.PathLike[str]) -> None:
    """Refuse to write a model over anything but an older model, or where nothing can be written: asked before training.

    Raises
    ------
    TextcatError
        If something else is there, or the folder cannot be made.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.exists():
        _check_replaceable(folder)
    above = next(parent for parent in folder.parents if parent.exists())
    try:
        tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=above).cleanup()
    except OSError as error:
        raise ModelError(f"Cannot write in {above} ({error.strerror}): name a folder that you may write to.") from error


def _check_replaceable(folder: Path) -> None:
    """Let an empty folder pass, and a model, even a damaged one, with nothing else beside it: that would be lost."""
    if folder == Path.cwd():
        raise ModelError(f"{folder} is the current folder, which a model cannot take the place of: name another one.")
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else {"."}
    others = sorted(there - FILES - MAY_BE - {MANIFEST})
    if there and not there & FILES:
        raise ModelError(f"{folder} exists and is not a model: name another folder.")
    if others:
        raise ModelError(f"The model {folder} is not replaced, for {others[0]} would be lost: name another folder.")


def load(folder: str | os.PathLike[str], *, prepare: bool = True, mapped: bool = True) -> Tagger:
    """Read a tagger from its folder.

    Parameters
    ----------
    folder : path
    prepare : bool, default=True
        Load the language's tokenizer, too; False leaves that to the first document.
    mapped : bool, default=True
        Map the arrays into memory, so that several processes share them; False copies them, for a folder that will be
        deleted.

    Raises
    ------
    TextcatError
        If the folder is no model, a file is missing or changed, or the format is newer than this version knows.
    """
    folder = Path(folder).expanduser()
    manifest = read_manifest(folder)
    for _ in range(_ATTEMPTS):
        try:
            tagger, problem = _load(folder, manifest, mapped), None
        except ModelError as error:
            tagger, problem = None, error
        # Someone may have put a new model in its place between two reads.
        before, manifest = manifest, read_manifest(folder)
        if manifest == before:
            break
    else:
        raise ModelError(f"The model {folder} keeps being replaced: wait until whatever trains it has ended.")
    if tagger is None:
        assert problem is not None
        raise problem
    if prepare:
        tagger.features.tokens_.prepare()
    return tagger


def _manifest(tagger: Tagger, folder: Path) -> dict[str, Any]:
    manifest = {
        "format": FORMAT,
        "versions": {"textcat": __version__, **{name: version(name) for name in _LIBRARIES}},
        "corpus": tagger.corpus,
        "recipe": tagger.recipe,
        "train_documents": tagger.train_documents,
        "topics": list(tagger.topics),
        "train_sizes": [int(size) for size in tagger.train_sizes],
        "facts": {name: np.asarray(values).tolist() for name, values in tagger.facts.items()},
        "features": {
            "n_documents": int(tagger.features.n_documents_),
            "n_terms": len(tagger.features.idf_),
            "average_lengths": tagger.features.average_lengths_,
        },
        "files": {path.name: _sum(path) for path in sorted(folder.iterdir())},
    }
    return {**manifest, SUM: sum_of_entries(manifest)}


def _load(folder: Path, manifest: dict[str, Any], mapped: bool) -> Tagger:
    try:
        for name, expected in manifest["files"].items():
            _check_file(folder / name, expected)
        names = [*ARRAYS, *([CALIBRATION] if f"{CALIBRATION}.npy" in manifest["files"] else [])]
        arrays = {name: _array(folder / f"{name}.npy") for name in names}
        terms = json.loads((folder / VOCABULARY).read_bytes())
        recipe = Recipe(name=folder.name, **manifest["recipe"])
        if not _fit_together(manifest, terms, arrays):
            raise ModelError(f"The model {folder} is damaged, its files do not fit together: train the model again.")
        if not mapped:  # only now, as a damaged file may claim any size
            arrays = {name: np.array(array) for name, array in arrays.items()}
        return Tagger(
            features=_features(recipe, terms, arrays["idf"], manifest["features"]),
            weights=arrays["weights"],
            bias=arrays["bias"],
            thresholds=arrays["thresholds"],
            calibration=Calibration(*arrays[CALIBRATION]) if CALIBRATION in arrays else None,
            topics=tuple(manifest["topics"]),
            train_sizes=np.array(manifest["train_sizes"], int),
            train_documents=manifest["train_documents"],
            facts=manifest["facts"],
            recipe=manifest["recipe"],
            corpus=manifest["corpus"],
        )
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"Cannot read the model {folder}: {error.strerror or error}.") from error
    except (*_DAMAGES, TextcatError) as error:
        raise ModelError(f"The model {folder} is damaged ({error}): train the model again.") from error


def _array(path: Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # numpy takes the header for Python, and lets through what comes of that
        raise ValueError(f"{path.name}: {error}") from None


def _fit_together(manifest: dict[str, Any], terms: Any, arrays: dict[str, np.ndarray]) -> bool:
    """Tell whether what the files hold is what `save` writes: a model may be changed, and its sums made to fit."""
    n_topics, learnt = len(manifest["topics"]), manifest["features"]
    n_terms = learnt["n_terms"] if terms is None else len(terms)
    shapes = {"weights": (n_terms, n_topics), "bias": (n_topics,), "thresholds": (n_topics,), "idf": (n_terms,)}
    if CALIBRATION in arrays:
        shapes[CALIBRATION] = (2, n_topics)
    of_topics = (manifest["train_sizes"], *manifest["facts"].values())
    lengths = learnt.get("average_lengths", {})
    return (
        {name: array.shape for name, array in arrays.items()} == shapes
        and all(array.dtype in _NUMBERS and array.flags.c_contiguous for array in arrays.values())
        and _are_names(manifest["topics"])
        and (terms is None or _are_names(terms))
        and all(isinstance(values, list) and len(values) == n_topics for values in of_topics)
        and all(type(n) is int for n in (*manifest["train_sizes"], learnt["n_documents"]))
        and all(isinstance(length, float) for length in lengths.values())
    )


def _are_names(names: Any) -> bool:
    """Tell whether this is a list of different texts.

    Raises
    ------
    TypeError, ValueError
        If an entry is no text, or one that cannot be written.
    """
    "".join(names).encode()
    return isinstance(names, list) and len(set(names)) == len(names)


def _features(recipe: Recipe, terms: list[str] | None, idf: np.ndarray, learnt: dict[str, Any]) -> Vectorizer:
    averages = learnt.get("average_lengths")  # format 1 has none
    return Vectorizer.restore(terms, idf, learnt["n_documents"], averages, **recipe.feature_settings())


def _check_file(path: Path, expected: str) -> None:
    try:
        found = _sum(path)
    except FileNotFoundError:
        raise ModelError(
            f"The model {path.parent} is damaged, {path.name} is missing: train the model again."
        ) from None
    except OSError as error:
        raise ModelError(f"Cannot read {path}: {error.strerror}.") from error
    if found != expected:
        raise ModelError(
            f"The model {path.parent} is damaged, {path.name} is not as it was written: train the model again."
        )


def _sum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _replace(new: Path, old: Path) -> None:
    """Put a folder in another's place. On Linux the two are exchanged in one step: a reader always finds a model."""
    if not old.exists():
        os.rename(new, old)
        return
    if not _exchange(new, old):
        aside = new.with_suffix(".old")
        os.rename(old, aside)
        os.rename(new, old)
        os.rename(aside, new)


def _exchange(one: Path, other: Path) -> bool:
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0
