"""The audit tells how often automatic tags are right, with intervals that contain the truth."""

import numpy as np
import pytest
from scipy.stats import binomtest

from textcat.corpus.corrections import Correction
from textcat.reading.document import Document
from textcat.review.audit import audit_rows


def correction(number, date, answers, audited):
    return Correction(Document(f"d{number}", {"text": "x"}, date=date), answers, audited=audited)


def test_rows_are_of_all_of_topics_of_months_and_of_both():
    made = [
        correction(1, "2024-05-03", {"a": True, "b": False}, ("a", "b")),
        correction(2, "2024-05-04", {"a": True}, ("a",)),
        correction(3, "", {"a": False, "b": True}, ("a",)),  # b was not drawn
        correction(3, "", {"a": True}, ("a",)),  # the last answer counts
    ]
    rows = {(row.topic, row.month): (row.judged, row.right) for row in audit_rows(made)}
    assert rows == {
        ("", ""): (4, 3),
        ("a", ""): (3, 3),
        ("b", ""): (1, 0),
        ("", "2024-05"): (3, 2),
        ("", "unknown"): (1, 1),
        ("a", "2024-05"): (2, 2),
        ("b", "2024-05"): (1, 0),
        ("a", "unknown"): (1, 1),
    }
    assert audit_rows([]) == []


@pytest.mark.parametrize(("right", "judged"), [(0, 3), (3, 3), (17, 20)])
def test_intervals_are_those_of_scipy(right, judged):
    made = [correction(number, "", {"a": number < right}, ("a",)) for number in range(judged)]
    row = audit_rows(made)[0]
    expected = binomtest(right, judged).proportion_ci(method="exact")
    np.testing.assert_allclose((row.low, row.high), (expected.low, expected.high), rtol=1e-9)
    assert row.precision == right / judged
