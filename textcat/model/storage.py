"""Save a tagger to a folder and load it: a manifest with checksums, the vocabulary, and arrays to memory-map."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from textcat import __version__
from textcat.base.disk import (
    installed_spacy,
    installed_version,
    read_arrays,
    resolved,
    sha256_of_file,
    write_atomically,
)
from textcat.base.errors import TextcatError
from textcat.base.folders import OpenFolder
from textcat.base.records import read_record
from textcat.evaluation.evaluation import Evaluation
from textcat.features.rows import Rows
from textcat.features.tables import LanguageTables
from textcat.features.tfidf import TfIdf
from textcat.features.vectors import ColumnVectors
from textcat.model import ModelError
from textcat.model.csr import are_parts
from textcat.model.dense import Dense
from textcat.model.facts import TrainingFacts
from textcat.model.listed import Listed
from textcat.model.manifest import (
    CALIBRATION,
    COUNT_ARRAYS,
    COUNTS,
    HELD_OUT,
    IDF,
    MODEL,
    PROMISES,
    SUPPORT,
    SUPPORT_ALPHAS,
    SUPPORT_ROWS,
    SUPPORT_VECTORS,
    THRESHOLDS,
    TOKENIZER,
    VOCABULARY,
    Manifest,
    Statistics,
    SupportTexts,
)
from textcat.model.rules import path_beside, rules_of_model
from textcat.model.scorer import NUMBERS, Scorer
from textcat.model.sparse import Sparse
from textcat.model.stored_decisions import decisions_of
from textcat.model.support import SupportDocuments
from textcat.model.tagger import Tagger
from textcat.model.topic_names import facts_with_names
from textcat.model.training_counts import SKETCHES, TrainingCounts
from textcat.recipes.recipe import Recipe

_log = logging.getLogger(__name__)
_LIBRARIES = ("spacy", "scikit-learn", "scipy", "numpy")
_SCORERS: dict[str, type[Scorer]] = {scorer.name: scorer for scorer in (Dense, Sparse, Listed)}
check_target = MODEL.check_target
_OF_ROWS = (np.dtype(np.int64),), (np.dtype(np.int32),), NUMBERS  # the types of support documents' CSR arrays
_TYPES: dict[str, tuple[np.dtype[Any], ...]] = {
    **dict.fromkeys((THRESHOLDS, IDF, CALIBRATION, PROMISES, HELD_OUT), NUMBERS),
    **dict(zip(SUPPORT_ROWS, _OF_ROWS, strict=True)),
    **dict(zip(SUPPORT_ALPHAS, _OF_ROWS, strict=True)),
    **dict(zip(SUPPORT_VECTORS, ((np.dtype(np.int32),), (np.dtype(np.int8),)), strict=True)),
}


def save(tagger: Tagger, folder: str | os.PathLike[str]) -> Path:
    """Write a tagger to a folder, atomically, and its house rules to a file beside it, such as ``news.rules.toml``.

    A file of rules that is there already stays as it is; log a warning if it has other rules than the tagger, or does
    not fit it.

    Parameters
    ----------
    tagger : Tagger
    folder : path
        A model in this folder is replaced; another folder that is not empty is refused.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    TextcatError
        If the folder has files that are not a model's, or cannot be written.
    """
    target = resolved(folder)
    with MODEL.replacing(target) as sibling:
        write_model(tagger, sibling)
    rules, path = tagger.decisions.rules, path_beside(folder)  # a link to a folder has rules of its own
    if rules is not None and not path.exists():
        write_atomically(path, rules.source)
    try:
        beside = rules_of_model(folder, tagger.topics, tagger.topic_names, tagger.broader)
    except TextcatError as error:
        _log.warning("%s", error)
    else:
        if rules is not None and (beside is None or beside.source != rules.source):
            _log.warning("%s stays as it is, although the tagger has other rules: move it away, and save again.", path)
    return target


def write_model(tagger: Tagger, folder: Path) -> None:
    """Write a tagger's files to an empty folder."""
    recipe, decisions = tagger.facts.recipe, tagger.decisions.checked(tagger.topics)
    if decisions.strategy != recipe.tags.strategy:  # they may have changed since they were read
        recipe = recipe.with_values({"tags": {"strategy": decisions.strategy}})
        recipe.check()
    arrays = {**tagger.scorer.arrays(), THRESHOLDS: decisions.thresholds, IDF: tagger.features.idf_}
    if decisions.calibration is not None:
        arrays[CALIBRATION] = np.stack([decisions.calibration.a, decisions.calibration.b])
    if decisions.promises is not None:
        arrays[PROMISES] = decisions.promises.as_table()
    if decisions.held_out is not None:
        arrays[HELD_OUT] = decisions.held_out.as_table()
    if (support := tagger.support) is not None:
        arrays |= zip(SUPPORT_ROWS, support.rows, strict=True)
        arrays |= zip(SUPPORT_ALPHAS, support.alphas, strict=True)
        texts = None if support.texts is None else [*support.texts]
        vectors = support.vectors
        if vectors is not None:
            arrays |= zip(SUPPORT_VECTORS, (vectors.columns, vectors.values), strict=True)
        step = None if vectors is None else vectors.step
        documents = SupportTexts([*support.ids], [*support.titles], texts, step)
        (folder / SUPPORT).write_text(json.dumps(vars(documents)), encoding="utf-8")
    if tagger.training_counts is not None:
        (folder / COUNTS).write_text(json.dumps(tagger.training_counts.entries(recipe)), encoding="utf-8")
        counts: Any = tagger.training_counts.arrays()
        np.savez(folder / COUNT_ARRAYS, **counts)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
    (folder / VOCABULARY).write_text(json.dumps(tagger.features.listed_names()), encoding="utf-8")
    with suppress(TextcatError):  # the language may not be installed here; the model is complete without its tables
        tables = tagger.features.tokens_.tables()
        if tables is not None and tables.stop_words is not None:
            (folder / TOKENIZER).write_text(tables.json, encoding="utf-8")
    MODEL.write_manifest(folder, _manifest(tagger, recipe, folder))


