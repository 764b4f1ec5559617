"""A document is a value: equal by what it holds, fixed, and printed in one line whatever its texts."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.reading.document import Document

ZONES = st.dictionaries(st.sampled_from(["title", "body", "note"]), st.text())


@given(st.text(), ZONES)
def test_a_document_is_printed_in_a_line_that_is_short_whatever_its_texts(name, zones):
    document = Document(name, zones, ("tin",))
    printed = repr(document)
    assert len(printed.splitlines()) == 1
    shown = eval(printed, {"Document": lambda _, text, topics: text})  # the line is as Python would be written
    whole = " ".join(word for text in zones.values() for word in text.split())
    assert shown == whole if len(whole) <= 60 else (len(shown) == 60 and shown == whole[:59] + "…")


@given(ZONES, st.lists(st.text(), unique=True).map(tuple))
def test_a_document_comes_back_from_a_pickle_and_equals_what_holds_the_same(zones, topics):
    document = Document("1", zones, topics, "1987-03-03", "train", topics[:1], {"year": 1987}, "en-GB")
    assert pickle.loads(pickle.dumps(document)) == document == replace(document, zones=dict(zones))
    assert replace(document, split="test") != document


def test_a_document_cannot_be_changed_in_place():
    document = Document("1", {"body": "Tin rose."})
    assert (document.topics, document.date, document.split, document.labelled_for) == ((), "", "", None)
    with pytest.raises(FrozenInstanceError):
        document.split = "test"
