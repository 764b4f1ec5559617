"""`textcat evaluate` and `compare`: measures in every form, of the corpus that is meant."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
from evaluations import COMPARISON, EVALUATION, LABELS, SCORES
from printed_tables import printed, shown

import textcat
from textcat.cli import measure, printing
from textcat.evaluation.evaluation import TITLES, evaluate_scores

NEWSWIRE = textcat.open_corpus("newswire")


def test_one_topic_a_document_is_measured_by_accuracy_and_confusions(run, part):
    run("train", part, "--out", "m", "--recipe", "paum", "--set", "tags.strategy=single")
    assert re.search(r"^accuracy \.[0-9]{3}, over the documents that have a topic$", run.out, re.MULTILINE)
    measured = json.loads(run("evaluate", "m", "--as", "json").out)
    rows = list(csv.DictReader(io.StringIO(run("evaluate", "m", "--as", "csv").out)))
    for topic, got, n in measured["confusion"]:
        assert next(row for row in rows if row["topic"] == topic)[f"got {got}"] == str(n)
    assert f"accuracy {measured['accuracy']:.3f}".replace("0.", ".") in run("evaluate", "m").out
    Path("texts.txt").write_text("wheat harvest and grain exports\n")
    run("tag", "m", "texts.txt", "--lines")
    assert len(json.loads(run.out)["topics"]) == 1


def test_models_of_many_topics_are_measured_by_the_first_topics_of_each_document(run, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 50)
    trained = run("train", "newswire", "--out", "m", "--recipe", "paum").out.split("\n\n")
    assert trained[0].splitlines()[0].split() == ["ALL", "1-5", "6-20", "21-100", "101-"]
    titles = [line.partition("  ")[0] for line in trained[0].splitlines()[1:]]
    assert titles == [*(title.line for name, title in TITLES.items() if "@" in name), "documents", "pairs", "topics"]
    for command in (("evaluate", "m"), ("show", "m")):
        assert trained[0] in run(*command).out
    measured = json.loads(run("evaluate", "m", "--as", "json").out)
    assert measured["bands"][0] == measured["overall"]
    assert trained[0].splitlines()[1].split()[1] == f"{measured['overall']['precision']['1']:.3f}".lstrip("0")
    rows = list(csv.DictReader(io.StringIO(run("evaluate", "m", "--as", "csv", "--band", "1-5", "--band", "ALL").out)))
    assert [row["band"] for row in rows] == ["1-5", "ALL"]
    assert float(rows[1]["ndcg@10"]) == measured["overall"]["ndcg"]["10"]
    assert run("evaluate", "m", "--bootstrap", "100").out.count("95 % interval") == 4
    without = sum(not document.topics for document in textcat.open_corpus("newswire").test)
    notes = run("evaluate", "m", "--topics").out.splitlines()[-2:]
    assert notes[0].startswith(f"{without} of {measured['test_documents']} documents have no topic")
    assert notes[1].startswith("There is no table per topic")
    assert "Of the evaluation of 50 topics no scores were kept" in run.refuses("evaluate", "m", "--trec", "t")
    run("train", "newswire", "--out", "n", "--recipe", "paum-2002")
    lines = run("compare", "m", "n", "--bootstrap", "100").out.splitlines()
    assert [line.split()[:2] for line in lines[6:8]] == [["ALL", "P@1"], ["ALL", "P@3"]]
    assert "MAP" not in run.out
    compared = json.loads(run("compare", "m", "n", "--bootstrap", "100", "--as", "json").out)
    assert compared["measures"][0]["values"][0] == measured["overall"]["precision"]["1"]


# --- evaluate --------------------------------------------------------------------------------------------------------


def test_evaluate_takes_the_corpus_the_model_was_trained_on(run, model):
    bands = run("evaluate", model)
    assert (bands.code, bands.err) == (0, "")
    assert bands.out == run("evaluate", model, "newswire").out


def test_evaluate_asks_for_a_corpus_it_cannot_know(run, own):
    run("train", own, "--out", "m")
    shutil.move(own, own.with_name("moved"))
    assert "trained on 'own', which is no known corpus: name the corpus" in run.refuses("evaluate", "m")


def test_evaluate_finds_the_corpus_from_another_folder(run, own, monkeypatch):
    run("train", own, "--out", "m")
    model = Path("m").resolve()
    here = run("evaluate", model)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    there = run("evaluate", model)
    assert (here.code, there.code) == (0, 0)
    assert there.out == here.out


def test_the_path_that_was_trained_on_stands_for_the_test_part_that_training_set_aside(run):
    rows = [{"text": f"corn {i}", "label": "grain"} for i in range(20)]
    rows += [{"text": f"gold {i}", "label": "metal"} for i in range(20)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--topics-field", "label")
    run("train", "rows.jsonl", *options, "--test-size", "0.3", "--test-seed", "4", "--out", "m")
    expected = run("evaluate", "m", "--as", "json").out
    set_aside = "12 test documents of rows.jsonl that training set aside (--test-size 0.3); its 28 training documents"
    for arguments in (("rows.jsonl",), (Path("rows.jsonl").resolve(),), ("rows.jsonl", *options)):
        measured = run("evaluate", "m", *arguments, "--as", "json")
        assert measured.out == expected
        assert set_aside.replace("rows.jsonl", str(arguments[0])) in measured.err
        assert "too good" not in measured.err
    assert set_aside in run("compare", "m", "m", "--corpus", "rows.jsonl", "--bootstrap", "100").err
    other = run("evaluate", "m", "rows.jsonl", *options, "--test-size", "0.5")
    assert "that training set aside" not in other.err
    assert other.err.count("figures are too good") == 1
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows + [rows[0]] * 4))
    grown = run("evaluate", "m", "rows.jsonl").err
    assert grown.count("has 31 training documents, and the model was trained on 28") == 1
    Path("copy.jsonl").write_text(Path("rows.jsonl").read_text())
    assert json.loads(run("evaluate", "m", "copy.jsonl", *options, "--as", "json").out)["test_documents"] == 44


def test_options_of_input_are_refused_where_the_corpus_of_training_is_opened_again(run, own):
    run("train", own, "--out", "m")
    for option in (("--text-field", "headline"), ("--test-size", "0.5"), ("--topics-separator", ";")):
        for command in (("evaluate", "m"), ("compare", "m", "m")):
            assert "go with a corpus that is named: the model's own is read as" in run.misuses(*command, *option)
    assert run("evaluate", "m", own, "--encoding", "latin-1").code == 0


def test_options_of_input_that_a_corpus_does_not_take_are_refused(run, model):
    named = "Corpus newswire is read as its card says, so --text-field headline would change nothing: leave it out"
    own = "options of input go with a corpus that is named: the model's own is read as for its training"
    with_name = {"evaluate": (model, "newswire"), "compare": (model, model, "--corpus", "newswire")}
    for command in ("train", "tune", "evaluate", "compare"):
        arguments = with_name.get(command, ("newswire",))
        assert named in run.refuses(command, *arguments, "--text-field", "headline")
        assert "--test-seed 3 draws the documents of --test-size" in run.misuses(command, *arguments, "--test-seed", 3)
        assert "has a test part of 350 documents already" in run.refuses(command, *arguments, "--test-size", 0.5)
    for arguments in (("evaluate", model), ("compare", model, model)):
        for option in (("--text-field", "headline"), ("--test-size", 0.5)):
            assert own in run.misuses(*arguments, *option)
    assert run("evaluate", model, "--corpus-dir", "elsewhere").code == 0


def test_json_csv_and_tables_agree(run, model):
    as_json = json.loads(run("evaluate", model, "--as", "json").out)
    as_csv = list(csv.DictReader(io.StringIO(run("evaluate", model, "--as", "csv").out)))
    table = run("evaluate", model, "--topics").out
    assert [row["topic"] for row in as_csv] == [row["topic"] for row in as_json["topics"]]
    for line, row in zip(as_csv, as_json["topics"], strict=True):
        assert float(line["average_precision"]) == row["average_precision"]
        cells = re.search(rf"^{re.escape(row['topic'])} +(.*)$", table, re.MULTILINE)[1].split()
        assert float(cells[5]) == pytest.approx(row["average_precision"], abs=5e-4)
        assert int(cells[0]) == row["train_positives"]


def test_bands_of_the_users_own(run, model):
    run("evaluate", model, "--band", "TOP3", "--band", "1-2", "--band", "mine=grain,wheat")
    assert run.code == 0
    assert run.out.splitlines()[0].split() == ["TOP3", "1-2", "mine"]
    assert re.search(r"^topics +3 +\d+ +2$", run.out, re.MULTILINE)


def test_trec_files_give_the_same_average_precision_to_other_tools(run, model):
    topics = json.loads(run("evaluate", model, "--as", "json", "--trec", "trec").out)["topics"]
    measured = ir_measures.iter_calc(
        [ir_measures.AP],
        list(ir_measures.read_trec_qrels("trec/qrels.txt")),
        list(ir_measures.read_trec_run("trec/run.txt")),
    )
    theirs = {row.query_id: row.value for row in measured}
    ours = {row["topic"]: row["average_precision"] for row in topics if row["average_precision"] is not None}
    assert theirs.keys() == ours.keys()
    # Documents of equal score are retrieved together here, and in the order of their names there.
    assert sum(abs(theirs[topic] - ours[topic]) < 1e-6 for topic in ours) >= 0.9 * len(ours)
    assert theirs == pytest.approx(ours, abs=0.05)


def test_a_model_is_evaluated_on_another_corpus_by_the_topics_they_share(run, model, reuters_archive):
    run("evaluate", model, reuters_archive, "--as", "json")
    assert run.code == 0
    rows = {row["topic"]: row for row in json.loads(run.out)["topics"]}
    assert rows["wheat"]["test_positives"] == 71
    assert rows["results"]["average_precision"] is None


def test_evaluate_prints_every_measure_and_intervals_if_asked_for(run, model):
    lines = run("evaluate", model, "--bootstrap", "100").out.splitlines()
    assert {"macro nDCG", "sample F1 (documents with either)", "top-1 accuracy (documents with a topic)"} <= {
        re.split(r"  +", line)[0] for line in lines
    }
    assert sum(line.startswith("  95 % interval") for line in lines) == 3
    for band in json.loads(run("evaluate", model, "--as", "json", "--bootstrap", "100").out)["bands"]:
        low, high = band["intervals"]["micro_f1"]
        assert low < band["micro_f1"] < high


def test_documents_without_a_topic_can_be_left_out(run, model):
    everything, labelled = (
        json.loads(run("evaluate", model, "--as", "json", *option).out) for option in ((), ("--labelled-only",))
    )
    assert (everything["test_documents"], labelled["test_documents"]) == (350, 309)
    for all_row, row in zip(everything["topics"], labelled["topics"], strict=True):
        assert (row["recall"], row["test_positives"]) == (all_row["recall"], all_row["test_positives"])
    assert labelled["bands"][0]["micro_precision"] > everything["bands"][0]["micro_precision"]


# --- compare ---------------------------------------------------------------------------------------------------------


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


def test_a_model_is_measured_on_any_file_as_a_whole_whatever_its_name(run, model):
    documents = textcat.open_corpus("newswire").test
    lines = [json.dumps({"id": each.id, "zones": each.zones, "topics": each.topics}) for each in documents]
    Path("test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert json.loads(run("evaluate", model, "test.jsonl", "--as", "json").out) == json.loads(
        run("evaluate", model, "--as", "json").out
    )
    assert json.loads(run("corpora", "show", "test.jsonl", "--as", "json").out)["documents"]["train"] == len(documents)
    Path("test.jsonl").rename("some.jsonl")
    assert json.loads(run("evaluate", model, "some.jsonl", "--as", "json").out)["test_documents"] == len(documents)
    assert "Report: " in run("report", model, "some.jsonl", "--out", "r.html").out


def test_of_a_named_corpus_with_both_parts_the_test_part_is_measured_and_it_is_said(run, model):
    documents = textcat.open_corpus("newswire").test
    lines = [json.dumps({"id": each.id, "zones": each.zones, "topics": each.topics}) for each in documents]
    Path("both").mkdir()
    Path("both", "train.jsonl").write_text("\n".join(lines[:10]), encoding="utf-8")
    Path("both", "test.jsonl").write_text("\n".join(lines[10:]), encoding="utf-8")
    measured = run("evaluate", model, "both", "--as", "json")
    assert json.loads(measured.out)["test_documents"] == len(documents) - 10
    assert "its 10 training documents are left out" in measured.err


def test_of_a_model_without_test_documents_no_intervals_are_made_and_the_remedy_is_told(run, own):
    run("train", own, "--out", "m", "--recipe", "paum")
    for command in (["evaluate", "m", "--bootstrap", "100"], ["compare", "m", "m"]):
        assert "measure on a corpus that has test documents" in run.refuses(*command)


# --- tables ---


def test_the_band_table_has_a_column_per_band_like_the_papers():
    assert shown(measure.band_rows(EVALUATION)) == [
        "                               ALL  TOP1",
        "mean average precision (MAP)  .875  .750",
        "mean support (documents)        30    20",
        "macro F1                      .750  .500",
        "micro F1                      .667  .500",
        "topics                           2     1",
        "left out: no test positive       1     0",
    ]


def test_the_band_table_leaves_out_lines_that_say_nothing():
    evaluation = evaluate_scores(SCORES[:, :2], LABELS[:, :2], ["mid", "big"], [4, 8], 16, spec="ALL")
    titles = [line.split("  ")[0] for line in shown(measure.band_rows(evaluation))]
    assert titles[1:] == ["mean average precision (MAP)", "macro F1", "micro F1", "topics"]


def test_a_band_without_a_topic_to_count_says_so():
    evaluation = evaluate_scores(SCORES, LABELS, ["mid", "big", "none"], [4, 8, 2], 16, spec="LAST1")
    assert shown(measure.band_rows(evaluation))[1].split("  ")[-1] == "no topic"


def test_every_measure_can_have_a_line():
    titles = [line.split("  ")[0] for line in shown(measure.band_rows(EVALUATION, every_measure=True))]
    assert titles[1:] == [
        "mean average precision (MAP)",
        "macro R-precision",
        "macro P@10",
        "macro nDCG",
        "mean support (documents)",
        *(f"{average} {of}" for average in ("macro", "micro") for of in ("precision", "recall", "F1")),
        "sample precision (documents with a tag)",
        "sample recall (documents with a topic)",
        "sample F1 (documents with either)",
        *(
            f"{measure_} (documents with a topic)"
            for measure_ in ("label ranking average precision", "coverage error", "top-1 accuracy")
        ),
        "topics",
        "left out: no test positive",
    ]


def test_an_interval_stands_under_its_measure():
    band = replace(EVALUATION.bands[0], intervals={"micro_f1": (0.5, 0.75)})
    other = replace(EVALUATION.bands[1], intervals={"micro_f1": None})
    lines = shown(measure.band_rows(replace(EVALUATION, bands=(band, other))))
    place = next(place for place, line in enumerate(lines) if line.startswith("micro F1"))
    assert re.split("  +", lines[place + 1].strip()) == ["95 % interval", ".500 to .750", "-"]
    assert sum("interval" in line for line in lines) == 1


def test_models_stand_side_by_side_with_what_the_tests_say():
    assert shown(measure.measure_rows(COMPARISON, ["A", "B"])) == [
        "band   measure          A         B  B - A   95 % interval  p docs  p topics",
        "ALL    MAP           .500      .750  +.250  -.100 to +.600   .0400     .5000",
        "ALL    micro F1      .500      .250  -.250  -.500 to +.000   .0400         -",
        "LAST1  macro F1  no topic  no topic      -               -       -         -",
    ]


def test_topics_stand_in_the_order_of_the_comparison_with_their_corrected_p():
    assert shown(measure.difference_rows(COMPARISON, ["A", "B"])) == [
        "topic  train  test      A      B  B - A  corrected p",
        "[b]        3     2   .500  1.000  +.500        .0400",
        "a          1     1  1.000   .750  -.250       1.0000",
    ]
    assert len(shown(measure.difference_rows(COMPARISON, ["A", "B"], 1))) == 2


def test_the_topic_table_goes_from_the_largest_topic_down_and_marks_topics_without_a_positive():
    assert shown(measure.topic_rows(EVALUATION)) == [
        "topic   train  test  precision  recall     F1           AP  prevalence  tau_pos  support  shuffled  stopped",
        "big[0]      8     2       .500    .500   .500         .750       .5000        -       20        no  converged",
        "mid         4     2      1.000   1.000  1.000        1.000       .2500      1.5       10       yes  converged",
        "none        2     0          -       -      -  no positive       .1250        2       60       yes  epochs",
    ]


def test_of_single_labels_the_accuracy_is_printed_and_the_topics_that_are_mistaken_most():
    evaluation = replace(EVALUATION, accuracy=0.5, confusion=(("big", "big", 9), ("big", "none", 3), ("mid", "big", 2)))
    assert printed(measure.show_evaluation, evaluation)[-5:] == [
        "accuracy .500, over the documents that have a topic",
        "",
        "topic  got   documents",
        "big    none          3",
        "mid    big           2",
    ]


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


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_form_of_a_comparison_says_what_its_p_values_are(form):
    lines = printed(measure.show_comparison, COMPARISON, ["a", "b"], "news", form, per_topic=True)
    text = " ".join(" ".join(lines).split()).replace("\\", "")
    assert "t-test of the difference" in text
    assert "Holm's method" in text