def broader_columns(topics: Sequence[str], broader: Mapping[str, Sequence[str]]) -> list[list[int]]:
    """Return for each topic the columns of its nearest broader topics, for a manifest; [] if no topic has any."""
    column_of = {topic: column for column, topic in enumerate(topics)}
    columns = [[column_of[other] for other in broader.get(topic, ()) if other in column_of] for topic in topics]
    return columns if any(columns) else []


def load(
    folder: str | os.PathLike[str], *, prepare: bool = True, mapped: bool = True, with_rules: bool = True
) -> Tagger:
    """Read a tagger from its folder, with the rules beside it: those in ``news.rules.toml`` for the folder ``news``.

    Parameters
    ----------
    folder : path
    prepare : bool, default=True
        True: load the language's tokenizer at once; False: load the tokenizer with the first document.
    mapped : bool, default=True
        True: memory-map the arrays, which processes then share; False: copy them, so that the folder may be deleted.
    with_rules : bool, default=True
        False: do not read the rules beside the folder.

    Returns
    -------
    Tagger

    Raises
    ------
    TextcatError
        If the folder is no model, a file is missing or changed, or another version of textcat made the model; or if the
        rules name a topic that the model lacks, or contradict themselves.
    """
    return load_versioned(folder, prepare=prepare, mapped=mapped, with_rules=with_rules)[0]


def load_versioned(
    folder: str | os.PathLike[str], *, prepare: bool = True, mapped: bool = True, with_rules: bool = True
) -> tuple[Tagger, str]:
    """Return a tagger as `load` does, and the checksum of its manifest."""
    with MODEL.open(folder) as model, model.raise_read_errors():
        tagger = replace(_Contents.read(model, mapped=mapped).tagger(), folder=model.folder)
    if with_rules:
        rules = rules_of_model(folder, tagger.topics, tagger.topic_names, tagger.broader)
        tagger = replace(tagger, decisions=replace(tagger.decisions, rules=rules))
    if prepare:
        tagger.features.tokens_.prepare()
    return tagger, model.manifest.sha256


