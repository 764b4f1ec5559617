"""The support documents of a model: training documents whose weighted sum is the model's weights.

The weights of a topic are ``w = Σ alpha_i x_i``, so the score of a row x is ``Σ alpha_i x_i·x`` plus the bias: support
document i contributes ``alpha_i x_i·x``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document, shortened_text
from textcat.features.language import replace_surrogates
from textcat.features.rows import Rows
from textcat.features.vectors import ColumnVectors

KEEP_SUPPORT = ("none", "ids", "texts")  # what a model may keep of support documents; "ids" includes titles and rows
_TITLE = 120  # maximum number of characters of a title


@dataclass(frozen=True, eq=False)
class SupportDocuments:
    """The support documents of a model: those with non-zero coefficients, whose weighted sum is the weights.

    Descriptions of topics can be support documents, too.

    `alphas` has a row per topic: `indices` are its support documents, ascending, and `data` their coefficients, which
    are positive for documents with the topic.
    """

    ids: Sequence[str]
    titles: Sequence[str]
    rows: Rows  # rows of the documents: float32
    alphas: Rows
    texts: Sequence[dict[str, str]] | None = None  # texts by zone, if they were asked for
    vectors: ColumnVectors | None = None  # word vectors whose dimensions are further columns of the documents' rows

    @cached_property
    def first_of(self) -> np.ndarray:
        """For each document, the number of the first document with the same id and title.

        Documents can be repeated, because a topic's description may be an example several times.
        """
        first: dict[tuple[str, str], int] = {}
        keys = zip(self.ids, self.titles, strict=True)
        return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], np.int64)

    def contributions(self, topic: int, row: Rows, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of a topic's support documents, and what each adds to the score of a vector (`row`)."""
        part = slice(*self.alphas.indptr[topic : topic + 2].tolist())
        documents = np.asarray(self.alphas.indices[part])
        indptr, indices, data = map(np.asarray, self.rows)  # a copy, because a memmap would check each access
        starts, ends = indptr[documents], indptr[documents + 1]
        sizes = ends - starts
        first = np.cumsum(sizes) - sizes
        entries = np.arange(sizes.sum()) + np.repeat(starts - first, sizes)
        x = np.zeros(n_features + (0 if self.vectors is None else self.vectors.n_dimensions), np.float32)
        x[row.indices] = row.data
        if self.vectors is not None:
            x[n_features:] = self.vectors.of_row(row)
        products = x[indices[entries]] * data[entries]
        sums = np.zeros(len(documents))
        some = sizes > 0  # empty if a description has no term with a column
        if some.any():
            sums[some] = np.add.reduceat(products, first[some], dtype=np.float64)
        return documents, sums * self.alphas.data[part]

    def similar_columns(self, columns: Collection[int], n: int) -> dict[int, list[int]]:
        """Return, for given columns that no support document has, the n most similar ones that some of them have.

        Columns are compared by their word vectors; those without one are left out.
        """
        if self.vectors is None:
            return {}
        all_columns = np.asarray(self.vectors.columns)
        has = np.zeros(int(all_columns.max(initial=-1)) + 1, bool)
        indices = np.asarray(self.rows.indices)
        has[indices[indices < len(has)]] = True
        asked = [column for column in columns if column < len(has) and not has[column] and column in all_columns]
        of_documents = np.flatnonzero(has[all_columns])
        if not asked or not len(of_documents):
            return {}
        theirs, mine = (
            np.asarray(self.vectors.values[positions], np.float32)
            for positions in (of_documents, np.searchsorted(all_columns, asked))
        )
        cosines = mine @ theirs.T / np.maximum(np.linalg.norm(theirs, axis=1), 1)  # in the same unit for all columns
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :n]
        return dict(zip(asked, all_columns[of_documents][order].tolist(), strict=True))


def checked_keep_support(keep_support: str | None) -> str | None:
    """Return `keep_support` as it is; raise TextcatError unless it is None or one of `KEEP_SUPPORT`."""
    if keep_support not in (None, *KEEP_SUPPORT):
        raise TextcatError(f"keep_support cannot be {keep_support!r}: choose one of {', '.join(KEEP_SUPPORT)}.")
    return keep_support


