"""Simulate active learning on a labelled corpus, to count the answers needed to find the relevant documents.

`simulate` makes one run of the loop. `experiment` makes many runs, over topics, settings and seeds, in parallel; if its
results are saved to a file, it can be interrupted and resumed.
"""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.journal import KeptResults
from textcat.base.progress import Advance
from textcat.corpus.documents import Corpus, name_in_words
from textcat.evaluation.metrics import average_precisions
from textcat.recipes.recipe import RankerSettings, Recipe
from textcat.teaching import measures, stopping
from textcat.teaching.descriptions import Descriptions
from textcat.teaching.loop import Choice, Loop, Ranking, RanksDocuments
from textcat.teaching.pool import Pool
from textcat.teaching.query import QueryStrategy, Reason
from textcat.teaching.ranker import Examples, Ranker

STARTS = ("example", "description", "random")
STEPS = "1:100,5:500,10"
_FOLDS, _GROWTH = 5, 1.2  # for `supervised`: number of folds, and ratio of successive numbers of answers
_SUPERVISED = 0.95  # share of the average precision with all labels that must be reached
_RULES_LOOK = 1.02  # minimum ratio of successive numbers of answers at which stopping rules are evaluated


class Run(NamedTuple):
    """The questions and answers of a simulated run, in order; all arrays have the shape (n_documents,).

    When all relevant documents are found, a run stops asking, unless it is `whole` or still watched (see `simulate`):
    the remaining documents follow in the order of their scores.
    """

    order: NDArray[np.int32]  # positions of the documents
    answers: NDArray[np.bool_]
    at_random: NDArray[np.bool_]  # whether the question was drawn at random
    scores: NDArray[np.float32]  # of each document when it was asked about; nan before the first training
    n_asked: int

    @property
    def found(self) -> NDArray[np.int64]:
        """The number of answers after which each relevant document was found: the `curve` that `measures` take."""
        return measures.found_at(self.answers)


def batch_sizes(steps: str = STEPS) -> Callable[[int], int]:
    """Return a function that gives, for a number of answers, the number of questions before the next training.

    ``"1:100,5:500,10"`` means 1 question below 100 answers, 5 below 500, then 10. TextcatError is raised for any other
    form.
    """
    parts = [part.partition(":") for part in steps.replace(" ", "").split(",")]
    sizes, limits = [part[0] for part in parts], [part[2] for part in parts[:-1]]
    numbers = [int(text) for text in sizes + limits if re.fullmatch("[1-9][0-9]{0,8}", text)]
    bounds = numbers[len(sizes) :]
    if len(numbers) < len(sizes + limits) or parts[-1][1] or bounds != sorted(set(bounds)):
        raise TextcatError(
            f"The steps {steps!r} are not of the form {STEPS!r}: write this for 1 up to 100, 5 up to 500, then 10."
        )
    return lambda n: numbers[int(np.searchsorted(bounds, n, side="right"))]


def simulate(
    ranker: RanksDocuments,
    labels: ArrayLike,
    *,
    strategy: str = "highest",
    start: str = "example",
    examples: Examples | None = None,
    seed: int = 0,
    steps: str = STEPS,
    whole: bool = False,
    watch: Callable[[stopping.History], bool] | None = None,
) -> Run:
    """Simulate the teaching of a topic: ask about documents as a session does, and answer by the labels.

    Parameters
    ----------
    ranker : Ranker
        A ranker of the pool's documents, or any object with the same methods `train` and `scores`.
    labels : array-like of shape (n_documents,), bool
        True for the documents that belong to the topic.
    strategy : str
        As for `QueryStrategy.parse`.
    start : {"example", "description", "random"}
        The first answers. "example": on one relevant and one irrelevant document, drawn by the seed; "description":
        none, because `examples` has the feature vector of a description; "random": on random documents, until there is
        one of each kind.
    examples : Examples, optional
        Training examples that are not documents of the pool.
    seed : int
        Seed of all random choices. The run is the same to the bit for the same arguments.
    steps : str
        The number of questions between trainings, such as ``"1:100,5:500,10"``: 1 below 100 answers, 5 below 500, then
        10.
    whole : bool
        Continue after the last relevant document is found, until all are asked about.
    watch : callable, optional
        Called with the history after each training, until it returns False. Until then, the run continues even after
        the last relevant document is found.

    Returns
    -------
    Run
    """
    labels = np.asarray(labels, bool)
    size, query, loop = batch_sizes(steps), QueryStrategy.parse(strategy), Loop(ranker, (seed,))
    if start not in STARTS:
        raise TextcatError(f"A simulation cannot start from {start!r}: choose one of {', '.join(STARTS)}.")
    if not 0 < labels.sum() < len(labels):
        raise TextcatError(f"Of {len(labels)} documents {labels.sum()} are relevant: give documents of both kinds.")
    answers, watching = _LabelledAnswers(labels), watch is not None
    answers.start(start, np.random.default_rng(seed))
    while answers.n_open:
        loop.rank(answers, examples)
        watching = watching and watch is not None and watch(answers.history())
        if not answers.n_relevant_open and not whole and not watching:
            break
        for _ in range(min(size(answers.n_changes), answers.n_open)):
            choice = loop.ask(query, answers.is_open, answers.n_changes)
            assert choice is not None  # as long as any document is open
            answers.add(choice)
    return answers.run(loop.ranking)


