"""The routes by which topics are taught: what they answer, keep and refuse, by several people at a time."""

import asyncio
import io
import json
import re
import threading
import zipfile
from contextlib import suppress

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")
from commodities import commodity_pool  # noqa: E402

from textcat.corpus.documents import Document  # noqa: E402
from textcat.serving.http.keys import Keys, new_key  # noqa: E402
from textcat.serving.http.limits import Limits  # noqa: E402
from textcat.serving.http.log import Log  # noqa: E402
from textcat.serving.teaching import Teaching  # noqa: E402
from textcat.teaching.pool import Pool  # noqa: E402
from textcat.teaching.queues import Queue  # noqa: E402
from textcat.teaching.session import Session  # noqa: E402

TEACH = "/api/v1/teach"


@pytest.fixture(scope="module")
def pool():
    return commodity_pool()


@pytest.fixture
def session(pool):
    session = Session.create(None, pool)
    session.add_topic("wheat", description="wheat and its prices")
    return session


@pytest.fixture
def service(session):
    service = Teaching(session, queues=[Queue("odd", "wheat", [(3, True), (5, False)])], log=Log(None))
    yield service
    service.close()


def ask(service, *requests, host="127.0.0.1:8000"):
    """The answers to requests, given as methods, paths and options, sent at the same time."""

    async def answers():
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as here:
            return await asyncio.gather(
                *(here.request(method, TEACH + path, **more) for method, path, more in requests)
            )

    return asyncio.run(answers())


def get(service, path, host="127.0.0.1:8000", headers=None, **params):
    (answer,) = ask(service, ("GET", path, {"params": params, "headers": headers}), host=host)
    return answer


def post(service, path, **body):
    (answer,) = ask(service, ("POST", path, {"json": body}))
    return answer


