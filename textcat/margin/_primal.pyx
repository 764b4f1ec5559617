"""Compiled: train problems over the same sparse rows, sixteen at a time, each in a lane of a block: calls _lanes.h."""

from libc.stdint cimport int32_t, int64_t, uint16_t

import numpy as np

from textcat.margin.rules cimport Rule, formula


cdef extern from "_lanes.h" nogil:
    enum: LANES, COLD

    ctypedef struct lane:
        double w_bias, rho, scale, N, t
        int64_t epochs, last_updates

    ctypedef struct rows:
        Py_ssize_t n_rows, n_features, n_columns
        int64_t *indptr
        int32_t *wide
        uint16_t *narrow
        void *data
        double *norm2
        int32_t *feature
        int64_t *lone_ptr
        int64_t *cold_ptr
        int32_t *lone_feature
        int32_t *cold
        void *lone_data
        void *lone2
        Py_ssize_t n_dense
        int32_t *dense_feature
        void *dense

    Py_ssize_t measure_rows(int, Py_ssize_t, Py_ssize_t, Py_ssize_t, const int64_t *, const int32_t *, const void *,
                            int32_t *, double *)
    void arrange_rows(int, rows *, Py_ssize_t, Py_ssize_t, const int64_t *, const int32_t *, const void *,
                      const int32_t *, int32_t)
    void *new_block(int, const rows *, const int64_t *, int, int)
    void free_block(int, void *)
    void load_lane(int, void *, int, const formula *, double, double, int64_t, int64_t, double, const int32_t *,
                   Py_ssize_t, const int32_t *, Py_ssize_t)
    void warm_lane(int, void *, int, const void *, double, double, const int32_t *, const void *, Py_ssize_t)
    Py_ssize_t unload_lane(int, void *, int, void *, int32_t *, void *)
    void run_block(int, void *, Py_ssize_t)
    void score_rows(int, const void *, int, const int32_t *, Py_ssize_t, void *)
    void measure_margins(int, void *, double *)
    lane lane_of(int, const void *, int)
    unsigned finished_lanes(int, const void *)


N_LANES = LANES
N_WARM = COLD


cdef void *address_of(array, dtype=None) except? NULL:
    """Return the address of an array's first element; NULL for None.

    Given a dtype, raise ValueError if the array is of another one, or not C-contiguous.
    """
    if array is None:
        return NULL
    if dtype is not None and (array.dtype != dtype or not array.flags.c_contiguous):
        raise ValueError(f"an array must be C-contiguous {np.dtype(dtype)}, got {array.dtype}")
    return <void *><size_t>array.ctypes.data


def measure(indptr, indices, data, df, norm2, Py_ssize_t start, Py_ssize_t stop):
    """Add to df how many rows from `start` to `stop` have each feature; write the rows' squared lengths to norm2.

    Return -1, or the number of the first row whose columns do not ascend or are not features. ``indptr, indices, data``
    are int64, int32, and float32 or float64; df is int32, a number per feature; norm2 is float64, a number per row.
    """
    cdef const int64_t *p = <const int64_t *>address_of(indptr)
    cdef const int32_t *j = <const int32_t *>address_of(indices)
    cdef const void *x = address_of(data)
    cdef int32_t *n = <int32_t *>address_of(df)
    cdef double *squares = <double *>address_of(norm2)
    cdef Py_ssize_t n_features = len(df), wrong
    cdef int is_double = data.dtype == np.float64
    with nogil:
        wrong = measure_rows(is_double, start, stop, n_features, p, j, x, n, squares)
    return wrong


ctypedef fused real:
    float
    double


def dots(const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, rows, const real[::1] weights):
    """Return the dot products of chosen rows, given by number, and weights; sums are in the order of the columns."""
    cdef const int64_t[::1] row = np.ascontiguousarray(rows, np.int64)
    sums = np.zeros(len(row), np.asarray(data).dtype)
    cdef real[::1] total = sums
    cdef Py_ssize_t i
    cdef int64_t p
    with nogil:
        for i in range(len(row)):
            for p in range(indptr[row[i]], indptr[row[i] + 1]):
                total[i] += data[p] * weights[indices[p]]
    return sums


