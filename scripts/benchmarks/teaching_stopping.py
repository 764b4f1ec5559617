"""The rules of stopping on simulated runs, and the constants of the rule "learned" learnt from them.

Runs are of the reviews of TEXTCAT_SCREENING, of the topics of Reuters-21578, and made up by urns.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Row, Work
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binomtest

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.teaching import stopping
from textcat.teaching.pool import Pool
from textcat.teaching.ranker import Ranker

SETS = ("reviews", "reuters", "urns")
TARGET = CONFIDENCE = 0.95
SEEDS, SEEDS_OF_REUTERS, URNS = 10, 2, 200
QUICK = (1, 1, 20)
GOAL = 0.955  # the share of the runs that are to reach the recall
GROWTH = 25  # a batch is a 25th of what was answered, from 50 answers on


class Run(NamedTuple):
    """The answers of a simulated person, in the order asked, until nothing of the pool is left."""

    set: str
    topic: str
    seed: int
    answers: NDArray[np.bool_]

    @property
    def needed(self) -> int:
        """Return at which answer the recall that is wanted was reached."""
        finds = np.flatnonzero(self.answers)
        return int(finds[math.ceil(TARGET * len(finds) - 1e-9) - 1]) + 1


# ---- What is asked, in which order


def asked(pool: Pool, labels: NDArray[np.bool_], seed: int, give_up: float = math.inf) -> NDArray[np.bool_]:
    """Return the answers of a run that starts from one relevant and one other document, and asks the highest scores.

    After `give_up` times the answers that were needed, and 1,500 more, the rest follows by its scores.
    """
    rng, n, ranker = np.random.default_rng(seed), len(labels), Ranker(pool.rows, seed=seed, n_threads=1)
    order = [int(rng.choice(np.flatnonzero(labels))), int(rng.choice(np.flatnonzero(~labels)))]
    is_open, wanted, needed = np.ones(n, bool), math.ceil(TARGET * labels.sum() - 1e-9), 0
    while len(order) < n:
        judged = np.array(order)
        is_open[judged] = False
        if not needed and labels[judged].sum() >= wanted:
            needed = len(order)
        scores = ranker.scores(ranker.train(judged, np.where(labels[judged], 1, -1).astype(np.int8)))
        size = 1 if len(order) < 50 else len(order) // GROWTH
        if needed and len(order) > max(give_up * needed, needed + 1500) and give_up < math.inf:
            size = n
        left = np.flatnonzero(is_open)
        order += left[np.argsort(-scores[left], kind="stable")[:size]].tolist()
    return labels[order]


def urn(seed: int) -> NDArray[np.bool_]:
    """Return a made-up run: buscarpy's urn, of which a relevant document is drawn `bias` times as likely as another."""
    rng = np.random.default_rng([77, seed])
    n, prevalence, bias = (math.exp(rng.uniform(*map(math.log, of))) for of in ((1e3, 2e4), (0.005, 0.1), (5, 50)))
    labels = np.arange(int(n)) < max(2, round(n * prevalence))
    return labels[np.argsort(rng.exponential(size=len(labels)) / np.where(labels, bias, 1))]


_pools: dict[str, tuple[Pool, NDArray[np.bool_], list[str]]] = {}


def _pool(source: str) -> tuple[Pool, NDArray[np.bool_], list[str]]:
    """Return the pool of a corpus, which documents have which topics, and these."""
    if source not in _pools:
        _pools.clear()
        corpus = open_corpus(source)
        documents, topics = [*corpus.train, *corpus.test], list(corpus.topics)
        labels = np.array([[topic in document.topics for topic in topics] for document in documents])
        _pools[source] = Pool.from_documents(documents), labels, topics
    return _pools[source]


