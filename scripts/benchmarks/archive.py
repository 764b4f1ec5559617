"""Measure the tagging of an archive of generated articles, and write the pages docs/benchmarks/tag-*.md.

scripts/benchmark archive --out docs/benchmarks     # one command; about an hour on two cores
scripts/benchmark archive --quick                   # a few thousand articles: does it work?
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import archive_peers as peers
from pages import Conditions, Page, publish
from workspace import HERE, JOBS, TRAINED_ON, Run, Workspace, environment, interleaved, measured, run, tag

SLOWER = 5  # of how many parts of the archive the peers get one


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        space = Workspace(Path(folder), options.documents, options.runs)
        space.out("").mkdir()
        for letter, part in PARTS.items():
            if letter in options.only:
                publish([part(space)], options.out)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark archive", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000, help="articles to tag (default: 1,000,000)")
    parser.add_argument("--runs", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--only", default="".join(PARTS), help=f"parts: {', '.join(map('='.join, NAMES.items()))}")
    parser.add_argument("--quick", action="store_true", help="one round, with 3,000 articles")
    parser.add_argument("--folder", type=Path, help="where there is room for some gigabytes (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="also write the pages to this folder, such as docs/benchmarks")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.runs = 3_000, 1
    if options.runs < 1 or options.documents < 1000:
        parser.error("--runs must be at least 1, and --documents 1000")
    if not options.only or set(options.only) - set(PARTS):
        parser.error(f"--only takes letters out of {''.join(PARTS)}")
    return options


def _archive(space: Workspace) -> str:
    size = space.archive(space.documents).stat().st_size / 1e6
    return f"""The archive has {space.documents:,} articles of `scripts/make_archive.py`, about 150 words each, one JSON
object a line, {size:,.0f} MB. Their words are invented; they have the frequencies of English words, and new words keep
occurring. Models are trained on {TRAINED_ON:,} other articles of 90 topics."""


def _rounds(space: Workspace) -> str:
    return f"""Rounds: {space.runs}. In each round every command of the table runs once, one after the other. Seconds
are those of the whole process, including the import of libraries and the loading of models; they are medians, and a
ratio is the median of the rounds' ratios."""


_MEMORY = """Memory is the peak of all processes of a run together: "added up" counts shared memory once for each
process, "shared once" counts it once."""


# --- parts -----------------------------------------------------------------------------------------------------------


def speed(space: Workspace) -> Page:
    """Compare with what one would write with scikit-learn or fastText."""
    conditions, few = Conditions("default and paum"), space.documents // SLOWER
    all_, some = space.archive(space.documents), space.archive(few)
    commands = {
        f"textcat, recipe {recipe}, {JOBS} processes": tag(space.model(recipe), all_, space.out(recipe))
        for recipe in ("default", "paum")
    }
    counts = dict.fromkeys(commands, space.documents)
    for name, command in peers.commands(space, some).items():
        commands[name], counts[name] = command, few
    runs = interleaved(commands, space.runs)
    ours = next(iter(runs))
    rows = [
        {
            "what": name,
            "documents": f"{counts[name]:,}",
            "seconds": median(taken.seconds for taken in of_it),
            "documents/s": f"{_rate(counts[name], of_it):,.0f}",
            "µs of processor time per document": 1e6 * median(taken.cpu_seconds for taken in of_it) / counts[name],
            "times slower than the first": _ratio(of_it, counts[name], runs[ours], counts[ours]),
            "MB, added up": max(taken.rss_bytes for taken in of_it) / 1e6,
            "MB, shared once": max(taken.pss_bytes for taken in of_it) / 1e6,
        }
        for name, of_it in runs.items()
    ]
    text = f"""`textcat tag MODEL ARCHIVE --out FOLDER --jobs {JOBS}` reads the archive, tags it and writes shards. It
is compared
with scripts that one would write oneself:{peers.DESCRIPTION}

{_archive(space)}

{_rounds(space)}

{_MEMORY}"""
    shown = [{name: _short(value) for name, value in row.items()} for row in rows]
    return Page("tag-archive", "How fast tagging an archive is", conditions.head(), text, shown)


def _rate(documents: int, runs: list[Run]) -> float:
    return median(documents / taken.seconds for taken in runs)


def _ratio(runs: list[Run], documents: int, others: list[Run], their_documents: int) -> float:
    return median(
        mine.seconds / documents / (its.seconds / their_documents) for mine, its in zip(runs, others, strict=True)
    )


