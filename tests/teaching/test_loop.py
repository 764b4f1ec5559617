"""Rank, ask, answer, and again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textcat.teaching.loop import Loop
from textcat.teaching.query import QueryStrategy, Reason


def test_the_highest_is_asked_with_its_rank(session, pool):
    question, scores = session.next("strike"), session.view.scores("strike")
    firsts = np.flatnonzero(np.asarray(pool.groups) == np.arange(len(pool)))
    assert question.position == firsts[np.argmax(scores[firsts])]
    assert (question.rank, question.why) == (1, "highest score")


class Echo:
    """Scores the documents by the labels that it was trained on, and by its evidence."""

    def __init__(self, n):
        self.n = n

    def train(self, positions, labels, examples=None):
        scores = np.zeros(self.n, np.float32)
        scores[positions] = labels
        return scores if examples is None else scores + examples

    def scores(self, weights):
        return weights * 2


class Given:
    """Answers by position."""

    def __init__(self, answers):
        self.answers, self.n_changes = answers, len(answers)

    def labelled(self):
        return np.array([*self.answers], int), np.array([1 if yes else -1 for yes in self.answers.values()], np.int8)


def test_a_ranking_is_what_the_ranker_makes_of_answers_and_evidence():
    loop = Loop(Echo(4), (0,))
    assert loop.ranking is None
    ranking = loop.rank(Given({1: True, 3: False}))
    assert loop.ranking is ranking
    assert (ranking.model, ranking.scores.tolist()) == (2, [0, 2, 0, -2])
    assert loop.rank(Given({1: True}), np.arange(4)).scores.tolist() == [0, 4, 4, 6]


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30), st.integers(0, 9))
def test_a_rank_is_one_more_than_the_open_documents_that_score_higher(documents, n_answers):
    scores, is_open = np.array([s for s, _ in documents], np.float32), np.array([o for _, o in documents])
    loop = Loop(Echo(len(documents)), ("key",))
    loop.rank(Given({}), scores / 2)
    choice = loop.ask(QueryStrategy.parse("mixture:0.5"), is_open, n_answers)
    if not is_open.any():
        assert choice is None
        return
    assert is_open[choice.position]
    assert choice.score == scores[choice.position]
    assert choice.rank == 1 + sum(s > choice.score for s, o in documents if o)
    if choice.reason == Reason.HIGHEST:
        assert choice.rank == 1
    assert choice == loop.ask(QueryStrategy.parse("mixture:0.5"), is_open, n_answers)
