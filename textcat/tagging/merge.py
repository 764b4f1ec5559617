"""Merge the parts of an archive, tagged by several processes, into the folder that a single run would have written."""

import logging
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from shlex import quote

import msgspec

from textcat.base import disk
from textcat.base.disk import UNFINISHED, expanded, link_target, resolved
from textcat.base.errors import TextcatError
from textcat.base.paths import named_paths
from textcat.base.progress import peak_memory
from textcat.runs.files import read_files
from textcat.runs.folder import open_merged
from textcat.runs.inputs import check_paths_apart
from textcat.runs.parts import PART, Part, merged_batches, read_inputs, read_parts
from textcat.runs.progress import RunState
from textcat.runs.records import ORIGIN, write_whole
from textcat.runs.results import Counts
from textcat.runs.settling import settle
from textcat.runs.shard_writer import HELD_OUT, ShardWriter, raise_write_errors
from textcat.tagging.origin import RunOrigin
from textcat.tagging.output import OutputSettings, file_format
from textcat.tagging.planning import TaggingPlan
from textcat.tagging.shards import remove_rows
from textcat.tagging.summary import Summary, Trained
from textcat.tagging.summary_by_month import write_summary

log = logging.getLogger(__name__)

_PLAN = "_part.json"  # in the folder of a part


class _PartPlan(msgspec.Struct, forbid_unknown_fields=True):
    """The entries of a part's plan that merging needs."""

    output: OutputSettings
    trained: Trained
    topics: tuple[str, ...]


def write_part_plan(plan: TaggingPlan, folder: Path) -> None:
    """Write the entries of a plan that merging needs into the folder of a part."""
    record = _PartPlan(plan.job.output._replace(duplicates=""), plan.trained, plan.topics)
    write_whole(folder / _PLAN, [msgspec.json.encode(record), b"\n"])


def _read_plan(part: Part) -> _PartPlan:
    try:
        return msgspec.json.decode((part.folder / _PLAN).read_bytes(), type=_PartPlan)
    except (OSError, msgspec.DecodeError):
        path = part.folder / _PLAN
        raise TextcatError(f"{path} is missing or damaged: give the command of that part again, then merge.") from None


def merge_parts(
    parts: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], out: str | os.PathLike[str], **limits: int
) -> Summary:
    """Merge the parts of an archive: write the folder that one run over all inputs would have written.

    The parts are not changed. The folder appears under its name when it is complete. Later, `tag_archive` can continue
    it with files that are new or have changed, like any run.

    Parameters
    ----------
    parts : path, or iterable of paths
        The folders that `tag_archive` has written with ``part="1/3"``, ``part="2/3"`` and so on, in any order.
    out : path
        The folder to write, which must not exist or be empty.
    **limits : int
        The arguments `max_records` and `max_bytes` of `ShardWriter`.

    Returns
    -------
    Summary

    Raises
    ------
    TextcatError
        If a part is missing, unfinished, damaged or given twice, if parts belong to different runs, or if the folder
        exists and is not empty, is inside a part or an input, or cannot be written.

    Examples
    --------
    >>> import textcat
    >>> textcat.merge_parts(["part-1", "part-2", "part-3"], "tags")  # doctest: +SKIP
    """
    started, out = time.monotonic(), link_target(out)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise TextcatError(f"{out} exists: name a new folder for the merged tags, or remove it.")
    found = read_parts([*map(expanded, named_paths(parts))])
    if inside := [part.folder for part in found if resolved(part.folder) in resolved(out).parents]:
        raise TextcatError(f"{out} is inside the part {inside[0]}: name a folder beside the parts.")
    check_paths_apart(RunOrigin.read(found[0].folder).paths(), out)
    plan = _read_plan(found[0])
    with raise_write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    counts, shards = _merge(found, plan, out, limits)
    seconds, memory = time.monotonic() - started, peak_memory() or 0
    counted = counts, RunState(Counts()), shards
    is_ranking = plan.output.is_ranking
    return Summary(plan.trained, (), plan.topics, *counted, [], seconds, memory, is_ranking=is_ranking)


def _merge(parts: Sequence[Part], plan: _PartPlan, out: Path, limits: dict[str, int]) -> tuple[Counts, int]:
    """Write the merged folder beside its place, and rename it; return the counts and the number of shards."""
    output = plan.output
    beside, header = disk.beside(out, f".merged{UNFINISHED}", start="."), parts[0].log.header
    facts = {name: value for name, value in parts[0].log.facts.items() if name != PART}
    files = None if header.files is None else read_files(parts[0].folder, 0, header.files)
    with open_merged(beside, facts, read_inputs(parts[0].folder), files) as state:
        try:
            with closing(ShardWriter(beside, state, file_format(output), **limits)) as shards:
                for batch in merged_batches(parts, file_format(output)):
                    shards.add_encoded(batch)
                shards.end()
                with raise_write_errors(beside):
                    settled = settle(shards.log, partial(remove_rows, output))
                shards.finish()
            write_summary(beside, facts["model"], plan.trained, plan.topics, shards.log.counts)
            with raise_write_errors(out):
                for path in (parts[0].folder / ORIGIN, *parts[0].folder.glob(HELD_OUT.format("*"))):
                    disk.write_atomically(beside / path.name, path.read_text(encoding="utf-8"))
                disk.sync_folder(beside)
                disk.rename(beside, out)
                disk.sync_folder(out.parent)
        except (Exception, KeyboardInterrupt):
            shutil.rmtree(beside, ignore_errors=True)
            raise
    if not settled.is_whole:
        again = quote(str(out))
        log.warning("Older news counts again, as newer news is gone: `textcat tag --out %s` reads it once more.", again)
    counts = Counts()
    counts.add(shards.log.counts)
    return counts, shards.number
