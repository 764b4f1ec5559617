"""Read lists of labels, one list per document, as the estimators accept them, and compare predictions with them."""

from typing import Any

import numpy as np

_LIST = list | tuple | set | frozenset | np.ndarray


def indicator_of_lists(y: Any) -> tuple[Any, np.ndarray] | None:
    """Convert lists of labels to a 0/1 indicator matrix and the labels of its columns; return None for any other `y`.

    Lists of numbers that are all of the same length do not count as lists of labels, but as the rows of an array.

    Parameters
    ----------
    y : list, tuple, object array, or column of pandas or polars, of n_documents lists, tuples, sets or arrays of labels

    Returns
    -------
    indicator : sparse matrix of shape (n_documents, n_labels), 0 or 1
    labels : ndarray of shape (n_labels,), sorted

    Raises
    ------
    ValueError
        If all lists are empty.
    """
    y = _without_column_of_lists(y)
    if not _are_label_lists(y):
        return None
    # imported here, because training by the command needs none
    from sklearn.preprocessing import MultiLabelBinarizer

    binarizer = MultiLabelBinarizer(sparse_output=True)
    indicator = binarizer.fit_transform(y)
    if not indicator.shape[1]:
        raise ValueError("y has only empty lists; give at least one row a label")
    return indicator, binarizer.classes_


def accuracy(y: Any, predicted: Any, classes: np.ndarray, sample_weight: Any = None, *, lists: bool) -> float:
    """Return the fraction of documents all of whose classes are predicted, and no others.

    Parameters
    ----------
    y : array-like
        The classes of the documents, in any form that the estimators accept.
    predicted : ndarray of shape (n_documents,) or (n_documents, n_classes)
        The result of `predict`.
    classes : ndarray of shape (n_classes,)
        The names of the columns of `predicted`.
    sample_weight : array-like of shape (n_documents,), optional
        How much each document counts.
    lists : bool
        Whether the estimator was fitted to lists of labels: then `y` has such lists, too, unless it has two dimensions,
        as an indicator has.
    """
    from sklearn.metrics import accuracy_score
    from sklearn.utils import check_consistent_length

    y = _without_column_of_lists(y)
    check_consistent_length(y, predicted)
    if lists and getattr(y, "ndim", 1) == 1 and all(isinstance(labels, _LIST) for labels in y):
        is_right = [set(labels) == set(classes[row]) for labels, row in zip(y, predicted.astype(bool), strict=True)]
        y, predicted = is_right, [True] * len(is_right)
    if hasattr(y, "toarray") and y.shape[1] == 1:  # to scikit-learn, a single column is no indicator
        y = y.toarray()
    return float(accuracy_score(y, predicted, sample_weight=sample_weight))


def _without_column_of_lists(y: Any) -> Any:
    """Return the lists of a column whose type is one of lists, as polars and Arrow have it; anything else as it is."""
    is_column_of_lists = str(getattr(y, "dtype", "")).lower().startswith("list")
    return y.to_list() if is_column_of_lists else y


def _are_label_lists(y: Any) -> bool:
    if not (isinstance(y, list | tuple) or (getattr(y, "ndim", 0) == 1 and y.dtype == object)):
        return False
    documents = list(y)
    if not documents or not all(isinstance(labels, _LIST) for labels in documents):
        return False
    named = any(isinstance(labels, set | frozenset) or any(isinstance(x, str) for x in labels) for labels in documents)
    lengths = {len(labels) for labels in documents}
    return named or len(lengths) > 1 or lengths == {0}
