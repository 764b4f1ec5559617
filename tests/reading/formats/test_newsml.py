"""NewsML 1.2: an item's texts, revision, status and subjects."""

from news_items import newsml
from read_sources import read

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources


def test_an_item_gives_its_texts_date_language_and_subjects(folder):
    (folder / "a.xml").write_bytes(newsml())
    assert find_sources(["a.xml"], InputSettings())[0].format == "newsml"
    (record,) = read("a.xml")
    assert record.zones == {"title": "L'étain monte", "slugline": "ETAIN", "body": "L'étain monte.\nL'or baisse."}
    assert (record.id, record.language) == ("urn:newsml:example.org:20240501:TIN1", "fr-FR")
    assert (record.date, record.version[0]) == ("2024-05-01T10:15:00+02:00", 2)
    assert open_corpus("a.xml").train[0].topics == ("subj:04000000", "subj:04011002")


def test_a_killed_or_embargoed_item_is_left_out(folder):
    change = "<StatusWillChange><FutureStatus FormalName='Usable'/><DateAndTime>{}</DateAndTime></StatusWillChange>"
    for status, when, told in (("Canceled", "", "canceled"), ("Killed", "", "killed"), ("Embargoed", "", "embargo")):
        (folder / "a.xml").write_bytes(newsml(status))
        assert told in read("a.xml")[0].reason, when
    (folder / "a.xml").write_bytes(newsml("Embargoed", change.format("29990101T000000Z")))
    assert "until 2999-01-01" in read("a.xml")[0].reason
    (folder / "a.xml").write_bytes(newsml("Embargoed", change.format("20010101T000000Z")))
    assert read("a.xml")[0].zones["title"]


def test_html_in_character_data_loses_its_tags(folder):
    start, _, rest = newsml().partition(b"<p>")
    text = b"<![CDATA[<P>Tin rose.</P>\n<P>Ore &amp; gold fell.</P>]]>"
    (folder / "a.xml").write_bytes(start + text + b"</DataContent>" + rest.partition(b"</DataContent>")[2])
    assert read("a.xml")[0].zones["body"] == "Tin rose.\nOre & gold fell."
