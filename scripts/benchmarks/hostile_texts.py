"""Hostile texts of 10 kB to 5 MB → processor seconds to tag, explain, train on and teach from each."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import logging
import random
import shlex
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from machine import Conditions, described

from textcat.evaluation.export import markdown_table
from textcat.folders import write_atomically

sys.path.insert(0, str(Path(__file__).parent.parent))
from attacks.texts import ACTIONS, patterns, save_model

SIZES = (5_000_000, 1_000_000, 100_000, 10_000)  # bytes
_SMALL, _ROUNDS = 200_000, 3  # what is no larger is measured so often, and the fastest counts
_SLOWEST = 10
_WARM = "Wheat rose. " * 100
Seconds = dict[str, dict[str, dict[str, float]]]  # by operation, pattern and size


def main(arguments: list[str]) -> None:
    """Measure all patterns, and write the page."""
    options = _options(arguments)
    conditions = Conditions("paum (tag, explain, train), active-learning (teach)")
    head = _head()
    seconds = _measured(options.results, options.patterns)
    page = f"{head}\n{conditions.table(_summary(seconds))}\n" + "\n".join(map(_section, seconds, seconds.values()))
    print(page, end="")
    if options.out:
        write_atomically(options.out, page)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark hostile-texts", description=__doc__)
    parser.add_argument("--patterns", default="", help="only those with this in their names (default: all)")
    parser.add_argument("--results", type=Path, help="keep results in this JSON file, and measure only what it lacks")
    parser.add_argument("--out", type=Path, help="also write the page to this file")
    return parser.parse_args(arguments)


def _head() -> str:
    return f"""# Hostile texts

Written by `{shlex.join(["scripts/benchmark", *sys.argv[1:]])}` on {date.today()}.

Each hostile text repeats a byte, a character or a word, or consists of random runs of characters:
`scripts/attacks/texts.py` lists the patterns. Four operations read each text in a warm process. `tag` and `explain`
(ten terms of one topic, with their places) use a model of `newswire`; `train` trains on the text and ten short
documents; `teach` writes a pool (rows and texts on disk) of the text and twenty short documents, and opens the pool.

Each of the operations `tag`, `explain`, `train` and `teach` reads hostile texts of 10 kB, 100 kB, 1 MB and 5 MB.
Seconds are processor time of one run; for texts of up to {_SMALL:,} bytes, of the fastest of {_ROUNDS} runs. Growth
from a size is the time per byte at 5 MB, divided by the time per byte at that size.

{described()}
"""


def _measured(results: Path | None, chosen: str) -> Seconds:
    """Measure every operation, pattern and size that the results lack."""
    seconds: Seconds = json.loads(results.read_text()) if results and results.exists() else {}
    makers = {name: make for name, make in patterns().items() if chosen in name}
    logging.disable()
    with TemporaryDirectory(prefix="textcat-hostile-") as folder:
        save_model(Path(folder) / "model")
        for size in SIZES:
            for operation, prepare in ACTIONS.items():
                run = prepare(Path(folder))
                _spent(run, _WARM)
                of_operation = seconds.setdefault(operation, {})
                for name, make in makers.items():
                    of_pattern = of_operation.setdefault(name, {})
                    if str(size) not in of_pattern:
                        text = make(random.Random(size), size)
                        rounds = _ROUNDS if size <= _SMALL else 1
                        of_pattern[str(size)] = min(_spent(run, text) for _ in range(rounds))
                if results:
                    write_atomically(results, json.dumps(seconds))
    return seconds


def _spent(run: Callable[[str], object], text: str) -> float:
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
                "median at 5 MB": f"{median(spent):.2f} s",
                "nine tenths below": f"{spent[int(0.9 * (len(spent) - 1))]:.2f} s",
                "slowest": f"{spent[-1]:.2f} s",
                "above 2 s": sum(s > 2 for s in spent),
                **{f"largest growth from {_in_words(size)}": f"{growth:.2f}" for size, growth in grown.items()},
            }
        )
    return rows


def _section(operation: str, by_pattern: dict[str, dict[str, float]]) -> str:
    slowest = sorted(by_pattern, key=lambda name: -by_pattern[name][str(max(SIZES))])[:_SLOWEST]
    rows = [
        {
            "pattern": f"`{name.replace('|', '&#124;')}`",
            **{f"seconds at {_in_words(size)}": f"{by_pattern[name][str(size)]:.3g}" for size in reversed(SIZES)},
            **{f"growth from {_in_words(size)}": f"{_growth(by_pattern[name], size):.2f}" for size in SIZES[1:]},
        }
        for name in slowest
    ]
    return f"## {operation.capitalize()}: the slowest patterns\n\n{markdown_table(rows)}"


def _in_words(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"
