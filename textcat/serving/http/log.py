"""The log of the server, written as lines of JSON."""

import os
import time
from contextlib import suppress
from typing import Any

from textcat.serving.http.problems import json_bytes


class Log:
    """Write a line of JSON to a file descriptor for each event of the server.

    If `requests`, the server also logs each request that it has answered. If `descriptor` is None, nothing is written.
    """

    def __init__(self, descriptor: int | None = 1, *, requests: bool = True) -> None:
        self._descriptor, self.requests = descriptor, requests

    def write(self, event: str, **fields: Any) -> None:
        """Write a line with the time, an event and its fields."""
        if self._descriptor is None:
            return
        now = time.time()
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
        line = json_bytes({"time": stamp, "event": event, **fields}) + b"\n"
        with suppress(OSError):  # even if the reader has gone or the disk is full, requests must be answered
            os.write(self._descriptor, line)
