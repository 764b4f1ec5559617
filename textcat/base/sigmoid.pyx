"""Compiled: the logistic function, its inverse and its fit to labels. scipy.special would take longer to import than to
tag a text.
"""

from libc.math cimport exp, fabs, fmax, log, log1p
from libc.stddef cimport ptrdiff_t

import numpy as np

cdef enum:
    MAX_STEPS = 100

cdef double LAST_STEP = 1e-6  # of a and b; its square is what remains behind it
cdef double RIDGE = 1e-12  # keeps the Newton step finite where all scores are equal


def expit(x):
    """Return ``1 / (1 + exp(-x))`` of an array of any shape, float64: to the bit what `scipy.special.expit` returns."""
    values = np.array(x, np.float64, order="C")
    cdef double[::1] out = values.reshape(-1)
    cdef ptrdiff_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = 1 / (1 + exp(-out[i]))
    return values


def logit(double p):
    """Return ``log(p / (1 - p))`` of a number from 0 to 1: what `scipy.special.logit` returns."""
    if 0.3 <= p <= 0.65:  # near 1/2, the quotient is too near to 1
        return log1p(2 * (p - 0.5)) - log1p(-2 * (p - 0.5))
    return log(p / (1 - p))


cdef struct Sums:
    double loss, a, b, aa, ab, bb


cdef Sums loss_sums(
    const double[::1] z, const double[::1] target, const double[::1] offset, const double[::1] weight,
    double a, double b,
) noexcept nogil:
    """Return the weighted log loss of ``expit(a*z + b + offset)``, and its first and second derivatives by a and b."""
    cdef Sums sums = Sums(0, 0, 0, RIDGE, 0, RIDGE)
    cdef double f, small, p, error, bent
    cdef ptrdiff_t i
    for i in range(z.shape[0]):
        f = a * z[i] + b + offset[i]
        small = exp(-fabs(f))
        p = (1 if f >= 0 else small) / (1 + small)
        error = weight[i] * (p - target[i])
        bent = weight[i] * (p * (1 - p))
        sums.loss += weight[i] * (fmax(f, 0) + log(1 + small) - target[i] * f)
        sums.a += error * z[i]
        sums.b += error
        sums.aa += bent * z[i] * z[i]
        sums.ab += bent * z[i]
        sums.bb += bent
    return sums


def fit_curve(
    const double[::1] z, const double[::1] target, const double[::1] offset, const double[::1] weight, start=(0.0, 0.0)
):
    """Return the a >= 0 and b that minimise the weighted log loss of ``expit(a*z + b + offset)`` against `target`.

    All arrays have an entry per score z. Newton's method begins at `start`, and halves steps that would raise the loss,
    as in Lin, Lin and Weng ("A note on Platt's probabilistic outputs for support vector machines", 2007). If the loss,
    which is convex, is least at a negative a, it is minimised with a = 0.
    """
    cdef double a = start[0], b = start[1], to_a, to_b
    cdef Sums here, there
    cdef int n
    with nogil:
        here = loss_sums(z, target, offset, weight, a, b)
        for n in range(MAX_STEPS):
            to_a = (here.ab / here.bb * here.b - here.a) / (here.aa - here.ab / here.bb * here.ab)
            to_b = -(here.b + here.ab * to_a) / here.bb
            while fmax(fabs(to_a), fabs(to_b)) > LAST_STEP:
                there = loss_sums(z, target, offset, weight, a + to_a, b + to_b)
                if there.loss <= here.loss:
                    break
                to_a, to_b = to_a / 2, to_b / 2
            a, b = a + to_a, b + to_b
            if fmax(fabs(to_a), fabs(to_b)) <= LAST_STEP:
                break
            here = there
    return (a, b) if a >= 0 else fit_curve(np.zeros(z.shape[0]), target, offset, weight)
