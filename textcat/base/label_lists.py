"""Read labels as the estimators accept them, also lists of labels per document, and compare predictions with them."""

from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from textcat.base.errors import first_of
from textcat.base.frames import is_missing

_LIST = list | tuple | set | frozenset | np.ndarray
_SHOWN = 5  # maximum number of rows that a message names


def plain_labels(y: Any, name: str = "y") -> Any:
    """Return labels as a list, an array or a sparse matrix, without the types of pandas and polars.

    Parameters
    ----------
    y : array-like, sparse matrix, table or column
    name : str, default="y"
        What messages call the labels.

    Returns
    -------
    list, tuple, ndarray, sparse matrix or None
        An array of objects that are all numbers is returned as an array of numbers, and a column of lists as an array
        of lists.

    Raises
    ------
    ValueError
        If a row has no label: None, NaN or NA, also in a list; but a NaN in an array of numbers is left for others.
    """
    if y is None or sp.issparse(y):
        return y
    if str(getattr(y, "dtype", "")).lower().startswith("list"):  # as polars and Arrow call columns of lists
        lists = y.to_list()
        y = np.fromiter(lists, object, len(lists))
    if not isinstance(y, list | tuple):
        y = _numbers_of_objects(np.asarray(y))
        if y.dtype == np.float16:  # which scipy does not have
            y = y.astype(np.float32)
    if isinstance(y, list | tuple) or (y.ndim == 1 and y.dtype == object):
        _refuse_missing(y, name)
    return y


def different_labels(y: np.ndarray, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Return the different values of an array, sorted, and for each row the number of its value among them.

    ValueError, in which the array is called `name`, is raised if the values cannot be sorted.
    """
    try:
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(_not_sortable(y, name)) from error


def sparse_indicator(y: Any) -> sp.csc_array:
    """Return an array or sparse matrix with a column per label as a sparse one.

    ValueError is raised if there is no column, or any value other than 0 and 1.
    """
    if not (isinstance(y, np.ndarray) and y.dtype.kind not in "biuf"):
        labels = sp.csc_array(y)
        if not labels.shape[1]:
            raise ValueError("Y has no column; an indicator Y needs one for each topic")
        if not labels.nnz or np.isin(labels.data, (0, 1)).all():
            return labels
    raise ValueError("Unknown label type: an indicator Y must hold only 0 and 1")


def indicator_of_lists(y: Any) -> tuple[Any, np.ndarray] | None:
    """Convert lists of labels to a 0/1 indicator matrix and the labels of its columns; return None for any other `y`.

    A list (not an array) of lists of numbers that are all of the same length counts as the rows of an array instead.

    Parameters
    ----------
    y : list, tuple or object array of n_documents lists, tuples, sets or arrays of labels
        As `plain_labels` returns it.

    Returns
    -------
    indicator : sparse matrix of shape (n_documents, n_labels), 0 or 1
    labels : ndarray of shape (n_labels,), sorted

    Raises
    ------
    ValueError
        If all lists are empty, labels cannot be sorted, or an array has lists that look like rows of an indicator.
    """
    if not _are_label_lists(y):
        return None
    # imported here, because training by the command needs none
    from sklearn.preprocessing import MultiLabelBinarizer

    binarizer = MultiLabelBinarizer(sparse_output=True)
    try:
        indicator = binarizer.fit_transform(y)
    except TypeError as error:
        raise ValueError(_not_sortable((label for labels in y for label in labels), "y")) from error
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

    y = plain_labels(y)
    check_consistent_length(y, predicted)
    if lists and getattr(y, "ndim", 1) == 1 and all(isinstance(labels, _LIST) for labels in y):
        is_right = [set(labels) == set(classes[row]) for labels, row in zip(y, predicted.astype(bool), strict=True)]
        y, predicted = is_right, [True] * len(is_right)
    if hasattr(y, "toarray") and y.shape[1] == 1:  # to scikit-learn, a single column is no indicator
        y = y.toarray()
    return float(accuracy_score(y, predicted, sample_weight=sample_weight))


def _are_label_lists(y: Any) -> bool:
    if not (isinstance(y, list | tuple) or (getattr(y, "ndim", 0) == 1 and y.dtype == object)):
        return False
    documents = list(y)
    if not documents or not all(isinstance(labels, _LIST) for labels in documents):
        return False
    named = any(isinstance(labels, set | frozenset) or any(isinstance(x, str) for x in labels) for labels in documents)
    lengths = {len(labels) for labels in documents}
    if named or len(lengths) > 1 or lengths == {0}:
        return True
    if not isinstance(y, np.ndarray):
        return False
    if all(label in (0, 1) for labels in documents for label in labels):
        raise ValueError(
            "y has lists of 0 and 1 that are all of the same length: if they are the rows of an indicator, give "
            "np.stack(y), and if they are labels, a set for each row"
        )
    return True


def _numbers_of_objects(y: np.ndarray) -> np.ndarray:
    """Return an array of objects as an array of numbers if all are numbers, as tables of nullable types have them."""
    if y.dtype != object or not y.size or not isinstance(y.flat[0], Number | np.bool_):
        return y
    numbers = np.array(y.tolist())
    return numbers if numbers.dtype.kind in "biuf" else y


def _refuse_missing(y: Any, name: str) -> None:
    """Raise ValueError if a row of a list or an array of objects is missing, or has a missing label in its list."""
    missing = [row for row, label in enumerate(y) if is_missing(label)]
    if missing:
        or_empty = ", or give them an empty list" if any(isinstance(labels, _LIST) for labels in y) else ""
        raise ValueError(
            f"{name} has no value in {len(missing):,} of {len(y):,} rows ({_rows(missing)}, counted from 0): leave "
            f"these rows out{or_empty}"
        )
    missing = [row for row, labels in enumerate(y) if isinstance(labels, _LIST) and any(map(is_missing, labels))]
    if missing:
        raise ValueError(
            f"{name} has lists with a missing label in {len(missing):,} of {len(y):,} rows ({_rows(missing)}, counted "
            "from 0): take None and NaN out of the lists"
        )


def _rows(numbers: list[int]) -> str:
    return first_of([str(number) for number in numbers[: _SHOWN + 1]], _SHOWN)


def _not_sortable(labels: Any, name: str) -> str:
    kinds = sorted({type(label).__name__ for label in labels})
    return f"{name} has labels that cannot be sorted together, of the types {', '.join(kinds)}: give labels of one type"
