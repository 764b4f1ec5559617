/* Sparse rows times one vector of weights. Each sum has eight parts, so all instruction sets give the same bits. */
#ifndef TEXTCAT_RANKING_H
#define TEXTCAT_RANKING_H

#include <stddef.h>
#include <stdint.h>

#define N_SUMS 8

/* Add the entries of a row from p on (fewer than eight), and the bias. Entry p counts towards sum p mod 8. */
static inline float finished_sum(float *sums, const int32_t *indices, const float *x, const float *w, ptrdiff_t p,
                                 ptrdiff_t end, float bias)
{
    for (ptrdiff_t k = 0; p + k < end; k++) sums[k] += x[p + k] * w[indices[p + k]];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])) + bias;
}

static inline float row_times(const int32_t *indices, const float *x, ptrdiff_t p, ptrdiff_t end, const float *w,
                              float bias)
{
    float sums[N_SUMS] = {0};
    for (; p + N_SUMS <= end; p += N_SUMS)
        for (ptrdiff_t k = 0; k < N_SUMS; k++) sums[k] += x[p + k] * w[indices[p + k]];
    return finished_sum(sums, indices, x, w, p, end, bias);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx2"))) static inline float row_times_avx2(const int32_t *indices, const float *x, ptrdiff_t p,
                                                                   ptrdiff_t end, const float *w, float bias)
{
    float sums[N_SUMS];
    __m256 sum = _mm256_setzero_ps();
    for (; p + N_SUMS <= end; p += N_SUMS) {
        const __m256 weights = _mm256_i32gather_ps(w, _mm256_loadu_si256((const __m256i *)(indices + p)), 4);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(x + p), weights));
    }
    _mm256_storeu_ps(sums, sum);
    return finished_sum(sums, indices, x, w, p, end, bias);
}

#define ROWS_TIMES(name, place)                                                                                        \
    __attribute__((target("avx2"))) static void name##_avx2(const place *indptr, const int32_t *indices,               \
                                                            const float *x, ptrdiff_t first, ptrdiff_t last,           \
                                                            const float *w, float bias, float *scores)                 \
    {                                                                                                                  \
        for (ptrdiff_t i = first; i < last; i++)                                                                       \
            scores[i] = row_times_avx2(indices, x, (ptrdiff_t)indptr[i], (ptrdiff_t)indptr[i + 1], w, bias);           \
    }                                                                                                                  \
    static void name(const place *indptr, const int32_t *indices, const float *x, ptrdiff_t first, ptrdiff_t last,     \
                     const float *w, float bias, float *scores, int plain)                                             \
    {                                                                                                                  \
        if (!plain && __builtin_cpu_supports("avx2")) {                                                                \
            name##_avx2(indptr, indices, x, first, last, w, bias, scores);                                             \
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t i = first; i < last; i++)                                                                       \
            scores[i] = row_times(indices, x, (ptrdiff_t)indptr[i], (ptrdiff_t)indptr[i + 1], w, bias);                \
    }
#else
#define ROWS_TIMES(name, place)                                                                                        \
    static void name(const place *indptr, const int32_t *indices, const float *x, ptrdiff_t first, ptrdiff_t last,     \
                     const float *w, float bias, float *scores, int plain)                                             \
    {                                                                                                                  \
        (void)plain;                                                                                                   \
        for (ptrdiff_t i = first; i < last; i++)                                                                       \
            scores[i] = row_times(indices, x, (ptrdiff_t)indptr[i], (ptrdiff_t)indptr[i + 1], w, bias);                \
    }
#endif

ROWS_TIMES(rows_times_32, int32_t)
ROWS_TIMES(rows_times_64, int64_t)

/* The product of a row and weights in double precision, in four parts. */
static inline double double_row_times(const int32_t *indices, const float *x, ptrdiff_t n, const double *w)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    ptrdiff_t p = 0;
    for (; p + 4 <= n; p += 4) {
        s0 += x[p] * w[indices[p]];
        s1 += x[p + 1] * w[indices[p + 1]];
        s2 += x[p + 2] * w[indices[p + 2]];
        s3 += x[p + 3] * w[indices[p + 3]];
    }
    if (p < n) s0 += x[p] * w[indices[p]];
    if (p + 1 < n) s1 += x[p + 1] * w[indices[p + 1]];
    if (p + 2 < n) s2 += x[p + 2] * w[indices[p + 2]];
    return (s0 + s1) + (s2 + s3);
}

/* The next of the numbers that splitmix64 draws (Steele, Lea, Flood 2014). */
static inline uint64_t drawn(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

#endif
