"""Measure how rankings get worse with time: train on earlier documents, and measure on later ones.

Rankers are trained on four fifths of the earlier half of the dated training documents. They are measured on the other
fifth of that half, which is of the same period, and on five later periods. The final model is trained on all documents;
these measures estimate how fast it ages.
"""

from typing import Any, NamedTuple

import numpy as np

from textcat.evaluation.promises import clopper_pearson
from textcat.reading.dates import day_of
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import HoldOut, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus

_PARTS, _HELD_OUT = 5, 5  # number of later parts; one of this many earlier documents is held out
_FEWEST = 100  # minimum number of documents with a topic in a part


class AgedPart(NamedTuple):
    """The accuracy of rankings in one period: the share of documents that have the topic ranked first for them."""

    days: int  # from the last document trained on to the median document of the part; 0: of the same period
    documents: int
    accuracy: float
    low: float  # 95 % interval, by Clopper and Pearson
    high: float


def measure_aging(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> dict[str, Any] | None:
    """Measure by period how many later documents have the topic that is ranked first for them.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
        The recipe to train by, without a shortlist.
    n_jobs : int, optional

    Returns
    -------
    dict or None
        ``until`` is the last day of the documents trained on; ``parts`` is a list of `AgedPart`, of which the first is
        of the same period. None if, of the dated documents with a topic, fewer than 500 are before the day of the
        middle one, or fewer than 500 on that day and after it.
    """
    labels = counted.labels.tocsr()
    dates = [day_of(document.date) for document in counted.corpus.train]
    dated = np.array([i for i, day in enumerate(dates) if day and labels.indptr[i] < labels.indptr[i + 1]], np.int64)
    dated = np.intersect1d(dated, counted.corpus.groups)  # of documents that repeat each other, only the first
    days = np.array([dates[i] for i in dated], "datetime64[D]")
    order = np.argsort(days, kind="stable")
    dated, days = dated[order], days[order]
    half = int(np.searchsorted(days, days[len(days) // 2])) if len(days) else 0  # documents of one day stay in one part
    if half < _FEWEST * _HELD_OUT or len(dated) - half < _FEWEST * _PARTS:
        return None
    earlier = np.random.default_rng(0).permutation(dated[:half])
    same_time, trained = np.split(earlier, [half // _HELD_OUT])
    parts = [np.sort(same_time), *np.array_split(dated[half:], _PARTS)]
    middles = [days[half - 1], *(part[len(part) // 2] for part in np.array_split(days[half:], _PARTS))]
    held_out = np.sort(np.concatenate(parts))
    scores = scores_of_split(counted, recipe, HoldOut(np.sort(trained), held_out), n_jobs)
    right = dict(zip(held_out.tolist(), is_first_right(labels, held_out, scores).tolist(), strict=True))
    aged = [
        _part(int((middle - days[half - 1]).astype(int)), [right[document] for document in part.tolist()])
        for middle, part in zip(middles, parts, strict=True)
    ]
    return {"measure": "top_1_accuracy", "until": str(days[half - 1]), "parts": [[*part] for part in aged]}


def _part(days: int, right: list[bool]) -> AgedPart:
    low, high = clopper_pearson(sum(right), len(right)).tolist()
    return AgedPart(days, len(right), sum(right) / len(right), low, high)
