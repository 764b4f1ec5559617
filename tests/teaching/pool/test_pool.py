"""A pool holds what its archive holds, in memory and on disk."""

import json
import warnings
from mmap import mmap

import numpy as np
import pandas as pd
import pytest
from pools import TEXTS, same

from textcat.base.errors import TextcatError
from textcat.recipes.recipe import read_recipe
from textcat.teaching.pool import Pool, PoolError, build_pool, open_pool


def test_a_pool_on_disk_is_the_one_in_memory(tmp_path, corpus, documents):
    pool = build_pool(corpus, tmp_path / "pool")
    same(pool, Pool.from_documents(documents))
    same(open_pool(tmp_path / "pool", verify=True), pool)
    assert (pool.rows != pool.features.transform(documents)).nnz == 0
    assert pool.labels == [document.topics for document in documents]
    assert pool.rows.dtype == np.float32
    for array in (pool.rows.data, pool.rows.indices):
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert isinstance(array.base, mmap)


def test_a_pool_has_texts_ids_and_places_and_names_what_it_could_not_read(tmp_path, archive, caplog):
    pool = build_pool(archive, tmp_path / "pool")
    assert list(pool.ids) == ["n0", "n1", "n2", "n3", "n4"]
    assert pool.ids[-1] == "n4"
    assert pool.ids[1:3] == ["n1", "n2"]
    assert pool.document(0) == {"title": TEXTS[0][0], "body": TEXTS[0][1]}
    assert pool.document(3)["body"] == TEXTS[3][1]
    assert pool.document(4) == {"body": ""}
    assert pool.place_of(2) == (str(archive), 4)
    assert [pool.position_of(f"n{i}") for i in range(5)] == [0, 1, 2, 3, 4]
    assert pool.groups.tolist() == [0, 1, 0, 3, 4]
    assert pool.labels is None
    assert pool.n_rejected == 1
    (rejected,) = (tmp_path / "pool" / "_rejected.jsonl").read_text().splitlines()
    assert json.loads(rejected)["position"] == 3
    assert "1 records could not be read" in caplog.text
    with pytest.raises(PoolError, match=r"The pool has no document 'n5'"):
        pool.position_of("n5")
    with pytest.raises(IndexError):
        pool.document(5)


def test_a_pool_that_is_there_is_opened_and_not_made_again(tmp_path, archive):
    build_pool(archive, tmp_path / "pool")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "pool").rglob("*.npy")}
    build_pool(archive, tmp_path / "pool")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "pool").rglob("*.npy")} == before
    archive.write_text('{"text": "another one"}\n')
    with pytest.raises(
        TextcatError,
        match=r"news.jsonl has changed since the run in .* began, from 444 to 24 bytes, .*: remove .*pool, or name",
    ):
        build_pool(archive, tmp_path / "pool")
    assert len(build_pool(archive, tmp_path / "pool", restart=True)) == 1
    with pytest.raises(TextcatError, match=r"began with recipe active-learning .*, but now has recipe paum"):
        build_pool(archive, tmp_path / "pool", recipe="paum")


def test_what_is_no_pool_and_holds_no_document_is_told_in_a_sentence(tmp_path, archive):
    with pytest.raises(PoolError, match=r"is not a pool, or is unfinished"):
        open_pool(tmp_path)
    (tmp_path / "bad.jsonl").write_text("{\n")
    with pytest.raises(PoolError, match=r"no document for the pool; 1 records could not be read: .*_rejected"):
        build_pool(tmp_path / "bad.jsonl", tmp_path / "bad")
    with pytest.raises(PoolError, match=r"There is no document for the pool: give at least one"):
        Pool.from_documents([])
    for no_list in (pd.DataFrame({"text": ["Wheat rose"]}), "Wheat rose"):
        with pytest.raises(TextcatError, match=r"no list of texts|string object received"):
            Pool.from_documents(no_list)
    with pytest.raises(PoolError, match=r"There are 1 ids for 2 documents"):
        Pool.from_documents(["a", "b"], ["a"])
    with pytest.raises(TextcatError, match=r"No recipe 'teech'"):
        build_pool(archive, tmp_path / "pool", recipe="teech")
    with pytest.raises(TextcatError, match=r"one contains the other"):
        build_pool(tmp_path, tmp_path / "pool")


@pytest.mark.parametrize("version", [6, 8])
def test_a_pool_of_another_format_is_refused(tmp_path, archive, version):
    folder = build_pool(archive, tmp_path / "pool").folder
    manifest = json.loads((folder / "index" / "manifest.json").read_text())
    (folder / "index" / "manifest.json").write_text(json.dumps({**manifest, "format": version}))
    with pytest.raises(PoolError, match=rf"another version .* format {version} instead of 7: .* the archive again"):
        open_pool(folder)


def test_a_language_without_spaces_is_told(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "石油工人工会投票罢工 oil"}\n{"text": "黄金价格在伦敦下跌"}\n', encoding="utf-8")
    recipe = read_recipe("active-learning").with_settings(["tokens.segmenter=spacy"])
    with pytest.warns(UserWarning, match=r"86% of the characters of the documents .* or .* by lang = 'zh'"):
        build_pool(path, tmp_path / "whole", recipe=recipe, jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_pool(path, tmp_path / "pool", jobs=1)
