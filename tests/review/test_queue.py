"""People see first the documents from which most is gained, and a random sample of automatic tags."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.review.queue import audited_tags, choose_documents, choose_sample, reviewed_tags
from textcat.tagging.shards import TaggedDocument


def row(number, *tags):
    """A document with tags, given as topic, probability and status."""
    topics, probabilities, statuses = zip(*tags, strict=True) if tags else ((), (), ())
    return TaggedDocument(f"d{number}", "a", number, topics, None, probabilities, statuses)


def naive_choice(rows, n):
    """The documents with the largest gains, by the definition."""
    has_promises = any(status for document in rows for status in document.statuses)
    promised = {
        topic
        for document in rows
        for topic, status in zip(document.topics, document.statuses, strict=True)
        if status == "automatic"
    }

    expected: dict = {}
    for document in rows:
        for topic, p in zip(document.topics, document.probabilities, strict=True):
            expected[topic] = expected.get(topic, 0) + (0.5 if p is None else p)

    def gain(document):
        return sum(
            (1 if topic in promised else 1e-6) * (0.5 if p is None else p) / max(expected[topic], 1)
            for topic, p, status in zip(document.topics, document.probabilities, document.statuses, strict=True)
            if status == "review" or not has_promises
        )

    numbers = [number for number, document in enumerate(rows) if gain(document) > 0]
    return sorted(numbers, key=lambda number: (-gain(rows[number]), number))[:n], [gain(document) for document in rows]


TAGS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.one_of(st.none(), st.sampled_from([0.125, 0.25, 0.5, 1.0])),
        st.sampled_from([None, "review", "automatic"]),
    ),
    max_size=4,
    unique_by=lambda tag: tag[0],
)


@given(st.lists(TAGS, max_size=12), st.integers(1, 12))
def test_documents_are_chosen_by_their_gain(tags, n):
    rows = [row(number, *of_document) for number, of_document in enumerate(tags)]
    chosen, (expected, gains) = choose_documents(rows, n), naive_choice(rows, n)
    np.testing.assert_allclose([gains[number] for number in chosen.numbers], [gains[number] for number in expected])
    assert len({*chosen.numbers.tolist()}) == len(expected)
    assert chosen.n_open == sum(gain > 0 for gain in gains)


def test_topics_with_a_promise_come_first():
    rows = [row(0, ("a", 0.9, "review")), row(1, ("b", 0.1, "review")), row(2, ("b", 0.99, "automatic"))]
    assert choose_documents(rows, 9).numbers.tolist() == [1, 0]


def test_without_promises_all_tags_wait_for_a_person():
    rows = [row(0, ("a", 0.2, None)), row(1, ("a", None, None), ("b", 0.9, None)), row(2)]
    assert choose_documents(rows, 9).numbers.tolist() == [1, 0]
    assert reviewed_tags(rows[1], has_promises=False) == [True, True]
    assert reviewed_tags(rows[1], has_promises=True) == [False, False]


def test_documents_that_are_done_are_left_out():
    rows = [row(number, ("a", 0.5, "review"), ("b", 0.9, "automatic")) for number in range(20)]
    chosen = choose_documents(rows, 99, 0.5, lambda document: document.position % 2 == 0)
    assert sorted(chosen.numbers.tolist()) == [*range(1, 20, 2)]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_the_audit_is_a_random_sample_of_automatic_tags(share):
    rows = [
        row(number, ("a", 0.9, "automatic"), ("b", 0.4, "review"), ("c", 0.9, "automatic")) for number in range(4000)
    ]
    drawn = np.array([audited_tags(document, share) for document in rows])
    assert not drawn[:, 1].any()
    assert drawn[:, [0, 2]].mean() == pytest.approx(share, abs=4 * (share * (1 - share) / 8000) ** 0.5)
    assert not (drawn & ~np.array([audited_tags(document, 1.0) for document in rows])).any()


def test_a_larger_audit_has_all_of_a_smaller_one():
    rows = [row(number, ("a", 0.9, "automatic")) for number in range(500)]
    small, large = ([audited_tags(document, share)[0] for document in rows] for share in (0.1, 0.4))
    assert all(also for drawn, also in zip(small, large, strict=True) if drawn)


def test_audited_documents_stand_at_random_places_and_in_proportion():
    generator = random.Random(0)
    rows = [row(number, ("a", generator.random(), "review")) for number in range(900)]
    rows += [row(900 + number, ("a", 0.99, "automatic")) for number in range(1000)]
    audited = {number for number, document in enumerate(rows) if any(audited_tags(document, 0.1))}
    numbers = choose_documents(rows, 2000, 0.1).numbers.tolist()
    assert audited < {*numbers}
    assert len(numbers) == 900 + len(audited)
    places = [place for place, number in enumerate(numbers) if number in audited]
    assert np.mean(places) == pytest.approx(len(numbers) / 2, rel=0.2)
    first = choose_documents(rows, 400, 0.1).numbers.tolist()
    assert first == numbers[:400]
    assert len(audited & {*first}) == pytest.approx(400 * len(audited) / len(numbers), abs=25)


def dated(number, month):
    return TaggedDocument(f"d{number}", "a", number, (), date=f"2024-{month:02}-03" if month else "")


def test_a_sample_has_documents_of_each_month_in_turn():
    rows = [dated(number, number % 4) for number in range(400)] + [dated(400, 5)]
    chosen = choose_sample(rows, 30, 1000)
    months = [rows[number].date[5:7] for number in chosen.numbers]
    assert Counter(months) == {"": 30, "01": 30, "02": 30, "03": 30, "05": 1}
    assert {*months[:5]} == {"", "01", "02", "03", "05"}
    assert all(len({*months[start : start + 4]}) == 4 for start in range(5, 121, 4))
    assert choose_sample(rows, 30, 50).numbers.tolist() == chosen.numbers[:50].tolist()
    assert choose_sample(rows, 30, 50).n_open == chosen.n_open == 121


def test_a_larger_sample_has_all_of_a_smaller_one_and_judged_documents_count():
    rows = [dated(number, 1 + number % 2) for number in range(300)]
    small, large = (choose_sample(rows, n, 1000).numbers.tolist() for n in (20, 50))
    assert large[:40] == small
    done = {rows[number].id for number in small[:10]}
    assert choose_sample(rows, 20, 1000, lambda row: row.id in done).numbers.tolist() == small[10:]


def test_each_document_is_as_likely_to_be_in_a_sample():
    drawn = Counter()
    for archive in range(400):
        rows = [TaggedDocument(f"{archive}", f"{archive}", number, (), date="2024") for number in range(20)]
        drawn.update(choose_sample(rows, 5, 1000).numbers.tolist())
    assert all(abs(drawn[number] - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5 for number in range(20))
