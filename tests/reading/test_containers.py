"""Folders and archives: what is in them, what is refused, and what is damaged."""

import gzip
import io
import json
import lzma
import os
import stat
import tarfile
import zipfile
from collections import Counter

import pytest
from corpus_files import names
from corpus_files import read as read_corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_sources import COMPRESSIONS, LINES, faults, ids, read, tarred, zipped
from reuters_stories import OTHER, STORY, parse, tar

from textcat.base.errors import TextcatError
from textcat.reading import (
    DamagedError,
    FaultKind,
    InputSettings,
    Record,
    Rejection,
    find_sources,
    read_batches,
    read_documents,
    streams,
)
from textcat.reading.containers import MemberNames


def test_folders_files_and_archives_give_the_same_stories(sources):
    for paths in sources:
        assert list(read_corpus("reuters", *paths)) == parse(STORY) + parse(OTHER)


def test_a_single_file_may_be_compressed(tmp_path):
    (tmp_path / "a.sgm.gz").write_bytes(gzip.compress(STORY.encode("latin-1")))
    assert list(read_corpus("reuters", tmp_path / "a.sgm.gz")) == parse(STORY)


# ---- archives ----


def link(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def sources_in(*files, folder, name="a.tar", pack=tarred, **how):
    (folder / name).write_bytes(pack(*files))
    found = read(folder / name, **how)
    return [one.source.removeprefix(f"{folder}/{name}/") for one in found]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("name", "pack"), [("a.tar", tarred), ("a.zip", zipped)])
@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("a b a", "a b #2/a"),
        ("a b a c a a", "a b #2/a c #3/a #4/a"),
        ("a ./a .//a d/a d/./a", "a #2/a #3/a d/a #2/d/a"),
        ("a #2/a a #2/a a", "a #2/a #3/a #2/#2/a #4/a"),
        ("a a #2/a #2/#2/a", "a #2/a #2/#2/a #2/#2/#2/a"),
        ("A a a", "A a #2/a"),
        ("d\u0301 \u010f d\u0301", "d\u0301 \u010f #2/d\u0301"),
        ("d/a d d/b", "d/a #2/d d/b"),
        ("d d/a d", "d #2/d/a #3/d"),
    ],
)
def test_a_file_whose_path_an_archive_has_again_gets_a_name_of_its_own(tmp_path, paths, expected, name, pack):
    files = [(path, b"Text %d." % i) for i, path in enumerate(paths.split())]
    assert sources_in(*files, folder=tmp_path, name=name, pack=pack) == expected.split()


def test_files_with_the_same_path_in_archives_inside_archives_have_names_of_their_own(tmp_path):
    inner = zipped(("a", b"One."), ("b", b"Two."))
    files = [("in.zip", inner), ("in.zip/a", b"Three."), ("in.zip", inner)]
    expected = ["in.zip/a", "in.zip/b", "#2/in.zip/a", "#3/in.zip/a", "#3/in.zip/b"]
    assert sources_in(*files, folder=tmp_path) == expected


def test_links_and_files_that_replace_each_other_have_names_of_their_own(tmp_path):
    files = [("a.txt", b"One."), (link("a.txt", tarfile.LNKTYPE), b""), ("a.txt", b"Two.")]
    assert sources_in(*files, folder=tmp_path) == ["a.txt", "#2/a.txt", "#3/a.txt"]


def test_settings_for_a_file_are_those_of_all_files_with_its_path(tmp_path):
    files, own = [("d/a.csv", b"x,y\nTin.,b\n")] * 2, (("text_fields", ("x",)),)
    for pattern in ("a.csv", "d/a.csv", "a.tar/d/a.csv", "*/a.tar/d/*"):
        (tmp_path / "a.tar").write_bytes(tarred(*files))
        found = read(tmp_path / "a.tar", for_files=((pattern, own),))
        assert [record.zones for record in found] == [{"body": "Tin."}] * 2, pattern


def test_reading_resumes_between_files_with_the_same_path(tmp_path):
    (tmp_path / "a.tar").write_bytes(tarred(*[("a.jsonl", LINES), ("b.txt", b"Tin."), ("a.jsonl", LINES)] * 2))
    how = InputSettings(block_bytes=300)
    sources = find_sources([tmp_path / "a.tar"], how)
    batches = list(read_batches(sources, how))
    for i in range(0, len(batches), 3):
        rest = list(read_batches(sources, how, batches[i].end))
        assert [batch.blocks for batch in rest] == [batch.blocks for batch in batches[i + 1 :]]


def test_a_corpus_with_two_texts_of_the_same_name_is_refused(tmp_path):
    (tmp_path / "a.tar").write_bytes(tarred(("x/a.txt", b"One."), ("y/b.txt", b"Two."), ("x/a.txt", b"Three.")))
    with pytest.raises(TextcatError, match=r"two documents 'x/a\.txt'"):
        read_documents([tmp_path / "a.tar"], InputSettings())


