"""The report: its figures are those of sklearn and of naive twins, its file is sound HTML, and no text of it runs.

What is tested in a browser needs playwright and Chromium; accessibility also needs axe-core.
`scripts/optional_tools.py` finds and installs them.
"""

import json
import re
from itertools import pairwise
from pathlib import Path

import naive_report as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve

import textcat
from textcat import cli
from textcat.documents import Corpus
from textcat.errors import TextcatError
from textcat.evaluation import significance
from textcat.evaluation.evaluation import evaluate
from textcat.model.measure import relevant_topics
from textcat.report import contents, figures, page
from textcat.report.write import write_report
from textcat.training.train import train_and_evaluate

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "<!--<script>",
    "__proto__",
    "\x00\x1f\u2028&amp;</title><svg onload=window.hacked=3>",
)


def scored(draw, n=25):
    values = draw(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=n))
    return np.array([value for value, _ in values], np.float32), np.array([label for _, label in values])


rankings = st.composite(scored)()


@given(rankings, st.integers(-1, 10), st.integers(2, 20))
def test_each_threshold_has_what_passes_it(ranking, threshold, most):
    scores, labels = ranking
    cuts = figures.sample_thresholds(scores, labels, threshold + 0.5, most)
    for cut, retrieved, hits in zip(cuts.thresholds, cuts.retrieved, cuts.hits, strict=True):
        assert (retrieved, hits) == ((scores > cut).sum(), (scores[labels] > cut).sum())
    assert cuts.thresholds[cuts.chosen] == threshold + 0.5
    assert len(cuts.thresholds) <= most + 1
    assert (cuts.retrieved[0], cuts.retrieved[-1]) == (0, len(scores)) or cuts.chosen in (0, len(cuts.thresholds) - 1)
    assert (np.diff(cuts.retrieved) > 0).all()


@given(rankings)
def test_every_positive_is_reached_by_a_threshold_of_its_own(ranking):
    scores, labels = ranking
    cuts = figures.sample_thresholds(scores, labels)
    wanted = {((scores >= score).sum(), (scores[labels] >= score).sum()) for score in scores[labels]}
    assert wanted <= set(zip(cuts.retrieved.tolist(), cuts.hits.tolist(), strict=True))


@given(rankings)
def test_the_curve_of_a_band_is_the_precision_that_each_recall_can_have(ranking):
    scores, labels = ranking
    if labels.any():
        expected = [naive.interpolated_precision(scores, labels, level) for level in figures.LEVELS]
        np.testing.assert_allclose(figures.interpolated(scores[labels], scores), expected)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_reliability_is_that_of_scikit_learn(pairs):
    probabilities, labels = (np.array(column) for column in zip(*pairs, strict=True))
    if labels.any() and not labels.all():
        right, given_ = calibration_curve(labels, probabilities, n_bins=10)
        found = figures.reliability(probabilities, labels)
        np.testing.assert_allclose([row[:2] for row in found], np.column_stack([given_, right]))
        assert sum(n for *_, n in found) == len(pairs)


@given(rankings)
def test_the_histogram_counts_every_document_once(ranking):
    scores, labels = ranking
    drawn = figures.score_histogram(scores, labels)
    assert (drawn.positives.sum(), drawn.negatives.sum()) == (labels.sum(), (~labels).sum())
    assert drawn.low < drawn.high


@given(st.lists(st.tuples(*[st.booleans()] * 6), min_size=1, max_size=8))
def test_topics_are_mistaken_where_one_is_missing_and_another_is_given(rows):
    labels, got = np.array(rows)[:, :3], np.array(rows)[:, 3:]
    assert figures.confused_pairs(sparse_of(labels), got) == naive.mistaken(labels, got)


def sparse_of(labels):
    return sparse.csc_array(labels.astype(np.int8))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_label_issues_are_those_of_confident_learning_the_surest_first(rows):
    probabilities = np.array([row[:2] for row in rows])
    labels = np.array([row[2:] for row in rows])
    found = figures.find_label_issues(probabilities, sparse_of(labels))
    assert {(one.document, one.topic, one.has_it) for one in found} == naive.label_issues(probabilities, labels)
    doubts = [one.probability if one.has_it else 1 - one.probability for one in found]
    assert doubts == sorted(doubts)


