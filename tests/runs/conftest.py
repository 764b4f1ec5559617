"""Fixtures that the tests of this folder share."""

import builtins
import os
import time

import pytest
from attacks.histories import fail_at
from interrupted_runs import NOW, STEPS, Killed

from textcat.base import disk


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture
def kill_at(monkeypatch):
    """Return a list: at the step with its number, the process is killed; the second number counts the steps."""
    left = [-1, 0]

    def counted(function):
        def call(*arguments):
            left[1] += 1
            if left[1] == left[0]:
                raise Killed
            return function(*arguments)

        return call

    for name in STEPS:
        monkeypatch.setattr(disk, name, counted(getattr(disk, name)))
    return left


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