def test_names_of_very_many_files_of_an_archive_are_told_apart():
    names = MemberNames()
    paths = [f"{i % 97}/{i}" for i in range(3000)]
    assert [names.unique(path) for path in paths] == paths
    assert [names.unique(path) for path in paths] == [f"#2/{path}" for path in paths]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("../a.sgm", "a path that leads out of the archive"),
        ("x/../../a.sgm", "a path that leads out of the archive"),
        ("/tmp/a.sgm", "a path that leads out of the archive"),
        ("..\\a.sgm", "a path that leads out of the archive"),
        ("C:\\a.sgm", "a path that leads out of the archive"),
        (link("a.sgm", tarfile.SYMTYPE), "a link or device"),
        (link("a.sgm", tarfile.LNKTYPE), "a link or device"),
        (link("a.sgm", tarfile.CHRTYPE), "a link or device"),
        (link("a.sgm", tarfile.FIFOTYPE), "a link or device"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path, entry, reason):
    with pytest.raises(TextcatError, match=f"holds {reason}"):
        read_corpus("reuters", tar(tmp_path / "bad.tar", [(entry, b"")], "w"))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_an_archive_cut_anywhere_is_damaged(tmp_path, suffix):
    whole = tar(tmp_path / f"a.tar{suffix}", [("a", bytes(range(256)) * 9), ("b", b"b" * 600)], f"w:{suffix[1:]}")
    data = whole.read_bytes()
    # A plain archive ends in a run of zeros, whose length does not matter.
    end = len(data.rstrip(b"\0")) if suffix == "" else len(data)
    for cut in sorted({*range(0, end, 97), end - 1}):
        whole.write_bytes(data[:cut])
        with pytest.raises(DamagedError, match=r"is damaged or incomplete .*: fetch or copy it again"):
            read_corpus("lines", whole)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_changed_byte_in_a_compressed_archive_is_damage(tmp_path, suffix):
    path = tar(tmp_path / f"a.tar{suffix}", [("a", bytes(range(256)) * 9)], f"w:{suffix[1:]}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        read_corpus("lines", path)


def test_a_header_that_is_none_is_damage_not_the_end(tmp_path):
    path = tar(tmp_path / "a.tar", [("a", b"a" * 600), ("b", b"b" * 600)], "w")
    data = bytearray(path.read_bytes())
    data[1536] ^= 1  # the first byte of the second header
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="bad checksum"):
        read_corpus("lines", path)


def test_a_member_of_absurd_size_is_damage(tmp_path):
    info = tarfile.TarInfo("a")
    info.pax_headers = {"size": "9" * 30}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(data.getvalue()))
    with pytest.raises(DamagedError):
        read_corpus("lines", tmp_path / "a.tar.gz")


def test_a_web_page_saved_as_an_archive_is_damaged(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"<html>Not found</html>" * 100)
    with pytest.raises(DamagedError):
        read_corpus("lines", tmp_path / "a.tar.gz")


def test_a_damaged_compressed_file_and_a_missing_path_are_told(tmp_path):
    (tmp_path / "a.sgm.gz").write_bytes(gzip.compress(STORY.encode("latin-1"))[:-9])
    with pytest.raises(DamagedError):
        read_corpus("reuters", tmp_path / "a.sgm.gz")
    with pytest.raises(TextcatError, match=r"nowhere .*\(No such file or directory\)"):
        read_corpus("reuters", tmp_path / "nowhere")


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
    assert {fault.source for fault in faults(found)} == {
        f"a.tar/{name}" for name in ("../a.txt", "/b.txt", "link", "hard", "dev")
    }
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


@pytest.mark.parametrize("n_bytes", [512, 1024, 1024 + 100, 2048, 2048 + 511, 3072])
@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_without_its_end_mark_is_read_as_far_as_it_goes_and_rejected(folder, n_bytes, packed):
    data = tarred(*((f"{i}.txt", b"tin") for i in range(3)))[:n_bytes]  # each file takes 1,024 bytes
    (folder / "a.tar").write_bytes(gzip.compress(data) if packed else data)
    found = read("a.tar")
    assert {fault.kind for fault in faults(found)} == {FaultKind.DAMAGE}
    assert len(ids(found)) == n_bytes // 1024
    with pytest.raises(DamagedError):
        read_documents(["a.tar"], InputSettings(format="text"))


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_an_archive_a_browser_has_uncompressed_is_read_all_the_same(tmp_path, sources):
    renamed = (tmp_path / "r.tar").rename(tmp_path / "plain.tar.gz")
    assert len(list(read_corpus("reuters", renamed))) == 2


def test_names_are_those_of_the_members(sources):
    (folder,), (one, other), *archives = sources
    assert names(folder) == ["README", "a.sgm", "b.sgm"]
    assert (names(one), names(other)) == (["a.sgm"], ["b.sgm"])
    for (archive,) in archives:
        assert names(archive) == ["x/a.sgm", "x/b.sgm", "x/README"]
