"""What one would write in place of `textcat tag`: models for it, and commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from harness import Work, python
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from spacy.lang.en.stop_words import STOP_WORDS

from textcat.model import storage

HASHED = HashingVectorizer(n_features=2**18, alternate_sign=False, stop_words=sorted(STOP_WORDS))


def commands(work: Work, archive: Path) -> dict[str, list[Any]]:
    """Return the commands of the peers; their models are trained before."""
    peers = {
        "scikit-learn, TfidfVectorizer": _sklearn(work, "default", partial(_ours, work.model("default"))),
        "scikit-learn, HashingVectorizer": _sklearn(work, "hashing", partial(_hashing, work.train())),
    }
    found = {f"{name}, 2 processes": _peer(work, "sklearn", model, archive, 2) for name, model in peers.items()}
    if find_spec("fasttext"):
        model = _fasttext(work)
        for processes, plural in ((2, "es"), (1, "")):
            found[f"fastText, {processes} process{plural}"] = _peer(work, "fasttext", model, archive, processes)
    return found


def _peer(work: Work, peer: str, model: Path, archive: Path, processes: int) -> list[Any]:
    return python("archive_peer", peer, model, archive, work.path("out", peer), processes)


def _documents(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def _sklearn(work: Work, name: str, make: Callable[[], Any]) -> Path:
    path = work.path(f"sklearn-{name}.joblib")
    if not path.exists():
        joblib.dump(make(), path)
    return path


def _ours(model: Path) -> dict[str, Any]:
    """Take over the vocabulary and weights of a model."""
    tagger = storage.load(model)
    features = tagger.features
    vectorizer = TfidfVectorizer(
        vocabulary=features.vocabulary_,
        ngram_range=(1, features.ngrams),
        sublinear_tf=features.sublinear_tf,
        stop_words=sorted(STOP_WORDS),
        dtype=np.float32,
    )
    vectorizer.idf_ = np.asarray(features.idf_)
    return {
        "vectorizer": vectorizer,
        "weights": np.array(tagger.scorer.weights),
        "bias": np.array(tagger.scorer.bias),
        "thresholds": np.array(tagger.decisions.thresholds),
        "topics": tagger.topics,
    }


def _hashing(train: Path) -> dict[str, Any]:
    documents = _documents(train)
    topics = MultiLabelBinarizer(sparse_output=True)
    labels = topics.fit_transform([document["topics"] for document in documents])
    rows = HASHED.transform([f"{document['title']}\n{document['text']}" for document in documents])
    learner = OneVsRestClassifier(SGDClassifier(random_state=0), n_jobs=2).fit(rows, labels)
    weights = np.hstack([classifier.coef_.T for classifier in learner.estimators_]).astype(np.float32)
    bias = np.concatenate([classifier.intercept_ for classifier in learner.estimators_]).astype(np.float32)
    thresholds = np.zeros(len(bias), np.float32)
    return {"vectorizer": HASHED, "weights": weights, "bias": bias, "thresholds": thresholds, "topics": topics.classes_}


# --- fastText --------------------------------------------------------------------------------------------------------


def _fasttext(work: Work) -> Path:
    """Train one binary loss per topic; epochs and learning rate are those of fastText's multi-label tutorial."""
    import fasttext

    path, lines = work.path("fasttext.bin"), work.path("fasttext.txt")
    if not path.exists():
        with lines.open("w", encoding="utf-8") as file:
            for document in _documents(work.train()):
                text = f"{document['title']} {document['text']}".lower().replace("\n", " ")
                print(*(f"__label__{topic}" for topic in document["topics"]), text, file=file)
        settings = {"loss": "ova", "lr": 0.5, "epoch": 25, "thread": 2, "verbose": 0}
        fasttext.train_supervised(input=str(lines), **settings).save_model(str(path))
    return path
