"""Read all files of an input, including those in archives, and divide each file into blocks of whole records."""

import errno
import logging
import os
import posixpath
from collections.abc import Callable, Iterator, Set
from contextlib import closing
from functools import partial
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

from textcat.reading.compression import plain_name, unpacked_stream
from textcat.reading.containers import ContainerEntry, MemberNames, Neighbours, tar_entries, zip_entries
from textcat.reading.cutting import Place, Step, file_steps, mets_steps
from textcat.reading.decoding import as_utf8
from textcat.reading.faults import FaultKind, UnreadableError, shrunk_error
from textcat.reading.formats import annif
from textcat.reading.input_settings import InputSettings
from textcat.reading.recognition import ARCHIVES, format_of, is_archive, named_format
from textcat.reading.records import Block, log_left_out, reject_or_raise
from textcat.reading.scans import AltoOwners
from textcat.reading.sources import Source, path_inside
from textcat.reading.streams import STEP, ByteStream, unreadable

Wanted: TypeAlias = Callable[[str], object]  # see `read_documents`
Opened: TypeAlias = Callable[[str, ByteStream], ByteStream | None]

log = logging.getLogger(__name__)

_DEPTH = 3  # maximum nesting of archives: an archive that contains itself must end


class _Texts(NamedTuple):
    """The texts in a folder, by their names without ``.txt``."""

    neighbours: Neighbours
    folder: str
    stems: Set[str]