def assert_problem(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    for word in words:
        assert word in answer.json()["detail"]


def test_an_answer_is_kept_and_answered_with_the_next_question(service, session):
    first = get(service, "/question", topic="wheat").json()
    question = first["question"]
    assert question["zones"] == session.view.pool.document(question["position"])
    assert (question["why"], question["rank"], question["n_answers"]) == ("highest score", 1, 0)
    answer = "yes" if "wheat" in question["zones"]["title"] else "no"
    sent = {"topic": "wheat", "position": question["position"], "answer": answer, "person": " Ada ", "note": "clear"}
    found = post(service, "/answer", **sent).json()
    assert found["counts"] == {"yes": answer == "yes", "no": answer == "no", "skip": 0}
    (kept,) = session.view.judgements("wheat")
    assert (kept.position, kept.answer, kept.person, kept.note) == (question["position"], answer, "Ada", "clear")
    expected = session.next("wheat", "Ada")
    assert found["question"]["position"] == expected.position
    assert found["question"]["score"] == pytest.approx(expected.score)
    assert post(service, "/answer", **{**sent, "ask": False}).json()["question"] is None


def test_a_topic_is_found_by_answers_alone(service):
    n, found = 0, 0
    question = get(service, "/question", topic="wheat").json()["question"]
    while found < 12 and n < 60:
        is_wheat = "wheat" in question["zones"]["title"]
        body = {"topic": "wheat", "position": question["position"], "answer": "yes" if is_wheat else "no"}
        question = post(service, "/answer", **body).json()["question"]
        n, found = n + 1, found + is_wheat
    assert found == 12
    assert n < 30
    progress = get(service, "/progress", topic="wheat").json()
    assert progress["found"] == 12
    assert progress["curve"][0] == [0, 0]
    assert progress["curve"][-1] == [n, 12]
    assert progress["open"] == 60 - n
    assert progress["estimate"] is None or 0 <= progress["estimate"]["low"] <= progress["estimate"]["high"] <= 1


def test_people_who_answer_at_the_same_moment_are_all_heard(service, session):
    people = [f"p{k}" for k in range(8)]
    requests = [
        ("POST", "/answer", {"json": {"topic": "wheat", "position": i, "answer": "no", "person": people[i % 8]}})
        for i in range(40)
    ]
    answers = ask(service, *requests)
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(each.position for each in session.view.judgements("wheat")) == list(range(40))
    assert sorted(answer.json()["counts"]["no"] for answer in answers) == list(range(1, 41))


def test_an_answer_does_not_wait_for_an_estimate(service, session, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    agreement = session.view.agreement

    def slow(topic):
        begun.set()
        assert go_on.wait(60)
        return agreement(topic)

    monkeypatch.setattr(session.view, "agreement", slow)

    async def both():
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as here:
            slowly = asyncio.create_task(here.get(f"{TEACH}/agreement?topic=wheat"))
            await asyncio.to_thread(begun.wait)
            body = {"topic": "wheat", "position": 0, "answer": "yes"}
            answer = await asyncio.wait_for(here.post(f"{TEACH}/answer", json=body), 30)
            waits = not slowly.done()
            go_on.set()
            await slowly
            return answer, waits

    answer, waits = asyncio.run(both())
    assert answer.status_code == 200
    assert waits


def test_the_last_answer_is_taken_back_and_its_document_asked_again(service, session):
    for position in (0, 1):
        post(service, "/answer", topic="wheat", position=position, answer="yes", person="Ada")
    found = post(service, "/undo", topic="wheat", person="Ada").json()
    assert [each["position"] for each in found["undone"]] == [1]
    assert (found["question"]["position"], found["question"]["why"]) == (1, "taken back")
    assert found["counts"]["yes"] == 1
    nothing = post(service, "/undo", topic="wheat", person="nobody").json()
    assert nothing["undone"] is None
    assert nothing["question"] is not None
    post(service, "/keyword", topic="wheat", term="coffee", speaks_for=True, person="Ada")
    assert post(service, "/undo", topic="wheat", person="Ada").json()["undone"] == []
    assert session.keywords("wheat") == {}


def test_words_can_be_marked(service):
    assert post(service, "/keyword", topic="wheat", term="wheat", speaks_for=True).json()["keywords"] == {"wheat": True}
    assert post(service, "/keyword", topic="wheat", term="gold", speaks_for=False).json()["keywords"]["gold"] is False
    assert get(service, "").json()["topics"][0]["keywords"] == {"gold": False, "wheat": True}
    assert post(service, "/keyword", topic="wheat", term="gold", speaks_for=None).json()["keywords"] == {"wheat": True}
    assert_problem(post(service, "/keyword", topic="wheat", term="xyzzy", speaks_for=True), 409, "xyzzy")
    reasons = get(service, "/evidence", topic="wheat", position=0).json()["reasons"]
    assert max(reasons, key=lambda reason: reason["contribution"])["term"] == "wheat"
    assert {"zone", "start", "end"} == reasons[0]["spans"][0].keys()


def test_a_topic_begins_with_a_query_or_an_example_and_answers_may_be_for_several(service, session):
    begun = post(service, "/topics", topic="gold/<b>", query="gold", examples=["d1"], person="Ada").json()
    assert "gold" in begun["question"]["zones"]["title"]
    assert begun["counts"]["yes"] == 1
    body = {"topic": "wheat", "position": 2, "answer": "no", "others": {"gold/<b>": "no"}}
    assert post(service, "/answer", **body).status_code == 200
    assert [each.position for each in session.view.judgements("gold/<b>")] == [1, 2]
    assert_problem(post(service, "/topics", topic="wheat"), 409, "already")
    assert_problem(post(service, "/topics", topic="x", examples=["no such"]), 409, "no such")
    assert_problem(post(service, "/answer", **{**body, "others": {"none": "no"}}), 404, "none")


def test_a_client_is_asked_about_all_topics_at_once_if_all_are_taught_by_uncertainty(service, session):
    session.add_topic("gold", query="gold")
    of_wheat = get(service, "/question", topic="wheat").json()
    assert get(service, "/question", topic="wheat", all_topics=True).json() == of_wheat
    for topic in ("wheat", "gold"):
        session.change_topic(topic, strategy="uncertain", random_share=0)
    assert [topic["strategy"] for topic in get(service, "").json()["topics"]] == ["uncertain", "uncertain"]
    found = get(service, "/question", topic="wheat", person="Ada", all_topics=True).json()
    question = found["question"]
    expected = session.next_of(["wheat", "gold"], "Ada")
    assert (question["position"], question["topic"]) == (expected.position, expected.topic)
    assert question["topics"] == ["wheat", "gold"]
    (other,) = {"wheat", "gold"} - {question["topic"]}
    sent = {"topic": question["topic"], "position": question["position"], "answer": "no", "others": {other: "yes"}}
    following = post(service, "/answer", **sent, person="Ada", all_topics=True).json()
    expected = session.next_of(["wheat", "gold"], "Ada")
    assert (following["question"]["position"], following["question"]["topic"]) == (expected.position, expected.topic)
    counts = {question["topic"]: {"yes": 0, "no": 1, "skip": 0}, other: {"yes": 1, "no": 0, "skip": 0}}
    assert following["counts"] == counts[following["question"]["topic"]]
    undone = post(service, "/undo", topic=other, person="Ada").json()
    assert (undone["question"]["topic"], undone["counts"]) == (question["topic"], {"yes": 0, "no": 0, "skip": 0})
    assert sorted(undone["question"]["topics"]) == ["gold", "wheat"]


def test_what_is_searched_listed_and_disagreed_on(service):
    found = get(service, "/search", query="copper week", topic="wheat", limit=3).json()
    assert found["total"] >= 12
    assert [each["title"][:6] for each in found["documents"]] == ["copper"] * 3
    assert found["documents"][0]["answer"] is None
    place = found["documents"][0]["position"]
    for person, answer in (("Ada", "no"), ("Ben", "yes")):
        post(service, "/answer", topic="wheat", position=place, answer=answer, person=person, source="search")
    post(service, "/answer", topic="wheat", position=0, answer="yes", person="Ada", note="<b>sure</b>")
    listed = get(service, "/judgements", topic="wheat").json()
    assert [(each["position"], each["person"]) for each in listed["judgements"]] == [
        (0, "Ada"),
        (place, "Ben"),
        (place, "Ada"),
    ]
    assert listed["judgements"][0]["note"] == "<b>sure</b>"
    assert listed["judgements"][1]["source"] == "search"
    assert get(service, "/judgements", topic="wheat", answer="no", person="Ada").json()["total"] == 1
    agreement = get(service, "/agreement", topic="wheat").json()
    assert [each["answers"] for each in agreement["disagreements"]] == [{"Ada": "no", "Ben": "yes"}]
    assert agreement["pairs"][0]["people"] == ["Ada", "Ben"]
    assert get(service, "").json()["people"] == ["Ada", "Ben"]
    document = get(service, "/document", position=place, topic="wheat").json()
    assert [each["answer"] for each in document["judgements"]] == ["no", "yes"]
    post(service, "/answer", topic="wheat", position=place, answer="no", person="Eve", source="adjudicated")
    assert get(service, "/agreement", topic="wheat").json()["disagreements"] == []


def test_a_list_of_documents_waits_to_be_looked_at(service):
    assert get(service, "").json()["queues"] == [{"name": "odd", "topic": "wheat", "documents": 2}]
    rows = get(service, "/queue", name="odd").json()["documents"]
    assert [(row["position"], row["labelled"]) for row in rows] == [(3, True), (5, False)]
    post(service, "/answer", topic="wheat", position=3, answer="no", person="Ada", source="list")
    for person, own in (("Ada", ["no", None]), ("Eve", [None, None])):
        assert [row["answer"] for row in get(service, "/queue", name="odd", person=person).json()["documents"]] == own
    assert_problem(get(service, "/queue", name="none"), 404, "none")


def test_the_command_opens_the_labels_that_a_report_doubts(tmp_path, monkeypatch, newswire_model):
    from textcat import cli

    served = []

    def serve(session, host, port, **how):
        served.append((session.topics(), session.about("wheat"), how))
        return 15

    monkeypatch.setattr("textcat.serving.teaching.serve", serve)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.jsonl").write_text('{"id": "3", "topic": "wheat", "labelled": true}\n')
    options = ["teach", "newswire", "--list", "odd.jsonl", "--model", str(newswire_model), "-j", "1", "--no-browser"]
    monkeypatch.setattr("sys.argv", ["textcat", *options])
    with suppress(SystemExit):
        cli.main()
    ((topics, about, how),) = served
    assert topics == ["wheat"]
    assert about["model"]
    (queue,) = how["queues"]
    assert (queue.topic, [has for _, has in queue.documents]) == ("wheat", [True])
    assert how["path"] == "#view=judge&topic=wheat&list=wheat+in+odd.jsonl"


def test_everything_is_exported(service, tmp_path):
    import textcat

    for position in range(20):
        answer = "yes" if position % 5 == 0 else "no"
        post(service, "/answer", topic="wheat", position=position, answer=answer, person="Ada", ask=False)
    labels = get(service, "/export", what="labels")
    assert labels.headers["content-disposition"] == 'attachment; filename="labels.jsonl"'
    assert len([json.loads(line) for line in labels.text.splitlines()]) == 20
    assert len(get(service, "/export", what="corpus", topic="wheat").text.splitlines()) == 20
    assert len(get(service, "/export", what="audit").text.splitlines()) >= 20
    packed = zipfile.ZipFile(io.BytesIO(get(service, "/export", what="model").content))
    packed.extractall(tmp_path)
    tagger = textcat.load(tmp_path / "model")
    assert [tag.topic for tag in tagger.tag(["Prices of wheat rose"], top=1)[0]] == ["wheat"]
    assert_problem(get(service, "/export", what="everything"), 422, "what")


@pytest.mark.parametrize(
    ("path", "params", "status", "words"),
    [
        ("/question", {"topic": "none"}, 404, "none"),
        ("/question", {}, 422, "topic"),
        ("/evidence", {"topic": "wheat", "position": 60}, 404, "60"),
        ("/evidence", {"topic": "wheat", "position": -1}, 422, "position"),
        ("/document", {"position": 10**12}, 422, "position"),
        ("/progress", {"topic": "wheat", "target": "nan"}, 422, "target"),
        ("/search", {"query": "a", "topic": "none"}, 404, "none"),
        ("/judgements", {"topic": "wheat", "answer": "perhaps"}, 422, "answer"),
        ("/no", {}, 404, "no route"),
    ],
)
def test_what_is_not_there_is_told_in_a_sentence(service, path, params, status, words):
    assert_problem(get(service, path, **params), status, words)


@pytest.mark.parametrize(
    "body",
    [
        {"position": 60},
        {"position": -1},
        {"position": True},
        {"answer": "maybe"},
        {"source": "example"},
        {"topic": "none"},
        {"note": "a" * 10_001},
        {"more": 1},
    ],
)
def test_an_answer_that_is_none_changes_nothing(service, session, body):
    sent = {"topic": "wheat", "position": 0, "answer": "yes", **body}
    assert post(service, "/answer", **sent).status_code in (404, 422)
    assert not session.view.judgements("wheat")


def test_no_page_of_another_site_can_ask_or_answer(service, session):
    body = {"topic": "wheat", "position": 0, "answer": "yes"}
    own = "http://127.0.0.1:8000"
    for head in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": own},
    ):
        (answer,) = ask(service, ("POST", "/answer", {"json": body, "headers": head}))
        assert_problem(answer, 403, "another site")
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        more = {"content": json.dumps(body).encode(), "headers": {"content-type": kind}}
        (answer,) = ask(service, ("POST", "/answer", more))
        assert_problem(answer, 415, "application/json")
    assert_problem(get(service, "", headers={"sec-fetch-site": "cross-site"}), 403)
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "evil"):
        assert_problem(get(service, "", host=host), 421, host)
    assert not session.view.judgements("wheat")
    for host in ("localhost:8000", "[::1]:8000", "192.168.0.7:8000", "page.localhost"):
        assert get(service, "", host=host).status_code == 200
    named = Teaching(session, hosts=("Teach.example",), log=Log(None))
    assert get(named, "", host="teach.example:80").status_code == 200
    head = {"origin": own, "sec-fetch-site": "same-origin"}
    (answer,) = ask(service, ("POST", "/answer", {"json": body, "headers": head}))
    assert answer.status_code == 200


