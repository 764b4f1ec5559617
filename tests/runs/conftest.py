"""Fixtures that the tests of this folder share."""

import builtins
import os
import time

import pytest
from attacks.histories import fail_at
from interrupted_runs import NOW, count_steps


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture
def kill_at(monkeypatch):
    """Return a list: at the step with its number, the process is killed; the second number counts the steps."""
    return count_steps(monkeypatch)


@pytest.fixture
def faults(monkeypatch):
    """Paths that fail, as long as they are in this dict."""
    monkeypatch.setattr(builtins, "open", builtins.open)  # what `fail_at` replaces
    monkeypatch.setattr(os, "scandir", os.scandir)
    found = {}
    fail_at(found)
    return found


@pytest.fixture
def clock(monkeypatch):
    """The time in seconds, in a list."""
    now = [NOW.timestamp()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now
