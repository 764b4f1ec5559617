"""A recipe measured by scores out of fold: as training measures it, in tables with the rows' own names."""

import numpy as np
import pytest
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document
from textcat.training.steps import train_and_evaluate
from textcat.training.thresholds import decisions_by_scores

TOPICS = ("fish", "fruit", "tools")
WORDS = {"fish": "cod herring", "fruit": "plum pear", "tools": "saw hammer"}
N = 30
ROWS = [
    {
        "text": f"{WORDS[TOPICS[k % 3]]} day{k % 7} market lot{k}",
        "topics": [TOPICS[k % 3], *(["fruit"] if k % 6 == 0 else [])],
    }
    for k in range(N)
]
ONE_LABEL = [{**row, "topics": row["topics"][0]} for row in ROWS]


@pytest.fixture(scope="module")
def result():
    return textcat.cross_validate(ROWS, "paum")


def test_the_evaluation_is_that_of_training_without_a_test_part(result):
    corpus = Corpus.from_records(ROWS)
    trained = train_and_evaluate(corpus, textcat.read_recipe("paum")).evaluation
    assert result.evaluation == trained
    assert result.evaluation.measured_on is textcat.MeasuredOn.CROSS_VALIDATION
    assert result.evaluation.bands[0].intervals == {}


def test_the_same_documents_have_the_same_scores_to_the_bit_by_one_job_or_by_two(result):
    evaluation, scores = textcat.cross_validate(ROWS, "paum", n_jobs=2)
    assert np.asarray(scores).tobytes() == np.asarray(result.scores).tobytes()
    assert evaluation == result.evaluation


def test_a_document_is_scored_by_what_was_learnt_from_others_only():
    unique = [Document(str(k), {"body": f"only{chr(97 + k)}"}, ("a" if k % 2 else "b",)) for k in range(10)]
    corpus, recipe = (
        Corpus.from_documents("own", unique),
        textcat.read_recipe("paum").with_settings("features.min_df=1"),
    )
    trained = textcat.evaluate(textcat.train(corpus, recipe), list(map(_record, unique)))
    held_out = textcat.cross_validate(corpus, recipe, 10).evaluation
    assert trained.bands[0]["macro_average_precision"] == 1
    assert held_out.bands[0]["macro_average_precision"] < 0.8


def test_thresholds_and_probabilities_of_few_documents_are_fitted_to_these_scores():
    corpus = Corpus.from_records(ROWS)
    fixed = {"choose_chars": False, "choose_margins": False, "choose_vectors": False, "vectors": "none"}
    recipe = textcat.read_recipe("few-documents").with_values({"topics": fixed})
    scores = np.asarray(textcat.cross_validate(corpus, recipe, recipe.tags.folds).scores)
    expected = decisions_by_scores(recipe, corpus.topics, scores, corpus.labels(corpus.train))
    decisions = textcat.train(corpus, recipe).decisions
    np.testing.assert_array_equal(decisions.thresholds, expected.thresholds)
    probabilities = (each.curves().probabilities(scores) for each in (decisions, expected))
    np.testing.assert_array_equal(*probabilities)


@pytest.mark.filterwarnings("ignore")
def test_a_new_topic_that_only_its_own_documents_were_judged_for_is_found(tmp_path):
    folder = textcat.save(textcat.train(ROWS, "few-documents", updatable=True), tmp_path / "model")
    textcat.learn(folder, [{"id": f"c{k}", "text": f"sugar cocoa {k}", "topics": ["sweets"]} for k in range(4)])
    assert [tag.topic for tag in textcat.load(folder).tag(["sugar and cocoa"])[0]] == ["sweets"]


def _record(document):
    return {"body": document.zones["body"], "topics": document.topics}


def test_test_documents_are_not_used(result):
    with_test = Corpus.from_records([*ROWS, {"text": "cod plum", "topics": ["tools"], "split": "test"}])
    evaluation, scores = textcat.cross_validate(with_test, "paum")
    np.testing.assert_array_equal(np.asarray(scores), np.asarray(result.scores))
    assert evaluation == result.evaluation


