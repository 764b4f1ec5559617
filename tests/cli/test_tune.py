"""`textcat tune` and `recipes`: what they print and write, and which mistakes they tell."""

import json
import re
from pathlib import Path

import pytest
from new_files import new_file, recipe
from printed_tables import printed

from textcat.base.progress import Stages
from textcat.cli import tune
from textcat.recipes.recipe import Recipe, read_recipe, recipes
from textcat.training.cross_validation import EXPECTED, Trial


def test_trials_are_not_counted_where_all_are_tried(run, own):
    assert "--trials goes with --sampler random or tpe" in run.misuses("tune", own, "--trials", "3")


def test_tune_compares_recipes_and_writes_the_table_and_the_best(run):
    space = new_file("space.toml", b"[learner]\ntau_neg = [-0.5]\ntau_pos = [5.0, 20.0]\n")
    run("tune", "newswire", "--folds", "2", "--space", space, "--out", "study")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0].split()[:3] == ["tau_pos", "MAP", "ALL"]
    assert len(Path("study/table.md").read_text().splitlines()) == 2 + 2
    assert read_recipe("study/recipe.toml").learner["tau_pos"] in (5.0, 20.0)
    assert len(Path("study/trials.jsonl").read_text().splitlines()) == 2


def test_tune_measures_recipes_with_a_shortlist_on_documents_that_are_held_out(run, part):
    space = new_file("space.toml", b"[topics]\nshortlist = [8, 10]\n")
    run("tune", part, "--recipe", "many-topics", "--space", space, "--out", "study")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0].split()[:5] == ["shortlist", "nDCG@10", "ALL", "P@1", "ALL"]
    assert "\nMeasured on 20 training documents held out, trained on 180 others.\n" in run.out
    assert "The sparsest that ranks as well as the best by nDCG@10: shortlist=" in run.out
    assert "PSP@5 21-100" in Path("study/table.md").read_text().splitlines()[0]
    assert read_recipe("study/recipe.toml").topics.shortlist in (8, 10)
    as_json = json.loads(
        run("tune", part, "--recipe", "many-topics", "--space", space, "--out", "study", "--as", "json").out
    )
    assert as_json["chosen"] in as_json["trials"]
    assert set(as_json["trials"][0]["ndcg@10"]) == {"ALL", "1-5", "6-20", "21-100", "101-"}
    assert "leave --folds and --repeats out" in run.refuses(
        "tune", part, "--recipe", "many-topics", "--space", space, "--repeats", "1"
    )


def test_recipes_are_listed_with_what_they_are(run):
    run("recipes")
    assert (run.code, run.err) == (0, "")
    assert [line.split()[0] for line in run.out.splitlines()] == ["recipe", *recipes()]
    assert [row["recipe"] for row in json.loads(run("recipes", "--as", "json").out)] == list(recipes())


@pytest.mark.parametrize("name", ["default", "paum-2002"])
def test_a_recipe_is_printed_as_a_file_with_every_setting_explained(run, name):
    printed, fields = run("recipes", name).out, read_recipe(name).fields()
    assert read_recipe(recipe(printed)).fields() == fields
    assert max(map(len, printed.splitlines()[1:])) <= 100
    words = " ".join(re.sub(r"^# ", "", line) for line in printed.splitlines())
    for field in fields:
        assert f"{field.explanation} ({field.type}; default:" in words
        assert re.search(rf"^(# )?{field.name} =", printed, re.MULTILINE)
    as_json = json.loads(run("recipes", name, "--as", "json").out)
    assert [(row["section"], row["name"]) for row in as_json["fields"]] == [row[:2] for row in fields]
    assert "Did you mean 'default'?" in run.refuses("recipes", "defualt")


def test_tune_refuses_what_cannot_be_compared(run, own):
    mine = recipe('[learner]\nname = "pa"\n')
    assert "only paum has margins to compare" in run.refuses("tune", "newswire", "--recipe", mine)
    assert "cannot be split into 7 folds" in run.refuses("tune", own, "--folds", "7")


def test_a_study_prints_what_varies_and_the_recipe_to_take_and_writes_both(tmp_path):
    def trial(expected, sparsity, **learner):
        recipe = Recipe("mine", features={"min_df": 2}, learner={"tau_neg": -0.5, **learner})
        quality = {"ALL": 0.75, "RARE": float("nan"), EXPECTED: expected}
        return Trial(recipe, {"macro_average_precision": quality, "mean_support": {"ALL": sparsity}})

    trials = [trial(0.75, 462.0, tau_pos=20.0), trial(0.7499, 400.0, tau_pos="prevalence", kappa=-10.0)]
    lines = printed(tune.show_trials, trials, trials[1], Stages(), tmp_path, "text")
    assert lines[1].split()[:2] == ["20", "-"]
    assert lines[2].split()[:2] == ["prevalence", "-10"]
    assert "The sparsest that ranks as well as the best over EXPECTED: tau_pos=prevalence, kappa=-10.0" in lines
    table = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert table[2].startswith("| 20 | - | 0.7500 |")
    assert read_recipe(tmp_path / "recipe.toml").learner == trials[1].recipe.learner
