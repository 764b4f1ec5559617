"""Spaces give recipes, recipes become trials, and trials that are known are not run again."""

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from margin_recipes import PLAIN, with_margins

import textcat
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.corpus.documents import Document
from textcat.evaluation.at_k import evaluate_at_k
from textcat.recipes.recipe import Recipe, read_recipe, recipes
from textcat.training.cross_validation import (
    EXPECTED,
    RARE,
    Trial,
    hold_out_sample,
)
from textcat.training.tune import (
    ParameterRange,
    best_trial,
    margin_settings,
    measure_held_out,
    read_space,
    run_trials,
    sample_corpus,
    to_toml,
)

SPACE = """
[features]
sublinear_tf = [true, false]
[learner]
tau_neg = { low = -1.0, high = 1.0 }
tau_pos = { low = 1, high = 64, log = true }
"""


@pytest.fixture(scope="module")
def corpus():
    return textcat.Corpus.from_documents("part", textcat.open_corpus("newswire").train[:150])


@pytest.fixture
def space_file(tmp_path):
    def write(text):
        path = tmp_path / "space.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def run(corpus, folder, space=None, sampler="grid", n_trials=4, stages=None, start=Recipe("mine"), **more):  # noqa: B008
    options = {"n_folds": 2, "n_repeats": 1, "seed": 0, "n_jobs": 1} | more
    return run_trials(corpus, start, space, sampler, n_trials, folder, stages or Stages(), **options)


def test_a_space_is_read_as_lists_and_ranges(space_file):
    varied = read_space(space_file(SPACE)).varied
    assert varied == {
        ("features", "sublinear_tf"): [True, False],
        ("learner", "tau_neg"): ParameterRange(-1.0, 1.0),
        ("learner", "tau_pos"): ParameterRange(1, 64, log=True),
    }


def test_a_grid_has_every_combination_and_its_recipes_work(space_file):
    space = read_space(space_file("[features]\nmin_df = [1, 2]\n[learner]\ntau_pos = [1.0, 5.0, 'prevalence']\n"))
    found = space.grid(Recipe("mine", learner={"name": "paum"}))
    assert len(found) == 6
    assert len({json.dumps(recipe.as_dict()) for recipe in found}) == 6
    for recipe in found:
        recipe.check()


def test_drawn_recipes_lie_in_the_space_and_are_the_same_for_the_same_seed(space_file):
    space = read_space(space_file(SPACE))
    drawn = space.sample(Recipe("mine"), 50, seed=1)
    assert drawn == space.sample(Recipe("mine"), 50, seed=1) != space.sample(Recipe("mine"), 50, seed=2)
    for recipe in drawn:
        assert -1 <= recipe.learner["tau_neg"] <= 1
        assert recipe.learner["tau_pos"] in range(1, 65)
    kinds = [recipe.features.sublinear_tf for recipe in drawn]
    assert kinds == sorted(kinds), "recipes of the same features follow each other, to share their rows"
    assert len(set(kinds)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[learner", "is not valid TOML"),
        ("[model]\nx = [1]", "no field 'model' in the space"),
        ("learner = 3", "cannot be 3; give a table"),
        ("", "is empty: list values of a parameter"),
        ("[learner]\neta = 3", "eta in [learner] must be a list of values or a range such as"),
        ("[learner]\neta = []", "eta in [learner] must be a list of values"),
        ("[learner]\neta = { low = 2, high = 1 }", "eta in [learner] must be a list of values"),
        ("[learner]\neta = { low = 0, high = 1, log = true }", "eta in [learner] must be a list of values"),
    ],
)
def test_a_file_that_is_no_space_is_told_in_a_sentence(space_file, text, said):
    with pytest.raises(TextcatError) as told:
        read_space(space_file(text))
    assert said in str(told.value)


def test_what_cannot_be_searched_is_told_in_a_sentence(corpus, space_file, tmp_path):
    with pytest.raises(TextcatError, match=r"Cannot read the space .*absent\.toml: No such file"):
        run(corpus, None, tmp_path / "absent.toml")
    with pytest.raises(TextcatError, match="No sampler 'all'; choose one of grid, random, tpe"):
        run(corpus, None, sampler="all")
    with pytest.raises(TextcatError, match="The sampler random draws from a space: name its file with --space"):
        run(corpus, None, sampler="random")
    with pytest.raises(TextcatError, match=r"tau_neg in \[learner\] of the space is a range, which has no end"):
        run(corpus, None, space_file(SPACE))
    with pytest.raises(TextcatError, match="no field 'taupos' in"):
        run(corpus, None, space_file("[learner]\ntaupos = [1]"))


