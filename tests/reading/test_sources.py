"""Inputs of all kinds are found and told apart: files, folders, patterns, pipes, URLs and servers."""

import gzip
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from cases import every
from read_sources import LINES, faults, ids, read, tarred, zipped

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import (
    InputSettings,
    LabelSettings,
    file_system,
    find_sources,
    formats,
    read_batches,
    read_documents,
)

# Finding


def test_a_file_keeps_its_path_as_name_and_is_known_by_size_and_time(folder):
    (folder / "a.jsonl").write_bytes(LINES)
    (source,) = find_sources(["./a.jsonl"], InputSettings())
    assert (source.name, source.format, source.guess.by, source.size) == ("a.jsonl", "jsonl", "name", len(LINES))
    before = source.fingerprint()
    assert json.loads(json.dumps(before)) == before == find_sources(["a.jsonl"], InputSettings())[0].fingerprint()
    os.utime("a.jsonl", ns=(1, 1))
    assert find_sources(["a.jsonl"], InputSettings())[0].fingerprint() != before


def test_a_folder_is_read_sorted_by_paths_without_hidden_files(folder):
    for name in ("b/2.txt", "b.txt", "b/1.txt", "a.jsonl", ".x/1.txt", "b/.y.txt"):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text('{"text": "Tin"}')
    assert [found.source for found in read("in")] == ["in/a.jsonl", "in/b.txt", "in/b/1.txt", "in/b/2.txt"]
    os.chdir("in")
    assert read(".")[0].source == "a.jsonl"


def test_a_folder_is_known_by_all_its_files(folder):
    (folder / "in" / "b").mkdir(parents=True)
    (folder / "in" / "b" / "1.txt").write_text("Tin")
    (source,) = find_sources(["in"], InputSettings())
    assert (source.kind, source.format, source.size, source.files) == ("folder", "folder", 3, 1)
    (folder / "in" / "b" / "2.txt").write_text("")
    (changed,) = find_sources(["in"], InputSettings())
    assert (changed.size, changed.files) == (3, 2)
    assert changed.state != source.state


def test_a_pattern_stands_for_the_files_that_fit_but_a_file_of_that_name_goes_first(folder, caplog):
    for name in ("b.txt", "a.txt", "c.csv"):
        (folder / name).write_text("text")
    assert ids(read("*.txt")) == ["a.txt", "b.txt"]
    (folder / "*.txt").write_text("")
    assert ids(read("*.txt")) == ["*.txt"]
    assert [record.message for record in caplog.records] == [
        "*.txt is the name of a file, so it is not read as a pattern."
    ]


def test_a_file_with_colons_in_its_name_is_no_url(folder):
    (folder / "a::b.txt").write_text("text")
    assert ids(read("a::b.txt")) == ["a::b.txt"]


def test_what_is_named_twice_is_read_once_and_that_is_said(folder, caplog):
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("")
    (folder / "in" / ".b.txt").write_text("")
    with caplog.at_level(logging.WARNING):
        assert ids(read("in/a.txt", "./in/a.txt")) == ["in/a.txt"]
        assert ids(read("in/a.txt", "in", str(folder / "in"))) == ["in/a.txt"]
    assert [record.message.partition(" is ")[2] for record in caplog.records] == [
        "named twice; it is read once.",
        "named as well as its folder; it is read once.",
        "named twice; it is read once.",
    ]
    assert ids(read("in", "in/.b.txt")) == ["in/a.txt", "in/.b.txt"]


@pytest.mark.parametrize(
    ("inputs", "how", "message"),
    [
        (["none.txt"], {}, r"none.txt cannot be read \(No such file or directory\): check the path"),
        (["*.none"], {}, r"No file matches \*.none: check the pattern"),
        (["strange"], {}, r"Neither name nor content tells the format of strange: name it with --format, one of jsonl"),
        (["strange"], {"format": "djvu"}, r"There is no format 'djvu': use one of jsonl, csv"),
        (["strange"], {"encoding": "latin-99"}, r"There is no encoding 'latin-99': use for example 'utf-8'"),
        (["strange"], {"encoding": "base64"}, r"There is no encoding 'base64'"),
        (["memory://none.txt"], {}, r"memory://none.txt does not exist: check the address"),
        (["nosuch://a.txt"], {}, r"nosuch://a.txt cannot be read \(Protocol not known: nosuch"),
    ],
)
def test_a_mistake_of_the_user_is_told_before_anything_is_read(folder, inputs, how, message):
    (folder / "strange").write_text("Tin rose.")
    with pytest.raises(TextcatError, match=message):
        find_sources(inputs, InputSettings(**how))


