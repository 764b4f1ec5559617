"""scripts/make_archive.py: archives of any size that depend on nothing but a seed."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import invented
import make_archive
import make_rows
import numpy as np
import pytest
from scipy import sparse

import textcat

SCRIPTS = Path(__file__).parents[2] / "scripts"


def written(n, **settings):
    return b"".join(make_archive.articles(n, **settings))


@pytest.fixture(scope="module")
def archive():
    return written(2000)


@pytest.fixture(scope="module")
def articles(archive):
    return [json.loads(line) for line in archive.splitlines()]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(archive):
    assert archive.startswith(written(100))
    assert written(10, seed=1) != written(10)


def test_a_longer_archive_begins_with_the_shorter_one_and_pieces_make_the_whole(archive):
    assert archive.startswith(written(1300))
    assert archive.startswith(written(7) + written(1100, start=7) + written(80, start=1107))


def test_documents_are_numbered_and_about_as_long_as_was_asked_for(articles):
    assert [article["id"] for article in articles] == [f"a{i:09d}" for i in range(2000)]
    lengths = [len(article["title"].split()) + len(article["text"].split()) for article in articles]
    assert 140 < sum(lengths) / 2000 < 160
    assert all(article["title"] == article["title"].upper() and article["text"].endswith(".") for article in articles)


def test_topics_are_as_frequent_as_those_of_reuters(articles):
    counts = Counter(topic for article in articles for topic in article["topics"])
    assert 0.25 < counts["t001"] / 2000 < 0.35
    assert counts["t001"] > counts["t002"] > counts["t004"] > counts["t016"] > 0
    assert sum(counts[topic] < 50 for topic in counts) > len(counts) / 2
    assert 0.15 < sum(not article["topics"] for article in articles) / 2000 < 0.25


def test_new_words_keep_coming(articles):
    words = [word for article in articles for word in article["text"].lower().replace(",", "").replace(".", "").split()]
    halves = len(set(words[: len(words) // 2])), len(set(words))
    assert halves[1] > 1.35 * halves[0]
    assert 0.04 < words.count("the") / len(words) < 0.08
    assert 0.3 < sum(word in invented.FUNCTION_WORDS for word in words) / len(words) < 0.5


def test_no_two_ranks_have_the_same_word():
    ranks = [*range(120_000), *(7**k for k in range(8, 18))]
    assert len({invented.spell(rank) for rank in ranks}) == len(ranks)


@pytest.mark.parametrize(("name", "opened"), [("a.jsonl", open), ("a.jsonl.gz", gzip.open), ("a.jsonl.zst", None)])
def test_the_name_of_the_output_tells_its_compression(name, opened, archive, tmp_path, monkeypatch):
    target = tmp_path / name
    monkeypatch.setattr(sys, "argv", ["make_archive.py", str(target), "--documents", "300"])
    make_archive.main()
    if opened is None:
        opened = pytest.importorskip("zstandard").open
    with opened(target, "rb") as file:
        assert file.read() == b"".join(islice(archive.splitlines(keepends=True), 300))


def test_rows_are_the_words_of_the_same_articles(articles, tmp_path):
    command = [sys.executable, SCRIPTS / "make_archive.py", tmp_path / "rows", "--rows", "--documents", "1500"]
    subprocess.run(command, check=True)
    rows, topics = textcat.open_rows(tmp_path / "rows"), sparse.load_npz(tmp_path / "topics.npz")
    assert rows.shape[0] == topics.shape[0] == 1500
    np.testing.assert_allclose([block.multiply(block).sum() for block in rows.blocks(1)], 1, rtol=1e-5)
    for i in (0, 7, 1499):
        article = articles[i]
        assert [make_archive.topic_name(k) for k in topics[[i]].indices] == article["topics"]
        words = {word.strip(".,").lower() for word in f"{article['title']} {article['text']}".split()}
        assert 0.7 < rows[i : i + 1].nnz / len(words - set(invented.FUNCTION_WORDS)) <= 1


def test_rows_of_other_documents_have_the_same_columns():
    archive = make_rows.Archive(topics=20)
    columns = make_rows.fit_columns(archive, 2000)
    together = sparse.vstack(list(make_rows.rows(archive, columns, 2048)))
    assert (together[1024:] != next(make_rows.rows(archive, columns, 1024, start=1024))).nnz == 0
    assert (make_rows.labels(archive, 2048)[1024:] != make_rows.labels(archive, 1024, start=1024)).nnz == 0
    assert together.shape[1] == len(columns.ranks) == len(set(columns.columns.tolist()))
