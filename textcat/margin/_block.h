/* A block: sixteen lanes, each with one problem in work, over the same sparse rows; or a single one, whose numbers lie
 * together as though it worked alone, in a sixteenth of the memory.
 *
 * Included once per number type by _lanes.h, with REAL, ACCUMULATORS and B(name) defined.
 */

typedef struct B(block) {
    const rows *x;     /* shared, and not changed */
    const int64_t *order; /* in which rows are presented (NULL: as they stand) */
    int binary;           /* whether every entry is 1 */
    ptrdiff_t stride;     /* between numbers of one lane in W and alpha: LANES, or 1 in a block of a single lane */

    /* per column or row and lane */
    REAL *W, *alpha;
    REAL *dense; /* per lane and dense feature */
    uint16_t *positive, *left_out, *moved; /* one bit a lane; moved: alpha is not zero */
    uint16_t *in_set;                      /* one bit a lane: the row is in its active set, as it failed in this epoch */

    /* per lane, as the hot loop wants them: bias = rho * w_b; a row fails where f <= upper (positive) or f >= lower (negative) */
    REAL bias[LANES] ALIGNED, lambda[LANES] ALIGNED, upper[LANES] ALIGNED, lower[LANES] ALIGNED, f[LANES] ALIGNED;
    unsigned active, failed, finished;
    unsigned revisiting; /* lanes with passes over their active sets to come, before the next epoch */

    lane lanes[LANES];
    ptrdiff_t position;

    /* A lane that is presented rows by itself is taken out of the lanes for that time, so that its numbers lie together. */
    int alone;  /* whether all of it is out, as no other lane has work */
    int set_is_out; /* whether its weights and the alpha of its active set are */
    int in_place;   /* whether the active set in work is so small that its lane is not taken out */
    REAL *W_alone, *alpha_alone; /* per column; per row */
    int64_t *set; /* the active set in work, n_set rows in the order of presentation */
    ptrdiff_t n_set;
    ptrdiff_t (*scan)(struct B(block) *, ptrdiff_t, ptrdiff_t);
    REAL (*dot)(const REAL *, const REAL *, ptrdiff_t);
    void (*add)(REAL *, const REAL *, REAL, ptrdiff_t);
} B(block);

/* The hot loop, once for every width of vector the machine may have. Each comparison gives one bit an element. */
#define BLOCK B(block)

#ifdef X86
#define WIDTH 64
#define TARGET __attribute__((target("avx512f")))
#define V B(vector64)
#define SCAN B(scan_avx512)
#define DOT B(dot_avx512)
#define ADD B(add_avx512)
#ifdef IS_DOUBLE
#define AT_LEAST(a, b) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_GE_OQ)
#define AT_MOST(a, b) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_LE_OQ)
#else
#define AT_LEAST(a, b) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_GE_OQ)
#define AT_MOST(a, b) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_LE_OQ)
#endif
#include "_scan.h"

#define WIDTH 32
#define TARGET __attribute__((target("avx2")))
#define V B(vector32)
#define SCAN B(scan_avx2)
#define DOT B(dot_avx2)
#define ADD B(add_avx2)
#ifdef IS_DOUBLE
#define AT_LEAST(a, b) _mm256_movemask_pd(_mm256_cmp_pd((__m256d)(a), (__m256d)(b), _CMP_GE_OQ))
#define AT_MOST(a, b) _mm256_movemask_pd(_mm256_cmp_pd((__m256d)(a), (__m256d)(b), _CMP_LE_OQ))
#else
#define AT_LEAST(a, b) _mm256_movemask_ps(_mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_GE_OQ))
#define AT_MOST(a, b) _mm256_movemask_ps(_mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_LE_OQ))
#endif
#include "_scan.h"
#endif

