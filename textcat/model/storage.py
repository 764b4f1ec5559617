"""A tagger ↔ a folder of safe files: a manifest with checksums, the vocabulary, arrays that can be memory-mapped."""

import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from textcat import __version__
from textcat.errors import TextcatError
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.thresholds import Calibration
from textcat.features.rows import Rows
from textcat.features.tables import LanguageTables
from textcat.features.tfidf import TfIdf
from textcat.folders import installed_version, sha256_of_file
from textcat.model import (
    ARRAYS,
    CALIBRATION,
    CENTROIDS,
    COUNT_ARRAYS,
    COUNTS,
    MODEL,
    PARTS,
    SUM,
    SUPPORT,
    SUPPORT_ALPHAS,
    SUPPORT_ROWS,
    TOKENIZER,
    VOCABULARY,
    WEIGHTS,
    ModelError,
    check_entries,
)
from textcat.model._product import are_rows
from textcat.model.shortlist import Shortlist
from textcat.model.support import SupportDocuments
from textcat.model.tagger import Tagger, csr_weights
from textcat.model.training_counts import TrainingCounts
from textcat.recipe import Recipe

_LIBRARIES = ("spacy", "scikit-learn", "scipy", "numpy")
check_target = MODEL.check_target
_NUMBERS = (np.dtype(np.float32), np.dtype(np.float64))
_TYPES = {
    name: (np.dtype(kind),)
    for parts in (PARTS, CENTROIDS, SUPPORT_ROWS, SUPPORT_ALPHAS)
    for name, kind in zip(parts, (np.int64, np.int32), strict=False)
}  # of other arrays: _NUMBERS
# What comes of files that are not as `save` writes them.
_DAMAGES = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def save(tagger: Tagger, folder: str | os.PathLike[str]) -> Path:
    """Write a tagger to a folder, whole or not at all.

    Parameters
    ----------
    tagger : Tagger
    folder : path
        A model that is already there is replaced; any other folder that is not empty is refused.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    TextcatError
        If the folder is no model's, or cannot be written.
    """
    folder = Path(folder).expanduser().resolve()
    with MODEL.replacing(folder) as sibling:
        write_model(tagger, sibling)
    return folder


def write_model(tagger: Tagger, folder: Path) -> None:
    """Write a tagger's files to an empty folder."""
    recipe = Recipe("", **tagger.recipe).stored()
    arrays = {"bias": tagger.bias, "thresholds": tagger.thresholds, "idf": tagger.features.idf_}
    arrays |= dict(zip(PARTS, tagger.sparse_parts, strict=True)) if tagger.sparse_weights else {WEIGHTS: tagger.weights}
    if tagger.shortlist is not None:
        arrays |= zip(CENTROIDS, Rows.of(tagger.shortlist.centroids), strict=True)
    if tagger.calibration is not None:
        arrays[CALIBRATION] = np.stack([tagger.calibration.a, tagger.calibration.b])
    if (support := tagger.support) is not None:
        arrays |= zip(SUPPORT_ROWS, support.rows, strict=True)
        arrays |= zip(SUPPORT_ALPHAS, support.alphas, strict=True)
        documents = {"ids": [*support.ids], "titles": [*support.titles], "texts": support.texts and [*support.texts]}
        (folder / SUPPORT).write_text(json.dumps(documents), encoding="utf-8")
    if tagger.training_counts is not None:
        (folder / COUNTS).write_text(json.dumps(tagger.training_counts.entries(recipe)), encoding="utf-8")
        counts: Any = tagger.training_counts.counts.arrays()
        np.savez(folder / COUNT_ARRAYS, **counts)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
    vocabulary = tagger.features.vocabulary_  # None where columns are hashes
    terms = None if vocabulary is None else list(vocabulary)
    (folder / VOCABULARY).write_text(json.dumps(terms), encoding="utf-8")
    with suppress(TextcatError):  # of a language that is not installed here: the model is complete without its tables
        tables = tagger.features.tokens_.tables()
        if tables is not None and tables.stop_words is not None:
            (folder / TOKENIZER).write_text(tables.as_json(), encoding="utf-8")
    MODEL.write_manifest(folder, _manifest(tagger, recipe, folder))


