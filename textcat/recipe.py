"""One way of training, as a TOML file: how text becomes rows, what is learnt from, and by which learner."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from textcat.errors import TextcatError
from textcat.evaluation.thresholds import STRATEGIES
from textcat.files import describe_type, did_you_mean, has_type, parse_value, read_toml, shipped

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf
    from textcat.features.tokens import Tokens
    from textcat.margin.learners import MarginClassifier

_SECTIONS = ("tokens", "features", "topics", "learner", "tags")

# Parameters of the classes that are no matter of a recipe: it has a section for the tokens, a model does not depend on
# the number of jobs, and it has weights to explain itself by, which learners on a kernel have not.
_NOT_IN_RECIPES = {"tokens", "n_jobs", "warm_start", "kernel", "kernel_params", "cache_mb"}
# Parameters that scikit-learn's tools know by another name than recipes, the command line and `solve` do.
_KEYWORD_OF = {"seed": "random_state"}


@dataclass(frozen=True)
class _Topics:
    """What a recipe's section on topics says."""

    descriptions: int = 0

    def __post_init__(self) -> None:
        if self.descriptions < 0:
            raise TextcatError(f"A recipe's descriptions in [topics] cannot be {self.descriptions}; give 0 or more.")


@dataclass(frozen=True)
class Tags:
    """What a recipe's section on tags says: how scores become decisions.

    Parameters
    ----------
    strategy : str
        One of `textcat.evaluation.thresholds.STRATEGIES`. "zero" alone needs no cross-validation, and gives no
        probabilities.
    probability : float
        With "probability": a document gets a topic if it has it with more than this probability.
    folds : int
        Of the cross-validation that gives the scores of documents that were not trained on.
    """

    strategy: str = "zero"
    probability: float = 0.25
    folds: int = 5

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise TextcatError(
                f"No strategy {self.strategy!r} in [tags]. {_known('strategies', self.strategy, STRATEGIES)}"
            )
        if not 0 < self.probability < 1:
            raise TextcatError(f"The probability in [tags] cannot be {self.probability}; give one between 0 and 1.")
        if self.folds < 2:
            raise TextcatError(f"The folds in [tags] cannot be {self.folds}; give 2 or more.")


