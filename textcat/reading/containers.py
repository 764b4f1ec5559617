"""List the files in folders, zips and tars one by one; for files that must not be read, give the reason."""

import errno
import hashlib
import io
import os
import posixpath
import re
import stat
import tarfile
import tempfile
import zipfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

from textcat.base.paths import paths_above
from textcat.base.surrogates import decode_surrogates
from textcat.reading.changes import FileMark, FolderMarks
from textcat.reading.compression import check_ratio
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.maildir import is_bookkeeping, is_maildir, placed
from textcat.reading.streams import (
    IN_MEMORY_BYTES,
    READ_ERRORS,
    STEP,
    ByteStream,
    StoredBytes,
    file_stream,
    seekable_file,
    unreadable,
)

#: Bytes of XML in a compressed tar that are copied, so that files in it can refer to each other.
MOST_COPIED = 1 << 30
MOST_LOOKED_UP = 1 << 17  # texts of a tar, and files that may be XML, which its files refer to: memory stays bounded
_TEXT = re.compile(r"\.te?xt(?:\.\w+)?\Z", re.IGNORECASE)  # texts, beside which other files list their subjects
_MAYBE_XML = re.compile(r"\.(?:xml|alto|mets)(?:\.\w+)?\Z|(?:\A|/)[^./]+\Z", re.IGNORECASE)
_LONGEST_HEADER = 1 << 20  # bytes of a tar's extended header, which tarfile reads whole
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def hidden(name: str) -> bool:
    """Return whether a path inside a source is hidden: a file or folder on it has a name that starts with a dot.

    The folders of a Maildir are not hidden.
    """
    if "/cur/" in name or "/new/" in name:
        name = placed(name)
    return name.startswith(".") or "/." in name


def _safe_name(name: str) -> str:
    """Return a path inside an archive without parts such as ``./``; "" if the path leads out of the archive."""
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ".." in parts or parts[0].endswith(":"):
        return ""
    return "/".join(part for part in parts if part not in ("", ".")) or "."


def _unsafe(safe_name: str, name: str, is_file: bool, encrypted: bool = False) -> UnreadableError | None:
    """Return the error that says why a file in an archive must not be read; None if it may be read.

    `name` is the file's path as the archive has it, and `safe_name` is what `_safe_name` made of it.
    """
    if not safe_name:
        fault, what = (
            "has a path that leads out of the archive, so it is not read",
            "a path that leads out of the archive",
        )
    elif not is_file:
        fault, what = "is a link or a device, so it is not read", "a link or device"
    elif encrypted:
        fault, what = "is encrypted: unpack the archive first", "an encrypted file"
    else:
        return None
    return UnreadableError(fault, FaultKind.UNSAFE, f"{what} ({name!r})")


class Neighbours(NamedTuple):
    """Open files of a folder or an archive by their paths in it, in any order, for files that refer to others."""

    names: Callable[[str], Iterator[str]]  # takes the path of a folder, "" for the outermost; yields names of its files
    #: Takes the path of a folder, and the path of a file from there on, which must not lead out of the folder; opens
    #: the file, or raises UnreadableError.
    open: Callable[[str, str], ByteStream]
    is_remote: bool = False  # opening a file takes long


def listed_neighbours(files: Callable[[], Iterable[tuple[str, Callable[[], ByteStream]]]]) -> Neighbours:
    """Return the `Neighbours` of files that `files` lists: for each file its path, and a function that opens it.

    `files` is called at the first look-up.
    """

    @cache
    def by_folder() -> dict[str, dict[str, Callable[[], ByteStream]]]:
        openers: dict[str, dict[str, Callable[[], ByteStream]]] = defaultdict(dict)
        for path, opened in files():
            inside, _, name = path.rpartition("/")
            openers[inside][name] = opened
        return dict(openers)

    def open_listed(inside: str, name: str) -> ByteStream:
        inside, _, name = posixpath.join(inside, name).rpartition("/")
        opened = by_folder().get(inside, {}).get(name)
        if opened is None:
            raise missing_file()
        return opened()

    return Neighbours(lambda inside: iter(sorted(by_folder().get(inside, ()))), open_listed)


