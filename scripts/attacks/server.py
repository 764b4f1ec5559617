"""Send a server what clients should not send, hold connections open, kill its workers, and end it while it works."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from attacks.commands import PATIENCE, TEXTCAT, train_model

_Trial = tuple[str, bool, str]
_PATH = "/api/v1/models/news"
_MOST_MEMORY = 1_000_000_000  # bytes that a server may take more while clients hold connections
_HELD = 500  # connections


class Server:
    """A server of two workers, started as a process of its own on this machine's own address."""

    def __init__(self, model: Path) -> None:
        command = [*TEXTCAT, "serve", f"news={model}", "--port", "0", "--workers", "2", "--seconds", "5"]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([*command, "--log", "events"], text=True, **pipes)  # type: ignore[call-overload]
        line = self.process.stderr.readline()
        found = re.search(r"http://([\d.]+):(\d+)", line)
        if found is None:
            raise RuntimeError(f"The server did not start: {line}")
        self.address = found[1], int(found[2])

    def workers(self) -> list[int]:
        """Return the process numbers of the workers."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(number) for number in path.read_text(encoding="ascii").split()]

    def memory(self) -> int:
        """Return the bytes of memory that the workers have for themselves."""
        total = 0
        for number in self.workers():
            with suppress(OSError):
                status = Path(f"/proc/{number}/status").read_text(encoding="ascii")
                total += 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])  # type: ignore[index]
        return total

    def connect(self, seconds: float = PATIENCE) -> socket.socket:
        """Open a connection whose operations take at most some seconds."""
        return socket.create_connection(self.address, timeout=seconds)

    def send(self, data: bytes) -> int:
        """Send bytes and return the status of the answer; 0 if the connection is closed without one."""
        with self.connect() as connection:
            with suppress(OSError):  # the server need not read to the end
                connection.sendall(data)
            answer = b""
            with suppress(ConnectionError):
                while b"\r\n" not in answer and (part := connection.recv(65536)):
                    answer += part
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0

    def answers(self) -> bool:
        """Return whether an ordinary request is answered."""
        with suppress(OSError):
            return self.send(request("/tag", {"text": "Wheat exports rose."})) == 200
        return False

    def answers_soon(self) -> bool:
        """Return whether an ordinary request is answered before patience is over, perhaps not at once."""
        end = time.monotonic() + PATIENCE
        while not (answered := self.answers()) and time.monotonic() < end:
            time.sleep(0.1)
        return answered

    def end(self) -> int | None:
        """End the server as its operator does, and return its exit code; None if it had to be killed."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def request(route: str, body: object, *headers: str) -> bytes:
    """Return the bytes of a request with a body of JSON; bytes are sent as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {_PATH}{route} HTTP/1.1", "Host: localhost", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + content


def hostile_requests() -> dict[str, bytes]:
    """Return requests that no client should send, by their names."""
    start = f"POST {_PATH}/tag HTTP/1.1\r\n".encode()
    chunked = start + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    text = "wheat " * 1000
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
        "brackets within brackets": request("/tag", b"[" * 100_000),
        "no UTF-8": request("/tag", b'{"text": "\xff\xfe"}'),
        "unknown keys": request("/tag", {"text": "x", **{f"k{i}": i for i in range(200_000)}}),
        "a text of brackets": request("/tag", {"text": "(" * 3_000_000}),
        "a topic many times": request("/explain", {"text": text, "topics": ["wheat"] * 100}),
        "more than a body may have": request("/tag", {"text": "a" * 11_000_000}),
        "a gzip bomb's head": request("/tag", b"\x1f\x8b" + b"\0" * 100, "Content-Encoding: gzip"),
        "a stream without line ends": request("/tag-stream", b"{" * 9_000_000),
    }


def trials(rng: random.Random, seconds: float) -> Iterator[_Trial]:
    """Yield trials against one server after another, for about so many seconds."""
    end = time.monotonic() + seconds
    with TemporaryDirectory() as folder:
        model = train_model(Path(folder, "model"))
        kinds: list[Callable[[Server], Iterator[_Trial]]] = [_raw, _held, _killed, _reloaded]
        while time.monotonic() < end:
            with _running(model) as server:
                for kind in (*kinds, _ended):
                    if time.monotonic() < end:
                        yield from kind(server)
            rng.shuffle(kinds)


@contextmanager
def _running(model: Path) -> Iterator[Server]:
    server = Server(model)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server.process.stderr.close()


def _raw(server: Server) -> Iterator[_Trial]:
    """Send hostile requests: each is refused or answered in time, and the next ordinary one is answered."""
    for name, data in hostile_requests().items():
        try:
            status = server.send(data)
        except OSError as error:
            status, said = -1, str(error)
        else:
            said = f"status {status}"
        ok = (status == 0 or 200 <= status < 500 or status == 503) and server.answers_soon()
        yield "hostile requests", ok, f"{name}: {said}"


def _held(server: Server) -> Iterator[_Trial]:
    """Hold connections with half a request each: they take bounded memory, and other clients are answered."""
    before = server.memory()
    whole = request("/tag", {"text": "a" * 9_000_000})
    halves = [whole[:50], whole[: len(whole) // 2], request("/tag-stream", b"{" * 8_000_000)[:4_000_000]]
    with ExitStack() as stack:
        for number in range(_HELD):
            connection = stack.enter_context(server.connect(5))
            connection.setblocking(False)
            with suppress(OSError):  # what does not go into the buffers is not sent
                connection.sendall(halves[number % len(halves)])
        more = server.memory() - before
        yield "held connections", more < _MOST_MEMORY, f"{more / 1e6:.0f} MB more with {_HELD} connections"
        yield "answers beside held connections", server.answers_soon(), "an ordinary request got no answer"


def _killed(server: Server) -> Iterator[_Trial]:
    """Kill each worker: it is replaced."""
    for number in server.workers():
        with suppress(OSError):
            os.kill(number, signal.SIGKILL)
        yield "killed workers", server.answers_soon(), "no answer after a worker was killed"


def _reloaded(server: Server) -> Iterator[_Trial]:
    """Let models and keys be read again while requests are answered: none is lost."""
    answered: list[bool] = []

    def ask() -> None:
        answered.extend(server.answers() for _ in range(20))

    server.answers_soon()
    asking = [Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for _ in range(3):
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    for thread in asking:
        thread.join()
    yield "reloads", all(answered), f"{answered.count(False)} of {len(answered)} requests got no answer"


def _ended(server: Server) -> Iterator[_Trial]:
    """End the server under load: requests that were sent before SIGTERM are answered, and it ends by itself."""
    server.answers_soon()
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(40)]
        for connection in connections:
            connection.sendall(request("/tag", {"text": "Wheat exports rose. " * 200}))
        code = server.end()
        answers = []
        for connection in connections:
            with suppress(OSError):
                answers.append(connection.recv(15).startswith(b"HTTP/1.1 200"))
    lost = len(connections) - sum(answers)
    yield "ends under load", code == 0 and not lost, f"exit {code}, {lost} of {len(connections)} requests lost"
