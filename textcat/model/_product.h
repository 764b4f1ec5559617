/* Sparse rows times weights, and the highest of scores, built for several instruction sets: each gives the same bits. */
#ifndef TEXTCAT_PRODUCT_H
#define TEXTCAT_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif
#if defined(__GNUC__)
#define FETCH(place) __builtin_prefetch(place)
#else
#define FETCH(place) ((void)(place))
#endif

#define AHEAD 3 /* entries between the one that is added and the one whose weights are fetched */
#define LINE (64 / (ptrdiff_t)sizeof(float))

/* y = x W + b, summed entry by entry, and b at last. */
FOR_EACH_CPU
static void row_product(const float *x, const int32_t *columns, ptrdiff_t n, const float *W, const float *b,
                        ptrdiff_t m, float *restrict y)
{
    for (ptrdiff_t k = 0; k < m; k++) y[k] = 0;
    for (ptrdiff_t p = 0; p < n; p++) {
        const float value = x[p], *restrict w = W + columns[p] * m;
        if (p + AHEAD < n)
            for (ptrdiff_t k = 0; k < m; k += LINE) FETCH(W + columns[p + AHEAD] * m + k);
#pragma omp simd
        for (ptrdiff_t k = 0; k < m; k++) y[k] += value * w[k];
    }
    for (ptrdiff_t k = 0; k < m; k++) y[k] += b[k];
}

/* y = x W + b with the weights of each feature in CSR form, to the bit as `row_product`: a sum that began with 0 stays
   what it is when ±0 is added, so topics are passed over whose weight is not there. What is not finite makes nan of 0.
   `TOPIC` is the type of topics' numbers: of two bytes where they are few enough, as weights of models are mapped. */
#define SPARSE_ROW_PRODUCT(NAME, TOPIC)                                                                                \
    FOR_EACH_CPU                                                                                                       \
    static void NAME(const float *x, const int32_t *columns, ptrdiff_t n, const int64_t *starts, const TOPIC *topics,  \
                     const float *w, const float *b, ptrdiff_t m, float *restrict y)                                   \
    {                                                                                                                  \
        for (ptrdiff_t k = 0; k < m; k++) y[k] = 0;                                                                    \
        for (ptrdiff_t p = 0; p < n; p++) {                                                                            \
            const float value = x[p];                                                                                  \
            const int64_t start = starts[columns[p]], end = starts[columns[p] + 1];                                    \
            int64_t e = start;                                                                                         \
            if (end - start == m) { /* the row of a frequent feature, with its zeros */                                \
                _Pragma("omp simd") for (ptrdiff_t k = 0; k < m; k++) y[k] += value * w[start + k];                    \
            } else if (value - value == 0) {                                                                           \
                /* No topic stands twice in a row. By four: what is loaded need not wait for what was stored. */       \
                for (; e + 4 <= end; e += 4) {                                                                         \
                    const TOPIC k0 = topics[e], k1 = topics[e + 1], k2 = topics[e + 2], k3 = topics[e + 3];            \
                    const float y0 = y[k0], y1 = y[k1], y2 = y[k2], y3 = y[k3];                                        \
                    y[k0] = y0 + value * w[e];                                                                         \
                    y[k1] = y1 + value * w[e + 1];                                                                     \
                    y[k2] = y2 + value * w[e + 2];                                                                     \
                    y[k3] = y3 + value * w[e + 3];                                                                     \
                }                                                                                                      \
                for (; e < end; e++) y[topics[e]] += value * w[e];                                                     \
            } else {                                                                                                   \
                for (ptrdiff_t k = 0; k < m; k++) y[k] += value * (e < end && topics[e] == k ? w[e++] : 0.0f);         \
            }                                                                                                          \
        }                                                                                                              \
        for (ptrdiff_t k = 0; k < m; k++) y[k] += b[k];                                                                \
    }

SPARSE_ROW_PRODUCT(sparse_row_product, int32_t)
SPARSE_ROW_PRODUCT(sparse_row_product_16, uint16_t)

/* Whether a topic comes after another one: by a lower score, nan after all others, and of equals the later one. */
static inline int comes_after(float score, int32_t topic, float other, int32_t other_topic)
{
    if (score < other || (score != score && other == other)) return 1;
    return (score == other || (score != score && other != other)) && topic > other_topic;
}

/* Let the entry at `root` of a heap sink, in which none comes before those below it. */
static inline void sink(float *scores, int32_t *topics, ptrdiff_t n, ptrdiff_t root)
{
    const float score = scores[root];
    const int32_t topic = topics[root];
    for (ptrdiff_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && comes_after(scores[child + 1], topics[child + 1], scores[child], topics[child])) child++;
        if (!comes_after(scores[child], topics[child], score, topic)) break;
        scores[root] = scores[child];
        topics[root] = topics[child];
    }
    scores[root] = score;
    topics[root] = topic;
}

#define BLOCK 64 /* scores that are compared before it is asked whether one of them is high enough */

/* Write the k highest of m scores, the highest first, and whose they are; k is from 1 to m. */
FOR_EACH_CPU
static void row_top(const float *y, ptrdiff_t m, ptrdiff_t k, float *restrict best, int32_t *restrict topics)
{
    for (ptrdiff_t i = 0; i < k; i++) {
        best[i] = y[i];
        topics[i] = (int32_t)i;
    }
    for (ptrdiff_t i = k / 2; i-- > 0;) sink(best, topics, k, i); /* the last of the k comes to lie at the root */
    for (ptrdiff_t start = k; start < m; start += BLOCK) {
        const ptrdiff_t end = start + BLOCK < m ? start + BLOCK : m;
        const float cut = best[0];
        int32_t any = 0;
        if (end - start == BLOCK) {
#pragma omp simd reduction(| : any)
            for (ptrdiff_t i = 0; i < BLOCK; i++) any |= !(y[start + i] <= cut); /* so that nan is looked at, too */
            if (!any) continue;
        }
        for (ptrdiff_t i = start; i < end; i++)
            if (comes_after(best[0], topics[0], y[i], (int32_t)i)) {
                best[0] = y[i];
                topics[0] = (int32_t)i;
                sink(best, topics, k, 0);
            }
    }
    for (ptrdiff_t n = k - 1; n > 0; n--) { /* the last one of those left goes to their end */
        const float score = best[0];
        const int32_t topic = topics[0];
        best[0] = best[n];
        topics[0] = topics[n];
        best[n] = score;
        topics[n] = topic;
        sink(best, topics, n, 0);
    }
}

#endif
