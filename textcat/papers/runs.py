"""The experiments by name, and running them: every finished task is kept, so that a broken-off run goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import quote

from textcat import __version__
from textcat.corpus.catalogue import cache_folder
from textcat.errors import TextcatError, install_hint
from textcat.files import write_atomically
from textcat.papers.datasets import MissingData, missing
from textcat.papers.experiment import Experiment, Figure, Row, Settings, Task
from textcat.progress import Stages

_log = logging.getLogger(__name__)
_PACKAGE = Path(__file__).parent.parent
# What a task's rows hang on; sources of compiled code are in a checkout only, a wheel's are told by its version.
_CODE = ("corpus", "documents.py", "evaluation", "features", "margin", "papers", "reading")
_SOURCES = {".h", ".pxd", ".py", ".pyx", ".toml"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Result:
    """What came of an experiment.

    Attributes
    ----------
    experiment : Experiment
    rows : tuple of Row
        Those of all its tasks, in their order.
    seconds : float
        Wall-clock time of its tasks, reading included, those of kept tasks as they once were.
    finished : datetime
        When its last task ended, in UTC.
    n_kept : int
        How many of its tasks had been finished before.
    command : str
        What runs it.
    pictures : tuple of Path
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    seconds: float
    finished: datetime
    n_kept: int
    command: str
    pictures: tuple[Path, ...]


@dataclass(frozen=True)
class State:
    """How an experiment stands before it is run.

    Attributes
    ----------
    experiment : Experiment
    missing : dict of str to str
        By data set or corpus that is not here: what is missing, in a sentence.
    n_finished : int
        How many tasks' results are kept and still hold.
    last_run : datetime or None
        When a task of it last ended, with this code or another.
    """

    experiment: Experiment
    missing: dict[str, str]
    n_finished: int
    last_run: datetime | None


def experiments() -> dict[str, Experiment]:
    """Return the experiments by name, in the order of the papers."""
    from textcat.papers import margitron, micra, notes, paum

    found = (*paum.EXPERIMENTS, *micra.EXPERIMENTS, *margitron.EXPERIMENTS, *notes.EXPERIMENTS)
    return {experiment.name: experiment for experiment in found}


def find(names: Iterable[str]) -> list[Experiment]:
    """Return experiments by name.

    Raises
    ------
    TextcatError
        If there is none of that name; tells the nearest one.
    """
    known, chosen = experiments(), []
    for name in dict.fromkeys(names):
        if name not in known:
            near = get_close_matches(name.lower(), known, n=1, cutoff=0.0)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TextcatError(f"There is no experiment {name!r}; `textcat reproduce` lists them.{hint}")
        chosen.append(known[name])
    return chosen


def results_folder() -> Path:
    """Return the user's folder for results; it need not exist."""
    return cache_folder().with_name("reproductions")


def run(
    experiment: Experiment,
    settings: Settings,
    folder: Path,
    *,
    restart: bool = False,
    stages: Stages | None = None,
) -> Result:
    """Run the tasks of an experiment whose results are not kept, or no longer hold.

    A result holds as long as the code, the machine, its libraries and the number of jobs are the same; one with slow
    baselines also serves a run without. A task that misses data gives a row that says so, and is not kept.

    Parameters
    ----------
    experiment : Experiment
    settings : Settings
        `pictures` is chosen here: they are kept beside the results, and none is drawn without matplotlib.
    folder : Path
        Where results are kept.
    restart : bool
        Run all tasks, whatever is kept.
    stages : Stages, optional
        Times every task, and draws its bar.
    """
    if not _can_draw():
        _tell_once(f"No picture is drawn, as matplotlib is not installed: {install_hint('pictures')}.")
    stages = stages or Stages()
    records, n_kept = [], 0
    for number, task in enumerate(experiment.tasks, start=1):
        kept = None if restart else _kept(experiment, task, settings, folder)
        if kept is None:
            with stages.stage(f"{experiment.name} {number}/{len(experiment.tasks)}: {task.name}"):
                records.append(_run(experiment, task, settings, folder))
        else:
            records.append(kept)
            n_kept += 1
    return Result(
        experiment,
        tuple(_row(row) for record in records for row in record["rows"]),
        sum(record["seconds"] for record in records),
        max((_time(record) for record in records), default=_now()),
        n_kept,
        _command(experiment, settings, any(record["slow_baselines"] for record in records)),
        tuple(sorted(path for task in experiment.tasks for path in _pictures(experiment, task, folder).glob("*.svg"))),
    )


