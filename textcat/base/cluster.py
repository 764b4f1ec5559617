"""Connect to a Dask cluster by the address of its scheduler; if the cluster cannot be used, an error says why."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import Any

from textcat import __version__
from textcat.base.errors import DISTRIBUTION, TextcatError, install_hint

SECONDS = 20  # seconds to wait for a scheduler
_INTERVAL = 1  # seconds between two checks of a cluster
_TO_CLOSE = 5  # seconds to wait for a client that is being closed
WITHOUT_WORKER = 60  # seconds that a cluster may have no worker: workers may be restarted
_AGAIN = "give the same command again"
_SILENCE = "nothing for {} seconds"


@contextmanager
def connected(address: str) -> Iterator["Connection"]:
    """Connect to the scheduler of a Dask cluster at an address, such as "tcp://host:8786", in a ``with`` block.

    A TextcatError is raised if Dask is not installed, no scheduler answers at the address, the scheduler has no worker,
    or a worker does not have this version of textcat. The block ends with a TextcatError if the cluster is lost: if its
    scheduler no longer answers, or if it has had no worker for a minute.
    """
    import asyncio  # here, as most commands use no cluster

    connection = Connection(address)
    try:
        connection.check_workers()
        yield connection
    except TextcatError:
        raise
    # its type depends on what was running when the cluster was lost
    except (Exception, asyncio.CancelledError) as error:
        connection.check(connection.find_fault())
        connection.check_open(error)
        raise
    finally:
        connection.close()


def _in_thread(function: Callable[..., Any], *arguments: Any, **options: Any) -> "Future[Any]":
    """Call a function in a daemon thread, and return the future of its result.

    Some functions of Dask wait forever if the scheduler is lost. Their thread is then abandoned, and does not keep this
    process from ending.
    """
    future: Future[Any] = Future()

    def call() -> None:
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


def _refusal(address: str) -> str:
    """Shake hands with the server at an address; return why it is not a scheduler, or "" if it is."""
    import asyncio

    from distributed.comm import connect, get_address_host_port

    async def greet() -> None:
        communication = await connect(address, timeout=SECONDS)
        await communication.close()

    try:
        socket.create_connection(get_address_host_port(address), timeout=SECONDS).close()
    except (OSError, ValueError) as error:
        return str(error)
    try:
        _in_thread(asyncio.run, greet()).result(SECONDS + _INTERVAL)
    except FutureTimeoutError:
        return _SILENCE.format(SECONDS)
    except Exception:  # of any type, depending on how the bytes of another server are interpreted
        return "what listens there is no scheduler, or closes the connection"
    return ""


class Connection:
    """The client of a cluster, with a thread that checks whether the scheduler and the workers respond.

    If they do not, everything that waits for the cluster ends with a TextcatError.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise TextcatError(f"A cluster needs Dask: run `{install_hint('cluster')}`.") from None
        self._logs = [logging.getLogger(name) for name in ("distributed.client", "tornado.application")]
        self._log_levels = [log.level for log in self._logs]
        reason = _refusal(address)  # closing a client that gets no answer would wait once more
        if not reason:
            for log in self._logs:  # hide messages below this level: tracebacks of what fails when a scheduler is lost
                log.setLevel(logging.CRITICAL)
            try:
                # Its own timeout is not enough: it waits forever for a frozen scheduler.
                connecting = _in_thread(Client, address, timeout=SECONDS, set_as_default=False)
                self.client: Any = connecting.result(SECONDS + _INTERVAL)
            except (OSError, ValueError, FutureTimeoutError) as error:
                reason = str(error) or _SILENCE.format(SECONDS)
        if reason:
            raise TextcatError(f"No Dask scheduler answers at {address} ({reason}): check the address.") from None
        self._address = address
        self._fault, self._has_worker, self._is_ended = "", time.monotonic(), threading.Event()
        # Everything that waits for an answer, futures too, waits in this method of the client.
        self._sync, self.client.sync = self.client.sync, self._wait
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self, fault: str = "") -> None:
        """Raise TextcatError with the message `fault`, if there is one, or if the cluster is lost."""
        if self.client.status != "running":
            self._fault = self._fault or self._lost_scheduler()
        if fault := self._fault or fault:
            raise TextcatError(fault) from None

    def check_open(self, error: BaseException) -> None:
        """Raise TextcatError if the given error was caused by a closed connection within the cluster."""
        from distributed.comm import CommClosedError

        if isinstance(error, CommClosedError):
            raise TextcatError(
                f"A connection within the Dask cluster at {self._address} was closed: check the logs of its scheduler "
                f"and workers, and {_AGAIN}."
            ) from None

    def check_workers(self) -> None:
        """Raise TextcatError if there is no worker, or if a worker does not answer or has another version."""
        address = self._address

        def installed() -> str:  # pickled by value: a worker without textcat could not import it by name
            try:
                from textcat import __version__
            except ImportError:
                return ""
            return __version__

        try:
            versions = _in_thread(self.client.run, installed).result(WITHOUT_WORKER)
        except TextcatError:
            raise
        except Exception as error:  # of several types, depending on what the worker was doing when it was lost
            self.check(self.find_fault())
            self.check_open(error)
            reason = str(error).rstrip(".") or _SILENCE.format(WITHOUT_WORKER)
            raise TextcatError(
                f"A worker of the Dask cluster at {address} does not answer ({reason}): check its log, and {_AGAIN}."
            ) from None
        if not versions:
            raise TextcatError(
                f"The Dask scheduler at {address} has no worker: start one with `dask worker {address}`."
            )
        for worker, theirs in versions.items():
            if theirs != __version__:
                has = f"textcat {theirs}" if theirs else "no textcat"
                raise TextcatError(
                    f"The worker {worker} of the Dask cluster has {has}: install {DISTRIBUTION} {__version__} there."
                )

    def close(self) -> None:
        """Close the client, or leave it to its own threads if that takes long."""
        self._is_ended.set()
        closing = _in_thread(self.client.close, timeout=_TO_CLOSE)
        wait([closing], _TO_CLOSE + _INTERVAL)
        if closing.done() and not closing.exception():
            for log, level in zip(self._logs, self._log_levels, strict=True):
                log.setLevel(level)
        else:
            self.client.status = "closed"  # otherwise it would be closed again, and waited for, at garbage collection

    def find_fault(self) -> str:
        """Return what is wrong with the cluster; "" if nothing is."""
        if self.client.status != "running":
            return self._lost_scheduler()
        try:
            threads = _in_thread(self._sync, self.client.scheduler.ncores).result(SECONDS)
        except Exception:  # of several types, depending on what the scheduler was doing when it was lost
            return self._lost_scheduler()
        if threads:
            self._has_worker = time.monotonic()
        if time.monotonic() - self._has_worker < WITHOUT_WORKER:
            return ""
        return (
            f"The Dask cluster at {self._address} has had no worker for {WITHOUT_WORKER} seconds: start one with "
            f"`dask worker {self._address}`, and {_AGAIN}."
        )

    def _watch(self) -> None:
        while not self._fault and not self._is_ended.wait(_INTERVAL):
            self._fault = self.find_fault()

    def _wait(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a coroutine function in the client's loop, and wait for its result, in place of `Client.sync`.

        A TextcatError is raised if the cluster is lost before the result comes.
        """
        if self.client.asynchronous:  # called in the event loop
            return self._sync(function, *arguments, **options)
        result = _in_thread(self._sync, function, *arguments, **options)
        while not wait([result], _INTERVAL).done:
            self.check()
        return result.result()

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
