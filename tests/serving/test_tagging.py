"""Documents are tagged and explained by requests as the model does it."""

import asyncio
import json
from dataclasses import replace

import pytest
from serving_requests import STORY, TAG, assert_problem, post

import textcat
from textcat.serving.http.log import Log
from textcat.serving.http.problems import ClientGoneError
from textcat.serving.store import Store
from textcat.serving.tagging import Service
from textcat.serving.work import Choice

EXPLAIN = "/api/v1/models/news/explain"
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


def entry_of(tag):
    """What an answer says of a tag by a model without promises."""
    return {"topic": tag.topic, "score": tag.score, "probability": tag.probability}


def test_documents_get_the_tags_that_the_model_gives_them(service, store, newswire_model):
    tagger = textcat.load(newswire_model)
    expected = [entry_of(tag) for tag in tagger.tag([STORY])[0]]
    answer = post(service, TAG, json={"text": STORY}).json()
    assert answer == {"model": "news", "version": store["news"].version, "tags": expected}
    assert len(answer["version"]) == 12
    zones = {"title": "Wheat", "body": STORY}
    documents = [{"text": STORY}, {"zones": zones}]
    found = post(service, f"{TAG}-batch", json={"documents": documents, "top": 3}).json()["results"]
    expected = tagger.tag([STORY, {"zones": zones}], top=3)
    assert [each["tags"] for each in found] == [[*map(entry_of, tags)] for tags in expected]


def test_a_request_may_say_what_rules_with_conditions_ask_for(tmp_path, newswire_tagger):
    folder = textcat.save(newswire_tagger, tmp_path / "news")
    rule = "for language fr, desk farm, since 1990-01-01: adds wheat: zinc"
    (tmp_path / "news.rules.toml").write_text(
        '[[when]]\nlanguage = ["fr"]\nfields.desk = ["farm"]\nsince = 1990-01-01\nadds = { wheat = ["zinc"] }\n'
    )
    store = Store({"news": folder})
    store.load()
    service = Service(store, log=Log(None))
    about = {"language": "fr", "date": "1990-05-01", "fields": {"desk": ["farm"]}}
    told = [about, about | {"language": "en"}, about | {"date": "1989"}, about | {"fields": {}}, {}]
    for texts in ({"text": STORY}, {"zones": {"body": STORY}}):
        documents = [texts | one for one in told]
        answers = [post(service, TAG, json=document).json()["tags"] for document in documents]
        batch = post(service, f"{TAG}-batch", json={"documents": documents}).json()["results"]
        lines = "\n".join(map(json.dumps, documents)).encode()
        stream = post(service, f"{TAG}-stream", content=lines).text.splitlines()
        for tags in (answers, [row["tags"] for row in batch], [json.loads(row)["tags"] for row in stream]):
            assert ["zinc" in {tag["topic"] for tag in of_one} for of_one in tags] == [True, *[False] * 4]
        explained = [post(service, EXPLAIN, json={**document, "topics": ["zinc"]}).json() for document in documents]
        rules = [answer["explanations"][0].get("rule") for answer in explained]
        assert rules == [rule, *[None] * 4]
    assert_problem(post(service, TAG, json={"text": STORY, "date": 1990}), 422, "date")


def test_the_expected_recall_of_tags_is_returned_if_the_model_has_promises(promising_model, newswire_model, service):
    store = Store({"news": promising_model})
    store.load()
    promising = Service(store, log=Log(None))
    texts = [STORY, "Nothing is known of zyxwv."]
    tagger = textcat.load(promising_model)
    expected = tagger.expected_recalls(texts).tolist()
    assert expected == tagger.decisions.expected_recalls(*tagger.scored(texts)).tolist()
    bodies = [{"text": text, "expected_recall": True} for text in texts]
    assert [post(promising, TAG, json=body).json()["expected_recall"] for body in bodies] == expected
    batch = {"documents": [{"text": text} for text in texts], "expected_recall": True}
    results = post(promising, f"{TAG}-batch", json=batch).json()["results"]
    assert [row["expected_recall"] for row in results] == expected
    assert "expected_recall" not in post(promising, TAG, json={"text": STORY}).json()
    assert_problem(post(service, TAG, json=bodies[0]), 422, "leave out expected_recall")
    with pytest.raises(textcat.TextcatError, match="train it with --promise"):
        textcat.load(newswire_model).expected_recalls(texts)


def test_topics_can_be_chosen_by_number_probability_or_all(service, store):
    n = len(store["news"].tagger.topics)
    all_topics = post(service, TAG, json={"text": STORY, "all_topics": True}).json()["tags"]
    assert len(all_topics) == n
    assert all_topics == sorted(all_topics, key=lambda row: -row["score"])
    if all_topics[0]["probability"] is not None:
        least = all_topics[2]["probability"]
        found = post(service, TAG, json={"text": STORY, "min_probability": least, "all_topics": True}).json()["tags"]
        assert found == [row for row in all_topics if row["probability"] >= least]


