"""URLs, by fsspec → the files there, what is known of them, and their bytes."""

from __future__ import annotations

import errno
import hashlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from textcat.errors import TextcatError
from textcat.reading.containers import Entry
from textcat.reading.members import hidden
from textcat.reading.streams import Stream, of_file, unreadable

# What file systems call that which changes when a file does.
_STATES = frozenset(
    {"checksum", "created", "etag", "last_modified", "lastmodified", "md5", "modified", "mtime", "updated", "version"}
)


class Remote(NamedTuple):
    """What a URL names.

    Parameters
    ----------
    name : str
        Its URL.
    system : object
        The file system of fsspec.
    path : str
        The path in there.
    info : dict
        What the system knows of it: "size" and other things.
    files : tuple of Remote
        The files below it, sorted, if it is a folder; their names are paths inside of it.
    is_folder : bool
    """

    name: str
    system: Any
    path: str
    info: dict[str, Any]
    files: tuple[Remote, ...] = ()
    is_folder: bool = False

    @property
    def size(self) -> int | None:
        """Its bytes, None if nobody knows."""
        if self.is_folder:
            return sum(file.size or 0 for file in self.files)
        size = self.info.get("size")
        return size if isinstance(size, int) else None

    @property
    def state(self) -> str:
        """What changes when it does, as far as the system tells."""
        if self.is_folder:
            known: list[Any] = [(file.name, file.size, file.state) for file in self.files]
        else:
            known = sorted((key, str(value)) for key, value in self.info.items() if key.lower() in _STATES)
        return hashlib.sha256(repr(known).encode("utf-8", "replace")).hexdigest()

    def open(self) -> Stream:
        """Give its bytes.

        Raises
        ------
        UnreadableError
            If it cannot be opened.
        """
        try:
            if _gives_ranges(self.system, self.path):
                return of_file(_Errors(self.system.open(self.path, "rb")))
            return of_file(_Errors(self.system.open(self.path, "rb", block_size=0), seekable=False))
        except Exception as error:  # every system has its own
            raise unreadable(_as_oserror(error)) from None

    def entries(self) -> Iterator[Entry]:
        """Yield the files of a folder."""
        for index, file in enumerate(self.files):
            yield Entry(index, file.name, file.open, size=file.size or 0)


def is_url(text: str) -> bool:
    """Tell whether an input is a URL, rather than a path."""
    return "://" in text or "::" in text


def find_remote(url: str) -> list[Remote]:
    """Give what a URL names; with a ``*`` in it, the files that fit, sorted.

    Raises
    ------
    TextcatError
        If there is no such file, or a package is missing that such URLs need.
    """
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url)
        system.invalidate_cache()  # what it listed before may have changed
        if "*" not in url:
            return [_named(url, system, path)]
        paths = sorted(system.glob(path))
    except FileNotFoundError:
        raise TextcatError(f"{url} does not exist: check the address.") from None
    except ImportError as error:
        raise TextcatError(f"{url} needs another package: {str(error).rstrip('.')}.") from None
    except Exception as error:  # every system has its own
        raise TextcatError(f"{url} cannot be read ({error}): check the address, and your rights there.") from None
    if not paths:
        raise TextcatError(f"No file fits {url}: check the pattern.")
    return [_named(system.unstrip_protocol(path), system, path) for path in paths]


def _named(url: str, system: Any, path: str) -> Remote:
    info = system.info(path)
    if info.get("type") != "directory":
        return Remote(url, system, path, info)
    found = system.find(path, detail=True)
    inside = {name[len(path) :].lstrip("/"): (name, about) for name, about in found.items()}
    files = (Remote(name, system, *inside[name]) for name in sorted(inside) if not hidden(name))
    return Remote(url.rstrip("/"), system, path, info, tuple(files), is_folder=True)


def _gives_ranges(system: Any, path: str) -> bool:
    """Tell whether a file can be sought in; there are web servers that give files only as a whole."""
    if "http" not in system.protocol:
        return True
    with system.open(path, "rb", block_size=1) as file:
        try:
            file.seek(1)
            file.read(1)
        except ValueError:
            return False
    return True


def _as_oserror(error: BaseException) -> OSError:
    if isinstance(error, OSError) and error.strerror:
        return error
    return OSError(errno.EIO, f"{type(error).__name__}: {error}")


class _Errors(io.RawIOBase):
    """A file whose errors are all OSErrors, and that says itself whether it can be sought in, or is told."""

    def __init__(self, file: Any, *, seekable: bool = True) -> None:
        self._file, self._sought = file, seekable

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._sought and bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place: int = self._file.seek(offset, whence)
        return place

    def tell(self) -> int:
        place: int = self._file.tell()
        return place

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # every system has its own
            raise _as_oserror(error) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
