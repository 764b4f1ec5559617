"""What becomes of a file, given the blocks of its edits, and when its copy gets its name."""

from collections import deque
from contextlib import closing

import pytest

from textcat.reading import FaultKind
from textcat.tagging.concepts import Edit
from textcat.tagging.edit_news import EditedBlock
from textcat.tagging.file_copy import state_of
from textcat.tagging.news_folder import NewsFolder, open_news_folder
from textcat.tagging.write_news import Fate, NewsWriter

X = Edit(0, 0, b"x")


@pytest.fixture
def write(tmp_path):
    """A function that writes batches of blocks, and returns what has become of the files."""
    (tmp_path / "in").mkdir()

    def written(*batches, change=None, restart=False, copies_rest=False):
        names = {block.source for batch in batches for block in batch}
        for name in names:
            (tmp_path / "in" / name).write_bytes(b"news")
        states = {f"{tmp_path}/in/{name}": state_of(f"{tmp_path}/in/{name}") for name in sorted(names - {"unknown"})}
        with open_news_folder(tmp_path / "out", f"{tmp_path}/in", {}, restart=restart) as folder:
            with closing(NewsWriter(folder, states, deque() if copies_rest else None)) as writer:
                outcomes = []
                for batch in batches:
                    blocks = [block._replace(source=f"{tmp_path}/in/{block.source}") for block in batch]
                    outcomes += writer.write(blocks)
                    if change is not None:
                        (tmp_path / "in" / change).write_bytes(b"other")
                outcomes += writer.finish()
            assert not states
        return outcomes

    return written


@pytest.mark.parametrize(
    ("blocks", "fate", "is_rejected"),
    [
        ([EditedBlock("a", 1, (X,))], Fate.WRITTEN, False),
        ([EditedBlock("a", 1)], Fate.WRITTEN, False),
        ([EditedBlock("a"), EditedBlock("a", 1, (X,)), EditedBlock("a")], Fate.WRITTEN, False),
        ([EditedBlock("a", 1, (X,)), EditedBlock("a", reason="It is broken.")], Fate.WRITTEN, False),
        ([EditedBlock("a"), EditedBlock("a")], Fate.NO_NEWS, True),
        ([EditedBlock("a", reason="It is broken."), EditedBlock("a")], Fate.NO_NEWS, False),
        ([EditedBlock("a", lacks_place="csv"), EditedBlock("a", lacks_place="csv")], Fate.NO_PLACE, False),
        ([EditedBlock("a", 1, (X,)), EditedBlock("a", is_broken=True, reason="It is broken.")], Fate.BROKEN, False),
        ([EditedBlock("a", is_broken=True, reason="It is broken."), EditedBlock("a", 1, (X,))], Fate.BROKEN, False),
        ([EditedBlock("a", lacks_place="csv"), EditedBlock("a", is_broken=True)], Fate.BROKEN, True),
        ([EditedBlock("a", 1, (Edit(9, 9, b"x"),)), EditedBlock("a", 1, (X,))], Fate.CHANGED, True),
    ],
)
def test_each_file_has_one_fate_however_its_blocks_are_cut_into_batches(write, tmp_path, blocks, fate, is_rejected):
    for batches in ([blocks], [[block] for block in blocks]):
        (outcome,) = write(*batches, restart=True)
        assert (outcome.fate, outcome.rejection is not None) == (fate, is_rejected)
        assert (tmp_path / "out" / "a").exists() == (fate is Fate.WRITTEN)
        (tmp_path / "out" / "a").unlink(missing_ok=True)


def test_a_file_that_changes_between_its_blocks_is_left_out_alone(write, tmp_path):
    a, b = EditedBlock("a", 1, (X,)), EditedBlock("b", 1, (X,))
    assert [one.fate for one in write([b, a], [a._replace(edits=())], change="a")] == [Fate.WRITTEN, Fate.CHANGED]
    assert (tmp_path / "out" / "b").read_bytes() == b"xnews"


@pytest.mark.parametrize(
    "block",
    [
        EditedBlock("a"),
        EditedBlock("a", lacks_place="csv"),
        EditedBlock("a", is_broken=True, reason="It is broken."),
    ],
)
def test_a_file_that_changes_before_it_is_copied_unchanged_keeps_its_earlier_copy(write, tmp_path, block):
    write([EditedBlock("a", 1, (X,))])
    (outcome,) = write([block], change="a", copies_rest=True)
    assert outcome.fate is Fate.CHANGED
    assert outcome.rejection.kind is FaultKind.CHANGED
    assert (tmp_path / "out" / "a").read_bytes() == b"xnews"


def test_a_file_that_cannot_be_read_or_copied_is_reported_once_and_keeps_its_earlier_copy(write, tmp_path):
    write([EditedBlock("a", 1, (X,))])
    block = EditedBlock("a", is_broken=True, is_unread=True, reason="It cannot be read.")
    (outcome,) = write([block], change="a", copies_rest=True)
    assert (outcome.fate, outcome.rejection) == (Fate.BROKEN, None)
    assert (tmp_path / "out" / "a").read_bytes() == b"xnews"


def test_a_file_that_was_not_there_when_files_were_chosen_has_changed(write):
    (outcome,) = write([EditedBlock("unknown", 1, (X,))])
    assert outcome.fate is Fate.CHANGED


def test_more_files_than_may_wait_for_the_disk_are_all_written_in_order(write, tmp_path):
    names = [f"{n:03}" for n in range(300)]
    outcomes = write([EditedBlock(name, 1, (X,)) for name in names[:290]], [EditedBlock(n, 1) for n in names[290:]])
    assert [one.fate for one in outcomes] == [Fate.WRITTEN] * 300
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name[0] != ".") == names


def test_a_file_under_embargo_is_written_but_not_listed(write, tmp_path):
    write([EditedBlock("a", 1, is_due=True), EditedBlock("b", 1)])
    with open_news_folder(tmp_path / "out", f"{tmp_path}/in", {}, restart=False) as folder:
        assert [folder.has(state_of(f"{tmp_path}/in/{name}")) for name in "ab"] == [False, True]
        (tmp_path / "out" / "b").unlink()
        assert not folder.has(state_of(f"{tmp_path}/in/b"))


def test_a_former_state_counts_no_more_when_another_copy_has_its_place(write, tmp_path, monkeypatch):
    def is_written():
        with open_news_folder(tmp_path / "out", f"{tmp_path}/in", {}, restart=False) as folder:
            return [folder.has(state) for state in former]

    write([EditedBlock(name, 1) for name in "abc"])
    former = [state_of(f"{tmp_path}/in/{name}") for name in "abc"]
    assert is_written() == [True, True, True]
    write([EditedBlock("a", 1, is_due=True)])  # it is not listed, as its embargo ends later
    assert is_written() == [False, True, True]
    monkeypatch.setattr(NewsFolder, "list_files", lambda folder: None)  # as if it was killed before
    write([EditedBlock("b", 1)])
    monkeypatch.undo()
    assert is_written() == [False, False, True]
