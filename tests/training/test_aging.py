"""How rankings get worse with time is measured on later documents than those trained on."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

import textcat
from textcat.corpus.documents import Corpus, Document
from textcat.recipes.recipe import read_recipe
from textcat.training.aging import measure_aging
from textcat.training.examples import CountedCorpus

FIRST = date(2026, 1, 1)


def corpus_of(n, changes_on, a_day=12, dated=True):
    """Documents of two topics, whose words are others from a day on."""
    chance, documents = np.random.default_rng(0), []
    for i in range(n):
        day, topic = i // a_day, int(chance.integers(2))
        words = ["wx"[day >= changes_on] + "yz"[topic] + "abcdefgh"[chance.integers(8)] * 3 for _ in range(4)]
        date_ = str(FIRST + timedelta(day)) if dated else ""
        documents.append(Document(str(i), {"body": " ".join(words)}, (f"topic{topic}",), date=date_))
    chance.shuffle(documents)
    return Corpus.from_documents("made", documents, "train")


@pytest.fixture(scope="module")
def recipe():
    return read_recipe("paum")


def test_a_model_ages_when_words_change_and_not_otherwise(recipe):
    for changes_on, worse in ((10_000, []), (84, [False, False, True, True, True])):
        found = measure_aging(CountedCorpus(corpus_of(1440, changes_on), recipe), recipe)
        assert found["until"] == str(FIRST + timedelta(59))
        (days, n, now, low, high), *later = found["parts"]
        assert (days, n) == (0, 144)
        assert low <= now <= high
        assert now > 0.9
        assert [n for _, n, *_ in later] == [144] * 5
        assert [days for days, *_ in later] == sorted(days for days, *_ in later)
        assert [high < low for *_, high in later] == (worse or [False] * 5)


def test_what_was_measured_is_said_in_words_and_kept_in_the_model(recipe, tmp_path):
    tagger = textcat.train(corpus_of(1440, 84), recipe.with_settings(["topics.aging=true"]))
    loaded = textcat.load(textcat.save(tagger, tmp_path / "model"))
    assert loaded.facts.aging == tagger.facts.aging
    assert "of the same time" in loaded.facts.aging
    assert loaded.facts.aging.endswith("best before 31 days")
    assert not textcat.train(corpus_of(200, 80), recipe).facts.aging


def test_too_few_documents_or_none_with_dates_are_not_measured(recipe):
    for corpus in (corpus_of(900, 10), corpus_of(1440, 80, dated=False), corpus_of(1440, 80, a_day=2000)):
        assert measure_aging(CountedCorpus(corpus, recipe), recipe) is None


def test_the_facts_say_when_nothing_falls(recipe):
    facts = textcat.train(corpus_of(200, 80), recipe).facts
    parts = [[0, 100, 0.9, 0.8, 0.95], [9, 100, 0.85, 0.75, 0.9]]
    aged = replace(facts, choices={"aging": {"until": "2026-01-01", "parts": parts}})
    assert aged.aging == (
        "Top-1 accuracy 0.90 on documents of the same time, 0.85 after 9 days: no fall beyond chance in 9 days"
    )
