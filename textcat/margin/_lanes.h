/* The compiled solver for float32 and float64, with its hot loop built for several instruction sets and chosen at run time. */
#ifndef TEXTCAT_LANES_H
#define TEXTCAT_LANES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_formula.h"

#define LANES 16

/* What one problem carries along: N = |a|^2 of the whole weight vector, t = updates so far, R^2 = max q. */
typedef struct {
    formula rule;
    double rho, w_bias, scale, N, t, R;
    int64_t epochs, max_epochs, epoch_updates, last_updates;
    int64_t mini_epochs, mini_left; /* passes over the active set after an epoch, and those still to come */
} lane;

static void *aligned_zeros(size_t bytes)
{
    void *memory;
    bytes = (bytes + 63) / 64 * 64;
#ifdef _WIN32
    memory = _aligned_malloc(bytes, 64);
#else
    memory = aligned_alloc(64, bytes);
#endif
    return memory ? memset(memory, 0, bytes) : NULL;
}

static void aligned_free(void *memory)
{
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}

#if defined(__GNUC__) || defined(__clang__)
#define VECTOR(width) __attribute__((vector_size(width), __may_alias__))
#define ALIGNED __attribute__((aligned(64)))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_4 _Pragma("GCC unroll 4")
#endif
#ifdef __x86_64__
#define X86
#include <immintrin.h>
#endif
#else /* plain C for any other compiler: vectors of one element */
#define VECTOR(width)
#define ALIGNED
#define UNROLL
#define UNROLL_4
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* float32: two accumulators, and rows arranged for the cache */
#define REAL float
#define ACCUMULATORS 2
#define ARRANGED
#define B(name) PASTE(float_, name)
#include "_block.h"
#undef REAL
#undef ACCUMULATORS
#undef ARRANGED
#undef B

/* float64: one accumulator, in coordinate order, as the published update counts ask for */
#define REAL double
#define ACCUMULATORS 1
#define IS_DOUBLE
#define B(name) PASTE(double_, name)
#include "_block.h"

#endif
