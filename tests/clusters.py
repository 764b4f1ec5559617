"""A Dask cluster of processes, for the tests that need one."""

from contextlib import contextmanager

import pytest


@contextmanager
def two_processes():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0, silence_logs=50
    ) as cluster:
        yield cluster
        # Dask fails if it is closed while it starts a worker again that a test has killed.
        with distributed.Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
