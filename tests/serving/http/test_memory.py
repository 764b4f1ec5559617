"""Memory that requests have used is given back."""

import asyncio
import sys

import pytest

from textcat.serving.http.memory import Trimmer, give_memory_back, own_bytes


def looks_at_which_memory_is_given_back(sizes):
    """The numbers of the looks, counted from 1, where the sizes of the process are these, in MB more than at first."""
    loop, looks, given = asyncio.new_event_loop(), [], []
    trimmer, first = Trimmer(loop, lambda: given.append(len(looks))), own_bytes()
    trimmer.stop()
    loop.close()
    for size in sizes:
        looks.append(size)
        trimmer.look(lambda size=size: first + 1_000_000 * size)
    return given


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: there is no /proc")
def test_memory_is_given_back_at_growing_intervals_after_the_process_has_grown():
    assert not looks_at_which_memory_is_given_back([0] * 100)
    assert looks_at_which_memory_is_given_back([0, 100] + [100] * 200) == [2, 3, 5, 9, 17, 33, 65]
    assert looks_at_which_memory_is_given_back([0, 100, 200, 300] + [300] * 3) == [2, 3, 4, 5, 7]
    assert looks_at_which_memory_is_given_back([100] + [0] * 200 + [100])[-1] == 202


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: there is no /proc")
def test_the_memory_of_this_process_is_measured():
    before = own_bytes()
    pages = bytearray(b"a" * 50_000_000)
    assert own_bytes() - before > 40_000_000
    del pages
    give_memory_back()
    assert own_bytes() - before < 40_000_000


def test_names_that_were_looked_up_are_not_kept():
    name = "".join(["not", "an", "attribute"])
    before = sys.getrefcount(name)
    for _ in range(10):
        assert not hasattr(Trimmer, name)
    give_memory_back()
    assert sys.getrefcount(name) == before
