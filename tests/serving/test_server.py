"""The server as a process: how it begins, and how signals end it."""

import json
import os
import re
import signal
import time

import forked_commands
import pytest
from commands import COMMAND, Run
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


def test_a_port_that_is_taken_is_told_in_a_sentence(serve, newswire_model):
    port = str(serve("--workers", "1").address[1])
    ended = forked_commands.run([*COMMAND, "serve", newswire_model, "--port", port], text=True)
    assert ended.returncode == 1, ended.stderr
    assert re.fullmatch(r"textcat: [^\n]*Give another --host or --port\.\n", ended.stderr)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["{absent}"], 1, "absent"),
        ([], 2, "name the folder of a model"),
        (["{model}", "--workers", "0"], 2, "--workers is 0"),
        (["{model}", "--keys", "{absent}"], 1, "--new-key"),
        (["{model}", "--log", "all"], 2, "'requests' or 'events'"),
        (["--new-key", "a b"], 1, "A key cannot be named 'a b'"),
    ],
    ids=str,
)
def test_a_missing_model_and_wrong_options_are_told_in_a_sentence(
    options, code, words, newswire_model, tmp_path, capsys, monkeypatch
):
    named = [option.format(model=newswire_model, absent=tmp_path / "absent") for option in options]
    ended = Run(capsys, monkeypatch)("serve", *named)
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert ended.err.startswith("textcat: ")
    assert ended.err.count("\n") == 1
