"""The processes of the server: they share a socket, are replaced if they die, and stop gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import mmap
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from textcat.errors import TextcatError
from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
from textcat.serving.http.problems import TYPE, Problem

if TYPE_CHECKING:
    from textcat.serving.http.application import Application

_HEAD_BYTES = 1 << 16  # of a request's line and headers
_BACKLOG = 2048
_CONNECTIONS = 4096  # of a process
_ENDING = (signal.SIGTERM, signal.SIGINT)
_WAIT = 0.003  # seconds that a process with more connections than another waits
_SHORT = 5.0  # seconds: a process that dies sooner is not replaced at once
_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's name for the folder of counts


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 stands for any free port."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TextcatError(f"Cannot listen on {host} port {port}: {reason}. Give another --host or --port.") from error
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    listener.set_inheritable(True)
    return listener


def run_alone(service: Application, listener: socket.socket, stop_seconds: float = 5.0) -> int:
    """Serve in this process alone, until a signal ends it; return the signal's number."""
    return _run(service, listener, stop_seconds, alone=True)


def run_processes(make: Callable[[], Application], listener: socket.socket, n: int, stop_seconds: float) -> int:
    """Serve in `n` processes that share a socket, until a signal ends them; return the signal's number.

    Each process calls `make` for its application. Where processes cannot be forked, this one serves alone. Running
    requests have `stop_seconds` to end.
    """
    shared = tempfile.mkdtemp(prefix="textcat-serve-")
    os.environ[_SHARED] = shared  # before prometheus_client is imported
    shares = np.frombuffer(mmap.mmap(-1, 8 * n), np.int64)  # the connections of each process

    def work(slot: int) -> int:
        shares[slot] = 0
        _Protocol.shares, _Protocol.slot = shares, slot
        return _run(make(), listener, stop_seconds, alone=not hasattr(os, "fork"))

    try:
        return _Supervisor(work, n).run() if hasattr(os, "fork") else work(0)
    finally:
        del os.environ[_SHARED]
        shutil.rmtree(shared, ignore_errors=True)


def _run(service: Application, listener: socket.socket, stop_seconds: float, *, alone: bool) -> int:
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):  # our own log covers these
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    _Protocol.limits = service.front.limits
    config = uvicorn.Config(
        service,
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(stop_seconds)),
    )
    service.description_json  # noqa: B018  (made now, so that no request waits for it)
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(0.001)  # loading a model must not delay requests
    server = _Uvicorn(config, alone=alone)
    server.run([listener])
    return server.ended_by


class _Acceptor:
    """Accepts connections; a process with more connections than another lets the other accept first."""

    def __init__(self, listener: socket.socket, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self._listener, self._make_protocol, self._loop = listener, make_protocol, asyncio.get_running_loop()
        self._open, self._has_waited = True, False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listen()

    def _listen(self) -> None:
        if self._open:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener.fileno())
        self._loop.call_later(seconds, self._listen)

    def _accept(self) -> None:
        shares, slot = _Protocol.shares, _Protocol.slot
        if shares[slot] > shares.min() and not self._has_waited:
            self._has_waited = True
            self._pause(_WAIT)
            return
        self._has_waited = False
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another process accepted it
            return
        except OSError:  # such as too many open files
            self._pause(0.1)
            return
        connection.setblocking(False)
        shares[slot] += 1
        task = self._loop.create_task(self._connect(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:
            _Protocol.shares[_Protocol.slot] -= 1
            connection.close()

    def close(self) -> None:
        self._open = False
        self._loop.remove_reader(self._listener.fileno())

    async def wait_closed(self) -> None:
        pass


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, on an `_Acceptor`; it ends at Ctrl-C only if there is no supervisor to do so."""

    def __init__(self, config: uvicorn.Config, *, alone: bool) -> None:
        super().__init__(config)
        self._alone, self.ended_by = alone, int(signal.SIGTERM)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        assert sockets is not None
        loop, protocol = asyncio.get_running_loop(), cast(Any, self.config.http_protocol_class)
        state: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state, "_loop": loop}
        make_protocol = partial(protocol, config=self.config, **state)
        self.servers: list[Any] = [_Acceptor(listener, make_protocol) for listener in sockets]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at the first signal; uvicorn's method would raise it again. Only the main thread can handle signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._end) for number in _ENDING}
        if not self._alone:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended_by = number
        self.handle_exit(number, frame)


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on the head of requests: on its bytes, and on the seconds it may take."""

    limits = Limits()
    shares = np.zeros(1, np.int64)
    slot = 0
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > _CONNECTIONS:
            self._refuse(503, "There are too many connections: try again in a second.")
        else:
            self._timer = self.loop.call_later(self.limits.seconds, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self.shares[self.slot] -= 1
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if self._timer is None and not self._head:
                self._timer = self.loop.call_later(self.limits.seconds, self._late)
            self._head += min(len(data), _HEAD_BYTES + 1)
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head and self._head > _HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, f"The header of the request has more than {_HEAD_BYTES:,} bytes: send a shorter one.")

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "The request is not valid HTTP/1.1.")

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, f"The header of the request did not arrive within {self.limits.seconds:g} seconds.")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, detail: str) -> None:
        body = Problem(status, detail).as_json("")
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {TYPE.decode()}\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()


class _Supervisor:
    """The process that starts the other processes and waits for them.

    uvicorn's own supervisor starts each process from scratch, so that each loads the models again, and leaves the
    processes running if it is killed. The processes of this class are forked, share the models' memory,
    and end with their supervisor.
    """

    def __init__(self, work: Callable[[int], object], n: int) -> None:
        self._work, self._n = work, n
        self._started: dict[int, tuple[int, float]] = {}  # by process, its slot among them, and when
        self._stop = 0
        self._log = Log()

    def run(self) -> int:
        before = {number: signal.signal(number, self._end) for number in _ENDING}
        alive, self._living = os.pipe()  # closed when this process ends, however it ends
        self._alive = alive
        gc.collect()
        gc.freeze()
        try:
            for slot in range(self._n):
                self._start(slot)
            self._wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(alive)
            os.close(self._living)
        return self._stop

    def _start(self, slot: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that arrives before the new process sets its handlers would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        process = os.fork()
        if process:
            self._started[process] = slot, time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            return
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            os.close(self._living)
            os.setpgid(0, 0)  # so that only the supervisor gets Ctrl-C from a terminal
            _end_with(self._alive)
            self._work(slot)
            code = 0
        except BaseException:
            self._log.write("error", error="A process of the server failed.", traceback=traceback.format_exc())
        finally:
            os._exit(code)

    def _wait(self) -> None:
        while self._started:
            process, status = os.wait()
            slot, begun = self._started.pop(process, (None, 0.0))
            if slot is None or self._stop:
                continue
            self._log.write("process_died", process=process, status=os.waitstatus_to_exitcode(status))
            with contextlib.suppress(ImportError, OSError):
                from prometheus_client.multiprocess import mark_process_dead

                mark_process_dead(process)
            if time.monotonic() - begun < _SHORT:
                time.sleep(1)
            if not self._stop:
                self._start(slot)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._stop = self._stop or number
        for process in list(self._started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _end_with(alive: int) -> None:
    """End this process gracefully when the other end of a pipe is closed everywhere."""

    def wait() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
