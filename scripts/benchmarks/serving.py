"""Measure `textcat serve` by wrk on the loopback address, and beside Annif's, for docs/benchmarks/serving.md.

scripts/benchmark serving                        # wrk is needed
scripts/benchmark serving --annif VENV           # Annif's tfidf on the same corpus, of an environment with Annif
scripts/benchmark serving --quick                # two seconds each, on newswire: does it work?
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

import many_topics_annif
import orjson
from pages import Conditions, Page, publish

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Document

LUA = """
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
local i = 0
request = function()
  i = i % #bodies + 1
  return wrk.format("POST", nil, {["Content-Type"] = os.getenv("KIND")}, bodies[i])
end
if os.getenv("DELAY") then delay = function() return math.random(0, 2 * tonumber(os.getenv("DELAY"))) end end
"""
BATCH, SOME = 1000, 1500
FIRST: list[str] = []  # what starts wrk and the servers
_TICKS = os.sysconf("SC_CLK_TCK")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@dataclass
class Load:
    """What wrk measured: requests a second, milliseconds, failures; seconds of the processor for each request."""

    rate: float
    median: float
    p99: float
    failed: int
    server: float
    client: float

    def row(self, name: str, documents: int = 1) -> list[str]:
        """Return it as a row of a table."""
        possible = (os.cpu_count() or 1) / (self.server + self.client) * documents
        cells = [f"{self.rate * documents:,.0f}", f"{self.median:.1f}", f"{self.p99:.1f}"]
        return [name, *cells, f"{1e6 * self.server / documents:,.0f}", f"{possible:,.0f}", f"{self.failed}"]


def main(arguments: Sequence[str]) -> None:
    """Measure, print the page, and write it if asked to."""
    parser = argparse.ArgumentParser(prog="scripts/benchmark serving", description=__doc__.partition("\n")[0])
    parser.add_argument("--annif", type=Path, help="environment that Annif is installed in")
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement (default: %(default)s)")
    parser.add_argument("--real-time", action="store_true", help="let wrk and the servers go before all else (chrt)")
    parser.add_argument("--quick", action="store_true", help="on the small corpus newswire: does it work?")
    parser.add_argument("--out", type=Path, help="also write the page to this folder, such as docs/benchmarks")
    options = parser.parse_args(arguments)
    FIRST[:] = ["chrt", "--rr", "1"] if options.real_time else []
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: on Debian, apt install wrk.")
    try:
        corpus = open_corpus("newswire" if options.quick else "reuters21578", download=False)
    except TextcatError as error:
        raise SystemExit(str(error)) from None
    seconds = 2 if options.quick else options.seconds
    with tempfile.TemporaryDirectory() as folder:
        publish([_measured(Path(folder), corpus, seconds, options.annif)], options.out)


def _measured(folder: Path, corpus: textcat.Corpus, seconds: int, annif: Path | None) -> Page:
    conditions = Conditions("default")
    textcat.save(textcat.train(corpus, textcat.read_recipe("default")), folder / "model")
    documents = corpus.test or corpus.train
    (folder / "wrk.lua").write_text(LUA)
    singles = [orjson.dumps({"zones": document.zones}) for document in documents]
    batches = [documents[i : i + BATCH] for i in range(0, max(len(documents) - BATCH, 1), BATCH)]
    (folder / "singles").write_bytes(b"\n".join(singles))
    of_batches = [{"documents": [{"zones": document.zones} for document in batch]} for batch in batches]
    (folder / "batches").write_bytes(b"\n".join(map(orjson.dumps, of_batches)))
    forms = [f"limit=10&text={quote_plus(_text(document))}" for document in documents]
    (folder / "forms").write_text("\n".join(forms))
    rows = []
    command = [sys.executable, "-m", "textcat", "serve", f"m={folder / 'model'}", "--port", "8651"]
    with _running(command, "http://127.0.0.1:8651/v2/health/ready", folder) as process:
        tag = "http://127.0.0.1:8651/api/v1/models/m/tag"
        _load(process, folder, "singles", tag, 16, 2)
        full = max((_load(process, folder, "singles", tag, n, seconds) for n in (32, 64)), key=lambda load: load.rate)
        rows.append(full.row("one document per request"))
        some = _load(process, folder, "singles", tag, 32, seconds, delay=1000 * 32 / SOME)
        rows.append(some.row(f"the same, about {SOME:,} per second"))
        of_batch = _load(process, folder, "batches", f"{tag}-batch", 4, seconds)
        rows.append(of_batch.row(f"batches of {len(batches[0]):,}, documents", len(batches[0])))
        suggest = "http://127.0.0.1:8651/v1/projects/m/suggest"
        ours = _load(process, folder, "forms", suggest, 16, seconds, kind=FORM)
        rows.append(ours.row("Annif's route, `suggest`"))
    compared = ""
    if annif:
        theirs = _annif(annif.absolute(), folder, corpus, seconds)
        rows.append(theirs.row("Annif's REST, tfidf"))
        compared = f"""textcat answers {ours.rate / theirs.rate:,.0f} times as many requests per second as Annif's
