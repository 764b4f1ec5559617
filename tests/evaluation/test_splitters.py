"""Every sample is in one test fold, groups stay whole, and labels are shared out evenly."""

import naive_folds
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from textcat import MultilabelStratifiedGroupKFold, MultilabelStratifiedKFold
from textcat.base.folds import assign_units

LABELS = st.tuples(st.integers(6, 40), st.integers(2, 5)).flatmap(
    lambda shape: arrays.arrays(np.int64, shape, elements=st.integers(0, 1))
)
N_SPLITS = st.integers(2, 5)


def folds_of(splitter, y, groups=None):
    """Return the fold of each sample, after a look at whether there is one, and others are trained on."""
    fold = np.full(len(y) if not sp.issparse(y) else y.shape[0], -1)
    splits = list(splitter.split(np.zeros((len(fold), 1)), y, groups))
    assert len(splits) == splitter.get_n_splits()
    for number, (train, test) in enumerate(splits):
        assert len(test)
        assert (fold[test] == -1).all()
        fold[test] = number
        assert sorted([*train, *test]) == list(range(len(fold)))
    assert (fold >= 0).all()
    return fold


def drawn_labels(n=2000, n_labels=40, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.random((n, n_labels)) < 0.5 / np.arange(1, n_labels + 1)).astype(int)


def deviation(y, fold):
    """Return by how much, on average, a label's share of a fold's samples differs from its share of all."""
    shares = np.array([y[fold == number].mean(axis=0) for number in range(fold.max() + 1)])
    return np.abs(shares - y.mean(axis=0)).mean()


@given(arrays.arrays(np.int64, st.tuples(st.integers(5, 25), st.integers(1, 4)), elements=st.integers(0, 3)), N_SPLITS)
def test_units_are_assigned_as_the_plainest_program_does(counts, n_folds):
    assert assign_units(sp.csr_array(counts), n_folds).tolist() == naive_folds.assign_units(counts.tolist(), n_folds)


@given(LABELS, N_SPLITS, st.one_of(st.none(), st.integers(0, 5)))
def test_folds_are_the_same_again_and_for_sparse_labels(y, n_splits, seed):
    splitter = MultilabelStratifiedKFold(n_splits, shuffle=seed is not None, random_state=seed)
    fold = folds_of(splitter, y)
    assert folds_of(splitter, y).tolist() == fold.tolist()
    assert folds_of(splitter, sp.csr_array(y)).tolist() == fold.tolist()


@given(LABELS, N_SPLITS, st.integers(0, 5))
def test_shares_differ_less_than_those_of_folds_at_random_are_expected_to(y, n_splits, seed):
    fold = folds_of(MultilabelStratifiedKFold(n_splits, shuffle=True, random_state=seed), y)
    check_squares(np.column_stack([np.ones(len(y), int), y]), fold, n_splits)


@given(LABELS, N_SPLITS, st.data())
def test_groups_stay_whole_and_shares_differ_less_than_at_random(y, n_splits, data):
    names = [*"abcdef"[:n_splits], *data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=len(y), max_size=len(y)))]
    groups = np.array(names[: len(y)])
    fold = folds_of(MultilabelStratifiedGroupKFold(n_splits, shuffle=True, random_state=1), y, groups)
    assert all(len(set(fold[groups == group])) == 1 for group in groups)
    counts = np.array([np.append((groups == group).sum(), y[groups == group].sum(axis=0)) for group in set(groups)])
    check_squares(counts, np.array([fold[groups == group][0] for group in set(groups)]), n_splits)


def check_squares(counts, fold, n_splits):
    """The sum of the squares of differences is at most what is expected if each unit's fold is drawn at random."""
    shares = counts[:, counts.any(axis=0)] / counts.sum(axis=0)[counts.any(axis=0)]
    of_folds = np.array([shares[fold == number].sum(axis=0) for number in range(n_splits)])
    assert ((of_folds - 1 / n_splits) ** 2).sum() <= (1 - 1 / n_splits) * (shares**2).sum() + 1e-9


