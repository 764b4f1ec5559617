"""Use and train textcat in a process of its own, for the tables of many topics.

many_topics_work.py tops TEST.json MODEL OUT.npy             # the first 20 topics of each test document
many_topics_work.py speed TEST.json MODEL N                  # prints titles a second
many_topics_work.py unseen CORPUS N LEAST JOBS [SETTING ...] # takes topics away from training documents
many_topics_work.py cost CORPUS N_TOPICS JOBS                # trains the most frequent topics
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from many_topics_rates import RANKS, TAGGED, print_rates

import textcat
from textcat.base.progress import Bar, Stages
from textcat.corpus.documents import Corpus, topic_counts
from textcat.model.measure import relevant_topics

RECIPE = "many-topics"
SEED = 0


def tops(test: str, model: str, out: str) -> None:
    """Save the first topics of each test document."""
    np.save(out, _tops(textcat.load(model), _documents(test)))


def _documents(test: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = json.loads(Path(test).read_text(encoding="utf-8"))
    return documents


def _tops(tagger: textcat.Tagger, documents: Any) -> np.ndarray:
    column = {topic: j for j, topic in enumerate(tagger.topics)}
    columns = ([column[tag.topic] for tag in tags] for tags in tagger.tag_stream(documents, top=RANKS))
    return np.array([row + [-1] * (RANKS - len(row)) for row in columns], np.int32)  # some get fewer


def speed(test: str, model: str, n: str) -> None:
    """Tag documents, from their texts, and print how many a second."""
    tagger = textcat.load(model)
    print_rates(lambda some: tagger.tag(some, top=TAGGED), _documents(test)[: int(n)])


def unseen(corpus_name: str, n: str, least: str, jobs: str, *settings: str) -> None:
    """Train without the labels of some topics, chosen by a seed, and measure how well test documents are given them."""
    corpus = textcat.open_corpus(corpus_name, download=False)
    hidden = hidden_topics(corpus, int(n), int(least))
    tagger = textcat.train(
        without(corpus, hidden), textcat.read_recipe(RECIPE).with_settings(settings), n_jobs=int(jobs)
    )
    known, top = (tagger.topics, tagger.facts.train_sizes, tagger.facts.train_documents), _tops(tagger, corpus.test)
    unknown = [len({*document.topics} - {*tagger.topics}) for document in corpus.test]
    options: dict[str, Any] = {"spec": ["ALL", "0-0"], "n_unknown": unknown}
    measured = textcat.evaluate_at_k(top, relevant_topics(tagger, corpus), *known, **options)
    facts = {row.band: row.flat() for row in measured.bands}
    assert facts["0-0"]["topics"] == len(hidden)
    print(json.dumps(facts))


def hidden_topics(corpus: Corpus, n: int, least: int) -> set[str]:
    """Choose at random n of the topics that have at least so many test documents, or half of them if that is fewer."""
    counts = topic_counts(corpus.test)
    possible = [topic for topic in corpus.topics if counts[topic] >= least and topic in corpus.names]
    n = min(n, len(possible) // 2)
    return set(np.random.default_rng(SEED).choice(possible, n, replace=False).tolist())


def without(corpus: Corpus, hidden: set[str]) -> Corpus:
    """Take topics away from all training documents; they stay topics, as a vocabulary names them."""
    train = [
        replace(document, topics=tuple(topic for topic in document.topics if topic not in hidden), split="train")
        for document in corpus.train
    ]
    test = [replace(document, split="test") for document in corpus.test]
    return Corpus.from_documents(corpus.name, [*train, *test], "described", names=corpus.names)


class _Stages(Stages):
    """Stages, with the time of the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu_seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Bar]:
        started = time.process_time()
        with super().stage(name, total) as bar:
            yield bar
        self.cpu_seconds[name] = self.cpu_seconds.get(name, 0.0) + time.process_time() - started


def cost(corpus_name: str, n_topics: str, jobs: str) -> None:
    """Train the most frequent topics on all documents, and print what the stage "train topics" took."""
    corpus = textcat.open_corpus(corpus_name, download=False)
    counts = topic_counts(corpus.train)
    topics = sorted(sorted(corpus.topics, key=lambda topic: (-counts[topic], topic))[: int(n_topics)])
    stages = _Stages()
    chosen, recipe = replace(corpus, topics=tuple(topics)), textcat.read_recipe(RECIPE)
    tagger = textcat.train(chosen, recipe, n_jobs=int(jobs), stages=stages)
    entries = sum(len(rows.data) for rows in tagger.features.row_blocks(iter(corpus.train)))
    facts: dict[str, float] = {"topics": len(topics), "entries": entries}
    facts |= {"seconds": stages.seconds["train topics"], "cpu_seconds": stages.cpu_seconds["train topics"]}
    print(json.dumps(facts))


if __name__ == "__main__":
    {"tops": tops, "speed": speed, "unseen": unseen, "cost": cost}[sys.argv[1]](*sys.argv[2:])
