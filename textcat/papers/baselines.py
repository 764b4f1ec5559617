"""Support vector machines that the papers compare with → their margins and times."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

HARD = 1e5  # C so large that the margin is hard, as in Tsampouka and Shawe-Taylor (2007)
_AT_ONCE = 5000  # rows that LIBSVM is done with in a moment

Answer = TypeVar("Answer")


def libsvm_margin(
    X: sp.csr_array, y: np.ndarray, delta: float = 0.0, tol: float = 1e-3, cache_mb: float = 2000
) -> tuple[float, float]:
    """Train LIBSVM with a linear kernel and C = 1e5, and measure its margin.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,)
        +1 or -1.
    delta : float >= 0
        Every row is extended by a private coordinate of this size, Δ.
    tol : float
        LIBSVM's accuracy, ε in the paper.
    cache_mb : float
        Memory for kernel rows.

    Returns
    -------
    margin : float
        Geometric, ``min y f(x)/‖w‖``, in the extended space.
    seconds : float
        What the training took.
    """
    setting = (_extended(X, delta), y, tol, cache_mb)
    return _train(*setting) if X.shape[0] <= _AT_ONCE else apart(_train, *setting)


def _train(rows: sp.csr_array, y: np.ndarray, tol: float, cache_mb: float) -> tuple[float, float]:
    from sklearn.svm import SVC

    machine = SVC(kernel="linear", C=HARD, tol=tol, cache_size=cache_mb)
    started = time.perf_counter()
    machine.fit(rows, y)
    seconds = time.perf_counter() - started
    weights = machine.coef_.toarray().ravel()
    return float(np.min(y * (rows @ weights + machine.intercept_[0])) / np.linalg.norm(weights)), seconds


def apart(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function in a process of its own, which Ctrl-C ends at once: a library that trains looks at no signal.

    Parameters
    ----------
    function : callable
        Of a module.
    *arguments
        Picklable, as what the function returns.

    Returns
    -------
    object
        What the function returns.
    """
    # A new process that starts from nothing (spawn) knows nothing of our threads and locks.
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        return pool.apply(function, arguments)


def _extended(X: sp.csr_array, delta: float) -> sp.csr_array:
    """Return the rows with a private coordinate of size `delta` each, for solvers that know no λ."""
    if delta == 0:
        return X
    rows = np.arange(X.shape[0] + 1, dtype=np.int32)  # scikit-learn takes no 64-bit indices
    private = sp.csr_array((np.full(X.shape[0], delta), rows[:-1], rows))
    return sp.csr_array(sp.hstack([X, private], format="csr"))
