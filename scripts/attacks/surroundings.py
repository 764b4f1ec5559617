"""Homes without permission to write, other users, clocks that jump, and Dask workers that die."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from distributed import Client

from .commands import TEXTCAT, run, train_model, write_archive, written_bytes

Trial = tuple[str, bool, str]
NOBODY = 65534  # the user and group of no files
DOCUMENTS = 3000

# A clock that jumps up to a day back or forth each time it is read; only the monotonic clock goes on.
JUMPING_CLOCK = """
import random, runpy, sys, time
draw, clock = random.Random(0), time.time
time.time = lambda: clock() + draw.uniform(-86400, 86400)
time.time_ns = lambda: int(time.time() * 1e9)
sys.argv[0] = "textcat"
runpy.run_module("textcat", run_name="__main__")
"""


def trials(random: random.Random, seconds: float) -> Iterator[Trial]:
    """Yield a trial of each kind in turn, until the time is over."""
    end = time.monotonic() + seconds
    kinds: list[Callable[[random.Random, Path], Iterator[Trial]]] = [_clocks, _users, _workers]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # other users look into it
        train_model(folder / "model")
        write_archive(folder / "archive.jsonl", DOCUMENTS)
        run(["tag", folder / "model", folder / "archive.jsonl", "--out", folder / "expected"])
        while True:
            for kind in kinds:
                if time.monotonic() > end:
                    return
                yield from kind(random, folder)


def _clocks(random: random.Random, folder: Path) -> Iterator[Trial]:
    command = [sys.executable, "-c", JUMPING_CLOCK]
    out = _emptied(folder / "jumped")
    ended = run(["tag", folder / "model", folder / "archive.jsonl", "--out", out], command=command)
    yield "a clock that jumps while an archive is tagged", ended.code == 0 and _as_expected(folder, out), ended.detail
    ended = run(["train", "newswire", "--out", _emptied(folder / "retrained")], command=command)
    yield "a clock that jumps while a model is trained", ended.code == 0, ended.detail
    future = time.time() + random.uniform(1, 3) * 365 * 86400
    for path in (folder / "model").iterdir():
        os.utime(path, (future, future))
    ended = run(["tag", folder / "model", "--stdin"], stdin=(folder / "archive.jsonl").open())
    yield "files from the future", ended.code == 0, ended.detail


def _users(random: random.Random, folder: Path) -> Iterator[Trial]:
    """Run commands as a user who owns nothing and has a home that cannot be written to; only root may try."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        return
    # May read everything, as Python itself may lie in a folder of root's, and may write to nothing that is not its own.
    rights = ["--clear-groups", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", *rights, *TEXTCAT]
    home = folder / "home"
    home.mkdir(exist_ok=True)
    home.chmod(0o555)
    surroundings = {"environment": {"HOME": str(home), "XDG_CACHE_HOME": "", "TEXTCAT_CORPORA": ""}, "cwd": home}
    open_to_all = folder / "open"
    open_to_all.mkdir(exist_ok=True)
    open_to_all.chmod(0o777)
    ended = run(["train", "newswire", "--out", _emptied(open_to_all / "model")], command=nobody, **surroundings)
    yield "a home that cannot be written to: train", ended.code == 0, ended.detail
    ended = run(["corpora"], command=nobody, **surroundings)
    yield "a home that cannot be written to: corpora", ended.code == 0, ended.detail
    ended = run(["train", "20newsgroups"], command=nobody, **surroundings)
    yield "a home that cannot be written to: a download", ended.refused, ended.detail
    tag = ["tag", folder / "model", folder / "archive.jsonl"]
    ended = run([*tag, "--out", folder / "refused"], command=nobody, **surroundings)
    yield "a folder of another user: tag --out", ended.refused and not (folder / "refused").exists(), ended.detail
    ended = run([*tag, "--out", folder / "expected"], command=nobody, **surroundings)
    yield "a run of another user", ended.refused, ended.detail
    ended = run(["learn", folder / "model", folder / "archive.jsonl"], command=nobody, **surroundings)
    yield "a model of another user: learn", ended.refused, ended.detail


def _workers(random: random.Random, folder: Path) -> Iterator[Trial]:
    """Kill one of two Dask workers while an archive is tagged; the other one finishes, with the same bytes."""
    with _DaskProcesses() as cluster:
        out = _emptied(folder / "distributed")
        killer = threading.Timer(random.uniform(2, 6), cluster.kill_worker)
        killer.start()
        where = ["--backend", "dask", "--scheduler", cluster.address]
        ended = run(["tag", folder / "model", folder / "archive.jsonl", "--out", out, *where])
        killer.join()
        yield "a Dask worker dies", ended.code == 0 and _as_expected(folder, out), ended.detail
    ended = run(["tag", folder / "model", folder / "archive.jsonl", *where])
    yield "a Dask scheduler that is gone", ended.refused, ended.detail


class _DaskProcesses:
    """A scheduler and two workers, in processes of their own."""

    def __enter__(self) -> _DaskProcesses:
        self._folder = tempfile.TemporaryDirectory()
        scheduler_file = Path(self._folder.name) / "scheduler.json"
        self._scheduler = _start("dask_scheduler", "--port", "0", "--scheduler-file", scheduler_file)
        deadline = time.monotonic() + 30
        while not scheduler_file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.address = json.loads(scheduler_file.read_text())["address"]
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0"]
        self._workers = [_start("dask_worker", self.address, *options) for _ in range(2)]
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        return self

    def kill_worker(self) -> None:
        """Kill the first worker as the system does when memory is short."""
        self._workers[0].kill()

    def __exit__(self, *_: object) -> None:
        for process in [*self._workers, self._scheduler]:
            process.kill()
            process.wait()
        self._folder.cleanup()


def _start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{module}", *map(str, arguments), "--no-dashboard"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _as_expected(folder: Path, out: Path) -> bool:
    return written_bytes(out) == written_bytes(folder / "expected") != b""
