"""Blocks of problems over the same sparse rows, sixteen lanes at a time: the thin layer over _lanes.h."""

from libc.stdint cimport int32_t, int64_t

import numpy as np


from textcat.margin.rules cimport Rule, formula


cdef extern from "_lanes.h" nogil:
    enum: LANES

    ctypedef struct lane:
        double w_bias, rho, scale, N, t
        int64_t epochs, last_updates

    ctypedef struct float_block:
        lane lanes[LANES]
        float bias[LANES]
        unsigned active, finished

    ctypedef struct double_block:
        lane lanes[LANES]
        double bias[LANES]
        unsigned active, finished

    float_block *float_new(Py_ssize_t, Py_ssize_t, const int64_t *, const int32_t *, const float *, const int64_t *, int)
    void float_free(float_block *)
    void float_load(float_block *, int, const formula *, double, double, int64_t, int64_t,
                    const int32_t *, Py_ssize_t, const int32_t *, Py_ssize_t)
    void float_warm(float_block *, int, const float *, double, double, const int32_t *, const float *, Py_ssize_t)
    Py_ssize_t float_unload(float_block *, int, float *, int32_t *, float *)
    void float_run(float_block *, Py_ssize_t)
    void float_score(const float_block *, int, const int32_t *, Py_ssize_t, float *)
    void float_margins(float_block *, double *)

    double_block *double_new(Py_ssize_t, Py_ssize_t, const int64_t *, const int32_t *, const double *, const int64_t *, int)
    void double_free(double_block *)
    void double_load(double_block *, int, const formula *, double, double, int64_t, int64_t,
                     const int32_t *, Py_ssize_t, const int32_t *, Py_ssize_t)
    void double_warm(double_block *, int, const double *, double, double, const int32_t *, const double *, Py_ssize_t)
    Py_ssize_t double_unload(double_block *, int, double *, int32_t *, double *)
    void double_run(double_block *, Py_ssize_t)
    void double_score(const double_block *, int, const int32_t *, Py_ssize_t, double *)
    void double_margins(double_block *, double *)


N_LANES = LANES


