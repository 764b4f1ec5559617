"""The server: what it answers, what it refuses, and what it survives. Some tests start it as a process."""

import asyncio
import gzip
import json
import re

import pytest

import textcat

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from textcat.errors import TextcatError  # noqa: E402
from textcat.serving.http.keys import Keys, new_key  # noqa: E402
from textcat.serving.http.limits import Limits  # noqa: E402
from textcat.serving.http.log import Log  # noqa: E402
from textcat.serving.store import Store, named_folders  # noqa: E402
from textcat.serving.tagging import Service  # noqa: E402

STORY = "Wheat exports rose to 12 mln tonnes, the ministry said."
TAG = "/api/v1/models/news/tag"
HOSTILE = [
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "/etc/passwd",
    "../../etc/passwd",
    "<script>",
    "\0",
    "𝄞" * 9,
    "",
]


@pytest.fixture(scope="module")
def store(newswire_model):
    store = Store({"news": newswire_model})
    store.load()
    return store


@pytest.fixture
def service(store):
    return Service(store, log=Log(None), limits=Limits(max_bytes=20_000, max_documents=50, seconds=5))


def ask(service, *requests, client="127.0.0.1"):
    """The answers to requests, given as methods, paths and options, sent at the same time."""

    async def answers():
        transport = httpx.ASGITransport(service, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as here:
            return await asyncio.gather(*(here.request(method, path, **more) for method, path, more in requests))

    return asyncio.run(answers())


def post(service, path, **more):
    (answer,) = ask(service, ("POST", path, more))
    return answer


def get(service, path, **more):
    (answer,) = ask(service, ("GET", path, more))
    return answer


def assert_problem(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in problem["detail"]


def test_documents_get_the_tags_that_the_model_gives_them(service, store, newswire_model):
    tagger = textcat.load(newswire_model)
    expected = [tag._asdict() for tag in tagger.tag([STORY])[0]]
    answer = post(service, TAG, json={"text": STORY}).json()
    assert answer == {"model": "news", "version": store["news"].version, "tags": expected}
    assert len(answer["version"]) == 12
    zones = {"title": "Wheat", "body": STORY}
    documents = [{"text": STORY}, {"zones": zones}]
    found = post(service, f"{TAG}-batch", json={"documents": documents, "top": 3}).json()["results"]
    expected = tagger.tag([STORY, {"zones": zones}], top=3)
    assert [each["tags"] for each in found] == [[tag._asdict() for tag in tags] for tags in expected]


def test_requests_of_one_moment_are_tagged_together_and_each_gets_its_own(service, store, newswire_model):
    tagger = textcat.load(newswire_model)
    texts = [f"{STORY} Gold fell. {'wheat ' * (i % 7)}{'gold ' * (i % 5)}" for i in range(60)]
    tops = [None, 1, 2]
    requests = [("POST", TAG, {"json": {"text": text, "top": tops[i % 3]}}) for i, text in enumerate(texts)]
    for i, answer in enumerate(ask(service, *requests)):
        (tags,) = tagger.tag([texts[i]], top=tops[i % 3])
        assert [row["topic"] for row in answer.json()["tags"]] == [tag.topic for tag in tags]


def test_topics_can_be_chosen_by_number_probability_or_all(service, store):
    n = len(store["news"].tagger.topics)
    everything = post(service, TAG, json={"text": STORY, "everything": True}).json()["tags"]
    assert len(everything) == n
    assert everything == sorted(everything, key=lambda row: -row["score"])
    if everything[0]["probability"] is not None:
        least = everything[2]["probability"]
        found = post(service, TAG, json={"text": STORY, "min_probability": least, "everything": True}).json()["tags"]
        assert found == [row for row in everything if row["probability"] >= least]


def test_a_stream_answers_a_line_for_each_line_and_goes_on_behind_a_bad_one(service, store):
    lines = [json.dumps({"text": STORY}), "{bad", json.dumps({"text": STORY, "top": 0}), "", json.dumps({"text": "x"})]
    answer = post(service, f"{TAG}-stream", content="\n".join(lines).encode())
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [sorted(row) for row in rows] == [
        ["model", "tags", "version"],
        ["error"],
        ["error"],
        ["model", "tags", "version"],
    ]
    assert rows[0]["tags"] == post(service, TAG, json={"text": STORY}).json()["tags"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_a_text_whatever_it_looks_like(service, store, text, monkeypatch):
    monkeypatch.setattr("builtins.open", None)
    found = post(service, TAG, json={"text": text, "top": 1}).json()["tags"]
    assert [row["score"] for row in found] == [tag.score for tag in store["news"].tagger.tag([text], top=1)[0]]


def test_models_topics_and_the_description_can_be_asked_for(service, store):
    served = get(service, "/api/v1/models").json()
    assert served["limits"] == {"bytes": 20_000, "documents": 50}
    (model,) = served["models"]
    assert model == get(service, "/api/v1/models/news").json()
    assert model["corpus"] == "newswire"
    listed = get(service, "/api/v1/models/news/topics", params={"query": "WHE"}).json()
    assert [row["topic"] for row in listed["topics"]] == [t for t in store["news"].tagger.topics if "whe" in t]
    topic = get(service, "/api/v1/models/news/topic", params={"name": "wheat", "terms": 3}).json()
    assert [(row["term"], row["weight"]) for row in topic["terms"]] == store["news"].tagger.terms("wheat", 3)
    schema = get(service, "/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    assert TAG.replace("news", "{model}") in schema["paths"]
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schema)))
    assert used == schema["components"]["schemas"].keys()


def test_a_route_is_a_function_that_can_be_called_alone(service, store):
    from types import SimpleNamespace

    from textcat.serving import models, schemas, tagging

    call = SimpleNamespace(app=service)
    topic = asyncio.run(models.topic("news", schemas.TopicQuery(name="wheat", terms=1), call))
    assert topic["version"] == call.version == store["news"].version
    tagged = asyncio.run(tagging.tag("news", schemas.TagText(text=STORY), call))
    assert json.loads(tagged) == post(service, TAG, json={"text": STORY}).json()


def test_annifs_and_kserves_clients_find_what_they_ask_for(store):
    service = Service(store, log=Log(None), labels={"wheat": "Weizen"})
    (project,) = get(service, "/v1/projects").json()["projects"]
    assert (project["project_id"], project["is_trained"]) == ("news", True)
    answer = post(service, "/v1/projects/news/suggest", data={"text": STORY, "limit": 2}).json()
    assert len(answer["results"]) == 2
    assert {"uri", "label", "notation", "score"} == answer["results"][0].keys()
    assert {row["uri"]: row["label"] for row in answer["results"]}["wheat"] == "Weizen"
    documents = [{"document_id": "a", "text": STORY}, {"text": "gold"}]
    rows = post(service, "/v1/projects/news/suggest-batch?limit=1", json={"documents": documents}).json()
    assert [row["document_id"] for row in rows] == ["a", None]
    assert rows[0]["results"] == answer["results"][:1]
    assert get(service, "/v2/health/live").json() == {"live": True}
    assert get(service, "/v2/health/ready").json() == {"ready": True}
    assert get(service, "/v2/models/news/ready").json()["ready"]
    described = get(service, "/v2/models/news").json()
    assert (described["platform"], described["inputs"], described["outputs"]) == ("textcat", [], [])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b'{"text": "a"', 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        (b'{"text": "\xff"}', 400, "not JSON"),
        (b'{"text": "\\ud800"}', 400, "not JSON"),
        (b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "not JSON"),
        (b'{"text": 1}', 422, "text"),
        (b'{"texts": "a"}', 422, "'text'"),
        (b"[]", 422, "'text'"),
        (b'{"text": "a", "zones": {"a": "b"}}', 422, "invalid: zones: "),
        (b'{"zones": {}}', 422, "zones"),
        (b'{"zones": {"a": {"b": "c"}}}', 422, "invalid: zones.a: "),
        (b'{"text": "a", "top": 1e999}', 422, "invalid: top: "),
        (b'{"text": "a", "top": 99999999999999999999999}', 422, "top"),
        (b'{"text": "a", "min_probability": NaN}', 422, "min_probability"),
        (b'{"text": "a", "top": true}', 422, "top"),
        (b'{"text": "' + b"a" * 20_000 + b'"}', 413, "20,000 bytes"),
    ],
)
def test_a_body_that_is_not_as_it_should_be_is_refused_in_a_sentence(service, body, status, words):
    assert_problem(post(service, TAG, content=body, headers={"content-type": "application/json"}), status, words)


