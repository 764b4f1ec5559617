"""Batches given to workers: in order, few at a time, none lost with a worker."""

import gc
import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import archive_work
import pytest
from archive_work import batch

from textcat.base.errors import TextcatError
from textcat.reading import Batch
from textcat.runs import workers as module
from textcat.runs.workers import WorkerPool, open_workers

ordered_map = partial(module.ordered_map, start_over="start again")

MUCH = 1 << 40  # bytes of input
PREPARING = """
import os, sys, threading, time
for _ in range(int(sys.argv[1])):
    threading.Thread(target=time.sleep, args=[60], daemon=True).start()
import archive_work
from textcat.runs.workers import open_workers, ordered_map
with open_workers(2, 1 << 40, prepare=lambda: os.environ.update(PREPARED=str(os.getpid()))) as workers:
    found = ordered_map(archive_work.prepared_by, map(archive_work.batch, range(5)), workers, "again")
    (prepared,) = {each for _, each in found}
print(os.getpid(), prepared)
"""
WORKERS = {"alone": (1, None), "processes": (2, MUCH)}


@pytest.fixture(params=WORKERS)
def workers(request):
    with open_workers(*WORKERS[request.param]) as workers:
        yield workers


@pytest.fixture
def two_processes():
    with open_workers(2, MUCH) as workers:
        yield workers


@pytest.fixture
def flag(tmp_path):
    path = tmp_path / "flag"
    path.touch()
    return path


def numbers(found):
    return [(number, result) for (_, result), number in zip(found, range(1000), strict=False)]


def test_results_come_in_the_order_of_the_pieces(workers):
    found = list(ordered_map(archive_work.slow_if_even, map(batch, range(10)), workers))
    assert [p.start[0] for p, _ in found] == [result[0] for _, result in found] == list(range(10))
    assert ({pid for _, (_, pid) in found} == {os.getpid()}) == (workers.jobs == 1)


@pytest.mark.parametrize("n", [0, 1])
def test_few_pieces_are_no_special_case(workers, n):
    assert len(list(ordered_map(archive_work.number_of, map(batch, range(n)), workers))) == n


def test_a_bounded_number_of_pieces_is_read_ahead(workers):
    read = []

    def batches():
        for number in range(100):
            read.append(number)
            yield batch(number)

    with closing(ordered_map(archive_work.number_of, batches(), workers)) as results:
        next(results)
        time.sleep(0.3)
        assert len(read) <= 3 * workers.jobs + 1


def test_a_result_is_given_while_the_next_piece_is_waited_for(workers):
    gate = threading.Event()

    def batches():
        yield batch(0)
        assert gate.wait(300)
        yield batch(1)

    with closing(ordered_map(archive_work.number_of, batches(), workers)) as results:
        assert next(results)[1] == 0
        gate.set()
        assert next(results)[1] == 1


def test_what_reading_raises_comes_after_the_pieces_before(workers):
    def batches():
        yield batch(0)
        raise OSError("gone")

    results = ordered_map(archive_work.number_of, batches(), workers)
    assert next(results)[1] == 0
    with pytest.raises(OSError, match="gone"):
        next(results)


def test_what_working_raises_comes_after_the_pieces_before(workers):
    found = []
    with pytest.raises(ValueError, match="five"):
        found.extend(result for _, result in ordered_map(archive_work.fail_at_5, map(batch, range(10)), workers))


def test_a_piece_that_is_done_is_let_go_of_at_once(workers):
    gc.collect()
    gc.freeze()  # what there is already is not looked through again
    gc.disable()
    try:
        for number, _ in enumerate(ordered_map(archive_work.number_of, map(batch, range(100)), workers)):
            if number % 20 == 19:
                assert sum(isinstance(thing, Batch) for thing in gc.get_objects()) <= 3 * workers.jobs + 1
    finally:
        gc.enable()


def test_reading_ends_soon_after_nobody_wants_more():
    read = []

    def endless():
        while True:
            read.append(None)
            yield batch(len(read))

    before = threading.active_count()
    with open_workers(1, None) as workers, closing(ordered_map(archive_work.number_of, endless(), workers)) as results:
        next(results)
    for _ in range(6000):
        if threading.active_count() == before:
            return
        time.sleep(0.05)
    pytest.fail("the thread that reads goes on")


# --- lost workers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_lost_worker_was_doing_is_done_again(two_processes, flag, times, caplog):
    work = partial(archive_work.die_at_5_until, (flag, times))
    results = ordered_map(work, map(batch, range(20)), two_processes)
    assert [result for _, result in results] == list(range(20))
    assert flag.read_bytes() == b"x" * times
    assert [record.message for record in caplog.records] == ["A worker was lost; its batches are done again."]


