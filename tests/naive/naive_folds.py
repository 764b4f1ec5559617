"""The plainest program that shares out units of documents among folds."""


def assign_units(counts, n_folds):
    """Return the fold of each unit; counts[i][t] is the number of documents of topic t in unit i."""
    n_topics = len(counts[0])
    sizes = [sum(unit[t] for unit in counts) for t in range(n_topics)]

    def place(i):
        topics = [t for t in range(n_topics) if counts[i][t]]
        largest = max((counts[i][t] for t in topics), default=0)
        rarest = min(((sizes[t], t) for t in topics), default=(float("inf"), 0))
        return -largest, rarest, i

    folds, n_of = [None] * len(counts), [[0] * n_topics for _ in range(n_folds)]
    for i in sorted(range(len(counts)), key=place):
        costs = []
        for f in range(n_folds):
            cost = 0.0
            for t in range(n_topics):
                if counts[i][t]:
                    cost += 1 / sizes[t] ** 2 * counts[i][t] * n_of[f][t]
            costs.append(cost)
        folds[i] = costs.index(min(costs))
        for t in range(n_topics):
            n_of[folds[i]][t] += counts[i][t]
    return folds