def test_scores_of_records_are_a_table_by_ids(result):
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.scores, pandas.DataFrame)
    assert [*result.scores.columns] == [*TOPICS]
    assert [*result.scores.index] == [str(number) for number in range(1, N + 1)]
    named = textcat.cross_validate([{**row, "id": f"d{k}"} for k, row in enumerate(ROWS)], "paum").scores
    assert [*named.index[:2]] == ["d0", "d1"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_scores_of_a_table_are_one_of_its_library_with_its_index(result, kind):
    library = pytest.importorskip(kind)
    columns = {"body": [row["text"] for row in ROWS], "title": [str(row["topics"]) for row in ROWS]}
    table = library.DataFrame({**columns, "label": [row["topics"] for row in ROWS]})
    if kind == "pandas":
        table.index = range(100, 100 + N)
    scores = textcat.cross_validate(table, "paum", text="body", topics="label").scores
    assert isinstance(scores, library.DataFrame)
    np.testing.assert_array_equal(scores.to_numpy(), np.asarray(result.scores))
    if kind == "pandas":
        assert scores.index.equals(table.index)
        split = table.assign(split=["test"] + ["train", None] * ((N - 1) // 2) + ["unused"])
        part = textcat.cross_validate(split, "paum", text="body", topics="label").scores
        assert [*part.index] == [*range(101, 99 + N)]


def test_without_pandas_scores_are_an_array(monkeypatch, result):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    scores = textcat.cross_validate(ROWS, "paum").scores
    assert type(scores) is np.ndarray
    np.testing.assert_array_equal(scores, np.asarray(result.scores))


def test_intervals_are_made_of_as_many_resamples_as_are_asked_for(result):
    with_intervals = textcat.cross_validate(ROWS, "paum", bootstrap=50).evaluation
    low, high = with_intervals.bands[0].intervals["macro_average_precision"]
    assert low <= with_intervals.bands[0]["macro_average_precision"] <= high
    assert with_intervals.topics == result.evaluation.topics


def test_with_single_each_document_gets_exactly_one_topic():
    evaluation, _ = textcat.cross_validate(ONE_LABEL, "paum", single=True)
    assert evaluation.accuracy is not None
    tagger = textcat.train(ONE_LABEL, "paum", single=True)
    assert tagger.decisions.single
    assert [len(tags) for tags in tagger.tag(["cod", "plum saw", ""])] == [1, 1, 1]
    by_setting = textcat.train(ONE_LABEL, textcat.read_recipe("paum").with_settings("tags.strategy=single"))
    assert tagger.facts.recipe == by_setting.facts.recipe
    np.testing.assert_array_equal(tagger.scorer.weights, by_setting.scorer.weights)


@pytest.mark.parametrize("call", [textcat.train, textcat.cross_validate])
def test_data_of_one_label_are_told_unless_single_is_set(caplog, call):
    call(ONE_LABEL, "paum")
    assert "Every training document has exactly one topic: with single=True" in caplog.text
    caplog.clear()
    for rows, options in ((ONE_LABEL, {"single": True}), (ROWS, {})):
        call(rows, "paum", **options)
        assert "exactly one topic" not in caplog.text


@every(
    "options, message",
    [
        ({"folds": 1}, "The number of folds cannot be 1: give a whole number, 2 or more"),
        ({"folds": 2.5}, "The number of folds cannot be 2.5"),
        ({"folds": N + 1}, "30 different documents cannot be divided into 31 folds: give at most as many"),
        ({"bootstrap": -1}, "The number of resamples cannot be -1"),
        ({"bootstrap": float("nan")}, "The number of resamples cannot be nan"),
        ({"recipe": "many-topics"}, "Recipe many-topics has a shortlist, and is not cross-validated"),
        ({"bands": "nosuch"}, "nosuch"),
        ({"text": "body"}, "no field 'body'"),
    ],
)
def test_what_cannot_be_cross_validated_is_refused(options, message):
    with pytest.raises(TextcatError, match=message):
        textcat.cross_validate(ROWS, **{"recipe": "paum", **options})


def test_results_are_shown_as_tables_in_notebooks(result):
    evil = [{"text": row["text"], "topics": [f"<script>{name}" for name in row["topics"]]} for row in ROWS]
    tagger = textcat.train(evil, "paum")
    tags = tagger.tag([row["text"] for row in evil])
    compared = textcat.compare_evaluations([textcat.evaluate(tagger, evil)] * 3, n_resamples=100)
    crossed = textcat.cross_validate(evil, "paum")
    recipe = textcat.Recipe("<script>", tags={"strategy": "single"}, features={"zones": {"<script>": 1}})
    for one in (tags, compared, crossed, crossed.evaluation, recipe, tagger):
        html = one._repr_html_()
        assert "<table" in html
        assert "<script" not in html
    assert "tags.strategy" in recipe._repr_html_()
    assert "and 10 more documents" in tags._repr_html_()
    assert repr(tags).startswith("<Tags of 30 documents: ")
    assert repr(tags[:3]) == repr([*tags[:3]])
    assert repr(compared) == "<Comparison of 3 models on 30 documents>"
    assert "cross-validation" in repr(result)