def test_a_key_given_twice_counts_once(service):
    body = b'{"text": "gold", "text": "wheat exports", "top": 1}'
    assert (
        post(service, TAG, content=body).json()["tags"]
        == post(service, TAG, json={"text": "wheat exports", "top": 1}).json()["tags"]
    )


def test_a_whole_number_may_be_written_as_json_schema_allows(service):
    assert len(post(service, TAG, content=b'{"text": "gold", "top": 2.0}').json()["tags"]) == 2
    assert_problem(post(service, TAG, content=b'{"text": "gold", "top": 2.5}'), 422, "top")


def test_too_many_documents_are_refused(service):
    assert_problem(post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 51}), 413, "51", "50")
    assert_problem(post(service, f"{TAG}-batch", json={"documents": []}), 422, "documents")


def test_a_body_may_be_gzip_but_no_bomb(service):
    plain, head = json.dumps({"text": STORY}).encode(), {"content-encoding": "gzip"}
    assert post(service, TAG, content=gzip.compress(plain), headers=head).json()["tags"]
    bomb = gzip.compress(b'{"text": "' + b" " * 50_000_000 + b'"}')
    assert_problem(post(service, TAG, content=bomb[:19_000], headers=head), 413, "inflated")
    assert_problem(post(service, TAG, content=plain, headers=head), 400, "not valid gzip")
    assert_problem(post(service, TAG, content=gzip.compress(plain)[:-5], headers=head), 400, "one complete gzip stream")
    assert_problem(post(service, TAG, content=plain, headers={"content-encoding": "br"}), 415, "'br'")
    assert_problem(post(service, TAG, content=plain, headers={"content-type": "text/plain"}), 415, "text/plain")