def _short(value: Any) -> Any:
    """Write a number with three digits, or without a fraction."""
    if not isinstance(value, float):
        return value
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def memory(space: Workspace) -> Page:
    """Tag twice as many."""
    conditions = Conditions("default")
    sizes = [space.documents // 10, space.documents, 2 * space.documents]
    rows = []
    for documents in sizes:
        archive = space.archive(documents)
        taken = measured(tag(space.model("default"), archive, space.out("memory")))
        rows.append(
            {
                "documents": f"{documents:,}",
                "seconds": _short(taken.seconds),
                "documents/s": f"{documents / taken.seconds:,.0f}",
                "MB, added up": _short(taken.rss_bytes / 1e6),
                "MB, shared once": _short(taken.pss_bytes / 1e6),
            }
        )
        if documents > space.documents:
            archive.unlink()
    text = f"""The table shows the memory of `textcat tag` for archives of different sizes. Each row is one run.

{_archive(space)}

{_MEMORY}"""
    return Page("tag-memory", "Memory of tagging an archive", conditions.head(), text, rows)


def overhead(space: Workspace) -> Page:
    """Compare shards and their journal with a stream."""
    conditions = Conditions("default")
    archive, model, shards = space.archive(space.documents), space.model("default"), space.out("shards")
    stream = space.out("stream.jsonl")
    words = shlex.join(map(str, ["textcat", "tag", model, archive, "--jobs", JOBS, "--quiet"]))
    commands = {
        "shards and journal": tag(model, archive, shards),
        "standard output": ["sh", "-c", f"{words} > {shlex.quote(str(stream))}"],
    }
    runs = interleaved(commands, space.runs)
    rows = [{"what": name, "seconds": _short(median(taken.seconds for taken in of_it))} for name, of_it in runs.items()]
    first, second = runs.values()
    ratio = _ratio(first, 1, second, 1)
    same = digest(sorted(shards.glob("part-*"))) == digest([stream])
    text = f"""The table compares `textcat tag --out FOLDER`, which writes shards and a journal by which an
interrupted run
resumes, with a stream on standard output.

{_archive(space)}

{_rounds(space)}"""
    notes = f"""Writing shards takes {ratio:.3f} times as long as writing a stream. The bytes are
{"the same" if same else "DIFFERENT"}."""
    return Page("tag-shards", "The cost of shards and journal", conditions.head(), text, rows, notes)


def resuming(space: Workspace) -> Page:
    """Kill a run half-way, and resume it."""
    conditions = Conditions("default")
    archive, model = space.archive(space.documents), space.model("default")
    rows, shares = [], []
    for _ in range(space.runs):
        whole, broken = space.out("whole"), space.out("broken")
        shutil.rmtree(broken, ignore_errors=True)
        full = measured(tag(model, archive, whole))
        at = _killed_half_way(tag(model, archive, broken), broken, _size(whole))
        rest = measured([word for word in tag(model, archive, broken) if word != "--restart"])
        same = digest(sorted(whole.glob("part-*"))) == digest(sorted(broken.glob("part-*")))
        shares.append(rest.seconds / full.seconds)
        rows.append(
            {
                "whole run, seconds": _short(full.seconds),
                "killed after writing": f"{at:.0%}",
                "second run, seconds": _short(rest.seconds),
                "of a whole run": f"{shares[-1]:.1%}",
                "output": "the same" if same else "DIFFERENT",
            }
        )
    text = f"""A run of `textcat tag` and its processes are killed (SIGKILL) when half of the output is on disk; then
the command
runs again, and resumes.

{_archive(space)}"""
    notes = f"The median is {median(shares):.1%}."
    return Page("tag-resume", "Resuming after a kill", conditions.head(), text, rows, notes)


def _killed_half_way(command: list[Any], folder: Path, size: int) -> float:
    process = subprocess.Popen([*map(str, command)], start_new_session=True, env=environment())
    while process.poll() is None and (not folder.exists() or _size(folder) < size / 2):
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _size(folder) / size


def _size(folder: Path) -> int:
    size = 0
    for path in folder.glob("part-*"):
        with suppress(FileNotFoundError):  # renamed meanwhile, as it is whole
            size += path.stat().st_size
    return size


def digest(paths: list[Path]) -> str:
    """Return the checksum of files one after the other."""
    checksum = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                checksum.update(block)
    return checksum.hexdigest()


def course(space: Workspace) -> Page:
    """Time a process as it goes through the archive."""
    conditions, points = Conditions("default"), _course(space)
    rows = [
        {
            "documents": f"{point['documents']:,}",
            "µs per document so far": _short(point["so_far"]),
            "µs per document since the previous row": _short(point["since"]),
            "MB": _short(point["rss_bytes"] / 1e6),
        }
        for point in points
    ]
    text = f"""The table shows the processor time of tagging in one process, which has already loaded the model, and
reads, tags and encodes one batch of articles after the other. The first articles take longer, because most of their
words are not yet in the token cache (spaCy's tokens of the pieces of text seen so far).

{_archive(space)}"""
    head, shown = conditions.head(), "Time per document against documents"
    draw = partial(_draw, points)
    return Page("tag-per-document", "Time per document", head, text, rows, picture=shown, draw=draw)


def _course(space: Workspace) -> list[dict[str, Any]]:
    path = space.folder / "course.json"
    if not path.exists():
        run([sys.executable, HERE / "archive_course.py", space.model("default"), space.archive(space.documents), path])
    points: list[dict[str, Any]] = json.loads(path.read_text())
    return points


def _draw(points: list[dict[str, Any]], path: Path) -> None:
    """Draw the time per document, where matplotlib is installed."""
    from textcat.base.errors import TextcatError
    from textcat.papers.experiments import draw_axes

    documents = [point["documents"] for point in points]
    try:
        with draw_axes(path) as drawn:
            drawn.plot(documents, [point["so_far"] for point in points], marker="o", label="on average so far")
            drawn.plot(documents, [point["since"] for point in points], marker="s", label="since the point before")
            drawn.set(xscale="log", ylim=(0, None), xlabel="documents", ylabel="µs a document, one process")
            drawn.legend()
    except TextcatError as error:
        print(error, file=sys.stderr)


PARTS: dict[str, Callable[[Workspace], Page]] = {
    "s": speed,
    "m": memory,
    "o": overhead,
    "r": resuming,
    "t": course,
}
NAMES = {"s": "speed", "m": "memory", "o": "overhead of shards", "r": "resuming", "t": "time per document"}
