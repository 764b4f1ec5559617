"""Texts are brought into normal form as by Python, but faster, and characters of the form have a place."""

import sys
import unicodedata

import numpy as np
import pytest
from cases import every
from hypothesis import example, given
from hypothesis import strategies as st
from naive_features import normalised as naive

from textcat.base.normal_forms import normalised, origins

LETTERS = "aeéêñüÅΩαίяйじがｶﾞกำ់한한가각ক়ড়𝅗𝅥𑂚𑄮中豈😀"
MARKS = "\u0300\u0301\u0323\u0327\u0338\u0345\u3099\u309a\u0e48\u0e38\u05b0\u0653\u1161\u11a8\u09be\U000110ba\U0001d165"
SINGLETONS = "\u212b\u2126\u212a\u037e\u0387\u0340\u0344\u2000\u2001\u2329\uf900\U0002f800\ufb1d\u0958\u2adc"
AROUND = " \n\u00a0\u2028\u3000.,-:)\u200b\u200d\ufe0f\ud800\xad\xac\u2e17\u2011\t\r"
SHAPES = "ſﬁﬓשּׁﭏﻛﺘ٤ـ１Ａﾃﾞ⼀aͤ\ufdfa\uffa1\uffc2"
texts = st.text(
    st.one_of(st.sampled_from([*LETTERS, *MARKS, *SINGLETONS, *AROUND, *SHAPES]), st.characters()), max_size=30
)


def test_every_character_has_the_form_that_python_gives_it_alone_behind_a_letter_and_before_a_mark():
    # Behind 0x30000, few codes are assigned, and none to characters that have another form.
    characters = [*map(chr, [*range(0x300, 0x30000), *range(0x30000, sys.maxunicode + 1, 17)])]
    assert [*map(normalised, characters)] == naive("\0".join(characters)).split("\0")
    for before, behind in (("a", "\u0301"), ("\u1100", "\u11a8"), ("\u304b", "\u3099")):
        joined = [before + chr(code) + behind for code in range(0x300, 0x30000)]
        assert [*map(normalised, joined)] == naive("\0".join(joined)).split("\0")


def test_texts_of_subclasses_of_str_are_read_and_nothing_else():
    for text in ("e\u0301", "plain", "\u0416"):
        assert normalised(np.str_(text)) == unicodedata.normalize("NFC", text)
        assert type(normalised(np.str_(text))) is str
    for wrong in (b"e", None, 3):
        with pytest.raises(TypeError):
            normalised(wrong)


def test_no_character_that_counts_as_stable_changes_with_what_is_before_it():
    starts = {unicodedata.normalize("NFD", chr(code))[0] for code in range(0xC0, 0x1200)} | {"\u1100", "\u0915"}
    starts = {string for string in starts if naive(string) == string}
    seconds = {
        int(pair[1], 16)
        for code in range(0x110000)
        if len(pair := unicodedata.decomposition(chr(code)).split()) == 2 and pair[0][0] != "<"
    }
    for code in sorted(seconds):
        for before in starts:
            assert normalised(before + chr(code)) == unicodedata.normalize("NFC", before + chr(code))


@given(texts)
@example("e\u0301")
@example("\u0301e")
@example("a\u0323\u0301" * 3)
@example("\u1112\u1161\u11ab")
def test_a_text_has_the_form_that_python_gives_it(text):
    assert normalised(text) == naive(text)


@every(
    "text, form",
    [
        ("Waſſer ﬁnden, aͤlter, ſt", "Wasser finden, älter, st"),
        ("Mini\xadster Mini\u200bster \u200fשלום\u200f \ufeffa", "Minister Minister שלום a"),
        ("König\xad\r\n  reich, König¬\nreich, König⸗\nreich", "Königreich, Königreich, Königreich"),
        ("ne\u0301¬\nant, ne\u0301\xad\nant", "n\u00e9ant, n\u00e9ant"),
        ("¬\nA, 1¬\n2, a¬ b, a-\nb", "¬\nA, 1¬\n2, a¬ b, a-\nb"),
        ("ﻛﺘﺎﺏ كـتـاب", "كتاب كتاب"),
        ("ﾃﾚﾋﾞ １８４８年Ａ，⼀", "テレビ 1848年A，一"),
        ("हिन्\u200dदी می\u200cشود", "हिन्दी میشود"),
        ("non\u2011break ❤️", "non-break ❤"),
        ("½ x² ™ … Ⅷ № µ\u00a0", "½ x² ™ … Ⅷ № µ\u00a0"),
    ],
)
def test_what_looks_the_same_or_is_not_seen_has_the_same_form(text, form):
    assert normalised(text) == form
    starts, ends = origins(text)
    assert len(starts) == len(ends) == len(form)


@given(texts)
@example("Kö\xad\n nig")
@example("ö¬\nn")
@example("5 \u212b and e\u0301")
@example("\u0958\u09be")
@example("\u200f \xadﬁ")
def test_each_character_of_the_form_comes_from_a_piece_of_the_text_that_gives_it_alone(text):
    starts, ends = origins(text)
    pieces = sorted({*zip(starts.tolist(), ends.tolist(), strict=True)})
    assert len(starts) == len(ends) == len(normalised(text))
    assert starts.tolist() == sorted(starts.tolist())
    if not set("\xac\u2e17") & set(text):  # what divides words depends on the letters around it
        assert "".join(normalised(text[start:end]) for start, end in pieces) == normalised(text)


def test_a_text_in_the_form_is_the_same_object():
    for text in ("plain", "récolté", "“quoted”", "Łódź", "中文標題", "한국어", "😀👍🏽", "\ud800"):
        assert normalised(text) is text
    assert normalised("ไม่") == "ไม่"


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0345\u0301\u0327"])
def test_very_many_marks_are_put_in_order_as_few_are(marks):
    few, many = f"a{marks * 40}b", f"a{marks * 100_000}b"
    assert normalised(few) == unicodedata.normalize("NFC", few)
    form = normalised(many)
    assert len(form) >= len(many) - 2
    assert [*map(unicodedata.combining, form[1:-1])] == sorted(map(unicodedata.combining, form[1:-1]))


def test_only_the_pieces_that_change_have_several_characters():
    text = "5 \u212b, e\u0301t\u0061\u0302 \u1112\u1161\u11ab."
    starts, ends = origins(text)
    assert [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)] == [
        *["5", " ", "\u212b", ",", " ", "e\u0301", "t", "a\u0302", " ", "\u1112\u1161\u11ab", "."]
    ]
