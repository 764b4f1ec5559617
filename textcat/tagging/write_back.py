"""Write news files again, with their tags in the place that their standard has for them, into a folder.

A file is copied byte for byte, but for the tags. It gets its name in the folder when it is whole on the disk, and a
journal lists it then, so that the next run does not write it again unless it has changed.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.base.progress import peak_memory
from textcat.base.surrogates import escape_undecodable
from textcat.reading import (
    ARCHIVES,
    FORMATS,
    OWN,
    Batch,
    Block,
    ContainerEntry,
    FaultKind,
    FileState,
    InputSettings,
    Rejection,
    Source,
    Subject,
    UnreadableError,
    declared_encoding,
    format_by_name,
    format_of,
    is_cut_by_characters,
    is_url,
    open_file,
    path_inside,
    read_batches,
    unpacked_stream,
)
from textcat.runs.inputs import check_output_apart, total_size
from textcat.runs.progress import RunProgress, ShowProgress
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.runs.workers import ordered_map
from textcat.tagging.concepts import CodeTable, Edit, Tag, concept_of, find_codes
from textcat.tagging.encodings import Editor, edits_in
from textcat.tagging.file_copy import ChangedError, FileCopy, state_of
from textcat.tagging.job import Job, tag_batch
from textcat.tagging.run import Plan, facts_of_plan, workers_of
from textcat.tagging.tags_in_json import edits_of_ninjs
from textcat.tagging.tags_in_xml import EDITS_OF
from textcat.tagging.watch import folder_of

log = logging.getLogger(__name__)

EDITORS: dict[str, Editor] = {**EDITS_OF, "ninjs": edits_of_ninjs}
_JOURNAL, _LOCK, _TEMPORARY = _NAMES = (".write-back.jsonl", ".write-back.lock", ".write-back.part")
_OWN_NAMES = frozenset({*_NAMES, _JOURNAL + UNFINISHED})
_FEW = len(_OWN_NAMES) + 1
_RSS_1 = re.compile(rb"<(?:[\w.-]+:)?RDF[\s>]")  # whose items have no categories
_MARK, _FORMAT = "textcat write-back", 1
_CHANGED = "It has changed while it was read, so it is left out: give the same command again."
_THREADS = 16  # that wait for the disk, which takes longer than all else
_MOST_OPEN = 128  # files that wait for the disk
_AGAIN = "give the same command again"
_RESUMES = "fix that, and the same command resumes the run"
# What a name may tell of the content that holds news.
_MAY_BE_NEWS = frozenset({"", "json", "jsonl", "rcv1", *EDITORS})
_OF_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EXDEV})
_BROKEN = frozenset({FaultKind.ACCESS, FaultKind.CHANGED, FaultKind.DAMAGE})


class EditJob(NamedTuple):
    """Hold how a run tags each batch, and how it writes the tags into the bytes of files."""

    job: Job
    creator: str  # of the tags
    codes: CodeTable = CodeTable()


class EditedBlock(NamedTuple):
    """Hold the changes of a file in one of its blocks."""

    source: str
    documents: int = 0  # that were tagged
    edits: tuple[Edit, ...] = ()  # by their places in the unpacked file, in order
    unwritable: str = ""  # the format of the file, if it has no place for tags
    is_broken: bool = False  # whether the file must not be written
    encoding: str | None = None  # None: edits are those of the file as it is; or else as `EditedStream` takes it


class WriteBackSummary(NamedTuple):
    """Hold what a run has written, and what it has left out."""

    counts: Counts  # of documents in the files that were read
    written: int  # files
    before: int  # files that earlier runs wrote
    left_out: int  # files without a document that was tagged, and files that are broken
    formats: Counter[str]  # files of formats without a place for tags
    seconds: float
    memory: int


def edit_batch(work: EditJob, batch: Batch) -> tuple[BatchResult, list[EditedBlock]]:
    """Tag the records of a batch; return the result, and the changes of each block, by which its items have the tags.

    A TextcatError is raised as by `tag_batch`.
    """
    blocks = [_refused(block, work.job.input) if isinstance(block, Block) else block for block in batch.blocks]
    kept = [block for block in blocks if isinstance(block, Rejection) or not _lacks_place(block)]
    tagged = tag_batch(work.job, batch._replace(blocks=tuple(kept)), all_versions=True)  # each file is written
    tags: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for rows in tagged.rows:
        for row in map(orjson.loads, rows.splitlines()):
            tags[row["source"], row["position"]] = row["topics"]
    tagged.rows = []
    places: set[tuple[str, int]] = set()
    return tagged, [_edited(work, block, tags, places, tagged) for block in blocks]


def _refused(block: Block, settings: InputSettings) -> Block | Rejection:
    """Return a Rejection for a block of a file in an encoding in which it cannot be changed; or else the block."""
    encoding = settings.for_file(block.source).encoding
    if not block.decoded or block.format not in EDITORS or is_cut_by_characters(encoding):
        return block
    reason = f"The file is in {encoding}, in which tags are not written back: convert it to UTF-8."
    return Rejection(block.source, 0, reason)


def _lacks_place(block: Block) -> str:
    """Return the format of a block, if it has no place for tags; or else ""."""
    if block.format == "rss" and _RSS_1.search(block.header):
        return "RSS 1"
    return "" if block.format in EDITORS else block.format


def _edited(
    work: EditJob,
    block: Block | Rejection,
    tags: Mapping[tuple[str, int], list[dict[str, Any]]],
    places: set[tuple[str, int]],
    tagged: BatchResult,
) -> EditedBlock:
    """Return the changes of a block; `places` gets the places of its items, and the result what is rejected."""
    if isinstance(block, Rejection):
        return EditedBlock(block.source, is_broken=block.kind in _BROKEN or not block.position)
    if unwritable := _lacks_place(block):
        return EditedBlock(block.source, unwritable=unwritable if block.data else "")
    edits, n, source, table = list[Edit](), 0, escape_undecodable(block.source), work.codes.concepts()
    settings = work.job.input.for_file(block.source)
    encoding = settings.encoding if block.decoded else None
    settings = settings._replace(encoding="utf-8") if block.decoded else settings
    declared = declared_encoding(block.header) if block.header and not settings.encoding else ""
    edit = partial(edits_in, settings.encoding or declared, EDITORS[block.format])
    for span in FORMATS[block.format].spans(block, settings):
        place = source, span.position
        if place in places:
            reason = "It has several feeds, whose items have the same numbers: write each feed to a file."
            tagged.rejections.append(Rejection(block.source, span.position, reason))
            return EditedBlock(block.source, is_broken=True)
        places.add(place)
        try:
            found = edit(span.data, _tags(tags[place], table), work.creator) if place in tags else None
        except (LookupError, UnicodeError):
            name = settings.encoding or declared or "UTF-8"
            reason = f"It is in {name}, in which tags cannot be written into it: convert it to UTF-8."
            tagged.rejections.append(Rejection(block.source, span.position, reason))
            continue
        except Exception as error:  # as of a document that cannot be tagged: the others are written
            log.warning("%s:%d cannot be written back", block.source, span.position, exc_info=error)
            reason = f"Its tags cannot be written into it ({type(error).__name__}: {error})."
            tagged.rejections.append(Rejection(block.source, span.position, reason))
            continue
        n += found is not None
        edits += (one._replace(start=span.offset + one.start, end=span.offset + one.end) for one in found or ())
    return EditedBlock(block.source, n, tuple(edits), encoding=encoding)


def _tags(topics: Sequence[dict[str, Any]], table: Mapping[str, Subject]) -> list[Tag]:
    """Return the tags of a document, given its topics as a line of JSON has them; each concept once."""
    largest = max((topic["score"] for topic in topics), default=0)
    tags: dict[str, Tag] = {}
    for topic in topics:
        name, probability = topic.get("name") or "", topic.get("probability")
        concept = table.get(topic["topic"]) or concept_of(topic["topic"], name)
        concept = concept if concept.name else concept._replace(name=name)
        relevance = max(round(100 * topic["score"] / largest), 0) if largest > 0 else None
        confidence = None if probability is None else round(100 * probability)
        tags.setdefault(concept.topic, Tag(concept, confidence, relevance))
    return list(tags.values())


def creator_of(model: Path) -> str:
    """Return the creator of the tags of a model: ``textcat:`` and the name of its folder."""
    return f"{OWN}:{re.sub('[^A-Za-z0-9_.-]+', '-', model.resolve().name) or 'model'}"


# --- the run ----------------------------------------------------------------------------------------------------------


def write_back(
    plan: Plan,
    folder: Path,
    base: str,
    codes: str = "",
    *,
    restart: bool = False,
    on_rejection: Callable[[Rejection], object] = lambda rejection: None,
    progress: ShowProgress | None = None,
) -> WriteBackSummary:
    """Write each news file of a plan's inputs again, with its tags, into a folder, and return a summary.

    Parameters
    ----------
    plan : Plan
        The model, the inputs, and which topics are written.
    folder : Path
        Where files get the same paths as below `base`. It is made if it does not exist.
    base : str
        The folder above all inputs, see `base_of`.
    codes : str
        The path of a table with the codes of topics, see `textcat.tagging.concepts.read_codes`; "": there is none.
    restart : bool
        Also write the files again that an earlier run wrote.
    on_rejection : callable
        Called with each document or file that is left out.
    progress : callable, optional
        Called with a `RunProgress` after each batch of the input.

    Raises
    ------
    TextcatError
        If an input is a pipe or a URL, the table cannot be read, or the folder is inside an input, holds other files,
        or cannot be written to. Zips and tars are left out: see `check_inputs`.
    """
    _check_sources(plan.sources, folder)
    table = find_codes(codes)
    _check_table(plan, table)
    output = plan.job.output._replace(
        to="jsonl", compress="", explain=0, keep_fields=(), per_document=False, duplicates=""
    )
    plan = plan._replace(job=plan.job._replace(output=output))
    work = EditJob(plan.job, creator_of(Path(plan.job.model)), table)
    facts = {**facts_of_plan(plan._replace(sources=())), "creator": work.creator, "codes": [*table.concepts().items()]}
    with workers_of(plan) as workers, _open_folder(folder, facts, restart) as done:
        files = _Files(folder, base, done, plan)
        batches = read_batches(files.sources(), plan.job.input)
        try:
            with closing(ordered_map(partial(edit_batch, work), batches, workers, _AGAIN)) as results:
                for batch, (tagged, edited) in results:
                    files.write(batch, edited, tagged)
                    for rejection in tagged.rejections:
                        on_rejection(rejection)
                    if plan.strict and tagged.rejections:
                        raise TextcatError(f"{tagged.rejections[0]} The run ends because of --strict: mend it.")
                    if progress is not None:
                        progress(files.progress(batch))
            for rejection in files.end():
                on_rejection(rejection)
        finally:
            files.close()
    return files.summary()


def check_inputs(plan: Plan, folder: Path) -> None:
    """Raise TextcatError if inputs of a plan, or files in them, cannot be written back to a folder.

    `write_back` leaves out zips and tars, as they may arrive in a watched folder, where this function refuses them.
    """
    _check_sources(plan.sources, folder)
    archives = [name for name in _file_names(plan.sources) if _is_archive(name, plan.job.input.for_file(name))]
    if archives:
        are = "is a zip or tar" if len(archives) == 1 else f"and {len(archives) - 1:,} other files are zips or tars"
        remedy = "unpack archives first, and name the folder of their files"
        raise TextcatError(f"{archives[0]} {are}, into which tags are not written back: {remedy}.")


def _check_sources(sources: Iterable[Source], folder: Path) -> None:
    for source in sources:
        if source.kind == "pipe" or is_url(source.name):
            what = "Standard input" if source.name == "-" else source.name
            raise TextcatError(f"{what} cannot be written back: name files or folders on this machine.")
    check_output_apart(sources, folder)


def _file_names(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the names of the files of all sources that can be read."""
    for source in sources:
        states = source.file_states()
        if states is not None:
            yield from (state.name for state in states if not state.is_blocked)
        else:
            above = "" if source.name == "." else source.name
            yield from (path_inside(above, entry.name) for entry in source.entries() if entry.fault is None)


