"""A view shows a session, and changes nothing."""

import threading

import pytest
from teaching_work import small_pool, teach

from textcat import TextcatError
from textcat.teaching.progress import progress_of
from textcat.teaching.session import Session
from textcat.teaching.view import View


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_session_acts_and_a_view_shows():
    assert not public(Session) & public(View)
    assert not {name for name in vars(Session.create(None, small_pool(20))) if not name.startswith("_")}


def test_a_view_shows_later_answers_too(session):
    view = session.view
    assert view.labels("strike") == {}
    session.answer("strike", 4, "yes", source="list")
    assert view.labels("strike") == {4: True}
    assert [step.step for step in view.steps] == [1, 2]
    session.undo()
    assert view.labels("strike") == {}
    assert view is session.view


def test_changes_of_what_a_view_returns_change_no_session(session):
    session.answer("strike", 4, "yes", source="list")
    session.view.steps.clear()
    session.view.labels("strike").clear()
    session.view.judgements("strike").clear()
    session.view.chosen_topics().clear()
    assert len(session.view.steps) == 2
    assert session.view.labels("strike") == {4: True}
    assert len(session.view.judgements("strike")) == 1
    assert session.view.chosen_topics() == ["strike"]


def test_no_answer_comes_between_facts_that_are_read_together(session):
    answered = threading.Event()

    def answer():
        session.answer("strike", 4, "yes", source="list")
        answered.set()

    thread = threading.Thread(target=answer)
    with session.view.unchanged():
        thread.start()
        assert not answered.wait(0.2)
        assert session.view.labels("strike") == {}
        assert progress_of(session.view, "strike").yes == 0
    thread.join()
    assert session.view.labels("strike") == {4: True}


@pytest.mark.parametrize("read", [Session.about, Session.keywords])
def test_a_topic_is_not_read_while_an_answer_is_recorded(session, read):
    has_read = threading.Event()

    def wait_and_read():
        read(session, "strike")
        has_read.set()

    thread = threading.Thread(target=wait_and_read)
    with session.view.unchanged():
        thread.start()
        assert not has_read.wait(0.2)
    thread.join()
    assert has_read.is_set()


def test_groups_that_were_read_stay_as_they_were_when_records_are_split_off(session):
    before = session.view.groups
    n = len(before)
    assert before.members(0) == [0, 9]
    session.split([9])
    assert (len(before), before.members(0)) == (n, [0, 9])
    assert (len(session.view.groups), session.view.groups.members(0)) == (n + 1, [0])


def test_topics_are_chosen_once_each_and_must_be_there(session):
    session.add_topic("gold")
    assert session.view.chosen_topics() == ["strike", "gold"]
    assert session.view.chosen_topics(["gold", "gold"]) == ["gold"]
    with pytest.raises(TextcatError, match=r"no topic 'golds'.*Did you mean 'gold'"):
        session.view.chosen_topics(["golds"])
    with pytest.raises(TextcatError, match="The session has no topic: add one first"):
        Session.create(None, small_pool(20)).view.chosen_topics()


def test_a_tagger_scores_a_document_as_the_ranking_does(session, pool):
    teach(session, "strike", 6)
    for position in (0, 3, 50):
        tagger = session.view.tagger("strike", position)
        score = tagger.scores([pool.document(position)])[0, 0]
        assert score == pytest.approx(session.view.scores("strike")[position], abs=1e-5)
