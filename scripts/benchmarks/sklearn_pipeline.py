"""What `textcat train` is measured against: the same corpus, evaluation and result, made with scikit-learn.

sklearn_pipeline.py CORPUS FOLDER BACKEND [LEARNER]

Without a learner, the shortest pipeline that one would write; with one, rows and thresholds as in recipe `default`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import equal_kind
import joblib
import numpy as np
import texts
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from textcat.corpus.catalogue import open_corpus
from textcat.evaluation import export
from textcat.evaluation.evaluation import evaluate_scores


def main(name: str, folder: Path, backend: str, learner: str = "") -> None:
    corpus = open_corpus(name)
    labels = corpus.labels(corpus.train)
    if learner:
        model, train, test = equal_kind.make(learner), corpus.train, corpus.test
    else:
        model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(SGDClassifier(), n_jobs=2))
        train, test = texts.plain(corpus.train), texts.plain(corpus.test)
    with joblib.parallel_config(backend=backend):
        model.fit(train, labels)
    scores = model.predict_proba(test) if learner else model.decision_function(test)
    evaluation = evaluate_scores(
        scores,
        corpus.labels(corpus.test),
        corpus.topics,
        np.asarray(labels.sum(axis=0)).ravel(),
        len(corpus.train),
        threshold=equal_kind.PROBABILITY if learner else 0.0,
    )
    print(evaluation)
    folder.mkdir(exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    (folder / "evaluation.json").write_text(export.json_text(evaluation))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
