"""Estimate time, peak memory and model size of a training, extrapolated from trainings on samples.

The stages of training run on samples of the corpus, on this machine; no cost of a stage or a machine is assumed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from textcat.base.errors import TextcatError
from textcat.base.progress import Advance, Stages
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import MANY_TOPICS
from textcat.recipes.recipe import Recipe
from textcat.training.checks import OPTIONS, TrainingOptions, check_training
from textcat.training.costs import Cost, MeasuredStages, Seconds, cost_of_training, sampled
from textcat.training.examples import CountedCorpus
from textcat.training.memory import available_memory
from textcat.training.row_choice import MOST_DOCUMENTS, choose_rows

_WITH_WORDS, _WITH_CHARACTERS = 48_000, 24_000  # documents of the larger sample, for each kind of rows
# minimum size of the smaller sample: with fewer, the evidence of shortlists is weighed on too little data
_SMALL = 6_000
FEW = 2_000  # a corpus of at most this many documents is used whole
_CHARACTERS = 12_000_000  # samples are smaller if their documents have more characters than this in total
_CHOOSING = 24_000  # number of documents to choose the kind of rows by
# Without a shortlist, a sample is trained with this many topics, and once more with half of them. With 1,000 topics or
# more, weights are sparse, so more topics are trained, on fewer documents.
TOPICS, _OF_MANY = 256, 2 * MANY_TOPICS
_CELLS = 20_000_000  # maximum product of documents and topics of a sample without a shortlist
# On a busy machine, the time of the same work may vary by a factor of two. So costs are assumed to grow with documents
# at least by this share of proportional growth, whatever two measurements say.
_LEAST_GROWTH = 0.5
_WARMING = 100  # documents and topics of two small first trainings, which measure the time to load code and data
# A training is planned before it begins if one matrix of scores takes this share of the memory, or if the texts do:
# training on titles with n-grams of characters takes 200 times the memory of their texts.
_LARGE_SCORES, _LARGE_TEXTS = 0.1, 0.005


@dataclass(frozen=True)
class TrainingPlan:
    """The estimated time, memory and disk space that training by a recipe on a corpus takes.

    Evaluating and saving the model are included.
    """

    corpus: str
    recipe: str
    why: str  # the reason for the choice of the recipe; "": the user named it
    documents: int  # number of training documents
    test_documents: int
    topics: int
    seconds: dict[str, float]  # elapsed seconds of each stage, at the machine's present load
    # processor seconds of all threads, which hardly depend on the load; "read" is everything before the plan
    processor_seconds: dict[str, float]
    peak_memory: int | None  # in bytes; None: the system does not report it
    available_memory: int | None  # available to this process, in bytes
    model_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the peak of memory is at most the available memory; also True if one of them is unknown."""
        return self.peak_memory is None or self.available_memory is None or self.peak_memory <= self.available_memory

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {**asdict(self), "fits": self.fits}


def plan_training(
    corpus: Corpus,
    recipe: Recipe,
    options: TrainingOptions = OPTIONS,
    *,
    why: str = "",
    stages: Stages | None = None,
) -> TrainingPlan:
    """Estimate the time, memory and disk space that training by a recipe on a corpus takes.

    Evaluating and saving the model are included. A model is trained on each of two samples of the training documents,
    with all topics or, if the recipe has no shortlist, with a sample of the topics. The seconds of each stage, the
    memory and the size of the model are extrapolated along the straight line through both measurements.

    Parameters
    ----------
    corpus : Corpus
    recipe : Recipe
        This recipe is used as it is, not its variants for many topics or short texts.
    options : TrainingOptions
    why : str, optional
        The reason for the choice of the recipe, for `TrainingPlan.why`.
    stages : Stages, optional
        Has the time of reading the corpus; draws the progress of the plan.

    Raises
    ------
    TextcatError
        If the recipe cannot be followed.
    """
    # What is kept of support documents depends on the size of the whole corpus, also when samples are trained.
    options = replace(options, keep_support=check_training(corpus, recipe, options))
    stages, available = stages or Stages(), available_memory()
    planning = _Planning(corpus, recipe, options)
    read = dict(stages.seconds)
    before = dict.fromkeys(read, Seconds.now().of_threads / max(len(read), 1))
    with stages.stage("plan", 4) as advance:
        whole = planning.whole(advance)
    used = whole.used_memory
    return TrainingPlan(
        corpus.name,
        recipe.name,
        why,
        len(corpus.train),
        len(corpus.test),
        len(corpus.topics),
        read | {stage: taken.by_clock for stage, taken in whole.seconds.items()},
        before | {stage: taken.of_threads for stage, taken in whole.seconds.items()},
        None if used is None or not whole.memory else int(used + max(whole.memory.values())),
        available,
        int(whole.model_bytes),
    )


