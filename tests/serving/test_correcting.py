"""What people say about a document's topics is on disk when it is answered, and nothing else is."""

import asyncio
import json
import os
import signal
import sqlite3
import threading
from contextlib import closing, contextmanager

import pytest
from commands import Run
from running_server import wait_until
from serving_requests import STORY, TAG, ask, assert_problem, get, httpx, post

from textcat.corpus.corrections import FILE, Corrections

PATH = TAG.replace("tag", "corrections")


@pytest.fixture
def made(store, tmp_path):
    """Make a server that takes corrections; options are those of `Service`."""

    def make(**options):
        from textcat.serving.http.log import Log
        from textcat.serving.tagging import Service

        return Service(store, **{"log": Log(None), "corrections": Corrections(tmp_path / "kept"), **options})

    return make


def test_a_correction_is_kept_with_the_topics_before_and_after(made, store, tmp_path):
    service = made()
    sent = {"text": STORY, "right": ["gold", "harvest"], "wrong": ["wheat"], "note": "no wheat", "person": " Ann "}
    answer = post(service, PATH, json=sent)
    assert answer.status_code == 200, answer.text
    answer = answer.json()
    before = [tag.topic for tag in store["news"].tagger.tag([STORY])[0]]
    assert "wheat" in before
    (kept,) = Corrections(tmp_path / "kept")
    version = store["news"].version
    assert answer == {
        "model": "news",
        "version": version,
        "number": 1,
        "time": kept.at,
        "id": kept.document.id,
        "before": before,
        "after": [*(topic for topic in before if topic != "wheat"), "gold", "harvest"],
        "new": ["harvest"],
    }
    assert kept.document.zones == {"body": STORY}
    assert kept.answers == {"gold": True, "harvest": True, "wheat": False}
    assert [kept.before, kept.after] == [tuple(answer["before"]), tuple(answer["after"])]
    assert (kept.person, kept.via, kept.model, kept.note) == ("Ann", "api", version, "no wheat")


def test_names_of_new_topics_that_look_the_same_are_one(made, tmp_path):
    service, names = made(), ["cafe\u0301", "caf\u00e9", "ca\u00adf\u00e9", "caf\u00e9\u200b"]
    answer = post(service, PATH, json={"text": STORY, "right": names}).json()
    assert answer["new"] == ["caf\u00e9"]
    assert post(service, PATH, json={"text": STORY, "wrong": [names[0]]}).status_code == 200  # it is retracted
    assert [kept.answers for kept in Corrections(tmp_path / "kept")] == [{"caf\u00e9": True}, {"caf\u00e9": False}]
    for unseen in ("\u200b", "\u00ad"):
        assert_problem(post(service, PATH, json={"text": STORY, "right": ["gold", unseen]}), 422, "no characters that")
    assert_problem(post(service, PATH, json={"text": STORY, "right": names[:1], "wrong": names[1:2]}), 422, "both")


def test_what_is_said_of_a_document_besides_its_text_is_kept(made, tmp_path):
    more = {"date": "2024-05-03", "language": "en", "fields": {"desk": "farm"}}
    assert post(made(), PATH, json={"text": STORY, "right": ["gold"], **more}).status_code == 200
    (kept,) = Corrections(tmp_path / "kept")
    assert {name: getattr(kept.document, name) for name in more} == more
    assert kept.document.zones == {"body": STORY}


def test_the_same_text_is_the_same_document_unless_it_has_an_id(made):
    service = made()
    texts = [{"text": STORY}, {"zones": {"body": STORY}}, {"text": STORY + " "}, {"text": STORY, "id": "7"}]
    texts += [{"zones": {"title": "a", "body": "b\ud800"}}, {"zones": {"body": "b\ud800", "title": "a"}}]
    headers = {"content-type": "application/json"}
    bodies = [json.dumps({**text, "right": ["gold"]}) for text in texts]
    ids = [post(service, PATH, content=body, headers=headers).json()["id"] for body in bodies]
    assert ids[0] == ids[1] != ids[2]
    assert ids[4] == ids[5] != ids[0]
    assert ids[3] == "7"
    assert len({*ids}) == 4
    assert ids[0].startswith("text-")
    assert len(ids[0]) == len("text-") + 16


