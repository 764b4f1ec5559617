"""Connect to a Dask cluster by the address of its scheduler; if the cluster cannot be used, an error says why."""

import socket
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from textcat import __version__
from textcat.errors import DISTRIBUTION, TextcatError, install_hint

_SECONDS = 20  # to wait for a scheduler


def connect(address: str) -> Any:
    """Return a `distributed.Client` that is connected to the scheduler at an address, such as "tcp://host:8786".

    A TextcatError is raised if Dask is not installed, no scheduler answers at the address, the scheduler has no worker,
    or a worker does not have this version of textcat.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise TextcatError(f"A cluster needs Dask: run `{install_hint('cluster')}`.") from None
    try:
        # A client that gets no answer would, after its time, be waited for once more as it is closed.
        socket.create_connection(get_address_host_port(address), timeout=_SECONDS).close()
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TextcatError(f"No Dask scheduler answers at {address} ({error}): check the address.") from None
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return client


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Run the joblib tasks of a ``with`` block on the Dask cluster whose scheduler is at an address.

    If the address is "", the tasks run on this machine. A TextcatError is raised in the cases that `connect` names, and
    if Dask gives up tasks because their workers are lost repeatedly.
    """
    if not address:
        yield
        return
    import joblib

    with connect(address) as client:
        from distributed import KilledWorker

        try:
            with joblib.parallel_config(backend="dask", client=client):
                yield
        except (KilledWorker, CancelledError) as error:
            raise TextcatError(
                f"The workers of the Dask cluster at {address} were lost while they worked ({error}): check in "
                "their logs whether they ran out of memory."
            ) from error


def _check_workers(client: Any, address: str) -> None:
    def installed() -> str:  # sent as it stands: where textcat is not installed, it could not be found by its name
        try:
            from textcat import __version__
        except ImportError:
            return ""
        return __version__

    if not (versions := client.run(installed)):
        raise TextcatError(f"The Dask scheduler at {address} has no worker: start one with `dask worker {address}`.")
    for worker, theirs in versions.items():
        if theirs != __version__:
            has = f"textcat {theirs}" if theirs else "no textcat"
            raise TextcatError(
                f"The worker {worker} of the Dask cluster has {has}: install {DISTRIBUTION} {__version__} there."
            )