def _is_archive(name: str, settings: InputSettings) -> bool:
    form = format_by_name(name, settings).format
    if form or settings.skip or "." in os.path.basename(name):  # content tells of archives without an ending only
        return form in ARCHIVES and not settings.skip
    try:
        with closing(open_file(name)) as stored:
            return format_of(unpacked_stream(stored, name), name, settings) in ARCHIVES
    except UnreadableError:
        return False  # it is told why when it is read


def _check_table(plan: Plan, table: CodeTable) -> None:
    topics = plan.job.output.topics or plan.manifest["topics"]
    lacking = [topic for topic in topics if topic not in table.concepts()] if table.path else []
    if lacking and len(lacking) == len(topics):
        what = f"{table.path} has no code for any topic of the model"
        raise TextcatError(f"{what}: its column topic must have their ids.")
    if lacking:
        named = f"{', '.join(lacking[:5])}{', …' if len(lacking) > 5 else ''}"
        log.warning("Topics without a code in %s are written by their names, %d: %s.", table.path, len(lacking), named)


def base_of(inputs: Sequence[str]) -> str:
    """Return the folder above all inputs: that of a file or a pattern, a folder itself; of several, what they share."""
    above = [os.path.abspath(folder_of(text)) for text in inputs]
    return os.path.commonpath(above)


