"""What `textcat train` is measured against: the same corpus, evaluation and result, made with scikit-learn.

sklearn_pipeline.py CORPUS FOLDER BACKEND
"""

from __future__ import annotations

import sys
from pathlib import Path

import joblib
import numpy as np
import texts
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from textcat.corpus.catalogue import open_corpus
from textcat.evaluation import export
from textcat.evaluation.ranking import evaluate


def main(name: str, folder: Path, backend: str) -> None:
    corpus = open_corpus(name)
    labels = corpus.labels(corpus.train)
    model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(SGDClassifier(), n_jobs=2))
    with joblib.parallel_config(backend=backend):
        model.fit(texts.plain(corpus.train), labels)
    scores = model.decision_function(texts.plain(corpus.test))
    sizes = np.asarray(labels.sum(axis=0)).ravel()
    evaluation = evaluate(scores, corpus.labels(corpus.test), corpus.topics, sizes, len(corpus.train))
    print(evaluation)
    folder.mkdir(exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    (folder / "evaluation.json").write_text(export.to_json(evaluation))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
