"""Files whose lines end in carriage returns, as on old Macs, and files that were put behind each other."""

import gzip
import io
import sys

import pytest
from cases import every
from read_sources import faults, ids, read, zipped

from textcat.base.settings import read_toml
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, LabelSettings, Rejection

# By the name of the file: its text, and the bodies of its documents.
FILES = {
    "a.csv": ('id,text,topics\n1,"Tin, rose",tin\n2,Ore fell,ore\n', ["Tin, rose", "Ore fell"]),
    "a.tsv": ("text\ttopics\nTin rose\ttin\nOre fell\tore\n", ["Tin rose", "Ore fell"]),
    "b.tsv": ("Tin rose\t<http://example.org/1>\nOre fell\t<http://example.org/2>\n", ["Tin rose", "Ore fell"]),
    "a.jsonl": ('{"text": "Tin rose", "topics": ["tin"]}\n{"text": "Ore fell"}\n', ["Tin rose", "Ore fell"]),
    "a": ('{"text": "Tin rose", "topics": ["tin"]}\n{"text": "Ore fell"}\n', ["Tin rose", "Ore fell"]),
    "a.ris": ("TY  - JOUR\nAB  - Tin\nrose\nER  - \n\nTY  - JOUR\nAB  - Ore fell\nER  - \n", ["Tin rose", "Ore fell"]),
    "b.txt": (
        "Provider: A\n\nTY  - JOUR\nAB  - Tin\nrose\nER  - \nTY  - BOOK\nAB  - Ore fell\nER  - \n",
        ["Tin rose", "Ore fell"],
    ),
    "a.nbib": ("PMID- 1\nAB  - Tin\n      rose\n\nPMID- 2\nAB  - Ore fell\n", ["Tin rose", "Ore fell"]),
    "a.enw": ("%0 Book\n%X Tin\nrose\n\n%0 Book\n%X Ore fell\n", ["Tin rose", "Ore fell"]),
    "a.ciw": ("PT J\nAB Tin\n   rose\nER\n\nPT J\nAB Ore fell\nER\n", ["Tin rose", "Ore fell"]),
    "a.bib": ("@book{a,\n abstract = {Tin\nrose}}\n\n@book{b,\n abstract = {Ore fell}}\n", ["Tin rose", "Ore fell"]),
    "a.mbox": (
        "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\nTin rose\n\nFrom a@b Thu Jan  1 00:00:00 1970\n\nOre fell\n",
        ["Tin rose", "Ore fell"],
    ),
    "a.json": ('[{"text": "Tin rose"},\n{"text": "Ore fell"}\n]\n', ["Tin rose", "Ore fell"]),
}


def bodies(found):
    return [" ".join(one.zones["body"].split()) if not isinstance(one, Rejection) else one for one in found]


