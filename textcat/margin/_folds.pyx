"""Compiled: estimate a topic's scores as if a fold of its rows had been left out of training, for seven folds at once.

Training by PAUM with λ > 0 comes near to the minimum of ``½‖w‖² + λ/2·Σ α²`` over all ``w = Σ α y x`` with α ≥ 0 for
which ``y·f(x) + λ·α ≥ threshold`` for every row. For each fold, a lane begins with the solution without the fold's
rows. A few passes of dual coordinate descent (Hsieh et al., "A dual coordinate descent method for large-scale linear
SVM", 2008) lead it to the minimum for the other rows; unlike in training, α may also fall. Since training ends near
the minimum, not at it, an eighth lane leaves out no row: the effect of a fold is the difference between its lane and
this one.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef enum:
    LANES = 8
    WHOLE = 7  # the lane that leaves nothing out

N_FOLDS = WHOLE

ctypedef fused real:
    float
    double


cdef inline void add(real *total, real factor, const real *lanes) noexcept nogil:
    cdef int l
    for l in range(LANES):
        total[l] += factor * lanes[l]


def leave_out_folds(
    const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, const int64_t[::1] rows,
    const int64_t[::1] fold, const int64_t[::1] group, const real[::1] label, const real[::1] threshold, const real[::1] alpha,
    const real[::1] score, const int64_t[::1] order, double lambda_, double rho, int n_passes, real own, real[:, ::1] work,
):
    """Estimate how each row's score changes if the row's fold is left out of training, and how the bias then changes.

    Parameters
    ----------
    indptr, indices, data
        The arrays of a CSR matrix.
    rows : int64 array of shape (n,)
        Numbers of the rows that may have an α > 0, with or without a fold. The next seven arrays are of the same shape.
    fold
        The fold of each row, from 0 to 6; -1 for a row that is in no fold, whose score change is not computed (0).
    group
        The row's group, from 0 to n - 1: of rows that repeat each other, or the row alone.
    label, threshold, alpha, score
        The row's label, +1 or -1; the margin required of it; its α ≥ 0 in the solution; and its score by the solution.
    order
        Positions in `rows`, in the order in which rows are presented.
    lambda_, rho, n_passes
        λ, the size of the constant coordinate, and the number of passes over the rows.
    own
        This share of what the surplus of α of a row's group adds to the row's score is subtracted from the score. The
        surplus is the α in the solution minus the α in the lane that leaves out no row, times the label; rows of a
        group count as equal.
    work : array of shape (n_features, 8)
        Working memory: zeros on entry, and again on return.

    Returns
    -------
    ndarray of shape (n,)
        The change of each row's score.
    ndarray of shape (7,)
        The change of the bias without each fold.
    """
    cdef Py_ssize_t n = rows.shape[0], at, i
    cdef int64_t p, start, end
    cdef int l, n_pass, own_fold
    cdef real square, f, a, step
    cdef real[LANES] bias, lanes
    cdef real private = <real>lambda_, rho2 = <real>(rho * rho)
    dtype = np.asarray(data).dtype
    added, of_folds = np.zeros(n, dtype), np.empty(WHOLE, dtype)
    alphas = np.repeat(np.asarray(alpha)[:, None], LANES, axis=1)
    squares, surpluses = np.empty(n, dtype), np.zeros(n, dtype)
    cdef real[::1] change = added, of_fold = of_folds, q = squares, surplus = surpluses
    cdef real[:, ::1] al = alphas
    with nogil:
        for l in range(LANES):
            bias[l] = 0
        for i in range(n):
            square = rho2 + private
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                square += data[p] * data[p]
            q[i] = square
            if fold[i] >= 0 and alpha[i] > 0:
                l = <int>fold[i]
                al[i, l] = 0
                bias[l] -= label[i] * alpha[i] * rho2
                for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    work[indices[p], l] -= label[i] * alpha[i] * data[p]
        for n_pass in range(n_passes):
            for at in range(n):
                i = order[at]
                start, end, own_fold = indptr[rows[i]], indptr[rows[i] + 1], <int>fold[i]
                for l in range(LANES):
                    lanes[l] = score[i] + bias[l]
                for p in range(start, end):
                    add(lanes, data[p], &work[indices[p], 0])
                step = 0
                for l in range(LANES):
                    f = label[i] * lanes[l]
                    a = al[i, l] + (threshold[i] - f - private * al[i, l]) / q[i]
                    if a < 0:
                        a = 0
                    if l == own_fold:
                        a = 0
                    lanes[l] = label[i] * (a - al[i, l])
                    al[i, l] = a
                    bias[l] += rho2 * lanes[l]
                    step = step if lanes[l] == 0 else 1
                if step != 0:
                    for p in range(start, end):
                        add(&work[indices[p], 0], data[p], lanes)
        for l in range(WHOLE):
            of_fold[l] = bias[l] - bias[WHOLE]
        for i in range(n):
            surplus[group[i]] += label[i] * (alpha[i] - al[i, WHOLE])
        for i in range(n):
            if fold[i] >= 0:
                l = <int>fold[i]
                change[i] = of_fold[l] - own * surplus[group[i]] * (q[i] - private)
                for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    change[i] += data[p] * (work[indices[p], l] - work[indices[p], WHOLE])
        for i in range(n):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                for l in range(LANES):
                    work[indices[p], l] = 0
    return added, of_folds