@pytest.mark.parametrize(
    ("path", "status"),
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


def test_request_ids_are_kept_if_they_are_harmless(service):
    assert get(service, "/v2", headers={"x-request-id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a" * 65, "a b", "a\tb", '"'):
        assert get(service, "/v2", headers={"x-request-id": bad}).headers["x-request-id"] != bad


def test_a_key_opens_what_is_closed_and_is_kept_as_a_sum(store, tmp_path):
    key, line = new_key("alice")
    assert key not in line
    file = tmp_path / "keys"
    file.write_text(f"# people\n{line}\n{new_key('bob')[1]}  # and their machines\n", encoding="utf-8")
    keys = Keys(file)
    assert keys.name_of(key.encode()) == "alice"
    service = Service(store, log=Log(None), keys=keys)
    assert_problem(get(service, "/api/v1/models"), 401, "key is needed")
    assert get(service, "/api/v1/models").headers["www-authenticate"] == "Bearer"
    assert_problem(get(service, "/metrics", headers={"authorization": "Bearer no"}), 401, "The key is unknown")
    assert get(service, "/api/v1/models", headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert get(service, "/metrics", headers={"x-api-key": key}).status_code == 200
    assert get(service, "/v2/health/live").status_code == 200
    assert get(service, "/openapi.json").json()["security"]
    file.write_text(f"alice {key}\n", encoding="utf-8")
    with pytest.raises(TextcatError, match="Line 1") as raised:
        Keys(file)
    assert key not in str(raised.value)
    file.write_text("# none\n", encoding="utf-8")
    with pytest.raises(TextcatError, match="has no key"):
        Keys(file)
    with pytest.raises(TextcatError, match="--new-key"):
        Keys(tmp_path / "absent")


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


def test_who_asks_too_often_waits(store):
    service = Service(store, log=Log(None), limits=Limits(rate=2))
    answers = ask(service, *[("GET", "/v2", {})] * 5)
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 429]
    assert_problem(answers[-1], 429, "2 requests per second")
    assert answers[-1].headers["retry-after"] == "1"
    assert ask(service, ("GET", "/v2", {}), client="127.0.0.2")[0].status_code == 200


def test_more_requests_than_are_worked_on_are_told_to_come_again(store):
    service = Service(store, log=Log(None), limits=Limits(concurrent=3))
    answers = ask(service, *[("POST", TAG, {"json": {"text": STORY}})] * 10)
    assert sorted({answer.status_code for answer in answers}) == [200, 503]
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert_problem(refused, 503, "3 requests")
    assert refused.headers["retry-after"] == "1"
    assert get(service, "/v2").status_code == 200


def test_a_slow_body_and_slow_work_are_ended(store, monkeypatch):
    service = Service(store, log=Log(None), limits=Limits(seconds=0.2))

    async def slow():
        yield b'{"text":'
        await asyncio.sleep(5)

    assert_problem(post(service, TAG, content=slow()), 408, "0.2 seconds")

    async def waits(*_):
        await asyncio.sleep(5)

    monkeypatch.setattr(store["news"].work, "tag_all", waits, raising=False)
    assert_problem(post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}]}), 503, "0.2 seconds")


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


