"""Read recipes (TOML files with all settings of training), and choose the recipe that suits a corpus."""

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from textcat.base.disk import expanded, shipped
from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.markup import html_table
from textcat.base.records import check_entries, describe_type, read_record
from textcat.base.settings import format_value, parse_value, read_toml
from textcat.evaluation.bands import MANY_TOPICS
from textcat.evaluation.thresholds import STRATEGIES
from textcat.features.settings import FeatureSettings, TokenSettings, check_settings, check_tokens

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus, Document
    from textcat.features.tfidf import TfIdf
    from textcat.features.tokens import Tokens
    from textcat.margin.learners import MarginClassifier

_OF_PROBABILITIES = ("probability", "single", "zero")  # strategies that need only the scores of the documents to tag
_MOST = 2**63 - 1  # largest whole numbers, as in TOML
SHORT_TEXT = 300  # mean characters, some 50 words: in shorter texts, stop words and parts of words matter
VECTORS = "none", "static"
SMALL_TOPICS = "review", "together"
# number of training documents below which terms of a single document are kept, and margins are chosen
FEW_DOCUMENTS = 5_000
_N_SAMPLED = 1000  # number of documents sampled to find out whether texts are short
_SECTIONS = ("tokens", "features", "topics", "learner", "ranker", "tags", "promise")

# Parameters of learners that recipes exclude: a model does not depend on the number of jobs, [tags] configures
# probabilities, and kernel learners have no weights to explain a model by.
_NOT_IN_RECIPES = {"n_jobs", "warm_start", "kernel", "kernel_params", "cache_mb", "probability"}
# Parameters that have another name in scikit-learn than in recipes, the command line and `solve`.
_NAME_OF, _KEYWORD_OF = {"random_state": "seed"}, {"seed": "random_state"}


class _RecipeField(NamedTuple):
    """A field of a recipe, such as ``learner.tau_pos``: its value, type, default and explanation."""

    section: str
    name: str
    type: str
    default: Any
    value: Any
    explanation: str


@dataclass(frozen=True)
class TopicSettings:
    """The section [topics] of a recipe.

    Parameters
    ----------
    description_copies : int
        How many copies of each topic's description are positive examples of it; 0: none.
    shortlist : int
        For thousands of topics: rank only this many topics for a document, those with the nearest centroids. A topic is
        then trained only on documents that have it on their shortlist. 0: rank all topics, and train them on all
        documents.
    choose_chars : bool
        Choose on held-out training documents whether n-grams of characters are used beside words. Without a shortlist,
        they always are if there is a single topic. Setting a field of [features] whose name begins with "char" turns
        this off.
    choose_margins : bool
        Without a shortlist: choose on held-out training documents between the margins of this recipe and more even
        ones, which suit topics of very different size; then between its λ and λ = 2, which suits wrong labels. A single
        topic gets equal margins if it is common, otherwise less even ones with λ = 2, if they are better. Setting a
        field of [learner] turns this off.
    vectors : str
        Word vectors to train on, so that evidence for a word transfers to words of similar meaning. "static": shipped
        vectors of English words. "none": terms only. A path: a file of fastText, word2vec or GloVe (.vec, .txt,
        .vec.gz), or the folder of a Model2Vec model, in any language. With a shortlist, vectors only help to find
        topics without documents, by words similar to those of their names.
    vector_weight : float
        The weight of the vectors, relative to a document's vector of terms, which has length 1.
    choose_vectors : bool
        With vectors and several topics: choose on held-out training documents between this weight, 0, and others. If
        fewer than half of the words have a vector, it is always 0. Setting `vector_weight`, or `vectors` to "none",
        turns this off.
    forecast : bool
        Without a shortlist: forecast by held-out training documents the gain from up to twice as many training
        documents.
    aging : bool
        Without a shortlist: measure how rankings get worse with time, by the dates of training documents.
    related : int
        With a shortlist: this many of a document's best topics raise the scores of topics that occur together with them
        in training documents. 0: none do.
    """

    description_copies: int = 0
    shortlist: int = 0
    choose_chars: bool = False
    choose_margins: bool = False
    vectors: str = "none"
    vector_weight: float = 0.4
    choose_vectors: bool = False
    forecast: bool = False
    aging: bool = False
    related: int = 0

    def __post_init__(self) -> None:
        if self.vectors not in VECTORS and not {*self.vectors} & {*"./"}:
            raise TextcatError(
                f"A recipe's vectors in [topics] cannot be {self.vectors!r}; give {', '.join(VECTORS)} or a path, such "
                "as './vectors.vec', which must have a '/' or a '.'."
            )
        for name, value in vars(self).items():
            if name != "vectors" and not 0 <= value < math.inf:
                raise TextcatError(f"A recipe's {name} in [topics] cannot be {value}; give 0 or more.")

    @property
    def chooses_chars(self) -> bool:
        """Whether training chooses, by nearest centroids, if n-grams of characters are used (with a shortlist only)."""
        return self.choose_chars and self.shortlist > 0

    @property
    def chooses_for_few(self) -> bool:
        """Whether training chooses n-grams of characters, margins or vectors by rankings (never with a shortlist)."""
        return not self.shortlist and (self.choose_chars or self.choose_margins or self.chooses_vectors)

    @property
    def chooses_margins(self) -> bool:
        """Whether training chooses the margins on held-out documents: `choose_margins` is set, `shortlist` is 0."""
        return self.choose_margins and not self.shortlist

    @property
    def uses_vectors(self) -> bool:
        """Whether rankers are trained on word vectors, too: vectors have a weight above 0, and `shortlist` is 0."""
        return self.vectors != "none" and self.vector_weight > 0 and not self.shortlist

    @property
    def chooses_vectors(self) -> bool:
        """Whether training chooses the weight of word vectors: `choose_vectors` is set, and rankers use vectors."""
        return self.choose_vectors and self.uses_vectors

    @property
    def forecasts(self) -> bool:
        """Whether training forecasts the gain from more documents: `forecast` is set, and `shortlist` is 0."""
        return self.forecast and not self.shortlist

    @property
    def measures_aging(self) -> bool:
        """Whether training measures how rankings get worse with time: `aging` is set, and `shortlist` is 0."""
        return self.aging and not self.shortlist


