"""The limits of requests: on their size, on the time they take, and on their number per client.

`front.py` refuses bodies that are too large. Limits that are no options stand where they hold: of a request's head in
`protocol.py`, of the values in a body in `routes.py`, of tags in `textcat/serving/work.py`, and of texts to explain in
`textcat/serving/tagging.py`.
"""

import mmap
import signal
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from textcat.serving.http.problems import Problem

_SLOTS = 1 << 12  # number of buckets


@dataclass(frozen=True)
class Limits:
    """The limits of requests; each is an option of `textcat serve`."""

    max_bytes: int = 10_000_000  # maximum size of a body in bytes
    max_documents: int = 5000  # maximum number of documents in a batch
    timeout: float = 30.0  # maximum seconds until a request is answered
    max_concurrency: int = 512  # maximum number of requests that a process handles at the same time
    rate_limit: float = 0.0  # requests per second from one key or address; 0: no limit


@contextmanager
def bounded_time(seconds: float) -> Iterator[None]:
    """Limit the processor time of a ``with`` block: raise a Problem in it after the given seconds.

    Requests are handled one after another in the main thread, where a process timer can interrupt them; asyncio cannot
    do this. A compiled loop is interrupted only after it ends. In other threads, and on systems without such timers,
    the time is not limited.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(*_: object) -> None:
        raise Problem(503, f"The answer was not ready within {seconds:g} seconds: send less at a time.")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def inflated(data: bytes, limit: int) -> bytes:
    """Decompress a gzip stream; raise a Problem if it is damaged, or if its content has more than `limit` bytes."""
    inflate = zlib.decompressobj(wbits=31)
    try:
        plain = inflate.decompress(data, limit + 1)
    except zlib.error as error:
        raise Problem(400, f"The body has the encoding gzip, but is not valid gzip: {error}.") from None
    if len(plain) > limit:
        raise Problem(413, f"The inflated body has more than {limit:,} bytes: send fewer documents at a time.")
    if not inflate.eof or inflate.unused_data:
        raise Problem(400, "The body has the encoding gzip, but is not one complete gzip stream.")
    return plain


class Rates:
    """Limit the number of requests of each client by a token bucket, which all processes share.

    Each client's name is hashed to one of 4,096 buckets. Two clients may share a bucket, and two processes may take the
    same token at the same moment; both are rare, and do no harm.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(rate, 1.0)
        self._memory = np.frombuffer(mmap.mmap(-1, 16 * _SLOTS), np.float64).reshape(_SLOTS, 2)

    def take(self, client: bytes) -> float:
        """Take a token and return 0.0; if the client's bucket has no token, return the seconds until the next one."""
        slot, now = self._memory[zlib.crc32(client) % _SLOTS], time.monotonic()
        tokens = self._most if not slot[1] else min(self._most, slot[0] + (now - slot[1]) * self._rate)
        taken = tokens >= 1
        slot[:] = tokens - taken, now
        return 0.0 if taken else (1 - tokens) / self._rate
