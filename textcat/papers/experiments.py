"""Run the tasks of experiments, keep the results so that an interrupted run resumes, and write pages of results."""

import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from textcat import __version__, papers
from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError, install_hint
from textcat.base.journal import KeptResults
from textcat.base.settings import read_toml
from textcat.corpus.fetch import cache_folder, warn_once
from textcat.evaluation.export import markdown_table
from textcat.papers.datasets import MissingData

if TYPE_CHECKING:
    from textcat.base.progress import Stages

PACKAGE = Path(__file__).parent.parent
# The code that results depend on. Sources of compiled code are in a checkout only; a wheel has its version instead.
_CODE = ("corpus", "documents.py", "evaluation", "features", "margin", "papers", "reading")
_SOURCES = {".h", ".pxd", ".py", ".pyx", ".toml"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_NO_VALUE = "-"  # a figure that is not known

# Facts about each experiment (title, minutes, text, settings), and the published figures by paper and table, such as
# PUBLISHED["micra"]["table1"]["perceptron"]. The file explains each list and its unit.
FACTS, PUBLISHED = (
    read_toml(Path(__file__).with_name(f"{name}.toml"), "table") for name in ("experiments", "published")
)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Figure:
    """A number that we measured, next to the published one."""

    ours: float | None  # None if it was not measured, because data are missing or a slow baseline was left out
    published: float | None = None  # None if the paper has no such figure
    digits: int = 0  # decimals to print, as many as the published figure has


@dataclass(frozen=True)
class Row:
    """A row of an experiment's table."""

    label: str  # the learner with its parameters, or the data set
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by column, in the order of the paper's table
    seconds: float | None = None  # of the training alone; None if nothing was timed
    note: str = ""  # for readers, such as on missing data or a setting that the paper leaves open


@dataclass(frozen=True)
class Settings:
    """Hold the settings of a run of experiments: jobs, slow baselines, pictures."""

    n_jobs: int = -1  # as for `textcat.margin.solve.solve`
    slow_baselines: bool = False  # whether to run the baselines that take more than a few minutes
    pictures: Path | None = None  # folder for pictures (SVG), named like the experiment; None: draw none


class Task(NamedTuple):
    """A part of an experiment: a function that returns rows of its table; they are kept for later runs."""

    name: str  # unique within the experiment
    run: Callable[[Settings], Sequence[Row]]


class Experiment(NamedTuple):
    """A table or figure of a paper, and the tasks that compute our figures for it."""

    name: str  # as on the command line: "micra-table-1"
    title: str  # paper, table and what it shows, in one line
    data: tuple[str, ...]  # names of the data sets and corpora that it needs
    minutes: float  # approximate, on two cores
    tasks: tuple[Task, ...]
    text: str = ""  # Markdown above the table of a new page; conclusions from figures are added by hand


class Result(NamedTuple):
    """The rows of an experiment's table, with the time, the command and the pictures of the run."""

    experiment: Experiment
    rows: tuple[Row, ...]  # of all its tasks, in their order
    seconds: float  # wall-clock time of its tasks, reading included; for kept tasks, that of their run
    finished: datetime  # end of its last task, in UTC
    n_kept: int  # number of its tasks whose results were kept from an earlier run
    command: str  # the command line that repeats it
    pictures: tuple[Path, ...]


def read_experiment(name: str, data: Sequence[str], *tasks: Task) -> Experiment:
    """Return an experiment with the given data and tasks, and with the title, minutes and text in ``FACTS[name]``."""
    facts = FACTS[name]
    return Experiment(name, facts["title"], tuple(data), facts["minutes"], tasks, facts.get("text", ""))


def time_call(call: Callable[..., Answer], *arguments: Any) -> tuple[Answer, float]:
    """Return the result of a call, and the seconds it took."""
    started = perf_counter()
    return call(*arguments), perf_counter() - started


def results_folder() -> Path:
    """Return the user's folder for results; it need not exist."""
    return cache_folder().with_name("reproductions")


def run_experiment(
    experiment: Experiment, settings: Settings, folder: Path, *, restart: bool, stages: "Stages"
) -> Result:
    """Run the tasks of an experiment that have no valid result in the folder; return the results of all tasks.

    A result is valid as long as the code, the machine, its libraries and the number of jobs are the same; a result with
    slow baselines is also valid for a run without them. A task whose data is missing gives a row that says so, and its
    result is not kept. If matplotlib is installed, pictures are drawn into the folder, too, not into
    `settings.pictures`. With `restart`, all tasks are run. `stages` times every task and draws its bar.
    """
    if not can_draw():
        warn_once(f"No picture is drawn, as matplotlib is not installed: {install_hint('pictures')}.")
    results = KeptResults(folder / f"{experiment.name}.jsonl")
    records, n_kept = [], 0
    for number, task in enumerate(experiment.tasks, start=1):
        record = None if restart else _kept(results, experiment, task, settings)
        n_kept += record is not None
        if record is None:
            with stages.stage(f"{experiment.name} {number}/{len(experiment.tasks)}: {task.name}"):
                record = _run_task(results, experiment, task, settings, _pictures(experiment, task, folder))
        records.append(record)
    jobs = "" if settings.n_jobs == -1 else f" --jobs {settings.n_jobs}"
    slow = " --slow-baselines" if any(record["slow_baselines"] for record in records) else ""
    return Result(
        experiment,
        tuple(
            Row(**row | {"figures": {column: Figure(**figure) for column, figure in row["figures"].items()}})
            for record in records
            for row in record["rows"]
        ),
        sum(record["seconds"] for record in records),
        max((datetime.fromisoformat(record["finished"]) for record in records), default=now()),
        n_kept,
        f"textcat reproduce {experiment.name}{jobs}{slow}",
        tuple(sorted(path for task in experiment.tasks for path in _pictures(experiment, task, folder).glob("*.svg"))),
    )


def last_result(experiment: Experiment, settings: Settings, folder: Path) -> str:
    """Return in words when the experiment last ended or, if some tasks have no result, how many tasks have one."""
    path = folder / f"{experiment.name}.jsonl"
    if not path.exists():
        return "never"
    results, n_tasks = KeptResults(path), len(experiment.tasks)
    n_finished = sum(_kept(results, experiment, task, settings) is not None for task in experiment.tasks)
    ended = f"{datetime.fromtimestamp(path.stat().st_mtime, timezone.utc):%Y-%m-%d}"
    if n_finished in (0, n_tasks):
        return ended if n_finished else f"{ended}, changed since"
    return f"{n_finished} of {n_tasks} tasks"


@cache
def machine() -> Mapping[str, str]:
    """Return facts about this machine: processor, cores, system, versions."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{library: metadata.version(library) for library in _LIBRARIES},
        "textcat": __version__,
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _run_task(
    results: KeptResults, experiment: Experiment, task: Task, settings: Settings, pictures: Path
) -> Mapping[str, Any]:
    pictures.mkdir(parents=True, exist_ok=True)
    for picture in pictures.glob("*.svg"):
        picture.unlink()
    started, has_data = perf_counter(), True
    try:
        rows: Iterable[Row] = task.run(replace(settings, pictures=pictures if can_draw() else None))
    except MissingData as error:
        rows, has_data = [Row(task.name, note=str(error))], False
    record = {
        "task": task.name,
        "slow_baselines": settings.slow_baselines,
        "finished": now().isoformat(timespec="seconds"),
        "seconds": perf_counter() - started,
        "rows": [asdict(row) for row in rows],
    }
    plain = json.loads(json.dumps(record, default=lambda number: number.item()))  # a numpy number
    if has_data:
        results[_key(experiment, task, settings.n_jobs, settings.slow_baselines)] = plain
    return plain


def _kept(results: KeptResults, experiment: Experiment, task: Task, settings: Settings) -> Mapping[str, Any] | None:
    slow, quick = (results.get(_key(experiment, task, settings.n_jobs, slow)) for slow in (True, False))
    return slow if settings.slow_baselines else slow or quick


def _pictures(experiment: Experiment, task: Task, folder: Path) -> Path:
    return folder / experiment.name / quote(task.name, safe=" ()=,")


def now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(timezone.utc)


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def _key(experiment: Experiment, task: Task, n_jobs: int, slow_baselines: bool) -> str:
    facts = [experiment.name, task.name, n_jobs, slow_baselines, *machine().items(), code_checksum(), can_draw()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@cache
def code_checksum() -> str:
    """Return the checksum of those files of this package on which the results of experiments depend."""
    digest = hashlib.sha256()
    for inside in (PACKAGE / part for part in _CODE):
        for path in sorted(path for path in [inside, *inside.rglob("*")] if path.suffix in _SOURCES and path.is_file()):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


# --- results → a Markdown page each with its pictures, and an index of the pages; JSON for programs ------------------


def write_result(folder: Path, result: Result) -> Path:
    """Write an experiment's page, ``NAME.md``, and its pictures into a folder, and update the index of the pages there.

    The text above the table of an existing page is kept. The page's path is returned.
    """
    path = folder / f"{result.experiment.name}.md"
    write_atomically(path, _page(result, _prose(path, result.experiment)))
    for picture in result.pictures:
        shutil.copyfile(picture, folder / picture.name)
    rows = [
        {"experiment": f"[{name}]({name}.md)", "what it shows": experiment.title}
        for name, experiment in papers.known_experiments().items()
        if (folder / f"{name}.md").exists()
    ]
    write_atomically(folder / "README.md", FACTS["index"]["text"] + markdown_table(rows))
    return path


def _prose(path: Path, experiment: Experiment) -> str:
    """Return the text between the title and the table of a page; if there is no page yet, the experiment's text."""
    if not path.exists():
        return experiment.text.strip()
    _, _, body = path.read_text(encoding="utf-8").partition("\n")
    return re.split(r"^(?:\||Not run for lack of data: |Measured: )", body, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _page(result: Result, prose: str) -> str:
    """Return a page: title, prose, table, notes, rows whose data are missing, pictures, and how it was measured."""
    seconds = f"{result.seconds:.0f} s" if result.seconds >= 1 else "under 1 s"
    date, command = f"{result.finished:%Y-%m-%d}", f"`{result.command}`"
    facts = {"date": date, "command": command, "time in all": seconds, **machine()}
    missing = [row.label for row in result.rows if row.note and not row.figures]
    rows = [row for row in result.rows if row.label not in missing]
    heads, cells = zip(*columns(rows), strict=True)
    lines = [[head.replace("\n", " ").strip() for head in heads], ["---", *["---:"] * (len(heads) - 1)]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *zip(*cells, strict=True)])
    sections = [
        f"# {result.experiment.title}",
        prose,
        table if rows else "",
        "\n".join(f"{number}. {note}" for number, note in enumerate(notes(rows), start=1)),
        f"Not run for lack of data: {', '.join(missing)}. The command says where to get them." if missing else "",
        "\n\n".join(f"![{picture.stem}]({picture.name})" for picture in result.pictures if picture.name not in prose),
        f"Measured: {'; '.join(f'{name}: {value}' for name, value in facts.items())}.",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def as_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return results for JSON output, an object per experiment."""
    return [
        {
            "experiment": result.experiment.name,
            "title": result.experiment.title,
            "command": result.command,
            "finished": result.finished.isoformat(),
            "seconds": round(result.seconds, 3),
            "machine": dict(machine()),
            "pictures": [os.fspath(picture) for picture in result.pictures],
            "rows": [asdict(row) for row in result.rows],
        }
        for result in results
    ]


def notes(rows: Sequence[Row]) -> list[str]:
    """Return the distinct notes of a table's rows, in the order in which the table numbers them from 1."""
    return list(dict.fromkeys(row.note for row in rows if row.note))


def columns(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return the columns of the table as text: labels, then published figures, ours, and their differences.

    Headers have two lines, the measure and the kind of figure, if any figures are published.
    """
    table = []
    for name in dict.fromkeys(name for row in rows for name in row.figures):
        figures = [row.figures.get(name) or Figure(None) for row in rows]
        ours = [_printed(figure.ours, f".{figure.digits}f") for figure in figures]
        if any(figure.published is not None for figure in figures):
            printed = [_printed(figure.published, f".{figure.digits}f") for figure in figures]
            differences = list(map(_difference, ours, printed))
            table += [(f"{name}\npublished", printed), ("\nours", ours), ("\ndifference", differences)]
        else:
            table.append((f"\n{name}", ours))
    if any(row.seconds is not None for row in rows):
        seconds = [_printed(row.seconds, ".0f" if row.seconds and row.seconds >= 100 else ".2g") for row in rows]
        table.append(("\nseconds", seconds))
    if all_notes := notes(rows):
        table.append(("\nnote", [str(all_notes.index(row.note) + 1) if row.note else "" for row in rows]))
    if all(head.startswith("\n") for head, _ in table):
        table = [(head.strip(), cells) for head, cells in table]
    return [("", [row.label for row in rows]), *table]


def _printed(value: float | None, form: str) -> str:
    return _NO_VALUE if value is None or math.isnan(value) else f"{value:{form}}"


def _difference(ours: str, published: str) -> str:
    """Return the difference of two printed figures in percent, such as ``+0.074 %``; ``=`` if they are equal.

    If the published figure is 0, return the plain difference; if a figure is not known, return ``-``.
    """
    if _NO_VALUE in (ours, published):
        return _NO_VALUE
    gap = float(ours) - float(published)
    if gap == 0:
        return "="
    if float(published) == 0:
        return f"{gap:+g}"
    percent = 100 * gap / abs(float(published))
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.2g} %"


@contextmanager
def draw_axes(path: Path, width: float = 6.0, height: float = 4.0) -> Iterator[Any]:
    """Yield matplotlib axes of a size in inches; afterwards write the picture as SVG, always with the same bytes."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TextcatError(f"A picture needs matplotlib: {install_hint('pictures')}.") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.add_subplot()
    with matplotlib.rc_context({"svg.hashsalt": "textcat", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
