"""Items in encodings other than UTF-8 get their tags where they would be in UTF-8."""

import codecs

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from news_tags import CREATOR, TAGS, changed

from textcat.reading import ByteStream, is_cut_by_characters, unmarked_encoding
from textcat.tagging.concepts import Edit
from textcat.tagging.encodings import edits_in
from textcat.tagging.file_copy import ChangedError, EditedStream
from textcat.tagging.tags_in_json import edits_of_ninjs
from textcat.tagging.tags_in_xml import edits_of_newsml_g2

ITEM = '{"uri": "u:1", "headlines": [{"value": "ソ表能 tin"}], "x": "表", "subjects": [{"name": "ソ"}]}'
G2 = "<newsItem><itemMeta/><contentMeta><h><![CDATA[表]ソ]></h>]]></h><subject creator='ソ'/></contentMeta></newsItem>"


@every("encoding", ["shift_jis", "euc_jp", "gb18030", "cp932", "utf-8", ""])
@every("editor, text", [(edits_of_ninjs, ITEM), (edits_of_newsml_g2, G2)])
def test_a_byte_that_is_a_part_of_a_character_is_no_sign(encoding, editor, text):
    data = text.encode(encoding or "utf-8")
    found = changed(data, edits_in(encoding, editor, data, TAGS, CREATOR))
    utf8 = text.encode()
    assert found.decode(encoding or "utf-8") == changed(utf8, editor(utf8, TAGS, CREATOR)).decode()


def test_characters_that_depend_on_others_are_not_changed():
    data = "<newsItem><contentMeta><h>表</h></contentMeta></newsItem>".encode("iso2022_jp")
    with pytest.raises(UnicodeError):
        edits_in("utf-7", edits_of_newsml_g2, data.replace(b"<h>", b"<h>+AGEAYg-"), TAGS, CREATOR)
    with pytest.raises(LookupError):
        edits_in("no-such", edits_of_newsml_g2, data, TAGS, CREATOR)


def test_encodings_with_escapes_are_told_from_those_without():
    for encoding in ("", "utf-16", "utf-16-be", "utf-32", "cp037", "latin-1"):
        assert is_cut_by_characters(encoding), encoding
    for encoding in ("utf-7", "iso2022_jp", "hz", "shift_jis"):
        assert not is_cut_by_characters(encoding), encoding


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"])
@given(st.data())
def test_edits_in_utf_8_are_made_in_another_encoding(encoding, data):
    letters = "aé\n<" if encoding == "cp037" else "aé\n€𐍈\ufeff"
    text = data.draw(st.text(letters, max_size=40))
    size = data.draw(st.integers(1, 9))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=4, max_size=4)))
    places = [len(text[:cut].encode()) for cut in cuts]
    edits = [Edit(places[0], places[1], b"x"), Edit(places[2], places[3], b"yz")]
    stored = text.encode(encoding)
    pieces = iter([stored[i : i + size] for i in range(0, len(stored), size)])
    found = []
    edited = EditedStream(ByteStream(lambda n: next(pieces, b"")), found.append, encoding)
    edited.apply(edits)
    edited.finish()
    bom = {"utf-16": codecs.BOM_UTF16, "utf-32": codecs.BOM_UTF32}.get(encoding, b"")
    plain = unmarked_encoding(encoding, bom)[1]
    assert b"".join(found) == bom + changed(text.encode(), edits).decode().encode(plain)


def test_a_stream_that_is_no_longer_in_its_encoding_has_changed():
    pieces = iter([b"\x00\xd8a\0"])
    edited = EditedStream(ByteStream(lambda n: next(pieces, b"")), len, "utf-16-le")
    with pytest.raises(ChangedError):
        edited.finish()
