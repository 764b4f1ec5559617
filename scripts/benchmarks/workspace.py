"""A folder of archives, models and output to measure with, and the measuring of whole processes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GENERATOR = HERE.parent / "make_archive.py"
TRAINED_ON = 10_000  # articles that follow all those that are tagged
JOBS = 2


@dataclass(frozen=True)
class Run:
    """What a command took in one round."""

    seconds: float
    cpu_seconds: float
    rss_bytes: int
    pss_bytes: int


class Workspace:
    """A folder with the archives and models that everything below works with, each made when it is first asked for."""

    def __init__(self, folder: Path, documents: int, runs: int):
        self.folder, self.documents, self.runs = folder, documents, runs

    def archive(self, documents: int) -> Path:
        """Return an archive of so many articles."""
        path = self.folder / f"articles-{documents}.jsonl"
        if not path.exists():
            generate(path, documents, 0)
        return path

    @property
    def train(self) -> Path:
        """Return the articles that models are trained on."""
        path = self.folder / "train.jsonl"
        if not path.exists():
            generate(path, TRAINED_ON, 10_000_000)
        return path

    def model(self, recipe: str) -> Path:
        """Return a model."""
        path = self.folder / recipe
        if not path.exists():
            run(["textcat", "train", self.train, "--recipe", recipe, "--out", path])
        return path

    def out(self, name: str) -> Path:
        """Return a place for output."""
        return self.folder / "out" / name


def generate(path: Path, documents: int, start: int) -> None:
    """Write an archive."""
    run([sys.executable, GENERATOR, path, "--documents", documents, "--start", start])


def run(command: list[Any], **options: Any) -> None:
    """Run a command that must succeed."""
    print(shlex.join(map(str, command)), file=sys.stderr)
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, env=environment(), **options)


def measured(command: list[Any]) -> Run:
    """Run a command that must succeed, and return what it took."""
    around = [sys.executable, HERE / "process_tree.py", *command]
    done = subprocess.run([*map(str, around)], check=True, stdout=subprocess.PIPE, env=environment())
    result = Run(**json.loads(done.stdout))
    print(f"{shlex.join(map(str, command))}: {result.seconds:.1f} s", file=sys.stderr)
    return result


def environment() -> dict[str, str]:
    """Return the environment in which the commands that are installed beside this Python are found first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def interleaved(commands: Mapping[str, list[Any]], rounds: int) -> dict[str, list[Run]]:
    """Run all commands in turn, round by round."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(measured(command))
    return runs


def tag(model: Path, archive: Path, out: Path) -> list[Any]:
    """Return the command that tags an archive into a folder."""
    return ["textcat", "tag", model, archive, "--out", out, "--restart", "--jobs", JOBS, "--quiet"]
