"""Files that are written again with their tags: which ones, in one step each, and only if they are new."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import forked_commands
import pytest
from commands import COMMAND
from news_items import BODY_OF_DATA, NITF, g2_item, g2_message
from read_sources import COMPRESSIONS, read, tarred, zipped

import textcat
from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, LabelSettings, Record, open_file, unpacked_stream
from textcat.runs import workers
from textcat.tagging import watch
from textcat.tagging import write_back as module
from textcat.tagging.edit_news import EDITORS, creator_of
from textcat.tagging.job import ReplacedError
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.write_back import base_of, check_inputs, write_back

READ, TOP = InputSettings(), OutputSettings(top=2)
NINJS = {"uri": "urn:1", "type": "text", "headlines": [{"value": "Wheat"}], "bodies": [{"value": "Wheat rose."}]}
G2 = g2_message(g2_item(1, BODY_OF_DATA)).encode()


@pytest.fixture
def folder(tmp_path):
    """Files of the three formats, in folders."""
    (tmp_path / "in" / "day").mkdir(parents=True)
    (tmp_path / "in" / "a.xml").write_bytes(G2)
    (tmp_path / "in" / "day" / "b.xml").write_text(NITF)
    (tmp_path / "in" / "day" / "c.json").write_text(json.dumps(NINJS))
    return tmp_path / "in"


def write(model, inputs, out, write=TOP, codes="", jobs=1, read=READ, **options):
    """Write inputs back; return the summary, and the reasons why files and items are left out."""
    inputs, reasons = [str(one) for one in inputs], []
    plan = make_plan(model, inputs, read, write, jobs=jobs, strict=options.pop("strict", False))
    summary = write_back(
        plan, out, base_of(inputs), codes, on_rejection=lambda one: reasons.append(str(one)), **options
    )
    return summary, reasons


def files_in(out):
    """The content of all files by their paths."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def n_tags(data):
    return data.count(b"textcat:newswire")


def test_files_get_their_tags_and_keep_their_paths(model, folder, out):
    summary, reasons = write(model, [folder], out)
    assert not reasons
    assert (summary.written, summary.before, summary.left_out, summary.counts.tagged) == (3, 0, 0, 3)
    assert {name: n_tags(data) for name, data in files_in(out).items()} == {
        "a.xml": 2,
        "day/b.xml": 2,
        "day/c.json": 2,
    }
    assert {path.name for path in out.iterdir()} == {"a.xml", "day", ".write-back.jsonl", ".write-back.lock"}
    tagger = textcat.load(model)
    (record,) = read(str(folder / "day" / "c.json"))
    scores = tagger.scores([record])
    expected = [tag[0] for tag in tagger.select(scores, top=2)[0]]
    assert [one["literal"] for one in json.loads((out / "day" / "c.json").read_bytes())["subjects"]] == expected


def test_files_whose_names_are_not_utf_8_are_written_under_the_same_bytes(model, folder, out):
    named = {b"caf\xe8.xml": G2, b"caf\xe9.xml": G2, b"\xe9.jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01"}
    for name, data in named.items():
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(data)
    summary, reasons = write(model, [folder], out, copy_rest=True)
    assert (summary.written, summary.left_out, reasons) == (5, 0, [])
    assert {*named} <= {*os.listdir(os.fsencode(out))}
    assert write(model, [folder], out, copy_rest=True)[0].before == 6


def test_paths_begin_at_the_folder_that_all_inputs_share(model, folder, out, monkeypatch):
    write(model, [folder / "a.xml"], out / "1")
    assert [*files_in(out / "1")] == ["a.xml"]
    write(model, [folder / "day", folder / "a.xml"], out / "2")
    assert [*files_in(out / "2")] == ["a.xml", "day/b.xml", "day/c.json"]
    write(model, [f"{folder}/d*/*.xml"], out / "3")
    assert [*files_in(out / "3")] == ["day/b.xml"]
    monkeypatch.chdir(folder)
    write(model, ["day", "./a.xml"], out / "4")
    write(model, ["."], out / "5")
    assert files_in(out / "5") == files_in(out / "4") == files_in(out / "2")