@dataclass(frozen=True)
class TagSettings:
    """The section [tags] of a recipe: how scores become decisions.

    Parameters
    ----------
    strategy : str
        One of `textcat.evaluation.thresholds.STRATEGIES`. Only "zero" needs no cross-validation, and it gives no
        probabilities. With "single" each document gets exactly one topic, the one with the highest probability.
    probability : float
        With "probability": a document gets a topic if its probability is above this one.
    folds : int
        Number of folds of the cross-validation that scores training documents, to fit thresholds and probabilities.
        With fewer training documents, thresholds are 0, and there are no probabilities.
    cross_validate : bool
        Whether each fold's rankers are trained from the start, without the terms that only the fold has. Otherwise
        their scores are approximated, which takes less time, but with few documents makes the probabilities of new
        documents too high. No effect with a shortlist, or if some documents were labelled for some topics only.
    """

    strategy: str = "zero"
    probability: float = 0.25
    folds: int = 5
    cross_validate: bool = False

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            strategies = _known("strategies", self.strategy, STRATEGIES)
            raise TextcatError(f"No strategy {self.strategy!r} in [tags]. {strategies}")
        if not 0 < self.probability < 1:
            raise TextcatError(f"The probability in [tags] cannot be {self.probability}; give one between 0 and 1.")
        if self.folds < 2:
            raise TextcatError(f"The folds in [tags] cannot be {self.folds}; give 2 or more.")


