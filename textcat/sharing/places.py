"""Places to copy models to and from: repositories of the Hugging Face hub, and folders at URLs of fsspec.

The libraries find credentials themselves: ``HF_TOKEN`` or ``hf auth login``, and for example AWS' variables and files.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from textcat.base.errors import TextcatError, install_hint
from textcat.base.folders import MANIFEST
from textcat.model import CARD
from textcat.reading import file_system

HUB = "hf://"
_REPOSITORY = re.compile(r"(?:hf://)?([\w.-]{1,96}/[\w.-]{1,96})(?:@([^\s@]+))?/?", re.ASCII)
# Kinds of URL without folders: what fsspec creates instead of a folder is a whole bucket.
_BUCKETS = frozenset({"abfs", "abfss", "az", "gcs", "gs", "obs", "oci", "oss", "s3", "s3a", "tos"})
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@|(?<![^\s\"'(])[^\s\"'/@:]+:[^\s\"'/@]+@")
_PIECE = 1 << 20  # bytes that are copied at a time
# parts of the names of errors
_NO_CONNECTION = ("Connect", "Timeout", "Network", "RemoteProtocol", "OfflineMode", "gaierror")
_NO_RIGHT = ("Permission", "GatedRepo", "NoCredentials", "Forbidden", "AccessDenied")
_NOT_FOUND = ("FileNotFound", "RepositoryNotFound", "RevisionNotFound", "EntryNotFound", "NoSuchBucket")


class Folder(NamedTuple):
    """A folder in a file system of fsspec, from which a model is read, or to which it is written."""

    name: str  # name in messages
    system: Any
    root: str

    def size(self, file: str) -> int | None:
        """Return the size of a file in bytes, -1 if it is unknown, and None if there is no such file.

        TextcatError is raised for a symbolic link, which may lead to any file, and for a pipe or a device.
        """
        try:
            with remote_errors(self.name, but=FileNotFoundError):
                info = self.system.info(self._path(file))
        except FileNotFoundError:
            return None
        if info.get("type") == "directory":
            return None
        if not _is_file(info):
            raise TextcatError(f"{file} of {self.name} is a link, a pipe or a device: put a file in its place.")
        return self._size(info)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files in the folder itself, by name; {} if there is no such folder."""
        with remote_errors(self.name):
            try:
                listed = self.system.ls(self.root, detail=True, refresh=True)
            except (FileNotFoundError, NotADirectoryError):
                return {}
            names = {entry["name"].rstrip("/").rpartition("/")[2]: entry for entry in listed}
            return {name: self._size(entry) for name, entry in names.items() if entry.get("type") != "directory"}

    @contextmanager
    def opened(self, file: str) -> Iterator[BinaryIO]:
        """Open a file of the folder in a ``with`` block; yield it for reading from its start to its end."""
        with remote_errors(self.name), self.system.open(self._path(file), "rb", block_size=0) as stream:
            yield stream

    def write(self, files: Mapping[str, BinaryIO], stale: Collection[str], advance: Any) -> None:
        """Write the open files of a model, and remove the files named in `stale`.

        The manifest is removed first and written last, so that readers find a whole model or none. A link in the place
        of a file is removed, not followed.
        """
        order = sorted(files, key=lambda name: (name == MANIFEST, name != CARD, name))
        with remote_errors(self.name):
            protocols = [self.system.protocol] if isinstance(self.system.protocol, str) else self.system.protocol
            if _BUCKETS.isdisjoint(protocols):
                self.system.makedirs(self.root, exist_ok=True)
                stale = {*stale, *self._links(files)}
            for name in sorted(stale, key=lambda name: name != MANIFEST):
                self.system.rm_file(self._path(name))
            for name in order:
                with self.system.open(self._path(name), "wb") as target:
                    while piece := files[name].read(_PIECE):
                        target.write(piece)
                        advance(len(piece))
            self.system.invalidate_cache()

    def _links(self, files: Iterable[str]) -> list[str]:
        """Return the names in `files` that belong to a link, a pipe or a device."""
        listed = self.system.ls(self.root, detail=True, refresh=True)
        others = {entry["name"].rstrip("/").rpartition("/")[2] for entry in listed if not _is_file(entry)}
        return [name for name in files if name in others]

    def _path(self, file: str) -> str:
        return f"{self.root.rstrip('/')}/{file}"

    @staticmethod
    def _size(info: Mapping[str, Any]) -> int:
        size = info.get("size")
        return size if isinstance(size, int) and size >= 0 else -1  # a server may return anything