cdef class Block:
    """Sixteen lanes over CSR rows: load problems, run, unload what has finished.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n_rows + 1,)
    indices : ndarray of int32
    data : ndarray of float32 or float64
        The number type of the rows is that of the training.
    n_features : int
    order : ndarray of int64, shape (n_rows,), or None
        The order in which rows are presented; None: as they stand.
    level : int
        Instruction set: 0 any machine, 1 AVX2, 2 AVX-512, -1 the best there is. The result is the same.
    """

    cdef float_block *single
    cdef double_block *double
    cdef object rows  # keeps the arrays alive
    cdef readonly object dtype
    cdef Py_ssize_t n_rows, n_features

    def __cinit__(self, const int64_t[::1] indptr, const int32_t[::1] indices, data, Py_ssize_t n_features,
                  const int64_t[::1] order=None, int level=-1):
        cdef const float[::1] single
        cdef const double[::1] double
        cdef const float *s
        cdef const double *d
        cdef const int64_t *at = &order[0] if order is not None and order.shape[0] else NULL
        # An empty array has no first element to point at; it is never read either.
        cdef const int32_t *columns = &indices[0] if indices.shape[0] else NULL
        self.rows = (indptr, indices, data, order)
        self.dtype = data.dtype
        self.n_rows = indptr.shape[0] - 1
        self.n_features = n_features
        if data.dtype == np.float32:
            single = data
            s = &single[0] if single.shape[0] else NULL
            with nogil:
                self.single = float_new(self.n_rows, n_features, &indptr[0], columns, s, at, level)
        else:
            double = data
            d = &double[0] if double.shape[0] else NULL
            with nogil:
                self.double = double_new(self.n_rows, n_features, &indptr[0], columns, d, at, level)
        if self.single == NULL and self.double == NULL:
            raise MemoryError(f"no memory for {LANES} lanes of {n_features} weights and {self.n_rows} rows")

    def __dealloc__(self):
        float_free(self.single)
        double_free(self.double)

    @property
    def active(self):
        """Bits of the lanes with a problem in work."""
        return self.single.active if self.single else self.double.active

    @property
    def finished(self):
        """Bits of the lanes whose problem has converged or reached its last epoch."""
        return self.single.finished if self.single else self.double.finished

    def load(self, int lane, Rule rule, double rho, double lambda_, int64_t max_epochs, int64_t mini_epochs,
             const int32_t[::1] positives, const int32_t[::1] left_out):
        """Put a problem into a free lane."""
        cdef const int32_t *p = &positives[0] if positives.shape[0] else NULL
        cdef const int32_t *z = &left_out[0] if left_out.shape[0] else NULL
        if self.single:
            float_load(self.single, lane, &rule.formula, rho, lambda_, max_epochs, mini_epochs,
                       p, positives.shape[0], z, left_out.shape[0])
        else:
            double_load(self.double, lane, &rule.formula, rho, lambda_, max_epochs, mini_epochs,
                        p, positives.shape[0], z, left_out.shape[0])

    def warm(self, int lane, weights, double bias, double t, const int32_t[::1] support, alpha):
        """Start a loaded lane from an earlier solution, reached by t updates, instead of zero."""
        cdef const int32_t *rows = &support[0] if support.shape[0] else NULL
        cdef const float[::1] w32, a32
        cdef const double[::1] w64, a64
        if self.single:
            w32, a32 = weights, alpha
            float_warm(self.single, lane, &w32[0] if w32.shape[0] else NULL, bias, t, rows,
                       &a32[0] if a32.shape[0] else NULL, support.shape[0])
        else:
            w64, a64 = weights, alpha
            double_warm(self.double, lane, &w64[0] if w64.shape[0] else NULL, bias, t, rows,
                        &a64[0] if a64.shape[0] else NULL, support.shape[0])

    def run(self, Py_ssize_t budget):
        """Present at most ``budget`` rows, without the GIL; return the bits of finished lanes."""
        if self.single:
            with nogil:
                float_run(self.single, budget)
        else:
            with nogil:
                double_run(self.double, budget)
        return self.finished

    def score(self, int lane, const int32_t[::1] rows):
        """Return the scores of chosen rows in a lane, shape (n_chosen,)."""
        scores = np.empty(rows.shape[0], self.dtype)
        cdef float[::1] s32
        cdef double[::1] s64
        if rows.shape[0] == 0:
            return scores
        if self.single:
            s32 = scores
            with nogil:
                float_score(self.single, lane, &rows[0], rows.shape[0], &s32[0])
        else:
            s64 = scores
            with nogil:
                double_score(self.double, lane, &rows[0], rows.shape[0], &s64[0])
        return scores

    def margins(self):
        """Return ``(least functional margin, N, w_b)`` of every lane, each of shape (16,); training cannot go on after it."""
        least, squared, biases = np.empty(LANES), np.empty(LANES), np.empty(LANES)
        cdef double[::1] m = least, N = squared, w_b = biases
        cdef lane z
        cdef int l
        if self.single:
            with nogil:
                float_margins(self.single, &m[0])
        else:
            with nogil:
                double_margins(self.double, &m[0])
        for l in range(LANES):
            z = self.single.lanes[l] if self.single else self.double.lanes[l]
            N[l], w_b[l] = z.N, z.w_bias
        return least, squared, biases

    def unload(self, int lane, weights):
        """Free a lane: write its weights, return ``(bias, support rows, alpha, updates, epochs, updates in the last epoch)``."""
        support = np.empty(self.n_rows, np.int32)
        alpha = np.empty(self.n_rows, self.dtype)
        cdef int32_t[::1] rows = support
        cdef float[::1] w32, a32
        cdef double[::1] w64, a64
        cdef Py_ssize_t n = 0
        if self.single:
            z = self.single.lanes[lane]
            w32, a32 = weights, alpha
            with nogil:
                n = float_unload(self.single, lane, &w32[0] if w32.shape[0] else NULL,
                                 &rows[0] if rows.shape[0] else NULL, &a32[0] if a32.shape[0] else NULL)
        else:
            z = self.double.lanes[lane]
            w64, a64 = weights, alpha
            with nogil:
                n = double_unload(self.double, lane, &w64[0] if w64.shape[0] else NULL,
                                  &rows[0] if rows.shape[0] else NULL, &a64[0] if a64.shape[0] else NULL)
        bias = self.dtype.type(z.rho * z.w_bias * z.scale)
        return bias, support[:n].copy(), alpha[:n].copy(), int(z.t), int(z.epochs), int(z.last_updates)
