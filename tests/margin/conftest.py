"""Fixtures that several files of tests of this room share."""

import numpy as np
import pytest
from solved_problems import bits, rows_with_dimensions, some_problems, some_rows
from stored_rows import rows_to_store

from textcat.margin.solve import solve

ROWS = {"float32": some_rows(dtype=np.float32), "float64": some_rows(), "dimensions": rows_with_dimensions()}


@pytest.fixture(scope="module", params=[*ROWS])
def alone(request):
    """Rows, problems, and the solutions of each problem alone in a block of one lane."""
    X, problems = ROWS[request.param], some_problems()
    return X, problems, bits(solve(X, [problem], lanes=1)[0] for problem in problems)


@pytest.fixture
def X():
    return rows_to_store()