def test_the_opposite_takes_a_correction_back(made, tmp_path):
    service = made()
    for side in ("right", "wrong", "wrong"):
        post(service, PATH, json={"text": STORY, side: ["gold"], "via": "page"})
    (document,) = Corrections(tmp_path / "kept").documents()
    assert (document.topics, document.labelled_for) == ((), ("gold",))
    assert [correction.via for correction in Corrections(tmp_path / "kept")] == ["page"] * 3


def test_a_topic_that_the_model_lacks_can_be_taken_back_too(made, tmp_path):
    service = made()
    added = post(service, PATH, json={"text": STORY, "right": [" weat ", "gold\t"]}).json()
    assert (added["new"], added["after"][-2:]) == (["weat"], ["weat", "gold"])
    assert_problem(post(service, PATH, json={"text": f"{STORY}!", "wrong": ["weat"]}), 422, "no topic 'weat'")
    assert post(service, PATH, json={"text": STORY, "wrong": ["weat"]}).status_code == 200
    (document,) = Corrections(tmp_path / "kept").documents()
    assert document.topics == ("gold",)


def test_with_keys_the_person_is_the_name_of_the_key(made, tmp_path):
    from textcat.serving.http.keys import Keys, new_key

    key, line = new_key("alice")
    (tmp_path / "keys.txt").write_text(line)
    service, sent = made(keys=Keys(tmp_path / "keys.txt")), {"text": STORY, "right": ["gold"], "person": "Bob"}
    assert_problem(post(service, PATH, json=sent), 401, "key")
    assert post(service, PATH, json=sent, headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert [correction.person for correction in Corrections(tmp_path / "kept")] == ["alice"]


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({}, 422, ["names no topic"]),
        ({"right": ["gold"], "wrong": ["gold"]}, 422, ["'gold' is both right and wrong"]),
        ({"wrong": ["weat"]}, 422, ["no topic 'weat'", "Did you mean 'wheat'?"]),
        ({"right": [""]}, 422, ["right"]),
        ({"right": ["gold\nwheat"]}, 422, ["right"]),
        ({"text": " ", "right": ["gold"]}, 422, ["has no text"]),
        ({"right": ["gold"], "via": "mail"}, 422, ["via"]),
        ({"right": ["gold"], "topics": []}, 422, ["topics"]),
        ({"right": ["gold"], "zones": {}}, 422, ["zones"]),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_and_not_kept(made, tmp_path, sent, status, words):
    assert_problem(post(made(), PATH, json={"text": STORY, **sent}), status, *words)
    assert [*Corrections(tmp_path / "kept")] == []


def test_no_page_of_another_site_can_send_corrections(made, tmp_path):
    service, content = made(), json.dumps({"text": STORY, "right": ["gold"]}).encode()
    for kind in ({}, {"content-type": "text/plain"}):  # which browsers send without asking the server first
        assert_problem(post(service, PATH, content=content, headers=kind), 415, "application/json")
    assert [*Corrections(tmp_path / "kept")] == []


def test_a_server_takes_corrections_only_if_it_was_told_where_to_keep_them(made, service):
    sent = {"text": STORY, "right": ["gold"]}
    assert_problem(post(service, PATH, json=sent), 404, "takes no corrections", "--corrections FOLDER")
    assert_problem(post(made(), PATH.replace("news", "none"), json=sent), 404, "No model 'none'")
    assert [get(one, "/api/v1/models").json()["corrections"] for one in (service, made())] == [False, True]


def test_what_cannot_be_written_is_told_without_the_path_and_can_be_sent_again(made, tmp_path):
    from textcat.serving.http.log import Log

    log, sent = tmp_path / "log", {"text": STORY, "right": ["gold"]}
    with open(log, "wb") as file:
        service = made(log=Log(file.fileno()))
        path = tmp_path / "kept" / FILE
        whole = path.read_bytes()
        path.write_bytes(b"no database" * 1000)
        answer = post(service, PATH, json=sent)
        assert_problem(answer, 507, "was not saved: send it again later")
        assert str(tmp_path) not in answer.text
        path.write_bytes(whole)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        full = made(corrections=_FullDisk(tmp_path / "kept", pages))
        assert_problem(post(full, PATH, json={**sent, "text": STORY * 1000}), 507, "was not saved")
        assert post(service, PATH, json=sent).json()["number"] == 1
    (failed,) = [
        line for line in map(json.loads, log.read_text().splitlines()) if line["event"] == "corrections_failed"
    ]
    assert f"{path} is damaged" in failed["error"]


class _FullDisk(Corrections):
    """Corrections on a disk on which a database of more than some pages does not fit."""

    def __init__(self, folder, pages):
        self._pages = pages
        super().__init__(folder)

    @contextmanager
    def _connection(self):
        with super()._connection() as connection:
            connection.execute(f"PRAGMA max_page_count = {self._pages}")
            yield connection


def test_while_a_correction_is_written_others_are_answered(made, tmp_path):
    service = made()
    with closing(sqlite3.connect(tmp_path / "kept" / FILE, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # the correction waits for its end

        async def both():
            transport = httpx.ASGITransport(service)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                writing = asyncio.create_task(client.post(PATH, json={"text": STORY, "right": ["gold"]}))
                await asyncio.sleep(0)
                tagged = await client.post(TAG, json={"text": STORY})
                assert not writing.done()
                connection.execute("COMMIT")
                return tagged, await writing

        tagged, written = asyncio.run(both())
    assert (tagged.status_code, written.status_code) == (200, 200)


def test_of_many_at_the_same_time_each_has_a_number_of_its_own(made, tmp_path):
    requests = [("POST", PATH, {"json": {"text": f"{STORY} {n}", "right": ["gold"]}}) for n in range(30)]
    numbers = [answer.json()["number"] for answer in ask(made(), *requests)]
    assert sorted(numbers) == [*range(1, 31)] == [correction.number for correction in Corrections(tmp_path / "kept")]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
def test_what_was_answered_is_kept_if_processes_that_write_are_killed(serve, tmp_path):
    server = serve("--workers", "2", "--corrections", tmp_path / "kept")
    answered, stop = [], threading.Event()

    def send(person):
        n = 0
        while not stop.is_set():
            n += 1
            body = json.dumps({"text": f"{STORY} {n}", "right": ["gold"], "person": person}).encode()
            head = (
                f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            try:
                status, answer = server.ask(head.encode() + body)
            except (OSError, ValueError):  # its process was killed, perhaps amid an answer
                continue
            if status == 200:
                answered.append((answer["number"], person, answer["id"]))

    clients = [threading.Thread(target=send, args=[f"p{n}"]) for n in range(4)]
    for client in clients:
        client.start()
    for _ in range(4):
        before = len(answered)
        wait_until(lambda before=before: len(answered) > before + 20)
        killed = server.workers()[0]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda killed=killed: killed not in server.workers())
    stop.set()
    for client in clients:
        client.join()
    kept = {(one.number, one.person, one.document.id) for one in Corrections(tmp_path / "kept", must_exist=True)}
    assert {*answered} <= kept
    assert len({number for number, _, _ in answered}) == len(answered)
    assert server.stop()[0] == 0


def test_a_folder_that_cannot_be_written_is_told_before_the_server_starts(
    newswire_model, tmp_path, capsys, monkeypatch
):
    (tmp_path / "file").write_text("")
    ended = Run(capsys, monkeypatch)("serve", newswire_model, "--corrections", tmp_path / "file" / "kept")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "Cannot write to the corrections in" in ended.err
