"""Near-duplicates are those that comparing all pairs finds, however many documents are alike."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from textcat.teaching.pool.duplicates import near_duplicates, size_class_bounds
from textcat.teaching.pool.index import single_terms

N_WORDS, N_PAIRS = 60, 5


def naive(documents):
    """Compare each document with all earlier leaders."""
    found = []
    for i, words in enumerate(documents):
        leaders = [j for j in range(i) if found[j] == j]
        similar = (j for j in leaders if words and 10 * len(words & documents[j]) >= 9 * len(words | documents[j]))
        found.append(next(similar, i))
    return found


def groups(documents, *, min_df=1, pairs=()):
    """Find groups by rows without the words that too few documents, or all of them, have; with columns of pairs."""
    df = np.bincount([word for words in documents for word in words], minlength=N_WORDS)
    everywhere = (df == len(documents)) & (df >= min_df)
    kept = (df >= min_df) & ~everywhere
    columns = [sorted(word for word in words if kept[word]) for words in documents]
    columns = [[*words, *(N_WORDS + pair for pair in some)] for words, some in zip(columns, pairs, strict=True)]
    indptr = np.cumsum([0, *map(len, columns)])
    arrays = np.ones(indptr[-1], np.float32), np.fromiter(chain.from_iterable(columns), np.int32), indptr
    rows = csr_matrix(arrays, shape=(len(documents), N_WORDS + N_PAIRS))
    sizes = np.array([len(words) for words in documents], np.int32)
    return near_duplicates(rows, sizes, np.arange(N_WORDS + N_PAIRS) < N_WORDS, int(everywhere.sum())).tolist()


@st.composite
def archives(draw):
    documents = []
    for _ in range(draw(st.integers(1, 25))):
        words = set(draw(st.sampled_from(documents))) if documents and draw(st.booleans()) else None
        if words is None:
            words = draw(st.sets(st.integers(0, N_WORDS - 1), max_size=N_WORDS))
        else:
            words ^= draw(st.sets(st.integers(0, N_WORDS - 1), max_size=5))
        documents.append(words)
    return documents


@settings(max_examples=60, deadline=None)
@given(archives(), st.sampled_from([1, 2]), st.data())
def test_groups_are_those_that_comparing_all_pairs_gives(documents, min_df, data):
    pairs = [sorted(data.draw(st.sets(st.integers(0, N_PAIRS - 1), max_size=2))) for _ in documents]
    assert groups(documents, min_df=min_df, pairs=pairs) == naive(documents)


def test_two_sizes_that_may_be_near_are_of_the_same_class_or_neighbours():
    bounds = size_class_bounds(400)
    for a, b in ((size, other) for size in range(1, 300) for other in range(size, 10 * size // 9 + 1)):
        low, high = np.searchsorted(bounds, [a, b], side="right") - 1
        assert high - low in (0, 1), (a, b)
        assert (a + b) // 19 <= 2 * (bounds[low + 2] - 1) // 19, (a, b)


def alike(n_documents, n_own, shared=100):
    """Documents that share words, and have some of their own each."""
    rng = np.random.default_rng(0)
    own = rng.integers(shared, shared + 1000 * n_own, (n_documents, n_own), dtype=np.int32)
    indices = np.hstack([np.tile(np.arange(shared, dtype=np.int32), (n_documents, 1)), np.sort(own, axis=1)])
    indptr = np.arange(n_documents + 1) * (shared + n_own)
    rows = csr_matrix((np.ones(indices.size, np.float32), indices.ravel(), indptr), shape=(n_documents, 10**6))
    return rows, np.diff(indptr).astype(np.int32)


@pytest.mark.parametrize("n_own", [0, 5, 12])
def test_many_documents_that_are_nearly_alike_take_no_time_that_grows_with_their_pairs(n_own):
    """All pairs would be hundreds of millions; those of 12 words of their own are below .9, and leaders all."""
    rows, sizes = alike(20_000 if n_own == 12 else 100_000, n_own)
    found = near_duplicates(rows, sizes, np.ones(rows.shape[1], bool))
    assert (found == 0).all() if n_own < 6 else (found == np.arange(len(found))).all()


def test_a_document_without_terms_repeats_none():
    assert groups([set(), set(), {1}, {1}, set()], pairs=[()] * 5) == [0, 1, 2, 2, 4]


@pytest.mark.parametrize(
    ("names", "prefixes", "of_zones", "expected"),
    [
        (["oil", "oil price", "title:oil", "~ oil~", "~l ~", "a b c"], ("title:",), False, [1, 0, 0, 1, 1, 0]),
        (["body:oil", "body:oil price", "title:~ oi~"], (), True, [1, 0, 1]),
        (["titles", "l ", "\u0438 \u0442"], (), False, [1, 1, 0]),
        ([], (), False, []),
    ],
)
def test_single_terms_are_columns_without_a_space_inside_and_without_a_prefix(names, prefixes, of_zones, expected):
    assert single_terms(names, prefixes, of_zones).tolist() == list(map(bool, expected))
