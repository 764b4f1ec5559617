"""Judged documents count as a random sample of a month only if all that are drawn before them are judged, too."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textcat.review.audit import sample_rows
from textcat.review.queue import choose_sample
from textcat.tagging.judged_sample import sample_among
from textcat.tagging.shards import TaggedDocument


def row(number, month, topics=(), id_=""):
    return TaggedDocument(id_ or f"d{number}", "a", number, topics, date=f"2024-{month:02}-03" if month else "")


def place(document):
    return document.source, document.position, document.id


def naive_sample(rows, topics_of):
    """The documents of the sample, by the definition: each month's first ones, up to one that nobody has judged."""
    sample, ended = [], set()
    for number in choose_sample(rows, len(rows), len(rows)).numbers:
        document = rows[number]
        if place(document) not in topics_of:
            ended.add(document.date)
        elif document.date not in ended and topics_of[place(document)] is not None:
            sample.append(document)
    return sample


STATES = st.sampled_from(["judged", "judged", "judged", "skipped", "open"])


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "", "x"]), STATES), max_size=40))
def test_documents_are_of_the_sample_by_its_definition(documents):
    rows = [row(number, month, (), id_) for number, (month, id_, _) in enumerate(documents)]
    topics_of = {
        place(each): {"t"} if state == "judged" else None
        for each, (*_, state) in zip(rows, documents, strict=True)
        if state != "open"
    }
    sample, expected = sample_among(rows, topics_of), naive_sample(rows, topics_of)
    assert {each for _, each in sample.documents} == {*expected}
    assert len(sample.documents) == len(expected)
    assert sample.n_outside == sum(topics is not None for topics in topics_of.values()) - len(expected)
    dates = [each.date for _, each in sample.documents]
    sizes = [sample.months.sizes[number] for number in sample.months.of_document]
    assert sizes == [sum(each.date == date for each in rows) for date in dates]
    assert sample.n_other == sum(each.date not in dates for each in rows)


def test_a_sample_stays_when_documents_move_in_their_file():
    rows = [row(number, 1) for number in range(50)]
    drawn = [rows[number].id for number in choose_sample(rows, 50, 50).numbers]
    moved = [each._replace(position=each.position + 7) for each in reversed(rows)]
    assert [moved[number].id for number in choose_sample(moved, 50, 50).numbers] == drawn


def test_a_month_that_has_grown_is_not_judged_by_its_first_documents():
    first = [row(number, 1, ("gold",)) for number in range(40)]
    grown = [*first, *(row(number, 1) for number in range(40, 400))]  # all have the topic, but no other tag
    topics_of = {place(each): {"gold"} for each in first}
    assert sample_rows(*sample_among(first, topics_of)[:2])[0][-3:] == (1, 1, 1)
    early = sample_among(grown, topics_of)
    assert early.n_outside + len(early.documents) == 40
    assert all(row.recall_low < 0.1 for row in sample_rows(*early[:2]))
    drawn = choose_sample(grown, 100, 1000, lambda each: place(each) in topics_of)
    topics_of |= {place(grown[number]): {"gold"} for number in drawn.numbers}
    sample = sample_among(grown, topics_of)
    assert len(sample.documents) >= 100
    _, of_topic = sample_rows(*sample[:2])
    assert of_topic.recall_low < 0.1 < of_topic.recall_high


def grown_archive(rng, archive):
    """An archive of two months that grow by other documents, with a sample before and one after; and its judgements."""
    rows, true, topics_of, right = [], [], {}, rng.random((4, 2))
    for n, kinds in ((100, (0, 0)), (int(rng.choice([0, 20, 200, 800])), rng.integers(4, size=2))):
        for month, kind in enumerate(kinds, 1):
            has = rng.random(n) < 0.3
            tagged = rng.random(n) < np.where(has, 0.3 + 0.7 * right[kind, 0], 0.3 * right[kind, 1])
            rows += [row(len(rows) + i, month, ("t",) * int(tagged[i]), f"{archive} {len(rows) + i}") for i in range(n)]
            true += [{"t"} if each else set() for each in has]
        for number in choose_sample(rows, 60, 1000, lambda each: place(each) in topics_of).numbers:
            topics_of[place(rows[number])] = true[number]
    return rows, true, topics_of


def test_intervals_contain_the_truth_about_months_that_grow_between_samples():
    rng, covered = np.random.default_rng(0), []
    for archive in range(80):
        rows, true, topics_of = grown_archive(rng, archive)
        has, tagged = (np.array([*map(bool, of)]) for of in (true, [each.topics for each in rows]))
        _, found = sample_rows(*sample_among(rows, topics_of)[:2])
        precision, recall = ((has & tagged).sum() / of.sum() for of in (tagged, has))
        bounds = (found.precision_low, precision, found.precision_high), (found.recall_low, recall, found.recall_high)
        covered.append([low <= truth <= high for low, truth, high in bounds])
    assert (np.mean(covered, axis=0) >= 0.94).all()
