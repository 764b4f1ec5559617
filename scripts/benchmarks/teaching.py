"""Measure how much work teaching a topic takes, beside ASReview's ELAS u4, for docs/benchmarks/teaching-*.md.

scripts/benchmark teaching --reviews FOLDER --keep FOLDER     # what is measured stays there: the same command resumes
scripts/benchmark teaching --reviews FOLDER --only reviews --seeds 3
scripts/benchmark teaching --reviews FOLDER --choose ranker.C=.05,.11,.3 features.ngrams=1,2     # settings, honestly

A folder of reviews holds a file NAME.jsonl.gz for each: `topics` is ["included"] or [].
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import teaching_autotar
import teaching_page
from pages import Conditions, Page, publish
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.evaluation.export import markdown_table
from textcat.recipes.recipe import RankerSettings, Recipe, read_recipe
from textcat.teaching.measures import mean_of
from textcat.teaching.ranker import WITH_EMBEDDINGS
from textcat.teaching.simulate import (
    Result,
    Setting,
    SimulatedTopic,
    by_topic,
    experiment,
    leave_one_out,
    means_by_setting,
    simulated_topics,
)

RECIPE, TOPIC = "active-learning", "included"
OURS, PEER = "textcat", "ELAS u4"
PUBLISHED = {"virus": 0.712, "nudging": 0.717}  # the best WSS@95 of seven models, Ferdinands et al. (2020)
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


class Space(NamedTuple):
    """What the parts of the page are measured with."""

    reviews: Path | None  # the folder of the reviews
    keep: Path | None  # where results stay
    seeds: int
    jobs: int
    embeddings: bool = False  # rank by them, too

    @property
    def way(self) -> Setting:
        """The ranker that is measured."""
        return Setting(OURS, WITH_EMBEDDINGS if self.embeddings else RankerSettings())

    def corpora(self) -> dict[str, Corpus]:
        """Open the reviews, by name."""
        if self.reviews is None:
            raise SystemExit("The reviews are not here: name their folder by --reviews, or in TEXTCAT_SCREENING.")
        return read_reviews(self.reviews)

    def kept(self, name: str) -> Path | None:
        """Return the file in which results are kept."""
        return self.keep and self.keep / f"{name}.jsonl"


def read_reviews(folder: Path, names: Sequence[str] = ()) -> dict[str, Corpus]:
    """Open the reviews of a folder, or some of them, by name."""
    paths = {path.name.removesuffix(".jsonl.gz"): path for path in sorted(Path(folder).glob("*.jsonl.gz"))}
    return {name: open_corpus(str(paths[name])) for name in names or paths}


def main(arguments: Sequence[str]) -> None:
    """Measure, print the page, and write it if asked to."""
    parser = argparse.ArgumentParser(prog="scripts/benchmark teaching", description=__doc__.partition("\n")[0])
    here = os.environ.get("TEXTCAT_SCREENING")
    parser.add_argument("--reviews", type=Path, default=here and Path(here), help="folder of NAME.jsonl.gz")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="of each simulation (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=-1, help="runs at the same time (default: one per core)")
    parser.add_argument("--embeddings", action="store_true", help="rank by embeddings, too (extra `embeddings`)")
    parser.add_argument("--keep", type=Path, help="folder for what is measured, made, and used again if it is there")
    parser.add_argument(
        "--choose", nargs="+", metavar="NAME=A,B", help="instead: settings to choose from, each review's by the others"
    )
    parser.add_argument("--out", type=Path, help="also write the pages to this folder, such as docs/benchmarks")
    options = parser.parse_args(arguments)
    if unknown := set(options.only.split(",")) - set(PARTS):
        parser.error(f"--only takes {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    space = Space(options.reviews, options.keep, options.seeds, options.jobs, options.embeddings)
    if options.choose:
        publish([choosing(space, options.choose)], None)
    else:
        publish((PARTS[part](space) for part in PARTS if part in options.only.split(",")), options.out)


_SIMULATED = """Simulations take the answers from the labels of a corpus; [simulate.md](../how-to/simulate.md) explains
the measures."""


# --- systematic reviews ----------------------------------------------------------------------------------------------


def reviews(space: Space) -> Page:
    """Compare with ELAS u4 on systematic reviews: the same starts, steps and seeds."""
    conditions = Conditions(RECIPE)
    corpora, recipe = space.corpora(), read_recipe(RECIPE)
    ours = [_simulated_topic(name, corpus, recipe, space.embeddings) for name, corpus in corpora.items()]
    its = [
        SimulatedTopic(name, TOPIC, elas_rows(corpora[name]), case.labels)
        for name, case in zip(corpora, ours, strict=True)
    ]
    how: dict[str, Any] = {"n_jobs": space.jobs, "kept": space.kept("reviews")}
    results = experiment(ours, [space.way], range(space.seeds), **how)
    results += experiment(its, [Setting(PEER, None, make=Elas)], range(space.seeds), **how)
    rows, better = [], 0
    grouped = by_topic(results)
    for name in corpora:
        mine, peer = ([one.figures for one in grouped[way, name, TOPIC]] for way in (OURS, PEER))
        first = grouped[OURS, name, TOPIC][0]
        rows.append({"review": name, "N": first.n_documents, "R": len(first.found)} | _beside(mine, peer))
        better += np.mean([one["loss"] for one in mine]) < np.mean([one["loss"] for one in peer])
    rows.append({"review": "mean", "N": None, "R": None} | _beside(*_mean_over(results, list(corpora))))
    loss = {way: mean.mean for way, mean in means_by_setting(results, "loss").items()}
    ratio = loss[OURS] / loss[PEER]
    seconds = sum(one.seconds for one in results if one.way == OURS)
    published = "; ".join(
        f"{name} {100 * np.mean([one.figures['wss95'] for one in grouped[OURS, name, TOPIC]]):.1f} (published: "
        f"{100 * best:.1f})"
        for name, best in PUBLISHED.items()
        if name in corpora
    )
    text = f"""The comparison has {len(corpora)} systematic reviews and {space.seeds} seeds. textcat's `teach`,
