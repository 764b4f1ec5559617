"""Runs over archives that end early by full disks, bad lines, signals and killed workers; inputs that change."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from running_server import children_of

from .commands import PATIENCE, Ended, run, train_model, write_archive, written_bytes

Trial = tuple[str, bool, str]
DOCUMENTS = 30_000  # enough bytes for workers
LIMIT = 10  # seconds after what ends a run early, until it must have ended
JOBS = 4


def trials(random: random.Random, seconds: float, part: str = "") -> Iterator[Trial]:
    """Yield a trial of each kind in turn, or of the one kind `part`, until the time is over."""
    end = time.monotonic() + seconds
    kinds = (full_disk, strict, interrupted, terminated, killed_worker, killed, changed_input)
    with tempfile.TemporaryDirectory() as name:
        archive = _Archive(Path(name))
        while True:
            for kind in [kind for kind in kinds if part in ("", kind.__name__.replace("_", "-"))]:
                if time.monotonic() > end:
                    return
                yield kind(random, archive)


class _Archive:
    """A model, an archive, and the tags that an undisturbed run writes; every trial gets a folder of its own."""

    def __init__(self, folder: Path):
        self.folder, self.model, self.path = folder, folder / "model", folder / "archive.jsonl"
        train_model(self.model)
        write_archive(self.path, DOCUMENTS)
        ended = self.tag(folder / "expected")
        self.expected, self.seconds = written_bytes(folder / "expected"), ended.seconds

    def tag(self, out: Path, *options: str, path: Path | None = None, **more: Any) -> Ended:
        """Tag the archive, or another file, to a folder."""
        return run(self.command(out, *options, path=path), **more)

    def command(self, out: Path, *options: str, path: Path | None = None) -> list[object]:
        """Return the arguments that tag the archive, or another file, to a folder."""
        return ["tag", self.model, path or self.path, "--out", out, "--jobs", JOBS, "--quiet", *options]

    def out(self) -> Path:
        """Return a folder that does not exist."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return out

    def resumes(self, out: Path) -> tuple[bool, str]:
        """Give the same command again, and return whether it writes what an undisturbed run does, and a detail."""
        ended = self.tag(out)
        return ended.code == 0 and written_bytes(out) == self.expected, f"; resumed: {ended.detail}"


