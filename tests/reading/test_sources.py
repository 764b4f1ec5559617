"""Inputs of all kinds are found, told apart, and read in batches that can be gone on from anywhere."""

import bz2
import gzip
import io
import json
import logging
import lzma
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections import Counter
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textcat.errors import TextcatError
from textcat.reading import Block, InputSettings, Record, Rejection, find_sources, formats, read_batches, streams
from textcat.reading.records import FaultKind
from textcat.surrogates import decode_surrogates

COMPRESSIONS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": zstandard.compress,
}
LINES = b"".join(b'{"id": "%d", "text": "Tin rose by %d."}\n' % (i, i) for i in range(1, 51))


def read(*inputs, **how):
    """Everything the inputs hold, in order."""
    how = InputSettings(**how)
    return [
        found for batch in read_batches(find_sources(inputs, how), how) for found in formats.batch_records(batch, how)
    ]


def ids(found):
    return [record.id for record in found if isinstance(record, Record)]


def faults(found):
    return [rejection for rejection in found if isinstance(rejection, Rejection)]


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(*members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_a_pattern_stands_for_the_files_that_fit_but_a_file_of_that_name_goes_first(folder):
    for name in ("b.txt", "a.txt", "c.csv"):
        (folder / name).write_text("text")
    assert ids(read("*.txt")) == ["a.txt", "b.txt"]
    (folder / "*.txt").write_text("")
    assert ids(read("*.txt")) == ["*.txt"]


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


@pytest.mark.parametrize("form", HEADS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gz"])
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
    (folder / "in" / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (folder / "in" / "b.txt").write_text("Tin")
    (folder / "c.zip").write_bytes(zipped(("a.jpg", b"\xff\xd8\xff\xe0"), ("d.jsonl", LINES)))
    found = read("in", "c.zip")
    assert [fault.source for fault in faults(found)] == ["in/a.jpg", "c.zip/a.jpg"]
    assert faults(found)[0].reason == (
        "The file is not read, as neither its name nor its content tells the format: name it with --format."
    )
    assert len(ids(found)) == 51


# Compression and archives


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_what_is_compressed_is_read_as_if_it_were_not(folder, ending):
    compress = COMPRESSIONS[ending]
    (folder / f"a.jsonl{ending}").write_bytes(compress(LINES[:500]) + compress(LINES[500:]))
    (folder / f"b.jsonl{ending}").write_bytes(LINES)  # as servers do that unpack what they send
    assert ids(read(f"a.jsonl{ending}")) == ids(read(f"b.jsonl{ending}")) == [str(i) for i in range(1, 51)]


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_of_what_is_cut_off_the_records_before_are_given_and_the_rest_is_one_rejection(folder, ending):
    data = b"".join(b'{"id": "%d", "text": "%s"}\n' % (i, os.urandom(50).hex().encode()) for i in range(20000))
    (folder / f"a.jsonl{ending}").write_bytes(COMPRESSIONS[ending](data)[:-1000])
    (folder / "b.jsonl").write_bytes(LINES)
    found = read(f"a.jsonl{ending}", "b.jsonl")
    (fault,) = faults(found)
    records = ids(found)[:-50]
    assert records == [str(i) for i in range(len(records))]
    assert len(records) > 10000
    assert (fault.source, fault.position) == (f"a.jsonl{ending}", 0)
    assert fault.offset == data.index(b'{"id": "%d"' % len(records))
    assert "is damaged or incomplete" in fault.reason
    assert ids(found)[-50:] == [str(i) for i in range(1, 51)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(LINES) + b"rubbish", "Error -3 while decompressing data: incorrect header check"),
        (gzip.compress(LINES)[:-8] + b"\0" * 8, "incorrect data check"),
        (b"\0\0" + gzip.compress(LINES)[2:], "incorrect header check"),
    ],
    ids=["more behind it", "wrong checksum", "no gzip"],
)
def test_a_damaged_gzip_is_rejected_from_where_it_is(folder, data, reason):
    (folder / "a.jsonl.gz").write_bytes(data)
    assert reason in faults(read("a.jsonl.gz"))[-1].reason


def test_zeros_behind_a_compressed_file_are_no_fault(folder):
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(LINES) + b"\0" * 1000)
    assert len(read("a.jsonl.gz")) == 50


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_bomb_is_refused(folder, ending):
    packed = COMPRESSIONS[ending](b" " * (40 << 20))
    (folder / f"a.jsonl{ending}").write_bytes(packed)
    (folder / "b.zip").write_bytes(zipped((f"a.jsonl{ending}", packed), ("c.jsonl", LINES)))
    (folder / f"d.tar{ending}").write_bytes(COMPRESSIONS[ending](tarred(("a.jsonl", b" " * (40 << 20)))))
    found = read(f"a.jsonl{ending}", "b.zip", f"d.tar{ending}")
    assert len(ids(found)) == 50
    reasons = {fault.source.partition("/")[0]: fault.reason for fault in faults(found)}
    assert set(reasons) == {f"a.jsonl{ending}", "b.zip", f"d.tar{ending}"}
    assert all("unpacks to more than 1000 times its size" in reason for reason in reasons.values())