def test_another_input_that_changes_all_paths_is_told_once(model, folder, out, caplog):
    write(model, [folder / "day"], out)
    assert write(model, [folder / "day"], out)[0].before == 2
    assert not caplog.messages
    write(model, [folder], out)
    (told,) = caplog.messages
    assert f"begin at {folder} now, no longer at {folder}/day" in told
    assert write(model, [folder], out)[0].before == 3
    moved = folder.rename(folder.parent / "moved")
    assert write(model, [moved], out)[0].before == 3
    assert len(caplog.messages) == 1


def test_each_item_of_a_file_gets_its_tags(model, folder, out):
    for path in folder.rglob("*.*"):
        path.unlink()
    items = [g2_item(n, BODY_OF_DATA, status="canceled" if n == 2 else "usable") for n in (1, 2, 3, 1)]
    (folder / "a.xml").write_text(g2_message(*items))
    feed = {"meta": "é", "data": {"items": [{"item": NINJS | {"uri": f"urn:{n}"}} for n in range(3)]}}
    (folder / "b.json").write_text(json.dumps(feed, ensure_ascii=False, indent=1))
    (folder / "c.json").write_text(json.dumps([NINJS, NINJS | {"uri": "urn:2"}]))
    (folder / "d.jsonl").write_text("".join(json.dumps(NINJS | {"uri": f"urn:{n}"}) + "\r\n" for n in range(40)))
    summary, reasons = write(model, [folder], out, read=InputSettings(block_bytes=500))
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "Item 2 is canceled by its publisher, so it is left out."
    ]
    assert {name: n_tags(data) for name, data in files_in(out).items()} == {
        "a.xml": 6,
        "b.json": 6,
        "c.json": 4,
        "d.jsonl": 80,
    }
    assert (summary.counts.tagged, summary.written) == (48, 4)
    for name, data in files_in(out).items():
        ids = [one.id for one in read(str(out / name)) if isinstance(one, Record)]
        assert ids == [one.id for one in read(str(folder / name)) if isinstance(one, Record)]
        assert name == "a.xml" or json.loads(data.split(b"\r\n")[0])


def test_a_record_that_is_too_long_leaves_the_others_their_tags(model, folder, out):
    items = [g2_item(n, BODY_OF_DATA.replace("Tin", "Tin " * (4000 if n == 2 else 1))) for n in (1, 2, 3)]
    (folder / "a.xml").write_text(g2_message(*items))
    _, reasons = write(model, [folder / "a.xml"], out, read=InputSettings(block_bytes=500, max_bytes=5000))
    assert ["at most 5000" in reason for reason in reasons] == [True]
    found = files_in(out)["a.xml"]
    assert [n_tags(item) for item in found.split(b"</newsItem>")] == [2, 0, 2, 0]


def test_feeds_whose_items_cannot_be_told_apart_are_left_out(model, folder, out):
    feed = json.dumps({"items": [NINJS, NINJS | {"uri": "urn:2"}]})
    (folder / "a.json").write_text(f"{feed}\n{feed}\n")
    summary, reasons = write(model, [folder / "a.json"], out)
    assert ["write each feed to a file" in reason for reason in reasons] == [True]
    counts = summary.counts
    assert (counts.records, counts.tagged, counts.rejected, counts.faults) == (4, 3, 1, 1)
    assert not files_in(out)


