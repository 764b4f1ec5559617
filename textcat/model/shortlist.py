"""Find a document's shortlist, the topics with the nearest centroids, where a model has thousands of topics."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textcat.features.rows import Rows
from textcat.model._shortlist import nearest, products_at
from textcat.model._shortlist import rows_by_topic as rows_by_topic
from textcat.model.csr import parts_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Shortlist:
    """List the topics whose centroids are nearest to a document."""

    centroids: "csr_array"  # shape (n_features, n_topics), float32
    size: int  # number of topics listed for a document

    def topics(self, rows: Rows) -> np.ndarray:
        """Return the column numbers of the topics nearest to each row, ascending: shape (n_rows, size), int32.

        Rows with fewer topics are padded with -1.
        """
        return np.asarray(nearest(*rows, *parts_of(self.centroids), self.centroids.shape[1], self.size))


def products_of_listed(rows: Rows, matrix: "csr_array", listed: np.ndarray) -> np.ndarray:
    """Return the dot products of each row with the columns of a matrix that are listed for this row.

    `listed` has column numbers, of shape (n_rows, size); the products have the same shape.
    """
    return np.asarray(products_at(*rows, *parts_of(matrix), matrix.shape[1], listed))