class Repository(NamedTuple):
    """A repository of models on the Hugging Face hub.

    `revision` is a branch, tag or commit; None: the main branch.
    """

    id: str
    revision: str | None

    @property
    def name(self) -> str:
        """The address of the repository, as messages show it, such as ``hf://owner/name@main``."""
        return f"{HUB}{self.id}" + (f"@{self.revision}" if self.revision else "")

    def folder(self) -> Folder:
        """Return a `Folder` of the repository's files as they are now; later commits do not change it."""
        with remote_errors(self.name):
            commit = _hub().HfApi(**_options()).model_info(self.id, revision=self.revision).sha
            system = _hub().HfFileSystem(**_options(), skip_instance_cache=True, use_listings_cache=True)
            return Folder(self.name, system, f"{self.id}@{commit}")

    def exists(self) -> bool:
        """Return whether the repository exists and the user may read it."""
        with remote_errors(self.name):
            return bool(_hub().HfApi(**_options()).repo_exists(self.id))

    def create(self, *, public: bool) -> None:
        """Create the repository, if it is not there yet."""
        with remote_errors(self.name):
            _hub().HfApi(**_options()).create_repo(self.id, private=not public, exist_ok=True)

    def write(self, files: Mapping[str, BinaryIO], stale: Collection[str], advance: Any) -> None:
        """Write the open files of a model, and remove those named in `stale`, in one commit."""
        hub = _hub()
        size = sum(file.seek(0, os.SEEK_END) for file in files.values())
        for file in files.values():
            file.seek(0)
        operations = [hub.CommitOperationAdd(name, files[name]) for name in sorted(files)]
        operations += [hub.CommitOperationDelete(name) for name in sorted(stale)]
        with remote_errors(self.name):
            message = "Add a model of textcat"
            hub.HfApi(**_options()).create_commit(
                self.id, operations, commit_message=message, revision=self.revision, num_threads=2
            )
        advance(size)


def _is_file(info: Mapping[str, Any]) -> bool:
    return info.get("type", "file") == "file" and not info.get("islink")


def place_of(text: str) -> Folder | Repository:
    """Return the place that a text names: ``hf://owner/name[@revision]``, ``owner/name`` or a URL of fsspec.

    TextcatError is raised for other texts, and for ``owner/name`` if there is a folder of that name here.
    """
    if "://" in text and not text.startswith(HUB):
        name = _without_password(text.rstrip("/"))
        with remote_errors(name):
            return Folder(name, *file_system(text))
    repository = _REPOSITORY.fullmatch(text)
    if repository is None or ".." in text:
        raise TextcatError(
            f"{_without_password(text)!r} names no place to copy models to or from: give hf://OWNER/NAME, maybe with "
            "@REVISION, or a URL such as s3://BUCKET/FOLDER or file:///FOLDER."
        )
    if Path(text).exists():
        raise TextcatError(
            f"{text} is a path here: write {HUB}{text} for the repository of the hub, or "
            f"{Path(text).resolve().as_uri()} for the path."
        )
    return Repository(*repository.groups())


@contextmanager
def remote_errors(name: str, but: type[Exception] = TextcatError) -> Iterator[None]:
    """Turn errors of a remote place in a ``with`` block into a TextcatError that states the remedy.

    `name` is the address of the place, for the message.

    Errors of the class `but` stay as they are, unless a lost connection is the cause.
    """
    try:
        yield
    except Exception as error:  # every library has its own types of exceptions
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        if isinstance(error, TextcatError) or (isinstance(error, but) and not _is_kind_of(cause, _NO_CONNECTION)):
            raise
        raise TextcatError(_sentence(name, cause if _is_kind_of(cause, _NO_CONNECTION) else error)) from error


def _is_kind_of(error: BaseException, names: Collection[str]) -> bool:
    """Return whether one of the names occurs in the name of the error's class, or of a class above it."""
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    return any(name in kinds for name in names)


def _sentence(name: str, error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    is_hub = name.startswith(HUB)
    login = "log in by `hf auth login`, or set HF_TOKEN" if is_hub else "check your credentials"
    if isinstance(error, ImportError):
        return f"{name} needs another package ({str(error).rstrip('.')}): install it."
    if isinstance(error, NotImplementedError):
        return f"{name} cannot be written to: only some kinds of URL can, such as s3://BUCKET/FOLDER."
    if _is_kind_of(error, _NOT_FOUND) and not _is_kind_of(error, ("GatedRepo",)):
        revision = " or revision" if is_hub else ""
        private = "; if it is private, " + login if is_hub else " and your rights"
        return f"There is no {'repository' if is_hub else 'folder'}{revision} {name}: check the address{private}."
    if status in (401, 403) or _is_kind_of(error, _NO_RIGHT):
        return f"You have no right to do this at {name}: {login}, and ask its owner for the right."
    if _is_kind_of(error, _NO_CONNECTION):
        return f"There is no connection to {name} ({type(error).__name__}): check the network and the address."
    said = _without_password(" ".join(str(error).split()))[:300].rstrip(".")
    return f"{name} failed ({type(error).__name__}: {said}): check the address and your rights there."


def _without_password(text: str) -> str:
    """Return a text without the user and password of URLs in it."""
    return _PASSWORD.sub("", text)


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise TextcatError(f"{HUB} needs huggingface_hub, which is not installed: {install_hint('hub')}.") from None
    return huggingface_hub


def _options() -> dict[str, Any]:
    return {"endpoint": os.environ.get("HF_ENDPOINT") or None}
