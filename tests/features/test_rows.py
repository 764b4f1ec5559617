"""Rows of arrays are the matrix that shares them."""

import logging

import numpy as np
from zoned_texts import (
    TOKENS,
    TRAIN,
)

from textcat.features.rows import row_bytes
from textcat.features.tfidf import TfIdf


def test_the_bytes_of_the_rows_are_told(caplog):
    with caplog.at_level(logging.INFO, "textcat"):
        X = TfIdf(TOKENS).fit_transform(TRAIN)
    assert row_bytes(X) == 8 * X.nnz + X.indptr.itemsize * (len(TRAIN) + 1)
    assert f"{len(TRAIN)} rows of {X.shape[1]} columns take 0.0 MB" in caplog.text


def test_many_columns_come_out_sorted():
    long = " ".join(f"{a}{b}{c}" for a in "qwrt" for b in "zxcvbnm" for c in "sdfghjk")
    transformer = TfIdf(TOKENS)
    X = transformer.fit_transform([long, "qzs", "other words"])
    assert np.all(np.diff(X.indices[: X.indptr[1]]) > 0)
    assert X.indptr[1] == 4 * 7 * 7


def test_rows_of_float64_round_to_those_of_float32():
    exact = TfIdf(TOKENS, dtype=np.float64).fit_transform(TRAIN)
    assert exact.dtype == np.float64
    assert np.array_equal(exact.astype(np.float32).toarray(), TfIdf(TOKENS).fit_transform(TRAIN).toarray())
