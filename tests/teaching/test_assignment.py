"""Who is asked about which documents."""

from teaching_work import teach

from textcat.teaching.session import Session


def test_each_person_is_asked_for_all_or_for_what_others_have_not_answered(pool):
    asked = {}
    for overlap in (1.0, 0.0, 0.4):
        session = Session.create(None, pool, overlap=overlap)
        session.add_topic("strike")
        teach(session, "strike", 200, "anna")
        asked[overlap] = set()
        while question := session.next("strike", "bert"):
            asked[overlap].add(question.position)
            session.answer("strike", question.position, "no", "bert")
    n = len(set(pool.groups.tolist()))
    assert len(asked[1.0]) == n
    assert not asked[0.0]
    assert 0.2 * n < len(asked[0.4]) < 0.6 * n


def test_two_who_share_the_work_are_not_asked_for_one_document_at_the_same_time(pool):
    session = Session.create(None, pool, overlap=0)
    session.add_topic("strike")
    of_anna = session.next("strike", "anna").position
    assert session.next("strike", "bert").position != of_anna
    teach(session, "strike", len(set(pool.groups.tolist())) - 1, "bert")
    assert session.next("strike", "bert").position == of_anna  # who has gone away keeps nobody from the last one
