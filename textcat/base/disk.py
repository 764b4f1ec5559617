"""Write files atomically; open files; compute checksums; lock folders."""

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from textcat.base.errors import TextcatError

if TYPE_CHECKING:
    import numpy as np

UNFINISHED = ".part"  # suffix of a file that is still being written
_PARTS_PER_WRITE = 4096
_PACKAGE = Path(__file__).parents[1]


def shipped(folder: str) -> Path:
    """Return the path of a folder that comes with textcat: ``"corpora"`` or ``"recipes"``.

    A package that was built has the corpora inside it; a checkout of the repository has them at its top level.
    """
    inside = _PACKAGE / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


# --- a file that is replaced atomically ------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path, unfinished: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a new file to write to, unbuffered, which takes its place at a path when the ``with`` block ends.

    The file is synced before, and its folder afterwards: even after a power failure, the path has all of the old file
    or all of the new one. If the block raises an error, the new file is removed. Until the end, the new file has the
    path `unfinished`; None: a new one beside `path`.
    """
    unfinished = unfinished_sibling(path) if unfinished is None else unfinished
    try:
        with closing(create(unfinished)) as file:
            yield file
            sync(file)
        rename(unfinished, path)
    except (Exception, KeyboardInterrupt):
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomically(path: str | os.PathLike[str], text: str | Iterable[str]) -> None:
    """Write a text file so that readers find the old text or the new one, even after a power failure.

    `text` is the text, or its parts, which are written one after the other. A target that exists but is no regular file
    (a pipe, ``/dev/stdout``) is written directly. Parent folders are made, the encoding is UTF-8, and lines end in a
    line feed. A TextcatError is raised if `path` is a folder, or if a file there cannot be created.
    """
    path = Path(path)
    if path.is_dir():
        raise TextcatError(f"{path} is a folder: name a file to write.")
    direct = path.exists() and not path.is_file()
    # The target of a symbolic link is replaced, and the link stays.
    path = path if direct else resolved(path)
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(create(path) if direct else replacing(path))
        except OSError as error:
            raise TextcatError(cannot_write_in(path.parent, error)) from error
        write_parts(file, (part.encode() for part in ([text] if isinstance(text, str) else text)))


def cannot_write_in(folder: Path, error: OSError) -> str:
    """Return the message for a folder in which a file or folder could not be made."""
    return f"Cannot write in {folder} ({error.strerror}): name a folder that you may write to."


@contextmanager
def raise_write_errors(target: object, remedy: str) -> Iterator[None]:
    """Turn an OSError of the ``with`` block into a TextcatError that names the target of writing and the remedy."""
    try:
        yield
    except OSError as error:
        raise TextcatError(f"Cannot write to {target} ({error.strerror or error}): {remedy}.") from error


class LockedError(TextcatError):
    """Another process holds a lock."""


def acquire_lock(path: Path, refusal: str, **options: Any) -> Any:
    """Acquire a lock file, and return the lock; raise LockedError if another process holds it.

    The message of the error is `refusal`. The system releases the lock when the process ends, even if it is killed.
    `options` are keyword arguments of `filelock.FileLock`.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0, **options)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(refusal) from None
    return lock


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Lock a folder for a ``with`` block against other processes that lock it with this function.

    Yield True if this process holds the lock, and False if another process holds it. The system releases the lock when
    the process ends, even if it is killed. If the folder cannot be opened (it may not exist), or the system has no such
    locks, nothing is locked, and True is yielded.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield True
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except OSError:
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)


