"""Runs on a Dask cluster of processes: what one machine writes, also when a worker is killed in the middle."""

import os
import signal
from functools import partial

import archive_work
import pytest
from archive_runs import make_archive, run, written
from archive_work import batch
from clusters import scheduler_and_worker

from textcat.base.errors import TextcatError
from textcat.runs.workers import open_workers, ordered_map

distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")

pytestmark = pytest.mark.long  # a cluster may take half a minute to restart a worker that was killed


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("archive") / "a.jsonl", 300)


@pytest.fixture(scope="module")
def undisturbed(model, archive, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run(model, [archive], out)
    return written(out)


def worker_ids(cluster):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def test_a_cluster_writes_what_one_machine_does(model, archive, undisturbed, cluster, tmp_path):
    summary = run(model, [archive], tmp_path / "out", scheduler=cluster.scheduler_address)
    assert written(tmp_path / "out") == undisturbed
    assert summary.counts.records == 300


def test_a_worker_that_is_killed_in_the_middle_is_no_loss(model, archive, undisturbed, cluster, tmp_path):
    seen, victims = [], worker_ids(cluster)

    def kill_one(reached):
        seen.append(reached)
        if len(seen) == 3:
            os.kill(victims[0], signal.SIGKILL)

    run(model, [archive], tmp_path / "out", scheduler=cluster.scheduler_address, progress=kill_one)
    assert written(tmp_path / "out") == undisturbed
    assert len(seen) > 10
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2)
    assert victims[0] not in worker_ids(cluster)


def test_a_run_begun_by_one_machine_is_gone_on_with_by_a_cluster(model, archive, undisturbed, cluster, tmp_path):
    class Broken(BaseException):
        pass

    def break_off(reached):
        if reached.records > 150:
            raise Broken

    with pytest.raises(Broken):
        run(model, [archive], tmp_path / "out", progress=break_off)
    summary = run(model, [archive], tmp_path / "out", scheduler=cluster.scheduler_address)
    assert written(tmp_path / "out") == undisturbed
    assert 0 < summary.before.counts.records < 300


def test_a_piece_that_kills_its_workers_is_named_by_a_cluster_too(cluster, tmp_path, monkeypatch):
    (tmp_path / "flag").touch()
    work = partial(archive_work.die_at_5_until, (tmp_path / "flag", 99))
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with open_workers(-1, None, cluster.scheduler_address) as workers:
        assert workers.jobs == 2
        with pytest.raises(TextcatError, match=r"lost 3 times at the documents from a\.txt:5"):
            list(ordered_map(work, map(batch, range(8)), workers, "again"))


# Dask's own threads sometimes keep the process of the test from going on after its scheduler was killed.
of_dead_clusters = pytest.mark.skipif("TEXTCAT_LONG" not in os.environ, reason="time: kills clusters; TEXTCAT_LONG")


@of_dead_clusters
def test_a_run_whose_scheduler_is_killed_ends_with_a_sentence_and_is_gone_on_with(
    model, archive, undisturbed, tmp_path
):
    with scheduler_and_worker() as (address, scheduler, _):
        kill = partial(once, [scheduler.kill])
        with pytest.raises(TextcatError, match=rf"The Dask scheduler at {address} no longer answers: .*same command"):
            run(model, [archive], tmp_path / "out", scheduler=address, progress=kill)
    run(model, [archive], tmp_path / "out")
    assert written(tmp_path / "out") == undisturbed


@of_dead_clusters
def test_a_run_whose_workers_are_all_killed_ends_with_a_sentence(model, archive, tmp_path, monkeypatch):
    monkeypatch.setattr("textcat.base.cluster.WITHOUT_WORKER", 2)
    with scheduler_and_worker() as (address, _, worker):
        kill = partial(once, [worker.kill])
        with pytest.raises(TextcatError, match=rf"{address} has had no worker for 2 seconds"):
            run(model, [archive], tmp_path / "out", scheduler=address, progress=kill)


def once(functions, _):
    while functions:
        functions.pop()()
