"""The files of a folder, of an archive, or a single file, as bytes; an archive is read in place, never unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from textcat.errors import TextcatError, install_hint

_TAR_NAMES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_LARGEST = 1 << 30  # bytes a file may unpack to: no corpus has one as large, and a small archive may claim any size
_BITE = 1 << 10  # bytes unpacked at a time: by Zstandard they may become 32 MiB
_DEPTH = 2  # zips that are opened inside of each other, below the source: one that holds itself must end
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
}
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
# The last four are what tarfile lets through from headers with absurd numbers.
_ARCHIVE_ERRORS = (*_READ_ERRORS, tarfile.TarError, ValueError, OverflowError, MemoryError, RecursionError)
_ZIP_ERRORS = (*_ARCHIVE_ERRORS, zipfile.BadZipFile, RuntimeError)  # RuntimeError: an unknown way to compress


class DamagedError(TextcatError):
    """A file or archive that is cut off, changed, or not what its name says."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(f"{path} is damaged or incomplete ({reason}): delete it, then fetch or copy it again.")


class Member(NamedTuple):
    """One file of a source.

    Parameters
    ----------
    source : Path
        The folder, archive or file it was read from.
    name : str
        Its path inside the source, with ``/`` and without a final ``.gz`` or ``.zst``.
    data : bytes
        Its content, uncompressed.
    """

    source: Path
    name: str
    data: bytes

    def __str__(self) -> str:
        """Say where it lies, for messages."""
        return f"{self.name} in {self.source}" if self.source.name != self.name else str(self.source)

    def text(self, encoding: str) -> str:
        """Decode the content.

        Raises
        ------
        TextcatError
            If the content is not in that encoding, or there is no such encoding.
        """
        try:
            return self.data.decode(encoding)
        except UnicodeDecodeError as error:
            raise TextcatError(
                f"{self} is not {encoding} (byte {error.start}): set the reader's encoding, for example to 'latin-1'."
            ) from None
        except LookupError:
            raise TextcatError(f"There is no encoding {encoding!r}: use for example 'utf-8' or 'latin-1'.") from None


def members(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Member]:
    """Read the files of a folder, of an archive (zip; tar: plain, gz, xz, bz2), or the one file itself.

    Hidden files are passed over, and a ``.gz`` or ``.zst`` file is read uncompressed. A zip that is not itself wanted
    is opened, and what it holds has names such as ``19960820.zip/2286newsML.xml``; so is a zip in that zip, but none
    in that.

    Parameters
    ----------
    path : Path
    wanted : callable
        Takes a member's name; only files for which it is true are read.

    Yields
    ------
    Member
        Sorted by name in a folder, in stored order from an archive.

    Raises
    ------
    DamagedError
        If a file or archive is cut off or changed, or claims to hold a file of more than 1 GiB.
    TextcatError
        If `path` is missing, or an archive holds a link, a device, a path that leads out of it, or an encrypted file.
    """
    if not path.exists():
        raise TextcatError(f"{path} does not exist: check the path.")
    if path.is_dir():
        yield from _folder_members(path, wanted)
    elif path.name.lower().endswith(_TAR_NAMES):
        yield from _tar_members(path, wanted)
    elif path.name.lower().endswith(".zip"):
        yield from _zip_members(path, "", path, wanted)
    elif wanted(_plain(path.name)):
        yield Member(path, _plain(path.name), _content(path))


def names(path: Path) -> list[str]:
    """List the names `members` asks about, those of zips too, without keeping any content."""
    found: list[str] = []

    def note(name: str) -> bool:
        found.append(name)
        return False

    for _ in members(path, note):
        pass
    return found


def _plain(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".zst")


