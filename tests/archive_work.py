"""Work on batches that workers can import: some of it kills them."""

import os
import signal
import time
from pathlib import Path

from textcat.reading import Batch, Block


def batch(number, size=10):
    """A batch of one block, which holds its number."""
    return Batch((Block("a.txt", "lines", b"x" * size, position=number),), (number,), (number + 1,), number * size)


def number_of(batch):
    return batch.start[0]


def prepared_by(batch):
    return os.environ.get("PREPARED")


def slow_if_even(batch):
    time.sleep(0.05 * (batch.start[0] % 2 == 0))
    return batch.start[0], os.getpid()


def die_at_5_until(flag, batch):
    """Kill the worker at the fifth batch until it has been killed as often as the flag's file is to be long."""
    path, times = flag
    if batch.start[0] == 5 and len(Path(path).read_bytes()) < times:
        with open(path, "ab") as file:
            file.write(b"x")
        os.kill(os.getpid(), signal.SIGKILL)
    return batch.start[0]


def run_out_of_memory_at_5(flag, batch):
    path, times = flag
    if batch.start[0] == 5 and len(Path(path).read_bytes()) < times:
        with open(path, "ab") as file:
            file.write(b"x")
        raise MemoryError
    return batch.start[0]


def fail_at_5(batch):
    if batch.start[0] == 5:
        raise ValueError("five")
    return batch.start[0]


def unpack_a_number(batch):
    _, _, _ = batch.start[0]


def large_result(batch):
    return bytes(32 << 20)


def sleep_long(batch):
    time.sleep(60)
