"""A model and inputs → tags, in a folder of shards or a stream: one run, from where it was to its end."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from textcat.archive import forms
from textcat.archive.counts import Counts
from textcat.archive.crews import crew
from textcat.archive.drift import Drift, drifts
from textcat.archive.flow import in_order
from textcat.archive.folder import opened
from textcat.archive.meter import Reached
from textcat.archive.pieces import read_pieces
from textcat.archive.pipes import Pipes
from textcat.archive.records import Chunk, InputSettings, Piece, Rejection
from textcat.archive.remote import is_url
from textcat.archive.shards import Done, Rule, Shards
from textcat.archive.sources import Source, find
from textcat.archive.tagging import Job, Tagged, tag_piece
from textcat.archive.writers import OutputSettings, encode_rejection
from textcat.errors import TextcatError
from textcat.manifest import SUM, read_manifest
from textcat.progress import peak_memory

log = logging.getLogger(__name__)

_SHOWN = 100  # inputs whose formats are logged

Show = Callable[[Reached], None]


class How(NamedTuple):
    """How a run is done; none of it changes what is written.

    Parameters
    ----------
    jobs : int
        Pieces worked on at the same time; -1: one a core.
    scheduler : str
        The address of a Dask cluster that does the work.
    strict : bool
        Stop at the first record that cannot be read.
    rule : Rule
        When a shard is closed.
    """

    jobs: int = -1
    scheduler: str = ""
    strict: bool = False
    rule: Rule = Rule()


INPUT, OUTPUT, HOW = InputSettings(), OutputSettings(), How()


class Plan(NamedTuple):
    """What a run is to do.

    Parameters
    ----------
    job : Job
    sources : list of Source
    manifest : dict
        Of the model.
    """

    job: Job
    sources: Sequence[Source]
    manifest: dict[str, Any]

    @property
    def total(self) -> int | None:
        """Bytes of all sources, as they are stored; None if that is not known of one."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)


class Summary(NamedTuple):
    """What a run came to.

    Parameters
    ----------
    plan : Plan
    counts : Counts
        Of all that is done, earlier runs on the same folder included.
    before : Done
        How far the earlier ones had come.
    shards : int
    formats : list of str
        What the inputs were read as in this run.
    seconds : float
        Of this run.
    memory : int
        The most that it and its workers have held, in bytes.
    """

    plan: Plan
    counts: Counts
    before: Done
    shards: int
    formats: list[str]
    seconds: float
    memory: int

    @property
    def drifts(self) -> list[Drift]:
        """The topics whose rates differ much from those of training."""
        sizes = dict(zip(self.plan.manifest["topics"], self.plan.manifest["train_sizes"], strict=True))
        return drifts(self.counts, sizes, self.plan.manifest["train_documents"])


def plan(
    model: str | Path,
    inputs: Sequence[str],
    read: InputSettings = INPUT,
    write: OutputSettings = OUTPUT,
) -> Plan:
    """Find the inputs and the model, and check that they and the settings go together.

    Raises
    ------
    TextcatError
        If they do not, or there is no such model or input.
    """
    forms.check(write)
    manifest = read_manifest(model)
    folder = str(Path(model).expanduser().resolve())
    return Plan(Job(folder, manifest[SUM], version("spacy"), read, write), find(inputs, read), manifest)


def tag_to_folder(plan: Plan, out: Path, how: How = HOW, *, restart: bool = False, show: Show | None = None) -> Summary:
    """Tag the inputs into a folder of shards; if it was begun before, go on where it was.

    Parameters
    ----------
    plan : Plan
    out : Path
    how : How
    restart : bool
        Remove what an earlier run has written there.
    show : callable, optional
        Is told after each piece how far the run has come.

    Raises
    ------
    TextcatError
        If the folder lies in an input, holds anything else or another run, cannot be written to, or a record cannot be
        read and `how` is strict.
    """
    _check_apart(plan, out)
    _announce(plan, str(out))
    inputs = (source.fingerprint() for source in plan.sources)
    with opened(out, facts(plan), inputs, restart=restart) as done:
        tally = _Tally(plan, done, show)
        if done.finished:
            return tally.summary(done.shards)
        shards = Shards(out, done, forms.form(plan.job.output), plan.job.output.suffix, how.rule)
        pipes = Pipes(plan.sources, done.pipes)
        pieces = pipes.noted(read_pieces(pipes.sources, plan.job.input, done.cursor))
        with closing(shards), closing(_tagged(plan, how, pieces)) as results:
            for piece, tagged in results:
                rejected = b"".join(map(encode_rejection, tagged.rejections))
                shards.add(tagged.blocks, rejected, tagged.counts, piece.end, piece.read, pipes.at(piece.end))
                tally.add(piece, tagged)
            _warn_of_changes(plan)
            shards.finish()
        return tally.summary(shards.number)


