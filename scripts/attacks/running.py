"""A server that is attacked: its processes, their memory, and requests to it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from running_server import Running, children_of, read_answer, start

from attacks.commands import PATIENCE

PATH = "/api/v1/models/news"
LONGEST = 5 * PATIENCE  # seconds to wait on a machine that is busy with other work


class Server(Running):
    """A server with its processes and their memory; `ordinary` is a request that is answered with status 200."""

    ordinary = b""

    def processes(self) -> list[int]:
        """Return the process numbers of the server: the first, the workers, and what those have started."""
        workers = self.workers()
        return [self.process.pid, *workers, *(child for worker in workers for child in children_of(worker))]

    def memory(self) -> int:
        """Return the bytes of memory that all processes hold now."""
        return sum(_kilobytes(number, "VmRSS") for number in self.processes()) * 1024

    def peak(self) -> int:
        """Return the sum of the most bytes of memory that each process held since `forget_peak`."""
        return sum(_kilobytes(number, "VmHWM") for number in self.processes()) * 1024

    def forget_peak(self) -> None:
        """Measure peaks of memory anew."""
        for number in self.processes():
            with suppress(OSError):
                Path(f"/proc/{number}/clear_refs").write_text("5", encoding="ascii")

    def seconds(self) -> float:
        """Return the seconds of processor time that all processes have used."""
        return sum(_ticks(number) for number in self.processes()) / 100

    def events(self) -> list[dict[str, object]]:
        """Return what the server has logged."""
        # A line that is being written may be read as NUL bytes.
        whole = self.log.read_bytes().partition(b"\0")[0].rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def count(self, event: str) -> int:
        """Return how often the server has logged an event."""
        return sum(logged["event"] == event for logged in self.events())

    def wait_for(self, event: str, times: int) -> int:
        """Wait until the server has logged an event so often, or patience is over; return how often it has."""
        end = time.monotonic() + LONGEST
        while (n := self.count(event)) < times and time.monotonic() < end:
            time.sleep(0.05)
        return n

    def reload_until(self, event: str, times: int) -> int:
        """Send SIGHUP until the server has logged an event so often: a worker that is starting does not hear it."""
        end = time.monotonic() + PATIENCE
        while (n := self.count(event)) < times and time.monotonic() < end:
            self.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
        return n

    def wait_for_workers(self, n: int) -> None:
        """Wait until so many workers run: a server whose first process has not started them ends at SIGHUP."""
        end = time.monotonic() + LONGEST
        while len(self.workers()) < n and time.monotonic() < end:
            time.sleep(0.01)

    def memory_later(self, wanted: int) -> int:
        """Return the memory of the server once it is less than wanted, or after two minutes."""
        end = time.monotonic() + 2 * PATIENCE  # memory is given back for the last time 64 seconds after its last growth
        while (size := self.memory()) >= wanted and time.monotonic() < end:
            time.sleep(0.5)
        return size

    def send(self, data: bytes) -> int:
        """Send bytes and return the status of the answer; 0 if the connection is closed without one."""
        with self.connect() as connection:
            with suppress(OSError):  # the server need not read to the end
                connection.sendall(data)
            return status_of(connection)

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """Send bytes and return the status and the body of the answer; 0 if the connection is closed without one."""
        with self.connect() as connection, suppress(OSError):
            connection.sendall(data)
            return read_answer(connection)[:2]
        return 0, b""

    def answers(self) -> bool:
        """Return whether an ordinary request is answered."""
        with suppress(OSError):
            return self.send(self.ordinary) == 200
        return False

    def answers_soon(self) -> bool:
        """Return whether an ordinary request is answered before patience is over, perhaps not at once.

        On a busy machine, the server may get little of a processor: patience lasts longer until it has got enough.
        """
        start, spent = time.monotonic(), self.seconds()
        while not (answered := self.answers()):
            seconds = time.monotonic() - start
            if seconds > LONGEST or (seconds > PATIENCE and self.seconds() - spent > PATIENCE / 2):
                break
            time.sleep(0.1)
        return answered

    def kill_worker(self, worker: int) -> set[int]:
        """Kill a worker; return the ports of the clients that were connected to it."""
        _signal(worker, signal.SIGSTOP)  # or it would accept more connections meanwhile
        end = time.monotonic() + 1
        while time.monotonic() < end and _state(worker) not in ("T", ""):
            time.sleep(0.001)
        ports = _client_ports(worker)
        _signal(worker, signal.SIGKILL)
        return ports

    def end(self) -> int | None:
        """End the server as its operator does, and return its exit code; None if it had to be killed."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


@contextmanager
def running(model: Path, options: Sequence[str] = ("--timeout", "5"), headers: Sequence[str] = ()) -> Iterator[Server]:
    """Start a server of two workers, and kill it at the end of the block if it still runs.

    `headers` are those that an ordinary request needs.
    """
    arguments = ["serve", f"news={model}", "--workers", "2", "--log", "events", *options]
    ordinary = request("/tag", {"text": "Wheat exports rose."}, headers)
    with started(arguments, model.with_name(f"{model.name}.log"), ordinary) as server:
        yield server


@contextmanager
def started(arguments: Sequence[object], log: Path, ordinary: bytes) -> Iterator[Server]:
    """Start a server, and kill it at the end of the block if it still runs."""
    server = start(*arguments, log=log, server=Server)
    server.ordinary = ordinary
    try:
        yield server
    finally:
        server.kill()


def request(route: str, body: object, headers: Iterable[str] = (), path: str = PATH) -> bytes:
    """Return the bytes of a request with a body of JSON; bytes are sent as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {path}{route} HTTP/1.1", "Host: localhost", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + content


def status_of(connection: socket.socket) -> int:
    """Read an answer's first line and return its status; 0 if the connection is closed without an answer."""
    answer = b""
    with suppress(ConnectionError):
        while b"\r\n" not in answer and (part := connection.recv(65536)):
            answer += part
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0


# --- what Linux tells of processes -----------------------------------------------------------------------------------


def _read(number: int, name: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{number}/{name}").read_text(encoding="ascii", errors="replace")
    return ""


def _kilobytes(number: int, entry: str) -> int:
    found = re.search(rf"{entry}:\s+(\d+)", _read(number, "status"))
    return int(found[1]) if found else 0


def _fields(number: int) -> list[str]:
    """Return the fields of a process's status from its state on; none if it is gone."""
    return _read(number, "stat").rpartition(")")[2].split()


def _state(number: int) -> str:
    return next(iter(_fields(number)), "")


def _ticks(number: int) -> int:
    fields = _fields(number)
    return int(fields[11]) + int(fields[12]) if fields else 0


def _client_ports(number: int) -> set[int]:
    """Return the ports of the other ends of a process's connections."""
    sockets = set()
    with suppress(OSError):
        for path in Path(f"/proc/{number}/fd").iterdir():
            with suppress(OSError):
                sockets.add(path.readlink().name)
    rows = (line.split() for line in _read(number, "net/tcp").splitlines()[1:])
    return {int(row[2].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in sockets}


def _signal(number: int, signal_number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(number, signal_number)
