"""(e) Other corpora: whole training runs by several recipes, and training alone against LinearSVC on the same rows."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import titles
import whole_way
from measuring import ROUNDS, Task, interleaved
from pages import Conditions, Page
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from textcat.corpus.cards import card
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.corpus.fetch import locate_corpus
from textcat.evaluation.metrics import average_precisions
from textcat.recipes.recipe import read_recipe
from textcat.training.examples import CountedCorpus

NEWSGROUPS = "20newsgroups"
JOBS = 2
N_TITLES, N_TITLES_QUICK = 100_000, 2_000
PEER = "LinearSVC(C=1), one-vs-rest"


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the pages of other corpora."""
    ways = Conditions("as named; the first row of each corpus has its default recipe")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        others = list(open_others(folder, quick=corpus.name == "newswire"))
        rows = [row for each in others for row in _whole_rows(each, folder, rounds)]
        whole = ways.head()
    learning = Conditions("as named")
    trained = [row for each in (corpus, *others) for row in training_rows(each, rounds)]
    pages = [Page("train-alone", "Training alone", learning.head(), _ALONE.format(ROUNDS.format(rounds)), trained)]
    if rows:
        title = "From other corpora to evaluated, saved models"
        text = _WHOLE.format(_listed(others), ROUNDS.format(rounds))
        pages.insert(0, Page("train-other-corpora", title, whole, text, rows))
    return pages


_WHOLE = f"""The table times `textcat train CORPUS`, as [on Reuters-21578](train-reuters.md). MAP: macro-averaged
precision
of all topics.

{{}}
The titles of {titles.NAME} are a random sample of all titles (seed {titles.SEED}), with the {titles.N_TOPICS} most
frequent subjects of the sample as topics; titles without any of these subjects are documents without a topic.
{titles.TEST_SIZE:.0%} are test documents (`Corpus.split` with seed {titles.SEED}).

{{}}"""

_ALONE = f"""The table times training alone, by textcat and by scikit-learn's LinearSVC. [Other
corpora](train-other-corpora.md) describes the corpora. All topics are trained on the rows of the corpus' default
recipe, including the topics' descriptions; making these rows is not measured. textcat trains the learner of the recipe
in {JOBS} jobs; scikit-learn trains `OneVsRestClassifier(LinearSVC(C=1), n_jobs={JOBS})` in joblib's threads on these
rows in float64, where a description is a negative example of all other topics. No thresholds are chosen.

{{}}"""


def open_others(folder: Path, *, quick: bool) -> Iterator[Corpus]:
    """Open those that are here; for a quick look only a few titles."""
    if not quick and locate_corpus(card(NEWSGROUPS)):
        yield open_corpus(NEWSGROUPS, download=False)
    elif not quick:
        print(f"Corpus {NEWSGROUPS} is not here: measuring without it.", file=sys.stderr)
    if source := titles.located():
        names = dict(titles.read(source.with_name(f"{titles.SUBJECTS}.tsv.xz")))
        path = folder / f"{titles.NAME}.jsonl"
        titles.write(titles.sample(titles.read(source), names, N_TITLES_QUICK if quick else N_TITLES), path)
        yield open_corpus(path)
    else:
        print(f"The titles of {titles.NAME} are not here: measuring without them.", file=sys.stderr)


def _listed(corpora: list[Corpus]) -> str:
    return "".join(
        f"- {corpus.name}: {len(corpus.train)} training documents, {sum(not each.topics for each in corpus.train)} of "
        f"them without a topic, and {len(corpus.test)} test documents; {len(corpus.topics)} topics.\n"
        for corpus in corpora
    )


def _whole_rows(corpus: Corpus, folder: Path, rounds: int) -> list[dict[str, Any]]:
    models = folder / f"models-{corpus.name}"
    models.mkdir()
    recipes = whole_way.recipes_for(corpus)
    timings, quality = whole_way.run(whole_way.textcats(corpus.origin["name_or_path"], models, recipes), rounds)
    least = timings[whole_way.named("paum")]
    return [
        {
            "corpus": corpus.name,
            "what": name,
            "seconds": timing,
            "times paum's": timing.ratio(least),
            "peak memory": whole_way.peak(timing),
            "MAP": f"{quality[name].bands[0]['macro_average_precision']:.3f}",
            **whole_way.f1(quality[name]),
        }
        for name, timing in timings.items()
    ]


def training_rows(corpus: Corpus, rounds: int) -> list[dict[str, Any]]:
    """Train on the rows of the default recipe by textcat and by LinearSVC, and return the rows of the table."""
    name = whole_way.recipes_for(corpus)[0]
    recipe, ours = read_recipe(name), f"textcat, recipe {name}"
    counted = CountedCorpus(corpus, recipe)
    features = counted.fit(recipe.make_features())
    X, Y, left_out = counted.examples(features)
    X_test, Y_test = features.transform(corpus.test), corpus.labels(corpus.test)
    X64 = X.astype(np.float64)

    def peer(_: Any) -> Any:
        with joblib.parallel_config(backend="threading"):
            return OneVsRestClassifier(LinearSVC(C=1), n_jobs=JOBS).fit(X64, Y)

    timings = interleaved(
        {
            ours: Task(lambda _: recipe.make_learner(n_jobs=JOBS).fit(X, Y, left_out=left_out)),
            PEER: Task(peer),
        },
        rounds,
    )
    return [
        {
            "corpus": corpus.name,
            "rows × features": f"{X.shape[0]} × {X.shape[1]}",
            "what": name,
            "seconds": timing,
            "times LinearSVC's": timing.ratio(timings[PEER]),
            "MAP": f"{np.nanmean(average_precisions(Y_test, timing.result.decision_function(X_test))):.3f}",
        }
        for name, timing in timings.items()
    ]
