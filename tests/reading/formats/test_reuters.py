"""Reuters SGML: stories, their parts and entities, and what is broken."""

from collections import Counter
from itertools import islice

import pytest
from cases import every
from corpus_files import parse as parse_file
from corpus_files import read as read_corpus
from formats_read import outcome
from hypothesis import given
from hypothesis import strategies as st
from reuters_stories import STORY, parse

from textcat.base.errors import TextcatError
from textcat.reading import (
    InputSettings,
    Record,
    find_sources,
    formats,
    read_batches,
)

# Reuters


def test_the_stories_are_those_of_the_corpus(reuters_archive):
    how = InputSettings(block_bytes=1 << 18)
    found = (
        item
        for batch in read_batches(find_sources([reuters_archive], how), how)
        for item in formats.batch_records(batch, how)
    )
    stories = (item for item in found if item.source.endswith(".sgm"))
    documents = list(islice(read_corpus("reuters", reuters_archive), 2500))
    for story, document in zip(stories, documents, strict=False):
        assert isinstance(story, Record)
        assert story.id == document.id
        assert story.zones == ({name: text for name, text in document.zones.items() if text} or {"body": ""})


PLAIN_STORY = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="{}"><DATE>1</DATE><TOPICS></TOPICS>'
    "<TEXT><BODY>Tin</BODY></TEXT></REUTERS>\n"
)


def test_a_story_that_is_broken_harms_no_other(place):
    cut = PLAIN_STORY.format(2)[:100]
    data = (
        "<!DOCTYPE lewis>\n"
        + PLAIN_STORY.format(1)
        + cut
        + PLAIN_STORY.format(3)
        + "rubbish"
        + PLAIN_STORY.format(4)
        + cut
    )
    found = place("reuters", data.encode(), block_bytes=50)
    assert outcome(found) == [1, -2, 3, -4, 4, -5]
    assert [record.id for record in found if isinstance(record, Record)] == ["1", "3", "4"]
    assert found[1].reason == (
        "Story 2 cannot be read (story 2 is cut off before </REUTERS>: correct the file or fetch it again)."
    )
    assert found[3].reason == "Story 4 has text before it that belongs to no story: correct the file."
    assert data[found[1].offset :][: found[1].length] == cut


def test_a_story_that_is_too_long_is_passed_over(place):
    long = PLAIN_STORY.format(2).replace("Tin", "tin " * 5000)
    found = place(
        "reuters", (PLAIN_STORY.format(1) + long + PLAIN_STORY.format(3)).encode(), block_bytes=100, max_bytes=5000
    )
    assert outcome(found) == [1, -2, 3]
    assert "but a record may have at most 5000" in found[1].reason
    open_end = long.replace("</REUTERS>", "")
    found = place(
        "reuters", (PLAIN_STORY.format(1) + open_end + PLAIN_STORY.format(3)).encode(), block_bytes=100, max_bytes=5000
    )
    assert outcome(found) == [1, -2, 3]


UNPROC = """<TEXT TYPE="UNPROC">&#2;
WEEKLY RETURN
 Tin....12 vs....&lt;14
&#3;

</TEXT>"""


BRIEF = """<TEXT TYPE="BRIEF">&#2;
******<TITLE>TIN UP
</TITLE>Blah blah blah.
&#3;

</TEXT>"""


def with_text(element):
    return STORY[: STORY.index("<TEXT>")] + element + "\n</REUTERS>\n"


# ---- Reuters ----


def test_a_story_gives_its_id_zones_topics_date_and_part():
    (document,) = parse(STORY)
    assert document.id == "7"
    assert document.topics == ("tin", "gold")
    assert document.date == "1987-03-03T10:02:11.63"
    assert document.split == "train"
    assert list(document.zones) == ["title", "dateline", "body"]
    assert document.zones["title"] == "TIN <TIN> UP"
    assert document.zones["dateline"] == "BRISTOL, March 3 -"


@every("end", ["&#5;&#5;&#5;F", " # date added by hand", " "])
def test_a_date_ends_where_control_characters_or_a_remark_begin(end):
    (document,) = parse(STORY.replace("</DATE>", f"{end}</DATE>"))
    assert document.date == "1987-03-03T10:02:11.63"


def test_entities_and_control_characters_are_decoded_and_unknown_entities_stay():
    (document,) = parse(STORY)
    assert document.zones["body"] == "Tin & gold rose.\n    More étain &unknown; & café."


def test_an_entity_is_decoded_once():
    (document,) = parse(STORY.replace("TIN UP", "x").replace("TIN &lt;TIN> UP", "&amp;lt;"))
    assert document.zones["title"] == "&lt;"


def test_raw_control_characters_become_spaces():
    (document,) = parse(STORY.replace("TIN &lt;TIN> UP", "TIN\x01\x7fUP &#0; &#55296; &#9999999;A"))
    assert document.zones["title"].split() == ["TIN", "UP", "A"]


def test_an_unprocessed_story_keeps_its_whole_text_as_body():
    (document,) = parse(with_text(UNPROC))
    assert document.zones == {"title": "", "dateline": "", "body": "WEEKLY RETURN\n Tin....12 vs....<14"}


def test_a_brief_story_is_its_title():
    (document,) = parse(with_text(BRIEF))
    assert document.zones == {"title": "TIN UP", "dateline": "", "body": ""}