@every("name", FILES)
@every("block", [1, 30, 1 << 20])
@every("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_may_end_in_carriage_returns(folder, monkeypatch, name, block, encoding):
    text, texts = FILES[name]
    data = text.replace("\n", "\r").encode(encoding)
    (folder / name).write_bytes(data)
    (folder / f"{name}.gz").write_bytes(gzip.compress(data))
    (folder / "a.zip").write_bytes(zipped((f"b/{name}", data)))
    for source in (name, f"{name}.gz", "a.zip"):
        found = read(source, block_bytes=block)
        assert bodies(found) == texts
    (folder / name).write_bytes(text.encode(encoding))
    (folder / "b.zip").write_bytes(zipped((f"b/{name}", text.encode(encoding))))
    by_ends = [[one._replace(id="", source="") for one in records] for records in (found, read("b.zip"))]
    assert by_ends[0] == by_ends[1], "the same as with line feeds"
    if name == "a":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert bodies(read("-", block_bytes=block)) == texts


@every(
    "text, n",
    [("Tin\rOre\r", 2), ("Tin\rOre\nTin\r\nOre", 4), ("Tin\n\nOre\rTin\r\r", 3), ("Tin\r\rOre\r\r\nTin\rOre\r\r", 4)],
)
@every("block", [1, 5, 1 << 20])
def test_lines_may_end_in_all_ways_in_one_file(folder, text, n, block):
    (folder / "a.txt").write_bytes(text.encode())
    (folder / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.txt", "a.txt.gz"):
        found = read(name, lines=True, block_bytes=block)
        assert bodies(found) == ["Tin", "Ore", "Tin", "Ore"][:n]
    settings = InputSettings(lines=True, labels=LabelSettings())
    assert len(open_corpus("a.txt", settings=settings).train) == n


def test_a_reference_of_a_list_with_several_line_ends_is_not_lost(folder):
    (folder / "a.ris").write_bytes(b"TY  - JOUR\r\nTI  - Tin\r\nER  - \r\n\rTY  - JOUR\rTI  - Ore\rER  - \r")
    assert [one.zones["title"] for one in read("a.ris")] == ["Tin", "Ore"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_carriage_returns_among_line_feeds_are_told(folder, name):
    text = FILES[name][0]
    (folder / name).write_bytes((text + text.partition("\n")[2].replace("\n", "\r") * (name == "a.csv")).encode())
    if name == "a.jsonl":
        (folder / name).write_bytes((text + text.replace("\n", "\r")).encode())
    *documents, fault = read(name)
    assert bodies(documents) == FILES[name][1]
    assert "carriage return" in fault.reason
    assert "line feeds" in fault.reason


def test_a_carriage_return_in_a_value_stays(folder):
    (folder / "a.csv").write_bytes(b'id,text\n1,"Tin\rrose"\n')
    assert read("a.csv")[0].zones["body"] == "Tin\rrose"
    (folder / "a.jsonl").write_bytes(b'{"text":\r"Tin"}\n')
    assert read("a.jsonl")[0].zones["body"] == "Tin"


@every("name", [name for name in FILES if name not in ("a.json", "a.mbox", "a.bib")])
@every("end", [b"\n", b"\r\n", b"\r"])
def test_files_that_were_put_behind_each_other_lose_nothing_and_add_nothing(folder, name, end):
    text, texts = FILES[name]
    data = text.encode("utf-8-sig").replace(b"\n", end)
    (folder / name).write_bytes(data + data)
    found = read(name)
    assert bodies(one for one in found if not isinstance(one, Rejection)) == texts * 2
    assert all("repeats the header" in fault.reason for fault in faults(found))
    assert len(faults(found)) == (name in ("a.csv", "a.tsv"))


@pytest.mark.parametrize("plain_quotes", [False, True])
def test_a_header_that_comes_again_is_no_document(folder, caplog, plain_quotes):
    name = f"{plain_quotes}.csv"  # a warning comes once for each file
    (folder / name).write_bytes(b"text,topics\nTin rose,tin\n\xef\xbb\xbftext, topics \r\nOre,ore\ntext,tin\n")
    assert ids(read(name, plain_quotes=plain_quotes)) == [f"{name}:{line}" for line in (2, 4, 5)]
    corpus = open_corpus(name, settings=InputSettings(plain_quotes=plain_quotes))
    assert [document.topics for document in corpus.train] == [("tin",), ("ore",), ("tin",)]
    assert "line 3 repeats the header" in caplog.text


def test_a_text_with_carriage_returns_has_its_headers(folder):
    (folder / "letters" / "b").mkdir(parents=True)
    (folder / "letters" / "b" / "1").write_bytes(b"Subject: Tin\rLines: 3\r\rRose.")
    (folder / "c.toml").write_bytes(
        b'\xef\xbb\xbfreader = "folders"\rfiles = ["letters"]\roptions = { headers = "subject" }\r'
    )
    assert read_toml(folder / "c.toml", "card")["reader"] == "folders", "of a card, too"
    assert open_corpus("c.toml").train[0].zones == {"title": "Tin", "body": "Rose."}
    (folder / "a.eml").write_bytes(b"Subject: Tin\rDate: Thu, 1 Jan 1970 00:00:00 +0000\r\rRose.\r" + b"a " * 40_000)
    assert read("a.eml")[0].zones["title"] == "Tin"