def test_what_has_nothing_to_tag_is_left_out_with_the_reason(model, folder, out):
    (folder / "day" / "b.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA, status="canceled")))
    (folder / "cut.xml").write_bytes(G2[:-8])
    (folder / "list.json").write_text(json.dumps([NINJS, NINJS])[:-1])
    (folder / "empty.xml").write_bytes(b"")
    (folder / "bomb.xml").write_bytes(
        b'<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]>' + g2_item(1, BODY_OF_DATA).replace("Tin", "&y;").encode()
    )
    (folder / "table.csv").write_text("id,text\n1,wheat\n")
    (folder / "lines.jsonl").write_text('{"text": "wheat"}\n{"text": "gold"}\n')
    (folder / "feed.xml").write_text('<r:RDF xmlns:r="r"><item r:about="1"><title>Tin</title></item></r:RDF>')
    summary, reasons = write(model, [folder], out)
    assert [*files_in(out)] == ["a.xml", "day/c.json"]
    told = {reason.partition(": ")[0].removeprefix(f"{folder}/"): reason for reason in reasons}
    assert "canceled" in told["day/b.xml:1"]
    assert "ends without </newsMessage>" in told["cut.xml:2"]
    assert "ends without ]" in told["list.json:3"]
    assert "has no news item" in told["empty.xml"]
    assert "not well-formed XML" in told["bomb.xml:1"]
    assert summary.formats == {"csv": 1, "jsonl": 1, "RSS 1": 1}
    assert (summary.written, summary.left_out) == (2, 5)


def test_a_file_that_is_not_written_any_more_loses_its_earlier_copy(model, folder, out):
    stories = ["killed", "held", "cut", "empty", "none", "feed", "table", "kept"]
    for name in stories:
        (folder / f"{name}.json").write_text(json.dumps(NINJS))
    (folder / "cut.xml").write_bytes(G2)
    write(model, [folder], out)
    (folder / "killed.json").write_text(json.dumps(NINJS | {"pubstatus": "canceled"}))
    (folder / "held.json").write_text(json.dumps(NINJS | {"embargoed": "2999-01-01T00:00:00Z"}))
    (folder / "cut.json").write_text(json.dumps(NINJS)[:-9])
    (folder / "cut.xml").write_bytes(G2[:-8])
    (folder / "empty.json").write_text("")
    (folder / "none.json").write_text(json.dumps({"items": []}))
    (folder / "feed.json").write_text(json.dumps(NINJS | {"type": "event"}))
    (folder / "table.json").write_text('[{"text": "Tin"}]')
    for restart in (False, True):
        _, reasons = write(model, [folder], out, restart=restart)
        assert [*files_in(out)] == ["a.xml", "day/b.xml", "day/c.json", "kept.json"]
        removed = sorted(reason.partition(": ")[0] for reason in reasons if "is removed" in reason)
        names = [
            "cut.json",
            "cut.xml",
            *(f"{name}.json" for name in ("empty", "feed", "held", "killed", "none", "table")),
        ]
        assert removed == [str(folder / name) for name in names if not restart]
    (folder / "killed.json").write_text(json.dumps(NINJS))
    assert write(model, [folder], out)[0].written == 1


def test_a_file_that_cannot_be_read_now_keeps_its_earlier_copy(model, folder, out):
    write(model, [folder], out)
    (folder / "a.xml").unlink()
    (folder / "a.xml").symlink_to("nowhere")
    write(model, [folder], out)
    assert "a.xml" in files_in(out)


def test_nothing_out_of_the_folder_is_removed(model, folder, out, tmp_path):
    write(model, [folder], out)
    (out / "day").rename(tmp_path / "elsewhere")
    (out / "day").symlink_to(tmp_path / "elsewhere")
    (folder / "day" / "c.json").write_text(json.dumps(NINJS | {"pubstatus": "canceled"}))
    write(model, [folder], out)
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["b.xml", "c.json"]


def test_an_encoding_and_a_declaration_stay(model, folder, out):
    text = NITF.replace("UTF-8", "iso-8859-1").replace("&eacute;", "é").replace("\n", "\r\n").replace("metal<", "gül<")
    (folder / "day" / "b.xml").write_bytes(text.encode("latin-1"))
    (folder / "day" / "c.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(NINJS).encode())
    (folder / "a.xml").write_text(G2.decode().replace("UTF-8", "UTF-16"), encoding="utf-16")
    _summary, reasons = write(model, [folder], out)
    found = files_in(out)
    ours = [line for line in found["day/b.xml"].split(b"\r\n") if b"textcat:" in line]
    assert len(ours) == 2
    behind = b"Tin ore</classifier>\r\n"
    added = b"".join(one + b"\r\n" for one in ours)
    assert found["day/b.xml"] == text.encode("latin-1").replace(behind, behind + added)
    assert found["day/c.json"].startswith(b"\xef\xbb\xbf{")
    assert not reasons
    assert found["a.xml"].startswith(b"\xff\xfe<\0")
    (folder / "a.xml").write_bytes(G2)
    write(model, [folder / "a.xml"], out / "2")
    expected = (out / "2" / "a.xml").read_text().replace("UTF-8", "UTF-16")
    assert found["a.xml"].decode("utf-16") == expected
    assert n_tags(expected.encode()) == 2


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_files_are_written_as_they_are(model, folder, out, ending):
    (folder / f"a.xml{ending}").write_bytes(COMPRESSIONS[ending](G2))
    write(model, [folder / f"a.xml{ending}"], out / "1")
    write(model, [folder / "a.xml"], out / "2")
    stored = open_file(str(out / "1" / f"a.xml{ending}"))
    with closing(stored):
        assert unpacked_stream(stored, f"a{ending}").read(1 << 20) == files_in(out / "2")["a.xml"]


def test_a_table_gives_topics_codes(model, folder, out, tmp_path, caplog):
    topics = textcat.load(model).topics
    table = tmp_path / "codes.csv"
    table.write_text(
        "topic,code,name\n" + "".join(f"{topic},medtop:{i},{topic} x\n" for i, topic in enumerate(topics[1:]))
    )
    write(model, [folder], out, codes=str(table))
    assert f"Topics without a code in {table} are written by their names, 1: {topics[0]}." in caplog.text
    codes = {f"medtop:{i}" for i in range(len(topics))}
    for name in files_in(out):
        (record,) = read(str(out / name), labels=LabelSettings(), topics_scheme="medtop")
        assert len({*record.topics} & codes - {"medtop:20000170"}) >= 1
    before = files_in(out)
    table.write_text(table.read_text().replace("medtop:", "house:"))
    assert write(model, [folder], out, codes=str(table))[0].written == 3
    assert files_in(out) != before
    table.write_text("topic,code\nnone,medtop:1\n")
    with pytest.raises(TextcatError, match="no code for any topic"):
        write(model, [folder], out, codes=str(table))


def test_the_next_run_writes_only_what_is_new_or_has_changed(model, folder, out):
    write(model, [folder], out)
    times = {name: (out / name).stat().st_mtime_ns for name in files_in(out)}
    summary, _ = write(model, [folder], out)
    assert (summary.written, summary.before, summary.counts.records) == (0, 3, 0)
    (folder / "new.xml").write_bytes(G2)
    (folder / "a.xml").write_bytes(G2 + b"<!-- changed -->")
    (out / "day" / "b.xml").unlink()
    summary, _ = write(model, [folder], out)
    assert (summary.written, summary.before) == (3, 1)
    assert (out / "day" / "c.json").stat().st_mtime_ns == times["day/c.json"]
    assert files_in(out)["a.xml"].endswith(b"<!-- changed -->")
    assert write(model, [folder], out)[0].written == 0
    assert write(model, [folder], out, write=OutputSettings(top=1))[0].written == 4
    assert {n_tags(data) for data in files_in(out).values()} == {1}
    assert write(model, [folder], out, write=OutputSettings(top=1), restart=True)[0].written == 4


def test_a_file_that_is_restored_to_a_former_state_is_written_again(model, folder, out):
    path, kept = folder / "a.xml", folder.parent / "kept.xml"
    for content in (G2, G2 + b"<!-- changed -->"):
        path.write_bytes(content)
        assert write(model, [folder], out)[0].written
        if not kept.exists():
            shutil.copy2(path, kept)
    shutil.copy2(kept, path)  # with its former time
    summary, _ = write(model, [folder], out)
    assert (summary.written, summary.before) == (1, 2)
    assert not files_in(out)["a.xml"].endswith(b"<!-- changed -->")
    assert write(model, [folder], out)[0].before == 3


def test_processes_write_what_the_process_itself_does(model, folder, out, monkeypatch):
    for n in range(12):
        (folder / f"{n}.xml").write_text(g2_message(*(g2_item(i % 9, BODY_OF_DATA) for i in range(n))))
    read = InputSettings(block_bytes=2000)
    write(model, [folder], out / "1", read=read)
    monkeypatch.setattr(workers, "IN_PROCESS_BYTES", 0)
    write(model, [folder], out / "2", read=read, jobs=2)
    write(model, [folder], out / "3")
    assert files_in(out / "1") == files_in(out / "2") == files_in(out / "3")


def test_nothing_is_written_out_of_the_folder(model, folder, out, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.xml").write_text("kept")
    write(model, [folder / "a.xml"], out)
    (out / "day").symlink_to(outside)
    (out / "a.xml").unlink()
    (out / "a.xml").symlink_to(outside / "kept.xml")
    summary, reasons = write(model, [folder], out, restart=True)
    assert len([reason for reason in reasons if "out of the folder" in reason]) == 2
    assert [path.name for path in outside.iterdir()] == ["kept.xml"]
    assert (outside / "kept.xml").read_text() == "kept"
    assert not (out / "a.xml").is_symlink()
    assert (summary.written, summary.left_out) == (1, 2)


def test_a_name_that_the_folder_cannot_have_is_told(model, folder, out):
    write(model, [folder / "a.xml"], out)
    (out / "day").write_text("a file")
    summary, reasons = write(model, [folder], out)
    assert len([reason for reason in reasons if "cannot be written to" in reason and "rename it" in reason]) == 2
    assert summary.left_out == 2
    (folder / ".write-back.jsonl").write_text(json.dumps(NINJS))
    _, reasons = write(model, [folder / ".write-back.jsonl"], out)
    assert "over its journal" in reasons[0]


def test_a_folder_that_is_not_ours_is_refused(model, folder, out, tmp_path):
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(TextcatError, match=r"holds 'mine.txt', but no journal of --write-back: name another folder"):
        write(model, [folder], out)
    for overlapping in (folder, folder / "out", folder.parent):
        with pytest.raises(TextcatError, match="overlap"):
            write(model, [folder], overlapping)
    with pytest.raises(TextcatError, match="cannot be written back: name files or folders"):
        write_back(make_plan(model, ["-"]), tmp_path / "new", ".")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".write-back.jsonl").write_bytes(b'{"a": 1, "crc32": 2}\n')
    write(model, [folder], tmp_path / "other")  # a damaged journal lists nothing
    assert len(files_in(tmp_path / "other")) == 3


def refused(model, inputs, out, read=READ):
    """What is said of inputs that cannot be written back; "" if they can."""
    try:
        check_inputs(make_plan(model, [str(one) for one in inputs], read), out)
    except TextcatError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("b.zip", zipped(("x.xml", G2))),
        ("b.ZIP", b""),
        ("b.tar", tarred(("x.xml", G2))),
        ("nameless", tarred(("x.xml", G2))),
        ("short", zipped(("x.xml", G2))),
        ("packed", COMPRESSIONS[".xz"](tarred(("x.xml", G2)))),
        *((f"b.tar{ending}", pack(tarred(("x.xml", G2)))) for ending, pack in COMPRESSIONS.items()),
        ("b.tgz", b"damaged"),
    ],
)
def test_zips_and_tars_are_refused_before_anything_is_written(model, folder, out, name, data):
    path = folder / "day" / name
    path.write_bytes(data)
    for inputs in ([path], [folder], [folder / "a.xml", folder / "day"], [f"{folder}/d*/*"]):
        sentence = refused(model, inputs, out)
        assert sentence.startswith(f"{path} is a zip or tar")
        assert "unpack archives first" in sentence
    assert not out.exists()