def test_a_page_of_another_session_changes_nothing(service, session, pool):
    """It may have been left open, and another session be served at its address since."""
    shown = get(service, "").json()["session"]
    assert shown == session.fingerprint != Session.create(None, pool, seed=1).fingerprint
    body = {"topic": "wheat", "position": 0, "answer": "yes"}
    (answer,) = ask(service, ("POST", "/answer", {"json": body, "headers": {"if-match": "other"}}))
    assert_problem(answer, 412, "reload the page")
    assert not session.view.judgements("wheat")
    (answer,) = ask(service, ("POST", "/answer", {"json": body, "headers": {"if-match": shown}}))
    assert answer.status_code == 200


def test_an_answer_that_cannot_be_written_is_told_and_does_not_count(pool, tmp_path, monkeypatch):
    session = Session.create(tmp_path / "session", pool)
    session.add_topic("wheat")
    service = Teaching(session, log=Log(None))
    body = {"topic": "wheat", "position": 0, "answer": "yes"}

    def fails(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("textcat.base.disk.sync", fails)
        assert_problem(post(service, "/answer", **body), 507, "No space left")
    assert not session.view.judgements("wheat")
    assert post(service, "/answer", **body).json()["counts"]["yes"] == 1
    assert post(service, "/keyword", topic="wheat", term="gold", speaks_for=False).status_code == 200
    expected = session.next("wheat")
    service.close()
    session.close()
    with Session.open(tmp_path / "session", pool) as again:
        assert again.next("wheat") == expected


def test_with_keys_the_name_of_the_key_is_the_person(session, tmp_path):
    key, line = new_key("carol")
    (tmp_path / "keys").write_text(line + "\n")
    service = Teaching(session, keys=Keys(tmp_path / "keys"), log=Log(None))
    assert_problem(get(service, ""), 401, "key")
    head = {"authorization": f"Bearer {key}"}
    assert get(service, "", headers=head).json()["person"] == "carol"
    body = {"topic": "wheat", "position": 0, "answer": "yes", "person": "somebody else"}
    (answer,) = ask(service, ("POST", "/answer", {"json": body, "headers": head}))
    assert answer.status_code == 200
    assert [each.person for each in session.view.judgements("wheat")] == ["carol"]


def test_texts_that_are_no_unicode_and_large_bodies_do_no_harm():
    documents = [Document(f"\ud800{i}", {"title": "\ud800 wheat", "body": f"\0 gold {i}"}) for i in range(4)]
    odd = Pool.from_documents(documents, ids=[document.id for document in documents])
    session = Session.create(None, odd)
    session.add_topic("wheat")
    service = Teaching(session, log=Log(None), limits=Limits(max_bytes=1000))
    assert "wheat" in get(service, "/question", topic="wheat").json()["question"]["zones"]["title"]
    assert get(service, "/document", position=0).status_code == 200
    assert get(service, "/search", query="wheat").status_code == 200
    assert_problem(post(service, "/answer", topic="wheat", position=0, answer="yes", note="a" * 2000), 413)


def test_all_routes_are_described(service):
    schema = service.openapi()
    paths = {path.removeprefix(TEACH) for path in schema["paths"]}
    assert {"", "/topics", "/question", "/answer", "/undo", "/keyword", "/evidence", "/progress", "/export"} <= paths
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schema)))
    assert used == schema["components"]["schemas"].keys()
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert {"401", "403", "421", "500"} <= operation["responses"].keys(), path


