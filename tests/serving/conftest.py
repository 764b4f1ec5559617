"""Servers in this process, and servers started as processes of their own."""

import forked_commands
import pytest
from running_server import start


@pytest.fixture(scope="module")
def store(newswire_model):
    from textcat.serving.store import Store

    store = Store({"news": newswire_model})
    store.load()
    return store


@pytest.fixture
def service(store):
    from textcat.serving.http.limits import Limits
    from textcat.serving.http.log import Log
    from textcat.serving.tagging import Service

    return Service(store, log=Log(None), limits=Limits(max_bytes=20_000, max_documents=50, timeout=5))


@pytest.fixture
def serve(newswire_model, tmp_path):
    """Starts a server with options, and ends it."""
    started = []

    def started_with(*options):
        how = {"log": tmp_path / "log", "popen": forked_commands.Popen}
        started.append(start("serve", f"news={newswire_model}", *options, **how))
        return started[-1]

    yield started_with
    for server in started:
        server.kill()