def full_disk(random: random.Random, archive: _Archive) -> Trial:
    """Tag to a disk that has too little room: a file system in memory, or else a limit for the size of a file."""
    out, size = archive.out(), random.randrange(4096, len(archive.expected))
    with _small_disk(out, size) as limits:
        ended = archive.tag(out, **limits)
        ok, detail = ended.refused and ended.seconds < archive.seconds + LIMIT, f"{size} bytes: {ended.detail}"
        if "preexec_fn" not in limits:
            subprocess.run(["mount", "-o", "remount,size=1g", out], check=True)
        resumes, more = archive.resumes(out)
    return "a full disk", ok and resumes, detail + more


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[dict[str, Any]]:
    """Yield the options of a process for which the folder has room for `size` bytes."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}
        else:
            yield {}
    finally:
        subprocess.run(["umount", "--lazy", folder], capture_output=True, check=False)


def strict(random: random.Random, archive: _Archive) -> Trial:
    """Tag an archive with a bad line somewhere, strictly."""
    lines = archive.path.read_bytes().splitlines(keepends=True)
    number = random.randrange(len(lines))
    lines.insert(number, b'{"text": "cut\n')
    path = archive.folder / "bad.jsonl"
    path.write_bytes(b"".join(lines))
    out = archive.out()
    ended = archive.tag(out, "--strict", path=path)
    ok = ended.refused and f":{number + 1}: " in ended.err and ended.seconds < archive.seconds + LIMIT
    again = archive.tag(out, path=path)  # the lock has been given back
    resumes = again.code == 3 and written_bytes(out).count(b"\n") == DOCUMENTS
    return "a bad line with --strict", ok and resumes, f"line {number + 1}: {ended.detail}; resumed: {again.detail}"


def interrupted(random: random.Random, archive: _Archive) -> Trial:
    """Press Ctrl-C at some moment, once or several times, as a terminal or as `kill -INT` does."""
    times, group = random.choice([1, 1, 1, 2, 5]), random.random() < 0.5

    def press(process: subprocess.Popen[str]) -> None:
        for _ in range(times):
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
            time.sleep(0.05)

    return _disturbed(f"Ctrl-C, {times} times", (130, -signal.SIGINT), press, random, archive)


def terminated(random: random.Random, archive: _Archive) -> Trial:
    """Send SIGTERM at some moment, to the command or to all its processes."""
    group = random.random() < 0.5

    def end(process: subprocess.Popen[str]) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(process.pid, signal.SIGTERM)

    return _disturbed("SIGTERM", (143, -signal.SIGTERM), end, random, archive)


def killed(random: random.Random, archive: _Archive) -> Trial:
    """Kill the command, but not its workers, at some moment."""
    return _disturbed("kill -9", (-signal.SIGKILL,), lambda process: process.kill(), random, archive)


def killed_worker(random: random.Random, archive: _Archive) -> Trial:
    """Kill workers, as the system does when memory is short, and perhaps those that follow them; the run goes on."""
    times = random.choice([1, 1, 2])

    def kill(process: subprocess.Popen[str]) -> None:
        for _ in range(times):
            deadline = time.monotonic() + 20
            while not (workers := children_of(process.pid)) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(random.choice([0, random.uniform(0, 0.3), random.uniform(0, 3)]))
            for worker in random.sample(workers, min(len(workers), random.choice([1, 1, 2]))):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    return _disturbed(f"killed workers, {times} times", (0,), kill, random, archive)


def _disturbed(
    name: str,
    codes: tuple[int, ...],
    disturb: Callable[[subprocess.Popen[str]], None],
    random: random.Random,
    archive: _Archive,
) -> Trial:
    """Disturb a run at some moment; it ends soon with one of the codes, or was done before, and can be resumed."""
    out, moment = archive.out(), random.uniform(0, archive.seconds)
    command = archive.command(out)
    shots: list[threading.Timer] = []

    def shoot(process: subprocess.Popen[str]) -> None:
        shots.append(threading.Timer(moment, disturb, [process]))
        shots[0].start()

    ended = run(command, on_start=shoot, start_new_session=True, preexec_fn=_let_be_interrupted)
    shots[0].join()
    ok = ended.clean and ended.code in (0, *codes)
    ok = ok and bool(re.fullmatch(r"(textcat: [^\n]+\n)*", ended.err))  # nothing of Python's
    if ended.code != 0:
        ok = ok and ended.seconds < moment + LIMIT
    resumes, more = archive.resumes(out)
    return name.partition(",")[0], ok and resumes, f"{name} after {moment:.2f} s: {ended.detail}{more}"


def changed_input(random: random.Random, archive: _Archive) -> Trial:
    """Cut, replace, remove or append to an input while it is read: a loss is told, with its name and exit code 3."""
    first, second = archive.folder / "first.jsonl", archive.folder / "second.jsonl"
    for path in (first, second):
        shutil.copyfile(archive.path, path)
    target, how = random.choice([first, second]), random.choice(["cut", "replaced", "removed", "emptied", "grown"])
    out, moment = archive.out(), random.uniform(0, archive.seconds)

    def change() -> None:
        # Before the run has listed its inputs, a change is none for it.
        deadline = time.monotonic() + PATIENCE
        while not (out / "_journal.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        if how == "cut":
            os.truncate(target, random.randrange(target.stat().st_size))
        elif how == "emptied":
            os.truncate(target, 0)
        elif how == "grown":
            with target.open("ab") as file:
                file.write(archive.path.read_bytes()[: random.randrange(1 << 20)])
        elif how == "removed":
            target.unlink()
        else:
            other = target.with_suffix(".new")
            other.write_bytes(archive.path.read_bytes()[: random.randrange(1 << 20)])
            other.replace(target)

    shot = threading.Timer(moment, change)
    shot.start()
    command = ["tag", archive.model, first, second, "--out", out, "--jobs", JOBS, "--as", "json"]
    ended = run(command)
    shot.join()
    counts = json.loads(ended.out) if ended.code in (0, 3) and ended.out else {}
    whole = counts.get("tagged") == 2 * DOCUMENTS
    told = str(target) in ended.err + ended.out
    ok = ended.clean and (whole if ended.code == 0 else told and ended.code in (1, 3))
    return (
        "an input that changes",
        ok,
        f"{target.name} {how} after {moment:.2f} s, {counts.get('tagged')}: {ended.detail}",
    )


def _let_be_interrupted() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
