"""Hostile texts of 10 kB to 5 MB → processor seconds to tag, explain, train on and teach from each.

Seconds are those of the fastest of two or three runs, each with empty caches of tokens. Growth from a size is the time
per byte at 5 MB, divided by the time per byte at that size.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import random
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from attacks.texts import ACTIONS, patterns, save_model
from harness import Row, Work

SIZES = (5_000_000, 1_000_000, 100_000, 10_000)  # bytes
QUICK = 5  # patterns
_SMALL = 200_000  # what is no larger is measured three times, all else twice
_SHORT = "Wheat rose. " * 100
Seconds = Mapping[str, Mapping[str, Mapping[str, float]]]  # by operation, pattern and size; size 0: a short text


def measured(work: Work) -> Seconds:
    """Measure every operation, pattern and size."""
    return work.kept("hostile-texts", lambda: _measured(work))


def _measured(work: Work) -> Seconds:
    makers = dict([*patterns().items()][: QUICK if work.quick else None])
    logging.disable()
    save_model(work.folder / "model")
    seconds: dict[str, dict[str, dict[str, float]]] = {}
    for operation in ACTIONS:
        fixed = min(_spent(operation, _SHORT, work.folder) for _ in range(4))
        seconds[operation] = {name: {"0": fixed} for name in makers}
    gc.freeze()  # what stays need not be looked at before each run
    for size in SIZES:
        for name, make in makers.items():
            text = make(random.Random(size), size)
            for operation in ACTIONS:
                runs = (_spent(operation, text, work.folder) for _ in range(3 if size <= _SMALL else 2))
                seconds[operation][name][str(size)] = min(runs)
    logging.disable(logging.NOTSET)
    return seconds


def _spent(operation: str, text: str, folder: Path) -> float:
    """Return the processor seconds of an operation on a text, with empty caches of tokens."""
    run = ACTIONS[operation](folder)
    gc.collect()
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run(text)
    return time.process_time() - start


def _growth(of_pattern: Mapping[str, float], size: int) -> float:
    largest = max(SIZES)
    return of_pattern[str(largest)] / largest / (of_pattern[str(size)] / size)


def summary(work: Work) -> list[Row]:
    """Summarise the patterns of each operation."""
    seconds, rows = measured(work), list[Row]()
    for operation in ACTIONS:
        by_pattern = seconds[operation]
        spent = sorted(of_pattern[str(max(SIZES))] for of_pattern in by_pattern.values())
        grown = {size: max(_growth(each, size) for each in by_pattern.values()) for size in SIZES[1:]}
        rows.append(
            {
                "operation": operation,
                "patterns": len(by_pattern),
                "fixed cost": f"{1000 * median(of_pattern['0'] for of_pattern in by_pattern.values()):.1f} ms",
                "median at 5 MB": f"{median(spent):.2f} s",
                "nine tenths below": f"{spent[int(0.9 * (len(spent) - 1))]:.2f} s",
                "slowest": f"{spent[-1]:.2f} s",
                "above 2 s": sum(s > 2 for s in spent),
                **{f"largest growth from {_in_words(size)}": f"{growth:.2f}" for size, growth in grown.items()},
            }
        )
    return rows


def _in_words(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"
