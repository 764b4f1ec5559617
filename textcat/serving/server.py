"""Run `textcat serve`: load the models once, and serve them in several processes."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textcat.base.errors import TextcatError
from textcat.serving.alarms import Alarms
from textcat.serving.http.limits import Limits, Rates
from textcat.serving.http.processes import run_processes, url_of
from textcat.serving.shadow import Shadow
from textcat.serving.store import Store

if TYPE_CHECKING:
    from textcat.serving.tagging import Service

log = logging.getLogger(__name__)
_STOP_SECONDS = 30.0  # seconds in which running requests must end when the server stops


def serve_models(
    folders: Mapping[str, Path],
    open_listener: Callable[[], AbstractContextManager[socket.socket]],
    workers: int,
    on_start: Callable[[str], object],
    limits: Limits,
    shadow: tuple[str, Path] | None = None,
    shadow_sample: Path | None = None,
    monitor: tuple[str, Path] | None = None,
    **options: Any,
) -> int:
    """Serve models in several processes until a signal ends the server; return the signal's number.

    `folders` has the folder of each model by its name, `open_listener` returns the listening socket as a context, and
    `workers` is the number of processes. `on_start` is called with the address of the server; `shadow` is the name of a
    model and the folder of its shadow (a new model that tags the same documents, to compare the tags); `shadow_sample`
    is a file for documents that they tag differently; `monitor` is the name of a model and a folder of tags, with which
    those of clients are compared; `options` are passed to `Service`.
    """
    if workers > 1 and not hasattr(os, "fork"):
        raise TextcatError(f"This system cannot share a socket among {workers} processes: give --workers 1.")
    store = Store(folders)
    store.load()
    watched: Shadow | None = None
    alarms: Alarms | None = None
    if monitor is not None:
        name, folder = monitor
        alarms = Alarms(name, store[name].version, store[name].tagger, folder)
        store.on_tagged.append(alarms.count)
    if shadow is not None:
        name, folder = shadow
        watched = Shadow(name, store[name].tagger, folder, shadow_sample)
        store.on_tagged.append(watched.offer)
        if watched.warning:
            log.warning(watched.warning)
    rates = Rates(limits.rate_limit) if limits.rate_limit else None  # shared by all processes

    def make(replaces: bool) -> Service:
        # imported here, because it imports prometheus_client, which needs the folder of counts
        from textcat.serving.tagging import Service

        service = Service(store, limits=limits, rates=rates, shadow=watched, alarms=alarms, **options)
        if replaces:  # the process that died may have been ended by a damaged model
            store.load_again()
        return service

    with open_listener() as listener:
        on_start(url_of(listener))
        beside = None if watched is None else watched.run
        return run_processes(make, listener, workers, _STOP_SECONDS, beside)