def unfinished_sibling(path: Path) -> Path:
    """Return a path beside another one, to write to until the file or folder is complete and takes its name."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")


# --- installed libraries, paths, and the files at paths ---------------------------------------------------------------


@cache
def installed_version(name: str) -> str:
    """Return the version of an installed library.

    It is read from the name of the library's metadata folder if possible, because importlib.metadata is slow to import.
    PackageNotFoundError is raised if the library is not installed.
    """
    written = name.replace("-", "_")  # as written in names of folders
    begins = f"{name}-", f"{name}.", f"{written}-", f"{written}."
    for folder in sys.path:
        with suppress(OSError):
            entries = [entry for entry in os.listdir(folder or ".") if entry.lower().startswith(begins)]
            described = [entry for entry in entries if entry.endswith((".dist-info", ".egg-info"))]
            if len(described) == 1 and (match := re.fullmatch(rf"{written}-(.+)\.dist-info", described[0])):
                return match[1]
            if described:
                break
    from importlib.metadata import version

    return version(name)


def is_installed(module: str) -> bool:
    """Return whether a module is installed; of a module in a package, the package is imported."""
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ImportError:  # the package is missing, or is none
        return False


def installed_spacy() -> str:
    """Return the version of the installed spaCy; "" if it is not installed (models can tag without it)."""
    try:
        return installed_version("spacy")
    except ModuleNotFoundError:  # the base class of PackageNotFoundError
        return ""


def expanded(path: str | os.PathLike[str]) -> Path:
    """Expand a leading ``~`` in a path to the user's home; a name such as ``~anna`` stays as it is.

    TextcatError is raised if ``~`` cannot be expanded because the user has no home folder: in a container or a service,
    the user's number may be in no list of users.
    """
    path = Path(path)
    if path.parts[:1] != ("~",):
        return path
    whole = Path(os.path.expanduser(path))
    if not whole.is_absolute():
        raise TextcatError(f"There is no home folder for {path}: set HOME to a folder, or write the path without ~.")
    return whole


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without symbolic links, after `expanded`; TextcatError if links lead in a circle."""
    real = Path(os.path.realpath(expanded(path)))
    if any(map(os.path.islink, (real, *real.parents))):  # False, not an error, where the user may not look
        raise TextcatError(f"{path} leads in a circle of symbolic links: mend the links, or name another path.")
    return real


def link_target(path: str | os.PathLike[str]) -> Path:
    """Return the path that a symbolic link leads to, absolute, as by `resolved`; return another path `expanded`.

    Folders that are renamed or exchanged are named by it: otherwise, the link would be, and not the folder.
    """
    path = expanded(path)
    return resolved(path) if path.is_symlink() else path


def beside(path: Path, ending: str, start: str = "") -> Path:
    """Return the path beside another whose name is its name with an ending, and possibly a start.

    So ``beside(Path("tags"), ".next")`` is ``tags.next``.

    The name of ``.`` and ``..`` is that of the folder they stand for. TextcatError is raised for the root folder, which
    has none.
    """
    path = Path(os.path.realpath(path)) if path.name in ("", "..") else path
    if not path.name:
        raise TextcatError(f"There is nothing beside {path}, the root folder: name another folder.")
    return path.with_name(f"{start}{path.name}{ending}")


