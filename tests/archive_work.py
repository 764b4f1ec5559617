"""Work on pieces that workers can import: some of it kills them."""

import os
import signal
import time
from pathlib import Path

from textcat.reading.records import Chunk, Piece


def piece(number, size=10):
    """A piece of one chunk, which holds its number."""
    return Piece((Chunk("a.txt", "lines", b"x" * size, position=number),), (number,), (number + 1,), number * size)


def number_of(piece):
    return piece.start[0]


def slow_if_even(piece):
    time.sleep(0.05 * (piece.start[0] % 2 == 0))
    return piece.start[0], os.getpid()


def die_at_5_until(flag, piece):
    """Kill the worker at the fifth piece until it has been killed as often as the flag's file is to be long."""
    path, times = flag
    if piece.start[0] == 5 and len(Path(path).read_bytes()) < times:
        with open(path, "ab") as file:
            file.write(b"x")
        os.kill(os.getpid(), signal.SIGKILL)
    return piece.start[0]


def run_out_of_memory_at_5(flag, piece):
    path, times = flag
    if piece.start[0] == 5 and len(Path(path).read_bytes()) < times:
        with open(path, "ab") as file:
            file.write(b"x")
        raise MemoryError
    return piece.start[0]


def fail_at_5(piece):
    if piece.start[0] == 5:
        raise ValueError("five")
    return piece.start[0]


def sleep_long(piece):
    time.sleep(60)
