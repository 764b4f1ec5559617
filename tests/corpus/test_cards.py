"""Cards: what they must say, and sums of trees."""

import hashlib

import pytest

from textcat.base.errors import TextcatError
from textcat.corpus.cards import card, cards, read_card, tree_digest

# ---- cards ----


def test_the_shipped_cards_are_whole():
    shipped = cards()
    names = ["20newsgroups", "newswire", "rcv1", "rcv1-lyrl2004", "reuters21578", "yso-finna-en", "yso-finna-sv"]
    assert list(shipped) == names
    for name, it in shipped.items():
        assert it.name == name
        assert it.title
        assert it.licence
        assert it.citation
        # Of what is not given to everybody nobody here could take a sum.
        assert it.sha256 or it.tree or it.obtain
        assert it.counts.keys() == {"documents", "train", "test", "topics"}


def test_an_unknown_name_is_told_with_the_nearest_one():
    with pytest.raises(
        TextcatError,
        match=r"^No corpus 'reuter21578'\. Known corpora: 20newsgroups, newswire, rcv1, rcv1-lyrl2004, reuters21578, "
        r"yso-finna-en, yso-finna-sv\. Did you mean 'reuters21578'\?$",
    ):
        card("reuter21578")
    with pytest.raises(TextcatError, match=r"yso-finna-sv\.$"):
        card("xyz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reader = ", "is not valid TOML"),
        ('files = ["a"]', "is no 'reader' in .*: add one"),
        ('reader = "reuters"', "is no 'files' in .*: add a list"),
        ('reader = "reuters"\nfiles = []', "is no 'files' in"),
        (
            'reader = "reuter"\nfiles = ["a"]',
            "'reader' in .* cannot be 'reuter'. Known: annif, bibtex, csv, endnote, folders, json, jsonl, lines, mbox, "
            "nbib, news, parquet, rcv1, records, refer, reuters, ris, tsv, warc, wos. Did you mean 'reuters'",
        ),
        ('reader = "reuters"\nfiles = "a"', "'files' in .* cannot be 'a'; give a list of strings"),
        ('reader = "reuters"\nfiles = [1]', "'files' in .* cannot be .1.; give a list of strings"),
        ('reader = "reuters"\nfiles = ["a"]\nurl = "b"', "no field 'url' in the card .* Did you mean 'urls'"),
        ('reader = "reuters"\nfiles = ["a"]\ncounts = { train = true }', "'counts' in .*; give a table of integers"),
        ('reader = "reuters"\nfiles = ["a"]\ntopics = "all"', "'topics' in .* cannot be 'all'. Known: both, train"),
        (
            'reader = "reuters"\nfiles = ["a"]\noptions = { splt = "x" }',
            "'splt' of 'options' .* mean 'split'",
        ),
        ('reader = "reuters"\nfiles = ["a"]\nname = "b"', "no field 'name' in"),
        (
            'reader = "csv"\nfiles = ["a"]\noptions = { columns = "a, b" }',
            "'columns' .* be 'a, b'; give a list of",
        ),
        (
            'reader = "csv"\nfiles = ["a"]\noptions = { plain_quotes = "no" }',
            "'plain_quotes' .* cannot be 'no'; give true or false",
        ),
        ('reader = "csv"\nfiles = ["a"]\noptions = { text_field = ["a"] }', "Did you mean 'text_fields'"),
        ('reader = "rcv1"\nfiles = ["a"]\noptions = { version = 2 }', "'version' .* cannot be 2; give a text"),
    ],
)
def test_a_wrong_card_is_told(write_card, text, message):
    with pytest.raises(TextcatError, match=message):
        read_card(write_card(text))


def test_a_card_that_is_missing_or_no_text_is_told(tmp_path):
    with pytest.raises(TextcatError, match=r"Cannot read the card .*none\.toml: No such file"):
        card(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TextcatError, match="is not valid TOML"):
        card(tmp_path / "binary.toml")


def test_the_tree_digest_is_what_sha256sum_prints_and_does_not_hang_on_order_or_wrapping():
    sums = {"x/b/1": "22", "x/a/2": "11"}
    expected = hashlib.sha256(b"11  a/2\n22  b/1\n").hexdigest()
    assert tree_digest(sums) == expected
    assert tree_digest({f"top/{name}": digest for name, digest in reversed(sums.items())}) == expected
    assert tree_digest({"a/2": "11", "b/1": "22"}) == expected
    assert tree_digest({"a/2": "11", "b/1": "23"}) != expected
    assert tree_digest({"caf\udce9": "11"}) == hashlib.sha256(b"11  caf\xe9\n").hexdigest()
