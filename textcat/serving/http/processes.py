"""Start the processes of a server on one socket, share connections among the processes, and stop all gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import ipaddress
import logging
import mmap
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import uvicorn

from textcat.base.errors import TextcatError
from textcat.serving.http.memory import Trimmer, give_memory_back
from textcat.serving.http.protocol import Protocol
from textcat.serving.http.supervisor import Supervisor

if TYPE_CHECKING:
    from textcat.serving.http.application import Application

_BACKLOG = 2048
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_FIRST_PASSED = 3  # the file descriptor of the first socket that systemd passes
_ENDING = (signal.SIGTERM, signal.SIGINT)
_WAIT = 0.003  # seconds that a process waits before it accepts, if another process has fewer connections
_SO_ATTACH_FILTER = 26  # from asm-generic/socket.h
# A packet filter (linux/filter.h): load the TCP flags, and drop packets with SYN, which request a connection.
_WITHOUT_SYN = ((0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # environment variable of prometheus_client: the folder of counts


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port; port 0 means any free port. Raise TextcatError if that fails."""
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
    return _listening(listener)


@contextlib.contextmanager
def listen_at(path: Path) -> Iterator[socket.socket]:
    """In a ``with`` block, listen on a Unix socket, which only this user and the user's group may use.

    A socket that a server left behind at this path is replaced. The socket is removed at the end. TextcatError is
    raised if another server listens on it, or if the path cannot be a socket.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise TextcatError(f"This system has no Unix sockets, such as {path}: give --host and --port.")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_unused(path)
        mask = os.umask(0o117)
        try:
            listener.bind(str(path))
        finally:
            os.umask(mask)
        made = path.stat().st_ino
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise TextcatError(f"Cannot listen on the Unix socket {path}: {reason}. Give another --unix-socket.") from error
    try:
        yield _listening(listener)
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            if path.stat().st_ino == made:  # otherwise another server has replaced it
                path.unlink()


def _remove_unused(path: Path) -> None:
    """Remove a socket on which no process listens; leave any other file, so that the path cannot be bound to.

    The check does not wait for a server whose queue is full.
    """
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        except BlockingIOError:
            return


class _Inherited(socket.socket):
    """A socket passed by systemd, which keeps listening on it after the server has ended."""


def inherited_socket() -> socket.socket | None:
    """Return the listening socket that systemd has passed to this process, or None if it has passed none."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    n = os.environ.get("LISTEN_FDS", "")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # not inherited by child processes
        os.environ.pop(name, None)
    if n != "1":
        raise TextcatError(f"systemd has passed {n} sockets: give one ListenStream in the socket unit.")
    return _listening(_Inherited(fileno=_FIRST_PASSED))


def _listening(listener: socket.socket) -> socket.socket:
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    listener.set_inheritable(True)
    return listener


def run_processes(
    make: Callable[[bool], Application],
    listener: socket.socket,
    n: int,
    stop_seconds: float,
    beside: Callable[..., object] | None,
) -> int:
    """Serve in `n` processes that share a socket, until a signal ends them; return the signal's number.

    Each process calls `make` to get its application; the argument is True if the process replaces one that died. On
    systems that cannot fork processes, this process serves alone. Running requests must end within `stop_seconds`.
    `beside` is the work of one more process, which does not serve: it is called with the keyword argument `replaces`,
    and returns after SIGTERM.
    """
    shared = tempfile.mkdtemp(prefix="textcat-serve-")
    os.environ[_SHARED] = shared  # before prometheus_client is imported
    shares = np.frombuffer(mmap.mmap(-1, 8 * n), np.int64)  # number of connections of each process

    def work(slot: int, replaces: bool) -> object:
        if slot == n and beside is not None:
            listener.close()
            return beside(replaces=replaces)
        return serve(slot, replaces)

    def serve(slot: int, replaces: bool) -> int:
        shares[slot] = 0
        Protocol.shares, Protocol.slot = shares, slot
        return run_alone(make(replaces), listener, stop_seconds, alone=not hasattr(os, "fork"))

    def clean() -> None:
        shutil.rmtree(shared, ignore_errors=True)

    try:
        if not hasattr(os, "fork"):
            return serve(0, False)
        return Supervisor(work, n + (beside is not None), partial(_end_listening, listener), clean, stop_seconds).run()
    finally:
        del os.environ[_SHARED]
        clean()


