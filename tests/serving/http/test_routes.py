"""Paths, queries and methods: what is refused, and how."""

import json

import pytest
from cases import every
from serving_requests import TAG, ask, assert_problem, get, post

from textcat.reading import Block, InputSettings
from textcat.reading.formats import jsonl

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
from pydantic import TypeAdapter

from textcat.serving.http.keys import Keys, new_key
from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_too_many_documents_are_refused(service):
    assert_problem(post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 51}), 413, "51", "50")
    assert_problem(post(service, f"{TAG}-batch", json={"documents": []}), 422, "documents")


@every(
    "path, status",
    [
        ("/api/v1/models/other", 404),
        ("/api/v1/models/..", 404),
        ("/api/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/api/v1/models/news%00", 404),
        ("/page/..%2fapp.py", 404),
        ("/page/%2e%2e", 404),
        ("//etc/passwd", 404),
        ("/api/v1/models/news/topic", 422),
        ("/api/v1/models/news/topic?name=a%2F..%2Fb", 404),
        ("/api/v1/models/news/topic?name=%ff", 400),
        ("/api/v1/models/news/topics?limit=x", 422),
        ("/api/v1/models/news/topics?limit=" + "9" * 5000, 422),
        ("/api/v1/models/news/topics?limits=1", 422),
        ("/api/v1/models/news/topics?limit=2&limit=1", 422),
    ],
)
def test_tricks_with_paths_and_queries_find_nothing(service, path, status):
    assert_problem(get(service, path), status)


def test_a_path_that_takes_another_method_says_which(service):
    answer = get(service, TAG)
    assert_problem(answer, 405, "POST")
    assert answer.headers["allow"] == "POST"


# ---- bodies of JSON ----

SURROGATES = {
    r"Wheat \ud83d": "Wheat �",
    r"\ude00 \ud83d\ude00 \ud83d\ud83d\ude00": "� 😀 �😀",
    r"\\ud83d \\\ud83d \\\\ud83d \\\\\uDBFFx": r"\ud83d \� \\ud83d \\�x",
    r"\uD800A\udc00": "�A�",
}


@pytest.mark.parametrize(("written", "meant"), SURROGATES.items())
def test_half_of_a_surrogate_pair_counts_as_on_the_command_line(service, written, meant):
    (line,) = jsonl.ARRAY.records(Block("-", "json", b'[{"text": "%s"}]' % written.encode()), InputSettings())
    assert line.zones == {"body": meant}
    for path, one in (
        (TAG, '{"text": "%s", "all_topics": true}'),
        (f"{TAG}-batch", '{"documents": [{"text": "Gold."}, {"text": "%s"}], "all_topics": true}'),
        (f"{TAG}-batch", '{"documents": [{"zones": {"%s": "Wheat", "title": "%s"}}], "all_topics": true}'),
        (f"{TAG}-stream", '{"text": "Gold."}\n{"text": "%s", "all_topics": true}\n'),
        ("/api/v1/models/news/explain", '{"text": "%s", "topics": ["wheat"]}'),
        ("/v1/projects/news/suggest-batch", '{"documents": [{"text": "%s", "document_id": "%s"}]}'),
    ):
        n = one.count("%s")
        answers = [post(service, path, content=(one % ((text,) * n)).encode()) for text in (written, _quoted(meant))]
        assert answers[0].status_code == 200, answers[0].text
        assert answers[0].content == answers[1].content


def _quoted(text):
    return json.dumps(text)[1:-1]


def test_what_is_no_json_stays_refused_with_half_pairs_in_it(service):
    assert_problem(post(service, TAG, content=rb'{"text": "\ud83d"'), 400, "not JSON")
    assert_problem(post(service, TAG, content=rb'{"text": "\ud8"}'), 400, "not JSON")
    assert_problem(post(service, TAG, content=rb'{"text": "a", "\ud83d": 1}'), 422, "\ufffd")


def test_a_byte_order_mark_before_json_is_not_read(service):
    body = json.dumps({"text": "Wheat rose."}).encode()
    for path in (TAG, f"{TAG}-stream"):
        assert post(service, path, content=b"\xef\xbb\xbf" + body).content == post(service, path, content=body).content
    assert_problem(post(service, TAG, content=b"\xef\xbb\xbf\xef\xbb\xbf" + body), 400, "not JSON")


@pytest.mark.parametrize(
    "body",
    [
        b'{"documents":[' + b"[]," * 200_000 + b"[]]}",
        b'{"documents":[' + b"1," * 200_000 + b"1]}",
        b'{"documents":[' + b'{"text":""},' * 200_000 + b"{}]}",
        b'{"documents":[{"zones":{' + b'"":"",' * 200_000 + b'"a":""}}]}',
        b'{"documents":[{"text":"a"}],"x":' + b"[" * 300_000,
        b'{"documents":[{"text":"a","metadata":{"' + b'\\"":"","' * 300_000,
        b'{"text":"a",' * 200_000,
    ],
    ids=["lists", "numbers", "documents", "zones", "depth", "keys", "objects"],
)
@pytest.mark.parametrize("path", [TAG, f"{TAG}-batch", "/v1/projects/news/suggest-batch", f"{TAG}-stream"])
def test_a_body_of_very_many_values_is_refused_before_they_are_made(store, path, body, monkeypatch):
    service = Service(store, log=Log(None), limits=Limits(max_bytes=10**7, max_documents=50))
    monkeypatch.setattr(TypeAdapter, "validate_json", None)
    answer = post(service, path, content=body)
    if path.endswith("stream"):
        assert "more than 100,000 values" in answer.json()["error"]
    else:
        assert_problem(answer, 413, "more than 100,000 values", "fewer documents")


def test_marks_in_texts_are_no_values(store):
    service = Service(store, log=Log(None), limits=Limits(max_bytes=10**7, max_documents=50))
    text = 'Wheat, [corn], {tin}, "gold"\\, ' * 20_000
    assert post(service, f"{TAG}-batch", json={"documents": [{"text": text}]}).status_code == 200


# ---- HEAD ----


def test_head_answers_like_get_without_a_body(service):
    names = ("api/v1/models", "api/v1/models/news", "api/v1/models/news/topics?limit=2", "v1/projects", "v2")
    names += ("v2/health/live", "v2/models/news/ready", "", "page/page.js", "openapi.json")
    for path in (
        *names,
        "api/v1/models/other",
        "nothing",
        "api/v1/models/news/tag",
        "api/v1/models/news/topics?limit=x",
    ):
        (answer, head) = ask(service, ("GET", f"/{path}", {}), ("HEAD", f"/{path}", {}))
        assert (head.status_code, head.content) == (answer.status_code, b""), path
        length = int(head.headers["content-length"])
        if answer.is_success:
            assert {**head.headers, "x-request-id": ""} == {**answer.headers, "x-request-id": ""}, path
            assert length == len(answer.content)
        else:
            assert length > 0
            assert head.headers["content-type"] == "application/problem+json"


def test_head_needs_the_key_that_get_needs(store, tmp_path):
    key, line = new_key("me")
    (tmp_path / "keys").write_text(line + "\n")
    service = Service(store, log=Log(None), keys=Keys(tmp_path / "keys"))
    for headers, status in (({}, 401), ({"x-api-key": key}, 200)):
        (answer,) = ask(service, ("HEAD", "/api/v1/models", {"headers": headers}))
        assert (answer.status_code, answer.content) == (status, b"")
