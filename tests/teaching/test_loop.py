"""Rank, ask, answer, and again."""

import numpy as np


def test_the_highest_is_asked_with_its_rank(session, pool):
    question, scores = session.next("strike"), session.scores("strike")
    firsts = np.flatnonzero(np.asarray(pool.groups) == np.arange(len(pool)))
    assert question.position == firsts[np.argmax(scores[firsts])]
    assert (question.rank, question.why) == (1, "highest score")
