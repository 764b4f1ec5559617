"""Texts that no encoding can hold: what each function makes of lone surrogates; it leaves other texts alone."""

from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.surrogates import (
    decode_surrogates,
    escape_undecodable,
    join_surrogates,
    mark_surrogates,
    surrogate_bytes,
)

ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]))
ANY = st.text(st.characters(categories=["Cs", "Lu", "So"]) | st.sampled_from("a\ud83d\ude00\udc80\udcff"))


@given(ENCODABLE)
def test_a_text_without_surrogates_stays_as_it_is(text):
    for function in (escape_undecodable, mark_surrogates, join_surrogates, decode_surrogates):
        assert function(text) == text
    assert surrogate_bytes(text) == text.encode()


@given(ANY)
def test_any_text_can_be_encoded_afterwards(text):
    for function in (escape_undecodable, mark_surrogates, join_surrogates):
        function(text).encode("utf-8")


@given(ANY)
def test_a_mark_stands_in_the_place_of_each_surrogate(text):
    assert mark_surrogates(text) == "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


@given(ANY)
def test_the_bytes_of_a_text_are_read_back(text):
    assert surrogate_bytes(text).decode("utf-8", "surrogatepass") == text


@given(st.binary())
def test_bytes_that_were_kept_as_surrogates_are_read_as_utf_8(data):
    for encoding in ("ascii", "utf-8"):
        decoded = decode_surrogates(data.decode(encoding, "surrogateescape"))
        assert decoded == data.decode("utf-8", "surrogateescape")
        assert decoded.encode("utf-8", "surrogateescape") == data  # two names never become one


@every(
    "text, escaped, joined",
    [
        ("\ud83d\ude00", "\\ud83d\\ude00", "\N{GRINNING FACE}"),
        ("\ude00\ud83d", "\\ude00\\ud83d", "\ufffd\ufffd"),
        ("a\udc80b", "a\\udc80b", "a\ufffdb"),
    ],
)
def test_halves_are_told_apart_or_joined(text, escaped, joined):
    assert (escape_undecodable(text), join_surrogates(text)) == (escaped, joined)
