"""The measures of textcat.evaluation.at_k by their textbook formulas: one document after the other, sets and lists."""

from math import exp, log, log2


def measures(rankings, relevant, unknown, topics, k, weights):
    """Measure rankings (lists of topics) against sets of relevant topics, as far as both are of the given topics.

    `unknown` holds how many more topics each document should have been given that do not exist for the ranker.
    """
    sums = dict.fromkeys(["precision", "recall", "ndcg", "f1"], 0)
    documents = pairs = found = gain = best_gain = 0
    for ranking, all_relevant, n_unknown in zip(rankings, relevant, unknown, strict=True):
        right = all_relevant & topics
        R = len(right) + n_unknown
        if R == 0:
            continue
        first = ranking[:k]
        hits = [topic for topic in first if topic in right]
        given = [topic for topic in first if topic in topics]
        sums["precision"] += len(hits) / k
        sums["recall"] += len(hits) / R
        sums["f1"] += 2 * len(hits) / (len(given) + R)
        dcg = sum(1 / log2(rank + 1) for rank, topic in enumerate(first, start=1) if topic in right)
        sums["ndcg"] += dcg / sum(1 / log2(rank + 1) for rank in range(1, min(k, R) + 1))
        documents += 1
        pairs += R
        found += len(hits)
        gain += sum(weights[topic] for topic in hits)
        best_gain += sum(sorted((weights[topic] for topic in right), reverse=True)[:k])
    measured = {name: total / documents if documents else None for name, total in sums.items()}
    measured["pair_recall"] = found / pairs if pairs else None
    measured["psp"] = gain / best_gain if best_gain else None
    return measured


def inverse_propensity(n_l, n, a=0.55, b=1.5):
    """Return 1/p_l (Jain, Prabhu & Varma 2016, section 3) of a topic that n_l of n training documents have."""
    c = (log(n) - 1) * (b + 1) ** a
    return 1 + c * exp(-a * log(n_l + b))
