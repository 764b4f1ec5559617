"""The page of a review, in a real Chromium: by keyboard, by two people, with hostile texts."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

import textcat
from textcat.review.review import Review

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from textcat.serving.review import serve

PAGE = Path(textcat.__file__).parent / "serving" / "page"
HOSTILE = "<img src=x onerror=alert(1)>\"'></script><svg onload=alert(2)>\u202e#&"
pytestmark = pytest.mark.long


def test_the_script_is_small_and_builds_nodes_by_text():
    script, page, style = ((PAGE / f"review.{ending}").read_text(encoding="utf-8") for ending in ("js", "html", "css"))
    assert len(script.encode()) <= 20_000
    dangerous = r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|srcdoc|DOMParser"
    assert not re.findall(dangerous + r"|createContextualFragment|setHTML|import\(|innerText|javascript:", script)
    assert {*re.findall(r"https?://[^\s\"'`)]+", script + page + style)} == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"\son\w+=|style=|<style|<script(?! type=\"module\" src=)|@import|url\(", page + style)


@pytest.fixture
def review(tagged_archive, tmp_path):
    return Review(tagged_archive, tmp_path, most=20, audit=0.3)


@pytest.fixture
def visit(served_by, new_page):
    """Open the page of a review as somebody."""
    urls = {}

    def open_(of, person="Ada", **options):
        if id(of) not in urls:
            urls[id(of)] = served_by(partial(serve), of)
        page = new_page(urls[id(of)], **options)
        page.wait_for_selector("#who[open]")
        page.keyboard.type(person)
        page.keyboard.press("Enter")
        page.wait_for_selector("#document-title:not(:empty)", state="attached")  # unseen where a document has none
        return page

    yield open_
    assert not [url for url in new_page.asked if not url.startswith((*urls.values(), "data:image/svg+xml,"))]


def _says(page, selector, words):
    page.wait_for_function(
        "([selector, words]) => document.querySelector(selector).textContent.includes(words)", arg=[selector, words]
    )


def _asked(document):
    return [tag.topic for tag in document.tags if tag.is_asked]


def _answer(page, key):
    """Press a key, and wait for the next document."""
    before = page.locator("#document-id").text_content()
    page.keyboard.press(key)
    page.wait_for_function("before => document.querySelector('#document-id').textContent !== before", arg=before)


def test_documents_are_judged_by_keys_alone(visit, review):
    page = visit(review)
    first = review.documents[0]
    assert page.evaluate("document.activeElement.id") == "document"  # from which a screen reader begins to read
    page.wait_for_selector("#document-text mark, #document-title mark")
    topics = _asked(first)
    for number in range(len(topics)):
        page.keyboard.press("yn"[number % 2])
    missing = next(topic for topic in review.topics.topics if topic not in first.document.topics)
    page.keyboard.press("a")
    page.keyboard.type(missing)
    page.keyboard.press("Enter")
    _says(page, "#tags", "added by you")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.keyboard.type("yes, no and skip")  # keys are not active while one types
    page.keyboard.press("Enter")
    _answer(page, "Enter")
    (made,) = review.corrections
    assert made.answers == {topic: number % 2 == 0 for number, topic in enumerate(topics)} | {missing: True}
    assert (made.person, made.via, made.note) == ("Ada", "review", "yes, no and skip")
    assert page.input_value("#note") == ""
    _says(page, "#progress", "1 of 20 documents")
    page.keyboard.press("r")
    _answer(page, "Enter")
    assert {*[*review.corrections][1].answers.values()} == {False}
    _answer(page, "s")
    _says(page, "#said", "Skipped")
    _answer(page, "u")
    _says(page, "#said", "Taken back")
    assert len([*review.corrections]) == 2


def test_nothing_is_saved_before_something_is_judged(visit, review):
    page = visit(review)
    page.keyboard.press("Enter")
    _says(page, "#said", "Nothing is judged yet")
    page.locator("#missing").fill("no such topic")
    page.locator("#missing-form button").click()
    _says(page, "#error", "No such topic")
    page.locator("#missing").fill("whe")
    page.wait_for_selector("#topics option[value=wheat]", state="attached")
    _says(page, "#error", "No such topic")  # what is searched for meanwhile takes no error away
    assert [*review.corrections] == []


def test_two_people_are_shown_other_documents_and_each_others_answers(visit, review):
    ada, bob = visit(review, "Ada"), visit(review, "Bob", locale="de")
    assert ada.locator("#document-id").text_content() != bob.locator("#document-id").text_content()
    review.answer(2, {_asked(review.documents[2])[0]: True}, "Cid", "sure")
    review.answer(2, {}, "Ada")
    ada.keyboard.press("u")
    _says(ada, "#earlier", f"Cid: {_asked(review.documents[2])[0]} yes “sure”")


def test_the_page_is_for_everybody(visit, review, look):
    page = visit(review)
    look(page, "review")
    page.keyboard.press("?")
    look(page, "keys")
    page.keyboard.press("Escape")
    for document in review.documents:
        review.answer(document.number, {tag.topic: True for tag in document.tags if tag.is_audited}, "Ada")
    page.locator("#to-audit").click()
    page.wait_for_selector("#audit-page table")
    assert page.locator("#audit-page caption").all_text_contents() == ["All", "By topic", "By month"]
    look(page, "audit")
    page.keyboard.press("Tab")
    page.set_viewport_size({"width": 360, "height": 700})
    look(page, "audit, narrow")
    page.reload()
    page.locator("#to-review").click()
    _says(page, "#nothing", "No document is left")
    look(page, "nothing left")


def test_hostile_texts_and_names_stay_text(visit, tmp_path, promising_model):
    line = {
        "id": HOSTILE,
        "title": f"{HOSTILE} wheat",
        "body": f"Wheat {HOSTILE} rose. Wheat exports.",
        "date": HOSTILE,
    }
    (tmp_path / "odd.jsonl").write_text(json.dumps(line) + "\n")
    textcat.tag_archive(promising_model, tmp_path / "odd.jsonl", tmp_path / "tags", jobs=1)
    review = Review(tmp_path / "tags", audit=1.0)
    page = visit(review, HOSTILE)
    _says(page, "#document-text", HOSTILE)
    page.locator("#note").fill(HOSTILE)
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    page.keyboard.press("Enter")
    _says(page, "#nothing", "No document is left")
    page.keyboard.press("u")
    _says(page, "#said", "Taken back")  # the id of before is still in the hidden part of the page
    _says(page, "#document-id", HOSTILE)
    assert not page.evaluate("document.querySelectorAll('img, #document-text svg').length")
