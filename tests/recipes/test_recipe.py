"""Recipes: what is shipped works, options go before the file, mistakes are told in a sentence."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every

from textcat.base.errors import TextcatError
from textcat.base.settings import format_value
from textcat.features.settings import TokenSettings
from textcat.features.tfidf import TfIdf
from textcat.margin.learners import LEARNERS
from textcat.recipes.recipe import Recipe, read_recipe, recipes
from textcat.training.tune import to_toml


@every("name", recipes())
def test_every_shipped_recipe_makes_features_and_a_learner(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.title
    assert isinstance(recipe.make_features(), TfIdf)
    assert isinstance(recipe.make_learner(), LEARNERS[recipe.learner["name"]])


def test_the_recipe_of_2002_has_the_settings_of_the_paper():
    learner = read_recipe("paum-2002").make_learner()
    assert (learner.tau_neg, learner.tau_pos, learner.lambda_, learner.eta) == (1, 50, 1, 1)
    assert not read_recipe("paum-2002").make_features().sublinear_tf


def test_a_recipe_of_the_users_own_is_given_by_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "Mine"\n[tokens]\nlang = "de"\n'
        '[features]\nmin_df = 2\nzones = { title = 3 }\n[learner]\nname = "pam"\ntau = 2\n'
    )
    recipe = read_recipe(path)
    features, learner = recipe.make_features(), recipe.make_learner(n_jobs=2)
    assert (recipe.name, features.tokens.lang, features.min_df, features.zones) == ("mine", "de", 2, {"title": 3})
    assert (type(learner), learner.tau, learner.n_jobs) == (LEARNERS["pam"], 2, 2)
    assert Recipe.from_dict(recipe.as_dict()) == recipe


def test_an_empty_recipe_has_the_defaults(tmp_path):
    (tmp_path / "empty.toml").touch()
    recipe = read_recipe(tmp_path / "empty.toml")
    assert recipe.make_features().get_params(deep=False).keys() == TfIdf().get_params(deep=False).keys()
    assert repr(recipe.make_learner()) == repr(LEARNERS["paum"]())


def test_changes_replace_what_is_given_and_leave_the_recipe_as_it_was():
    recipe = Recipe("mine", learner={"tau_neg": 1.0, "eta": 2.0})
    changed = recipe.changed(tau_neg=None, tau_pos=5.0, eta=3.0)
    assert changed.learner == {"name": "paum", "tau_neg": 1.0, "tau_pos": 5.0, "eta": 3.0}
    assert recipe.learner == {"name": "paum", "tau_neg": 1.0, "eta": 2.0}


@every(
    "section, settings, message",
    [
        ("learner", {"eta": 0}, "'eta' parameter of PAUM must be"),
        ("learner", {"eta": "1"}, r"'eta' in \[learner\] of .* cannot be '1'; give a number\."),
        ("learner", {"eta": True}, r"'eta' in \[learner\] of .* cannot be True"),
        ("learner", {"max_epochs": 2.5}, r"'max_epochs' in \[learner\] of .* cannot be 2\.5; give a whole number\."),
        ("learner", {"rho": []}, r"'rho' in \[learner\] of .* cannot be \[\]; give a number or a text\."),
        ("learner", {"seed": -1}, "'seed' parameter of PAUM must be"),
        ("learner", {"name": "pa", "tau_pos": 1.0}, r"no field 'tau_pos' in \[learner\]"),
        ("learner", {"warm_start": True}, r"no field 'warm_start' in \[learner\]"),
        ("features", {"zones": {"title": "2"}}, r"'zones' in \[features\] of .* cannot be"),
        ("features", {"sublinear_tff": True}, r"Did you mean 'sublinear_tf'\?"),
        ("tokens", {"lowercase": 1}, r"'lowercase' in \[tokens\] of .* cannot be 1; give true or false\."),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_read(section, settings, message):
    with pytest.raises(TextcatError, match=message) as error:
        Recipe("mine", **{section: settings}).check()
    assert re.search("[Rr]ecipe mine[ :.]", str(error.value))


@pytest.mark.parametrize(
    ("section", "settings", "message"),
    [
        ("tokens", {"segmenter": "jieba"}, "There is no segmenter 'jieba'"),
        ("tokens", {"normal_form": "nfd"}, "normal_form is 'nfd': give 'nfc' or 'none'"),
        ("features", {"weighting": "bm25", "sublinear_tf": True}, "leave one of them out"),
        ("topics", {"shortlist": -1}, "shortlist in .topics. cannot be -1"),
        ("topics", {"shortlists": 1}, "no field 'shortlists'.* Did you mean 'shortlist'"),
        ("ranker", {"C": 0}, "C cannot be 0"),
        ("tags", {"strategy": "singel"}, "No strategy 'singel'.* Did you mean 'single'"),
        ("tags", {"folds": 2**63}, "'folds' in .tags. .* cannot be 9223372036854775808; give at most"),
    ],
)
def test_a_section_of_python_of_a_file_or_of_a_setting_is_checked_where_it_is_given(
    tmp_path, section, settings, message
):
    with pytest.raises(TextcatError, match=message) as in_python:
        Recipe("own", **{section: settings})
    lines = "".join(f"{name} = {format_value(value)}\n" for name, value in settings.items())
    (tmp_path / "own.toml").write_text(f"[{section}]\n{lines}")
    with pytest.raises(TextcatError) as in_file:
        read_recipe(tmp_path / "own.toml")
    assert str(in_file.value) == str(in_python.value)
    if "no field" not in message:
        with pytest.raises(TextcatError, match=message):
            Recipe("own").with_settings(f"{section}.{name}={format_value(value)}" for name, value in settings.items())


def test_sections_are_records_of_all_settings_and_a_recipe_is_the_same_if_it_is_made_of_them():
    recipe = Recipe("mine", tokens={"lang": "de"}, tags={"strategy": "single"})
    assert (recipe.tokens.lang, recipe.tokens.lowercase, recipe.tags.strategy, recipe.tags.folds) == (
        "de",
        True,
        "single",
        5,
    )
    assert replace(recipe) == recipe == Recipe("mine", recipe.tokens, tags=recipe.tags)
    assert replace(recipe, tokens=TokenSettings("fr")).make_tokens().lang == "fr"
    with pytest.raises(TextcatError, match="There is no segmenter 'x'"):
        replace(recipe, tokens=TokenSettings(segmenter="x"))


def test_a_recipe_of_a_stranger_is_read_and_stored_without_importing_its_learner(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    recipe = Recipe("theirs", learner={"name": "trap:Learner", "tau": 1})
    assert recipe.as_dict()["learner"] == {"name": "trap:Learner", "tau": 1}
    assert "trap" in to_toml(recipe)


def test_there_is_no_recipe_of_a_name_that_is_neither_shipped_nor_a_toml_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("paums").touch()
    with pytest.raises(TextcatError, match=r"No recipe 'paums'\. Known recipes: .*Did you mean 'paum'\?"):
        read_recipe("paums")


def test_another_learner_keeps_of_a_recipe_what_all_learners_share_and_is_told_by_name_and_title():
    recipe = read_recipe("paum").changed("micra", eta=50.0, lambda_=2.0)
    assert recipe.learner == {"name": "micra", "lambda_": 2.0, "eta": 50.0}
    assert "eta" not in read_recipe("default").changed("cramma").learner  # the η of PAUM is 1, and means something else
    assert (recipe.name, recipe.title) == ("paum-micra", "micra, on the features of the recipe paum")
    assert recipe.features == read_recipe("paum").features
    assert read_recipe("paum").changed("paum", tau_neg=1.0).name == "paum"


def test_settings_are_typed_and_leave_the_recipe_as_it_was():
    recipe = read_recipe("paum")
    changed = recipe.with_settings(
        [
            "learner.tau_pos=50",
            "features.zones={title=2}",
            'features.zone_terms=["title"]',
            "tokens.lang=de",
            "learner.rho=R",
        ]
    )
    assert changed.learner == {**recipe.learner, "tau_pos": 50, "rho": "R"}
    assert changed.features == replace(recipe.features, zones={"title": 2}, zone_terms=["title"])
    assert changed.tokens == replace(recipe.tokens, lang="de")
    assert read_recipe("paum") == recipe
    assert recipe.with_settings([]) == recipe


def test_a_complete_recipe_has_no_name_and_no_recipe_for_other_corpora():
    complete = read_recipe("default").complete()
    assert (complete.name, complete.many, complete.short, complete.few) == ("", None, None, None)


def test_a_learner_is_set_before_its_parameters_wherever_it_stands():
    assert read_recipe("paum").with_settings(["learner.beta=0.3", "learner.name=micra"]) == read_recipe("paum").changed(
        "micra", beta=0.3
    )


@every(
    "setting, message",
    [
        ("tau_pos=5", "has no field 'tau_pos'.* Did you mean 'learner.tau_pos'"),
        ("learner.tau_poss=5", "has no field 'learner.tau_poss'.* Did you mean 'learner.tau_pos'"),
        ("learner.beta=5", "has no field 'learner.beta'"),
        ("learner.eta=x", "learner.eta cannot be 'x'; give a number"),
        ("learner.max_epochs=2.5", "learner.max_epochs cannot be '2.5'; give a whole number"),
        ("tokens.lowercase=yes", "tokens.lowercase cannot be 'yes'; give true or false"),
        ("features.zones=title", "features.zones cannot be 'title'; give a table of numbers"),
        ("learner.name=mikra", "Did you mean 'micra'"),
        ("learner.eta", "cannot be set by 'learner.eta': write SECTION.FIELD=VALUE"),
        ("title=mine", "has no field 'title'"),
    ],
)
def test_a_wrong_assignment_is_told_with_what_would_be_right(setting, message):
    with pytest.raises(TextcatError, match=message):
        read_recipe("paum").with_settings([setting])


@every("learner", LEARNERS)
def test_every_field_of_a_recipe_is_explained(learner):
    recipe = Recipe("mine", {"lang": "de"}, learner={"name": learner})
    fields = {(field.section, field.name): field for field in recipe.fields()}
    sections = {"tokens", "features", "topics", "learner", "ranker", "tags", "promise"}
    assert {section for section, _ in fields} == sections
    for (section, name), field in fields.items():
        assert field.explanation.endswith("."), (section, name)
        assert field.type
        if field.value is not None and section != "features":
            assert recipe.with_settings([f"{section}.{name}={json.dumps(field.value)}"])
    assert (fields["tokens", "lang"].default, fields["tokens", "lang"].value) == ("en", "de")
    assert fields["features", "dtype"].default == "float32"
    assert fields["learner", "name"].value == learner


def test_a_recipe_is_printed_in_one_line():
    recipe = Recipe("mine", {"lang": "de"}, learner={"eta": 2.0})
    assert repr(recipe) == "Recipe('mine', tokens={'lang': 'de'}, learner={'name': 'paum', 'eta': 2.0})"


def test_a_recipe_file_that_is_missing_is_told_with_the_nearest_one(tmp_path):
    (tmp_path / "mine.toml").touch()
    with pytest.raises(
        TextcatError, match=r"Cannot read the recipe .*mines\.toml: No such file.*Did you mean '.*mine\.toml'"
    ):
        read_recipe(tmp_path / "mines.toml")


def test_a_learner_that_does_not_exist_is_told_with_the_nearest_one():
    with pytest.raises(TextcatError, match=r"No learner 'mikra'\. Known learners: alma, .*Did you mean 'micra'\?"):
        read_recipe("paum").changed("mikra")


@every("name", LEARNERS)
def test_every_learner_can_stand_in_a_recipe_but_not_on_a_kernel(name):
    assert isinstance(Recipe("mine", learner={"name": name}).make_learner(), LEARNERS[name])
    with pytest.raises(TextcatError, match="no field 'kernel' in"):
        Recipe("mine", learner={"name": name, "kernel": "rbf"}).make_learner()


def test_probabilities_of_learners_are_no_matter_of_recipes():
    assert not any(field.name == "probability" for field in Recipe("r").fields() if field.section == "learner")
    with pytest.raises(TextcatError, match=r"no field 'probability' in \[learner\]"):
        Recipe("r", learner={"probability": True}).make_learner()
    assert Recipe("r", tags={"probability": 0.5}).tags.probability == 0.5


def test_one_setting_may_be_given_as_a_text():
    assert read_recipe("paum").with_settings("tags.strategy=single") == read_recipe("paum").with_settings(
        ["tags.strategy=single"]
    )


@every(
    "parameters, message",
    [
        (
            {"strategy": "single"},
            r"'strategy' is no parameter of the learner, but of \[tags\]: .*'tags.strategy=single'",
        ),
        ({"lang": "de"}, r"but of \[tokens\]"),
        ({"nosuch": 1}, r"no field 'nosuch' in \[learner\]"),
        ({"tau_pos": float("nan")}, "tau_pos"),
        ({"eta": -1.0}, "eta"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"max_epochs": 10**20}, "'max_epochs' in .* cannot be 1.*; give at most 9"),
        ({"seed": "x"}, "'seed' in .* cannot be 'x'"),
    ],
)
def test_parameters_are_checked_where_they_are_changed(parameters, message):
    with pytest.raises(TextcatError, match=message):
        read_recipe("default").changed(**parameters)


@pytest.mark.parametrize(
    "line",
    ["[tags]\nstrategy = 'best'", "[tags]\nprobability = nan", "[tokens]\nmemo_bytes = -1", "[learner]\neta = inf"],
)
def test_a_recipe_file_is_checked_when_it_is_read(tmp_path, line):
    (tmp_path / "own.toml").write_text(line)
    with pytest.raises(TextcatError):
        read_recipe(tmp_path / "own.toml")