def state(experiment: Experiment, settings: Settings, folder: Path) -> State:
    """Tell what data an experiment misses, and what of it has been run."""
    sentences = {name: sentence for name in experiment.data if (sentence := missing(name)) is not None}
    finished = [task for task in experiment.tasks if _kept(experiment, task, settings, folder)]
    times = [_time(record) for task in experiment.tasks if (record := _read(_path(experiment, task, folder)))]
    return State(experiment, sentences, len(finished), max(times, default=None))


@cache
def machine() -> Mapping[str, str]:
    """Describe what we run on: processor, cores, system, versions."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{library: metadata.version(library) for library in _LIBRARIES},
        "textcat": __version__,
    }


# --- results on disk -------------------------------------------------------------------------------------------------


def _run(experiment: Experiment, task: Task, settings: Settings, folder: Path) -> dict[str, Any]:
    """Run a task; returns what is kept of it."""
    pictures = _pictures(experiment, task, folder)
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    started, whole = perf_counter(), True
    try:
        rows: Sequence[Row] = task.run(replace(settings, pictures=pictures if _can_draw() else None))
    except MissingData as error:
        rows, whole = [Row(task.name, note=str(error))], False
    record = {
        "key": _key(experiment, task, settings),
        "slow_baselines": settings.slow_baselines,
        "finished": _now().isoformat(timespec="seconds"),
        "seconds": perf_counter() - started,
        "rows": [asdict(row) for row in rows],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, default=_number)
    if whole:
        write_atomically(_path(experiment, task, folder), text)
    return json.loads(text)


def _kept(experiment: Experiment, task: Task, settings: Settings, folder: Path) -> dict[str, Any] | None:
    record = _read(_path(experiment, task, folder))
    holds = record is not None and record["key"] == _key(experiment, task, settings)
    return record if holds and record["slow_baselines"] >= settings.slow_baselines else None


def _read(path: Path) -> Any:
    with suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))


def _path(experiment: Experiment, task: Task, folder: Path) -> Path:
    return folder / experiment.name / f"{quote(task.name, safe=' ()=,')}.json"


def _pictures(experiment: Experiment, task: Task, folder: Path) -> Path:
    return _path(experiment, task, folder).with_suffix("")


def _row(fields: Mapping[str, Any]) -> Row:
    figures = {column: Figure(**figure) for column, figure in fields["figures"].items()}
    return Row(fields["label"], figures, fields["seconds"], fields["note"])


def _number(value: Any) -> Any:
    """Turn a numpy number into a plain one, which json asks for."""
    return value.item()


def _time(record: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(record["finished"])


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


@cache
def _tell_once(sentence: str) -> None:
    _log.warning(sentence)


def _key(experiment: Experiment, task: Task, settings: Settings) -> str:
    facts = [experiment.name, task.name, settings.n_jobs, *machine().items(), _code(), _can_draw()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for part in _CODE:
        inside = _PACKAGE / part
        yield from sorted(path for path in [inside, *inside.rglob("*")] if path.suffix in _SOURCES and path.is_file())


def _command(experiment: Experiment, settings: Settings, slow_baselines: bool) -> str:
    jobs = "" if settings.n_jobs == -1 else f" --jobs {settings.n_jobs}"
    return f"textcat reproduce {experiment.name}{jobs}{' --slow-baselines' if slow_baselines else ''}"


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
