"""Evidence in whole words: contributions add up, and only words are told."""

import pytest
from teaching_work import teach

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
    full = session.evidence("strikes", position, n=1000)
    assert full.reasons
    for n in (1, 3, 1000):
        explanation = session.evidence("strikes", position, n)
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
    own = dict(session.terms("strikes", 1000))
    told = {reason.term: reason for reason in session.evidence("strikes", 3, n=1000).reasons}
    assert own["~strik~"] > 0  # "striking" was never seen, but its first characters were
    assert told["striking"].contribution > 0
    assert abs(told["wheat"].contribution) < told["striking"].contribution


def test_evidence_has_spans_and_adds_up_to_the_score(session, pool):
    teach(session, "strike", 6)
    question = session.next("strike")
    explained = session.evidence("strike", question.position, n=1000)
    assert sum(each.contribution for each in explained) + explained.bias == pytest.approx(question.score, abs=1e-5)
    zone, start, end = explained[0].spans[0]
    assert question.zones[zone][start:end].split()
    assert len(session.terms("strike", 5)) == 5
