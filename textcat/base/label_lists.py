"""Read lists of labels, one list per document, as the estimators accept them."""

from typing import Any

import numpy as np


def indicator_of_lists(y: Any) -> tuple[Any, np.ndarray] | None:
    """Convert lists of labels to a 0/1 indicator matrix and the labels of its columns; return None for any other `y`.

    Lists of numbers that are all of the same length do not count as lists of labels, but as the rows of an array.

    Parameters
    ----------
    y : list, tuple or object array (or column) of n_documents lists, tuples, sets or arrays of labels

    Returns
    -------
    indicator : sparse matrix of shape (n_documents, n_labels), 0 or 1
    labels : ndarray of shape (n_labels,), sorted
    """
    if not _are_label_lists(y):
        return None
    # imported here, because training by the command needs none
    from sklearn.preprocessing import MultiLabelBinarizer

    binarizer = MultiLabelBinarizer(sparse_output=True)
    return binarizer.fit_transform(y), binarizer.classes_


def _are_label_lists(y: Any) -> bool:
    if not (isinstance(y, list | tuple) or (getattr(y, "ndim", 0) == 1 and y.dtype == object)):
        return False
    documents, kinds = list(y), list | tuple | set | frozenset | np.ndarray
    if not documents or not all(isinstance(labels, kinds) for labels in documents):
        return False
    named = any(isinstance(labels, set | frozenset) or any(isinstance(x, str) for x in labels) for labels in documents)
    return named or len({len(labels) for labels in documents}) > 1
