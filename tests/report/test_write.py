"""The report: its figures are those of sklearn and of naive twins, its file is sound HTML, and no text of it runs.

What is tested in a browser needs playwright and Chromium; accessibility also needs axe-core.
`scripts/optional_tools.py` finds and installs them.
"""

import dataclasses
import json
import random
import re
from itertools import pairwise

import pytest
from hostile_reports import HOSTILE, RULES, data_of, letters

import textcat
from textcat import cli
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.evaluation.evaluation import evaluate_scores
from textcat.model.measure import relevant_topics
from textcat.report.write import measured_documents, scored_out_of_fold, write_report
from textcat.training.steps import train_and_evaluate


def test_the_figures_of_the_file_are_those_of_the_evaluation(model, file):
    tagger, corpus = model
    data, evaluation = data_of(file), textcat.evaluate(tagger, corpus)
    for row, topic in zip(evaluation.topics, data["topics"], strict=True):
        thresholds, retrieved, hits = topic["cuts"]
        at = topic["chosen"]
        assert (retrieved[at], hits[at]) == tuple(topic["given"])
        assert thresholds[at] == pytest.approx(row.threshold, rel=1e-4)
        assert hits[at] / max(retrieved[at], 1) == pytest.approx(row.precision)
        assert 2 * hits[at] / (retrieved[at] + topic["n"]) == pytest.approx(row.f1)
        assert (topic["ap"], topic["train"], topic["n"]) == (
            row.average_precision,
            row.train_positives,
            row.test_positives,
        )
        assert topic["terms"][0][0] == tagger.terms(row.topic, 1)[0][0]


