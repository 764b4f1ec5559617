"""`textcat compare`: models side by side, and the conditions by which a new one fails."""

import csv
import io
import json
from pathlib import Path

import pytest
from cases import every
from evaluations import COMPARISON
from printed_tables import printed, shown

import textcat
from textcat.cli import compare, printing

NEWSWIRE = textcat.open_corpus("newswire")


@pytest.fixture(scope="module")
def rival(tmp_path_factory):
    tagger = textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("paum-2002"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "rival")


def test_compare_sets_models_side_by_side(run, model, rival):
    run("compare", model, rival, "--bootstrap", "100")
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[:2] == [f"A  {model}", f"B  {rival}"]
    assert lines[3] == "newswire, 350 test documents"
    assert [line.split()[0] for line in lines[6:15]] == ["ALL"] * 3 + ["TOP10"] * 3 + ["LAST30"] * 3
    start = next(place for place, line in enumerate(lines) if line.startswith("topic"))
    assert lines[start + 11] == "", "the ten topics that differ most"
    assert len(run("compare", model, rival, "--bootstrap", "100", "--topics").out.splitlines()) > len(lines)


def test_compare_gives_the_values_of_evaluate(run, model, rival):
    found = json.loads(run("compare", model, rival, model, "--as", "json", "--labelled-only", "--bootstrap", "100").out)
    assert (found["models"], found["test_documents"]) == ([str(model), str(rival), str(model)], 309)
    alone = [
        json.loads(run("evaluate", folder, "--as", "json", "--labelled-only").out) for folder in (model, rival, model)
    ]
    bands = [{band["band"]: band for band in evaluation["bands"]} for evaluation in alone]
    for row in found["measures"]:
        assert row["values"] == [of[row["band"]][row["measure"]] for of in bands]
        assert row["differences"][1]["p_documents"] == 1, "the same model"


def test_a_file_among_the_models_to_compare_is_told_how_to_be_given(run, model, rival, tmp_path):
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "wheat", "topics": ["wheat"]}\n')
    assert f"to compare models on it, give --corpus {new}" in run.misuses("compare", model, rival, new)