def kept_texts(documents: Iterable[Document], keep_support: str) -> list[dict[str, str]]:
    """Return the texts, by zone, that a model may keep of each document: titles for "ids", all zones for "texts".

    Lone surrogates, which no file can hold, are replaced by U+FFFD.
    """
    if keep_support == "texts":
        return [{zone: replace_surrogates(text) for zone, text in document.zones.items()} for document in documents]
    return [{"title": replace_surrogates(document.zones.get("title", ""))} for document in documents]


def without_texts(corpus: Corpus, keep_support: str) -> Corpus:
    """Return a copy of a corpus whose training documents have only the texts that `keep_support` keeps.

    Training documents have no zones for "none", their shortened titles for "ids", and all zones for "texts". Test
    documents keep no texts, and unused documents are left out.
    """

    def kept(document: Document) -> dict[str, str]:
        if keep_support == "ids":
            return {"title": _title_of(document.zones, with_texts=False)}
        return dict(document.zones) if keep_support == "texts" else {}

    def with_zones(document: Document, zones: dict[str, str]) -> Document:
        return Document(document.id, zones, document.topics, document.date, labelled_for=document.labelled_for)

    train = [with_zones(document, kept(document)) for document in corpus.train]
    return replace(corpus, train=train, test=[with_zones(document, {}) for document in corpus.test], unused=[])


def _title_of(zones: Mapping[str, str], *, with_texts: bool) -> str:
    """Return a document's title, shortened, given its texts by zone.

    If it has no title, return the beginning of its text if `with_texts` is set, otherwise an empty string.
    """
    for text in (zones.get("title", ""), *(zones.values() if with_texts else ())):
        if title := shortened_text(text, _TITLE):
            return title
    return ""


def support_documents(
    rows: Any,
    solutions: Sequence[Any],
    units: np.ndarray,
    ids: Sequence[str],
    texts: Sequence[dict[str, str]],
    vectors: ColumnVectors | None = None,
    *,
    with_texts: bool,
) -> SupportDocuments:
    """Collect the support documents of a model from the solutions of its topics.

    Coefficients are divided by the topics' `units`, as the weights are. `rows` (a csr_matrix, or rows on disk) are the
    training rows; `ids` and `texts` are those of each row's document. The texts are kept if `with_texts`, otherwise
    only the titles.
    """
    from scipy.sparse import csr_matrix  # imported here, so that tagging need not import it

    has_part = np.zeros(rows.shape[0], bool)
    for solution in solutions:
        has_part[solution.support] = True
    numbers = np.flatnonzero(has_part)
    position_of = (np.cumsum(has_part) - 1).astype(np.int32)
    if isinstance(rows, csr_matrix):
        chosen = Rows.of(rows[numbers])
    else:  # rows on disk are read one after the other
        chosen = _stacked([Rows.of(rows[i : i + 1]) for i in numbers.tolist()])
    indices, data = [], []
    for solution, unit in zip(solutions, units.tolist(), strict=True):
        order = np.argsort(solution.support, kind="stable")
        indices.append(position_of[solution.support[order]])
        data.append((solution.alpha[order] / unit).astype(np.float32))
    ends = np.cumsum([0, *map(len, indices)]).astype(np.int64)
    alphas = Rows(ends, np.concatenate(indices).astype(np.int32), np.concatenate(data))
    chosen = chosen._replace(data=chosen.data.astype(np.float32))
    kept = [texts[i] for i in numbers.tolist()]
    titles = [_title_of(zones, with_texts=with_texts) for zones in kept]
    kept_ids = [ids[i] for i in numbers.tolist()]
    return SupportDocuments(kept_ids, titles, chosen, alphas, kept if with_texts else None, vectors)


def _stacked(blocks: Sequence[Rows]) -> Rows:
    ends = np.cumsum([0, *(len(block.indices) for block in blocks)]).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int32), *(block.indices for block in blocks)])
    return Rows(ends, indices, np.concatenate([np.zeros(0, np.float32), *(block.data for block in blocks)]))
