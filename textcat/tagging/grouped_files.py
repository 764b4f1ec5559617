"""Note which files `textcat duplicates` has read, and check that the inputs of a run are among them."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from textcat.base.disk import beside
from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Source
from textcat.runs.files import KnownFile
from textcat.runs.records import write_whole

SUFFIX = ".sketches"  # added to the name of a file of groups: the folder of what its run keeps
_READ = "_read.jsonl"  # in this folder: the files whose documents have their groups in the file of groups


class GroupedFile(NamedTuple):
    """A file whose documents have their groups in a file of groups: its size and time, and its name there."""

    content: tuple[int, int | str | None]
    source: str
    due: float | None  # when its embargo ends; 0: a part of it could not be read

    def has(self, content: tuple[int, int | str | None], now: float) -> bool:
        """Return whether the groups are those of all documents of the file, given its size and time."""
        return self.content == content and not (self.due and self.due <= now)


def write_grouped_files(path: Path, sources: Iterable[Source], files: Mapping[str, KnownFile]) -> None:
    """Note beside a file of groups which files it covers.

    `files` has the files that its run has read, by their names in it; it is empty if `sources` cannot list them.
    """
    rows = [(item.file.name, *item.file.content, name, item.due) for name, item in files.items()]
    rows = rows or [(name, *content, escape_undecodable(name), None) for name, content in _contents(sources)]
    write_whole(_folder_of(path) / _READ, (json.dumps(row).encode() + b"\n" for row in rows))


def check_grouped_files(path: str, sources: Sequence[Source], tagged: Mapping[str, KnownFile]) -> None:
    """Raise TextcatError unless a file of groups covers all files of the sources as they are now.

    A renamed file has its groups under its former name. So it must be one of those that are `tagged` under this name,
    and is not read again.
    """
    files, contents = _grouped_files(path), dict(_contents(sources))
    command, now = f"textcat duplicates INPUTS --out {quote(path)}", time.time()
    lacking = [name for name, content in contents.items() if name not in files or not files[name].has(content, now)]
    if lacking:
        others = f" and of {len(lacking) - 1:,} more of the inputs" if len(lacking) > 1 else ""
        raise TextcatError(
            f"{path} has no groups of {lacking[0]}{others}, under this name and with the present content: give "
            f"`{command}` first, with the inputs as they are named here."
        )

    def stays(item: KnownFile, name: str) -> bool:
        is_same, former = item.file.content == contents[name], item.file.name
        return is_same and item.due is None and (former == name or former not in contents)

    for name in contents:
        source = files[name].source
        if source != escape_undecodable(name) and not (source in tagged and stays(tagged[source], name)):
            raise TextcatError(
                f"{path} has the groups of {name} under its former name {source}: give `{command} --restart` first."
            )


def _grouped_files(path: str) -> dict[str, GroupedFile]:
    listing = _folder_of(Path(path)) / _READ
    try:
        rows = map(json.loads, listing.read_bytes().splitlines())
        return {name: GroupedFile((size, state), *further) for name, size, state, *further in rows}
    except (OSError, ValueError, TypeError):
        raise TextcatError(
            f"{listing}, which lists the files whose groups are in {path}, cannot be read: give `textcat duplicates "
            f"INPUTS --out {quote(path)}` again."
        ) from None


def _contents(sources: Iterable[Source]) -> Iterable[tuple[str, tuple[int, int | str | None]]]:
    """Yield the name, size and time of each file that can be read; those of the source if it cannot list its files."""
    for source in sources:
        states = source.file_states()
        if states is None:
            yield source.name, (-1 if source.size is None else source.size, source.state)
        else:
            yield from ((name, (size, state)) for name, size, state in states if state is not None)


def _folder_of(path: Path) -> Path:
    return beside(path, SUFFIX)
