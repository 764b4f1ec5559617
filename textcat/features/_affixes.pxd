from libc.stdint cimport uint64_t

cdef enum:
    REACH = 4
    OTHER = 128
    ABSENT = 129
    CODES = 130

cdef enum Answer:
    NO
    YES
    PERHAPS

cdef struct Alternative:
    uint64_t before[REACH][3]
    uint64_t ahead[REACH][3]
    bint reads_before[REACH]  # whether the set there excludes anything
    bint reads_ahead[REACH]
    int width

# Characters as Python keeps them: in 1, 2 or 4 bytes each.
cdef struct String:
    const void* data
    int kind
    Py_ssize_t length


cdef class Tables:
    cdef object ask
    cdef bint readable
    cdef Alternative* table
    cdef int* listed        # for every code its alternatives, one after the other
    cdef int starts[CODES + 1]

    cdef Answer meets(self, const Alternative* each, const String* string, Py_ssize_t point) noexcept nogil
    cdef Answer first(self, const String* string, Py_ssize_t point, int* width) noexcept nogil
    cdef Answer widest(self, const String* string, int* width) noexcept nogil


cdef class Prefixes(Tables):
    pass


cdef class Suffixes(Tables):
    pass


cdef class Infixes(Tables):
    pass


cdef bint surely_cut(
    Prefixes prefixes, Suffixes suffixes, Infixes infixes, bint whole, String string, int* before, int* behind
) noexcept nogil
