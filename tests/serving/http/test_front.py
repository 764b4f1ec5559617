"""What every request meets: its id, its time, its origin."""

import asyncio

from serving_requests import STORY, TAG, ask, assert_problem, get, post

from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_request_ids_are_kept_if_they_are_harmless(service):
    assert get(service, "/v2", headers={"x-request-id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a" * 65, "a b", "a\tb", '"'):
        assert get(service, "/v2", headers={"x-request-id": bad}).headers["x-request-id"] != bad


def test_other_origins_may_ask_only_if_they_are_named(store):
    def origins(service, origin):
        head = {"origin": origin, "access-control-request-method": "POST"}
        answers = ask(service, ("OPTIONS", TAG, {"headers": head}), ("GET", "/v2", {"headers": head}))
        return [answer.headers.get("access-control-allow-origin") for answer in answers]

    here = "https://example.org"
    assert origins(Service(store, log=Log(None)), here) == [None, None]
    service = Service(store, log=Log(None), origins=(here,))
    assert origins(service, here) == [here, here]
    assert origins(service, "https://example.com") == [None, None]


def test_more_requests_than_are_worked_on_are_told_to_come_again(store):
    service = Service(store, log=Log(None), limits=Limits(max_concurrency=3))
    answers = ask(service, *[("POST", TAG, {"json": {"text": STORY}})] * 10)
    assert sorted({answer.status_code for answer in answers}) == [200, 503]
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert_problem(refused, 503, "3 requests")
    assert refused.headers["retry-after"] == "1"
    assert get(service, "/v2").status_code == 200


def test_a_slow_body_and_slow_work_are_ended(store, monkeypatch):
    service = Service(store, log=Log(None), limits=Limits(timeout=0.2))

    async def slow():
        yield b'{"text":'
        await asyncio.sleep(5)

    assert_problem(post(service, TAG, content=slow()), 408, "0.2 seconds")

    async def waits(*_):
        await asyncio.sleep(5)

    monkeypatch.setattr(store["news"].work, "tag_all", waits, raising=False)
    assert_problem(post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}]}), 503, "0.2 seconds")
