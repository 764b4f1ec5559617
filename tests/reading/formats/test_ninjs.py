"""News items of ninjs: alone, in arrays, one a line and in feeds; their versions, and which are left out."""

import json
import time
from datetime import datetime

import pytest
from formats_read import parsed
from news_items import FIRST_NINJS as FIRST
from news_items import THIRD_NINJS as THIRD
from read_sources import ids, read

from textcat import open_corpus
from textcat.reading import FaultKind, Record, Rejection, find_sources
from textcat.reading.input_settings import InputSettings


def test_an_item_gives_its_texts_date_language_and_subjects(folder):
    (folder / "a.json").write_text(json.dumps(FIRST, indent=1))
    assert find_sources(["a.json"], InputSettings())[0].format == "ninjs"
    (record,) = read("a.json", fields=("*",))
    assert record.id == "urn:tin:1"
    assert record.zones == {
        "title": "Tin rose",
        "slugline": "tin-up",
        "abstract": "About tin.",
        "body": "Tin rose.\nOre & all.",
    }
    assert (record.date, record.language) == ("2024-05-01T10:00:00+02:00", "en-GB")
    assert record.fields["subjects"] == [
        {"scheme": "medtop", "code": "20000170", "name": "metal"},
        {"scheme": "house", "code": "tin", "name": ""},
    ]


def test_items_are_read_alike_however_they_are_kept(folder):
    (folder / "array.json").write_text(json.dumps([FIRST, THIRD], indent=2))
    (folder / "lines.jsonl").write_text(f"{json.dumps(FIRST)}\n{json.dumps(THIRD)}\n")
    (folder / "feed.json").write_text(json.dumps({"data": {"items": [{"item": FIRST}, {"item": THIRD}]}}, indent=2))
    (folder / "list.json").write_text(json.dumps({"total": 2, "item": [FIRST, THIRD]}, indent=2))
    (folder / "nameless").write_text(json.dumps([FIRST, THIRD]))
    array = read("array.json")
    assert ids(array) == ["urn:tin:1", "urn:tin:3"]
    for name in ("lines.jsonl", "feed.json", "list.json", "nameless"):
        assert [record._replace(source="") for record in read(name)] == [one._replace(source="") for one in array]


def test_an_item_may_be_wrapped_by_a_reply(folder):
    (folder / "a.json").write_text(json.dumps({"id": "call", "data": {"meta": {}, "item": FIRST}}))
    assert ids(read("a.json")) == ["urn:tin:1"]


def test_topics_are_those_of_the_scheme_that_is_chosen(folder):
    (folder / "a.json").write_text(json.dumps([FIRST, THIRD]))
    all_topics = [d.topics for d in open_corpus("a.json").train]
    assert all_topics == [("medtop:20000170", "house:tin"), ("medtop:20000171", "Money")]
    for scheme in ("medtop", "mediatopic"):
        chosen = open_corpus("a.json", settings=InputSettings(topics_scheme=scheme)).train
        expected = [("medtop:20000170",), ("medtop:20000171",)] if scheme == "medtop" else [(), ()]
        assert [d.topics for d in chosen] == expected
    assert [d.date for d in open_corpus("a.json").train] == ["2024-05-01T10:00:00+02:00", "2024-05-02T10:00:00Z"]


def test_the_newest_version_counts_and_a_canceled_one_is_told(folder):
    older, newer = {**FIRST, "version": "9"}, {**FIRST, "version": "10", "headline": "Tin rose again"}
    killed = {**THIRD, "version": "2", "pubStatus": "http://cv.iptc.org/newscodes/pubstatusg2/canceled"}
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, [newer, older, THIRD, killed])))
    kinds = [item.zones["title"] if isinstance(item, Record) else item.reason for item in read("a.jsonl")]
    assert kinds[0] == "Tin rose again"
    assert all("A newer version of" in kinds[i] for i in (1, 2))
    assert "or the same again, took its place" in kinds[1]
    assert "took its place, and was canceled" in kinds[2]
    assert "canceled" in kinds[3]
    assert [d.zones["title"] for d in open_corpus("a.jsonl").train] == ["Tin rose again"]


def test_embargoes_hold_until_their_date(folder):
    times = {"1": "2999-01-01T00:00:00Z", "2": "2001-01-01T00:00:00Z", "3": "", "4": None}
    items = [{**FIRST, "uri": uri, "embargoed": when} for uri, when in times.items()]
    (folder / "a.json").write_text(json.dumps(items))
    assert ids(read("a.json")) == ["2", "4"]
    assert "embargo until 2999-01-01" in read("a.json")[0].reason


