"""Fuzz the server: ``scripts/fuzz server`` asks every route what it may be asked, and what not, by schemathesis.

``scripts/fuzz server --teach`` does so with the server of `textcat teach`.

``scripts/fuzz server --exchange`` lets 200 clients ask while the model is exchanged every 10 seconds: each answer must
be, to the bit, that of the version it names. Both print the server's memory before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running_server import Running, children_of, start

import textcat

HOOKS = Path(__file__).with_name("server_hooks.py")
WORDS = ("wheat", "corn", "gold", "silver", "exports", "harvest", "prices", "bank", "rates", "oil", "ships", "sugar")


def main(arguments: list[str]) -> None:
    """Fuzz as the command line asks for it; exit with 1 if something was found."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz server", description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long (default: 10, with --exchange 5)")
    parser.add_argument("--teach", action="store_true", help="the server of `textcat teach` instead")
    parser.add_argument("--exchange", action="store_true", help="exchange the model while clients ask")
    parser.add_argument("--clients", type=int, default=200, help="with --exchange: how many (default: %(default)s)")
    parser.add_argument("--every", type=float, default=10, help="with --exchange: seconds (default: %(default)g)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.exchange:
            has_failed = _exchange(Path(folder), 60 * (options.minutes or 5), options.clients, options.every)
        else:
            has_failed = _schema(Path(folder), 60 * (options.minutes or 10), teach=options.teach)
    sys.exit(1 if has_failed else 0)


def _model(tau: int) -> textcat.Tagger:
    recipe = textcat.read_recipe("paum").with_settings([f"learner.tau_pos={tau}"])
    return textcat.train(textcat.open_corpus("newswire"), recipe)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Running]:
    """Serve a model as `news`."""
    with _started("serve", f"news={folder}", "--log", "events", *options, log=folder.with_suffix(".log")) as server:
        yield server


@contextmanager
def taught(folder: Path) -> Iterator[Running]:
    """Serve a session of a small archive."""
    archive = folder.with_suffix(".jsonl")
    lines = [
        json.dumps({"id": f"d{i}", "title": f"{WORDS[i % 12]} {i}", "text": " ".join(WORDS[i % 5 : i % 11 + 1])})
        for i in range(300)
    ]
    archive.write_text("\n".join(lines))
    command = ["teach", archive, "--topic", "strikes in the energy sector", "--example", "d0"]
    with _started(*command, "--session", folder, "--no-browser", log=folder.with_suffix(".log")) as server:
        yield server


@contextmanager
def _started(*arguments: object, log: Path) -> Iterator[Running]:
    server = start(*arguments, log=log)
    try:
        yield server
    finally:
        print(f"the server ended with {server.stop()[0]}")


