"""Fixtures that the tests of this folder share."""

import gzip

import pytest
from archive_runs import make_archive, run, written


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Three files of 450 documents in all, one of them compressed."""
    folder = tmp_path_factory.mktemp("archive")
    first, second = make_archive(folder / "a.jsonl"), make_archive(folder / "b.jsonl", 50, seed=1)
    third = make_archive(folder / "c", 200, seed=2)
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(third.read_bytes(), mtime=0))
    return [first, second, folder / "c.jsonl.gz"]


@pytest.fixture(scope="module")
def undisturbed(model, archive, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run(model, archive, out)
    return written(out)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"
