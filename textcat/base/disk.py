"""Write files and folders in one step, so that readers never find half of them; compute checksums; lock folders."""

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

from textcat.base.errors import TextcatError
from textcat.base.records import MISFITS, entries_of, read_record

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "manifest.json"
UNFINISHED = ".part"  # ends the name of a file that is still being written
_Manifest = TypeVar("_Manifest")
_PACKAGE = Path(__file__).parents[1]
_EXCHANGE, _CURRENT_FOLDER = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of renameat2(2)
_ATTEMPTS = 100  # to open the files of a folder that others keep replacing


def shipped(folder: str) -> Path:
    """Return the path of a folder that comes with textcat: ``"corpora"`` or ``"recipes"``.

    A package that was built has the corpora inside it; a checkout of the repository has them at its top level.
    """
    inside = _PACKAGE / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


# --- a file that is replaced whole -----------------------------------------------------------------------------------


def write_atomically(path: str | os.PathLike[str], text: str | Iterable[str]) -> None:
    """Write a text file under a temporary name and rename it, so that readers find the old text or the new one.

    `text` is the text, or its parts, which are written one after the other. A target that exists but is no regular file
    (a pipe, ``/dev/stdout``) is written directly. Parent folders are made, the encoding is UTF-8, and lines end in a
    line feed. A TextcatError is raised if `path` is a folder, or if a file there cannot be created.
    """
    path = Path(path)
    if path.is_dir():
        raise TextcatError(f"{path} is a folder: name a file to write.")
    direct = path.exists() and not path.is_file()
    # The file a symbolic link points to is replaced, the link stays.
    path = path if direct else path.resolve()
    target = path if direct else _sibling(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(target, "w" if direct else "x", encoding="utf-8", newline="\n")  # noqa: SIM115
    except OSError as error:
        raise TextcatError(_cannot_write_in(path.parent, error)) from error
    try:
        with file:
            file.writelines([text] if isinstance(text, str) else text)
        if not direct:
            os.replace(target, path)
    except BaseException:
        if not direct:
            target.unlink(missing_ok=True)
        raise


def _cannot_write_in(folder: Path, error: OSError) -> str:
    return f"Cannot write in {folder} ({error.strerror}): name a folder that you may write to."


@contextmanager
def raise_write_errors(target: object, remedy: str) -> Iterator[None]:
    """Turn an OSError of the ``with`` block into a TextcatError that names the target of writing and the remedy."""
    try:
        yield
    except OSError as error:
        raise TextcatError(f"Cannot write to {target} ({error.strerror or error}): {remedy}.") from error


def acquire_lock(path: Path, refusal: str, **options: Any) -> Any:
    """Acquire the lock file at a path, and return the lock; raise TextcatError if another process holds it.

    The message of the error is `refusal`. The system releases the lock when the process ends, even if it is killed.
    `options` are keyword arguments of `filelock.FileLock`.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0, **options)
    try:
        lock.acquire()
    except Timeout:
        raise TextcatError(refusal) from None
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


def _sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")


# --- a folder that is replaced whole ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderFormat(Generic[_Manifest]):
    """Describe a kind of folder, such as a model's, that is written as a whole and has a manifest with a checksum."""

    name: str  # in error messages: "model"
    content: str  # in error messages: "the model"
    negation: str  # in error messages: "not a model"
    error: type[TextcatError]  # the class of the errors raised
    #: The dataclass of the manifest's entries. The first one, `format`, and the last one, whose name is in `checksum`,
    #: have defaults, as they are set when the manifest is written.
    manifest: type[_Manifest]
    version: int  # the format that is written, as the manifest's entry "format"; newer ones cannot be read
    files: frozenset[str]  # names of the files that `open` opens, without the manifest
    checksum: str  # name of the manifest's entry that holds the sha256 of all other entries
    origin: str  # a sentence on what to do if there is no manifest
    remedy: str  # a clause on what to do if the folder is damaged
    unchecked: frozenset[str] = frozenset()  # names of files that may be there, and have no checksum

    @contextmanager
    def replacing(self, folder: Path) -> Iterator[Path]:
        """Yield a new, empty folder to write to; if the block ends without an error, it replaces the given folder.

        On Linux the two folders are exchanged in one step, so a reader always finds the old folder or the new one. If
        the path is a link, the folder it points to is replaced, and the link stays. Before the block runs,
        `check_target` raises an error if the folder must not be replaced.
        """
        folder = expanded(folder).resolve()
        sibling = _sibling(folder)
        try:
            self.check_target(folder)
            sibling.mkdir(parents=True)
            with lock_folder(sibling):  # whoever finds it unlocked may remove it: its process is gone
                yield sibling
                for path in sibling.iterdir():
                    with open(path, "rb+") as file:
                        os.fsync(file.fileno())
                _put_in_place(sibling, folder)
        except OSError as error:
            raise self.error(f"Cannot write {self.content} to {folder}: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(sibling, ignore_errors=True)

    def check_target(self, folder: str | os.PathLike[str]) -> None:
        """Raise the error of this format if a folder must not be replaced, or if nothing can be written in its place.

        It must not be replaced if it is the current folder, a file, or a folder that holds files of another kind. An
        old or damaged folder of this format may be replaced.
        """
        folder = expanded(folder).resolve()
        if folder == Path.cwd():
            reason = f"which a {self.name} cannot take the place of"
            raise self.error(f"{folder} is the current folder, {reason}: name another one.")
        if folder.exists():
            there = {path.name for path in folder.iterdir()} if folder.is_dir() else {"."}
            if there and not there & (self.files | self.unchecked):
                raise self.error(f"{folder} exists and is {self.negation}: name another folder.")
            if foreign := sorted(there - self.files - self.unchecked - {MANIFEST}):
                reason = f"for {foreign[0]} would be lost"
                raise self.error(f"The {self.name} {folder} is not replaced, {reason}: name another folder.")
        above = next(parent for parent in folder.parents if parent.exists())
        try:
            probe = _sibling(above / "probe")
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            raise self.error(_cannot_write_in(above, error)) from error

    def write_manifest(self, folder: Path, manifest: _Manifest) -> None:
        """Write a folder's manifest, with the number of the format and a checksum of the other entries."""
        entries = {"format": self.version, **entries_of(manifest)}
        entries[self.checksum] = self.sum_of_entries(entries)
        (folder / MANIFEST).write_text(json.dumps(entries, indent=1), encoding="utf-8")

    def sum_of_entries(self, entries: Mapping[str, Any]) -> str:
        """Return the sha256 of a manifest's entries; the entry that holds the checksum itself is left out."""
        others = {key: value for key, value in entries.items() if key != self.checksum}
        return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()

    @contextmanager
    def open(self, folder: str | os.PathLike[str]) -> Iterator[tuple[_Manifest, dict[str, BinaryIO]]]:
        """Open the files of a folder; yield its manifest, and the files that exist, by name.

        If the folder is replaced meanwhile, the files are either all from the old folder or all from the new one. The
        format's error is raised if the folder is not of this format, has another number of it, or has a damaged
        manifest.
        """
        folder = expanded(folder)
        for _ in range(_ATTEMPTS):
            with ExitStack() as stack:
                try:
                    files = _open_at_once(stack, folder, sorted(self.files | {MANIFEST}))
                    content = files[MANIFEST].read() if files and MANIFEST in files else None
                except OSError as error:
                    raise self.error(f"Cannot read {error.filename or folder}: {error.strerror}.") from error
                if files is None:
                    continue
                if content is None:
                    raise self.error(f"{folder} is {self.negation}: it has no {MANIFEST}. {self.origin}")
                yield self._parsed(folder, content), files
                return
        raise self.error(f"The {self.name} {folder} keeps being replaced: wait until whatever writes it has ended.")

    def _parsed(self, folder: Path, content: bytes) -> _Manifest:
        try:
            entries = json.loads(content)
        except (ValueError, RecursionError):
            entries = None
        if not isinstance(entries, dict) or type(entries.get("format")) is not int:
            raise self.error(f"{folder / MANIFEST} is damaged, or not a {self.name}'s manifest: {self.remedy}.")
        if entries["format"] != self.version:
            raise self.error(
                f"{folder} was made by another version of textcat, with {self.name} format {entries['format']} "
                f"instead of {self.version}: {self.remedy}."
            )
        if entries.get(self.checksum) != self.sum_of_entries(entries):
            raise self.damaged_manifest(folder)
        try:
            return read_record(self.manifest, entries, f"in {MANIFEST}")
        except MISFITS as error:
            raise self.damaged_manifest(folder) from error

    def check_files(
        self, folder: Path, files: Mapping[str, BinaryIO], sums: Mapping[str, str], *, unread: Container[str] = ()
    ) -> None:
        """Raise the format's error if a file is missing, or has changed since it was written.

        `files` are the open files that `open` yields, and `sums` has the expected sha256 of each file by name. Files
        named in `unread` must exist, but are not read. All others are read, and rewound to their beginning.
        """
        for name, expected in sums.items():
            if name not in files:
                raise self.damaged(folder, f"{name} is missing")
            if name in unread:
                continue
            if sha256_of_file(files[name]) != expected:
                raise self.damaged(folder, f"{name} is not as it was written")
            files[name].seek(0)

    def damaged(self, folder: str | os.PathLike[str], what: str) -> TextcatError:
        """Return the error for a damaged folder; `what` is a clause that says what is damaged."""
        error = self.error(f"The {self.name} {folder} is damaged, {what}: {self.remedy}.")
        error.damage = what
        return error

    def damaged_manifest(self, folder: str | os.PathLike[str]) -> TextcatError:
        """Return the error for a manifest that has changed since it was written."""
        error = self.error(f"{Path(folder) / MANIFEST} is damaged, it is not as it was written: {self.remedy}.")
        error.damage = f"{MANIFEST} is not as it was written"
        return error


def installed_version(name: str) -> str:
    """Return the version of an installed library.

    It is read from the name of the library's metadata folder if possible, because importlib.metadata is slow to import.
    PackageNotFoundError is raised if the library is not installed.
    """
    for folder in sys.path:
        with suppress(OSError):
            entries = [
                entry for entry in os.listdir(folder or ".") if entry.lower().startswith((f"{name}-", f"{name}."))
            ]
            described = [entry for entry in entries if entry.endswith((".dist-info", ".egg-info"))]
            if len(described) == 1 and (match := re.fullmatch(rf"{name}-(.+)\.dist-info", described[0])):
                return match[1]
            if described:
                break
    from importlib.metadata import version

    return version(name)


def installed_spacy() -> str:
    """Return the version of the installed spaCy; "" if there is none: models tag without it, by tables of their own."""
    try:
        return installed_version("spacy")
    except ModuleNotFoundError:  # the base of PackageNotFoundError
        return ""


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the user's home in place of a ``~`` that is its first part; other names may begin with it.

    TextcatError is raised for such a path if the user has no home folder: in a container or a service, the user's
    number may be in no list of users.
    """
    path = Path(path)
    if path.parts[:1] != ("~",):
        return path
    whole = Path(os.path.expanduser(path))
    if not whole.is_absolute():
        raise TextcatError(f"There is no home folder for {path}: set HOME to a folder, or write the path without ~.")
    return whole


def user_cache() -> Path:
    """Return the path of the user's cache folder for textcat; the folder need not exist.

    TextcatError is raised if the user has no home folder.
    """
    from platformdirs import user_cache_path

    with suppress(RuntimeError):
        path = user_cache_path("textcat", appauthor=False)
        if path.is_absolute():  # older versions of platformdirs leave the ~ as it is
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
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe that nobody writes to opens, too


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
    except Exception as error:  # numpy takes the header for Python, and lets through what comes of that
        raise ValueError(f"{path.name}: {error}") from None
    array.filename = str(path)  # joblib asks for it
    return array


def read_arrays(file: Path | BinaryIO) -> dict[str, "np.ndarray"]:
    """Return all arrays of an ``.npz`` file by name, read into memory; raise ValueError if the file is damaged."""
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds, among them OSError of seeking
        if isinstance(error, OSError) and error.filename:  # the file cannot be opened
            raise
        raise ValueError(f"{getattr(file, 'name', file)}: {error}") from None


def _open_at_once(stack: ExitStack, folder: Path, names: Iterable[str]) -> dict[str, BinaryIO] | None:
    """Open those of the named files that exist, and return them by name; None if the folder was replaced meanwhile.

    The files are closed when `stack` ends.
    """
    descriptor = None
    # As long as the old folder is open, no new one can have its number.
    if os.open in os.supports_dir_fd and folder.is_dir():
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
    before = folder_identity(folder if descriptor is None else descriptor)
    files: dict[str, BinaryIO] = {}
    for name in names:
        with suppress(FileNotFoundError, NotADirectoryError):
            files[name] = stack.enter_context(open_regular(folder / name))
    return files if folder_identity(folder) == before else None


def folder_identity(folder: Path | int) -> tuple[int, int] | None:
    """Return the device and inode numbers of a folder, given by its path or descriptor; None if it does not exist."""
    try:
        status = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _put_in_place(new: Path, old: Path) -> None:
    if not old.exists():
        os.rename(new, old)
    elif not exchange_folders(new, old):
        aside = new.with_suffix(".old")
        os.rename(old, aside)
        os.rename(new, old)
        os.rename(aside, new)


def exchange_folders(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return True if that succeeded, False if the system could not do it."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here = _CURRENT_FOLDER
    return renameat2(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0


def remove_leftovers(folder: Path, infix: str = "") -> None:
    """Remove folders that killed processes have left unfinished next to a folder that they were to replace.

    Folders of running processes are kept: these processes hold locks on their folders. `infix` is a regex of what may
    stand between the folder's name and the ending of a temporary name.
    """
    pattern = rf"\.{re.escape(folder.name)}({infix})?\.[0-9a-f]{{8}}\.(part|old)"
    for left in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if re.fullmatch(pattern, left.name):
            with lock_folder(left) as is_locked:
                if is_locked:
                    shutil.rmtree(left, ignore_errors=True)


# --- the steps by which journals and runs change files: tests let each of them fail, or be the last ------------------


rename = os.replace  # an older file of the new name is replaced in the same step


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


def sync(file: BinaryIO) -> None:
    """Wait until the data written to a file would survive a loss of power."""
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
    """Wait until the names of the files in a folder would survive a loss of power."""
    if os.name == "nt":  # where a folder cannot be opened, and renaming waits by itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
