"""Advice is a sentence that is true, and a band that was shown stays."""

import re

import numpy as np
import pytest
from cases import every
from teaching_work import teach

from textcat.teaching.advice import Advisor, CachedBand, about_band, last_band, when_to_stop
from textcat.teaching.progress import history
from textcat.teaching.stopping import RULES, History, Stopper

N = 2000


def history_of(answers, at_random=None):
    answers = np.array(answers, bool)
    drawn = np.zeros(len(answers), bool) if at_random is None else np.array(at_random, bool)
    return History(answers, drawn, N)


def told(answers, stopper):
    history = history_of(answers)
    return when_to_stop(stopper, history, stopper.estimate(history))


@every("target", [0.8, 0.95])
@every("seed", range(3))
def test_after_just_as_many_noes_as_were_told_one_can_stop(target, seed):
    rng = np.random.default_rng(seed)
    answers = rng.random(300) < np.linspace(0.9, 0, 300) ** 3
    stopper = Stopper(target=target)
    needed = re.match(r"If the next ([\d,]+) answers are all no, you can stop: ", told(answers, stopper))
    if needed is None:
        assert told(answers, stopper).startswith("You can stop: ")
        return
    more = int(needed[1].replace(",", ""))
    assert stopper.may_stop(history_of([*answers, *[False] * more]))
    assert not stopper.may_stop(history_of([*answers, *[False] * (more - 1)]))
    assert told([*answers, *[False] * (more - 1)], stopper).startswith("If the next answer is no, you can stop: ")
    assert told([*answers, *[False] * more], stopper).startswith("You can stop: ")


def test_the_sentence_has_the_recall_and_the_confidence():
    answers = [*[True] * 20, *[False] * 400]
    assert told(answers, Stopper("learned", 0.9, 0.8)).endswith("90 % found, with 80 % confidence.")


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_sentence_at_every_moment(rule):
    stopper = Stopper(rule)
    for answers in ([], [False], [True], [True] * 30, [True, False] * 40, [*[True] * 9, *[False] * 1991]):
        assert re.fullmatch(r"[A-Z][^.]*(\.\d+)?[^.]*\.( [A-Z].*\.)?", told(answers, stopper)), (rule, answers)
    assert told([False] * 20, stopper).startswith(("Nothing is found yet", "You can stop"))
    assert "a larger share of them (--random-share)" in told([True, False], Stopper("sample"))


class StopperOfOneCourse(Stopper):
    """Makes each estimate once: all histories are beginnings of the same answers."""

    made = {}  # noqa: RUF012

    def estimate(self, history):
        n = len(history.answers)
        return self.made[n] if n in self.made else self.made.setdefault(n, super().estimate(history))


def test_a_band_that_was_shown_stays():
    rng = np.random.default_rng(1)
    stopper, shown = StopperOfOneCourse(), None
    answers = [*(rng.random(60) < 0.2), *[True] * 25, *(rng.random(200) < 0.02)]
    for n in range(1, len(answers) + 1):
        history = history_of(answers[:n])
        estimate = stopper.estimate(history)
        band = last_band(stopper, history, estimate)
        for before in (n // 2, n - 1, n):  # what is cached of earlier answers changes nothing
            earlier = history.first(before)
            cached = CachedBand(earlier, last_band(stopper, earlier, stopper.estimate(earlier)))
            assert last_band(stopper, history, estimate, cached) == band
        for another in (history._replace(answers=~history.answers), history._replace(n_documents=N + 1)):
            assert last_band(stopper, history, estimate, CachedBand(another, None)) == band
        if shown is not None:
            assert band is not None, n
            assert band.n_answers in (n, shown.n_answers), n
        sentence = about_band(band, history)
        if band is not None and band.n_answers == n:
            assert not sentence
        elif any(answers[:n]):
            assert sentence.endswith("An estimate comes when finds become rarer: go on answering.")
        shown = band
    assert shown is not None
    assert shown.n_answers == len(answers)


def test_without_a_find_there_is_no_band_and_advice_says_what_to_do():
    history = history_of([False] * 5)
    assert last_band(Stopper(), history, Stopper().estimate(history)) is None
    assert about_band(None, history) == ""
    assert "search for a document that belongs to the topic" in told([False] * 5, Stopper())


def test_advice_for_another_recall_is_not_that_of_the_recall_before(session):
    teach(session, "strike", 30)
    advisor = Advisor(session.view)
    for target in (0.8, 0.95, 0.8, None):
        advice = advisor.advise("strike", target)
        assert advice == Advisor(session.view).advise("strike", target)
        assert advice.estimate == Stopper("learned", target or 0.95).estimate(history(session.view, "strike"))


def test_a_split_makes_the_band_anew(session):
    teach(session, "strike", 12)
    advisor = Advisor(session.view)
    advisor.advise("strike")
    session.split([9])
    assert advisor.advise("strike") == Advisor(session.view).advise("strike")


def test_the_rule_without_a_model_asks_for_random_questions_until_it_has_some(session):
    teach(session, "strike", 10)
    advice = Advisor(session.view, Stopper("sample")).advise("strike")
    assert advice.estimate.more is None
    assert "needs more than 0 answers on documents drawn at random" in advice.advice
