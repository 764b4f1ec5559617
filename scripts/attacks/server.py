"""Send a server what clients should not send, hold connections open, kill its workers, and end it while it works."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from attacks.clients import Crowd, load, wait_for_answers
from attacks.commands import PATIENCE, train_model
from attacks.running import Server, request, running
from textcat.folders import exchange_folders

_Trial = tuple[str, bool, str]
_MOST_MEMORY = 1_000_000_000  # bytes that a server may take more while clients hold connections,
_KEPT = 300_000_000  # and some time after: each worker keeps a cache of tokens
_HELD = 500  # connections
_BACKLOG = 40  # requests that wait when a server ends


class Counts(NamedTuple):
    """How often to try what cannot be seen by a few trials."""

    kills: int = 6
    reloads: int = 3
    ends: int = 1
    holds: int = 1
    hold_seconds: float = 8.0


def hostile_requests() -> dict[str, bytes]:
    """Return requests that no client should send, by their names."""
    start = b"POST /api/v1/models/news/tag HTTP/1.1\r\n"
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
        "unknown keys": request("/tag", {"text": "x", **{f"k{i}": i for i in range(530_000)}}),
        "a text of brackets": request("/tag", {"text": "(" * 3_000_000}),
        "a topic many times": request("/explain", {"text": text, "topics": ["wheat"] * 100}),
        "more than a body may have": request("/tag", {"text": "a" * 11_000_000}),
        "a gzip bomb's head": request("/tag", b"\x1f\x8b" + b"\0" * 100, ["Content-Encoding: gzip"]),
        "a stream without line ends": request("/tag-stream", b"{" * 9_000_000),
        "a stream of wrong lines": request("/tag-stream", b"0\n" * 4_500_000),
    }


def trials(rng: random.Random, seconds: float, counts: Counts | None = None) -> Iterator[_Trial]:
    """Yield trials against one server after another, for about so many seconds; all kinds are tried at least once."""
    end, counts = time.monotonic() + seconds, counts or Counts()
    with TemporaryDirectory() as folder:
        model = train_model(Path(folder, "model"))
        other = train_model(Path(folder, "other"), "--set", "learner.tau_pos=2")
        kinds = [_raw, _held, _killed, _damaged, _ended]
        first = True
        while first or time.monotonic() < end:
            for kind in kinds:
                if first or time.monotonic() < end:
                    yield from kind(model, rng, counts)
            if first or time.monotonic() < end:
                yield from _reloaded(model, other, counts)
            rng.shuffle(kinds)
            first = False


def _raw(model: Path, rng: random.Random, counts: Counts) -> Iterator[_Trial]:
    """Send hostile requests: each is refused or answered in time, and the next ordinary one is answered."""
    with running(model) as server:
        for name, data in hostile_requests().items():
            try:
                status = server.send(data)
            except OSError as error:
                status, said = -1, str(error)
            else:
                said = f"status {status}"
            ok = (status == 0 or 200 <= status < 500 or status == 503) and server.answers_soon()
            yield "hostile requests", ok, f"{name}: {said}"


def _held(model: Path, rng: random.Random, counts: Counts) -> Iterator[_Trial]:
    """Hold hostile connections of all kinds: they take bounded memory, which is given back."""
    for _ in range(counts.holds):
        with running(model) as server:
            server.answers_soon()
            before = server.memory()
            server.forget_peak()
            crowd = Crowd(server, _HELD)
            crowd.hold(counts.hold_seconds)
            more = server.peak() - before
            yield "held connections", more < _MOST_MEMORY, f"{more / 1e6:.0f} MB more with {_HELD} connections"
            yield "answers after held connections", server.answers_soon(), "an ordinary request got no answer"
            kept = _memory_later(server, before + _KEPT) - before
            yield "memory given back", kept < _KEPT, f"{kept / 1e6:.0f} MB more after the connections"


def _memory_later(server: Server, wanted: int) -> int:
    """Return the memory of a server once it is as small as wanted, or patience is over."""
    end = time.monotonic() + PATIENCE
    while (size := server.memory()) >= wanted and time.monotonic() < end:
        time.sleep(0.5)
    return size


def _killed(model: Path, rng: random.Random, counts: Counts) -> Iterator[_Trial]:
    """Kill workers at random under load: they are replaced, and other requests than theirs are not lost."""
    killed: list[tuple[float, set[int]]] = []
    with running(model) as server, load(server) as clients:
        for _ in range(counts.kills):
            time.sleep(rng.uniform(0.1, 1.5))
            while not (workers := server.workers()):
                time.sleep(0.01)
            killed.append((time.monotonic(), server.kill(rng.choice(workers))))
            yield "killed workers", server.answers_soon(), "no answer after a worker was killed"
        clients.end()
        lost, aside = clients.lost_beside(killed), len(clients.lost)
        said = f"{len(lost)} requests lost of {clients.answered} ({aside - len(lost)} on killed workers): {lost[:3]}"
        yield "requests beside killed workers", not lost and clients.answered > 0, said


def _reloaded(model: Path, other: Path, counts: Counts) -> Iterator[_Trial]:
    """Replace the model and let the server reload under load: no request is lost."""
    with running(model) as server, load(server) as clients:
        for _ in range(counts.reloads):
            n = _loaded(server)
            exchange_folders(model, other)
            server.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + PATIENCE
            while (more := _loaded(server) - n) < 2 and time.monotonic() < end:
                time.sleep(0.05)
            yield "reloads", more == 2, f"{more} of 2 workers loaded the new model"
        clients.end()
        said = f"{len(clients.lost)} requests lost of {clients.answered}: {clients.lost[:3]}"
        yield "requests beside reloads", not clients.lost and clients.answered > 0, said


def _loaded(server: Server) -> int:
    return sum(event["event"] == "model_loaded" for event in server.events())


def _ended(model: Path, rng: random.Random, counts: Counts) -> Iterator[_Trial]:
    """End the server under load: requests that were sent before SIGTERM are answered, and it ends by itself."""
    for _ in range(counts.ends):
        with running(model) as server, load(server) as clients, ExitStack() as stack:
            server.answers_soon()
            time.sleep(rng.uniform(0, 0.5))
            connections = [stack.enter_context(server.connect()) for _ in range(_BACKLOG)]
            for connection in connections:
                connection.sendall(request("/tag", {"text": "Wheat exports rose. " * 2000}))
            code = server.end()
            missing = len(connections) - wait_for_answers(connections)
            clients.end()
        lost = len(clients.lost)
        said = f"exit {code}, {missing} of {_BACKLOG} waiting and {lost} of {clients.answered} other requests lost"
        yield "ends under load", code == 0 and not missing and not lost, f"{said}: {clients.lost[:3]}"


def _damaged(model: Path, rng: random.Random, counts: Counts) -> Iterator[_Trial]:
    """Truncate a mapped file of the model: clients are told which one, until the model's folder is replaced."""
    copy, good = model.with_name("damaged"), model.with_name("good")
    for name in ("bias.npy", "idf.npy", "weights.npy"):
        for folder in (copy, good):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(model, folder)
        with running(copy) as server:
            server.answers_soon()
            os.truncate(copy / name, 0)
            answers = [server.ask(request("/tag", {"text": "Wheat exports rose."})) for _ in range(20)]
            deaths = sum(event["event"] == "process_died" for event in server.events())
            log = sum(name in str(event.get("error")) for event in server.events())
            exchange_folders(copy, good)
            told = answers[-1][0] == 503 and name.encode() in answers[-1][1]
            ok = told and 0 < deaths <= 4 and 0 < log <= 4 and server.answers_soon()
            said = f"{name}: {deaths} workers died, {log} lines name it, the last answer is {answers[-1]!r}"
            yield "models truncated while served", ok, said
