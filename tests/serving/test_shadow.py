"""A shadow tags what the served model tags, unseen; where it differs is counted, and a sample is kept."""

import json
import os
import re
import signal
import stat
import time
from contextlib import contextmanager

import pytest
from running_server import BODY, HEAD, is_alive, wait_until

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Document

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
if not hasattr(os, "fork"):
    pytest.skip("system: there is no fork", allow_module_level=True)

from textcat.serving.shadow import COUNTS, Reservoir, Shadow
from textcat.serving.work import Answer, Choice, Work

NEWSWIRE = textcat.open_corpus("newswire")
DOCUMENTS = [" ".join(document.zones.values()) for document in NEWSWIRE.test[:20]]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A model of the same topics that gives many more tags."""
    tagger = textcat.train(NEWSWIRE, textcat.read_recipe("paum-2002"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "other")


@contextmanager
def running(shadow, *, replaces=False, end=signal.SIGTERM):
    """Run a shadow's process, and end it by a signal; yields the number of the process."""
    process = os.fork()
    if not process:
        try:
            shadow.run(replaces=replaces)
        finally:
            os._exit(0)
    try:
        yield process
    finally:
        os.kill(process, end)
        os.waitpid(process, 0)


def difference_of(served, shadow, documents, **options):
    """What a shadow is to count, by the tags of both models."""
    counts = dict.fromkeys(COUNTS, 0)
    for document in documents:
        one, two = ({tag.topic for tag in tagger.tag([document], **options)[0]} for tagger in (served, shadow))
        counts["documents"] += 1
        counts["differing_documents"] += one != two
        counts["tags_only_served"] += len(one - two)
        counts["tags_only_shadow"] += len(two - one)
    return counts


def test_differences_are_counted_and_sampled(newswire_tagger, other, tmp_path):
    shadow = Shadow("news", newswire_tagger, other, tmp_path / "sample.jsonl")
    work = Work(newswire_tagger, lambda n: None, lambda: 30.0, lambda *batch: shadow.offer("news", *batch))
    documents = [*DOCUMENTS, Document("", {"title": "Wheat up", "body": "Wheat exports rose."})]
    with running(shadow):
        for n, top in enumerate((None, 3)):
            for k, document in enumerate(documents, start=1):
                work.tags([document], Choice(top=top))
                wait_until(lambda n=n, k=k: shadow.counts()["documents"] == n * len(documents) + k)
        work.tags(documents[:2], Choice(all_topics=True))
        shadow.offer("another", documents, Choice(), [])
        work.tags(["wheat"] * 2, Choice(min_probability=0.9))
        wait_until(lambda: shadow.counts()["failed_documents"] == 2)
    expected = [
        difference_of(newswire_tagger, textcat.load(other), documents, **options) for options in ({}, {"top": 3})
    ]
    assert shadow.counts() == {name: sum(of[name] for of in expected) for name in COUNTS} | {"failed_documents": 2}
    by_topic = shadow.by_topic()
    assert {*by_topic} == {*newswire_tagger.topics}
    sums = [sum(counts) for counts in zip(*by_topic.values(), strict=True)]
    assert sums == [shadow.counts()[name] for name in ("tags_only_served", "tags_only_shadow")]
    lines = [json.loads(line) for line in (tmp_path / "sample.jsonl").read_text().splitlines()]
    assert len(lines) == shadow.counts()["differing_documents"] > 10
    assert all(line["served"] != line["shadow"] for line in lines)
    assert {line["text"] for line in lines if isinstance(line["text"], str)} <= {*DOCUMENTS}
    assert stat.S_IMODE((tmp_path / "sample.jsonl").stat().st_mode) == 0o600


