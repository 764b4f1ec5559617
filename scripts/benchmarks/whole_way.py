"""(b) The raw archive → an evaluated, saved model, as whole processes."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equal_kind
from measuring import ROUNDS, Task, Timing, interleaved, whole_process
from pages import Conditions, Page

from textcat.corpus.documents import Corpus
from textcat.evaluation.evaluation import Evaluation
from textcat.model import storage
from textcat.recipes.recipe import default_recipe

RECIPES = ("default", "paum")
BACKENDS = ("loky", "threading")


@dataclass(frozen=True)
class Way:
    """A command that leaves a model and its evaluation in a folder."""

    command: list[Any]
    folder: Path
    once: bool = False

    def evaluation(self) -> Evaluation:
        """Return what it measured, after it has run."""
        path = self.folder / "evaluation.json"
        if path.exists():
            return Evaluation.from_dict(json.loads(path.read_text()))
        return storage.load(self.folder).evaluation


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the page of whole training runs."""
    conditions = Conditions(" and ".join(RECIPES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = textcats(corpus.name, folder)
        for backend in BACKENDS:
            command = [*_sklearn(corpus.name, folder / backend), backend]
            ways[f"scikit-learn, SGDClassifier ({backend})"] = Way(command, folder / backend)
        for learner in equal_kind.LEARNERS:
            command = [*_sklearn(corpus.name, folder / learner), "loky", learner]
            ways[f"scikit-learn, rows as default's, {learner}, calibrated"] = Way(command, folder / learner, once=True)
        timings, quality = run(ways, rounds)
    rows = [
        {
            "what": name,
            "seconds": timing,
            **{f"time of {recipe} / this": timings[named(recipe)].ratio(timing) for recipe in RECIPES},
            "peak memory": peak(timing),
            **{band.band: f"{band['macro_average_precision']:.3f}" for band in quality[name].bands},
            **f1(quality[name]),
        }
        for name, timing in timings.items()
    ]
    text = f"""The table times whole processes, on {corpus.name}: {len(corpus.train)} training and
{len(corpus.test)} test documents, {len(corpus.topics)} topics. `textcat train {corpus.name}` is compared with
`scripts/benchmarks/sklearn_pipeline.py`, which has textcat's reader and evaluation, and pickles the model. Between
reader and evaluation, the script has one of two pipelines of
scikit-learn:

- The shortest scikit-learn pipeline that one would write: `TfidfVectorizer`,
  `OneVsRestClassifier(SGDClassifier(), n_jobs=2)` under each of joblib's backends, decisions at score 0.
- A scikit-learn pipeline with the rows of textcat's recipe default: words and pairs of words with the recipe's
  `min_df`, weights of zones, BM25 and idf, made with `CountVectorizer` and its stop words. `LinearSVC(C=1)` or
  `SGDClassifier()`, one-vs-rest, is calibrated by `CalibratedClassifierCV(cv={equal_kind.FOLDS}, method="sigmoid")`,
  under loky (n_jobs={equal_kind.JOBS}), which is faster here than threads. Decisions are at the recipe's probability,
  {equal_kind.PROBABILITY}. A topic with fewer than {equal_kind.FOLDS} positives has one fold per positive; a topic
  with a single positive is not calibrated. The topics' descriptions are not used as examples.

The columns ALL, TOP10 (the ten largest topics) and LAST30 (the thirty smallest) are
mean average precision (MAP) on the test documents; F1 is over all topics. Peak memory is that of the largest
process of a run; under loky, the memory of scikit-learn's two workers comes in addition, and is not included.

{ROUNDS.format(rounds)}"""
    title = "From the raw archive to an evaluated, saved model"
    name = "train-reuters" if corpus.name == "reuters21578" else f"train-{corpus.name}"
    return [Page(name, title, conditions.head(), text, rows)]


def recipes_for(corpus: Corpus) -> list[str]:
    """Name the recipe that `textcat train` takes for a corpus where none is named, and the two of every table."""
    return list(dict.fromkeys([default_recipe().for_corpus(corpus)[0].name, *RECIPES]))


def named(recipe: str) -> str:
    """Name the training by a recipe."""
    return f"textcat train, recipe {recipe}"


def textcats(corpus: str, folder: Path, recipes: Iterable[str] = RECIPES) -> dict[str, Way]:
    """Return the training by each recipe."""
    command = [Path(sys.executable).with_name("textcat"), "train", corpus]
    return {
        named(recipe): Way([*command, "--recipe", recipe, "--force", "--out", folder / recipe], folder / recipe)
        for recipe in recipes
    }


def _sklearn(corpus: str, folder: Path) -> list[Any]:
    return [sys.executable, Path(__file__).with_name("sklearn_pipeline.py"), corpus, folder]


def run(ways: Mapping[str, Way], rounds: int) -> tuple[dict[str, Timing], dict[str, Evaluation]]:
    """Run all of them in turn, and return what they took and what they measured."""

    def task(way: Way) -> Task:
        return Task(lambda _: whole_process(way.command), once=way.once)

    timings = interleaved({name: task(way) for name, way in ways.items()}, rounds)
    return timings, {name: way.evaluation() for name, way in ways.items()}


def peak(timing: Timing) -> str:
    """Write the peak memory of a process."""
    return f"{timing.result.peak_bytes / 1e6:.0f} MB"


def f1(evaluation: Evaluation) -> dict[str, str]:
    """Write both averages of F1 over all topics."""
    of_all = evaluation.bands[0]
    return {"micro F1": f"{of_all['micro_f1']:.3f}", "macro F1": f"{of_all['macro_f1']:.3f}"}
