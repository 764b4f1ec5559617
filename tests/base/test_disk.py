"""A file is replaced whole, results are kept, and values of TOML have types."""

import os
import stat
import threading
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from cases import every
from hypothesis import example, given
from hypothesis import strategies as st

from textcat.base import disk
from textcat.base.disk import (
    beside,
    installed_version,
    map_array,
    open_regular,
    read_arrays,
    resolved,
    write_atomically,
)
from textcat.base.errors import TextcatError, did_you_mean, similar_files


def test_what_is_beside_a_folder_has_its_name_however_the_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "tags" / "in").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "tags")
    assert beside(Path("."), "-corrections") == tmp_path / "tags-corrections"
    assert beside(Path("in/.."), ".next") == tmp_path / "tags.next"
    assert beside(Path(".."), ".part", start=".") == tmp_path.parent / f".{tmp_path.name}.part"
    assert beside(Path("in"), ".before") == Path("in.before")
    with pytest.raises(TextcatError, match="nothing beside /, the root folder"):
        beside(Path("/"), ".next")


def test_a_circle_of_links_is_told_in_a_sentence(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "three").symlink_to("four")
    for name in ("one", "two/in"):
        with pytest.raises(TextcatError, match=f"{name} leads in a circle of symbolic links: mend"):
            resolved(tmp_path / name)
    assert resolved(tmp_path / "three") == tmp_path.resolve() / "four"
    with pytest.raises(TextcatError, match="circle"):
        write_atomically(tmp_path / "one", "text")


def test_a_path_that_cannot_be_looked_up_is_resolved_as_far_as_possible(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    assert resolved(tmp_path / "link" / ("x" * 300)) == tmp_path.resolve() / "folder" / ("x" * 300)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "result.json"
    write_atomically(path, "old\n")

    def lines():
        yield "new\n"
        assert path.read_text() == "old\n"

    write_atomically(path, lines())
    assert path.read_bytes() == b"new\n"
    assert [file.name for file in path.parent.iterdir()] == ["result.json"]


def test_a_file_survives_a_power_failure_from_the_moment_that_it_is_in_its_place(tmp_path, monkeypatch):
    steps = []

    def noted(name, step, *arguments):
        steps.append(name)
        step(*arguments)

    for name in ("sync", "rename", "sync_folder"):
        monkeypatch.setattr(disk, name, partial(noted, name, getattr(disk, name)))
    write_atomically(tmp_path / "result.json", "text")
    assert steps == ["sync", "rename", "sync_folder"]


def interrupted():
    yield "half of"
    raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    write_atomically(path, "old\n")
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="system: POSIX permissions, links and pipes")
def test_a_replaced_file_has_the_permissions_of_any_new_file_and_a_link_stays_a_link(tmp_path):
    target, link, plain = tmp_path / "target", tmp_path / "link", tmp_path / "plain"
    plain.touch()
    link.symlink_to(target)
    write_atomically(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="system: POSIX permissions, links and pipes")
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


def test_near_names_are_told(tmp_path):
    assert did_you_mean("micr", ["micra", "paum"]) == " Did you mean 'micra'?"
    taus = ["learner.eta", "learner.tau_pos", "learner.tau_neg"]
    for wrong in ("tau", "learner.tau"):
        assert did_you_mean(wrong, taus) == " Did you mean 'learner.tau_pos' or 'learner.tau_neg'?"
    assert did_you_mean("xyz", ["micra", "paum"]) == ""
    (tmp_path / "articles.csv").touch()
    assert similar_files(tmp_path / "article.csv") == f" Did you mean '{tmp_path / 'articles.csv'}'?"
    assert similar_files(tmp_path / "articles.csv") == ""
    assert similar_files(tmp_path / "nowhere" / "articles.csv") == ""


@every("name", ["spacy", "numpy", "scikit-learn"])
def test_the_version_of_a_library_is_that_of_its_metadata(name):
    assert installed_version(name) == version(name)


def test_a_version_that_the_names_of_files_leave_open_is_asked_of_python(tmp_path, monkeypatch):
    for release in ("2.0", "3.0"):
        (tmp_path / f"spacy-{release}.dist-info").mkdir()
        (tmp_path / f"spacy-{release}.dist-info" / "METADATA").write_text(f"Name: spacy\nVersion: {release}\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed_version.cache_clear()
    assert installed_version("spacy") == version("spacy")
    installed_version.cache_clear()
    with pytest.raises(PackageNotFoundError):
        installed_version("no-such-library")


@given(st.sampled_from(["a.npy", "a.npz"]), st.integers(0, 500), st.binary(max_size=6), st.booleans())
@example("a.npz", 0, b"\x93NUMPY\x01\x00", False)
@example("a.npy", 20, b"(", False)
def test_a_stored_array_is_read_or_its_damage_is_a_value_error(tmp_path_factory, name, place, put, truncated):
    path = tmp_path_factory.getbasetemp() / name
    if name == "a.npy":
        np.save(path, np.arange(40))
    else:
        np.savez_compressed(path, a=np.arange(40), b=np.eye(3))
    content = path.read_bytes()
    place %= len(content)
    path.write_bytes(content[:place] + put + (b"" if truncated else content[place + len(put) :]))
    with suppress(ValueError), open(path, "rb") as file:
        if name == "a.npy":
            assert map_array(path, file, [np.dtype(np.int64)]).dtype == np.int64
        else:
            assert all(isinstance(array, np.ndarray) for array in read_arrays(file).values())


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="no regular file"):
            open_regular(path)
    (tmp_path / "file").write_bytes(b"abc")
    with open_regular(tmp_path / "file") as file:
        assert file.read() == b"abc"
