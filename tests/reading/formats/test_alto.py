"""ALTO: divided words, spaces, reading order, confidence, languages, and what is no page."""

import pytest
from cases import every
from formats_read import parsed
from read_sources import faults, ids, read
from scanned_pages import DIVIDED, HEAD, HEADLINE, PICTURE, alto, line

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources, text_of_file
from textcat.reading.faults import FaultKind

DECLARED = b'<!DOCTYPE alto [<!ENTITY a "b">]>'


def text(data):
    (record,) = parsed("alto", data)
    return record.zones["body"]


def strings(*words):
    return "".join(word if word.startswith("<") else f"<String {word}/>" for word in words)


def block(*lines):
    return f"<TextBlock>{''.join(f'<TextLine>{line}</TextLine>' for line in lines)}</TextBlock>"


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_page_gives_its_words_language_and_mean_confidence(folder, version):
    (folder / "1.xml").write_bytes(alto(version=version))
    assert find_sources(["1.xml"], InputSettings())[0].format == "alto"
    (record,) = read("1.xml", fields=("*",))
    assert (record.id, record.language) == ("1.xml", "de")
    assert record.zones == {"body": "Tin rose\nDie Erzgrube schloss."}
    assert record.fields == {"language": "de", "word_confidence": 0.5}
    assert read("1.xml", fields=("word_confidence",))[0].fields == {"word_confidence": 0.5}
    assert read("1.xml")[0].fields is None


def test_a_file_without_namespace_is_a_page():
    assert text(alto().replace(b' xmlns="http://www.loc.gov/standards/alto/ns-v4#"', b"")).startswith("Tin rose")


def test_a_file_may_be_in_utf16_or_in_the_encoding_that_it_declares(folder):
    (folder / "1.xml").write_bytes(alto(line("B", "étain")).decode().encode("utf-16"))
    assert read("1.xml")[0].zones["body"] == "étain"
    (folder / "1.xml").write_bytes(alto(line("B", "étain")).decode().replace("UTF-8", "latin-1").encode("latin-1"))
    assert read("1.xml")[0].zones["body"] == "étain"


@every(
    "words, expected",
    [
        # The whole word once, wherever its parts are.
        (block(strings('CONTENT="a-" SUBS_TYPE="HypPart1" SUBS_CONTENT="ab"'), strings('CONTENT="c"')), "ab c"),
        (block(strings('CONTENT="b" SUBS_TYPE="HypPart2" SUBS_CONTENT="ab"', 'CONTENT="c"')), "ab c"),
        (
            block(strings('CONTENT="a" SUBS_TYPE="HypPart1" SUBS_CONTENT="ab"'))
            + line("B", "x")
            + block(strings('CONTENT="b" SUBS_TYPE="HypPart2" SUBS_CONTENT="ab"')),
            "ab\nx",
        ),
        # Without the whole word, its parts are joined.
        (block(strings('CONTENT="a-" SUBS_TYPE="HypPart1"'), strings('CONTENT="b" SUBS_TYPE="HypPart2"')), "ab"),
        (block(strings('CONTENT="a-"', "<HYP/>"), strings('CONTENT="b"')), "ab"),
        (block(strings('CONTENT="a"', '<HYP CONTENT="-"/>'), strings('CONTENT="b"', 'CONTENT="c"')), "ab c"),
        # A hyphen of which the file says nothing stays.
        (block(strings('CONTENT="a-"'), strings('CONTENT="b"')), "a- b"),
        # An abbreviation stays as it is printed.
        (block(strings('CONTENT="Dr" SUBS_TYPE="Abbreviation" SUBS_CONTENT="Doctor"')), "Dr"),
        # Spaces count if the file has any.
        (block(strings('CONTENT="a"', 'CONTENT="."', "<SP/>", 'CONTENT="b"')), "a. b"),
        (block(strings('CONTENT="a"', 'CONTENT="."', 'CONTENT="b"')), "a . b"),
    ],
)
def test_words_are_joined_as_the_file_says(words, expected):
    assert text(alto(words)) == expected