def load_training_counts(folder: str | os.PathLike[str]) -> tuple[TrainingCounts, Manifest, Evaluation | None]:
    """Read a model's training counts, manifest and evaluation; raise ModelError if the model is not updatable."""
    with MODEL.open(folder) as model, model.raise_read_errors():
        manifest = model.manifest
        if COUNTS not in manifest.files:
            raise ModelError(
                f"The model {model.folder} is not updatable, as it has no training counts: train it with "
                "`textcat train CORPUS --updatable`."
            )
        model.check({name: manifest.files[name] for name in (COUNTS, COUNT_ARRAYS)})
        counts = TrainingCounts.from_entries(model.json(COUNTS), read_arrays(model.files[COUNT_ARRAYS]), manifest)
        return counts, manifest, _evaluation(manifest)


def texts_trained_on(folder: str | os.PathLike[str]) -> np.ndarray:
    """Return hashes of the words of a model's training documents; none if it is not updatable, or damaged."""
    with suppress(TextcatError), MODEL.open(folder) as model, model.raise_read_errors():
        if COUNT_ARRAYS in model.manifest.files:
            model.check({COUNT_ARRAYS: model.manifest.files[COUNT_ARRAYS]})
            sketches = read_arrays(model.files[COUNT_ARRAYS], [SKETCHES])[SKETCHES]
            return np.asarray(sketches["fingerprint"][: model.manifest.train_documents])
    return np.zeros(0, np.uint64)


def _manifest(tagger: Tagger, recipe: Recipe, folder: Path) -> Manifest:
    facts, features, has_names = tagger.facts, tagger.features, bool(tagger.topic_names)
    return Manifest(
        versions={"textcat": __version__, **{name: installed_version(name) for name in _LIBRARIES}},
        corpus=facts.corpus,
        origin=facts.origin,
        recipe=recipe,
        train_documents=facts.train_documents,
        train_dates=[*(facts.train_dates or ())],
        topics=[*tagger.topics],
        topic_names=[*map(tagger.topic_names.get, tagger.topics)] if has_names else [],
        names_language=tagger.names_language if has_names else None,
        broader=broader_columns(tagger.topics, tagger.broader),
        choices={**facts.choices},
        scorer=tagger.scorer.settings(),
        train_sizes=[int(size) for size in facts.train_sizes],
        expected_recall=[] if (expected := tagger.decisions.expected_recall) is None else expected.weights.tolist(),
        facts={name: np.asarray(values).tolist() for name, values in facts.per_topic.items()},
        features=Statistics(int(features.n_documents_), len(features.idf_), features.average_lengths_),
        evaluation=None if tagger.evaluation is None else _without_facts(tagger.evaluation),
        files={path.name: sha256_of_file(path) for path in sorted(folder.iterdir())},
    )


