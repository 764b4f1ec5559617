"""Run a command to its end, and print as JSON the seconds and the memory that it and all it starts took together.

process_tree.py COMMAND [ARGUMENT ...]

Memory is looked at ten times a second: `rss_bytes` adds up what each process holds, so that what they share counts
several times; `pss_bytes`, looked at every other second, counts that once. Both are 0 where there is no /proc.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

EVERY = 0.1
PSS_EVERY = 20  # looks
PAGE = resource.getpagesize()


def main(command: list[str]) -> int:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    peaks = {"rss_bytes": 0, "pss_bytes": 0}
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
    watch.start()
    code = process.wait()
    taken = time.perf_counter() - started
    ended.set()
    watch.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"seconds": taken, "cpu_seconds": used.ru_utime + used.ru_stime, **peaks}))
    return code


def _watch(root: int, peaks: dict[str, int], ended: threading.Event) -> None:
    look = 0
    while not ended.wait(EVERY):
        tree = process_and_children(root)
        peaks["rss_bytes"] = max(peaks["rss_bytes"], sum(map(_rss, tree)))
        if look % PSS_EVERY == 0:
            peaks["pss_bytes"] = max(peaks["pss_bytes"], sum(map(shared_bytes, tree)))
        look += 1


def process_and_children(root: int) -> list[int]:
    """List a process and all that come from it."""
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # Behind the name, in brackets, which may hold anything: the state, and the parent.
            children[int((entry / "stat").read_text().rpartition(")")[2].split()[1])].append(int(entry.name))
    processes = [root]
    for process in processes:
        processes += children[process]
    return processes


def _rss(process: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    return 0


def shared_bytes(process: int) -> int:
    """Return the memory of a process in bytes; what processes share is divided among them."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
