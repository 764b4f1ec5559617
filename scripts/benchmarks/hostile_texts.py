"""Hostile texts of 10 kB to 5 MB → processor seconds to tag, explain, train on and teach from each."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import logging
import random
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from pages import Conditions, Page, publish

from textcat.base.disk import write_atomically

sys.path.insert(0, str(Path(__file__).parent.parent))
from attacks.texts import ACTIONS, patterns, save_model

SIZES = (5_000_000, 1_000_000, 100_000, 10_000)  # bytes
_SMALL, _ROUNDS = 200_000, 3  # what is no larger is measured so often, and the fastest counts
_ROUNDS_OF_LARGE = 2  # the same for all else
_SLOWEST = 10
_SHORT = "Wheat rose. " * 100
Seconds = dict[str, dict[str, dict[str, float]]]  # by operation, pattern and size


def main(arguments: list[str]) -> None:
    """Measure all patterns, and write the pages."""
    options = _options(arguments)
    conditions = Conditions("paum (tag, explain, train), active-learning (teach)")
    seconds = _measured(options.results, options.patterns)
    head, slowest = conditions.head(), [row for each in seconds.items() for row in _slowest_rows(*each)]
    pages = [
        Page("hostile-texts", "Hostile texts", head, _TEXT, _summary(seconds)),
        Page("hostile-texts-slowest", "Hostile texts: the slowest patterns", head, _TEXT_OF_SLOWEST, slowest),
    ]
    publish(pages, options.out)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark hostile-texts", description=__doc__)
    parser.add_argument("--patterns", default="", help="only those with this in their names (default: all)")
    parser.add_argument("--results", type=Path, help="keep results in this JSON file, and measure only what it lacks")
    parser.add_argument("--out", type=Path, help="also write the pages to this folder, such as docs/benchmarks")
    return parser.parse_args(arguments)


_TEXT = f"""Each hostile text repeats a byte, a character or a word, or consists of random runs of characters:
`scripts/attacks/texts.py` lists the patterns. Four operations read each text in a warm process. `tag` and `explain`
(ten terms of one topic, with their places) use a model of `newswire`; `train` trains on the text and ten short
documents; `teach` writes a pool (rows and texts on disk) of the text and twenty short documents, and opens the pool.

Each of the operations `tag`, `explain`, `train` and `teach` reads hostile texts of 10 kB, 100 kB, 1 MB and 5 MB.
Seconds are processor time of the fastest of {_ROUNDS_OF_LARGE} runs; for texts of up to {_SMALL:,} bytes, of {_ROUNDS}.
In the first run on a text of a size, the process gets memory from the system, which takes as long as all else for some
texts of scripts without spaces: it is not the fastest one. Each run begins with empty caches of tokens: `tag` and
`explain` open the model anew first, which is not measured. Growth from a size is the time per byte at 5 MB, divided by
the time per byte at that size. The fixed cost is the time for a short text, {len(_SHORT)} bytes of words: it is part of
all times.

[The slowest patterns](hostile-texts-slowest.md) have a page of their own."""
_TEXT_OF_SLOWEST = f"""The table shows, for each operation, the {_SLOWEST} patterns that take longest at 5 MB. [Hostile
texts](hostile-texts.md) says what is measured."""


def _measured(results: Path | None, chosen: str) -> Seconds:
    """Measure every operation, pattern and size that the results lack."""
    seconds: Seconds = json.loads(results.read_text()) if results and results.exists() else {}
    makers = {name: make for name, make in patterns().items() if chosen in name}
    logging.disable()
    with TemporaryDirectory(prefix="textcat-hostile-") as folder:
        save_model(Path(folder) / "model")
        for operation in ACTIONS:
            fixed = min(_spent(operation, _SHORT, Path(folder)) for _ in range(1 + _ROUNDS))
            of_operation = seconds.setdefault(operation, {})
            for name in makers:
                of_operation.setdefault(name, {"0": fixed})
        gc.freeze()  # what stays need not be looked at before each run
        for size in SIZES:
            for name, make in makers.items():
                lacking = [operation for operation in ACTIONS if str(size) not in seconds[operation][name]]
                text = make(random.Random(size), size) if lacking else ""
                for operation in lacking:
                    spent = [
                        _spent(operation, text, Path(folder))
                        for _ in range(_ROUNDS if size <= _SMALL else _ROUNDS_OF_LARGE)
                    ]
                    seconds[operation][name][str(size)] = min(spent)
                if results and lacking:
                    write_atomically(results, json.dumps(seconds))
    return seconds


def _spent(operation: str, text: str, folder: Path) -> float:
    """Return the processor seconds of an operation on a text, with empty caches of tokens."""
    run = ACTIONS[operation](folder)
    gc.collect()
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run(text)
    return time.process_time() - start


def _growth(of_pattern: dict[str, float], size: int) -> float:
    largest = max(SIZES)
    return of_pattern[str(largest)] / largest / (of_pattern[str(size)] / size)


def _summary(seconds: Seconds) -> list[dict[str, Any]]:
    rows = []
    for operation, by_pattern in seconds.items():
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


def _slowest_rows(operation: str, by_pattern: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    slowest = sorted(by_pattern, key=lambda name: -by_pattern[name][str(max(SIZES))])[:_SLOWEST]
    return [
        {
            "operation": operation,
            "pattern": f"`{name.replace('|', '&#124;')}`",
            **{f"seconds at {_in_words(size)}": f"{by_pattern[name][str(size)]:.3g}" for size in reversed(SIZES)},
            **{f"growth from {_in_words(size)}": f"{_growth(by_pattern[name], size):.2f}" for size in SIZES[1:]},
        }
        for name in slowest
    ]


def _in_words(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"