def subset(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int32_t[::1] chosen,
    int32_t[::1] position,
):
    """Return chosen rows of a matrix, without the columns that are empty in them: ``(indptr, indices, data, columns)``.

    The indices count the remaining columns; `columns` has the numbers of these in the matrix, ascending. `position` is
    working memory of shape (n_features,): -1 everywhere on entry, and again on return.
    """
    cdef Py_ssize_t i, n_rows = chosen.shape[0], n = 0, n_columns = 0
    cdef int64_t p
    for i in range(n_rows):
        n += indptr[chosen[i] + 1] - indptr[chosen[i]]
    starts, numbers, values = np.zeros(n_rows + 1, np.int64), np.empty(n, np.int32), np.empty(n, np.float32)
    all_columns = np.empty(n, np.int32)
    cdef int64_t[::1] start = starts
    cdef int32_t[::1] number = numbers, column = all_columns
    cdef float[::1] value = values
    with nogil:
        for i in range(n_rows):
            for p in range(indptr[chosen[i]], indptr[chosen[i] + 1]):
                if position[indices[p]] < 0:
                    position[indices[p]] = 0
                    column[n_columns] = indices[p]
                    n_columns += 1
    columns = np.sort(all_columns[:n_columns])
    column, n = columns, 0
    with nogil:
        for i in range(n_columns):
            position[column[i]] = <int32_t>i
        for i in range(n_rows):
            for p in range(indptr[chosen[i]], indptr[chosen[i] + 1]):
                number[n] = position[indices[p]]
                value[n] = data[p]
                n += 1
            start[i + 1] = n
        for i in range(n_columns):
            position[column[i]] = -1
    return starts, numbers, values, columns


cdef class Rows:
    """Hold rows in an order that suits the processor's cache; blocks of topics that train at the same time share them.

    Lone features (in a single row) and dense features (in most rows) are no columns; cold columns are the rarest ones.

    `shape` is (n_rows, n_features, n_columns). `arrays` has the arrays by their names in _lanes.h: always ``indptr``,
    ``data``, ``norm2``, and ``wide`` or ``narrow``; if features are not columns, ``feature``; with lone features, the
    arrays that begin with ``lone``; with cold columns, those that begin with ``cold``; with dense features, those that
    begin with ``dense``. ``dense`` must be aligned to a line of the cache.
    """

    cdef rows x
    cdef readonly dict arrays
    cdef readonly object dtype

    def __cinit__(self, shape, dict arrays):
        self.arrays = arrays  # keeps them alive
        self.dtype = arrays["data"].dtype
        self.x.n_rows, self.x.n_features, self.x.n_columns = shape
        self.x.indptr = <int64_t *>address_of(arrays["indptr"])
        self.x.wide = <int32_t *>address_of(arrays.get("wide"))
        self.x.narrow = <uint16_t *>address_of(arrays.get("narrow"))
        self.x.data = <void *>address_of(arrays["data"])
        self.x.norm2 = <double *>address_of(arrays["norm2"])
        self.x.feature = <int32_t *>address_of(arrays.get("feature"))
        self.x.lone_ptr = <int64_t *>address_of(arrays.get("lone_ptr"))
        self.x.lone_feature = <int32_t *>address_of(arrays.get("lone_feature"))
        self.x.lone_data = <void *>address_of(arrays.get("lone_data"))
        self.x.lone2 = <void *>address_of(arrays.get("lone2"))
        self.x.cold_ptr = <int64_t *>address_of(arrays.get("cold_ptr"))
        self.x.cold = <int32_t *>address_of(arrays.get("cold"))
        self.x.n_dense = len(arrays.get("dense_feature", ()))
        self.x.dense_feature = <int32_t *>address_of(arrays.get("dense_feature"))
        self.x.dense = <void *>address_of(arrays.get("dense"))

    @property
    def shape(self):
        """The number of rows and the number of features, which includes lone features."""
        return self.x.n_rows, self.x.n_features

    def fill(self, indptr, indices, data, column, int32_t first_cold, Py_ssize_t start, Py_ssize_t stop):
        """Arrange the rows from `start` to `stop`; the rows before `start` must have been arranged.

        `column` has the column of each feature, int32; -1 for a lone feature, which a single row has, and -2 - k for
        the k-th dense one, which most rows have. Columns from `first_cold` on are cold, that is, rare. The array
        ``dense`` must be zero before.
        """
        cdef const int64_t *p = <const int64_t *>address_of(indptr)
        cdef const int32_t *j = <const int32_t *>address_of(indices)
        cdef const int32_t *c = <const int32_t *>address_of(column)
        cdef const void *x = address_of(data)
        cdef int is_double = self.dtype == np.float64
        with nogil:
            arrange_rows(is_double, &self.x, start, stop, p, j, x, c, first_cold)