class _Done:
    """Hold which files a folder has, each in which state of the input, by checksums of eight bytes in a journal."""

    def __init__(self, folder: Path, facts: Mapping[str, Any], restart: bool) -> None:
        self._path = folder / _JOURNAL
        self._key = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).digest()
        header = {_MARK: _FORMAT, "run": self._key.hex()}
        journal = read_journal(self._path)
        if journal is not None and journal.lines and _MARK not in journal.lines[0]:
            raise TextcatError(f"{self._path} is not a journal of textcat: name another folder.")
        sums = array("Q")
        if journal is not None and journal.lines[:1] == [header] and not (journal.damaged or restart):
            disk.truncate_file(self._path, journal.length)
            for line in journal.lines[1:]:
                sums.frombytes(bytes.fromhex(line["done"]))
        else:
            unfinished = self._path.with_name(_JOURNAL + UNFINISHED)
            with closing(disk.create(unfinished)) as file:
                disk.write_all(file, journal_line(header))
                disk.sync(file)
            disk.rename(unfinished, self._path)
        self._sums = array("Q", sorted(sums))  # eight bytes a file, of which there may be millions

    def sum_of(self, path: str, state: FileState) -> int:
        """Return the checksum of a file, given its path in the folder, and its state in the input."""
        text = f"{path}\0{state.size}\0{state.state}".encode("utf-8", "surrogateescape")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self._key).digest(), sys.byteorder)

    def has(self, sum_: int) -> bool:
        """Return whether the file with this checksum was written."""
        i = bisect_left(self._sums, sum_)
        return i < len(self._sums) and self._sums[i] == sum_

    def add(self, sums: Sequence[int]) -> None:
        """List written files in the journal."""
        with closing(disk.reopen(self._path)) as file:
            disk.write_all(file, journal_line({"done": array("Q", sums).tobytes().hex()}))
            disk.sync(file)


