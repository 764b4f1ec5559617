"""Write folders, such as models, atomically, so that readers never find half of them; open and check them."""

import ctypes
import hashlib
import json
import os
import re
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

import orjson

from textcat.base.disk import (
    cannot_write_in,
    expanded,
    lock_folder,
    map_array,
    open_regular,
    resolved,
    sha256_of_file,
    unfinished_sibling,
)
from textcat.base.errors import TextcatError
from textcat.base.records import MISFITS, entries_of, read_record

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "manifest.json"
_SUM = "sum"  # the last entry of a manifest: the sha256 of its content with "" in place of this checksum
_Manifest = TypeVar("_Manifest")
_EXCHANGE, _CURRENT_FOLDER = 2, -100  # constants of renameat2(2)
_ATTEMPTS = 100  # number of attempts to open the files of a folder that others keep replacing


@dataclass(frozen=True)
class FolderFormat(Generic[_Manifest]):
    """A kind of folder, such as a model's, that is written atomically and has a manifest with a checksum.

    The sha256 of the manifest's file identifies the folder's content. The file cannot contain its own sha256, so it
    contains a checksum of all its other bytes, which reveals damage.
    """

    name: str  # in error messages: "model"
    content: str  # in error messages: "the model"
    negation: str  # in error messages: "not a model"
    error: type[TextcatError]  # the class of the errors raised
    #: The dataclass of the manifest's entries. Its first field, `format`, is set when the manifest is written; the
    #: field named by `checksum` is set when it is read. Both have defaults.
    manifest: type[_Manifest]
    version: int  # the written format version, the manifest's entry "format"; newer versions cannot be read
    files: frozenset[str]  # names of the files that `open` opens, without the manifest
    checksum: str  # name of the field for the sha256 of the manifest's file, which is not in the file
    origin: str  # remedy, a sentence, if there is no manifest
    remedy: str  # remedy, a clause, if the folder is damaged
    unchecked: frozenset[str] = frozenset()  # names of files that may exist without a checksum

    @contextmanager
    def replacing(self, folder: Path) -> Iterator[Path]:
        """Yield a new, empty folder to write to; if the block ends without an error, it replaces the given folder.

        On Linux the two folders are exchanged in one step, so a reader always finds the old folder or the new one. If
        the path is a link, the folder it points to is replaced, and the link stays. Before the block runs,
        `check_target` raises an error if the folder must not be replaced.
        """
        folder = resolved(folder)
        sibling = unfinished_sibling(folder)
        try:
            self.check_target(folder)
            sibling.mkdir(parents=True)
            with lock_folder(sibling):  # a folder without a lock may be removed: its process no longer exists
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
        folder = resolved(folder)
        if folder == Path.cwd():
            reason = f"which a {self.name} cannot take the place of"
            raise self.error(f"{folder} is the current folder, {reason}: name another one.")
        try:
            there = set(os.listdir(folder))
        except FileNotFoundError:
            there = set()
        except NotADirectoryError:  # a file, or below one
            there = {"."} if folder.exists() else set()
        except OSError as error:
            said = error.strerror or error
            raise self.error(f"Cannot write {self.content} to {folder} ({said}): name another folder.") from error
        if there and not there & (self.files | self.unchecked):
            raise self.error(f"{folder} exists and is {self.negation}: name another folder.")
        if foreign := sorted(there - self.files - self.unchecked - {MANIFEST}):
            reason = f"for {foreign[0]} would be lost"
            raise self.error(f"The {self.name} {folder} is not replaced, {reason}: name another folder.")
        above = next(parent for parent in folder.parents if parent.exists())
        try:
            probe = unfinished_sibling(above / "probe")
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            raise self.error(cannot_write_in(above, error)) from error

    def write_manifest(self, folder: Path, manifest: _Manifest) -> None:
        """Write a folder's manifest, with the version of the format and a checksum of all other bytes of the file."""
        entries = {"format": self.version, **entries_of(manifest)}
        entries.pop(self.checksum, None)
        (folder / MANIFEST).write_bytes(manifest_bytes(entries))

    @contextmanager
    def open(self, folder: str | os.PathLike[str], inside: str = "") -> Iterator["OpenFolder[_Manifest]"]:
        """Open the files of a folder, or of its subfolder `inside`, and read the manifest.

        If the folder is replaced meanwhile, the files are either all from the old folder or all from the new one. The
        format's error is raised if the folder is not of this format or of another version of it, if its manifest is
        damaged, or if a file cannot be read.
        """
        folder = expanded(folder)
        path = folder / inside
        for _ in range(_ATTEMPTS):
            with ExitStack() as stack:
                try:
                    files = _open_at_once(stack, path, sorted(self.files | {MANIFEST}))
                    content = files[MANIFEST].read() if files and MANIFEST in files else None
                except OSError as error:
                    raise self.error(f"Cannot read {error.filename or path}: {error.strerror}.") from error
                if files is None:
                    continue
                if content is None:
                    raise self.error(f"{path} is {self.negation}: it has no {MANIFEST}. {self.origin}")
                yield OpenFolder(self, folder, path, self._parsed(path, content), files)
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
        sum_ = entries.pop(_SUM, None)
        if not isinstance(sum_, str) or content != _with_checksum(
            content.replace(sum_.encode("utf-8", "replace"), b"")
        ):
            raise self.damaged_manifest(folder)
        try:
            identity = hashlib.sha256(content).hexdigest()
            return read_record(self.manifest, entries | {self.checksum: identity}, f"in {MANIFEST}")
        except MISFITS as error:
            raise self.damaged_manifest(folder) from error

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