def _runs_of(job: tuple[str, str, int, list[int]]) -> None:
    """Write the runs of a topic of a pool that are not there yet."""
    source, folder, topic, seeds = job
    name = Path(source).name.removesuffix(".jsonl.gz")
    for seed in seeds:
        path = Path(folder) / f"{name}~{topic}~{seed}.npz"
        if not path.exists():
            pool, labels, topics = _pool(source)
            answers = asked(pool, labels[:, topic], seed, 4 if source == "reuters21578" else math.inf)
            np.savez(path, answers=np.packbits(answers), n=len(answers), topic=topics[topic])


def runs(work: Work) -> list[Run]:
    """Return all runs; those of an earlier time are read."""
    kept, reviews = work.path("stopping"), os.environ.get("TEXTCAT_SCREENING")
    kept.mkdir(exist_ok=True)
    if not reviews:
        raise TextcatError("The reviews are not here: name their folder, of files NAME.jsonl.gz, by TEXTCAT_SCREENING.")
    seeds, again, n_urns = QUICK if work.quick else (SEEDS, SEEDS_OF_REUTERS, URNS)
    sources = sorted(map(str, Path(reviews).glob("*.jsonl.gz")))
    if work.quick:
        sources = sorted(sources, key=os.path.getsize)[:2]
    jobs = [(source, str(kept), 0, list(range(seeds))) for source in sources]
    # The topics of Reuters seed by seed, so that a part of them is a fair part.
    n_topics = 2 if work.quick else 90
    jobs += [("reuters21578", str(kept), topic, [seed]) for seed in range(again) for topic in range(n_topics)]
    with ProcessPoolExecutor(work.jobs) as workers:
        list(workers.map(_runs_of, jobs))
    found = []
    for path in sorted(kept.glob("*.npz")):
        with np.load(path) as saved:
            answers, topic = np.unpackbits(saved["answers"], count=int(saved["n"])).astype(bool), str(saved["topic"])
        name, _, seed = path.stem.split("~")
        which = "reuters" if name == "reuters21578" else "reviews"
        found.append(Run(which, topic if which == "reuters" else name, int(seed), answers))
    return found + [Run("urns", str(seed), 0, urn(seed)) for seed in range(n_urns)]


# ---- Where a rule stops


