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

from attacks import teaching
from attacks.clients import Crowd, Trial, crowd_trials, load, malformed_requests, request_trials, wait_for_answers
from attacks.commands import train_model
from attacks.running import PATH, request, running
from textcat.base.folders import MANIFEST, exchange_folders
from textcat.serving.http.keys import new_key

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
    text = "wheat " * 1000
    return {
        **malformed_requests(f"{PATH}/tag"),
        "unknown keys": request("/tag", {"text": "x", **{f"k{i}": i for i in range(530_000)}}),
        "a text of brackets": request("/tag", {"text": "(" * 3_000_000}),
        "a topic many times": request("/explain", {"text": text, "topics": ["wheat"] * 100}),
        "more than a body may have": request("/tag", {"text": "a" * 11_000_000}),
        "a stream without line ends": request("/tag-stream", b"{" * 9_000_000),
        "a stream of wrong lines": request("/tag-stream", b"0\n" * 4_500_000),
    }


def trials(rng: random.Random, seconds: float, counts: Counts | None = None) -> Iterator[Trial]:
    """Yield trials against one server after another, for about so many seconds; all kinds are tried at least once."""
    end, counts = time.monotonic() + seconds, counts or Counts()
    with TemporaryDirectory() as folder:
        model = train_model(Path(folder, "model"))
        other = train_model(Path(folder, "other"), "--set", "learner.tau_pos=2")
        kinds = [_raw, _held, _killed, _damaged, _replaced, _keys_replaced, _ended]
        first = True
        while first or time.monotonic() < end:
            for kind in kinds:
                if first or time.monotonic() < end:
                    yield from kind(model, rng, counts)
            if first or time.monotonic() < end:
                yield from _reloaded(model, other, counts)
            if first or time.monotonic() < end:
                yield from teaching.trials(Path(folder), rng, counts.hold_seconds)
            rng.shuffle(kinds)
            first = False


def _raw(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
    """Send hostile requests: each is refused or answered in time, and the next ordinary one is answered."""
    with running(model) as server:
        yield from request_trials(server, "hostile requests", hostile_requests())


def _held(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
    """Hold hostile connections of all kinds: they take bounded memory, which is given back."""
    for _ in range(counts.holds):
        with running(model) as server:
            server.answers_soon()
            names = "held connections", "answers after held connections", "memory given back"
            yield from crowd_trials(Crowd(server, _HELD), counts.hold_seconds, *names)


def _killed(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
    """Kill workers at random under load: they are replaced, and other requests than theirs are not lost."""
    killed: list[tuple[float, set[int]]] = []
    with running(model) as server, load(server) as clients:
        for _ in range(counts.kills):
            time.sleep(rng.uniform(0.1, 1.5))
            while not (workers := server.workers()):
                time.sleep(0.01)
            killed.append((time.monotonic(), server.kill_worker(rng.choice(workers))))
            yield "killed workers", server.answers_soon(), "no answer after a worker was killed"
        clients.end()
        lost, aside = clients.lost_beside(killed), len(clients.lost)
        said = f"{len(lost)} requests lost of {clients.answered} ({aside - len(lost)} on killed workers): {lost[:3]}"
        yield "requests beside killed workers", not lost and clients.answered > 0, said


def _reloaded(model: Path, other: Path, counts: Counts) -> Iterator[Trial]:
    """Replace the model and let the server reload under load: no request is lost."""
    with running(model) as server, load(server) as clients:
        server.wait_for_workers(2)
        for _ in range(counts.reloads):
            n = server.count("model_loaded")
            exchange_folders(model, other)
            server.process.send_signal(signal.SIGHUP)
            more = server.wait_for("model_loaded", n + 2) - n
            yield "reloads", more == 2, f"{more} of 2 workers loaded the new model"
        clients.end()
        said = f"{len(clients.lost)} requests lost of {clients.answered}: {clients.lost[:3]}"
        yield "requests beside reloads", not clients.lost and clients.answered > 0, said


def _ended(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
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


def _damaged(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
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


def _odd_files(folder: Path) -> dict[str, Path]:
    """Make what may stand in the place of a file, and is none; return the paths by what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    paths = {kind: folder / kind for kind in ("pipe", "device", "folder")}
    os.mkfifo(paths["pipe"])
    paths["device"].symlink_to("/dev/zero")
    paths["folder"].mkdir()
    return paths


def _replaced(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
    """Replace a model's manifest by what is no file: each worker keeps the model, and logs that once."""
    copy = model.with_name("replaced")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(model, copy)
    for kind, path in _odd_files(model.with_name("odd")).items():
        with running(copy) as server:
            server.answers_soon()
            exchange_folders(copy / MANIFEST, path)
            server.wait_for("model_failed", 2)
            answered = all(server.answers_soon() for _ in range(10))
            exchange_folders(copy / MANIFEST, path)
            lines, deaths = server.count("model_failed"), server.count("process_died")
        said = f"{kind}: answered {answered}, logged {lines} times by 2 workers, of which {deaths} died"
        yield "manifests replaced while served", answered and lines == 2 and not deaths, said


def _keys_replaced(model: Path, rng: random.Random, counts: Counts) -> Iterator[Trial]:
    """Replace a file of keys by what is no file: nobody may enter meanwhile; each worker logs that once."""
    keys = model.with_name("keys")
    key, line = new_key("alice")
    keys.write_text(line)
    with running(model, ("--timeout", "5", "--keys", str(keys)), [f"X-API-Key: {key}"]) as server:
        server.answers_soon()
        for kind, path in _odd_files(model.with_name("odd")).items():
            before = server.count("keys_failed")
            exchange_folders(keys, path)
            server.reload_until("keys_failed", before + 2)  # each worker looks at the file
            refused = all(server.send(server.ordinary) == 401 for _ in range(10))
            loaded = server.count("keys_loaded")
            exchange_folders(keys, path)
            server.reload_until("keys_loaded", loaded + 2)
            answered, lines = server.answers_soon(), server.count("keys_failed") - before
            refused &= server.send(request("/tag", {"text": "Wheat."}, ["X-API-Key: other"])) == 401
            said = f"{kind}: refused {refused}, answered afterwards {answered}, logged {lines} times by 2 workers"
            yield "keys replaced while served", answered and refused and lines == 2, said