def test_a_worker_that_dies_amid_sending_its_result_is_missed(two_processes, flag, caplog, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    work = partial(archive_work.die_amid_a_result_at_5, flag)
    assert [result for _, result in ordered_map(work, map(batch, range(20)), two_processes)] == list(range(20))
    assert [record.message for record in caplog.records] == ["A worker was lost; its batches are done again."]


def test_processes_that_cannot_be_started_are_lost_ones(flag, monkeypatch):
    def submit(*_):
        if flag.exists():
            flag.unlink()
            raise BrokenPipeError  # the process was killed before it had read its work
        return started(*_)

    started = ProcessPoolExecutor.submit
    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    monkeypatch.setattr(module, "is_single_threaded", lambda: False)
    with open_workers(2, MUCH) as workers:
        results = ordered_map(archive_work.number_of, map(batch, range(8)), workers)
        assert [result for _, result in results] == list(range(8))


class Losing:
    """An executor of one thread, of which Dask loses the first result right after it was read."""

    def __init__(self, lost):
        self.lost = lost

    def submit(self, function, batch):
        future = Future()
        if self.lost:
            self.lost.pop()
            module = {"__name__": "distributed.cfexecutor"}
            exec("def cascade(result):\n    typ, exc, tb = result", module)
            try:
                module["cascade"](3)
            except TypeError as error:
                future.set_exception(error)
        else:
            future.set_result(function(batch))
        return future

    def shutdown(self, wait=True):
        pass


def test_a_result_that_dask_loses_once_it_was_read_is_made_again():
    lost = [1]
    workers = WorkerPool(lambda jobs: Losing(lost), 2)
    results = ordered_map(archive_work.number_of, map(batch, range(8)), workers)
    assert [result for _, result in results] == list(range(8))


def test_an_error_of_the_function_is_no_loss(workers):
    with pytest.raises(TypeError, match="cannot unpack"):
        list(ordered_map(archive_work.unpack_a_number, map(batch, range(2)), workers))


def test_a_piece_that_kills_its_workers_is_named(two_processes, flag):
    work = partial(archive_work.die_at_5_until, (flag, 99))
    with pytest.raises(TextcatError, match=r"lost 3 times at the documents from a.txt:5"):
        list(ordered_map(work, map(batch, range(20)), two_processes))
    assert flag.read_bytes() == b"xxx"


@pytest.mark.parametrize("n", [1, 2])
def test_what_takes_too_much_memory_is_done_again_alone(workers, flag, n):
    work = partial(archive_work.run_out_of_memory_at_5, (flag, n))
    assert [result for _, result in ordered_map(work, map(batch, range(10)), workers)] == list(range(10))


def test_workers_end_at_once_when_they_are_told_to(two_processes):
    others = set(multiprocessing.active_children())  # joblib keeps the workers of an earlier test for some minutes
    executor = two_processes.start(2)
    futures = [executor.submit(archive_work.sleep_long, batch(number)) for number in range(20)]
    while len(set(multiprocessing.active_children()) - others) < 2:
        time.sleep(0.05)
    executor.shutdown()
    assert set(multiprocessing.active_children()) <= others
    assert all(future.done() for future in futures)


@pytest.mark.parametrize("number", [0, 3])
def test_an_early_end_does_not_wait_for_what_a_killed_worker_was_sending(number):
    large = (batch(number, 4 << 20) for number in range(40))
    with open_workers(2, MUCH) as workers, closing(ordered_map(archive_work.large_result, large, workers)) as results:
        for _ in range(1 + number):
            next(results)


# --- who does it -----------------------------------------------------------------------------------------------------


def test_little_work_is_done_by_the_process_itself_and_much_by_others(monkeypatch):
    monkeypatch.setattr(module, "IN_PROCESS_BYTES", 50)
    with open_workers(2, None) as workers:
        found = list(ordered_map(archive_work.slow_if_even, map(batch, range(10)), workers))
    at_home = [pid == os.getpid() for _, (_, pid) in found]
    assert at_home == [True] * 5 + [False] * 5


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="system: threads are not listed")
def test_workers_are_forked_with_what_was_prepared_unless_there_are_threads():
    for threads, prepares in [(0, True), (1, False)]:
        command = [sys.executable, "-c", PREPARING, str(threads)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        assert len(told) == 2
        assert (told[0] == told[1]) == prepares


def test_the_workers_are_chosen_by_the_size_of_the_inputs():
    for jobs, n_bytes, in_process, n_jobs in [
        (1, None, math.inf, 1),
        (2, 100, 8 << 20, 2),
        (3, None, 8 << 20, 3),
        (2, 1 << 30, 0, 2),
        (1, 1 << 30, math.inf, 1),
        (-1, 100, 8 << 20 if len(os.sched_getaffinity(0)) > 1 else math.inf, len(os.sched_getaffinity(0))),
    ]:
        with open_workers(jobs, n_bytes) as workers:
            assert (workers.in_process_bytes, workers.jobs) == (in_process, n_jobs)


def test_a_script_that_its_workers_run_again_is_told_of_the_remedy(tmp_path):
    (tmp_path / "script.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()  # so that no process is forked\n"
        "import archive_work\n"
        "from textcat.runs.workers import open_workers, ordered_map\n"
        "with open_workers(2, 1 << 40) as workers:\n"
        "    print(*ordered_map(archive_work.number_of, map(archive_work.batch, range(5)), workers, 'again'))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 120}
    ended = subprocess.run([sys.executable, "script.py"], **options)
    assert ended.returncode == 1
    assert "put the call of textcat below if __name__ == '__main__':, or give jobs=1." in ended.stderr
