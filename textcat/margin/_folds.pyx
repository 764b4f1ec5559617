"""Compiled: from a topic's solution to what its scores would be without a fold of its rows, for seven folds at once.

Training by PAUM with λ > 0 comes near to the minimum of ``½‖w‖² + λ/2·Σ α²`` over all ``w = Σ α y x``, α ≥ 0, that keep
``y·f(x) + λ·α ≥ threshold`` of every row. From the solution without the held-out rows' own part, a few passes of dual
coordinate descent (Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", 2008) lead to that minimum
for the rows that are left: α may fall again, as it never does in training. Since training ends beside the minimum, not in
it, one lane more leaves nothing out: what a fold changes is the difference of the two.
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
    const int64_t[::1] fold, const real[::1] label, const real[::1] threshold, const real[::1] alpha,
    const real[::1] score, const int64_t[::1] order, double lambda_, double rho, int n_passes, real own, real[:, ::1] work,
):
    """Return what leaving out its fold adds to the score of each row, and what each fold adds to the bias.

    Parameters
    ----------
    indptr, indices, data
        The arrays of a CSR matrix.
    rows : int64 array of shape (n,)
        The rows that may have an α > 0, with or without a fold. What follows is of the same shape.
    fold
        From 0 to 6, or -1 for rows that no lane leaves out, whose scores are not asked for.
    label, threshold, alpha, score
        +1 or -1, the margin that is asked for, α ≥ 0 of the solution, and the row's score by it.
    order
        Places in `rows`, as rows are presented.
    lambda_, rho, n_passes
        λ, the size of the constant coordinate, and the passes over the rows.
    own
        The part of a row's own α that is taken from its score where training gave it more than the whole lane left it.
    work : array of shape (n_features, 8)
        Zeros on entry, and again on return.

    Returns
    -------
    tuple of ndarray of shape (n,) and ndarray of shape (7,)
    """
    cdef Py_ssize_t n = rows.shape[0], at, i
    cdef int64_t p, start, end
    cdef int l, n_pass, own_fold
    cdef real square, f, a, step
    cdef real[LANES] bias, lanes
    cdef real private = <real>lambda_, rho2 = <real>(rho * rho)
    dtype = np.asarray(data).dtype
    added, of_folds = np.zeros(n, dtype), np.empty(WHOLE, dtype)
    alphas, squares = np.repeat(np.asarray(alpha)[:, None], LANES, axis=1), np.empty(n, dtype)
    cdef real[::1] change = added, of_fold = of_folds, q = squares
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
            if fold[i] >= 0:
                l = <int>fold[i]
                change[i] = of_fold[l] - own * label[i] * (alpha[i] - al[i, WHOLE]) * (q[i] - private)
                for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    change[i] += data[p] * (work[indices[p], l] - work[indices[p], WHOLE])
        for i in range(n):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                for l in range(LANES):
                    work[indices[p], l] = 0
    return added, of_folds
