"""Shortlists of topics, one product at a time."""

import numpy as np


def product(row, matrix):
    """The product of a row with a matrix, summed in float32 in the order of the row's entries."""
    total = np.zeros(matrix.shape[1], np.float32)
    for feature, value in zip(row.indices, row.data, strict=True):
        for topic, weight in zip(matrix[[feature]].indices, matrix[[feature]].data, strict=True):
            total[topic] += value * weight
    return total


def nearest(rows, matrix, k):
    """The k topics of the highest products above 0 with each row, ascending; of equal ones the first."""
    lists = []
    for row in rows:
        total = product(row, matrix)
        best = [topic for topic in np.argsort(-total, kind="stable")[:k] if total[topic] > 0]
        lists.append(sorted(best) + [-1] * (k - len(best)))
    return np.array(lists, np.int32).reshape(len(lists), k)


def products_at(rows, matrix, listed):
    """The products of each row at its topics."""
    products = [product(row, matrix) for row in rows]
    return [[total[t] if t >= 0 else 0 for t in topics] for total, topics in zip(products, listed, strict=True)]


def scores_at(rows, matrix, bias, listed, other):
    """Product plus bias at the topics listed for each row, and another value elsewhere."""
    scores = np.full((len(listed), matrix.shape[1]), other, np.float32)
    for i, row in enumerate(rows):
        total = product(row, matrix)
        for topic in listed[i][listed[i] >= 0]:
            scores[i, topic] = total[topic] + bias[topic]
    return scores


def rows_by_topic(listed, own):
    """The rows that each topic is listed for, but those that it owns."""
    return [
        [i for i, topics in enumerate(listed) if topic in topics and i not in rows] for topic, rows in enumerate(own)
    ]
