"""Fixtures that several files of tests of this room share."""

import pytest

import textcat


@pytest.fixture(scope="module")
def corpus():
    return textcat.open_corpus("newswire")


@pytest.fixture(scope="module")
def tagger(corpus):
    return textcat.Tagger.fit(corpus, textcat.read_recipe("paum"))
