"""Counts of documents that are stored are those of the documents, whichever are chosen."""

import functools

import numpy as np
import pytest
from feature_settings import FEATURES

from textcat import Document, Recipe
from textcat.features.counts import StoredCounts
from textcat.features.language import open_language


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Reads the language once, and waits for no disk: the models of these tests need not outlast a loss of power."""
    known = functools.cache(lambda lang: open_language(lang, None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textcat.features.tokens.open_language", lambda lang, tables: known(lang))
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


def test_counts_of_chosen_documents_are_those_of_these_documents_alone():
    texts = ["ash birch ash birch cedar", "", "elm elm fir ash birch", "cedar ash birch ash"]
    every = [Document(str(i), {"title": text[:4], "body": text}) for i, text in enumerate(texts)]
    for way in range(len(FEATURES)):
        features = Recipe("one", **FEATURES[way]).make_features()
        whole = StoredCounts.of_documents(*features.count_all(every), np.arange(4))
        for chosen in ([0], [3, 1], [2, 0, 3]):
            fresh = Recipe("one", **FEATURES[way]).make_features()
            alone = StoredCounts.of_documents(*fresh.count_all([every[i] for i in chosen]), np.arange(len(chosen)))
            joined = whole.select(np.array(chosen[:1]))
            for i in chosen[1:]:
                joined = joined.extended(whole.select(np.array([i]))).select(np.arange(len(joined) + 1))
            for other in (whole.select(np.array(chosen)), joined):
                assert (other.zones, other.counts.terms) == (alone.zones, alone.counts.terms)
                for name, array in alone.arrays().items():
                    np.testing.assert_array_equal(other.arrays()[name], array)