def test_a_refusal_counts_the_archives(model, folder, out):
    for name in ("b.zip", "c.zip", "day/d.tgz"):
        (folder / name).write_bytes(zipped(("x.xml", G2)))
    assert refused(model, [folder], out).startswith(f"{folder}/b.zip and 2 other files are zips or tars")


def test_files_are_no_archives_that_are_left_out_or_are_packed_otherwise(model, folder, out):
    (folder / "a.xml.gz").write_bytes(COMPRESSIONS[".gz"](G2))
    (folder / "zip").write_bytes(COMPRESSIONS[".xz"](G2))
    (folder / "b.docx").write_bytes(zipped(("word/document.xml", b"<w/>")))
    (folder / ".hidden.zip").write_bytes(zipped(("x.xml", G2)))
    (folder / "nothing").write_bytes(b"")
    (folder / "gone.zip").symlink_to(folder / "nowhere.zip")
    assert refused(model, [folder], out) == ""
    (folder / "old.zip").write_bytes(zipped(("x.xml", G2)))
    assert refused(model, [folder], out)
    assert refused(model, [folder], out, InputSettings(for_files=(("*.zip", (("skip", True),)),))) == ""


def test_two_runs_do_not_write_to_the_same_folder(model, folder, out):
    out.mkdir()
    lock = disk.acquire_lock(out / ".write-back.lock", "")
    with pytest.raises(TextcatError, match="Another run is writing"):
        write(model, [folder], out)
    lock.release()


