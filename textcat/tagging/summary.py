"""Summarise a run, and find topics that much more or fewer documents get than in training."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textcat.runs.progress import RunState
from textcat.runs.results import Counts

if TYPE_CHECKING:
    from textcat.reading import Source
    from textcat.runs.growth import Growth
    from textcat.runs.inputs import InputChange

_RATIO = 3.0  # minimum factor between rates
_P = 0.001  # significance level for all topics together
_LEAST_G = 10.8  # below it, a χ² with one degree of freedom has a probability above .001


class Drift(NamedTuple):
    """A topic that much more or fewer documents of an archive get than in training."""

    topic: str
    rate: float  # fraction of the archive's documents that have the topic, by thresholds and rules
    in_training: float  # fraction of the training documents that get it when they are held out: see `Trained.given`
    g: float  # significance of the difference: `log_likelihood_ratio`


def log_likelihood_ratio(k: float, n: float, other_k: float, other_n: float) -> float:
    """Return G² = 2·Σ observed·ln(observed / expected), a test of whether a feature is equally frequent in two samples.

    In the first sample, `k` of `n` documents have the feature; in the other one, `other_k` of `other_n`. The sum is
    over the four numbers of documents with and without the feature in each sample. G² is 0 if a sample is empty. If
    both samples are drawn from the same population, G² has approximately a χ² distribution with one degree of freedom.
    Unlike for Pearson's statistic, the approximation also holds for rare features.

    Source: T. Dunning, Accurate methods for the statistics of surprise and coincidence, Computational Linguistics 19
    (1993).
    """
    if not n or not other_n:
        return 0.0
    share = (k + other_k) / (n + other_n)
    samples = ((k, n), (other_k, other_n))
    table = [cell for k, n in samples for cell in ((k, n * share), (n - k, n * (1 - share)))]
    return 2 * sum(observed * math.log(observed / expected) for observed, expected in table if observed)


class Trained(NamedTuple):
    """For each topic of one or several models, its numbers of training documents, to compare an archive with."""

    sizes: dict[str, int]  # the number of training documents of each topic, in the order of the model
    documents: int  # the number of all training documents
    names: dict[str, str]  # names of topics that have one
    # For each topic, how many training documents get it by the decisions of the run when they are held out, and how
    # many were held out; a topic is missing if that is unknown. See `textcat.tagging.held_out_tags`.
    given: dict[str, tuple[float, float]]


class Summary(NamedTuple):
    """The result of a run: its inputs, the counts of documents, and its time and memory."""

    trained: Trained
    sources: "Sequence[Source]"  # the inputs
    topics: tuple[str, ...]  # the requested topics
    counts: Counts  # counts of all documents in the folder, including those that interrupted runs wrote
    before: RunState  # the state from which this run resumed
    shards: int  # number of shards in the folder
    formats: list[str]  # formats of the inputs that this run read
    seconds: float  # duration of this run
    memory: int  # peak memory of this run's processes in bytes
    changes: "tuple[InputChange, ...]" = ()  # inputs that changed while they were read
    growth: "Growth | None" = None  # changes of the inputs since the previous run; None: they were not compared
    wake: float | None = None  # the earliest time to read a file again, see `Rejection`; None: never
    is_ranking: bool = False  # whether other topics were written than counted: see `OutputSettings.is_ranking`

    def __repr__(self) -> str:
        counts = (f"{n:,} {what.replace('_', ' ')}" for what, n in vars(self.counts).items() if isinstance(n, int))
        return f"<Summary: {', '.join(counts)}>"

    def followed_by(self, later: "Summary") -> "Summary":
        """Merge the summaries of this run and a later run over the same inputs."""
        formats, seconds = sorted({*self.formats, *later.formats}), self.seconds + later.seconds
        growth = later.growth if self.growth is None else self.growth
        return later._replace(before=self.before, formats=formats, seconds=seconds, growth=growth)

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of inputs that changed, other than by growing, while they were read: documents may be missing."""
        return tuple(change.name for change in self.changes if not change.grew)

    @property
    def grown(self) -> tuple[str, ...]:
        """Names of inputs that only grew while they were read, so that no document is missing."""
        return tuple(change.name for change in self.changes if change.grew)

    @property
    def train_sizes(self) -> dict[str, int]:
        """Number of training documents of each requested topic, in the order of the model."""
        wanted = set(self.topics)
        return {topic: size for topic, size in self.trained.sizes.items() if topic in wanted}

    @property
    def given_in_training(self) -> dict[str, tuple[float, float]]:
        """How many held-out training documents get each requested topic, and their number: see `Trained.given`."""
        sizes = self.train_sizes
        return {topic: given for topic, given in self.trained.given.items() if topic in sizes}

    @property
    def drifts(self) -> list[Drift]:
        """Topics whose share of documents is more than three times, or less than a third of, that in training.

        The share in training is that of held-out documents, by the same thresholds: see `Trained.given`. The most
        significant topic comes first. A topic is listed only if the difference is significant: if archive and training
        were samples of the same population, so large a difference would have a probability below .001, divided by the
        number of topics.
        """
        return find_drifts(self.counts.topics, self.counts.tagged, self.given_in_training, len(self.train_sizes))


def find_drifts(
    topics: Mapping[str, int], documents: int, given: Mapping[str, tuple[float, float]], n_topics: int
) -> list[Drift]:
    """Find topics that much more or fewer documents get than in training: see `Summary.drifts`.

    Parameters
    ----------
    topics : dict of str to int
        How many of the `documents` have each topic.
    documents : int
    given : dict of str to (float, float)
        The entries of `Trained.given` of the topics to compare.
    n_topics : int
        The number of all topics, by which the level of significance is divided.

    Returns
    -------
    list of Drift
        The most significant one first.
    """
    drifts = []
    for topic, (n_given, n_held_out) in given.items():
        n = topics.get(topic, 0)
        rate, in_training = n / max(documents, 1), n_given / n_held_out
        if max(rate, in_training) <= _RATIO * min(rate, in_training):
            continue
        g = log_likelihood_ratio(n, documents, n_given, n_held_out)
        p = math.erfc(math.sqrt(max(g, 0.0) / 2))  # probability of so large a χ² with one degree of freedom
        if p < _P / n_topics:
            drifts.append(Drift(topic, rate, in_training, g))
    return sorted(drifts, key=lambda drift: -drift.g)


def may_be_missed(n_given: float, documents: int, n_held_out: float) -> bool:
    """Return whether it can be significant that no document gets a topic that `n_given` of `n_held_out` get.

    With n for the number of `documents`, G² is then at most 2 · n · (n_given / (n + n_held_out - n_given) + n_given /
    n_held_out), which grows with `n_given` and, for the same share of them, with `n_held_out`; below 10.8, nothing is
    significant.
    """
    share = n_given / max(documents + n_held_out - n_given, 1) + n_given / n_held_out
    return 2 * documents * share >= _LEAST_G