def _without_facts(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation without `TopicQuality.facts`, which the manifest has in another entry."""
    return replace(evaluation, topics=tuple(replace(row, facts={}) for row in evaluation.topics))


def _evaluation(manifest: Manifest) -> Evaluation | None:
    if manifest.evaluation is None:
        return None
    facts = facts_with_names(manifest.facts, manifest.topics, manifest.names)
    rows = enumerate(manifest.evaluation.topics)
    topics = (replace(row, facts={name: values[k] for name, values in facts.items()}) for k, row in rows)
    return replace(manifest.evaluation, topics=tuple(topics))


class _Contents(NamedTuple):
    """The contents of a model's files."""

    manifest: Manifest
    arrays: dict[str, Any]
    terms: list[str]  # the names of the columns
    documents: SupportTexts | None
    tables: LanguageTables | None

    @classmethod
    def read(cls, model: OpenFolder[Manifest], *, mapped: bool) -> "_Contents":
        """Read a model's files except training counts; check their checksums, and that they fit together.

        Arrays are memory-mapped if `mapped`, otherwise copied.
        """
        manifest = model.manifest
        # Training counts are large, and not needed here.
        model.check(manifest.files, unread={COUNTS, COUNT_ARRAYS})
        types = {**_TYPES, **_SCORERS[manifest.scorer.name].types}
        arrays = {name: model.array(name, types[name]) for name in types if f"{name}.npy" in manifest.files}
        documents, tables = None, None
        if SUPPORT in manifest.files:
            documents = read_record(SupportTexts, model.json(SUPPORT), f"in {SUPPORT}")
        if TOKENIZER in manifest.files:
            tables = LanguageTables.from_json(model.files[TOKENIZER].read())
        contents = cls(manifest, arrays, model.json(VOCABULARY), documents, tables)
        if not contents.fit_together():
            raise model.damaged("its files do not fit together")
        if not mapped:  # checked only now, because a damaged file may claim any size
            contents = contents._replace(arrays={name: np.array(array) for name, array in arrays.items()})
        return contents

    @property
    def n_terms(self) -> int:
        """The number of columns of the features."""
        return len(self.terms)

    def fit_together(self) -> bool:
        """Return whether the shapes of arrays, the lists and the settings of the model fit together.

        They may not if somebody changed files together with their checksums.
        """
        manifest, arrays, n_topics = self.manifest, self.arrays, len(self.manifest.topics)
        return (
            all(array.flags.c_contiguous for array in arrays.values())
            and self._scorer.fit_together(arrays, manifest.scorer, self.n_terms, n_topics)
            and (arrays[THRESHOLDS].shape, arrays[IDF].shape) == ((n_topics,), (self.n_terms,))
            and (CALIBRATION not in arrays or arrays[CALIBRATION].shape == (2, n_topics))
            and (CALIBRATION in arrays or not arrays.keys() & {PROMISES, HELD_OUT})
            and (not manifest.expected_recall or PROMISES in arrays)
            and decisions_of(arrays, manifest) is not None
            and (self.documents is None or self._is_support(self.documents))
            and _are_names(self.terms)
        )

    @property
    def _scorer(self) -> type[Scorer]:
        return _SCORERS[self.manifest.scorer.name]

    def _is_support(self, documents: SupportTexts) -> bool:
        """Return whether the rows, coefficients and lists of the support documents have sizes that fit together."""
        n_topics, n_documents = len(self.manifest.topics), len(documents.ids)
        vectors, n_columns = self._support_vectors(documents), self.n_terms
        if vectors is not None:
            if not vectors.are_valid(self.n_terms):
                return False
            n_columns += vectors.n_dimensions
        return are_parts(self.arrays, SUPPORT_ROWS, n_documents, n_columns) and are_parts(
            self.arrays, SUPPORT_ALPHAS, n_topics, n_documents
        )

    def _support_vectors(self, documents: SupportTexts) -> ColumnVectors | None:
        """Return the word vectors that rows of support documents use; raise KeyError if they are missing."""
        if documents.vector_step is None:
            return None
        columns, values = map(self.arrays.__getitem__, SUPPORT_VECTORS)
        return ColumnVectors(columns, values, documents.vector_step)

    def tagger(self) -> Tagger:
        """Return the tagger made from the contents."""
        arrays, manifest = self.arrays, self.manifest
        learnt = arrays[IDF], manifest.features.n_documents, manifest.features.average_lengths
        features = TfIdf.restore(self.terms, *learnt, **manifest.recipe.feature_settings())
        # Another version of spaCy may tokenize differently.
        if self.tables is not None and installed_spacy() in ("", self.tables.spacy):
            features.tokens_.use_tables(self.tables)
        support = None
        if self.documents is not None:
            rows, alphas = (Rows(*(arrays[name] for name in parts)) for parts in (SUPPORT_ROWS, SUPPORT_ALPHAS))
            documents = self.documents
            lists = documents.ids, documents.titles, rows, alphas, documents.texts
            support = SupportDocuments(*lists, self._support_vectors(documents))
        return Tagger(
            features,
            self._scorer.restored(arrays, manifest.scorer, len(manifest.topics)),
            decisions_of(arrays, manifest),
            topics=tuple(manifest.topics),
            facts=TrainingFacts(
                np.array(manifest.train_sizes, int),
                manifest.train_documents,
                manifest.facts,
                manifest.recipe,
                manifest.corpus,
                manifest.origin,
                manifest.choices,
                (manifest.train_dates[0], manifest.train_dates[1]) if manifest.train_dates else None,
            ),
            evaluation=_evaluation(manifest),
            topic_names=manifest.names,
            names_language=manifest.names_language or "",
            broader=manifest.broader_topics,
            support=support,
        )


def _are_names(names: Any) -> bool:
    """Return whether `names` is a list of distinct strings; raise TypeError or UnicodeError for other entries."""
    "".join(names).encode()
    return isinstance(names, list) and len(set(names)) == len(names)