class _LabelledAnswers:
    """The answers of a simulated run so far, in the order of the questions, taken from the labels."""

    def __init__(self, labels: NDArray[np.bool_]):
        n = len(labels)
        self._labels, self._order = labels, np.empty(n, np.int32)
        self._at_random, self._scores = np.zeros(n, bool), np.full(n, np.nan, np.float32)
        self.is_open, self.n_open, self.n_relevant_open = np.ones(n, bool), n, int(labels.sum())
        self.n_changes = 0  # answers

    def start(self, start: str, generator: np.random.Generator) -> None:
        """Answer the questions before the first ranking; `start` is the argument of `simulate`."""
        labels, positions = self._labels, []
        if start == "example":
            positions = [generator.choice(np.flatnonzero(labels)), generator.choice(np.flatnonzero(~labels))]
        elif start == "random":
            drawn = generator.permutation(len(labels))
            positions = list(drawn[: max(int(np.argmax(labels[drawn])), int(np.argmin(labels[drawn]))) + 1])
            self._at_random[: len(positions)] = True
        for position in positions:
            self._answer(position)

    def add(self, choice: Choice) -> None:
        """Record the label of a chosen document as the answer to the next question."""
        k = self.n_changes
        self._scores[k] = choice.score
        if choice.reason == Reason.AT_RANDOM:
            self._at_random[k] = True
        self._answer(choice.position)

    def _answer(self, position: int) -> None:
        self._order[self.n_changes], self.is_open[position] = position, False
        self.n_changes, self.n_open = self.n_changes + 1, self.n_open - 1
        self.n_relevant_open -= int(self._labels[position])

    def labelled(self) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Return the positions of the documents that were asked about, and their labels (1 or -1)."""
        positions = self._order[: self.n_changes]
        return positions, np.where(self._labels[positions], 1, -1).astype(np.int8)

    def history(self) -> stopping.History:
        """Return the answers so far in the form that stopping rules take."""
        k = self.n_changes
        return stopping.History(self._labels[self._order[:k]], self._at_random[:k], len(self._labels))

    def run(self, ranking: Ranking | None) -> Run:
        """Return the run; documents that were not asked about follow in the order of their scores in `ranking`."""
        if ranking is not None:
            rest = np.flatnonzero(self.is_open)
            self._order[self.n_changes :] = rest[np.argsort(-ranking.scores[rest], kind="stable")]
        return Run(self._order, self._labels[self._order], self._at_random, self._scores, self.n_changes)


def supervised(ranker: RanksDocuments, labels: ArrayLike, run: Run, examples: Examples | None = None) -> int:
    """Return the number of answers after which the ranker is nearly as good as one trained on all labels.

    Quality is the mean average precision by stratified 5-fold cross-validation: each fold is ranked after training on
    the judged documents of the other folds. Nearly as good means 95 % of the quality of training on all documents of
    the other folds. Quality is measured at 10 answers, and again each time that the number of answers has grown by a
    fifth. The folds are the same for all runs.
    """
    labels = np.asarray(labels, bool)
    fold = np.empty(len(labels), np.int8)
    shuffled = np.random.default_rng(0).permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold[by_label] = np.arange(len(labels)) % _FOLDS
    asked = np.empty(len(labels), np.int64)
    asked[run.order] = np.arange(len(labels))

    def quality(n: int) -> float:
        values = []
        for part in range(_FOLDS):
            judged = run.order[:n][fold[run.order[:n]] != part]
            if not 0 < labels[judged].sum() < len(judged):
                return 0.0
            scores = ranker.scores(ranker.train(judged, np.where(labels[judged], 1, -1).astype(np.int8), examples))
            out = fold == part
            values.append(average_precisions(labels[out, np.newaxis], scores[out, np.newaxis])[0])
        return float(np.nanmean(values))

    enough = _SUPERVISED * quality(len(labels))
    n = 10
    while n < len(labels) and quality(n) < enough:
        n = math.ceil(n * _GROWTH)
    return min(n, len(labels))


# --- many runs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedTopic:
    """A topic of a labelled corpus, with the feature vectors and labels of all documents."""

    corpus: str
    topic: str
    rows: csr_matrix
    labels: NDArray[np.bool_]
    examples: Examples | None = None  # the row of its description, for `start="description"`
    embeddings: NDArray[np.float32] | None = None  # embeddings of its documents, for rankers that use them

    @cached_property
    def checksum(self) -> str:
        """A checksum of the feature vectors, labels, examples and embeddings."""
        digest = hashlib.sha256(np.packbits(self.labels).data)
        parts = [] if self.examples is None else [self.examples.rows.data, self.examples.rows.indices]
        parts += [] if self.embeddings is None else [self.embeddings]
        for array in (self.rows.data, self.rows.indices, self.rows.indptr, *parts):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]


def simulated_topics(
    corpus: Corpus,
    recipe: Recipe,
    topics: Sequence[str] | None = None,
    description: str = "",
    *,
    embeddings: bool = False,
) -> list[SimulatedTopic]:
    """Return topics of a corpus, by default all, with the vectors of its training and test documents.

    Topics that no document has, or all documents have, are left out.

    Parameters
    ----------
    corpus : Corpus
    recipe : Recipe
        How documents become feature vectors.
    topics : sequence of str, optional
    description : str
        The topic in words, used in addition to its name; by default the topic's description in the corpus or, without
        one, its names in a vocabulary.
    embeddings : bool, default=False
        Compute embeddings, for rankers whose settings use them.

    Returns
    -------
    list of SimulatedTopic

    Raises
    ------
    TextcatError
        If the corpus lacks one of the given topics.
    """
    for topic in set(topics or ()) - set(corpus.topics):
        raise TextcatError(f"{corpus.name} has no topic {topic!r}.{did_you_mean(topic, corpus.topics)}")
    documents = [*corpus.train, *corpus.test]
    pool = Pool.from_documents(corpus, recipe=recipe)
    described = Descriptions(pool.features)
    simulated = []
    for topic in topics or corpus.topics:
        labels = np.array([topic in document.topics for document in documents])
        if 0 < labels.sum() < len(labels):
            about = description or corpus.descriptions.get(topic) or " ".join(corpus.names.get(topic, ()))
            words = described.rows([f"{name_in_words(topic)} {about}"])
            examples = Examples(words, np.ones(1, np.int8), np.ones(1))
            name = corpus.name.split(".")[0] or corpus.name  # of a file
            simulated.append(
                SimulatedTopic(name, topic, pool.rows, labels, examples, pool.embeddings() if embeddings else None)
            )
    return simulated


class Setting(NamedTuple):
    """A configuration of teaching that an experiment compares with others."""

    name: str
    settings: RankerSettings | None = RankerSettings()  # None: `make` needs no settings
    strategy: str = "highest"
    start: str = "example"
    steps: str = STEPS
    rules: tuple[str, ...] = ()  # stopping rules to evaluate
    target: float = 0.95  # the recall at which the rules stop
    confidence: float = 0.95
    supervised: bool = False  # whether to compute `supervised`, which takes longer
    # function of rows, settings= and seed= that returns a ranker
    make: Callable[..., RanksDocuments] = partial(Ranker, n_threads=1)


class Result(NamedTuple):
    """The result of one simulated run in an experiment: when documents were found, and when stopping rules stopped."""

    corpus: str
    topic: str
    way: str  # name of the setting
    seed: int
    n_documents: int
    found: list[int]  # the `curve` that `measures` take
    # by stopping rule: the number of answers after which it said stop, or of all answers if it never did
    stops: dict[str, int]
    supervised: int | None  # the result of `supervised`; None if it was not called
    seconds: float  # seconds of processor time

    @property
    def figures(self) -> dict[str, float]:
        """The measures of the run by name, such as loss and WSS: see `textcat.teaching.measures`."""
        curve, n = np.asarray(self.found), self.n_documents
        named = {
            "loss": measures.loss(curve, n),
            "wss95": measures.wss(curve, n, 0.95),
            "wss100": measures.wss(curve, n, 1.0),
            "rrf10": measures.rrf(curve, n, 0.1),
            "recall@R": measures.recall_at(curve, 1),
            "recall@2R": measures.recall_at(curve, 2),
            "recall@R+100": measures.recall_at(curve, 1, 100),
            "answers80": measures.answers_to_reach(curve, 0.80),
            "answers90": measures.answers_to_reach(curve, 0.90),
            "answers95": measures.answers_to_reach(curve, 0.95),
        }
        return named if self.supervised is None else named | {"supervised": self.supervised}

    def recall_at_stop(self, rule: str) -> float:
        """Return the recall at the answer after which a stopping rule said stop."""
        return measures.recall_after(self.found, self.stops[rule])


def experiment(
    topics: Sequence[SimulatedTopic],
    settings: Sequence[Setting],
    seeds: Iterable[int] = range(20),
    *,
    n_jobs: int | None = None,
    kept: Path | None = None,
    advance: Advance = lambda n: None,
) -> list[Result]:
    """Simulate teaching: each topic in each setting with each seed.

    Parameters
    ----------
    topics, settings, seeds
        All combinations are run; results are in this order for any number of jobs.
    n_jobs : int, optional
        Number of parallel processes, as in joblib; except for the seconds, results are the same to the bit.
    kept : path, optional
        File to which each result is saved when its run ends; runs with a saved result are not repeated.
    advance : callable, optional
        Called with 1 after each run.

    Returns
    -------
    list of Result
    """
    results = KeptResults(kept)
    tasks = {
        run_key(topic, setting, seed): (topic, setting, seed)
        for topic in topics
        for setting in settings
        for seed in seeds
    }
    missing = [(key, *task) for key, task in tasks.items() if key not in results]
    advance(len(tasks) - len(missing))
    for key, result in _run_all(missing, n_jobs):
        results[key] = result._asdict()
        advance(1)
    fields = Result._fields
    return [
        Result(**{name: results[key][name] for name in fields} | {"way": setting.name})
        for key, (_, setting, _) in tasks.items()
    ]


def run_key(topic: SimulatedTopic, setting: Setting, seed: int) -> str:
    """Return the key under which the result of a run is saved; it contains everything that the result depends on."""
    facts = {**setting._asdict(), "settings": setting.settings and asdict(setting.settings)}
    facts |= {"make": getattr(setting.make, "__qualname__", "")}
    del facts["name"]
    return json.dumps([topic.corpus, topic.topic, topic.checksum, seed, facts], sort_keys=True)


def _run_all(
    tasks: Sequence[tuple[str, SimulatedTopic, Setting, int]], n_jobs: int | None
) -> Iterator[tuple[str, Result]]:
    if joblib.effective_n_jobs(n_jobs) == 1 or len(tasks) < 2:
        yield from (_run(*task) for task in tasks)
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size="auto")
    yield from parallel(joblib.delayed(_run)(*task) for task in tasks)


def _run(key: str, topic: SimulatedTopic, setting: Setting, seed: int) -> tuple[str, Result]:
    began = time.process_time()
    embeddings = {"embeddings": topic.embeddings} if setting.settings and setting.settings.embeddings else {}
    ranker = setting.make(topic.rows, settings=setting.settings, seed=seed, **embeddings)
    stops: dict[str, int] = {}
    looked = 0.0

    def watch(history: stopping.History) -> bool:
        nonlocal looked
        n = len(history.answers)
        if n >= looked:
            looked = n * _RULES_LOOK
            for rule in set(setting.rules) - stops.keys():
                if stopping.Stopper(rule, setting.target, setting.confidence).may_stop(history):
                    stops[rule] = n
        return len(stops) < len(setting.rules)

    examples = topic.examples if setting.start == "description" else None
    run = simulate(
        ranker,
        topic.labels,
        strategy=setting.strategy,
        start=setting.start,
        examples=examples,
        seed=seed,
        steps=setting.steps,
        watch=watch if setting.rules else None,
    )
    stops |= {rule: run.n_asked for rule in setting.rules if rule not in stops}
    good = supervised(ranker, topic.labels, run, examples) if setting.supervised else None
    seconds = time.process_time() - began
    n, curve = len(topic.labels), run.found.tolist()
    return key, Result(topic.corpus, topic.topic, setting.name, seed, n, curve, stops, good, seconds)


# --- results ---------------------------------------------------------------------------------------------------------


def by_topic(results: Iterable[Result]) -> dict[tuple[str, str, str], list[Result]]:
    """Return the results grouped by setting, corpus and topic, in the order of the results."""
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.way, result.corpus, result.topic), []).append(result)
    return grouped


def means_by_setting(results: Iterable[Result], measure: str) -> dict[str, measures.Mean]:
    """Return for each setting the mean of a measure over topics and seeds, with its confidence interval over the seeds.

    Parameters
    ----------
    results : iterable of Result
    measure : str
        A key of `Result.figures`.

    Returns
    -------
    dict
        Means by the names of settings.
    """
    values: dict[str, dict[int, list[float]]] = {}
    for result in results:
        values.setdefault(result.way, {}).setdefault(result.seed, []).append(result.figures[measure])
    return {
        name: measures.mean_of([np.nanmean(of_seed) for of_seed in seeds.values() if not np.isnan(of_seed).all()])
        for name, seeds in values.items()
    }
