/* Sparse rows times dense weights, built for several instruction sets; the linker chooses, and each gives the same bits. */
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

#endif
