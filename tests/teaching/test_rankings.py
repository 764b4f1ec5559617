"""Evidence in whole words: contributions add up, and only words are told."""

import pytest
from teaching_work import teach

from textcat.teaching.evidence import evidence_for, terms
from textcat.teaching.pool import Pool
from textcat.teaching.session import Session

TEXTS = [
    "Unions strike at the refinery!",
    "Strikes end: workers return (mostly).",
    "Gold fell in London...",
    "Wheat exports rose; striking figures.",
]


@pytest.mark.parametrize("position", range(4))
def test_contributions_of_words_add_up_to_the_score(tmp_path, position):
    session = Session.create(tmp_path / "session", Pool.from_documents(TEXTS))
    session.add_topic("strikes", description="strike of workers")
    session.answer("strikes", 0, "yes")
    session.answer("strikes", 2, "no")
    full = evidence_for(session.view, "strikes", position, n=1000)
    assert full.reasons
    for n in (1, 3, 1000):
        explanation = evidence_for(session.view, "strikes", position, n)
        assert len(explanation.reasons) <= n
        total = explanation.bias + explanation.rest + sum(reason.contribution for reason in explanation.reasons)
        assert total == pytest.approx(explanation.score, abs=1e-5)
    for reason in full.reasons:
        assert any(map(str.isalnum, reason.term))
        assert "~" not in reason.term
        assert reason.value * reason.weight == pytest.approx(reason.contribution, abs=1e-6)
        assert reason.spans


def test_what_characters_add_goes_to_the_word_in_which_they_stand(tmp_path):
    others = [f"Report {i} tells of case{i} in town{i}." for i in range(40)]  # in 4 texts no word would be rare
    session = Session.create(tmp_path / "session", Pool.from_documents(TEXTS + others))
    session.add_topic("strikes", description="strike")
    session.answer("strikes", 0, "yes")
    session.answer("strikes", 2, "no")
    own = dict(terms(session.view, "strikes", 1000))
    told = {reason.term: reason for reason in evidence_for(session.view, "strikes", 3, n=1000).reasons}
    assert own["~strik~"] > 0  # "striking" was never seen, but its first characters were
    assert told["striking"].contribution > 0
    assert abs(told["wheat"].contribution) < told["striking"].contribution


def test_evidence_has_spans_and_adds_up_to_the_score(session, pool):
    teach(session, "strike", 6)
    question = session.next("strike")
    explained = evidence_for(session.view, "strike", question.position, n=1000)
    total = sum(each.contribution for each in explained) + explained.bias + explained.rest
    assert total == pytest.approx(question.score, abs=1e-5)
    zone, start, end = explained[0].spans[0]
    assert question.zones[zone][start:end].split()
    assert len(terms(session.view, "strike", 5)) == 5


def test_function_words_and_punctuation_are_no_evidence_to_show(tmp_path):
    texts = [f"It is the report of the year, and it is about {word} ({word})." for word in ("tin", "gold", "iron")]
    session = Session.create(tmp_path / "session", Pool.from_documents(texts))
    session.add_topic("tin")
    session.answer("tin", 0, "yes", source="list")
    session.answer("tin", 1, "no", source="list")
    explained = evidence_for(session.view, "tin", 0, n=1000)
    shown = {reason.term for reason in explained.reasons}
    assert "tin" in shown
    assert not shown & {"it", "is", "the", "of", "and", "it is", "of the", "about"}
    total = explained.bias + explained.rest + sum(reason.contribution for reason in explained.reasons)
    assert total == pytest.approx(explained.score, abs=1e-5)