def load(folder: str | os.PathLike[str], *, prepare: bool = True, mapped: bool = True) -> Tagger:
    """Read a tagger from its folder.

    Parameters
    ----------
    folder : path
    prepare : bool, default=True
        Load the language's tokenizer, too; False: load it with the first document.
    mapped : bool, default=True
        Map the arrays into memory, so that several processes share them; False: copy them, so that the folder may be
        deleted.

    Returns
    -------
    Tagger

    Raises
    ------
    TextcatError
        If the folder is no model, a file is missing or changed, or the format is newer than this version knows.
    """
    return load_versioned(folder, prepare=prepare, mapped=mapped)[0]


def load_versioned(folder: str | os.PathLike[str], *, prepare: bool = True, mapped: bool = True) -> tuple[Tagger, str]:
    """Read a tagger as `load` does, and the sha256 of the manifest that it was read by: the folder may be replaced."""
    folder = Path(folder).expanduser()
    with MODEL.open(folder) as (manifest, files):
        check_entries(folder, manifest)
        tagger = _load(folder, manifest, files, mapped)
    if prepare:
        tagger.features.tokens_.prepare()
    return tagger, manifest[SUM]


def load_training_counts(
    folder: str | os.PathLike[str],
) -> tuple[TrainingCounts, dict[str, Any], Evaluation | None]:
    """Read a model's training counts; also its manifest, and the evaluation that was kept with it.

    Parameters
    ----------
    folder : path

    Returns
    -------
    TrainingCounts, dict, Evaluation or None

    Raises
    ------
    TextcatError
        If the folder is no model, is not updatable, or its training counts are damaged.
    """
    folder = Path(folder).expanduser()
    with MODEL.open(folder) as (manifest, files):
        check_entries(folder, manifest)
        if COUNTS not in manifest["files"]:
            raise ModelError(
                f"The model {folder} is not updatable, as it has no training counts: train it with "
                "`textcat train CORPUS --updatable`."
            )
        try:
            for name in (COUNTS, COUNT_ARRAYS):
                if name not in files or sha256_of_file(files[name]) != manifest["files"][name]:
                    raise ModelError(f"The model {folder} is damaged, {name} is not as it was written: train it again.")
                files[name].seek(0)
            entries = json.loads(files[COUNTS].read())
            with np.load(files[COUNT_ARRAYS], allow_pickle=False) as arrays:
                counts = TrainingCounts.from_entries(entries, dict(arrays), manifest)
            return counts, manifest, _evaluation(manifest)
        except ModelError:
            raise
        except OSError as error:
            raise ModelError(f"Cannot read the model {folder}: {error.strerror or error}.") from error
        except (*_DAMAGES, TextcatError, zipfile.BadZipFile) as error:
            raise ModelError(f"The model {folder} is damaged ({error}): train it again.") from error


