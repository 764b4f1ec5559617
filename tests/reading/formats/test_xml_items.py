"""Files of XML items: cut anywhere, in blocks of any size, with bombs, deep elements and wrong encodings."""

import re

import pytest
from cases import every
from news_items import ALL, RSS, g2_item, g2_message
from read_sources import faults, ids, read

from textcat import open_corpus
from textcat.base.errors import TextcatError
from textcat.reading import FORMATS, InputSettings, Record, Rejection, text_of_file


@every("form", ALL)
def test_the_size_of_blocks_changes_nothing(place, form):
    whole = place(form, ALL[form])
    assert whole
    assert all(isinstance(item, Record) for item in whole)
    for size in (1, 100, 1000):
        assert place(form, ALL[form], block_bytes=size) == whole


@pytest.mark.parametrize("form", ALL)
def test_a_file_that_is_cut_anywhere_is_told_in_one_sentence(place, form):
    data, whole = ALL[form], place(form, ALL[form])
    root = re.compile(rb"</[\w:.]+>\s*\Z").search(data).end()
    for end in range(0, root - 2, 13):
        found = place(form, data[:end])
        records = [item for item in found if isinstance(item, Record)]
        assert records == whole[: len(records)]
        if data[:end].strip():
            (fault,) = faults(found)
            assert fault.reason.endswith(".")
            assert "\n" not in fault.reason
            assert len(fault.reason) < 400


@every("form", ALL)
def test_entities_that_a_file_declares_are_not_expanded(place, form):
    bomb = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>\n'
    declaration, _, rest = ALL[form].partition(b"\n")
    for name in (b"&b;", b"&c;"):
        data = declaration + b"\n" + bomb + re.sub(rb"(?<=[a-z])\.(?=</p>|</description>)", name, rest)
        (fault, *_) = faults(place(form, data))
        assert "not well-formed" in fault.reason
        assert "passwd" not in fault.reason


@every("form", ALL)
def test_deep_elements_and_wrong_encodings_are_told(place, form):
    data = re.sub(rb"<p>|<description>About", b"<x>" * 5000, ALL[form], count=1)
    assert "not well-formed" in faults(place(form, data))[0].reason
    data = re.sub(rb"rose|monte", b"ros\xff\xc0\x00", ALL[form], count=1)
    assert len(faults(place(form, data))) == 1
    data = re.sub(rb'encoding="[\w-]+"', b'encoding="nosuch"', ALL[form])
    assert "'nosuch'" in faults(place(form, data))[0].reason
    data = re.sub(rb'encoding="[\w-]+"', b'encoding="ascii"', ALL[form].replace(b"rose", b"ros\xc3\xa9"))
    assert all("encoding" in fault.reason or "well-formed" in fault.reason for fault in faults(place(form, data)))


def test_an_item_without_its_end_ends_where_the_next_one_begins(place):
    first, second = g2_item(1).replace("</newsItem>", ""), g2_item(2)
    found = place("newsml-g2", g2_message(first, second).encode())
    assert ids(found) == ["urn:tin:2"]
    assert faults(found)[0].position == 1


def test_a_long_item_is_passed_over(place):
    long = g2_item(1).replace("Tin rose.", "Tin rose. " * 2000)
    found = place("newsml-g2", g2_message(long, g2_item(2)).encode(), max_bytes=8000, block_bytes=1000)
    assert ids(found) == ["urn:tin:2"]
    assert "at most 8000" in faults(found)[0].reason
    assert found[1].position == 2


def test_a_feed_without_items_is_empty_and_a_part_of_one_is_cut_off(folder):
    empty = re.sub("<item>.*</item>", "", RSS, flags=re.DOTALL)
    (folder / "a.xml").write_text(empty)
    (fault,) = read("a.xml")
    assert "has no <item>" in fault.reason
    (folder / "a.xml").write_text(empty[:-10])
    assert "cut off" in read("a.xml")[0].reason


def test_a_corpus_with_a_broken_item_is_refused_with_its_place(folder):
    (folder / "a.xml").write_text(g2_message(g2_item(1), g2_item(2).replace("</headline>", "")))
    with pytest.raises(TextcatError, match=r"a\.xml: item 2 is not well-formed"):
        open_corpus("a.xml")


def test_xml_of_another_kind_is_named(folder):
    (folder / "a.xml").write_text("<?xml version='1.0'?><!-- <rss> --><p:PcGts xmlns:p='x'><Page/></p:PcGts>")
    (fault,) = read("a.xml")
    assert isinstance(fault, Rejection)
    assert "is PAGE, the text of a scanned page; convert it" in fault.reason


def test_a_file_of_one_item_is_a_document_for_a_server():
    for form in ("nitf", "newsml"):
        assert text_of_file("a.xml", ALL[form])["body"]
    assert text_of_file("", ALL["nitf"])["title"] == "Tin étain rose"
    assert text_of_file("a.json", b'{"uri": "u", "headline": "Tin", "body_text": "x"}') == {"title": "Tin", "body": "x"}
    with pytest.raises(TextcatError, match="has 2 documents"):
        text_of_file("a.xml", ALL["newsml-g2"])
    with pytest.raises(TextcatError, match="canceled"):
        text_of_file("a.xml", g2_message(g2_item(status="canceled")).encode())
    with pytest.raises(TextcatError, match="Excel workbook"):
        text_of_file("a.xlsx", b"PK")


@every("end, is_whole", [("</item >", True), ("</item\n\t>", True), ("</item", False), ("</item <b>", False)])
def test_an_end_tag_ends_before_the_next_tag(place, end, is_whole):
    data = f"<rss><channel><item><title>Tin</title><description>Tin rose.</description>{end}</channel></rss>".encode()
    found = place("rss", data)
    assert isinstance(found[0], Record) == is_whole
    for size in (1, 50, 90):
        assert place("rss", data, block_bytes=size) == found


def test_end_tags_that_are_not_closed_are_not_searched_to_the_end_of_the_file():
    class Once(bytes):
        def find(self, *_):
            raise AssertionError

    cutter = FORMATS["rss"].cutter(b"", "rss", InputSettings())
    assert cutter.cut(Once(b"<item>" + b"</item " * 1000)) == 0
    assert cutter.skip(Once(b"<item>" + b"</item " * 2000))[1] is False
