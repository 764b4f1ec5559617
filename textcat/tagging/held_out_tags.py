"""Estimate how many training documents get each topic by the decisions of a run, if they are held out."""

import math

import numpy as np

from textcat.model.decisions import Decisions
from textcat.model.manifest import Manifest
from textcat.model.stored_decisions import read_decisions
from textcat.tagging.job import Job


def held_out_tag_counts(job: Job) -> dict[str, tuple[float, float]]:
    """Return for each topic how many held-out training documents get it, and their number, summed over models.

    The models are those of `job`. Topics for which this is unknown are missing. House rules are ignored.
    """
    of_models = [read_decisions(of_model.model) for of_model in job.jobs().values()]
    options = job.output.min_probability, job.output.automatic
    counts = [_held_out_counts(decisions.with_options(*options), manifest) for decisions, manifest in of_models]
    n_documents = [manifest.train_documents for _, manifest in of_models]
    given = {}
    for topic in dict.fromkeys(topic for of_model in counts for topic in of_model):
        pairs = [of_model.get(topic, (0, n)) for of_model, n in zip(counts, n_documents, strict=True)]
        n_given, n_held_out = (sum(numbers) for numbers in zip(*pairs, strict=True))
        if not math.isnan(n_given) and n_held_out:
            given[topic] = n_given, n_held_out
    return given


def _held_out_counts(decisions: Decisions, manifest: Manifest) -> dict[str, tuple[float, float]]:
    """Return for each topic of a model how many held-out documents get it (nan: unknown), and their number."""
    n_topics, curves = len(manifest.topics), decisions.calibration
    if decisions.single and (decisions.automatic_only or decisions.above_only):
        n_given, n_held_out = [math.nan] * n_topics, [0.0] * n_topics
    elif decisions.single or decisions.held_out is None or curves is None:
        # About as many documents get a topic as have it. Of held-out documents, only labels are known.
        n_given, n_held_out = [*map(float, manifest.train_sizes)], [float(manifest.train_documents)] * n_topics
    else:
        cuts = decisions.cut_scores(np.empty((0, n_topics)))
        with np.errstate(invalid="ignore"):
            log_odds = np.where(np.isinf(cuts), cuts, cuts * curves.a + curves.b)
        above = decisions.held_out.above(log_odds)
        above[(curves.a == 0) & np.isfinite(cuts)] = np.nan  # all scores have the same log odds
        n_given, n_held_out = above.tolist(), decisions.held_out.documents.tolist()
    return dict(zip(manifest.topics, zip(n_given, n_held_out, strict=True), strict=True))