def test_models_of_different_topics_are_compared_on_those_that_all_have(run, model, rival, own):
    records = [
        {"id": one.id, "zones": one.zones, "topics": [topic for topic in one.topics if topic != "wheat"], "split": part}
        for part, documents in (("train", NEWSWIRE.train), ("test", NEWSWIRE.test))
        for one in documents
    ]
    Path("fewer.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    run("train", "fewer.jsonl", "--out", "fewer", "--recipe", "paum-2002")
    options = ("--corpus", "newswire", "--as", "json", "--topics", "--bootstrap", "100")
    compared = json.loads(run("compare", rival, "fewer", *options).out)
    n = len(NEWSWIRE.topics)
    assert f"compared on the {n - 1} topics that all models have; left out: 1 of {rival}" in run.err
    assert "wheat" not in [row["topic"] for row in compared["topics"]]
    whole = json.loads(run("compare", rival, model, *options).out)
    precision = {row["topic"]: row["average_precision"] for row in whole["topics"]}
    for row in compared["topics"]:
        assert row["average_precision"] == [precision[row["topic"]][0]] * 2, "the other topics are trained alike"
    assert "left out: 1 of" in run("compare", "fewer", rival, *options).err
    report = run("report", rival, "newswire", "--before", "fewer", "--folds", "0", "--bootstrap", "0")
    assert f"left out: 1 of {rival}" in report.err
    assert Path("report.html").exists()


@pytest.mark.parametrize("models", [1, 2, 3])
def test_each_model_is_measured_once(run, model, models, monkeypatch):
    from textcat.model.tagger import Tagger

    scored = Tagger.scored
    n_scored = []
    monkeypatch.setattr(Tagger, "scored", lambda self, texts: n_scored.append(self) or scored(self, texts))
    if models == 1:
        run("evaluate", model, "--bootstrap", "100", "--as", "json")
    else:
        run("compare", *[model] * models, "--bootstrap", "100", "--as", "json")
    assert (run.code, len(n_scored)) == (0, models)


def test_compare_prints_what_it_returns_in_python(run, model, rival):
    printed = json.loads(run("compare", model, rival, "--as", "json", "--bootstrap", "100").out)
    compared = textcat.compare([model, rival], "newswire", n_resamples=100).as_dict()
    assert {name: printed[name] for name in compared} == json.loads(json.dumps(compared))


def test_compare_fails_by_conditions_that_are_true_beyond_chance(run, model, rival):
    compare = ("compare", model, rival, "--bootstrap", "100")
    held, failed = ("--fail-if", "MAP < -.5"), ("--fail-if", "macro-F1 of top5 < -.1")
    assert run(*compare, *held).code == 0
    run(*compare, *held, *failed)
    assert (run.code, run.err) == (4, "textcat: the new model fails by 'macro-F1 of top5 < -.1'.\n")
    rows = run.out.splitlines()[-2:]
    assert [(row.split("  ")[0], row.split()[-1]) for row in rows] == [
        ("MAP < -.5", "holds"),
        ("macro-F1 of top5 < -.1", "FAILS"),
    ]
    printed = json.loads(run(*compare, *held, *failed, "--as", "json").out)
    assert [gate["failed"] for gate in printed["gates"]] == [False, True]
    assert run.code == 4
    assert [row["values"] for row in printed["measures"] if row["band"] == "TOP5"], "the band is measured, too"
    compared = textcat.compare([model, rival], "newswire", n_resamples=100, fail_if=[held[1], failed[1]])
    assert json.loads(json.dumps(compared.as_dict()["gates"])) == printed["gates"]
    assert run("compare", model, model, "--bootstrap", "100", "--fail-if", "AP of wheat < -.01").code == 0
    assert run(*compare, "--fail-if", "MAP < .95", "--fail-if", "MAP of ALL < .2").code == 4, "values, not differences"
    assert run(*compare, "--fail-if", "AP of wheat < -.01", "--strict").code == 4


def test_conditions_are_refused_before_anything_is_measured(run, model, rival, monkeypatch):
    monkeypatch.setattr("textcat.model.compare.evaluate_tagger", None)
    compare = ("compare", model, rival, "--fail-if")
    assert "write MEASURE < LIMIT" in run.refuses(*compare, "MAP > .8")
    assert "Did you mean 'wheat'?" in run.refuses(*compare, "AP of weat < 0")
    assert "write 'AP of wheat'" in run.refuses(*compare, "MAP of wheat < 0")
    assert "No band 'FEW'" in run.refuses(*compare, "MAP of FEW < 0")
    assert "train it with `--promise`" in run.refuses(*compare, "precision of automatic < .9")
    assert "cannot be decided with 50 topics" in run.refuses(*compare, "P@1 < 0")
    assert "two models" in run.misuses("compare", model, rival, model, "--fail-if", "MAP < 0")
    assert "two models" in run.misuses("compare", model, rival, "--table", "--fail-if", "MAP < 0")
    assert "--strict is of --fail-if" in run.misuses("compare", model, rival, "--strict")
    with pytest.raises(textcat.TextcatError, match="not of 3"):
        textcat.compare([model, rival, model], "newswire", fail_if="MAP < 0")


def test_the_precision_of_automatic_tags_is_a_condition(run):
    run("train", "newswire", "--out", "m", "--recipe", "paum", "--promise", "precision=.8", "--confidence", ".8")
    for limit, code in ((".5", 0), ("1", 4)):
        run("compare", "m", "m", "--bootstrap", "100", "--fail-if", f"precision of automatic < {limit}")
        assert run.code == code, run.err


def test_conditions_name_topics_by_their_names_and_bands_of_the_command(run, model, part):
    Path("names.tsv").write_text("wheat\tWeizen\n")
    run("train", part, "--out", "m", "--recipe", "paum", "--vocabulary", "names.tsv", "--vocabulary-language", "de")
    band = ("--band", "cereals=wheat,grain", "--bootstrap", "100", "--as", "json")
    conditions = ("--fail-if", "AP of Weizen < 0", "--fail-if", "micro F1 of cereals < 0")
    run("compare", "m", "m", "--corpus", "newswire", *band, *conditions)
    gates = json.loads(run.out)["gates"]
    assert [(gate["interval"], gate["failed"]) for gate in gates] == [([0, 0], False)] * 2


def test_models_without_a_shared_topic_are_not_compared(run, model, own):
    run("train", own, "--out", "m")
    assert run.refuses("compare", model, "m") == (
        f"{model} and the other models share no topic: compare models of one corpus, or add --table."
    )


def test_models_stand_side_by_side_with_what_the_tests_say():
    assert shown(compare.measure_rows(COMPARISON, ["A", "B"])) == [
        "band   measure          A         B  B - A   95 % interval  p docs  p topics",
        "ALL    MAP           .500      .750  +.250  -.100 to +.600   .0400     .5000",
        "ALL    micro F1      .500      .250  -.250  -.500 to +.000   .0400         -",
        "LAST1  macro F1  no topic  no topic      -               -       -         -",
    ]


def test_topics_stand_in_the_order_of_the_comparison_with_their_corrected_p():
    assert shown(compare.difference_rows(COMPARISON, ["A", "B"])) == [
        "topic  train  test      A      B  B - A  corrected p",
        "[b]        3     2   .500  1.000  +.500        .0400",
        "a          1     1  1.000   .750  -.250       1.0000",
    ]
    assert len(shown(compare.difference_rows(COMPARISON, ["A", "B"], 1))) == 2


def test_models_of_several_corpora_and_recipes_make_one_table(run, tmp_path):
    for name, letters in (("one", "abab"), ("two", "bbaa")):
        records = [
            {"text": f"{'wheat' if x == 'a' else 'gold'} {x}{i}", "topics": [x]} for i, x in enumerate(letters * 5)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        run("train", f"{name}.jsonl", "--out", name, "--recipe", "paum", "--test-size", ".5", "--test-seed", "1")
    rows = list(
        csv.DictReader(io.StringIO(run("compare", "one", "two", "--table", "--as", "csv", "--bootstrap", "100").out))
    )
    assert [(row["model"], row["corpus"], row["band"]) for row in rows] == [
        ("one", "one.jsonl", "ALL"),
        ("two", "two.jsonl", "ALL"),
    ]
    for row in rows:
        assert float(row["MAP low"]) <= float(row["MAP"]) <= float(row["MAP high"])
    assert json.loads(run("compare", "one", "--table", "--as", "json", "--bootstrap", "100").out)[0]["recipe"]
    for form in ("latex", "markdown"):
        assert (
            "mean average precision" in run("compare", "one", "two", "--table", "--as", form, "--bootstrap", "100").out
        )
    lines = list(csv.DictReader(io.StringIO(run("compare", "one", "two", "--as", "csv", "--bootstrap", "100").out)))
    assert {(row["model"], row["difference"] == "") for row in lines} == {("A", True), ("B", False)}


def test_small_p_values_are_not_printed_as_zero():
    assert [printing.format_p_value(p) for p in (5e-25, 0.00012, 0.5, None)] == ["<.0001", ".0001", ".5000", "-"]


@every("form", ["text", "markdown", "latex"])
def test_every_form_of_a_comparison_says_what_its_p_values_are(form):
    lines = printed(compare.show_comparison, COMPARISON, ["a", "b"], "news", form, per_topic=True)
    text = " ".join(" ".join(lines).split()).replace("\\", "")
    assert "t-test of the difference" in text
    assert "Holm's method" in text