#define TARGET
#define V B(vector)
#define SCAN B(scan_base)
#define DOT B(dot_base)
#define ADD B(add_base)
#ifdef X86
#define WIDTH 16
#ifdef IS_DOUBLE
#define AT_LEAST(a, b) _mm_movemask_pd(_mm_cmpge_pd((__m128d)(a), (__m128d)(b)))
#define AT_MOST(a, b) _mm_movemask_pd(_mm_cmple_pd((__m128d)(a), (__m128d)(b)))
#else
#define AT_LEAST(a, b) _mm_movemask_ps(_mm_cmpge_ps((__m128)(a), (__m128)(b)))
#define AT_MOST(a, b) _mm_movemask_ps(_mm_cmple_ps((__m128)(a), (__m128)(b)))
#endif
#elif defined(__GNUC__)
#define WIDTH 16
#ifdef IS_DOUBLE
#define AT_LEAST(a, b) (((a)[0] >= (b)[0]) | ((a)[1] >= (b)[1]) << 1)
#define AT_MOST(a, b) (((a)[0] <= (b)[0]) | ((a)[1] <= (b)[1]) << 1)
#else
#define AT_LEAST(a, b) \
    (((a)[0] >= (b)[0]) | ((a)[1] >= (b)[1]) << 1 | ((a)[2] >= (b)[2]) << 2 | ((a)[3] >= (b)[3]) << 3)
#define AT_MOST(a, b) \
    (((a)[0] <= (b)[0]) | ((a)[1] <= (b)[1]) << 1 | ((a)[2] <= (b)[2]) << 2 | ((a)[3] <= (b)[3]) << 3)
#endif
#else
#define WIDTH sizeof(REAL)
#define AT_LEAST(a, b) ((a) >= (b))
#define AT_MOST(a, b) ((a) <= (b))
#endif
#include "_scan.h"

#undef BLOCK

/* level: 0 any machine, 1 AVX2, 2 AVX-512; -1 the best this machine has */
static void B(choose)(B(block) *s, int level)
{
    s->scan = B(scan_base), s->dot = B(dot_base), s->add = B(add_base);
#ifdef X86
    const int best = __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
    if (level < 0 || level > best) level = best;
    if (level == 2) s->scan = B(scan_avx512), s->dot = B(dot_avx512), s->add = B(add_avx512);
    if (level == 1) s->scan = B(scan_avx2), s->dot = B(dot_avx2), s->add = B(add_avx2);
#else
    (void)level;
#endif
}

static void B(free)(B(block) *s)
{
    if (!s) return;
    aligned_free(s->W);
    aligned_free(s->alpha);
    aligned_free(s->dense);
    free(s->positive);
    free(s->left_out);
    free(s->moved);
    free(s->in_set);
    free(s->set);
    if (s->stride > 1) free(s->W_alone), free(s->alpha_alone);
    aligned_free(s);
}

/* The weights in lane l of the column that an entry belongs to. */
static REAL *B(weight)(const B(block) *s, int64_t p, int l)
{
    return &s->W[(s->x->narrow ? (ptrdiff_t)s->x->narrow[p] : (ptrdiff_t)s->x->wide[p]) * s->stride + l];
}

/* Return a block without problems, or NULL where memory is short. The rows and their order must stay as long as it does.
 * One of a single lane cannot measure margins. */
static B(block) *B(new)(const rows *x, const int64_t *order, int level, int single)
{
    const size_t n_rows = (size_t)x->n_rows + 1, n_columns = (size_t)x->n_columns + 1;
    B(block) *s = aligned_zeros(sizeof *s);
    if (!s) return NULL;
    s->x = x;
    s->order = order;
    s->stride = single ? 1 : LANES;
    s->alpha = aligned_zeros(n_rows * (size_t)s->stride * sizeof *s->alpha);
    s->positive = calloc(n_rows, sizeof *s->positive);
    s->left_out = calloc(n_rows, sizeof *s->left_out);
    s->moved = calloc(n_rows, sizeof *s->moved);
    s->in_set = calloc(n_rows, sizeof *s->in_set);
    s->set = malloc(n_rows * sizeof *s->set);
    s->alpha_alone = single ? s->alpha : malloc(n_rows * sizeof *s->alpha_alone);
    s->W = aligned_zeros(n_columns * (size_t)s->stride * sizeof *s->W);
    s->W_alone = single ? s->W : malloc(n_columns * sizeof *s->W_alone);
    s->dense = aligned_zeros(((size_t)s->stride * (size_t)x->n_dense + 1) * sizeof *s->dense);
    if (!s->alpha || !s->positive || !s->left_out || !s->moved || !s->in_set || !s->set || !s->alpha_alone || !s->W ||
        !s->W_alone || !s->dense) {
        B(free)(s);
        return NULL;
    }
    s->binary = 1;
    const REAL *const data = x->data;
    for (int64_t p = 0; p < x->indptr[x->n_rows] && s->binary; p++) s->binary = data[p] == 1;
    B(choose)(s, level);
    return s;
}