def test_what_a_shadow_that_died_was_tagging_is_counted_as_failed_and_its_sample_goes_on(
    newswire_tagger, other, tmp_path
):
    shadow, n = Shadow("news", newswire_tagger, other, tmp_path / "sample.jsonl"), 5000
    text = max(
        DOCUMENTS, key=lambda text: difference_of(newswire_tagger, textcat.load(other), [text])["tags_only_shadow"]
    )
    given = Answer([tag._asdict() for tag in newswire_tagger.tag([text])[0]], None)
    with running(shadow):
        shadow.offer("news", [text], Choice(), [given])
        wait_until(lambda: shadow.counts()["documents"] == 1)
    with running(shadow, end=signal.SIGKILL):
        shadow.offer("news", ["wheat"] * n, Choice(), [Answer([], None)] * n)
        wait_until(lambda: shadow.counts()["documents"] > 1)
    tagged = shadow.counts()["documents"] - 1
    assert tagged < n
    with running(shadow, replaces=True):
        wait_until(lambda: shadow.counts()["failed_documents"] >= n - tagged)
        shadow.offer("news", [text], Choice(), [given])
        wait_until(lambda: shadow.counts()["documents"] > tagged + 1)
    assert shadow.counts()["failed_documents"] <= n - tagged + 1  # the one that it was tagging
    assert (tmp_path / "sample.jsonl").read_text().count(json.dumps(text)) == 2


def test_documents_that_failed_are_counted_once_even_if_the_replacement_dies_before_it_gets_any(newswire_tagger, other):
    shadow, n = Shadow("news", newswire_tagger, other), 5000
    with running(shadow, end=signal.SIGKILL):
        shadow.offer("news", ["wheat"] * n, Choice(), [Answer([], None)] * n)
        wait_until(lambda: shadow.counts()["documents"] > 1)
    with running(shadow, replaces=True, end=signal.SIGKILL):
        wait_until(lambda: shadow.counts()["failed_documents"] > 0)
    failed, tagged = shadow.counts()["failed_documents"], shadow.counts()["documents"]
    with running(shadow, replaces=True):
        shadow.offer("news", ["wheat"], Choice(), [Answer([], None)])
        wait_until(lambda: shadow.counts()["documents"] > tagged)
    assert shadow.counts()["failed_documents"] == failed


def test_what_a_busy_shadow_cannot_take_is_left_out(newswire_tagger, other):
    shadow = Shadow("news", newswire_tagger, other)
    left_out = []
    shadow.on_left_out = left_out.append
    work = Work(newswire_tagger, lambda n: None, lambda: 30.0, lambda *batch: shadow.offer("news", *batch))
    started = time.monotonic()
    for _ in range(2000):  # nobody takes them
        work.tags(["wheat"], Choice())
    assert sum(left_out) > 1000
    before = sum(left_out)
    shadow.offer("news", ["wheat " * 1_000_000, "tin"], Choice(), [])
    shadow.offer("news", ["\ud800"], Choice(), [])  # which is no JSON
    assert sum(left_out) == before + 3
    assert time.monotonic() - started < 60


def test_a_former_sample_is_kept_and_another_file_is_not_touched(newswire_tagger, other, tmp_path):
    sample = tmp_path / "sample.jsonl"
    sample.write_text('{"text": "Wheat", "served": ["wheat"], "shadow": []}\n')
    Shadow("news", newswire_tagger, other, sample)
    assert not sample.exists()
    assert "Wheat" in (tmp_path / "sample.jsonl.before").read_text()
    for content in ("precious notes\n", '{"text": "Wheat"}\n', "3\n"):
        sample.write_text(content)
        with pytest.raises(TextcatError, match="is no sample of a shadow"):
            Shadow("news", newswire_tagger, other, sample)
        assert sample.read_text() == content


def test_a_sample_has_each_line_with_the_same_probability():
    kept = Reservoir(20)
    for number in range(1000):
        kept.add({"number": number})
    numbers = [line["number"] for line in kept.lines]
    assert len({*numbers}) == 20
    assert 250 < sum(numbers) / 20 < 750


