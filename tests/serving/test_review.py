"""The routes of a review: what they answer, keep and refuse, by several people at a time, and when they are killed."""

import asyncio
import http.client
import json
import signal

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")
import forked_commands  # noqa: E402
from running_server import start  # noqa: E402

from textcat.corpus.corrections import FILE, Corrections  # noqa: E402
from textcat.review.review import Review  # noqa: E402
from textcat.serving.http.keys import Keys, new_key  # noqa: E402
from textcat.serving.http.log import Log  # noqa: E402
from textcat.serving.review import Reviewing  # noqa: E402


@pytest.fixture
def review(tagged_archive, tmp_path):
    return Review(tagged_archive, tmp_path / "said", most=30, audit=0.2)


@pytest.fixture
def service(review):
    service = Reviewing(review, log=Log(None))
    yield service
    service.close()


def ask(service, *requests, **head):
    """The answers to requests, given as methods, paths and JSON, sent at the same time."""

    async def answers():
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", headers=head) as here:
            sent = ((method, f"/api/v1/review{path}", *more) for method, path, *more in requests)
            return await asyncio.gather(*(here.request(*each[:2], json=each[2] if each[2:] else None) for each in sent))

    return asyncio.run(answers())


def answered(number, person, **answers):
    return "POST", "/answer", {"number": number, "person": person, "answers": answers}


def test_a_review_goes_on_document_by_document(service, review):
    about, first, second = ask(service, ("GET", ""), ("GET", "/next?person=Ann"), ("GET", "/next?person=Bob"))
    assert about.json() == {
        "session": review.fingerprint,
        "archive": "tags",
        "documents": 30,
        "open": review.n_open,
        "independent": False,
        "is_sample": False,
        "topics": 50,
        "person": None,
    }
    document = first.json()["document"]
    assert (document["number"], second.json()["document"]["number"]) == (0, 1)
    assert document["zones"] == review.documents[0].document.zones
    assert [tag["topic"] for tag in document["tags"]] == [*review.documents[0].document.topics]
    topic = next(tag["topic"] for tag in document["tags"] if tag["is_asked"])
    (third,) = ask(service, answered(0, "Ann", **{topic: True}))
    assert third.json()["document"]["number"] == 2
    assert third.json()["answered"] == 1
    (back,) = ask(service, ("POST", "/undo", {"person": "Ann"}))
    assert (back.json()["undone"], back.json()["document"]["number"]) == (True, 0)
    (nothing,) = ask(service, ("POST", "/undo", {"person": "Ann"}))
    assert not nothing.json()["undone"]


def test_evidence_topics_and_the_audit_are_shown(service, review):
    audited = next(document for document in review.documents if any(tag.is_audited for tag in document.tags))
    topic = next(tag.topic for tag in audited.tags if tag.is_audited)
    words, found, empty = ask(
        service,
        ("GET", f"/evidence?number={audited.number}&topic={topic}&n=3"),
        ("GET", "/topics?query=whe"),
        ("GET", "/audit"),
    )
    assert len(words.json()["reasons"]) == 3
    assert found.json() == {"topics": [{"topic": "wheat", "name": None}]}
    assert empty.json() == {"rows": []}
    ask(service, answered(audited.number, "Ann", **{topic: True}))
    (shown,) = ask(service, ("GET", "/audit"))
    assert shown.json()["rows"][0] | {"low": 0, "high": 0} == {
        "topic": "",
        "month": "",
        "judged": 1,
        "right": 1,
        "precision": 1.0,
        "low": 0,
        "high": 0,
    }


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (answered(99, "Ann"), 404, "no document 99"),
        (answered(0, "Ann", wheatt=True), 409, "Did you mean 'wheat'"),
        (("POST", "/answer", {"number": 0, "answers": {"wheat": "perhaps"}}), 422, "answers"),
        (("GET", "/evidence?number=99&topic=wheat"), 404, "no document 99"),
        (("GET", "/next?who=Ann"), 422, "who"),
    ],
)
def test_wrong_requests_are_refused_and_keep_nothing(service, review, request_, status, words):
    (refused,) = ask(service, request_)
    assert refused.status_code == status
    assert words in refused.text
    assert [*review.corrections] == []


def test_a_page_of_another_queue_is_refused(service):
    (refused,) = ask(service, ("GET", "/next"), **{"If-Match": "00000000"})
    assert refused.status_code == 412
    (refused,) = ask(service, answered(0, "Ann"), origin="http://elsewhere.example")
    assert refused.status_code == 403


def test_with_keys_people_have_the_names_of_their_keys(review, tmp_path):
    key, line = new_key("Ann")
    (tmp_path / "keys").write_text(line)
    service = Reviewing(review, keys=Keys(tmp_path / "keys"), log=Log(None))
    (refused,) = ask(service, answered(0, "Bob"))
    assert refused.status_code == 401
    ask(service, answered(0, "Bob"), authorization=f"Bearer {key}")
    service.close()
    assert [made.person for made in review.corrections] == ["Ann"]


def test_an_answer_that_cannot_be_written_is_refused_as_such(service, tmp_path):
    (tmp_path / "said" / FILE).write_bytes(b"no database" * 1000)
    (refused,) = ask(service, answered(0, "Ann"))
    assert refused.status_code == 507
    assert "damaged" in refused.json()["detail"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="system: nothing can be killed at once")
def test_nothing_answered_is_lost_when_the_server_is_killed_while_two_people_answer(tagged_archive, tmp_path):
    said = {"Ann": 0, "Bob": 0}
    for _ in range(3):
        options = ("--corrections", tmp_path / "said", "--no-browser")
        server = start("review", tagged_archive, *options, log=tmp_path / "log", popen=forked_commands.Popen)
        people = {person: http.client.HTTPConnection(*server.address, timeout=60) for person in said}
        shown = {person: _sent(link, "GET", f"/next?person={person}") for person, link in people.items()}
        for turn in range(7):
            for person, link in people.items():
                body = {"number": shown[person]["document"]["number"], "person": person, "answers": {}}
                if turn == 6:  # the answer may or may not be kept: nobody was told
                    link.request(
                        "POST", "/api/v1/review/answer", json.dumps(body), {"content-type": "application/json"}
                    )
                else:
                    shown[person] = _sent(link, "POST", "/answer", body)
                    said[person] += 1
        server.kill()
        kept = [made.person for made in Corrections(tmp_path / "said")]
        for person in said:
            assert said[person] <= kept.count(person) <= said[person] + 1
            said[person] = kept.count(person)
    ids = [made.document.id for made in Corrections(tmp_path / "said")]
    assert len(ids) == len({*ids})  # nobody was shown what was answered


def _sent(link, method, path, body=None):
    head = {"content-type": "application/json"} if body else {}
    link.request(method, f"/api/v1/review{path}", json.dumps(body) if body else None, head)
    answer = link.getresponse()
    content = json.loads(answer.read())
    assert answer.status == 200, content
    return content
