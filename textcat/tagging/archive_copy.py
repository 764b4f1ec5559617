"""Copy a zip or a tar with changes in some of its files; all else, names and times and order, stays as it was."""

import io
import pickle
import shutil
import struct
import tempfile
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from textcat.reading import (
    STEP,
    ByteStream,
    FileState,
    TarMember,
    UnreadableError,
    of_file,
    sought_in,
    tar_members,
)
from textcat.tagging.concepts import Edit
from textcat.tagging.file_copy import ChangedError, Copy, EditedStream, Repacked

_IN_MEMORY = 16 << 20  # bytes of what is kept of a file in an archive, until it is known to be whole
_BLOCK = 512  # bytes of a tar, of which it has a whole number for each of its files
_LOCAL = struct.Struct("<4s22xHH")  # the start of a file in a zip: a mark, and the lengths of its name and its extras
_UTF8_NAME, _HAS_SUMS_BEHIND = 0x800, 8  # flags of a file in a zip
_SUMS = (struct.Struct("<4sLLL"), struct.Struct("<4sLQQ"), struct.Struct("<LLL"), struct.Struct("<LQQ"))
_ZIP64 = 1


class UncopiedError(Exception):
    """Report an archive that cannot be written again, with the reason as a sentence."""


class ArchiveCopy(Copy):
    """Copy an archive to a temporary file, with changes in some of its files; see `Copy`.

    The changes of a file are kept until those of the next file come, as a file that is broken stays as it was.
    UncopiedError is raised, besides ChangedError, if the archive is made in a way that cannot be written.
    """

    is_edited = False

    def __init__(self, state: FileState, temporary: Path) -> None:
        super().__init__(state, temporary)
        self._number, self._edits = -1, _kept()  # of the file whose changes were taken last
        self._encoding: str | None = None

    def apply(self, number: int, edits: Sequence[Edit], encoding: str | None) -> None:
        """Take some changes of a file of the archive, given its number, after those of the files before it."""
        if number != self._number:
            self._end_member()
            self._number, self._encoding = number, encoding
        pickle.dump([tuple(edit) for edit in edits], self._edits)

    def leave_out(self) -> None:
        """Drop the changes of the file whose changes were taken last."""
        self._number = -1
        self._edits.close()
        self._edits = _kept()

    def _end_member(self) -> None:
        if self._number >= 0:
            self.is_edited = True
            self._write_member(self._number)
        self.leave_out()

    def _edited(self, stored: ByteStream) -> IO[bytes]:
        """Return a temporary file with the content of a file of the archive, changed, from its start on."""
        file = _kept()
        repacked = Repacked(stored, "", file)
        edited = EditedStream(repacked.stream, repacked.write, self._encoding)
        self._edits.seek(0)
        while (edits := _loaded(self._edits)) is not None:
            edited.apply(edits)
        edited.finish()
        repacked.close()
        file.seek(0)
        return file

    def finish(self) -> None:
        """Copy the rest of the archive."""
        self._end_member()
        self._write_rest()
        super().finish()

    @abstractmethod
    def _write_member(self, number: int) -> None:
        """Copy all up to a file, and this file with its changes."""

    @abstractmethod
    def _write_rest(self) -> None:
        """Copy what is left of the archive."""


def _kept() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # it goes when nothing refers to it


def _loaded(file: IO[bytes]) -> list[Edit] | None:
    try:
        return [Edit(*edit) for edit in pickle.load(file)]  # of this process
    except EOFError:
        return None


# --- tar --------------------------------------------------------------------------------------------------------------