def _end_listening(listener: socket.socket) -> None:
    """Close this process's copy of the listening socket; on Linux, first let the kernel ignore new clients.

    While the serving processes shut down, the kernel still queues new connections, and resets them when the last
    process closes the socket. So, for an internet socket that was not passed by systemd, Linux drops the first packet
    (SYN) of new connections from now on: clients repeat it after a second, and are then refused, or reach the next
    server.
    """
    if sys.platform == "linux" and listener.family in _INTERNET and not isinstance(listener, _Inherited):
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _WITHOUT_SYN))
        with contextlib.suppress(OSError):  # filters may be unavailable in a sandbox
            value = struct.pack("HP", len(_WITHOUT_SYN), ctypes.addressof(program))
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, value)
    listener.close()


def run_alone(service: Application, listener: socket.socket, stop_seconds: float = 5.0, *, alone: bool = True) -> int:
    """Serve in this process until a signal ends it; return the signal's number.

    If `alone`, the process has no supervisor, and Ctrl-C ends it, too. Running requests must end within `stop_seconds`.
    """
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):  # our own log covers these messages
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    Protocol.limits = service.front.limits
    config = uvicorn.Config(
        service,
        http=Protocol,
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
    """Accepts connections, but waits a moment first if another process of the server has fewer connections."""

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
        shares, slot = Protocol.shares, Protocol.slot
        if shares[slot] > shares.min() and not self._has_waited:
            self._has_waited = True
            self._pause(_WAIT)
            return
        self._has_waited = False
        try:
            self._accept_one()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another process accepted it
            return
        except OSError:  # for example too many open files
            self._pause(0.1)

    def _accept_one(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        Protocol.shares[Protocol.slot] += 1
        task = self._loop.create_task(self._connect(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:
            Protocol.shares[Protocol.slot] -= 1
            connection.close()

    def close(self) -> None:
        """Accept the connections that are already waiting, and close the socket."""
        self._open = False
        self._loop.remove_reader(self._listener.fileno())
        with contextlib.suppress(OSError):  # no more connections are waiting
            for _ in range(_BACKLOG):
                self._accept_one()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait until all accepted connections are set up."""
        await asyncio.gather(*self._tasks)


class _Uvicorn(uvicorn.Server):
    """uvicorn's server with an `_Acceptor`; unless `alone`, it ignores Ctrl-C, as its supervisor sends SIGTERM."""

    def __init__(self, config: uvicorn.Config, *, alone: bool) -> None:
        super().__init__(config)
        self._alone, self.ended_by = alone, int(signal.SIGTERM)
        self._reloads_at_start = False
        self._has_terminal = alone and sys.stderr is not None and sys.stderr.isatty()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        assert sockets is not None
        self._loop = asyncio.get_running_loop()
        state: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state}
        make_protocol = partial(Protocol, config=self.config, **state, _loop=self._loop)
        self.servers: list[Any] = [_Acceptor(listener, make_protocol) for listener in sockets]
        self._trimmer = Trimmer(self._loop, self._give_back)
        self.started = True
        if self._reloads_at_start:
            cast(Any, self.config.app).reload()

    def _give_back(self) -> None:
        """Give unused memory back to the system, after the metrics' numbers are moved: they would keep it in use."""
        cast("Application", self.config.app).front.metrics.renew()
        give_memory_back()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End the server at the first signal, without raising the signal again as uvicorn's method does.

        Outside the main thread, signals are not handled.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[Any, Any] = {number: signal.signal(number, self._end) for number in _ENDING}
        if not self._alone:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if hasattr(signal, "SIGHUP"):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
            # a supervised process starts with this signal blocked
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended_by = number
        self.handle_exit(number, frame)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        if self._has_terminal and not sys.stderr.isatty():  # SIGHUP: the terminal was closed
            self._end(signal.SIGTERM, frame)
        elif self.started:
            self._loop.call_soon_threadsafe(cast(Any, self.config.app).reload)
        else:
            self._reloads_at_start = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the connections that are waiting, answer the requests of all connections, and close these."""
        Protocol.ending = True
        self._trimmer.stop()
        await super().shutdown(sockets)
        Protocol.ending = False


def host_of(listener: socket.socket) -> str:
    """Return the address of a listening socket; ``localhost`` if it is a Unix socket."""
    return str(listener.getsockname()[0]) if listener.family in _INTERNET else "localhost"


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    if listener.family not in _INTERNET:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host (an address or a name) can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
