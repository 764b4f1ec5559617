"""Train and use Omikuji in a process of its own, on the rows that one would make with scikit-learn.

omikuji_trees.py rows CORPUS FOLDER             # texts -> FOLDER/train.txt, test.npz
omikuji_trees.py train FOLDER HOW MODEL JOBS    # HOW: a name out of SETTINGS
omikuji_trees.py tops FOLDER MODEL OUT.npy      # the first 20 topics of each test document
omikuji_trees.py speed FOLDER MODEL N           # prints titles a second
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from many_topics_rates import RANKS, TAGGED, print_rates
from scipy import sparse

# "bonsai" as in the README of Omikuji: "Bonsai-like".
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


def make_rows(corpus_name: str, folder: str) -> None:
    """Make rows as a user would, with the defaults of TfidfVectorizer."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from textcat.corpus.catalogue import open_corpus

    corpus = open_corpus(corpus_name, download=False)
    train, test = ([" ".join(document.zones.values()) for document in part] for part in (corpus.train, corpus.test))
    vectorizer = TfidfVectorizer(dtype=np.float32)
    X, Z = vectorizer.fit_transform(train), vectorizer.transform(test)
    Z.sort_indices()
    sparse.save_npz(Path(folder, "test.npz"), Z, compressed=False)
    with Path(folder, "train.txt").open("w", encoding="utf-8") as file:
        file.writelines(lines(X, corpus.labels(corpus.train)))


def lines(X: Any, Y: Any) -> Iterator[str]:
    """Yield the lines of a file for Omikuji, which takes no document without a feature or a topic."""
    X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    X.sort_indices()
    kept = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0)).tolist()
    yield f"{len(kept)} {X.shape[1]} {Y.shape[1]}\n"
    for i in kept:
        labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()))
        yield f"{labels} {' '.join(f'{j}:{value:.6f}' for j, value in _pairs(X, i))}\n"


def _pairs(X: Any, i: int) -> list[tuple[int, float]]:
    entries = slice(X.indptr[i], X.indptr[i + 1])
    return list(zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True))


def train(folder: str, how: str, model: str, jobs: str) -> None:
    """Train on ready rows, and save the model."""
    import omikuji

    settings = omikuji.Model.default_hyper_param()
    for name, value in SETTINGS[how].items():
        setattr(settings, name, value)
    with _silence():
        omikuji.Model.train_on_data(str(Path(folder, "train.txt")), settings, n_threads=int(jobs)).save(model)


def tops(folder: str, model: str, out: str) -> None:
    """Save the first topics of each test document, -1 where there are fewer."""
    Z, loaded = sparse.load_npz(Path(folder, "test.npz")), _load(model)
    best = np.full((Z.shape[0], RANKS), -1, np.int32)
    for i in range(Z.shape[0]):
        topics = [topic for topic, _ in loaded.predict(_pairs(Z, i), top_k=RANKS)]
        best[i, : len(topics)] = topics
    np.save(out, best)


def speed(folder: str, model: str, n: str) -> None:
    """Tag one document after the other, as its Python takes them, and print how many a second."""
    Z, loaded = sparse.load_npz(Path(folder, "test.npz")), _load(model)
    loaded.init_prediction_thread_pool(1)
    rows = [_pairs(Z, i) for i in range(min(int(n), Z.shape[0]))]
    print_rates(lambda some: [loaded.predict(row, top_k=TAGGED) for row in some], rows)


def _load(model: str) -> Any:
    import omikuji

    with _silence():
        return omikuji.Model.load(model)


@contextmanager
def _silence() -> Iterator[None]:
    """Drop what compiled code writes on standard error: megabytes of progress bars."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


if __name__ == "__main__":
    {"rows": make_rows, "train": train, "tops": tops, "speed": speed}[sys.argv[1]](*sys.argv[2:])
