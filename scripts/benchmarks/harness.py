"""What benchmarks share: options, a folder to work in, rounds, and what processes take."""

from __future__ import annotations

import gc
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tables import Conditions

from textcat.base.disk import write_atomically

HERE = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "spacy")
ROUNDS, SEEDS = 3, 20  # of simulations, rounds have seeds of their own
TRAINED_ON = 10_000  # articles that follow all those that are tagged
Row = Mapping[str, object]  # of a table, by column


class Benchmark(NamedTuple):
    """A table to measure."""

    title: str
    recipe: str
    measure: Callable[[Work], Sequence[Row]]


class Work:
    """The options of a run of benchmarks, and a folder with what they make, each thing when it is first asked for."""

    def __init__(self, folder: Path, *, rounds: int = 0, jobs: int = 2, documents: int = 0, quick: bool = False):
        self.folder, self.jobs, self.quick, self._documents = folder.absolute(), jobs, quick, documents
        self.rounds, self.seeds = (1, 2) if quick else (rounds or ROUNDS, rounds or SEEDS)
        self.loads: list[float] = []  # of the machine, while what the table has was measured
        folder.mkdir(parents=True, exist_ok=True)

    def documents(self, usual: int, quick: int) -> int:
        """Return how many documents to measure with."""
        return self._documents or (quick if self.quick else usual)

    def path(self, *names: object) -> Path:
        """Return a place in the folder, named after what lies there."""
        return self.folder / ("-".join(map(str, names)).replace(", ", "-").replace(" ", "-").lower())

    def archive(self, documents: int, start: int = 0) -> Path:
        """Return an archive of so many articles of scripts/make_archive.py."""
        path = self.path("articles", start, f"{documents}.jsonl")
        if not path.exists():
            run([sys.executable, HERE.parent / "make_archive.py", path, "--documents", documents, "--start", start])
        return path

    def train(self) -> Path:
        """Return the articles that models are trained on."""
        return self.archive(TRAINED_ON, 10_000_000)

    def model(self, recipe: str) -> Path:
        """Return a model trained on articles."""
        path = self.path("model", recipe)
        if not path.exists():
            run(["textcat", "train", self.train(), "--recipe", recipe, "--out", path])
        return path

    def tag(self, model: Path, archive: Path, out: Path) -> list[Any]:
        """Return the command that tags an archive into a folder."""
        return ["textcat", "tag", model, archive, "--out", out, "--restart", "--jobs", self.jobs, "--quiet"]

    def kept(self, name: str, measure: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return what was measured at this commit, in an earlier run or else now."""
        path = self.path(f"{name}.{commit()}.json")
        if not path.exists():
            before = load()
            write_atomically(path, json.dumps({**measure(), "loads": [before, load()]}))
        facts: Mapping[str, Any] = json.loads(path.read_text())
        self.loads += facts["loads"]
        return facts


def conditions(recipe: str, loads: Sequence[float]) -> Conditions:
    """Return the conditions of what has just been measured from this checkout, under these loads of the machine."""
    words = ["FOLDER" if Path(word).is_absolute() else word for word in sys.argv[1:]]  # it is of no use elsewhere
    return Conditions(
        str(date.today()),
        commit(),
        recipe,
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        f"{min(loads):.1f} to {max(loads):.1f}",
        f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in PACKAGES)}",
        f"`{shlex.join(['scripts/benchmark', *words])}`",
    )


def commit() -> str:
    """Return the commit of this checkout, with "-changed" behind it if files differ from it."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=-changed"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def load() -> float:
    """Return the load of the machine in the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown processor")


# --- commands --------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a command and all that it starts took: the two peaks count shared memory often, and once."""

    seconds: float
    cpu_seconds: float
    rss_bytes: int
    pss_bytes: int


def environment() -> dict[str, str]:
    """Return the environment in which the commands that are installed beside this Python are found first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def run(command: Sequence[object], **options: Any) -> None:
    """Run a command that must succeed."""
    _say(shlex.join(map(str, command)))
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, env=environment(), **options)


def output(command: Sequence[object], **options: Any) -> Any:
    """Run a command that must succeed, and return the JSON that it prints as its last line."""
    _say(shlex.join(map(str, command)))
    words = [*map(str, command)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment(), **options)
    return json.loads(done.stdout.splitlines()[-1])


def cost(command: Sequence[object]) -> Cost:
    """Run a command that must succeed, and return what it took."""
    return Cost(**output([sys.executable, HERE / "process_tree.py", *command]))


def python(script: str, *arguments: object) -> list[object]:
    """Return the command that runs a script of this folder."""
    return [sys.executable, HERE / f"{script}.py", *arguments]


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# --- rounds ----------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """Something to time: `run` gets what `prepare`, which is not timed, returns."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None
    once: bool = False  # what takes minutes runs in the first counted round alone


class Timing:
    """The seconds that a task took in each counted round, and what it returned each time."""

    def __init__(self, seconds: Sequence[float] = ()) -> None:
        self.seconds, self.results = [*seconds], list[Any]()

    def ratio(self, other: Timing) -> str:
        """Write how many times as long as the other it took: the median over the rounds that both have."""
        # What ran once did so in the first round: its pair is the first of the other's.
        return f"{median(mine / its for mine, its in zip(self.seconds, other.seconds, strict=False)):.3g}"

    def __str__(self) -> str:
        if len(self.seconds) == 1:
            return f"{self.seconds[0]:.3g} (one run)"
        return f"{median(self.seconds):.3g} ({min(self.seconds):.3g} to {max(self.seconds):.3g})"


def interleaved(tasks: Mapping[str, Task], rounds: int) -> dict[str, Timing]:
    """Run all tasks in turn, round by round; the first round warms up and is not counted."""
    timings = {name: Timing() for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            if task.once and number != 1:
                continue
            prepared = task.prepare()
            gc.collect()
            started = time.perf_counter()
            result = task.run(prepared)
            seconds = time.perf_counter() - started
            if number:
                timings[name].seconds.append(seconds)
                timings[name].results.append(result)
            _say(f"{number or 'warming up'} of {rounds}: {name}: {seconds:.3f} s")
    return timings


def costs(commands: Mapping[str, Sequence[object]], rounds: int) -> dict[str, list[Cost]]:
    """Run all commands in turn, round by round."""
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cost(command))
    return taken


def short(value: float) -> str:
    """Write a number with three digits, or without a fraction."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
