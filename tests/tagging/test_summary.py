"""The summary of a run: counts, and topics that drift."""

import json
import random

import pytest
from archive_runs import run, written
from hypothesis import given
from hypothesis import strategies as st
from tagged_rows import rows

import textcat
from textcat.runs.progress import RunState
from textcat.runs.results import Counts
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import tag_archive
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
    given = {topic: (size, 1000) for topic, size in sizes.items()}
    counts.topics["unknown"] = 9000
    trained = Trained({**sizes, "unknown": 10}, 1000, {}, given)
    summary = Summary(trained, [], tuple(trained.sizes), counts, RunState(Counts()), 1, [], 1.0, 0)
    found = summary.drifts
    assert {drift.topic for drift in found} == {"often", "seldom", "never"}
    assert [drift.g for drift in found] == sorted((drift.g for drift in found), reverse=True)
    assert summary._replace(counts=Counts()).drifts == []


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1))
def test_a_topic_is_not_missed_where_its_absence_cannot_be_significant(n, other_n, share):
    size = int(share * other_n)
    if not may_be_missed(size, n, other_n):
        assert log_likelihood_ratio(0, n, size, other_n) < 10.8
        assert not find_drifts({}, n, {"wheat": (size, other_n)}, 1)


def test_the_topics_of_a_run_are_gathered_once_however_many_there_are(monkeypatch):
    gathered, sizes = [], Summary.train_sizes.fget
    monkeypatch.setattr(Summary, "train_sizes", property(lambda summary: gathered.append(1) or sizes(summary)))
    trained = Trained({"a": 1, "b": 2, "c": 3}, 9, {}, {"a": (1, 9), "b": (2, 9), "c": (3, 9)})
    summary = Summary(trained, [], ("a", "c"), Counts(), RunState(Counts()), 1, [], 1.0, 0)
    assert summary.given_in_training == {"a": (1, 9), "c": (3, 9)}
    assert len(gathered) == 1


def test_a_summary_tells_of_this_run_and_of_all(model, archive, out):
    summary = run(model, archive, out)
    names, tagged, rejected = written(out)
    assert summary.counts.tagged == len(rows(tagged))
    assert summary.counts.rejected == len(rows(rejected)) == summary.counts.reasons.total()
    assert summary.shards == len(names)
    assert summary.formats == ["jsonl"]
    assert summary.before.counts.records == 0
    assert {drift.topic for drift in summary.drifts} <= summary.trained.sizes.keys()


def write_noisy(path, n, seed):
    """Write documents of which few have a topic, but many have its word."""
    draw, lines = random.Random(seed), []
    for _ in range(n):
        topics = [topic for topic in ("wheat", "oil", "ship") if draw.random() < 0.08]
        words = [word for word in ("wheat", "oil", "ship") if draw.random() < (0.95 if word in topics else 0.3)]
        lines.append({"text": " ".join([*words, *draw.choices([f"word{i}" for i in range(9)], k=3)]), "topics": topics})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def recall_model(tmp_path_factory):
    """A model that, to keep its promises of recall, gives topics to many documents that do not have them."""
    folder = tmp_path_factory.mktemp("recall")
    corpus = textcat.open_corpus(str(write_noisy(folder / "train.jsonl", 600, 0)))
    settings = ["promise.recall=.8", "promise.precision_of={wheat = 0.15}", "topics.forecast=false"]
    return textcat.save(textcat.train(corpus, textcat.read_recipe("default").with_settings(settings)), folder / "model")


@pytest.mark.parametrize("output", [{}, {"automatic": True}, {"min_probability": 0.05}, {"min_probability": 0.5}])
def test_documents_like_those_of_training_do_not_drift_whatever_tags_are_asked_for(recall_model, tmp_path, out, output):
    archive, settings = write_noisy(tmp_path / "later.jsonl", 2000, 1), OutputSettings(**output)
    summary = tag_archive(recall_model, archive, out, output_settings=settings, jobs=1)
    assert summary.drifts == []
    assert not any(topic["drift"] for topic in json.loads((out / "_summary.json").read_text())["all"]["topics"])
    rates = {topic: summary.counts.topics[topic] / 2000 for topic in summary.topics}
    given = {topic: n / n_held_out for topic, (n, n_held_out) in summary.given_in_training.items()}
    assert given == pytest.approx(rates, rel=0.3, abs=0.01)
    if not output:  # compared with labels, they would
        labels = {topic: (size, 600) for topic, size in summary.train_sizes.items()}
        assert find_drifts(summary.counts.topics, 2000, labels, 3)


def test_topics_that_no_document_has_drift_by_the_thresholds_of_promises_too(recall_model, tmp_path, out):
    archive = tmp_path / "later.jsonl"
    archive.write_text('{"text": "word1 word2 word3"}\n' * 500)
    assert tag_archive(recall_model, archive, out, jobs=1).drifts


def test_with_rules_topics_are_not_compared_with_training(recall_model, tmp_path, out):
    rules, archive = tmp_path / "rules.toml", write_noisy(tmp_path / "later.jsonl", 2000, 1)
    rules.write_text('never = ["wheat"]')
    settings = OutputSettings(rules=str(rules))
    summary = tag_archive(recall_model, archive, out, output_settings=settings, jobs=1)
    assert summary.given_in_training == {}
    assert summary.drifts == []
    of_topics = json.loads((out / "_summary.json").read_text())["all"]["topics"]
    assert {topic["in_training"] for topic in of_topics} == {None}
