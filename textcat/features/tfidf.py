"""Turn documents into tf-idf vectors of unit length, by a scikit-learn transformer that does not import it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.features.fitting import CountedDocuments
from textcat.features.rows import Rows
from textcat.features.scripts import shown
from textcat.features.settings import FeatureError
from textcat.features.steps import FeatureSteps
from textcat.features.zones import Documents, checked_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DOCUMENTS_PER_BLOCK = 4096


class TfIdf(FeatureSteps):
    """Weigh terms by frequency and rarity (tf-idf or BM25).

    Row i is `x / |x|` with `x[t] = tf(t, i) · idf(t)`. `tf(t, i)` is the sum over the zones of document i of the zone's
    weight times n, the number of occurrences of t in the zone (or a function of n: see `sublinear_tf` and `weighting`).
    `idf(t)` is log(m / df(t)) (natural logarithm), where m is the number of training documents and df(t) the number of
    those that have t (or see `idf`). Terms that no training document has, and terms whose idf is 0, get no entry. A
    document without any entry has an empty row.

    `TfIdf` is a scikit-learn transformer. To save time and memory, `TfIdf` imports scikit-learn only when
    scikit-learn itself calls its methods.

    Parameters
    ----------
    tokens : Tokens, optional
        The tokenizer, which defines terms; by default, the lower-cased alphabetic tokens of English that are not stop
        words.
    zones : dict of str to float, optional
        The weight of each zone, above 0, such as `{"title": 2, "body": 1}`; other zones are left out. By default all
        zones have the weight 1. A document given as a string has the single zone "body".
    zone_terms : bool or list of str, default=False
        Which zones have terms of their own, named "title:word". False: none; all zones share their terms. True: all
        zones, and no terms are shared. A list: these zones; their words are also shared terms.
    ngrams : {1, 2, 3}, default=1
        Add the n-grams of up to this many terms that follow each other within a zone, named "word word".
    ngram_min_df : int, default=2
        Leave out n-grams of terms that occur in fewer training documents than this.
    ngram_weight : float, default=1.0
        Weight of an n-gram of terms, where a term has 1: 0.5 keeps the many rare n-grams from outweighing the terms of
        rare topics.
    chars : int, default=0
        Add the n-grams of this many characters within each term, with a space at either end, named "~abc~"; 0: none.
    char_min : int, default=0
        Add shorter n-grams of characters, too, down to this many characters; 0: only those of `chars` characters.
    char_weight : float, default=1.0
        Weight of an n-gram of characters, where a term has 1. Each term has several: 0.5 is a good start.
    char_max_df : float, default=1.0
        Leave out n-grams of characters that occur in more than this share of the training documents, above 0 and at
        most 1. The most frequent ones make rows long and tell topics apart least.
    min_df : int, default=1
        Leave out terms, and n-grams of characters, that occur in fewer training documents than this.
    max_features : int, optional
        Keep only this many terms: those that occur in the most training documents. Ties are broken alphabetically.
    weighting : {"tfidf", "bm25"}, default="tfidf"
        "bm25": n occurrences count n / (n + k1 · (1 - b + b · l / a)), where l is the number of terms in the zone, and
        a the average of l over the training documents that have the zone.
    sublinear_tf : bool, default=False
        With "tfidf": n occurrences in a zone count 1 + log n instead of n.
    k1 : float, default=1.2
        With "bm25": the larger k1, the more further occurrences of a term count; 0: only the first one counts.
    b : float, default=0.75
        With "bm25": from 0 to 1, how much less an occurrence counts in a longer zone; 0: length has no effect.
    idf : {"log", "smooth", "none"}, default="log"
        "smooth": 1 + log((1 + m) / (1 + df)), so that a term that all documents have keeps some weight; "none": 1.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Number type of the rows. They are computed in float64.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each term, in alphabetical order.
    idf_ : ndarray of shape (n_columns,), float64
        The idf of each column.
    n_documents_ : int
        m, the number of training documents.
    average_lengths_ : dict of str to float
        With "bm25": the average length a of each zone, by the zone's name; otherwise empty.
    tokens_ : Tokens
        The tokenizer that counted the terms.

    Source: G. Salton, C. Buckley, Term-weighting approaches in automatic text retrieval, Information Processing &
    Management 24 (1988). BM25: S. Robertson, H. Zaragoza, The probabilistic relevance framework, Foundations and Trends
    in Information Retrieval 3 (2009); its factor k1 + 1 is left out, as rows have unit length.
    """

    def fit(self, documents: Documents, y: Any = None) -> TfIdf:
        """Learn the terms and their document frequencies from documents, and return the object.

        Parameters
        ----------
        documents : iterable of str, or of documents with `zones`
            A string has the single zone "body".
        y : ignored

        Returns
        -------
        TfIdf

        Raises
        ------
        ValueError
            If there is no document, a document is neither a string nor has `zones`, or a parameter is out of range.
        """
        return self.fit_counted(self.count(documents))

    def fit_transform(self, documents: Documents, y: Any = None) -> csr_matrix:
        """Fit to documents and return their rows; the terms are counted only once.

        Parameters
        ----------
        documents, y
            As for `fit`.

        Returns
        -------
        csr_matrix of shape (n_documents, n_terms)
        """
        counted = self.count(documents)
        return self.fit_counted(counted).rows_of(counted)

    def transform(self, documents: Documents) -> csr_matrix:
        """Return the rows of documents: shape (n_documents, n_terms), each of length 1 or empty, in `dtype`."""
        from scipy import sparse  # imported here, because `row_blocks` needs no matrix

        self.check_is_fitted()
        blocks = list(map(self.matrix, self.row_blocks(documents)))
        if not blocks:
            return sparse.csr_matrix((0, len(self.idf_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def row_blocks(self, documents: Documents) -> Iterator[Rows]:
        """Yield the rows of documents as `transform` returns them, but as bare arrays, some thousand rows at a time."""
        stream = checked_documents(documents)
        while block := list(islice(stream, DOCUMENTS_PER_BLOCK)):
            yield self.rows_of_counts(*self.counted_texts(block))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, in order: terms and n-grams.

        The array has the shape (n_columns,) and the type object.
        """
        self.check_is_fitted()
        return np.array([*map(shown, self.listed_names())], dtype=object)

    def count(self, documents: Documents) -> CountedDocuments:
        """Count the terms of documents, so that `fit_counted` can fit to several choices of the documents."""
        return self.drop_rare_ngrams(*self.count_all(documents))

    # The parts of scikit-learn's estimator interface besides `get_params` and `set_params`.

    def set_output(self, *, transform: str | None = None) -> TfIdf:
        """Accept "default" or None as the container of rows; raise FeatureError for others, because rows are sparse."""
        if transform not in (None, "default"):
            raise FeatureError(f"Rows cannot be put out as {transform!r}, as they are sparse: give 'default'.")
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        text = InputTags(string=True, two_d_array=False)
        return Tags(None, TargetTags(required=False), transformer_tags=TransformerTags(), input_tags=text)
