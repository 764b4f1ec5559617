"""Mix the bits of numbers, so that each bit of the result depends on all of them."""

from libc.stdint cimport uint64_t


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """Return x with mixed bits, by the finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)