def test_mcnemar_is_the_exact_binomial_test_and_holm_steps_down():
    for first in range(9):
        for other in range(9):
            if first + other:
                expected = binomtest(first, first + other).pvalue
                assert significance.mcnemar(first, other) == pytest.approx(expected)
    assert significance.mcnemar([0], [0]).tolist() == [1]
    assert significance.holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])


WORDS = st.text(alphabet="ab <\n", max_size=400)


@given(WORDS, WORDS, st.lists(st.tuples(st.integers(0, 399), st.integers(1, 9), st.floats(-2, 2)), max_size=5))
def test_an_excerpt_has_parts_of_the_text_and_what_is_highlighted_is_the_evidence(title, body, marks):
    spans = [(("body", start, min(start + n, len(body))), value) for start, n, value in marks if start < len(body)]
    parts = contents.excerpt_of({"title": title, "body": body}, spans)
    zones = [re.sub(r"\s", " ", zone) for zone in (title, body) if zone]
    whole, place = "\n".join(zones), 0
    for piece in "".join(part if isinstance(part, str) else part[1] for part in parts).split(" … "):
        place = whole.find(piece, place)
        assert place >= 0, (piece, whole)
        place += len(piece)
    covered = {body[start:end] for (_, start, end), _ in spans}
    for part in parts:
        if not isinstance(part, str):
            assert any(re.sub(r"\s", " ", text) for text in covered)
            assert 1 <= abs(part[0]) <= 3


def test_an_excerpt_cuts_no_word_in_two_and_highlights_by_strength():
    body = "filler words " * 60 + "wheat exports rose " + "more words " * 60
    start = body.index("wheat")
    marks = [(("body", start, start + 5), 2.0), (("body", start + 6, start + 13), -1.0)]
    parts = contents.excerpt_of({"title": "A title", "body": body}, marks)
    assert [part for part in parts if not isinstance(part, str)] == [(3, "wheat"), (-2, "exports")]
    shown = "".join(part if isinstance(part, str) else part[1] for part in parts)
    assert set(shown.split()) <= {*body.split(), "A", "title", "…"}
    assert len(shown) < 600


# --- files -----------------------------------------------------------------------------------------------------------


def letters(topics=("wheat", "gold", "money"), n=36, test=True):
    """A corpus of short texts, some of them labelled wrongly."""
    random, records = np.random.default_rng(0), []
    for i in range(n):
        j = i % len(topics)
        words = random.choice(["rose", "fell", "in", "London", "today", "market"], 6).tolist()
        own = [f"word{j}", f"word{j}s"] if i % 7 else [f"word{(j + 1) % len(topics)}"]
        text = " ".join([*words, *own, "<b onclick=window.hacked=4>bold</b>", topics[j]])
        split = "test" if test and i % 4 == 0 else "train"
        records.append({"id": f"{i}<i>", "title": f"Letter {i}", "body": text, "topics": [topics[j]], "split": split})
    return Corpus.from_records(records, name="letters", text="body")


