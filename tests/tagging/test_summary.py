"""The summary of a run: counts, and topics that drift."""

import pytest
from archive_runs import run, written
from hypothesis import given
from hypothesis import strategies as st
from tagged_rows import rows

from textcat.runs.progress import RunState
from textcat.runs.results import Counts
from textcat.tagging.summary import Summary, Trained, find_drifts, log_likelihood_ratio, may_be_missed


def test_g_squared_is_twice_the_sum_of_observed_times_log_of_observed_over_expected():
    from scipy.stats import chi2_contingency

    for k, n, other_k, other_n in [(10, 100, 5, 200), (0, 50, 20, 400), (300, 1000, 299, 1000)]:
        table = [[k, n - k], [other_k, other_n - other_k]]
        wanted = chi2_contingency(table, correction=False, lambda_="log-likelihood")
        assert log_likelihood_ratio(k, n, other_k, other_n) == pytest.approx(wanted.statistic)
    assert log_likelihood_ratio(0, 0, 1, 2) == 0


def test_a_topic_drifts_if_its_rate_is_far_from_training_and_that_is_no_chance():
    counts = Counts(10_000, 10_000)
    counts.topics.update({"same": 1000, "often": 4000, "seldom": 20, "rather": 2000, "rare": 4})
    sizes = {"same": 100, "often": 100, "seldom": 100, "rather": 100, "rare": 0, "never": 100}
    summary = Summary(Trained(sizes, 1000, {}), [], tuple(sizes), counts, RunState(Counts()), 1, [], 1.0, 0)
    found = summary.drifts
    assert {drift.topic for drift in found} == {"often", "seldom", "never"}
    assert [drift.g for drift in found] == sorted((drift.g for drift in found), reverse=True)
    assert summary._replace(counts=Counts()).drifts == []


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1))
def test_a_topic_is_not_missed_where_its_absence_cannot_be_significant(n, other_n, share):
    size = int(share * other_n)
    if not may_be_missed(size, n, other_n):
        assert log_likelihood_ratio(0, n, size, other_n) < 10.8
        assert not find_drifts({}, n, {"wheat": size}, other_n, 1)


def test_a_summary_tells_of_this_run_and_of_all(model, archive, out):
    summary = run(model, archive, out)
    names, tagged, rejected = written(out)
    assert summary.counts.tagged == len(rows(tagged))
    assert summary.counts.rejected == len(rows(rejected)) == summary.counts.reasons.total()
    assert summary.shards == len(names)
    assert summary.formats == ["jsonl"]
    assert summary.before.counts.records == 0
    assert {drift.topic for drift in summary.drifts} <= summary.trained.sizes.keys()