def test_label_issues_are_lines_of_json_that_say_who_scored_them(model, file):
    _, corpus = model
    lines = [json.loads(line) for line in (file.parent / "label-issues.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines
    documents = {document.id: document for document in (*corpus.train, *corpus.test)}
    for line in lines:
        assert line["labelled"] == (line["topic"] in documents[line["id"]].topics)
        assert line["labelled"] == (line["probability"] < 0.5)
        assert ("not trained on it, in 5 parts" in line["scored_by"]) == (line["split"] == "train")
    assert data_of(file)["n_label_issues"] == len(lines)


def test_without_test_documents_those_of_training_are_shown_by_cross_validation(tmp_path):
    corpus = letters(test=False)
    tagger = textcat.train(corpus, textcat.read_recipe("paum"))
    path = write_report(tmp_path / "r.html", tagger, corpus, resamples=0)
    assert "measured on 36 training documents, by cross-validation" in path.read_text(encoding="utf-8")
    assert data_of(path)["documents"] == 36
    kept = train_and_evaluate(corpus, textcat.read_recipe("paum")).evaluation
    assert [topic["ap"] for topic in data_of(path)["topics"]] == [row.average_precision for row in kept.topics]
    with pytest.raises(TextcatError, match=r"letters has no test documents, .*: give some the split .test."):
        write_report(tmp_path / "r.html", tagger, corpus, folds=0)


def test_models_of_other_topics_are_refused(tmp_path):
    taggers = [textcat.train(letters(topics), textcat.read_recipe("paum")) for topics in (("a", "b"), ("a", "c"))]
    with pytest.raises(TextcatError, match="do not have the same topics"):
        write_report(tmp_path / "r.html", taggers[0], letters(("a", "b")), before=taggers[1])


def test_where_each_document_gets_one_topic_no_threshold_is_the_models(tmp_path):
    corpus = letters()
    tagger = textcat.train(corpus, textcat.read_recipe("paum").with_settings(["tags.strategy=single"]))
    data = data_of(write_report(tmp_path / "r.html", tagger, corpus, resamples=0))
    assert {topic["chosen"] for topic in data["topics"]} == {None}
    assert sum(topic["given"][0] for topic in data["topics"]) == len(corpus.test)


@pytest.mark.where_long("to train on all of Reuters, and to measure, takes seconds")
def test_the_report_of_reuters_is_small_and_its_evidence_is_highlighted(reuters, tmp_path):
    tagger = textcat.train(reuters, textcat.read_recipe("default"))
    path = write_report(tmp_path / "r.html", tagger, reuters, resamples=100)
    data = data_of(path)
    assert (len(data["topics"]), data["documents"]) == (90, 3299)
    assert path.stat().st_size < 700_000
    examples = [one for topic in data["topics"] for of in topic["wrong"] for one in of]
    assert all(any(isinstance(part, list) for part in one["text"]) or not one["reasons"] for one in examples)


def run(*arguments):
    from typer.testing import CliRunner

    ended = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_the_commands_write_reports(newswire_model, tmp_path):
    printed = run(
        *("report", newswire_model, "--out", tmp_path / "r.html", "--bootstrap", "100"),
        *("--label-issues", tmp_path / "s.jsonl", "--band", "ALL"),
    )
    assert re.search(r"Report: .*r\.html \(\d+ kB\)", printed.replace("\n", ""))
    assert (tmp_path / "s.jsonl").exists()
    run("report", newswire_model, "--before", newswire_model, "--out", tmp_path / "c.html", "--bootstrap", "100")
    assert data_of(tmp_path / "c.html")["changes"]["better"] == 0


def test_the_slider_recomputes_precision_recall_and_f1(opened, model, file):
    tagger, corpus = model
    shown, data = opened(), data_of(file)
    scores, labels = tagger.scores(corpus.test), relevant_topics(tagger, corpus)
    shown.evaluate("location.hash = 'topic-1'")
    shown.wait_for_selector("#one h3:not(:empty)")
    cuts = data["topics"][1]["cuts"]
    for place in (1, len(cuts[0]) // 2, len(cuts[0]) - 1):
        shown.locator("#cut").fill(str(place))
        cut = tagger.decisions.thresholds.copy()
        cut[1] = cuts[0][place]
        expected = evaluate_scores(
            scores, labels, tagger.topics, tagger.facts.train_sizes, tagger.facts.train_documents, threshold=cut
        )
        row, band = expected.topics[1], expected.bands[0]
        text = shown.locator("#one output").text_content()
        assert f"precision {row.precision:.3f}, recall {row.recall:.3f}, F1 {row.f1:.3f}" in text
        assert (
            f"macro F1 {band['macro_f1']:.3f}, micro F1 {band['micro_f1']:.3f}"
            in shown.locator("#moved").text_content()
        )


def test_topics_are_sorted_and_filtered_by_keyboard(opened):
    shown = opened()
    shown.locator("#table thead button", has_text="AP").focus()
    shown.keyboard.press("Enter")
    assert shown.locator("#table th[aria-sort]").get_attribute("aria-sort") == "descending"
    values = [float(text) for text in shown.locator("#table tbody td:nth-child(4)").all_text_contents()]
    assert all(first >= second for first, second in pairwise(values))
    shown.locator("#filter").fill("PROTO")
    assert shown.locator("#table tbody tr:visible").count() == 1
    assert shown.locator("#shown").text_content() == f"1 of {len(HOSTILE)} topics"


@pytest.mark.parametrize("scheme", RULES)
@pytest.mark.parametrize("two_models", [False, True])
def test_axe_finds_nothing_that_shuts_anybody_out(opened, look, model, file, tmp_path, scheme, two_models):
    path = file
    if two_models:
        tagger, corpus = model
        path = write_report(tmp_path / "r.html", tagger, corpus, before=tagger, resamples=0)
    shown = opened(path, color_scheme=scheme, bypass_csp=True)
    shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    look(shown, **RULES[scheme])


def test_a_report_shows_the_names_of_topics(newswire_model, tmp_path, new_page):
    tagger = dataclasses.replace(textcat.load(newswire_model), topic_names={"wheat": "Wheat <i>and</i> flour"})
    path = write_report(tmp_path / "r.html", tagger, textcat.open_corpus("newswire"), resamples=0)
    page = new_page(path.as_uri())
    link = page.locator("#table a", has_text="Wheat")
    assert link.inner_text() == "Wheat <i>and</i> flour (wheat)"
    link.click()
    page.wait_for_function("() => document.querySelector('#one h3').innerText === 'Wheat <i>and</i> flour (wheat)'")
    page.fill("#filter", "AND</I> FLOUR")
    assert page.locator("#table tbody tr:visible").count() == 1


@pytest.mark.filterwarnings("ignore")
def test_a_report_of_documents_that_were_judged_for_some_topics_has_the_figures_of_training():
    draw, words = random.Random(0), {"ash": "leaf", "oak": "bark"}
    rows = [
        {"text": " ".join([*draw.choices("abcdefgh", k=4), words[draw.choice([topic, topic, "ash", "oak"])]])}
        | {"id": str(i), "topics": [topic]}
        | ({"labelled_for": [topic]} if i % 4 < 2 else {})
        for i, topic in enumerate(["ash", "oak"] * 60)
    ]
    corpus = textcat.Corpus.from_records(rows)
    tagger, trained = textcat.train(corpus, "paum"), textcat.cross_validate(corpus, "paum").evaluation
    scored = scored_out_of_fold(tagger, corpus, 5, None, Stages())
    reported = measured_documents(tagger, corpus, scored, None, 0, Stages()).evaluation
    for measure in ("macro_average_precision", "macro_f1", "micro_f1"):
        assert reported.bands[0][measure] == trained.bands[0][measure]
