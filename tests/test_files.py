"""A file is replaced whole."""

import os
import stat
import threading
from pathlib import Path

import pytest

from textcat.errors import TextcatError
from textcat.files import replacing, write_atomically


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "result.json"
    write_atomically(path, "old\n")
    with replacing(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old\n"
    assert path.read_bytes() == b"new\n"
    assert [file.name for file in path.parent.iterdir()] == ["result.json"]


def fail_while_writing(path):
    with replacing(path) as file:
        file.write("half of")
        raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    write_atomically(path, "old\n")
    with pytest.raises(KeyboardInterrupt):
        fail_while_writing(path)
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions, links and pipes")
def test_a_replaced_file_has_the_permissions_of_any_new_file_and_a_link_stays_a_link(tmp_path):
    target, link, plain = tmp_path / "target", tmp_path / "link", tmp_path / "plain"
    plain.touch()
    link.symlink_to(target)
    write_atomically(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions, links and pipes")
def test_what_is_no_regular_file_is_written_to_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_atomically, args=(pipe, "through the pipe"))
    writer.start()
    assert pipe.read_text() == "through the pipe"
    writer.join()
    assert pipe.is_fifo()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(TextcatError, match=r"^Cannot write in .*file.* name a folder that you may write to\.$"):
        write_atomically(Path(blocker, "result.json"), "text")
