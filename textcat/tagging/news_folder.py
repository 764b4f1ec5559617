"""Keep the folder that `--write-back` writes: copies of input files, each put in place atomically, and a journal."""

import errno
import hashlib
import json
import logging
import os
import shutil
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.reading import FileState
from textcat.tagging.file_copy import FileCopy

log = logging.getLogger(__name__)

RESUMES = "fix that, and the same command resumes the run"
_JOURNAL, _LOCK, _TEMPORARY = _NAMES = (".write-back.jsonl", ".write-back.lock", ".write-back.part")
_OWN_NAMES = frozenset({*_NAMES, _JOURNAL + UNFINISHED})
_FEW = len(_OWN_NAMES) + 1
_MARK, _FORMAT = "textcat write-back", 2
_NO_STATE = 0  # stands for the state of a file that must be written again
_OF_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EXDEV})


@contextmanager
def open_news_folder(folder: Path, base: str, facts: Mapping[str, Any], *, restart: bool) -> Iterator["NewsFolder"]:
    """Lock the folder of `--write-back`, and yield it; create it if it does not exist.

    TextcatError is raised if another run is writing to the folder, or if it holds other files. A new journal is begun
    if `facts` differ from those of the earlier run, or if `restart` is True.
    """
    with disk.raise_write_errors(folder, RESUMES):
        folder.mkdir(parents=True, exist_ok=True)
        refusal = f"Another run is writing to {folder}: wait until it ends, or name another folder."
        lock = disk.acquire_lock(folder / _LOCK, refusal)
    try:
        with disk.raise_write_errors(folder, RESUMES):
            foreign = sorted({path.name for path in islice(folder.iterdir(), _FEW)} - _OWN_NAMES)
            if foreign and not (folder / _JOURNAL).exists():
                what = f"{folder} holds {foreign[0]!r}, but no journal of --write-back"
                raise TextcatError(f"{what}: name another folder.")
            news = NewsFolder(folder, base, facts, restart)
            shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)  # left by a killed run
            (folder / _TEMPORARY).mkdir()
        try:
            yield news
        finally:
            with suppress(OSError):
                news.list_files()
            shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
    finally:
        lock.release()