def test_a_study_gives_its_trials_the_best_first_and_goes_on_from_its_journal(corpus, space_file, tmp_path):
    space = space_file("[learner]\ntau_pos = [1.0, 5.0, 20.0]\n")
    first = run(corpus, tmp_path / "study", space)
    figures = [trial.goal for trial in first]
    assert figures == sorted(figures, reverse=True)
    journal = tmp_path / "study" / "trials.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    # killed while it wrote the last line: that trial is run again, and nothing else
    journal.write_text("\n".join(lines[:2]) + "\n" + lines[2][:40] + "\n", encoding="utf-8")
    again = run(corpus, tmp_path / "study", space)
    assert [trial.recipe for trial in again] == [trial.recipe for trial in first]
    assert repr(again) == repr(first)
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 4
    run(corpus, tmp_path / "study", space, seed=1)  # other folds: other figures
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 7


@pytest.mark.parametrize("start", [Recipe("mine"), Recipe("short", topics={"description_copies": 1, "shortlist": 5})])
def test_a_trial_of_other_labels_or_texts_is_run_again(corpus, space_file, tmp_path, start):
    space = space_file("[features]\nmin_df = [2]\n")
    folds = {"n_folds": None} if start.topics.shortlist else {}
    relabelled = [replace(document, topics=corpus.topics[:1]) for document in corpus.train]
    retold = [replace(document, zones={"body": f"wheat {document.id}"}) for document in corpus.train]
    described = replace(corpus, descriptions={corpus.topics[0]: "of wheat"})
    corpora = corpus, replace(corpus, train=relabelled), replace(corpus, train=retold), described
    for n, of_another_content in enumerate(corpora, start=1):
        run(of_another_content, tmp_path, space, start=start, n_repeats=None, **folds)
        run(of_another_content, tmp_path, space, start=start, n_repeats=None, **folds)
        assert len((tmp_path / "trials.jsonl").read_text(encoding="utf-8").splitlines()) == n


