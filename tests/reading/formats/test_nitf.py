"""NITF: its texts, subjects and dates, embargoes, and the blocks of the New York Times."""

from news_items import NITF
from read_sources import ids, read

from textcat import open_corpus
from textcat.reading import FaultKind, InputSettings, find_sources


def test_a_story_gives_its_texts_date_language_and_subjects(folder):
    (folder / "a.xml").write_text(NITF)
    assert find_sources(["a.xml"], InputSettings())[0].format == "nitf"
    (record,) = read("a.xml", fields=("*",))
    assert record.zones == {
        "title": "Tin étain rose",
        "slugline": "TIN-UP",
        "abstract": "About tin.",
        "body": "Tin ACME rose late.\nGold & ore fell.\nA mine.",
    }
    assert (record.id, record.date, record.language) == ("tin-1", "2024-05-01T10:15:00+02:00", "en")
    assert record.fields["version"] == "3"
    (document,) = open_corpus("a.xml").train
    assert document.topics == ("subj:04011002", "medtop:20000170", "Tin ore")
    (document,) = open_corpus("a.xml", settings=InputSettings(topics_scheme="medtop")).train
    assert document.topics == ("medtop:20000170",)


def test_stories_may_follow_each_other_or_stand_inside_of_something(folder):
    story = NITF.partition('dtd">\n')[2]
    (folder / "a.nitf").write_text(story + story.replace("tin-1", "tin-2"))
    (folder / "b.xml").write_text(f"<all><x>{story}</x>{story.replace('tin-1', 'tin-2')}</all>")
    assert ids(read("a.nitf")) == ids(read("b.xml")) == ["tin-1", "tin-2"]


def test_an_embargo_is_the_date_of_release(folder):
    (folder / "a.xml").write_text(NITF.replace("<du-key", '<date.release norm="29990101T000000Z"/><du-key'))
    (folder / "b.xml").write_text(NITF.replace('status="usable"', 'status="withheld"'))
    assert "embargo until 2999-01-01" in read("a.xml")[0].reason
    assert "withheld" in read("b.xml")[0].reason


def test_an_embargo_that_is_no_date_is_an_error_and_one_that_has_ended_is_none(folder):
    for name, norm in {"a": "soon", "b": "20010101T000000Z"}.items():
        release = NITF.replace("<du-key", f'<date.release norm="{norm}"/><du-key')
        (folder / f"{name}.xml").write_text(release.replace('status="usable"', 'status="Embargoed"'))
    (rejection,) = read("a.xml")
    assert (rejection.kind, "'soon'" in rejection.reason) == (FaultKind.CONTENT, True)
    assert ids(read("b.xml")) == ["tin-1"]


def test_a_paragraph_that_stands_twice_is_read_once(folder):
    blocks = '<block class="lead_paragraph"><p>One.</p></block><block class="full_text"><p>One.</p><p>Two.</p></block>'
    head, _, rest = NITF.partition("<body.content>")
    (folder / "a.xml").write_text(f"{head}<body.content>{blocks}</body.content>{rest.partition('</body.content>')[2]}")
    assert read("a.xml")[0].zones["body"] == "One.\nTwo."
