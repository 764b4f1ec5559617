"""The tags that clients get are compared with those of a folder, day by day; what has changed is among the metrics."""

import asyncio
import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from running_server import BODY, HEAD, wait_until
from serving_requests import get, post

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.corrections import Corrections
from textcat.model import Reason
from textcat.model.manifest import read_manifest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from textcat.serving.alarms import PER_HOUR, Alarms
from textcat.serving.http.log import Log
from textcat.serving.store import Store
from textcat.serving.tagging import Service
from textcat.serving.work import Answer, Choice
from textcat.trends.alarms import YEAR

TEXTS = {"wheat": "Wheat exports rose to 12 mln tonnes.", "none": "Nothing of it is known.", "strange": "zyxwv qwzk"}


class Clock:
    """A clock that stands still until it is put on."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)

    def __call__(self):
        return self.now

    def put_on(self, **time):
        self.now += timedelta(**time)


@pytest.fixture(scope="module")
def tags(newswire_model, tmp_path_factory):
    """Tags of 400 documents, of which a tenth is about wheat."""
    folder = tmp_path_factory.mktemp("tags")
    write(folder / "a.jsonl", [TEXTS["wheat" if i % 10 == 0 else "none"] for i in range(400)])
    textcat.tag_archive(newswire_model, [folder / "a.jsonl"], folder / "tags", jobs=1)
    return folder / "tags"


def write(path, texts):
    path.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    return path


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def news(newswire_model):
    store = Store({"news": newswire_model})
    store.load()
    return store


def alarms_of(store, *how):
    served = store["news"]
    return Alarms("news", served.version, served.tagger, *how)


@pytest.fixture
def alarms(news, tags, clock):
    found = alarms_of(news, tags, clock)
    news.on_tagged.append(found.count)
    return found


def answer(store, *texts, **choice):
    return store["news"].work.tags([*texts], Choice(**choice))


def test_what_clients_get_more_often_than_the_folder_has_is_an_alarm(news, alarms, clock):
    service = Service(news, alarms=alarms, log=Log(None))
    for day in range(40):
        n_wheat = 5 if day < 20 else 25
        answer(news, *[TEXTS["wheat"]] * n_wheat, *[TEXTS["none"]] * (50 - n_wheat))
        assert alarms.add_up()
        alarms.evaluate()
        assert not alarms.add_up()  # until tomorrow
        assert not (alarms.changes and day < 20)
        clock.put_on(days=1)
    (wheat,) = (change for change in alarms.changes if change.topic == "wheat")
    assert "2026-01-15" <= wheat.since <= "2026-01-22" <= wheat.told < "2026-01-30"
    assert wheat.before < 0.15 < 0.3 < wheat.now
    version = f'version="{news["news"].version}"'
    of_model, of_wheat = f'model="news",{version}', f'model="news",topic="wheat",{version}'
    seconds = datetime.fromisoformat(wheat.since).replace(tzinfo=timezone.utc).timestamp()
    text = get(service, "/metrics").text
    assert f"textcat_monitored_documents{{{of_model}}} 2000.0" in text
    assert f"textcat_alarms{{{of_model}}} {len(alarms.changes)}.0" in text
    assert f"textcat_alarm_ratio{{{of_wheat}}} {wheat.now / wheat.before}" in text
    value = text.partition(f"textcat_alarm_since_timestamp_seconds{{{of_wheat}}} ")[2].split()[0]
    assert float(value) == seconds
    clock.put_on(days=YEAR)  # all begins anew
    alarms.add_up()
    alarms.evaluate()
    assert (alarms.documents, alarms.changes) == (0, [])


def test_only_tags_above_thresholds_count_and_no_more_than_some_of_each_hour(news, alarms, clock, monkeypatch):
    alarms.add_up()
    answer(news, TEXTS["wheat"], top=3)
    answer(news, TEXTS["wheat"], all_topics=True)
    alarms.count("another", ["wheat"], Choice(), [Answer([], None)])
    alarms.add_up()
    assert alarms.documents == 0
    answer(news, TEXTS["wheat"], TEXTS["strange"])
    alarms.add_up()
    assert alarms.documents == 2
    assert answer(news, TEXTS["strange"])[0].reason is Reason.NO_KNOWN_TERM
    for _ in range(2):
        for _ in range(PER_HOUR):
            answer(news, TEXTS["none"])
        alarms.add_up()
    assert alarms.documents == PER_HOUR
    clock.put_on(hours=1)
    alarms.add_up()
    answer(news, TEXTS["none"])
    alarms.is_served = False  # another model is in its place
    answer(news, TEXTS["none"])
    alarms.add_up()
    assert alarms.documents == PER_HOUR + 1


def test_a_document_that_is_explained_or_corrected_does_not_count_again(news, alarms, tmp_path):
    service = Service(news, alarms=alarms, log=Log(None), corrections=Corrections(tmp_path))
    for route, more in (("tag", {}), ("explain", {}), ("corrections", {"wrong": ["wheat"]})):
        answered = post(service, f"/api/v1/models/news/{route}", json={"text": TEXTS["wheat"], **more})
        assert answered.status_code == 200, answered.text
        alarms.add_up()
        assert alarms.documents == 1, route
    assert "wheat" in answered.json()["before"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
def test_the_processes_of_a_server_count_together(news, alarms):
    for _ in range(3):
        if not os.fork():
            answer(news, *[TEXTS["wheat"]] * 20)
            alarms.add_up()
            os._exit(0)
    for _ in range(3):
        assert os.wait()[1] == 0
    answer(news, TEXTS["none"])
    alarms.add_up()
    assert alarms.documents == 61


@pytest.mark.parametrize("replaced", ["model", "rules"])
def test_the_server_adds_up_what_it_has_counted_and_stops_when_model_or_rules_are_replaced(
    replaced, news, alarms, tmp_path
):
    service = Service(news, alarms=alarms, check_seconds=0.01, log=Log(None))

    async def run():
        task = asyncio.create_task(service.background())
        answer(news, TEXTS["wheat"])
        while not alarms.documents:
            await asyncio.sleep(0.01)
        if replaced == "model":
            news.models = {}
        else:
            (tmp_path / "rules.toml").write_text('never = ["wheat"]\n')
            ruled = news["news"].tagger.with_rules(tmp_path / "rules.toml")
            news.models = {"news": replace(news["news"], tagger=ruled)}
        while alarms.is_served:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_folder_of_other_tags_is_refused(news, tags, other_model, newswire_model, tmp_path):
    path = write(tmp_path / "a.jsonl", ["wheat"])
    textcat.tag_archive(other_model, [path], tmp_path / "other", jobs=1)
    textcat.tag_archive(newswire_model, [path], tmp_path / "other", jobs=1, model_changes="new")
    some = textcat.OutputSettings(topics=("wheat",))
    textcat.tag_archive(newswire_model, [path], tmp_path / "some", jobs=1, output_settings=some)
    (tmp_path / "rules.toml").write_text('[replace]\nwheat = "grain"\n')
    by_rules = textcat.OutputSettings(rules=str(tmp_path / "rules.toml"))
    textcat.tag_archive(newswire_model, [path], tmp_path / "rules", jobs=1, output_settings=by_rules)
    textcat.tag_archive(newswire_model, [path], tmp_path / "grown", jobs=1, output_settings=by_rules)
    later = write(tmp_path / "later.jsonl", ["wheat"])
    textcat.tag_archive(newswire_model, [path, later], tmp_path / "grown", jobs=1, model_changes="new")
    write(path, [])
    textcat.tag_archive(newswire_model, [path], tmp_path / "empty", jobs=1)
    textcat.tag_archive(newswire_model, [path], tmp_path / "part", jobs=1, part="1/2")
    for folder, told in {
        "absent": "has no summary of tags",
        "part": "has only part 1/2 of a run",
        "other": rf"has tags by model {read_manifest(other_model).id}, but {news['news'].version} is served as 'news'",
        "some": "were chosen by --topic",
        "rules": "by house rules that the model does not have now",
        "grown": "by house rules that the model does not have now",
        "empty": "are of no document",
    }.items():
        with pytest.raises(TextcatError, match=told):
            alarms_of(news, tmp_path / folder)
    model = news["news"]
    ruled = model.tagger.with_rules(tmp_path / "rules.toml")
    with pytest.raises(TextcatError, match="by none of the model's house rules"):
        Alarms("news", model.version, ruled, tags)


@pytest.mark.long
def test_a_server_shows_its_alarms(serve, tags, newswire_model):
    server = serve("--workers", "2", "--monitor", tags)
    assert server.ask(HEAD + BODY)[0] == 200
    wait_until(lambda: " 1.0" in metrics_of(server).partition("textcat_monitored_documents{")[2][:80])
    assert 'textcat_alarms{model="news"' in metrics_of(server)


def metrics_of(server):
    with server.connect() as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65536):
            text += part
    return text.decode()
