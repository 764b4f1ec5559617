"""Push a model's folder to a remote place, or pull one: files are checked, half a model is never read, no code runs."""

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from textcat.base.disk import resolved
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST, remove_leftovers
from textcat.base.progress import Stages
from textcat.model import CARD, MOST_CARD_BYTES, ModelError
from textcat.model.card import card_bytes
from textcat.model.manifest import COUNTS, MODEL, SUPPORT, Manifest, read_manifest
from textcat.sharing.places import Folder, Repository, place_of, remote_errors

_log = logging.getLogger(__name__)
_MOST_MANIFEST = 1 << 26  # maximum bytes of a manifest, which has some 700 for each topic
MOST_BYTES = 10 * 10**9  # default maximum bytes of a model to pull
_PIECE = 1 << 20
# Name of a stranger's folder in messages.
_PULLED = replace(MODEL, origin="A model is what `textcat push` writes.", remedy="tell its owner, or pull it again")


def push(
    model: str | os.PathLike[str],
    target: str,
    *,
    force: bool = False,
    public: bool = False,
    stages: Stages | None = None,
) -> str:
    """Copy a model's folder to a repository of the Hugging Face hub or to a URL, after checking all its files.

    Parameters
    ----------
    model : path
        The folder of a model. Only the model's own files are copied.
    target : str
        ``hf://owner/name[@revision]``, ``owner/name``, or a folder as a URL of fsspec, such as ``s3://bucket/folder``.
        A repository that does not exist is created.
    force : bool, default=False
        Replace another model that is there.
    public : bool, default=False
        Make a new repository public, not private.
    stages : Stages, optional
        Times the work, and draws its progress; not used for a repository of the hub, whose library draws its own.

    Returns
    -------
    str
        The address.

    Raises
    ------
    TextcatError
        If the folder is no model or damaged, if another model is at the target and `force` is not set, or if the target
        cannot be written to.
    """
    place = place_of(target)
    if stages is None or isinstance(place, Repository):
        stages = Stages()  # a bar that draws nothing: the hub's library draws its own bars
    with MODEL.open(model) as opened, stages.stage("push", shows="bytes") as bar:
        folder, manifest = opened.folder, opened.manifest
        opened.check(manifest.files)
        kept = {name: opened.files[name] for name in (*manifest.files, MANIFEST)}
        if (card := card_bytes(folder)) is not None:
            kept[CARD] = BytesIO(card)
        bar.show(total=sum(file.seek(0, os.SEEK_END) for file in kept.values()))
        for file in kept.values():
            file.seek(0)
        there = _model_files_at(place, public=public)
        if there and not force and _manifest_checksum(place, there) != manifest.sha256:
            raise TextcatError(
                f"{place.name} has another model's files, such as {min(there)}: replace it with --force."
            )
        # At a URL, files change one by one, so there is no manifest meanwhile.
        stale = there - kept.keys() - {CARD} | (there & {MANIFEST} if isinstance(place, Folder) else set())
        place.write(kept, stale, bar)
        if read_manifest(folder).sha256 != manifest.sha256:
            raise ModelError(f"The model {folder} was replaced while it was pushed: push it again.")
    return place.name


def _model_files_at(place: Folder | Repository, *, public: bool) -> set[str]:
    """Return the names of a model's files that exist at a place; create a missing repository, private or `public`."""
    if isinstance(place, Repository):
        if not place.exists():
            place.create(public=public)
            return set()
        place = place.folder()
    return set(place.sizes()) & (MODEL.files | {MANIFEST})


def _manifest_checksum(place: Folder | Repository, there: set[str]) -> str | None:
    """Return the checksum of the manifest at a place; None if there is no manifest."""
    folder = place.folder() if isinstance(place, Repository) else place
    if MANIFEST not in there or folder.size(MANIFEST) is None:
        return None
    with folder.opened(MANIFEST) as stream:
        return hashlib.sha256(stream.read(_MOST_MANIFEST)).hexdigest()


def pull(
    source: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    max_bytes: int = MOST_BYTES,
    stages: Stages | None = None,
) -> Path:
    """Copy a model from a repository of the Hugging Face hub, or from a URL, to a folder, atomically.

    Only the manifest, the files that it names, and the model's card are copied. The checksums in the manifest are
    verified, and the model is read once, before it appears under its name. Nothing in it is executed, and a learner
    that it names is not imported.

    Parameters
    ----------
    source : str
        ``hf://owner/name[@revision]``, ``owner/name``, or the model's folder as a URL of fsspec.
    folder : path, optional
        The folder to write; by default ``models/NAME``, where NAME is the last part of the source.
    force : bool, default=False
        Replace a model in this folder.
    max_bytes : int, default=10_000_000_000
        Refuse a larger model, before it is copied.
    stages : Stages, optional
        Times the work, and draws its progress.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    TextcatError
        If there is no such place, no right or no connection; if it has no model, or one that is damaged or too large;
        or if the folder cannot be written, or has a model already and `force` is not set.
    """
    place = place_of(source)
    target = resolved(folder if folder is not None else Path("models", _last_part(place)))
    if (target / MANIFEST).exists() and not force:
        raise TextcatError(f"The model {target} exists: replace it with --force, or name another folder.")
    remote = place.folder() if isinstance(place, Repository) else place
    remove_leftovers(target)
    with (
        MODEL.replacing(target) as new,
        _damage_reported_as(remote.name, new),
        (stages or Stages()).stage("pull", shows="bytes") as bar,
    ):
        manifest = _pull_manifest(remote, new)
        sizes = _sizes(remote, manifest, max_bytes, new)
        bar.show(total=sum(sizes.values()))
        for name, size in sizes.items():
            left = max_bytes - sum(path.stat().st_size for path in new.iterdir())  # where the size is unknown
            found = _copy(remote, name, new / name, size if size >= 0 else left, bar)
            if found != manifest.files[name]:
                raise MODEL.damaged(new, f"{name} is not as its manifest says")
        _pull_card(remote, new)
        _check_readable(new)
    return target