@dataclass(frozen=True)
class Recipe:
    """What a recipe file says.

    Parameters
    ----------
    name : str
    tokens, features : dict
        Keywords of `Tokens` and of `TfIdf`.
    topics : dict
        ``descriptions``: how many times each topic's description is a positive example of it; by default never.
    learner : dict
        ``name`` of the learner, and its keywords.
    title : str
    tags : dict
        Keywords of `Tags`.
    """

    name: str
    tokens: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    learner: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    topics: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, Any] = field(default_factory=dict)

    def changed(self, learner: str | None = None, **parameters: Any) -> Recipe:
        """Return the recipe with another learner, or other parameters of it; None leaves things as they are.

        Of the recipe's parameters another learner keeps those that all learners share. Those of a rule mean something
        else to another one: the η of PAUM scales the solution, that of CRAMMA decides whether there is one.
        """
        if learner is not None and learner != self.learner.get("name", "paum"):
            new = _learner_class(learner)
            shared = self._parameters_of(new) - {parameter.name for parameter in new._rule.PARAMETERS}
            kept = {"name": learner, **{name: value for name, value in self.learner.items() if name in shared}}
            name, title = f"{self.name}-{learner}", f"{learner}, on the features of the recipe {self.name}"
            return replace(self, name=name, title=title, learner=kept).changed(**parameters)
        given = {name: value for name, value in parameters.items() if value is not None}
        return replace(self, learner={**self.learner, **given})

    def with_settings(self, assignments: Iterable[str]) -> Recipe:
        """Return the recipe with other settings.

        Parameters
        ----------
        assignments : iterable of str
            Each ``SECTION.NAME=VALUE``, such as ``learner.tau_pos=50``; the value is written as in a recipe file, and a
            text may stand without quotation marks.

        Raises
        ------
        TextcatError
            If a section or a setting is not known, or a value is not of its type.
        """
        recipe, settings = self, [_setting(assignment) for assignment in assignments]
        for section, name, value in sorted(settings, key=lambda setting: setting[:2] != ("learner", "name")):
            if (section, name) == ("learner", "name"):
                recipe = recipe.changed(str(value))
            else:
                changed: dict[str, Any] = {section: {**getattr(recipe, section), name: value}}
                recipe = replace(recipe, **changed)
        if settings:
            recipe.make_features(), recipe.make_learner(), recipe.make_tags(), recipe.descriptions
        return recipe

    def make_features(self) -> TfIdf:
        """Make the transformer from documents to rows."""
        from textcat.features.tfidf import TfIdf

        return self._make(TfIdf, "features", tokens=self.make_tokens())

    def feature_settings(self) -> dict[str, Any]:
        """Return the parameters of the transformer from documents to rows."""
        from textcat.features.vectorizer import Vectorizer  # without scikit-learn, which is not needed to tag

        return vars(self._make(Vectorizer, "features", tokens=self.make_tokens()))

    def make_tokens(self) -> Tokens:
        """Make what turns text into terms."""
        from textcat.features.tokens import Tokens

        return self._make(Tokens, "tokens")

    @property
    def descriptions(self) -> int:
        """How many times each topic's description is a positive example of it."""
        return int(self._make(_Topics, "topics").descriptions)

    def make_tags(self) -> Tags:
        """Return how scores become decisions."""
        return self._make(Tags, "tags")

    def make_learner(self, **more: Any) -> MarginClassifier:
        """Make the learner; further keywords such as `n_jobs` are passed on."""
        settings = dict(self.learner)
        cls = _learner_class(str(settings.pop("name", "paum")), f"Recipe {self.name}: ")
        learner = self._make(cls, "learner", settings, **more)
        try:
            learner._validate_params()  # as `fit` does, but before the documents are read
        except ValueError as error:
            message = str(error).replace("'random_state'", "'seed'")
            raise TextcatError(f"Recipe {self.name}: {message}") from error
        return learner

    def _make(self, cls: Callable[..., Any], section: str, settings: dict[str, Any] | None = None, **more: Any) -> Any:
        settings = getattr(self, section) if settings is None else settings
        known = self._parameters_of(cls)
        hints = get_type_hints(cls.__init__)
        types_of = {name: hints[_KEYWORD_OF.get(name, name)] for name in known}
        for key, value in settings.items():
            if key not in known:
                raise TextcatError(
                    f"Recipe {self.name}: [{section}] has no parameter {key!r}. {_known('parameters', key, known)}"
                )
            if not has_type(value, types_of[key]):
                wanted = describe_type(types_of[key])
                raise TextcatError(f"Recipe {self.name}: {key} in [{section}] cannot be {value!r}; give {wanted}.")
        return cls(**{_KEYWORD_OF.get(name, name): value for name, value in settings.items()}, **more)

    @staticmethod
    def _parameters_of(cls: Callable[..., Any]) -> set[str]:
        keywords = set(inspect.signature(cls).parameters) - _NOT_IN_RECIPES
        return {name for name, keyword in _KEYWORD_OF.items() if keyword in keywords} | (
            keywords - {*_KEYWORD_OF.values()}
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a file of this recipe holds."""
        return {
            "title": self.title,
            "tokens": self.tokens,
            "features": self.features,
            "topics": self.topics,
            "learner": self.learner,
            "tags": self.tags,
        }


def _setting(assignment: str) -> tuple[str, str, Any]:
    """Return the section, the name and the value of an assignment such as ``learner.tau_pos=50``."""
    left, equals, text = assignment.partition("=")
    section, _, name = left.strip().partition(".")
    if not (equals and name):
        raise TextcatError(f"{assignment!r} changes no setting: write SECTION.NAME=VALUE, as in learner.tau_pos=50.")
    if section not in _SECTIONS:
        raise TextcatError(f"A recipe has no section {section!r}. {_known('sections', section, _SECTIONS)}")
    return section, name, parse_value(text)


def _learner_class(name: str, where: str = "") -> type[MarginClassifier]:
    from textcat.margin.learners import LEARNERS

    if name not in LEARNERS:
        raise TextcatError(f"{where}No learner {name!r}. {_known('learners', name, LEARNERS)}")
    return LEARNERS[name]


def recipes() -> dict[str, Path]:
    """Return the shipped recipes' files by name."""
    return {path.stem: path for path in sorted(shipped("models").glob("*.toml"))}


def read_recipe(name_or_path: str | Path) -> Recipe:
    """Read a shipped recipe by name, or any recipe by the path of its file.

    Raises
    ------
    TextcatError
        If there is no such recipe, or its file is not one.
    """
    known = recipes()
    path = known.get(str(name_or_path), Path(name_or_path).expanduser())
    if path.suffix != ".toml":
        raise TextcatError(f"No recipe {str(name_or_path)!r}. {_known('recipes', str(name_or_path), known)}")
    entries = read_toml(path, "recipe")
    for key, value in entries.items():
        if key not in (*_SECTIONS, "title"):
            raise TextcatError(f"The recipe {path} has an unknown entry {key!r}. {_known('entries', key, _SECTIONS)}")
        if not isinstance(value, str if key == "title" else dict):
            raise TextcatError(f"The recipe {path}: {key} must be a {'text' if key == 'title' else 'section'}.")
    return Recipe(name=path.stem, **entries)


def _known(what: str, wrong: str, known: Iterable[str]) -> str:
    return f"Known {what}: {', '.join(sorted(known))}.{did_you_mean(wrong, known)}"