@pytest.fixture(scope="module")
def model():
    corpus = letters(topics=HOSTILE, n=60)
    return textcat.train(corpus, textcat.read_recipe("paum")), corpus


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    tagger, corpus = model
    return write_report(
        folder / "report.html", tagger, corpus, label_issues=folder / "label-issues.jsonl", resamples=100
    )


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30) | st.sampled_from(HOSTILE))
def test_any_text_is_in_the_file_as_it_is_and_ends_no_element(text):
    html5lib = pytest.importorskip("html5lib")
    table = page.html_table("t", text, [f"{text}x", "y"], [[page.html_text(text), text]])
    written = page.report_page(text, [("s", text, table)], {text: [text], "text": text})
    written.encode()
    tree = html5lib.HTMLParser(namespaceHTMLElements=False).parse(written)
    assert len(list(tree.iter("script"))) == 2
    assert len(list(tree.iter("td"))) == len(list(tree.iter("caption"))) == 1
    read = json.loads(next(tree.iter("script")).text)["text"]
    assert read == re.sub("[\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def test_the_script_and_the_style_are_short_and_need_no_build_step():
    assert len((ROOT / "textcat/report/report.js").read_bytes()) <= 20_000
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", (ROOT / "textcat/report/report.js").read_text())
    assert "innerHTML" not in (ROOT / "textcat/report/report.js").read_text()


def test_the_file_is_sound_html_with_one_script_and_texts_as_texts(file):
    html5lib = pytest.importorskip("html5lib")
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(file.read_text(encoding="utf-8"))
    assert [script.get("type") for script in tree.iter("script")] == ["application/json", None]
    assert not {"img", "object", "iframe", "b"} & {
        element.tag for element in tree.iter() if isinstance(element.tag, str)
    }
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on") or name == "style"]
    assert json.loads(next(tree.iter("script")).text)["names"] == sorted(HOSTILE)
    shown = {cell.text for cell in tree.iter("a") if (cell.get("href") or "").startswith("#topic-")}
    assert HOSTILE[0] in shown


def test_the_figures_of_the_file_are_those_of_the_evaluation(model, file):
    tagger, corpus = model
    data, evaluation = data_of(file), tagger.evaluate(corpus)
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


def test_worst_errors_are_those_furthest_on_the_wrong_side(model, file):
    tagger, corpus = model
    scores, labels = tagger.scores(corpus.test), relevant_topics(tagger, corpus).toarray() > 0
    given_ = tagger.decide(scores)
    for j, topic in enumerate(data_of(file)["topics"]):
        wrongly, missed = (
            [corpus.test[i].id for i in ids] for ids in naive.worst(scores[:, j], labels[:, j], given_[:, j])
        )
        assert [one["id"] for one in topic["wrong"][0]] == wrongly[:3]
        assert [one["id"] for one in topic["wrong"][1]] == missed[:3]


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


def test_a_report_of_two_models_counts_what_became_right_and_wrong(model, tmp_path):
    tagger, corpus = model
    other = textcat.train(corpus, textcat.read_recipe("default"))
    path = write_report(tmp_path / "r.html", tagger, corpus, before=other, names=("old", "new"), resamples=0)
    changes = data_of(path)["changes"]
    labels = relevant_topics(tagger, corpus).toarray() > 0
    right = [of.decide(of.scores(corpus.test)) == labels for of in (other, tagger)]
    for j, one in enumerate(changes["topics"]):
        better, worse = (right[1] & ~right[0])[:, j].sum(), (right[0] & ~right[1])[:, j].sum()
        assert (one["better"], one["worse"]) == (better, worse)
        expected = binomtest(int(better), int(better + worse)).pvalue if better + worse else 1
        assert one["p"][0] == pytest.approx(expected, rel=0.01)
    assert "What changed" in path.read_text(encoding="utf-8")


def test_where_each_document_gets_one_topic_no_threshold_is_the_models(tmp_path):
    corpus = letters()
    tagger = textcat.train(corpus, textcat.read_recipe("paum").with_settings(["tags.strategy=single"]))
    data = data_of(write_report(tmp_path / "r.html", tagger, corpus, resamples=0))
    assert {topic["chosen"] for topic in data["topics"]} == {None}
    assert sum(topic["given"][0] for topic in data["topics"]) == len(corpus.test)


@pytest.mark.long
def test_the_report_of_reuters_is_small_and_its_evidence_is_highlighted(reuters_archive, tmp_path):
    corpus = textcat.open_corpus("reuters21578", corpus_dir=reuters_archive.parent)
    path = write_report(tmp_path / "r.html", textcat.train(corpus, textcat.read_recipe("default")), corpus)
    data = data_of(path)
    assert (len(data["topics"]), data["documents"]) == (90, 3299)
    assert path.stat().st_size < 700_000
    examples = [one for topic in data["topics"] for of in topic["wrong"] for one in of]
    assert all(any(isinstance(part, list) for part in one["text"]) or not one["reasons"] for one in examples)


@pytest.fixture
def many(monkeypatch):
    """Lets three topics count as many."""
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 3)