def test_a_bomb_in_a_zip_is_refused_and_its_other_files_are_read(folder):
    (folder / "a.zip").write_bytes(zipped(("a.txt", b" " * (40 << 20)), ("b.txt", os.urandom(1 << 20).hex())))
    found = read("a.zip")
    assert ids(found) == ["a.zip/b.txt"]
    assert faults(found)[0].reason == "The file unpacks to more than 1000 times its size, which text never does."


def test_what_leads_out_of_an_archive_and_links_and_devices_are_refused_and_the_rest_is_read(folder):
    special = []
    for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("dev", tarfile.CHRTYPE)):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        special.append((info, b""))
    (folder / "a.tar").write_bytes(tarred(("../a.txt", b""), ("/b.txt", b""), *special, ("c/./d.txt", b"Tin")))
    found = read("a.tar")
    assert ids(found) == ["a.tar/c/d.txt"]
    assert Counter(fault.reason for fault in faults(found)) == {
        "The file has a path that leads out of the archive, so it is not read.": 2,
        "The file is a link or a device, so it is not read.": 3,
    }
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    (folder / "b.zip").write_bytes(
        zipped(("x/../../a.txt", ""), (link, "/etc/passwd"), ("C:/d.txt", ""), ("e.txt", ""))
    )
    found = read("b.zip")
    assert ids(found) == ["b.zip/e.txt"]
    assert len(faults(found)) == 3


def test_links_to_folders_and_what_is_no_file_are_rejected_in_a_folder(folder):
    (folder / "in").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "a.txt").write_text("Tin")
    os.symlink(folder / "other", folder / "in" / "a")
    os.symlink(folder / "other" / "a.txt", folder / "in" / "b.txt")
    os.symlink(folder / "none", folder / "in" / "c.txt")
    os.mkfifo(folder / "in" / "d.txt")
    found = read("in")
    assert ids(found) == ["in/b.txt"]
    assert [fault.reason for fault in faults(found)] == [
        "The file is a link to a folder, which is not followed: name the folder as an input, too.",
        "The file cannot be read (No such file or directory).",
        "The file is a device, a pipe or a socket, so it is not read.",
    ]


def test_archives_are_opened_inside_of_each_other_up_to_a_depth(folder):
    data = zipped(("a.jsonl.gz", gzip.compress(LINES)))
    for name in ("b.zip", "c.zip"):
        data = zipped((name, data), (f"{name}.txt", ""))
    (folder / "d.tar.gz").write_bytes(gzip.compress(tarred(("e.zip", data))))
    found = read("d.tar.gz")
    assert ids(found) == ["d.tar.gz/e.zip/c.zip/b.zip.txt", "d.tar.gz/e.zip/c.zip.txt"]
    (fault,) = faults(found)
    assert fault.source == "d.tar.gz/e.zip/c.zip/b.zip"
    assert "is nested in too many archives" in fault.reason
    (folder / "f.tar").write_bytes(tarred(("e.zip", zipped(("b.zip", zipped(("a.jsonl.xz", lzma.compress(LINES))))))))
    assert len(ids(read("f.tar"))) == 50


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_of_every_kind_are_read(folder, method):
    (folder / "a.zip").write_bytes(zipped(("a.jsonl", LINES * 100), ("b.jsonl", LINES), method=method))
    assert len(ids(read("a.zip"))) == 5050


