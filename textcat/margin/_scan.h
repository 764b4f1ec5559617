/* The hot loop: look for the next row on which the margin test of some lane fails.
 *
 * Included once per number type and instruction set by _lanes.h, which defines REAL, the vector type V of WIDTH bytes,
 * AT_LEAST(a, b) and AT_MOST(a, b) (one bit per element of a vector), TARGET and the names BLOCK and SCAN. A row is read
 * once for LANES problems: their weights stand side by side, W[feature][lane]. Every lane sums in the order it would use
 * alone, so its result cannot depend on its neighbours; there is no fused multiply-add (-ffp-contract=off), so it cannot
 * depend on the instruction set either.
 *
 * Returns the position of that row, with the functional values in s->f and the lanes in s->failed; `stop` if there is none.
 */
typedef REAL V VECTOR(WIDTH);

/* The product of the dense features of a row with a lane's weights of them: LANES sums, which are then added up in pairs. */
TARGET static REAL DOT(const REAL *x, const REAL *w, ptrdiff_t n)
{
    typedef REAL S VECTOR(16);
    enum { STEP = WIDTH / sizeof(REAL), VECTORS = LANES / STEP, SHORT = sizeof(S) / sizeof(REAL), SHORTS = LANES / SHORT };
    union {
        V vectors[VECTORS];
        S shorts[SHORTS];
        REAL each[LANES];
    } sums;
    V part[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) part[v] = (V){0};
    for (; n > 0; n -= LANES, x += LANES, w += LANES)
        UNROLL for (int v = 0; v < VECTORS; v++) part[v] += ((const V *)x)[v] * ((const V *)w)[v];
    UNROLL for (int v = 0; v < VECTORS; v++) sums.vectors[v] = part[v];
    for (int half = SHORTS / 2; half; half /= 2)
        for (int k = 0; k < half; k++) sums.shorts[k] += sums.shorts[k + half];
    UNROLL for (int half = SHORT / 2; half; half /= 2)
        UNROLL for (int k = 0; k < half; k++) sums.each[k] += sums.each[k + half];
    return sums.each[0];
}

/* w += step * x, over the dense features of a row. */
TARGET static void ADD(REAL *w, const REAL *x, REAL step, ptrdiff_t n)
{
    enum { STEP = WIDTH / sizeof(REAL), VECTORS = LANES / STEP };
    for (; n > 0; n -= LANES, x += LANES, w += LANES)
        UNROLL for (int v = 0; v < VECTORS; v++) ((V *)w)[v] += step * ((const V *)x)[v];
}

/* f += row i, with a second accumulator in g where there are two; indices of 16 bits save a quarter of the reading */
#define ADD_ROW(columns)                                                                                               \
    {                                                                                                                  \
        for (; ACCUMULATORS == 2 && p + 2 <= end; p += 2) {                                                            \
            const V *const w = W + (ptrdiff_t)columns[p] * VECTORS;                                                    \
            const V *const u = W + (ptrdiff_t)columns[p + 1] * VECTORS;                                                \
            UNROLL for (int v = 0; v < VECTORS; v++) {                                                                 \
                f[v] += data[p] * w[v];                                                                                \
                g[v] += data[p + 1] * u[v];                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        for (; p < end; p++) {                                                                                         \
            const V *const w = W + (ptrdiff_t)columns[p] * VECTORS;                                                    \
            UNROLL for (int v = 0; v < VECTORS; v++) f[v] += data[p] * w[v];                                           \
        }                                                                                                              \
    }

TARGET static ptrdiff_t SCAN(BLOCK *s, ptrdiff_t position, ptrdiff_t stop)
{
    enum { STEP = WIDTH / sizeof(REAL), VECTORS = LANES / STEP };
    const rows *const x = s->x;
    const int64_t *const indptr = x->indptr;
    const uint16_t *const narrow = x->narrow;
    const int32_t *const wide = x->wide;
    const REAL *const data = x->data, *const lone2_of = x->lone2;
    const V *const W = (const V *)s->W;
    const V *const alpha = (const V *)s->alpha;
    const V *const bias = (const V *)s->bias, *const lambda = (const V *)s->lambda;
    const V *const upper = (const V *)s->upper, *const lower = (const V *)s->lower;
    const ptrdiff_t n_dense = x->n_dense;
    const REAL *const dense = x->dense;
    REAL dots[LANES] ALIGNED = {0};

    for (; position < stop; position++) {
        const ptrdiff_t i = s->order ? s->order[position] : position;
        const int64_t end = indptr[i + 1];
        int64_t p = indptr[i];
        if (x->cold_ptr && position + AHEAD < stop) {
            const ptrdiff_t later = s->order ? s->order[position + AHEAD] : position + AHEAD;
            for (int64_t q = x->cold_ptr[later]; q < x->cold_ptr[later + 1]; q++)
                FETCH(W + (ptrdiff_t)x->cold[q] * VECTORS);
        }
        V f[VECTORS], g[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) f[v] = g[v] = (V){0};
        if (narrow)
            ADD_ROW(narrow)
        else
            ADD_ROW(wide)
        if (ACCUMULATORS == 2)
            UNROLL for (int v = 0; v < VECTORS; v++) f[v] += g[v];
        if (n_dense) {
            const unsigned trained = s->active & ~(unsigned)s->left_out[i];
            for (int l = 0; l < LANES; l++)
                if (trained & (1u << l)) dots[l] = DOT(dense + i * n_dense, s->dense + l * n_dense, n_dense);
            UNROLL for (int v = 0; v < VECTORS; v++) f[v] += ((const V *)dots)[v];
        }
        UNROLL for (int v = 0; v < VECTORS; v++) f[v] += bias[v];
        const REAL lone2 = lone2_of ? lone2_of[i] : 0;
        UNROLL for (int v = 0; v < VECTORS; v++) f[v] += (lambda[v] + lone2) * alpha[i * VECTORS + v];

        unsigned at_least = 0, at_most = 0;
        UNROLL for (int v = 0; v < VECTORS; v++) at_least |= (unsigned)AT_LEAST(f[v], lower[v]) << (v * STEP);
        const unsigned positive = s->positive[i] & s->active;
        const unsigned negative = s->active & ~(unsigned)s->positive[i] & ~(unsigned)s->left_out[i];
        UNROLL for (int v = 0; v < VECTORS; v++) at_most |= (unsigned)AT_MOST(f[v], upper[v]) << (v * STEP);
        const unsigned failed = (at_least & negative) | (at_most & positive);
        if (failed) {
            memcpy(s->f, f, sizeof f);
            s->failed = failed;
            return position;
        }
    }
    return stop;
}

#undef ADD_ROW
#undef WIDTH
#undef TARGET
#undef V
#undef SCAN
#undef DOT
#undef ADD
#undef AT_LEAST
#undef AT_MOST
