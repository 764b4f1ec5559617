"""Reviewing an archive: how many documents people must see, and how long they wait for the next one."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Row, Work
from promises import CONFIDENCE, corpora, split

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.corrections import Corrections
from textcat.recipes.recipe import Recipe, default_recipe
from textcat.review.queue import choose_documents
from textcat.tagging.shards import TaggedDocument
from textcat.training.examples import CountedCorpus
from textcat.training.thresholds import decisions_by_scores

COLUMNS = ("topics", "to review", "textcat", "lowest probability", "most uncertain", "at random")
PRECISIONS, RECALL, WANTED = (0.8, 0.9), 0.95, 0.9
ANSWERS = 300  # by two people, of which the time is taken
KILLS = 20
_SOME = 5  # answers between two kills


class _Tags(NamedTuple):
    """Tags of held-out documents; arrays have the shape (documents, topics), if nothing else is said."""

    rows: list[TaggedDocument]  # as a run writes them
    probabilities: np.ndarray
    automatic: np.ndarray  # whether it is given without a person
    waits: np.ndarray  # whether it is to be reviewed
    truth: np.ndarray
    promised: np.ndarray  # (topics,)


def work_saved(work: Work) -> list[Row]:
    """Count the documents that people see until topics with a promise have a recall of .9, by each order of reading."""
    rows = []
    for corpus in corpora(work):
        recipe, _ = default_recipe().for_corpus(corpus)
        counts = CountedCorpus(corpus, recipe)
        for precision in PRECISIONS:
            reads = [_reads(counts, recipe, precision, seed) for seed in range(work.rounds)]
            rows.append(_row(corpus.name, precision, [read for read in reads if read]))
    return rows


def _row(name: str, precision: float, reads: list[dict[str, float]]) -> Row:
    means = {column: np.mean([read[column] for read in reads]) for column in reads[0]} if reads else {}
    row: Row = {"corpus": name, "precision": f"{precision:g}"}
    row |= {column: f"{means[column]:,.0f}" if means else None for column in COLUMNS}
    return row | {"textcat / lowest": f"{means['textcat'] / means['lowest probability']:.2f}" if means else None}


def _reads(counts: CountedCorpus, recipe: Recipe, precision: float, seed: int) -> dict[str, float]:
    """Return how many documents are seen by each order, of one halving; {} if no topic can have what is wanted."""
    tags = _tags(counts, recipe, precision, seed)
    if tags is None:
        return {}
    there = tags.truth.sum(axis=0)
    found = ((tags.automatic | tags.waits) & tags.truth).sum(axis=0)
    needed = tags.promised & (there > 0) & (found >= WANTED * there)
    if not needed.any():
        return {}
    waiting = np.flatnonzero(tags.waits.any(axis=1))
    lowest, uncertain = (
        np.where(tags.waits, values, np.inf).min(axis=1)[waiting]
        for values in (tags.probabilities, np.abs(tags.probabilities - 0.5))
    )
    orders = {
        "textcat": choose_documents(tags.rows, len(tags.rows)).numbers,
        "lowest probability": waiting[np.argsort(lowest, kind="stable")],
        "most uncertain": waiting[np.argsort(uncertain, kind="stable")],
        "at random": np.random.default_rng(seed).permutation(waiting),
    }
    seen = {name: _seen(tags, needed, order) for name, order in orders.items()}
    return {"topics": int(needed.sum()), "to review": len(waiting), **seen}


def _tags(counts: CountedCorpus, recipe: Recipe, precision: float, seed: int) -> _Tags | None:
    """Return the tags of one half of the documents by a tagger that was trained on the other; None without promises."""
    halves, topics = split(counts, recipe, seed), counts.corpus.topics
    asked = replace(recipe.promise, precision=precision, recall=RECALL, confidence=CONFIDENCE)
    try:
        made = decisions_by_scores(replace(recipe, promise=asked), topics, halves.scores, halves.labels)
    except TextcatError:  # nothing can be promised
        return None
    assert made.promises is not None
    assert made.calibration is not None
    scores = halves.new_scores
    probabilities, automatic = made.calibration.probabilities(scores), scores > made.promises.threshold
    waits = (scores > made.thresholds) & ~automatic
    rows = []
    for number, given in enumerate(automatic | waits):
        columns = np.flatnonzero(given)
        statuses = tuple("automatic" if automatic[number, column] else "review" for column in columns)
        facts = tuple(topics[column] for column in columns), None, tuple(probabilities[number, columns].tolist())
        rows.append(TaggedDocument(str(number), "", number, *facts, statuses))
    return _Tags(rows, probabilities, automatic, waits, halves.new_labels, np.isfinite(made.promises.threshold))


def _seen(tags: _Tags, needed: np.ndarray, order: np.ndarray) -> int:
    """Return how many documents are seen in this order until all needed topics have the recall that is wanted."""
    goal = np.ceil(WANTED * tags.truth.sum(axis=0) - 1e-9)
    found = (tags.automatic & tags.truth).sum(axis=0)
    for n, document in enumerate(order):
        if (found >= goal)[needed].all():
            return n
        found = found + (tags.waits[document] & tags.truth[document])
    return len(order)


# --- the page --------------------------------------------------------------------------------------------------------


def waiting_times(work: Work) -> list[Row]:
    """Time answers to a review of many tagged documents, by two people, and kill its server while they answer."""
    n = work.documents(1_000_000, 20_000)
    archive = _tagged(work, n)
    said = work.folder / "corrections"
    started = time.perf_counter()
    server = _Server(archive, said)
    opened = time.perf_counter() - started
    seconds = [server.answer(person) for _ in range(ANSWERS // 2) for person in ("Ann", "Bob")]
    server.end()
    given, lost = len(seconds), 0
    for _ in range(KILLS):
        server = _Server(archive, said)
        for _ in range(_SOME):
            for person in ("Ann", "Bob"):
                server.answer(person)
                given += 1
        server.end(signal.SIGKILL)
        lost = max(lost, given - sum(1 for _ in Corrections(said)))
    p50, p95 = (f"{1000 * np.quantile(seconds, share):.0f} ms" for share in (0.5, 0.95))
    facts = {"tagged documents": f"{n:,}", "until the page is there": f"{opened:.0f} s", "p50": p50, "p95": p95}
    return [facts | {"kills": KILLS, "answers": f"{given:,}", "lost": lost}]


def _tagged(work: Work, n: int) -> Path:
    """Return a folder of the tags of n documents: those of newswire, again and again, by a model that promises."""
    model, texts, out = (work.folder / name for name in ("model", "texts.jsonl", "tags"))
    if not (out / "_journal.jsonl").exists():
        asked = ("--promise", "precision=.8", "--promise", "recall=.8", "--confidence", ".8")
        _textcat("train", "newswire", *asked, "--out", str(model), "--force")
        corpus = textcat.open_corpus("newswire")
        zones = [document.zones for document in (*corpus.train, *corpus.test)]
        with open(texts, "w", encoding="utf-8") as file:
            for number in range(n):
                file.write(json.dumps({"id": f"{number}", **zones[number % len(zones)]}) + "\n")
    _textcat("tag", str(model), str(texts), "--out", str(out), "--quiet")
    return out


def _textcat(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "textcat", *arguments], check=True, stdout=subprocess.DEVNULL)


class _Server:
    """A server of a review, with a link for each of two people."""

    def __init__(self, archive: Path, said: Path) -> None:
        command = [sys.executable, "-m", "textcat", "review", str(archive), "--corrections", str(said), "--port", "0"]
        self._process = subprocess.Popen([*command, "--no-browser"], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        told = ""
        while not (found := re.search(r"http://([\d.]+):(\d+)", told)):
            told = self._process.stderr.readline()
            if not told:
                raise TextcatError("The server of the review did not start: run `textcat review` on the folder.")
        self._links = {person: http.client.HTTPConnection(found[1], int(found[2])) for person in ("Ann", "Bob")}
        self._shown = {person: self._send(person, "GET", f"/next?person={person}") for person in self._links}

    def answer(self, person: str) -> float:
        """Answer for the first tag of the document that a person is shown; return the seconds until the next one."""
        document = self._shown[person]["document"]
        topic = next(tag["topic"] for tag in document["tags"] if tag["is_asked"])
        begun = time.perf_counter()
        sent = {"number": document["number"], "person": person, "answers": {topic: True}}
        self._shown[person] = self._send(person, "POST", "/answer", sent)
        return time.perf_counter() - begun

    def end(self, number: int = signal.SIGTERM) -> None:
        os.kill(self._process.pid, number)
        self._process.communicate()

    def _send(self, person: str, method: str, path: str, body: Any = None) -> Any:
        link, head = self._links[person], {"Content-Type": "application/json"} if body else {}
        link.request(method, f"/api/v1/review{path}", json.dumps(body) if body else None, head)
        return json.loads(link.getresponse().read())
