"""A plan → tags in a folder of shards, or in a stream: one run, from where it was to its end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from textcat.errors import TextcatError
from textcat.reading.batches import read_batches
from textcat.reading.pipes import Pipes
from textcat.reading.records import Batch, Rejection
from textcat.tagging import forms
from textcat.tagging.counts import Counts
from textcat.tagging.flow import in_order
from textcat.tagging.folder import opened
from textcat.tagging.job import Job, Tagged, tag_batch
from textcat.tagging.output import encode_rejection
from textcat.tagging.plan import Plan, announce, check_apart, facts, warn_of_changes
from textcat.tagging.shards import Done, Rule, Shards
from textcat.tagging.summary import Show, Summary, Tally
from textcat.tagging.workers import crew


class How(NamedTuple):
    """How a run is done; none of it changes what is written.

    Parameters
    ----------
    jobs : int
        Batches worked on at the same time; -1: one a core.
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


HOW = How()


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
        Is told after each batch how far the run has come.

    Raises
    ------
    TextcatError
        If the folder lies in an input, holds anything else or another run, cannot be written to, or a record cannot be
        read and `how` is strict.
    """
    check_apart(plan, out)
    announce(plan, str(out))
    inputs = (source.fingerprint() for source in plan.sources)
    with opened(out, facts(plan), inputs, restart=restart) as done:
        tally = Tally(plan, done, show)
        if done.finished:
            return tally.summary(done.shards)
        shards = Shards(out, done, forms.form(plan.job.output), plan.job.output.suffix, how.rule)
        pipes = Pipes(plan.sources, done.pipes)
        batches = pipes.noted(read_batches(pipes.sources, plan.job.input, done.checkpoint))
        with closing(shards), closing(_tagged(plan, how, batches)) as results:
            for batch, tagged in results:
                rejected = b"".join(map(encode_rejection, tagged.rejections))
                shards.add(tagged.blocks, rejected, tagged.counts, batch.end, batch.read, pipes.at(batch.end))
                tally.add(batch, tagged)
            warn_of_changes(plan)
            shards.finish()
        return tally.summary(shards.number)


def tag_to_stream(
    plan: Plan, stream: BinaryIO, how: How = HOW, *, tell: Callable[[Rejection], None], show: Show | None = None
) -> Summary:
    """Tag the inputs into a stream, which is flushed after each batch.

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
    announce(plan, "standard output")
    form, tally = forms.form(plan.job.output), Tally(plan, Done(Counts()), show)
    stream.write(form.begin())
    with closing(_tagged(plan, how, read_batches(plan.sources, plan.job.input))) as results:
        for batch, tagged in results:
            stream.write(b"".join([*map(form.add, tagged.blocks), form.flush()]))
            stream.flush()
            for rejection in tagged.rejections:
                tell(rejection)
            tally.add(batch, tagged)
    stream.write(form.end())
    stream.flush()
    return tally.summary(0)


def told(rejection: Rejection) -> str:
    """Say what could not be read, and why."""
    where = f"{rejection.source}:{rejection.position}" if rejection.position else rejection.source
    return f"{where}: {rejection.reason}"


def _tagged(plan: Plan, how: How, batches: Iterable[Batch]) -> Generator[tuple[Batch, Tagged]]:
    with (
        closing(crew(how.jobs, plan.total, how.scheduler)) as workers,
        closing(in_order(batches, partial(tag_batch, plan.job), workers)) as results,
    ):
        for batch, tagged in results:
            _check(plan.job, batch, tagged)
            if how.strict and tagged.rejections:
                raise TextcatError(f"{told(tagged.rejections[0])} That is the end, as --strict asks.")
            yield batch, tagged


def _check(job: Job, batch: Batch, tagged: Tagged) -> None:
    """Count anew what a batch came to: that nothing is lost must not depend on one count."""
    counts = tagged.counts
    written = counts.tagged
    if job.output.to == "jsonl":
        written = sum(block.count(b"\n") for block in tagged.blocks)
    if not counts.records == written + len(tagged.rejections) == counts.tagged + counts.rejected:
        raise RuntimeError(
            f"{counts.records} records up to {batch.source} were read, but {written} written and "
            f"{len(tagged.rejections)} rejected"
        )
