"""Choose by a short cross-validation whether document vectors (rows) have n-grams of characters beside words.

In languages with many endings and compound words, such as Swedish and Finnish, a whole word may occur in few documents,
but its n-grams of characters in many. In other languages, n-grams make rows long and add little. To save time, the
choice trains no ranker: the topics of held-out documents are ranked by the similarity of the document to the topics'
centroids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.folds import members_of
from textcat.evaluation.at_k import evaluate_at_k
from textcat.features.char_ngrams import add_char_ngrams
from textcat.features.counts import StoredCounts
from textcat.features.rows import Rows
from textcat.model.listed import Listed
from textcat.model.shortlist import Shortlist
from textcat.recipes.recipe import Recipe
from textcat.training.examples import CountedCorpus
from textcat.training.shortlist import topic_centroids

WORDS, CHARACTERS = "words", "words and n-grams of 4 characters"
_FEATURES: dict[str, dict[str, Any]] = {
    WORDS: {},
    # Chosen on 80,000 and 250,000 titles in Swedish and in English. Three alternatives rank no better: 5 characters, a
    # weight of 0.5, and n-grams of any frequency, which also take a fifth more time.
    CHARACTERS: {"chars": 4, "char_weight": 0.7, "char_max_df": 0.01},
}
# N-grams of characters double the time of training. With centroids of 50,000 titles, they multiply nDCG@10 by 1.9 in
# Swedish and by 1.0 in English; in English, rankers trained on 250,000 titles do not gain from them either.
LEAST_GAIN = 1.1
MOST_DOCUMENTS = 53_000  # maximum number of documents that are examined
_HELD_OUT, _ONE_OF = 3_000, 10
_FEWEST = 30  # minimum number of held-out documents with a topic; with fewer, words are chosen


class RowChoice(NamedTuple):
    """The choice between words alone and words with n-grams of characters, and the nDCG@10 that decided it."""

    recipe: Recipe  # with the chosen features
    chosen: str  # `WORDS` or `CHARACTERS`
    ndcg: dict[str, float]  # nDCG@10 of the held-out documents, for each kind of rows
    trained: int  # the number of documents that centroids were computed from
    held_out: int  # the number of documents that were ranked

    def facts(self) -> dict[str, Any]:
        """Return the choice, and the nDCG@10 that decided it, as a dict that the model's manifest stores."""
        return {"chosen": self.chosen, "ndcg@10": self.ndcg, "trained": self.trained, "held_out": self.held_out}


def choose_rows(counted: CountedCorpus, recipe: Recipe) -> RowChoice:
    """Choose whether document vectors (rows) consist of words alone, or of words and n-grams of characters.

    With each kind of rows, the topics of held-out training documents are ranked, and nDCG@10 is measured.

    N-grams of characters are chosen, and added to `counted`, if they raise nDCG@10 by a tenth or more; with fewer than
    30 held-out documents that have a topic, words are chosen. At most 53,000 random documents are used; those that
    repeat each other count as one.

    Parameters
    ----------
    counted : CountedCorpus
        Counted without n-grams of characters.
    recipe : Recipe
        The recipe to change.
    """
    groups = counted.corpus.groups
    drawn = np.random.default_rng(0).permutation(np.unique(groups))
    n_held_out = min(_HELD_OUT, len(drawn) // _ONE_OF)
    held_out, trained = np.sort(drawn[:n_held_out]), members_of(drawn[n_held_out:MOST_DOCUMENTS], groups)
    recipes = {
        name: recipe.with_values({"features": features, "topics": {"choose_chars": False}})
        for name, features in _FEATURES.items()
    }
    relevant = counted.labels[held_out]
    if np.count_nonzero(np.diff(relevant.tocsr().indptr)) < _FEWEST:
        return RowChoice(recipes[WORDS], WORDS, {}, len(trained), n_held_out)
    stored = counted.counts_of(np.concatenate([trained, held_out]))
    labels = counted.labels[trained]
    ndcg = {name: _ndcg(stored, candidate, labels, relevant) for name, candidate in recipes.items()}
    chosen = CHARACTERS if ndcg[CHARACTERS] >= LEAST_GAIN * ndcg[WORDS] else WORDS
    if chosen == CHARACTERS:
        counted.add_char_ngrams(recipes[chosen])
    return RowChoice(recipes[chosen], chosen, ndcg, len(trained), n_held_out)


def _ndcg(stored: StoredCounts, recipe: Recipe, labels: sp.csc_matrix, relevant: sp.csc_matrix) -> float:
    """Return nDCG@10 of held-out documents, for which topics are ranked by the similarity to their centroids.

    `stored` has the term counts of the documents of `labels`, then of the held-out documents of `relevant`, then of
    topics' descriptions if the recipe trains on them.
    """
    features, n_trained, n_held_out = recipe.make_features(), labels.shape[0], relevant.shape[0]
    counted = stored.counted_for(features)
    if features.chars:
        counted = add_char_ngrams(counted, features.char_lengths, divides_runs=recipe.make_tokens().divides_runs)
    trained, held_out, described = np.split(np.arange(len(stored)), [n_trained, n_trained + n_held_out])
    features.fit_counted(counted, trained, described)
    if not len(features.idf_):
        return 0.0
    rows = features.rows_of(counted, np.append(trained, described)).astype(np.float32, copy=False)
    if len(described):
        has_term = np.diff(rows.indptr)[n_trained:] > 0
        labels = sp.vstack([labels, sp.diags_array(has_term, dtype=np.int8)], format="csc")
    centroids = topic_centroids(rows, labels)
    no_bias = np.zeros(labels.shape[1], np.float32)
    rows_held_out = Rows.of(features.rows_of(counted, held_out).astype(np.float32, copy=False))
    by_centroids = Listed(centroids, no_bias, Shortlist(centroids, min(10, labels.shape[1])))
    top, _ = by_centroids.top(rows_held_out, 10)
    sizes = np.asarray(labels[:n_trained].sum(axis=0)).ravel()
    evaluation = evaluate_at_k(top, relevant, [str(i) for i in range(len(sizes))], sizes, n_trained, ks=(10,))
    return float(evaluation.bands[0]["ndcg@10"] or 0.0)