/* Take the weights of lane l out of the lanes, and alpha of its active set or of all rows; or put them back. */
static void B(take_out)(B(block) *s, int l)
{
    if (s->stride == 1) return;
    for (ptrdiff_t c = 0; c < s->x->n_columns; c++) s->W_alone[c] = s->W[c * LANES + l];
    if (s->alone)
        for (ptrdiff_t i = 0; i < s->x->n_rows; i++) s->alpha_alone[i] = s->alpha[i * LANES + l];
    else
        for (ptrdiff_t k = 0; k < s->n_set; k++) s->alpha_alone[s->set[k]] = s->alpha[s->set[k] * LANES + l];
}

static void B(put_back)(B(block) *s, int l)
{
    if (s->stride == 1) return;
    for (ptrdiff_t c = 0; c < s->x->n_columns; c++) s->W[c * LANES + l] = s->W_alone[c];
    if (s->alone)
        for (ptrdiff_t i = 0; i < s->x->n_rows; i++) s->alpha[i * LANES + l] = s->alpha_alone[i];
    else
        for (ptrdiff_t k = 0; k < s->n_set; k++) s->alpha[s->set[k] * LANES + l] = s->alpha_alone[s->set[k]];
}

static int B(lowest)(unsigned lanes)
{
    int l = 0;
    while (!(lanes & (1u << l))) l++;
    return l;
}

/* Put a lane that works alone, and stays out of the lanes from one run to the next, back into them. */
static void B(back_into_lanes)(B(block) *s)
{
    if (s->alone) B(put_back)(s, B(lowest)(s->active));
    s->alone = 0;
}

/* The thresholds of a lane change only when it updates; the hot loop compares unscaled values, f / scale. */
static void B(refresh)(B(block) *s, int l)
{
    const lane *z = &s->lanes[l];
    const formula *r = &z->rule;
    s->bias[l] = (REAL)(z->rho * z->w_bias);
    const double of_positives = r->threshold(r->p, +1, z->N, z->t, z->R);
    const double of_negatives = r->uneven ? r->threshold(r->p, -1, z->N, z->t, z->R) : of_positives;
    s->upper[l] = (REAL)(of_positives / z->scale);
    s->lower[l] = (REAL)(-of_negatives / z->scale);
}

/* Put a problem into the free lane l; its weights and alpha are zero, or set before by the caller (warm start). */
static void B(load)(B(block) *s, int l, const formula *rule, double rho, double lambda, int64_t max_epochs,
                    int64_t mini_epochs, double tol, const int32_t *positives, ptrdiff_t n_positives,
                    const int32_t *left_out, ptrdiff_t n_left_out)
{
    const uint16_t bit = (uint16_t)(1u << l);
    lane *z = &s->lanes[l];
    double longest2 = 0;
    B(back_into_lanes)(s);
    memset(z, 0, sizeof *z);
    z->rule = *rule;
    z->rho = rho;
    z->scale = 1;
    z->max_epochs = max_epochs;
    z->mini_epochs = mini_epochs;
    z->tol = tol;
    s->lambda[l] = (REAL)lambda;
    for (ptrdiff_t k = 0; k < n_positives; k++) s->positive[positives[k]] |= bit;
    for (ptrdiff_t k = 0; k < n_left_out; k++) {
        s->left_out[left_out[k]] |= bit;
        s->positive[left_out[k]] &= (uint16_t)~bit;
    }
    for (ptrdiff_t i = 0; i < s->x->n_rows; i++) /* left-out rows are as though they were not there */
        if (!(s->left_out[i] & bit) && s->x->norm2[i] > longest2) longest2 = s->x->norm2[i];
    z->R = sqrt(longest2 + rho * rho + lambda);
    s->active |= bit;
    B(refresh)(s, l);
}

