"""Replace the names and defaults that models, pools, runs and sessions had before version 0.1.0 by today's."""

import re
from collections.abc import Mapping
from typing import Any

from textcat.base.errors import TextcatError

#: Recipes, by their former names.
RECIPES = {
    "best": "default",
    "best-chars": "chars",
    "short": "short-texts",
    "subjects": "many-topics",
    "teach": "active-learning",
}
_OF_COUNTS = {"keep": "keep_support", "judged": "labelled_for", "judged_of": "labelled_for_of"}
#: Fields of a recipe's sections.
FIELDS = {"apart": "zone_terms", "fold_plurals": "singularize"}
#: The version of a stored recipe, which has every field of its time. Recipes of before have no version, and leave out
#: defaults. Version 2 has the fields `segmenter`, `char_max_df` and `choose_chars`; version 3 has `normal_form`, and
#: the segmenter "ngrams" of before is "runs".
RECIPE_VERSION = 3
_WITH_RUNS = (1, 2)  # versions in which only runs of scripts without spaces were cut into n-grams
#: The values of fields that a stored recipe leaves out. These are frozen: whatever the defaults become, a model reads
#: texts as it did when it was trained. A new field gets the value here that changes nothing for older models.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "tokens": {
        "lang": "en",
        "lowercase": True,
        "alphabetic": True,
        "alphanumeric": False,
        "remove_stop_words": True,
        "singularize": False,
        "segmenter": "spacy",
        "normal_form": "none",
        "memo_bytes": 256 << 20,
    },
    "features": {
        "zones": None,
        "zone_terms": False,
        "ngrams": 1,
        "ngram_min_df": 2,
        "ngram_weight": 1.0,
        "chars": 0,
        "char_weight": 1.0,
        "char_max_df": 1.0,
        "min_df": 1,
        "max_features": None,
        "hash_bits": None,
        "weighting": "tfidf",
        "sublinear_tf": False,
        "k1": 1.2,
        "b": 0.75,
        "idf": "log",
        "dtype": "float32",
    },
    "topics": {
        "descriptions": 0,
        "shortlist": 0,
        "choose_chars": False,
        "related": 0,
        "choose_parts": False,
        "part_length": 0,
        "name_weight": 0.0,
    },
    "learner": {
        "name": "paum",
        "lambda_": 1.0,
        "rho": 1.0,
        "max_epochs": 1000,
        "mini_epochs": 0,
        "tol": 0.0,
        "seed": None,
    },
    "ranker": {
        "C": 0.15,
        "growth": 0.4,
        "ratio": 20.0,
        "bias": 1.0,
        "background": 1.0,
        "described_bias": 0.5,
        "anchor": 1.0,
        "length": 0.1,
        "embeddings": 0.0,
        "presumed": 0,
        "presumed_weight": 1.0,
        "tol": 0.03,
        "max_epochs": 1000,
    },
    "tags": {"strategy": "zero", "probability": 0.25, "folds": 5},
}
#: And further fields of each learner.
LEFT_OUT_OF_LEARNER: dict[str, dict[str, Any]] = {
    "pa": {"eta": 1.0},
    "pam": {"tau": 1.0, "eta": 1.0},
    "paum": {"tau_neg": -0.5, "tau_pos": "prevalence", "eta": 1.0, "kappa": -20.0, "scale": 100.0},
    "t-margitron": {"epsilon": 0.5, "b": 1.0},
    "l-margitron": {"epsilon": 0.5, "b": 3.0},
    "micra": {"eta": 1.0, "beta": 5.0, "epsilon": 0.5, "zeta": 0.5},
    "cramma": {"eta": 0.01, "beta": 3.0, "epsilon": 0.5},
    "alma": {"alpha": 0.5, "B": None, "C": 2**0.5},
    "romma": {"delta": 0.2},
    "pdm": {"epsilon": 0.1},
}


def todays_recipe(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a stored recipe with today's names, a value for every field, and without the version.

    A TextcatError is raised if this version of textcat cannot read the recipe's version.
    """
    recipe: dict[str, Any] = dict(entries)
    version = recipe.pop("version", None)
    if version is not None and version not in range(1, RECIPE_VERSION + 1):
        raise TextcatError(
            f"The stored recipe has version {version!r}, and this version of textcat reads up to {RECIPE_VERSION}: "
            "upgrade textcat."
        )
    tokens = recipe.get("tokens")
    if version in _WITH_RUNS and isinstance(tokens, dict) and tokens.get("segmenter") == "ngrams":
        recipe["tokens"] = {**tokens, "segmenter": "runs"}
    if "name" in recipe:
        recipe["name"] = RECIPES.get(recipe["name"], recipe["name"])
    for section, defaults in LEFT_OUT.items():
        fields = recipe.get(section, {})
        if isinstance(fields, dict):  # else the recipe is damaged, which is told when it is used
            recipe[section] = defaults | {FIELDS.get(name, name): value for name, value in fields.items()}
    learner = recipe["learner"]
    if isinstance(learner, dict):
        recipe["learner"] = LEFT_OUT_OF_LEARNER.get(str(learner["name"]), {}) | learner
    return recipe


def todays_fact(fact: Any) -> Any:
    """Return the recipe of an earlier run with today's names: ``best ({'tokens': …})`` becomes ``default ({…})``.

    The journal of a run holds the recipe as such a text. A value that is no text is returned unchanged.
    """
    if not isinstance(fact, str):
        return fact
    name, space, terms = fact.partition(" ")
    terms = re.sub("'(apart|fold_plurals)':", lambda match: f"'{FIELDS[match[1]]}':", terms)
    return RECIPES.get(name, name) + space + terms


def todays_counts(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that describe a model's training counts, with today's names and values."""
    counts = {_OF_COUNTS.get(name, name): value for name, value in entries.items()}
    keep_support = "ids" if counts["keep_support"] == "documents" else counts["keep_support"]
    return counts | {"keep_support": keep_support, "terms_of": todays_recipe(counts["terms_of"])}


def todays_line(line: dict[str, Any]) -> dict[str, Any]:
    """Change a line of a session's journal to today's names, and return it.

    The key "mark" becomes "keyword", and the source "settled" of an answer becomes "adjudicated".
    """
    if "mark" in line:
        line["keyword"] = line.pop("mark")
    for answer in line.get("answers", ()):
        if answer.get("source") == "settled":
            answer["source"] = "adjudicated"
    return line


def todays_piece(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays that an unfinished pool keeps for a batch of counted documents, under today's names.

    Arrays that already have today's names are returned unchanged.
    """
    if "texts" not in arrays:
        return arrays
    import json

    import numpy as np

    names = arrays.pop("names").tobytes().decode("utf-8", "surrogatepass").split("\n") if len(arrays["df"]) else []
    arrays["terms"] = np.frombuffer(json.dumps(names).encode(), np.uint8)
    arrays["n_terms"], arrays["sizes"] = arrays["sizes"], np.diff(arrays.pop("ends").astype(np.int64), prepend=0)
    arrays["n_texts"], arrays["zone_of"] = arrays.pop("texts"), arrays.pop("zones")
    arrays["zones"] = arrays.pop("zone_names")
    return arrays | {"ngrams": np.zeros((0, 2), np.int32), "chars": np.zeros(0, np.int32)}