def hidden(name: str) -> bool:
    """Tell whether a path inside a source has a part that starts with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def _content(path: Path) -> bytes:
    try:
        return _unpacked(path.name, path.read_bytes())
    except _READ_ERRORS as error:
        raise DamagedError(path, error) from None


def _unpacked(name: str, data: bytes) -> bytes:
    if not name.endswith((".gz", ".zst")):
        return data
    unpacked = bytearray()
    for piece in _gzip_pieces(data) if name.endswith(".gz") else _zstandard_pieces(name, data):
        unpacked += piece
        _check_size(name, len(unpacked))
    return bytes(unpacked)


def _gzip_pieces(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        while piece := stream.read(1 << 20):
            yield piece


def _zstandard_pieces(name: str, data: bytes) -> Iterator[bytes]:
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise TextcatError(f"{name} is compressed by Zstandard: run `{install_hint('zst')}` to read it.") from None
    place = 0
    try:
        while place < len(data):
            # Not the library's own stream, for which a frame that is cut off just ends.
            frame = zstandard.ZstdDecompressor().decompressobj()
            while not frame.eof:
                if place >= len(data):
                    raise EOFError(f"{name} is cut off")
                yield frame.decompress(data[place : place + _BITE])
                place += _BITE
            place = min(place, len(data)) - len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from None


def _folder_members(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    for name, path in files:
        if hidden(name):
            continue
        if wanted(_plain(name)):
            yield Member(folder, _plain(name), _content(path))
        elif name.lower().endswith(".zip"):
            yield from _zip_members(folder, name, path, wanted, depth=1)


class StrictTarInfo(tarfile.TarInfo):
    """Refuse what tarfile takes for the end of the archive: a header that is not one, and no end marker at all."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> StrictTarInfo:
        """Read a header as tarfile does, but raise ReadError where that would take it for the end."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None


def _tar_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    try:
        with (
            _uncompressed(path) as stream,
            tarfile.open(fileobj=stream, mode="r:", tarinfo=StrictTarInfo) as archive,
        ):
            for entry in archive:
                name = _safe_name(path, entry.name)
                if not (entry.isdir() or entry.isreg()):
                    _refuse(path, entry.name, "a link or device")
                if entry.isreg() and not hidden(name):
                    yield from _entry_members(path, name, partial(_tar_content, archive, entry), wanted)
                archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory
            while stream.read(1 << 16):  # the checksum of a compressed stream is compared only at its very end
                pass
    except _ARCHIVE_ERRORS as error:
        raise DamagedError(path, error) from None


def _uncompressed(path: Path) -> IO[bytes]:
    # By content: servers and browsers unpack downloads and keep the name.
    with path.open("rb") as file:
        start = file.read(6)
    return next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), open)(path, "rb")


def _tar_content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    _check_size(entry.name, entry.size)
    content = archive.extractfile(entry)
    assert content is not None  # the entry is a regular file
    data = content.read()
    if len(data) != entry.size:
        raise EOFError(f"{entry.name} is cut off")
    return data


def _zip_members(
    source: Path, name: str, file: Path | io.BytesIO, wanted: Callable[[str], bool], depth: int = 0
) -> Iterator[Member]:
    """Read a zip: the source itself if `name` is "", else a file of that name in the source."""
    path, where = (source / name, "") if source.is_dir() else (source, f"{name}: " if name else "")
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                inside = _safe_name(path, entry.filename)
                if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    _refuse(path, entry.filename, "a link or device")
                if not entry.is_dir() and not hidden(inside):
                    full = f"{name}/{inside}" if name else inside
                    yield from _entry_members(source, full, partial(_zip_content, path, archive, entry), wanted, depth)
    except _ZIP_ERRORS as error:
        raise DamagedError(path, f"{where}{error}") from None


def _zip_content(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    _check_size(entry.filename, entry.file_size)  # zipfile reads no more than that
    if entry.flag_bits & 1:
        _refuse(path, entry.filename, "an encrypted file")
    return archive.read(entry)


def _entry_members(
    source: Path, name: str, read: Callable[[], bytes], wanted: Callable[[str], bool], depth: int = 0
) -> Iterator[Member]:
    """Yield the one member a file of an archive is, or those it holds if it is a zip."""
    if wanted(_plain(name)):
        yield Member(source, _plain(name), _unpacked(name, read()))
    elif name.lower().endswith(".zip") and depth < _DEPTH:
        # In memory: a zip is read from its end, to which no other archive can go fast.
        yield from _zip_members(source, name, io.BytesIO(read()), wanted, depth + 1)


def safe_name(name: str) -> str:
    """Give a path inside an archive without what says nothing, such as ``./``; "" if it leads out of the archive."""
    parts = re.split(r"[/\\]", name)
    if not parts[0] or ".." in parts or parts[0].endswith(":"):
        return ""
    return "/".join(part for part in parts if part not in ("", ".")) or "."


def _safe_name(path: Path, name: str) -> str:
    return safe_name(name) or _refuse(path, name, "a path that leads out of the archive")


def _check_size(name: str, n_bytes: int) -> None:
    if n_bytes > _LARGEST:
        raise OSError(f"{name} unpacks to more than {_LARGEST} bytes")


def _refuse(path: Path, name: str, what: str) -> NoReturn:
    raise TextcatError(f"{path} holds {what} ({name!r}), so nothing of it is read: get it from its source again.")
