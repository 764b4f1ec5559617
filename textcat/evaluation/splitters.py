"""Split multilabel samples into folds with equal shares of every label, by splitters for scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import type_of_target

from textcat.base.folds import assign_units
from textcat.base.label_lists import different_labels, indicator_of_lists, plain_labels, sparse_indicator
from textcat.base.parameters import is_whole

_Splits = Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]


class MultilabelStratifiedKFold(BaseCrossValidator):
    """Split samples with several labels into folds that have nearly the same share of each label.

    Samples of rare labels are assigned first. Each sample goes into the fold where it adds least to the sum of squares
    of all labels' shares. All samples share an additional label, which makes the folds equally large. If `y` has one
    class per sample instead, two folds differ by at most one sample of each class.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the samples first. False: the same samples always have the same folds.
    random_state : int, RandomState or None, default=None
        With `shuffle`, draws the order of samples; the same int draws the same order.
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | np.random.RandomState | None = None
    ):
        if not is_whole(2)(n_splits):
            raise ValueError(f"n_splits={n_splits!r} is no number of folds; give a whole number, at least 2")
        if random_state is not None and not shuffle:
            raise ValueError("random_state has no effect if shuffle is False; set shuffle=True, or leave it out")
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored

        Returns
        -------
        int
        """
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> _Splits:
        """Yield for each fold the row numbers to train on (all other folds) and to test on (the fold itself).

        Parameters
        ----------
        X : sequence or array of n_samples
            Only its length is used.
        y : array-like or sparse of shape (n_samples, n_labels), 0 or 1; or array-like of shape (n_samples,)
            Instead of an indicator, also a list, tuple or set of labels for each sample.
        groups : ignored

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If there are fewer samples than folds, `y` is neither multilabel nor one class per sample, or a label is
            missing.
        """
        X, y = indexable(X, y)
        labels = _indicator(y)
        yield from self._split(labels, np.arange(labels.shape[0]))

    def _split(self, labels: Any, group_of: NDArray[Any]) -> _Splits:
        """Yield splits that keep the samples of a group in one fold; groups are numbered from 0."""
        n_groups = int(group_of.max(initial=-1)) + 1
        if n_groups < self.n_splits:
            raise ValueError(f"{n_groups:,} samples or groups of them cannot be split into {self.n_splits:,} folds")
        labels = sp.hstack([np.ones((labels.shape[0], 1), np.int64), labels], format="csr")
        order = np.arange(n_groups)
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(n_groups)
        place_of = np.argsort(order)[group_of]
        members = sp.csr_array((np.ones(len(place_of), np.int64), (place_of, np.arange(len(place_of)))))
        fold_of = assign_units(members @ labels, self.n_splits)[place_of]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


class MultilabelStratifiedGroupKFold(MultilabelStratifiedKFold):
    """Split multilabel samples as `MultilabelStratifiedKFold` does, but keep the samples of a group in one fold.

    The largest groups are assigned first. If groups are few or large, folds are only as even as the groups allow.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the groups first; this affects which of equally large groups share a fold.
    random_state : int, RandomState or None, default=None
        With `shuffle`, draws the order of groups; the same int draws the same order.
    """

    # The attribute name by which scikit-learn's metadata routing finds out that `split` needs groups.
    __metadata_request__split: ClassVar = {"groups": True}

    def split(self, X: Any, y: Any, groups: Any = None) -> _Splits:
        """Yield for each fold the row numbers to train on (all other folds) and to test on (the fold itself).

        Parameters
        ----------
        X, y
            As for `MultilabelStratifiedKFold`.
        groups : array-like of shape (n_samples,)
            The group of each sample: any sortable values.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If there are no groups or fewer than folds, `y` is neither multilabel nor one class per sample, or a label
            or a sample's group is missing.
        """
        if groups is None:
            raise ValueError("The groups parameter is None; give the group of each sample")
        X, y, groups = indexable(X, y, groups)
        yield from self._split(_indicator(y), _group_numbers(groups))


def _group_numbers(groups: Any) -> NDArray[Any]:
    """Return the number of each sample's group, from 0."""
    groups = np.asarray(plain_labels(groups, "groups"))
    if groups.ndim != 1 and groups.shape[1:] != (1,):
        raise ValueError(f"groups must have one value per sample, such as a text or a number, not {groups.shape[1:]}")
    if groups.dtype.kind == "f":
        assert_all_finite(groups, input_name="groups")
    return different_labels(groups.ravel(), "groups")[1]


def _indicator(y: Any) -> sp.csr_array:
    """Return labels as a sparse 0/1 array of shape (n_samples, n_labels or n_classes)."""
    y = plain_labels(y)
    if (of_lists := indicator_of_lists(y)) is not None:
        return sp.csr_array(of_lists[0])
    y = y if sp.issparse(y) else np.asarray(y)
    if y.ndim == 2 and (sp.issparse(y) or y.shape[1] != 1):
        return sp.csr_array(sparse_indicator(y), dtype=np.int64)
    y = column_or_1d(y)
    classes, codes = different_labels(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"Labels cannot be shared out if they are {kind}; give an indicator of 0 and 1, or classes")
    return sp.csr_array((np.ones(len(codes), np.int64), (np.arange(len(codes)), codes)), (len(codes), len(classes)))
