"""Which document is asked next, and why."""

import json

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from textcat.base.errors import TextcatError
from textcat.teaching.query import QueryStrategy, Reason, most_uncertain

SCORES = np.array([0.5, -0.1, 2, 2, -3, 0.2], np.float32)
OPEN = np.array([True, True, False, True, True, True])
NONE = np.zeros(6, bool)


def choose(scores, is_open, n_answers, strategy, key):
    return QueryStrategy.parse(strategy).choose(scores, is_open, n_answers, key)


def test_highest_and_uncertain():
    assert choose(SCORES, OPEN, 0, "highest", (0, "t")) == (3, Reason.HIGHEST)
    assert choose(SCORES, np.ones(6, bool), 0, "highest", (0, "t")) == (2, Reason.HIGHEST)  # the first of equals
    assert choose(SCORES, OPEN, 0, "uncertain", (0, "t")) == (1, Reason.UNCERTAIN)


@every("strategy", ["highest", "uncertain", "mixture", "highest:0.5", "mixture:1"])
def test_none_is_chosen_when_none_is_open(strategy):
    assert choose(SCORES, NONE, 3, strategy, (0,)) is None
    assert choose(SCORES[:0], NONE[:0], 3, strategy, (0,)) is None


def test_only_the_open_one_is_chosen_whatever_its_score():
    only = np.arange(6) == 4
    low = np.where(only, -np.inf, SCORES).astype(np.float32)
    for strategy in ("highest", "mixture", "uncertain", "highest:1"):
        assert choose(low, only, 9, strategy, (1,))[0] == 4


def test_what_is_drawn_is_a_function_of_key_and_number_of_answers():
    chosen = [choose(SCORES, OPEN, n, "mixture:0.5", (3, "wheat")) for n in range(50)]
    assert chosen == [choose(SCORES, OPEN, np.int64(n), "mixture:0.5", (np.int32(3), "wheat")) for n in range(50)]
    assert chosen != [choose(SCORES, OPEN, n, "mixture:0.5", (3, "corn")) for n in range(50)]


def test_shares_are_what_was_asked_for_and_every_open_document_is_as_likely():
    why = [choose(SCORES, OPEN, n, "mixture:0.25", (0,)) for n in range(4000)]
    at_random = [position for position, reason in why if reason == Reason.AT_RANDOM]
    uncertain = sum(reason == Reason.UNCERTAIN for _, reason in why)
    assert 0.22 < len(at_random) / 4000 < 0.28
    assert 0.17 < uncertain / (4000 - len(at_random)) < 0.23
    counts = np.bincount(at_random, minlength=6)
    assert counts[2] == 0
    assert (abs(counts[OPEN] / len(at_random) - 0.2) < 0.05).all()


@every("strategy", ["best", "", "highest:", "highest:2", "highest:-0.1", "highest:nan", ":0.1"])
def test_an_unknown_strategy_is_an_error(strategy):
    with pytest.raises(TextcatError, match=r"No strategy .*highest, mixture, uncertain"):
        QueryStrategy.parse(strategy)


def test_the_document_is_chosen_whose_scores_are_closest_to_0_over_all_topics():
    scores = np.array([[0, 0.4, 5, 0.3], [8, 0.3, 0, 0.3]], np.float32)
    is_open = np.ones(scores.shape, bool)
    assert most_uncertain(scores, is_open) == (3, 0)  # neither 0 nor 2, which have a score of 0; of equals, the first
    is_open[:, 3] = False
    assert most_uncertain(scores, is_open) == (1, 1)
    is_open[1, 1] = False  # for the other topic alone, it adds less
    assert most_uncertain(scores, is_open) == (2, 1)
    assert most_uncertain(scores, np.zeros(scores.shape, bool)) is None
    assert most_uncertain(scores[:, :0], is_open[:, :0]) is None
    assert most_uncertain([SCORES], [OPEN]) == (1, 0)


@given(
    arrays(np.float32, (3, 5), elements=st.sampled_from([-3, -1, -0.5, 0, 0.5, 2])),
    arrays(bool, (3, 5)),
)
def test_the_most_uncertain_document_is_that_of_the_formula(scores, is_open):
    def closeness(topic, position):
        return 1 / (1 + abs(float(scores[topic, position]))) if is_open[topic, position] else 0

    best = None
    for position in range(5):
        total = 0.0
        for topic in range(3):  # in this order; `sum` rounds in another way in some versions of Python
            total += closeness(topic, position)
        if total > (best[0] if best else 0):
            best = total, position
    if best is None:
        assert most_uncertain(scores, is_open) is None
        return
    topic = max(range(3), key=lambda topic: closeness(topic, best[1]))
    assert most_uncertain(scores, is_open) == (best[1], topic)


def test_reasons_are_shown_and_stored_as_their_texts():
    assert [str(reason) for reason in Reason] == ["highest score", "uncertain", "at random", "taken back", ""]
    assert f"{Reason('at random')}" == json.loads(json.dumps(Reason.AT_RANDOM)) == "at random"
