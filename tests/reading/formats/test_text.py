"""Texts: a file, a line, or a file of a folder per topic is a document."""

import pytest
from corpus_files import read as read_corpus
from formats_read import parsed
from same_documents import tagged, trained_on

from textcat.base.errors import TextcatError
from textcat.reading import (
    Record,
)


def test_a_line_of_text_is_a_document():
    first, fault, last = parsed("lines", " Tin rose.\r\n\n\xe9\nGold fell.".encode("latin-1"))
    assert (first, last) == (
        Record("a:1", {"body": "Tin rose."}, source="a", position=1),
        Record("a:4", {"body": "Gold fell."}, source="a", position=4),
    )
    assert fault.reason == "Line 3 is not utf-8 (byte 13): name its encoding with --encoding."


def test_a_text_is_a_file_without_a_mark_at_its_start(place):
    assert place("text", b"\xef\xbb\xbfTin\r\nrose") == [Record("a", {"body": "Tin\r\nrose"}, source="a", position=1)]
    assert place("text", b"") == [Record("a", {"body": ""}, source="a", position=1)]
    assert place("text", "\ufeffTin".encode("utf-16"), encoding="utf-16")[0].zones["body"].endswith("Tin")
    assert place("text", b"T\xe9n")[0].reason == "The file is not utf-8 (byte 1): name its encoding with --encoding."
    assert "The file has a NUL byte (byte 1)" in place("text", b"T\0n")[0].reason
    assert "has more than 2 bytes, the most that a record may have" in place("text", b"Tin", max_bytes=2)[0].reason


# ---- folders per topic ----


POST = "From: ann@x.org\nSubject: Re: Tin\n prices\nLines: 2\n\nTin rose.\n\nMore."


@pytest.fixture
def newsgroups(tmp_path):
    for part, topic, name in [("20news-train", "tin", "1"), ("20news-train", "gold", "2"), ("20news-test", "tin", "3")]:
        (tmp_path / part / topic).mkdir(parents=True, exist_ok=True)
        (tmp_path / part / topic / name).write_text(POST, encoding="latin-1")
    (tmp_path / "README").write_text("no post")
    (tmp_path / "20news-train" / ".DS_Store").write_bytes(b"\xff")
    return tmp_path


def test_folders_give_topic_and_part(newsgroups):
    documents = list(read_corpus("folders", newsgroups))
    assert [(d.id, d.topics, d.split) for d in documents] == [
        ("20news-test/tin/3", ("tin",), "test"),
        ("20news-train/gold/2", ("gold",), "train"),
        ("20news-train/tin/1", ("tin",), "train"),
    ]


def test_folders_without_parts_have_no_split(tmp_path):
    (tmp_path / "contests").mkdir()
    (tmp_path / "contests" / "a.txt").write_text("text", encoding="utf-8")
    assert [(d.topics, d.split) for d in read_corpus("folders", tmp_path)] == [(("contests",), "")]


@pytest.mark.parametrize(
    ("headers", "title", "body"),
    [
        ("keep", "", POST),
        ("title", "Re: Tin prices", POST),
        ("subject", "Re: Tin prices", "Tin rose.\n\nMore."),
        ("drop", "", "Tin rose.\n\nMore."),
    ],
)
def test_headers_are_kept_or_dropped(newsgroups, headers, title, body):
    for document in read_corpus("folders", newsgroups, headers=headers):
        assert document.zones == {"title": title, "body": body}


def test_a_text_without_headers_loses_nothing(tmp_path):
    (tmp_path / "tin").mkdir()
    (tmp_path / "tin" / "1").write_text("Tin rose.\r\n\r\nMore.", encoding="utf-8", newline="")
    (document,) = read_corpus("folders", tmp_path, headers="subject")
    assert document.zones["body"] == "Tin rose.\n\nMore."


def test_a_text_in_another_encoding_is_told(tmp_path):
    (tmp_path / "tin").mkdir()
    (tmp_path / "tin" / "1").write_bytes(b"caf\xe9")
    with pytest.raises(TextcatError, match=r"tin/1 in .* utf-8 \(byte 3\): .*--encoding"):
        list(read_corpus("folders", tmp_path))
    assert read_corpus("folders", tmp_path, encoding="latin-1")[0].zones["body"] == "café"


def test_an_unknown_treatment_of_headers_is_told(newsgroups):
    with pytest.raises(TextcatError, match=r"'strip' .*keep, title, subject, drop"):
        list(read_corpus("folders", newsgroups, headers="strip"))


def test_lines_of_text_are_documents_of_the_topic_their_file_is_named_after(tmp_path):
    for topic, texts in {"pos": "Fine.\nGood.\n", "neg": "Poor.\n"}.items():
        (tmp_path / f"{topic}.txt").write_text(texts)
    assert trained_on(tmp_path, lines=True) == (
        [("", "Poor."), ("", "Fine."), ("", "Good.")],
        [("neg",), *[("pos",)] * 2],
    )
    assert [text for _, text in tagged(tmp_path, lines=True)] == ["Poor.", "Fine.", "Good."]
