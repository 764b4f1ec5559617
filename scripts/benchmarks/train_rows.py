"""Train on a store of rows in a process of its own, and print what it took as JSON.

train_rows.py STORE TOPICS.npz [--by textcat|linearsvc] [--from memory|disk] [--jobs N] [--max-epochs N]
              [--topics N,N,...] [--test STORE TOPICS.npz] [--dual]
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import textcat
from textcat.evaluation.metrics import average_precisions
from textcat.features.store import StoredRows

Rows = sparse.csr_matrix | StoredRows


def main() -> None:
    asked = _options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = _rows(asked)
    Y = sparse.load_npz(asked.labels).tocsc()
    if asked.topics:
        Y = Y[:, asked.topics]
    learner: Any = _textcat(asked) if asked.by == "textcat" else _linear_svc(asked)
    watch = _Watch()
    started = time.perf_counter()
    learner.fit(X, Y)
    facts: dict[str, Any] = {"seconds": time.perf_counter() - started, **watch.facts()}
    if asked.test:
        facts["precisions"] = _precisions(learner, asked)
    print(json.dumps(facts))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--by", choices=["textcat", "linearsvc"], default="textcat")
    parser.add_argument("--from", dest="where", choices=["memory", "disk"], default="memory")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-epochs", type=int, default=1000)
    parser.add_argument("--topics", type=lambda text: [int(k) for k in text.split(",")])
    parser.add_argument("--test", nargs=2, type=Path)
    parser.add_argument("--dual", action="store_true")
    return parser.parse_args()


def _rows(asked: argparse.Namespace) -> Rows:
    stored = textcat.open_rows(asked.store, verify=False)
    return stored if asked.where == "disk" else _in_memory(stored, asked.by)


def _in_memory(stored: StoredRows, by: str) -> sparse.csr_matrix:
    """Read rows into memory, in the number type that the learner works in, some at a time."""
    indptr = np.array(stored.indptr, np.int32)
    data = np.empty(indptr[-1], np.float32 if by == "textcat" else np.float64)
    indices = np.empty(indptr[-1], np.int32)
    with open(stored.folder / "data.npy", "rb") as of_data, open(stored.folder / "indices.npy", "rb") as of_indices:
        for file, array, kind in ((of_data, data, stored.dtype), (of_indices, indices, np.dtype(np.int32))):
            file.seek(stored.data.offset)
            for start in range(0, len(array), 1 << 20):
                part = array[start : start + (1 << 20)]
                part[:] = np.frombuffer(file.read(len(part) * kind.itemsize), kind)
    return sparse.csr_matrix((data, indices, indptr), shape=stored.shape)


def _textcat(asked: argparse.Namespace) -> Any:
    return textcat.PAUM(tau_neg=1, tau_pos=50, max_epochs=asked.max_epochs, n_jobs=asked.jobs)


class _OneVsRest:
    """LinearSVC for each topic, in threads, as `OneVsRestClassifier` does it; scores, and nothing else."""

    def __init__(self, jobs: int, *, dual: bool):
        self.jobs, self.dual = jobs, dual

    def fit(self, X: Any, Y: Any) -> None:
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        learner = LinearSVC(dual=True if self.dual else "auto")
        with joblib.parallel_config(backend="threading"):
            self.fitted = OneVsRestClassifier(learner, n_jobs=self.jobs).fit(X, Y)

    def decision_function(self, X: Any) -> np.ndarray:
        return self.fitted.decision_function(X)


def _linear_svc(asked: argparse.Namespace) -> Any:
    return _OneVsRest(asked.jobs, dual=asked.dual)


class _Watch:
    """The most memory since it was made, and the most that is of no file."""

    def __init__(self) -> None:
        self._anonymous = [_status("RssAnon")]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self._anonymous.append(_status("RssAnon"))

    def facts(self) -> dict[str, int]:
        """Stop, and return them."""
        self._done.set()
        self._thread.join()
        return {"peak_bytes": _status("VmHWM"), "anonymous_bytes": max(self._anonymous)}


def _status(name: str) -> int:
    """Return a figure that Linux keeps of this process, not of those it was forked from; 0 on other systems."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def _precisions(learner: Any, asked: argparse.Namespace) -> list[float]:
    """Return the average precision of each topic on other rows; None where no row has it."""
    store, labels = asked.test
    X, Y = _in_memory(textcat.open_rows(store, verify=False), asked.by), sparse.load_npz(labels).tocsc()
    if asked.topics:
        Y = Y[:, asked.topics]
    precisions = average_precisions(Y, np.asarray(learner.decision_function(X)))
    return [None if np.isnan(value) else float(value) for value in precisions]


if __name__ == "__main__":
    main()
