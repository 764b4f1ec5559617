"""EndNote's XML: records with and without styles; a record that is cut off is told."""

from read_sources import read

from textcat.reading import InputSettings, find_sources

XML = (
    '<?xml version="1.0" encoding="UTF-8" ?><xml><records><record><rec-number>7</rec-number>'
    '<ref-type name="Journal Article">17</ref-type><contributors><authors><author><style face="n">Doe, Jane</style>'
    "</author><author>Roe, R.</author></authors></contributors><titles><title><style>Tin &amp; gold</style>"
    '<style face="italic"> in vitro</style></title><secondary-title>J Tin</secondary-title></titles>'
    "<periodical><full-title>J Tin</full-title></periodical><dates><year>2010</year></dates>"
    "<keywords><keyword>tin</keyword></keywords><abstract><style>About tin.</style></abstract></record>"
    "<record><titles><title>Cut off</title></titles></records></xml>"
)


def test_records_are_read(folder):
    (folder / "a.xml").write_text(XML)
    first, fault = read("a.xml", fields=("*",))
    assert find_sources(["a.xml"], InputSettings())[0].format == "endnote"
    assert first.zones == {"title": "Tin & gold in vitro", "body": "About tin."}
    assert first.fields == {
        "type": "Journal Article",
        "id": "7",
        "authors": ["Doe, Jane", "Roe, R."],
        "year": "2010",
        "journal": "J Tin",
        "keywords": ["tin"],
    }
    assert "cut off" in fault.reason


def test_entities_are_not_expanded(folder):
    (folder / "a.xml").write_text(
        '<!DOCTYPE xml [<!ENTITY a "aaaa">]><xml><records><record><abstract>&a;</abstract></record></records></xml>'
    )
    (fault,) = read("a.xml", format="endnote")
    assert "not valid XML" in fault.reason
