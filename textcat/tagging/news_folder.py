"""Keep the folder that `--write-back` writes: copies of input files, each put in place atomically, and a journal."""

import errno
import hashlib
import json
import os
import shutil
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.reading import FileState
from textcat.tagging.file_copy import FileCopy

RESUMES = "fix that, and the same command resumes the run"
_JOURNAL, _LOCK, _TEMPORARY = _NAMES = (".write-back.jsonl", ".write-back.lock", ".write-back.part")
_OWN_NAMES = frozenset({*_NAMES, _JOURNAL + UNFINISHED})
_FEW = len(_OWN_NAMES) + 1
_MARK, _FORMAT = "textcat write-back", 1
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
        # eight bytes per file, because there may be millions
        self._listed = array("Q", sorted(self._read_journal(restart)))
        self._n_copies = 0
        self._new = array("Q")  # files that are in place, but not in the journal yet
        self._targets: dict[Path, bool] = {}  # their folders, and whether files may be written there

    def _read_journal(self, restart: bool) -> "array[int]":
        """Return the checksums of the files in the journal; begin the journal anew if it belongs to another run."""
        path, sums = self.folder / _JOURNAL, array("Q")
        header = {_MARK: _FORMAT, "run": self._key.hex()}
        journal = read_journal(path)
        if journal is not None and journal.lines and _MARK not in journal.lines[0]:
            raise TextcatError(f"{path} is not a journal of textcat: name another folder.")
        if journal is not None and journal.lines[:1] == [header] and not (journal.damaged or restart):
            disk.truncate_file(path, journal.length)
            for line in journal.lines[1:]:
                sums.frombytes(bytes.fromhex(line["done"]))
        else:
            with disk.replacing(path, path.with_name(_JOURNAL + UNFINISHED)) as file:
                disk.write_all(file, journal_line(header))
        return sums

    def has(self, state: FileState) -> bool:
        """Return whether the copy of an input file was made from its present state, and still exists."""
        path, sum_ = self._path_of(state.name), self._sum_of(state)
        i = bisect_left(self._listed, sum_)
        is_listed = i < len(self._listed) and self._listed[i] == sum_
        return is_listed and os.path.lexists(os.path.join(self.folder, path))

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
            return f"It cannot be written to {target} ({error.strerror}): rename it."
        if is_listed:
            self._new.append(self._sum_of(copy.state))
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
        if self._new:
            with closing(disk.reopen(self.folder / _JOURNAL)) as file:
                disk.write_all(file, journal_line({"done": self._new.tobytes().hex()}))
                disk.sync(file)
        self._new, self._targets = array("Q"), {}

    def _may_hold(self, folder: Path) -> bool:
        """Return whether a folder is this one or inside it, with links resolved; if so, create it if it is missing."""
        if folder not in self._targets:
            self._targets[folder] = os.path.commonpath([os.path.realpath(folder), self._real]) == self._real
            if self._targets[folder]:
                folder.mkdir(parents=True, exist_ok=True)
        return self._targets[folder]

    def _path_of(self, name: str) -> str:
        return os.path.relpath(os.path.abspath(name), self._base)

    def _sum_of(self, state: FileState) -> int:
        text = f"{self._path_of(state.name)}\0{state.size}\0{state.state}".encode("utf-8", "surrogateescape")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self._key).digest(), sys.byteorder)
