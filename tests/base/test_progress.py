"""Stages are timed, drawn on a terminal only, and count what goes by."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from textcat.base.progress import Bar, Stages, advance_over, peak_memory


@given(st.integers(0, 2000))
def test_counting_passes_the_items_on_and_adds_up_to_their_number(n):
    steps = []
    assert list(advance_over(iter(range(n)), steps.append)) == list(range(n))
    assert sum(steps) == n


def test_a_stage_that_runs_twice_is_timed_together_and_in_the_order_of_its_first_run():
    stages = Stages()
    for name in ("read", "train", "read"):
        with stages.stage(name, 3) as advance:
            advance(3)
    assert list(stages.seconds) == ["read", "train"]
    assert all(seconds >= 0 for seconds in stages.seconds.values())


def test_nothing_is_drawn_off_a_terminal():
    console = Console(file=io.StringIO())
    with Stages(console).stage("read", 3) as advance:
        advance(3)
    assert console.file.getvalue() == ""


def test_on_a_terminal_the_stage_is_drawn_with_its_count():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with Stages(console).stage("tokens to rows", 300) as advance:
        advance(300)
    assert "tokens to rows" in console.file.getvalue()
    assert "300/300" in console.file.getvalue()


def test_a_stage_that_counts_nothing_shows_no_count():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with Stages(console).stage("save"):
        pass
    assert "save" in console.file.getvalue()
    assert "/" not in console.file.getvalue()


def test_a_stage_that_fails_leaves_no_bar_behind_and_no_time():
    stages = Stages(Console(file=io.StringIO(), force_terminal=True))
    with pytest.raises(ZeroDivisionError), stages.stage("train", 1):
        raise ZeroDivisionError
    assert stages.seconds == {}
    with stages.stage("train", 1):  # rich allows no two bars at the same time
        pass


def test_a_bar_counts_the_bytes_of_a_download_and_then_those_of_what_is_read():
    for read, drawn in (({}, "1.0/1.0 kB"), ({"completed": 300, "total": 500}, "300/500 bytes")):
        console = Console(file=io.StringIO(), force_terminal=True, width=100)
        with Stages(console).stage("read", shows="bytes") as bar:
            bar.total = 1000
            bar.update(400)
            bar.reset()
            bar.update(1000)
            bar.close()
            bar.show(**read)
        assert drawn in [line for line in console.file.getvalue().splitlines() if "read" in line][-1]


def test_a_bar_that_draws_nothing_takes_the_same_calls():
    bar = Bar()
    bar.total = 1000
    bar.update(400)
    bar.reset()
    bar.close()
    assert bar.total == 1000


def test_the_peak_memory_is_that_of_this_process_in_bytes():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("system: it does not report the peak memory of a process")
    block = bytearray(b"x") * 50_000_000
    highest = int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024
    assert peak_memory() == pytest.approx(highest, abs=len(block) / 10)  # the system adds up threads now and then
