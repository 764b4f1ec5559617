"""Pieces given to a crew: in order, few at a time, none lost with a worker."""

import gc
import multiprocessing
import os
import threading
import time
from contextlib import closing
from functools import partial

import archive_work
import pytest
from archive_work import batch

from textcat.errors import TextcatError
from textcat.tagging import flow
from textcat.tagging import workers as crews
from textcat.tagging.flow import in_order
from textcat.tagging.workers import Alone, Growing, Processes, crew

CREWS = {"alone": Alone, "processes": lambda: Processes(2)}


@pytest.fixture(params=CREWS)
def workers(request):
    with closing(CREWS[request.param]()) as workers:
        yield workers


@pytest.fixture
def flag(tmp_path):
    path = tmp_path / "flag"
    path.touch()
    return path


def numbers(found):
    return [(number, result) for (_, result), number in zip(found, range(1000), strict=False)]


def test_results_come_in_the_order_of_the_pieces(workers):
    found = list(in_order(map(batch, range(10)), archive_work.slow_if_even, workers))
    assert [p.start[0] for p, _ in found] == [result[0] for _, result in found] == list(range(10))
    assert ({pid for _, (_, pid) in found} == {os.getpid()}) == isinstance(workers, Alone)


@pytest.mark.parametrize("n", [0, 1])
def test_few_pieces_are_no_special_case(workers, n):
    assert len(list(in_order(map(batch, range(n)), archive_work.number_of, workers))) == n


def test_a_bounded_number_of_pieces_is_read_ahead(workers):
    read = []

    def batches():
        for number in range(100):
            read.append(number)
            yield batch(number)

    with closing(in_order(batches(), archive_work.number_of, workers)) as results:
        next(results)
        time.sleep(0.3)
        assert len(read) <= 3 * workers.size + 1


def test_a_result_is_given_while_the_next_piece_is_waited_for(workers):
    gate = threading.Event()

    def batches():
        yield batch(0)
        assert gate.wait(30)
        yield batch(1)

    with closing(in_order(batches(), archive_work.number_of, workers)) as results:
        assert next(results)[1] == 0
        gate.set()
        assert next(results)[1] == 1


def test_what_reading_raises_comes_after_the_pieces_before(workers):
    def batches():
        yield batch(0)
        raise OSError("gone")

    results = in_order(batches(), archive_work.number_of, workers)
    assert next(results)[1] == 0
    with pytest.raises(OSError, match="gone"):
        next(results)


def test_what_working_raises_comes_after_the_pieces_before(workers):
    found = []
    with pytest.raises(ValueError, match="five"):
        found.extend(result for _, result in in_order(map(batch, range(10)), archive_work.fail_at_5, workers))


def test_a_piece_that_is_done_is_let_go_of_at_once(workers):
    gc.collect()
    gc.disable()
    try:
        for number, _ in enumerate(in_order(map(batch, range(100)), archive_work.number_of, workers)):
            if number % 20 == 19:
                assert sum(isinstance(thing, flow._Task) for thing in gc.get_objects()) <= 3 * workers.size + 1
    finally:
        gc.enable()


def test_reading_ends_soon_after_nobody_wants_more():
    read = []

    def endless():
        while True:
            read.append(None)
            yield batch(len(read))

    before = threading.active_count()
    with closing(in_order(endless(), archive_work.number_of, Alone())) as results:
        next(results)
    for _ in range(100):
        if threading.active_count() == before:
            return
        time.sleep(0.05)
    pytest.fail("the thread that reads goes on")


# --- lost workers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_lost_worker_was_doing_is_done_again(flag, times, caplog):
    with closing(Processes(2)) as workers:
        work = partial(archive_work.die_at_5_until, (flag, times))
        assert [result for _, result in in_order(map(batch, range(20)), work, workers)] == list(range(20))
    assert flag.read_bytes() == b"x" * times
    assert [record.message for record in caplog.records] == ["A worker was lost; what it was doing is done again."]


def test_a_piece_that_kills_its_workers_is_named(flag):
    with (
        closing(Processes(2)) as workers,
        pytest.raises(TextcatError, match=r"lost 3 times at the documents from a.txt:5"),
    ):
        list(in_order(map(batch, range(20)), partial(archive_work.die_at_5_until, (flag, 99)), workers))
    assert flag.read_bytes() == b"xxx"


@pytest.mark.parametrize("n", [1, 2])
def test_what_takes_too_much_memory_is_done_again_alone(workers, flag, n):
    work = partial(archive_work.run_out_of_memory_at_5, (flag, n))
    assert [result for _, result in in_order(map(batch, range(10)), work, workers)] == list(range(10))


def test_workers_end_at_once_when_they_are_told_to():
    workers = Processes(2)
    futures = [workers.submit(archive_work.sleep_long, batch(number)) for number in range(20)]
    while len(multiprocessing.active_children()) < 2:
        time.sleep(0.05)
    workers.close()
    assert multiprocessing.active_children() == []
    assert all(future.done() for future in futures)


# --- who does it -----------------------------------------------------------------------------------------------------


def test_little_work_is_done_by_the_process_itself_and_much_by_others(monkeypatch):
    monkeypatch.setattr(crews, "SMALL", 50)
    with closing(Growing(2)) as workers:
        found = list(in_order(map(batch, range(10)), archive_work.slow_if_even, workers))
    at_home = [pid == os.getpid() for _, (_, pid) in found]
    assert at_home == [True] * 5 + [False] * 5


def test_the_crew_is_chosen_by_the_size_of_the_inputs():
    for jobs, n_bytes, kind, size in [
        (1, None, Growing, 1),
        (2, 100, Growing, 2),
        (3, None, Growing, 3),
        (2, 1 << 30, Processes, 2),
        (1, 1 << 30, Growing, 1),
        (-1, 1 << 30, type(crew(-1, 1 << 30)), len(os.sched_getaffinity(0))),
    ]:
        with closing(crew(jobs, n_bytes)) as chosen:
            assert (type(chosen), chosen.size) == (kind, size)
