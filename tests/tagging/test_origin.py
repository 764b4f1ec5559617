"""Beside its tags, an archive says where its documents are, and they are read again from there."""

import gzip
import json
import os
import zipfile
from functools import partial

import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.reading import InputSettings
from textcat.runs.files import tagged_files
from textcat.runs.records import ORIGIN
from textcat.tagging.origin import RunOrigin
from textcat.tagging.shards import read_tags


def lines(first, n, field="text"):
    return "".join(json.dumps({"id": f"={first + i}", field: f"wheat {first + i}"}) + "\n" for i in range(n))


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Inputs of many kinds, named from their folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.jsonl").write_text(lines(0, 5))
    (tmp_path / "in" / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(lines(5, 5).encode()))
    (tmp_path / "in" / "c.txt").write_text("wheat and gold")
    with zipfile.ZipFile(tmp_path / "in" / "d.zip", "w") as file:
        file.writestr("e/f.jsonl", lines(10, 3))
    (tmp_path / "=g.csv").write_text("id,text\n-1,wheat\n2,gold\n")
    return ["in", "=g.csv"]


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_all_documents_are_read_again_from_another_folder(inputs, newswire_model, tmp_path, monkeypatch, to):
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from textcat.tagging.output import OutputSettings

    textcat.tag_archive(newswire_model, inputs, "out", jobs=1, output_settings=OutputSettings(to=to))
    rows = [*read_tags(tmp_path / "out")]
    assert len(rows) == 16
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    origin = RunOrigin.read(tmp_path / "out")
    found = origin.read_documents({(row.source, row.position, row.id) for row in rows})
    ids = [row.id[1:] if row.id.startswith(("'=", "'-")) else row.id for row in rows]
    ids = [str(tmp_path / id_) if id_ == "in/c.txt" else id_ for id_ in ids]  # the file's name is its id
    assert [found[row.source, row.position, row.id].id for row in rows] == ids
    some = {(row.source, row.position, row.id) for row in rows[3:12:4]}
    assert {*origin.read_documents(some)} == some


def test_documents_of_renamed_files_are_read_again(inputs, newswire_model, tmp_path):
    tag = partial(textcat.tag_archive, newswire_model, inputs[:1], "out", jobs=1)
    tag()
    for old, new in (("a.jsonl", "deep/a.jsonl"), ("c.txt", "new.txt"), ("d.zip", "moved.zip")):
        (tmp_path / "in" / old).rename(tmp_path / "in" / new)
    assert len(tag().growth.renamed) == 3
    out = tmp_path / "out"
    places = {(row.source, row.position, row.id) for row in read_tags(out)}
    assert {*RunOrigin.read(out).read_documents(places, tagged_files(out))} == places
    assert len(RunOrigin.read(out).read_documents(places)) == 5
    assert tagged_files(tmp_path) == {}
    (tmp_path / "in" / "new.txt").write_text("corn and tin")
    found = RunOrigin.read(out).read_documents(places, tagged_files(out))
    assert places - {*found} == {("in/c.txt", 1, "in/c.txt")}  # it has changed since it was tagged


def test_documents_of_files_whose_names_are_not_utf_8_are_read_again(newswire_model, tmp_path):
    (tmp_path / "in").mkdir()
    for i, name in enumerate((b"caf\xe8.jsonl", b"caf\xe9.jsonl")):
        with open(os.fsencode(tmp_path / "in") + b"/" + name, "w") as file:
            file.write(lines(i, 1))
    out = tmp_path / "out"
    textcat.tag_archive(newswire_model, tmp_path / "in", out, jobs=1)
    rows = [(row.source, row.position, row.id) for row in read_tags(out)]
    for files in ({}, tagged_files(out)):
        found = RunOrigin.read(out).read_documents(rows, files)
        assert [found[row].zones["body"] for row in rows] == ["wheat 0", "wheat 1"]


