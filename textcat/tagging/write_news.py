"""Write edited copies of news files; a copy gets its name when it is complete on disk.

`Fate` lists the reasons why a copy is not written.
"""

from collections import deque
from collections.abc import Iterable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum, auto
from typing import NamedTuple

from textcat.base import disk
from textcat.reading import FaultKind, FileState, Rejection
from textcat.tagging.edit_news import EditedBlock
from textcat.tagging.file_copy import ChangedError, FileCopy
from textcat.tagging.news_folder import RESUMES, NewsFolder

_THREADS = 16  # threads that wait for the disk, which is the slowest part
_MOST_OPEN = 128  # maximum number of files that wait for the disk
_CHANGED = "It has changed while it was read, so it is left out: give the same command again."
_NO_PLACE = "It is {}, which has no place for tags."
_NO_NEWS = "It has no news item that could be tagged."
_REMOVED = "It is not written, so its earlier copy {} is removed."


class Fate(Enum):
    """What can become of a news file: a copy with tags is written, or the reason why not."""

    WRITTEN = auto()
    NO_PLACE = auto()  # its format has no place for tags
    NO_NEWS = auto()  # none of its items was tagged
    BROKEN = auto()  # part of it cannot be read, or its items cannot be told apart
    CHANGED = auto()  # it changed after its items were read
    NO_NAME = auto()  # the folder cannot hold a file with its name


# fates of files that were read, and have no copy with tags
_WITHOUT_COPY = (Fate.NO_PLACE, Fate.NO_NEWS, Fate.BROKEN)


class Outcome(NamedTuple):
    """What became of a file (see `Fate`), with the Rejection that reports it, unless it was reported before."""

    fate: Fate
    format: str = ""  # the format of a file without a place for tags
    rejection: Rejection | None = None
    copied: str = ""  # the reason why the file was copied unchanged; "": it was not


class EditedFile:
    """Write an edited copy of one file while its edits arrive by block (some whole records of the file)."""

    def __init__(self, name: str, state: FileState | None) -> None:
        self.name, self._state = name, state  # None: the file was not there in its listed state
        self._fate, self._format, self._reason = Fate.NO_NEWS, "", ""
        self.is_due = self.is_unread = False
        self.copy: FileCopy | None = None

    def take(self, block: EditedBlock, folder: NewsFolder) -> None:
        """Apply the edits of the file's next block to its copy in the output folder, unless the file has changed."""
        self._reason = self._reason or block.reason
        self.is_due |= block.is_due
        self.is_unread |= block.is_unread
        if self._fate is Fate.CHANGED:
            return
        if block.is_broken:
            self._fate = Fate.BROKEN
        elif self._fate is Fate.NO_NEWS and block.lacks_place:
            self._fate, self._format = Fate.NO_PLACE, block.lacks_place
        elif self._fate is Fate.NO_NEWS and block.documents:
            self._fate = Fate.WRITTEN
        if self._fate is Fate.WRITTEN:
            try:
                self.copy = self.copy or self._open_copy(block, folder)
                self.copy.apply(block.edits)
            except ChangedError:
                self._fate = Fate.CHANGED

    def _open_copy(self, block: EditedBlock, folder: NewsFolder) -> FileCopy:
        if self._state is None:
            raise ChangedError
        return FileCopy(self._state, folder.temporary(), block.encoding)

    def finish(self, folder: NewsFolder, *, copies_rest: bool) -> Outcome:
        """Copy the rest of the file, and return the outcome; close the copy if it is not to be kept.

        With `copies_rest`, a file that was read, and has no copy with tags, is copied unchanged.
        """
        if self.copy is not None and self._fate is Fate.WRITTEN:
            try:
                self.copy.finish()
            except ChangedError:
                self._fate = Fate.CHANGED
        if self.copy is not None and self._fate is not Fate.WRITTEN:
            self.copy.close()
        copied = ""
        if copies_rest and self._state is not None and self._fate in _WITHOUT_COPY:
            copied = self._copy_unchanged(self._state, folder)
        return Outcome(self._fate, self._format, None if copied else self._rejection(), copied)

    def _copy_unchanged(self, state: FileState, folder: NewsFolder) -> str:
        """Copy the file unchanged; return the reason why it has no tags, or "" if it cannot be copied.

        A broken file must be written again later, because it may be completed.
        """
        try:
            self.copy = FileCopy(state, folder.temporary(), is_stored=True)
            self.copy.finish()
        except ChangedError:
            if self.copy is not None:
                self.copy.close()
            self._fate = self._fate if self.is_unread else Fate.CHANGED
            return ""
        self.is_due |= self._fate is Fate.BROKEN
        return self._reason or (_NO_PLACE.format(self._format) if self._format else _NO_NEWS)

    def _rejection(self) -> Rejection | None:
        if self._fate is Fate.CHANGED:
            return Rejection(self.name, 0, _CHANGED, kind=FaultKind.CHANGED)
        if self._fate in (Fate.NO_NEWS, Fate.BROKEN) and not self._reason:
            return Rejection(self.name, 0, _NO_NEWS, kind=FaultKind.LEFT_OUT)
        return None