def missing_file() -> UnreadableError:
    """Return the error for a missing file to which another file refers."""
    return UnreadableError("is missing: put it where the METS file says", FaultKind.ACCESS)


class ContainerEntry(NamedTuple):
    """A file in a folder or archive."""

    number: int  # counted from 0; hidden files, for which there is no entry, may be counted, too
    name: str  # its path inside the folder or archive, with "/"; "": `fault` concerns the archive itself
    open: Callable[[], ByteStream] = ByteStream  # opens it; in an archive, only until the next entry is requested
    fault: UnreadableError | None = None  # the reason why it must not be opened
    size: int = 0  # size in bytes, in a folder
    read: int = -1  # in a zip, the bytes of the zip consumed after the file was read; otherwise -1
    neighbours: Neighbours | None = None  # access to files around it; None if they cannot be looked up


class MemberNames:
    """Assign a unique name to each file of an archive, although several files may have the same path.

    The first file with a path keeps it. The next one gets ``#2/`` in front, a further one ``#3/``, and so on. A file at
    a path that was a folder before, or below a path that was a file before, is treated as a repeated path, because its
    name could coincide with that of a file inside an archive there.
    """

    def __init__(self) -> None:
        # An open-addressing hash table of eight bytes per entry, because an archive may have millions of files.
        self._table, self._n = array("Q", bytes(8 << 8)), 0
        self._counts: dict[str, int] = {}  # number of files with the same path, for repeated paths

    def unique(self, path: str) -> str:
        """Return a unique name for the next file of the archive, given its path."""
        name, count = path, self._counts.get(path, 1)
        while self._is_taken(name):
            count += 1
            name = f"#{count}/{path}"
        if count > 1:
            self._counts[path] = count
        self._add(name)
        for above in islice(paths_above(name), 1, None):
            if not self._add(f"{above}/"):
                break  # its parent folders are used, too
        return name

    def _is_taken(self, name: str) -> bool:
        return any(map(self._has, (f"{name}/", *paths_above(name))))

    def _has(self, name: str) -> bool:
        digest, i = self._place(name)
        return self._table[i] == digest

    def _add(self, name: str) -> bool:
        """Add a name; return whether it is new."""
        digest, i = self._place(name)
        if self._table[i] == digest:
            return False
        self._table[i] = digest
        self._n += 1
        if 3 * self._n > 2 * len(self._table):
            before, self._table = self._table, array("Q", bytes(16 * len(self._table)))
            for digest in filter(None, before):
                self._table[self._index(digest)] = digest
        return True

    def _place(self, name: str) -> tuple[int, int]:
        text = name.encode("utf-8", "surrogatepass")
        digest = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1
        return digest, self._index(digest)

    def _index(self, digest: int) -> int:
        """Return the position of a digest in the table, or the free position for it."""
        table = self._table
        i = digest % len(table)
        while table[i] and table[i] != digest:
            i = (i + 1) % len(table)
        return i


class _FolderFile(NamedTuple):
    """A file of a folder, or a folder that cannot be listed."""

    name: str  # its path inside the folder; "": it is the folder itself
    path: str  # its path on disk
    status: os.stat_result | None = None  # None if it must not be read
    fault: UnreadableError | None = None  # the reason why it must not be read


def walk(folder: str) -> Iterator[_FolderFile]:
    """Yield the files of a folder and its subfolders, sorted by path; hidden files and folders are left out."""
    waiting = [("", folder, True)]  # stack: the next one is last
    while waiting:
        name, path, is_folder = waiting.pop()
        if not is_folder:
            yield _met(name, path)
            continue
        try:
            with os.scandir(path) as listing:
                entries = [(entry, entry.is_dir(follow_symlinks=False)) for entry in listing]
        except OSError as error:
            fault = UnreadableError(f"cannot be listed ({error.strerror})", FaultKind.UNLISTED)
            yield _FolderFile(name, path, fault=fault)
            continue
        if is_maildir({entry.name for entry, is_folder in entries if is_folder}):
            entries = [pair for pair in entries if not is_bookkeeping(pair[0].name)]
            entries = [pair for pair in entries if not hidden(pair[0].name) or _has_mail(pair[0].path)]
        else:
            entries = [pair for pair in entries if not hidden(pair[0].name)]
        # Sorting folders with their slash gives the order of whole paths.
        entries.sort(key=lambda entry: f"{entry[0].name}/" if entry[1] else entry[0].name, reverse=True)
        above = f"{name}/" if name else ""
        waiting += [(above + entry.name, entry.path, is_folder) for entry, is_folder in entries]


