"""Fixtures that several files of tests of this room share."""

from functools import cache

import pytest

import textcat


@pytest.fixture(scope="session")
def corpus(newswire):
    return newswire


@pytest.fixture(scope="session")
def part(corpus):
    """A corpus of which every training is short."""
    return textcat.Corpus.from_documents("part", [*corpus.train[:200], *corpus.test[:40]])


@pytest.fixture(scope="session")
def tagger(newswire_tagger):
    return newswire_tagger


@pytest.fixture(scope="session")
def trained(corpus):
    """Train by a recipe with settings, once for all tests of a process."""
    return cache(lambda recipe, *settings: textcat.train(corpus, textcat.read_recipe(recipe).with_settings(settings)))
