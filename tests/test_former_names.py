"""What was written before 0.1.0 is read with the names of today."""

import pytest

from textcat.former_names import RECIPES, todays_fact, todays_line, todays_recipe
from textcat.recipes.recipe import Recipe, read_recipe, recipes
from textcat.teaching import journal
from textcat.teaching.journal import SessionJournal


def test_stored_recipes_have_the_names_of_today():
    stored = {"name": "teach", "title": "t", "tokens": {"fold_plurals": True}, "features": {"apart": ["title"]}}
    recipe = Recipe(**todays_recipe(stored))
    today = Recipe(
        "active-learning",
        {"singularize": True, "segmenter": "spacy", "normal_form": "none"},
        {"zone_terms": ["title"]},
        title="t",
    )
    assert recipe == today.complete()
    of_model = read_recipe("default").stored()
    assert {"version": of_model["version"], **todays_recipe(of_model)} == of_model
    assert set(RECIPES.values()) < set(recipes())


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("best ({'tokens': {'fold_plurals': True}})", "default ({'tokens': {'singularize': True}})"),
        ("mine ({'features': {'apart': True, 'b': 1}})", "mine ({'features': {'zone_terms': True, 'b': 1}})"),
        (None, None),
    ],
)
def test_a_run_that_began_with_a_recipe_goes_on_with_it(before, now):
    assert todays_fact(before) == now
    assert todays_fact(now) == now


def test_a_session_s_journal_is_read_with_keywords_and_adjudicated_answers(tmp_path):
    marked = {"topic": "t", "mark": "gold", "speaks_for": True, "person": ""}
    settled = {"person": "", "answers": [{"topic": "t", "source": "settled"}, {"topic": "u", "source": "asked"}]}
    with_names = SessionJournal.create(tmp_path, {"seed": 0})
    for line in (marked, settled):
        with_names.append(line)
    with_names.close()
    first, second = SessionJournal.open(tmp_path, read_only=True).lines
    assert (first["keyword"], "mark" in first) == ("gold", False)
    assert [answer["source"] for answer in second["answers"]] == ["adjudicated", "asked"]
    assert '"mark"' in (tmp_path / journal.JOURNAL).read_text(encoding="utf-8")
    assert todays_line(dict(first)) == first