simulated, is
compared with {PEER}, the default of ASReview 3. {PEER} is rebuilt with scikit-learn: TfidfVectorizer of words and
pairs, and LinearSVC (C = .11, squared hinge, class weights of ratio 9.8); the document with the highest score is asked
about next. With each seed, textcat and {PEER} start from one relevant and one irrelevant document, which are the same
for the two. They train after every answer up to 100 answers, then after every 5 up to 500, then after every 10.

N is the number of documents, and R the number of relevant documents. Figures are means over seeds.
Δ is textcat's figure minus that of {PEER}: the mean over seeds, with its 95 % interval (Student's). A lower loss is
better; higher WSS@95 and RRF@10 are better ([simulate.md](../how-to/simulate.md#measures)).

{_SIMULATED}"""
    notes = f"""Mean loss: {ratio:.3f} times that of {PEER}; lower on {better} of {len(corpora)} reviews.

WSS@95 (work saved at 95 % recall, in percent) of {OURS}, compared with the best of seven models of Ferdinands et
al. (2020): {published}.

The simulations of textcat took {seconds:.0f} s of processor time."""
    name, title = "teaching-reviews", "Teaching on systematic reviews"
    if space.embeddings:
        name, title = "teaching-embeddings", "Teaching with embeddings"
    return Page(name, title, conditions.head(), text, rows, notes)


def _simulated_topic(name: str, corpus: Corpus, recipe: Recipe, embeddings: bool = False) -> SimulatedTopic:
    (case,) = simulated_topics(corpus, recipe, [TOPIC], embeddings=embeddings)
    return case


def _mean_over(results: Sequence[Result], names: Sequence[str]) -> list[list[dict[str, float]]]:
    """Return, for each way, the means over reviews by seed."""
    both = []
    for way in (OURS, PEER):
        seeds: dict[int, list[dict[str, float]]] = {}
        for one in results:
            if one.way == way:
                seeds.setdefault(one.seed, []).append(one.figures)
        both.append(
            [{name: float(np.mean([one[name] for one in of_seed])) for name in MEASURES} for of_seed in seeds.values()]
        )
    return both


def _beside(mine: Sequence[Mapping[str, float]], peer: Sequence[Mapping[str, float]]) -> dict[str, str]:
    row = {}
    for name, title in MEASURES.items():
        scale, decimals = (1, 4) if name == "loss" else (100, 1)
        a, b = (np.array([scale * one[name] for one in of_way]) for of_way in (mine, peer))
        difference = mean_of(a - b)
        half = difference.mean - difference.low
        row[f"{title} {OURS}"], row[PEER if name == "loss" else f"{title} {PEER}"] = (
            f"{values.mean():.{decimals}f}" for values in (a, b)
        )
        row[f"Δ {title}"] = f"{difference.mean:+.{decimals}f} ±{half:.{decimals}f}"
    return row


def descriptions(space: Space) -> Page:
    """Compare with AutoTAR on the topics of Reuters-21578, from their descriptions alone."""
    conditions, seeds, kept = Conditions(RECIPE), min(space.seeds, 3), space.kept("descriptions")
    text, rows = teaching_autotar.measured(read_recipe(RECIPE), seeds, space.jobs, kept, "reuters21578")
    title = "Teaching from descriptions alone"
    return Page("teaching-descriptions", title, conditions.head(), f"{text}\n\n{_SIMULATED}", rows)


def speed(space: Space) -> str:
    """Time the simulations of one setting, as `textcat simulate` runs them."""
    recipe = read_recipe(RECIPE)
    began, cpu = time.perf_counter(), time.process_time()
    cases = [_simulated_topic(name, corpus, recipe, space.embeddings) for name, corpus in space.corpora().items()]
    rows_made = time.process_time() - cpu
    results = experiment(cases, [space.way], range(space.seeds), n_jobs=space.jobs, kept=space.kept("reviews"))
    took = time.perf_counter() - began
    seconds = sum(one.seconds for one in results)
    whole = f"take {took:.0f} s from files to results" if space.keep is None else "were timed"
    jobs, milliseconds = joblib.effective_n_jobs(space.jobs), 1000 * seconds / len(results)
    return f"""## Speed of simulations

Simulations of teaching with {len(cases)} reviews, {space.seeds} seeds, one setting and {jobs} jobs {whole}.
Processor time is {rows_made:.1f} s for reading and for making rows, and {seconds:.0f} s for {len(results)} simulations:
{milliseconds:.0f} ms for each.
"""


# --- settings --------------------------------------------------------------------------------------------------------


def grid(choices: Iterable[str]) -> dict[str, list[str]]:
    """Return all combinations of ``name=a,b`` and the like, as lists of settings, by name; so ``strategy=``."""
    parts = [choice.partition("=") for choice in choices]
    settings = itertools.product(*([f"{name}={value}" for value in values.split(",")] for name, _, values in parts))
    return {" ".join(one) or "default": list(one) for one in settings}


def measured(
    settings: Mapping[str, Sequence[str]],
    corpora: Mapping[str, Corpus],
    *,
    measure: str = "loss",
    recipe: str = RECIPE,
    seeds: Iterable[int] = range(20),
    n_jobs: int = -1,
    kept: Path | None = None,
) -> dict[str, dict[str, float]]:
    """Return a measure of settings, by setting and review: the means over seeds.

    A setting is a list such as ``["ranker.C=.2", "features.ngrams=1", "strategy=mixture"]``.
    """
    figures: dict[str, dict[str, float]] = {}
    rows: dict[str, list[SimulatedTopic]] = {}
    for name, changes in settings.items():
        made = read_recipe(recipe).with_settings(change for change in changes if "." in change)
        others = {key: value for key, _, value in (c.partition("=") for c in changes) if key in ("strategy", "steps")}
        of_rows = [c for c in changes if not c.startswith("ranker.") and c.partition("=")[0] not in others]
        way = Setting(name, made.make_ranker())._replace(**others)
        embeddings = bool(way.settings and way.settings.embeddings)
        key = " ".join([*sorted(of_rows), *(["embeddings"] if embeddings else [])])
        if key not in rows:
            rows = {
                key: [_simulated_topic(review, corpus, made, embeddings) for review, corpus in corpora.items()]
            }  # one at a time
        results = experiment(rows[key], [way], seeds, n_jobs=n_jobs, kept=kept)
        figures[name] = {
            review: float(np.mean([one.figures[measure] for one in group]))
            for (_, review, _), group in by_topic(results).items()
        }
    return figures


def choosing(space: Space, choices: Sequence[str]) -> str:
    """Let each review's setting be chosen by the others, and say what loss that gives."""
    kept = space.kept("choose")
    figures = measured(grid(choices), space.corpora(), seeds=range(space.seeds), n_jobs=space.jobs, kept=kept)
    return chosen_page(figures)


def chosen_page(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return two tables: the loss of every setting, and which one each review gets from the others."""
    mean = {name: float(np.mean(list(of_it.values()))) for name, of_it in figures.items()}
    rows = [
        {"setting": name, "mean": f"{mean[name]:.4f}"}
        | {review: f"{loss:.4f}" for review, loss in figures[name].items()}
        for name in sorted(figures, key=mean.__getitem__)
    ]
    chosen = leave_one_out(figures)
    theirs = [{"review": name, "setting": setting, "loss": f"{loss:.4f}"} for name, (setting, loss) in chosen.items()]
    theirs.append({"review": "mean", "setting": "", "loss": f"{np.mean([loss for _, loss in chosen.values()]):.4f}"})
    return f"{markdown_table(rows)}\nChosen for each review by the others:\n\n{markdown_table(theirs)}"


def page(space: Space) -> str:
    """Measure the page, over archives of generated articles."""
    return teaching_page.measured()


PARTS: dict[str, Callable[[Space], Page | str]] = {
    "reviews": reviews,
    "descriptions": descriptions,
    "speed": speed,
    "page": page,
}