def memory(process: int) -> int:
    """Return the bytes of memory that are a process' and its children's own."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    kilobytes = sum(int(size) for size in re.findall(r"^Private_\w+: +(\d+) kB", rollup, re.MULTILINE))
    return 1024 * kilobytes + sum(map(memory, children_of(process)))


def _schema(folder: Path, seconds: float, *, teach: bool) -> bool:
    if teach:
        server = taught(folder / "model")
    else:
        textcat.save(_model(50), folder / "model")
        server = served(folder / "model", "--workers", "2", "--timeout", "10")
    with server as running:
        before = memory(running.process.pid)
        settings = ["--config-file", str(HOOKS.with_name("schemathesis.toml"))]
        command = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            *settings,
            "run",
            f"{running.url}/openapi.json",
            "--checks",
            "all",
        ]
        command += ["--max-time", f"{seconds:.0f}", "--continue-on-failure"]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS.stem}
        environment["PYTHONPATH"] = os.pathsep.join([str(HOOKS.parent), environment.get("PYTHONPATH", "")])
        code = subprocess.run(command, cwd=folder, env=environment).returncode
        print(f"memory: {before / 1e6:.0f} MB before, {memory(running.process.pid) / 1e6:.0f} MB after")
    log = folder.joinpath("model.log").read_text()
    failures = [line for line in log.splitlines() if '"event":"error"' in line or '"process_died"' in line]
    print("\n".join(failures[:5]))
    return bool(code or failures)


# --- the model is exchanged while clients ask ------------------------------------------------------------------------


def _exchange(folder: Path, seconds: float, n_clients: int, every: float) -> bool:
    taggers, model = [_model(tau) for tau in (50, 5)], folder / "model"
    generator = random.Random(0)
    texts = [" ".join(generator.choices(WORDS, k=generator.randint(3, 60))) for _ in range(300)]
    expected: dict[str, list[Any]] = {}
    for tagger in taggers:
        textcat.save(tagger, model)
        version = hashlib.sha256((model / "manifest.json").read_bytes()).hexdigest()[:12]
        expected[version] = [[tag._asdict() for tag in tags] for tags in tagger.tag(texts)]
    assert len(expected) == 2
    counts: Counter[str] = Counter()
    stop = threading.Event()

    def exchange() -> None:
        k = 0
        while not stop.wait(every):
            textcat.save(taggers[k % 2], model)
            counts["exchanges"] += 1
            k += 1

    with served(model, "--workers", "2", "--max-concurrency", "1000") as server:
        before, thread = memory(server.process.pid), threading.Thread(target=exchange)
        thread.start()
        try:
            asyncio.run(_clients(server.address, texts, expected, seconds, n_clients, counts))
        finally:
            stop.set()
            thread.join()
        print(f"memory: {before / 1e6:.0f} MB before, {memory(server.process.pid) / 1e6:.0f} MB after")
    names = ("requests", "exchanges", *expected, "lost", "wrong", "mixed")
    print(", ".join(f"{name}: {counts[name]:,}" for name in names))
    log = folder.joinpath("model.log").read_text()
    print(Counter(json.loads(line)["event"] for line in log.splitlines()))
    return bool(counts["lost"] or counts["wrong"] or counts["mixed"] or '"process_died"' in log)


async def _clients(
    address: tuple[str, int],
    texts: list[str],
    expected: dict[str, list[Any]],
    seconds: float,
    n: int,
    counts: Counter[str],
) -> None:
    end = time.monotonic() + seconds

    async def client(seed: int) -> None:
        generator = random.Random(seed)
        reader, writer = await asyncio.open_connection(*address)
        while time.monotonic() < end:
            places = generator.choices(range(len(texts)), k=generator.choice((1, 1, 1, 5, 40)))
            documents = [{"text": texts[i]} for i in places]
            alone = len(places) == 1
            body = json.dumps(documents[0] if alone else {"documents": documents}).encode()
            path = f"/api/v1/models/news/{'tag' if alone else 'tag-batch'}"
            head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            counts["requests"] += 1
            try:
                writer.write(head.encode() + body)
                answered = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
                length = int(re.search(rb"content-length: (\d+)", answered)[1])  # type: ignore[index]
                answer = json.loads(await asyncio.wait_for(reader.readexactly(length), 60))
                if not answered.startswith(b"HTTP/1.1 200"):
                    raise OSError(answered.decode())
            except (OSError, EOFError, asyncio.TimeoutError) as error:
                counts["lost"] += 1
                print("lost:", repr(error)[:300])
                reader, writer = await asyncio.open_connection(*address)
                continue
            tags = [answer["tags"]] if alone else [row["tags"] for row in answer["results"]]
            counts[answer["version"]] += 1
            if tags != [expected[answer["version"]][i] for i in places]:
                of_either = all(
                    any(row == rows[i] for rows in expected.values()) for row, i in zip(tags, places, strict=True)
                )
                counts["mixed" if of_either else "wrong"] += 1
            await asyncio.sleep(generator.random() / 10)
        writer.close()

    await asyncio.gather(*(client(seed) for seed in range(n)))