def test_a_shadow_of_other_topics_is_told_or_refused(newswire_tagger, tmp_path):
    rows = [
        {"text": f"{word} {k}", "topics": [topic]} for k in range(6) for word, topic in (("a", "wheat"), ("b", "x"))
    ]
    some = textcat.save(textcat.train(rows, "paum"), tmp_path / "some")
    assert Shadow("news", newswire_tagger, some).warning == (
        "the shadow lacks 49 topics of news and has 1 others: tags of the 1 topics that both have are compared"
    )
    none = textcat.save(
        textcat.train([{**row, "topics": [f"{row['topics'][0]}s"]} for row in rows], "paum"), tmp_path / "n"
    )
    with pytest.raises(TextcatError, match="none of the 50 topics of 'news'"):
        Shadow("news", newswire_tagger, none)
    with pytest.raises(TextcatError, match="is not a model"):
        Shadow("news", newswire_tagger, tmp_path / "absent")


def metric(server, name):
    with server.connect() as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65536):
            text += part
    found = re.findall(rf"^textcat_shadow_{name}_total{{.*}} ([0-9.e+]+)$", text.decode(), re.MULTILINE)
    return sum(map(float, found))


@pytest.mark.long
def test_a_server_with_a_shadow_answers_as_without_and_ends_with_it(serve, other, tmp_path):
    plain, server = (
        serve("--workers", "1"),
        serve("--workers", "2", "--shadow", other, "--shadow-sample", tmp_path / "s"),
    )
    assert server.ask(HEAD + BODY) == plain.ask(HEAD + BODY)
    wait_until(lambda: metric(server, "documents") == 1)
    assert metric(server, "left_out_documents") == metric(server, "failed_documents") == 0
    code, errors = server.stop()
    assert (code, errors) == (0, "textcat: stopped; running requests were answered.\n")


@pytest.mark.long
def test_a_shadow_ends_with_a_server_that_is_killed(serve, other):
    server = serve("--workers", "1", "--shadow", other)
    assert server.ask(HEAD + BODY)[0] == 200
    children = server.workers()
    assert len(children) == 2
    os.kill(server.process.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, children)))


@pytest.mark.long
def test_a_shadow_that_is_killed_is_replaced(serve, other):
    server = serve("--workers", "1", "--shadow", other)
    assert server.ask(HEAD + BODY)[0] == 200
    wait_until(lambda: metric(server, "documents") == 1)
    killed = next(child for child in server.workers() if os.sched_getscheduler(child) == os.SCHED_IDLE)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len({*server.workers()} - {killed}) == 2)
    assert server.ask(HEAD + BODY)[0] == 200
    wait_until(lambda: metric(server, "documents") == 2)
    events = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [event["process"] for event in events if event["event"] == "process_died"] == [killed]
    assert [event["failed_documents"] for event in events if event["event"] == "shadow_replaced"] == [0]


@pytest.mark.long
def test_the_page_shows_which_topics_differ(serve, other, new_page, look):
    server = serve("--workers", "1", "--shadow", other)
    page = new_page(f"{server.url}/shadow")
    page.locator("#topics", has_text="No topic differs yet").wait_for()
    body = json.dumps({"documents": [{"text": text} for text in DOCUMENTS]}).encode()
    head = b"POST /api/v1/models/news/tag-batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
    assert server.ask(head % len(body) + body)[0] == 200
    wait_until(lambda: metric(server, "documents") == len(DOCUMENTS))
    page.reload()
    page.wait_for_selector("#topics table")
    assert f"{len(DOCUMENTS)} documents" in page.locator("#facts").text_content()
    look(page, "shadow")
    page.set_viewport_size({"width": 360, "height": 700})
    look(page, "shadow, narrow")


@pytest.mark.long
def test_without_a_shadow_the_page_says_so(serve, new_page):
    page = new_page(f"{serve('--workers', '1').url}/shadow", provoked=True)
    page.locator("#error", has_text="start the server with --shadow").wait_for()