# Telling the format

HEADS = {
    "jsonl": b'\n{"id": 1}\n',
    "csv": b"id,text\n1,Tin\n",
    "tsv": b"id\ttext\n1\tTin\n",
    "parquet": b"PAR1",
    "reuters": b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n',
    "rcv1": b'<?xml version="1.0"?>\n<newsitem>',
    "mbox": b"From a@b.org Thu Jan  1 00:00:00 1970\n",
    "tar": tarred(("a.txt", b"")),
    "zip": zipped(("a.txt", b"")),
}


@every("form", HEADS)
@every("compress", [bytes, gzip.compress])
def test_content_tells_the_format_where_the_name_does_not(folder, form, compress):
    (folder / "input").write_bytes(compress(HEADS[form]))
    (source,) = find_sources(["input"], InputSettings())
    assert (source.format, source.guess.by) == (form, "content")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.NDJSON", "jsonl"),
        ("a.csv.gz", "csv"),
        ("a.tab", "tsv"),
        ("a.pq", "parquet"),
        ("a.sgm", "reuters"),
        ("2286newsML.xml", "rcv1"),
        ("a.txt.zst", "text"),
        ("a.mbox", "mbox"),
        ("a.tar.bz2", "tar"),
        ("a.tgz", "tar"),
        ("a.ZIP", "zip"),
    ],
)
def test_the_name_tells_the_format(folder, name, form):
    (folder / name).write_bytes(b"")
    (source,) = find_sources([name], InputSettings())
    assert (source.format, source.guess.by) == (form, "name")


def test_the_settings_go_before_name_and_content_but_archives_are_opened(folder):
    (folder / "a.txt").write_bytes(LINES)
    (folder / "a.zip").write_bytes(zipped(("b.dat", LINES)))
    assert len(ids(read("a.txt", format="jsonl"))) == len(ids(read("a.zip", format="jsonl"))) == 50
    assert len(read("a.txt", lines=True)) == len(read("a.txt", lines=True, format="text")) == 50


def test_a_file_in_a_folder_or_archive_whose_format_nothing_tells_is_rejected(folder):
    (folder / "in").mkdir()
    (folder / "in" / "a.dat").write_bytes(b"\xff\xd8\x00\xe0")
    (folder / "in" / "b.txt").write_text("Tin")
    (folder / "c.zip").write_bytes(zipped(("a.dat", b"\xff\xd8\x00\xe0"), ("d.jsonl", LINES)))
    found = read("in", "c.zip")
    assert [fault.source for fault in faults(found)] == ["in/a.dat", "c.zip/a.dat"]
    assert faults(found)[0].reason == (
        "The file is not read, as neither its name nor its content tells the format: name it with --format."
    )
    assert len(ids(found)) == 51


def test_a_file_of_a_format_that_is_known_and_not_read_is_named(folder):
    (folder / "in").mkdir()
    ods = zipped(("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"), method=zipfile.ZIP_STORED)
    files = {"a.xlsx": b"PK", "b": b"\xff\xd8\xff\xe0", "c.epub": b"PK", "d.odt": b"PK", "e.dat": ods}
    files |= {"f.json": b'{"$schema": "http://json-schema.org/draft-07/schema#"}', "g.doc": b"\xd0\xcf\x11\xe0"}
    files["h.tst"] = b"\x16\x16\x01W2870\x1fasian\r\n"
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    reasons = [fault.reason for fault in faults(read("in"))]
    told = (
        "Excel workbook; save it as CSV",
        "picture",
        "e-book",
        "OpenDocument text",
        "spreadsheet",
        "JSON Schema",
        "Word",
        "IPTC 7901",
    )
    assert all(word in reason for word, reason in zip(told, reasons, strict=True))
    with pytest.raises(TextcatError, match=r"a\.xlsx is an Excel workbook; save it as CSV"):
        find_sources(["in/a.xlsx"], InputSettings())
    for root, said in (("TEI", "root <TEI>"), ("PcGts", "PAGE"), ("other", "root <other>")):
        (folder / "a.xml").write_text(f'<?xml version="1.0"?>\n<{root} xmlns="http://example.org/"><a/></{root}>')
        assert said in faults(read("a.xml"))[0].reason


