"""Fixtures that the tests of this folder share."""

import gzip

import pytest
from reuters_stories import OTHER, STORY, tar

from textcat.reading import (
    InputSettings,
    find_sources,
    formats,
    read_batches,
)


@pytest.fixture
def place(tmp_path):
    """Read bytes as a file of a format."""

    def read_as(form, data, **how):
        (tmp_path / "a").write_bytes(data)
        settings = InputSettings(format=form, **how)
        sources = [source._replace(name="a") for source in find_sources([tmp_path / "a"], settings)]
        return [found for batch in read_batches(sources, settings) for found in formats.batch_records(batch, settings)]

    return read_as


@pytest.fixture
def sources(tmp_path):
    """The same two stories as a folder, compressed files, and archives."""
    data, other = STORY.encode("latin-1"), OTHER.encode("latin-1")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.sgm").write_bytes(data)
    (folder / "b.sgm.gz").write_bytes(gzip.compress(other))
    (folder / "README").write_bytes(b"no stories")
    entries = [("x/a.sgm", data), ("x/b.sgm", other), ("x/README", b"no stories")]
    archives = [tar(tmp_path / f"r.tar{suffix}", entries, f"w:{suffix[1:]}") for suffix in ("", ".gz", ".xz", ".bz2")]
    return [[folder], [folder / "a.sgm", folder / "b.sgm.gz"], *([archive] for archive in archives)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