def test_text_outside_of_all_elements_goes_to_the_body_and_the_author_does_not():
    loose = STORY.replace("</TITLE>\n", "</TITLE>\n<AUTHOR>    By A. Smith</AUTHOR>\n MTH LAST\n")
    (document,) = parse(loose)
    assert document.zones["body"].startswith("MTH LAST\nTin & gold")


@every(
    "indexed, lewis, cgi, expected",
    [
        ("YES", "TRAIN", "TRAINING-SET", ("train", "train", "train")),
        ("NO", "TEST", "TRAINING-SET", ("unused", "test", "train")),
        ("BYPASS", "TEST", "PUBLISHED-TESTSET", ("unused", "unused", "test")),
        ("YES", "NOT-USED", "TRAINING-SET", ("unused", "unused", "train")),
    ],
)
def test_the_splits_follow_the_attributes(indexed, lewis, cgi, expected):
    story = (
        STORY.replace('"YES"', f'"{indexed}"').replace('"TRAIN"', f'"{lewis}"').replace('"TRAINING-SET"', f'"{cgi}"')
    )
    assert tuple(parse(story, split=split)[0].split for split in ("modapte", "modlewis", "modhayes")) == expected


@every(
    "broken, message",
    [
        (STORY[:-60], "a.sgm: story 7 is cut off before </REUTERS>"),
        (STORY[:-60] + STORY, "a.sgm: story 7 is cut off before </REUTERS>"),
        (STORY.replace(' NEWID="7"', ""), "a.sgm: a story without NEWID has no attribute NEWID"),
        (STORY.replace("LEWISSPLIT", "SPLIT"), "story 7 has no attribute LEWISSPLIT"),
        (STORY.replace('"TRAIN"', '"TRIAN"'), "story 7 has the unknown value LEWISSPLIT='TRIAN'"),
        (STORY.replace('"YES"', '"PERHAPS"'), "story 7 has the unknown value TOPICS='PERHAPS'"),
        (STORY.replace("</BODY>", ""), "story 7 has no </BODY>"),
        (STORY.replace("<TEXT>", ""), "story 7 has no <TEXT"),
        (STORY.replace("<TOPICS>", ""), "story 7 has no <TOPICS>"),
    ],
)
def test_a_malformed_story_is_told_with_file_and_number(broken, message):
    with pytest.raises(TextcatError, match=message.replace("(", r"\(")):
        parse(broken)


@given(st.integers(0, len(STORY) - 1))
def test_a_file_cut_anywhere_gives_its_stories_or_an_error(cut):
    try:
        documents = parse(STORY + STORY[:cut])
    except TextcatError:
        return
    assert len(documents) == 1 + ("</REUTERS>" in STORY[:cut])


PIECES = [
    "",
    "\n",
    "<",
    ">",
    "&",
    "x",
    '"',
    "<D>",
    "</D>",
    "<BODY>",
    "<TITLE>",
    "<DATELINE>",
    "</TITLE>",
    '<TEXT TYPE="BRIEF">',
]


@given(st.integers(0, len(STORY)), st.sampled_from(PIECES), st.integers(0, 9))
def test_a_usual_story_is_read_like_one_that_is_read_element_by_element(place, piece, cut):
    edited = STORY[:place] + piece + STORY[place + cut :]

    def outcome_of(story):
        try:
            return parse(story)
        except TextcatError as error:
            return str(error)

    assert outcome_of(edited) == outcome_of(edited.replace("<REUTERS ", "<REUTERS  "))  # so that it is not usual


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data):
    story = STORY.encode("latin-1").replace(b"TIN &lt;TIN> UP", data)
    try:
        documents = parse_file("reuters", "a.sgm", story)
    except TextcatError:
        return
    assert all(isinstance(d.zones["title"], str) for d in documents)


def test_an_unknown_split_or_encoding_is_told():
    with pytest.raises(TextcatError, match=r"'apte': .*modapte, modlewis, modhayes"):
        parse(STORY, split="apte")
    with pytest.raises(TextcatError, match="no encoding 'latin-99'"):
        parse(STORY, encoding="latin-99")


def test_the_whole_collection_has_its_published_counts(reuters_archive):
    documents = list(read_corpus("reuters", reuters_archive))
    assert len({d.id for d in documents}) == 21578
    assert Counter(d.split for d in documents) == {"train": 9603, "test": 3299, "unused": 8676}
    # README, section VII: 120 TOPICS categories occur, 57 of them 20 times or more.
    occurrences = Counter(topic for d in documents for topic in d.topics)
    assert len(occurrences) == 120
    assert sum(count >= 20 for count in occurrences.values()) == 57
    assert Counter(d.split for d in documents if not d.topics) == {"train": 1828, "test": 280, "unused": 8103}
    # An UNPROC story that is empty in the source.
    assert [d.id for d in documents if not any(d.zones.values())] == ["12793"]
    assert not any(
        ord(character) < 32 and character not in "\n\t"
        for d in documents
        for character in set("".join(d.zones.values()))
    )


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("modlewis", {"train": 13625, "test": 6188, "unused": 1765}),
        ("modhayes", {"train": 20856, "test": 722}),
    ],
)
def test_the_other_splits_have_their_published_counts(reuters_archive, split, expected):
    assert Counter(d.split for d in read_corpus("reuters", reuters_archive, split=split)) == expected