def test_documents_are_read_as_they_were_tagged(newswire_model, tmp_path):
    (tmp_path / "a.jsonl").write_text(lines(0, 3, field="abstract"))
    settings = InputSettings(text_fields=("abstract",))
    textcat.tag_archive(newswire_model, tmp_path / "a.jsonl", tmp_path / "out", jobs=1, input_settings=settings)
    origin = RunOrigin.read(tmp_path / "out")
    (row, *_) = read_tags(tmp_path / "out")
    (record,) = origin.read_documents({(row.source, row.position, row.id)}).values()
    assert record.zones == {"body": "wheat 0"}


def test_documents_that_have_gone_are_missing(inputs, newswire_model, tmp_path):
    textcat.tag_archive(newswire_model, inputs, "out", jobs=1)
    rows = {(row.source, row.position, row.id) for row in read_tags(tmp_path / "out")}
    os.remove("=g.csv")
    os.remove("in/a.jsonl")
    (tmp_path / "in" / "c.txt").write_text("other words of the same document")
    found = RunOrigin.read(tmp_path / "out").read_documents(rows)
    assert {place[0] for place in rows} - {place[0] for place in found} == {"=g.csv", "in/a.jsonl"}


def test_a_repeated_run_leaves_the_origin_as_it_is_and_another_one_names_its_inputs(inputs, newswire_model, tmp_path):
    textcat.tag_archive(newswire_model, inputs, "out", jobs=1)
    before = (tmp_path / "out" / ORIGIN).stat().st_mtime_ns
    textcat.tag_archive(newswire_model, inputs, "out", jobs=1)
    assert (tmp_path / "out" / ORIGIN).stat().st_mtime_ns == before
    (tmp_path / "new.jsonl").write_text(lines(20, 1))
    textcat.tag_archive(newswire_model, [*inputs, "new.jsonl"], "out", jobs=1)
    assert RunOrigin.read(tmp_path / "out").inputs == [*inputs, "new.jsonl"]


def test_the_inputs_of_earlier_runs_are_kept(inputs, newswire_model, tmp_path, monkeypatch):
    out = tmp_path / "out"
    textcat.tag_archive(newswire_model, inputs[:1], out, jobs=1)
    textcat.tag_archive(newswire_model, inputs[1:], out, jobs=1)
    assert RunOrigin.read(out).inputs == inputs
    rows = {(row.source, row.position, row.id) for row in read_tags(out)}
    assert {*RunOrigin.read(out).read_documents(rows)} == rows
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    textcat.tag_archive(newswire_model, [tmp_path / "in"], out, jobs=1)
    assert RunOrigin.read(out).inputs == [str(tmp_path / name) for name in inputs]
    textcat.tag_archive(newswire_model, [tmp_path / "in"], out, jobs=1, restart=True)
    assert RunOrigin.read(out).inputs == [str(tmp_path / "in")]


def test_an_archive_from_standard_input_cannot_be_read_again(tmp_path):
    RunOrigin("m", "", ["-"], str(tmp_path)).write(tmp_path)
    with pytest.raises(TextcatError, match="read from standard input"):
        RunOrigin.read(tmp_path).read_documents({("-", 1, "-:1")})


def test_documents_at_one_place_are_told_apart_by_their_ids(newswire_model, tmp_path, monkeypatch):
    from textcat.reading import Record
    from textcat.tagging import origin as module

    (tmp_path / "a.jsonl").write_text(lines(0, 1))
    items = [Record(f"{name}", {"body": name}, source=str(tmp_path / "a.jsonl"), position=1) for name in "xy"]
    monkeypatch.setattr(module, "batch_records", lambda *given, **more: items)
    origin = RunOrigin("m", "", ["a.jsonl"], str(tmp_path))
    found = origin.read_documents({("a.jsonl", 1, "x"), ("a.jsonl", 1, "y"), ("a.jsonl", 1, "z")})
    assert {row[2]: record.zones["body"] for row, record in found.items()} == {"x": "x", "y": "y"}
