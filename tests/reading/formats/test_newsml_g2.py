"""NewsML-G2: news items alone and in messages, with content of all kinds, and the items that are no news."""

import pytest
from news_items import BODY_OF_DATA, BODY_OF_HTML, BODY_OF_NITF, BODY_OF_XHTML, g2_item, g2_message
from read_sources import COMPRESSIONS, faults, ids, read, tarred, zipped

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources, read_batches


@pytest.mark.parametrize("content", [BODY_OF_NITF, BODY_OF_XHTML, BODY_OF_DATA, BODY_OF_HTML])
def test_content_of_all_kinds_gives_the_same_document(folder, content):
    (folder / "a.xml").write_text(g2_message(g2_item(content=content)))
    assert find_sources(["a.xml"], InputSettings())[0].format == "newsml-g2"
    (record,) = read("a.xml", fields=("subjects",))
    assert record.zones == {
        "title": "Tin rose 1",
        "slugline": "TIN-UP",
        "abstract": "About tin.",
        "body": "Tin rose.\nOre fell.",
    }
    assert (record.id, record.date, record.language) == ("urn:tin:1", "2024-05-01T10:15:00+02:00", "en")
    assert [one["code"] for one in record.fields["subjects"]] == ["20000170", "20000171", "tin"]


def test_topics_have_their_scheme_before_them(folder):
    (folder / "a.xml").write_text(g2_message(g2_item()))
    (document,) = open_corpus("a.xml").train
    assert document.topics == ("medtop:20000170", "medtop:20000171", "house:tin")
    (document,) = open_corpus("a.xml", settings=InputSettings(topics_scheme="house")).train
    assert (document.topics, document.language) == (("house:tin",), "en")


def test_an_item_may_be_the_whole_file_with_prefixes_and_another_encoding(folder):
    item = g2_item().replace("</", "</g:").replace("<", "<g:").replace("<g:/g:", "</g:")
    item = item.replace("<g:newsItem", '<g:newsItem xmlns:g="http://iptc.org/std/nar/2006-10-01/"').replace(
        "Ore", "Öre"
    )
    for encoding in ("iso-8859-1", "utf-8", "utf-16"):
        (folder / "a.xml").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>\n{item}'.encode(encoding))
        (record,) = read("a.xml")
        assert record.zones["body"] == "Tin rose.\nÖre fell."


def test_items_that_are_no_news_are_left_out_by_their_names(folder):
    others = [f"<{name}Item guid='x'/>" for name in ("package", "concept", "knowledge", "planning", "catalog")]
    (folder / "a.xml").write_text(g2_message(*others, g2_item()))
    found = read("a.xml")
    assert ids(found) == ["urn:tin:1"]
    told = ("package", "concept", "knowledge", "planning", "catalog")
    assert all(name in item.reason for name, item in zip(told, faults(found), strict=True))
    assert len(open_corpus("a.xml").train) == 1


def test_the_newest_version_counts_and_what_must_not_be_published_is_told(folder):
    items = [
        g2_item(1, version=2),
        g2_item(1, version=1),
        g2_item(2, status="canceled"),
        g2_item(3, meta="<embargoed>2999-01-01T00:00:00Z</embargoed>"),
        g2_item(4, meta="<embargoed/>"),
        g2_item(5, meta="<embargoed>2001-01-01T00:00:00Z</embargoed>"),
    ]
    (folder / "a.xml").write_text(g2_message(*items))
    found = read("a.xml")
    assert ids(found) == ["urn:tin:1", "urn:tin:5"]
    reasons = [item.reason for item in faults(found)]
    assert all(
        word in why for word, why in zip(("newer version", "canceled", "until 2999", "embargo"), reasons, strict=True)
    )
    assert [d.id for d in open_corpus("a.xml").train] == ["urn:tin:1", "urn:tin:5"]


