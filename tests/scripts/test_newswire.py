"""The corpus that comes with textcat is what its script writes and its card says."""

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from corpus_files import read

from textcat.base.disk import shipped
from textcat.corpus.cards import card
from textcat.corpus.catalogue import open_corpus

FILE = shipped("corpora") / "newswire" / "newswire.sgm"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_newswire.py"


@pytest.fixture(scope="module")
def corpus():
    return open_corpus("newswire", download=False)


def test_the_script_writes_the_shipped_file_byte_for_byte(tmp_path):
    # Another hash seed must not change a byte.
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    subprocess.run([sys.executable, SCRIPT, tmp_path / "again.sgm"], check=True, env=environment)
    assert (tmp_path / "again.sgm").read_bytes() == FILE.read_bytes()


def test_another_seed_writes_another_corpus_of_the_same_size(corpus):
    specification = importlib.util.spec_from_file_location("make_newswire", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    sys.modules["make_newswire"] = script
    specification.loader.exec_module(script)
    lexicon = script.tomllib.loads((FILE.parent / "lexicon.toml").read_text(encoding="utf-8"))
    other = script.newswire(lexicon, seed=script.SEED + 1)
    assert other != FILE.read_bytes()
    assert other.count(b"</REUTERS>") == FILE.read_bytes().count(b"</REUTERS>")


def test_the_counts_are_those_of_the_card(corpus):
    parts = corpus.statistics().documents
    assert card("newswire").counts == {
        "documents": sum(parts.values()),
        "train": parts["train"],
        "test": parts["test"],
        "topics": len(corpus.topics),
    }


def test_topics_have_the_spread_of_a_newswire(corpus):
    statistics = corpus.statistics()
    positives = sorted(statistics.train_positives, reverse=True)
    assert statistics.documents["train"] >= 600
    assert len(corpus.topics) >= 30
    assert positives[1] > 0.1 * statistics.documents["train"]
    assert sum(n <= 10 for n in positives) >= 20
    assert positives[-1] == 1
    assert min(statistics.test_positives) >= 1
    assert all(count > 0 for count in statistics.without_topic.values())


def test_topics_overlap_and_parents_hold_most_of_their_children(corpus):
    documents = [*corpus.train, *corpus.test]
    assert sum(len(d.topics) > 1 for d in documents) > 0.2 * len(documents)
    wheat = [d for d in documents if "wheat" in d.topics]
    assert sum("grain" in d.topics for d in wheat) > 0.8 * len(wheat)


def test_it_exercises_every_oddity_of_the_format(corpus):
    raw = FILE.read_text(encoding="latin-1")
    kinds = Counter({kind: raw.count(f'<TEXT TYPE="{kind}">') for kind in ("BRIEF", "UNPROC")})
    assert min(kinds.values()) > 20
    for oddity in ("&lt;", "&amp;", "&#2;", "&#3;", "&#5;", "&#127;", "<AUTHOR>", "<UNKNOWN>", 'TOPICS="BYPASS"'):
        assert oddity in raw
    assert not any("&lt;" in text or "&#" in text for d in corpus.train for text in d.zones.values())
    assert any("<" in d.zones["title"] for d in corpus.train)


def test_every_split_rule_reads_it():
    assert {d.split for d in read("reuters", FILE, split="modlewis")} == {"train", "test", "unused"}
    assert {d.split for d in read("reuters", FILE, split="modhayes")} == {"train", "test"}


def test_its_vocabulary_is_broad_and_it_is_small(corpus):
    words = {word.lower() for d in corpus.train for text in d.zones.values() for word in text.split() if word.isalpha()}
    assert len(words) > 1500
    assert FILE.stat().st_size < 1_000_000