class NewsFolder:
    """The folder of written files, and its journal, which lists them with the states of their input files.

    Parameters
    ----------
    folder : Path
        The folder, which exists.
    base : str
        Paths in the folder are the input files' paths relative to this folder.
    facts : dict of JSON values
        The settings that determine the files' content; files written with other settings are dropped from the journal.
    restart : bool
        Begin the journal anew.
    """

    def __init__(self, folder: Path, base: str, facts: Mapping[str, Any], restart: bool) -> None:
        self.folder = folder
        self._base, self._real = base, os.path.realpath(folder)
        self._key = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).digest()
        # Checksums of the sorted paths in the journal, and those of their last states: there may be millions.
        self._listed, self._states = _last_states(self._read_journal(restart))
        self._n_copies = 0
        self._new = array("Q")  # pairs of files that are in place, but not in the journal yet
        self._targets: dict[Path, bool] = {}  # their folders, and whether files may be written there

    def _read_journal(self, restart: bool) -> "array[int]":
        """Return the files in the journal as pairs of checksums; begin the journal anew if it belongs to another run.

        A pair is of the path of a copy, and of the state of its input file.
        """
        path, sums = self.folder / _JOURNAL, array("Q")
        header = {_MARK: _FORMAT, "run": self._key.hex()}
        journal = read_journal(path)
        if journal is not None and journal.lines and _MARK not in journal.lines[0]:
            raise TextcatError(f"{path} is not a journal of textcat: name another folder.")
        lines = [] if journal is None else journal.lines
        former = next((line["base"] for line in reversed(lines) if "base" in line), self._base)
        if former != self._base and os.path.commonpath([former, self._base]) in (former, self._base):
            log.warning(
                "The paths of copies in %s begin at %s now, no longer at %s: earlier copies stay under their former "
                "paths, so that files may be there twice; remove them, or write to another folder.",
                *(self.folder, self._base, former),
            )
        based = journal_line({"base": self._base})
        if journal is not None and lines[:1] == [header] and not (journal.damaged or restart):
            disk.truncate_file(path, journal.length)
            for line in lines[1:]:
                sums.frombytes(bytes.fromhex(line.get("done", "")))
            if former != self._base:
                with closing(disk.reopen(path)) as file:
                    disk.write_all(file, based)
        else:
            with disk.replacing(path, path.with_name(_JOURNAL + UNFINISHED)) as file:
                disk.write_all(file, journal_line(header) + based)
        return sums

    def has(self, state: FileState) -> bool:
        """Return whether the copy of an input file was made from its present state, and still exists."""
        path_sum, state_sum = self._sums_of(state)
        is_listed = self._listed_state(path_sum) == state_sum
        return is_listed and os.path.lexists(os.path.join(self.folder, self._path_of(state.name)))

    def forget(self, states: Iterable[FileState]) -> None:
        """Remove files from the journal, because copies of other states of theirs are about to take the places.

        Otherwise, an input file that is restored to a former state would not be written again.
        """
        pairs = [(self._sums_of(state)[0], _NO_STATE) for state in states]
        self._append_to_journal(array("Q", chain(*(pair for pair in pairs if self._listed_state(pair[0])))))

    def _listed_state(self, path_sum: int) -> int:
        i = bisect_left(self._listed, path_sum)
        return self._states[i] if i < len(self._listed) and self._listed[i] == path_sum else _NO_STATE

    def temporary(self) -> Path:
        """Return the path of a new temporary file, which is deleted at the end of the run unless `put` renames it."""
        self._n_copies += 1
        return self.folder / _TEMPORARY / str(self._n_copies)

    def put(self, copy: FileCopy, *, is_listed: bool) -> str:
        """Rename a synced copy to its place in the folder; return "" or, if that is impossible, the reason.

        If `is_listed`, the next run need not write the file again. ChangedError is raised as by `FileCopy.put`.
        """
        path = self._path_of(copy.state.name)
        target = self.folder / path
        try:
            if path.split("/")[0] in _OWN_NAMES or not self._may_hold(target.parent):
                return f"It would be written to {target}, out of the folder or over its journal: rename it."
            copy.put(target)
        except OSError as error:
            self._targets.pop(target.parent, None)
            if error.errno not in _OF_NAMES:
                raise
            remedy = "rename it" if error.errno == errno.ENAMETOOLONG else "rename it, or remove what is in its way"
            return f"It cannot be written to {target} ({error.strerror}): {remedy}."
        if is_listed:
            self._new.extend(self._sums_of(copy.state))
        return ""

    def remove(self, name: str) -> str:
        """Remove the copy of an earlier state of an input file; return its path, or "" if there is none.

        The next run reads the input file again.
        """
        path = self._path_of(name)
        target = self.folder / path
        is_ours = path.split("/")[0] not in _OWN_NAMES and self.has_copy(name) and self._may_hold(target.parent)
        if is_ours:
            target.unlink()
        return str(target) if is_ours else ""

    def has_copy(self, name: str) -> bool:
        """Return whether there is a copy of an input file, of any of its states."""
        target = self.folder / self._path_of(name)
        return target.is_file() or target.is_symlink()

    def list_files(self) -> None:
        """Sync the folders in which files were put or removed, and then list the new files in the journal."""
        for folder, is_ours in self._targets.items():
            if is_ours:
                disk.sync_folder(folder)
        self._append_to_journal(self._new)
        self._new, self._targets = array("Q"), {}

    def _append_to_journal(self, pairs: "array[int]") -> None:
        if pairs:
            with closing(disk.reopen(self.folder / _JOURNAL)) as file:
                disk.write_all(file, journal_line({"done": pairs.tobytes().hex()}))
                disk.sync(file)

    def _may_hold(self, folder: Path) -> bool:
        """Return whether a folder is this one or inside it, with links resolved; if so, create it if it is missing."""
        if folder not in self._targets:
            self._targets[folder] = os.path.commonpath([os.path.realpath(folder), self._real]) == self._real
            if self._targets[folder]:
                folder.mkdir(parents=True, exist_ok=True)
        return self._targets[folder]

    def _path_of(self, name: str) -> str:
        return os.path.relpath(os.path.abspath(name), self._base)

    def _sums_of(self, state: FileState) -> tuple[int, int]:
        """Return the checksums of the path of a file's copy, and of the file's state, which is not `_NO_STATE`."""
        path = self._path_of(state.name)
        return self._sum_of(path), self._sum_of(f"{path}\0{state.size}\0{state.state}") or 1

    def _sum_of(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, sys.byteorder)


def _last_states(pairs: "array[int]") -> tuple["array[int]", "array[int]"]:
    """Return the paths of pairs, sorted, and the state in the last pair of each, given pairs in the journal's order."""
    import numpy as np

    paths, states = np.frombuffer(pairs, np.uint64).reshape(-1, 2)[::-1].T
    paths, last = np.unique(paths, return_index=True)
    return array("Q", paths.tobytes()), array("Q", states[last].tobytes())
