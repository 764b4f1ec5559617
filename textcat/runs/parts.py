"""Read the folders of a run's parts, check that they fit together, and yield their batches in the order of the inputs.

A part is a run that reads one of several shares of the inputs (see `textcat.reading.Share`). Its journal records the
output of each batch, so that the batches of all parts can be combined into the shards of a single run.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError, first_of
from textcat.reading import START_OVER, BatchNumber, Share
from textcat.runs.files import RunFiles, has_files
from textcat.runs.folder import INPUTS, check_output, in_words
from textcat.runs.news_versions import VERSIONS
from textcat.runs.output import ParquetFile, PlainFile
from textcat.runs.records import REJECTED, Log, PartBatch, read_log
from textcat.runs.shard_writer import EncodedBatch, counted_topics_path, score_bins_path

_log = logging.getLogger(__name__)

PART = "--part"  # name of the setting of a run for the share of the inputs that it reads
_TAG_AGAIN = "give the command of that part again with --restart"


class Part(NamedTuple):
    """A finished part of a run: its share of the inputs, and its replayed journal."""

    share: Share
    log: Log

    @property
    def folder(self) -> Path:
        """The folder of the part."""
        return self.log.folder


def read_parts(folders: Sequence[Path]) -> list[Part]:
    """Read the journals of all parts of a run; return the parts in their order.

    A TextcatError is raised if a folder has no part, if a part is unfinished, damaged, missing or given twice, or if
    parts differ in their settings or inputs.
    """
    parts = sorted(map(_read_part, folders), key=lambda part: part.share)
    first, by_number = parts[0], dict[int, Part]()
    for part in parts:
        _check_alike(first, part)
        if (other := by_number.setdefault(part.share.number, part)) is not part:
            raise TextcatError(
                f"Part {part.share} is there twice, in {other.folder} and in {part.folder}: name each part once."
            )
    missing = [str(number) for number in range(1, first.share.n + 1) if number not in by_number]
    if missing:
        shown = f"Part {missing[0]} of" if len(missing) == 1 else f"Parts {first_of(missing, 20)} of"
        how = f"tag by --part {missing[0]}/{first.share.n}, and name its folder, too"
        raise TextcatError(f"{shown} {first.share.n} {'is' if len(missing) == 1 else 'are'} missing: {how}.")
    for part in parts:
        check_output(part.log, _TAG_AGAIN)
    return parts


def _read_part(folder: Path) -> Part:
    log = read_log(folder, _TAG_AGAIN) if folder.is_dir() else None
    if log is None:
        raise TextcatError(f"{folder} has no part of a run: name folders that `textcat tag --part K/N` has written.")
    text = log.header.facts.get(PART)
    if not text:
        raise TextcatError(
            f"{folder} has a whole run, not a part: name folders that `textcat tag --part K/N` has written."
        )
    if log.is_damaged:
        raise TextcatError(f"The journal in {folder} is damaged: {_TAG_AGAIN}.")
    if not log.generation.is_finished:
        raise TextcatError(f"The part in {folder}, {text}, is unfinished: give its command again, then merge.")
    return Part(Share.parse(text), log)


def _check_alike(first: Part, other: Part) -> None:
    """Raise a TextcatError if two parts are not of the same run over the same inputs."""
    facts = [{**part.log.facts, PART: f"K/{part.share.n}"} for part in (first, other)]
    for name in {**facts[0], **facts[1]}:
        a, b = (in_words(name, of_part.get(name)) for of_part in facts)
        if a != b:
            raise _misfit(first, other, f"the first has {a}, the other has {b}")
    if (first.log.header.inputs, first.log.header.files) != (other.log.header.inputs, other.log.header.files):
        pairs = zip_longest(*(read_inputs(part.folder) for part in (first, other)))
        name = next(((b or a or {})["name"] for a, b in pairs if a != b), "one in a folder")
        raise _misfit(first, other, f"their inputs, such as {name}, differ in names, sizes or times")


def _misfit(first: Part, other: Part, reason: str) -> TextcatError:
    return TextcatError(
        f"The parts in {first.folder} and {other.folder} do not fit together, as {reason}: give the right folders, or "
        "tag one of them again."
    )


def warn_of_lacks(folders: Iterable[Path]) -> None:
    """Log a warning for each folder whose tags are not those of all its inputs: see `lacks`."""
    for sentence in lacks(folders):
        _log.warning("%s", sentence)


def lacks(folders: Iterable[Path]) -> list[str]:
    """Return a sentence for each folder that has an unfinished run, or a part of a run; of other folders, none.

    All parts of a run together lack nothing. So `folders` are those that are counted together.
    """
    logs = {path: log for path in folders if path.is_dir() and (log := read_log(path, START_OVER)) is not None}
    shares = {path: Share.parse(log.header.facts[PART]) for path, log in logs.items() if PART in log.header.facts}
    runs = {path: (share.n, logs[path].header.inputs) for path, share in shares.items()}
    sentences = [_unfinished(path, log) for path, log in logs.items() if not log.generation.is_finished]
    for path, share in shares.items():
        if len({shares[other].number for other, run in runs.items() if run == runs[path]}) < share.n:
            sentences.append(
                f"{path} has only part {share} of a run: join all parts by `textcat merge`, and name its folder."
            )
    return sentences


def _unfinished(folder: Path, log: Log) -> str:
    has_list = PART not in log.header.facts and log.header.files is not None and has_files(log)
    left = len(RunFiles(log).left) if has_list else 0
    files = f", as {left:,} file{' is' if left == 1 else 's are'} not read to the end yet" if left else ""
    return (
        f"The run in {folder} is not finished{files}, so tags are missing: wait until it ends, or give its command "
        "again if it was interrupted."
    )


def read_inputs(folder: Path) -> list[dict[str, Any]]:
    """Return the name, size and time of each source of a run, as its folder lists them."""
    return [json.loads(line) for line in (folder / INPUTS).read_bytes().splitlines()]


def merged_batches(parts: Sequence[Part], form: PlainFile) -> Iterator[EncodedBatch]:
    """Yield the batches of all parts in the order of the inputs; `form` is the format of the parts' shards.

    A TextcatError is raised if an input has changed between the parts, so that batches overlap or are missing.
    """
    numbers = sorted(
        (batch.number, i)
        for i, part in enumerate(parts)
        for shard in part.log.generation.shards
        for batch in shard.batches
    )
    batches = [_batches_of(part, form) for part in parts]
    number, end = BatchNumber(-1), tuple[int, ...]()
    for _, i in numbers:
        batch = next(batches[i])
        record = batch.record
        is_begun = record.number.stretch == number.stretch
        expected = number.batch + 1 if is_begun else 0
        if record.number.batch != expected or (is_begun and record.start != end):
            raise TextcatError(
                "The parts do not fit together, as an input changed while they were tagged: start all parts again with "
                "--restart."
            )
        yield batch
        number, end = record.number, record.end


def _batches_of(part: Part, form: PlainFile) -> Iterator[EncodedBatch]:
    """Yield the batches of a part in order, with the bytes that they added to its files."""
    folder, is_table = part.folder, isinstance(form, ParquetFile)
    with ExitStack() as opened:
        paths = [folder / REJECTED, folder / VERSIONS.format(0)]
        rejected, versions = (opened.enter_context(open(path, "rb")) if path.is_file() else None for path in paths)
        for shard in part.log.generation.shards:
            with ExitStack() as of_shard:
                sizes = [_sizes(batch, is_table=is_table) for batch in shard.batches]
                pieces, counted, score_bins = iter(list[bytes]()), None, None
                if shard.name:
                    path = folder / shard.name
                    flat = [n for one in sizes for n in one]
                    pieces = form.pieces(of_shard.enter_context(open(path, "rb")), flat)
                    if any(batch.counted for batch in shard.batches):
                        counted = of_shard.enter_context(open(counted_topics_path(path), "rb"))
                    if any(batch.score_bins for batch in shard.batches):
                        score_bins = of_shard.enter_context(open(score_bins_path(path), "rb"))
                for batch, of_batch in zip(shard.batches, sizes, strict=True):
                    yield EncodedBatch(
                        batch,
                        [next(pieces) for _ in of_batch],
                        rejected.read(batch.rejected) if rejected else b"",
                        counted.read(batch.counted) if counted else b"",
                        score_bins.read(batch.score_bins) if score_bins else b"",
                        versions.read(batch.versions) if versions else b"",
                    )


def _sizes(batch: PartBatch, *, is_table: bool) -> list[int]:
    """Return the sizes of the pieces in which a shard has the rows of a batch; see `PlainFile.pieces`.

    `is_table` says that the shard is a Parquet file.
    """
    return ([batch.counts["tagged"]] if batch.rows else []) if is_table else batch.rows
