"""Look up the group of each document in a file that `textcat duplicates` wrote."""

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import orjson

from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Record

FIELD = "group"  # field of the records that are written
_BATCH = 1 << 12  # number of lines read at a time


class GroupsFile:
    """Look up the group of documents in a file that `textcat duplicates` wrote; only line positions are kept in memory.

    A line takes 16 bytes of memory.
    """

    def __init__(self, path: Path):
        self._path = path
        keys, offsets, offset = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], 0
        with open(path, "rb") as file:
            while lines := file.readlines(_BATCH << 8):
                try:
                    keys.append(np.array([_key(*_place(line)) for line in lines], np.uint64))
                except (ValueError, KeyError, TypeError):
                    raise TextcatError(
                        f"{path} is not a file of groups, or is damaged: name one that `textcat duplicates` wrote."
                    ) from None
                lengths = np.array([0, *map(len, lines)], np.int64).cumsum()
                offsets.append(offset + lengths[:-1])
                offset += int(lengths[-1])
        order = np.argsort(np.concatenate(keys), kind="stable")
        self._keys, self._offsets = np.concatenate(keys)[order], np.concatenate(offsets)[order]

    def add_groups(self, records: list[Record]) -> list[Record]:
        """Return the records with a further field: the id of their group of duplicates.

        A record that repeats no earlier one has its own id as its group.
        """
        places = [(escape_undecodable(record.source), record.position) for record in records]
        keys = np.array([_key(*place) for place in places], np.uint64)
        begins, ends = np.searchsorted(self._keys, keys, "left"), np.searchsorted(self._keys, keys, "right")
        groups = [escape_undecodable(record.id) for record in records]
        if (found := np.flatnonzero(ends > begins)).size:
            with open(self._path, "rb") as file:
                for i in found.tolist():
                    for offset in self._offsets[begins[i] : ends[i]].tolist():
                        file.seek(offset)
                        line = file.readline()
                        if _place(line) == places[i]:
                            groups[i] = orjson.loads(line)["group"]
        pairs = zip(records, groups, strict=True)
        return [record._replace(fields={**(record.fields or {}), FIELD: group}) for record, group in pairs]


def _place(line: bytes) -> tuple[str, int]:
    fields = orjson.loads(line)
    return fields["source"], fields["position"]


def _key(source: str, position: int) -> int:
    return int.from_bytes(blake2b(f"{source}\0{position}".encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=1)
def open_groups(path: str) -> GroupsFile:
    """Open a file of groups of duplicates, and cache it; raise TextcatError if it cannot be read."""
    try:
        return GroupsFile(Path(path))
    except OSError as error:
        raise TextcatError(
            f"The groups in {path} cannot be read ({error.strerror}): write them by `textcat duplicates --out {path}`."
        ) from None
