"""Names of before 0.1.0 → today's: the one place where models, pools, runs and sessions written then are translated."""

import re
from collections.abc import Mapping
from typing import Any

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


def todays_recipe(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a stored recipe with today's fields and, if it has one, today's name."""
    recipe: dict[str, Any] = dict(entries)
    for section, fields in entries.items():
        if isinstance(fields, dict):
            recipe[section] = {FIELDS.get(name, name): value for name, value in fields.items()}
    if "name" in recipe:
        recipe["name"] = RECIPES.get(recipe["name"], recipe["name"])
    return recipe


def todays_fact(fact: Any) -> Any:
    """Return what a run in a folder says of the recipe that it began with, such as ``best ({'tokens': …})``."""
    if not isinstance(fact, str):
        return fact
    name, space, terms = fact.partition(" ")
    terms = re.sub("'(apart|fold_plurals)':", lambda match: f"'{FIELDS[match[1]]}':", terms)
    return RECIPES.get(name, name) + space + terms


def todays_counts(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a model's training counts with the names and values of today."""
    counts = {_OF_COUNTS.get(name, name): value for name, value in entries.items()}
    keep_support = "ids" if counts["keep_support"] == "documents" else counts["keep_support"]
    return counts | {"keep_support": keep_support, "terms_of": todays_recipe(counts["terms_of"])}


def todays_line(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of a session's journal: a keyword was a mark, and an adjudicated answer was settled."""
    if "mark" in line:
        line["keyword"] = line.pop("mark")
    for answer in line.get("answers", ()):
        if answer.get("source") == "settled":
            answer["source"] = "adjudicated"
    return line
