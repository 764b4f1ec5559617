"""The files of a folder, of an archive, or a single file, as bytes; an archive is read in place, never unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from textcat.errors import TextcatError

_TAR_NAMES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
}
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
# The last four are what tarfile lets through from headers with absurd numbers.
_ARCHIVE_ERRORS = (*_READ_ERRORS, tarfile.TarError, ValueError, OverflowError, MemoryError, RecursionError)


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
        Its path inside the source, with ``/`` and without a final ``.gz``.
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


def is_archive(path: Path) -> bool:
    """Tell by its name whether a path is a tar archive."""
    return path.name.lower().endswith(_TAR_NAMES)


def members(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Member]:
    """Read the files of a folder, of a tar archive (plain, gz, xz, bz2), or the one file itself.

    Hidden files are passed over, and a ``.gz`` file in a folder is read uncompressed.

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
        If a file or archive is cut off or changed.
    TextcatError
        If `path` is missing, or an archive holds a link, a device, or a path that leads out of it.
    """
    if not path.exists():
        raise TextcatError(f"{path} does not exist: check the path.")
    if path.is_dir():
        yield from _folder_members(path, wanted)
    elif is_archive(path):
        yield from _archive_members(path, wanted)
    elif wanted(_plain(path.name)):
        yield Member(path, _plain(path.name), _content(path))


def names(path: Path) -> list[str]:
    """List the names `members` would yield, without keeping any content."""
    found: list[str] = []

    def note(name: str) -> bool:
        found.append(name)
        return False

    for _ in members(path, note):
        pass
    return found


def _plain(name: str) -> str:
    return name.removesuffix(".gz")


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except _READ_ERRORS as error:
        raise DamagedError(path, error) from None


def _folder_members(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    for name, path in files:
        if not _hidden(name) and wanted(_plain(name)):
            yield Member(folder, _plain(name), _content(path))


class _StrictTarInfo(tarfile.TarInfo):
    """Refuse what tarfile takes for the end of the archive: a header that is not one, and no end marker at all."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictTarInfo:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None


def _archive_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    try:
        with (
            _uncompressed(path) as stream,
            tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictTarInfo) as archive,
        ):
            for entry in archive:
                name = _safe_name(path, entry)
                if name is not None and not _hidden(name) and wanted(_plain(name)):
                    content = archive.extractfile(entry)
                    assert content is not None  # _safe_name lets only regular files through
                    yield Member(path, _plain(name), _whole(content.read(), entry))
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


def _whole(data: bytes, entry: tarfile.TarInfo) -> bytes:
    if len(data) != entry.size:
        raise EOFError(f"{entry.name} is cut off")
    return data


def _safe_name(path: Path, entry: tarfile.TarInfo) -> str | None:
    """Return the name of a regular file, None for a folder."""
    parts = re.split(r"[/\\]", entry.name)
    if not parts[0] or ".." in parts or parts[0].endswith(":"):
        _refuse(path, entry, "a path that leads out of the archive")
    if entry.isdir():
        return None
    if not entry.isreg():
        _refuse(path, entry, "a link or device")
    return "/".join(part for part in parts if part not in ("", "."))


def _refuse(path: Path, entry: tarfile.TarInfo, what: str) -> NoReturn:
    raise TextcatError(f"{path} holds {what} ({entry.name!r}), so nothing of it is read: get it from its source again.")