def tag_to_stream(
    plan: Plan, stream: BinaryIO, how: How = HOW, *, tell: Callable[[Rejection], None], show: Show | None = None
) -> Summary:
    """Tag the inputs into a stream, which is flushed after each piece.

    Parameters
    ----------
    plan, how, show
        As for `tag_to_folder`.
    stream : BinaryIO
    tell : callable
        Is told what cannot be read.
    """
    if plan.job.output.to == "parquet":
        raise TextcatError("Parquet cannot be read before it ends: write it to a folder, with --out.")
    _announce(plan, "standard output")
    form, tally = forms.form(plan.job.output), _Tally(plan, Done(Counts()), show)
    stream.write(form.begin())
    with closing(_tagged(plan, how, read_pieces(plan.sources, plan.job.input))) as results:
        for piece, tagged in results:
            stream.write(b"".join([*map(form.add, tagged.blocks), form.flush()]))
            stream.flush()
            for rejection in tagged.rejections:
                tell(rejection)
            tally.add(piece, tagged)
    stream.write(form.end())
    stream.flush()
    return tally.summary(0)


def _check_apart(plan: Plan, out: Path) -> None:
    """Refuse to read what the run itself writes."""
    for source in plan.sources:
        if source.kind != "pipe" and not is_url(source.name):
            place, target = Path(source.name).resolve(), out.resolve()
            if place == target or place in target.parents or target in place.parents:
                raise TextcatError(f"{out} and the input {source.name} lie in each other: write to a folder elsewhere.")


def _warn_of_changes(plan: Plan) -> None:
    """Tell of inputs that are not what they were when the run began: what came late may not have been read."""
    for source in plan.sources:
        try:
            (now,) = find([source.name], plan.job.input)
            changed = now.fingerprint() != source.fingerprint()
        except (TextcatError, ValueError):
            changed = True
        if changed:
            log.warning("%s has changed while it was read: what is new in it may be missing.", source.name)


def _announce(plan: Plan, where: str) -> None:
    n = len(plan.sources)
    log.info("Tagging %d input%s by %s into %s", n, "s" if n > 1 else "", plan.job.model, where)
    for source in plan.sources[:_SHOWN]:
        if source.format:
            log.info("%s is read as %s, told by %s", source.name, source.format, source.guess.by)


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the output depends on beside the inputs, by its names for people."""
    read, write = plan.job.input, plan.job.output
    return {
        "model": plan.job.digest[:16],
        "textcat": version("textcat"),
        "spacy": plan.job.spacy,
        **forms.libraries(write),
        "--format": read.format,
        "--text-field": read.text_field,
        "--id-field": read.id_field,
        "--encoding": read.encoding,
        "--lines": read.lines,
        "longest record": read.max_bytes,
        "length of pieces": read.block_bytes,
        "--to": write.to,
        "--compress": write.compress,
        "--top": write.top,
        "--scores all": write.everything,
        "--explain": write.explain,
    }


def _tagged(plan: Plan, how: How, pieces: Iterable[Piece]) -> Generator[tuple[Piece, Tagged]]:
    with (
        closing(crew(how.jobs, plan.total, how.scheduler)) as workers,
        closing(in_order(pieces, partial(tag_piece, plan.job), workers)) as results,
    ):
        for piece, tagged in results:
            _check(plan.job, piece, tagged)
            if how.strict and tagged.rejections:
                raise TextcatError(f"{told(tagged.rejections[0])} That is the end, as --strict asks.")
            yield piece, tagged


def told(rejection: Rejection) -> str:
    """Say what could not be read, and why."""
    where = f"{rejection.source}:{rejection.position}" if rejection.position else rejection.source
    return f"{where}: {rejection.reason}"


def _check(job: Job, piece: Piece, tagged: Tagged) -> None:
    """Count anew what a piece came to: that nothing is lost must not depend on one count."""
    counts = tagged.counts
    written = counts.tagged
    if job.output.to == "jsonl":
        written = sum(block.count(b"\n") for block in tagged.blocks)
    if not counts.records == written + len(tagged.rejections) == counts.tagged + counts.rejected:
        raise RuntimeError(
            f"{counts.records} records up to {piece.source} were read, but {written} written and "
            f"{len(tagged.rejections)} rejected"
        )


class _Tally:
    """What a run has come to so far."""

    def __init__(self, plan: Plan, before: Done, show: Show | None):
        self._plan, self._before, self._show = plan, before, show
        self._counts = Counts()
        self._counts.add(before.counts)
        self._started = time.monotonic()
        self._memory: dict[int, int] = {}
        self._formats: set[str] = set()

    def add(self, piece: Piece, tagged: Tagged) -> None:
        """Count a piece, and show it."""
        self._counts.add(tagged.counts)
        self._memory[tagged.process] = tagged.memory
        self._formats.update(chunk.format for chunk in piece.chunks if isinstance(chunk, Chunk))
        if self._show is not None:
            self._show(
                Reached(
                    self._counts,
                    piece.read,
                    self._plan.total,
                    self._counts.records - self._before.counts.records,
                    piece.read - self._before.read,
                    self._seconds(),
                    self._all_memory(),
                )
            )

    def summary(self, shards: int) -> Summary:
        """Sum up the run."""
        formats, memory, counts = sorted(self._formats), self._all_memory(), self._counts
        log.info("Finished: %d documents, %d tagged, %d rejected", counts.records, counts.tagged, counts.rejected)
        return Summary(self._plan, self._counts, self._before, shards, formats, self._seconds(), memory)

    def _seconds(self) -> float:
        return max(time.monotonic() - self._started, 0.0)

    def _all_memory(self) -> int:
        return sum({**self._memory, os.getpid(): peak_memory() or 0}.values())