def looks(n: int) -> NDArray[np.int64]:
    """Return after how many answers a rule is asked: 10, then a 50th more each time."""
    at = [min(10, n)]
    while at[-1] < n:
        at.append(min(n, at[-1] + max(1, at[-1] // 50)))
    return np.array(at)


def stop(run: Run, rule: str) -> tuple[int, bool]:
    """Return how many answers a rule asked for, and whether the recall that is wanted was reached."""
    answers, n = run.answers, len(run.answers)
    if rule == "sample":
        return stop_by_drawing(run)
    for k in looks(n):
        history = stopping.History(answers[:k], np.zeros(k, bool), n)
        if stopping.Stopper(rule, TARGET, CONFIDENCE).may_stop(history):
            break
    return int(k), bool(answers[:k].sum() >= TARGET * answers.sum() - 1e-9)


def stop_by_drawing(run: Run, share: float = 0.2) -> tuple[int, bool]:
    """Ask a fifth of the questions at random, in between."""
    n, rng = len(run.answers), np.random.default_rng([run.seed, len(run.answers), 1])
    drawn, shuffled, is_open = rng.random(n) < share, rng.permutation(n).tolist(), np.ones(n, bool)
    answers, front, checks = [], 0, set(looks(n).tolist())
    for k in range(n):
        if drawn[k]:
            while not is_open[place := shuffled.pop()]:
                pass
        else:
            while not is_open[front]:
                front += 1
            place = front
        is_open[place] = False
        answers.append(run.answers[place])
        history = stopping.History(answers, drawn[: k + 1], n)
        if k + 1 in checks and stopping.Stopper("sample", TARGET, CONFIDENCE).may_stop(history):
            break
    return len(answers), bool(sum(answers) >= TARGET * run.answers.sum() - 1e-9)


# ---- The rule "learned": its constants, learnt on some runs

POWERS = (1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
SPREAD = 0.1  # with this one the rule keeps its word at a confidence of 80, 90 and 99 % too
OF_ESTIMATES = 0.15  # what a recall that is estimated wrongly costs, beside the answers in all over those needed


class Looks:
    """All looks at all runs, as columns, for the formula of the rule."""

    def __init__(self, runs: Sequence[Run]) -> None:
        columns, lengths = [], []
        for run in runs:
            n, total = looks(len(run.answers)), len(run.answers)
            t = np.flatnonzero(run.answers) + 1.0
            r = np.searchsorted(t, n, side="right")
            recent = np.r_[0, np.cumsum((t / total) ** stopping.FADE)][r] * (total / n) ** stopping.FADE
            columns.append(np.vstack([n, r, np.full(len(n), total), np.full(len(n), len(t)), recent]))
            lengths.append(len(n))
        self.n, r, N, R, recent = np.concatenate(columns, axis=1)
        self.run = np.repeat(np.arange(len(runs)), lengths)
        self.ends = np.cumsum(lengths)
        self.found, self.reached, self.recall = r, r >= TARGET * R - 1e-9, r / R
        self.allowed = np.floor(r / TARGET - r + 1e-9)
        self.needed = np.array([run.needed for run in runs])
        self.recent, self.rate = recent + 1, np.log(100 * (recent + 1) / self.n)
        self.share = np.log((N - self.n + 0.5) / N)
        self.to_end = N - self.n <= self.allowed
        # The topics of a set weigh the same, and the set as much as it has runs.
        topics, sets = Counter((run.set, run.topic) for run in runs), Counter(run.set for run in runs)
        n_topics = Counter(of for of, _ in topics)
        self.weights = np.array([sets[of.set] / n_topics[of.set] / topics[of.set, of.topic] for of in runs])
        estimated = (r > 1) & (self.n <= 2 * self.needed[self.run])
        n_estimated = np.bincount(self.run, estimated, minlength=len(runs))
        self.estimated = estimated * (self.weights / np.maximum(n_estimated, 1))[self.run]
        self._most = self.most_odds(CONFIDENCE)

    def most_odds(self, confidence: float) -> NDArray[np.float64]:
        """Return the logarithm of the odds above which the rule is not sure enough."""
        share = np.clip(betaincinv(SPREAD * self.recent, self.allowed + 1, confidence), 1e-300, 1 - 1e-16)
        return np.log1p(-share) - np.log(share)

    def margins(self, power: float, most: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return how large log C may be for the rule to say stop."""
        margins = (self._most if most is None else most) - power * self.rate - self.share
        margins[self.found == 0] = -np.inf
        margins[self.to_end] = np.inf
        return margins

    def stops(self, log_c: float, margins: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return for each run after how many answers the rule stops, and whether the recall was reached."""
        at = np.flatnonzero(margins >= log_c)
        first = at[np.searchsorted(at, np.r_[0, self.ends[:-1]])]
        return self.n[first], self.reached[first]

    def learn(self, chosen: NDArray[np.bool_], goal: float) -> tuple[float, float]:
        """Return the C and p that cost least on chosen runs, of which at least a share is to reach the recall.

        Cost is the ratio of all answers to all needed ones; for a small part the mean logarithm of the ratios; and how
        far the estimated recall is from the true one, until twice the needed answers. What is looked for is the least
        mean cost of five neighbouring goals, for a single one depends on single runs.
        """
        w, needed, weighed = self.weights * chosen, self.needed, self.estimated * chosen[self.run]

        def cost(power: float) -> tuple[float, float]:
            margins, costs = self.margins(power), []
            for level in (goal - 0.015, goal - 0.0075, goal + 0.0075, goal + 0.015, goal):
                low, high = -3.0, 12.0
                for _ in range(11):
                    log_c = (low + high) / 2
                    n, reached = self.stops(log_c, margins)
                    low, high = (low, log_c) if w @ reached >= level * w.sum() else (log_c, high)
                n, _ = self.stops(high, margins)
                missing = np.exp(np.minimum(high + power * self.rate + self.share, 30)) * SPREAD * self.recent
                off = np.abs(self.found / np.maximum(self.found + missing, 1e-9) - self.recall)
                costs.append(w @ n / (w @ needed) + 0.15 * (w @ np.log(n / needed)) / w.sum())
                costs[-1] += OF_ESTIMATES * (weighed @ off) / weighed.sum()
            return float(np.mean(costs)), high

        _, power = min((cost(power)[0], power) for power in POWERS)
        return float(f"{math.exp(cost(power)[1]):.3g}"), power


def parts_of(runs: Sequence[Run]) -> NDArray[np.int64]:
    """Return a number for each run: a review has its own, and shares it with a tenth of the other topics."""
    reviews = sorted({run.topic for run in runs if run.set == "reviews"})
    others = sorted({(run.set, run.topic) for run in runs if run.set != "reviews"})
    parts = {("reviews", topic): i for i, topic in enumerate(reviews)}
    parts |= {of: i % len(reviews) for i, of in enumerate(others)}
    return np.array([parts[run.set, run.topic] for run in runs])


def crossed(table: Looks, parts: NDArray[np.int64], goal: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return where the rule stops with constants that were learnt without the part that a run is of."""
    n, reached = np.zeros(len(parts)), np.zeros(len(parts), bool)
    for part in np.unique(parts):
        c, power = table.learn(parts != part, goal)
        for all_of, of in zip((n, reached), table.stops(math.log(c), table.margins(power)), strict=True):
            all_of[parts == part] = of[parts == part]
    return n, reached


# ---- Tables


def rows_of(name: str, runs: Sequence[Run], n: NDArray[Any], reached: NDArray[np.bool_]) -> list[Row]:
    """Return a row for each set of runs, and one for all: coverage with its exact interval, and what it cost."""
    needed, rows = np.array([run.needed for run in runs]), list[Row]()
    for which in (*SETS, "all"):
        of = np.array([which in (run.set, "all") for run in runs])
        if of.any():
            low, high = binomtest(int(reached[of].sum()), int(of.sum())).proportion_ci(method="exact")
            covered = f"{100 * reached[of].mean():.1f} ({100 * low:.0f} to {100 * high:.0f})"
            ratio = n[of] / needed[of]
            rows.append(
                {
                    "rule": name,
                    "runs": which,
                    "number": int(of.sum()),
                    "reached 95 %, in % (interval)": covered,
                    "mean": f"{ratio.mean():.2f}",
                    "median": f"{np.median(ratio):.2f}",
                    "total": f"{n[of].sum() / needed[of].sum():.2f}",
                }
            )
    return rows


def rules(work: Work) -> list[Row]:
    """Try the rules of textcat."""
    all_runs, rows = runs(work), list[Row]()
    for rule in stopping.RULES:
        rows += rows_of(rule, all_runs, *map(np.array, zip(*(stop(run, rule) for run in all_runs), strict=True)))
    return rows


def learned(work: Work) -> list[Row]:
    """Learn the constants of the rule "learned", and try them on these runs, on others, and at other confidences."""
    all_runs = runs(work)
    table, parts = Looks(all_runs), parts_of(all_runs)
    c, power = table.learn(np.ones(len(all_runs), bool), GOAL)
    name, log_c = f"learned, C = {c:g}, p = {power:g}, φ = {SPREAD:g}", math.log(c)
    rows = rows_of(name, all_runs, *table.stops(log_c, table.margins(power)))
    rows += rows_of("learned from others", all_runs, *crossed(table, parts, GOAL))
    for confidence in (0.8, 0.9, 0.99):
        stops = table.stops(log_c, table.margins(power, table.most_odds(confidence)))
        rows += rows_of(f"learned, asked for {100 * confidence:.0f} %", all_runs, *stops)[-1:]
    return rows
