"""Use and train textcat in a process of its own, for the page on many topics.

many_topics_textcat.py tops TEST.json MODEL OUT.npy      # the first 20 topics of each test document
many_topics_textcat.py speed TEST.json MODEL N OUT.json  # titles a second
many_topics_textcat.py unseen CORPUS N LEAST [SETTING ...] OUT.json  # topics taken away from training documents
many_topics_textcat.py cost CORPUS N_TOPICS OUT.json     # train the most frequent topics
many_topics_textcat.py steps CORPUS N_DOCUMENTS N_TOPICS OUT.json  # the same, step by step, of the first documents
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from many_topics_omikuji import JOBS, RANKS, TAGGED, write_rates

import textcat
from textcat.base.progress import Bar, Stages
from textcat.corpus.documents import Corpus, topic_counts
from textcat.model.measure import relevant_topics
from textcat.training import shortlist

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


def speed(test: str, model: str, n: str, out: str) -> None:
    """Tag documents, from their texts, and write how many a second."""
    tagger = textcat.load(model)
    write_rates(lambda some: tagger.tag(some, top=TAGGED), _documents(test)[: int(n)], out)


def unseen(corpus_name: str, n: str, least: str, *rest: str) -> None:
    """Train without the labels of some topics, chosen by a seed, and measure how well test documents are given them."""
    *settings, out = rest
    corpus = textcat.open_corpus(corpus_name, download=False)
    hidden = hidden_topics(corpus, int(n), int(least))
    tagger = textcat.train(without(corpus, hidden), textcat.read_recipe(RECIPE).with_settings(settings), n_jobs=JOBS)
    known, top = (tagger.topics, tagger.train_sizes, tagger.train_documents), _tops(tagger, corpus.test)
    unknown = [len({*document.topics} - {*tagger.topics}) for document in corpus.test]
    options: dict[str, Any] = {"spec": ["ALL", "0-0"], "n_unknown": unknown}
    measured = textcat.evaluate_at_k(top, relevant_topics(tagger, corpus), *known, **options)
    facts = {row.band: row.flat() for row in measured.bands}
    assert facts["0-0"]["topics"] == len(hidden)
    Path(out).write_text(json.dumps(facts))


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


def cost(corpus_name: str, n_topics: str, out: str) -> None:
    """Train the most frequent topics on all documents, and write what the stage "train topics" took."""
    corpus = textcat.open_corpus(corpus_name, download=False)
    counts = topic_counts(corpus.train)
    topics = sorted(sorted(corpus.topics, key=lambda topic: (-counts[topic], topic))[: int(n_topics)])
    stages = _Stages()
    chosen, recipe = replace(corpus, topics=tuple(topics)), textcat.read_recipe(RECIPE)
    tagger = textcat.train(chosen, recipe, n_jobs=JOBS, stages=stages)
    entries = sum(len(rows.data) for rows in tagger.features.row_blocks(iter(corpus.train)))
    facts: dict[str, float] = {"topics": len(topics), "entries": entries}
    facts |= {"seconds": stages.seconds["train topics"], "cpu_seconds": stages.cpu_seconds["train topics"]}
    Path(out).write_text(json.dumps(facts))


class _Steps:
    """Seconds of processor of the steps of training with a shortlist, and what of each there is to be done.

    A function's seconds are those of the thread that runs it. What `weigh_evidence` does, also by others, is weighing.
    """

    def __init__(self) -> None:
        self.seconds, self.counts, self.lock, self._weighing = Counter[str](), Counter[str](), threading.Lock(), False
        for name in ("topic_centroids", "list_block", "rows_by_topic", "weigh_evidence", "train_block"):
            setattr(shortlist, name, self._timed(name, getattr(shortlist, name)))
        whole = self._timed("", shortlist.train_shortlist)

        def counted(rows: Any, labels: Any, *others: Any, n_documents: int, **options: Any) -> shortlist.TrainedTopics:
            trained: shortlist.TrainedTopics = whole(rows, labels, *others, n_documents=n_documents, **options)
            postings = np.diff(trained.scorer.shortlist.centroids.indptr)
            lengths = np.diff(rows.indptr)
            self.counts |= {
                "entries": int(rows.indptr[n_documents]),
                "label entries": int(np.asarray(labels.sum(axis=1)).ravel() @ lengths),
                "postings": int(postings[rows.indices[: rows.indptr[n_documents]]].sum()),
                "in centroids": trained.scorer.shortlist.centroids.nnz,
                "kept": trained.scorer.weights.nnz,
            }
            return trained

        shortlist.train_shortlist = counted

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            self._weighing |= name == "weigh_evidence"
            step, is_main = (
                "weigh_evidence" if self._weighing else name,
                threading.current_thread() is threading.main_thread(),
            )
            started = time.thread_time()
            result = function(*arguments, **options)
            seconds = time.thread_time() - started
            with self.lock:
                if step == name or not is_main:  # else a part of what `weigh_evidence` takes
                    self.seconds[step] += seconds
                if is_main and name in ("topic_centroids", "rows_by_topic", "weigh_evidence") and step == name:
                    self.seconds["merge"] -= seconds
                if step == "train_block":
                    block, lengths = arguments[-2], np.diff(arguments[-1].indptr)
                    of_topics = [np.concatenate(columns[:2]) for columns in block]
                    self.counts["pairs"] += sum(map(len, of_topics))
                    self.counts["entries of pairs"] += sum(int(lengths[of_topic].sum()) for of_topic in of_topics)
                    self.counts["weights"] += sum(len(ranker.features) for ranker in result)
            self._weighing &= name != "weigh_evidence"
            return result

        return timed


def steps(corpus_name: str, n_documents: str, n_topics: str, out: str) -> None:
    """Train the first documents on their most frequent topics, and write what each step took of the processor."""
    corpus = textcat.open_corpus(corpus_name, download=False)
    documents = corpus.train[: int(n_documents)]
    counts = topic_counts(documents)
    topics = sorted(sorted(corpus.topics, key=lambda topic: (-counts[topic], topic))[: int(n_topics)])
    chosen, measured, stages = replace(corpus, train=documents, topics=tuple(topics)), _Steps(), _Stages()
    tagger = textcat.train(chosen, textcat.read_recipe(RECIPE), n_jobs=JOBS, stages=stages)
    seconds = {**measured.seconds, "rows": stages.cpu_seconds["tokens to rows"]}
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        textcat.save(tagger, Path(folder, "model"))
        seconds["save"] = time.process_time() - started
        n_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    seconds["merge"] += seconds.pop("")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    facts = {"documents": len(documents), "topics": len(topics), "counts": measured.counts, "seconds": seconds}
    Path(out).write_text(json.dumps({**facts, "bytes": n_bytes, "rss_bytes": peak}))


if __name__ == "__main__":
    {"tops": tops, "speed": speed, "unseen": unseen, "cost": cost, "steps": steps}[sys.argv[1]](*sys.argv[2:])