/* Start lane l from given weights, bias and alpha, as left behind by an earlier solution of the same problem. */
static void B(warm)(B(block) *s, int l, const REAL *weights, double bias, double t, const int32_t *support,
                    const REAL *alpha, ptrdiff_t n_support)
{
    const uint16_t bit = (uint16_t)(1u << l);
    lane *z = &s->lanes[l];
    double sum = 0;
    for (ptrdiff_t j = 0; j < s->x->n_features; j++) sum += (double)weights[j] * (double)weights[j];
    for (ptrdiff_t c = 0; c < s->x->n_columns; c++) s->W[c * s->stride + l] = weights[s->x->feature ? s->x->feature[c] : c];
    for (ptrdiff_t k = 0; k < s->x->n_dense; k++) s->dense[l * s->x->n_dense + k] = weights[s->x->dense_feature[k]];
    z->w_bias = z->rho ? bias / z->rho : 0;
    sum += z->w_bias * z->w_bias;
    for (ptrdiff_t k = 0; k < n_support; k++) {
        s->alpha[(ptrdiff_t)support[k] * s->stride + l] = alpha[k];
        s->moved[support[k]] |= bit;
        sum += (double)s->lambda[l] * (double)alpha[k] * (double)alpha[k];
    }
    z->N = sum;
    z->t = t;
    B(refresh)(s, l);
}

/* Take weights (n_features) and alpha (n_rows) out of lane l and leave it zero; returns the number of support rows. */
static ptrdiff_t B(unload)(B(block) *s, int l, REAL *weights, int32_t *support, REAL *alpha)
{
    const uint16_t bit = (uint16_t)(1u << l), others = (uint16_t)~bit;
    const REAL scale = (REAL)s->lanes[l].scale;
    const REAL *const lone_data = s->x->lone_data;
    ptrdiff_t n_support = 0;
    memset(weights, 0, (size_t)s->x->n_features * sizeof *weights);
    for (ptrdiff_t c = 0; c < s->x->n_columns; c++) {
        REAL *const w = &s->W[c * s->stride + l];
        weights[s->x->feature ? s->x->feature[c] : c] = scale * *w;
        *w = 0;
    }
    for (ptrdiff_t k = 0; k < s->x->n_dense; k++) {
        REAL *const w = &s->dense[l * s->x->n_dense + k];
        weights[s->x->dense_feature[k]] = scale * *w;
        *w = 0;
    }
    for (ptrdiff_t i = 0; i < s->x->n_rows; i++) {
        s->positive[i] &= others;
        s->left_out[i] &= others;
        s->in_set[i] &= others;
        if (s->moved[i] & bit) {
            REAL *const a = &s->alpha[i * s->stride + l];
            if (*a != 0) {
                support[n_support] = (int32_t)i;
                alpha[n_support++] = scale * *a;
                if (s->x->lone2)
                    for (int64_t p = s->x->lone_ptr[i]; p < s->x->lone_ptr[i + 1]; p++)
                        weights[s->x->lone_feature[p]] = scale * *a * lone_data[p];
            }
            *a = 0;
            s->moved[i] &= others;
        }
    }
    s->active &= ~(unsigned)bit;
    s->finished &= ~(unsigned)bit;
    return n_support;
}