@pytest.mark.parametrize(
    ("embargoed", "until"),
    [
        ("2024-05-01T10:00:00", "2024-05-01T10:00:00-12:00"),
        ("1 May 2024 10:00 CEST", "2024-05-01T10:00:00-12:00"),
        ("2024-05-01T10:00:00 CEST", "2024-05-01T10:00:00-12:00"),
        ("2024-05-01T10:00:00 EST", "2024-05-01T10:00:00-05:00"),
        ("2024-05-01 02:30 PM", "2024-05-01T14:30:00-12:00"),
        ("2024-05-01", "2024-05-01T00:00:00-12:00"),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T10:00:00+02:00"),
    ],
)
def test_an_embargo_without_a_time_zone_ends_when_its_time_has_passed_everywhere(folder, monkeypatch, embargoed, until):
    (folder / "a.json").write_text(json.dumps({**FIRST, "embargoed": embargoed}))
    end = datetime.fromisoformat(until).timestamp()
    monkeypatch.setattr(time, "time", lambda: end - 1)
    (rejection,) = read("a.json")
    assert (until in rejection.reason, rejection.due) == (True, end)
    monkeypatch.setattr(time, "time", lambda: end)
    assert ids(read("a.json")) == [FIRST["uri"]]


@pytest.mark.parametrize("embargoed", [False, 0, [], {}, "0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00"])
def test_what_is_no_embargo_or_lies_before_year_1_holds_nothing(folder, embargoed):
    (folder / "a.json").write_text(json.dumps({**FIRST, "embargoed": embargoed}))
    assert ids(read("a.json")) == [FIRST["uri"]]


@pytest.mark.parametrize("embargoed", ["9999-12-31T23:59:59", "9999-12-31T23:59:59-01:00"])
def test_an_embargo_may_end_after_year_9999(folder, embargoed):
    (folder / "a.json").write_text(json.dumps({**FIRST, "embargoed": embargoed}))
    (rejection,) = read("a.json")
    assert (rejection.kind, "until 9999" in rejection.reason) == (FaultKind.LEFT_OUT, True)


@pytest.mark.parametrize(
    ("embargoed", "told"),
    [
        *(("1714557600", "'1714557600'"), (1714557600, "'1714557600'"), (True, "'true'"), ([1], "'[1]'")),
        *((["\ud800"], "'["), ({"until": ["\ud800"]}, "'{"), (json.loads("[" * 900 + "]" * 900), "'[[[")),
        *(("next Monday", "'next Monday'"), ("2024-13-01", "'2024-13-01'"), ("x" * 999, f"'{'x' * 80}'")),
    ],
)
def test_an_embargo_that_is_no_date_is_an_error_with_its_value(folder, embargoed, told):
    (folder / "a.json").write_text(json.dumps({**FIRST, "embargoed": embargoed}))
    (rejection,) = read("a.json")
    assert (rejection.kind, f" {told}" in rejection.reason) == (FaultKind.CONTENT, True)
    assert "remove" not in rejection.reason


@pytest.mark.parametrize("embargoed", [True, "until further notice", 1714557600])
def test_news_whose_embargo_is_no_date_takes_the_place_of_its_older_version(folder, embargoed):
    versions = [{**FIRST, "version": "1"}, {**FIRST, "version": "2", "embargoed": embargoed}]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, [*versions, THIRD])))
    older, newer, _ = read("a.jsonl")
    assert (older.kind, newer.kind) == (FaultKind.LEFT_OUT, FaultKind.CONTENT)
    assert "A newer version of" in older.reason
    assert len(open_corpus("a.jsonl").train) == 1


def test_events_and_items_without_text_are_left_out_by_name(folder):
    event = {"uri": "urn:e", "type": "event", "versionCreated": "2024-05-01", "title": "Fair"}
    (folder / "a.json").write_text(json.dumps([event, {"uri": "urn:p", "version": "1", "pubStatus": "usable"}, FIRST]))
    event, empty, item = read("a.json")
    assert "event" in event.reason
    assert "no text" in empty.reason
    assert item.id == "urn:tin:1"
    assert len(open_corpus("a.json").train) == 1


def test_json_with_a_text_of_its_own_is_no_ninjs(folder):
    (folder / "a.jsonl").write_text('{"uri": "x", "headline": "Tin", "text": "Tin rose."}\n')
    (record,) = read("a.jsonl")
    assert record.zones == {"body": "Tin rose."}


def test_a_broken_item_gets_one_sentence():
    data = json.dumps([FIRST]).encode()
    for end in range(2, len(data) - 1, 7):
        (fault,) = parsed("ninjs", data[:end])
        assert isinstance(fault, Rejection)
        assert fault.reason.count("\n") == 0
    (fault,) = parsed("ninjs", b'[{"headline": "x", "version": ' + b"[" * 5000 + b"]}]")
    assert "not valid JSON" in fault.reason
    (fault,) = parsed("ninjs", b'{"a": 1}')
    assert "no uri" in fault.reason
    (record,) = parsed("ninjs", b'{"uri": 3, "guid": "g", "headline": [1], "body_text": "\\ud83d", "subject": 7}')
    assert record.zones == {"body": "?"}