class TarCopy(ArchiveCopy):
    """Copy a tar, which is read once; see `ArchiveCopy`."""

    def __init__(self, state: FileState, temporary: Path) -> None:
        super().__init__(state, temporary)
        self._members = enumerate(tar_members(self.repacked.stream, self._pass))
        self._n_direct = self._n_left_out = 0  # bytes that come next: to copy at once, or not to copy
        self._headers = b""  # of the next file

    def _pass(self, data: bytes) -> None:
        """Take the next bytes of the tar."""
        n = min(self._n_left_out, len(data))
        self._n_left_out, data = self._n_left_out - n, data[n:]
        n = min(self._n_direct, len(data))
        self.repacked.write(data[:n])
        self._n_direct -= n
        self._headers += data[n:]

    def _write_member(self, number: int) -> None:
        for i, member in self._checked_members():
            size = -(-member.size // _BLOCK) * _BLOCK
            if i < number:
                self._copy_headers(size)
                continue
            if member.is_size_elsewhere:
                raise UncopiedError("It has a file whose size is not in its header: pack it anew, without such files.")
            self._n_left_out = size
            with self._edited(member.open()) as file:
                n = file.seek(0, io.SEEK_END)
                file.seek(0)
                self.repacked.write(_resized(self._headers, n))
                self._headers = b""
                shutil.copyfileobj(file, _Sink(self.repacked.write), STEP)
                self.repacked.write(bytes(-n % _BLOCK))
            return
        raise ChangedError

    def _checked_members(self) -> Iterator[tuple[int, TarMember]]:
        try:
            yield from self._members
        except UnreadableError as error:
            raise ChangedError from error

    def _copy_headers(self, n_direct: int) -> None:
        self.repacked.write(self._headers)
        self._headers, self._n_direct = b"", n_direct

    def _write_rest(self) -> None:
        for _, member in self._checked_members():
            self._copy_headers(-(-member.size // _BLOCK) * _BLOCK)
        self._copy_headers(0)


def _resized(headers: bytes, size: int) -> bytes:
    """Return the headers of a file in a tar, the last of which has its size, with another size."""
    before, header = headers[:-_BLOCK], bytearray(headers[-_BLOCK:])
    # Octal digits and an end, or a number of eleven bytes, as GNU's tar has it.
    fits = size < 8**11 and not header[124] & 0x80
    header[124:136] = b"%011o%c" % (size, header[135]) if fits else b"\x80" + size.to_bytes(11, "big")
    if fits and header[135] not in b" \0":
        header[135] = 0
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return before + bytes(header)


# --- zip --------------------------------------------------------------------------------------------------------------


class _Sink:
    """Be a file for zipfile that can only be written to."""

    def __init__(self, write: Any) -> None:
        self.write = write

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is whole."""


class _Entry(zipfile.ZipInfo):
    """Hold what a zip lists of a file, with the bytes of its name as they are stored."""

    def __init__(self, info: zipfile.ZipInfo) -> None:
        super().__init__()
        for name in zipfile.ZipInfo.__slots__:
            if hasattr(info, name):
                setattr(self, name, getattr(info, name))
        self._named = info.flag_bits & _UTF8_NAME
        self._stored_name = info.orig_filename.encode("utf-8" if self._named else "cp437")

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # zipfile asks for it
        return self._stored_name, self.flag_bits & ~_UTF8_NAME | self._named


class ZipCopy(ArchiveCopy):
    """Copy a zip, whose other files are copied as they are packed; see `ArchiveCopy`."""

    def __init__(self, state: FileState, temporary: Path) -> None:
        super().__init__(state, temporary)
        try:
            self._origin = sought_in(self.repacked.stream)[0]
            self._zip = zipfile.ZipFile(self._origin)
        except (UnreadableError, zipfile.BadZipFile, OSError) as error:
            raise ChangedError from error
        self._entries, self._done = self._zip.filelist, 0
        size = self._origin.seek(0, io.SEEK_END)
        if sum(entry.compress_size for entry in self._entries) > size:
            raise UncopiedError("It has files that overlap: pack it anew.")
        self._new: Any = zipfile.ZipFile(_Sink(self.repacked.write), "w")  # type: ignore[call-overload]
        self._new.comment = self._zip.comment
        self._copy(self._origin, 0, min((entry.header_offset for entry in self._entries), default=0))

    def _write_member(self, number: int) -> None:
        self._copy_entries(number)
        entry, extra = _Entry(self._entries[number]), self._local_extra(self._entries[number])
        attributes, listed_extra, size = entry.external_attr, entry.extra, 0
        with self._zip.open(self._entries[number]) as stored:
            content = self._edited(of_file(stored))
        with content, _kept() as packed:
            with zipfile.ZipFile(packed, "w") as single:
                entry.file_size, entry.extra = content.seek(0, io.SEEK_END), _without_sizes(extra)
                content.seek(0)
                with single.open(entry, "w") as file:
                    shutil.copyfileobj(content, file, STEP)
                size = single.start_dir
            entry.external_attr, entry.extra = attributes, _without_sizes(listed_extra)
            self._add(entry, packed, 0, size)
        self._done = number + 1

    def _write_rest(self) -> None:
        self._copy_entries(len(self._entries))
        self._new.start_dir = self._new.fp.tell()
        self._new.close()

    def _copy_entries(self, end: int) -> None:
        for info in self._entries[self._done : end]:
            self._add(_Entry(info), self._origin, info.header_offset, self._stored_size(info))
        self._done = end

    def _add(self, entry: _Entry, file: IO[bytes], start: int, size: int) -> None:
        """Add a file, given where all that belongs to it stands in a zip."""
        entry.header_offset = self._new.fp.tell()
        self._copy(file, start, size)
        self._new.filelist.append(entry)

    def _copy(self, file: IO[bytes], start: int, size: int) -> None:
        file.seek(start)
        while size > 0:
            data = file.read(min(size, STEP))
            if not data:
                raise UncopiedError("It has a file that is cut off: get it again.")
            self._new.fp.write(data)
            size -= len(data)

    def _lengths(self, info: zipfile.ZipInfo) -> tuple[int, int]:
        """Return the lengths of the name and of the extras in front of a file."""
        self._origin.seek(info.header_offset)
        head = self._origin.read(_LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(b"PK\x03\x04"):
            raise UncopiedError(f"It has no file where it lists {info.filename!r}: get it again.")
        _, name, extra = _LOCAL.unpack(head)
        return name, extra

    def _local_extra(self, info: zipfile.ZipInfo) -> bytes:
        name, extra = self._lengths(info)
        self._origin.seek(info.header_offset + _LOCAL.size + name)
        return self._origin.read(extra)

    def _stored_size(self, info: zipfile.ZipInfo) -> int:
        """Return how many bytes a file takes in the zip, with what stands before and behind it."""
        size = _LOCAL.size + sum(self._lengths(info)) + info.compress_size
        if info.flag_bits & _HAS_SUMS_BEHIND:
            self._origin.seek(info.header_offset + size)
            behind = self._origin.read(_SUMS[1].size)
            sums = (info.CRC, info.compress_size, info.file_size)
            for form in _SUMS:
                if len(behind) >= form.size and form.unpack(behind[: form.size])[-3:] == sums:
                    return size + form.size
        return size

    def close(self) -> None:
        """Close the files; the temporary one stays."""
        self._zip.close()
        super().close()


def _without_sizes(extra: bytes) -> bytes:
    """Return the extras of a file in a zip without the one of sizes, which zipfile adds where it is needed."""
    kept, place = b"", 0
    while place + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, place)
        kept += b"" if kind == _ZIP64 else extra[place : place + 4 + size]
        place += 4 + size
    return kept + extra[place:]