/* Take the scale of lane l into its weights, long before float32 under- or overflows. */
static void B(rescale)(B(block) *s, int l)
{
    lane *z = &s->lanes[l];
    const REAL scale = (REAL)z->scale;
    const int is_out = s->alone || s->set_is_out;
    if (is_out) B(put_back)(s, l);
    for (ptrdiff_t c = 0; c < s->x->n_columns; c++) s->W[c * s->stride + l] *= scale;
    for (ptrdiff_t k = 0; k < s->x->n_dense; k++) s->dense[l * s->x->n_dense + k] *= scale;
    for (ptrdiff_t k = 0; k < s->x->n_rows; k++) s->alpha[k * s->stride + l] *= scale;
    z->w_bias *= z->scale;
    z->scale = 1;
    if (is_out) B(take_out)(s, l);
}

/* w <- shrink w + grow y x in lane l, where row i has failed the margin test with the value f. W and alpha are where the
 * lane's weights and the row's coefficient lie: side by side with those of other lanes, or taken out of them. */
static inline void B(update)(B(block) *s, ptrdiff_t i, int l, REAL f, REAL *restrict W, ptrdiff_t stride, REAL *alpha)
{
    lane *z = &s->lanes[l];
    const double y = s->positive[i] & (1u << l) ? 1 : -1;
    const double m = y * z->scale * (double)f;
    const double q = s->x->norm2[i] + z->rho * z->rho + (double)s->lambda[l];
    double shrink = 1, grow = 0;
    z->rule.step(z->rule.p, m, q, z->N, z->t, z->R, &shrink, &grow);
    if (shrink != 1) {
        z->scale *= shrink;
        if (fabs(z->scale) < 1e-9 || fabs(z->scale) > 1e9) B(rescale)(s, l);
    }
    const double unscaled = y * grow / z->scale;
    const REAL step = (REAL)unscaled;
    const REAL *const restrict data = s->x->data;
    const int64_t end = s->x->indptr[i + 1];
    if (s->x->narrow) {
        const uint16_t *const restrict columns = s->x->narrow;
        for (int64_t p = s->x->indptr[i]; p < end; p++) W[(ptrdiff_t)columns[p] * stride] += step * data[p];
    } else {
        const int32_t *const restrict columns = s->x->wide;
        for (int64_t p = s->x->indptr[i]; p < end; p++) W[(ptrdiff_t)columns[p] * stride] += step * data[p];
    }
    if (s->x->n_dense) s->add(s->dense + l * s->x->n_dense, (REAL *)s->x->dense + i * s->x->n_dense, step, s->x->n_dense);
    *alpha += step;
    s->moved[i] |= (uint16_t)(1u << l);
    if (z->mini_epochs && !(s->revisiting & (1u << l))) s->in_set[i] |= (uint16_t)(1u << l);
    z->w_bias += unscaled * z->rho;
    z->N = shrink * shrink * z->N + grow * (2 * shrink * m + grow * q);
#ifdef IS_DOUBLE
    if (z->rule.anew && s->lambda[l] == 0) {
        double sum = 0;
        for (ptrdiff_t c = 0; c < s->x->n_columns; c++) sum += W[c * stride] * W[c * stride];
        z->N = z->scale * z->scale * (sum + z->w_bias * z->w_bias);
    }
#endif
    z->t++;
    z->epoch_updates++;
    s->bias[l] = (REAL)(z->rho * z->w_bias);
    if (!z->rule.constant || shrink != 1) B(refresh)(s, l);
}

/* f += row i, summed as the hot loop sums it; `times` is `data[p] *`, or nothing where every entry is 1 */
#define ADD_ROW(columns, times, times_next)                                                                            \
    {                                                                                                                  \
        for (; ACCUMULATORS == 2 && p + 2 <= end; p += 2) {                                                            \
            f += times W[(ptrdiff_t)columns[p] * stride];                                                              \
            g += times_next W[(ptrdiff_t)columns[p + 1] * stride];                                                     \
        }                                                                                                              \
        UNROLL_4 for (; p < end; p++) f += times W[(ptrdiff_t)columns[p] * stride];                                    \
        if (ACCUMULATORS == 2) f += g;                                                                                 \
    }