def test_a_zip_in_an_archive_may_be_larger_than_what_is_held_in_memory(folder, monkeypatch):
    monkeypatch.setattr(streams, "IN_MEMORY_BYTES", 1 << 16)
    noise = json.dumps({"text": os.urandom(200_000).hex()}).encode()
    (folder / "a.tar").write_bytes(tarred(("b.zip", zipped(("a.jsonl", noise), ("c.jsonl", LINES)))))
    assert len(ids(read("a.tar"))) == 51


def test_a_damaged_archive_gives_what_stands_before_and_one_rejection(folder):
    random = os.urandom(100_000)
    (folder / "a.tar").write_bytes(tarred(("a.jsonl", LINES), ("b.txt", random.hex().encode()))[:50_000])
    (folder / "b.tar").write_bytes(tarred(("a.jsonl", LINES)) + tarred(("c.jsonl", LINES)))
    (folder / "c.zip").write_bytes(zipped(("a.jsonl", LINES))[:-30])
    broken = zipped(("a.jsonl", LINES), ("b.jsonl", LINES), method=zipfile.ZIP_STORED).replace(
        b"rose by 1.", b"rose up 1.", 1
    )
    (folder / "d.zip").write_bytes(broken)
    found = read("a.tar", "b.tar", "c.zip", "d.zip")
    per_source = Counter(record.source for record in found if isinstance(record, Record))
    assert per_source == {"a.tar/a.jsonl": 50, "b.tar/a.jsonl": 50, "d.zip/b.jsonl": 50}
    reasons = {fault.source: fault.reason for fault in faults(found)}
    assert len(reasons) == len(faults(found)) == 5
    assert "unexpected end of data" in reasons["a.tar"]
    assert "continues after its end mark" in reasons["b.tar"]
    assert "not a zip file" in reasons["c.zip"]
    assert "Bad CRC-32" in reasons["d.zip/a.jsonl"]


def test_a_zip_that_lists_fewer_files_than_it_counts_is_damaged(folder):
    data = bytearray(zipped(("a.txt", "Tin"), ("b.txt", "ore")))
    end = data.rindex(b"PK\5\6")
    size, last = int.from_bytes(data[end + 12 : end + 16], "little"), len(data) - data.rindex(b"PK\1\2") - 22
    data[end + 12 : end + 16] = (size - last).to_bytes(4, "little")
    (folder / "a.zip").write_bytes(data)
    assert "it counts 2 files, but lists 1" in faults(read("a.zip"))[-1].reason


def test_a_tar_that_would_need_much_memory_is_refused(folder):
    header = tarfile.TarInfo("long")
    header.type = tarfile.XHDTYPE
    (folder / "a.tar").write_bytes(tarred((header, b" " * (2 << 20))))
    sparse = tarfile.TarInfo("sparse")
    sparse.type = tarfile.GNUTYPE_SPARSE
    (folder / "b.tar").write_bytes(tarred((sparse, b"")))
    holes = tarfile.TarInfo("holes.txt")
    holes.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "1000000000000"}
    (folder / "c.tar").write_bytes(tarred((holes, b"1\n0\n10\n".ljust(512, b"\0"))))
    reasons = [fault.reason for fault in read("a.tar", "b.tar", "c.tar")]
    assert len(reasons) == 3
    assert "a header of 2097152 bytes" in reasons[0]
    assert all("a file with holes" in reason for reason in reasons[1:])


