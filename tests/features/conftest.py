"""Fixtures that several files of tests of this room share."""

import pytest
from stored_rows import rows_to_store


@pytest.fixture
def X():
    return rows_to_store()


@pytest.fixture(scope="module", autouse=True)
def languages_once():
    """Nothing: here, each tokenizer is a new one."""
