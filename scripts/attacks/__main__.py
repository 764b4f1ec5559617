"""Run the attacks of each kind for a share of the time; print how many trials held, and what failed."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table

KINDS = {
    "texts": "texts that cost more time than their bytes are worth",
    "stored": "damaged files of models, rows, pools and sessions",
    "runs": "runs over archives that end early, and inputs that change meanwhile",
    "histories": "archives that change while runs are killed, files are locked and fail, and the clock jumps",
    "server": "requests that no client should send, clients that hold connections, workers that are killed",
    "surroundings": "homes without permission to write, other users, clocks that jump, Dask workers that die",
}

PARTS = {
    "runs": ("full-disk", "strict", "interrupted", "terminated", "killed-worker", "killed", "changed-input"),
    "stored": ("session", "pool", "model", "rows"),
}


def main() -> None:
    options = _options()
    kinds = options.kinds or [*KINDS]
    most = options.trials if options.trials else sys.maxsize
    table = Table("attack", "trials", "held", "seconds", title=f"seed {options.seed}")
    failures: list[tuple[str, str]] = []
    for kind in kinds:
        print(f"{kind}: {KINDS[kind.partition(':')[0]]} ...", file=sys.stderr, flush=True)
        further = {"counts": _counts(options)} if kind == "server" else {}
        failures += _attack(kind, options.seed, options.seconds / len(kinds), most, table, **further)
    console = Console()
    console.print(table)
    for name, detail in failures:
        console.print(f"FAILED {name}: {detail}", markup=False, soft_wrap=True)
    sys.exit(bool(failures))


def _attack(kind: str, seed: int, seconds: float, most: int, table: Table, **further: Any) -> list[tuple[str, str]]:
    """Run the trials of a kind, add a row per trial's name to a table, and return the trials that failed."""
    tried, held, spent = Counter[str](), Counter[str](), Counter[str]()
    failures = []
    start = time.monotonic()
    for name, ok, detail in islice(_trials(kind, random.Random(seed), seconds, **further), most):
        tried[name] += 1
        held[name] += bool(ok)
        spent[name] += time.monotonic() - start
        if not ok:
            failures.append((f"{kind}: {name}", detail))
        start = time.monotonic()
    for name in tried:
        table.add_row(f"{kind}: {name}", str(tried[name]), str(held[name]), f"{spent[name]:.1f}")
    return failures


def _trials(kind: str, rng: random.Random, seconds: float, **further: Any) -> Iterator[tuple[str, bool, str]]:
    """Return the trials of a kind, or those of one part of it."""
    kind, _, part = kind.partition(":")
    module = import_module(f"attacks.{kind}")
    trials: Iterator[tuple[str, bool, str]] = module.trials(rng, seconds, *([part] if part else []), **further)
    return trials


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    choices = [*KINDS, *(f"{kind}:{part}" for kind, parts in PARTS.items() for part in parts)]
    parts = "; ".join(
        f"of {kind} also one part: {', '.join(f'{kind}:{part}' for part in parts)}" for kind, parts in PARTS.items()
    )
    parser.add_argument("kinds", nargs="*", choices=[*choices, []], metavar="KIND", help=f"{', '.join(KINDS)}; {parts}")
    parser.add_argument("--seconds", type=float, default=120, help="for all kinds together (default: %(default)g)")
    parser.add_argument(
        "--trials", type=int, default=0, help="of each kind, at most (default: as many as there is time for)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default: %(default)s)")
    servers = parser.add_argument_group("at least, of attacks on servers, however long they take")
    servers.add_argument("--kills", type=int, help="workers killed")
    servers.add_argument("--reloads", type=int, help="models replaced")
    servers.add_argument("--ends", type=int, help="servers ended under load")
    servers.add_argument("--holds", type=int, help="crowds of hostile connections")
    servers.add_argument("--hold-seconds", type=float, help="seconds that each crowd stays")
    return parser.parse_args()


def _counts(options: argparse.Namespace) -> Any:
    """Return how often to try what, as the options tell; the others have their defaults."""
    from attacks.server import Counts

    told = {name: getattr(options, name) for name in Counts._fields}
    return Counts(**{name: count for name, count in told.items() if count is not None})


if __name__ == "__main__":
    main()
