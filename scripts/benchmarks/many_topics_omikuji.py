"""Train and use Omikuji in a process of its own, on the rows that one would make with scikit-learn.

many_topics_omikuji.py rows CORPUS FOLDER         # texts -> FOLDER/train.txt, test.npz
many_topics_omikuji.py train FOLDER HOW MODEL     # HOW: a name out of SETTINGS
many_topics_omikuji.py tops FOLDER MODEL OUT.npy  # the first 20 topics of each test document
many_topics_omikuji.py speed FOLDER MODEL N OUT.json
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

JOBS, RANKS, TAGGED = 2, 20, 10
WARM_UP = 100  # documents tagged before those that count
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


def train(folder: str, how: str, model: str) -> None:
    """Train on ready rows, and save the model."""
    import omikuji

    settings = omikuji.Model.default_hyper_param()
    for name, value in SETTINGS[how].items():
        setattr(settings, name, value)
    with _silence():
        omikuji.Model.train_on_data(str(Path(folder, "train.txt")), settings, n_threads=JOBS).save(model)


def tops(folder: str, model: str, out: str) -> None:
    """Save the first topics of each test document, -1 where there are fewer."""
    Z, loaded = sparse.load_npz(Path(folder, "test.npz")), _load(model)
    best = np.full((Z.shape[0], RANKS), -1, np.int32)
    for i in range(Z.shape[0]):
        topics = [topic for topic, _ in loaded.predict(_pairs(Z, i), top_k=RANKS)]
        best[i, : len(topics)] = topics
    np.save(out, best)


def speed(folder: str, model: str, n: str, out: str) -> None:
    """Tag one document after the other, as its Python takes them, and write how many a second."""
    Z, loaded = sparse.load_npz(Path(folder, "test.npz")), _load(model)
    loaded.init_prediction_thread_pool(1)
    rows = [_pairs(Z, i) for i in range(min(int(n), Z.shape[0]))]
    write_rates(lambda some: [loaded.predict(row, top_k=TAGGED) for row in some], rows, out)


def write_rates(tag: Callable[[list[Any]], object], documents: list[Any], out: str) -> None:
    """Tag documents, after some to warm up, and write how many a second, and a second of the processor."""
    tag(documents[:WARM_UP])
    started, started_cpu = time.perf_counter(), time.process_time()
    tag(documents)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    facts = {"rate": len(documents) / seconds, "cpu_rate": len(documents) / cpu_seconds}
    Path(out).write_text(json.dumps(facts))


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
