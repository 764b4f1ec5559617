"""Archives that pools are made of."""

import json
from dataclasses import replace

import pytest
from archive_runs import make_archive
from pools import TEXTS

import textcat
from textcat.teaching.pool import index, texts


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


@pytest.fixture
def in_pieces(monkeypatch):
    """All archives are as though they were large."""
    monkeypatch.setattr(index, "ALL_UP_TO", 0)
    monkeypatch.setattr(texts, "PIECES_FROM", 0)


@pytest.fixture(scope="module")
def long_archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("long") / "a.jsonl", 150)