def test_a_full_disk_ends_the_run_with_a_sentence_and_leaves_whole_files(model, folder, out, monkeypatch):
    n_synced = []

    def sync(file):
        n_synced.append(file)
        if len(n_synced) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "sync", sync)
    with pytest.raises(TextcatError, match=r"No space left on device.*the same command resumes the run"):
        write(model, [folder], out)
    assert len(files_in(out)) < 3
    monkeypatch.undo()
    write(model, [folder], out)
    write(model, [folder], out.with_name("whole"))
    assert files_in(out) == files_in(out.with_name("whole"))


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_run(model, folder, out, monkeypatch):
    edit = module.edit_batch

    def edit_slowly(work, batch):
        (folder / "a.xml").write_bytes(G2 + b"\n")
        return edit(work, batch)

    monkeypatch.setattr(module, "edit_batch", edit_slowly)
    summary, reasons = write(model, [folder], out)
    assert [*files_in(out)] == ["day/b.xml", "day/c.json"]
    assert "has changed while it was read, so it is left out: give the same command again" in reasons[0]
    assert summary.left_out == 1
    monkeypatch.undo()
    assert write(model, [folder], out)[0].written == 1


def test_an_item_whose_tags_cannot_be_written_is_rejected_alone(model, folder, out, monkeypatch, caplog):
    monkeypatch.setitem(EDITORS, "nitf", lambda *_: 1 / 0)
    summary, reasons = write(model, [folder], out)
    assert [*files_in(out)] == ["a.xml", "day/c.json"]
    assert "cannot be written into it (ZeroDivisionError" in reasons[0]
    assert summary.left_out == 1