def test_the_longest_name_of_a_topic_is_that_of_sessions(service):
    from textcat.teaching.judgements import LONGEST_NAME

    assert post(service, "/topics", topic="a" * LONGEST_NAME).status_code == 200
    assert_problem(post(service, "/topics", topic="a" * (LONGEST_NAME + 1)), 422, "topic")


def test_answers_are_as_their_routes_describe_them(service):
    for person, answer in (("Ada", "yes"), ("Ben", "no")):
        post(service, "/answer", topic="wheat", position=0, answer=answer, person=person)
    models = {route.path: route.response_model for route in service.routes if getattr(route, "response_model", None)}
    for path, params in (
        ("", {}),
        ("/question", {"topic": "wheat"}),
        ("/document", {"position": 0, "topic": "wheat"}),
        ("/evidence", {"topic": "wheat", "position": 5}),
        ("/search", {"query": "gold", "topic": "wheat"}),
        ("/judgements", {"topic": "wheat"}),
        ("/progress", {"topic": "wheat"}),
        ("/agreement", {"topic": "wheat"}),
        ("/queue", {"name": "odd"}),
    ):
        answer = get(service, path, **params).json()
        assert models[TEACH + path].model_validate(answer).model_dump(mode="json") == answer


def test_a_route_is_a_function_that_can_be_called_alone(session):
    from types import SimpleNamespace

    from textcat.serving import teaching
    from textcat.serving.teaching_schemas import OfTopic, QuestionQuery

    call = SimpleNamespace(app=SimpleNamespace(session=session), key="")
    asked = teaching.question(QuestionQuery(topic="wheat"), call)["question"]
    assert asked["position"] == session.next("wheat").position
    assert teaching.agreement(OfTopic(topic="wheat"), call)["documents"] == 0


