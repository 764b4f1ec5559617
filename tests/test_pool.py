"""A pool holds what its archive holds, in memory and on disk, and goes on where making it was broken off."""

import gzip
import json
import zipfile
from dataclasses import replace
from mmap import mmap

import numpy as np
import pytest

import textcat
from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.reading.records import InputSettings
from textcat.recipe import read_recipe
from textcat.teaching import _index as index
from textcat.teaching.pool import Pool, PoolError, build_pool, open_pool

TEXTS = [
    ("Wheat up", "Wheat exports rose to twelve million tonnes in May, the ministry said."),
    ("Gold", "Gold and silver fell in London as the dollar rose."),
    ("", "Wheat exports rose to twelve million tonnes in May, the ministry said. Wheat up."),
    ("Straße", "Größere Mengen von Öl und Gas."),
    ("", ""),
]


@pytest.fixture(scope="module")
def corpus():
    corpus = textcat.open_corpus("newswire")
    return replace(corpus, train=corpus.train[:200], test=corpus.test[:50])


@pytest.fixture(scope="module")
def documents(corpus):
    return [*corpus.train, *corpus.test]


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "news.jsonl"
    lines = [
        json.dumps({"id": f"n{i}", "title": title, "text": text}, ensure_ascii=False)
        for i, (title, text) in enumerate(TEXTS)
    ]
    path.write_text("\n".join([*lines[:2], "{", *lines[2:]]) + "\n", encoding="utf-8")
    return path


def same(pool, other):
    assert (pool.rows != other.rows).nnz == 0
    assert pool.features.vocabulary_ == other.features.vocabulary_
    np.testing.assert_array_equal(pool.features.idf_, other.features.idf_)
    np.testing.assert_array_equal(pool.groups, other.groups)
    assert list(pool.ids) == list(other.ids)
    assert [pool.document(i) for i in range(len(pool))] == [other.document(i) for i in range(len(other))]


def content(folder):
    """All that is in a folder but for the journal, by names."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "_journal.jsonl"
    }


def test_a_pool_on_disk_is_the_one_in_memory(tmp_path, corpus, documents):
    pool = build_pool(corpus, tmp_path / "pool")
    same(pool, Pool.from_documents(documents))
    same(open_pool(tmp_path / "pool", verify=True), pool)
    assert pool.labels == [document.topics for document in documents]
    assert pool.rows.dtype == np.float32
    for array in (pool.rows.data, pool.rows.indices):
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert isinstance(array.base, mmap)


def test_rows_are_those_that_the_features_make_of_the_texts(documents):
    pool = Pool.from_documents(documents)
    assert (pool.rows != pool.features.transform(documents)).nnz == 0
    assert len(pool) == len(documents)
    expected = read_recipe("teach").make_features().fit_transform(documents)
    assert (pool.rows != expected).nnz == 0


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


def test_the_position_of_an_id_is_that_of_the_first_document_with_it():
    pool = Pool.from_documents(["one", "two", "three"], ["a", "b", "b"])
    assert [pool.position_of("a"), pool.position_of("b")] == [0, 1]


def test_archives_of_all_kinds_become_the_same_pool(tmp_path, archive):
    pool = build_pool(archive, tmp_path / "plain")
    with gzip.open(tmp_path / "news.jsonl.gz", "wb") as file:
        file.write(archive.read_bytes())
    with zipfile.ZipFile(tmp_path / "news.zip", "w") as file:
        file.write(archive, "a/news.jsonl")
    rows = [{"number": f"n{i}", "heading": title, "text": text} for i, (title, text) in enumerate(TEXTS)]
    (tmp_path / "news.tsv").write_text(
        "number\ttitle\tstory\n" + "".join(f"{row['number']}\t{row['heading']}\t{row['text']}\n" for row in rows)
    )
    columns = InputSettings(text_fields=("story",), id_field="number")
    for number, (name, settings) in enumerate(
        [("news.jsonl.gz", InputSettings()), ("news.zip", InputSettings()), ("news.tsv", columns)]
    ):
        same(build_pool(tmp_path / name, tmp_path / str(number), settings=settings), pool)


def test_a_pool_that_is_there_is_opened_and_not_made_again(tmp_path, archive):
    build_pool(archive, tmp_path / "pool")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "pool").rglob("*.npy")}
    build_pool(archive, tmp_path / "pool")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "pool").rglob("*.npy")} == before
    archive.write_text('{"text": "another one"}\n')
    with pytest.raises(TextcatError, match=r"news.jsonl has changed since .* was begun: start anew with --restart"):
        build_pool(archive, tmp_path / "pool")
    assert len(build_pool(archive, tmp_path / "pool", restart=True)) == 1
    with pytest.raises(TextcatError, match=r"was begun with recipe teach .*, and now it is recipe paum"):
        build_pool(archive, tmp_path / "pool", recipe="paum")


@pytest.mark.parametrize("name", ["terms.json", "part-00000.jsonl", "data.npy", "groups.npy", "manifest.json"])
def test_a_damaged_pool_is_told_of(tmp_path, archive, name):
    build_pool(archive, tmp_path / "pool")
    (path, *_) = (tmp_path / "pool").rglob(name)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(PoolError, match=r"is damaged"):
        open_pool(tmp_path / "pool", verify=True)
    path.write_bytes(data[:-2])
    with pytest.raises(PoolError, match=r"is damaged"):
        open_pool(tmp_path / "pool")
    path.unlink()
    with pytest.raises(PoolError, match=r"is damaged|is no pool"):
        open_pool(tmp_path / "pool")


def test_what_is_no_pool_and_holds_no_document_is_told_in_a_sentence(tmp_path, archive):
    with pytest.raises(PoolError, match=r"is no pool, or not a finished one"):
        open_pool(tmp_path)
    (tmp_path / "bad.jsonl").write_text("{\n")
    with pytest.raises(PoolError, match=r"no document to teach by; 1 records could not be read: .*_rejected"):
        build_pool(tmp_path / "bad.jsonl", tmp_path / "bad")
    with pytest.raises(PoolError, match=r"There is no document to teach by: give at least one"):
        Pool.from_documents([])
    with pytest.raises(PoolError, match=r"There are 1 ids for 2 documents"):
        Pool.from_documents(["a", "b"], ["a"])
    with pytest.raises(TextcatError, match=r"No recipe 'teech'"):
        build_pool(archive, tmp_path / "pool", recipe="teech")
    with pytest.raises(TextcatError, match=r"lie in each other"):
        build_pool(tmp_path, tmp_path / "pool")


def test_many_documents_have_rows_of_words_alone(tmp_path, corpus, documents, monkeypatch):
    monkeypatch.setattr(index, "PAIRS_UP_TO", len(documents) - 1)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.recipe.features["ngrams"] == 1
    assert not any(" " in term for term in pool.features.vocabulary_)
    same(pool, Pool.from_documents(documents))


def test_documents_made_by_programs_may_hold_halves_of_surrogate_pairs(tmp_path):
    documents = [Document("\udcff", {"body": "a \ud800 word"}), Document("b", {"body": "another word"})]
    corpus = Corpus.from_documents("odd", documents)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.document(0) == {"body": "a \\ud800 word"}
    assert list(pool.ids) == ["\\udcff", "b"]
