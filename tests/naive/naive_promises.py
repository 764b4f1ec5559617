"""Promises, written as plainly as their definition reads: one topic, one threshold, one document after another."""

from math import comb, inf

import numpy as np


def p_value(correct, documents, share):
    """How probable so many correct documents are, or more."""
    ways = (comb(documents, k) * share**k * (1 - share) ** (documents - k) for k in range(correct, documents + 1))
    return min(1.0, sum(ways))


def sequence(scores, labels, probabilities, share, level):
    """The tests of a topic, each as (documents, correct), in order."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    tests, expected, correct = [], 0.0, 0
    for n, i in enumerate(order, start=1):
        expected, correct = expected + probabilities[i], correct + bool(labels[i])
        is_cut = n == len(order) or scores[order[n]] < scores[i]
        if is_cut and share**n <= level and n <= int(sum(labels) / share):
            tests.append((n, correct, (expected - n * share) / n**0.5))
    if not tests:
        return []
    first = max(range(len(tests)), key=lambda k: tests[k][2])
    return [test[:2] for test in tests[first:]]


def precision(scores, Y, probabilities, share, confidence):
    """How many documents are above each topic's threshold, and how many of them are right; (0, 0): no promise."""
    level = 1 - confidence
    sequences = {
        j: sequence(scores[:, j].tolist(), Y[:, j].tolist(), probabilities[:, j].tolist(), share, level)
        for j in range(scores.shape[1])
        if share ** int(Y[:, j].sum()) <= level
    }
    firsts = {j: p_value(tests[0][1], tests[0][0], share) if tests else 1.0 for j, tests in sequences.items()}
    m, chosen = len(firsts), 0
    for k, p in enumerate(sorted(firsts.values()), start=1):
        if p <= level * k / m:
            chosen = k
    promised = [(0, 0)] * scores.shape[1]
    for j, tests in sequences.items():
        for n, correct in tests if chosen and firsts[j] <= level * chosen / m else ():
            if p_value(correct, n, share) > level * chosen / m:
                break
            promised[j] = (n, correct)
    return promised


def recall(scores, labels, share, confidence):
    """The least number of a topic's documents that must be above the threshold; None: no number suffices."""
    n = int(np.sum(labels))
    return next((k for k in range(n + 1) if p_value(k, n, share) <= 1 - confidence), None)


def above(scores, n):
    """The n highest scores are above this, the others are not."""
    ranked = sorted(scores, reverse=True)
    return ranked[n] if n < len(ranked) else -inf


def missed(probabilities, Y, probability):
    """The mean share of their topics that documents miss above a probability."""
    shares = [
        sum(p <= probability for p, is_topic in zip(row, labels, strict=True) if is_topic) / sum(labels)
        for row, labels in zip(probabilities, Y, strict=True)
        if any(labels)
    ]
    return sum(shares) / len(shares), len(shares)
