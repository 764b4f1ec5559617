"""The page of `textcat teach`: from an archive to the first question, from answers to the next one, and memory.

A person of the script answers over HTTP as the page does: with every answer the evidence and the progress are asked
for, too, on connections of their own, and the next answer comes after a pause, whether they are ready or not.
"""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from harness import Row, Work
from process_tree import process_and_children, shared_bytes
from running_server import start

SIZES = (50_000, 1_000_000)
ANSWERS = 500
PAUSE = 0.25  # seconds from a document to the answer
TOPIC = "t030"  # which 4 documents in 1,000 have
PERSON = "script"
TITLES = {"answer": "answer → next", "evidence": "evidence", "progress": "progress"}


class Browser:
    """Connections that stay open, as a browser's do: one for answers, one for each of the rest."""

    def __init__(self, address: tuple[str, int]):
        self._address = address
        self._open: dict[str, http.client.HTTPConnection] = {}

    def ask(self, path: str, body: Any = None, **query: Any) -> Any:
        """Return what a route answers."""
        if path not in self._open:
            self._open[path] = http.client.HTTPConnection(*self._address, timeout=120)
        connection = self._open[path]
        target = f"/api/v1/teach/{path}?{urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"} if data else {}
        connection.request("POST" if data else "GET", target, data, head)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{target}: {content['detail']}")
        return content


class Peak:
    """The most memory that a process and those it started have held, what they share counted once."""

    def __init__(self, process: int):
        self.bytes, self._process, self._ended = 0, process, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            with suppress(OSError, ValueError):
                self.bytes = max(self.bytes, sum(map(shared_bytes, process_and_children(self._process))))

    def end(self) -> int:
        """Return the bytes."""
        self._ended.set()
        self._thread.join()
        return self.bytes


def labels_of(archive: Path) -> tuple[np.ndarray, str]:
    """Return which documents of an archive have the topic, and the id of the first."""
    mark, has, first = json.dumps(TOPIC).encode(), [], ""
    with archive.open("rb") as lines:
        for line in lines:
            has.append(mark in line[line.rfind(b"topics") :])
            if has[-1] and not first:
                first = json.loads(line)["id"]
    return np.array(has), first


def _answered(browser: Browser, has: np.ndarray, n: int) -> dict[str, list[float]]:
    """Answer questions; return the seconds that each route has taken."""
    seconds: dict[str, list[float]] = {"answer": [], "evidence": [], "progress": []}
    question = browser.ask("question", topic=TOPIC, person=PERSON)["question"]

    def beside(path: str, **query: Any) -> None:
        started = time.perf_counter()
        browser.ask(path, topic=TOPIC, **query)
        seconds[path].append(time.perf_counter() - started)

    running: dict[str, threading.Thread] = {}
    for _ in range(n):
        shown = time.perf_counter()
        for path, query in {"evidence": {"position": question["position"], "n": 60}, "progress": {}}.items():
            if path in running:
                running[path].join()
            running[path] = threading.Thread(target=beside, args=(path,), kwargs=query)
            running[path].start()
        time.sleep(max(0.0, PAUSE - (time.perf_counter() - shown)))
        body = {"topic": TOPIC, "position": question["position"], "person": PERSON, "source": "asked"}
        body["answer"] = "yes" if has[question["position"]] else "no"
        started = time.perf_counter()
        question = browser.ask("answer", body)["question"]
        seconds["answer"].append(time.perf_counter() - started)
    for thread in running.values():
        thread.join()
    return seconds


def _row(work: Work, n_documents: int, n_answers: int) -> Row:
    """Teach from an archive, kill the server, and go on."""
    archive, session, log = work.archive(n_documents), work.path("session", n_documents), work.path("teach.log")
    has, example = labels_of(archive)
    shutil.rmtree(session, ignore_errors=True)
    started = time.perf_counter()
    begin = [archive, "--topic", TOPIC, "--example", example, "--session", session]
    peaks: list[Peak] = []
    server = start("teach", *begin, "--no-browser", log=log, on_start=lambda process: peaks.append(Peak(process.pid)))
    (peak,), browser = peaks, Browser(server.address)
    try:
        browser.ask("question", topic=TOPIC, person=PERSON)
        first = time.perf_counter() - started
        reading, peak.bytes = peak.bytes, 0
        seconds = _answered(browser, has, n_answers)
        before = browser.ask("progress", topic=TOPIC)
    finally:
        teaching = peak.end()
        server.kill()
    started = time.perf_counter()
    server = start("teach", session, "--no-browser", log=log)
    try:
        browser = Browser(server.address)
        browser.ask("question", topic=TOPIC, person=PERSON)
        again = time.perf_counter() - started
        after = browser.ask("progress", topic=TOPIC)
    finally:
        server.stop()
    row: dict[str, object] = {"documents": f"{n_documents:,}", "first question, s": f"{first:.1f}"}
    for path, title in TITLES.items():
        middle, high = np.percentile(seconds[path], [50, 95]) * 1000
        row[f"{title}, ms"] = f"{middle:.0f} / {high:.0f}"
    row |= {"after kill -9, s": f"{again:.1f}", "all kept": "yes" if before["curve"] == after["curve"] else "NO"}
    return row | {"reading, MB": f"{reading / 1e6:,.0f}", "teaching, MB": f"{teaching / 1e6:,.0f}"}


def measure(work: Work) -> list[Row]:
    """Teach from archives of generated articles: the median and the 95th percentile of milliseconds, over answers."""
    sizes, n_answers = ((2_000,), 20) if work.quick else (SIZES, ANSWERS)
    return [_row(work, size, n_answers) for size in sizes]
