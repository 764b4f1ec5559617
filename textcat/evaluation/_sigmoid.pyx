"""Compiled: the logistic function, so that serving need not import scipy.special, which takes longer than to tag."""

from libc.math cimport exp
from libc.stddef cimport ptrdiff_t

import numpy as np


def expit(x):
    """Return ``1 / (1 + exp(-x))`` of an array of any shape, float64: to the bit what `scipy.special.expit` returns."""
    values = np.array(x, np.float64, order="C")
    cdef double[::1] out = values.reshape(-1)
    cdef ptrdiff_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = 1 / (1 + exp(-out[i]))
    return values