MEMBERS = (("a.jsonl", LINES), ("b/ü.txt", b"Tin"), ("c.zip", zipped(("d.txt", b"ore"), method=zipfile.ZIP_LZMA)))
SOUND = {
    "a.zip": zipped(*MEMBERS),
    "b.zip": zipped(*MEMBERS, method=zipfile.ZIP_BZIP2),
    "a.tar": tarred(*MEMBERS),
    "a.tgz": gzip.compress(tarred(*MEMBERS)),
    **{f"a.jsonl{ending}": compress(LINES) for ending, compress in COMPRESSIONS.items()},
}


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(SOUND)), data=st.data())
def test_an_archive_with_changed_bytes_gives_records_and_rejections(tmp_path, name, data):
    changed = bytearray(SOUND[name])
    for start, length, put in data.draw(
        st.lists(
            st.tuples(st.integers(0, len(changed)), st.integers(0, 9), st.binary(max_size=9)), min_size=1, max_size=3
        )
    ):
        changed[start : start + length] = put
    (tmp_path / name).write_bytes(changed)
    found = read(tmp_path / name)
    assert all(isinstance(item, Rejection) or item.zones for item in found)
    assert ids(found) or faults(found) or bytes(changed) == b""


# What goes wrong on the way


def test_a_file_that_vanishes_or_may_not_be_read_is_rejected_and_the_others_are_read(folder, monkeypatch):
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("Tin")
    how = InputSettings()
    sources = find_sources(["a.txt", "b.txt"], how)
    (folder / "a.txt").unlink()
    found = [item for batch in read_batches(sources, how) for item in formats.batch_records(batch, how)]
    assert faults(found)[0].reason == "The file cannot be read (No such file or directory)."
    assert ids(found) == ["b.txt"]


class FailingFile(io.FileIO):
    """A file on a disk that fails behind some byte."""

    def read(self, n=-1):
        if self.tell() + n > 1000:
            n = 1000 - self.tell()
            if n <= 0:
                raise OSError(5, "Input/output error")
        return super().read(n)


@pytest.mark.parametrize("block", [100, 1 << 20])
def test_an_error_of_reading_leaves_the_records_before_it(folder, monkeypatch, block):
    (folder / "a.jsonl").write_bytes(LINES)
    monkeypatch.setattr("textcat.reading.containers.open", lambda path, *_, **__: FailingFile(path), raising=False)
    found = read("a.jsonl", block_bytes=block)
    whole = LINES[:1000].count(b"\n")
    assert ids(found) == [str(i) for i in range(1, whole + 1)]
    (fault,) = faults(found)
    offset = LINES[:1000].rindex(b"\n") + 1
    assert fault == Rejection(
        "a.jsonl",
        0,
        f"The file, from byte {offset} on, cannot be read (Input/output error).",
        offset,
        kind=FaultKind.ACCESS,
    )


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_record_that_is_too_long_is_passed_over_in_bounded_memory(folder, ending):
    long = b'{"id": "long", "text": "' + b"tin " * (15 << 20) + b'"}\n'
    data = LINES + long + LINES
    (folder / f"a.jsonl{ending}").write_bytes(gzip.compress(data, 1) if ending else data)
    del data
    how = InputSettings(max_bytes=1 << 20)
    tracemalloc.start()
    found = [
        item
        for batch in read_batches(find_sources([f"a.jsonl{ending}"], how), how)
        for item in formats.batch_records(batch, how)
    ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (fault,) = faults(found)
    assert (fault.position, fault.offset, fault.length) == (51, len(LINES), len(long))
    assert fault.reason.startswith(f"The record has {len(long)} bytes, but a record may have at most")
    assert len(ids(found)) == 100
    assert found[-1].position == 101
    assert peak < 12 << 20


@pytest.mark.parametrize("length", range(95, 105))
def test_the_longest_record_may_have_just_so_many_bytes(folder, length):
    line = b'{"text": "%s"}' % (b"x" * (length - 12))
    (folder / "a.jsonl").write_bytes(line + b"\r\n" + line)
    (folder / "b.txt").write_bytes(b"x" * length)
    found = read("a.jsonl", "b.txt", max_bytes=100)
    assert len(line) == length
    assert len(faults(found)) == (0 if length < 100 else 1 if length == 100 else 3)


def test_many_small_files_are_one_piece_and_an_empty_one_counts(folder):
    (folder / "in").mkdir()
    for i in range(300):
        (folder / "in" / f"{i:03}.txt").write_text("")
    how = InputSettings(block_bytes=100 * 256)
    batches = list(read_batches(find_sources(["in"], how), how))
    assert [len(batch.blocks) for batch in batches] == [100, 100, 100]


def test_the_bytes_read_grow_up_to_the_size_of_the_sources(folder):
    (folder / "a.jsonl").write_bytes(LINES)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(LINES))
    (folder / "in").mkdir()
    (folder / "in" / "c.jsonl").write_bytes(LINES)
    (folder / "in" / "d.jpg").write_bytes(b"1234")
    how = InputSettings(block_bytes=300)
    sources = find_sources(["a.jsonl", "b.jsonl.gz", "in"], how)
    read = [batch.read for batch in read_batches(sources, how)]
    assert read == sorted(read)
    assert read[-1] == sum(source.size for source in sources)


