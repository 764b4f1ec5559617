"""Folders, zips and tars → the files in them, one after the other, and what of them is not to be read, and why."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

from textcat.reading.compression import check_ratio
from textcat.reading.members import StrictTarInfo, hidden, safe_name
from textcat.reading.streams import READ_ERRORS, STEP, Counted, Part, Stream, of_file, shown, sought_in, unreadable

_LONGEST_HEADER = 1 << 20  # bytes of a tar's extended header, which tarfile reads whole
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class Entry(NamedTuple):
    """A file in a folder or archive.

    Parameters
    ----------
    number : int
        Its number in there, from 0. What is not given, such as hidden files, may have numbers, too.
    name : str
        Its path in there, with ``/``; "" for the archive itself, if something is wrong with it.
    open : callable
        Gives its stream, in an archive only until the next entry is asked for; raises UnreadableError.
    fault : str
        Why it is not to be read, as the rest of a sentence; then it is not to be opened.
    size : int
        Bytes it takes up in a folder.
    read : int
        In a zip, how many bytes of the stored file are used up when it has been read; else -1.
    """

    number: int
    name: str
    open: Callable[[], Stream]
    fault: str = ""
    size: int = 0
    read: int = -1


def _refused(index: int, name: str, fault: str, read: int = -1) -> Entry:
    return Entry(index, shown(name), Stream.nothing, fault, read=read)


class Walked(NamedTuple):
    """What is met in a folder: its path inside the folder and on the disk, what it is, or why it is not to be read."""

    name: str
    path: str
    status: os.stat_result | None = None
    fault: str = ""


def walk(folder: str) -> Iterator[Walked]:
    """Yield the files of a folder and of those in it, sorted by their paths, but for hidden ones."""
    waiting = [iter([Walked("", folder)])]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
        elif found.status is None and not found.fault:
            waiting.append(_listed(found))
        else:
            yield found


def _listed(folder: Walked) -> Iterator[Walked]:
    try:
        with os.scandir(folder.path) as found:
            entries = [(entry, entry.is_dir(follow_symlinks=False)) for entry in found if not hidden(entry.name)]
    except OSError as error:
        return iter([folder._replace(fault=f"cannot be listed ({error.strerror})")])
    # A folder is sorted with its slash, which makes the order that of the whole paths.
    entries.sort(key=lambda entry: f"{entry[0].name}/" if entry[1] else entry[0].name)
    above = f"{folder.name}/" if folder.name else ""
    return (
        Walked(above + entry.name, entry.path) if is_folder else _met(above + entry.name, entry)
        for entry, is_folder in entries
    )


def _met(name: str, entry: os.DirEntry[str]) -> Walked:
    try:
        status = entry.stat()
    except OSError as error:
        return Walked(name, entry.path, fault=f"cannot be read ({error.strerror})")
    if stat.S_ISREG(status.st_mode):
        return Walked(name, entry.path, status)
    if stat.S_ISDIR(status.st_mode):
        return Walked(name, entry.path, fault="is a link to a folder and not followed: name it as an input of its own")
    return Walked(name, entry.path, fault="is a device, a pipe or a socket and not read")


def folder_entries(folder: str) -> Iterator[Entry]:
    """Yield the files of a folder."""
    for index, found in enumerate(walk(folder)):
        size = found.status.st_size if found.status else 0
        yield Entry(index, shown(found.name), partial(open_file, found.path), found.fault, size)


def open_file(path: str) -> Stream:
    """Open a file on the disk.

    Raises
    ------
    UnreadableError
        If it cannot be opened.
    """
    try:
        return of_file(open(path, "rb", buffering=0))
    except OSError as error:
        raise unreadable(error) from None


def zip_entries(stream: Stream) -> Iterator[Entry]:
    """Yield the files of a zip.

    Raises
    ------
    UnreadableError
        If it is none, or damaged, or unpacks to many times more than there is.
    """
    file, whole = sought_in(stream)
    try:
        with zipfile.ZipFile(file) as archive:
            check_ratio(sum(entry.file_size for entry in archive.filelist), file.seek(0, os.SEEK_END))
            for index, (entry, part) in enumerate(_parts(archive.filelist, whole)):
                name = safe_name(entry.filename)
                if fault := _zip_fault(name, entry):
                    yield _refused(index, entry.filename, fault, part.end)
                elif not entry.is_dir() and not hidden(name):
                    yield Entry(index, shown(name), partial(_open_zipped, archive, entry, part), read=part.end)
            _check_count(file, len(archive.filelist))
    except READ_ERRORS as error:
        raise unreadable(error) from None


def _parts(entries: list[zipfile.ZipInfo], whole: Part) -> Iterator[tuple[zipfile.ZipInfo, Part]]:
    """Yield the files in the order they are listed, and the part each is of all: they may lie in another order."""
    total = sum(entry.compress_size for entry in entries) or 1
    done = 0
    for entry in entries:
        before, done = done, done + entry.compress_size
        yield entry, whole.between(before / total, done / total)


def _check_count(file: IO[bytes], n: int) -> None:
    """Compare with the zip's own count, which zipfile does not look at, and some write without the higher bits."""
    end: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if (end[4] - n) % (1 << 16):
        raise zipfile.BadZipFile(f"it counts {end[4]} files, but lists {n}")


