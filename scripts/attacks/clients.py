"""Clients of a server: hostile ones that hold many connections at once, and ordinary ones that count lost answers."""

from __future__ import annotations

import gzip
import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread

from running_server import read_answer

from attacks.running import PATH, Server, request, status_of

_PAUSE = 0.5  # seconds between the pieces of a slow client
_WHOLE = 9_990_000  # bytes of a large body
_PIECE = 1 << 18  # bytes that are sent at once
_MOST_MEMORY = 1_000_000_000  # bytes that a server may take more while clients hold connections,
_KEPT = 150_000_000  # and some time after; 81 to 104 MB were seen
JSON = ("Content-Type: application/json",)

Trial = tuple[str, bool, str]


@dataclass(frozen=True)
class Kind:
    """What a hostile connection does: it sends the start, then a piece again and again; it may close its half."""

    start: bytes
    piece: bytes = b""
    pause: float = _PAUSE  # seconds before each piece
    closes_half: bool = False
    reads: bool = True


def malformed_requests(path: str) -> dict[str, bytes]:
    """Return requests to a route that are not as HTTP, JSON or the server's limits want them, by their names."""
    start = f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n".encode()
    chunked = start + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    return {
        "no host": start + b"Content-Length: 2\r\n\r\n{}",
        "two hosts": start + b"Host: localhost\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        "a foreign host": start + b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}",
        "no HTTP": b"\0" * 1000 + b"\r\n\r\n",
        "a long line": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "many headers": start + b"Host: localhost\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
        "a negative length": start + b"Host: localhost\r\nContent-Length: -1\r\n\r\n{}",
        "two lengths": start + b"Host: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
        "long trailers": chunked + b"X: y\r\n" * 200_000 + b"\r\n",
        "a chunk without end": start + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "brackets within brackets": request("", b"[" * 100_000, JSON, path),
        "no UTF-8": request("", b'{"text": "\xff\xfe"}', JSON, path),
        "a gzip bomb's head": request("", b"\x1f\x8b" + b"\0" * 100, [*JSON, "Content-Encoding: gzip"], path),
    }