def _last_part(place: Folder | Repository) -> str:
    name = place.id if isinstance(place, Repository) else place.name
    return name.rstrip("/").rpartition("/")[2]


@contextmanager
def _damage_reported_as(name: str, folder: Path) -> Iterator[None]:
    """Report damage in a temporary folder, into which a model is pulled, as damage at its source `name`."""
    try:
        yield
    except ModelError as error:
        if error.damage:
            raise ModelError(f"The model {name} is damaged, {error.damage}: {_PULLED.remedy}.") from error
        error.args = (str(error).replace(str(folder), name),)
        raise


def _pull_manifest(remote: Folder, new: Path) -> Manifest:
    size = remote.size(MANIFEST)
    if size is None:
        raise ModelError(f"{remote.name} is not a model: it has no {MANIFEST}. `textcat push` writes models.")
    if size > _MOST_MANIFEST:
        raise _too_large(remote, MANIFEST, _MOST_MANIFEST)
    _copy(remote, MANIFEST, new / MANIFEST, _MOST_MANIFEST)
    with _PULLED.open(new) as pulled:
        return pulled.manifest  # all file names in it are those of a model's files


def _sizes(remote: Folder, manifest: Manifest, max_bytes: int, new: Path) -> dict[str, int]:
    """Return the sizes of the files that a manifest names; raise ModelError if one is missing, or all are too large."""
    sizes = {}
    for name in sorted(manifest.files):
        if (size := remote.size(name)) is None:
            raise MODEL.damaged(new, f"{name} is missing")
        sizes[name] = size
    total, free = sum(sizes.values()), shutil.disk_usage(new).free
    if total > max_bytes:
        raise ModelError(
            f"The model {remote.name} has {total / 1e6:,.0f} MB, more than the {max_bytes / 1e6:,.0f} MB allowed: "
            "allow more with --max-size."
        )
    if total > free:
        raise ModelError(
            f"The model {remote.name} has {total / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free: make room."
        )
    return sizes


def _copy(remote: Folder, name: str, path: Path, most: int, advance: Any = lambda n: None) -> str:
    """Copy the file `name` of a remote folder, and return its sha256; if it exceeds `most` bytes, raise ModelError.

    `advance` is called with the number of bytes of each piece.
    """
    digest, n = hashlib.sha256(), 0
    with remote.opened(name) as stream, open(path, "xb") as file:
        while piece := _read(remote, stream):
            n += len(piece)
            if n > most:
                raise _too_large(remote, name, most)
            digest.update(piece)
            file.write(piece)
            advance(len(piece))
    return digest.hexdigest()


def _too_large(remote: Folder, name: str, most: int) -> ModelError:
    return ModelError(f"{name} of {remote.name} is larger than its {most:,} bytes: pull nothing from there.")


def _read(remote: Folder, stream: BinaryIO) -> bytes:
    with remote_errors(remote.name):
        return stream.read(_PIECE)


def _pull_card(remote: Folder, new: Path) -> None:
    """Copy the model's card, if there is one of acceptable size."""
    size = remote.size(CARD)
    if size is None:
        return
    if size > MOST_CARD_BYTES:
        _log.warning("The card of %s has %s bytes, too many for a card: it is left out.", remote.name, f"{size:,}")
        return
    _copy(remote, CARD, new / CARD, MOST_CARD_BYTES)


def _check_readable(new: Path) -> None:
    """Load the model once: a stranger's files may have right checksums, and yet not fit together."""
    from textcat.model.storage import load

    load(new, prepare=False, with_rules=False)


def kept_documents(model: str | os.PathLike[str]) -> str:
    """Return a sentence on what readers of a model can see of its training documents; "" if nothing."""
    manifest, kept = read_manifest(model), []
    if COUNTS in manifest.files:
        kept.append("the ids, topics and words of all its documents (--updatable)")
    if SUPPORT in manifest.files:
        kept.append("ids, and titles or texts, of training documents (--keep-support none keeps nothing)")
    if os.path.isabs(place := str(manifest.origin.get("name_or_path", ""))):
        kept.append(f"the path of its corpus, {place}")
    return f"Whoever can read it can read {', and '.join(kept)}." if kept else ""
