"""Group near-duplicates: documents whose terms have a Jaccard coefficient of at least .9 with an earlier document's."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from textcat.features.rows import Rows
from textcat.teaching.pool._duplicates import leaders


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
    """The groups of near-duplicates that `near_duplicates` finds; a group is named by its first document's position."""

    def __init__(self, firsts: NDArray[np.int32]):
        self._firsts = np.asarray(firsts)
        self.is_first = self._firsts == np.arange(len(firsts), dtype=self._firsts.dtype)
        self._sizes = np.bincount(self._firsts, minlength=len(firsts)).astype(np.int32)
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

    def members(self, position: int) -> list[int]:
        """Return the ascending positions of the near-duplicates of the document at a position, with its own."""
        group = self.of(position)
        return [group] if self.size_of(group) == 1 else np.flatnonzero(self._firsts == group).tolist()
