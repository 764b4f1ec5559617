"""`textcat evaluate`: measures in every form, of the corpus that is meant."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
from evaluations import EVALUATION, LABELS, SCORES
from printed_tables import printed, shown

import textcat
from textcat.cli import evaluate
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


def test_a_model_is_evaluated_on_another_corpus_by_the_topics_they_share(run, model):
    documents = textcat.open_corpus("newswire").test
    topics = [[topic for topic in [*each.topics, "unknown"] if topic != "results"] for each in documents]
    lines = [{"text": each.zones["body"], "topics": own} for each, own in zip(documents, topics, strict=True)]
    Path("other.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    run("evaluate", model, "other.jsonl", "--as", "json")
    assert run.code == 0
    rows = {row["topic"]: row for row in json.loads(run.out)["topics"]}
    assert rows["wheat"]["test_positives"] == sum("wheat" in own for own in topics) > 0
    assert rows["results"]["average_precision"] is None
    assert "unknown" not in rows


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
    assert "Report: " in run("report", model, "some.jsonl", "--out", "r.html", "--bootstrap", "0").out


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


def test_the_band_table_has_a_column_per_band_like_the_papers():
    assert shown(evaluate.band_rows(EVALUATION)) == [
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
    titles = [line.split("  ")[0] for line in shown(evaluate.band_rows(evaluation))]
    assert titles[1:] == ["mean average precision (MAP)", "macro F1", "micro F1", "topics"]


def test_a_band_without_a_topic_to_count_says_so():
    evaluation = evaluate_scores(SCORES, LABELS, ["mid", "big", "none"], [4, 8, 2], 16, spec="LAST1")
    assert shown(evaluate.band_rows(evaluation))[1].split("  ")[-1] == "no topic"


def test_every_measure_can_have_a_line():
    titles = [line.split("  ")[0] for line in shown(evaluate.band_rows(EVALUATION, every_measure=True))]
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
    lines = shown(evaluate.band_rows(replace(EVALUATION, bands=(band, other))))
    place = next(place for place, line in enumerate(lines) if line.startswith("micro F1"))
    assert re.split("  +", lines[place + 1].strip()) == ["95 % interval", ".500 to .750", "-"]
    assert sum("interval" in line for line in lines) == 1


def test_the_topic_table_goes_from_the_largest_topic_down_and_marks_topics_without_a_positive():
    assert shown(evaluate.topic_rows(EVALUATION)) == [
        "topic   train  test  precision  recall     F1           AP  prevalence  tau_pos  support  shuffled  stopped",
        "big[0]      8     2       .500    .500   .500         .750       .5000        -       20        no  converged",
        "mid         4     2      1.000   1.000  1.000        1.000       .2500      1.5       10       yes  converged",
        "none        2     0          -       -      -  no positive       .1250        2       60       yes  epochs",
    ]


def test_of_single_labels_the_accuracy_is_printed_and_the_topics_that_are_mistaken_most():
    evaluation = replace(EVALUATION, accuracy=0.5, confusion=(("big", "big", 9), ("big", "none", 3), ("mid", "big", 2)))
    assert printed(evaluate.show_evaluation, evaluation)[-5:] == [
        "accuracy .500, over the documents that have a topic",
        "",
        "topic  got   documents",
        "big    none          3",
        "mid    big           2",
    ]
