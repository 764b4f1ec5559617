"""`textcat serve` by wrk on the loopback address, and Annif's server with its tfidf on the same corpus."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote_plus

import annif_systems as annif
import orjson
from harness import Row, Work, environment, run
from running_server import start
from training import reuters

import textcat
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
SECONDS, QUICK = 10, 2  # of each row
_TICKS = os.sysconf("SC_CLK_TCK")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class Load(NamedTuple):
    """What wrk measured: requests a second, milliseconds, failures; seconds of the processor for each request."""

    rate: float
    median: float
    p99: float
    failed: int
    server: float
    client: float

    def row(self, name: str, documents: int = 1) -> Row:
        """Return it as a row of a table, with what the cores could answer if they ran only the server and wrk."""
        possible = (os.cpu_count() or 1) / (self.server + self.client) * documents
        return {
            "what": name,
            "per second": f"{self.rate * documents:,.0f}",
            "median, ms": f"{self.median:.1f}",
            "p99, ms": f"{self.p99:.1f}",
            "µs of processor time": f"{1e6 * self.server / documents:,.0f}",
            "possible": f"{possible:,.0f}",
            "failed": self.failed,
        }


def measure(work: Work) -> list[Row]:
    """Ask both servers for some seconds a row; Annif's only where it is installed."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: on Debian, apt install wrk.")
    corpus, folder, seconds = reuters(work), work.folder, QUICK if work.quick else SECONDS
    textcat.save(textcat.train(corpus, textcat.read_recipe("default")), folder / "model")
    documents = corpus.test or corpus.train
    (folder / "wrk.lua").write_text(LUA)
    batches = [documents[i : i + BATCH] for i in range(0, max(len(documents) - BATCH, 1), BATCH)]
    bodies = [{"documents": [{"zones": document.zones} for document in batch]} for batch in batches]
    (folder / "batches").write_bytes(b"\n".join(map(orjson.dumps, bodies)))
    (folder / "singles").write_bytes(b"\n".join(orjson.dumps({"zones": one.zones}) for one in documents))
    (folder / "forms").write_text("\n".join(f"limit=10&text={quote_plus(_text(one))}" for one in documents))
    server = start("serve", f"m={folder / 'model'}", log=folder / "server.log")
    try:
        pid, tag = server.process.pid, f"{server.url}/api/v1/models/m/tag"
        _load(pid, folder, "singles", tag, 16, 2)
        full = max((_load(pid, folder, "singles", tag, n, seconds) for n in (32, 64)), key=lambda load: load.rate)
        some = _load(pid, folder, "singles", tag, 32, seconds, delay=1000 * 32 / SOME)
        of_batches = _load(pid, folder, "batches", f"{tag}-batch", 4, seconds)
        suggest = _load(pid, folder, "forms", f"{server.url}/v1/projects/m/suggest", 16, seconds, kind=FORM)
    finally:
        server.stop()
    rows = [
        full.row("one document per request"),
        some.row(f"the same, about {SOME:,} per second"),
        of_batches.row(f"batches of {len(batches[0]):,}, documents", len(batches[0])),
        suggest.row("Annif's route, `suggest`"),
    ]
    if annif.python():
        rows.append(_annif(folder, corpus, seconds).row("Annif's REST, tfidf"))
    return rows


def shadow(work: Work) -> list[Row]:
    """Compare a server at half of the load that it can bear with the same that has a shadow, in turns."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: on Debian, apt install wrk.")
    corpus, folder, seconds = reuters(work), work.folder, QUICK if work.quick else SECONDS
    textcat.save(textcat.train(corpus, textcat.read_recipe("default")), folder / "model")
    textcat.save(textcat.train(corpus, textcat.read_recipe("paum")), folder / "new")
    (folder / "wrk.lua").write_text(LUA)
    documents = corpus.test or corpus.train
    (folder / "singles").write_bytes(b"\n".join(orjson.dumps({"zones": one.zones}) for one in documents))
    servers = [
        start("serve", f"m={folder / 'model'}", *options, log=folder / f"server-{name}.log")
        for name, options in (("plain", ()), ("shadow", ("--shadow", folder / "new")))
    ]
    try:
        asked = [(server.process.pid, f"{server.url}/api/v1/models/m/tag") for server in servers]
        full = max(_load(pid, folder, "singles", url, 32, seconds).rate for pid, url in asked)
        delay = 1000 * 32 / (full / 2)
        loads = [
            [_load(pid, folder, "singles", url, 32, seconds, delay=delay) for pid, url in asked]
            for _ in range(work.rounds)
        ]
    finally:
        for server in servers:
            server.stop()
    rows = []
    for side, name in enumerate(("without a shadow", "with a shadow")):
        of_side = [pair[side] for pair in loads]
        row: Row = {"server": name, "per second": f"{median(load.rate for load in of_side):,.0f}"}
        row |= {"median, ms": f"{median(load.median for load in of_side):.2f}"}
        row |= {"p99, ms": f"{median(load.p99 for load in of_side):.2f}"}
        ratios = [pair[side].p99 / pair[0].p99 for pair in loads]
        rows.append(row | {"p99 / without": f"{median(ratios):.2f}", "failed": sum(load.failed for load in of_side)})
    return rows


def _text(document: Document) -> str:
    return " ".join(" ".join(document.zones.values()).split())


def _load(
    server: int, folder: Path, bodies: str, url: str, connections: int, seconds: int, kind: str = JSON, delay: float = 0
) -> Load:
    """Send the lines of a file to a server, given its process, for some seconds."""
    variables = {**os.environ, "BODIES": str(folder / bodies), "KIND": kind}
    if delay:
        variables["DELAY"] = f"{delay:.0f}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "30", "--latency", "-s"]
    before, mine = _processor(server), resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(
        [*command, folder / "wrk.lua", url], env=variables, capture_output=True, check=True, text=True
    ).stdout
    used, ours = _processor(server) - before, resource.getrusage(resource.RUSAGE_CHILDREN)
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


def _annif(folder: Path, corpus: textcat.Corpus, seconds: int) -> Load:
    """Train Annif's tfidf on the corpus, and measure its server as it is started by `annif run`."""
    place = folder / "annif"
    annif.write_files(corpus, place, "en", ["tfidf"])
    run(annif.script(place, "sentences"))
    run(annif.load_command(place))
    run(annif.train_command(place, "tfidf"))
    address = "http://127.0.0.1:8652/v1/projects/tfidf"
    with _running([*annif.command(place), "run", "--host", "127.0.0.1", "--port", "8652"], address, folder) as pid:
        _load(pid, folder, "forms", f"{address}/suggest", 1, 2, kind=FORM)
        return _load(pid, folder, "forms", f"{address}/suggest", 16, seconds, kind=FORM)


@contextmanager
def _running(command: list[object], ready: str, folder: Path) -> Iterator[int]:
    """Run Annif's server; yield its process when it answers."""
    with (folder / "annif.log").open("wb") as log:
        process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, env=environment())
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(ready, timeout=5).read()
                break
            except OSError:
                time.sleep(0.2)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