class SourceReader:
    """Read all files of one source, and cut each file into blocks."""

    def __init__(
        self,
        source: Source,
        settings: InputSettings,
        wanted: Wanted | None = None,
        opened: Opened | None = None,
        sums: dict[str, str] | None = None,
    ) -> None:
        self._source, self._settings, self._wanted, self._opened = source, settings, wanted, opened
        self._sums = sums  # checksums of files on disk that were read whole, by name; None: not wanted
        self.on_disk = source.name  # the file being read, itself or as an archive
        self._owners: dict[int, AltoOwners] = {}  # by depth of nested archives
        self._warned = False  # whether it has warned that ALTO files are parts of METS files
        self._texts: _Texts | None = None
        # subjects listed in files beside texts, by the texts' names without .txt
        self.subjects: dict[str, tuple[str, ...]] = {}

    def steps(self, position: Place) -> Iterator[Step]:
        """Yield the source's blocks of records and Rejections from a position on, each with the place after it."""
        source = self._source
        if source.kind == "folder":
            return self._folder(position)
        return self._file(source.name, source, position, 0, source.format)

    def _folder(self, position: Place) -> Iterator[Step]:
        source, size, read, files, seen = self._source, 0, 0, 0, set[str]()

        def entries() -> Iterator[ContainerEntry]:
            nonlocal size, files
            for entry in source.entries():
                size, files = size + entry.size, files + (entry.fault is None)
                if source.states:  # a folder of very many files has none
                    seen.add(entry.name)
                yield entry

        for step in self._entries(entries(), source.name, position, 0, lambda: 0):
            yield step
            read = step.read
        if source.size is None:
            return
        missing_files = [state.name for state in source.states or () if state.size >= 0 and state.name not in seen]
        for name in missing_files:  # by its name, so that its rejection goes when it has come back, or is gone for good
            absent = unreadable(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
            yield Step(reject_or_raise(self._settings, absent, path_inside(source.name, name)), None, read)
        if not missing_files and size < source.size:
            gone = source.files - files
            what = f"{gone} of its {source.files} files are" if gone > 0 else "a part of its files is"
            fault, missing = shrunk_error(source.size, size, what), source.size - size
            yield Step(
                reject_or_raise(self._settings, fault, source.name, length=missing, subject="The folder"), None, read
            )

    def inside(self, name: str) -> str:
        """Return the path of a file inside the source, without the extension of a compression such as ".gz"."""
        above = self._source.name
        if name == above:
            return plain_name(PurePath(name).name)
        return plain_name(name if above == "." else name[len(above) :].lstrip("/"))

    def _file(
        self, name: str, entry: Source | ContainerEntry, position: Place, depth: int, form: str = ""
    ) -> Iterator[Step]:
        """Yield blocks of a file's records and Rejections of its unreadable parts, each with the place after it.

        `entry` opens the file, and `depth` counts the archives around it. If `form` is "", the file's name or content
        tells its format.
        """
        self.on_disk = name if depth == 0 else self.on_disk
        if self._settings.for_file(name).skip:
            return
        fault = entry.fault if isinstance(entry, ContainerEntry) else None
        if (
            fault is None
            and self._wanted is not None
            and self._is_document(name)
            and not self._wanted(self.inside(name))
        ):
            return
        try:
            if fault is not None:
                raise UnreadableError(*fault.args)  # a new exception, because the original keeps its frames alive
            with closing(entry.open()) as stored:
                if depth == 0 and self._sums is not None:
                    stored.sum_up()
                try:
                    yield from self._opened_file(form, stored, name, entry, position, depth)
                except UnreadableError:  # of a file that is rejected, too: it may be renamed later
                    if depth == 0:
                        self._take_sum(name, stored)
                    raise
        except UnreadableError as error:
            if self._settings.labels is not None and error.kind in (FaultKind.LINK, FaultKind.DANGLING):
                log.warning("%s %s.", name, error)
            elif self._settings.labels is not None and error.kind is FaultKind.LEFT_OUT:
                log_left_out(name, f"The file {error}.")
            else:
                yield Step(reject_or_raise(self._settings, error, name), None, 0)

    def _is_document(self, name: str) -> bool:
        """Return whether a file belongs to a corpus, and is no archive."""
        return self._settings.labels is not None and not is_archive(name)

    def _opened_file(
        self, form: str, stored: ByteStream, name: str, entry: Source | ContainerEntry, position: Place, depth: int
    ) -> Iterator[Step]:
        """Yield the blocks and Rejections of an opened file, as `_file` does."""
        unpacked = unpacked_stream(stored, name)
        opened = self._opened if self._is_document(name) else None
        stream = unpacked if opened is None else opened(self.inside(name), unpacked)
        if stream is None:
            return
        settings = self._settings.for_file(name)
        form = format_of(stream, name, settings, form, partial(self._is_beside_text, entry))
        for step in self._file_of(form, stream, name, entry, position, depth):
            # With the last step, not after it: a reader that stops there has the checksum of the completed file.
            is_last = step.after is None or step.read >= (entry.size or 0)
            if depth == 0 and is_last and form not in ARCHIVES:
                self._take_sum(name, stored)
            yield step
        if depth == 0:
            self._take_sum(name, stored)

    def _file_of(
        self,
        form: str,
        stream: ByteStream,
        name: str,
        entry: Source | ContainerEntry,
        position: Place,
        depth: int,
    ) -> Iterator[Step]:
        """Yield a file's blocks and Rejections as `_file` does, given its format and its unpacked stream."""
        inside, settings = name if self._settings.labels is None else self.inside(name), self._settings.for_file(name)
        model = Block(inside, form, b"")
        if form in ARCHIVES:
            if depth == _DEPTH:
                raise UnreadableError("is nested in too many archives: unpack the outer ones")
            is_reopened = depth == 0 and self._source.kind != "pipe"
            reopen = (lambda: unpacked_stream(entry.open(), name)) if is_reopened else None
            entries = zip_entries(stream) if form == "zip" else tar_entries(stream, reopen)
            yield from self._entries(entries, name, position, depth + 1, stream.consumed)
        elif form == annif.SUBJECTS:
            self._take_subjects(inside, stream)
        elif form == "mets":
            yield from mets_steps(stream, model, settings, position, entry)
        elif form != "alto" or not self._is_part_of_mets(name, entry, depth):
            if form in ("tsv", "annif") and not stream.peek(1):
                self.subjects.setdefault(annif.stem_of_name(inside), ())  # perhaps of a text without subjects
            yield from file_steps(stream, model, settings, position, name)

    def _is_part_of_mets(self, name: str, entry: Source | ContainerEntry, depth: int) -> bool:
        """Return whether an ALTO file is read as a part of a METS file in the same folder or archive."""
        if not isinstance(entry, ContainerEntry) or entry.neighbours is None:
            return False
        owners = self._owners.get(depth)
        if owners is None or owners.neighbours is not entry.neighbours:
            owners = self._owners[depth] = AltoOwners(entry.neighbours, name[: len(name) - len(entry.name)])
        owner = owners.owner(entry.name, self._settings)
        if owner and not self._warned:
            self._warned = True
            source = self._source.name
            log.warning("%s: the ALTO files of METS files, such as %s, are read as parts of these only.", source, owner)
        return bool(owner)

    def _take_sum(self, name: str, stored: ByteStream) -> None:
        if self._sums is not None and name not in self._sums and (sum_ := stored.checksum()):
            self._sums[name] = sum_

    def _is_beside_text(self, entry: Source | ContainerEntry) -> bool:
        """Return whether a file of a folder or an archive lies beside a text of the same name.

        Of a file alone, and in a corpus, this is not asked, and in a tar that is read once it cannot be told: True.
        """
        if self._settings.labels is not None or not isinstance(entry, ContainerEntry) or entry.neighbours is None:
            return True
        folder, name = posixpath.split(entry.name)
        if self._texts is None or self._texts.neighbours is not entry.neighbours or self._texts.folder != folder:
            names = (text for text in entry.neighbours.names(folder) if named_format(text) == "text")
            stems = frozenset(annif.stem_of_name(plain_name(text)) for text in names)
            self._texts = _Texts(entry.neighbours, folder, stems)
        return annif.stem_of_name(plain_name(name)) in self._texts.stems

    def _take_subjects(self, name: str, stream: ByteStream) -> None:
        """Store the subjects (topics) that a file lists for the text next to it, if the settings ask for labels.

        UnreadableError is raised if the source is this file alone, without the text.
        """
        if self._source.kind != "folder" and self._source.format not in ARCHIVES:
            raise UnreadableError("lists the subjects of a text: name the folder that holds both, or the text")
        if self._settings.labels is not None:
            decoded = as_utf8(stream, self._settings.encoding)
            encoding, stream = "" if decoded else self._settings.encoding, decoded or stream
            data, stem = b"".join(iter(lambda: stream.read(STEP), b"")), annif.stem_of_name(name)
            if posixpath.basename(name) == annif.CATEGORIES:
                self.subjects |= annif.read_categories(name, data, encoding)
                return
            subjects = annif.read_subjects(name, data, encoding)
            if stem not in self.subjects or name.lower().endswith(".tsv"):  # takes precedence over a .key, as in Annif
                self.subjects[stem] = subjects

    def _entries(
        self, entries: Iterator[ContainerEntry], name: str, position: Place, depth: int, consumed: Callable[[], int]
    ) -> Iterator[Step]:
        """Yield blocks of records and Rejections of the files of a folder or an archive, beginning at a position.

        `depth` counts the archives around the files, and `consumed` returns how many bytes of the source have been
        used.
        """
        first, base = position.path[0] if position.path else 0, position.base
        within = Place(position.offset, position.position, 0, position.path[1:])
        # In a corpus, names give topics and ids, and two documents with the same id are refused.
        names = MemberNames() if depth and self._settings.labels is None else None
        while True:
            try:
                entry = next(entries, None)
            except UnreadableError as fault:
                subject = "The archive, or the rest of it,"
                yield Step(reject_or_raise(self._settings, fault, name, subject=subject), None, consumed())
                return
            if entry is None:
                return
            inside = names.unique(entry.name) if names is not None and entry.name else entry.name
            if entry.number < first:
                continue
            # Joined by +, because posixpath.join would drop the archive's name if the path in it is "/etc/passwd".
            path = posixpath.join("" if name == "." else name, "") + inside if inside else name
            for item, after, read in self._file(path, entry, within if entry.number == first else Place(), depth):
                if after:
                    yield Step(item, after._replace(base=base, path=(entry.number, *after.path)), base + read)
                else:
                    behind = Place(0, 0, base + entry.size, (entry.number + 1,))
                    read = entry.read if entry.read >= 0 else consumed()
                    yield Step(item, behind, behind.base or read)
            base += entry.size