def test_an_ending_of_databases_of_many_kinds_is_not_that_of_one(folder):
    (folder / "in").mkdir()
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)
    for name, data in {"Thumbs.db": ole, "a.db": b"SQLite format 3\0" + bytes(80), "b.db": bytes(range(256))}.items():
        (folder / "in" / name).write_bytes(data)
    (folder / "in" / "c.db").write_text('{"text": "Tin rose."}\n')
    found = read("in")
    reasons = {fault.source: fault.reason for fault in faults(found)}
    assert "of Windows" in reasons["in/Thumbs.db"]
    assert "SQLite" in reasons["in/a.db"]
    assert "neither its name nor its content tells the format" in reasons["in/b.db"]
    assert len(ids(found)) == 1


UNREAD_TEXTS = {
    "RTF": b"{\\rtf1\\ansi Barley rose.\\par }",
    "fastText": b"__label__crops Barley rose.\n__label__metals __label__ships Copper\n",
    "SVMLight": b"+1 qid:3 1:0.5 7:1e-3 # a\n-1 2:.5\n",
    "libsvm|SVMLight": b"0 1:0.5 4:2\n",
    "Extreme Classification": b"3 100 4\n0,2 1:0.5 7:0.25\n 3:1.0\n",
    "ARC": b"filedesc://a.arc 127.0.0.1 20240101000000 text/plain 76\n1 0 Test\n",
    "ARFF": b"@relation crops\n\n@attribute text string\n",
    "LaTeX": b"% mine\n\\documentclass{article}\n",
    "Ovid": b"<1>\nUnique Identifier\n  4711\nTitle\n  Barley.\n",
    "of Ovid": b"Database: Embase <1974 to 2020>\nSearch Strategy:\n------\n1  exp barley/ (12)\n",
    "Cochrane": b"Record #1 of 3\nID: CN-1\nTI: Barley\n",
    "EBSCO": b"Record: 1\nTitle: Barley\n",
    "Scopus": b"Scopus\nEXPORT DATE:21 January 2020\n",
    "ProQuest": b"____________________________________\n\nDocument 1 of 3\n",
    "RefWorks": b"RT Journal Article\nSR Electronic\nT1 Barley\n",
    "PubMed": b"1. J Barley. 2019 Mar;12(3):1-5. doi: 10.1000/a. Epub 2019.\n\nBarley.\n",
    "table of Web of Science": b"PT\tAU\tBA\tTI\nJ\tDoe\t\tBarley\n",
}


@pytest.mark.parametrize("said", UNREAD_TEXTS)
@pytest.mark.parametrize("name", ["a.txt", "a", "a.dat"])
def test_a_text_of_a_format_that_is_not_read_is_named_through_every_door(folder, said, name):
    data = UNREAD_TEXTS[said]
    for topic in ("crops", "metals"):
        (folder / "corpus" / topic).mkdir(parents=True)
        (folder / "corpus" / topic / name).write_bytes(b"\xef\xbb\xbf\n" + data.replace(b"\n", b"\r\n"))
    (folder / name).write_bytes(data)
    (folder / "a.zip").write_bytes(zipped((f"b/{name}", data)))
    assert re.search(said, faults(read("a.zip"))[0].reason)
    for settings in (InputSettings(), InputSettings(lines=True)):
        with pytest.raises(TextcatError, match=said):
            find_sources([name], settings)
        with pytest.raises(TextcatError, match=said):
            open_corpus(name, settings=settings)
    with pytest.raises(TextcatError, match=said):
        open_corpus("corpus")
    assert len(read(name, format="text")) == 1, "who names the format knows better"


