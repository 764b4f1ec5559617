"""Connect to a Dask cluster by the address of its scheduler; if the cluster cannot be used, an error says why."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from textcat import __version__
from textcat.base.errors import DISTRIBUTION, TextcatError, install_hint

SECONDS = 20  # to wait for a scheduler
_INTERVAL = 1  # seconds between two looks at a cluster
WITHOUT_WORKER = 60  # seconds that a cluster may be without any worker: they may be started again
_AGAIN = "give the same command again"


def connect(address: str) -> Any:
    """Return a `distributed.Client` that is connected to the scheduler at an address, such as "tcp://host:8786".

    A TextcatError is raised if Dask is not installed, no scheduler answers at the address, the scheduler has no worker,
    or a worker does not have this version of textcat.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise TextcatError(f"A cluster needs Dask: run `{install_hint('cluster')}`.") from None
    try:
        # A client that gets no answer would, after its time, be waited for once more as it is closed.
        socket.create_connection(get_address_host_port(address), timeout=SECONDS).close()
        client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TextcatError(f"No Dask scheduler answers at {address} ({error}): check the address.") from None
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return client


@contextmanager
def connected(address: str) -> Iterator["Connection"]:
    """Connect to a Dask cluster in a ``with`` block, and end the block with a TextcatError if the cluster is lost.

    It is lost if its scheduler no longer answers, or if it has had no worker for a minute. TextcatError is also raised
    as by `connect`.
    """
    with _without_tracebacks(), connect(address) as client:
        connection = Connection(client, address)
        try:
            yield connection
        except (Exception, asyncio.CancelledError):
            connection.check()
            raise
        finally:
            connection.stop()


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep Dask's client from logging each failed try to reach a lost scheduler, in a ``with`` block."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class Connection:
    """Hold the client of a cluster, and look in a thread whether scheduler and workers are there.

    If they are not, the client is closed, so that nothing waits for results that never come.
    """

    def __init__(self, client: Any, address: str) -> None:
        self.client, self._address = client, address
        self._fault, self._has_worker, self._is_ended = "", time.monotonic(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self) -> None:
        """Raise TextcatError if the cluster is lost."""
        if self.client.status != "running":
            self._fault = self._fault or self._lost_scheduler()
        if fault := self._fault:
            raise TextcatError(f"{fault}") from None

    def stop(self) -> None:
        """End the thread."""
        self._is_ended.set()

    def _watch(self) -> None:
        while not self._is_ended.wait(_INTERVAL):
            fault = self._find_fault()
            if fault and not self._is_ended.is_set():
                self._fault = self._fault or fault
                with suppress(Exception):  # of several kinds, by what the client was doing
                    self.client.close(timeout=_INTERVAL)
                return

    def _find_fault(self) -> str:
        if self.client.status != "running":
            return self._lost_scheduler()
        try:
            threads = self.client.sync(self.client.scheduler.ncores, callback_timeout=SECONDS)
        except Exception:  # of several kinds, by what the scheduler was doing when it was lost
            return self._lost_scheduler()
        if threads:
            self._has_worker = time.monotonic()
        if time.monotonic() - self._has_worker < WITHOUT_WORKER:
            return ""
        return (
            f"The Dask cluster at {self._address} has had no worker for {WITHOUT_WORKER} seconds: start one with "
            f"`dask worker {self._address}`, and {_AGAIN}."
        )

    def _lost_scheduler(self) -> str:
        return f"The Dask scheduler at {self._address} no longer answers: check whether it runs, and {_AGAIN}."


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Run the joblib tasks of a ``with`` block on the Dask cluster whose scheduler is at an address.

    If the address is "", the tasks run on this machine. A TextcatError is raised in the cases that `connected` names,
    and if Dask gives up tasks because their workers are lost repeatedly.
    """
    if not address:
        yield
        return
    import joblib

    with connected(address) as connection:
        from distributed import KilledWorker

        try:
            with joblib.parallel_config(backend="dask", client=connection.client):
                yield
        except (KilledWorker, CancelledError) as error:
            connection.check()
            raise TextcatError(
                f"The workers of the Dask cluster at {address} were lost while they worked ({error}): check in "
                "their logs whether they ran out of memory."
            ) from error


def _check_workers(client: Any, address: str) -> None:
    def installed() -> str:  # sent as it stands: where textcat is not installed, it could not be found by its name
        try:
            from textcat import __version__
        except ImportError:
            return ""
        return __version__

    if not (versions := client.run(installed)):
        raise TextcatError(f"The Dask scheduler at {address} has no worker: start one with `dask worker {address}`.")
    for worker, theirs in versions.items():
        if theirs != __version__:
            has = f"textcat {theirs}" if theirs else "no textcat"
            raise TextcatError(
                f"The worker {worker} of the Dask cluster has {has}: install {DISTRIBUTION} {__version__} there."
            )
