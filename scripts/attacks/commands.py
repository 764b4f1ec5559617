"""Run textcat as a person does: a process of its own, with a limit in seconds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from textcat.corpus.catalogue import open_corpus

TEXTCAT = (sys.executable, "-m", "textcat")
PATIENCE = 60  # seconds until a command that still runs is held to hang


class Ended(NamedTuple):
    """A command that ended: its exit code (None: it had to be killed), what it printed, and the seconds it took."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def clean(self) -> bool:
        """Whether the command ended by itself, without a traceback."""
        return self.code is not None and "Traceback" not in self.err

    @property
    def refused(self) -> bool:
        """Whether the command ended with exit code 1 and one sentence."""
        return self.code == 1 and self.clean and bool(re.fullmatch(r"textcat: [^\n]+\n", self.err))

    @property
    def detail(self) -> str:
        """The exit code and the end of what was printed, for a report."""
        return f"exit {self.code} after {self.seconds:.1f} s: {self.err.strip()[-300 if self.clean else -3000 :]}"


def run(
    arguments: Sequence[object],
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = TEXTCAT,
    on_start: Callable[[subprocess.Popen[str]], None] = lambda process: None,
    **options: Any,
) -> Ended:
    """Run a command to its end, or kill it when `PATIENCE` is over.

    `on_start` is called with the process, and the options are those of `subprocess.Popen`.
    """
    start = time.monotonic()
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        text=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1", **(environment or {})},
        **pipes,
    ) as process:
        on_start(process)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # upon which Python prints where each thread hangs
            time.sleep(1)
            process.kill()
            out, err = process.communicate()
            return Ended(None, out, err, time.monotonic() - start)
    return Ended(process.returncode, out, err, time.monotonic() - start)


def write_archive(path: Path, documents: int) -> Path:
    """Write JSON Lines of documents of the corpus that ships inside, repeated up to a number."""
    texts = ["\n".join(document.zones.values()) for document in open_corpus("newswire").test]
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            file.write(json.dumps({"id": str(number), "text": texts[number % len(texts)]}) + "\n")
    return path


def train_model(folder: Path, *options: str) -> Path:
    """Train a model of the corpus that ships inside, and return its folder."""
    ended = run(["train", "newswire", "--out", folder, *options])
    if ended.code != 0:
        raise RuntimeError(f"No model to attack: {ended.detail}")
    return folder


def written_bytes(folder: Path) -> bytes:
    """Return all tags that a run has written to a folder, in order."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part*")))