def user_cache() -> Path:
    """Return the path of the user's cache folder for textcat; the folder need not exist.

    TextcatError is raised if the user has no home folder.
    """
    from platformdirs import user_cache_path

    with suppress(RuntimeError):
        path = user_cache_path("textcat", appauthor=False)
        if path.is_absolute():  # older versions of platformdirs do not expand the ~
            return path
    raise TextcatError("There is no home folder for a cache: set HOME or XDG_CACHE_HOME to a folder.")


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a regular file to read its bytes; raise OSError at once for a pipe or a device, which might never end.

    OSError is also raised for a symbolic link, unless links are followed.
    """
    if not follow_links and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link: put the file itself in its place, or remove it", str(path))
    file = open(path, "rb", opener=_open_without_waiting if follow_links else _open_itself)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device, no regular file: restore it from a backup", str(path))
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # so that opening a pipe without a writer does not block


def _open_itself(path: str, flags: int) -> int:
    return _open_without_waiting(path, flags | getattr(os, "O_NOFOLLOW", 0))


def sha256_of_file(file: Path | BinaryIO) -> str:
    """Return the sha256, in hexadecimal digits, of the file at a path, or of the unread rest of an open file."""
    if isinstance(file, Path):
        with open_regular(file) as opened:
            return sha256_of_file(opened)
    digest = hashlib.sha256()
    while data := file.read(1 << 20):
        digest.update(data)
    return digest.hexdigest()


def begins_with(path: Path, length: int, crc32: int) -> bool:
    """Return whether a file begins with bytes of the given length and CRC-32; True for the length 0."""
    if not length:
        return True
    sum_ = 0
    try:
        with open_regular(path) as file:
            while data := file.read(min(length, 1 << 20)):
                sum_, length = zlib.crc32(data, sum_), length - len(data)
    except OSError:
        return False
    return (length, sum_) == (0, crc32)


def map_array(path: Path, file: BinaryIO, types: Container[Any]) -> "np.memmap":
    """Return the array in an open ``.npy`` file, mapped into memory for reading; `path` is the path of the file.

    ValueError is raised if the file is damaged, or if its numbers are not of one of the allowed `types`.
    """
    import numpy as np
    from numpy.lib import format as npy

    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("an unknown version of the format")
        shape, fortran_order, dtype = npy.read_array_header_1_0(file)
        if dtype not in types:
            raise ValueError(f"numbers of type {dtype}")
        array = np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran_order else "C")
    except OSError:
        raise
    except Exception as error:  # numpy evaluates the header as Python, and passes on the resulting exceptions
        raise ValueError(f"{path.name}: {error}") from None
    array.filename = str(path)  # joblib expects this attribute
    return array


def read_arrays(file: Path | BinaryIO, names: Iterable[str] | None = None) -> dict[str, "np.ndarray"]:
    """Return the arrays of an ``.npz`` file by name, read into memory; raise ValueError if the file is damaged.

    `names` are those of the arrays to read; None: all.
    """
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in (arrays.files if names is None else names)}
    # zipfile, zlib and numpy raise a dozen types of exceptions, including OSError from seeking
    except Exception as error:
        if isinstance(error, OSError) and error.filename:  # the file cannot be opened
            raise
        raise ValueError(f"{getattr(file, 'name', file)}: {error}") from None


def read_safetensors(path: Path) -> dict[str, "np.ndarray"]:
    """Return the arrays of a ``.safetensors`` file by name; raise ValueError if it is damaged.

    Arrays of types that numpy does not have are left out.
    """
    import numpy as np

    types = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "i1"}
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    try:
        described = {name: at for name, at in json.loads(data[8:start]).items() if at.get("dtype") in types}
        ends = {name: [start + offset for offset in at["data_offsets"]] for name, at in described.items()}
        return {
            name: np.frombuffer(data[slice(*ends[name])], types[at["dtype"]]).reshape(at["shape"])
            for name, at in described.items()
        }
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error}") from None


# --- the steps by which journals and runs change files: tests make each of them fail, or be the last one --------------


rename = os.replace  # an existing file with the new name is replaced atomically


def create(path: Path) -> BinaryIO:
    """Create a file, or empty an existing one, and open it for unbuffered writing."""
    return open(path, "wb", buffering=0)


def reopen(path: Path) -> BinaryIO:
    """Open a file for unbuffered writing at its end; create the file if it does not exist."""
    return open(path, "ab", buffering=0)


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of the data to an unbuffered file, which may take only a part of the data at a time."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def write_parts(file: BinaryIO, parts: Iterable[bytes]) -> None:
    """Write parts such as lines to an unbuffered file, many at a time."""
    parts = iter(parts)
    while some := [*islice(parts, _PARTS_PER_WRITE)]:
        write_all(file, b"".join(some))


def sync(file: BinaryIO) -> None:
    """Sync a file: wait until its data would survive a power failure."""
    os.fsync(file.fileno())


def remove(path: Path) -> None:
    """Remove a file if it exists."""
    path.unlink(missing_ok=True)


def truncate_file(path: Path, length: int) -> None:
    """Shorten a file to its first `length` bytes, and sync it; the file must have at least that many."""
    with open(path, "rb+") as file:
        file.truncate(length)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder: wait until the names of its files would survive a power failure."""
    if os.name == "nt":  # on systems where folders cannot be opened, renaming is synchronous
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
