"""The tagging of an archive of generated articles: speed beside peers, memory, and resuming."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import archive_peers
from harness import Cost, Row, Work, cost, costs, environment, short

DOCUMENTS, QUICK = 1_000_000, 3_000
SLOWER = 5  # of how many parts of the archive the peers get one


def speed(work: Work) -> list[Row]:
    """Compare with what one would write with scikit-learn or fastText."""
    n = work.documents(DOCUMENTS, QUICK)
    few = n // SLOWER
    tag = work.tag(work.model("default"), work.archive(n), work.path("out", "default"))
    commands = {f"textcat, {work.jobs} processes": tag}
    counts = dict.fromkeys(commands, n)
    peers = archive_peers.commands(work, work.archive(few))
    counts |= dict.fromkeys(peers, few)
    taken = costs(commands | peers, work.rounds)
    ours = next(iter(taken))
    return [
        {
            "what": name,
            "documents": f"{counts[name]:,}",
            "seconds": short(median(one.seconds for one in its)),
            "documents/s": f"{counts[name] / median(one.seconds for one in its):,.0f}",
            "µs of processor time per document": short(1e6 * median(one.cpu_seconds for one in its) / counts[name]),
            "times slower than the first": short(ratio(its, taken[ours]) * n / counts[name]),
            **_memory(its),
        }
        for name, its in taken.items()
    ]


def ratio(mine: Sequence[Cost], others: Sequence[Cost]) -> float:
    """Return how many times as long as others something took: the median over rounds."""
    return median(one.seconds / other.seconds for one, other in zip(mine, others, strict=True))


def _memory(taken: Iterable[Cost]) -> dict[str, str]:
    """Write the peak of all processes of a run together: shared memory counted for each process, and once."""
    taken = [*taken]
    return {
        "MB, added up": short(max(one.rss_bytes for one in taken) / 1e6),
        "MB, shared once": short(max(one.pss_bytes for one in taken) / 1e6),
    }


def memory(work: Work) -> list[Row]:
    """Tag archives of a tenth, one and two times as many articles."""
    rows, n = [], work.documents(DOCUMENTS, QUICK)
    for documents in (n // 10, n, 2 * n):
        taken = cost(work.tag(work.model("default"), work.archive(documents), work.path("out", "memory")))
        speed = {"seconds": short(taken.seconds), "documents/s": f"{documents / taken.seconds:,.0f}"}
        rows.append({"documents": f"{documents:,}", **speed, **_memory([taken])})
    return rows


def resuming(work: Work) -> list[Row]:
    """Kill a run half-way, and resume it."""
    archive, model, rows = work.archive(work.documents(DOCUMENTS, QUICK)), work.model("default"), []
    whole, broken = work.path("out", "whole"), work.path("out", "broken")
    for _ in range(work.rounds):
        shutil.rmtree(broken, ignore_errors=True)
        full = cost(work.tag(model, archive, whole))
        killed_at = _killed_half_way(work.tag(model, archive, broken), broken, _size(whole))
        rest = cost([word for word in work.tag(model, archive, broken) if word != "--restart"])
        rows.append(
            {
                "whole run, seconds": short(full.seconds),
                "killed after writing": f"{killed_at:.0%}",
                "second run, seconds": short(rest.seconds),
                "of a whole run": f"{rest.seconds / full.seconds:.1%}",
                "output": "the same" if _sum(_shards(whole)) == _sum(_shards(broken)) else "DIFFERENT",
            }
        )
    return rows


def _killed_half_way(command: Sequence[Any], folder: Path, size: int) -> float:
    process = subprocess.Popen([*map(str, command)], start_new_session=True, env=environment())
    while process.poll() is None and (not folder.exists() or _size(folder) < size / 2):
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _size(folder) / size


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*"))


def _size(folder: Path) -> int:
    size = 0
    for path in _shards(folder):
        with suppress(FileNotFoundError):  # renamed meanwhile, as it is whole
            size += path.stat().st_size
    return size


def _sum(paths: Iterable[Path]) -> str:
    checksum = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                checksum.update(block)
    return checksum.hexdigest()
