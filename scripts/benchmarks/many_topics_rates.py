"""What all systems are asked for many topics, and how fast they answer; this needs no library, as each has its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

RANKS, TAGGED = 20, 10  # topics of each document: to measure quality, and speed
WARM_UP = 100  # documents tagged before those that count


def print_rates(tag: Callable[[list[Any]], object], documents: list[Any]) -> None:
    """Tag documents, after some to warm up, and print how many a second, and a second of the processor."""
    tag(documents[:WARM_UP])
    started, started_cpu = time.perf_counter(), time.process_time()
    tag(documents)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    print(json.dumps({"rate": len(documents) / seconds, "cpu_rate": len(documents) / cpu_seconds}))