@every(
    "order",
    [
        '<OrderedGroup ID="g"><ElementRef ID="r1" REF="B2"/><ElementRef ID="r2" REF="B1"/></OrderedGroup>',
        '<OrderedGroup ID="g"><UnorderedGroup ID="h" REF="C1"/><ElementRef ID="r" REF="B1"/></OrderedGroup>',
        '<OrderedGroup ID="g"><ElementRef ID="r" REF="L2 L1"/></OrderedGroup>',
        '<OrderedGroup ID="g"><ElementRef ID="r" REF="B2"/></OrderedGroup>',
    ],
)
def test_the_reading_order_of_the_file_counts(order):
    order = f"<ReadingOrder>{order}</ReadingOrder>"
    assert text(alto(HEADLINE, DIVIDED, order=order)) == "Die Erzgrube schloss.\nTin rose"
    assert text(alto(HEADLINE, DIVIDED)) == "Tin rose\nDie Erzgrube schloss."


def test_the_language_of_most_words_counts_and_that_of_the_page_is_the_default():
    assert parsed("alto", alto(line("B", "a", "b"), HEADLINE))[0].language == "en"
    assert parsed("alto", alto(line("B", "a", "b", "c"), HEADLINE, page=' LANG="fr"'))[0].language == "fr"
    assert parsed("alto", alto(line("B", "a")))[0].language == ""


def test_a_confidence_that_is_no_share_does_not_count():
    words = strings('CONTENT="a" WC="0.5"', 'CONTENT="b" WC="nan"', 'CONTENT="c" WC="x"', 'CONTENT="d" WC="7"')
    assert parsed("alto", alto(block(words)), fields=("*",))[0].fields == {"word_confidence": 0.5}
    assert parsed("alto", alto(line("B", "a")), fields=("*",))[0].fields == {}


def test_encodings_have_the_names_that_python_knows(folder):
    (folder / "1.xml").write_bytes(alto(line("B", "étain")).partition(b"\n")[2].decode().encode("latin-1"))
    assert read("1.xml", encoding="latin-1")[0].zones["body"] == "étain"
    assert "unknown" in parsed("alto", alto().replace(b"UTF-8", b"none"))[0].reason


def test_a_page_without_words_is_left_out(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "1.xml").write_bytes(alto())
        (folder / name / "2.xml").write_bytes(alto(PICTURE))
    assert [fault.kind for fault in faults(read("a/2.xml"))] == [FaultKind.LEFT_OUT]
    documents = open_corpus(".").train
    assert [(document.id, document.topics) for document in documents] == [("a/1.xml", ("a",)), ("b/1.xml", ("b",))]


def test_a_page_is_read_as_an_uploaded_file():
    assert text_of_file("1.xml", alto()) == text_of_file("", alto()) == {"body": "Tin rose\nDie Erzgrube schloss."}


@every(
    "data, said",
    [
        (alto()[:-20], "well-formed"),
        (alto().replace(b"<alto", DECLARED + b"<alto").replace(b'"Tin"', b'"&a;"'), "well-formed"),
        (b"<a/>", "no ALTO"),
        (b"", "no element"),
    ],
)
def test_a_broken_page_is_rejected(data, said):
    (rejection,) = parsed("alto", data)
    assert said in rejection.reason


def test_one_broken_page_takes_no_other_with_it(folder):
    for number in range(1, 4):
        (folder / f"{number}.xml").write_bytes(alto()[: 200 if number == 2 else None])
    assert ids(read(".")) == ["1.xml", "3.xml"]
    assert [fault.source for fault in faults(read("."))] == ["2.xml"]


def test_words_without_a_block_count():
    assert text(alto('<String CONTENT="a"/>', HEAD.format(more=""))) == "a\nTin"
