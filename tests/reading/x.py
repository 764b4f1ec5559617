"""Reuters SGML, folders per topic, and the members of folders and archives."""

from collections import Counter

import pytest
from corpus_files import names
from corpus_files import read as read_corpus
from reuters_stories import STORY, parse

from textcat.errors import TextcatError


def test_an_unknown_split_or_encoding_is_told():
    with pytest.raises(TextcatError, match=r"'apte': .*modapte, modlewis, modhayes"):
        parse(STORY, split="apte")
    with pytest.raises(TextcatError, match="no encoding 'latin-99'"):
        parse(STORY, encoding="latin-99")


def test_an_archive_a_browser_has_uncompressed_is_read_all_the_same(tmp_path, sources):
    renamed = (tmp_path / "r.tar").rename(tmp_path / "plain.tar.gz")
    assert len(list(read_corpus("reuters", renamed))) == 2


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


def test_twenty_newsgroups_has_its_published_counts(newsgroups_archive):
    documents = list(read_corpus("folders", newsgroups_archive, headers="subject", encoding="latin-1"))
    assert Counter(d.split for d in documents) == {"train": 11314, "test": 7532}
    assert len({d.topics for d in documents}) == 20
    assert len({d.id for d in documents}) == 18846


def test_names_are_those_of_the_members(sources):
    (folder,), (one, other), *archives = sources
    assert names(folder) == ["README", "a.sgm", "b.sgm"]
    assert (names(one), names(other)) == (["a.sgm"], ["b.sgm"])
    for (archive,) in archives:
        assert names(archive) == ["x/a.sgm", "x/b.sgm", "x/README"]
