"""A Dask cluster of processes, for the tests that need one."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

N_WORKERS = 2


@contextmanager
def two_processes():
    """Yield a cluster of two processes; one that is killed is started again.

    Dask's own nannies give up when a busy machine lets them wait, and its cluster fails if it is closed while a nanny
    starts a worker again. So these workers have none: a thread takes care of them, and in the end they are killed.
    """
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    import dask

    with (
        # A task that its second worker dies of is given up, not that of its fourth: to start one takes long.
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=None, silence_logs=50, protocol="tcp"
        ) as cluster,
    ):
        workers = [_start(cluster.scheduler_address) for _ in range(N_WORKERS)]
        ended = threading.Event()
        keeper = threading.Thread(target=_keep_alive, args=(workers, cluster.scheduler_address, ended))
        keeper.start()
        try:
            wait_for_workers(cluster)
            yield cluster
        finally:
            ended.set()
            keeper.join()
            for worker in workers:
                worker.kill()
                worker.wait()


def wait_for_workers(cluster):
    """Wait until all workers of a cluster are there, those that were killed again."""
    import distributed

    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(N_WORKERS)


def _start(address):
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    return subprocess.Popen(
        [*command, "--nthreads", "1", "--memory-limit", "0", "--death-timeout", "300"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _keep_alive(workers, address, ended):
    while not ended.wait(0.05):
        for place, worker in enumerate(workers):
            if worker.poll() is not None:
                workers[place] = _start(address)
