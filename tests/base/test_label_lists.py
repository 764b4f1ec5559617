"""Labels of any form are read as what they say, and refused if they say nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from cases import every

from textcat import PAUM, MultilabelStratifiedGroupKFold, MultilabelStratifiedKFold, PrecisionThresholds

N_ROWS = 24
Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0]] * 6)
X = np.column_stack([Y, np.ones(N_ROWS)])
NAMES = ["corn", "rice"] * 12
INT = pd.ArrowDtype(pa.int64())

pytestmark = pytest.mark.filterwarnings("ignore:No promise")


def read_by(y):
    """Return what learners and splitters make of labels."""
    learner = PAUM().fit(X, y)
    folds = [test.tolist() for _, test in MultilabelStratifiedKFold(3).split(X, y)]
    return learner.classes_.tolist(), learner.predict(X).tolist(), learner.score(X, y), folds


@every(
    "form",
    [
        lambda Y: pd.DataFrame(Y, dtype="Int64"),
        lambda Y: pd.DataFrame(Y).astype("boolean"),
        lambda Y: pd.DataFrame(Y).astype(INT),
        lambda Y: pl.DataFrame(Y),
        lambda Y: Y.astype(object),
        lambda Y: Y.astype(np.float16),
        lambda Y: sp.dok_array(Y.astype(bool)),
        lambda Y: sp.coo_matrix(Y.astype(np.float32)),
    ],
)
def test_an_indicator_may_be_a_table_or_matrix_of_any_type_of_numbers(form):
    assert read_by(form(Y)) == read_by(Y)


@every(
    "column, y",
    [
        (pd.Series(Y[:, 0], dtype="Int64"), Y[:, 0]),
        (pd.Series(Y[:, 0] == 1, dtype="boolean"), Y[:, 0] == 1),
        (pd.Series(NAMES, dtype="category"), np.array(NAMES, object)),
        (pl.Series(NAMES, dtype=pl.Categorical), NAMES),
        (Y[:, 0].astype(object), Y[:, 0]),
        (pd.Series([[7], [8]] * 12), [{7}, {8}] * 12),
        (pl.Series([[7], [8]] * 12), [{7}, {8}] * 12),
        (pd.Series([[7, 8], [8, 9]] * 12, dtype=pd.ArrowDtype(pa.list_(pa.int64()))), [{7, 8}, {8, 9}] * 12),
    ],
)
def test_a_column_has_the_labels_that_a_list_has(column, y):
    assert read_by(column) == read_by(y)


@every("table, y", [(pd.DataFrame(Y, dtype="Int64"), Y), (pd.Series(Y[:, 0] == 1, dtype="boolean"), Y[:, 0] == 1)])
def test_thresholds_are_those_of_the_array(table, y):
    of_table, of_array = (PrecisionThresholds(PAUM(), cv=2).fit(X, labels) for labels in (table, y))
    assert of_table.classes_.tolist() == of_array.classes_.tolist()
    assert of_table.classes_.dtype == of_array.classes_.dtype
    assert of_table.n_above_.tolist() == of_array.n_above_.tolist()


@every("missing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
@every(
    "column",
    [
        lambda y: y,
        lambda y: np.array(y, object),
        lambda y: pd.Series(y, dtype=object),
        lambda y: [[label] if isinstance(label, str) else label for label in y],
        lambda y: [[label] for label in y],
        lambda y: pd.Series([{label} for label in y]),
    ],
)
def test_a_missing_label_is_no_label(column, missing):
    y = column([*NAMES[:-2], "corn", missing])
    cv = MultilabelStratifiedKFold(3)
    for read in (PAUM().fit, PrecisionThresholds(PAUM(), cv=2).fit, lambda X, y: next(cv.split(X, y))):
        with pytest.raises(ValueError, match=r"y has .* in 1 of 24 rows \(23, counted from 0\)"):
            read(X, y)
    with pytest.raises(ValueError, match="in 1 of 24 rows"):
        PAUM().fit(X, [["corn"], ["rice"]] * 12).score(X, y)


@every("column", [pd.Series([*NAMES[:-1], None], dtype="string"), pl.Series([*NAMES[:-1], None])])
def test_a_missing_value_of_a_typed_column_is_no_label(column):
    with pytest.raises(ValueError, match=r"\(23, counted from 0\): leave these rows out$"):
        PAUM().fit(X, column)


@every("groups", [[None, "a", "b"] * 8, [float("nan"), "a", "b"] * 8, [float("nan"), 1.0, 2.0] * 8])
@every("form", [list, lambda groups: np.array(groups, object), pd.Series])
def test_samples_without_a_group_are_not_taken_for_a_group(groups, form):
    with pytest.raises(ValueError, match=r"groups has no value in 8 of 24 rows|Input groups contains NaN"):
        next(MultilabelStratifiedGroupKFold(3).split(X, Y, form(groups)))


@every("wrong", [Y * 2 - 1, Y + 1, Y * 2, Y * 0.5, np.where(Y, 1, np.nan), Y.astype(str), sp.csr_array(Y * 3)])
def test_an_indicator_of_other_numbers_is_refused_everywhere(wrong):
    cv = MultilabelStratifiedKFold(3)
    for read in (PAUM().fit, PrecisionThresholds(PAUM(), cv=2).fit, lambda X, y: next(cv.split(X, y))):
        with pytest.raises(ValueError, match="an indicator Y must hold only 0 and 1"):
            read(X, wrong)


@every(
    "y, said",
    [
        (np.array(["corn", 1] * 12, object), "of the types int, str: give labels of one type"),
        ([{"corn", 1}, {"corn"}] * 12, "of the types int, str: give labels of one type"),
        (pd.Series([[0, 1], [1, 0]] * 12), r"rows of an indicator, give np\.stack\(y\)"),
    ],
)
def test_labels_that_can_be_read_in_two_ways_are_refused(y, said):
    with pytest.raises(ValueError, match=said):
        PAUM().fit(X, y)
