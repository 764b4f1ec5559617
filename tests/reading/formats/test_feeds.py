"""Feeds of RSS and Atom: texts with markup in all its forms, categories, dates and languages."""

from news_items import ATOM, RSS
from read_sources import ids, read

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources


def test_items_of_rss_give_their_texts_dates_language_and_categories(folder):
    (folder / "a.rss").write_text(RSS)
    assert find_sources(["a.rss"], InputSettings())[0].format == "rss"
    first, second = read("a.rss")
    assert first.zones == {"title": "Tin rose & fell", "abstract": "About tin.", "body": "Tin rose.\nAn of é."}
    assert (first.id, first.date, first.language) == ("tin:1", "2024-05-01T10:15:00+02:00", "en-us")
    assert (second.id, second.date, second.zones) == ("http://example.org/2", "2024-05-02", {"body": "Gold fell."})
    assert [d.topics for d in open_corpus("a.rss").train] == [("Metals", "medtop:20000170"), ()]


def test_entries_of_atom_give_their_texts_dates_languages_and_categories(folder):
    (folder / "a").write_text(ATOM)
    assert find_sources(["a"], InputSettings())[0].format == "atom"
    first, second = read("a")
    assert first.zones == {"title": "Tin rose", "abstract": "About tin.", "body": "Tin rose.\nOre fell."}
    assert (first.id, first.date, first.language) == ("urn:tin:1", "2024-05-01T10:15:00+02:00", "en")
    assert (second.zones, second.date, second.language) == (
        {"title": "Gold", "body": "Gold fiel."},
        "2024-05-02T09:00:00Z",
        "de",
    )


def test_an_entry_that_was_updated_counts_in_its_newest_form(folder):
    newer = ATOM.replace("2024-05-02T09", "2024-05-03T09").replace("Ore fell", "Ore rose")
    (folder / "a.xml").write_text(newer)
    (folder / "b.xml").write_text(ATOM)
    assert ids(read("a.xml", "b.xml")) == ["urn:tin:1", "urn:tin:2"]
    assert "Ore rose" in read("a.xml", "b.xml")[0].zones["body"]


def test_rss_1_is_read(folder):
    (folder / "a.xml").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        '<channel rdf:about="x"><items><rdf:Seq/></items></channel>'
        '<item rdf:about="http://example.org/1"><title>Tin</title><description>Tin rose.</description></item></rdf:RDF>'
    )
    (record,) = read("a.xml")
    assert (record.id, record.zones) == ("http://example.org/1", {"title": "Tin", "body": "Tin rose."})
