"""A space of recipes → those to try, all of a grid or some drawn from it; what has been tried is kept in a journal."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from textcat import __version__
from textcat.documents import Corpus
from textcat.errors import TextcatError, install_hint
from textcat.files import KeptResults, format_value, read_toml
from textcat.progress import Stages
from textcat.recipe import Recipe
from textcat.training.selection import EXPECTED, Trial, cross_validate, margin_settings

SAMPLERS = ("grid", "random", "tpe")
_SECTIONS = ("tokens", "features", "topics", "learner")
_BATCH = 12  # recipes that TPE suggests before it is told how good they were


@dataclass(frozen=True)
class Range:
    """The values of a parameter between two numbers: whole ones if both are; even on a logarithmic scale if asked."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def draw(self, random: np.random.Generator) -> float:
        """Draw a value."""
        if self.whole and not self.log:
            return int(random.integers(int(self.low), int(self.high) + 1))
        if self.log:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = random.uniform(self.low, self.high)
        return round(value) if self.whole else float(value)


@dataclass(frozen=True)
class Space:
    """What may vary: per section of a recipe and parameter, a list of choices or a range."""

    varied: Mapping[tuple[str, str], Sequence[Any] | Range]

    @property
    def size(self) -> float:
        """How many recipes the space holds."""
        return math.prod(math.inf if isinstance(values, Range) else len(values) for values in self.varied.values())

    def recipe(self, start: Recipe, values: Sequence[Any]) -> Recipe:
        """Return a recipe with a value for each parameter that varies."""
        sections: dict[str, Any] = {name: dict(getattr(start, name)) for name in _SECTIONS}
        for (section, key), value in zip(self.varied, values, strict=True):
            sections[section][key] = value
        return replace(start, **sections)

    def grid(self, start: Recipe) -> list[Recipe]:
        """Return all recipes of the space; those with the same features follow each other."""
        for (section, key), values in self.varied.items():
            if isinstance(values, Range):
                raise TextcatError(
                    f"{key} in [{section}] of the space is a range, which has no end of values: "
                    "list the values to try, or choose the sampler random or tpe."
                )
        return [self.recipe(start, values) for values in itertools.product(*self.varied.values())]  # type: ignore[arg-type]

    def sample(self, start: Recipe, n: int, seed: int) -> list[Recipe]:
        """Draw recipes, those with the same features next to each other."""
        random = np.random.default_rng(seed)
        drawn = [
            self.recipe(
                start,
                [
                    values.draw(random) if isinstance(values, Range) else values[int(random.integers(len(values)))]
                    for values in self.varied.values()
                ],
            )
            for _ in range(n)
        ]
        return _by_features(drawn)


def read_space(path: Path) -> Space:
    """Read a space from a TOML file: sections as in a recipe, whose values are lists or ``{ low = …, high = … }``.

    Raises
    ------
    TextcatError
        If there is no such file, or it is not one of a space.
    """
    entries = read_toml(path, "space")
    varied: dict[tuple[str, str], Sequence[Any] | Range] = {}
    for section, parameters in entries.items():
        if section not in _SECTIONS or not isinstance(parameters, dict):
            raise TextcatError(
                f"The space {path} has an unknown entry {section!r}. Known entries: {', '.join(_SECTIONS)}."
            )
        for key, values in parameters.items():
            varied[section, key] = _values(path, section, key, values)
    if not varied:
        raise TextcatError(f"The space {path} is empty: list values of a parameter in one of {', '.join(_SECTIONS)}.")
    return Space(varied)


def _values(path: Path, section: str, key: str, values: Any) -> Sequence[Any] | Range:
    if isinstance(values, list) and values:
        return values
    if isinstance(values, dict) and {"low", "high"} <= set(values) <= {"low", "high", "log"}:
        low, high, log = values["low"], values["high"], values.get("log", False)
        numbers = all(type(value) in (int, float) for value in (low, high))
        if numbers and low < high and (low > 0 or not log):
            return Range(low, high, log)
    raise TextcatError(
        f"The space {path}: {key} in [{section}] must be a list of values or a range such as "
        f"{{ low = 1, high = 100, log = true }}, not {values!r}."
    )