/* Present n rows to lane l: those of a list, or those that come after `first` where it is NULL. The weights, and the rows'
 * coefficients, lie `stride` apart: 1 where the lane has been taken out, LANES where it has not. */
static inline int64_t B(present_to)(B(block) *s, int l, const int64_t *rows, ptrdiff_t first, ptrdiff_t n, REAL *const W,
                                    REAL *const alphas, const ptrdiff_t stride)
{
    const unsigned bit = 1u << l;
    const uint16_t *const narrow = s->x->narrow;
    const int32_t *const wide = s->x->wide;
    const REAL *const data = s->x->data, *const lone2 = s->x->lone2;
    const REAL lambda = s->lambda[l];
    const REAL *const dense = s->x->dense;
    const ptrdiff_t n_dense = s->x->n_dense;
    int64_t updates = 0;
    for (ptrdiff_t k = first; k < first + n; k++) {
        const ptrdiff_t i = rows ? rows[k] : k;
        if (s->left_out[i] & bit) continue;
        REAL *const alpha = &alphas[i * stride];
        const int64_t end = s->x->indptr[i + 1];
        int64_t p = s->x->indptr[i];
        REAL f = 0, g = 0;
        if (narrow && s->binary)
            ADD_ROW(narrow, , )
        else if (narrow)
            ADD_ROW(narrow, data[p] *, data[p + 1] *)
        else
            ADD_ROW(wide, data[p] *, data[p + 1] *)
        if (n_dense) f += s->dot(dense + i * n_dense, s->dense + l * n_dense, n_dense);
        f += s->bias[l];
        f += (lambda + (lone2 ? lone2[i] : 0)) * *alpha;
        if (s->positive[i] & bit ? f <= s->upper[l] : f >= s->lower[l]) {
            B(update)(s, i, l, f, W, stride, alpha);
            updates++;
        }
    }
    return updates;
}

#undef ADD_ROW

static int64_t B(present_alone)(B(block) *s, int l, const int64_t *rows, ptrdiff_t first, ptrdiff_t n)
{
    return B(present_to)(s, l, rows, first, n, s->W_alone, s->alpha_alone, 1);
}

static int64_t B(present_in_place)(B(block) *s, int l, const int64_t *rows, ptrdiff_t n)
{
    return B(present_to)(s, l, rows, 0, n, s->W + l, s->alpha + l, LANES);
}

/* Present the active set once to the lowest lane that has passes to come; returns the number of rows. */
static ptrdiff_t B(mini_epoch)(B(block) *s)
{
    const int l = B(lowest)(s->revisiting);
    lane *z = &s->lanes[l];
    if (z->mini_left == z->mini_epochs) { /* the first of its passes: gather the set */
        int64_t entries = 0;
        s->n_set = 0;
        for (ptrdiff_t position = 0; position < s->x->n_rows; position++) {
            const ptrdiff_t i = s->order ? s->order[position] : position;
            if (!(s->in_set[i] & (1u << l))) continue;
            s->in_set[i] &= (uint16_t)~(1u << l);
            s->set[s->n_set++] = i;
            entries += s->x->indptr[i + 1] - s->x->indptr[i];
        }
        /* Taking a lane out and putting it back touches every column twice. */
        s->in_place = !s->alone && z->mini_epochs * entries < 2 * s->x->n_columns;
    }
    if (!s->alone && !s->set_is_out && !s->in_place) {
        B(take_out)(s, l);
        s->set_is_out = 1;
    }
    const int64_t updates = s->in_place ? B(present_in_place)(s, l, s->set, s->n_set)
                                        : B(present_alone)(s, l, s->set, 0, s->n_set);
    if (!--z->mini_left || !updates) {
        if (s->set_is_out) B(put_back)(s, l);
        s->set_is_out = 0;
        s->revisiting &= ~(1u << l);
        z->epoch_updates = 0;
        if (z->ending) s->finished |= 1u << l;
    }
    return s->n_set;
}

