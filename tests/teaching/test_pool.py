"""A pool holds what its archive holds, in memory and on disk, and goes on where making it was broken off."""

import gzip
import json
import os
import random
import signal
import time
import warnings
import zipfile
from dataclasses import replace
from mmap import mmap

import numpy as np
import pytest
from archive_runs import make_archive

import textcat
from textcat import folders
from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.progress import Stages
from textcat.reading import InputSettings
from textcat.recipe import read_recipe
from textcat.teaching.pool import Pool, PoolError, build_pool, index, open_pool, texts
from textcat.teaching.pool.texts import read_archive

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
    assert (pool.rows != pool.features.transform(documents)).nnz == 0
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
    expected = read_recipe("active-learning").make_features().fit_transform(documents)
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


@pytest.mark.parametrize(
    "settings", [[], ["features.chars=3"], ["features.zone_terms=true"], ["features.hash_bits=12"]]
)
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
    with pytest.raises(
        TextcatError, match=r"news.jsonl has changed since the run in .* began: remove .*pool, or name another"
    ):
        build_pool(archive, tmp_path / "pool")
    assert len(build_pool(archive, tmp_path / "pool", restart=True)) == 1
    with pytest.raises(TextcatError, match=r"began with recipe active-learning .*, but now has recipe paum"):
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
    with pytest.raises(PoolError, match=r"is damaged|is not a pool"):
        open_pool(tmp_path / "pool")


def test_what_is_no_pool_and_holds_no_document_is_told_in_a_sentence(tmp_path, archive):
    with pytest.raises(PoolError, match=r"is not a pool, or is unfinished"):
        open_pool(tmp_path)
    (tmp_path / "bad.jsonl").write_text("{\n")
    with pytest.raises(PoolError, match=r"no document for the pool; 1 records could not be read: .*_rejected"):
        build_pool(tmp_path / "bad.jsonl", tmp_path / "bad")
    with pytest.raises(PoolError, match=r"There is no document for the pool: give at least one"):
        Pool.from_documents([])
    with pytest.raises(PoolError, match=r"There are 1 ids for 2 documents"):
        Pool.from_documents(["a", "b"], ["a"])
    with pytest.raises(TextcatError, match=r"No recipe 'teech'"):
        build_pool(archive, tmp_path / "pool", recipe="teech")
    with pytest.raises(TextcatError, match=r"one contains the other"):
        build_pool(tmp_path, tmp_path / "pool")


def test_a_language_without_spaces_is_told(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "石油工人工会投票罢工 oil"}\n{"text": "黄金价格在伦敦下跌"}\n', encoding="utf-8")
    with pytest.warns(
        UserWarning, match=r"86% of the characters of the documents .* lang = 'zh' in \[tokens\], given by --rec"
    ):
        build_pool(path, tmp_path / "pool", jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_pool(path, tmp_path / "pool", jobs=1)


def test_many_documents_have_rows_of_words_alone(tmp_path, corpus, documents, monkeypatch, caplog):
    monkeypatch.setattr(index, "ALL_UP_TO", len(documents) - 1)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.recipe.features["ngrams"] == 1
    assert (
        "The archive has 250 documents, more than 249, so rows have only words that at least two of them contain"
        in caplog.text
    )
    assert not any(" " in term for term in pool.features.vocabulary_)
    same(pool, Pool.from_documents(documents))


# --- pieces ----------------------------------------------------------------------------------------------------------

SMALL = InputSettings(block_bytes=3000)


@pytest.fixture
def in_pieces(monkeypatch):
    """All archives are as though they were large."""
    monkeypatch.setattr(index, "ALL_UP_TO", 0)
    monkeypatch.setattr(texts, "PIECES_FROM", 0)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def long_archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("long") / "a.jsonl", 150)


@pytest.mark.parametrize("recipe", ["active-learning", "default", "paum", "most"])
def test_rows_of_pieces_are_those_of_all_texts_in_memory(tmp_path, long_archive, in_pieces, monkeypatch, recipe):
    if recipe == "most":
        recipe = read_recipe("active-learning").with_settings(
            ["features.max_features=50", "features.zones={title=2,body=1}"]
        )
    with monkeypatch.context() as patched:
        patched.setattr(index, "from_texts", None)  # nothing is counted anew
        build_pool(long_archive, tmp_path / "pool", recipe=recipe, settings=SMALL)
    monkeypatch.setattr(texts, "PIECES_FROM", 1 << 40)
    build_pool(long_archive, tmp_path / "other", recipe=recipe, settings=SMALL)
    assert content(tmp_path / "pool") == content(tmp_path / "other")
    assert {"index/manifest.json", "_rejected.jsonl", "part-00000.jsonl"} < content(tmp_path / "pool").keys()


def pieces_in(folder):
    return sorted((folder / "_pieces").iterdir())


def read(archive, folder, **settings):
    with read_archive(archive, folder, read_recipe("active-learning"), SMALL, stages=Stages(), **settings):
        pass


