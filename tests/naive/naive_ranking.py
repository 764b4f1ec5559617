"""The loop of teaching as a student would write it: one number after the other, in Python's floats."""

import numpy as np

_MASK = 2**64 - 1


def drawn(state):
    """The next state of splitmix64, and what it draws."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


def dot(row, w):
    """Four sums, of every fourth entry each."""
    sums = [0.0] * 4
    for p, (column, x) in enumerate(row):
        sums[p % 4] += x * w[column]
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def solve(rows, labels, costs, w, bias, constant, tol, max_epochs, seed, means=None, square=0.0, along=0.0, times=0.0):
    """Algorithm 1 of Hsieh et al. 2008, for rows that are lists of (column, value); w is a dict or a list.

    With means, a row x stands for x - m, and w for w - times·m: m is known by its products with rows, itself and w.
    """
    means = means or [0.0] * len(rows)
    n, epochs, state = len(rows), 0, seed
    order, alphas = list(range(n)), [0.0] * n
    squares = []
    for row, cost, mean in zip(rows, costs, means, strict=True):
        own = constant * constant + 1 / (2 * cost)
        for _, x in row:
            own += x * x
        squares.append(own + (square - 2 * mean))
    while n and epochs < max_epochs:
        worst = 0.0
        for k in range(n):
            state, number = drawn(state)
            j = k + number % (n - k)
            order[k], order[j] = order[j], order[k]
            i = order[k]
            f = dot(rows[i], w) + constant * bias if rows[i] else constant * bias
            f -= along + times * (means[i] - square)
            gradient = labels[i] * f - 1 + alphas[i] / (2 * costs[i])
            projected = gradient if alphas[i] > 0 or gradient < 0 else 0.0
            worst = max(worst, abs(projected))
            if abs(projected) > 0.3 * tol:
                new = max(alphas[i] - gradient / squares[i], 0.0)
                step = (new - alphas[i]) * labels[i]
                alphas[i] = new
                bias += step * constant
                along += step * means[i]
                times += step
                for column, x in rows[i]:
                    w[column] += step * x
        epochs += 1
        if worst <= tol:
            break
    return bias, alphas, epochs, times


def score(row, w, bias):
    """Eight sums in float32, of every eighth entry each."""
    sums = [np.float32(0)] * 8
    for p, (column, x) in enumerate(row):
        sums[p % 8] += np.float32(x) * np.float32(w[column])
    s = sums
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])) + np.float32(bias)


def entries(matrix):
    """The rows of a matrix in CSR form as lists of (column, value)."""
    return [
        [(int(j), float(x)) for j, x in zip(matrix.indices[a:b], matrix.data[a:b], strict=True)]
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
