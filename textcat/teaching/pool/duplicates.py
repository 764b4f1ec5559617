"""Group records of the same work: same DOI or PMID, or same title or nearly same words without conflicting facts.

`textcat.duplicates` finds texts with nearly the same words. `same_works` divides these groups where records conflict,
and joins groups of the same work, even if one of two records has a title only.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.pool.identity import Identity

_PARTS, _OF_TITLE = 32, 8  # maximum number of comparisons of a record
_UNKNOWN = Identity()


def same_works(
    firsts: NDArray[np.int64], identities: Sequence[Identity | None], are_similar: Callable[[int, int], bool]
) -> NDArray[np.int32]:
    """Divide and join groups of near-duplicate texts, so that each group has the records of one work.

    Return the position of the first record of each record's group: shape (n_documents,). `firsts` has the position of
    the first record of each record's group of texts.

    A group of texts is divided where records conflict (see `Identity.conflicts`): each record joins the first part of
    its group that it does not conflict with. Then all parts with the same DOI are joined; then those with the same
    PMID, unless their DOI differs; then those of the same title (see `Identity.is_same_title`) that do not conflict,
    and whose texts `are_similar` if both have one. A record is compared with at most 32 parts, and 8 records of the
    same title.
    """
    works = _Works(firsts, identities)
    identified = [(i, identity) for i, identity in enumerate(identities) if identity is not None]
    for name in ("doi", "pmid"):
        first_of: dict[str, int] = {}
        for i, identity in identified:
            if value := getattr(identity, name):
                other = first_of.setdefault(value, i)
                one_doi, other_doi = works.identity_of(i).doi, works.identity_of(other).doi
                if not (one_doi and other_doi and one_doi != other_doi):
                    works.join(i, other)
    of_title: dict[tuple[str, ...], list[int]] = {}
    for i, identity in identified:
        others = of_title.setdefault(identity.main_title, [])
        for other in others:
            before = identities[other]
            assert before is not None
            if works.first_of(i) == works.first_of(other) or not identity.is_same_title(before):
                continue
            if works.identity_of(i).conflicts(works.identity_of(other)):
                continue
            if not (identity.has_text and before.has_text) or are_similar(i, other):
                works.join(i, other)
        if len(others) < _OF_TITLE:
            others.append(i)
    return works.firsts()


class _Works:
    """Growing groups of records; each has a first record, and the combined facts of its records."""

    def __init__(self, firsts: NDArray[np.int64], identities: Sequence[Identity | None]):
        self._first = firsts.tolist()
        self._identities: dict[int, Identity] = {}
        sizes = np.bincount(firsts, minlength=len(firsts))
        parts_of: dict[int, list[int]] = {}  # the first records of the parts of a group of texts
        for i, identity in enumerate(identities):
            if sizes[firsts[i]] == 1:
                self._identities[i] = identity or _UNKNOWN
                continue
            parts, mine = parts_of.setdefault(int(firsts[i]), []), identity or _UNKNOWN
            part = next((position for position in parts[:_PARTS] if not self._identities[position].conflicts(mine)), i)
            self._first[i] = part
            if part == i:
                parts.append(i)
                self._identities[i] = mine
            else:
                self._identities[part] = self._identities[part].joined(mine)

    def first_of(self, i: int) -> int:
        """Return the first record of a record's group."""
        while self._first[i] != i:
            self._first[i] = self._first[self._first[i]]  # path compression
            i = self._first[i]
        return int(i)

    def identity_of(self, i: int) -> Identity:
        """Return the combined identity of the records in a record's group."""
        return self._identities[self.first_of(i)]

    def join(self, i: int, j: int) -> None:
        """Merge the groups of two records."""
        first, second = sorted((self.first_of(i), self.first_of(j)))
        if first != second:
            self._first[second] = first
            self._identities[first] = self._identities[first].joined(self._identities[second])

    def firsts(self) -> NDArray[np.int32]:
        """Return the first record of each record's group."""
        return np.fromiter(map(self.first_of, range(len(self._first))), np.int32, len(self._first))


class Groups:
    """The groups of near-duplicates of a pool, after splits by persons.

    A group is identified by the position of its first document. `firsts` has the group of each document of the pool.
    Each item of `splits` has the positions of documents to move out of their group into a group of their own.
    """

    def __init__(self, firsts: NDArray[np.int32], splits: Iterable[Sequence[int]] = ()):
        firsts = np.array(firsts)
        for part in splits:
            left = np.setdiff1d(np.flatnonzero(firsts == firsts[part[0]]), part)
            firsts[left] = left.min(initial=len(firsts))
            firsts[[*part]] = min(part)
        self._firsts = firsts
        self.is_first = firsts == np.arange(len(firsts), dtype=firsts.dtype)
        self._sizes = np.bincount(firsts, minlength=len(firsts)).astype(np.int32)
        self._n = int(self.is_first.sum())

    def __len__(self) -> int:
        return self._n

    def of(self, position: int) -> int:
        """Return the group of the document at a position: the position of the group's first document."""
        return int(self._firsts[position])

    def size_of(self, position: int) -> int:
        """Return the number of near-duplicates of the document at a position, counting the document itself."""
        return int(self._sizes[self._firsts[position]])

    def first_of_each(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the given positions in their order, but only the first one of each group."""
        _, first = np.unique(self._firsts[positions], return_index=True)
        return positions[np.sort(first)]

    def all_members(self) -> Iterator[tuple[int, list[int]]]:
        """Return an iterator over all groups, ascending: the group, and the ascending positions of its documents."""
        order = np.argsort(self._firsts, kind="stable")
        groups, starts = np.unique(self._firsts[order], return_index=True)
        return (
            (int(group), order[start:stop].tolist())
            for group, start, stop in zip(groups, starts, [*starts[1:], len(order)], strict=True)
        )

    def of_several(self) -> list[int]:
        """Return the groups that have at least two documents, in ascending order."""
        return np.flatnonzero(self._sizes > 1).tolist()

    def members(self, position: int) -> list[int]:
        """Return the positions of all documents in the group of a document, in ascending order."""
        group = self.of(position)
        return [group] if self.size_of(group) == 1 else np.flatnonzero(self._firsts == group).tolist()
