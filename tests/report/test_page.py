"""The file is sound HTML, and no text of it runs.

What is tested in a browser needs playwright and Chromium: `scripts/optional_tools.py` finds and installs them.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_reports import HOSTILE, letters
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat.report import page
from textcat.report.write import write_report

ROOT = Path(__file__).parents[2]


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30) | st.sampled_from(HOSTILE))
def test_any_text_is_in_the_file_as_it_is_and_ends_no_element(text):
    html5lib = pytest.importorskip("html5lib")
    table = page.scrolled_table("t", text, [f"{text}x", "y"], [[text, text]])
    written = page.report_page(text, [("s", text, table)], {text: [text], "text": text})
    written.encode()
    tree = html5lib.HTMLParser(namespaceHTMLElements=False).parse(written)
    assert len(list(tree.iter("script"))) == 2
    assert len(list(tree.iter("td"))) == len(list(tree.iter("caption"))) == 1
    read = json.loads(next(tree.iter("script")).text)["text"]
    assert read == re.sub("[\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


def test_the_scripts_are_short_and_need_no_build_step():
    sizes = {path.name: len(path.read_bytes()) for path in (ROOT / "textcat/report").glob("*.js")}
    assert sizes["nodes.js"] + sizes["plots.js"] + sizes["report.js"] <= 20_000
    assert sizes["nodes.js"] + sizes["plots.js"] + sizes["trends.js"] <= 12_000
    assert sizes["nodes.js"] + sizes["many_topics.js"] <= 20_000
    assert sizes["learning_curve.js"] <= 2_500
    for name in sizes:
        script = (ROOT / "textcat/report" / name).read_text(encoding="utf-8")
        assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", script)
        assert "innerHTML" not in script


def test_the_file_is_sound_html_with_one_script_and_texts_as_texts(file):
    html5lib = pytest.importorskip("html5lib")
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(file.read_text(encoding="utf-8"))
    assert [script.get("type") for script in tree.iter("script")] == ["application/json", None]
    assert not {"img", "object", "iframe", "b"} & {
        element.tag for element in tree.iter() if isinstance(element.tag, str)
    }
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on") or name == "style"]
    names = [name.replace("\u202e", "") for name in HOSTILE]  # topics have no characters that are unseen
    assert json.loads(next(tree.iter("script")).text)["names"] == sorted(names)
    shown = {cell.text for cell in tree.iter("a") if (cell.get("href") or "").startswith("#topic-")}
    assert HOSTILE[0] in shown


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


def test_the_narrow_page_does_not_scroll_sideways(opened):
    shown = opened(viewport={"width": 360, "height": 700})
    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_learning_curve_is_drawn_if_training_made_a_forecast(opened, new_page, model, tmp_path):
    tagger, corpus = model
    ahead = [[1200, 0.8, 0.75, 0.84], [2400, 0.86, 0.8, 0.91]]
    forecast = {"measure": "top_1_accuracy", "documents": 1200, "held_out": 1200, "measured": [[120, 0.4]]}
    facts = replace(tagger.facts, choices={"forecast": forecast | {"forecast": ahead}})
    path = write_report(tmp_path / "report.html", replace(tagger, facts=facts), corpus, resamples=0)
    assert opened().locator("figure", has_text="Learning curve").count() == 0
    curve = new_page(path.as_uri()).locator("figure", has_text="Learning curve")
    said = "0.400 at 120; forecast 0.800 at 1,200, 0.860 (0.800 to 0.910) at 2,400"
    assert said in curve.locator("svg").get_attribute("aria-label")
    band = re.findall(r"[ML]([\d.]+) ([\d.]+)", curve.locator("path.band").get_attribute("d"))
    (x, top), (_, _), (_, _), (x_below, bottom) = [tuple(map(float, point)) for point in band]
    (line_x, y), _ = re.findall(r"[ML]([\d.]+) ([\d.]+)", curve.locator("path.line").get_attribute("d"))
    assert x == x_below == float(line_x)
    assert top < float(y) < bottom  # from the top of the picture
    assert curve.locator("circle").count() == 1


def test_documents_are_labelled_by_the_names_of_their_topics(new_page, tmp_path):
    corpus = letters(topics=("p1", "p2", "p3"), n=60)
    tagger = replace(textcat.train(corpus, textcat.read_recipe("paum")), topic_names={"p1": "Wheat", "p2": "Gold"})
    shown = new_page(write_report(tmp_path / "report.html", tagger, corpus, resamples=0).as_uri())
    labelled = {
        words for text in shown.locator("article .of").all_inner_texts() for words in re.findall(r"labelled (.*)", text)
    }
    assert labelled
    assert {topic for words in labelled for topic in words.split(", ")} <= {"Wheat (p1)", "Gold (p2)", "p3"}