@contextmanager
def _open_folder(folder: Path, facts: Mapping[str, Any], restart: bool) -> Iterator[_Done]:
    """Lock a folder in a ``with`` block, and yield which files are there; raise TextcatError if it has other files."""
    with disk.raise_write_errors(folder, _RESUMES):
        folder.mkdir(parents=True, exist_ok=True)
        refusal = f"Another run is writing to {folder}: wait until it ends, or name another folder."
        lock = disk.acquire_lock(folder / _LOCK, refusal)
    try:
        with disk.raise_write_errors(folder, _RESUMES):
            foreign = sorted({path.name for path in islice(folder.iterdir(), _FEW)} - _OWN_NAMES)
            if foreign and not (folder / _JOURNAL).exists():
                what = f"{folder} holds {foreign[0]!r}, but no journal of --write-back"
                raise TextcatError(f"{what}: name another folder.")
            done = _Done(folder, facts, restart)
            shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)  # of a run that was killed
            (folder / _TEMPORARY).mkdir()
        yield done
    finally:
        lock.release()


class _Files:
    """Write files one after the other, as their batches come, and count them."""

    def __init__(self, folder: Path, base: str, done: _Done, plan: Plan) -> None:
        self._folder, self._base, self._done, self._plan = folder, base, done, plan
        self._real = os.path.realpath(folder)
        self._began = time.monotonic()
        self._counts, self._memory = Counts(), dict[str, int]()
        self._states: dict[str, FileState] = {}  # of files that are being read
        self._named: Counter[str] = Counter()  # files by their formats without a place for tags, known by their names
        self._found: Counter[str] = Counter()  # the same, known by their content
        self._before = self._written = self._left_out = 0
        self._sums: list[int] = []  # of files written since the journal's last line
        self._targets: dict[Path, bool] = {}  # folders of files in the batch, and whether these may be written there
        self._copy: FileCopy | None = None
        self._n_copies = 0
        self._again: set[str] = set()  # files to write again later, as news in them is under embargo
        self._synced: list[tuple[FileCopy, FileState, Future[None]]] = []  # copies that are not in place yet
        self._threads = ThreadPoolExecutor(_THREADS)
        self._part = EditedBlock("")  # all that is known of the file that is being written
        self._is_told = False  # whether it is said why the file is left out

    def sources(self) -> list[Source]:
        """Return the inputs with the files that are to be written, as far as that is known before they are read."""
        found = []
        for source in self._plan.sources:
            if source.kind == "folder":
                found.append(source._replace(entries=partial(self._entries, source), size=None))
            elif self._is_wanted(source.name):
                found.append(source)
        return found

    def _entries(self, source: Source) -> Iterator[ContainerEntry]:
        above = "" if source.name == "." else source.name
        for entry in source.entries():
            if entry.fault is not None or self._is_wanted(path_inside(above, entry.name)):
                yield entry

    def _is_wanted(self, name: str) -> bool:
        form = format_by_name(name, self._plan.job.input.for_file(name)).format
        if form not in _MAY_BE_NEWS:
            self._named[form] += 1
            return False
        try:
            state = state_of(name)
        except OSError:
            return True  # it is told when it is read
        path = self._path_of(name)
        if self._done.has(self._done.sum_of(path, state)) and os.path.lexists(os.path.join(self._folder, path)):
            self._before += 1
            return False
        self._states[name] = state
        return True

    def _path_of(self, name: str) -> str:
        return os.path.relpath(os.path.abspath(name), self._base)

    def write(self, batch: Batch, edited: Sequence[EditedBlock], tagged: BatchResult) -> None:
        """Write what a batch tells of files; reasons why files are left out are added to the result's rejections."""
        with disk.raise_write_errors(self._folder, _RESUMES):
            told = {rejection.source for rejection in tagged.rejections}
            self._again.update(rejection.source for rejection in tagged.rejections if rejection.due is not None)
            for part in edited:
                if part.source != self._part.source:
                    tagged.rejections += self._end_file()
                    self._part, self._is_told = EditedBlock(part.source), False
                self._is_told |= part.source in told
                tagged.rejections += self._take(part)
            tagged.rejections += self._put_in_place()
            self._list_written()
        self._counts.add(tagged.counts)
        self._memory[tagged.process] = tagged.memory

    def _take(self, part: EditedBlock) -> list[Rejection]:
        self._part = whole = self._part._replace(
            documents=self._part.documents + part.documents,
            unwritable=self._part.unwritable or part.unwritable,
            is_broken=self._part.is_broken or part.is_broken,
        )
        if whole.is_broken or not whole.documents:
            return []
        try:
            self._copy = self._copy or self._open_copy(part)
            self._copy.apply(part.edits)
        except ChangedError:
            return self._changed()
        return []

    def _open_copy(self, part: EditedBlock) -> FileCopy:
        """Open a copy of the file that is read; ChangedError is raised if it is not as it was."""
        if part.source not in self._states:  # it was no archive when it was looked at
            raise ChangedError
        self._n_copies += 1
        return FileCopy(self._states[part.source], self._folder / _TEMPORARY / str(self._n_copies), part.encoding)

    def _changed(self) -> list[Rejection]:
        self._part, self._is_told = self._part._replace(is_broken=True), True
        return [Rejection(self._part.source, 0, _CHANGED, kind=FaultKind.CHANGED)]

    def _end_file(self) -> list[Rejection]:
        """Finish the copy of the file whose last block was taken; return why it is left out, if so."""
        part, copy, rejections = self._part, self._copy, list[Rejection]()
        self._copy, state = None, self._states.pop(part.source, None)
        if copy is not None and not part.is_broken:
            try:
                copy.finish()
            except ChangedError:
                rejections = self._changed()
        self._part, part = EditedBlock(""), self._part
        if copy is not None and state is not None and not part.is_broken:
            self._synced.append((copy, state, self._threads.submit(copy.sync)))
            return self._put_in_place() if len(self._synced) >= _MOST_OPEN else []
        if copy is not None:
            copy.close()
        if part.unwritable and not part.is_broken:
            self._found[part.unwritable] += 1
        elif part.source:
            self._left_out += 1
            if not self._is_told:
                return [Rejection(part.source, 0, "It has no news item that could be tagged.", kind=FaultKind.LEFT_OUT)]
        return rejections

    def _put_in_place(self) -> list[Rejection]:
        """Give all copies their names; return why files are left out, if so."""
        rejections = []
        while self._synced:
            copy, state, is_synced = self._synced[0]
            is_synced.result()
            path = self._path_of(state.name)
            if reason := self._fault_of(copy, path):
                self._left_out += 1
                rejections.append(Rejection(state.name, 0, reason, kind=FaultKind.CHANGED))
            else:
                self._written += 1
                if state.name not in self._again:
                    self._sums.append(self._done.sum_of(path, state))
            del self._synced[0]
        return rejections

    def _fault_of(self, copy: FileCopy, path: str) -> str:
        """Put a copy in place at a path in the folder; return why this cannot be, or ""."""
        target = self._folder / path
        try:
            if target.parent not in self._targets:
                above = os.path.realpath(target.parent)
                self._targets[target.parent] = os.path.commonpath([above, self._real]) == self._real
                if self._targets[target.parent]:
                    target.parent.mkdir(parents=True, exist_ok=True)
            if not self._targets[target.parent] or path.split("/")[0] in _OWN_NAMES:
                return f"It would be written to {target}, out of the folder or over its journal: rename it."
            copy.put(target)
        except ChangedError:
            return _CHANGED
        except OSError as error:
            self._targets.pop(target.parent, None)
            if error.errno not in _OF_NAMES:
                raise
            return f"It cannot be written to {target} ({error.strerror}): rename it."
        return ""

    def _list_written(self) -> None:
        if self._sums:
            for folder, is_ours in self._targets.items():
                if is_ours:
                    disk.sync_folder(folder)
            self._done.add(self._sums)
        self._sums, self._targets = [], {}

    def end(self) -> list[Rejection]:
        """Put the last file in place; return why it is not, if so."""
        with disk.raise_write_errors(self._folder, _RESUMES):
            rejections = self._end_file() + self._put_in_place()
            self._list_written()
        return rejections

    def close(self) -> None:
        """Remove what is left of a file that is not whole, and list those that are."""
        if self._copy is not None:
            self._copy.close()
        with suppress(OSError):
            self._list_written()
        self._threads.shutdown(cancel_futures=True)
        for copy, *_ in self._synced:
            copy.close()
        shutil.rmtree(self._folder / _TEMPORARY, ignore_errors=True)

    def progress(self, batch: Batch) -> RunProgress:
        """Return the progress of the run after a batch."""
        total = total_size(self._plan.sources)
        return RunProgress(self._counts, batch.read, total, self._counts.records, batch.read, *self._cost())

    def _cost(self) -> tuple[float, int]:
        memory = self._memory | {process_name(): peak_memory() or 0}
        return max(time.monotonic() - self._began, 0.0), sum(memory.values())

    def summary(self) -> WriteBackSummary:
        """Return the counts of the run."""
        formats = self._named + self._found
        return WriteBackSummary(self._counts, self._written, self._before, self._left_out, formats, *self._cost())
