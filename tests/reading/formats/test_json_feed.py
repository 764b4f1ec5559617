"""JSON Feed: items with text or HTML, their tags and dates, and what is no item."""

import json

import pytest
from news_items import JSON_FEED
from read_sources import faults, ids, read

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources


@pytest.mark.parametrize("indent", [None, 2])
def test_items_give_their_texts_dates_languages_and_tags(folder, indent):
    (folder / "a.json").write_text(json.dumps(JSON_FEED, indent=indent))
    assert find_sources(["a.json"], InputSettings())[0].format == "json-feed"
    first, second = read("a.json")
    assert first.zones == {"title": "Tin rose", "abstract": "About tin.", "body": "Tin rose.\nOre & all."}
    assert (first.id, first.date, first.language) == ("tin:1", "2024-05-01T10:00:00+02:00", "en")
    assert (second.id, second.date, second.zones) == ("3", "2024-05-02T10:00:00Z", {"body": "Gold fell."})
    assert [d.topics for d in open_corpus("a.json").train] == [("metal", "medtop:20000170"), ()]


def test_an_item_that_was_changed_counts_in_its_newest_form(folder):
    newer = {**JSON_FEED["items"][0], "title": "Tin rose again", "date_modified": "2024-05-03T10:00:00Z"}
    (folder / "a.json").write_text(json.dumps({**JSON_FEED, "items": [newer, *JSON_FEED["items"]]}))
    found = read("a.json")
    assert ids(found) == ["tin:1", "3"]
    assert found[0].zones["title"] == "Tin rose again"


def test_items_of_other_types_and_without_text_are_told(folder):
    items = [{"id": "1"}, {"id": ["x"], "content_html": 3, "tags": "x", "summary": "Tin."}, {"id": "3", "tags": [3]}]
    (folder / "a.json").write_text(json.dumps({**JSON_FEED, "items": items}))
    found = read("a.json")
    assert [fault.reason for fault in faults(found)] == [
        f"Item {i} has no text, as its content is elsewhere or empty: it is left out." for i in (1, 3)
    ]
    assert found[1].zones["body"] == "Tin."
