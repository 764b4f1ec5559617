"""Copies of files with changes at some places."""

import pytest
from read_sources import COMPRESSIONS

from textcat.reading import open_file, unpacked_stream
from textcat.tagging.concepts import Edit
from textcat.tagging.file_copy import ChangedError, FileCopy, state_of

DATA = b'{"text": "%s"}\n' % (b"Tin rose. " * 20_000)
EDITS = [
    Edit(0, 0, b"["),
    Edit(1, 1, b" "),
    Edit(10, 13, b"Gold"),
    Edit(150_000, 150_001, b""),
    Edit(170_000, 170_000, b"x"),
]
CHANGED = b"[{ " + DATA[1:10] + b"Gold" + DATA[13:150_000] + DATA[150_001:170_000] + b"x" + DATA[170_000:]


def copied(path, tmp_path, edits=EDITS):
    copy = FileCopy(state_of(str(path)), tmp_path / "temporary")
    for edit in edits:
        copy.apply([edit])
    copy.finish()
    copy.sync()
    copy.put(tmp_path / "copy")
    return tmp_path / "copy"


def test_a_copy_has_the_bytes_of_the_file_but_for_the_edits(tmp_path):
    (tmp_path / "a").write_bytes(DATA)
    assert copied(tmp_path / "a", tmp_path).read_bytes() == CHANGED
    assert not (tmp_path / "temporary").exists()


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_copy_is_packed_as_the_file_is(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(COMPRESSIONS[ending](DATA))
    copy = copied(path, tmp_path)
    assert copy.read_bytes()[:3] == path.read_bytes()[:3]
    stored = open_file(str(copy))
    stream = unpacked_stream(stored, f"copy{ending}")
    assert b"".join(iter(lambda: stream.read(1 << 16), b"")) == CHANGED
    stored.close()


def test_a_file_that_has_changed_is_not_copied(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(DATA)
    state = state_of(str(path))
    with pytest.raises(ChangedError):
        FileCopy(state._replace(size=5), tmp_path / "temporary")
    copy = FileCopy(state, tmp_path / "temporary")
    copy.apply(EDITS[:2])
    with open(path, "ab") as file:
        file.write(b"more")
    copy.finish()
    copy.sync()
    with pytest.raises(ChangedError):
        copy.put(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_edit_behind_the_end_is_told_as_a_change(tmp_path):
    (tmp_path / "a").write_bytes(b"short")
    with pytest.raises(ChangedError):
        copied(tmp_path / "a", tmp_path)


def test_only_a_regular_file_has_a_state(tmp_path):
    with pytest.raises(OSError, match="no regular file"):
        state_of(str(tmp_path))
