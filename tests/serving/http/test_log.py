"""What is logged."""

import json

from serving_requests import TAG, assert_problem, post

from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_a_failure_is_logged_and_told_without_its_details(store, monkeypatch, tmp_path):
    import os

    file = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    service = Service(store, log=Log(file))
    monkeypatch.setattr(store["news"].work, "tags", lambda *_: 1 / 0, raising=False)
    assert_problem(post(service, TAG, json={"text": "a"}), 500, "log")
    os.close(file)
    error, request = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert "ZeroDivisionError" in error["error"]
    assert (request["status"], request["request_id"]) == (500, error["request_id"])
