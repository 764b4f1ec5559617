"""What a report draws, counted one document after another."""


def interpolated_precision(scores, labels, recall):
    """The highest precision of all thresholds that let at least this part of the positives pass."""
    found = []
    for score in scores[labels]:
        passed = scores >= score
        if (passed & labels).sum() >= recall * labels.sum() - 1e-9:
            found.append((passed & labels).sum() / passed.sum())
    return max(found)


def mistaken(labels, got):
    """Pairs of a topic that is missing and one that is given wrongly, with how many documents have both."""
    n, pairs = labels.shape[1], []
    for a in range(n):
        for b in range(n):
            count = sum(
                row[a] and not given[a] and given[b] and not row[b] for row, given in zip(labels, got, strict=True)
            )
            if count:
                pairs.append((a, b, count))
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


def label_issues(probabilities, labels):
    """Labels on whose opposite a model is as sure as it is, on average, where that is the label; and surer than not."""
    found = set()
    for j in range(labels.shape[1]):
        p, has = probabilities[:, j], labels[:, j]
        if has.any() and not has.all():
            for i in range(len(p)):
                if has[i] and p[i] <= p[~has].mean() and p[i] <= 0.5:
                    found.add((i, j, True))
                if not has[i] and p[i] >= p[has].mean() and p[i] > 0.5:
                    found.add((i, j, False))
    return found


def worst(scores, labels, given):
    """False positives from the highest score down, false negatives from the lowest up."""
    wrongly = [i for i in range(len(scores)) if given[i] and not labels[i]]
    missed = [i for i in range(len(scores)) if labels[i] and not given[i]]
    return sorted(wrongly, key=lambda i: -scores[i]), sorted(missed, key=lambda i: scores[i])
