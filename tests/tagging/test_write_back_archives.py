"""Zips and tars that are written again with the tags of the news in them."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from news_items import BODY_OF_DATA, NITF, g2_item, g2_message
from read_sources import COMPRESSIONS, zipped

from textcat.reading import InputSettings
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import make_plan
from textcat.tagging.write_back import base_of, write_back

NINJS = {"uri": "urn:1", "type": "text", "headlines": [{"value": "Wheat"}], "bodies": [{"value": "Wheat rose."}]}
READ = InputSettings()
G2 = g2_message(g2_item(1, BODY_OF_DATA)).encode()
JSON = json.dumps(NINJS, indent=1).encode()
FILES = [
    ("readme.txt", b"Read me."),
    ("day/a.xml", G2),
    ("day/picture", bytes(range(256)) * 20),
    ("day/c.json", JSON),
    ("d.xml.gz", COMPRESSIONS[".gz"](NITF.encode())),
    ("e.csv", b"id,text\n1,wheat\n"),
    ("cut.xml", G2[:-8]),
    ("é" * 60 + ".xml", G2.decode().replace("UTF-8", "UTF-16").encode("utf-16")),
]
TAGGED = {name for name, _ in FILES if name.endswith((".json", "a.xml", ".gz", "é.xml"))}

METHODS = {".json": zipfile.ZIP_DEFLATED, ".xml": zipfile.ZIP_LZMA, "": zipfile.ZIP_BZIP2}


def zip_of(files=FILES, comment=b"all of today"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = comment
        archive.mkdir("day")
        for i, (name, data) in enumerate(files):
            info = zipfile.ZipInfo(name, (1999 + i, 1, 2, 3, 4, 6))
            info.compress_type = METHODS.get(Path(name).suffix, zipfile.ZIP_STORED)
            info.external_attr, info.comment, info.create_system = 0o640 << 16, b"of %d" % i, 3
            info.extra = b"\xfe\xca\x03\x00abc"
            archive.writestr(info, data)
    return buffer.getvalue()


def tar_of(files=FILES, form=tarfile.PAX_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        folder = tarfile.TarInfo("day")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for i, (name, data) in enumerate(files):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode, info.uid, info.uname = len(data), 10**9 + i + 0.25, 0o640, 7, "ann"
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def members_of_zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return [(_facts(info), info.filename, archive.read(info)) for info in archive.infolist()], archive.comment


def _facts(info):
    names = "orig_filename date_time compress_type comment extra create_system internal_attr external_attr volume"
    return {name: getattr(info, name) for name in names.split()} | {"utf8": info.flag_bits & 0x800}


def members_of_tar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        whole = [(info, archive.extractfile(info)) for info in archive]
        return [
            ({**info.get_info(), "size": 0, "chksum": 0}, info.name, file and file.read()) for info, file in whole
        ], archive.format


def write(model, path, out, read=READ, top=2):
    reasons = []
    plan = make_plan(model, [str(path)], read, OutputSettings(top=top), jobs=1)
    summary = write_back(plan, out, base_of([str(path)]), on_rejection=lambda one: reasons.append(str(one)))
    found = out / Path(path).name
    return summary, reasons, found.read_bytes() if found.exists() else None


ARCHIVES = {
    "a.zip": (zip_of(), members_of_zip),
    "a.tar": (tar_of(), members_of_tar),
    "b.tar": (tar_of(form=tarfile.GNU_FORMAT), members_of_tar),
    **{f"a.tar{ending}": (pack(tar_of()), members_of_tar) for ending, pack in COMPRESSIONS.items() if ending != ".zst"},
    "nameless": (tar_of(), members_of_tar),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("block_bytes", [500, 1 << 20])
def test_an_archive_is_written_with_tags_in_its_news_and_all_else_as_it_was(model, tmp_path, out, name, block_bytes):
    data, members_of = ARCHIVES[name]
    (tmp_path / name).write_bytes(data)
    summary, reasons, found = write(model, tmp_path / name, out, InputSettings(block_bytes=block_bytes))
    assert any("cut.xml" in reason and "</newsMessage>" in reason for reason in reasons)
    assert (summary.written, summary.left_out) == (1, 0)
    (before, about), (after, about_found) = members_of(data), members_of(found)
    assert about == about_found
    assert [one[:2] for one in after] == [one[:2] for one in before]
    changed = {name for (_, name, content), (*_, new) in zip(before, after, strict=True) if content != new}
    assert changed == TAGGED
    alone = tmp_path / "alone"
    alone.mkdir()
    for _, member, content in before:
        if member in TAGGED:
            path = alone / member.rpartition("/")[2]
            path.write_bytes(content)
            expected = write(model, path, tmp_path / "out" / path.name)[2]
            assert next(new for *_, of, new in after if of == member) == expected


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_an_archive_that_was_written_is_not_changed_by_writing_it_again(model, tmp_path, out, name):
    (tmp_path / name).write_bytes(ARCHIVES[name][0])
    _, _, found = write(model, tmp_path / name, out / "1")
    assert write(model, out / "1" / name, out / "2")[2] == found


def test_names_of_zips_in_old_encodings_stay(model, tmp_path, out):
    data = zip_of([("x" * 5 + ".json", JSON), ("y" * 5 + ".txt", b"text")]).replace(b"xxxxx", b"\x81xx\xffx")
    data = data.replace(b"yyyyy", b"\x81yy\xffy")
    (tmp_path / "a.zip").write_bytes(data)
    found = write(model, tmp_path / "a.zip", out)[2]
    assert found.count(b"\x81xx\xffx.json") == found.count(b"\x81yy\xffy.txt") == 2
    assert [one[:2] for one in members_of_zip(found)[0]] == [one[:2] for one in members_of_zip(data)[0]]


def test_sums_behind_the_files_of_a_zip_stay(model, tmp_path, out):
    class Forwards(io.BytesIO):
        def seekable(self):
            return False

        def tell(self):
            raise OSError

    buffer = Forwards()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("a.txt", b"text"), ("b.json", JSON), ("c.txt", b"more")):
            archive.writestr(name, content)
    (tmp_path / "a.zip").write_bytes(buffer.getvalue())
    found = write(model, tmp_path / "a.zip", out)[2]
    assert [one[1] for one in members_of_zip(found)[0]] == ["a.txt", "b.json", "c.txt"]
    assert found.count(b"PK\x07\x08") == 2


OTHER = json.dumps(NINJS | {"uri": "urn:2", "bodies": [{"value": "Gold fell."}]}).encode()
TABLE = ("b.csv", b"id,text\n1,wheat\n")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
@pytest.mark.parametrize(
    ("name", "make", "members_of"), [("a.zip", zip_of, members_of_zip), ("a.tar", tar_of, members_of_tar)]
)
@pytest.mark.parametrize(
    "files",
    [
        [("a.json", JSON), ("a.json", OTHER)],
        [("a.json", JSON), TABLE, ("a.json", OTHER)],
        [
            ("a.json", JSON),
            TABLE,
            ("./a.json", OTHER),
            ("#2/a.json", JSON),
            ("day//a.json", OTHER),
            ("day/a.json", JSON),
        ],
        [("#2/a.json", OTHER), ("a.json", JSON), ("a.json", OTHER), ("a.json", G2[:-8]), ("a.json", JSON)],
    ],
)
def test_files_of_the_same_name_get_their_own_tags(model, tmp_path, out, files, name, make, members_of, block_bytes):
    (tmp_path / name).write_bytes(make(files))
    found = write(model, tmp_path / name, out / "all", InputSettings(block_bytes=block_bytes), 1)[2]
    contents = [content for _, path, content in members_of(found)[0] if path.strip("/") != "day"]
    for number, ((path, data), content) in enumerate(zip(files, contents, strict=True)):
        if data in (JSON, OTHER):
            (tmp_path / "alone.json").write_bytes(data)
            assert content == write(model, tmp_path / "alone.json", out / f"{number}", top=1)[2] != data
        else:
            assert content == data, path


def test_an_archive_inside_another_one_stays_as_it_is(model, tmp_path, out):
    inner = zipped(("x.json", JSON))
    (tmp_path / "a.zip").write_bytes(zip_of([("in.zip", inner), ("b.json", JSON)]))
    summary, reasons, found = write(model, tmp_path / "a.zip", out)
    assert ["in an archive inside another one" in reason for reason in reasons] == [True]
    assert dict(one[1:] for one in members_of_zip(found)[0])["in.zip"] == inner
    assert summary.written == 1
    (tmp_path / "b.zip").write_bytes(zip_of([("in.zip", inner)]))
    summary, reasons, found = write(model, tmp_path / "b.zip", out / "b")
    assert (summary.written, summary.left_out, found) == (0, 1, None)


def test_what_leads_out_of_an_archive_is_named_and_copied(model, tmp_path, out):
    files = [("b.json", JSON), ("/etc/x.json", JSON), ("../y.json", JSON), ("c.json", JSON)]
    for name, make, members_of in (("a.zip", zip_of, members_of_zip), ("a.tar", tar_of, members_of_tar)):
        (tmp_path / name).write_bytes(make(files))
        summary, reasons, found = write(model, tmp_path / name, out / name)
        assert len(reasons) == 2
        contents = [one[2] for one in members_of(found)[0] if one[1].endswith(".json")]
        assert [content == JSON for content in contents] == [False, True, True, False]
        assert summary.written == 1


def test_an_archive_that_is_damaged_or_has_no_news_is_left_out(model, tmp_path, out):
    (tmp_path / "a.tar").write_bytes(tar_of()[:-9000])
    (tmp_path / "b.zip").write_bytes(zip_of()[:-30])
    (tmp_path / "c.zip").write_bytes(zip_of([("a.csv", b"id,text\n1,tin\n")]))
    for name in ("a.tar", "b.zip"):
        summary, reasons, found = write(model, tmp_path / name, out / name)
        assert (summary.written, summary.left_out, found) == (0, 1, None)
        assert reasons
    summary, reasons, _ = write(model, tmp_path / "c.zip", out / "c")
    assert (summary.written, summary.formats) == (0, {"csv": 1})


def test_files_that_overlap_in_a_zip_are_not_copied_again_and_again(model, tmp_path, out):
    data = zip_of([("a.json", JSON), ("b.bin", bytes(range(256)) * 300)], b"")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.start_dir
    listed = data[start:-22]
    last = listed[listed.rindex(b"PK\x01\x02") :]
    end = bytearray(data[-22:])
    end[8:12] = b"\x07\x00\x07\x00"
    end[12:16] = (len(listed) + 4 * len(last)).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data[:start] + listed + last * 4 + bytes(end))
    _summary, reasons, found = write(model, tmp_path / "a.zip", out)
    assert found is None
    assert any("overlap" in reason for reason in reasons)