def test_a_newer_version_in_another_file_counts_for_a_corpus(folder):
    (folder / "news").mkdir()
    for name, item in {"a": g2_item(1, version=2), "b": g2_item(1, version=1), "c": g2_item(2)}.items():
        (folder / f"news/{name}.xml").write_text(g2_message(item))
    assert [d.id for d in open_corpus("news").train] == ["urn:tin:1", "urn:tin:2"]
    (folder / "news/d.xml").write_text(g2_message(g2_item(1, version=3, status="canceled")))
    assert [d.id for d in open_corpus("news").train] == ["urn:tin:2"]


def test_messages_are_read_alike_compressed_and_in_archives(folder):
    message = g2_message(g2_item(1), g2_item(2, BODY_OF_XHTML)).encode()
    (folder / "a.xml").write_bytes(message)
    (folder / "a.xml.gz").write_bytes(COMPRESSIONS[".gz"](message))
    (folder / "a.zip").write_bytes(zipped(("x/a.xml", message)))
    (folder / "a.tar").write_bytes(tarred(("a.xml", message)))
    (folder / "in").mkdir()
    (folder / "in/a.xml").write_bytes(message)
    plain = [record._replace(source="") for record in read("a.xml")]
    for name in ("a.xml.gz", "a.zip", "a.tar", "in", (folder / "a.xml").as_uri()):
        assert [record._replace(source="") for record in read(name)] == plain


def test_reading_goes_on_from_every_checkpoint(folder):
    (folder / "a.xml").write_text(g2_message(*map(g2_item, range(1, 9))))
    settings = InputSettings(block_bytes=1)
    sources = find_sources(["a.xml"], settings)
    batches = list(read_batches(sources, settings))
    assert len(batches) > 8
    for i, batch in enumerate(batches):
        assert list(read_batches(sources, settings, batch.end)) == batches[i + 1 :]


def test_a_comment_before_the_items_declares_nothing(folder):
    comment = '<!-- <span xml:lang="fr"> <b xmlns:g="urn:x">&amp; -->'
    (folder / "a.xml").write_text(f"{comment}\n{g2_message(g2_item())}")
    (record,) = read("a.xml")
    assert record.zones["title"] == "Tin rose 1"


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "us-ascii"])
def test_utf_8_that_is_declared_to_be_latin_1_is_read_as_utf_8(folder, encoding):
    item = g2_item().replace("Ore", "Öre")
    (folder / "a.xml").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>\n{item}'.encode())
    (record,) = read("a.xml")
    assert record.zones["body"] == "Tin rose.\nÖre fell."


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_known_without_its_mark(folder, encoding):
    (folder / "a.xml").write_bytes(f'<?xml version="1.0" encoding="utf-16"?>\n{g2_item()}'.encode(encoding))
    (record,) = read("a.xml")
    assert record.zones["title"] == "Tin rose 1"


def test_html_that_is_called_plain_text_loses_its_tags(folder):
    content = '<inlineData contenttype="text/plain"><![CDATA[ <p>Tin <b>rose</b>.</p><p>Ore fell.</p>]]></inlineData>'
    (folder / "a.xml").write_text(g2_message(g2_item(content=content)))
    (record,) = read("a.xml")
    assert record.zones["body"] == "Tin rose.\nOre fell."


def test_the_header_and_footer_of_a_page_do_not_belong_to_its_text(folder):
    page = (
        "<header><ul><li>Economy</li></ul><h1>Tin</h1></header><section><p>Tin rose.</p></section><footer>(c)</footer>"
    )
    content = "<inlineXML><html xmlns='http://www.w3.org/1999/xhtml'><body>{}</body></html></inlineXML>"
    (folder / "a.xml").write_text(g2_message(g2_item(content=content.format(page))))
    assert read("a.xml")[0].zones["body"] == "Tin rose."
    (folder / "a.xml").write_text(g2_message(g2_item(content=content.format("<header>Tin fell.</header>"))))
    assert read("a.xml")[0].zones["body"] == "Tin fell."
