"""Naive twin of textcat.duplicates: sketches and groups in plain Python."""

import re
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hashed(word):
    h = 0xCBF29CE484222325
    for byte in word.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def sketch(text):
    """Return the fingerprint, the number of words, the bins and the sample of a text in ASCII."""
    words = re.findall("(?:[a-z0-9]|(?<=[0-9])[.,](?=[0-9]))+", text.lower())
    pairs, singles, fingerprint = [[] for _ in range(64)], [[] for _ in range(32)], 0
    for word in words:
        fingerprint = mixed((fingerprint + hashed(word)) & MASK)
        if len(word) >= (3 if word[0].isdigit() else 4):
            h = mixed((hashed(word) + GOLDEN) & MASK)
            singles[h >> 59].append(h)
    for one, other in pairwise(words):
        h = mixed((hashed(one) * 3 + hashed(other)) & MASK)
        pairs[h >> 58].append(h)
    bins = [1 + (min(hashes) & 0xFFFF) % 15 if hashes else 0 for hashes in pairs]
    sample = [min(hashes) >> 32 | 1 if hashes else 0 for hashes in singles]
    return fingerprint, len(words), bins, sample


def jaccard(bins, other_bins):
    """Return the Jaccard coefficient, from equal bins: one of fifteen is equal by chance."""
    shared = sum(a == b != 0 for a, b in zip(bins, other_bins, strict=True))
    used = sum(a != 0 or b != 0 for a, b in zip(bins, other_bins, strict=True))
    return Fraction(shared, used), max((15 * shared - used) / (14 * used), 0)


def likeness(jaccard, earlier, later, counts, n):
    """Return J + V / 2 + N / 5, given the samples of two texts, and how many of n texts have each word."""
    smallest = [min(filter(None, bins)) for bins in zip(earlier, later, strict=True) if any(bins)]
    new = [word for word in smallest if word not in earlier and not counts[place(word, 24)]]
    weight = {
        word: max(min(n + 1, 65535).bit_length() - max(counts[place(word, 24)], 1).bit_length(), 0)
        for word in smallest
        if word not in new
    }
    both = sum(weight[word] for word in weight if word in earlier and word in later)
    return jaccard + both / max(sum(weight.values()), 1) / 2 + len(new) / max(len(smallest), 1) / 5


def place(key, bits):
    return ((key * GOLDEN) & MASK) >> (64 - bits)


def groups(texts, least=0):
    """Return for each text the position of the first text of its group, whose texts have a similarity of `least`."""
    sketches, known, group, counts, found_by = [sketch(text) for text in texts], [], [], Counter(), defaultdict(list)
    for i, (fingerprint, n, bins, sample) in enumerate(sketches):
        best = (0, 0, 0)
        group.append(i)
        copy = [j for j in known if n and sketches[j][:3] == (fingerprint, n, bins)]
        if copy:
            group[i] = group[copy[0]]
            continue
        known.append(i)
        if n < 12:
            continue
        keys = sorted(filter(None, sample), key=lambda key: counts[place(key, 24)])
        new = [key for key in keys if not counts[place(key, 24)]]
        seen = keys[len(new) :]
        few = [key for key in seen if counts[place(key, 24)] <= 16]
        for key in seen[: max(10, len(few))]:
            for j in found_by[key][-32:]:
                share, similarity = jaccard(bins, sketches[j][2])
                if share >= Fraction(12, 64) and (share, -j) > best[:2]:
                    best = (share, -j, similarity)
        if (
            best[0]
            and best[2] >= least
            and likeness(best[2], sketches[-best[1]][3], sample, counts, len(known) - 1) >= 0.615
        ):
            group[i] = group[-best[1]]
        n_seen = min(len(seen), 5 - min(len(new), 2))
        for key in seen[:n_seen] + new[: 5 - n_seen]:
            found_by[key].append(i)
        counts.update(place(key, 24) for key in keys)
    return group
