"""Find and open files at URLs, with fsspec."""

import errno
import hashlib
import io
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from textcat.base.errors import TextcatError
from textcat.reading.changes import FileState
from textcat.reading.containers import ContainerEntry, Neighbours, hidden, listed_neighbours, missing_file
from textcat.reading.input_settings import InputSettings
from textcat.reading.recognition import guess_format
from textcat.reading.sources import FormatGuess, Source
from textcat.reading.streams import ByteStream, file_stream, unreadable

# Names, in file systems, of properties that change when a file changes.
_STATES = frozenset(
    {"checksum", "created", "etag", "last_modified", "lastmodified", "md5", "modified", "mtime", "updated", "version"}
)
_SILENT = 60.0  # maximum seconds in which a web server must connect or send something


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path in it.

    A file from a web server may take as long as it needs: aiohttp would give up after five minutes. A server that sends
    nothing for a minute is given up.
    """
    from fsspec.config import conf
    from fsspec.core import url_to_fs

    options = {}
    for kind in ("http", "https"):
        if f"{kind}://" in url:
            from aiohttp import ClientTimeout

            timeout = ClientTimeout(total=None, sock_connect=_SILENT, sock_read=_SILENT)
            options[kind] = {"client_kwargs": {"timeout": timeout, **conf.get(kind, {}).get("client_kwargs", {})}}
    system, path = url_to_fs(url, **options)
    if url.startswith("file://") and not system.exists(path):
        path = unquote(path)  # as `Path.as_uri` writes it; fsspec takes it literally
    return system, path


def remote_sources(url: str, settings: InputSettings) -> list[Source]:
    """Return the source that a URL names; for a URL with ``*``, return the files that match it, sorted."""
    try:
        system, path = file_system(url)
        system.invalidate_cache()  # the cached listing may be outdated
        if "*" in url:
            urls = {system.unstrip_protocol(name): name for name in sorted(system.glob(path))}
        else:
            urls = {url: path}
        sources = [_remote_source(name, system, path, settings) for name, path in urls.items()]
    except TextcatError:
        raise
    except FileNotFoundError:
        raise TextcatError(f"{url} does not exist: check the address.") from None
    except ImportError as error:
        raise TextcatError(f"{url} needs another package ({str(error).rstrip('.')}): install it.") from None
    except Exception as error:  # every file system raises its own types of exceptions
        raise TextcatError(f"{url} cannot be read ({error}): check the address and your rights there.") from None
    if not urls:
        raise TextcatError(f"No file matches {url}: check the pattern.")
    return sources


def _remote_source(url: str, system: Any, path: str, settings: InputSettings) -> Source:
    info = system.info(path)
    if info.get("type") != "directory":
        reading = partial(_open_remote, system, path)
        source = Source(url, "file", guess_format(url, reading, settings), _size(info), _state(info), 1, reading)
        return source._replace(neighbours=Neighbours(lambda _: iter(()), partial(_open_beside, system, path)))
    listing = system.find(path, detail=True)
    path_of = {name[len(path) :].lstrip("/"): name for name in listing}
    files = [(name, path_of[name], listing[path_of[name]]) for name in sorted(path_of) if not hidden(name)]
    looked_up = listed_neighbours(lambda: ((name, partial(_open_remote, system, file)) for name, file, _ in files))
    neighbours = looked_up._replace(is_remote=True)
    entries = [
        ContainerEntry(index, name, partial(_open_remote, system, file), size=_size(info) or 0, neighbours=neighbours)
        for index, (name, file, info) in enumerate(files)
    ]
    state = _sum([(name, _size(info), _state(info)) for name, _, info in files])
    size, guess = sum(entry.size for entry in entries), FormatGuess("folder", "content")
    source = Source(url.rstrip("/"), "folder", guess, size, state, max(len(files), 1), entries=lambda: iter(entries))
    return source._replace(states=[FileState(name, _size(info) or 0, _state(info)) for name, _, info in files])


def _size(info: dict[str, Any]) -> int | None:
    size = info.get("size")
    return size if isinstance(size, int) else None


def _state(info: dict[str, Any]) -> str:
    """Return a checksum of those properties of a remote file, given as `info`, that change when the file changes."""
    return _sum(sorted((key, str(value)) for key, value in info.items() if key.lower() in _STATES))


def _sum(sizes: list[Any]) -> str:
    return hashlib.sha256(repr(sizes).encode()).hexdigest()


def _open_beside(system: Any, path: str, _: str, name: str) -> ByteStream:
    """Open a file next to another one, given the other's path and its own path relative to the folder."""
    name = quote(name) if "http" in system.protocol else name
    beside = f"{path.rpartition('/')[0]}/{name}"
    try:
        system.info(beside)
    except FileNotFoundError:
        raise missing_file() from None
    except Exception as error:  # every file system raises its own types of exceptions
        raise unreadable(_as_oserror(error)) from None
    return _open_remote(system, beside)


def _open_remote(system: Any, path: str) -> ByteStream:
    try:
        if _gives_ranges(system, path):
            return file_stream(_RemoteFile(system.open(path, "rb")))
        return file_stream(_RemoteFile(system.open(path, "rb", block_size=0), seekable=False))
    except Exception as error:  # every file system raises its own types of exceptions
        raise unreadable(_as_oserror(error)) from None


def _gives_ranges(system: Any, path: str) -> bool:
    """Return whether a remote file is seekable: some web servers send only whole files."""
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


class _RemoteFile(io.RawIOBase):
    """Wrap a remote file: convert errors to OSError, ignore those of `close`, optionally declare it not seekable."""

    def __init__(self, file: Any, *, seekable: bool = True) -> None:
        self._file, self._sought = file, seekable

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._sought and bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            position: int = self._file.seek(offset, whence)
        except ValueError as error:  # an impossible position, because of a damaged file
            raise OSError(errno.EINVAL, str(error)) from None
        except Exception as error:
            raise _as_oserror(error) from None
        return position

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # every file system raises its own types of exceptions
            raise _as_oserror(error) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        with suppress(Exception):  # all that is needed was read
            self._file.close()
        super().close()
