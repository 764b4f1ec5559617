"""The server as a process: signals, what is not HTTP, clients that are slow or go away, processes that die."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
if not hasattr(os, "fork"):
    pytest.skip("system: there is no fork", allow_module_level=True)

BODY = b'{"text": "Wheat exports rose to 12 mln tonnes."}'
HEAD = b"POST /api/v1/models/news/tag HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY)
pytestmark = pytest.mark.long


class Running:
    """A server that has been started: `ask` sends bytes and returns the answer's."""

    def __init__(self, process, address, log):
        self.process, self.address, self.log = process, address, log

    def connect(self):
        return socket.create_connection(self.address, timeout=30)

    def ask(self, data):
        with self.connect() as connection:
            connection.sendall(data)
            return answer_of(connection)

    def workers(self):
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()


def answer_of(connection):
    """The status and the body of one answer; (0, b"") if there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return 0, data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), json.loads(body[:length])


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


def test_what_runs_when_the_server_is_to_stop_is_answered(serve):
    server = serve("--workers", "2")
    status, answer = server.ask(HEAD + BODY)
    assert (status, answer["model"]) == (200, "news")
    with server.connect() as connection:
        connection.sendall(HEAD + BODY[:10])
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.sendall(BODY[10:])
        assert answer_of(connection)[0] == 200
    code, errors = server.stop()
    assert code == 0
    assert errors == "textcat: stopped; running requests were answered.\n"
    events = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [(event["status"], event["documents"]) for event in events if event["event"] == "request"] == [(200, 1)] * 2


def test_ctrl_c_ends_in_a_sentence(serve):
    server = serve("--workers", "1")
    assert server.ask(HEAD + BODY)[0] == 200
    assert server.stop(signal.SIGINT) == (
        130,
        "textcat: interrupted; running requests were answered.\n",
    )


def test_what_is_slow_broken_or_no_http_is_told_so_and_others_are_served(serve):
    server = serve("--workers", "1", "--seconds", "1", "--log", "events")
    assert server.ask(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")[0] == 400
    assert server.ask(b"GET / HTTP/9.9\r\n\r\n")[0] == 400
    assert server.ask(b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000)[0] == 431
    assert server.ask(HEAD + b"content-length: 3\r\n\r\n")[0] in (400, 408)
    assert server.ask(HEAD[:20])[0] == 408
    assert server.ask(b"")[0] == 408
    assert server.ask(HEAD + BODY[:9])[0] == 408
    for _ in range(50):
        with server.connect() as connection:
            connection.sendall(HEAD + BODY[:9])
    with server.connect() as connection:  # two at once, in one piece
        connection.sendall((HEAD + BODY) * 2)
        assert answer_of(connection)[0] == 200
    assert server.ask(HEAD + BODY)[0] == 200
    assert server.stop()[0] == 0
    assert server.log.read_text() == ""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="system: there is no /proc")
def test_a_process_that_dies_is_replaced_and_none_outlives_the_first(serve):
    server = serve("--workers", "2")
    assert server.ask(HEAD + BODY)[0] == 200
    first, _ = server.workers()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(server.workers()) == 2 and first not in server.workers())
    assert all(server.ask(HEAD + BODY)[0] == 200 for _ in range(10))
    workers = server.workers()
    server.process.kill()
    server.process.communicate()
    wait_until(lambda: not any(is_alive(process) for process in workers))


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_port_that_is_taken_a_missing_model_and_wrong_options_are_told_in_a_sentence(serve, newswire_model, tmp_path):
    server = serve("--workers", "1")
    for options, code, words in (
        ([str(newswire_model), "--port", str(server.address[1])], 1, "Give another --host or --port."),
        ([str(tmp_path / "absent")], 1, "absent"),
        ([], 2, "name the folder of a model"),
        ([str(newswire_model), "--workers", "0"], 2, "--workers is 0"),
        ([str(newswire_model), "--keys", str(tmp_path / "keys")], 1, "--new-key"),
        ([str(newswire_model), "--log", "all"], 2, "'requests' or 'events'"),
        (["--new-key", "a b"], 1, "A key cannot be named 'a b'"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "textcat", "serve", *options], capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == code, ended.stderr
        assert words in ended.stderr
        assert ended.stderr.startswith("textcat: ")
        assert ended.stderr.count("\n") == 1


def test_an_address_that_others_reach_needs_keys_or_a_warning(monkeypatch):
    from textcat.serving.http.processes import is_loopback

    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.0.0.2")] == [True] * 4
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"))
