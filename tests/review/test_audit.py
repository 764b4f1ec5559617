"""The audit tells how often automatic tags are right, with intervals that contain the truth."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from cases import every
from scipy.stats import binomtest

from textcat.corpus.corrections import PLACE, Correction
from textcat.reading.document import Document
from textcat.review.audit import audit_rows, sample_rows
from textcat.tagging.judged_sample import Months
from textcat.tagging.shards import TaggedDocument


def document(number, date="", topics=()):
    return Document(
        f"d{number}", {"text": "x"}, topics, date, fields=dict(zip(PLACE, ("a.jsonl", number, "f"), strict=True))
    )


def correction(number, date, answers, audited, person=""):
    return Correction(document(number, date), answers, person, audited=audited, model="m")


def tags(topics_of, model="m"):
    """The present tags of documents, by number."""
    return {
        ("a.jsonl", number, f"d{number}", "f"): TaggedDocument(
            f"d{number}", "a.jsonl", number, tuple(topics), model=model
        )
        for number, topics in topics_of.items()
    }


def test_rows_are_of_all_of_topics_of_months_and_of_both():
    made = [
        correction(1, "2024-05-03", {"a": True, "b": False}, ("a", "b")),
        correction(2, "2024-05-04", {"a": True}, ("a",)),
        correction(3, "", {"a": False, "b": True}, ("a",)),  # b was not drawn
        correction(3, "", {"a": True}, ("a",)),  # the last answer counts
    ]
    rows = {
        (row.topic, row.month): (row.judged, row.right) for row in audit_rows(made, tags({1: "ab", 2: "a", 3: "ab"}))
    }
    assert rows == {
        ("", ""): (4, 3),
        ("a", ""): (3, 3),
        ("b", ""): (1, 0),
        ("", "2024-05"): (3, 2),
        ("", "unknown"): (1, 1),
        ("a", "2024-05"): (2, 2),
        ("b", "2024-05"): (1, 0),
        ("a", "unknown"): (1, 1),
    }
    assert audit_rows([], {}) == []
    # Only tags that the archive has now count, and those of a former model are others.
    assert [row.judged for row in audit_rows(made, tags({1: "a", 2: "b"})) if not (row.topic or row.month)] == [1]
    assert audit_rows(made, tags({1: "ab"}, model="new")) == []


def test_a_tag_that_was_judged_before_and_after_its_file_changed_counts_once():
    former = correction(1, "", {"a": False}, ("a",))
    now = replace(former.document, fields=former.document.fields | {PLACE[-1]: "g"})
    present = tags({1: "a"})
    present["a.jsonl", 1, "d1", "g"] = present["a.jsonl", 1, "d1", "f"]
    row = audit_rows([former, replace(former, document=now, answers={"a": True})], present)[0]
    assert (row.judged, row.right) == (1, 1)


def test_most_people_decide_whether_an_audited_tag_is_right():
    said = [correction(1, "", {"a": person != "Bob"}, ("a",), person) for person in ("Ann", "Bob", "Carl")]
    for made in permutations(said):
        overall = audit_rows(made, tags({1: "a"}))[0]
        assert (overall.judged, overall.right) == (1, 1)


@every("right, judged", [(0, 3), (3, 3), (17, 20)])
def test_intervals_are_those_of_scipy(right, judged):
    made = [correction(number, "", {"a": number < right}, ("a",)) for number in range(judged)]
    row = audit_rows(made, tags(dict.fromkeys(range(judged), "a")))[0]
    expected = binomtest(right, judged).proportion_ci(method="exact")
    np.testing.assert_allclose((row.low, row.high), (expected.low, expected.high), rtol=1e-9)
    assert row.precision == right / judged


def test_months_are_those_of_the_sample_and_dates_that_are_none_are_unknown():
    dates = ["2024-05-03T10:00:00", "2024-05", "2024", "2024/05", "1990s"]
    made = [correction(number, date, {"a": True}, ("a",)) for number, date in enumerate(dates)]
    months = {row.month: row.judged for row in audit_rows(made, tags(dict.fromkeys(range(5), "a"))) if not row.topic}
    assert months == {"": 5, "2024-01": 1, "2024-05": 2, "unknown": 2}


def test_a_sample_of_documents_tells_precision_and_recall_of_the_present_tags():
    true = {1: "b", 2: "ac", 3: "", 4: "b"}
    given = tags({1: "ab", 2: "a", 3: "", 4: "b"})
    judged = [({*true[row[1]]}, tagged) for row, tagged in given.items()]
    rows = {row.topic: row for row in sample_rows(judged, Months([0] * 4, np.array([10**9])))}
    assert list(rows) == ["", "a", "b", "c"]
    assert {row.documents for row in rows.values()} == {4}
    assert {topic: (row.with_topic, row.tagged, row.right) for topic, row in rows.items()} == {
        "": (4, 4, 3),
        "a": (1, 2, 1),
        "b": (2, 2, 2),
        "c": (1, 0, 0),
    }
    assert (rows["a"].precision, rows["a"].recall) == (0.5, 1)
    assert (rows["c"].precision, rows["c"].precision_low, rows["c"].recall) == (None, None, 0)
    expected = binomtest(3, 4).proportion_ci(method="exact")
    assert (rows[""].recall_low, rows[""].recall_high) == pytest.approx((expected.low, expected.high))
    all_judged = next(iter(sample_rows(judged, Months([0] * 4, np.array([4])))))
    assert (all_judged.precision, all_judged.precision_low, all_judged.precision_high) == (0.75, 0.75, 0.75)
    assert sample_rows([], Months([], np.array([], int))) == []


def test_the_intervals_of_a_sample_contain_the_truth_whatever_the_sizes_of_months():
    rng, sizes = np.random.default_rng(0), np.array([100, 1000, 3000])
    months = []
    for n, right in zip(sizes, (0.95, 0.5, 0.7), strict=True):
        has = rng.random((n, 2)) < (0.2, 0.1)
        given = np.where(has, rng.random((n, 2)) < right, rng.random((n, 2)) < 0.05)
        months.append([(set(np.array([*"ab"])[a]), set(np.array([*"ab"])[b])) for a, b in zip(has, given, strict=True)])
    n_right, n_given, n_true = (
        sum(len(of(*document)) for month in months for document in month)
        for of in (lambda a, b: a & b, lambda a, b: b, lambda a, b: a)
    )
    covered, means = np.zeros(2), np.zeros(2)
    for _ in range(200):
        drawn = [(month, int(i)) for month, n in enumerate(sizes) for i in rng.choice(n, 30, replace=False)]
        of_documents = [months[month][i] for month, i in drawn]
        judged = [(true, TaggedDocument("", "", 0, tuple(given))) for true, given in of_documents]
        row = sample_rows(judged, Months([month for month, _ in drawn], sizes))[0]
        covered += (
            row.precision_low <= n_right / n_given <= row.precision_high,
            row.recall_low <= n_right / n_true <= row.recall_high,
        )
        means += (row.precision / 200, row.recall / 200)
    assert (covered / 200 >= 0.93).all()
    assert means == pytest.approx((n_right / n_given, n_right / n_true), abs=0.03)
