"""What one would write in place of `textcat tag`: models for it, and commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from peers import installed, train_fasttext
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from spacy.lang.en.stop_words import STOP_WORDS
from workspace import HERE, Workspace

from textcat.features.tokens import Tokens
from textcat.model import storage

DESCRIPTION = """

- Two scripts use scikit-learn, and have a pool of two processes. Each process takes 2,000 lines at a time, makes rows
  with a vectorizer, multiplies these by the weights of all topics, and applies thresholds. One script has a
  TfidfVectorizer with textcat's own vocabulary, idf and weights, the other a HashingVectorizer (2^18 columns) with
  the weights of SGDClassifier.
- The scripts with fastText (ova, 90 topics, p > 0.5) call its compiled `multilinePredict` on 2,000 lines at a time.

All scripts parse and write JSON with orjson."""
HASHED = HashingVectorizer(n_features=2**18, alternate_sign=False, stop_words=sorted(STOP_WORDS))


def commands(space: Workspace, archive: Path) -> dict[str, list[Any]]:
    """Return the commands of the peers; their models are trained before."""
    peers: dict[str, list[Any]] = {}
    for recipe in ("default", "paum"):
        name = f"scikit-learn, TfidfVectorizer of recipe {recipe}, 2 processes"
        peers[name] = _sklearn(space, f"sklearn-{recipe}", archive, lambda recipe=recipe: _ours(space.model(recipe)))
    name = "scikit-learn, HashingVectorizer, 2 processes"
    peers[name] = _sklearn(space, "sklearn-hashing", archive, lambda: _hashing(space.train))
    if installed("fasttext"):
        model, lines = _fasttext(space), _lines(space, archive)
        for processes in (2, 1):
            plural = "es" if processes > 1 else ""
            peers[f"fastText, {processes} process{plural}"] = _peer(space, "fasttext", model, archive, processes)
        peers["fastText, 1 process, from lines of tokens to labels"] = _peer(space, "fasttext", model, lines, 1)
    return peers


def _peer(space: Workspace, peer: str, model: Path, archive: Path, processes: int) -> list[Any]:
    return [sys.executable, HERE / f"archive_{peer}.py", model, archive, space.out(peer), processes]


def _documents(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def _sklearn(space: Workspace, name: str, archive: Path, make: Any) -> list[Any]:
    path = space.folder / f"{name}.joblib"
    if not path.exists():
        joblib.dump(make(), path)
    return _peer(space, "sklearn", path, archive, 2)


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
        "thresholds": np.array(tagger.thresholds),
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


def _fasttext(space: Workspace) -> Path:
    path = space.folder / "fasttext.bin"
    if not path.exists():
        lines = space.folder / "fasttext.txt"
        with lines.open("w", encoding="utf-8") as file:
            for document in _documents(space.train):
                text = f"{document['title']} {document['text']}".lower().replace("\n", " ")
                print(*(f"__label__{topic}" for topic in document["topics"]), text, file=file)
        train_fasttext(lines).save_model(str(path))
    return path


def _lines(space: Workspace, archive: Path) -> Path:
    """Write an archive as lines of spaCy's tokens, in lower case."""
    path = space.folder / f"{archive.stem}.txt"
    if not path.exists():
        tokens = Tokens()
        with path.open("w", encoding="utf-8") as file, archive.open(encoding="utf-8") as lines:
            for line in lines:
                document = json.loads(line)
                print(*map(str.lower, tokens.tokenize(f"{document['title']} {document['text']}")), file=file)
    return path
