"""Tasks → seconds, run in turn round by round, and what is computed from them."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = """Rounds: {}. In each round everything in the table runs once, one after the other; a first round warms up
and is
not counted. Slow candidates, marked "one run", ran only in the first counted round. Seconds are medians (in brackets:
minimum and maximum). A ratio is the median of the rounds' ratios, so that both of its sides ran on the machine in the
same state."""


@dataclass(frozen=True)
class Task:
    """Something to time: `run` gets what `prepare`, which is not timed, returns."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None
    once: bool = False  # what takes minutes runs in the first counted round alone


@dataclass
class Timing:
    """The seconds a task took in each counted round, and what it returned last."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """Return the median of the seconds."""
        return median(self.seconds)

    def ratio(self, other: Timing) -> str:
        """Write how many times as long as the other it took: the median over the rounds that both have."""
        # What ran once did so in the first round: its pair is the first of the other's.
        return f"{median(mine / its for mine, its in zip(self.seconds, other.seconds, strict=False)):.3g}"

    def __str__(self) -> str:
        if len(self.seconds) == 1:
            return f"{self.median:.3g} (one run)"
        return f"{self.median:.3g} ({min(self.seconds):.3g} to {max(self.seconds):.3g})"


def interleaved(tasks: Mapping[str, Task], rounds: int) -> dict[str, Timing]:
    """Run all tasks in turn, round by round; the first round warms up and is not counted."""
    timings = {name: Timing() for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            if task.once and number != 1:
                continue
            prepared = task.prepare()
            gc.collect()
            started = time.perf_counter()
            result = task.run(prepared)
            taken = time.perf_counter() - started
            timings[name].result = result
            if number:
                timings[name].seconds.append(taken)
            print(f"{number or 'warming up'} of {rounds}: {name}: {taken:.3f} s", file=sys.stderr)
    return timings


def keep_fastest(timings: dict[str, Timing], names: Sequence[str]) -> None:
    """Drop all but the fastest of some ways of doing the same."""
    for name in sorted(names, key=lambda name: timings[name].median)[1:]:
        del timings[name]


@dataclass(frozen=True)
class Cost:
    """What a finished process took: the peak is that of its largest process, workers included but not added."""

    seconds: float
    peak_bytes: int


def whole_process(command: Sequence[str | os.PathLike[str]]) -> Cost:
    """Run a command to its end.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails.
    """
    # A process that forks passes its own peak on to its child: so a small one stands between this one and the command.
    between = [sys.executable, Path(__file__).with_name("whole_process.py"), *command]
    return Cost(**json.loads(subprocess.run(between, stdout=subprocess.PIPE, check=True).stdout))
