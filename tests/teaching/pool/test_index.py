"""Rows, ids and groups of a pool, and what is told where they are damaged."""

import json
import os

import numpy as np
import pytest
from pools import same

from textcat.recipes.recipe import read_recipe
from textcat.teaching.pool import Pool, PoolError, build_pool, index, open_pool


def test_rows_are_those_that_the_features_make_of_the_texts(documents):
    pool = Pool.from_documents(documents)
    assert (pool.rows != pool.features.transform(documents)).nnz == 0
    assert len(pool) == len(documents)
    expected = read_recipe("active-learning").make_features().fit_transform(documents)
    assert (pool.rows != expected).nnz == 0


@pytest.mark.parametrize("settings", [[], ["features.chars=3"], ["features.zone_terms=true"]])
def test_copies_are_found_whatever_the_columns_are(tmp_path, settings):
    recipe = read_recipe("active-learning").with_settings(settings)
    texts = ["Wheat exports rose.", "Gold fell in London.", "Wheat exports rose."]
    assert Pool.from_documents(texts, recipe=recipe).groups.tolist() == [0, 1, 0]
    assert Pool.from_documents(texts[:1] * 50, recipe=recipe).groups.tolist() == [0] * 50
    assert Pool.from_documents(texts[:1], recipe=recipe).groups.tolist() == [0]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pool = build_pool(tmp_path / "a.jsonl", tmp_path / "pool", recipe=recipe)
    assert pool.groups.tolist() == [0, 1, 0]
    assert (pool.rows != pool.features.transform(texts)).nnz == 0


def test_the_position_of_an_id_is_that_of_the_first_document_with_it():
    pool = Pool.from_documents(["one", "two", "three"], ["a", "b", "b"])
    assert [pool.position_of("a"), pool.position_of("b")] == [0, 1]
    assert pool.positions_of(["b", "a", "b", "c"]) == {"a": 0, "b": 1}


FILES = ["terms.json", "part-00000.jsonl", "data.npy", "indices.npy", "indptr.npy", "groups.npy", "ends.npy"]


@pytest.mark.parametrize("name", [*FILES, "id_ends.npy", "idf.npy", "ids.txt", "manifest.json"])
def test_a_damaged_pool_is_told_of(tmp_path, archive, name):
    build_pool(archive, tmp_path / "pool")
    (path, *_) = (tmp_path / "pool").rglob(name)
    data = path.read_bytes()
    for damaged in (data[:-1] + bytes([data[-1] ^ 1]), data[:-2], data + b"0", b"", data[:7]):
        path.write_bytes(damaged)
        with pytest.raises(PoolError, match=r"is damaged"):
            open_pool(tmp_path / "pool")
    path.unlink()
    with pytest.raises(PoolError, match=r"is damaged|is not a pool"):
        open_pool(tmp_path / "pool")
    os.mkfifo(path)
    with pytest.raises(PoolError, match=r"is damaged|is not a pool|no regular file"):
        open_pool(tmp_path / "pool")


@pytest.mark.parametrize("name", ["ends", "id_ends", "groups"])
def test_offsets_are_checked_even_if_sums_are_not(tmp_path, archive, name):
    build_pool(archive, tmp_path / "pool")
    path = tmp_path / "pool" / "index" / f"{name}.npy"
    array = np.load(path)
    for position, value in ((0, -1), (1, 10**6), (-1, 10**6)):
        wrong = array.copy()
        wrong[position] = value
        np.save(path, wrong)
        with pytest.raises(PoolError, match=rf"is damaged.*{name}.npy"):
            open_pool(tmp_path / "pool", verify=False)


def test_many_documents_have_rows_of_words_alone(tmp_path, corpus, documents, monkeypatch, caplog):
    monkeypatch.setattr(index, "ALL_UP_TO", len(documents) - 1)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.recipe.features.ngrams == 1
    assert (
        "The archive has 250 documents, more than 249, so rows have only words that at least two of them contain"
        in caplog.text
    )
    assert not any(" " in term for term in pool.features.vocabulary_)
    same(pool, Pool.from_documents(documents))
