"""Compare the recipes of a search space: recipes in which some parameters take several values.

All combinations are tried, or a sample of them. An interrupted search can be resumed.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from textcat import __version__
from textcat.base.errors import TextcatError, install_hint
from textcat.base.journal import KeptResults
from textcat.base.progress import Advance, Stages
from textcat.base.records import check_entries
from textcat.base.settings import format_value, read_toml
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import choose_bands
from textcat.evaluation.evaluation import Evaluation
from textcat.features.tokens import Tokens
from textcat.model.measure import measure_at_k, score_row_blocks
from textcat.recipes.recipe import RankerSettings, Recipe
from textcat.training.checks import warn_of_repeats
from textcat.training.cross_validation import (
    MAP,
    MEAN_SUPPORT,
    RARE,
    HoldOut,
    Trial,
    feature_key,
    hold_out_sample,
    measure_by_folds,
    nanmean,
)
from textcat.training.examples import CountedCorpus
from textcat.training.steps import train_without

_FORMAT = 3  # version of stored trials, part of their keys: a new version ignores older trials
SAMPLERS = ("grid", "random", "tpe")
_SECTIONS = ("tokens", "features", "topics", "learner")
_N_FOLDS = 5  # by default
_BATCH = 12  # number of recipes that TPE suggests in a batch
_MEASURES = ("ndcg@10", "precision@1", "recall@10", "psp@5")  # for recipes with a shortlist
MOST_TRAINED = 100_000  # number of documents to train each recipe with a shortlist on

# The grid of the study of margins: all fixed pairs, and all adapted pairs.
_FIXED = itertools.product((-1.0, -0.5, -0.1, 0.5, 1.0), (1.0, 5.0, 10.0, 20.0, 50.0, 100.0))
_ADAPTED = itertools.product(
    (-1.0, -0.5, -0.1), ("prevalence",), (-50.0, -20.0, -10.0, -5.0, 5.0), (50.0, 100.0, 200.0, 400.0)
)
_MARGINS: list[dict[str, Any]] = [
    dict(zip(("tau_neg", "tau_pos", "kappa", "scale"), values, strict=False)) for values in (*_FIXED, *_ADAPTED)
]


@dataclass(frozen=True)
class ParameterRange:
    """A range of numbers from `low` to `high`; whole numbers only if both bounds are whole.

    Values are drawn uniformly or, if `log` is set, so that their logarithms are uniform.
    """

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether the range has whole numbers only."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def draw(self, random: np.random.Generator) -> float:
        """Return a value of the range, drawn at random."""
        if self.log:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
            return round(value) if self.whole else value
        whole = int(self.low), int(self.high) + 1
        return int(random.integers(*whole)) if self.whole else float(random.uniform(self.low, self.high))


@dataclass(frozen=True)
class _Space:
    """The parameters of a recipe to vary, and the values of each: a list, or a range of numbers.

    A parameter is given by its section of the recipe and its name.
    """

    varied: Mapping[tuple[str, str], Sequence[Any] | ParameterRange]

    def recipe(self, start: Recipe, values: Sequence[Any]) -> Recipe:
        """Return a copy of `start` with a new value for each parameter that varies, in the order of `varied`."""
        settings: dict[str, dict[str, Any]] = {}
        for (section, key), value in zip(self.varied, values, strict=True):
            settings.setdefault(section, {})[key] = value
        return start.with_values(settings)

    def grid(self, start: Recipe) -> list[Recipe]:
        """Return copies of `start` with every combination of values; raise TextcatError if a parameter has a range."""
        for (section, key), values in self.varied.items():
            if isinstance(values, ParameterRange):
                raise TextcatError(
                    f"{key} in [{section}] of the space is a range, which has no end of values: "
                    "list the values to try, or choose the sampler random or tpe."
                )
        return [self.recipe(start, values) for values in itertools.product(*self.varied.values())]  # type: ignore[arg-type]

    def sample(self, start: Recipe, n: int, seed: int) -> list[Recipe]:
        """Return n copies of `start` with values drawn at random.

        They are sorted, so that recipes with the same features follow each other.
        """
        random = np.random.default_rng(seed)

        def draw(values: Sequence[Any] | ParameterRange) -> Any:
            if isinstance(values, ParameterRange):
                return values.draw(random)
            return values[int(random.integers(len(values)))]

        return sorted((self.recipe(start, list(map(draw, self.varied.values()))) for _ in range(n)), key=feature_key)

    def suggested(self, start: Recipe, trial: Any) -> Recipe:
        """Return a copy of `start` with the values that a trial of optuna suggests."""

        def suggest(name: str, values: Sequence[Any] | ParameterRange) -> Any:
            # pass positions of choices, because optuna takes no lists or tables
            if not isinstance(values, ParameterRange):
                return values[trial.suggest_int(name, 0, len(values) - 1)]
            draw = trial.suggest_int if values.whole else trial.suggest_float
            return draw(name, values.low, values.high, log=values.log)

        return self.recipe(start, [suggest(".".join(name), values) for name, values in self.varied.items()])


def read_space(path: Path) -> _Space:
    """Read from a TOML file which parameters of a recipe vary, and their values.

    The file has sections as a recipe has. Each parameter has a list of values or ``{ low = …, high = … }``. Raise
    TextcatError for other entries.
    """
    entries = read_toml(path, "space")
    check_entries(entries, dict.fromkeys(_SECTIONS, dict), f"in the space {path}")
    varied: dict[tuple[str, str], Sequence[Any] | ParameterRange] = {}
    for section, parameters in entries.items():
        varied |= {(section, key): _values(path, section, key, values) for key, values in parameters.items()}
    if not varied:
        raise TextcatError(f"The space {path} is empty: list values of a parameter in one of {', '.join(_SECTIONS)}.")
    return _Space(varied)


def _values(path: Path, section: str, key: str, values: Any) -> Sequence[Any] | ParameterRange:
    if isinstance(values, list) and values:
        return values
    if isinstance(values, dict) and {"low", "high"} <= set(values) <= {"low", "high", "log"}:
        low, high, log = values["low"], values["high"], values.get("log", False)
        numbers = all(type(value) in (int, float) for value in (low, high))
        if numbers and low < high and (low > 0 or not log):
            return ParameterRange(low, high, log)
    raise TextcatError(
        f"The space {path}: {key} in [{section}] must be a list of values or a range such as "
        f"{{ low = 1, high = 100, log = true }}, not {values!r}."
    )


@dataclass(frozen=True)
class _Study:
    """State shared by all trials: corpus, splits, measuring function, and earlier results."""

    corpus: Corpus
    checksum: str  # of all that trials use of the corpus
    kept: KeptResults
    advance: Callable[[int], None]
    split: dict[str, int]  # n_folds, n_repeats and seed; only the seed for a single hold-out sample
    measure: Callable[..., Iterator[Trial]]
    steps: int  # units of progress per trial
    n_jobs: int | None

    def trials(self, recipes: Iterable[Recipe]) -> Iterator[Trial]:
        """Yield a trial of each recipe: first those measured by an earlier run, then new ones.

        Equal recipes are measured once.
        """
        new: dict[str, list[Recipe]] = {}
        for recipe in recipes:
            key = self._key(recipe)
            figures = self.kept.get(key)
            if figures or key in new:
                self.advance(self.steps)
            if figures:
                yield Trial.from_dict(recipe, figures)
            else:
                new.setdefault(key, []).append(recipe)
        different = [alike[0] for alike in new.values()]
        measured = self.measure(self.corpus, different, **self.split, n_jobs=self.n_jobs, advance=self.advance)
        for trial, (key, alike) in zip(measured, new.items(), strict=True):
            self.kept[key] = trial.as_dict()
            yield from (replace(trial, recipe=recipe) for recipe in alike)

    def suggested(self, space: _Space, start: Recipe, n: int) -> Iterator[Trial]:
        """Yield n trials of recipes that optuna's TPE sampler suggests.

        Each recipe is `start` with the parameters of `space` replaced by suggested values. Recipes are suggested and
        measured in batches; the sampler uses the trials of earlier batches.
        """
        try:
            import optuna
        except ImportError as error:
            raise TextcatError(f"The sampler tpe needs optuna: {install_hint('tune')}, or choose random.") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.split["seed"])
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for first in range(0, n, _BATCH):
            asked = [study.ask() for _ in range(min(_BATCH, n - first))]
            recipes = [space.suggested(start, question) for question in asked]
            asked_for = {id(recipe): question for recipe, question in zip(recipes, asked, strict=True)}
            for trial in self.trials(sorted(recipes, key=feature_key)):
                study.tell(asked_for[id(trial.recipe)], trial.goal)
                yield trial

    def _key(self, recipe: Recipe) -> str:
        data = {"format": _FORMAT, "corpus": self.checksum, "version": __version__}
        settings = {name: recipe.settings(name) for name in _SECTIONS}
        text = json.dumps([{**data, **self.split}, settings], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def run_trials(
    corpus: Corpus,
    start: Recipe,
    space_file: Path | None,
    sampler: str,
    n_trials: int,
    folder: Path | None,
    stages: Stages,
    *,
    n_folds: int | None = None,
    n_repeats: int | None = None,
    seed: int,
    n_jobs: int | None,
) -> list[Trial]:
    """Measure recipes of a search space, and return their trials, the best first.

    A trial is a recipe with its measured quality. Recipes are measured by cross-validation (`measure_by_folds`) or, if
    they score each document only for its nearest topics (a shortlist), on held-out documents (`measure_held_out`).

    Parameters
    ----------
    corpus : Corpus
        The corpus; only its training documents are used.
    start : Recipe
        The base recipe: parameters that do not vary keep its values.
    space_file : Path or None
        A file that names the parameters that vary, and their values. None: the recipes are those of `margin_settings`.
    sampler : "grid", "random" or "tpe"
        How recipes are drawn from the space: all combinations, at random, or by optuna's TPE sampler. Without a
        `space_file`, it must be "grid".
    n_trials : int
        Number of recipes that "random" and "tpe" draw.
    folder : Path or None
        Keep trials in the file ``trials.jsonl`` of this folder, and do not repeat those that are in it.
    stages : Stages
        Times the work, and draws its progress bar.
    n_folds, n_repeats : int, optional
        Folds and repetitions of cross-validation; not allowed with a shortlist.
    seed : int
        Seed of the samplers "random" and "tpe", and of splitting the corpus.
    n_jobs : int or None
        Number of parallel jobs.
    """
    if sampler not in SAMPLERS:
        raise TextcatError(f"No sampler {sampler!r}; choose one of {', '.join(SAMPLERS)}.")
    if corpus.unjudged(corpus.train) is not None:
        raise TextcatError(
            f"Corpus {corpus.name} has documents that were judged for some topics only (their field 'labelled_for'), "
            "and recipes are compared on documents that were judged for all: leave the field out, or such documents."
        )
    if folder is not None and folder.exists() and not folder.is_dir():
        raise TextcatError(f"{folder} is a file: name a folder for the results.")
    space = None if space_file is None else read_space(space_file)
    if space is None and sampler != "grid":
        raise TextcatError(f"The sampler {sampler} draws from a space: name its file with --space.")
    listed = _have_shortlists(start, space)
    if listed and (n_folds or n_repeats):
        raise TextcatError(
            "Recipes with a shortlist are measured once on documents that are held out, not by cross-validation: "
            "leave --folds and --repeats out."
        )
    recipes = []
    if listed and space is None:
        raise TextcatError(
            f"Recipe {start.name} has a shortlist, and the margins of the study are for recipes without one: "
            "name a space with --space."
        )
    if space is None:
        recipes = margin_settings(start)
    elif sampler != "tpe":
        recipes = space.grid(start) if sampler == "grid" else space.sample(start, n_trials, seed)
    for recipe in recipes:  # check the settings before any work
        recipe.check()
    warn_of_repeats(corpus, measures_each=True)
    kept = KeptResults(None if folder is None else folder / "trials.jsonl")
    split = {"n_folds": n_folds or _N_FOLDS, "n_repeats": n_repeats or 1}
    steps = len(corpus.topics) if listed else math.prod(split.values())
    measure: Any = measure_held_out if listed else measure_by_folds
    name = "held-out sample" if listed else "cross-validate"
    with stages.stage(name, (len(recipes) or n_trials) * steps) as advance:
        checksum = _checksum(sample_corpus(corpus, seed)[0] if listed else corpus)
        split = {**({} if listed else split), "seed": seed}
        trying = _Study(corpus, checksum, kept, advance, split, measure, steps, n_jobs)
        trials = trying.suggested(space, start, n_trials) if space and sampler == "tpe" else trying.trials(recipes)
        return sorted(trials, key=lambda trial: -trial.goal)


def _checksum(corpus: Corpus) -> str:
    """Return a checksum of the training documents' texts and topics, and of the topics' names and descriptions."""
    digest = hashlib.sha256(json.dumps([corpus.topics, corpus.names, corpus.descriptions], sort_keys=True).encode())
    for document in corpus.train:
        digest.update(json.dumps([document.zones, document.topics]).encode())
    return digest.hexdigest()


def margin_settings(recipe: Recipe) -> list[Recipe]:
    """Return copies of a recipe with the margin settings that docs/background/tau-study.md compares.

    Raise TextcatError if the recipe's learner is not PAUM.
    """
    name = recipe.learner["name"]
    if name != "paum":
        raise TextcatError(f"Recipe {recipe.name} trains {name}; only paum has margins to compare.")
    return [recipe.changed(**margins) for margins in _MARGINS]


def best_trial(trials: Sequence[Trial], tolerance: float = 0.0005) -> Trial:
    """Return the trial with the fewest support documents, among those that rank as well as a reference trial.

    A trial ranks as well as the reference if the measure that tuning maximises (see `Trial.judged_by`) is at most
    `tolerance` lower, on each band (set of topics) compared. The reference is the trial of PAUM(1, 50), the setting of
    Li et al. (2002), if this setting was cross-validated; a trial must then rank as well in the bands ALL, TOP10 and
    RARE. Otherwise, the reference is the trial of the highest `goal`. LAST30 is not compared, because it changes far
    more between splits than between settings.
    """
    paper = next(filter(is_yardstick, trials), None)
    yardstick = paper or max(trials, key=lambda trial: trial.goal)
    measure, judged_by = yardstick.judged_by
    bands = ("ALL", "TOP10", RARE) if paper else (judged_by,)
    least = {band: yardstick.measures[measure][band] - tolerance for band in bands}
    # A band without topics has the value nan, which must not exclude a setting.
    as_good = [trial for trial in trials if not any(trial.measures[measure][band] < least[band] for band in bands)]
    return min(as_good, key=lambda trial: trial.measures[MEAN_SUPPORT]["ALL"])


def is_yardstick(trial: Trial) -> bool:
    """Return whether a trial is the reference of `best_trial`: margins of Li et al. (2002), cross-validated."""
    learner = trial.recipe.learner
    has_margins = (learner.get("tau_neg"), learner.get("tau_pos")) == (1.0, 50.0)
    return MAP in trial.measures and learner["name"] == "paum" and has_margins


def _have_shortlists(start: Recipe, space: _Space | None) -> bool:
    """Return whether the recipes to try have a shortlist.

    Raise TextcatError if only some of the recipes have one.
    """
    values = space.varied.get(("topics", "shortlist")) if space else None
    if values is None:
        return start.topics.shortlist > 0
    ends = (int(values.low), int(values.high)) if isinstance(values, ParameterRange) else values
    have = {start.with_values({"topics": {"shortlist": value}}).topics.shortlist > 0 for value in ends}
    if len(have) == 2:
        raise TextcatError(
            "The space has recipes with a shortlist and, where shortlist in [topics] is 0, without one, whose figures "
            "do not compare: leave 0 out, or list nothing else."
        )
    return have.pop()


# --- recipes with a shortlist: each is trained on a part of the training documents, and judged by others --------------


def measure_held_out(
    corpus: Corpus,
    recipes: Iterable[Recipe],
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    advance: Advance = lambda count: None,
) -> Iterator[Trial]:
    """Train by each recipe on a part of the training documents, and measure the result on a held-out sample.

    For recipes with a shortlist, which score only the topics nearest to a document.

    A tenth of the documents, at most 5,000, are drawn by the seed to measure on, and at most 100,000 of the others to
    train on, so that time and memory stop growing with the corpus. All other documents are ignored. Topics without a
    training document in the sample count, too, and can only be found by their descriptions. The measures at k of
    `evaluate_at_k` are used, even if there are few topics.
    """
    sample, part = sample_corpus(corpus, seed)
    if not sample.labels([sample.train[i] for i in part.held_out]).nnz:
        raise TextcatError(
            f"None of the {len(part.held_out):,} training documents of corpus {corpus.name} that are held out has a "
            "topic: draw others with --seed, or give it more documents that have one."
        )
    tokens: dict[str, Tokens] = {}  # one cache serves all recipes with the same tokenization
    counts: CountedCorpus | None = None
    for recipe in recipes:
        if counts is None or not counts.serves(recipe):
            key = json.dumps(recipe.settings("tokens"), sort_keys=True)
            tokens[key] = tokens.get(key) or recipe.make_tokens()
            counts = CountedCorpus(sample, recipe, tokens[key])
        yield _trial(counts, recipe, part, n_jobs, advance)


def sample_corpus(corpus: Corpus, seed: int) -> tuple[Corpus, HoldOut]:
    """Draw documents to train on and documents to measure on; return a corpus of both, and their positions in it."""
    part = hold_out_sample(corpus, seed, MOST_TRAINED)
    chosen = np.sort(np.concatenate(part))
    sample = replace(corpus, train=[corpus.train[i] for i in chosen.tolist()], test=[], unused=[])
    return sample, HoldOut(*(np.searchsorted(chosen, positions) for positions in part))


def _trial(counts: CountedCorpus, recipe: Recipe, part: HoldOut, n_jobs: int | None, advance: Advance) -> Trial:
    tagger, rows = train_without(counts, recipe, part, n_jobs=n_jobs, advance=advance)
    measured = measure_at_k(tagger, score_row_blocks(tagger, rows), counts.labels[part.held_out])
    support = np.asarray(tagger.facts.per_topic["support"], float)
    bands = choose_bands(tagger.topics, tagger.facts.train_sizes, [row.band for row in measured.bands])
    mean_support = {band.name: nanmean(support[list(band.topics)]) for band in bands}
    on = f"{len(part.held_out):,} training documents held out, trained on {len(part.trained):,} others"
    return Trial(recipe, {**_figures(measured), MEAN_SUPPORT: mean_support}, on)


def _figures(measured: Evaluation) -> dict[str, dict[str, float]]:
    """Return the values of measures, such as ``ndcg@10``, by measure and by band (set of topics), such as ALL.

    A value is nan if no document has a topic of the band.
    """
    return {
        name: {row.band: math.nan if (value := row[name]) is None else value for row in measured.bands}
        for name in _MEASURES
    }


def to_toml(recipe: Recipe) -> str:
    """Return a recipe as the text of a TOML file, which `read_recipe` reads.

    A section [ranker] in which all settings have their defaults is left out.
    """
    lines = [f"title = {format_value(recipe.title)}"]
    for section in (*_SECTIONS, *(["ranker"] if recipe.ranker != RankerSettings() else []), "tags"):
        # TOML has no null.
        settings = {key: value for key, value in recipe.settings(section).items() if value is not None}
        lines += ["", f"[{section}]", *(f"{key} = {format_value(value)}" for key, value in settings.items())]
    return "\n".join(lines) + "\n"
