"""Write the output of a run anew in a folder beside it, and swap the folders, atomically if the system can.

Until then, readers find the old output, however long the run takes, and even if it is stopped.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.folders import exchange_folders
from textcat.reading import InputSettings, Source
from textcat.runs.files import RunFiles, has_files
from textcat.runs.folder import LOCK, own_files
from textcat.runs.growth import find_growth, list_files, outdated, readable
from textcat.runs.inputs import is_other
from textcat.runs.records import JOURNAL, all_facts, own_journal, read_log
from textcat.runs.shard_writer import raise_write_errors

_REPLACED = ".replaced"  # an empty file in former output, and in output that new output is about to replace
KEPT = 2  # folders to keep: the present one, and the previous one


class Replacement(NamedTuple):
    """Whether a run's folder must be replaced, and whether part of its output is kept."""

    is_due: bool
    stays: bool  # output of the present settings, or of missing files


def find_replacement(folder: Path, sources: Sequence[Source], settings: InputSettings, **facts: object) -> Replacement:
    """Return whether output must be written anew because settings differ from `facts`, and whether other output stays.

    `sources` are the present inputs, and `settings` those by which they are read.
    """
    if not any(is_other(name, before, facts) for before in all_facts(folder) for name in facts):
        return Replacement(False, False)
    log = read_log(folder, "begin again with --restart")
    assert log is not None
    listed = list_files(sources)
    if log.is_damaged or listed is None or log.header.files is None or not has_files(log):
        return Replacement(any(log.are_others(name, facts) for name in log.sums), False)
    run, files = RunFiles(log), {file.name: file for file in listed}
    others, names = outdated(log, run, facts), files.keys()
    again = others & names
    is_cut = bool(run.cut) and any(shard.name and log.are_others(shard.name, facts) for shard in log.generation.shards)
    if others - names and names - run.known.keys():  # files may have been renamed
        to_read = find_growth(sources, files, run, settings, others).files
        read = {file.was or file.name for file in to_read if file.source >= 0 and not file.is_blocked}
        stays = any(item.shards for name, item in run.known.items() if name not in read)
        return Replacement(bool(read & others) or is_cut, stays)
    # Unreadable files keep their output, and are no reason to write all output anew.
    could_be_read = readable(sources, again)
    if any(item.shards and name not in again for name, item in run.known.items()):
        return Replacement(any(could_be_read) or is_cut, True)
    read = {*could_be_read}
    return Replacement(bool(read) or is_cut, any(item.shards for name, item in run.known.items() if name not in read))


def new_output_folder(folder: Path) -> Path:
    """Return the path ``FOLDER.next``, where new output is written before it replaces that of a folder."""
    return disk.beside(folder, ".next")


@contextmanager
def replaced(folder: Path, *, stays: bool, kept: int = KEPT) -> Iterator[Path]:
    """Yield a folder for new output in a ``with`` block, and put it in the place of `folder` at the block's end.

    If the block ends with an error, the new folder stays, and the next call continues with it.

    Parameters
    ----------
    folder : Path
        The folder to replace; it is locked, so that no other run adds to it meanwhile.
    stays : bool
        True: begin with the content of `folder`, because part of it stays. Shards are hard-linked, not copied.
    kept : int
        How many folders to keep: the new one, the one it replaces, as ``OUT.before``, then ``OUT.before-2``. Older
        ones are removed.

    Raises
    ------
    TextcatError
        If another run writes to `folder`, a folder cannot be written to, or `folder` is named ``.`` or ``..``.
    """
    if folder.name in ("", ".."):
        raise TextcatError(
            f"{folder} cannot be replaced by this name: give the command in another folder, with a name."
        )
    new = new_output_folder(folder)
    lock = disk.acquire_lock(folder / LOCK, f"Another run is writing to {folder}: wait until it ends.")
    try:
        with raise_write_errors(folder):
            if stays and not _continues(folder, new):
                shutil.rmtree(new, ignore_errors=True)
                _copy(folder, new)
        yield new
        with raise_write_errors(folder):
            (folder / _REPLACED).touch()
            disk.sync_folder(folder)
            if exchange_folders(new, folder):
                _set_aside(new, folder, kept)
            else:  # for a moment, no folder has the name
                _set_aside(folder, folder, kept)
                os.rename(new, folder)
            disk.sync_folder(folder.parent)
    finally:
        lock.release()


