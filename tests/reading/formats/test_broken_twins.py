"""Broken twins of every format of news and scanned pages, between whole files: they take nothing else with them."""

import gzip
import json
import random
import re

import pytest
from cases import every
from news_items import ALL, FIRST_NINJS, JSON_FEED, THIRD_NINJS
from scanned_pages import ISSUE_FILES, alto
from tei_texts import corpus, tei

from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches

NINJS = json.dumps([FIRST_NINJS, THIRD_NINJS]).encode()
#: The files of each format, and the one that is broken.
FILES = {
    **{form: ({"x.xml": data}, "x.xml") for form, data in ALL.items()},
    "ninjs": ({"x.json": NINJS}, "x.json"),
    "json-feed": ({"x.json": json.dumps(JSON_FEED).encode()}, "x.json"),
    "tei": ({"x.xml": corpus(tei(1), tei(2))}, "x.xml"),
    "alto": ({"x.xml": alto()}, "x.xml"),
    "mets": (ISSUE_FILES, "mets.xml"),
    "alto of mets": (ISSUE_FILES, "alto/1.xml"),
}
BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">'
    b'<!ENTITY %% d SYSTEM "http://127.0.0.1:9/d.dtd"> %%d;]>\n'
)


def write(above, files):
    for name, data in files.items():
        path = above / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def bare(item, folder):
    """An item without the folder in which it is."""
    return item._replace(source=item.source[len(folder) :], id=item.id.replace(item.source, ""))


def read_twin(folder, form, data, block_bytes=1 << 20, name=""):
    """Read a file in place of the whole one, between whole files; return what it and its neighbours give.

    Check that the whole files give what they always give.
    """
    files, broken = FILES[form]
    for place in "abc":
        if not (folder / place).exists():
            write(folder / place, files)
    (folder / "b" / broken).unlink(missing_ok=True)
    write(folder / "b", {name or broken: data})
    found = {place: [] for place in "abc"}
    settings = InputSettings(block_bytes=block_bytes)
    for batch in read_batches(find_sources([str(folder)], settings), settings):
        for block in batch.blocks:
            items = [block] if isinstance(block, Rejection) else formats.block_records(block, settings)
            for item in items:
                place = item.source[len(str(folder)) + 1]
                found[place].append(item)
    whole = [bare(item, f"{folder}/a") for item in found["a"]]
    assert whole
    assert all(isinstance(item, Record) for item in whole)
    assert [bare(item, f"{folder}/c") for item in found["c"]] == whole
    for item in found["b"]:
        if isinstance(item, Rejection):
            assert item.reason.endswith(".")
            assert "\n" not in item.reason
            assert len(item.reason) < 500
            assert "passwd" not in item.reason
        else:
            assert sum(map(len, item.zones.values())) <= len(data) + sum(map(len, files.values()))
            json.dumps(item.zones).encode()
    return found["b"], found["a"]


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_files_that_are_cut_anywhere(tmp_path, form, block_bytes):
    files, broken = FILES[form]
    data = files[broken]
    for end in range(0, len(data.rstrip()) - 1, 97 if block_bytes > 1 else 411):
        found, whole = read_twin(tmp_path, form, data[:end], block_bytes)
        assert data[:end].strip() == b"" or any(isinstance(item, Rejection) for item in found)
        if form not in ("mets", "alto of mets"):
            records = [bare(item, f"{tmp_path}/b") for item in found if isinstance(item, Record)]
            assert records == [bare(item, f"{tmp_path}/a") for item in whole][: len(records)]


@pytest.mark.parametrize("form", FILES)
@every("to", ["utf-16", "utf-16-le", "utf-32", "latin-1", "cp037", "utf-7", "shift_jis"])
def test_files_in_an_encoding_that_they_do_not_declare(tmp_path, form, to):
    files, broken = FILES[form]
    declared = "latin-1" if form == "newsml" else "utf-8"
    text = files[broken].decode(declared)
    found, whole = read_twin(tmp_path, form, text.encode(to, "replace"))
    if to in ("utf-16", "utf-16-le", "utf-32"):  # which a mark tells, or the first characters
        assert [bare(item, f"{tmp_path}/b") for item in found] == [bare(item, f"{tmp_path}/a") for item in whole]


@pytest.mark.parametrize("form", [form for form in FILES if form not in ("ninjs", "json-feed")])
@every("where", [rb"(?<=>)\s*(?=<[a-zA-Z]|$)", rb'(?<=[a-z]="|[A-Z]=")'])
def test_bombs_of_entities_are_never_lit(tmp_path, form, where):
    files, broken = FILES[form]
    declaration, _, rest = files[broken].partition(b"\n")
    for name in (b"&b;", b"&c;", b"&d;"):
        places = [match.start() for match in re.finditer(where, rest)]
        place = places[len(places) * 2 // 3]
        data = declaration + b"\n" + BOMB + rest[:place] + name + rest[place:]
        found, _ = read_twin(tmp_path, form, data)
        assert not any(
            "aaaaaaaaaa" in text for item in found if isinstance(item, Record) for text in item.zones.values()
        )


@pytest.mark.parametrize("form", FILES)
def test_files_with_bytes_that_are_changed_by_chance(tmp_path, form):
    files, broken = FILES[form]
    chance = random.Random(form)
    for _ in range(25):
        data = bytearray(files[broken])
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            kind = chance.randrange(3)
            if kind == 0:
                data[place] = chance.randrange(256)
            elif kind == 1:
                del data[place : place + chance.randint(1, 30)]
            else:
                data[place:place] = data[place : place + chance.randint(1, 30)]
        read_twin(tmp_path, form, bytes(data))


@pytest.mark.parametrize("form", FILES)
def test_gzip_members_that_are_torn(tmp_path, form):
    files, broken = FILES[form]
    data = files[broken]
    middle = len(data) // 2
    packed = gzip.compress(data[:middle], mtime=0) + gzip.compress(data[middle:], mtime=0)
    name = f"{broken}.gz"
    found, whole = read_twin(tmp_path, form, packed, name=name)
    assert [item.zones for item in found] == [item.zones for item in whole]  # members follow each other
    for end in (*range(1, len(packed) - 8, len(packed) // 9), len(packed) - 4):
        found, _ = read_twin(tmp_path, form, packed[:end], name=name)
        assert any(isinstance(item, Rejection) for item in found)
    torn = bytearray(packed)
    torn[len(packed) // 2 :: 7] = bytes(len(torn[len(packed) // 2 :: 7]))
    found, _ = read_twin(tmp_path, form, bytes(torn), name=name)
    assert any(isinstance(item, Rejection) for item in found)
