"""Write copies of news files into a folder, with their tags in the place that their standard defines.

Apart from the tags, a file is copied byte for byte. When the copy is complete on disk, it gets its name and is listed
in a journal, so that the next run does not write it again unless the input has changed.

There are three steps: `read_news` chooses the files to read, `edit_news` tags the items of each batch and returns the
changes of their files, and `write_news` writes files with these changes, into a `news_folder`.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textcat.base.errors import TextcatError, first_of
from textcat.reading import Rejection, read_batches
from textcat.runs.inputs import AGAIN, total_size
from textcat.runs.progress import RunState, ShowProgress
from textcat.runs.results import Counts, kind_of_reason
from textcat.runs.tally import RunTally
from textcat.runs.workers import ordered_map
from textcat.tagging.concepts import CodeTable, find_codes
from textcat.tagging.edit_news import EditJob, creator_of, edit_batch
from textcat.tagging.news_folder import open_news_folder
from textcat.tagging.planning import TaggingPlan, facts_of_job
from textcat.tagging.read_news import NewsFiles, check_sources, refuse_archives
from textcat.tagging.rejection_limit import counts_to_judge
from textcat.tagging.watch import folder_of
from textcat.tagging.work import refuse_faults, workers_of
from textcat.tagging.write_news import Fate, NewsWriter, Outcome

log = logging.getLogger(__name__)


class WriteBackSummary(NamedTuple):
    """Counts of files that a run has written with tags or left out, counts of documents, time and memory."""

    counts: Counts  # documents in the files that were read
    written: int  # files written
    before: int  # files written by earlier runs
    left_out: int  # files without a tagged item, broken or changed files, and those whose name is not possible
    formats: Counter[str]  # files of formats without a place for tags
    copied: Counter[str]  # files copied unchanged, by the reason why they have no tags
    seconds: float
    memory: int


def write_back(
    plan: TaggingPlan,
    folder: Path,
    base: str,
    codes: str = "",
    *,
    restart: bool = False,
    copy_rest: bool = False,
    on_rejection: Callable[[Rejection], object] = lambda rejection: None,
    progress: ShowProgress | None = None,
) -> WriteBackSummary:
    """Tag the news files of a plan's inputs, and write a copy of each, with its tags, to a folder; return a summary.

    Parameters
    ----------
    plan : TaggingPlan
        The model, the inputs, and which topics are written.
    folder : Path
        The folder to write to, with the same paths as below `base`; it is created if it does not exist.
    base : str
        The folder above all inputs, see `base_of`.
    codes : str
        The path of a table with the codes of topics, see `textcat.tagging.concepts.read_codes`; "": no table.
    restart : bool
        Write files again even if an earlier run wrote them.
    copy_rest : bool
        Copy all files without tags unchanged, including those of other formats, so that the folder is complete.
    on_rejection : callable
        Called with each document or file that is left out; with `copy_rest`, only with those that could not be read.
    progress : callable, optional
        Called with a `RunProgress` after each batch of the input.

    Raises
    ------
    TextcatError
        If an input is a pipe or a URL, the table cannot be read, or the folder is inside an input, holds other files,
        or cannot be written to. Zips and tars are left out: see `check_inputs`.
    """
    check_sources(plan.sources, folder)
    table = find_codes(codes)
    _check_table(plan, table)
    output = plan.job.output._replace(
        to="jsonl", compress="", explain=0, keep_fields=(), per_document=False, duplicates=""
    )
    plan = plan._replace(job=plan.job._replace(output=output, groups=None))
    work = EditJob(plan.job, creator_of(Path(plan.job.model)), table, copy_rest)
    facts = {**facts_of_job(plan.job, ()), "creator": work.creator, "codes": [*table.concepts().items()]}
    n_bytes = total_size(plan.sources)
    with workers_of(plan, n_bytes) as workers, open_news_folder(folder, base, facts, restart=restart) as news_folder:
        files, fates = NewsFiles(plan.sources, plan.job.input, news_folder, copies_rest=copy_rest), _Fates()
        tally, judged = RunTally(RunState(Counts()), n_bytes, progress), Counts()
        batches = read_batches(files.sources(), plan.job.input)
        with (
            closing(NewsWriter(news_folder, files.states, files.to_copy)) as writer,
            closing(ordered_map(partial(edit_batch, work), batches, workers, AGAIN)) as results,
        ):
            for batch, (tagged, blocks) in results:
                rejections = [one for one in tagged.rejections if not copy_rest or one.is_fault]
                rejections += fates.add(writer.write(blocks))
                tally.add(batch, tagged)
                for rejection in rejections:
                    on_rejection(rejection)
                refuse_faults(plan, rejections)
                if plan.max_rejected is not None:
                    judged.add(counts_to_judge(tagged))
                    plan.max_rejected.check(judged, rejections[-1] if rejections else "")
                tally.show(batch)
            for rejection in fates.add(writer.finish()):
                on_rejection(rejection)
    return fates.summary(files, tally)


class _Fates:
    """Count what became of the files of a run."""

    def __init__(self) -> None:
        self._fates, self._formats, self._copied = Counter[Fate](), Counter[str](), Counter[str]()

    def add(self, outcomes: Sequence[Outcome]) -> list[Rejection]:
        """Count the outcomes of files; return a Rejection for each file left out."""
        self._copied.update(_why_copied(outcome.copied) for outcome in outcomes if outcome.copied)
        left = [outcome for outcome in outcomes if not outcome.copied]
        self._fates.update(outcome.fate for outcome in left)
        self._formats.update(outcome.format for outcome in left if outcome.fate is Fate.NO_PLACE)
        return [outcome.rejection for outcome in outcomes if outcome.rejection is not None]

    def summary(self, files: NewsFiles, tally: RunTally) -> WriteBackSummary:
        """Return the summary of the run; `files` counts the files that were not read, `tally` the documents."""
        written = self._fates[Fate.WRITTEN]
        left_out = self._fates.total() - written - self._fates[Fate.NO_PLACE]
        formats = files.formats + self._formats
        return WriteBackSummary(tally.counts, written, files.before, left_out, formats, self._copied, *tally.cost())


def _why_copied(reason: str) -> str:
    """Shorten the reason why a file has no tags, so that equal reasons can be counted."""
    return kind_of_reason(re.split(r"[;:] |, so it is left out|\.$", reason, maxsplit=1)[0] + ".")


def check_inputs(plan: TaggingPlan, folder: Path, *, skip_archives: bool = False) -> None:
    """Raise TextcatError if inputs of a plan, or files in them, cannot be written back to a folder.

    Zips and tars are errors here, unless `skip_archives` is set, as in a watched folder, where they may also arrive
    later. `write_back` itself skips them, or copies them unchanged.
    """
    check_sources(plan.sources, folder)
    if not skip_archives:
        refuse_archives(plan.sources, plan.job.input)


def _check_table(plan: TaggingPlan, table: CodeTable) -> None:
    lacking = [topic for topic in plan.topics if topic not in table.concepts()] if table.path else []
    if lacking and len(lacking) == len(plan.topics):
        what = f"{table.path} has no code for any topic of the model"
        raise TextcatError(f"{what}: its column topic must have their ids.")
    if lacking:
        named = first_of(lacking, 5)
        log.warning("Topics without a code in %s are written by their names, %d: %s.", table.path, len(lacking), named)


def base_of(inputs: Sequence[str]) -> str:
    """Return the folder that contains all inputs: an input folder itself, or the folder of a file or pattern.

    Of several inputs, it is the deepest folder that they share.
    """
    above = [os.path.abspath(folder_of(text)) for text in inputs]
    return os.path.commonpath(above)
