"""Measure the page of `textcat teach`: from an archive to the first question, from answers to the next one, and memory.

scripts/benchmarks/teaching_page.py 50000 1000000       # generated archives of so many articles
REAL_TIME=1 scripts/benchmarks/teaching_page.py ARCHIVE # this archive; answers and restarts go before all else (chrt)

A person of the script answers over HTTP as the page does: with every answer the evidence and the progress are asked
for, too, on connections of their own, and the next answer comes after a pause, whether they are ready or not.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from process_tree import process_and_children, shared_bytes

from textcat.evaluation.export import markdown_table

ROOT = Path(__file__).resolve().parent.parent.parent
SIZES = (50_000, 1_000_000)
ANSWERS = 500
PAUSE = 0.25  # seconds from a document to the answer
TOPIC = "t030"  # which 4 documents in 1,000 have
PERSON = "script"
TITLES = {"answer": "answer → next", "evidence": "evidence", "progress": "progress"}


class Browser:
    """Connections that stay open, as a browser's do: one for answers, one for each of the rest."""

    def __init__(self, url: str):
        self._address = url.removeprefix("http://").rstrip("/")
        self._open: dict[str, http.client.HTTPConnection] = {}

    def ask(self, path: str, body: Any = None, **query: Any) -> Any:
        """Return what a route answers."""
        if path not in self._open:
            self._open[path] = http.client.HTTPConnection(self._address, timeout=120)
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


@contextmanager
def before_all_else(process: int) -> Iterator[None]:
    """Let this process and another one go before all others, where it is asked for: on a machine that is busy."""
    both = [str(process), str(os.getpid())] if os.environ.get("REAL_TIME") else []
    for process in both:
        subprocess.run(["chrt", "-a", "--rr", "-p", "1", process], check=True)
    try:
        yield
    finally:
        for process in both:
            subprocess.run(["chrt", "-a", "--other", "-p", "0", process], check=False)


@contextmanager
def teaching(folder: Path, *arguments: str) -> Iterator[tuple[Browser, subprocess.Popen[bytes], Peak]]:
    """Start `textcat teach`; yield when its page can be asked."""
    command = [sys.executable, "-m", "textcat", "teach", *arguments, "--no-browser", "--port", "0"]
    with open(folder / "teach.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        peak = Peak(process.pid)
        try:
            while not (found := re.search(rb"http://[\d.:]+", (folder / "teach.log").read_bytes())):
                if process.poll() is not None:
                    raise SystemExit((folder / "teach.log").read_text())
                time.sleep(0.01)
            yield Browser(found[0].decode()), process, peak
        finally:
            peak.end()
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


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


def rows_of_size(folder: Path, n_documents: int, archive: Path | None, n_answers: int) -> dict[str, Any]:
    if archive is None:
        archive = folder / f"archive-{n_documents}.jsonl"
        command = [sys.executable, ROOT / "scripts" / "make_archive.py", archive, "--documents", str(n_documents)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    has, example = labels_of(archive)
    session = folder / f"session-{n_documents}"
    begin = [str(archive), "--topic", TOPIC, "--example", example, "--session", str(session)]
    started = time.perf_counter()
    with teaching(folder, *begin) as (browser, process, peak):
        browser.ask("question", topic=TOPIC, person=PERSON)
        found: dict[str, Any] = {"first": time.perf_counter() - started}
        found["reading"], peak.bytes = peak.bytes, 0
        with before_all_else(process.pid):
            seconds = _answered(browser, has, n_answers)
        before = browser.ask("progress", topic=TOPIC)
        found["teaching"] = peak.end()
        process.kill()
        process.wait()
    started = time.perf_counter()
    with before_all_else(os.getpid()), teaching(folder, str(session)) as (browser, _, _):
        browser.ask("question", topic=TOPIC, person=PERSON)
        found["again"] = time.perf_counter() - started
        after = browser.ask("progress", topic=TOPIC)
    found |= {"seconds": seconds, "yes": after["counts"]["yes"], "kept": before["curve"] == after["curve"]}
    return found


def measured(sizes: Sequence[int] = SIZES, archives: Sequence[Path] = (), n_answers: int = ANSWERS) -> str:
    """Return a section of the page of measurements."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for place, size in enumerate(sizes):
            archive = archives[place] if place < len(archives) else None
            found = rows_of_size(Path(name), size, archive, n_answers)
            row = {"documents": f"{size:,}", "first question, s": f"{found['first']:.1f}"}
            for path, title in TITLES.items():
                middle, high = np.percentile(found["seconds"][path], [50, 95]) * 1000
                row[f"{title}, ms"] = f"{middle:.0f} / {high:.0f}"
            row |= {"after kill -9, s": f"{found['again']:.1f}", "all kept": "yes" if found["kept"] else "NO"}
            row["reading, MB"], row["teaching, MB"] = (f"{found[key] / 1e6:,.0f}" for key in ("reading", "teaching"))
            rows.append(row)
    return f"""## The page

Of archives of generated articles: seconds from the command to the first question; milliseconds (median / 95th
percentile) of requests over HTTP, where an answer comes every {PAUSE:g} s, and evidence and progress are asked for
with each; seconds from the command on the session to a question, after `kill -9` behind {n_answers} answers; and the
most memory while the archive is read, by all processes, and while answers come. Memory that processes share counts
once, and so does that of mapped files.

{markdown_table(rows)}
"""


def main(arguments: Sequence[str]) -> None:
    """Measure alone: sizes, or archives of JSON Lines."""
    archives = [Path(argument).resolve() for argument in arguments if not argument.isdigit()]
    sizes = [int(argument) for argument in arguments if argument.isdigit()]
    for archive in archives:
        with archive.open("rb") as lines:
            sizes.insert(archives.index(archive), sum(1 for _ in lines))
    print(measured(sizes or SIZES, archives, int(os.environ.get("ANSWERS", ANSWERS))))


if __name__ == "__main__":
    main(sys.argv[1:])