@dataclass
class _Planning:
    """Train on samples of a corpus, and extrapolate the measured costs to the whole corpus."""

    corpus: Corpus
    recipe: Recipe
    options: TrainingOptions

    def whole(self, advance: Advance) -> Cost:
        """Return the estimated cost of training on the whole corpus; call `advance` with 1 four times, for progress."""
        corpus, n_topics = self.corpus, len(self.corpus.topics)
        choice_seconds, choice_memory = self._choose_rows()
        advance(1)
        trained = n_topics
        if not self.recipe.topics.shortlist:
            trained = min(n_topics, _OF_MANY if n_topics >= MANY_TOPICS else TOPICS)
        n_small, n_large = self._sample_sizes(trained)
        cold, warm = (self._cost(min(_WARMING, n_small), min(_WARMING, n_topics)) for _ in range(2))
        advance(1)
        small, large = (self._cost(n, trained) for n in (n_small, n_large))
        advance(1)
        whole = _cost_of_all_documents(corpus, small, large)
        if trained < n_topics:
            whole = _cost_of_all_topics(whole, large, self._cost(n_large, trained // 2), trained, n_topics)
        advance(1)
        seconds = {stage: taken.plus(_loading_seconds(cold, warm, stage)) for stage, taken in whole.seconds.items()}
        return whole._replace(seconds=choice_seconds | seconds, memory={**choice_memory, **whole.memory})

    def _cost(self, n: int, n_topics: int) -> Cost:
        sample = sampled(self.corpus, n, n_topics)
        return cost_of_training(sample, self.recipe, self.options)

    def _choose_rows(self) -> tuple[dict[str, Seconds], dict[str, float]]:
        """If the recipe asks for it, choose on a sample whether to use n-grams of characters.

        Return the seconds and the bytes that this choice takes for the whole corpus, by the name of the stage. The
        chosen recipe replaces `recipe`.
        """
        if not self.recipe.topics.chooses_chars:
            return {}, {}
        n = min(len(self.corpus.train), _CHOOSING, _affordable(self.corpus))
        sample, stages = sampled(self.corpus, n, len(self.corpus.topics)), MeasuredStages()
        counted = CountedCorpus(replace(sample, test=[]), self.recipe)
        with stages.stage("choose rows"):
            self.recipe = choose_rows(counted, self.recipe).recipe
        factor = min(len(self.corpus.train), MOST_DOCUMENTS) / n
        seconds = {stage: taken.times(factor) for stage, taken in stages.taken.items()}
        return seconds, {stage: factor * peak for stage, peak in stages.memory.items()}

    def _sample_sizes(self, n_topics: int) -> tuple[int, int]:
        """Return the numbers of documents in the smaller and the larger sample, given the number of topics."""
        n, recipe = len(self.corpus.train), self.recipe
        most = min(_WITH_CHARACTERS if recipe.features.chars else _WITH_WORDS, _affordable(self.corpus))
        if not recipe.topics.shortlist:
            most = min(most, max(_CELLS // n_topics, 1))
        large = n if n <= FEW else min(max(n // 2, FEW), most)
        return max(min(large // 2, max(large // 8, _SMALL)), 1), large


def _affordable(corpus: Corpus) -> int:
    """Return about how many training documents have `_CHARACTERS` characters in total, the maximum size of a sample."""
    return max(int(_CHARACTERS * len(corpus.train) / max(_characters(corpus), 1)), 1)


def _loading_seconds(cold: Cost, warm: Cost, stage: str) -> Seconds:
    """Return the seconds that a stage took longer in the first (`cold`) than in the second of two equal trainings.

    The first training also loads the code and data that later trainings find in memory.
    """
    loading = cold.seconds[stage].since(warm.seconds[stage])
    return Seconds(*(max(taken, 0.0) for taken in loading))


def _cost_of_all_documents(corpus: Corpus, small: Cost, large: Cost) -> Cost:
    """Return the estimated cost of training on all documents, given the costs of training on two samples."""
    n = len(corpus.train)
    sizes = small.documents, large.documents

    def seconds(stage: str, kind: int) -> float:
        taken = small.seconds[stage][kind], large.seconds[stage][kind]
        if stage == "evaluate":
            return extrapolate_line((small.tested, large.tested), taken, len(corpus.test), _LEAST_GROWTH)
        return extrapolate_line(sizes, taken, n, _LEAST_GROWTH)

    return Cost(
        n,
        len(corpus.test),
        {stage: Seconds(seconds(stage, 0), seconds(stage, 1)) for stage in large.seconds},
        small.used_memory,
        {stage: extrapolate_line(sizes, (small.memory[stage], peak), n) for stage, peak in large.memory.items()},
        extrapolate_line(sizes, (small.model_bytes, large.model_bytes), n),
    )


def _cost_of_all_topics(whole: Cost, large: Cost, half: Cost, n_sampled: int, n_topics: int) -> Cost:
    """Return the estimated cost of training all topics on all documents.

    `whole` is the cost for all documents, but only `n_sampled` of the `n_topics` topics. `large` and `half` are costs
    on a sample of the documents: with these `n_sampled` topics, and with half of them. These two tell by which factor
    a cost grows with the number of topics.
    """

    def factor(of_half: float, of_sample: float) -> float:
        return (
            extrapolate_line((n_sampled // 2, n_sampled), (of_half, of_sample), n_topics) / of_sample
            if of_sample
            else 1.0
        )

    def grown(stage: str, taken: Seconds) -> Seconds:
        return taken.times(factor(half.seconds[stage].of_threads, large.seconds[stage].of_threads))

    return whole._replace(
        seconds={stage: grown(stage, taken) for stage, taken in whole.seconds.items()},
        memory={name: factor(half.memory[name], large.memory[name]) * peak for name, peak in whole.memory.items()},
        model_bytes=factor(half.model_bytes, large.model_bytes) * whole.model_bytes,
    )


def extrapolate_line(x: tuple[float, float], y: tuple[float, float], at: float, least: float = 0.0) -> float:
    """Return y at x = `at` on a straight line through the second of two points.

    Its slope is that between the two points, clipped to [`least` · s, s], where s is the slope of the line from the
    origin through the second point. The points have ascending, positive x, and y of 0 or more. ::

        y₂ + (at - x₂) · min(max((y₂ - y₁) / (x₂ - x₁), least · y₂ / x₂), y₂ / x₂)
    """
    (x1, x2), (y1, y2) = x, y
    proportional = y2 / max(x2, 1)
    slope = (y2 - y1) / (x2 - x1) if x2 > x1 else proportional
    return y2 + (at - x2) * min(max(slope, least * proportional), proportional)


# --- what does not fit into memory ------------------------------------------------------------------------------------


def check_memory(corpus: Corpus, recipe: Recipe, options: TrainingOptions = OPTIONS) -> None:
    """Raise TextcatError if training on a corpus needs more memory than is available.

    Planning takes some seconds, so a training is planned only if its number of scores or of characters is large. The
    arguments are those of `plan_training`.
    """
    available = available_memory()
    if available is None:
        return
    scores = 0 if recipe.topics.shortlist else 4 * len(corpus.train) * len(corpus.topics)
    if scores <= _LARGE_SCORES * available and _characters(corpus) <= _LARGE_TEXTS * available:
        return
    plan = plan_training(corpus, recipe, options)
    if not plan.fits:
        raise TextcatError(refusal(plan, recipe))


def _characters(corpus: Corpus) -> float:
    """Return the number of characters of all training documents, estimated from up to 500 of them."""
    some = corpus.sample_train(500)
    length = sum(len(text) for document in some for text in document.zones.values())
    return length * len(corpus.train) / max(len(some), 1)


def refusal(plan: TrainingPlan, recipe: Recipe) -> str:
    """Return the error message for a training that does not fit into memory: the memory it needs, and the remedies."""
    remedies = []
    if plan.topics >= MANY_TOPICS and not recipe.topics.shortlist:
        remedies.append("take a recipe with a shortlist (--recipe many-topics, or --set topics.shortlist=200)")
    if recipe.features.chars or recipe.topics.chooses_chars:
        remedies.append("leave out n-grams of characters (--set features.chars=0)")
    remedies.append("raise features.min_df" if recipe.topics.shortlist else "keep rows on disk (--rows-dir)")
    minutes = sum(plan.seconds.values()) / 60
    taken = f"{minutes / 60:.1f} hours" if minutes >= 60 else f"{minutes:.0f} minutes"
    return (
        f"Recipe {plan.recipe} would take some {(plan.peak_memory or 0) / 1e9:.1f} GB of memory and {taken} for "
        f"{plan.documents:,} documents of {plan.topics:,} topics, and {(plan.available_memory or 0) / 1e9:.1f} GB are "
        f"available: {', '.join(remedies)}, or train on fewer documents."
    )
