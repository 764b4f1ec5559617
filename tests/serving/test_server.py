"""The server as a process: how it begins, and how signals end it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from running_server import BODY, HEAD, answer_of

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
if not hasattr(os, "fork"):
    pytest.skip("system: there is no fork", allow_module_level=True)
pytestmark = pytest.mark.long


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
