"""How much work teaching a topic takes: systematic reviews beside ASReview's ELAS u4, topics beside AutoTAR."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import autotar
import numpy as np
from harness import Row, Work
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.recipes.recipe import RankerSettings, read_recipe
from textcat.teaching.measures import mean_of
from textcat.teaching.ranker import WITH_EMBEDDINGS
from textcat.teaching.simulate import Result, Setting, SimulatedTopic, by_topic, experiment, simulated_topics

RECIPE, TOPIC = "active-learning", "included"
OURS, PEER = "textcat", "ELAS u4"
MEASURES = {"loss": "loss", "wss95": "WSS@95", "rrf10": "RRF@10"}


class Elas:
    """ASReview 3's default model, ELAS u4, for `simulate`: see `elas_rows` for its rows."""

    def __init__(self, rows: Any, *, settings: RankerSettings | None = None, seed: int = 0):
        self.rows_of_counts = rows

    def train(self, positions: Any, labels: Any, examples: None = None) -> LinearSVC:
        """Train on the judged rows, weighed as asreview.models.balancers.Balanced(ratio=9.8) does."""
        y = np.asarray(labels) > 0
        weights = np.where(y, 1.0, y.sum() / (9.8 * (~y).sum()))
        weights *= len(y) / weights.sum()
        return LinearSVC(C=0.11, loss="squared_hinge", random_state=0).fit(self.rows_of_counts[positions], y, weights)

    def scores(self, weights: LinearSVC) -> Any:
        """Score all rows."""
        return weights.decision_function(self.rows_of_counts)


def elas_rows(corpus: Corpus) -> Any:
    """Return the rows of ELAS u4: words and pairs of title and abstract."""
    texts = [f"{one.zones.get('title', '')} {one.zones.get('body', '')}" for one in corpus.train]
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=1, max_df=0.95).fit_transform(texts)


def read_reviews(*, quick: bool = False) -> dict[str, Corpus]:
    """Open the files NAME.jsonl.gz of the folder TEXTCAT_SCREENING; their `topics` are ["included"] or []."""
    folder = os.environ.get("TEXTCAT_SCREENING")
    paths = sorted(Path(folder).glob("*.jsonl.gz")) if folder else []
    if not paths:
        raise TextcatError("The reviews are not here: name their folder, of files NAME.jsonl.gz, by TEXTCAT_SCREENING.")
    if quick:
        paths = sorted(paths, key=lambda path: path.stat().st_size)[:2]
    return {path.name.removesuffix(".jsonl.gz"): open_corpus(str(path)) for path in paths}


def reviews(work: Work, *, embeddings: bool = False) -> list[Row]:
    """Compare with ELAS u4 on systematic reviews: the same starts, steps and seeds; with embeddings, only the means."""
    corpora, recipe = read_reviews(quick=work.quick), read_recipe(RECIPE)
    ours = [simulated_topics(corpus, recipe, [TOPIC], embeddings=embeddings)[0] for corpus in corpora.values()]
    cases = zip(corpora.items(), ours, strict=True)
    its = [SimulatedTopic(name, TOPIC, elas_rows(corpus), case.labels) for (name, corpus), case in cases]
    way = Setting(OURS, WITH_EMBEDDINGS if embeddings else RankerSettings())
    how: dict[str, Any] = {"n_jobs": work.jobs, "kept": work.path("reviews.jsonl")}
    results = experiment(ours, [way], range(work.seeds), **how)
    results += experiment(its, [Setting(PEER, None, make=Elas)], range(work.seeds), **how)
    grouped, rows = by_topic(results), list[Row]()
    for name in corpora:
        mine, peer = ([one.figures for one in grouped[way, name, TOPIC]] for way in (OURS, PEER))
        first = grouped[OURS, name, TOPIC][0]
        rows.append({"review": name, "N": first.n_documents, "R": len(first.found)} | _beside(mine, peer))
    rows.append({"review": "mean", "N": None, "R": None} | _beside(*_means_over_reviews(results)))
    return rows[-1:] if embeddings else rows


def _means_over_reviews(results: Sequence[Result]) -> list[list[dict[str, float]]]:
    """Return, for each of both, the means over reviews by seed."""
    both = []
    for way in (OURS, PEER):
        seeds: dict[int, list[Mapping[str, float]]] = {}
        for one in results:
            if one.way == way:
                seeds.setdefault(one.seed, []).append(one.figures)
        both.append(
            [{name: float(np.mean([one[name] for one in of_seed])) for name in MEASURES} for of_seed in seeds.values()]
        )
    return both


def _beside(mine: Sequence[Mapping[str, float]], peer: Sequence[Mapping[str, float]]) -> dict[str, str]:
    """Return the means over seeds, and those of the differences with their 95 % intervals."""
    row = {}
    for name, title in MEASURES.items():
        scale, decimals = (1, 4) if name == "loss" else (100, 1)
        a, b = (np.array([scale * one[name] for one in of_way]) for of_way in (mine, peer))
        difference = mean_of(a - b)
        row[f"{title} {OURS}"] = f"{a.mean():.{decimals}f}"
        row[PEER if name == "loss" else f"{title} {PEER}"] = f"{b.mean():.{decimals}f}"
        row[f"Δ {title}"] = f"{difference.mean:+.{decimals}f} ±{difference.mean - difference.low:.{decimals}f}"
    return row


def descriptions(work: Work) -> list[Row]:
    """Compare with AutoTAR: how many answers reach 95 % recall of a topic, from its name and description alone."""
    corpus = open_corpus("newswire" if work.quick else "reuters21578")
    kept, recipe = work.path("descriptions.jsonl"), read_recipe(RECIPE)
    mine, rows = autotar.ours_needed(corpus, recipe, work.jobs, kept), list[Row]()
    for name, its in autotar.needed(corpus, min(work.seeds, 3), work.jobs, kept.with_stem("autotar")).items():
        ratios, low, high = mine / its, *np.quantile(mine / its, [0.25, 0.75])
        rows.append(
            {
                "compared with": name,
                "its answers, median": f"{np.median(its):.0f}",
                "ours, median": f"{np.median(mine):.0f}",
                "ratio, median": f"{np.median(ratios):.2f}",
                "quartiles": f"{low:.2f} to {high:.2f}",
                "ratio of medians": f"{np.median(mine) / np.median(its):.2f}",
                "fewer answers": f"{int((mine < its).sum())} of {len(mine)}",
            }
        )
    return rows
