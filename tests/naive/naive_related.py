"""The evidence of related topics, one share at a time."""

import math

import numpy as np


def sums(listed, scores, a, b, shares, n_best):
    """The expected number of each document's best topics that go with each of its listed topics, in float32."""
    found = np.zeros(listed.shape, np.float32)
    for i, (topics, values) in enumerate(zip(listed.tolist(), scores.tolist(), strict=True)):
        places = [j for j, topic in enumerate(topics) if topic >= 0]
        for j in sorted(places, key=lambda j: -values[j])[:n_best]:
            s = topics[j]
            probability = np.float32(1 / (1 + math.exp(-(a[s] * values[j] + b[s]))))
            for k in places:
                found[i, k] += probability * np.float32(shares[s, topics[k]])
    return found