@dataclass(frozen=True)
class PromiseSettings:
    """The section [promise] of a recipe: which tags are automatic, and which are for review.

    Parameters
    ----------
    precision : float
        Promise that at least this share of the automatic tags of each topic is right, such as 0.9; 0: no promise.
    recall : float
        Promise that at least this share of the documents of each topic gets the topic, automatically or for review; 0:
        no promise, and unless `missed` is set, tags above the thresholds of [tags] are for review.
    missed : float
        Promise that the tags of a document, automatic or for review, miss at most this share of its topics on average;
        0: no promise.
    confidence : float
        The share of the promises of precision and recall that should hold.
    small_topics : str
        For topics with too few documents for a promise of precision: "review": all their tags are for review.
        "together": they share one promise, for the tags of all of them.
    precision_of : dict of str to float
        The precision to promise for single topics, by id: {wheat = 0.95}; 0: no promise.
    recall_of : dict of str to float
        The recall to promise for single topics, likewise.
    """

    precision: float = 0.0
    recall: float = 0.0
    missed: float = 0.0
    confidence: float = 0.9
    small_topics: str = "review"
    precision_of: dict[str, float] = field(default_factory=dict)
    recall_of: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_topics = {
            f"{name}_of {topic!r}": share
            for name in ("precision", "recall")
            for topic, share in getattr(self, f"{name}_of").items()
        }
        shares = {"precision": self.precision, "recall": self.recall, "missed share": self.missed}
        for name, share in {**shares, **of_topics}.items():
            if not 0 <= share < 1:
                raise TextcatError(
                    f"A {name} of {share} cannot be promised: give one below 1, such as 0.9; 0 for none."
                )
        if not 0.5 <= self.confidence < 1:
            raise TextcatError(
                f"Promises cannot be kept with a confidence of {self.confidence}: give one from 0.5 to below 1."
            )
        if self.small_topics not in SMALL_TOPICS:
            raise TextcatError(
                f"Small topics in [promise] cannot be {self.small_topics!r}; give {' or '.join(SMALL_TOPICS)}."
            )

    @property
    def is_asked(self) -> bool:
        """Whether any promise is asked for."""
        return any((self.precision, self.recall, self.missed, *self.precision_of.values(), *self.recall_of.values()))


@dataclass(frozen=True)
class RankerSettings:
    """The section [ranker] of a recipe: how rankers are trained while a topic is taught.

    Parameters
    ----------
    C : float > 0
        The cost of an error, relative to ‖w‖²/2, with 100 training examples.
    growth : float >= 0
        With n training examples the cost is ``C (n / 100) ** growth``: errors cost more as n grows.
    ratio : float > 0
        The total weight of all positive examples divided by that of all negative ones.
    bias : float >= 0
        Size of the constant feature whose weight is the bias; 0: no bias.
    background : float >= 0
        With examples that are not documents, such as descriptions, this multiple of the mean vector of the pool's
        documents is subtracted from every vector, so that terms in all documents are not evidence.
    described_bias : float >= 0
        Replaces `bias` if there are examples that are not documents, because the vectors are then shorter.
    anchor : float >= 0
        w is regularised towards this multiple of the sum of the examples' vectors (signed by label, and weighted)
        instead of towards 0, so that a description keeps its influence even with many judgements.
    length : float >= 0
        ``x·w`` is multiplied by √((1 + length) e / (e + length)), where e is the number of entries of x divided by
        their mean in the pool. The factor is smaller for short texts, whose few words are weak evidence. 0: always 1.
    embeddings : float >= 0
        The weight of the similarity of embeddings; 1 is the tested value, 0: terms only.
    presumed : int
        The number of random unjudged documents used as negatives, drawn anew for each number of judgements.
    presumed_weight : float > 0
        The weight of each presumed negative; a judged document has 1.
    tol : float > 0
        Stop after the first epoch in which no projected gradient is larger than this.
    max_epochs : int
        The largest number of epochs.
    """

    C: float = 0.15
    growth: float = 0.4
    ratio: float = 20.0
    bias: float = 1.0
    background: float = 1.0
    described_bias: float = 0.5
    anchor: float = 1.0
    length: float = 0.1
    embeddings: float = 0.0
    presumed: int = 0
    presumed_weight: float = 1.0
    tol: float = 0.03
    max_epochs: int = 1000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            positive = name in ("C", "ratio", "presumed_weight", "tol")
            if not (0 < value < math.inf or (value == 0 and not positive)):
                least = "a number above 0" if positive else "0 or a number above it"
                raise TextcatError(f"The ranker's {name} cannot be {value!r}: it must be {least}.")


_RECORDS: dict[str, Any] = {  # the class of each section except [learner], whose fields depend on the learner's name
    "tokens": TokenSettings,
    "features": FeatureSettings,
    "topics": TopicSettings,
    "ranker": RankerSettings,
    "tags": TagSettings,
    "promise": PromiseSettings,
}
_DEFAULTS: Mapping[str, Any] = {}


