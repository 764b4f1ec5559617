"""Text files and standard input become texts with ids; what cannot be read is told file by file."""

import io
import sys
from pathlib import Path

import pytest

from textcat.errors import TextcatError
from textcat.reading import read_texts


def test_texts_come_in_the_order_of_the_paths_with_the_paths_as_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("b").write_text("wheat — blé", encoding="utf-8")
    Path("a").touch()
    assert read_texts([Path("b"), Path("a"), Path("b")], "utf-8") == (
        [("b", "wheat — blé"), ("a", ""), ("b", "wheat — blé")],
        [],
    )


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("blé".encode("latin-1"))))
    assert read_texts([Path("-")], "latin-1") == ([("-", "blé")], [])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a").write_text("wheat", encoding="utf-8-sig")
    assert read_texts([tmp_path / "a"], "utf-8")[0][0][1] == "wheat"


def test_every_file_that_cannot_be_read_has_a_sentence(tmp_path):
    (tmp_path / "latin").write_bytes(b"bl\xe9")
    (tmp_path / "good").write_bytes(b"wheat")
    texts, unreadable = read_texts([tmp_path / name for name in ("absent", "latin", "good", ".")], "utf-8")
    assert texts == [(str(tmp_path / "good"), "wheat")]
    assert unreadable == [
        f"{tmp_path / 'absent'} cannot be read: No such file or directory.",
        f"{tmp_path / 'latin'} is not utf-8 (byte 2): name its encoding with --encoding.",
        f"{tmp_path} cannot be read: Is a directory.",
    ]


@pytest.mark.parametrize("encoding", ["utf-9", "hex", ""])
def test_an_unknown_encoding_is_told_once(tmp_path, encoding):
    (tmp_path / "a").write_text("wheat")
    with pytest.raises(TextcatError, match=f"There is no encoding '{encoding}'; try utf-8 or latin-1."):
        read_texts([tmp_path / "a"] * 2, encoding)