def test_a_stream_answers_a_line_for_each_line_and_goes_on_behind_a_bad_one(service, store):
    lines = [json.dumps({"text": STORY}), "{bad", json.dumps({"text": STORY, "top": 0}), "", json.dumps({"text": "x"})]
    answer = post(service, f"{TAG}-stream", content="\n".join(lines).encode())
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [sorted(row) for row in rows] == [
        ["model", "tags", "version"],
        ["error"],
        ["error"],
        ["model", "reason", "tags", "version"],
    ]
    assert (rows[3]["tags"], rows[3]["reason"]) == ([], "no_known_term")
    assert rows[0]["tags"] == post(service, TAG, json={"text": STORY}).json()["tags"]


def test_a_stream_ends_when_far_more_lines_are_wrong_than_right(service):
    def errors(lines):
        rows = [
            json.loads(line) for line in post(service, f"{TAG}-stream", content=b"\n".join(lines)).text.splitlines()
        ]
        return sum("error" in row for row in rows), len(rows), rows[-1]

    right = b'{"text":""}'
    service.front.limits = replace(service.front.limits, max_bytes=100_000)
    assert errors([b"0", right] * 1500)[:2] == (1500, 3000)
    assert errors([b"0"] * 900)[:2] == (900, 900)
    n, total, last = errors([b"0"] * 9000)
    assert n == total == 1024 + 1  # what was looked at together is answered
    assert "Over 1,000 lines are wrong" in last["error"]


def test_the_documents_of_a_client_that_has_gone_are_not_tagged(service, store):
    async def gone():
        raise ClientGoneError

    tagged = []
    store.on_batch = tagged.append
    with pytest.raises(ClientGoneError):
        asyncio.run(store["news"].work.tag_all([STORY] * 1000, Choice(), gone))
    assert tagged == [128]


def test_an_explanation_is_bounded_by_characters_times_topics_each_once(service, store):
    path, topics = TAG.replace("tag", "explain"), store["news"].tagger.topics[:3]
    thrice = post(service, path, json={"text": STORY, "topics": [topics[0]] * 50}).json()["explanations"]
    assert [one["topic"] for one in thrice] == [topics[0]]
    text = "wheat " * 3000
    service.front.limits = replace(service.front.limits, max_bytes=10_000_000)
    refused = post(service, path, json={"text": text * 200, "topics": list(topics)})
    assert (refused.status_code, "times 3 topics is more than 4,000,000" in refused.json()["detail"]) == (413, True)
    tags = post(service, TAG, json={"text": text * 240}).json()["tags"]
    by_default = post(service, path, json={"text": text * 240})
    assert (by_default.status_code, f"times {len(tags)} topics" in by_default.json()["detail"]) == (413, True)


def test_a_text_that_takes_too_long_is_refused_and_the_next_one_answered(service, store, monkeypatch):
    def slow(*_, **options):
        while True:
            pass

    store.seconds = 0.05
    with monkeypatch.context() as patch:
        patch.setattr(textcat.Tagger, "tag", slow)
        late = post(service, TAG, json={"text": STORY})
    assert_problem(late, 503, "send less at a time")
    store.seconds = 30.0
    assert post(service, TAG, json={"text": STORY}).status_code == 200


def test_the_lines_of_a_stream_may_come_in_any_pieces(service):
    lines = "\n".join([json.dumps({"text": STORY}), "", "{bad", json.dumps({"text": "x" * 100})]).encode()

    async def pieces(size):
        for start in range(0, len(lines), size):
            yield lines[start : start + size]

    wanted = post(service, f"{TAG}-stream", content=lines).text
    assert all(post(service, f"{TAG}-stream", content=pieces(size)).text == wanted for size in (1, 7, 64))


def test_what_a_stream_holds_counts_as_the_bodies_of_other_requests_do(service):
    others = service.front.held = 100 * service.front.limits.max_bytes
    answer = post(service, f"{TAG}-stream", content=json.dumps({"text": STORY}).encode())
    assert "Too many large bodies" in json.loads(answer.text.splitlines()[-1])["error"]
    assert service.front.held == others


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_a_text_whatever_it_looks_like(service, store, text, monkeypatch):
    monkeypatch.setattr("builtins.open", None)
    found = post(service, TAG, json={"text": text, "top": 1}).json()["tags"]
    assert [row["score"] for row in found] == [tag.score for tag in store["news"].tagger.tag([text], top=1)[0]]


def test_a_route_is_a_function_that_can_be_called_alone(service, store):
    from types import SimpleNamespace

    from textcat.serving import models, schemas, tagging

    call = SimpleNamespace(app=service)
    topic = asyncio.run(models.topic("news", schemas.TopicQuery(name="wheat", terms=1), call))
    assert topic["version"] == call.version == store["news"].version
    tagged = asyncio.run(tagging.tag("news", schemas.TagText(text=STORY), call))
    assert json.loads(tagged) == post(service, TAG, json={"text": STORY}).json()


def test_a_document_is_explained_as_the_model_explains_it(service, store):
    answer = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "n": 3}).json()
    assert answer["version"] == store["news"].version
    expected = [each.as_dict() for each in store["news"].tagger.explain_all(STORY, n=3)]
    assert answer["explanations"] == json.loads(json.dumps(expected))
    one = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "topics": ["gold"]}).json()["explanations"]
    assert [each["topic"] for each in one] == ["gold"]
    unknown = post(service, TAG.replace("tag", "explain"), json={"text": STORY, "topics": ["no such"]})
    assert_problem(unknown, 404, "'no such'")
