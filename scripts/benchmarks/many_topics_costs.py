"""The cost model of the page on many topics: the seconds of training's steps, from what they count.

Facts are those of one training: documents, topics, counts by name, and seconds by function.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from textcat.evaluation.export import markdown_table

Facts = Mapping[str, Any]
Powers = Mapping[str, tuple[float, float, float]]  # by count: its logarithm at size 1, powers of documents and topics
Rates = Mapping[str, Mapping[str, float]]  # by step: the seconds for each of what is counted

FITTED = ((50_000, 1_000), (150_000, 5_000), (75_000, 25_062))  # documents, topics: what the model is made from
CHECKED = ((300_000, 25_062), (603_485, 5_000), (603_485, 25_062))
PLANNED = (10_000_000, 500_000)
LISTED, HELD_OUT, SAMPLED = 200, 20_000, 2_500  # of the recipe, and of training/shortlist.py
# Steps, with the functions of training/shortlist.py they are, and what their seconds are a sum of.
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "rows": ("rows", ("entries",)),
    "centroids": ("topic_centroids", ("label entries",)),
    "listing": ("list_block", ("postings", "cells")),
    "rows of topics": ("rows_by_topic", ("listed",)),
    "solving": ("train_block", ("entries of pairs", "topics")),
    "weighing": (
        "weigh_evidence",
        ("held-out cells", "held-out pairs"),
    ),  # beside centroids, listing and solving of a sample
    "merging, pruning": ("merge", ("weights", "topics")),
    "saving": ("save", ("kept", "topics")),
}
COUNTED = ("entries", "label entries", "postings", "entries of pairs", "weights", "kept", "in centroids")


def section(fitted: Sequence[Facts], checked: Sequence[Facts], conditions: str) -> str:
    """Return the section of the page: a model of the fitted sizes, its errors on others, and what is planned."""
    powers = _powers(fitted)
    powers_of_all = _powers([*fitted, *checked])
    rates = rates_of_steps(fitted)
    n, m = PLANNED
    return f"""## Cost model

Seconds of the processor, of the thread that runs a step. The model is made from {_written(fitted)}, and checked on
{_written(checked)} (documents × topics: the first documents, and their most frequent topics).

{conditions}

{markdown_table(list(_constants(rates)))}
{markdown_table([row for facts in checked for row in _errors(facts, powers, rates)])}
The counts; the last line is extrapolated from the others to the planned size:

{markdown_table(list(_count_rows([*fitted, *checked], powers_of_all)))}
{markdown_table(list(_growth(powers_of_all)))}
Hours that {n:,} documents × {m:,} topics would take of one such core:

{markdown_table(list(_hours(predicted_seconds(rates, guessed_counts(powers_of_all, n, m)))))}"""


def _constants(rates: Rates) -> Iterator[dict[str, Any]]:
    for step, rate_of in rates.items():
        for name, rate in rate_of.items():
            yield {"step": step, "count": name, "ns for each": f"{1e9 * rate:,.2f}"}


def _errors(facts: Facts, powers: Powers, rates: Rates) -> Iterator[dict[str, Any]]:
    """Yield how far the seconds of each step are from those by counts, and from those by the size alone."""
    by_size = predicted_seconds(rates, guessed_counts(powers, facts["documents"], facts["topics"]))
    by_counts = predicted_seconds(rates, _counts(facts))
    measured = {step: facts["seconds"][name] for step, (name, _) in STEPS.items()}
    for step in (*STEPS, "all"):
        taken, from_counts, from_size = (
            seconds[step] if step in seconds else sum(seconds.values()) for seconds in (measured, by_counts, by_size)
        )
        yield {
            "documents": f"{facts['documents']:,}",
            "topics": f"{facts['topics']:,}",
            "step": step,
            "measured, s": f"{taken:.1f}",
            "from what is counted, s": f"{from_counts:.1f}",
            "error": f"{from_counts / taken - 1:+.0%}",
            "from the size alone, s": f"{from_size:.1f}",
            "its error": f"{from_size / taken - 1:+.0%}",
        }


def _count_rows(all_facts: Sequence[Facts], powers: Powers) -> Iterator[dict[str, Any]]:
    sizes = [(facts["documents"], facts["topics"], _counts(facts)) for facts in all_facts]
    for n, m, counts in [*sizes, (*PLANNED, guessed_counts(powers, *PLANNED))]:
        yield {"documents": f"{n:,}", "topics": f"{m:,}"} | {name: f"{counts[name]:,.0f}" for name in COUNTED}


def _growth(powers: Powers) -> Iterator[dict[str, Any]]:
    for name, (_, a, b) in powers.items():
        yield {"count": name, "grows with documents to the power": f"{a:.2f}", "with topics": f"{b:.2f}"}


def _hours(seconds_of: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for step, seconds in {**seconds_of, "all": sum(seconds_of.values())}.items():
        yield {"step": step, "hours of processor": f"{seconds / 3600:,.2f}"}


def _written(all_facts: Sequence[Facts]) -> str:
    return ", ".join(f"{facts['documents']:,} × {facts['topics']:,}" for facts in all_facts)


def _counts(facts: Facts) -> dict[str, float]:
    return _with_products(facts["counts"], facts["documents"], facts["topics"])


def _with_products(counts: Facts, n: int, m: int) -> dict[str, float]:
    held_out, sampled = min(HELD_OUT, n // 10), min(SAMPLED, m)
    listed = min(LISTED, m)
    of_held_out = {"held-out cells": held_out * m, "held-out pairs": held_out * listed * sampled / m}
    shares = {"held out": held_out / n, "sampled": sampled / m}
    return {**counts, "topics": m, "cells": n * m, "listed": n * listed, **of_held_out, **shares}


def _powers(all_facts: Sequence[Facts]) -> Powers:
    """Return the powers of documents and of topics that counts grow with."""
    sizes = np.log([[np.e, facts["documents"], facts["topics"]] for facts in all_facts])
    counts = {name: np.log([max(facts["counts"][name], 1) for facts in all_facts]) for name in COUNTED}
    return {name: tuple(np.linalg.lstsq(sizes, counts[name], rcond=None)[0].tolist()) for name in COUNTED}


def guessed_counts(powers: Powers, n: int, m: int) -> dict[str, float]:
    """Return what training counts at a size, by the powers that its counts grow with."""
    guesses = {name: float(np.exp(c) * n**a * float(m) ** b) for name, (c, a, b) in powers.items()}
    return _with_products(guesses, n, m)


def rates_of_steps(all_facts: Sequence[Facts]) -> dict[str, dict[str, float]]:
    """Return the seconds for each of what is counted, not negative, by least squares of the relative errors."""
    rates: dict[str, dict[str, float]] = {}
    for step, (function, names) in STEPS.items():
        counts = np.array([[_counts(facts)[name] for name in names] for facts in all_facts], float)
        seconds = np.array([facts["seconds"][function] for facts in all_facts])
        if step == "weighing":
            sampled = np.array([_sampled_seconds(rates, _counts(facts)) for facts in all_facts])
            solved, _ = nnls(counts / seconds[:, None], np.maximum(1 - sampled / seconds, 0))
        else:
            solved, _ = nnls(counts / seconds[:, None], np.ones(len(seconds)))
        rates[step] = dict(zip(names, solved.tolist(), strict=True))
    return rates


def predicted_seconds(rates: Rates, counts: Facts) -> dict[str, float]:
    """Return the seconds of the steps of training, from what it counts."""
    seconds = {step: sum(rate * counts[name] for name, rate in of_step.items()) for step, of_step in rates.items()}
    return {**seconds, "weighing": seconds["weighing"] + _sampled_seconds(rates, counts)}


def _sampled_seconds(rates: Rates, counts: Facts) -> float:
    """Return what weighing takes for centroids, for shortlists of documents held out, and for a sample of topics."""
    parts = {"centroids": 1.0, "listing": counts["held out"], "solving": counts["sampled"]}
    return sum(share * sum(rate * counts[name] for name, rate in rates[step].items()) for step, share in parts.items())
