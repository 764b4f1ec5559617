cdef extern from "_formula.h" nogil:
    ctypedef struct formula:
        double (*threshold)(const double *p, int y, double N, double t, double R) noexcept nogil
        void (*step)(const double *p, double m, double q, double N, double t, double R,
                     double *shrink, double *grow) noexcept nogil
        double p[4]
        bint constant
        bint uneven
        bint anew


cdef class Rule:
    cdef formula formula
    cdef dict values
    cdef object failure
    cdef void use_formula(self)
    cdef int raise_failure(self) except -1
