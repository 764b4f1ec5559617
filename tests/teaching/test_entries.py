"""What persons are shown about a topic is kept, changes, and is no evidence."""

import json

import pytest

from textcat import TextcatError
from textcat.teaching.export import write_audit
from textcat.teaching.pool import Pool
from textcat.teaching.session import Session

TEXTS = [f"{word} rose in week {i}" for i, word in enumerate(("tin", "gold", "iron", "zinc", "lead"))]


@pytest.fixture
def pool():
    return Pool.from_documents(TEXTS)


def test_criteria_and_exclusion_reasons_are_kept_and_can_be_changed(pool, tmp_path):
    reasons = ["no  trial", "no trial", "", "wrong population"]
    with Session.create(tmp_path / "session", pool) as session:
        session.add_topic("tin", criteria=" Trials of tin.\nNo gold. ", exclusion_reasons=reasons)
        assert session.about("tin")["criteria"] == "Trials of tin.\nNo gold."
        assert session.about("tin")["exclusion_reasons"] == ["no trial", "wrong population"]
        session.change_topic("tin", exclusion_reasons=["no tin"])
        session.change_topic("tin", criteria="Tin.", random_share=0.5)
    with Session.open(tmp_path / "session", pool) as session:
        about = session.about("tin")
        assert (about["criteria"], about["exclusion_reasons"], about["random_share"]) == ("Tin.", ["no tin"], 0.5)


def test_criteria_are_no_evidence(pool):
    scores = []
    for criteria in ("", "no gold, no iron"):
        session = Session.create(None, pool)
        session.add_topic("tin", criteria=criteria, exclusion_reasons=["gold"])
        scores.append(session.view.scores("tin").tolist())
    assert scores[0] == scores[1]


def test_an_exclusion_reason_is_in_the_journal_the_audit_and_the_judgement(pool, tmp_path):
    with Session.create(tmp_path / "session", pool) as session:
        session.add_topic("tin")
        session.add_topic("gold")
        question = session.next("tin")
        session.answer("tin", question.position, "no", exclusion_reason=" no\n trial ", others={"gold": "no"})
        assert [one.exclusion_reason for one in session.view.judgements("tin")] == ["no trial"]
        assert [one.exclusion_reason for one in session.view.judgements("gold")] == [""]
        lines = write_audit(session.view, tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line).get("exclusion_reason") for line in lines[-2:]] == ["no trial", ""]
        assert "no trial" in write_audit(session.view, tmp_path / "audit.csv").read_text(encoding="utf-8")
    with Session.open(tmp_path / "session", pool) as session:
        assert [one.exclusion_reason for one in session.view.judgements("tin")] == ["no trial"]


def test_a_wrong_exclusion_reason_is_refused_and_nothing_is_written(pool):
    session = Session.create(None, pool)
    session.add_topic("tin")
    with pytest.raises(TextcatError, match="'no trial' came with 'yes': give it with the answer 'no'"):
        session.answer("tin", 0, "yes", source="list", exclusion_reason="no trial")
    with pytest.raises(TextcatError, match="has 201 characters, and 200 are the most"):
        session.answer("tin", 0, "no", source="list", exclusion_reason="x" * 201)
    with pytest.raises(TextcatError, match="is not valid Unicode"):
        session.answer("tin", 0, "no", source="list", exclusion_reason="\ud800")
    with pytest.raises(TextcatError, match="is not valid Unicode"):
        session.add_topic("iron", exclusion_reasons=["\ud800"])
    assert session.view.judgements("tin") == []
    assert session.topics() == ["tin"]
