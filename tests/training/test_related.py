"""Which topics go together, and how much that counts, are learnt from documents."""

import numpy as np
import pytest
import scipy.sparse as sp

from textcat.features.rows import Rows
from textcat.margin.learners import PAUM
from textcat.training import related
from textcat.training.related import relate_topics, topic_shares
from textcat.training.shortlist import train_shortlist


def test_shares_are_of_the_documents_with_the_first_topic():
    labels = sp.csr_matrix(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]], np.int8))
    shares = topic_shares(labels).toarray()
    # Two documents without the second topic are added to those of the first.
    expected = np.array([[0, 2 / 5, 1 / 5], [2 / 4, 0, 0], [1 / 4, 0, 0]], np.float32)
    assert shares.tolist() == expected.tolist()


def test_documents_of_very_many_topics_are_left_out_and_the_largest_shares_kept():
    labels = np.zeros((4, 150), np.int8)
    labels[0] = 1
    labels[1, :3] = labels[2, [0, 2]] = 1
    shares = topic_shares(sp.csr_matrix(labels))
    assert shares.nnz == 6
    wide = np.zeros((200, 150), np.int8)
    wide[:, 0] = 1
    for i in range(200):
        wide[i, 1 + i % 149] = 1
    assert np.diff(topic_shares(sp.csr_matrix(wide)).indptr)[0] == 100


@pytest.fixture(scope="module")
def pairs():
    """Rows, labels and names of 80 topics, of which each even one goes with the next; only the even one has a word."""
    random = np.random.default_rng(0)
    n, n_topics = 6000, 80
    labels, rows = np.zeros((n + n_topics, n_topics), np.int8), np.zeros((n + n_topics, 200), np.float32)
    for i in range(n):
        topic = 2 * random.integers(0, n_topics // 2)
        labels[i, topic] = 1
        labels[i, topic + 1] = random.random() < 0.8
        rows[i, topic] = 1
        rows[i, n_topics + random.integers(0, 120, 6)] += 0.5
    rows[n:, :n_topics], labels[n:] = np.eye(n_topics), np.eye(n_topics)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return sp.csr_matrix(rows), sp.csc_matrix(labels), sp.csr_matrix(rows[n:]), n


def trained(pairs, **options):
    rows, labels, names, n = pairs
    learner = PAUM(tau_neg=1.0, tau_pos=10.0, mini_epochs=5)
    first = train_shortlist(rows, labels, names, learner, size=30, groups=np.arange(n))
    return first, relate_topics(first, rows, labels, names, learner, best=5, size=30, groups=np.arange(n), **options)


def test_topics_that_go_together_are_related_and_probabilities_remain_true(pairs):
    rows, labels, _, n = pairs
    first, second = trained(pairs)
    related = second.scorer.related_topics
    assert first.scorer.related_topics is None
    assert related.weight > 0
    assert all(related.shares[j, j + 1] > 0.7 for j in range(0, 80, 2))
    scores = second.scorer.scores(Rows.of(rows[:n]))
    probabilities = second.calibration.probabilities(scores)[scores > -30]
    assert probabilities.sum() == pytest.approx(labels[:n].sum(), rel=0.15)


def test_the_weight_of_few_documents_is_learnt_by_training_on_half_of_them(pairs, monkeypatch):
    numbers = []

    def counting(*arrays, groups, **options):
        numbers.append(len(groups))
        return train_shortlist(*arrays, groups=groups, **options)

    monkeypatch.setattr(related, "train_shortlist", counting)
    trained(pairs)
    assert numbers == [pairs[-1] // 2]


def test_the_result_is_the_same_to_the_bit_for_any_number_of_jobs(pairs):
    one, two = (trained(pairs, n_jobs=jobs)[1] for jobs in (1, 2))
    assert one.scorer.related_topics.weight == two.scorer.related_topics.weight
    assert (one.calibration.a == two.calibration.a).all()
    assert (one.calibration.b == two.calibration.b).all()


def test_too_few_documents_leave_topics_as_they_are(pairs):
    rows, labels, names, _ = pairs
    few = np.append(np.arange(40), np.arange(rows.shape[0] - 80, rows.shape[0]))
    learner = PAUM(tau_neg=1.0, tau_pos=10.0, mini_epochs=5)
    parts = rows[few], sp.csc_matrix(labels[few]), names, learner
    first = train_shortlist(*parts, size=30, groups=np.arange(40))
    assert relate_topics(first, *parts, best=5, size=30, groups=np.arange(40)) is first
