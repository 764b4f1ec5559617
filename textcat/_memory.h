/* Memory that begins on a line of the cache. Large memory lies in huge pages where there are such: what is read all over
 * the place would have each of so many small pages looked up first. */
#ifndef TEXTCAT_MEMORY_H
#define TEXTCAT_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#define LARGE ((size_t)4 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

static inline void *aligned_memory(size_t bytes)
{
    void *memory;
    const size_t alignment = bytes < LARGE ? 64 : HUGE_PAGE;
    bytes = (bytes + alignment - 1) / alignment * alignment;
#ifdef _WIN32
    memory = _aligned_malloc(bytes, alignment);
#else
    memory = aligned_alloc(alignment, bytes);
#endif
#ifdef MADV_HUGEPAGE
    if (memory && alignment == HUGE_PAGE) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static inline void *aligned_zeros(size_t bytes)
{
    void *memory = aligned_memory(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static inline void aligned_free(void *memory)
{
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}

#endif
