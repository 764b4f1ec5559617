"""Measure how rankings get worse with time: train on the earlier documents, and look at later ones.

Rankers are trained on four fifths of the earlier half of the dated training documents, and measured on the last fifth,
which is of the same time, and on five later parts. The final model knows all documents; what is measured is how fast
such a model ages.
"""

from typing import Any, NamedTuple

import numpy as np

from textcat.evaluation.promises import clopper_pearson
from textcat.reading.dates import day_of
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import HoldOut, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus

_PARTS, _HELD_OUT = 5, 5  # later parts; one of so many earlier documents is held out
_FEWEST = 100  # documents with a topic in a part


class AgedPart(NamedTuple):
    """Hold how often the topic ranked first is right, of documents with a topic that are some days older or younger."""

    days: int  # from the last document trained on to the middle one of the part; 0: of the same time
    documents: int
    accuracy: float
    low: float  # the 95 % interval, by Clopper and Pearson
    high: float


def measure_aging(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> dict[str, Any] | None:
    """Measure rankings of later documents than those trained on.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
        The recipe to train by, without a shortlist.
    n_jobs : int, optional

    Returns
    -------
    dict or None
        ``until``, the last day of the documents trained on, and ``parts``, a list of `AgedPart`, the first of the same
        time. None if fewer than about 1,100 documents have a date and a topic, or one day has half of them.
    """
    labels = counted.labels.tocsr()
    dates = [day_of(document.date) if document.date else "" for document in counted.corpus.train]
    dated = np.array([i for i, day in enumerate(dates) if day and labels.indptr[i] < labels.indptr[i + 1]], np.int64)
    days = np.array([dates[i] for i in dated], "datetime64[D]")
    order = np.argsort(days, kind="stable")
    dated, days = dated[order], days[order]
    half = int(np.searchsorted(days, days[len(days) // 2])) if len(days) else 0  # a day is not divided
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
