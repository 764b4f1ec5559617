"""Compiled: train one problem at a time in its dual form; rows of the kernel matrix are fetched for updates only.

The state of a problem is its coefficients α and, for all rows, ``g_i = Σ α_j k(x_j, x_i)``, both unscaled; then

    f(x_i) = scale · (g_i + ρ²·Σα + λ·α_i)

costs nothing to look up, and an update on row i adds a multiple of kernel row i to g.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uintptr_t

import numpy as np

from textcat.margin.rules cimport Rule, formula


cdef extern from *:
    """
    #include <stddef.h>

    /* y += a x */
    #define AXPY(real)                                                                                   \\
        static void real##_axpy(ptrdiff_t n, real a, const real *restrict x, real *restrict y)           \\
        {                                                                                                \\
            _Pragma("omp simd") for (ptrdiff_t k = 0; k < n; k++) y[k] += a * x[k];                      \\
        }
    AXPY(float)
    AXPY(double)
    """
    void float_axpy(Py_ssize_t, float, const float *, float *) noexcept nogil
    void double_axpy(Py_ssize_t, double, const double *, double *) noexcept nogil


ctypedef fused real:
    float
    double


cdef enum:
    # Cost of an update, in presented rows: UPDATE_COST, plus the length of a kernel row divided by ROWS_AT_ONCE.
    UPDATE_COST = 16
    ROWS_AT_ONCE = 16


cdef struct problem:
    formula rule
    double rho, lambda_, w_bias, scale, N, t, R
    double tol  # the share of all updates so far that a last epoch may have
    int64_t epochs, max_epochs, epoch_updates, last_updates
    int64_t mini_epochs, mini_left  # passes over the active set after an epoch, and those still to come
    bint ending, finished  # ending: the last epoch has been
    # the order in which rows are presented (NULL: as they stand), and the active set
    Py_ssize_t n_rows, position, n_set
    const int64_t *order
    int64_t *active_set
    int8_t *labels
    const double *diagonal
    void *g
    void *alpha
    # the support of a warm start, and how much of it is in g
    const int32_t *support
    Py_ssize_t n_support, n_restored
    # addresses of the blocks of kernel rows that are held (0: not held), and the number of updates that used each
    Py_ssize_t block_rows, itemsize
    const uintptr_t *blocks
    int64_t *used


cdef void *_address(array) except? NULL:
    return <void *> <size_t> array.ctypes.data

cdef const void *_kernel_row(problem *z, Py_ssize_t i) noexcept nogil:
    """Return row i of the kernel matrix, or NULL if its block of rows is not in memory."""
    cdef Py_ssize_t b = i // z.block_rows
    if z.blocks[b] == 0:
        return NULL
    z.used[b] += 1
    return <const void *> (z.blocks[b] + <uintptr_t> ((i - b * z.block_rows) * z.n_rows * z.itemsize))


cdef void _add(problem *z, real step, const real *row, real *g) noexcept nogil:
    if real is float:
        float_axpy(z.n_rows, step, row, g)
    else:
        double_axpy(z.n_rows, step, row, g)


cdef void _thresholds(const problem *z, real *upper, real *lower) noexcept nogil:
    """Set the unscaled f at which a positive row (f ≤ upper) or a negative one (f ≥ lower) causes an update."""
    cdef double of_positives = z.rule.threshold(z.rule.p, +1, z.N, z.t, z.R)
    cdef double of_negatives = z.rule.threshold(z.rule.p, -1, z.N, z.t, z.R) if z.rule.uneven else of_positives
    upper[0] = <real> (of_positives / z.scale)
    lower[0] = <real> (-of_negatives / z.scale)


cdef double _squared_length(const problem *z, const real *g, const real *alpha) noexcept nogil:  # N, from Σ α_i f(x_i)
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(z.n_rows):
        if alpha[i] != 0:
            total += <double> alpha[i] * (<double> g[i] + z.lambda_ * <double> alpha[i])
    return z.scale * z.scale * (total + z.w_bias * z.w_bias)


cdef bint _update(problem *z, Py_ssize_t i, real f, const real *row, real *g, real *alpha) noexcept nogil:
    """Update on row i: α ← shrink·α, then α_i ← α_i + grow·y; return whether the scale has changed."""
    cdef double y = z.labels[i], m = y * z.scale * <double> f
    cdef double q = z.diagonal[i] + z.rho * z.rho + z.lambda_
    cdef double shrink = 1, grow = 0, unscaled
    cdef real scale
    cdef Py_ssize_t j
    z.rule.step(z.rule.p, m, q, z.N, z.t, z.R, &shrink, &grow)
    if shrink != 1:
        z.scale *= shrink
        if fabs(z.scale) < 1e-9 or fabs(z.scale) > 1e9:  # long before float32 under- or overflows
            scale = <real> z.scale
            for j in range(z.n_rows):
                g[j] *= scale
                alpha[j] *= scale
            z.w_bias *= z.scale
            z.scale = 1
    unscaled = y * grow / z.scale
    _add(z, <real> unscaled, row, g)
    alpha[i] += <real> unscaled
    z.w_bias += unscaled * z.rho
    z.N = shrink * shrink * z.N + grow * (2 * shrink * m + grow * q)
    z.t += 1
    z.epoch_updates += 1
    return shrink != 1


cdef void _end_pass(problem *z) noexcept nogil:
    """After an epoch, or a pass over the active set (rows that caused updates), begin the next pass or end training."""
    cdef int64_t updates = z.epoch_updates
    z.position = z.epoch_updates = 0
    if z.mini_left:
        z.mini_left = z.mini_left - 1 if updates else 0
        if not z.mini_left:
            z.n_set = 0
            z.finished = z.ending
        return
    z.epochs += 1
    z.last_updates = updates
    z.ending = <double> updates <= z.tol * z.t
    if not updates or z.epochs >= z.max_epochs or (z.ending and not z.mini_epochs):
        z.finished = True
    else:
        z.mini_left = z.mini_epochs


cdef Py_ssize_t _restore(problem *z, Py_ssize_t *budget, real *g, const real *alpha) noexcept nogil:
    """Add the kernel rows of a warm start's support, times their α, to g, until the budget is used up.

    Return the number of the block of kernel rows that must be in memory to continue; -1 if none is missing.
    """
    cdef const real *row
    cdef Py_ssize_t i
    while z.n_restored < z.n_support and budget[0] > 0:
        i = z.support[z.n_restored]
        row = <const real *> _kernel_row(z, i)
        if row == NULL:
            return i // z.block_rows
        _add(z, alpha[i], row, g)
        z.n_restored += 1
        budget[0] -= UPDATE_COST + z.n_rows // ROWS_AT_ONCE
        if z.n_restored == z.n_support:
            z.N = _squared_length(z, g, alpha)
    return -1


cdef Py_ssize_t _present(problem *z, Py_ssize_t budget, real *g, real *alpha) noexcept nogil:
    """Present rows, and update on them, until the budget is used up or the problem is finished.

    Return the number of the block of kernel rows that must be in memory to continue; -1 if none is missing.
    """
    cdef const int64_t *sequence
    cdef const real *row
    cdef Py_ssize_t i, end
    cdef real f, upper = 0, lower = 0, bias = <real> (z.rho * z.w_bias), lambda_ = <real> z.lambda_
    _thresholds(z, &upper, &lower)
    while budget > 0 and not z.finished:
        sequence = <const int64_t *> z.active_set if z.mini_left else z.order
        end = z.n_set if z.mini_left else z.n_rows
        while z.position < end and budget > 0:
            i = sequence[z.position] if sequence != NULL else z.position
            f = g[i] + bias + lambda_ * alpha[i]
            if (z.labels[i] > 0 and f <= upper) or (z.labels[i] < 0 and f >= lower):
                row = <const real *> _kernel_row(z, i)
                if row == NULL:
                    return i // z.block_rows
                if z.mini_epochs and not z.mini_left:
                    z.active_set[z.n_set] = i
                    z.n_set += 1
                if _update(z, i, f, row, g, alpha) or not z.rule.constant:
                    _thresholds(z, &upper, &lower)
                bias = <real> (z.rho * z.w_bias)
                budget -= UPDATE_COST + z.n_rows // ROWS_AT_ONCE
            z.position += 1
            budget -= 1
        if z.position == end:
            _end_pass(z)
            budget -= 1
    return -1


cdef Py_ssize_t _run(problem *z, Py_ssize_t budget, real *g, real *alpha) noexcept nogil:
    cdef Py_ssize_t block = _restore(z, &budget, g, alpha)
    return block if z.n_restored < z.n_support else _present(z, budget, g, alpha)


cdef class Expansion:
    """Train one problem after another in its dual form: f is a sum of kernel values, weighted by coefficients.

    Call `load` with a problem; call `run`, and `hold` the block of kernel rows that it asks for, until the problem is
    finished; then read the attributes.

    `diagonal` is the diagonal of the kernel, float64; `dtype` is the number type of the kernel and of training. A block
    has `block_rows` rows; the last one may have fewer. `order` has int64 row numbers in the order of presentation
    (None: the order of the rows). The attributes ``labels, g, alpha`` have a number per row:
    ``f(x_i) = scale * (g_i + rho * w_bias + lambda * alpha_i)``.
    """

    cdef problem z
    cdef bint single
    cdef object kept  # the arrays that z points into
    cdef Rule rule  # one in Python must stay alive
    cdef dict held
    cdef uintptr_t[::1] blocks
    cdef int64_t[::1] used
    cdef readonly object dtype, labels, g, alpha

    def __cinit__(self, const double[::1] diagonal, dtype, Py_ssize_t block_rows, const int64_t[::1] order=None):
        cdef Py_ssize_t n_rows = diagonal.shape[0], n_blocks = (n_rows + block_rows - 1) // block_rows
        cdef int64_t[::1] active_set = np.empty(n_rows, np.int64)
        self.dtype = np.dtype(dtype)
        self.single = self.dtype == np.float32
        self.blocks, self.used, self.held = np.zeros(n_blocks, np.uintp), np.zeros(n_blocks, np.int64), {}
        self.kept = [diagonal, order, active_set]
        self.z.n_rows, self.z.block_rows, self.z.itemsize = n_rows, block_rows, self.dtype.itemsize
        self.z.finished = True
        if n_rows:  # an empty array has no first element to point at
            self.z.diagonal = &diagonal[0]
            self.z.order = &order[0] if order is not None else NULL
            self.z.active_set = &active_set[0]
            self.z.blocks = &self.blocks[0]
            self.z.used = &self.used[0]

    def load(self, Rule rule, double rho, double lambda_, int64_t max_epochs, int64_t mini_epochs, double tol,
             const int32_t[::1] positives, const int32_t[::1] left_out):
        """Load a problem (the labels of a topic, and its rule) in place of the previous one."""
        cdef problem *z = &self.z
        cdef double longest2 = 0
        cdef int8_t[::1] labels
        cdef Py_ssize_t i
        self.labels = np.full(z.n_rows, -1, np.int8)
        self.g, self.alpha = np.zeros(z.n_rows, self.dtype), np.zeros(z.n_rows, self.dtype)
        labels = self.labels
        for i in range(positives.shape[0]):
            labels[positives[i]] = 1
        for i in range(left_out.shape[0]):
            labels[left_out[i]] = 0
        for i in range(z.n_rows):  # left-out rows are as though they were not there
            if labels[i] and z.diagonal[i] > longest2:
                longest2 = z.diagonal[i]
        z.labels = &labels[0] if z.n_rows else NULL
        z.g, z.alpha = _address(self.g), _address(self.alpha)
        z.rule, self.rule = rule.formula, rule
        z.rho, z.lambda_, z.scale = rho, lambda_, 1
        z.R = sqrt(longest2 + rho * rho + lambda_)
        z.w_bias = z.N = z.t = 0
        z.max_epochs, z.mini_epochs, z.tol = max_epochs, mini_epochs, tol
        z.epochs = z.epoch_updates = z.last_updates = z.mini_left = 0
        z.position = z.n_set = z.n_support = z.n_restored = 0
        z.ending = z.finished = False

    def warm(self, const int32_t[::1] support, alpha, double t):
        """Start the loaded problem from coefficients that were reached by t updates."""
        self.alpha[np.asarray(support)] = alpha
        self.kept[3:] = [support]
        self.z.support = &support[0] if support.shape[0] else NULL
        self.z.n_support = support.shape[0]
        self.z.w_bias = self.z.rho * float(np.sum(alpha, dtype=np.float64))
        self.z.t = t

    def run(self, Py_ssize_t budget):
        """Present about ``budget`` rows at most, without the GIL; return the block to `hold` to continue; -1: none.

        Raise the error that a rule written in Python has raised, if there is one.
        """
        cdef Py_ssize_t block
        with nogil:
            if self.single:
                block = _run(&self.z, budget, <float *> self.z.g, <float *> self.z.alpha)
            else:
                block = _run(&self.z, budget, <double *> self.z.g, <double *> self.z.alpha)
        if self.rule is not None:
            self.rule.raise_failure()
        return block

    def hold(self, Py_ssize_t b, block):
        """Keep block b of kernel rows in memory until `drop` releases it.

        The block is C-contiguous, in the kernel's number type, and of shape (block_rows or fewer, n_rows).
        """
        self.blocks[b] = <uintptr_t> _address(block)
        self.held[b] = block

    def drop(self):
        """Release the block of kernel rows that the fewest updates have used.

        The block that was unused for longest is no better choice, because rows are presented in cycles.
        """
        b = min(self.held, key=self.used.__getitem__)
        self.blocks[b] = 0
        del self.held[b]

    def squared_length(self):
        """Return N = ‖a‖², the squared length of the weight vector, computed anew from the coefficients."""
        if self.single:
            return _squared_length(&self.z, <float *> self.z.g, <float *> self.z.alpha)
        return _squared_length(&self.z, <double *> self.z.g, <double *> self.z.alpha)

    def __getattr__(self, name):
        state = {"scale": self.z.scale, "w_bias": self.z.w_bias, "t": self.z.t, "finished": self.z.finished,
                 "epochs": self.z.epochs, "last_updates": self.z.last_updates, "n_held": len(self.held)}
        if name not in state:
            raise AttributeError(f"an Expansion has no attribute {name!r}")
        return state[name]