def _zip_fault(name: str, entry: zipfile.ZipInfo) -> str:
    if not name:
        return "leads out of the archive and is not read"
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device and not read"
    return "is encrypted and not read: unpack the archive first" if entry.flag_bits & 1 else ""


def _open_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, part: Part) -> Stream:
    check_ratio(entry.file_size, entry.compress_size)  # no more is read than the header says
    try:
        content: Any = archive.open(entry)
    except READ_ERRORS as error:
        raise unreadable(error) from None
    # zipfile unpacks what it reads, however much that becomes, but for the way nearly all zips are packed.
    step = STEP if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) else 1
    counted = Counted(lambda n: content.read1(step))
    # zipfile reads ahead, so that its place in the file says little.
    return Stream(counted.take, lambda: part.at(counted.count() / max(entry.file_size, 1)), close=content.close)


class _BoundedTarInfo(StrictTarInfo):
    """Refuse headers that tarfile would need much memory for."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _BoundedTarInfo:
        info = super().frombuf(buf, encoding, errors)
        if info.type in _EXTENDED and info.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {info.size} bytes")
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a file with holes")
        return info  # type: ignore[return-value]  # it is one of this class

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError("a file with holes")


def tar_entries(stream: Stream) -> Iterator[Entry]:
    """Yield the files of a tar that has been uncompressed.

    Raises
    ------
    UnreadableError
        If it is none, or damaged.
    """
    reader: Any = _Reader(stream)
    try:
        with tarfile.open(fileobj=reader, mode="r|", tarinfo=_BoundedTarInfo, bufsize=STEP) as archive:
            index = 0
            while (info := archive.next()) is not None:
                name = safe_name(info.name)
                if fault := _tar_fault(name, info):
                    yield _refused(index, info.name, fault)
                elif info.isreg() and not hidden(name):
                    yield Entry(index, shown(name), partial(_open_tarred, archive, info, stream.consumed))
                index += 1
                archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory
            if _has_more(archive):
                yield _refused(index, "", "goes on behind its end, which is not read: take it apart")
    except READ_ERRORS as error:
        raise unreadable(error) from None


class _Reader:
    """A stream as what tarfile reads from."""

    def __init__(self, stream: Stream) -> None:
        self.read = stream.read


def _tar_fault(name: str, info: tarfile.TarInfo) -> str:
    if not name:
        return "leads out of the archive and is not read"
    if not (info.isdir() or info.isreg()):
        return "is a link or a device and not read"
    return "has holes and is not read" if info.issparse() else ""


def _open_tarred(archive: tarfile.TarFile, info: tarfile.TarInfo, consumed: Callable[[], int]) -> Stream:
    content: Any = archive.extractfile(info)
    return Stream(content.read1, consumed)


def _has_more(archive: tarfile.TarFile) -> bool:
    """Read what stands behind the end, also as the checksum of a compressed tar is compared only there."""
    file: IO[bytes] = archive.fileobj  # type: ignore[assignment]
    more = False
    while data := file.read(STEP):
        more = more or bool(data.strip(b"\0"))
    return more