@every(
    "form, text, n",
    [
        (
            "ris",
            "Provider: Ovid Technologies\nContent: text/plain; charset=UTF-8\n\n\nTY  - JOUR\nTI  - Tin\nER  - \n",
            1,
        ),
        ("ris", "1.\nTY  - JOUR\nTI  - Tin\nER  - \n\n2.\nTY  - JOUR\nTI  - Ore\nER  - \n", 2),
        ("nbib", "\nPMID- 1\nTI  - Tin\n\nPMID- 2\nTI  - Ore\n", 2),
        ("bibtex", "@article{a, title = {Tin}}\n\n@book{b, title = {Ore}}\n", 2),
        ("jsonl", '{"text": "Tin"}\n{"text": "Ore"}\n', 2),
        ("csv", "text,label\nTin rose,tin\nOre fell,ore\n", 2),
        ("csv", "id;text;topics\n1;Tin rose;tin\n2;Ore fell;ore\n", 2),
        ("tsv", "title\tabstract\ttopics\nTin\tTin rose\ttin\nOre\tOre fell\tore\n", 2),
        ("annif", "Tin rose\t<http://example.org/1>\nOre\t<http://example.org/2>\n", 2),
    ],
)
@every("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_records_that_are_called_a_text_are_read_one_by_one(folder, form, text, n, encoding):
    (folder / "a.txt").write_bytes(text.encode(encoding))
    (folder / "a.zip").write_bytes(zipped(("b/a.txt", text.encode(encoding))))
    (source,) = find_sources(["a.txt"], InputSettings())
    assert (source.format, source.guess.by) == (form, "content")
    assert len(ids(read("a.txt"))) == len(ids(read("a.zip"))) == n
    assert len(open_corpus("a.txt").train) == n


@pytest.mark.parametrize(
    "text",
    [
        "Text, label and topics\nare words of this text.\n",
        "text,label\n",
        '{"a": 1} is an object of JSON.\nIt is not this text.\n',
        "10:15 departure\n10:30 arrival\n",
        "2 1:0\nwas the score\n",
        "From: a@example.org\nSubject: TY\n\nTY  is no tag.\n",
        "@user (hello, world)\n",
        "1. We met in 2019; see doi.\n",
        "Records: 1\n",
    ],
)
def test_prose_that_begins_like_records_is_a_text(folder, text):
    (folder / "a.txt").write_text(text)
    assert find_sources(["a.txt"], InputSettings())[0].format == "text"
    assert ids(read("a.txt")) == ["a.txt"]


def test_a_file_without_an_ending_is_read_by_lines_if_asked(folder):
    (folder / "pos").write_text("Tin rose.\nOre rose.\n")
    (folder / "in").mkdir()
    for name in ("pos", "neg.lst", "README"):
        (folder / "in" / name).write_text("Tin fell.\nOre fell.\n")
    assert ids(read("pos", lines=True)) == ["pos:1", "pos:2"]
    assert len(ids(read("in", lines=True))) == 6
    (document, _) = open_corpus("pos", settings=InputSettings(lines=True)).train
    assert document.topics == ("pos",)
    with pytest.raises(TextcatError, match="--format"):
        read("pos")


def test_a_dataset_that_was_saved_to_disk_is_named(folder):
    for name in ("dataset_dict.json", "train/dataset_info.json", "train/state.json", "train/data-0.arrow"):
        (folder / "saved" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "saved" / name).write_bytes(
            b'{"splits": ["train"]}' if name.endswith("json") else b"\xff\xff\xff\xff"
        )
    assert all(re.search("datasets|Arrow", fault.reason) for fault in faults(read("saved")))
    with pytest.raises(TextcatError, match="Hugging Face's datasets save it to disk; write it"):
        open_corpus("saved")


# Pipes and URLs


@contextmanager
def standard_input(monkeypatch, data=None):
    """A pipe as standard input; gives its writing end."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "wb", buffering=0) as end:
        monkeypatch.setattr(sys, "stdin", stdin)
        if data is not None:
            end.write(data)
            end.close()
        yield end


def test_what_comes_through_a_pipe_is_given_at_once(monkeypatch):
    how = InputSettings()
    with standard_input(monkeypatch) as end:
        batches = read_batches(find_sources(["-"], how), how)
        end.write(b'{"id": ')
        for i in range(3):
            end.write(b'"%d", "text": "Tin"}\n{"id": ' % i)
            (record,) = formats.batch_records(next(batches), how)
            assert (record.id, record.source, record.position) == (str(i), "-", i + 1)
        end.write(b'"x", "text": "no line end"}')
        end.close()
        assert [record.id for batch in batches for record in formats.batch_records(batch, how)] == ["x"]


def test_what_stands_before_a_pipe_does_not_wait_for_it(folder, monkeypatch):
    (folder / "a.jsonl").write_bytes(LINES)
    how = InputSettings()
    with standard_input(monkeypatch):
        batch = next(read_batches(find_sources(["a.jsonl", "-"], how), how))
    assert len(list(formats.batch_records(batch, how))) == 50


@pytest.mark.parametrize(
    ("data", "how", "texts"),
    [
        (b"Tin rose.\nGold fell.", {}, ["Tin rose.\nGold fell."]),
        (b"Tin rose.\nGold fell.", {"lines": True}, ["Tin rose.", "Gold fell."]),
        (b"x", {}, ["x"]),
        (b"", {}, []),
        (b'{"text": "Tin"}', {}, ["Tin"]),
        (gzip.compress(b'{"text": "Tin"}\n\n'), {}, ["Tin"]),
        (zstandard.compress(b'{"text": "Tin"}\n\n'), {}, ["Tin"]),
        (gzip.compress(tarred(("a.txt", b"Tin"), ("b.txt", b"Gold"))), {}, ["Tin", "Gold"]),
        (zipped(("a.txt", b"Tin")), {}, ["Tin"]),
        (b"id\ttext\n1\tTin\n", {}, ["Tin"]),
    ],
)
def test_standard_input_may_be_anything_and_is_a_text_where_nothing_tells(monkeypatch, data, how, texts):
    with standard_input(monkeypatch, data):
        assert [record.zones["body"] for record in read(**how)] == texts


def test_a_named_pipe_is_read_as_a_pipe(folder):
    os.mkfifo("pipe")
    with subprocess.Popen([sys.executable, "-c", "open('pipe', 'w').write('Tin')"]):
        assert [record.zones["body"] for record in read("pipe")] == ["Tin"]


def test_urls_are_read_by_fsspec(folder):
    system = fsspec.filesystem("memory")
    system.pipe(
        {"/news/b/1.txt": b"Tin", "/news/a.jsonl": LINES, "/news/.c.txt": b"", "/d.zip": zipped(("a.txt", b""))}
    )
    try:
        found = read("memory://news", "memory://d.zip")
        assert len(ids(found)) == 52
        assert [found[0].source, *ids(found)[-2:]] == [
            "memory://news/a.jsonl",
            "memory://news/b/1.txt",
            "memory://d.zip/a.txt",
        ]
        assert ids(read("memory://news/b/*.txt")) == ["memory:///news/b/1.txt"]
        (before,) = find_sources(["memory://news"], InputSettings())
        assert before.fingerprint() == find_sources(["memory://news"], InputSettings())[0].fingerprint()
        time.sleep(0.001)
        system.pipe({"/news/b/1.txt": b"Ore"})
        assert before.fingerprint() != find_sources(["memory://news"], InputSettings())[0].fingerprint()
    finally:
        system.rm("/news", recursive=True)
        system.rm("/d.zip")


class Server(SimpleHTTPRequestHandler):
    """Gives whole files only; with `ranges`, also parts of them."""

    ranges = False

    def log_message(self, *_):
        pass

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not (self.ranges and asked):
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(data[first : last + 1])


@pytest.fixture(params=[False, True], ids=["whole files", "ranges"])
def server(request, folder):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed, which fsspec needs for http")
    handler = partial(type("Server", (Server,), {"ranges": request.param}), directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("url", ["http://localhost/a", "https://localhost/a", "simplecache::http://localhost/a"])
def test_a_web_server_may_take_long_but_not_be_silent(url, monkeypatch):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed, which fsspec needs for http")
    monkeypatch.setattr("fsspec.config.conf", {"http": {"client_kwargs": {"trust_env": True}}})
    system, _ = file_system(url)
    given = getattr(system, "fs", system).client_kwargs
    assert (given["timeout"].total, given["timeout"].sock_read) == (None, 60)
    assert given.get("trust_env", False) == ("http:" in url)  # what the user has set stays


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.zip", "a.parquet"])
def test_files_of_web_servers_are_read_also_where_only_whole_ones_are_given(folder, server, name):
    lines = b"".join(b'{"id": "%d", "text": "%s"}\n' % (i, b"Tin rose. " * 300) for i in range(2_000))
    if name == "a.parquet":
        table = pyarrow.table({"id": list(map(str, range(2_000))), "text": ["Tin rose. " * 300] * 2_000})
        pyarrow.parquet.write_table(table, folder / name, compression="none", use_dictionary=False)
    else:
        (folder / "a.jsonl").write_bytes(lines)
        (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines, 0))
        (folder / "a.zip").write_bytes(zipped(("a.jsonl", lines), method=zipfile.ZIP_STORED))
    assert (folder / name).stat().st_size > 5 << 20  # more than fsspec asks for at a time
    found = read(f"{server}/{name}")
    assert not faults(found)
    assert ids(found) == ids(read(str(folder / name)))
    assert len(found) == 2_000


def test_errors_of_file_systems_are_rejections(monkeypatch):
    system = fsspec.filesystem("memory")
    system.pipe({"/a.jsonl": LINES, "/b.jsonl": LINES})
    how = InputSettings()
    sources = find_sources(["memory://a.jsonl", "memory://b.jsonl"], how)
    monkeypatch.setattr(
        system, "open", lambda path, *_: (_ for _ in ()).throw(KeyError(path)) if "a" in path[:2] else io.BytesIO(LINES)
    )
    try:
        found = [item for batch in read_batches(sources, how) for item in formats.batch_records(batch, how)]
    finally:
        system.rm(["/a.jsonl", "/b.jsonl"])
    assert faults(found)[0].source == "memory://a.jsonl"
    assert "KeyError" in faults(found)[0].reason
    assert len(ids(found)) == 50


class _FailingFile(io.BytesIO):
    """A file that raises exceptions of its own when it is closed, and when its end is looked for."""

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_END:
            raise LookupError("no size")
        return super().seek(offset, whence)

    def close(self):
        raise LookupError("no connection")


def test_errors_of_seeking_and_closing_a_file_at_a_url_do_not_end_the_run(monkeypatch):
    system = fsspec.filesystem("memory")
    system.pipe({"/a.zip": zipped(("a.txt", b"Tin rose.")), "/b.jsonl": LINES})
    monkeypatch.setattr(system, "open", lambda path, *_: _FailingFile(system.cat(path)))
    try:
        found = read("memory://a.zip", "memory://b.jsonl")
    finally:
        system.rm(["/a.zip", "/b.jsonl"])
    (fault,) = faults(found)
    assert fault.source == "memory://a.zip"
    assert "no size" in fault.reason
    assert len(ids(found)) == 50


def test_a_missing_package_is_told_with_what_to_install(folder, monkeypatch):
    (folder / "a.jsonl.zst").write_bytes(zstandard.compress(LINES))
    (folder / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[zst\]'"):
        read("a.jsonl.zst")
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[parquet\]'"):
        read("a.parquet")


def test_files_whose_names_are_not_utf_8_are_told_apart(folder):
    for name in (b"in\xfe.txt", b"in\xff.txt"):
        with open(name, "wb") as file:
            file.write(b"Tin")
    records = read(".")
    assert [record.source for record in records] == ["in\udcfe.txt", "in\udcff.txt"]
    assert [record.zones for record in records] == [{"body": "Tin"}] * 2
    assert [os.fsencode(record.source) for record in records] == sorted(os.listdir(b"."))


def test_documents_and_topics_of_a_corpus_have_names_that_can_be_encoded(folder):
    os.mkdir(b"caf\xe9")
    for name in (b"caf\xe9/\xe8.txt", b"caf\xe9/\xe9.txt"):
        with open(name, "wb") as file:
            file.write(b"Tin")
    documents = read_documents(["."], InputSettings(labels=LabelSettings()))
    assert [(document.id, document.topics) for document in documents] == [
        (f"caf\\udce9/\\udc{byte}.txt", ("caf\\udce9",)) for byte in ("e8", "e9")
    ]
