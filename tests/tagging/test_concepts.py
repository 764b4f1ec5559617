"""Topics become concepts with codes, by a table or by themselves."""

import pytest
from cases import every

from textcat.base.errors import TextcatError
from textcat.reading import Subject
from textcat.tagging.concepts import concept_of, read_codes


@every(
    "given, expected",
    [
        (("wheat",), ("", "wheat", "")),
        (("medtop:20000225", "corn"), ("medtop", "20000225", "corn")),
        (("20000225", "", "medtop"), ("medtop", "20000225", "")),
        (("http://a.org/topics/corn",), ("http://a.org/topics/", "corn", "")),
        (("http://a.org/topics/corn/",), ("http://a.org/topics/", "corn/", "")),
        (("house:corn/",), ("house", "corn/", "")),
        (("corn", "", "http://a.org/topics"), ("http://a.org/topics/", "corn", "")),
        (("corn: a cereal",), ("", "corn: a cereal", "")),
    ],
)
def test_a_code_may_have_its_scheme_in_it(given, expected):
    assert concept_of(*given) == Subject(*expected)


def test_a_code_of_any_length_is_looked_at_once():
    code = "urn:" + ":a" * 200_000  # minutes, if what follows each colon were tried to the end
    assert concept_of(code) == Subject(code[:-1], "a", "")
    assert concept_of(f"{code}//") == Subject("urn", f"{code[4:]}//", "")


def table(tmp_path, text, name="codes.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        "topic,code,name,scheme\nwheat,20000225,corn,medtop\ngold,,,\n",
        "\ufefftopic\tcode\tname\r\nwheat\tmedtop:20000225\tcorn\r\n",
        "Note;Name;Topic;QCode\nx;corn;wheat;medtop:20000225\n",
    ],
)
def test_tables_of_several_kinds_are_read(tmp_path, text):
    assert read_codes(table(tmp_path, text)) == {"wheat": Subject("medtop", "20000225", "corn")}


def test_a_cell_may_have_the_end_of_a_line_in_it(tmp_path):
    text = 'topic,code,name\nwheat,medtop:1,"corn\nand more"\ngold,medtop:2,a\u2028b\n'
    assert [subject.name for subject in read_codes(table(tmp_path, text)).values()] == ["corn and more", "a b"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("wheat,20000225\n", "needs columns named topic and code .or uri., and has wheat, 20000225"),
        ("", "and has none"),
        ("topic,uri\nwheat,a:1\nwheat,a:2\n", "the topic 'wheat' twice"),
        (b"topic,code\n\xff,1\n", "not UTF-8"),
    ],
)
def test_a_table_that_says_nothing_is_refused(tmp_path, text, why):
    with pytest.raises(TextcatError, match=why):
        read_codes(table(tmp_path, text))


def test_a_table_that_is_not_there_is_named_with_a_similar_one(tmp_path):
    path = table(tmp_path, "topic,code\n")
    with pytest.raises(TextcatError, match=r"cannot be read.*Did you mean .*codes\.csv"):
        read_codes(path.replace("codes", "code"))
