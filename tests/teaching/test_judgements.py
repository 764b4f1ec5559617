"""What the answers of several persons come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat import TextcatError
from textcat.teaching.judgements import cohens_kappa
from textcat.teaching.progress import progress_of


def test_an_earlier_answer_can_be_changed_and_the_change_undone(session):
    session.answer("strike", 7, "yes", "anna", "list", "by mistake")
    session.answer("strike", 7, "no", "anna", "list")
    assert session.view.labels("strike")[7] is False
    (judgement,) = session.view.judgements("strike")
    assert (judgement.answer, judgement.note) == ("no", "")
    (undone,) = session.undo("anna")
    assert (undone.position, undone.answer) == (7, "no")
    assert session.view.labels("strike")[7] is True
    assert session.view.judgements("strike")[0].note == "by mistake"


def test_undo_takes_back_ones_own_answers_only(session):
    session.answer("strike", 4, "yes", "anna", "list")
    session.answer("strike", 8, "yes", "bert", "list")
    session.undo("anna")
    assert session.view.labels("strike") == {8: True}
    assert session.undo("anna") is None


def test_a_disagreement_counts_as_yes_until_it_is_settled(session):
    session.answer("strike", 4, "yes", "anna", "list", "pay talks")
    session.answer("strike", 4, "no", "bert", "list")
    session.answer("strike", 6, "no", "anna", "list")
    session.answer("strike", 6, "no", "bert", "list")
    agreement = session.view.agreement("strike")
    (disagreement,) = agreement.disagreements
    assert [(each.person, each.answer, each.note) for each in disagreement.judgements] == [
        ("anna", "yes", "pay talks"),
        ("bert", "no", ""),
    ]
    assert (agreement.documents, agreement.agreed, agreement.kappa) == (2, 0.5, 0.0)
    assert session.view.labels("strike") == {4: True, 6: False}
    assert progress_of(session.view, "strike").disagreements == 1
    session.answer("strike", 4, "no", "carl", "adjudicated")
    assert session.view.labels("strike") == {4: False, 6: False}
    assert not session.view.agreement("strike").disagreements
    assert session.view.agreement("strike").documents == 2
    with pytest.raises(TextcatError, match="skip adjudicates nothing"):
        session.answer("strike", 4, "skip", "carl", "adjudicated")
    session.undo("carl")
    assert session.view.labels("strike")[4] is True
    session.answer("strike", 4, "no", "carl", "list")  # two of three
    assert session.view.labels("strike")[4] is False


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_is_that_of_scikit_learn(pairs):
    from sklearn.metrics import cohen_kappa_score

    kappa = cohens_kappa(pairs)
    if kappa is None:
        assert len({answer for pair in pairs for answer in pair}) == 1
    else:
        assert kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
