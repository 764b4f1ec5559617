"""Look up the group of each document in a file that `textcat duplicates` wrote."""

import os
from functools import lru_cache
from hashlib import blake2b, sha256
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np
import orjson

from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Record

FIELD = "group"  # field of the records that are written: the place of the first document of their group
GROUPS = "--duplicates"  # name of the fact of a run that has the mark of its file of groups, see `GroupsMark`
_BATCH = 1 << 20  # number of bytes read at a time, or a line more
_LINE = 1 << 10  # usual maximum number of bytes of a line


class GroupsMark(NamedTuple):
    """The length of a file of groups of duplicates in bytes, and the beginning of its checksum."""

    n_bytes: int
    sha256: str


class GroupsFile:
    """Look up the group of documents in a file that `textcat duplicates` wrote; only line positions are kept in memory.

    A line takes 16 bytes of memory. The file stays open, so that its lines stay where they are if another file replaces
    it. `mark` is its `GroupsMark`.
    """

    def __init__(self, path: Path):
        self._file = open(path, "rb")  # noqa: SIM115
        keys, offsets, offset, digest = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], 0, sha256()
        while lines := self._file.readlines(_BATCH):
            try:
                keys.append(np.array([_key(*_place(line)) for line in lines], np.uint64))
            except (ValueError, KeyError, TypeError):
                raise TextcatError(
                    f"{path} is not a file of groups, or is damaged: name one that `textcat duplicates` wrote."
                ) from None
            lengths = np.array([0, *map(len, lines)], np.int64).cumsum()
            offsets.append(offset + lengths[:-1])
            offset += int(lengths[-1])
            digest.update(b"".join(lines))
        unsorted = np.concatenate(keys)
        order = np.argsort(unsorted, kind="stable")
        self._keys, self._offsets = unsorted[order], np.concatenate(offsets)[order]
        self.mark = GroupsMark(offset, _shortened(digest.hexdigest()))

    def added_since(self, mark: GroupsMark) -> set[str] | None:
        """Return the sources of the documents whose lines come after those of the marked file.

        None is returned if the file does not begin with the lines of the marked one.
        """
        digest, left = sha256(), mark.n_bytes
        self._file.seek(0)
        while data := self._file.read(min(left, _BATCH)):
            digest.update(data)
            left -= len(data)
        if left or _shortened(digest.hexdigest()) != mark.sha256:
            return None
        return {_place(line)[0] for line in self._file}

    def add_groups(self, records: list[Record]) -> list[Record]:
        """Return the records with a further field: the source and position of the first document of their group.

        For a record that repeats no earlier one, these are its own.
        """
        places = [(escape_undecodable(record.source), record.position) for record in records]
        keys = np.array([_key(*place) for place in places], np.uint64)
        begins, ends = np.searchsorted(self._keys, keys, "left"), np.searchsorted(self._keys, keys, "right")
        groups = [group_at(*place) for place in places]
        for i in np.flatnonzero(ends > begins).tolist():
            for line in map(self._line_at, self._offsets[begins[i] : ends[i]].tolist()):
                if _place(line) == places[i]:
                    groups[i] = orjson.loads(line)["group"]
        pairs = zip(records, groups, strict=True)
        return [record._replace(fields={**(record.fields or {}), FIELD: group}) for record, group in pairs]

    def _line_at(self, offset: int) -> bytes:
        data = b""
        while b"\n" not in data:  # without seeking, because forked processes share the position in the file
            more = os.pread(self._file.fileno(), _LINE, offset + len(data))
            if not more:
                break
            data += more
        return data.partition(b"\n")[0]


def group_at(source: str, position: int) -> str:
    """Return the name of the group whose first document is at a place: ids may be those of several documents."""
    return f"{source}:{position}"


def _shortened(checksum: str) -> str:
    return checksum[:16]


def _place(line: bytes) -> tuple[str, int]:
    fields = orjson.loads(line)
    return fields["source"], fields["position"]


def _key(source: str, position: int) -> int:
    return int.from_bytes(blake2b(f"{source}\0{position}".encode(), digest_size=8).digest(), "little")


def open_groups(path: str) -> GroupsFile:
    """Open the file of groups of duplicates at a path; raise TextcatError if it cannot be read.

    The file is cached until another one is at this path.
    """
    try:
        status = os.stat(path)
        return _opened(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise TextcatError(
            f"The groups in {path} cannot be read ({error.strerror}): write them by `textcat duplicates INPUTS --out "
            f"{quote(path)}`."
        ) from None


@lru_cache(maxsize=1)
def _opened(path: str, *_state: int) -> GroupsFile:
    return GroupsFile(Path(path))
