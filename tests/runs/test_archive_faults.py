"""Whatever breaks a run off, wherever it is: it goes on, and in the end has written what an undisturbed run writes."""

import errno
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import archive_runs
import pytest
from archive_folders import JSONL, content, write
from archive_runs import make_archive, run, written
from interrupted_runs import STEPS

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.tagging.output import OutputSettings

OUTPUTS = (JSONL, OutputSettings("csv", "zst"))
N_PIECES = 5


class Broken(BaseException):
    """The process is no more: no handler of an error is to catch it."""


@contextmanager
def steps(monkeypatch, instead):
    """Let `instead(step, number, function, arguments)` stand for each step that changes files."""
    with monkeypatch.context() as patched:
        count = iter(range(10**6))

        def wrapped(step, function):
            return lambda *arguments: instead(step, next(count), function, arguments)

        for step in STEPS:
            patched.setattr(disk, step, wrapped(step, getattr(disk, step)))
        yield


def just(step, function, arguments):
    return function(*arguments)


def break_at(place, when, error, do=just):
    """A stand-in that raises an error before, after or in the middle of the step with that number."""

    def instead(step, number, function, arguments):
        if number != place or when == "after":
            done = do(step, function, arguments)
        if number == place:
            if when == "amid" and step == "write_all":
                file, data = arguments
                function(file, data[: len(data) // 2])
            raise error
        return done

    return instead


def n_steps(monkeypatch, tmp_path, output):
    numbers = []

    def instead(step, number, function, arguments):
        numbers.append(number)
        return function(*arguments)

    with steps(monkeypatch, instead):
        write(tmp_path / "counted", N_PIECES, output)
    return len(numbers)


@pytest.fixture(params=OUTPUTS, ids=lambda output: output.suffix)
def output(request):
    return request.param


@pytest.fixture
def undisturbed(tmp_path, output):
    write(tmp_path / "undisturbed", N_PIECES, output)
    return content(tmp_path / "undisturbed")


# --- killed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "amid", "after"])
def test_a_run_that_was_killed_at_any_step_goes_on(tmp_path, monkeypatch, output, undisturbed, when):
    for place in range(n_steps(monkeypatch, tmp_path, output)):
        out = tmp_path / str(place)
        with pytest.raises(Broken), steps(monkeypatch, break_at(place, when, Broken())):
            write(out, N_PIECES, output)
        write(out, N_PIECES, output)
        assert content(out) == undisturbed, place


def test_a_run_that_is_killed_again_and_again_ends_with_the_same(tmp_path, monkeypatch, output, undisturbed):
    draw, broken = random.Random(0), 0
    for number in range(20):
        out, finished = tmp_path / str(number), False
        while not finished:
            when = draw.choice(["before", "amid", "after"])
            try:
                with steps(monkeypatch, break_at(draw.randrange(30), when, Broken())):
                    write(out, N_PIECES, output)
                finished = True
            except Broken:
                broken += 1
        assert content(out) == undisturbed
    assert broken >= 50


class Disk:
    """A disk of which, when power fails, nothing is left but what was synced.

    Parameters
    ----------
    folder : Path
    kept : Path
        A folder for what would be left of it.
    names_last : bool
        Names outlast without being synced; else those are left that were there when the folder was last synced.
    """

    def __init__(self, folder, kept, *, names_last):
        self.folder, self.kept, self.names_last = folder, kept, names_last
        self.lengths = {}
        kept.mkdir()

    def __call__(self, step, function, arguments):
        done = function(*arguments)
        if step == "sync":
            self._synced(os.fstat(arguments[0].fileno()))
        elif step == "truncate_file":
            self._synced(arguments[0].stat())
        elif step == "sync_folder" and arguments[0] == self.folder:
            self._move(self.folder, self.kept)
        return done

    def _synced(self, status):
        self.lengths[status.st_ino] = status.st_size

    def _move(self, here, there):
        for path in there.iterdir():
            path.unlink()
        for path in here.iterdir():
            os.link(path, there / path.name)

    def fail(self):
        """Lose all that was not synced."""
        if self.folder.exists() and not self.names_last:
            self._move(self.kept, self.folder)
        for path in self.folder.glob("*"):
            length = self.lengths.get(path.stat().st_ino, 0)
            os.truncate(path, min(length, path.stat().st_size))


@pytest.mark.parametrize("names_last", [True, False])
def test_a_run_goes_on_after_a_loss_of_power_at_any_step(tmp_path, monkeypatch, output, undisturbed, names_last):
    for place in range(n_steps(monkeypatch, tmp_path, output)):
        out = tmp_path / str(place)
        disk = Disk(out, tmp_path / f"{place}-kept", names_last=names_last)
        with pytest.raises(Broken), steps(monkeypatch, break_at(place, "after", Broken(), disk)):
            write(out, N_PIECES, output)
        disk.fail()
        write(out, N_PIECES, output)
        assert content(out) == undisturbed, place


def test_what_is_finished_stays_finished_when_power_fails(tmp_path, monkeypatch, output, undisturbed):
    out = tmp_path / "out"
    disk = Disk(out, tmp_path / "kept", names_last=False)
    with steps(monkeypatch, lambda step, number, function, arguments: disk(step, function, arguments)):
        write(out, N_PIECES, output)
    disk.fail()
    assert content(out) == undisturbed
    assert write(out, N_PIECES, output).finished


# --- disks that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "code"), [("before", errno.ENOSPC), ("amid", errno.EIO)])
def test_a_disk_that_fails_at_any_step_is_told_of_and_the_run_goes_on(
    tmp_path, monkeypatch, output, undisturbed, when, code
):
    for place in range(n_steps(monkeypatch, tmp_path, output)):
        out, error = tmp_path / str(place), OSError(code, os.strerror(code))
        with pytest.raises(TextcatError) as told, steps(monkeypatch, break_at(place, when, error)):
            write(out, N_PIECES, output)
        assert str(told.value) == (
            f"Cannot write to {out} ({os.strerror(code)}): fix that, and the same command resumes the run."
        )
        write(out, N_PIECES, output)
        assert content(out) == undisturbed, place


def test_a_write_that_takes_less_than_all_is_gone_on_with(tmp_path):
    class Slow:
        def __init__(self):
            self.taken = b""

        def write(self, data):
            self.taken += bytes(data[:2])
            return min(2, len(data))

    file = Slow()
    disk.write_all(file, b"abcde")
    assert file.taken == b"abcde"


# --- whole runs ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("archive") / "a.jsonl", 200)


@pytest.fixture(scope="module")
def whole(model, archive, tmp_path_factory):
    """What an undisturbed run writes; and the seconds it takes once the model is loaded."""
    out = tmp_path_factory.mktemp("whole")
    run(model, [archive], out / "first")
    began = time.perf_counter()
    run(model, [archive], out / "second")
    return written(out / "first"), time.perf_counter() - began


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
@pytest.mark.long
def test_a_run_that_is_killed_at_random_moments_loses_and_doubles_nothing(model, archive, whole, tmp_path):
    undisturbed, seconds = whole
    draw, longest, killed, number = random.Random(1), seconds / 2, 0, 0
    while killed < 8:
        number += 1
        out, ended = tmp_path / str(number), False
        while not ended:
            child = os.fork()
            if not child:  # the model is loaded here already
                try:
                    run(model, [archive], out)
                finally:
                    os._exit(0)
            time.sleep(draw.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)[1] == 0
            killed += not ended
            longest *= 0.8 if ended else 1.05  # however busy the machine is now, some end and most do not
        assert written(out) == undisturbed


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from archive_runs import run
from textcat.runs import workers
workers.IN_PROCESS_BYTES = 0
print("begun", flush=True)
run(sys.argv[2], [sys.argv[3]], __import__("pathlib").Path(sys.argv[4]), jobs=2)
"""


def children_of(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition):
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("waited for ten minutes in vain")


@pytest.fixture(params=["forked", "spawned"])
def threads(request):
    """How many threads numpy may start: workers are forked by a process that has no other than its own."""
    return "1" if request.param == "forked" else "2"


def started(model, archive, out, threads):
    """A run in a process of its own, with two workers, whose journal has its first shard: it is named before that."""
    here, environment = str(Path(archive_runs.__file__).parent), os.environ | {"OPENBLAS_NUM_THREADS": threads}
    command = [sys.executable, "-c", PROGRAM, here, str(model), str(archive), str(out)]
    process = subprocess.Popen(command, stdout=-1, env=environment)
    journal = out / "_journal.jsonl"
    wait_until(lambda: (journal.exists() and journal.read_bytes().count(b"\n") > 1) or process.poll() is not None)
    return process


@pytest.fixture(scope="module")
def long_archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("long") / "a.jsonl", 2000)


@pytest.fixture(scope="module")
def long_whole(model, long_archive, tmp_path_factory):
    """What an undisturbed run writes of it."""
    out = tmp_path_factory.mktemp("long") / "whole"
    run(model, [long_archive], out)
    return written(out)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="system: processes are not listed")
def test_a_killed_run_leaves_no_workers_and_is_gone_on_with(model, long_archive, long_whole, tmp_path, threads):
    with started(model, long_archive, tmp_path / "out", threads) as process:
        workers = children_of(process.pid)
        assert len(workers) >= 2
        commands = {Path(f"/proc/{worker}/cmdline").read_bytes() for worker in [process.pid, *workers]}
        assert (len(commands) == 1) == (threads == "1")  # forked ones have the command of the run
        process.kill()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: not any(map(alive, workers)))
    summary = run(model, [long_archive], tmp_path / "out")
    assert 0 < summary.before.counts.records < 2000
    assert written(tmp_path / "out") == long_whole


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="system: processes are not listed")
@pytest.mark.parametrize("threads", ["forked"], indirect=True)
@pytest.mark.long
def test_a_run_goes_on_when_a_worker_is_killed(model, long_archive, long_whole, tmp_path, threads):
    with started(model, long_archive, tmp_path / "out", threads) as process:
        wait_until(lambda: len(children_of(process.pid)) >= 2 or process.poll() is not None)
        if process.poll() is None:
            os.kill(children_of(process.pid)[-1], signal.SIGKILL)
    assert process.returncode == 0
    assert written(tmp_path / "out") == long_whole


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
@pytest.mark.parametrize("limit", [100, 3000, 5000])
def test_a_file_that_the_system_does_not_let_grow_is_told_of(model, archive, whole, tmp_path, limit):
    import resource

    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            run(model, [archive], tmp_path / "out")
        except TextcatError as error:
            os._exit(7 if str(error).startswith(f"Cannot write to {tmp_path / 'out'} (File too large)") else 1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    run(model, [archive], tmp_path / "out")
    assert written(tmp_path / "out") == whole[0]


def test_an_error_of_reading_costs_the_rest_of_its_file_and_nothing_else(model, archive, tmp_path):
    packed = gzip.compress(archive.read_bytes(), mtime=0)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    run(model, [tmp_path / "cut.jsonl.gz", archive], tmp_path / "out")
    _, tagged, rejected = written(tmp_path / "out")
    rows, faults = ([json.loads(line) for line in part.splitlines()] for part in (tagged, rejected))
    (cut,) = [fault for fault in faults if "damaged or incomplete" in fault["reason"]]
    assert (cut["source"], cut["length"]) == (str(tmp_path / "cut.jsonl.gz"), -1)
    n_before = archive.read_bytes()[: cut["offset"]].count(b"\n")
    read = [entry["position"] for entry in (*rows, *faults) if entry["source"] == cut["source"] and entry != cut]
    assert sorted(read) == list(range(1, n_before + 1))
    assert sum(entry["source"] == str(archive) for entry in (*rows, *faults)) == 200
