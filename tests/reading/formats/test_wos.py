"""The tagged format of Web of Science: every record is a document, by name and by content, wherever it lies."""

import io
import sys

from cases import every
from read_sources import read, tarred

from textcat.corpus.catalogue import open_corpus

WOS = """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Doe, J
   Roe, R
AF Doe, Jane
   Müller, Rolf
TI Barley exports
   of the coast
SO JOURNAL OF BARLEY
DE barley; ports
ID SHIPS; COASTAL
   TRADE
AB Background: PT J
   was measured.
PD MAR
PY 2019
VL 3
IS 2
BP 12
EP 34
DI 10.1000/xyz123
UT WOS:000001
C1 [Doe, Jane] Univ A.
   [Müller, Rolf] Univ B.
DT Article
ER

PT B
AU Roe, R
TI Copper mines
ER

EF
"""


@every("block", [1, 100, 1 << 20])
@every("end", ["\n", "\r\n"])
@every("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@every("name", ["a.ciw", "savedrecs.txt", "a"])
def test_every_record_is_a_document(folder, name, encoding, end, block):
    (folder / name).write_bytes(WOS.replace("\n", end).encode(encoding))
    first, second = read(name, fields=("*",), block_bytes=block)
    assert first.zones == {"title": "Barley exports of the coast", "body": "Background: PT J was measured."}
    assert (first.id, second.id, second.zones) == ("WOS:000001", f"{name}:2", {"title": "Copper mines"})
    assert first.fields == {
        "type": "Article",
        "id": "WOS:000001",
        "authors": ["Doe, Jane", "Müller, Rolf"],
        "year": "2019",
        "date": "MAR",
        "journal": "JOURNAL OF BARLEY",
        "volume": "3",
        "issue": "2",
        "pages": "12-34",
        "doi": "10.1000/xyz123",
        "keywords": ["barley", "ports", "SHIPS", "COASTAL TRADE"],
        "PT": "J",
        "C1": ["[Doe, Jane] Univ A.", "[Müller, Rolf] Univ B."],
    }
    assert second.fields["authors"] == ["Roe, R"]


def test_records_are_found_in_tars_and_pipes(folder, monkeypatch):
    (folder / "a.tar").write_bytes(tarred(("b/savedrecs.txt", WOS.encode())))
    assert [one.id for one in read("a.tar")] == ["WOS:000001", "a.tar/b/savedrecs.txt:2"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WOS.encode())))
    assert [one.id for one in read("-")] == ["WOS:000001", "-:2"]


def test_a_list_is_a_corpus_whose_topics_are_the_keywords(folder):
    (folder / "savedrecs.txt").write_text(WOS)
    topics = [document.topics for document in open_corpus("savedrecs.txt").train]
    assert topics == [("barley", "ports", "SHIPS", "COASTAL TRADE"), ()]


def test_lists_without_their_first_lines_or_put_behind_each_other_are_read(folder):
    (folder / "a.txt").write_bytes(WOS.partition("1.0\n")[2].encode() + WOS.encode("utf-8-sig"))
    assert [one.zones["title"] for one in read("a.txt")] == ["Barley exports of the coast", "Copper mines"] * 2


def test_a_file_without_a_record_is_rejected(folder):
    (folder / "a.ciw").write_text("no record\n")
    (fault,) = read("a.ciw")
    assert "--format" in fault.reason
