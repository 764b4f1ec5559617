"""Support vector machines that the papers compare with → their margins and times."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

HARD = 1e5  # C so large that the margin is hard, as in Tsampouka and Shawe-Taylor (2007)


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
    from sklearn.svm import SVC

    rows = extended(X, delta)
    machine = SVC(kernel="linear", C=HARD, tol=tol, cache_size=cache_mb)
    started = time.perf_counter()
    machine.fit(rows, y)
    seconds = time.perf_counter() - started
    weights = machine.coef_.toarray().ravel()
    return float(np.min(y * (rows @ weights + machine.intercept_[0])) / np.linalg.norm(weights)), seconds


def extended(X: sp.csr_array, delta: float) -> sp.csr_array:
    """Return the rows with a private coordinate of size `delta` each, for solvers that know no λ."""
    if delta == 0:
        return X
    rows = np.arange(X.shape[0] + 1, dtype=np.int32)  # scikit-learn takes no 64-bit indices
    private = sp.csr_array((np.full(X.shape[0], delta), rows[:-1], rows))
    return sp.csr_array(sp.hstack([X, private], format="csr"))
