"""What a request may hold, and how often a client may ask."""

import gzip
import json
from types import SimpleNamespace

import pytest
from serving_requests import STORY, TAG, ask, assert_problem, post

from textcat.serving.http.limits import Limits, bounded_time
from textcat.serving.http.log import Log
from textcat.serving.http.problems import Problem
from textcat.serving.tagging import Service


def test_a_body_may_be_gzip_but_no_bomb(service):
    plain, head = json.dumps({"text": STORY}).encode(), {"content-encoding": "gzip"}
    assert post(service, TAG, content=gzip.compress(plain), headers=head).json()["tags"]
    bomb = gzip.compress(b'{"text": "' + b" " * 50_000_000 + b'"}')
    assert_problem(post(service, TAG, content=bomb[:19_000], headers=head), 413, "inflated")
    assert_problem(post(service, TAG, content=plain, headers=head), 400, "not valid gzip")
    assert_problem(post(service, TAG, content=gzip.compress(plain)[:-5], headers=head), 400, "one complete gzip stream")
    assert_problem(post(service, TAG, content=plain, headers={"content-encoding": "br"}), 415, "'br'")
    assert_problem(post(service, TAG, content=plain, headers={"content-type": "text/plain"}), 415, "text/plain")


def test_who_asks_too_often_waits(store, monkeypatch):
    now = SimpleNamespace(monotonic=lambda: 1000.0)  # on a busy machine, five requests may take a second
    monkeypatch.setattr("textcat.serving.http.limits.time", now)
    service = Service(store, log=Log(None), limits=Limits(rate_limit=2))
    answers = ask(service, *[("GET", "/v2", {})] * 5)
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 429]
    assert_problem(answers[-1], 429, "2 requests per second")
    assert answers[-1].headers["retry-after"] == "1"
    assert ask(service, ("GET", "/v2", {}), client="127.0.0.2")[0].status_code == 200


def _work_for_ever():
    while True:
        pass


def test_work_is_interrupted_after_its_processor_time_and_nothing_is_left_behind():
    import signal
    import threading

    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(Problem, match=r"not ready within 0\.05 seconds"), bounded_time(0.05):
        _work_for_ever()
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    with bounded_time(60):
        pass
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    done = []
    other = threading.Thread(target=lambda: [done.append(1) for _ in [0] if bounded_time(1).__enter__() is None])
    other.start()
    other.join()
    assert done == [1]