def common_kinds(path: str) -> dict[str, Kind]:
    """Return the kinds of hostile connections to a route that takes JSON, by their names."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    large = request("", {"text": "a" * _WHOLE}, JSON, path)
    packed = gzip.compress(large[-_WHOLE - 12 :], 1)
    return {
        "slow heads": Kind(head, b"X: y\r\n"),
        "large heads held": Kind(head + b"X: y\r\n" * 10_000),
        "slow bodies": Kind(large[:1000], b"a" * 100),
        "bodies held": Kind(large[:-1000]),
        "bodies in chunks of a byte": Kind(chunked, b"1\r\na\r\n" * 10_000, 0),
        "trailers without end": Kind(chunked + b"2\r\n{}\r\n0\r\n", b"X: y\r\n" * 10_000, 0),
        "slow trailers": Kind(chunked + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
        "half-closed in a body": Kind(large[: _WHOLE // 2], closes_half=True),
        "gzip": Kind(request("", packed, [*JSON, "Content-Encoding: gzip"], path)),
        "unknown keys": Kind(request("", {"text": "x", **{f"k{i}": i for i in range(500_000)}}, JSON, path)),
    }


def kinds() -> dict[str, Kind]:
    """Return the kinds of hostile connections to a server of models, by their names."""
    batch = request("/tag-batch", {"documents": [{"text": "wheat"}] * 5000, "all_topics": True})
    return {
        **common_kinds(f"{PATH}/tag"),
        "streams held": Kind(request("/tag-stream", b"{" * _WHOLE)[:-1000]),
        "streams of wrong lines": Kind(request("/tag-stream", b"0\n" * (_WHOLE // 2))),
        "half-closed after a request": Kind(request("/tag", {"text": "wheat " * 1000}), closes_half=True),
        "answers not read": Kind(batch, batch, 5, reads=False),
        "requests sent ahead": Kind(b"", request("/tag", {"text": "wheat " * 10_000}) * 10, 0, reads=False),
        "a topic many times": Kind(request("/explain", {"text": "wheat " * 163_000, "topics": ["wheat"] * 50})),
    }


@dataclass
class _Connection:
    kind: str
    socket: socket.socket
    sent: int = 0  # bytes of the start, then of the piece
    started: bool = False  # whether the start has been sent
    next: float = 0.0  # when more may be sent


@dataclass
class Crowd:
    """Hostile connections of all kinds, each replaced by another of its kind when the server ends it."""

    server: Server
    size: int  # the number of connections
    kinds: dict[str, Kind] = field(default_factory=kinds)
    statuses: dict[str, Counter[int]] = field(default_factory=dict)  # of answers, by kind; 0: closed without one
    bytes_sent: int = 0

    def hold(self, seconds: float) -> None:
        """Hold the connections for some seconds, then close them all."""
        end = time.monotonic() + seconds
        names = [*self.kinds]
        with selectors.DefaultSelector() as selector:
            for number in range(self.size):
                self._open(selector, names[number % len(names)])
            while time.monotonic() < end:
                waiting = False
                for key, events in selector.select(0.05):
                    waiting |= self._go_on(selector, key.data, events)
                if not waiting:
                    time.sleep(0.01)
            for key in [*selector.get_map().values()]:
                key.data.socket.close()

    def _open(self, selector: selectors.BaseSelector, kind: str) -> None:
        connection = _Connection(kind, socket.socket())
        connection.socket.setblocking(False)
        with suppress(BlockingIOError):
            connection.socket.connect(self.server.address)
        events = selectors.EVENT_WRITE | (selectors.EVENT_READ if self.kinds[kind].reads else 0)
        selector.register(connection.socket, events, connection)

    def _go_on(self, selector: selectors.BaseSelector, connection: _Connection, events: int) -> bool:
        """Read and send what is due; return whether anything was."""
        did = False
        try:
            if events & selectors.EVENT_READ:
                did = True
                answer = connection.socket.recv(_PIECE)
                if not answer:
                    raise ConnectionError
                if answer.startswith(b"HTTP/1.1 "):
                    self._count(connection, int(answer[9:12]))
            if events & selectors.EVENT_WRITE and time.monotonic() >= connection.next:
                did |= self._send(selector, connection)
        except BlockingIOError:
            return did
        except OSError:
            self._count(connection, 0)
            selector.unregister(connection.socket)
            connection.socket.close()
            self._open(selector, connection.kind)
        return did

    def _send(self, selector: selectors.BaseSelector, connection: _Connection) -> bool:
        kind = self.kinds[connection.kind]
        data = kind.piece if connection.started else kind.start
        n = connection.socket.send(data[connection.sent : connection.sent + _PIECE]) if data else 0
        self.bytes_sent += n
        connection.sent += n
        if connection.sent < len(data):
            return True
        connection.started, connection.sent, connection.next = True, 0, time.monotonic() + kind.pause
        if kind.closes_half:
            connection.socket.shutdown(socket.SHUT_WR)
        if not kind.piece or kind.closes_half:
            selector.modify(connection.socket, selectors.EVENT_READ, connection)
        return True

    def _count(self, connection: _Connection, status: int) -> None:
        self.statuses.setdefault(connection.kind, Counter())[status] += 1


class Load:
    """Ordinary clients that send one request after another, and count the answers that they do not get."""

    def __init__(self, server: Server, n: int = 12, text: str = "Wheat exports rose. ") -> None:
        self._server, self._request = server, request("/tag", {"text": text})
        self.answered = 0
        self.refused = 0  # connections, as nobody listens any more
        self.lost: list[tuple[float, int, str]] = []  # when, the client's port, and how
        self._ended = False
        self._threads = [Thread(target=self._ask, args=(bool(i % 3),), daemon=True) for i in range(n)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each client finish its request, and end."""
        self._ended = True
        for thread in self._threads:
            thread.join()

    def lost_beside(self, killed: list[tuple[float, set[int]]], seconds: float = 10.0) -> list[str]:
        """Return the losses, except those of clients that were connected to a worker killed just before."""
        return [
            f"{how} at port {port}"
            for moment, port, how in self.lost
            if not any(port in ports and 0 <= moment - when < seconds for when, ports in killed)
        ]

    def _ask(self, connects_anew: bool) -> None:
        connection = None
        while not self._ended:
            port = 0
            try:
                if connection is None:
                    connection = self._server.connect()
                port = connection.getsockname()[1]
                connection.sendall(self._request)
                status, _, keeps = read_answer(connection)
            except ConnectionRefusedError:
                self.refused += 1
                return
            except OSError as error:
                status, keeps = -1, False
                self.lost.append((time.monotonic(), port, repr(error)))
            if status == 200:
                self.answered += 1
            elif status >= 0:
                self.lost.append((time.monotonic(), port, f"status {status}"))
            if connection is not None and (connects_anew or not keeps):
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


@contextmanager
def load(server: Server, **options: int | str) -> Iterator[Load]:
    """Let ordinary clients ask during a block, and end them."""
    clients = Load(server, **options)  # type: ignore[arg-type]
    try:
        yield clients
    finally:
        clients.end()


def wait_for_answers(connections: list[socket.socket]) -> int:
    """Return how many of the connections get an answer with status 200."""
    answered = 0
    for connection in connections:
        with suppress(OSError):
            answered += status_of(connection) == 200
    return answered


def request_trials(server: Server, name: str, requests: Mapping[str, bytes]) -> Iterator[Trial]:
    """Send hostile requests: each is refused or answered in time, and the next ordinary one is answered."""
    for kind, data in requests.items():
        try:
            status = server.send(data)
        except OSError as error:
            status, said = -1, str(error)
        else:
            said = f"status {status}"
        ok = (status == 0 or 200 <= status < 500 or status == 503) and server.answers_soon()
        yield name, ok, f"{kind}: {said}"


def crowd_trials(crowd: Crowd, seconds: float, held: str, answers: str, given_back: str) -> Iterator[Trial]:
    """Hold a crowd's connections for some seconds: they take bounded memory, which is given back.

    The last three arguments are the names of the trials.
    """
    server = crowd.server
    before = server.memory()
    server.forget_peak()
    crowd.hold(seconds)
    more = server.peak() - before
    yield held, more < _MOST_MEMORY, f"{more / 1e6:.0f} MB more with {crowd.size} connections"
    yield answers, server.answers_soon(), "an ordinary request got no answer"
    kept = server.memory_later(before + _KEPT) - before
    yield given_back, kept < _KEPT, f"{kept / 1e6:.0f} MB more after the connections"
