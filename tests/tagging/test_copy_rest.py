"""`--write-back --copy-rest`: a folder of news is passed on whole, what gets no tags as it is, each kind counted."""

import json
import os
import time
from contextlib import suppress

import pytest
from interrupted_runs import EVERY, Killed, count_steps
from news_items import BODY_OF_DATA, g2_item, g2_message
from news_versions import item
from read_sources import COMPRESSIONS, tarred, zipped

from textcat.reading import InputSettings
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.write_back import base_of, check_inputs, write_back

READ = InputSettings()
G2 = g2_message(g2_item(1, BODY_OF_DATA)).encode()
CANCELED = g2_message(g2_item(1, BODY_OF_DATA, status="canceled")).encode()
EVENT = {"uri": "urn:event", "type": "event", "name": "Fair", "standard": {"name": "ninjs", "version": "3.0"}}
TAGGED = {"a.xml": G2, "packed.xml.gz": COMPRESSIONS[".gz"](G2), "day/two.xml": g2_message(*[g2_item(1)] * 2).encode()}
REST = {
    "canceled.xml": CANCELED,
    "canceled.xml.gz": COMPRESSIONS[".gz"](CANCELED),
    "day/empty.jsonl": b"",
    "day/event.json": json.dumps(EVENT).encode(),
    "day/notes.txt": b"wheat",
    "day/picture.jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01",
    "day/table.csv": b"id,text\n1,wheat\n",
    "day/tar": tarred(("x.xml", G2)),
    "day/video.mp4": b"\x00\x00\x00\x20ftypmp42",
    "no_text.json": json.dumps({**item("urn:none", 1), "body_text": "", "headline": ""}).encode(),
    "packed.zip": zipped(("x.xml", G2)),
}


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture
def folder(tmp_path):
    for name, data in (TAGGED | REST).items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "in"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def pass_on(model, folder, out, read=READ, **options):
    """Write a folder back; return the summary, and the reasons of rejections."""
    plan, reasons = make_plan(model, [str(folder)], read, OutputSettings(top=2), jobs=1), []
    check_inputs(plan, out, skip_archives=True)
    options = {"copy_rest": True, "on_rejection": lambda one: reasons.append(str(one))} | options
    return write_back(plan, out, base_of([str(folder)]), **options), reasons


def files_in(folder):
    files = (
        path for path in folder.rglob("*") if path.is_file() and ".write-back" not in str(path.relative_to(folder))
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_every_file_is_there_and_only_those_with_news_differ(model, folder, out):
    summary, reasons = pass_on(model, folder, out)
    written = files_in(out)
    assert written.keys() == (TAGGED | REST).keys()
    assert {name: written[name] for name in REST} == REST
    assert not [name for name in TAGGED if written[name] == TAGGED[name]]
    assert (summary.written, summary.copied.total(), summary.left_out, summary.counts.faults) == (3, len(REST), 0, 0)
    assert not reasons
    assert not summary.formats


def test_each_kind_of_file_that_is_copied_is_counted(model, folder, out):
    assert pass_on(model, folder, out)[0].copied == {
        "Item … is canceled by its publisher.": 2,
        "It has no news item that could be tagged.": 1,
        "Item … is an event, not a news item.": 1,
        "It is text, which has no place for tags.": 1,
        "The file is a picture.": 1,
        "It is csv, which has no place for tags.": 1,
        "It is an archive, which has no place for tags.": 1,
        "The file is a video.": 1,
        "Item … has no text, as its content is elsewhere or empty.": 1,
        "It is zip, which has no place for tags.": 1,
    }


def test_the_next_run_copies_only_what_is_new_or_has_changed(model, folder, out):
    pass_on(model, folder, out)
    (folder / "day" / "table.csv").write_bytes(b"id,text\n2,tin\n")
    (folder / "day" / "new.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    summary, _ = pass_on(model, folder, out)
    assert (summary.before, summary.written, summary.copied.total()) == (len(TAGGED | REST) - 1, 0, 2)
    assert files_in(out).keys() == files_in(folder).keys()
    assert (out / "day" / "table.csv").read_bytes() == b"id,text\n2,tin\n"


def test_a_cancellation_takes_the_place_of_the_item_that_was_written(model, folder, out):
    pass_on(model, folder, out)
    assert b"textcat:" in (out / "a.xml").read_bytes()
    (folder / "a.xml").write_bytes(CANCELED)
    pass_on(model, folder, out)
    assert (out / "a.xml").read_bytes() == CANCELED


def test_news_under_embargo_is_passed_on_and_gets_its_tags_later(model, tmp_path, out, monkeypatch):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.json"
    path.write_text(json.dumps(item("urn:1", 1) | {"embargoed": "2090-01-01T00:00:00Z"}))
    for _ in range(2):
        assert pass_on(model, path.parent, out)[0].copied.total() == 1
        assert (out / "a.json").read_bytes() == path.read_bytes()
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert pass_on(model, path.parent, out)[0].written == 1
    assert b"textcat:" in (out / "a.json").read_bytes()


def test_a_broken_file_is_copied_and_told_each_time(model, tmp_path, out):
    (tmp_path / "in").mkdir()
    broken = COMPRESSIONS[".gz"](G2 * 50)[:-20]
    (tmp_path / "in" / "a.xml.gz").write_bytes(broken)
    for _ in range(2):
        summary, reasons = pass_on(model, tmp_path / "in", out)
        assert (summary.written, summary.copied.total(), len(reasons)) == (0, 1, 1)
        assert summary.counts.faults == 1
    assert (out / "a.xml.gz").read_bytes() == broken


def test_a_file_that_cannot_be_read_is_left_out_and_told(model, folder, out):
    (folder / "link").symlink_to("nowhere")
    summary, (reason,) = pass_on(model, folder, out)
    assert (summary.left_out, summary.copied.total()) == (1, len(REST))
    assert "cannot be read" in reason
    assert not (out / "link").exists()


def test_files_that_are_skipped_are_not_passed_on(model, folder, out):
    read = InputSettings(for_files=(("*.csv", (("skip", True),)), ("*.xml", (("skip", True),))))
    pass_on(model, folder, out, read)
    kept = {name for name in TAGGED | REST if not name.endswith((".csv", ".xml"))}
    assert files_in(out).keys() == kept


def test_without_the_option_nothing_is_copied(model, folder, out):
    for name in ("packed.zip", "day/tar"):
        os.remove(folder / name)
    summary, _ = pass_on(model, folder, out, copy_rest=False)
    assert files_in(out).keys() == TAGGED.keys()
    assert not summary.copied


@pytest.mark.sampled
def test_whenever_the_run_is_killed_each_file_is_whole_or_missing(model, folder, out, tmp_path, monkeypatch):
    left = count_steps(monkeypatch)
    pass_on(model, folder, tmp_path / "whole")
    expected, n_steps = files_in(tmp_path / "whole"), left[1]
    for step in range(2, n_steps, EVERY):
        left[:] = [step, 0]
        with suppress(Killed):
            pass_on(model, folder, tmp_path / str(step))
        left[:] = [-1, 0]
        found = files_in(tmp_path / str(step))
        assert {name: expected[name] for name in found} == found
        pass_on(model, folder, tmp_path / str(step))
        assert files_in(tmp_path / str(step)) == expected
