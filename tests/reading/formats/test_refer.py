"""Refer, as EndNote exports it: every reference is a document, by name and by content, wherever it lies."""

import pytest
from cases import every
from read_sources import read, zipped

from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, Record, Rejection, find_sources

REFER = """%0 Journal Article
%T Barley exports
  of the coast
%A Doe, Jane
%A Müller, R.
%D 2019
%8 12 March
%J Journal of Barley
%V 3
%N 2
%P 12-34
%X First paragraph.

Second paragraph.
%K barley
ports; ships
%R https://doi.org/10.1000/xyz123
%M 4711
%Z seen
%+ Coast

%0 Book
%T Copper mines
%A Roe, R.
"""
CLASSIC = "%A A. V. Aho\n%A P. J. Weinberger\n%T Awk\n%J Software\n%D 1979\n\n%T Yacc\n%A S. C. Johnson\n%D July 1975\n"


@every("block", [1, 100, 1 << 20])
@every("end", ["\n", "\r\n"])
@every("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@every("name", ["a.enw", "a.txt", "a"])
def test_every_reference_is_a_document(folder, name, encoding, end, block):
    (folder / name).write_bytes(REFER.replace("\n", end).encode(encoding))
    first, second = read(name, fields=("*",), block_bytes=block)
    assert first.zones == {
        "title": "Barley exports of the coast",
        "body": "First paragraph. Second paragraph.",
    }
    assert (first.id, first.position, second.id, second.zones) == ("4711", 1, f"{name}:2", {"title": "Copper mines"})
    assert first.fields == {
        "type": "Journal Article",
        "id": "4711",
        "authors": ["Doe, Jane", "Müller, R."],
        "year": "2019",
        "date": "12 March",
        "journal": "Journal of Barley",
        "volume": "3",
        "issue": "2",
        "pages": "12-34",
        "keywords": ["barley", "ports", "ships"],
        "doi": "10.1000/xyz123",
        "notes": ["seen"],
        "%+": "Coast",
    }


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_references_without_a_type_are_separated_by_blank_lines(folder, block):
    (folder / "a.txt").write_text(CLASSIC)
    assert [one.zones["title"] for one in read("a.txt", block_bytes=block)] == ["Awk", "Yacc"]


def test_references_are_found_in_archives_and_topics_folders(folder):
    for topic in ("crops", "metals"):
        (folder / "corpus" / topic).mkdir(parents=True)
        (folder / "corpus" / topic / "refs.txt").write_text(REFER.replace("4711", topic))
    corpus = open_corpus("corpus")
    assert [document.topics for document in corpus.train] == [("crops",)] * 2 + [("metals",)] * 2
    (folder / "a.zip").write_bytes(zipped(("b/refs.txt", REFER.encode()), ("b/plain.txt", b"100 % wool\n% of it")))
    assert [one.id for one in read("a.zip")] == ["4711", "a.zip/b/refs.txt:2", "a.zip/b/plain.txt"]


def test_a_list_is_a_corpus_whose_topics_are_the_keywords(folder):
    (folder / "refs.txt").write_text(REFER)
    assert [document.topics for document in open_corpus("refs.txt").train] == [("barley", "ports", "ships"), ()]
    (folder / "refs").mkdir()
    for name in ("a.txt", "b.ris"):
        (folder / "refs" / name).write_text(REFER if name == "a.txt" else "TY  - JOUR\nTI  - Tin\nER  - \n")
    assert len(open_corpus("refs").train) == 3


def test_lists_that_were_put_behind_each_other_lose_no_reference(folder):
    marked = REFER.encode("utf-8-sig")
    (folder / "a.enw").write_bytes(marked + b"\n" + marked)
    titles = [one.zones["title"] for one in read("a.enw")]
    assert titles == ["Barley exports of the coast", "Copper mines"] * 2


def test_a_reference_that_is_too_long_costs_itself_only(folder):
    long = "%0 Book\n%T Tin\n%X " + "a\n" * 100_000 + "\n"
    (folder / "a.enw").write_text(CLASSIC + "\n" + long + CLASSIC)
    found = read("a.enw", max_bytes=10_000, block_bytes=1 << 12)
    assert [type(one) for one in found] == [Record, Record, Rejection, Record, Record]


@pytest.mark.parametrize(
    "text",
    [
        "% A comment of LaTeX\n% and another\n\\begin{document}",
        "%T alone\n",
        "%PDF is a format\n%T Title of it\n",
        "%A\n%B\n%T\n",
        "%s %d\n%A day\n",
    ],
)
def test_texts_that_begin_with_a_percent_sign_are_texts(folder, text):
    (folder / "a.txt").write_text(text)
    assert find_sources(["a.txt"], InputSettings())[0].format == "text"
    assert len(read("a.txt")) == 1


def test_a_file_without_a_reference_is_rejected(folder):
    (folder / "a.enw").write_text("no reference\n")
    (fault,) = read("a.enw")
    assert "--format" in fault.reason
