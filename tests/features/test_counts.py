"""Counts of documents that are stored are those of the documents, whichever are chosen."""

import numpy as np
import pytest
from cases import every
from feature_settings import FEATURES

from textcat import Document, Recipe
from textcat.features.counts import ARRAYS, StoredCounts, smallest_type


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


def counts_of(documents, settings):
    return StoredCounts.of_documents(
        *Recipe("one", **settings).make_features().count_all(documents), np.arange(len(documents))
    )


def stored_counts(settings=FEATURES[1]):
    return counts_of(
        [Document("0", {"title": "ash", "body": "birch ash birch"}), Document("1", {"body": "elm"})], settings
    )


@every("settings", FEATURES)
def test_counts_come_back_from_the_arrays_of_a_file(settings):
    counts = stored_counts(settings)
    read = StoredCounts.from_arrays(counts.zones, counts.counts.terms, counts.arrays())
    assert len(read) == len(counts) == 2
    for name, array in counts.arrays().items():
        np.testing.assert_array_equal(read.arrays()[name], array)
        assert array.dtype == smallest_type(array).dtype


@every("settings", FEATURES)
def test_rows_of_stored_counts_are_rows_of_the_documents(settings):
    words = ["ash", "birch", "cedar", "elm"]
    documents = [Document(str(i), {"title": words[i % 4], "body": " ".join(words[i % 3 :])}) for i in range(9)]
    features, again = (Recipe("one", **settings).make_features() for _ in range(2))
    X = features.fit_transform(documents)
    counted = counts_of(documents, settings).counted_for(again)
    again.fit_counted(counted)
    assert again.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    np.testing.assert_array_equal(again.rows_of(counted).toarray(), X.toarray())


@every("name", ARRAYS)
def test_arrays_that_do_not_fit_together_are_refused(name):
    counts = stored_counts({"features": {"ngrams": 2, "chars": 3}})
    arrays = counts.arrays()
    for wrong in (
        arrays[name][:, None, None],
        np.append(arrays[name].ravel(), 100),
        arrays[name].astype(np.int64) - 100,
    ):
        with pytest.raises(ValueError, match="arrays of counts"):
            StoredCounts.from_arrays(counts.zones, counts.counts.terms, arrays | {name: wrong})
