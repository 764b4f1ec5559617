"""A plan is that of the training it stands for; a training that does not fit into memory is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus
from textcat.recipes.recipe import read_recipe
from textcat.training import plan as plans
from textcat.training.checks import TrainingOptions
from textcat.training.costs import MeasuredStages, sampled
from textcat.training.memory import available_memory, used_memory
from textcat.training.plan import check_memory, extrapolate_line, refusal
from textcat.training.steps import train_and_evaluate


def plan_training(corpus, recipe, why="", **options):
    return plans.plan_training(corpus, recipe, TrainingOptions(**options), why=why)


@pytest.fixture(scope="module")
def corpus(newswire):
    return newswire


@pytest.fixture(scope="module")
def part(corpus):
    """A corpus of which every training is short."""
    return Corpus.from_documents("part", [*corpus.train[:200], *corpus.test[:40]])


@pytest.fixture(scope="module")
def many():
    return read_recipe("many-topics").with_settings(["topics.shortlist=5"])


def size_of(tagger, folder):
    return sum(file.stat().st_size for file in textcat.save(tagger, folder).iterdir())


def test_the_plan_of_a_small_corpus_has_the_topics_stages_and_size_of_its_model(part, many, tmp_path):
    for recipe in (read_recipe("default"), many):
        plan, stages = plan_training(part, recipe, why="asked for"), Stages()
        tagger = train_and_evaluate(part, recipe, stages=stages)
        assert (plan.recipe, plan.why, plan.corpus) == (recipe.name, "asked for", "part")
        assert (plan.documents, plan.test_documents, plan.topics) == (200, 40, len(part.topics))
        assert {*plan.seconds} == {*plan.processor_seconds} == {*stages.seconds, "save"}
        assert plan.model_bytes == pytest.approx(size_of(tagger, tmp_path / recipe.name), rel=0.05)


def test_a_training_with_promises_is_planned_though_its_samples_are_too_small_for_them(part):
    recipe = read_recipe("default").with_values({"promise": {"precision": 0.9}})
    assert plan_training(part, recipe).documents == 200


def test_planning_changes_neither_the_corpus_nor_what_is_trained_on_it(part):
    before = [(dict(document.zones), document.topics) for document in part.train]
    plan_training(part, read_recipe("default"))
    assert [(dict(document.zones), document.topics) for document in part.train] == before


@pytest.mark.parametrize("changed", [{"FEW": 100}, {"TOPICS": 20}], ids=str)
def test_from_a_sample_of_documents_or_topics_the_size_of_the_model_is_planned(corpus, changed, monkeypatch, tmp_path):
    recipe = read_recipe("default")
    for name, value in changed.items():
        monkeypatch.setattr(plans, name, value)
    plan = plan_training(corpus, recipe, keep_support="none")
    size = size_of(textcat.train(corpus, recipe, keep_support="none"), tmp_path / "model")
    assert 1 / 1.5 < plan.model_bytes / size < 1.5


def test_samples_keep_as_many_support_documents_as_the_whole(part, monkeypatch):
    recipe = read_recipe("default")
    kept = plan_training(part, recipe).model_bytes
    monkeypatch.setattr("textcat.training.checks.MOST_KEPT", len(part.train) - 1)
    assert plan_training(part, recipe).model_bytes < 0.9 * kept


def test_rows_are_planned_as_training_chooses_them(corpus, many, monkeypatch):
    chars = many.with_settings(["features.chars=4", "features.char_weight=0.7", "features.char_max_df=0.01"])
    monkeypatch.setattr("textcat.training.row_choice.LEAST_GAIN", 0.0)
    half = Corpus.from_documents("half", [*corpus.train[:400], *corpus.test[:40]])  # with fewer, nothing is chosen
    chosen, fixed = plan_training(half, many), plan_training(half, chars)
    assert chosen.model_bytes == pytest.approx(fixed.model_bytes, rel=0.01)
    assert "choose rows" in chosen.seconds
    assert "choose rows" not in fixed.seconds


def test_without_test_documents_the_plan_has_the_stages_of_cross_validation_or_of_the_sample(corpus, many):
    untested = Corpus.from_documents("untested", corpus.train[:60])
    assert "cross-validate" in plan_training(untested, read_recipe("default")).seconds
    assert "held-out sample" in plan_training(untested, many).seconds


def test_rows_on_disk_are_planned_on_disk_and_leave_nothing_there(part, tmp_path):
    plan_training(part, read_recipe("default"), rows_dir=tmp_path / "rows")
    assert list(tmp_path.iterdir()) == []


def test_a_sample_has_the_asked_for_documents_and_topics_in_copies(corpus):
    sample = sampled(corpus, 100, 10)
    assert (len(sample.train), len(sample.topics)) == (100, 10)
    assert len(sample.test) == len(corpus.test) * 100 // 721
    sample.train[0].zones.clear()
    assert all(document.zones for document in corpus.train)


def test_the_peak_of_a_stage_is_what_it_took_even_if_it_was_given_back():
    stages = MeasuredStages()
    if used_memory() is None:
        pytest.skip("system: it does not report memory")
    with stages.stage("first"):
        taken = bytearray(b"\1") * 100_000_000
        del taken
    with stages.stage("second"):
        pass
    assert 95e6 < stages.memory["first"] < 130e6
    assert stages.memory["second"] < 30e6
    assert [*stages.taken] == [*stages.seconds] == ["first", "second"]


@given(st.tuples(*[st.floats(1, 1e6)] * 3), st.tuples(*[st.floats(0, 1e6)] * 2), st.floats(0, 1))
def test_what_is_extrapolated_grows_by_the_least_share_and_at_most_in_proportion(sizes, values, least):
    x1, x2, x = sorted(sizes)
    y = extrapolate_line((x1, x2), values, x, least)
    assert values[1] * (1 + least * (x / x2 - 1)) * (1 - 1e-9) - 1e-9 <= y <= values[1] * x / x2 * (1 + 1e-9) + 1e-9


def test_a_straight_line_is_extrapolated_to_itself():
    assert extrapolate_line((10, 40), (7.0, 13.0), 1000) == pytest.approx(5 + 0.2 * 1000)


def test_what_does_not_fit_is_refused_with_what_it_takes_and_the_remedy(part, monkeypatch):
    monkeypatch.setattr(plans, "available_memory", lambda: 50_000)
    with pytest.raises(
        TextcatError, match=r"^Recipe default would take some \d+\.\d GB of memory and .* are available: k"
    ):
        textcat.train(part, read_recipe("default"))
    monkeypatch.setattr(plans, "available_memory", lambda: None)
    check_memory(part, read_recipe("default"))


def test_the_remedy_for_thousands_of_topics_without_a_shortlist_is_a_shortlist(part, many):
    recipe = read_recipe("short-texts")
    plan = replace(plan_training(part, recipe), topics=26_802, peak_memory=31 * 10**9, available_memory=16 * 10**9)
    assert not plan.fits
    assert "--recipe many-topics" in refusal(plan, recipe)
    assert "features.chars=0" in refusal(plan, recipe)
    assert "--recipe" not in refusal(plan, many)
    assert replace(plan, peak_memory=None).fits


def test_a_corpus_that_cannot_be_trained_on_is_refused_as_by_training(corpus):
    for empty in (Corpus("empty", [], [], ()), Corpus("none", corpus.train, corpus.test, ())):
        with pytest.raises(TextcatError, match=r"[Nn]o topic"):
            plan_training(empty, read_recipe("default"))


def test_a_small_training_is_not_planned(corpus, monkeypatch):
    monkeypatch.setattr(plans, "plan_training", lambda *_, **__: pytest.fail("planned"))
    check_memory(corpus, read_recipe("default"))


def test_the_memory_available_has_that_which_is_used():
    used, available = used_memory(), available_memory()
    assert (available is None) == (used is None)
    assert available is None or used <= available < 2**50
