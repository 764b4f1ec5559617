"""A table of cases is one test, which fails where one of them does."""

import pytest
from cases import every


def test_every_case_is_tried_and_those_that_fail_are_named(tmp_path):
    tried = []

    @every("a, b", [(1, 2), (3, 3), (5, 6)])
    @every("text", ["x", "y"])
    def check(a, b, text, tmp_path):
        tried.append((a, text))
        if text == "y":
            assert a == b
        else:
            with pytest.raises(KeyError):
                _ = {}[tmp_path]

    with pytest.raises(AssertionError, match=r"2 of 3 cases:\na=1, b=2: 1 of 2 cases:\ntext='y': .*(\n.*)*\na=5, b=6"):
        check(tmp_path=tmp_path)
    assert tried == [(a, text) for a in (1, 3, 5) for text in "xy"]


def test_a_case_fails_also_by_an_error_that_is_not_raised():
    @every("value", [1])
    def check(value):
        with pytest.raises(ValueError, match="no number"):
            int(value)

    with pytest.raises(AssertionError, match=r"1 of 1 cases:\nvalue=1: DID NOT RAISE"):
        check()