def test_metrics_count_requests_documents_and_name_the_version(service, store):
    post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 7})
    text = get(service, "/metrics").text
    assert 'textcat_documents_total{model="news"} 7.0' in text
    assert 'route="/api/v1/models/{model}/tag-batch",status="200"' in text
    assert f'textcat_model_info{{model="news",version="{store["news"].version}"}} 1.0' in text


def test_a_replaced_model_is_taken_over_and_a_broken_one_is_not(tmp_path):
    def train(tau):
        recipe = textcat.read_recipe("paum").with_settings([f"learner.tau_pos={tau}"])
        return textcat.train(textcat.open_corpus("newswire"), recipe)

    folder = tmp_path / "model"
    textcat.save(train(50), folder)
    store = Store({"news": folder})
    store.load()
    events = []
    service = Service(store, log=Log(None))
    store.on_load = lambda *event: events.append(event)
    first = store["news"].version
    asyncio.run(store.check())
    assert store["news"].version == first
    assert not events
    textcat.save(train(5), folder)
    asyncio.run(store.check())
    second = store["news"].version
    assert second != first
    assert post(service, TAG, json={"text": STORY}).json()["version"] == second
    (tmp_path / "broken").write_bytes(b"broken")
    (tmp_path / "broken").replace(folder / "weights.npy")  # not written over: the old one is mapped
    (folder / "manifest.json").touch()
    asyncio.run(store.check())
    asyncio.run(store.check())
    assert store["news"].version == second
    assert post(service, TAG, json={"text": STORY}).status_code == 200
    assert [event[:2] for event in events] == [("news", "loaded"), ("news", "failed")]
    textcat.save(train(50), folder)
    asyncio.run(store.check())
    assert store["news"].version == first


def test_models_are_named_by_their_folders_or_as_asked_for(tmp_path):
    assert named_folders([str(tmp_path / "a"), "b=c"]) == {"a": tmp_path / "a", "b": textcat.folders.Path("c")}
    for models, words in ((["a b"], "NAME="), (["a/x", "b/x"], "another name"), (["/"], "NAME=")):
        with pytest.raises(TextcatError, match=words):
            named_folders(models)


def test_a_document_is_explained_as_the_model_explains_it(service, store):
    answer = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "n": 3}).json()
    assert answer["version"] == store["news"].version
    expected = [each.as_dict() for each in store["news"].tagger.explain_all(STORY, n=3)]
    assert answer["explanations"] == json.loads(json.dumps(expected))
    one = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "topics": ["gold"]}).json()["explanations"]
    assert [each["topic"] for each in one] == ["gold"]
    unknown = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "topics": ["no such"]})
    assert_problem(unknown, 404, "'no such'")


def test_the_texts_of_a_file_are_read_by_a_process_with_limits(store, monkeypatch):
    service = Service(store, log=Log(None))
    answer = post(service, "/api/v1/text?name=a.txt", content=b"Wheat exports rose.")
    assert "Wheat exports rose." in answer.json()["zones"]["body"]
    for name in ("../../etc/passwd", "/etc/passwd", "http://127.0.0.1/a.txt"):  # a name only tells the format
        answer = post(service, "/api/v1/text", params={"name": name}, content=b"a text")
        assert "root:" not in answer.text
    assert_problem(post(service, "/api/v1/text?name=a.pdf", content=b"no PDF"), 422, "a.pdf")
    monkeypatch.setattr("textcat.serving.files.MEMORY", 1)  # not that of the other process
    slow = Service(store, log=Log(None), limits=Limits(seconds=0.01))
    assert post(slow, "/api/v1/text?name=a.txt", content=b"a").status_code == 503