/* What follows an epoch: a lane goes over its active set, or goes on, or has finished. */
static void B(end_epoch)(B(block) *s)
{
    s->position = 0;
    for (int l = 0; l < LANES; l++) {
        lane *z = &s->lanes[l];
        if (!(s->active & (1u << l))) continue;
        z->epochs++;
        z->last_updates = z->epoch_updates;
        z->epoch_updates = 0;
        /* The active set is presented once more after the last epoch: its rows, which were let go first, leave a bias. */
        z->ending = (double)z->last_updates <= z->tol * z->t;
        if (!z->last_updates || z->epochs >= z->max_epochs || (z->ending && !z->mini_epochs))
            s->finished |= 1u << l;
        else if (z->mini_epochs) {
            z->mini_left = z->mini_epochs;
            s->revisiting |= 1u << l;
        }
    }
}

/* Present rows from s->position to `stop` to all lanes. */
static void B(present)(B(block) *s, ptrdiff_t stop)
{
    while ((s->position = s->scan(s, s->position, stop)) < stop) {
        const ptrdiff_t i = s->order ? s->order[s->position] : s->position;
        const unsigned failed = s->failed;
        for (int l = 0; l < LANES; l++)
            if (failed & (1u << l)) B(update)(s, i, l, s->f[l], s->W + l, LANES, &s->alpha[i * LANES + l]);
        s->position++;
    }
}

/* Present at most about `budget` rows; stops early at the end of an epoch in which some lane has finished (see s->finished). */
static void B(run)(B(block) *s, ptrdiff_t budget)
{
    if (!s->active || s->finished) return;
    const int lowest = B(lowest)(s->active);
    if (!s->alone && s->active == 1u << lowest && !s->set_is_out) {
        s->alone = 1;
        B(take_out)(s, lowest);
    }
    while (budget > 0 && !s->finished) {
        if (s->revisiting) {
            budget -= 1 + B(mini_epoch)(s);
            continue;
        }
        const ptrdiff_t stop = budget < s->x->n_rows - s->position ? s->position + budget : s->x->n_rows;
        budget -= stop - s->position + 1;
        if (s->alone) {
            B(present_alone)(s, lowest, s->order, s->position, stop - s->position);
            s->position = stop;
        } else
            B(present)(s, stop);
        if (s->position == s->x->n_rows) B(end_epoch)(s);
    }
    if (s->finished) B(back_into_lanes)(s);
}

/* Scores of chosen rows in lane l, without the private coordinate: what a new document would get. */
static void B(score)(const B(block) *s, int l, const int32_t *rows, ptrdiff_t n, REAL *scores)
{
    const REAL scale = (REAL)s->lanes[l].scale;
    const REAL *const data = s->x->data, *const dense = s->x->dense;
    const ptrdiff_t n_dense = s->x->n_dense;
    for (ptrdiff_t k = 0; k < n; k++) {
        REAL f = 0; /* a held-out row has never updated: its lone features have no weight */
        for (int64_t p = s->x->indptr[rows[k]]; p < s->x->indptr[rows[k] + 1]; p++) f += data[p] * *B(weight)(s, p, l);
        if (n_dense) f += s->dot(dense + rows[k] * n_dense, s->dense + l * n_dense, n_dense);
        scores[k] = scale * (f + s->bias[l]);
    }
}

/* The least functional margin of every lane in work, over the rows it is trained on; infinite where there is none. */
static void B(margins)(B(block) *s, double least[LANES])
{
    for (int l = 0; l < LANES; l++) {
        least[l] = INFINITY;
        s->upper[l] = (REAL)INFINITY; /* so that the hot loop stops at every row that has a label */
        s->lower[l] = (REAL)-INFINITY;
    }
    for (ptrdiff_t position = 0; (position = s->scan(s, position, s->x->n_rows)) < s->x->n_rows; position++) {
        const ptrdiff_t i = s->order ? s->order[position] : position;
        for (int l = 0; l < LANES; l++) {
            const double m = s->positive[i] & (1u << l) ? (double)s->f[l] : -(double)s->f[l];
            if (s->failed & (1u << l) && m < least[l]) least[l] = m;
        }
    }
}
