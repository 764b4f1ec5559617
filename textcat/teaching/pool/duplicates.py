"""Group near-duplicates: records of the same DOI or PMID, and documents with nearly the same terms.

`near_duplicates` groups documents by their terms: those with a Jaccard coefficient of at least .9 with an earlier one.
`same_works` then divides these groups where records contradict each other, and joins groups of the same work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from textcat.features.rows import Rows
from textcat.teaching.pool._duplicates import leaders
from textcat.teaching.pool.identity import Identity

_PARTS, _OF_TITLE = 32, 8  # the most that a record is compared with
_UNKNOWN = Identity()


def near_duplicates(
    rows: csr_matrix, sizes: NDArray[np.int32], counted: NDArray[np.bool_], everywhere: int = 0
) -> NDArray[np.int32]:
    """Return for each document the position of the first document that it nearly duplicates: shape (n_documents,).

    Documents are taken in their order. A document joins the first earlier leader whose Jaccard coefficient with the
    document is at least .9; without such a leader, the document becomes a leader. The coefficient is |A ∩ B| / |A ∪ B|,
    where A and B are the sets of the terms of the two documents. A document without any term is a leader that no
    document joins. A hash divides the terms into parts, and a document is compared only with leaders that have the same
    terms in some part: for each part, with the first 8 of these leaders. So the time grows with the number of entries
    of `rows`, not with the number of pairs of documents, but a leader after the first 8 may be missed.

    `sizes` has the number of distinct terms of each document, including terms that have no column because only one
    document has them. `counted` is a mask of the columns that count as terms; columns of word pairs, for example, do
    not count. `everywhere` is the number of terms that all documents have, but that have no entries in `rows`. The
    columns of each row must ascend.

    Source: A. Arasu, V. Ganti, R. Kaushik, Efficient exact set-similarity joins, VLDB 2006 (PartEnum).
    """
    indptr, indices, _ = Rows.of(rows)
    sizes = np.ascontiguousarray(sizes, np.int32)
    bounds = size_class_bounds(int(sizes.max(initial=1)))
    class_of = np.searchsorted(bounds[:-1], np.arange(sizes.max(initial=1) + 1), side="right").astype(np.int32) - 1
    differences = (2 * (bounds[1:] - 1) // 19).astype(np.int32)
    classes = class_of[sizes[sizes > 0]]
    n_keys = int((differences[classes] + differences[classes + 1] + 2).sum(dtype=np.int64))
    bits = max(n_keys, 2).bit_length()
    columns = np.ascontiguousarray(counted).view(np.uint8)
    return leaders(indptr, indices, columns, sizes, everywhere, class_of, differences, bits, n_keys)


def same_works(
    firsts: NDArray[np.int32], identities: Sequence[Identity | None], are_similar: Callable[[int, int], bool]
) -> NDArray[np.int32]:
    """Return groups of records, given the groups of their texts: the first position of each, shape (n_documents,).

    A group of texts is divided where records conflict (see `Identity.conflicts`): each joins the first part that it
    does not conflict with. Then all parts with the same DOI are joined; then those with the same PMID, unless their DOI
    differs; then those of the same title (see `Identity.is_same_title`) that do not conflict, and whose texts
    `are_similar` if both have one. A record is compared with at most 32 parts, and 8 records of the same title.
    """
    works = _Works(firsts, identities)
    known = [(i, identity) for i, identity in enumerate(identities) if identity is not None]
    for name in ("doi", "pmid"):
        first_of: dict[str, int] = {}
        for i, identity in known:
            if value := getattr(identity, name):
                other = first_of.setdefault(value, i)
                one_doi, other_doi = works.identity_of(i).doi, works.identity_of(other).doi
                if not (one_doi and other_doi and one_doi != other_doi):
                    works.join(i, other)
    of_title: dict[tuple[str, ...], list[int]] = {}
    for i, identity in known:
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
    """Groups of records that grow; each knows its first record, and what its records together say."""

    def __init__(self, firsts: NDArray[np.int32], identities: Sequence[Identity | None]):
        self._first = firsts.tolist()
        self._identities: dict[int, Identity] = {}
        sizes = np.bincount(firsts, minlength=len(firsts))
        parts_of: dict[int, list[int]] = {}  # the first records of the parts of a group of texts
        for i, identity in enumerate(identities):
            if sizes[firsts[i]] == 1:
                self._identities[i] = identity or _UNKNOWN
                continue
            parts, mine = parts_of.setdefault(int(firsts[i]), []), identity or _UNKNOWN
            part = next((one for one in parts[:_PARTS] if not self._identities[one].conflicts(mine)), i)
            self._first[i] = part
            if part == i:
                parts.append(i)
                self._identities[i] = mine
            else:
                self._identities[part] = self._identities[part].joined(mine)

    def first_of(self, i: int) -> int:
        """Return the first record of a record's group."""
        while self._first[i] != i:
            self._first[i] = self._first[self._first[i]]  # shortens the way for the next time
            i = self._first[i]
        return int(i)

    def identity_of(self, i: int) -> Identity:
        """Return what the records of a record's group together say."""
        return self._identities[self.first_of(i)]

    def join(self, i: int, j: int) -> None:
        """Make one group of the groups of two records."""
        first, second = sorted((self.first_of(i), self.first_of(j)))
        if first != second:
            self._first[second] = first
            self._identities[first] = self._identities[first].joined(self._identities[second])

    def firsts(self) -> NDArray[np.int32]:
        """Return the first record of each record's group."""
        return np.fromiter(map(self.first_of, range(len(self._first))), np.int32, len(self._first))


def size_class_bounds(largest: int) -> NDArray[np.int64]:
    """Divide the sizes of documents (numbers of distinct terms) into classes; return the smallest size of each class.

    Two near-duplicates lie in the same class or in neighbouring classes, because the larger one has at most 10/9 of the
    terms of the smaller one. `largest` is the largest size.
    """
    bounds = [1]
    while len(bounds) < 3 or bounds[-3] <= largest:
        bounds.append(10 * bounds[-1] // 9 + 1)
    return np.array(bounds, np.int64)


class Groups:
    """The groups of near-duplicates of a pool, without the records that persons have split off.

    A group is named by its first document's position. `firsts` has the groups of the pool; each of `splits`, the
    positions of some documents of one group, is a group of its own.
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
        """Return the group of near-duplicates of the document at a position: its first document's position."""
        return int(self._firsts[position])

    def size_of(self, position: int) -> int:
        """Return the number of near-duplicates of the document at a position, counting the document itself."""
        return int(self._sizes[self._firsts[position]])

    def first_of_each(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the given positions in their order, without those whose group has an earlier one among them."""
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
        """Return the ascending groups of at least two documents."""
        return np.flatnonzero(self._sizes > 1).tolist()

    def members(self, position: int) -> list[int]:
        """Return the ascending positions of the near-duplicates of the document at a position, with its own."""
        group = self.of(position)
        return [group] if self.size_of(group) == 1 else np.flatnonzero(self._firsts == group).tolist()
