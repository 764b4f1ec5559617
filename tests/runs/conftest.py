"""Fixtures that the tests of this folder share."""

import pytest


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model
