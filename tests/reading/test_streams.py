"""Streams of bytes: unpacked, bounded, and damaged ones told of."""

import codecs
import gzip
import io
import os
import shutil
import tracemalloc
from collections import Counter

import pytest
from read_sources import COMPRESSIONS, LINES, faults, ids, read, tarred, zipped

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, LabelSettings, Rejection, find_sources, formats, read_batches, read_documents
from textcat.reading.faults import FaultKind

# Compression and archives


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_what_is_compressed_is_read_as_if_it_were_not(folder, ending):
    compress = COMPRESSIONS[ending]
    (folder / f"a.jsonl{ending}").write_bytes(compress(LINES[:500]) + compress(LINES[500:]))
    (folder / f"b.jsonl{ending}").write_bytes(LINES)  # as servers do that unpack what they send
    assert ids(read(f"a.jsonl{ending}")) == ids(read(f"b.jsonl{ending}")) == [str(i) for i in range(1, 51)]


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_of_what_is_cut_off_the_records_before_are_given_and_the_rest_is_one_rejection(folder, ending):
    data = b"".join(b'{"id": "%d", "text": "%s"}\n' % (i, os.urandom(50).hex().encode()) for i in range(10000))
    (folder / f"a.jsonl{ending}").write_bytes(COMPRESSIONS[ending](data)[:-1000])
    (folder / "b.jsonl").write_bytes(LINES)
    found = read(f"a.jsonl{ending}", "b.jsonl")
    (fault,) = faults(found)
    records = ids(found)[:-50]
    assert records == [str(i) for i in range(len(records))]
    assert len(records) > 5000
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


@pytest.mark.parametrize("name", [f"a{form}{ending}" for ending in COMPRESSIONS for form in (".jsonl", ".csv", ".txt")])
def test_an_empty_file_with_the_name_of_a_compressed_one_is_damaged(folder, name):
    (folder / name).write_bytes(b"")
    (folder / "b.jsonl").write_bytes(LINES)
    found = read(name, "b.jsonl")
    (fault,) = faults(found)
    assert (fault.source, fault.kind, len(found)) == (name, FaultKind.DAMAGE, 51)


@pytest.mark.parametrize("data", [b"", b" \n\n", codecs.BOM_UTF8])
def test_an_empty_file_of_json_is_damaged_but_not_one_of_json_lines(folder, data):
    (folder / "a.json").write_bytes(data)
    (folder / "a.jsonl").write_bytes(data)
    (fault,) = read("a.json")
    assert (fault.source, fault.kind, read("a.jsonl")) == ("a.json", FaultKind.DAMAGE, [])


def test_json_may_follow_many_blank_lines(folder):
    (folder / "a.json").write_bytes(b"\n" * 100_000 + b'{"id": "1", "text": "Tin rose."}')
    assert ids(read("a.json")) == ["1"]


def test_zeros_behind_a_compressed_file_are_no_fault(folder):
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(LINES) + b"\0" * 1000)
    assert len(read("a.jsonl.gz")) == 50


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_bomb_is_refused(folder, ending):
    packed = COMPRESSIONS[ending](b" " * (20 << 20))
    (folder / f"a.jsonl{ending}").write_bytes(packed)
    (folder / "b.zip").write_bytes(zipped((f"a.jsonl{ending}", packed), ("c.jsonl", LINES)))
    (folder / f"d.tar{ending}").write_bytes(COMPRESSIONS[ending](tarred(("a.jsonl", b" " * (20 << 20)))))
    found = read(f"a.jsonl{ending}", "b.zip", f"d.tar{ending}")
    assert len(ids(found)) == 50
    reasons = {fault.source.partition("/")[0]: fault.reason for fault in faults(found)}
    assert set(reasons) == {f"a.jsonl{ending}", "b.zip", f"d.tar{ending}"}
    assert all("unpacks to more than 1000 times its size" in reason for reason in reasons.values())


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
        due=0.0,
    )


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_record_that_is_too_long_is_passed_over_in_bounded_memory(folder, ending):
    long = b'{"id": "long", "text": "' + b"tin " * (6 << 20) + b'"}\n'
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