cdef class Block:
    """Train up to sixteen topics over the same rows, each in a lane: load problems, run, unload finished ones.

    `order` has the int64 row numbers in the order of presentation; None: the order of the rows. Training uses the rows'
    number type. `level` is the instruction set: 0 any machine, 1 AVX2, 2 AVX-512, -1 the best of this machine. With
    `single`, only the first lane exists: it takes a sixteenth of the memory, and cannot measure margins. Neither
    `level` nor `single` changes the result.
    """

    cdef void *block
    cdef int is_double
    cdef object kept  # what must stay alive
    cdef dict rules  # of the lanes; those in Python must stay alive, too
    cdef readonly object dtype
    cdef Py_ssize_t n_rows, n_features

    def __cinit__(self, Rows rows, const int64_t[::1] order=None, int level=-1, bint single=False):
        cdef const int64_t *in_order = &order[0] if order is not None and order.shape[0] else NULL
        self.kept, self.rules = (rows, order), {}
        self.dtype, self.is_double = rows.dtype, rows.dtype == np.float64
        self.n_rows, self.n_features = rows.x.n_rows, rows.x.n_features
        with nogil:
            self.block = new_block(self.is_double, &rows.x, in_order, level, single)
        if self.block == NULL:
            raise MemoryError(f"no memory for {1 if single else LANES} lanes of {self.n_features} weights and {self.n_rows} rows")

    def __dealloc__(self):
        free_block(self.is_double, self.block)

    def load(self, int lane, Rule rule, double rho, double lambda_, int64_t max_epochs, int64_t mini_epochs, double tol,
             const int32_t[::1] positives, const int32_t[::1] left_out):
        """Load a problem (the labels of a topic, and its rule) into a free lane (place for a topic) of the block."""
        cdef const int32_t *p = &positives[0] if positives.shape[0] else NULL
        cdef const int32_t *z = &left_out[0] if left_out.shape[0] else NULL
        self.rules[lane] = rule
        load_lane(self.is_double, self.block, lane, &rule.formula, rho, lambda_, max_epochs, mini_epochs, tol,
                  p, positives.shape[0], z, left_out.shape[0])

    def warm(self, int lane, weights, double bias, double t, const int32_t[::1] support, alpha):
        """Start the problem loaded into a lane from an earlier solution, reached by t updates, instead of zero."""
        cdef const int32_t *rows = &support[0] if support.shape[0] else NULL
        warm_lane(self.is_double, self.block, lane, address_of(weights, self.dtype), bias, t, rows, address_of(alpha, self.dtype),
                  support.shape[0])

    def run(self, Py_ssize_t budget):
        """Present at most ``budget`` rows, without the GIL; bit k of the result is 1 if lane k has finished.

        Raise the error that a rule written in Python has raised, if there is one.
        """
        cdef Rule rule
        with nogil:
            run_block(self.is_double, self.block, budget)
        for rule in self.rules.values():
            rule.raise_failure()
        return finished_lanes(self.is_double, self.block)

    def score(self, int lane, const int32_t[::1] rows):
        """Return the scores of chosen rows for the topic in a lane: shape (n_chosen,)."""
        scores = np.empty(rows.shape[0], self.dtype)
        cdef void *s = address_of(scores)
        if rows.shape[0]:
            with nogil:
                score_rows(self.is_double, self.block, lane, &rows[0], rows.shape[0], s)
        return scores

    def margins(self):
        """Return three arrays of shape (16,) for the topics in the lanes; training cannot continue afterwards.

        They are the least functional margin of a row, N = ‖a‖², and the weight of the coordinate of the bias.
        """
        least, squared, biases = np.empty(LANES), np.empty(LANES), np.empty(LANES)
        cdef double[::1] m = least, N = squared, w_b = biases
        cdef lane z
        cdef int l
        with nogil:
            measure_margins(self.is_double, self.block, &m[0])
        for l in range(LANES):
            z = lane_of(self.is_double, self.block, l)
            N[l], w_b[l] = z.N, z.w_bias
        return least, squared, biases

    def unload(self, int lane, weights):
        """Write the weights of the topic in a lane into `weights`, and free the lane for another problem.

        Return ``(bias, support rows, alpha, updates, epochs, updates in the last epoch)``.
        """
        support, alpha = np.empty(self.n_rows, np.int32), np.empty(self.n_rows, self.dtype)
        z = lane_of(self.is_double, self.block, lane)
        cdef void *w = address_of(weights, self.dtype)
        cdef int32_t *rows = <int32_t *>address_of(support)
        cdef void *a = address_of(alpha)
        cdef Py_ssize_t n
        with nogil:
            n = unload_lane(self.is_double, self.block, lane, w, rows, a)
        bias = self.dtype.type(z.rho * z.w_bias * z.scale)
        return bias, support[:n].copy(), alpha[:n].copy(), int(z.t), int(z.epochs), int(z.last_updates)