# Going on

ROWS = st.lists(
    st.sampled_from(["1,Tin", '2,"a ""b"" c"', '3,"two\nlines, here"', '4,"open', '5,a"b', '6,"x"y', "", "7", '8,""'])
)
SGML = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="{}"><DATE></DATE><TOPICS></TOPICS>'
    "<TEXT><BODY>{}</BODY></TEXT></REUTERS>\n"
)
STORIES = st.lists(
    st.sampled_from([SGML.format(1, "Tin"), SGML.format(2, "gold " * 30), "<REUTERS>", "</REUTERS>", "junk\n"])
)
MAIL = st.lists(
    st.sampled_from(
        [
            "From a@b Thu Jan  1 00:00:00 1970\nSubject: Tin\n\nrose\n\n",
            "\n",
            "From here on\n\n",
            "long " * 30,
            "x\r\n\r\n",
        ]
    )
)
CONTENTS = st.one_of(
    st.tuples(
        st.just("jsonl"),
        st.lists(st.sampled_from(['{"text": "Tin"}\n', "\n", "{\r\n", '{"id": 7, "text": "é"}\n', "x" * 70])),
    ),
    st.tuples(st.just("lines"), st.lists(st.text("ab\n\r é", max_size=30))),
    st.tuples(st.just("csv"), ROWS.map(lambda rows: ["id,text\r\n", "\n".join(rows)])),
    st.tuples(st.just("reuters"), STORIES),
    st.tuples(st.just("mbox"), MAIL),
    st.tuples(st.just("text"), st.lists(st.text(max_size=40), max_size=1)),
)
WRAPS = ["", ".gz", ".bz2", ".xz", ".zst", "zip", "tar", "tgz", "folder"]


