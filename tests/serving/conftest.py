"""Servers in this process, and servers started as processes of their own."""

import sys
import threading
import time

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


@pytest.fixture
def served_by(monkeypatch, tmp_path):
    """Calls a function that serves in a thread of this process, and gives the address; all servers end with the test.

    One that was left behind would go on looking for memory to give back, which makes all further tests slow. What they
    serve may lie in `tmp_path`, which goes after them: a request may still be answered when a test has ended.
    """
    uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    servers, threads, run = [], [], uvicorn.Server.run
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: servers.append(server) or run(server, sockets))
    interval = sys.getswitchinterval()

    def start(serve, what, **options):
        url, known = [], threading.Event()

        def told(address):
            url.append(address)
            known.set()

        options = {"port": 0, "open_browser": False, "on_start": told, **options}
        threads.append(threading.Thread(target=serve, args=(what,), kwargs=options))
        threads[-1].start()
        assert known.wait(60)
        return url[0]

    yield start
    while any(thread.is_alive() for thread in threads):
        for server in servers:
            server.should_exit = True
        time.sleep(0.01)
    sys.setswitchinterval(interval)
