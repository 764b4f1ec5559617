"""Train rankers of topics that have a name or a description but no labelled document, on unlabelled documents.

A document's first score for a topic is its similarity to the topic's name, by words and by word vectors. The documents
whose best topic leads by the largest distance become pseudo-labelled examples, and rankers are trained on them. This is
done twice, the second time with more documents. The rankers' weights are added to the weights of the names, so that a
score remains a sum over words.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, similar_files
from textcat.base.frames import named_columns
from textcat.base.progress import Stages
from textcat.corpus.cards import is_shipped
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.descriptions import read_descriptions
from textcat.corpus.documents import Corpus, Document
from textcat.features.rows import Rows
from textcat.features.vectors import FEWEST_KNOWN
from textcat.margin.problems import side_by_side
from textcat.model.decisions import Decisions
from textcat.model.dense import Dense
from textcat.model.facts import TrainingFacts
from textcat.model.tagger import Tagger
from textcat.reading import InputSettings, Rejection, document_stream, named_in_training, read_records
from textcat.reading.in_memory import origin_of_columns
from textcat.recipes.recipe import FEW_DOCUMENTS, Recipe
from textcat.training.cross_validation import score_units
from textcat.training.examples import CountedCorpus
from textcat.training.few_choices import char_weight
from textcat.training.memory import available_memory
from textcat.training.train import recipe_for

_log = logging.getLogger(__name__)
MOST = FEW_DOCUMENTS - 1  # maximum number of unlabelled documents to train on
# size of a topic's pseudo-labelled examples, as a share of an even division of the documents, in each round
_SHARES = (0.1, 0.25)
_FEWEST = 3  # minimum number of examples of a topic, if it leads in so many documents
_LEAST = 1e-9  # replaces a standard deviation of 0
_WEIGHTS_IN_MEMORY = 6  # matrices of weights in memory at the same time, at most: 5.2 were measured with 900 topics
_NO_WORD = (
    "No document has a word of a topic's name or description, or one that is similar: write descriptions in words of "
    "the documents."
)
_OF_RANKERS = 2.0  # standard deviation of the rankers' scores, relative to that of the scores by names


def train_by_names(
    names: Mapping[str, str] | str | os.PathLike[str],
    unlabelled: Any,
    recipe: Recipe | str | os.PathLike[str] | None = None,
    *,
    text: str | Sequence[str] | None = None,
    single: bool = False,
    n_jobs: int | None = None,
    stages: Stages | None = None,
) -> Tagger:
    """Train a tagger of topics that have only names or descriptions, without any labelled document.

    Parameters
    ----------
    names : mapping of str to str, or path
        The description of each topic; "" if it has only its name. Or a file of topics and descriptions: ``.toml``,
        ``.json``, ``.tsv``, ``.csv``, or ``.txt`` with a name per line.
    unlabelled : Corpus, str or Path, DataFrame, or iterable of str, Document or dict
        Documents like those to be tagged, or their path; their labels, if any, are ignored. If there are 5,000 or more,
        4,999 evenly spaced ones are used.
    recipe : Recipe, str or path, optional
        As for `train`; but where training chooses n-grams of characters, those of four characters are used.
    text : str or sequence of str, optional
        The columns or fields that hold the text, as for `train`.
    single : bool, default=False
        Each document gets exactly one topic. False: the recipe decides.
    n_jobs : int, optional
        Blocks of topics trained at the same time; None: 1, -1: one per core. The result is the same to the bit.
    stages : Stages, optional
        Object that times the work and draws progress bars.

    Returns
    -------
    Tagger
        A topic's threshold gives it to as many unlabelled documents as have it as their best topic. The tagger is not
        evaluated: call `textcat.evaluate` with labelled documents. A topic whose name and description have no word of a
        document, nor one of similar meaning, is named in a warning; it gets no examples, and is ranked below all others
        of a document without its words.

    Raises
    ------
    TextcatError
        If there are no topics or no documents, no document contains a word of a topic's name or description or one of
        similar meaning, the recipe has a shortlist, or the weights do not fit into memory.
    """
    corpus = names_corpus(names, unlabelled, text)
    recipe = recipe_for(corpus, recipe, single=single).with_values({"topics": {"description_copies": 1}})
    if recipe.topics.shortlist:
        raise TextcatError(
            f"{len(corpus.topics):,} topics and the recipe {recipe.name}: its shortlist is made of labelled documents; "
            "name fewer topics, or another recipe."
        )
    chooses_chars = recipe.topics.choose_chars and not recipe.features.chars
    if chooses_chars:  # shorter n-grams are also in names that have nothing to do with the documents
        recipe = recipe.with_values({"features": {"chars": 4}})
    stages = stages or Stages()
    with stages.stage("tokens to rows", len(corpus.train)) as advance:
        counted = CountedCorpus(corpus, recipe, None, advance)
        if recipe.topics.uses_vectors and counted.share_of_known_words() < FEWEST_KNOWN:
            recipe = recipe.with_settings("topics.vectors=none")
        if chooses_chars:
            recipe = recipe.with_values({"features": {"char_weight": char_weight(recipe)}})
        counted.serves(recipe)
        features = counted.fit(recipe.make_features())
        rows = counted.held_out_rows(features, np.arange(len(corpus.train)))
        named, vectors = counted.descriptions(features), counted.column_vectors(features)
        named = named if vectors is None else vectors.beside(named)
        _check_memory(rows.shape[1], len(corpus.topics))
    with stages.stage("train topics"):
        is_known = named[:, rows.getnnz(axis=0) > 0].getnnz(axis=1) > 0  # has a column that documents have
        _check_known(corpus, is_known)
        weights, taken = _weights(rows, named[is_known], len(features.idf_), recipe, n_jobs)
        weights, bias, taken = _with_unknown(rows, named, is_known, weights, taken)
    scorer = Dense(weights if vectors is None else vectors.in_words(weights), bias)
    scores = scorer.scores(Rows.of(rows[:, : len(features.idf_)]))  # tokenize as documents to be tagged are
    decisions = Decisions(_thresholds(scores), strategy=recipe.tags.strategy)
    facts = TrainingFacts(
        taken.sum(axis=0),
        len(corpus.train),
        recipe=recipe.complete(),
        corpus=corpus.name,
        origin=corpus.origin,
        choices={"names": {"described": sum(map(bool, corpus.descriptions.values())), "vectors": vectors is not None}},
    )
    return Tagger(features, scorer, decisions, topics=corpus.topics, facts=facts)


def names_corpus(names: Mapping[str, str] | str | os.PathLike[str], unlabelled: Any, text: Any = None) -> Corpus:
    """Return a corpus of at most 4,999 unlabelled documents with the topics to train, as for `train_by_names`."""
    described = dict(names) if isinstance(names, Mapping) else read_names(names)
    if not described:
        raise TextcatError("No topic is named: give names, as training by names needs them.")
    name, columns = "unlabelled documents", named_columns(text)
    if isinstance(unlabelled, Corpus):
        name, columns = unlabelled.name, named_in_training(unlabelled.origin)
    documents, topics = unlabelled_documents(unlabelled, text), tuple(sorted(described))
    origin = origin_of_columns(columns) if columns else {}
    return Corpus(name, documents, [], topics, descriptions=described, origin=origin, topic_rule="described")


def unlabelled_documents(unlabelled: Any, text: Any = None, trained_on: tuple[str, ...] = ()) -> list[Document]:
    """Return unlabelled documents, given as for `train_by_names`; of 5,000 or more, 4,999 evenly spaced ones.

    `text` and `trained_on` are as for `document_stream`.
    """
    if isinstance(unlabelled, str | os.PathLike):
        path, settings = os.fspath(unlabelled), InputSettings(text_fields=named_columns(text) or trained_on)
        unlabelled = open_corpus(path) if is_shipped(path) else readable_documents([path], settings)
    elif isinstance(unlabelled, Corpus) and text is not None:
        raise TextcatError(
            f"Corpus {unlabelled.name} has its texts already: leave out the columns of a table, {text!r}."
        )
    if isinstance(unlabelled, Corpus):
        unlabelled = chain(unlabelled.train, unlabelled.test, unlabelled.unused)
    stream = document_stream(unlabelled, text, trained_on)
    documents = _evenly_drawn(
        {"body": document} if isinstance(document, str) else document.zones for document in stream
    )
    if not documents:
        raise TextcatError("There is no unlabelled document: give some that are such as will be tagged.")
    return documents


def readable_documents(inputs: Sequence[str], settings: InputSettings) -> Iterator[Document]:
    """Yield documents of files, folders, patterns and URLs; log how many could not be read, and the first reason."""
    first, n_rejected = None, 0
    for item in read_records(inputs, settings):
        if isinstance(item, Rejection):
            first, n_rejected = first or item, n_rejected + 1
        else:
            yield Document(item.id, item.zones)
    if first is not None:
        which = "1 document" if n_rejected == 1 else f"{n_rejected:,} documents, the first of"
        _log.warning("Left out, as unreadable: %s %s: %s", which, first.source, first.reason)


def _evenly_drawn(zones: Iterable[Mapping[str, str]]) -> list[Document]:
    """Return all documents, or `MOST` evenly spaced ones, given their texts; hold at most `2 * MOST` in memory."""
    kept: list[Document] = []
    step = 1
    for number, texts in enumerate(zones):
        if number % step == 0:
            kept.append(Document(str(number), {zone: text for zone, text in texts.items() if text} or {"body": ""}))
        if len(kept) > 2 * MOST:
            kept, step = kept[::2], 2 * step
    positions = np.linspace(0, len(kept) - 1, min(len(kept), MOST)).round().astype(int)
    return [kept[position] for position in positions.tolist()]


def read_names(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return topics and their descriptions from a file, as for `train_by_names`."""
    file = expanded(path)
    if not file.is_file():
        raise TextcatError(f"There is no file {path} of topics.{similar_files(file)}")
    return read_descriptions(file.name, file.read_bytes(), str(path))