def _has_mail(folder: str) -> bool:
    return os.path.isdir(os.path.join(folder, "cur")) and os.path.isdir(os.path.join(folder, "new"))


def files_in(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the status of each file of a folder that can be read."""
    for item in walk(folder):
        if item.status:
            yield item.name, item.status


def _met(name: str, path: str) -> _FolderFile:
    try:
        status = os.stat(path)
    except OSError as error:
        kind = FaultKind.DANGLING if error.errno in (errno.ENOENT, errno.ELOOP) else FaultKind.ACCESS
        return _FolderFile(name, path, fault=UnreadableError(f"cannot be read ({error.strerror})", kind))
    if stat.S_ISREG(status.st_mode):
        return _FolderFile(name, path, status)
    if stat.S_ISDIR(status.st_mode):
        fault = "is a link to a folder, which is not followed: name the folder as an input, too"
    else:
        fault = "is a device, a pipe or a socket, so it is not read"
    return _FolderFile(name, path, fault=UnreadableError(fault, FaultKind.LINK))


def folder_entries(folder: str, marks: FolderMarks, faults: Mapping[str, UnreadableError]) -> Iterator[ContainerEntry]:
    """Yield the files of a folder and its subfolders, sorted by path.

    `marks` describes the files as they were when the folder was found, and `faults` has, by their paths in the folder,
    those that must not be read. Files that were added later are left out, unless the folder has very many files.
    """
    neighbours = folder_neighbours(folder)
    for number, state in enumerate(marks.states):
        opened = partial(open_file, os.path.join(folder, state.name), marks.find(state.name))
        name, size = decode_surrogates(state.name), max(state.size, 0)
        yield ContainerEntry(number, name, opened, faults.get(state.name), size, neighbours=neighbours)
    for number, item in enumerate(() if marks.is_whole else walk(folder)):
        mark = item.status and FileMark(item.status.st_size, item.status.st_mtime_ns, item.status.st_ino)
        opened, size = partial(open_file, item.path, mark), mark.size if mark else 0
        yield ContainerEntry(number, decode_surrogates(item.name), opened, item.fault, size, neighbours=neighbours)


def folder_neighbours(folder: str) -> Neighbours:
    """Return the `Neighbours` of the files in a folder on disk; links out of the folder are not followed."""
    return Neighbours(partial(_names_in, folder), partial(_open_inside, folder))


def _names_in(folder: str, inside: str) -> Iterator[str]:
    try:
        with os.scandir(os.path.join(folder, inside)) as listing:
            yield from sorted(entry.name for entry in listing if not hidden(entry.name) and entry.is_file())
    except (OSError, ValueError):
        return  # the error is reported where the folder is walked


def _open_inside(folder: str, inside: str, name: str) -> ByteStream:
    try:
        os.stat(os.path.join(folder, inside, name))  # a METS file may name many missing files
        root = os.path.realpath(os.path.join(folder, inside))
        path = os.path.realpath(os.path.join(root, name))
        if os.path.commonpath([root, path]) != root:
            raise UnreadableError(
                "is a link that leads out of the METS file's folder, so it is not read: copy it there"
            )
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UnreadableError("is no file, so it is not read: put the file there")
    except FileNotFoundError:
        raise missing_file() from None
    except READ_ERRORS as error:
        raise unreadable(error) from None
    return open_file(path)


def open_file(path: str, mark: FileMark | None = None) -> ByteStream:
    """Open a file on disk; raise UnreadableError if this fails.

    `mark` describes the file as it was when it was found.
    """
    try:
        return file_stream(open(path, "rb", buffering=0), mark)
    except OSError as error:
        raise unreadable(error) from None


def zip_entries(stream: ByteStream) -> Iterator[ContainerEntry]:
    """Yield the files of a zip; raise UnreadableError if it is damaged or a decompression bomb."""
    file, whole = seekable_file(stream)
    try:
        with zipfile.ZipFile(file) as archive:
            check_ratio(sum(entry.file_size for entry in archive.filelist), file.seek(0, os.SEEK_END))
            total, done = sum(entry.compress_size for entry in archive.filelist) or 1, 0
            neighbours = listed_neighbours(partial(_files_of_zip, archive))
            # in the order of the list; the files may be stored in another order
            for index, entry in enumerate(archive.filelist):
                start, done = done, done + entry.compress_size
                part = StoredBytes(whole.at(start / total), whole.at(done / total))
                name = _safe_name(entry.filename)
                is_file = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
                if fault := _unsafe(name, entry.filename, is_file, bool(entry.flag_bits & 1)):
                    yield ContainerEntry(index, decode_surrogates(entry.filename), fault=fault, read=part.end)
                elif not entry.is_dir() and not hidden(name):
                    opened = partial(_open_zipped, archive, entry, part)
                    yield ContainerEntry(index, decode_surrogates(name), opened, read=part.end, neighbours=neighbours)
            # The declared count, which zipfile ignores, and which some programs truncate.
            end: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]
            if (end[4] - len(archive.filelist)) % (1 << 16):
                raise zipfile.BadZipFile(f"it counts {end[4]} files, but lists {len(archive.filelist)}")
    except READ_ERRORS as error:
        raise unreadable(error) from None


def _files_of_zip(archive: zipfile.ZipFile) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
    for entry in archive.filelist:
        name = _safe_name(entry.filename)
        is_file = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG) and not entry.is_dir()
        if is_file and name and not hidden(name) and not entry.flag_bits & 1:
            yield decode_surrogates(name), partial(_open_zipped, archive, entry, StoredBytes(0, 0))


def _open_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, part: StoredBytes) -> ByteStream:
    check_ratio(entry.file_size, entry.compress_size)  # not more than the header declares is read
    try:
        content: Any = archive.open(entry)
    except READ_ERRORS as error:
        raise unreadable(error) from None
    # zipfile unpacks without limit, except for the usual compression method.
    step = STEP if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) else 1
    # zipfile reads ahead, so its position in the file says little.
    size = max(entry.file_size, 1)
    return ByteStream(lambda n: content.read1(step), lambda: part.at(content.tell() / size), close=content.close)


class _TarInfo(tarfile.TarInfo):
    """Read headers of a tar; raise ReadError for an invalid header, and for one that would take much memory.

    tarfile itself would treat an invalid header as the end of the archive.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_TarInfo":
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except (tarfile.EmptyHeaderError, tarfile.TruncatedHeaderError):  # type: ignore[attr-defined]
            raise tarfile.ReadError("it ends without its end mark") from None
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
        if info.type in _EXTENDED and info.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {info.size} bytes")
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a file with holes")
        return info

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError("a file with holes")


def tar_entries(stream: ByteStream, reopen: Callable[[], ByteStream] | None = None) -> Iterator[ContainerEntry]:
    """Yield the files of an uncompressed tar; raise UnreadableError if the tar is damaged.

    `reopen` opens the same tar once more, so that its files can be looked up by path; None: this is not possible.
    """
    neighbours = None if reopen is None else listed_neighbours(partial(_files_of_tar, reopen))
    file: Any = _TarFile(stream)
    try:
        with tarfile.TarFile(fileobj=file, tarinfo=_TarInfo) as archive:
            index = 0
            while (info := archive.next()) is not None:
                name = _safe_name(info.name)
                fault = _unsafe(name, info.name, info.isdir() or info.isreg())
                if fault is None and info.issparse():
                    fault = UnreadableError("is a sparse file: pack it without --sparse")
                if fault is not None:
                    yield ContainerEntry(index, decode_surrogates(info.name), fault=fault)
                elif info.isreg() and not hidden(name):
                    opened = partial(file.part, info.size, stream.consumed)
                    yield ContainerEntry(index, decode_surrogates(name), opened, neighbours=neighbours)
                index += 1
                archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory
            if file.has_more():
                fault = UnreadableError("continues after its end mark, which is not read: split it into separate tars")
                yield ContainerEntry(index, "", fault=fault)
    except READ_ERRORS as error:
        raise unreadable(error) from None


def _files_of_tar(reopen: Callable[[], ByteStream]) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
    """Yield the files that are texts or may be XML of a tar, which `reopen` opens; end where the tar is damaged.

    Files of a compressed tar are copied to a temporary file, up to a limit.
    """
    with suppress(UnreadableError, *READ_ERRORS):
        stream = reopen()
        files = _copied(stream) if stream.file is None else _sought(stream.file)
        counts = Counter[bool]()
        for name, opened in files:
            counts[may_be_xml := bool(_MAYBE_XML.search(name))] += 1
            if counts[may_be_xml] <= MOST_LOOKED_UP:
                yield name, opened


def _sought(stored: Any) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
    file: Any = io.BufferedReader(stored) if isinstance(stored, io.RawIOBase) else stored
    with tarfile.TarFile(fileobj=file, tarinfo=_TarInfo) as archive:
        while (info := archive.next()) is not None:
            name = _safe_name(info.name)
            is_wanted = _MAYBE_XML.search(name) or _TEXT.search(name)
            if is_wanted and info.isreg() and not info.issparse() and not hidden(name):
                yield decode_surrogates(name), partial(_slice, file, info.offset_data, info.size)
            archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory


def _copied(stream: ByteStream) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
    copies, start = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES), 0  # noqa: SIM115  # it goes with its users
    for entry in tar_entries(stream):
        if entry.fault is None and _TEXT.search(entry.name):
            yield entry.name, _no_text
        if entry.fault is not None or not _MAYBE_XML.search(entry.name):
            continue
        part, size = entry.open(), 0
        while start + size < MOST_COPIED and (data := part.read(STEP)):
            size += copies.write(data)
        is_whole = start + size < MOST_COPIED
        yield entry.name, partial(_slice, copies, start, size) if is_whole else _too_far_behind
        start += size