@given(st.lists(st.sampled_from("abcd"), min_size=6, max_size=60), N_SPLITS, st.integers(0, 5))
def test_of_one_class_per_sample_folds_have_the_same_number_but_for_one(classes, n_splits, seed):
    fold = folds_of(MultilabelStratifiedKFold(n_splits, shuffle=True, random_state=seed), classes)
    for is_in in ([c == name for c in classes] for name in ("a", "b", "c", "d")):
        assert np.ptp(np.bincount(fold[is_in], minlength=n_splits)) <= 1
    assert np.ptp(np.bincount(fold)) <= 1


def test_a_group_of_each_sample_gives_the_folds_without_groups():
    y = drawn_labels()
    grouped = folds_of(MultilabelStratifiedGroupKFold(), y, np.arange(len(y)))
    assert grouped.tolist() == folds_of(MultilabelStratifiedKFold(), y).tolist()


def test_shares_are_several_times_as_even_as_those_of_random_folds():
    y = drawn_labels()
    fold = folds_of(MultilabelStratifiedKFold(shuffle=True, random_state=0), y)
    assert deviation(y, fold) < 0.2 * deviation(y, folds_of(KFold(shuffle=True, random_state=0), y))
    assert np.ptp(np.bincount(fold)) <= 1


def test_shuffling_gives_other_folds():
    y = drawn_labels(200)
    folds = [folds_of(MultilabelStratifiedKFold(shuffle=True, random_state=seed), y).tolist() for seed in (0, 1)]
    assert folds[0] != folds[1]


@pytest.mark.parametrize("routed", [False, True])
def test_groups_reach_the_splitter_through_tools_of_scikit_learn(routed):
    y, groups = drawn_labels(60, 2), np.arange(60) // 3
    X, cv = y + np.random.default_rng(0).normal(size=y.shape), MultilabelStratifiedGroupKFold(3)
    learner = OneVsRestClassifier(LogisticRegression())
    with sklearn.config_context(enable_metadata_routing=routed):
        if not routed:
            assert len(cross_val_score(learner, X, y, groups=groups, cv=cv)) == 3
        search = GridSearchCV(learner, {"estimator__C": [0.1, 1]}, cv=cv).fit(X, y, groups=groups)
    assert search.best_score_ > 0


def test_what_cannot_be_split_is_said():
    y = drawn_labels(4, 2)
    for arguments, sentence in (
        ({"n_splits": 1}, "give a whole number, at least 2"),
        ({"n_splits": 2.5}, "give a whole number, at least 2"),
        ({"random_state": 3}, "set shuffle=True"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MultilabelStratifiedKFold(**arguments)
    for splitter, labels, groups, sentence in (
        (MultilabelStratifiedKFold(5), y, None, "4 samples or groups of them cannot be split into 5 folds"),
        (MultilabelStratifiedGroupKFold(3), y, [1, 1, 2, 2], "2 samples or groups of them"),
        (MultilabelStratifiedGroupKFold(2), y, None, "groups parameter is None"),
        (MultilabelStratifiedKFold(2), [0.5, 1.2, 3.4, 0.1], None, "give an indicator of 0 and 1"),
        (MultilabelStratifiedKFold(2), y[:3], None, "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=sentence):
            next(splitter.split(np.zeros((4, 1)), labels, groups))


@every("kind", [list, tuple, set])
def test_lists_of_labels_are_shared_out_as_their_indicator(kind):
    Y = np.random.default_rng(0).integers(0, 2, (40, 5))
    lists = [kind(f"label {column}" for column in np.flatnonzero(row)) for row in Y]
    splitter = MultilabelStratifiedKFold(4)
    assert np.array_equal(folds_of(splitter, lists), folds_of(splitter, Y))
    groups = np.arange(40) // 2
    grouped = MultilabelStratifiedGroupKFold(4)
    assert np.array_equal(folds_of(grouped, lists, groups), folds_of(grouped, Y, groups))