def _check_known(corpus: Corpus, is_known: np.ndarray) -> None:
    """Warn of topics without a word that documents have, or a similar one; raise TextcatError if there is no other."""
    if not is_known.any():
        raise TextcatError(_NO_WORD)
    if unknown := [topic for topic, known in zip(corpus.topics, is_known.tolist(), strict=True) if not known]:
        which, it = f"the topic {unknown[0]!r}", "it"
        if len(unknown) > 1:
            which, it = f"{len(unknown):,} topics, such as {unknown[0]!r}", "they"
        gets = "gets no example and is" if it == "it" else "get no example and are"
        warnings.warn(
            f"No document has a word of the name or description of {which}, or one that is similar, so {it} {gets} "
            "ranked last in documents without such words: describe such topics in words of the documents.",
            UserWarning,
            stacklevel=3,
        )


def _with_unknown(
    rows: sparse.csr_matrix, named: sparse.csr_matrix, is_known: np.ndarray, weights: np.ndarray, taken: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights, the biases and the examples of all topics, given the weights and examples of known ones.

    A topic that is not known keeps the words of its name, with weights of the usual size, but without one of them it
    is below all other topics of a document: its bias is as far below the lowest score as the highest is above it.
    """
    scores = rows @ weights
    bias = -scores.mean(axis=0)
    if is_known.all():
        return weights, bias, taken
    scores += bias
    size = np.linalg.norm(weights) / np.linalg.norm(named[is_known].data)
    of_all = np.zeros((len(weights), len(is_known)), weights.dtype, order="F")  # a topic's weights lie together
    of_all[:, ~is_known] = named[~is_known].toarray().T * size
    biases = np.full(len(is_known), scores.min() - np.ptp(scores), bias.dtype)
    examples = np.zeros((len(taken), len(is_known)), bool)
    of_all[:, is_known], biases[is_known], examples[:, is_known] = weights, bias, taken
    return np.ascontiguousarray(of_all), biases, examples


def _weights(
    rows: sparse.csr_matrix, named: sparse.csr_matrix, n_terms: int, recipe: Recipe, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of each topic, and which unlabelled documents were used as examples of it.

    Shapes: (n_columns, n_topics), and (n_documents, n_topics), bool. `rows` has the feature vectors of the documents,
    `named` those of the topics' names and descriptions, one per topic. Columns from `n_terms` on are dimensions of word
    vectors.
    """
    weights = named.toarray().T
    words, dimensions = weights[:n_terms], weights[n_terms:]
    words /= _spread(rows[:, :n_terms] @ words)
    if weights.shape[1] > 1:  # subtract the mean of all names: what they share does not tell topics apart
        dimensions -= dimensions.mean(axis=1, keepdims=True)
    if len(dimensions):
        by_vectors = rows[:, n_terms:] @ dimensions
        by_vectors /= (spread_of_topics := np.maximum(by_vectors.std(axis=0), _LEAST))
        dimensions /= spread_of_topics * _spread(by_vectors)
    scores = rows @ weights
    if not scores.any():
        raise TextcatError(_NO_WORD)
    weights /= _spread(scores)
    taken = np.zeros(scores.shape, bool)
    total = weights
    for share in _SHARES if weights.shape[1] > 1 else ():
        scores = rows @ total
        taken = surest(scores - scores.mean(axis=0), share)
        by_rankers = _trained(rows, named, taken, recipe, n_jobs)
        total = weights + by_rankers * (_OF_RANKERS / _spread(rows @ by_rankers))
    return total, taken


def _check_memory(n_columns: int, n_topics: int) -> None:
    """Raise TextcatError if the weights of this many columns and topics do not fit into memory."""
    needed, available = _WEIGHTS_IN_MEMORY * 4 * n_columns * n_topics, available_memory()
    if available is not None and needed > available:
        raise TextcatError(
            f"{n_topics:,} topics by {n_columns:,} terms would take {needed / 1e6:,.0f} MB of memory, and "
            f"{available / 1e6:,.0f} MB are available: name fewer topics, or leave out pairs of words by "
            "--set features.ngrams=1."
        )


def _thresholds(scores: np.ndarray) -> np.ndarray:
    """Return thresholds that give a topic to as many documents as have it as best topic; inf if none has."""
    n_best = np.bincount(scores.argmax(axis=1), minlength=scores.shape[1])
    least = np.sort(scores, axis=0)[-np.maximum(n_best, 1), np.arange(scores.shape[1])]
    return np.where(n_best > 0, np.nextafter(least, np.float32(-np.inf)), np.float32(np.inf))


def _spread(scores: np.ndarray) -> np.float32:
    """Return the standard deviation of scores, or a small number instead of 0."""
    return np.float32(max(scores.std(dtype=np.float64), _LEAST))


def surest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return a bool matrix that marks, for each topic, the documents in which it leads by the largest distance.

    Each topic gets at most the same number: `share` times n_documents / n_topics, but no less than `_FEWEST`.
    """
    n_documents, n_topics = scores.shape
    first = scores.argmax(axis=1)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    taken = np.zeros(scores.shape, bool)
    for topic in range(n_topics):
        led = np.flatnonzero(first == topic)
        surest = np.argsort(second[led] - best[led], kind="stable")
        taken[led[surest[: max(int(share * n_documents / n_topics), _FEWEST)]], topic] = True
    return taken


def _trained(
    rows: sparse.csr_matrix, named: sparse.csr_matrix, taken: np.ndarray, recipe: Recipe, n_jobs: int | None
) -> np.ndarray:
    """Return the weights of rankers trained on pseudo-labelled documents (`taken`) and topics' names."""
    used = taken.any(axis=1)
    labels = np.vstack([taken[used], np.eye(taken.shape[1], dtype=bool)])
    learner = recipe.make_learner(n_jobs=n_jobs)
    examples = sparse.vstack([rows[used], named], format="csr", dtype=rows.dtype)
    learner.fit_packed(examples, sparse.csc_matrix(labels.astype(np.int8)))
    units = score_units(learner.solutions_, learner.intercept_.dtype)
    return side_by_side(learner.solutions_, rows.shape[1]) / units
