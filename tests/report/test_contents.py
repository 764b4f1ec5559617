"""Excerpts and examples show parts of texts, and what is highlighted is the evidence."""

import re

import naive_report as naive
from hostile_reports import data_of
from hypothesis import given
from hypothesis import strategies as st

from textcat.model.measure import relevant_topics
from textcat.report import contents

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


def test_worst_errors_are_those_furthest_on_the_wrong_side(model, file):
    tagger, corpus = model
    scores, labels = tagger.scores(corpus.test), relevant_topics(tagger, corpus).toarray() > 0
    given_ = tagger.decisions.decide(scores)
    for j, topic in enumerate(data_of(file)["topics"]):
        wrongly, missed = (
            [corpus.test[i].id for i in ids] for ids in naive.worst(scores[:, j], labels[:, j], given_[:, j])
        )
        assert [one["id"] for one in topic["wrong"][0]] == wrongly[:3]
        assert [one["id"] for one in topic["wrong"][1]] == missed[:3]
