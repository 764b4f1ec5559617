from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint16_t

cdef extern from "_product.h":
    void row_product(
        const float* x, const int32_t* columns, ptrdiff_t n, const float* W, const float* b, ptrdiff_t m, float* y
    ) noexcept nogil
    void sparse_row_product(
        const float* x, const int32_t* columns, ptrdiff_t n, const int64_t* starts, const int32_t* topics,
        const float* w, const float* b, ptrdiff_t m, float* y
    ) noexcept nogil
    void sparse_row_product_16(
        const float* x, const int32_t* columns, ptrdiff_t n, const int64_t* starts, const uint16_t* topics,
        const float* w, const float* b, ptrdiff_t m, float* y
    ) noexcept nogil
    void row_top(const float* y, ptrdiff_t m, ptrdiff_t k, float* best, int32_t* topics) noexcept nogil

# Numbers of topics take two bytes in models of at most 65,536 topics.
ctypedef fused topic_t:
    int32_t
    uint16_t


cdef inline void row_times(
    const float* x, const int32_t* columns, ptrdiff_t n, const int64_t* starts, const topic_t* topics,
    const float* w, const float* b, ptrdiff_t m, float* y
) noexcept nogil:
    if topic_t is int32_t:
        sparse_row_product(x, columns, n, starts, topics, w, b, m, y)
    else:
        sparse_row_product_16(x, columns, n, starts, topics, w, b, m, y)