class Journal:
    """The trials of a study in a file, a JSON object a line, so that one that was broken off goes on where it was.

    Parameters
    ----------
    folder : Path, optional
        Where the file ``trials.jsonl`` lies; None: keep nothing.
    study : mapping
        What the figures hang on besides the recipe: corpus, folds, seed. Trials of another study are passed over.
    """

    def __init__(self, folder: Path | None, study: Mapping[str, Any]):
        self._kept = KeptResults(None if folder is None else folder / "trials.jsonl")
        self._study = dict(study)

    def get(self, recipe: Recipe) -> Trial | None:
        """Return a recipe's trial, if it is known."""
        entry = self._kept.get(self.key(recipe))
        return None if entry is None else Trial(recipe, entry["macro_average_precision"], entry["average_sparsity"])

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        figures = {key: value for key, value in asdict(trial).items() if key != "recipe"}
        self._kept.add(self.key(trial.recipe), {"recipe": trial.recipe.as_dict(), **figures})

    def key(self, recipe: Recipe) -> str:
        """Return what tells recipes of this study apart: their settings, whatever their names."""
        settings = {name: getattr(recipe, name) for name in _SECTIONS}
        text = json.dumps([self._study, settings], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def study(
    corpus: Corpus,
    start: Recipe,
    space_file: Path | None,
    sampler: str,
    n_trials: int,
    folder: Path | None,
    stages: Stages,
    *,
    n_folds: int,
    n_repeats: int,
    seed: int,
    n_jobs: int | None,
) -> list[Trial]:
    """Try recipes of a space, and return their trials, the best EXPECTED first.

    Parameters
    ----------
    corpus : Corpus
    start : Recipe
        What the space does not vary.
    space_file : Path, optional
        None: the margins of `margin_settings`.
    sampler : str
        "grid", "random" or "tpe".
    n_trials : int
        For "random" and "tpe".
    folder : Path, optional
        Where the journal is kept.
    stages : Stages
    n_folds, n_repeats, seed, n_jobs
        As for `cross_validate`; the seed is that of the sampler, too.

    Raises
    ------
    TextcatError
        If the space or the sampler is none, or a recipe cannot be followed.
    """
    if sampler not in SAMPLERS:
        raise TextcatError(f"No sampler {sampler!r}; choose one of {', '.join(SAMPLERS)}.")
    space = None if space_file is None else read_space(space_file)
    if space is None and sampler != "grid":
        raise TextcatError(f"The sampler {sampler} draws from a space: name its file with --space.")
    split = {"n_folds": n_folds, "n_repeats": n_repeats, "seed": seed}
    journal = Journal(folder, {"corpus": corpus.name, "documents": len(corpus.train), "version": __version__, **split})
    options: dict[str, Any] = {**split, "n_jobs": n_jobs}
    if space is not None and sampler == "tpe":
        with stages.stage("cross-validate", n_trials * n_folds * n_repeats) as advance:
            trials = list(try_suggested(corpus, space, start, n_trials, journal, advance, **options))
    else:
        if space is None:
            recipes = margin_settings(start)
        else:
            recipes = space.grid(start) if sampler == "grid" else space.sample(start, n_trials, seed)
        for recipe in recipes:  # a setting that cannot be followed is told before hours have been spent
            recipe.make_features()
            recipe.make_learner()
        with stages.stage("cross-validate", len(recipes) * n_folds * n_repeats) as advance:
            trials = list(try_all(corpus, recipes, journal, advance, **options))
    return sorted(trials, key=lambda trial: -trial.macro_average_precision[EXPECTED])


def try_all(
    corpus: Corpus,
    recipes: Sequence[Recipe],
    journal: Journal,
    advance: Callable[[int], None] = lambda count: None,
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    **options: Any,
) -> Iterator[Trial]:
    """Yield the trial of each recipe, from the journal where it is known, else by cross-validation.

    Recipes that are the same are tried once. `advance` is called with the number of (recipe, fold) that are done;
    further options are those of `cross_validate`.
    """
    fresh: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        trial, key = journal.get(recipe), journal.key(recipe)
        if trial or key in fresh:
            advance(n_folds * n_repeats)
        if trial:
            yield trial
        else:
            fresh.setdefault(key, []).append(recipe)
    first_ones = [alike[0] for alike in fresh.values()]
    settings = {"n_folds": n_folds, "n_repeats": n_repeats, **options}
    measured = cross_validate(corpus, first_ones, advance=advance, **settings)
    for trial, alike in zip(measured, fresh.values(), strict=True):
        journal.add(trial)
        yield from (replace(trial, recipe=recipe) for recipe in alike)


def try_suggested(
    corpus: Corpus,
    space: Space,
    start: Recipe,
    n: int,
    journal: Journal,
    advance: Callable[[int], None] = lambda count: None,
    *,
    seed: int = 0,
    **options: Any,
) -> Iterator[Trial]:
    """Yield n trials of recipes that optuna's TPE sampler suggests, batch by batch, from what the earlier ones gave.

    Raises
    ------
    TextcatError
        If optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise TextcatError(f"The sampler tpe needs optuna: {install_hint('tune')}, or choose random.") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for first in range(0, n, _BATCH):
        asked = [study.ask() for _ in range(min(_BATCH, n - first))]
        recipes = [space.recipe(start, [_suggested(trial, *one) for one in space.varied.items()]) for trial in asked]
        number_of = {id(recipe): trial for recipe, trial in zip(recipes, asked, strict=True)}
        for trial in try_all(corpus, _by_features(recipes), journal, advance, seed=seed, **options):
            study.tell(number_of[id(trial.recipe)], trial.macro_average_precision[EXPECTED])
            yield trial


def _suggested(trial: Any, parameter: tuple[str, str], values: Sequence[Any] | Range) -> Any:
    name = ".".join(parameter)
    if not isinstance(values, Range):  # by number: optuna takes no lists and tables as choices
        return values[trial.suggest_int(name, 0, len(values) - 1)]
    if values.whole:
        return trial.suggest_int(name, int(values.low), int(values.high), log=values.log)
    return trial.suggest_float(name, values.low, values.high, log=values.log)


def _by_features(recipes: Iterable[Recipe]) -> list[Recipe]:
    def of(recipe: Recipe) -> str:
        return json.dumps([recipe.tokens, recipe.features, recipe.topics], sort_keys=True)

    return sorted(recipes, key=of)


def to_toml(recipe: Recipe) -> str:
    """Write a recipe as the file that `read_recipe` reads."""
    lines = [f"title = {json.dumps(recipe.title, ensure_ascii=False)}"]
    for section in (*_SECTIONS, "tags"):
        if settings := getattr(recipe, section):
            lines += ["", f"[{section}]", *(f"{key} = {format_value(value)}" for key, value in settings.items())]
    return "\n".join(lines) + "\n"
