"""Fixtures that several files of tests of this room share."""

import numpy as np
import pytest
from solved_problems import bits, some_problems, some_rows
from stored_rows import rows_to_store

from textcat.margin.solve import solve


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def alone(request):
    """Rows, problems, and the solutions of each problem alone in a block of one lane."""
    X, problems = some_rows(dtype=request.param), some_problems()
    return X, problems, bits(solve(X, [problem], lanes=1)[0] for problem in problems)


@pytest.fixture
def X():
    return rows_to_store()
