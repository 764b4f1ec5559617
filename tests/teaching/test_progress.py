"""How far a topic is: its history, its curve, its pace."""

from teaching_work import teach


def test_the_history_has_each_group_once_in_the_order_of_the_first_answers(session):
    for position, answer in ((12, "yes"), (3, "skip"), (9, "no"), (12, "no")):
        session.answer("strike", position, answer, source="list")
    teach(session, "strike", 1)
    history = session.history("strike")
    assert history.answers.tolist()[:2] == [False, False]
    assert len(history.answers) == 3
    assert history.n_documents == session.progress("strike", None).n_groups
    assert not history.at_random.any()


def test_a_document_drawn_at_random_is_reached_when_so_many_as_ranked_before_it_have_been_asked(session):
    session.change_topic("strike", random=1)
    question = session.next("strike")
    session.answer("strike", question.position, "yes")
    session.change_topic("strike", random=0)
    for n in range(1, question.rank + 1):
        assert not session.history("strike").reached[0]
        teach(session, "strike", 1)
        assert len(session.history("strike").reached) == n + 1
    assert session.history("strike").reached[0]