def end_replacement(folder: Path, kept: int) -> None:
    """Complete a replacement that a killed process left unfinished: put new output in place, or set the old aside.

    Of former outputs, `kept` - 1 are kept.
    """
    new = new_output_folder(folder)
    if new.is_dir() and not folder.exists():
        os.rename(new, folder)
    elif (new / _REPLACED).exists():
        _set_aside(new, folder, kept)


def drop_replacement(folder: Path, kept: int) -> None:
    """Keep unfinished new output of a killed process, which nobody continues, as if it were a former output."""
    new = new_output_folder(folder)
    shutil.rmtree(_unfinished(folder), ignore_errors=True)
    if new.is_dir() and own_journal(new) is None:  # the copy was only begun
        shutil.rmtree(new)
    elif new.is_dir():
        _set_aside(new, folder, kept)


def _unfinished(folder: Path) -> Path:
    """Return the path of the folder for a copy that is not complete, or for former output that is being removed."""
    return disk.beside(folder, f".next{UNFINISHED}")


def _continues(folder: Path, new: Path) -> bool:
    """Return whether the run in `new` continues the one in `folder`: its journal begins with that run's journal."""
    journals = [path / JOURNAL for path in (folder, new)]
    return all(path.is_file() for path in journals) and journals[1].read_bytes().startswith(journals[0].read_bytes())


def _copy(folder: Path, new: Path) -> None:
    """Copy a run: hard-link shards, which never change in place; copy other files, which do."""
    unfinished = _unfinished(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for path in own_files(folder):
        if path.name.startswith("part-"):
            os.link(path, unfinished / path.name)
        else:
            with closing(disk.create(unfinished / path.name)) as file, open(path, "rb") as source:
                while data := source.read(1 << 20):
                    disk.write_all(file, data)
                disk.sync(file)
    disk.sync_folder(unfinished)
    disk.rename(unfinished, new)
    disk.sync_folder(new.parent)


def _set_aside(former: Path, folder: Path, kept: int) -> None:
    """Rename a former output to ``OUT.before``, and the earlier ones to the next names; remove those beyond `kept`."""
    names = [disk.beside(folder, f".before-{n}" if n > 1 else ".before") for n in range(1, kept)]
    n_taken = next((n for n, name in enumerate(names) if not name.exists()), kept - 1)
    if n_taken == kept - 1:
        last = [former, *names][-1]
        if last.is_symlink() or own_journal(last) is None:
            kind = "a link" if last.is_symlink() else "no folder of tags"
            raise TextcatError(f"{last} is {kind}, but in the way of those before: rename it.")
        _remove(last, folder)
        n_taken -= 1
    for n in range(n_taken, 0, -1):
        os.rename(names[n - 1], names[n])
    if names:
        os.rename(former, names[0])
    for n, path in _former_outputs(folder):
        if n >= kept and not path.is_symlink() and own_journal(path) is not None:  # more of them were kept before
            _remove(path, folder)


def _former_outputs(folder: Path) -> list[tuple[int, Path]]:
    """Return the folders that have the names of former outputs, ``OUT.before-N``, with their numbers N."""
    first = disk.beside(folder, ".before")
    names = ((path.name.removeprefix(first.name), path) for path in first.parent.iterdir())
    numbers = (("1" if end == "" else end.removeprefix("-"), path) for end, path in names if end != path.name)
    return sorted((int(n), path) for n, path in numbers if n.isdecimal() and path.is_dir())


def _remove(former: Path, folder: Path) -> None:
    """Remove a former output; rename it first, because a partly removed folder is not a folder of tags."""
    removed = _unfinished(folder)
    shutil.rmtree(removed, ignore_errors=True)  # a killed process may have left a copy that it had begun
    os.rename(former, removed)
    shutil.rmtree(removed)