@dataclass(frozen=True, init=False, repr=False)
class Recipe:
    """The contents of a recipe file: how texts become vectors, how rankers are trained, and how scores become topics.

    Parameters
    ----------
    name, title : str
    tokens, features, topics, ranker, tags, promise : dict or record
        The settings of `Tokens`, `TfIdf`, `TopicSettings`, `RankerSettings`, `TagSettings` and `PromiseSettings`. The
        attributes of these names are records with all settings, such as ``recipe.tags.strategy``.
    learner : dict
        Keyword arguments of the learner whose name is ``learner["name"]``, "paum" by default. The argument
        `random_state` is called `seed` in recipes.
    many, short, few : Recipe, optional
        The recipes to use instead if there are 1,000 topics or more, if texts are short, or if there are fewer than
        5,000 training documents. The recipe `short` can itself have a recipe `few`.

    Raises
    ------
    TextcatError
        If a section has an unknown field or an invalid value. Fields of `learner` are checked by `check`.
    """

    name: str
    title: str
    tokens: TokenSettings
    features: FeatureSettings
    topics: TopicSettings
    learner: dict[str, Any]
    ranker: RankerSettings
    tags: TagSettings
    promise: PromiseSettings
    many: "Recipe | None" = field(compare=False)
    short: "Recipe | None" = field(compare=False)
    few: "Recipe | None" = field(compare=False)

    def __init__(
        self,
        name: str,
        tokens: Mapping[str, Any] | TokenSettings = _DEFAULTS,
        features: Mapping[str, Any] | FeatureSettings = _DEFAULTS,
        learner: Mapping[str, Any] = _DEFAULTS,
        title: str = "",
        topics: Mapping[str, Any] | TopicSettings = _DEFAULTS,
        tags: Mapping[str, Any] | TagSettings = _DEFAULTS,
        many: "Recipe | None" = None,
        short: "Recipe | None" = None,
        ranker: Mapping[str, Any] | RankerSettings = _DEFAULTS,
        few: "Recipe | None" = None,
        promise: Mapping[str, Any] | PromiseSettings = _DEFAULTS,
    ) -> None:
        sections: dict[str, Any] = {"tokens": tokens, "features": features, "topics": topics, "ranker": ranker}
        sections |= {"tags": tags, "promise": promise}
        records = {key: _record(_RECORDS[key], settings, name, key) for key, settings in sections.items()}
        check_tokens(records["tokens"])
        check_settings(vars(records["features"]))
        of_learner = {"name": "paum", **learner}
        alternatives = {"many": many, "short": short, "few": few}
        vars(self).update(name=name, title=title, **records, learner=of_learner, **alternatives)

    def __repr__(self) -> str:
        sections = (f"{section}={settings!r}" for section in _SECTIONS if (settings := self._without_defaults(section)))
        return f"Recipe({', '.join([repr(self.name), *sections])})"

    def _repr_html_(self) -> str:
        settings = [
            (f"{section}.{name}", format_value(value))
            for section in _SECTIONS
            for name, value in self._without_defaults(section).items()
        ]
        about = f"Recipe {self.name}" + (f": {self.title}" if self.title else "")
        return html_table(("setting", "value"), settings, caption=about)

    def settings(self, section: str) -> dict[str, Any]:
        """Return the settings in a section of the recipe, by name; for "learner", only those that were given."""
        return dict(self.learner if section == "learner" else vars(getattr(self, section)))

    def _without_defaults(self, section: str) -> dict[str, Any]:
        """Return the settings of a section that differ from the defaults; for "learner", those that were given."""
        defaults = {} if section == "learner" else vars(_RECORDS[section]())
        return {name: value for name, value in self.settings(section).items() if value != defaults.get(name, MISSING)}

    def changed(self, learner: str | None = None, **parameters: Any) -> "Recipe":
        """Return the recipe with another learner, or with other parameters of the learner.

        Any change turns off the choice of margins (`topics.choose_margins`). The recipe's alternatives `many`, `short`
        and `few` change in the same way. Another learner also changes the recipe's name and title.

        Parameters
        ----------
        learner : str, optional
            Name of the other learner. Parameters that not all learners share are dropped, because their meaning
            differs: the η of PAUM scales the solution, the η of CRAMMA decides whether there is one.
        **parameters
            New values of parameters, by name; None leaves a parameter as it is.

        Returns
        -------
        Recipe

        Raises
        ------
        TextcatError
            If there is no such learner, or a parameter is unknown, or a value is invalid.
        """
        if learner is not None and learner != self.learner["name"]:
            return self._with_alternatives(lambda recipe: recipe._with_learner(learner)).changed(**parameters)
        changes = {name: value for name, value in parameters.items() if value is not None}
        if not changes:
            return self  # without importing the learner, which takes half a second
        records = self._record_classes()
        for section, record in records.items():
            if names := changes.keys() & _names(record) - _names(records["learner"]):
                name = min(names)
                raise TextcatError(
                    f"{name!r} is no parameter of the learner, but of [{section}]: set it by "
                    f"with_settings('{section}.{name}={changes[name]}')."
                )
        changed = self._with_alternatives(lambda recipe: recipe._with_parameters(changes))
        changed.make_learner()
        return changed

    def _with_learner(self, learner: str) -> "Recipe":
        """Return the recipe with another learner; only parameters that all learners share are kept."""
        new: Any = learner_class(learner)
        shared = _names(_settings_class(new)) - {parameter.name for parameter in new.rule.PARAMETERS}
        settings = {name: value for name, value in self.learner.items() if name in shared} | {"name": learner}
        name = f"{self.name}-{learner.rpartition(':')[2]}"
        title = f"{learner}, on the features of the recipe {self.name}"
        return replace(self, name=name, title=title, learner=settings)._with_parameters({})

    def _with_parameters(self, parameters: Mapping[str, Any]) -> "Recipe":
        """Return the recipe with other parameters of the learner; this turns off the choice of margins."""
        return self.with_values({"learner": parameters, "topics": {"choose_margins": False}})

    def _with_alternatives(self, change: Callable[["Recipe"], "Recipe"]) -> "Recipe":
        """Return the recipe changed by a function, with its alternatives (such as `few`) changed in the same way."""
        others = {name: getattr(self, name) for name in ("many", "short", "few")}
        return replace(
            change(self), **{name: other and other._with_alternatives(change) for name, other in others.items()}
        )

    def with_settings(self, assignments: str | Iterable[str]) -> "Recipe":
        """Return the recipe with other values of some fields, given as one text or several: ``learner.tau_pos=50``.

        Values are written as in TOML, and quotes around a text may be left out: ``features.zones={title=2, body=1}``.
        ``learner.name`` is set before the learner's parameters. The recipes `many`, `short` and `few` are changed in
        the same way; `for_corpus` checks the recipe that it chooses, because a value may be valid for one recipe only.
        A TextcatError is raised for an unknown field or an invalid value.
        """
        texts = {}
        for assignment in [assignments] if isinstance(assignments, str) else assignments:
            path, equals, text = assignment.partition("=")
            if not equals:
                raise TextcatError(f"A recipe's field cannot be set by {assignment!r}: write SECTION.FIELD=VALUE.")
            texts[path.strip()] = text.strip()
        if not texts:
            return self
        recipe = self._with_alternatives(lambda recipe: recipe._with_assignments(texts))
        recipe.check()
        return recipe

    def _with_assignments(self, texts: Mapping[str, str]) -> "Recipe":
        """Return the recipe with other values of some fields, as texts by names such as "learner.tau_pos".

        Training then does not choose these values itself. A TextcatError is raised for an unknown field, or for a value
        of another type; whether the learner's values are possible is not checked.
        """
        name = "learner.name"
        recipe = self.changed(_parsed(name, texts[name], str)) if name in texts else self
        types_of = {
            f"{section}.{field.name}": field.type
            for section, record in recipe._record_classes().items()
            for field in fields(record)
        }
        values: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
        for path, text in texts.items():
            if path not in types_of:
                same_name = [field for field in types_of if field.endswith(f".{path}")]
                hint = f" Did you mean {same_name[0]!r}?" if same_name else did_you_mean(path, types_of)
                raise TextcatError(f"A recipe has no field {path!r}: write SECTION.FIELD=VALUE.{hint}")
            section, _, field = path.partition(".")
            values[section][field] = _parsed(path, text, types_of[path])
        if any(field.startswith("char") for field in values["features"]):
            values["topics"]["choose_chars"] = False
        if values["learner"]:
            values["topics"]["choose_margins"] = False
        if "vector_weight" in values["topics"] or values["topics"].get("vectors") == "none":
            values["topics"]["choose_vectors"] = False
        return recipe.with_values(values)

    def with_values(self, values: Mapping[str, Mapping[str, Any]]) -> "Recipe":
        """Return the recipe with some fields changed; `values` has the new values, by section and name."""
        sections: dict[str, Any] = {
            section: {**self.settings(section), **changes} for section, changes in values.items()
        }
        return replace(self, **sections)

    def check(self) -> None:
        """Raise TextcatError if the learner cannot be made, or if two settings contradict each other."""
        self.make_learner()
        if self.topics.choose_margins and self.learner["name"] != "paum":
            raise TextcatError(
                f"Recipe {self.name}: training can choose the margins of the learner paum only, not those of "
                f"{self.learner['name']}: set choose_margins = false in [topics]."
            )
        if self.promise.is_asked:
            self._check_promise()
        if self.topics.shortlist and self.tags.strategy not in _OF_PROBABILITIES:
            raise TextcatError(
                f"Recipe {self.name}: with a shortlist, the strategy in [tags] cannot be {self.tags.strategy!r}, which "
                f"needs scores of all documents; choose one of {', '.join(_OF_PROBABILITIES)}."
            )

    def _check_promise(self) -> None:
        why = remedy = ""
        if self.topics.shortlist:
            why, remedy = "it scores only the topics on a document's shortlist", "set topics.shortlist = 0"
        elif self.tags.strategy == "zero":
            why, remedy = (
                "its strategy 'zero' in [tags] scores no held-out documents",
                "choose another, as 'probability'",
            )
        elif self.tags.strategy == "single" and (
            self.promise.recall or self.promise.missed or any(self.promise.recall_of.values())
        ):
            why, remedy = "each document gets exactly one topic, whatever its recall is", "promise a precision only"
        if why:
            raise TextcatError(
                f"Recipe {self.name} cannot keep such a promise, as {why}: {remedy}, or give up promises."
            )

    def fields(self) -> list[_RecipeField]:
        """Return all fields that a recipe can have, section by section, with their values in this recipe."""
        from textcat.features.tfidf import TfIdf
        from textcat.features.tokens import Tokens

        explained = {"tokens": Tokens, "features": TfIdf, "learner": self._learner_class()}
        recipe_fields = []
        for section, record in self._record_classes().items():
            settings = self.settings(section)
            explanations = {"name": "Which learner.", **_explanations(explained.get(section, record))}
            for setting in fields(record):
                name, kind, default = setting.name, describe_type(setting.type), setting.default
                if default is MISSING and setting.default_factory is not MISSING:
                    default = setting.default_factory()
                explanation = explanations.get(_KEYWORD_OF.get(name, name), "")
                recipe_fields.append(
                    _RecipeField(section, name, kind, default, settings.get(name, default), explanation)
                )
        return recipe_fields

    def complete(self) -> "Recipe":
        """Return the recipe as models store it: with a value for each parameter of the learner, and without a name."""
        return replace(self, name="", many=None, short=None, few=None, learner=vars(self._learner_record()))

    def _record_classes(self) -> dict[str, Any]:
        """Return the class of each section's record."""
        records = {**_RECORDS, "learner": _settings_class(self._learner_class())}
        return {section: records[section] for section in _SECTIONS}

    def _learner_class(self) -> Any:
        return learner_class(str(self.learner["name"]), f"Recipe {self.name}: ")

    def _learner_record(self) -> Any:
        return _record(_settings_class(self._learner_class()), self.learner, self.name, "learner")

    def feature_settings(self) -> dict[str, Any]:
        """Return the parameters of `TfIdf`, which turns documents into vectors, by name."""
        return {"tokens": self.make_tokens(), **vars(self.features)}

    def make_features(self) -> "TfIdf":
        """Return the `TfIdf` of this recipe, which turns documents into vectors."""
        from textcat.features.tfidf import TfIdf

        return TfIdf(**self.feature_settings())

    def make_tokens(self) -> "Tokens":
        """Return the object that tokenizes texts into terms."""
        from textcat.features.tokens import Tokens

        return Tokens(**vars(self.tokens))

    def for_corpus(self, corpus: "Corpus") -> tuple["Recipe", str]:
        """Return the recipe to use for a corpus, and the reason in words, such as "1,200 topics".

        The recipe is `many` if the corpus has 1,000 topics or more, `short` if its texts are short on average and not
        Chinese, and otherwise this recipe itself, with the reason "". If the corpus has fewer than 5,000 training
        documents, it is the recipe `few` of `short` or of this recipe. Changes of this recipe's settings also apply to
        these; a TextcatError is raised if the chosen recipe is invalid with the changes.
        """
        chosen, why = self._suited_to(corpus)
        n_documents = len(corpus.train)
        if chosen.few is not None and n_documents < FEW_DOCUMENTS:
            chosen, why = chosen.few, f"{n_documents:,} training documents{' and ' if why else ''}{why}"
        if chosen is not self:
            chosen.check()
        return chosen, why

    def _suited_to(self, corpus: "Corpus") -> tuple["Recipe", str]:
        if self.many is not None and len(corpus.topics) >= MANY_TOPICS:
            return self.many, f"{len(corpus.topics):,} topics"
        sample = corpus.sample_train(_N_SAMPLED)
        if self.short is None or not sample:
            return self, ""
        as_read = self.make_tokens().as_read
        length = sum(len(as_read(text)) for document in sample for text in document.zones.values()) / len(sample)
        if length >= SHORT_TEXT or self._are_chinese(sample):
            return self, ""
        return self.short, f"texts of {length:.0f} characters on average"

    def _are_chinese(self, documents: "Iterable[Document]") -> bool:
        """Return whether documents are Chinese, and this recipe cuts them into n-grams: `short` is not for these."""
        from textcat.features.scripts import NGRAMS, are_chinese

        texts = (text for document in documents for text in document.zones.values())
        return self.tokens.segmenter == NGRAMS and are_chinese(texts)

    def make_learner(self, **options: Any) -> "MarginClassifier":
        """Return the learner; `options` are further keyword arguments, such as `n_jobs`.

        TextcatError is raised if a parameter has an invalid value.
        """
        self._learner_record()  # checks names and types
        keywords = {_KEYWORD_OF.get(name, name): value for name, value in self.learner.items() if name != "name"}
        learner = self._learner_class()(**keywords, **options)
        try:
            learner.check_parameters(_NAME_OF)  # the same checks as in `fit`, but before the documents are read
        except ValueError as error:
            raise TextcatError(f"Recipe {self.name}: {error}") from error
        return learner

    def of_model(self, trained_by: str = "The model was trained by") -> "Recipe":
        """Return this recipe, which came with a model, if training by it is safe; otherwise raise TextcatError.

        A model, or a session of teaching, may come from a stranger, and its recipe may name a class of any module on
        this machine as the learner. Such a learner is used only if its module has been imported already. The error
        begins with `trained_by`.
        """
        name = self.learner["name"]
        if ":" in name and name.partition(":")[0] not in sys.modules:
            raise TextcatError(
                f"{trained_by} a learner of another package, {name!r}, whose code would run: give "
                f"--learner {name} if you trust it (in Python, import its module first)."
            )
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe's name, if any, its title and its sections; of the learner, only the given settings."""
        named = {"name": self.name} if self.name else {}
        return named | {"title": self.title} | {section: self.settings(section) for section in _SECTIONS}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "Recipe":
        """Rebuild a recipe from what `as_dict` returned; raise one of `MISFITS` (exceptions) for anything else."""
        texts = entries.get("name", ""), entries["title"], entries["learner"]["name"]
        if entries.keys() - {"name"} != {"title", *_SECTIONS} or {*map(type, texts)} != {str}:
            raise ValueError("these are not the entries of a recipe")
        return cls(**{"name": "", **entries})


