"""What a request may hold, and how often a client may ask."""

import gzip
import json

from serving_requests import STORY, TAG, ask, assert_problem, post

from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
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


def test_who_asks_too_often_waits(store):
    service = Service(store, log=Log(None), limits=Limits(rate=2))
    answers = ask(service, *[("GET", "/v2", {})] * 5)
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 429]
    assert_problem(answers[-1], 429, "2 requests per second")
    assert answers[-1].headers["retry-after"] == "1"
    assert ask(service, ("GET", "/v2", {}), client="127.0.0.2")[0].status_code == 200