def test_pieces_that_are_damaged_or_missing_are_counted_anew(tmp_path, long_archive, in_pieces, caplog):
    expected = content(build_pool(long_archive, tmp_path / "pool", settings=SMALL).folder)
    for number, damage in enumerate(["cut", "gone", "flipped"]):
        folder = tmp_path / str(number)
        read(long_archive, folder)
        path = pieces_in(folder)[2 * number]
        data = path.read_bytes()
        path.write_bytes(data[:-100] if damage == "cut" else data[:2000] + bytes([data[2000] ^ 1]) + data[2001:])
        if damage == "gone":
            path.unlink()
        caplog.clear()
        assert content(build_pool(long_archive, folder, settings=SMALL).folder) == expected
        assert "Terms are counted again" in caplog.text


def test_pieces_under_their_former_names_are_read(tmp_path, long_archive, in_pieces, monkeypatch):
    expected = content(build_pool(long_archive, tmp_path / "pool", settings=SMALL).folder)
    read(long_archive, tmp_path / "other")
    for path in pieces_in(tmp_path / "other"):
        with np.load(path) as file:
            arrays = dict(file)
        del arrays["ngrams"], arrays["chars"]
        names = "\n".join(json.loads(arrays.pop("terms").tobytes())).encode()
        arrays |= {"names": np.frombuffer(names, np.uint8), "ends": np.cumsum(arrays["sizes"])}
        arrays |= {"sizes": arrays.pop("n_terms"), "zone_names": arrays.pop("zones")}
        arrays |= {"zones": arrays.pop("zone_of"), "texts": arrays.pop("n_texts")}
        np.savez(path, **arrays)
    monkeypatch.setattr(index, "from_texts", None)  # nothing is counted anew
    assert content(build_pool(long_archive, tmp_path / "other", settings=SMALL).folder) == expected


class Broken(BaseException):
    """The process is no more: no handler of an error is to catch it."""


def test_a_pool_goes_on_wherever_making_it_was_broken_off(tmp_path, long_archive, in_pieces, monkeypatch):
    expected = content(build_pool(long_archive, tmp_path / "pool", settings=SMALL).folder)
    broken_at, done = [0], [0]

    def counted(function):
        def step(*arguments):
            done[0] += 1
            if done[0] == broken_at[0]:
                raise Broken
            return function(*arguments)

        return step

    for step in ("create", "reopen", "write_all", "sync", "rename", "remove", "truncate_file", "sync_folder"):
        monkeypatch.setattr(folders, step, counted(getattr(folders, step)))
    read(long_archive, tmp_path / "counted", max_records=16)
    n_steps = done[0]
    assert n_steps > 50
    for place in range(1, n_steps, n_steps // 12):
        folder, broken_at[0], done[0] = tmp_path / str(place), place, 0
        with pytest.raises(Broken):
            read(long_archive, folder, max_records=16)
        read(long_archive, folder, max_records=16)
        assert same_texts(content(build_pool(long_archive, folder, settings=SMALL).folder)) == same_texts(expected)


def same_texts(made):
    """What is in a folder, however texts are divided into shards."""
    shards = [name for name in sorted(made) if name.startswith("part-")]
    rest = {name: data for name, data in made.items() if name not in {*shards, "index/manifest.json"}}
    return b"".join(made[name] for name in shards), rest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
@pytest.mark.long
def test_a_pool_whose_making_is_killed_at_random_moments_is_the_same(tmp_path, long_archive, in_pieces):
    expected = content(build_pool(long_archive, tmp_path / "first", settings=SMALL).folder)
    began = time.perf_counter()  # now that all is loaded
    assert content(build_pool(long_archive, tmp_path / "second", settings=SMALL).folder) == expected
    longest, draw, killed, number = time.perf_counter() - began, random.Random(0), 0, 0
    while killed < 6:
        number += 1
        folder, ended = tmp_path / str(number), False
        while not ended:
            child = os.fork()
            if not child:  # all that is needed is loaded here already
                try:
                    build_pool(long_archive, folder, settings=SMALL, jobs=1)
                finally:
                    os._exit(0)
            time.sleep(draw.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)[1] == 0
            killed += not ended
            longest *= 0.8 if ended else 1.05
        assert content(folder) == expected
    (folder / "_pieces").mkdir()  # as a run leaves them that is killed when all but this is done
    assert content(build_pool(long_archive, folder, settings=SMALL).folder) == expected
    assert not (folder / "_pieces").exists()


def test_documents_made_by_programs_may_hold_halves_of_surrogate_pairs(tmp_path):
    documents = [Document("\udcff", {"body": "a \ud800 word"}), Document("b", {"body": "another word"})]
    corpus = Corpus.from_documents("odd", documents)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.document(0) == {"body": "a \\ud800 word"}
    assert list(pool.ids) == ["\\udcff", "b"]
