"""The report of a model of thousands of topics: bands, a row for each topic that can be searched, the worst documents.

What is tested in a browser needs playwright and Chromium: `scripts/optional_tools.py` finds and installs them.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hostile_reports import HOSTILE, RULES, data_of, letters

import textcat
from textcat.base.errors import TextcatError
from textcat.report.write import write_report
from textcat.training.steps import train_and_evaluate


@pytest.fixture
def few_are_many(monkeypatch):
    """Lets three topics count as many, of which the table shows two."""
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 3)
    monkeypatch.setattr("textcat.report.many_topics.SHOWN", 2)


@pytest.fixture
def named(few_are_many):
    corpus = letters(("p1", "p2", "p3", "p4", "p5"), n=60)
    names = {"p1": "Wheat <i>and</i> flour", "p2": "Gold", "p3": "Old gold"}
    return replace(textcat.train(corpus, textcat.read_recipe("paum")), topic_names=names), corpus


def test_the_report_has_bands_topics_and_documents_and_stays_small(named, tmp_path):
    tagger, corpus = named
    path = write_report(tmp_path / "r.html", tagger, corpus, resamples=100)
    text, data = path.read_text(encoding="utf-8"), data_of(path)
    assert "nDCG@10" in text
    assert len(text) < 50_000
    labels = {"Wheat <i>and</i> flour (p1)", "Gold (p2)", "Old gold (p3)", "p4", "p5"}
    assert {row[0] for row in data["topics"]} == labels
    assert sum(row[2] for row in data["topics"]) == len(corpus.test)
    with pytest.raises(TextcatError, match="not looked for in models of 1,000 topics or more"):
        write_report(path, tagger, corpus, label_issues=tmp_path / "s")


def test_what_was_measured_on_a_held_out_sample_has_no_figures_of_topics(few_are_many, tmp_path):
    corpus = letters(test=False, n=400)
    tagger = train_and_evaluate(corpus, textcat.read_recipe("many-topics").with_settings(["topics.shortlist=2"]))
    path = write_report(tmp_path / "r.html", tagger, corpus)
    assert [row[2:] for row in data_of(path)["topics"]] == [[None] * 6] * 3
    assert "ranked worst" not in path.read_text(encoding="utf-8")


def test_an_earlier_model_has_its_bands_too(named, tmp_path):
    tagger, corpus = named
    path = write_report(tmp_path / "r.html", tagger, corpus, before=tagger, names=("old", "new"), resamples=0)
    text = path.read_text(encoding="utf-8")
    assert 0 < text.index("Overview: new") < text.index("Overview: old")


def test_topics_are_searched_by_name_or_id_among_all_and_sorted(named, tmp_path, new_page):
    tagger, corpus = named
    page = new_page(write_report(tmp_path / "r.html", tagger, corpus, resamples=0).as_uri())
    heads = page.locator("#table tbody th")
    assert heads.count() == 2
    assert page.inner_text("#shown") == "5 of 5 topics; the first 2 are shown"
    page.fill("#filter", "GOLD")
    assert sorted(heads.all_inner_texts()) == ["Gold (p2)", "Old gold (p3)"]
    assert page.inner_text("#shown") == "2 of 5 topics"
    page.fill("#filter", "<i>AND")
    assert heads.all_inner_texts() == ["Wheat <i>and</i> flour (p1)"]
    page.fill("#filter", "p")
    for title, column, sign in (("Topic", "th", 1), ("F1", "td:last-child", -1), ("F1", "td:last-child", 1)):
        page.locator("#table thead button", has_text=title).focus()
        page.keyboard.press("Enter")
        values = page.locator(f"#table tbody {column}").all_inner_texts()
        if title == "F1":
            values = [sign * float(value) for value in values]
        assert all(first <= second for first, second in pairwise(values))


def test_the_worst_documents_show_wanted_and_given_topics_by_name_and_are_searched(named, tmp_path, new_page):
    tagger, corpus = named
    page = new_page(write_report(tmp_path / "r.html", tagger, corpus, resamples=0).as_uri())
    articles = page.locator("#worst article:visible")
    assert articles.count() == len(corpus.test)
    wanted = [text.partition("Wanted: ")[2].partition("\n")[0] for text in articles.all_inner_texts()]
    name_of = {topic: tagger.topic_names.get(topic, topic) for topic in tagger.topics}
    assert sorted(wanted) == sorted(name_of[topic] for document in corpus.test for topic in document.topics)
    assert page.locator("#worst mark").count() > 0
    sample = corpus.test[3].zones["title"]
    page.fill("#find", sample.upper())
    assert all(sample in text for text in articles.all_inner_texts())
    assert page.inner_text("#found") == f"{articles.count()} of {len(corpus.test)} documents"
    page.fill("#find", "nothing has this")
    assert articles.count() == 0


@pytest.mark.parametrize("scheme", RULES)
def test_axe_finds_nothing_that_shuts_anybody_out(few_are_many, tmp_path, new_page, look, scheme):
    corpus = letters(HOSTILE, n=60)
    path = write_report(tmp_path / "r.html", textcat.train(corpus, textcat.read_recipe("paum")), corpus)
    page = new_page(path.as_uri(), color_scheme=scheme, bypass_csp=True)
    look(page, **RULES[scheme])
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_no_text_of_a_topic_or_document_runs(few_are_many, tmp_path, new_page):
    corpus = letters(HOSTILE, n=60)
    path = write_report(tmp_path / "r.html", textcat.train(corpus, textcat.read_recipe("paum")), corpus)
    page = new_page(path.as_uri())
    page.fill("#filter", "o")
    page.fill("#find", "bold")
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert new_page.asked == [path.as_uri()]
    assert page.query_selector("main b[onclick], img, [onload]") is None