# Inputs that change while they are read

MANY = b"".join(b'{"id": "%d", "text": "Tin rose by %d."}\n' % (i, i) for i in range(1, 5001))


def read_while(change, *inputs, labels=False):
    """All records, where the inputs change after the first batch."""
    how = InputSettings(block_bytes=1 << 12, labels=LabelSettings() if labels else None)
    found = []
    for number, batch in enumerate(read_batches(find_sources(inputs, how), how)):
        found += formats.batch_records(batch, how)
        if number == 0:
            change()
    return found


def cut_off(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("inputs", ["a.jsonl", "."])
@pytest.mark.parametrize("left", [0, 5000, 100_000])
def test_a_file_that_shrinks_while_it_is_read_does_not_end_early_in_silence(folder, inputs, left):
    (folder / "a.jsonl").write_bytes(MANY)
    found = read_while(lambda: cut_off("a.jsonl", left), inputs)
    fault = faults(found)[-1]
    assert (fault.kind, fault.source) == (FaultKind.CHANGED, "a.jsonl")
    assert f"{len(MANY):,} bytes" in fault.reason
    assert "restore it, then start again" in fault.reason
    assert ids(found) == [str(i) for i in range(1, len(ids(found)) + 1)]
    # What is missing is known.
    assert fault.offset + fault.length == len(MANY)


def test_a_file_that_is_overwritten_while_it_is_read_is_no_mixture_in_silence(folder):
    (folder / "a.jsonl").write_bytes(MANY)
    found = read_while(lambda: (folder / "a.jsonl").write_bytes(MANY.replace(b"Tin", b"Oil") * 2), "a.jsonl")
    assert faults(found)[-1].kind is FaultKind.CHANGED
    assert "was replaced while it was read" in faults(found)[-1].reason


def test_a_file_that_grows_or_is_touched_or_renamed_over_is_read_as_it_was(folder):
    (folder / "a.jsonl").write_bytes(MANY)
    found = read_while(lambda: os.utime("a.jsonl", (1, 1)), "a.jsonl")
    assert len(ids(found)) == len(found) == 5000

    def grow():
        with open("a.jsonl", "ab") as file:
            file.write(b'{"text": "more"}\n')

    assert not faults(read_while(grow, "a.jsonl"))
    (folder / "b").write_bytes(b"{}")
    found = read_while(lambda: os.replace("b", "a.jsonl"), "a.jsonl")
    assert len(ids(found)) == len(found) == 5001


def test_files_that_vanish_from_a_folder_while_it_is_read_are_missed(folder):
    (folder / "in").mkdir()
    for i in range(50):
        (folder / "in" / f"{i:02}.jsonl").write_bytes(MANY[:9066])
    found = read_while(lambda: shutil.rmtree("in"), "in")
    assert {fault.kind for fault in faults(found)} <= {FaultKind.CHANGED, FaultKind.LINK, FaultKind.ACCESS}
    read_of = Counter(one.source for one in found if not isinstance(one, Rejection))
    whole = {name for name, n in read_of.items() if n == MANY[:9066].count(b"\n")}
    assert {f"in/{i:02}.jsonl" for i in range(50)} <= whole | {fault.source for fault in faults(found)}


def test_a_corpus_that_shrinks_while_it_is_read_is_an_error(folder, monkeypatch):
    (folder / "a.jsonl").write_bytes(MANY.replace(b'"id"', b'"topics": "tin", "id"'))
    size = (folder / "a.jsonl").stat().st_size
    seen = []

    def shrink(record):
        if not seen:
            cut_off("a.jsonl", size // 2)
        seen.append(record)

    with pytest.raises(TextcatError, match=rf"a\.jsonl had {size:,} bytes .* restore it, then start again"):
        read_documents(["a.jsonl"], InputSettings(block_bytes=1 << 12), as_read=shrink)
