/* The compiled solver for float32 and float64, with its hot loop built for several instruction sets and chosen at run time. */
#ifndef TEXTCAT_LANES_H
#define TEXTCAT_LANES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../_memory.h"
#include "_formula.h"

#define LANES 16
#define AHEAD 4   /* rows between the one that is read and the one whose weights are fetched */
#define COLD 8192 /* columns whose weights, of all lanes, take half a megabyte: what a core's own cache keeps */

/* Rows arranged for the cache, which blocks share.
 *
 * Columns are numbered in the order of their frequency, by 16 bits where these are enough.
 *
 * A feature that a single row has is no column: it acts as the lambda trick's private coordinate does, so its square is
 * added to lambda and its weight, alpha * x, is made at the end. A third of the features of a text collection are such.
 *
 * Where the weights of all columns are more than the cache holds, the rarer columns of a row are listed a second time:
 * while a row is read, the weights that a later one will want are fetched.
 *
 * Features that nearly every row has, such as dimensions, are no columns either: their entries lie together, row by row,
 * a multiple of LANES in number, and so do each lane's weights of them. Products are taken lane by lane, in LANES sums.
 */
typedef struct {
    ptrdiff_t n_rows, n_features, n_columns;
    int64_t *indptr;
    int32_t *wide;                /* the column of every entry, or NULL */
    uint16_t *narrow;             /* the same, where 16 bits are enough, or NULL */
    void *data;                   /* REAL, as what follows as void */
    double *norm2;                /* squared length of every row, lone features included */
    int32_t *feature;             /* of a column; NULL: columns are features */
    int64_t *lone_ptr, *cold_ptr; /* NULL where there are none */
    int32_t *lone_feature, *cold;
    void *lone_data, *lone2; /* lone2: the sum of squares of a row's lone features */
    ptrdiff_t n_dense;
    int32_t *dense_feature;
    void *dense;
} rows;

/* What one problem carries along: N = |a|^2 of the whole weight vector, t = updates so far, R^2 = max q. */
typedef struct {
    formula rule;
    double rho, w_bias, scale, N, t, R;
    double tol; /* the share of all updates so far that a last epoch may have */
    int64_t epochs, max_epochs, epoch_updates, last_updates;
    int ending;                     /* whether the last epoch has been */
    int64_t mini_epochs, mini_left; /* passes over the active set after an epoch, and those still to come */
} lane;

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

/* Fetch what will be read into the cache, but not into its first level, where it would displace what is read now. */
#if defined(__GNUC__) || defined(__clang__)
#define FETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define FETCH(address) ((void)0)
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* float32: two accumulators, and rows arranged for the cache */
#define REAL float
#define ACCUMULATORS 2
#define B(name) PASTE(float_, name)
#include "_arrange.h"
#include "_block.h"
#undef REAL
#undef ACCUMULATORS
#undef B

/* float64: one accumulator, in coordinate order, as the published update counts ask for */
#define REAL double
#define ACCUMULATORS 1
#define IS_DOUBLE
#define B(name) PASTE(double_, name)
#include "_arrange.h"
#include "_block.h"

/* One name for the functions of both number types; s is a double_block where d is set, else a float_block. */
#define EITHER(d, name, ...) ((d) ? double_##name(__VA_ARGS__) : float_##name(__VA_ARGS__))
#define STATE(part) (d ? ((const double_block *)s)->part : ((const float_block *)s)->part)

static void *new_block(int d, const rows *x, const int64_t *order, int level, int single)
{
    return d ? (void *)double_new(x, order, level, single) : (void *)float_new(x, order, level, single);
}
#define measure_rows(d, ...) EITHER(d, measure, __VA_ARGS__)
#define arrange_rows(d, ...) EITHER(d, arrange, __VA_ARGS__)
#define free_block(d, ...) EITHER(d, free, __VA_ARGS__)
#define load_lane(d, ...) EITHER(d, load, __VA_ARGS__)
#define warm_lane(d, ...) EITHER(d, warm, __VA_ARGS__)
#define unload_lane(d, ...) EITHER(d, unload, __VA_ARGS__)
#define run_block(d, ...) EITHER(d, run, __VA_ARGS__)
#define score_rows(d, ...) EITHER(d, score, __VA_ARGS__)
#define measure_margins(d, ...) EITHER(d, margins, __VA_ARGS__)
static lane lane_of(int d, const void *s, int l) { return STATE(lanes[l]); }
static unsigned finished_lanes(int d, const void *s) { return STATE(finished); }

#endif