def _no_text() -> ByteStream:
    raise UnreadableError("is a text, not XML: correct the METS file that names it")


def _too_far_behind() -> ByteStream:
    raise UnreadableError(f"lies behind {MOST_COPIED:,} bytes of XML in a compressed tar: unpack it, or make it a zip")


def _slice(file: Any, start: int, size: int) -> ByteStream:
    place = start

    def take(n: int) -> bytes:
        nonlocal place
        file.seek(place)
        data: bytes = file.read(min(n, start + size - place))
        if not data and place < start + size:
            raise tarfile.ReadError("unexpected end of data")
        place += len(data)
        return data

    return ByteStream(take)


class _TarFile:
    """Wrap a stream as a file for tarfile; it seeks forwards only."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._data, self._place, self._offset = stream, b"", 0, 0

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> None:
        if offset < self._offset:
            raise tarfile.StreamError("seeking backwards is not allowed")
        while self._offset < offset and self._some(offset - self._offset):
            pass

    def read(self, n: int) -> bytes:
        data = self._some(n)
        while len(data) < n and (piece := self._some(n - len(data))):
            data += piece
        return data

    def part(self, size: int, consumed: Callable[[], int]) -> ByteStream:
        """Return a stream of the next `size` bytes of the uncompressed tar: the content of one of its files.

        `consumed` returns how many bytes of the file on disk, which may be compressed, have been used.
        """
        end = self._offset + size

        def take(n: int) -> bytes:
            data = self._some(min(n, end - self._offset)) if self._offset < end else b""
            if not data and self._offset < end:
                raise tarfile.ReadError("unexpected end of data")
            return data

        return ByteStream(take, consumed)

    def has_more(self) -> bool:
        """Read to the end, which checks the checksum of a compressed tar; return whether any byte read was not zero."""
        has_data = False
        while data := self._some(STEP):
            has_data = has_data or bool(data.strip(b"\0"))
        return has_data

    def _some(self, n: int) -> bytes:
        """Read 1 to `n` bytes; return b"" at the end."""
        if self._place == len(self._data):
            self._data, self._place = self._stream.read(STEP), 0
        data = self._data[self._place : self._place + n]
        self._place += len(data)
        self._offset += len(data)
        return data