def test_duplicates_are_listed_and_split_off_and_an_undo_puts_them_back(pool):
    texts = [pool.document(i) for i in (0, 1, 2, 0, 0)]
    session = Session.create(None, Pool.from_documents([Document(f"d{i}", zones) for i, zones in enumerate(texts)]))
    session.add_topic("wheat")
    service = Teaching(session, log=Log(None))
    groups = get(service, "/duplicates").json()
    assert groups["total"] == 1
    assert [[row["position"] for row in group] for group in groups["groups"]] == [[0, 3, 4]]
    about = get(service, "").json()
    assert (about["documents"], about["duplicates"]) == (3, 2)
    assert post(service, "/split", positions=[4], person="Ada").json() == {"documents": 4, "duplicates": 1}
    assert [row["id"] for row in get(service, "/duplicates").json()["groups"][0]] == ["d0", "d3"]
    assert get(service, "/duplicates", offset=1).json() == {"total": 1, "groups": []}
    assert post(service, "/undo", topic="wheat", person="Ada").json()["undone"] == []
    assert len(get(service, "/duplicates").json()["groups"][0]) == 3
    assert post(service, "/split", positions=[0, 1]).status_code == 409
    assert post(service, "/split", positions=[99]).status_code == 404
    assert post(service, "/split", positions=[]).status_code == 422
    assert get(service, "/export", what="duplicates", format="csv").text.startswith("group,position,id,title")
    service.close()