@pytest.mark.parametrize("value", [{"a": 1}, "wheat", 7, False])
def test_an_item_whose_subjects_are_no_list_is_rejected_by_name_and_not_counted_as_tagged(model, folder, out, value):
    items = [NINJS | {"uri": f"urn:{i}"} for i in range(3)]
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, [items[0], items[1] | {"subjects": value}, items[2]])))
    (folder / "one.json").write_text(json.dumps({"uri": "u1", "body_text": "Wheat rose.", "subject": value}))
    summary, reasons = write(model, [folder], out)
    assert [reason.partition(": ")[0] for reason in reasons] == [f"{folder}/list.jsonl:2", f"{folder}/one.json:1"]
    assert "its field subjects is not a list" in reasons[0]
    assert "its field subject is not a list" in reasons[1]
    counts = summary.counts
    assert (counts.records, counts.tagged, counts.rejected, counts.faults) == (7, 5, 2, 2)
    assert [n_tags(line) for line in files_in(out)["list.jsonl"].splitlines()] == [2, 0, 2]
    assert "one.json" not in files_in(out)


def test_strict_ends_the_run_at_the_first_rejection(model, folder, out):
    (folder / "a.xml").write_bytes(G2[:-30])
    with pytest.raises(TextcatError, match="ends because of --strict"):
        write(model, [folder], out, strict=True)
    (folder / "a.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA, status="canceled")))
    summary, reasons = write(model, [folder], out, strict=True)  # left out on purpose
    assert (summary.left_out, len(reasons)) == (1, 1)


def test_a_creator_has_the_name_of_the_model(tmp_path):
    assert creator_of(tmp_path / "Our model, é") == "textcat:Our-model-"
    assert creator_of(tmp_path / "models" / "..") == f"textcat:{tmp_path.name}"


KILLS = 20 if os.environ.get("TEXTCAT_LONG") else 6


@pytest.mark.sampled
def test_whenever_a_run_is_killed_each_file_is_old_or_new(model, tmp_path):
    source, out, draw = tmp_path / "in", tmp_path / "out", random.Random(5)
    for n in range(200):
        path = source / str(n % 7) / f"{n}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(g2_message(*(g2_item(i + 1, BODY_OF_DATA) for i in range(1 + n % 3))))
        if n % 10 == 0:
            path.with_suffix(".xml.gz").write_bytes(COMPRESSIONS[".gz"](path.read_bytes()))
    states = []
    for top in (1, 2):
        write(model, [source], tmp_path / f"whole{top}", write=OutputSettings(top=top))
        states.append(files_in(tmp_path / f"whole{top}"))
    command = [*COMMAND, "tag", model, source, "--write-back", out, "-j", "1"]
    n_running = 0
    for kill in range(KILLS):
        # Every second model writes all files again, so that there are old ones in the folder.
        top = kill * 4 // KILLS % 2
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        process = forked_commands.Popen([*command, "--top", top + 1], **options)
        journal = out / ".write-back.jsonl"
        before, started = journal.stat().st_mtime_ns if journal.exists() else 0, time.monotonic()
        while process.poll() is None and time.monotonic() - started < 20:
            if journal.exists() and journal.stat().st_mtime_ns != before:
                break
            time.sleep(0.002)
        time.sleep(draw.random() * 0.15)
        n_running += process.poll() is None
        process.send_signal(signal.SIGKILL if kill % 4 else signal.SIGTERM)
        error = process.communicate(timeout=60)[1].decode()
        assert "Traceback" not in error, error
        for name, data in files_in(out).items():
            assert data in (states[0][name], states[1][name]), name
    assert n_running >= KILLS // 2
    write(model, [source], out, write=OutputSettings(top=2))
    assert files_in(out) == states[1]
    assert not (out / ".write-back.part").exists()


def test_files_that_arrive_in_a_watched_folder_are_written_back(model, folder, out, tmp_path):
    for path in folder.rglob("*.*"):
        os.utime(path, ns=(1, 1))
    (folder / "old.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA, status="canceled")))
    os.utime(folder / "old.xml", ns=(1, 1))
    summaries = []

    def after(plan):
        reasons = []
        options = {"on_rejection": lambda one: reasons.append(one)}
        summaries.append((write_back(plan, out, base_of([str(folder)]), **options), reasons))

    def show(summary):
        if len(summaries) == 1:
            (folder / "new.xml").write_bytes(G2)
            (folder / "a.xml").write_bytes(G2 + b"<!-- changed -->")
            (folder / "late.zip").write_bytes(zipped(("x.xml", G2)))
            (folder / "late").write_bytes(tarred(("x.xml", G2)))

    plan = partial(make_plan, model, [str(folder)], InputSettings(), TOP, jobs=1)
    watch.watch_archive(plan, [str(folder)], tmp_path / "tags", show, rounds=2, after=after)
    (first, told), (second, told_again) = summaries
    assert (first.written, first.left_out, second.written, second.before) == (3, 1, 2, 0)
    assert second.formats == {"zip": 1}
    assert (len(told), [one.source for one in told_again]) == (1, [f"{folder}/late/x.xml"])
    assert [*files_in(out)] == ["a.xml", "day/b.xml", "day/c.json", "new.xml"]


def hasten(monkeypatch):
    """Let a watching process look a hundred times as often."""
    clock = {"time": time.time, "time_ns": time.time_ns, "sleep": lambda seconds: time.sleep(seconds / 100)}
    monkeypatch.setattr(watch, "time", SimpleNamespace(**clock, monotonic=lambda: 100 * time.monotonic()))


def test_watching_waits_until_its_files_can_be_written_back(model, folder, out, tmp_path, monkeypatch):
    for path in folder.rglob("*.*"):
        os.utime(path, ns=(1, 1))
    hasten(monkeypatch)
    calls = []

    def after(plan):
        calls.append(plan)
        if len(calls) in (2, 3):
            raise (disk.LockedError, ReplacedError)[len(calls) - 2]("It is not possible now.")
        write_back(plan, out, base_of([str(folder)]))
        if len(calls) == 4:
            (folder / "last.xml").write_bytes(G2)

    def show(summary):
        if len(calls) == 1:
            (folder / "new.xml").write_bytes(G2)

    plan = partial(make_plan, model, [str(folder)], InputSettings(), TOP, jobs=1)
    watch.watch_archive(plan, [str(folder)], tmp_path / "tags", show, rounds=3, after=after)
    assert (len(calls), [*files_in(out)][-2:]) == (5, ["last.xml", "new.xml"])


def test_watching_writes_all_files_back_that_another_model_tags_anew(
    model, other_model, folder, out, tmp_path, monkeypatch
):
    hasten(monkeypatch)
    for path in folder.rglob("*.*"):
        os.utime(path, ns=(1, 1))
    shutil.copytree(model, tmp_path / "newswire")
    numbers = []

    def after(plan):
        numbers.append(write_back(plan, out, base_of([str(folder)])).written)

    def show(summary):
        if len(numbers) == 2:
            shutil.rmtree(tmp_path / "newswire")
            shutil.copytree(other_model, tmp_path / "newswire")
        if len(numbers) < 3:
            (folder / f"{len(numbers)}.xml").write_bytes(G2)

    plan = partial(make_plan, tmp_path / "newswire", [str(folder)], InputSettings(), TOP, jobs=1)
    watched = [str(folder)], tmp_path / "tags", show
    watch.watch_archive(plan, *watched, rounds=3, after=after, model_changes="all")
    assert numbers == [3, 1, 5]