server with its project
tfidf, by Annif's route `suggest`, and needs {theirs.server / ours.server:,.0f} times less processor time for each
request.
"""
    names = ("what", "per second", "median, ms", "p99, ms", "µs of processor time", "possible", "failed")
    text = f"""The table shows how many requests `textcat serve` answers in a second, with a model of {corpus.name}:
{len(corpus.test)} test documents, {len(corpus.topics)} topics. wrk sends requests from the same machine, over the
loopback address, for {seconds} seconds per row."""
    notes = f"""{compared}
Processor time is that of all processes of the server, per document. "Possible" is the
number of requests that the cores could answer in a second if they ran only the server and the client wrk. A busy
machine answers fewer, and p99 (the 99th percentile of the response time) is then mostly the wait for a core. With
--real-time, wrk and the servers do not wait for other programs.
"""
    table = [dict(zip(names, row, strict=True)) for row in rows]
    return Page("serving", "The server", conditions.head(), text, table, notes)


def _text(document: Document) -> str:
    return " ".join(" ".join(document.zones.values()).split())


def _load(
    process: subprocess.Popen[bytes],
    folder: Path,
    bodies: str,
    url: str,
    connections: int,
    seconds: int,
    *,
    kind: str = JSON,
    delay: float = 0,
) -> Load:
    environment = {**os.environ, "BODIES": str(folder / bodies), "KIND": kind}
    if delay:
        environment["DELAY"] = f"{delay:.0f}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "30", "--latency", "-s"]
    before, mine = _processor(process.pid), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [*FIRST, *command, str(folder / "wrk.lua"), url], env=environment, capture_output=True, text=True
    )
    used, ours = _processor(process.pid) - before, resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = ended.stdout
    n = int(re.search(r"(\d+) requests in", printed)[1])  # type: ignore[index]
    client = ours.ru_utime + ours.ru_stime - mine.ru_utime - mine.ru_stime
    failed = sum(map(int, re.findall(r"(?:Non-2xx or 3xx responses:|timeout) (\d+)", printed)))
    rate = float(re.search(r"Requests/sec: +([\d.]+)", printed)[1])  # type: ignore[index]
    return Load(rate, _milliseconds(printed, "50%"), _milliseconds(printed, "99%"), failed, used / n, client / n)


def _milliseconds(printed: str, row: str) -> float:
    number, unit = re.search(rf"{row} +([\d.]+)(us|ms|s|m)\b", printed).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[unit]


def _processor(process: int) -> float:
    """Return the seconds of the processor that a process and its children have used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(_processor(int(child)) for child in children)


@contextmanager
def _running(command: list[str], ready: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([*FIRST, *command], cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(ready, timeout=5).read()
                break
            except OSError:
                time.sleep(0.2)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _annif(annif: Path, folder: Path, corpus: textcat.Corpus, seconds: int) -> Load:
    """Train Annif's tfidf on the corpus, and measure its server as it is started by `annif run`."""
    uris = {topic: f"http://example.org/{quote_plus(topic)}" for topic in corpus.topics}
    (folder / "subjects.tsv").write_text("".join(f"<{uri}>\t{topic}\n" for topic, uri in uris.items()))
    lines = (
        f"{_text(document)}\t{' '.join(f'<{uris[topic]}>' for topic in document.topics if topic in uris)}\n"
        for document in corpus.train
        if any(topic in uris for topic in document.topics)
    )
    (folder / "train.tsv").write_text("".join(lines))
    settings = "[t]\nname=t\nlanguage=en\nbackend=tfidf\nanalyzer=snowball(english)\nvocab=v\nlimit=100\n"
    (folder / "projects.cfg").write_text(settings)
    sentences = [str(annif / "bin" / "python"), str(Path(many_topics_annif.__file__)), "sentences", str(folder)]
    program = [*many_topics_annif.environment(folder), str(annif / "bin" / "annif")]
    loads, trains = ["load-vocab", "--language", "en", "v", "subjects.tsv"], ["train", "t", "train.tsv"]
    for command in (sentences, [*program, *loads], [*program, *trains]):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    command = [*program, "run", "--host", "127.0.0.1", "--port", "8652"]
    with _running(command, "http://127.0.0.1:8652/v1/projects/t", folder) as process:
        url = "http://127.0.0.1:8652/v1/projects/t/suggest"
        _load(process, folder, "forms", url, 1, 2, kind=FORM)
        return _load(process, folder, "forms", url, 16, seconds, kind=FORM)