def _record(cls: Any, settings: Any, recipe: str, section: str) -> Any:
    """Convert settings, a record of a class or a mapping by name, to a record; `recipe` and `section` are for messages.

    TextcatError is raised for a setting that is unknown, or of another type.
    """
    if isinstance(settings, cls):
        return settings
    where = f"in [{section}] of the recipe {recipe}"
    for key, value in settings.items():
        if type(value) is int and value > _MOST:
            raise TextcatError(f"The field {key!r} {where} cannot be {value}; give at most {_MOST}.")
    return read_record(cls, settings, where)


def _parsed(path: str, text: str, kind: Any) -> Any:
    try:
        return parse_value(text, kind)
    except ValueError as error:
        raise TextcatError(f"The recipe's field {path} cannot be {text!r}; {error}.") from None


def learner_class(name: str, where: str = "") -> "type[MarginClassifier]":
    """Return the class of a learner, given by a name in `LEARNERS`, or as "MODULE:CLASS" for any other class.

    TextcatError is raised if there is no such learner; its message begins with `where`.
    """
    from textcat.margin.learners import LEARNERS

    if ":" in name:
        return _imported_learner(name, where)
    if name not in LEARNERS:
        raise TextcatError(f"{where}No learner {name!r}. {_known('learners', name, LEARNERS)}")
    return LEARNERS[name]


