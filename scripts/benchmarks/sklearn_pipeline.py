"""What `textcat train` is measured against: the same corpus, evaluation and result, made with scikit-learn.

sklearn_pipeline.py CORPUS FOLDER BACKEND [LEARNER]

Without a learner, the shortest pipeline that one would write; with one, rows and thresholds as in recipe `default`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Document
from textcat.evaluation.evaluation import evaluate_scores
from textcat.recipes.recipe import read_recipe

LEARNERS = {"LinearSVC": LinearSVC(C=1), "SGDClassifier": SGDClassifier(random_state=0)}
PROBABILITY = read_recipe("default").tags.probability
FOLDS = 5
JOBS = 2


def main(name: str, folder: Path, backend: str, learner: str = "") -> None:
    corpus = open_corpus(name)
    labels = corpus.labels(corpus.train)
    if learner:
        model, train, test = make(learner), corpus.train, corpus.test
    else:
        model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(SGDClassifier(), n_jobs=2))
        train, test = joined(corpus.train), joined(corpus.test)
    with joblib.parallel_config(backend=backend):
        model.fit(train, labels)
    scores = model.predict_proba(test) if learner else model.decision_function(test)
    evaluation = evaluate_scores(
        scores,
        corpus.labels(corpus.test),
        corpus.topics,
        np.asarray(labels.sum(axis=0)).ravel(),
        len(corpus.train),
        threshold=PROBABILITY if learner else 0.0,
    )
    print(evaluation)
    folder.mkdir(exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    (folder / "evaluation.json").write_text(json.dumps(evaluation.as_dict()))


def joined(documents: Sequence[Document]) -> list[str]:
    """Return titles and bodies as texts."""
    return [f"{document.zones.get('title', '')}\n{document.zones.get('body', '')}" for document in documents]


def make(learner: str) -> Pipeline:
    """Return documents → rows → a calibrated classifier per topic."""
    one_vs_rest = OneVsRestClassifier(Calibrated(LEARNERS[learner]), n_jobs=JOBS)
    return make_pipeline(ZonedRows(read_recipe("default").settings("features")), one_vs_rest)


class ZonedRows(TransformerMixin, BaseEstimator):
    """Weigh words and n-grams of words by BM25 in each zone and by their rarity; rows are of unit length.

    Parameters
    ----------
    settings : mapping
        A recipe's section on features.
    stop_words : str, optional
        As `CountVectorizer` takes them.
    """

    def __init__(self, settings: Mapping[str, Any], stop_words: str | None = "english"):
        self.settings, self.stop_words = settings, stop_words

    def fit_transform(self, documents: Sequence[Document], y: Any = None) -> sparse.csr_matrix:
        """Learn words, weights and lengths, and return the rows."""
        s = self.settings
        self.words = CountVectorizer(ngram_range=(1, s["ngrams"]), stop_words=self.stop_words, dtype=np.float64)
        counts = self.words.fit_transform(self._texts(documents))
        terms = self.words.get_feature_names_out()
        is_ngram = np.array([" " in term for term in terms])
        df = np.asarray((sum(self._by_zone(counts)) > 0).sum(axis=0)).ravel()
        kept = np.flatnonzero(df >= np.where(is_ngram, s["ngram_min_df"], s["min_df"]))
        self.words.vocabulary_ = dict(zip(terms[kept], range(len(kept)), strict=True))
        self._weights = np.where(is_ngram, s["ngram_weight"], 1)[kept] * np.log(len(documents) / df[kept])
        zones = self._by_zone(counts[:, kept])
        self._average_lengths = [zone.sum() / zone.shape[0] for zone in zones]
        return self.rows_of_counts(zones)

    def fit(self, documents: Sequence[Document], y: Any = None) -> ZonedRows:
        """Learn words, weights and lengths."""
        self.fit_transform(documents)
        return self

    def transform(self, documents: Sequence[Document]) -> sparse.csr_matrix:
        """Return the rows; the length of a zone is that of its known words."""
        return self.rows_of_counts(self._by_zone(self.words.transform(self._texts(documents))))

    def _texts(self, documents: Sequence[Document]) -> list[str]:
        """Return the texts zone by zone."""
        return [document.zones.get(zone, "") for zone in self.settings["zones"] for document in documents]

    def _by_zone(self, counts: sparse.csr_matrix) -> list[sparse.csr_matrix]:
        n = counts.shape[0] // len(self.settings["zones"])
        return [counts[start : start + n] for start in range(0, counts.shape[0], n)]

    def rows_of_counts(self, zones: Sequence[sparse.csr_matrix]) -> sparse.csr_matrix:
        """Return the rows of documents, from the counts of their zones."""
        k1, b = self.settings["k1"], self.settings["b"]
        weighted = []
        for counts, average, weight in zip(zones, self._average_lengths, self.settings["zones"].values(), strict=True):
            lengths = np.asarray(counts.sum(axis=1)).ravel() / (average or 1)
            half = np.repeat(k1 * (1 - b + b * lengths), np.diff(counts.indptr))
            saturated = weight * counts.data / (counts.data + half)
            weighted.append(sparse.csr_matrix((saturated, counts.indices, counts.indptr), counts.shape))
        return normalize(sum(weighted) @ sparse.diags(self._weights, format="csr"))


class Calibrated(ClassifierMixin, BaseEstimator):
    """A `CalibratedClassifierCV` that takes topics with fewer positives than folds, too: by fewer folds.

    A single positive leaves nothing to calibrate by: scores above 0 then become probabilities above that of the
    decision.
    """

    def __init__(self, learner: Any):
        self.learner = learner

    def fit(self, X: Any, y: np.ndarray) -> Calibrated:
        """Train for one topic."""
        folds = min(FOLDS, int(np.sum(y)))
        calibrated = CalibratedClassifierCV(self.learner, method="sigmoid", cv=max(folds, 2))
        self._fitted = (calibrated if folds > 1 else clone(self.learner)).fit(X, y)
        self.classes_ = self._fitted.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of not having the topic, and of having it."""
        if hasattr(self._fitted, "predict_proba"):
            return self._fitted.predict_proba(X)
        positive = expit(self._fitted.decision_function(X) + logit(PROBABILITY))
        return np.column_stack([1 - positive, positive])


if __name__ == "__main__":
    # joblib's processes import by its name what is defined here.
    import sklearn_pipeline

    sklearn_pipeline.main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