def _manifest(tagger: Tagger, recipe: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {
        "versions": {"textcat": __version__, **{name: installed_version(name) for name in _LIBRARIES}},
        "corpus": tagger.corpus,
        "origin": tagger.origin,
        "recipe": recipe,
        "train_documents": tagger.train_documents,
        "topics": list(tagger.topics),
        "train_sizes": [int(size) for size in tagger.train_sizes],
        "facts": {name: np.asarray(values).tolist() for name, values in tagger.facts.items()},
        "features": {
            "n_documents": int(tagger.features.n_documents_),
            "n_terms": len(tagger.features.idf_),
            "average_lengths": tagger.features.average_lengths_,
        },
        "evaluation": None if tagger.evaluation is None else _without_facts(tagger.evaluation),
        "files": {path.name: sha256_of_file(path) for path in sorted(folder.iterdir())},
    }


def _without_facts(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures of an evaluation but for the facts of the topics, which the manifest has, too."""
    figures = evaluation.as_dict()
    if evaluation.topics:
        figures["topics"] = [{**row, "facts": {}} for row in figures["topics"]]
    return figures


def _evaluation(manifest: dict[str, Any]) -> Evaluation | None:
    figures, facts = manifest.get("evaluation"), manifest["facts"]
    if figures is None:
        return None
    rows = [
        {**row, "facts": {name: facts[name][k] for name in facts}} for k, row in enumerate(figures.get("topics", ()))
    ]
    return Evaluation.from_dict({**figures, "topics": rows})


def _load(folder: Path, manifest: dict[str, Any], files: dict[str, BinaryIO], mapped: bool) -> Tagger:
    def damaged(what: str) -> ModelError:
        return ModelError(f"The model {folder} is damaged{what}: train the model again.")

    try:
        for name, expected in manifest["files"].items():
            if name not in files:
                raise damaged(f", {name} is missing")
            if name in (COUNTS, COUNT_ARRAYS):  # large, and nothing that is used here
                continue
            if sha256_of_file(files[name]) != expected:
                raise damaged(f", {name} is not as it was written")
            files[name].seek(0)
        names = [
            name
            for name in (*ARRAYS, WEIGHTS, *PARTS, *CENTROIDS, *SUPPORT_ROWS, *SUPPORT_ALPHAS, CALIBRATION)
            if f"{name}.npy" in manifest["files"]
        ]
        arrays: dict[str, Any] = {name: _map_array(folder / f"{name}.npy", files[f"{name}.npy"]) for name in names}
        terms = json.loads(files[VOCABULARY].read())
        documents = json.loads(files[SUPPORT].read()) if SUPPORT in manifest["files"] else None
        recipe, statistics = Recipe(name=folder.name, **manifest["recipe"]), manifest["features"]
        if not _fit_together(manifest, terms, arrays, documents):
            raise damaged(", its files do not fit together")
        if not mapped:  # only now, as a damaged file may claim any size
            arrays = {name: np.array(array) for name, array in arrays.items()}
        averages = statistics.get("average_lengths")  # format 1 has none
        calibration = arrays.pop(CALIBRATION, None)
        if WEIGHTS not in arrays:
            indptr, indices, data = map(arrays.pop, PARTS)
            arrays[WEIGHTS] = csr_weights(indptr, indices, data, len(manifest["topics"]))
        if CENTROIDS[0] in arrays:
            indptr, indices, data = map(arrays.pop, CENTROIDS)
            centroids = csr_weights(indptr, indices, data, len(manifest["topics"]))
            arrays["shortlist"] = Shortlist(centroids, recipe.shortlist)
        if documents is not None:
            rows, alphas = (Rows(*map(arrays.pop, names)) for names in (SUPPORT_ROWS, SUPPORT_ALPHAS))
            arrays["support"] = SupportDocuments(rows=rows, alphas=alphas, **documents)
        features = TfIdf.restore(
            terms, arrays.pop("idf"), statistics["n_documents"], averages, **recipe.feature_settings()
        )
        if TOKENIZER in manifest["files"]:
            tables = LanguageTables.from_json(files[TOKENIZER].read())
            # Of another spaCy the tokens may be others.
            if tables is not None and tables.spacy == installed_version("spacy"):
                features.tokens_.use_tables(tables)
        return Tagger(
            features,
            **arrays,
            calibration=None if calibration is None else Calibration(*calibration),
            topics=tuple(manifest["topics"]),
            train_sizes=np.array(manifest["train_sizes"], int),
            **{name: manifest[name] for name in ("train_documents", "facts", "recipe", "corpus")},
            origin=dict(manifest.get("origin", {})),
            evaluation=_evaluation(manifest),
        )
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"Cannot read the model {folder}: {error.strerror or error}.") from error
    except (*_DAMAGES, TextcatError) as error:
        raise damaged(f" ({error})") from error


def _map_array(path: Path, file: BinaryIO) -> np.memmap:
    """Map the array of an open file into memory: its path may name another model's file by now."""
    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("an unknown version of the format")
        shape, fortran_order, dtype = npy.read_array_header_1_0(file)
        if dtype not in _TYPES.get(path.stem, _NUMBERS):
            raise ValueError(f"numbers of type {dtype}")
        array = np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran_order else "C")
    except OSError:
        raise
    except Exception as error:  # numpy takes the header for Python, and lets through what comes of that
        raise ValueError(f"{path.name}: {error}") from None
    array.filename = str(path)  # joblib asks for it
    return array


def _fit_together(
    manifest: dict[str, Any], terms: Any, arrays: Mapping[str, np.ndarray], documents: Any = None
) -> bool:
    """Return whether what the files hold is what `save` writes: a model may be changed, and its sums made to fit."""
    n_topics, statistics = len(manifest["topics"]), manifest["features"]
    n_terms = statistics["n_terms"] if terms is None else len(terms)
    shapes: dict[str, tuple[int, ...]] = {"bias": (n_topics,), "thresholds": (n_topics,), "idf": (n_terms,)}
    if WEIGHTS in arrays:
        shapes[WEIGHTS] = n_terms, n_topics
    else:
        (n_entries,) = arrays[PARTS[2]].shape
        shapes |= zip(PARTS, ((n_terms + 1,), (n_entries,), (n_entries,)), strict=True)
    if CENTROIDS[0] in arrays:
        (n_entries,) = arrays[CENTROIDS[2]].shape
        shapes |= zip(CENTROIDS, ((n_terms + 1,), (n_entries,), (n_entries,)), strict=True)
    n_kept = 0 if documents is None else len(documents["ids"])
    if documents is not None:
        for names, n_rows in ((SUPPORT_ROWS, n_kept), (SUPPORT_ALPHAS, n_topics)):
            (n_entries,) = arrays[names[2]].shape
            shapes |= zip(names, ((n_rows + 1,), (n_entries,), (n_entries,)), strict=True)
    if CALIBRATION in arrays:
        shapes[CALIBRATION] = (2, n_topics)
    of_topics = (manifest["train_sizes"], *manifest["facts"].values())
    lengths = statistics.get("average_lengths", {})
    return (
        {name: array.shape for name, array in arrays.items()} == shapes
        and all(array.flags.c_contiguous for array in arrays.values())
        and all(
            parts[0] not in arrays or are_rows(arrays[parts[0]], arrays[parts[1]], n_topics)
            for parts in (PARTS, CENTROIDS)
        )
        and (
            documents is None
            or (
                are_rows(arrays[SUPPORT_ROWS[0]], arrays[SUPPORT_ROWS[1]], n_terms)
                and are_rows(arrays[SUPPORT_ALPHAS[0]], arrays[SUPPORT_ALPHAS[1]], n_kept)
                and _are_documents(documents)
            )
        )
        and (CENTROIDS[0] not in arrays or (WEIGHTS not in arrays and Recipe("", **manifest["recipe"]).shortlist > 0))
        and _are_names(manifest["topics"])
        and (terms is None or _are_names(terms))
        and all(isinstance(values, list) and len(values) == n_topics for values in of_topics)
        and all(type(n) is int for n in (*manifest["train_sizes"], statistics["n_documents"]))
        and all(isinstance(length, float) for length in lengths.values())
    )


def _are_documents(documents: Any) -> bool:
    """Return whether these are the ids, titles and maybe texts of documents."""
    ids, titles, texts = documents["ids"], documents["titles"], documents["texts"]
    zones = [] if texts is None else [piece for each in texts for piece in (*each.keys(), *each.values())]
    "".join([*ids, *titles, *zones]).encode()
    lists = (ids, titles) if texts is None else (ids, titles, texts)
    return len(documents) == 3 and all(isinstance(each, list) and len(each) == len(ids) for each in lists)


def _are_names(names: Any) -> bool:
    """Return whether this is a list of different texts; raise if an entry is no text, or one that cannot be written."""
    "".join(names).encode()
    return isinstance(names, list) and len(set(names)) == len(names)