class NewsWriter:
    """Write edited copies of files into a folder, one file after the other, while blocks of edits arrive.

    `states` has the listed size and time of each file that is being read. `to_copy`, if given, has files that are not
    read, each with its format: these, and files without tags, are copied unchanged.
    """

    def __init__(
        self,
        folder: NewsFolder,
        states: MutableMapping[str, FileState],
        to_copy: deque[tuple[FileState, str]] | None,
    ) -> None:
        self._folder, self._states, self._to_copy = folder, states, to_copy
        self._file: EditedFile | None = None  # whose last block may not have arrived yet
        # Complete copies, whether they must be written again, and the outcomes of their files.
        self._waiting: list[tuple[FileCopy, bool, Future[None], Outcome]] = []
        self._threads = ThreadPoolExecutor(_THREADS)

    def write(self, blocks: Iterable[EditedBlock]) -> list[Outcome]:
        """Edit files block by block, and return the outcome of each file that is complete.

        A file is complete once a block of another file follows. The last file stays open: see `finish`.
        """
        outcomes: list[Outcome] = []
        with disk.raise_write_errors(self._folder.folder, RESUMES):
            for block in blocks:
                if self._file is None or block.source != self._file.name:
                    outcomes += self._finish_file()
                    self._file = EditedFile(block.source, self._states.pop(block.source, None))
                self._file.take(block, self._folder)
            outcomes += self._copy_unread() + self._put_in_place()
            self._folder.list_files()
        return outcomes

    def finish(self) -> list[Outcome]:
        """Complete the last file; return its outcome in a list, which is empty if there is no file."""
        with disk.raise_write_errors(self._folder.folder, RESUMES):
            outcomes = self._finish_file() + self._copy_unread()
            for name in sorted(self._states):  # files without any record, because they are empty
                if self._to_copy is not None or self._folder.has_copy(name):
                    self._file = EditedFile(name, self._states.pop(name))
                    outcomes += self._finish_file()
            outcomes += self._put_in_place()
            self._folder.list_files()
        return outcomes

    def close(self) -> None:
        """Close all files, and delete unfinished copies, which have not got their final names."""
        self._threads.shutdown(cancel_futures=True)
        if self._file is not None and self._file.copy is not None:
            self._file.copy.close()
        for copy, *_ in self._waiting:
            copy.close()

    def _finish_file(self) -> list[Outcome]:
        if self._file is None:
            return []
        file, self._file = self._file, None
        outcome = file.finish(self._folder, copies_rest=self._to_copy is not None)
        is_removable = outcome.fate in _WITHOUT_COPY and not (outcome.copied or file.is_unread)
        if is_removable and (removed := self._folder.remove(file.name)):
            reason = _REMOVED.format(removed)
            outcome = outcome._replace(rejection=Rejection(file.name, 0, reason, kind=FaultKind.LEFT_OUT))
        if file.copy is None or not (outcome.copied or outcome.fate is Fate.WRITTEN):
            return [outcome]
        return self._wait_for(file.copy, outcome, is_due=file.is_due)

    def _wait_for(self, copy: FileCopy, outcome: Outcome, *, is_due: bool) -> list[Outcome]:
        """Sync a complete copy in a thread; return the outcomes of files that have their final names by now."""
        self._waiting.append((copy, is_due, self._threads.submit(copy.sync), outcome))
        return self._put_in_place() if len(self._waiting) >= _MOST_OPEN else []

    def _copy_unread(self) -> list[Outcome]:
        """Copy the files that are not read; return the outcomes of files that have their final names by now."""
        outcomes: list[Outcome] = []
        while self._to_copy:
            state, form = self._to_copy.popleft()
            try:
                copy = FileCopy(state, self._folder.temporary(), is_stored=True)
                copy.finish()
            except ChangedError:
                rejection = Rejection(state.name, 0, _CHANGED, kind=FaultKind.CHANGED)
                outcomes.append(Outcome(Fate.CHANGED, rejection=rejection))
                continue
            outcomes += self._wait_for(copy, Outcome(Fate.NO_PLACE, form, copied=_NO_PLACE.format(form)), is_due=False)
        return outcomes

    def _put_in_place(self) -> list[Outcome]:
        """Move all complete copies to their final names, and return the outcomes of their files."""
        outcomes = []
        self._folder.forget(copy.state for copy, *_ in self._waiting)
        while self._waiting:
            copy, is_due, is_synced, outcome = self._waiting[0]
            is_synced.result()
            try:
                reason = self._folder.put(copy, is_listed=not is_due)
                fate = Fate.NO_NAME if reason else outcome.fate
            except ChangedError:
                reason, fate = _CHANGED, Fate.CHANGED
            if reason:
                rejection = Rejection(copy.state.name, 0, reason, kind=FaultKind.CHANGED)
                outcome = Outcome(fate, rejection=rejection)
            outcomes.append(outcome)
            del self._waiting[0]
        return outcomes