def manifest_bytes(entries: Mapping[str, Any]) -> bytes:
    """Return the content of a manifest with these entries, and with a checksum of all other bytes at its end."""
    others = {name: value for name, value in entries.items() if name != _SUM}
    return _with_checksum(json.dumps({**others, _SUM: ""}, indent=1).encode())


def _with_checksum(content: bytes) -> bytes:
    """Return the content of a manifest with its checksum in place of the empty value of its last entry."""
    head, empty, end = content.rpartition(b'""')
    return head + b'"' + hashlib.sha256(content).hexdigest().encode() + b'"' + end if empty else content


@dataclass(frozen=True)
class OpenFolder(Generic[_Manifest]):
    """The open files of a folder, by name, and its manifest."""

    format: FolderFormat[_Manifest]
    folder: Path  # as named in error messages
    path: Path  # path of the folder with the files
    manifest: _Manifest
    files: dict[str, BinaryIO]

    def check(self, sums: Mapping[str, str], *, unread: Container[str] = ()) -> None:
        """Raise the format's error if a file is missing, or has changed since it was written.

        `sums` has the expected sha256 of each file by name. Files named in `unread` must exist, but are not read. All
        others are read, and rewound to their beginning.
        """
        for name, expected in sums.items():
            if name not in self.files:
                raise self.damaged(f"{name} is missing")
            if name in unread:
                continue
            if sha256_of_file(self.files[name]) != expected:
                raise self.damaged(f"{name} is not as it was written")
            self.files[name].seek(0)

    @contextmanager
    def raise_read_errors(self) -> Iterator[None]:
        """In a ``with`` block, turn errors caused by damaged or unreadable files into the format's own error."""
        try:
            yield
        except self.format.error:
            raise
        except OSError as error:
            where, why = error.filename or self.folder, error.strerror or error
            raise self.format.error(f"Cannot read the {self.format.name} {where} ({why}): check the disk.") from error
        except MISFITS as error:
            raise self.damaged(f"it cannot be read ({error})") from error

    def damaged(self, what: str) -> TextcatError:
        """Return the error for a damaged folder; `what` is a clause that says what is damaged."""
        return self.format.damaged(self.folder, what)

    def array(self, name: str, types: Container[Any]) -> "np.memmap":
        """Return the array in the file `name`.npy, mapped into memory; `types` as for `map_array`."""
        return map_array(self.path / f"{name}.npy", self.files[f"{name}.npy"], types)

    def json(self, name: str) -> Any:
        """Return the value in a file of JSON."""
        data = self.files[name].read()
        try:
            return orjson.loads(data)  # several times as fast as json
        except ValueError:  # for lone surrogates
            return json.loads(data)


def _open_at_once(stack: ExitStack, folder: Path, names: Iterable[str]) -> dict[str, BinaryIO] | None:
    """Open those of the named files that exist, and return them by name; None if the folder was replaced meanwhile.

    The files are closed when `stack` ends.
    """
    descriptor = None
    # While the old folder is open, no new folder can get its inode number.
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