def _imported_learner(name: str, where: str) -> "type[MarginClassifier]":
    """Import a learner given as "MODULE:CLASS".

    The module may be in the current folder, because a prototype is rarely installed.
    """
    from importlib import import_module

    from textcat.margin.learners import MarginClassifier

    module, _, class_name = name.partition(":")
    sys.path.append(os.getcwd())
    try:
        learner = getattr(import_module(module), class_name)
    except Exception as error:  # the module may raise any exception
        said = f"{type(error).__name__}: {error}"
        raise TextcatError(
            f"{where}The learner {name!r} cannot be imported ({said}): name it as MODULE:CLASS."
        ) from error
    finally:
        sys.path.pop()
    if not (isinstance(learner, type) and issubclass(learner, MarginClassifier) and hasattr(learner, "rule")):
        raise TextcatError(f"{where}{name!r} is not a learner: make it a subclass of MarginClassifier with a rule.")
    return learner


@cache
def _settings_class(learner: Any) -> Any:
    """Return a dataclass with a field "name", and a field for each parameter of a learner that recipes can set."""
    types = get_type_hints(learner.__init__)
    parameters = [
        (_NAME_OF.get(keyword, keyword), types[keyword], parameter.default)
        for keyword, parameter in inspect.signature(learner).parameters.items()
        if keyword not in _NOT_IN_RECIPES
    ]
    return make_dataclass("LearnerSettings", [("name", str, "paum"), *parameters])