def test_many_topics_have_bands_and_their_report_stays_small(many, tmp_path):
    corpus = letters()
    path = write_report(tmp_path / "r.html", textcat.train(corpus, textcat.read_recipe("paum")), corpus)
    text = path.read_text(encoding="utf-8")
    assert "nDCG@10" in text
    assert len(text) < 50_000
    with pytest.raises(TextcatError, match="not looked for in models of 1,000 topics or more"):
        write_report(path, textcat.train(corpus, textcat.read_recipe("paum")), corpus, label_issues=tmp_path / "s")


def run(*arguments):
    from typer.testing import CliRunner

    ended = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_the_commands_write_reports(newswire_model, tmp_path):
    printed = run(
        "report", newswire_model, "--out", tmp_path / "r.html", "--label-issues", tmp_path / "s.jsonl", "--band", "ALL"
    )
    assert re.search(r"Report: .*r\.html \(\d+ kB\)", printed.replace("\n", ""))
    assert (tmp_path / "s.jsonl").exists()
    run("evaluate", newswire_model, "--report", tmp_path / "e.html", "--bootstrap", "100")
    run("compare", newswire_model, newswire_model, "--report", tmp_path / "c.html", "--bootstrap", "100")
    assert data_of(tmp_path / "e.html")["names"] == data_of(tmp_path / "r.html")["names"]
    assert data_of(tmp_path / "c.html")["changes"]["better"] == 0


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(new_page, file):
    """Opens a report, by default the hostile one."""
    return lambda path=file, **options: new_page(path.as_uri(), **options)


def test_no_text_runs_as_a_script_and_nobody_is_asked_for_anything(opened, new_page, file):
    shown = opened()
    for j in range(len(HOSTILE)):
        shown.evaluate(f"location.hash = 'topic-{j}'")
        shown.wait_for_timeout(50)
    for summary in shown.query_selector_all("summary"):
        summary.click()
    assert shown.evaluate("window.hacked") is None
    assert new_page.asked == [file.as_uri()]
    assert shown.query_selector("main b[onclick], img, [onload]") is None


def test_the_policy_keeps_scripts_out_even_if_one_gets_into_the_page(opened):
    shown = opened(provoked=True)
    with shown.expect_console_message(lambda message: "Content Security Policy" in message.text):
        shown.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hacked = 5'}))"
        )
        shown.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hacked=6>')")
    shown.wait_for_timeout(100)
    assert shown.evaluate("window.hacked") is None


def test_the_slider_recomputes_precision_recall_and_f1(opened, model, file):
    tagger, corpus = model
    shown, data = opened(), data_of(file)
    scores, labels = tagger.scores(corpus.test), relevant_topics(tagger, corpus)
    shown.evaluate("location.hash = 'topic-1'")
    shown.wait_for_function("document.querySelector('#one h3').textContent.length > 0")
    cuts = data["topics"][1]["cuts"]
    for place in (1, len(cuts[0]) // 2, len(cuts[0]) - 1):
        shown.locator("#cut").fill(str(place))
        cut = tagger.thresholds.copy()
        cut[1] = cuts[0][place]
        expected = evaluate(scores, labels, tagger.topics, tagger.train_sizes, tagger.train_documents, threshold=cut)
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("two_models", [False, True])
def test_axe_finds_nothing_that_shuts_anybody_out(opened, look, model, file, tmp_path, scheme, two_models):
    path = file
    if two_models:
        tagger, corpus = model
        path = write_report(tmp_path / "r.html", tagger, corpus, before=tagger, resamples=0)
    shown = opened(path, color_scheme=scheme, bypass_csp=True)
    shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    look(shown)


def test_the_narrow_page_does_not_scroll_sideways(opened):
    shown = opened(viewport={"width": 360, "height": 700})
    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.content_hash("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
