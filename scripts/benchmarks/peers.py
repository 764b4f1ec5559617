"""fastText, omikuji and Vowpal Wabbit: their files, their training, their scores."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from textcat.corpus.documents import Document

THREADS = 2
_LABEL = "__label__"
# Bits of Vowpal Wabbit's weight table: 2²² weights hold 90 topics × 26,777 terms without collisions.
_BITS = 22


def installed(module: str) -> bool:
    """Tell whether a peer can be used here."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


@contextmanager
def silenced() -> Iterator[None]:
    """Send what compiled code prints nowhere: a peer's log would stand in our page, its progress bars cost it time."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in (1, 2)]
    with open(os.devnull, "w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    try:
        yield
    finally:
        for stream, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, stream)
            os.close(copy)


# --- fastText --------------------------------------------------------------------------------------------------------


def write_fasttext(path: Path, lines: Sequence[str], documents: Sequence[Document], topics: Sequence[str]) -> None:
    """Write a line per document: its labels, its tokens."""
    known = set(topics)
    with path.open("w", encoding="utf-8") as file:
        for line, document in zip(lines, documents, strict=True):
            labels = (_LABEL + topic for topic in document.topics if topic in known)
            print(*labels, line, file=file)


def train_fasttext(path: Path) -> Any:
    """Train with one binary loss per topic; epochs and learning rate are those of its multi-label tutorial."""
    import fasttext

    return fasttext.train_supervised(input=str(path), loss="ova", lr=0.5, epoch=25, thread=THREADS, verbose=0)


def fasttext_scores(model: Any, lines: Sequence[str], topics: Sequence[str]) -> np.ndarray:
    """Score documents by the sums its sigmoid is taken of: the sigmoid is read from a table, which would make ties."""
    sums = np.array([model.get_sentence_vector(line) for line in lines]) @ model.get_output_matrix().T
    place = {label: j for j, label in enumerate(model.get_labels())}
    return sums[:, [place[_LABEL + topic] for topic in topics]]


def fasttext_tags(model: Any, lines: Sequence[str], k: int, threshold: float) -> Any:
    """Predict many lines in one call of its compiled part: the Python wrapper does not work with numpy 2."""
    return model.f.multilinePredict(lines, k, threshold, "strict")


# --- sparse rows as text ---------------------------------------------------------------------------------------------


def write_rows(path: Path, X: sparse.csr_matrix, Y: Any, head: str, between: str) -> None:
    """Write a line per row of X: the numbers of its topics, then its features as column:value."""
    Y = Y.tocsr()
    with path.open("w") as file:
        file.write(head)
        for i in range(X.shape[0]):
            x = slice(*X.indptr[i : i + 2])
            topics = ",".join(map(str, sorted(Y.indices[slice(*Y.indptr[i : i + 2])].tolist())))
            pairs = zip(X.indices[x].tolist(), X.data[x].tolist(), strict=True)
            features = " ".join(f"{column}:{value:.7g}" for column, value in pairs)
            file.write(f"{topics}{between}{features}\n")


# --- omikuji ---------------------------------------------------------------------------------------------------------


def write_omikuji(path: Path, X: sparse.csr_matrix, Y: Any) -> None:
    """Write rows in the format of the Extreme Classification Repository."""
    write_rows(path, X, Y, f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n", " ")


def train_omikuji(path: Path) -> Any:
    """Train with its defaults, which are Parabel's."""
    import omikuji

    with silenced():
        return omikuji.Model.train_on_data(str(path), omikuji.Model.default_hyper_param(), THREADS)


def omikuji_scores(model: Any, X: sparse.csr_matrix, n_topics: int) -> np.ndarray:
    """Score all topics of all documents, with a beam so wide that none is passed over."""
    scores = np.zeros((X.shape[0], n_topics), np.float32)
    for i in range(X.shape[0]):
        x = slice(*X.indptr[i : i + 2])
        row = list(zip(X.indices[x].tolist(), X.data[x].tolist(), strict=True))
        for topic, score in model.predict(row, beam_size=n_topics, top_k=n_topics):
            scores[i, topic] = score
    return scores


# --- Vowpal Wabbit ---------------------------------------------------------------------------------------------------


def write_vowpal_wabbit(path: Path, X: sparse.csr_matrix, Y: Any) -> None:
    """Write rows in its text format."""
    write_rows(path, X, Y, "", " | ")


def train_vowpal_wabbit(path: Path, n_topics: int, passes: int) -> Any:
    """Train one logistic regression per topic over the file; more than one pass needs a new cache."""
    cache = path.with_suffix(".cache")
    cache.unlink(missing_ok=True)
    repeated = ["--passes", passes, "--cache_file", cache, "--holdout_off"] if passes > 1 else []
    return _workspace(["-d", path, "--multilabel_oaa", n_topics, "--loss_function", "logistic", "-b", _BITS, *repeated])


def vowpal_wabbit_scores(model: Any, path: Path) -> np.ndarray:
    """Score all topics of all documents of a file by their probabilities."""
    saved, predictions = path.with_suffix(".model"), path.with_suffix(".predictions")
    predictions.unlink(missing_ok=True)
    model.save(str(saved))
    # A document that takes an earlier one's place in the queue is given the probabilities of that one: so none may.
    with path.open() as file:
        queue = 1 << sum(1 for _ in file).bit_length()
    reading = ["-d", path, "-i", saved, "-t", "--example_queue_limit", queue]
    _workspace([*reading, "-p", predictions, "--probabilities"]).finish()
    lines = predictions.read_text().splitlines()
    return np.array([[float(pair.partition(":")[2]) for pair in line.split()] for line in lines if ":" in line])


def _workspace(arguments: Sequence[Any]) -> Any:
    import vowpalwabbit

    return vowpalwabbit.Workspace(arg_list=[*map(str, arguments), "--quiet"])