def _names(record: Any) -> set[str]:
    return {field.name for field in fields(record)}


def _explanations(cls: type[Any]) -> dict[str, str]:
    """Return the descriptions of a class's parameters in its docstring, each as one line."""
    _, _, below = (inspect.getdoc(cls) or "").partition("Parameters\n----------\n")
    block = re.split(r"\n\n\S+\n---", below)[0]
    entries = re.findall(r"^(\w[\w, ]*?)(?: :.*)?\n((?:[ ]{4}.*\n?|\n)+)", block + "\n", re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def recipes() -> dict[str, Path]:
    """Return the paths of the recipes that come with textcat, by name."""
    return {path.stem: path for path in sorted(shipped("recipes").glob("*.toml"))}


def default_recipe() -> Recipe:
    """Return the recipe `default`, with the alternatives that `Recipe.for_corpus` chooses from."""
    short = replace(read_recipe("short-texts"), few=read_recipe("few-short-texts"))
    return replace(
        read_recipe("default"), many=read_recipe("many-topics"), short=short, few=read_recipe("few-documents")
    )


def read_recipe(name_or_path: str | os.PathLike[str]) -> Recipe:
    """Read a recipe that comes with textcat by its name, or a recipe file (``.toml``) by its path.

    A TextcatError is raised if there is no such recipe, or if the file is not valid.
    """
    if not isinstance(name_or_path, str | os.PathLike):
        raise TextcatError(f"{name_or_path!r:.60} is no recipe: give the name or the path of one.")
    shipped = recipes()
    path = shipped.get(str(name_or_path), expanded(name_or_path))
    if path.suffix != ".toml":
        raise TextcatError(f"No recipe {str(name_or_path)!r}. {_known('recipes', str(name_or_path), shipped)}")
    entries = read_toml(path, "recipe")
    check_entries(entries, {"title": str, **dict.fromkeys(_SECTIONS, dict)}, f"in the recipe {path}")
    recipe = Recipe(name=path.stem, **entries)
    if path not in shipped.values():
        recipe.check()
    return recipe


def _known(what: str, wrong: str, names: Iterable[str]) -> str:
    return f"Known {what}: {', '.join(sorted(names))}.{did_you_mean(wrong, names)}"