def test_equal_recipes_are_tried_once(corpus, tmp_path, space_file):
    calls = []

    class Counting(Stages):
        @contextmanager
        def stage(self, name, total=None):
            assert (name, total) == ("cross-validate", 4)
            yield calls.append

    space = space_file("[learner]\nname = ['pam', 'pam']\ntau = [1.0]\n")
    trials = run(corpus, tmp_path, space, stages=Counting())
    assert [trial.recipe.learner for trial in trials] == [{"name": "pam", "tau": 1.0}] * 2
    assert sum(calls) == 4
    assert len((tmp_path / "trials.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_random_and_tpe_try_as_many_as_they_are_asked_to(corpus, space_file):
    space = space_file(SPACE)
    assert len(run(corpus, None, space, "random", 3)) == 3
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'textcat-margin[tune]'")
    found = run(corpus, None, space, "tpe", 14)
    assert len(found) == 14
    assert repr(found) == repr(run(corpus, None, space, "tpe", 14))


SHORT = Recipe("short", topics={"description_copies": 1, "shortlist": 5})
WITHOUT_FOLDS = {"n_folds": None, "n_repeats": None}


def figures_of(trials):
    return {json.dumps(trial.recipe.as_dict()): trial.as_dict() for trial in trials}


def test_recipes_with_a_shortlist_are_measured_on_documents_that_are_held_out(corpus, space_file, tmp_path):
    space = space_file("[topics]\nshortlist = [5, 8]\n[features]\nmin_df = [1, 2]\n")
    first = run(corpus, tmp_path, space, start=SHORT, n_jobs=3, **WITHOUT_FOLDS)
    figures = [trial.measures["ndcg@10"]["ALL"] for trial in first]
    assert [trial.goal for trial in first] == figures == sorted(figures, reverse=True)
    assert {trial.measured_on for trial in first} == {"15 training documents held out, trained on 135 others"}
    assert [*first[0].measures] == ["ndcg@10", "precision@1", "recall@10", "psp@5", "mean_support"]
    # one job, none kept: the same to the bit
    again = run(corpus, None, space, start=SHORT, **WITHOUT_FOLDS)
    assert repr(figures_of(again)) == repr(figures_of(first))
    journal = tmp_path / "trials.jsonl"
    before = journal.read_text(encoding="utf-8")
    assert repr(run(corpus, tmp_path, space, start=SHORT, **WITHOUT_FOLDS)) == repr(first)
    assert journal.read_text(encoding="utf-8") == before, "kept trials are not run again"
    other = run(corpus, tmp_path, space, start=SHORT, seed=1, **WITHOUT_FOLDS)
    assert repr(figures_of(other)) != repr(figures_of(first)), "the seed draws what is held out"
    assert best_trial(first).goal >= first[0].goal - 0.0005
    alone = run(
        corpus, None, space_file("[topics]\nshortlist = [8]\n[features]\nmin_df = [2]\n"), start=SHORT, **WITHOUT_FOLDS
    )
    assert repr(figures_of(alone).popitem()[1]) == repr(figures_of(first)[json.dumps(alone[0].recipe.as_dict())])


def test_a_study_with_shortlists_gives_what_training_without_the_held_out_documents_gives(corpus):
    (trial,) = measure_held_out(corpus, [SHORT], seed=3)
    part = hold_out_sample(corpus, seed=3)
    train, test = ([corpus.train[i] for i in positions] for positions in part)
    split = textcat.Corpus("split", train, test, corpus.topics)
    tagger = textcat.train(split, SHORT)
    top = tagger.decisions.first_topics(tagger.scores(test), 10)
    measured = evaluate_at_k(top, split.labels(test), tagger.topics, tagger.facts.train_sizes, len(train))
    for name, k in (("ndcg", 10), ("precision", 1), ("recall", 10), ("psp", 5)):
        expected = {row.band: row[f"{name}@{k}"] for row in measured.bands}
        found = {band: None if value != value else value for band, value in trial.measures[f"{name}@{k}"].items()}
        assert found == expected
    support = np.array(tagger.facts.per_topic["support"])
    small = (tagger.facts.train_sizes > 0) & (tagger.facts.train_sizes < 6)
    assert trial.measures["mean_support"]["1-5"] == support[small].mean()


def test_of_a_large_corpus_a_sample_is_trained_on_and_no_other_text_is_read(corpus, monkeypatch):
    monkeypatch.setattr("textcat.training.tune.MOST_TRAINED", 60)
    monkeypatch.setattr("textcat.training.cross_validation.MOST_HELD_OUT", 10)
    sample, part = sample_corpus(corpus, seed=0)
    assert (len(sample.train), len(part.trained), len(part.held_out)) == (70, 60, 10)
    assert sorted([*part.trained, *part.held_out]) == list(range(70))
    held_out = hold_out_sample(corpus, seed=0).held_out
    assert [sample.train[i] for i in part.held_out] == [corpus.train[i] for i in held_out]
    chosen = {document.id for document in sample.train}
    others = [Document(d.id, d.zones if d.id in chosen else {}, d.topics) for d in corpus.train]
    (trial,), (same,) = (
        measure_held_out(each, [SHORT]) for each in (corpus, textcat.Corpus("x", others, [], corpus.topics))
    )
    assert trial.measured_on == "10 training documents held out, trained on 60 others"
    assert repr(trial) == repr(same)


def test_what_does_not_go_with_shortlists_is_refused(corpus, space_file):
    def refused(text, **options):
        space = space_file(text) if text else None
        with pytest.raises(TextcatError) as told:
            run(corpus, None, space, start=SHORT, **{**WITHOUT_FOLDS, **options})
        return str(told.value)

    assert "the margins of the study are for recipes without one: name a space with --space" in refused("")
    assert "leave --folds and --repeats out" in refused("[learner]\neta = [1.0]", n_folds=3)
    for values in ("[0, 10]", "{ low = 0, high = 9 }"):
        assert "leave 0 out" in refused(f"[topics]\nshortlist = {values}", sampler="random")
    assert "cannot be -1; give 0 or more" in refused("[topics]\nshortlist = [-1, 5]")
    without_topics = [Document(d.id, d.zones) for d in corpus.train[:-1]] + [corpus.train[-1]]
    with pytest.raises(TextcatError, match="None of the 15 training documents of corpus part that are held out has a"):
        next(measure_held_out(textcat.Corpus("part", without_topics, [], corpus.topics), [SHORT], seed=1))


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_is_written_as_it_is_read(name, tmp_path):
    recipe = read_recipe(name)
    path = tmp_path / f"{name}.toml"
    path.write_text(to_toml(recipe), encoding="utf-8")
    assert read_recipe(path) == recipe


def test_only_paum_has_margins_to_compare():
    with pytest.raises(TextcatError, match=r"Recipe old trains pa; only paum has margins to compare\."):
        margin_settings(textcat.Recipe("old", learner={"name": "pa"}))


def test_the_study_of_margins_has_fixed_and_adapted_ones_each_once():
    settings = [recipe.learner for recipe in margin_settings(PLAIN)]
    assert len({tuple(sorted(map(str, learner.items()))) for learner in settings}) == len(settings) == 90
    assert sum(learner["tau_pos"] == "prevalence" for learner in settings) == 60


def test_the_best_is_the_sparsest_of_those_that_rank_as_well_as_the_yardstick():
    def trial(tau_pos, quality, sparsity):
        figures = {"ALL": quality, "TOP10": quality, EXPECTED: quality, RARE: float("nan")}
        return Trial(
            with_margins(1, tau_pos),
            {"macro_average_precision": figures, "mean_support": {"ALL": sparsity, "TOP10": sparsity}},
        )

    trials = [trial(1.0, 0.7500, 900), trial(2.0, 0.7495, 400), trial(3.0, 0.7480, 100)]
    assert best_trial(trials, tolerance=0.001).recipe.learner["tau_pos"] == 2
    assert best_trial(trials, tolerance=0).recipe.learner["tau_pos"] == 1
    assert best_trial(trials, tolerance=0.01).recipe.learner["tau_pos"] == 3
    papers = [*trials, trial(50.0, 0.7480, 300)]
    assert best_trial(papers, tolerance=0).recipe.learner["tau_pos"] == 3
