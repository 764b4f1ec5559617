"""Summarise a run, and find topics that are much more or less frequent in the archive than in training."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textcat.runs.progress import RunState
from textcat.runs.results import Counts

if TYPE_CHECKING:
    from textcat.reading import Source
    from textcat.runs.growth import Growth
    from textcat.runs.inputs import InputChange

# minimum factor between rates: thresholds chosen for F1 may give a topic to twice as many documents as have it
_RATIO = 3.0
_P = 0.001  # significance level for all topics together
_LEAST_G = 10.8  # below it, a χ² with one degree of freedom has a probability above .001


class Drift(NamedTuple):
    """A topic that is much more or less frequent in an archive than in training."""

    topic: str
    rate: float  # fraction of the archive's documents that have the topic, by thresholds and rules
    prevalence: float  # fraction of the training documents that have the topic
    g: float  # significance of the difference: `log_likelihood_ratio`


def log_likelihood_ratio(k: int, n: int, other_k: int, other_n: int) -> float:
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
    """The topics of one or several models, with their training counts, to compare an archive with."""

    sizes: dict[str, int]  # the number of training documents of each topic, in the order of the model
    documents: int  # the number of all training documents
    names: dict[str, str]  # names of topics that have one


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
        """Names of the inputs that changed while they were read, so that documents may be missing."""
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
    def drifts(self) -> list[Drift]:
        """Topics whose share of the documents differs from their prevalence in training by a factor of more than three.

        The most significant topic comes first. A topic is listed only if the difference is significant: if archive and
        training were samples of the same population, so large a difference would have a probability below .001, divided
        by the number of topics.
        """
        sizes = self.train_sizes
        return find_drifts(self.counts.topics, self.counts.tagged, sizes, self.trained.documents, len(sizes))


def find_drifts(
    topics: Mapping[str, int], documents: int, train_sizes: Mapping[str, int], train_documents: int, n_topics: int
) -> list[Drift]:
    """Find topics that are much more or less frequent in documents than in training: see `Summary.drifts`.

    Parameters
    ----------
    topics : dict of str to int
        How many of the `documents` have each topic.
    documents : int
    train_sizes : dict of str to int
        How many of the training documents have each of the topics to compare.
    train_documents : int
    n_topics : int
        The number of all topics, by which the level of significance is divided.

    Returns
    -------
    list of Drift
        The most significant one first.
    """
    drifts = []
    for topic, size in train_sizes.items():
        n = topics.get(topic, 0)
        rate, prevalence = n / max(documents, 1), size / train_documents
        if max(rate, prevalence) <= _RATIO * min(rate, prevalence):
            continue
        g = log_likelihood_ratio(n, documents, size, train_documents)
        p = math.erfc(math.sqrt(max(g, 0.0) / 2))  # probability of so large a χ² with one degree of freedom
        if p < _P / n_topics:
            drifts.append(Drift(topic, rate, prevalence, g))
    return sorted(drifts, key=lambda drift: -drift.g)


def may_be_missed(size: int, documents: int, train_documents: int) -> bool:
    """Return whether it can be significant that none of `documents` has a topic that `size` of `train_documents` have.

    G² is then at most 2 · documents · (size / (documents + train_documents - size) + size / train_documents), which
    grows with the size; below 10.8, nothing is significant.
    """
    return 2 * documents * (size / max(documents + train_documents - size, 1) + size / train_documents) >= _LEAST_G
