"""Servers in this process, and servers started as processes of their own."""

import re
import subprocess
import sys

import pytest
from running_server import Running


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

    def start(*options):
        command = [sys.executable, "-m", "textcat", "serve", f"news={newswire_model}", "--port", "0", *options]
        log = tmp_path / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE)
        started.append(process)
        line = process.stderr.readline().decode()
        host, port = re.search(r"http://([\d.]+):(\d+)", line).groups()
        return Running(process, (host, int(port)), log)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