def wrapped(path, how, files):
    """Write files as they are (then only the first), compressed, or together in a folder or an archive."""
    if how == "folder":
        target = path / "folder"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for name, data in files:
            (target / name).write_bytes(data)
        return str(target)
    data = {"zip": lambda: zipped(*files), "tar": lambda: tarred(*files), "tgz": lambda: gzip.compress(tarred(*files))}
    ending = f".{how}" if how in data else how
    target = path / f"in{ending}"
    target.write_bytes(data[how]() if how in data else COMPRESSIONS.get(how, bytes)(files[0][1]))
    return str(target)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=CONTENTS,
    wrap=st.sampled_from(WRAPS),
    block=st.integers(1, 300),
    longest=st.sampled_from([20, 100, 5000]),
    bom=st.booleans(),
    copies=st.integers(1, 3),
    damage=st.integers(0, 40),
)
def test_from_the_end_of_any_piece_reading_goes_on_with_just_the_pieces_that_follow(
    tmp_path, contents, wrap, block, longest, bom, copies, damage
):
    form, parts = contents
    data = b"\xef\xbb\xbf" * bom + "".join(parts).encode() * 20
    place = wrapped(tmp_path, wrap, [(f"{i}.dat", data) for i in range(copies)])
    if os.path.isfile(place) and damage < 20:
        with open(place, "r+b") as file:
            file.truncate(max(os.path.getsize(place) - damage, 0))
    how = InputSettings(format=form, block_bytes=block, max_bytes=longest)
    sources = find_sources([place], how)
    batches = list(read_batches(sources, how))
    for i in range(0, len(batches), max(len(batches) // 7, 1)):
        start = json.loads(json.dumps(batches[i].end))
        assert list(read_batches(sources, how, start)) == batches[i + 1 :]
    assert [batch.start for batch in batches[1:]] == [batch.end for batch in batches[:-1]]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=CONTENTS, block=st.integers(1, 300), wrap=st.sampled_from(["", ".gz", "zip"]))
def test_the_records_do_not_depend_on_blocks_and_compression(tmp_path, contents, block, wrap):
    form, parts = contents
    data = "".join(parts).encode()
    place = wrapped(tmp_path, wrap, [("a.dat", data)])
    (tmp_path / "plain").write_bytes(data)
    (whole, found) = (
        [item[2:] if isinstance(item, Record) else item[1:] for item in read(name, format=form, block_bytes=size)]
        for name, size in ((tmp_path / "plain", 1 << 20), (place, block))
    )
    assert found == whole


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_reading_goes_on_in_a_parquet_file_from_any_row_on(folder, rows):
    table = {"id": list(range(rows)), "text": [f"Tin rose by {i}. " * 5 for i in range(rows)]}
    pyarrow.parquet.write_table(pyarrow.table(table), "a.parquet", row_group_size=700)
    (folder / "b.zip").write_bytes(zipped(("a.parquet", (folder / "a.parquet").read_bytes())))
    how = InputSettings(block_bytes=8000)
    sources = find_sources(["a.parquet", "b.zip"], how)
    batches = list(read_batches(sources, how))
    found = [record for batch in batches for record in formats.batch_records(batch, how)]
    assert ids(found) == [str(i) for i in range(rows)] * 2
    assert [record.position for record in found] == list(range(1, rows + 1)) * 2
    assert len(batches) >= rows // 100
    for i in range(0, len(batches), max(len(batches) // 10, 1)):
        assert list(read_batches(sources, how, batches[i].end)) == batches[i + 1 :]


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


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.zip", "a.parquet"])
def test_files_of_web_servers_are_read_also_where_only_whole_ones_are_given(folder, server, name):
    lines = b"".join(b'{"id": "%d", "text": "%s"}\n' % (i, b"Tin rose. " * 50) for i in range(12_000))
    if name == "a.parquet":
        table = pyarrow.table({"id": list(map(str, range(12_000))), "text": ["Tin rose. " * 50] * 12_000})
        pyarrow.parquet.write_table(table, folder / name, compression="none", use_dictionary=False)
    else:
        (folder / "a.jsonl").write_bytes(lines)
        (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines, 0))
        (folder / "a.zip").write_bytes(zipped(("a.jsonl", lines), method=zipfile.ZIP_STORED))
    assert (folder / name).stat().st_size > 5 << 20  # more than fsspec asks for at a time
    found = read(f"{server}/{name}")
    assert not faults(found)
    assert ids(found) == ids(read(str(folder / name)))
    assert len(found) == 12_000


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


def test_a_missing_package_is_told_with_what_to_install(folder, monkeypatch):
    (folder / "a.jsonl.zst").write_bytes(zstandard.compress(LINES))
    (folder / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[zst\]'"):
        read("a.jsonl.zst")
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[parquet\]'"):
        read("a.parquet")


def test_pieces_and_chunks_can_be_pickled_as_they_are(folder):
    (folder / "a.jsonl").write_bytes(LINES + b"{")
    how = InputSettings()
    (batch,) = read_batches(find_sources(["a.jsonl"], how), how)
    again = pickle.loads(pickle.dumps(batch))
    assert (again, again.source, again.size) == (batch, "a.jsonl", len(LINES) + 1)
    assert isinstance(again.blocks[0], Block)
    assert list(formats.batch_records(again, how)) == list(formats.batch_records(batch, how))


def test_names_that_are_no_text_are_shown_as_one(folder):
    with open(os.fsencode("in") + b"\xff.txt", "wb") as file:
        file.write(b"Tin")
    (name,) = os.listdir()
    (record,) = read(name)
    json.dumps(record.source).encode("utf-8")
    assert (record.source, record.zones) == ("in\N{REPLACEMENT CHARACTER}.txt", {"body": "Tin"})
    assert decode_surrogates("a") == "a"
