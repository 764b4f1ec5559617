"""Start `textcat serve`: load the models once, and serve them by several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textcat.errors import TextcatError
from textcat.serving.http.keys import Keys
from textcat.serving.http.limits import Limits, Rates
from textcat.serving.http.log import Log
from textcat.serving.http.processes import listen, run_processes, url_of
from textcat.serving.store import Store

if TYPE_CHECKING:
    from textcat.serving.tagging import Service


@dataclass
class Server:
    """The settings of `textcat serve`."""

    folders: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=Keys)
    origins: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    log_requests: bool = True
    stop_seconds: float = 30.0  # that running requests have when the server stops

    def run(self, on_start: Callable[[str], object] = lambda url: None) -> int:
        """Serve until a signal ends it; return the signal's number."""
        if self.workers > 1 and not hasattr(os, "fork"):
            raise TextcatError(f"This system cannot share a socket among {self.workers} processes: give --workers 1.")
        store = Store(self.folders)
        store.load()
        rates = Rates(self.limits.rate) if self.limits.rate else None  # shared by all processes
        with listen(self.host, self.port) as listener:
            on_start(url_of(listener))
            return run_processes(lambda: self._service(store, rates), listener, self.workers, self.stop_seconds)

    def _service(self, store: Store, rates: Rates | None) -> Service:
        from textcat.serving.tagging import Service  # imports prometheus_client, which needs the folder of counts

        log = Log(requests=self.log_requests)
        options: dict[str, Any] = {
            "limits": self.limits,
            "keys": self.keys,
            "origins": self.origins,
            "log": log,
            "rates": rates,
        }
        return Service(store, labels=self.labels, **options)
