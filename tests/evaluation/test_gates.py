"""Conditions on a new model are read as they are meant, and decided as a slow twin decides them."""

import math
import statistics
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from scipy.stats import t as student_t

from textcat.base.errors import TextcatError
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import evaluate_scores
from textcat.evaluation.gates import Gate, check_gates, macro_interval, parse_gate, t_interval
from textcat.evaluation.promises import CheckedPromise
from textcat.evaluation.significance import resampled_measures

TOPICS = list("abcdef")
SIZES = range(6)
NAMES = {
    "MAP": "macro_average_precision",
    "macro F1": "macro_f1",
    "micro F1": "micro_f1",
    "P@3": "precision@3",
    "nDCG@10": "ndcg@10",
}


def evaluations(*qualities, seed=0, n_documents=60):
    """One evaluation for each model: the larger its quality, the higher do positives score."""
    random = np.random.default_rng(seed)
    labels = random.random((n_documents, len(TOPICS))) < [0.02, 0.02, 0.1, 0.2, 0.3, 0.4]
    labels[:2, :2] = np.eye(2)
    scores = [random.normal(size=labels.shape) + quality * labels for quality in qualities]
    return [evaluate_scores(of_model, labels, TOPICS, SIZES, 100, spec=["ALL", "TOP2"]) for of_model in scores]


def decided(condition, old, new, *, strict=False, n_resamples=100):
    gates = [parse_gate(condition)]
    return check_gates(gates, old, new, n_resamples=n_resamples, seed=0, strict=strict)[0]


# --- reading ---------------------------------------------------------------------------------------------------------


@given(
    name=st.sampled_from([*NAMES]),
    band=st.sampled_from(["", "ALL", "TOP10", "10-50", "cereals of the north"]),
    limit=st.integers(0, 1000).map(lambda thousandths: thousandths / 1000),
    sign=st.sampled_from(["", "-", "+", "−"]),
    space=st.sampled_from(["", " ", "  "]),
)
def test_a_condition_is_read_as_it_is_written(name, band, limit, sign, space):
    written = f"{limit:.3f}".lstrip("0") if limit < 1 else "1"
    for spelt in (name, name.upper(), name.replace(" ", "-"), name.replace(" ", "_")):
        text = f"{space}{spelt}{f' of {band}' if band else ''}{space}<{space}{sign}{written}"
        gate = parse_gate(text)
        assert (gate.text, gate.measure, gate.of) == (text.strip(), NAMES[name], band or "ALL")
        assert gate.limit == (-limit if sign in ("-", "−") else limit)
        assert gate.of_difference == (sign != "" or limit == 0)


@given(topic=st.text(min_size=1).filter(lambda text: text.strip() == text))
def test_any_topic_can_be_named(topic):
    assert parse_gate(f"AP of {topic} < -.05") == Gate(f"AP of {topic} < -.05", "average_precision", topic, -0.05, True)


@every(
    "text, remedy",
    [
        ("MAP > .1", "write MEASURE < LIMIT"),
        ("MAP < 5 %", "write MEASURE < LIMIT"),
        ("MAP <= .1", "write MEASURE < LIMIT"),
        ("< .1", "write MEASURE < LIMIT"),
        ("", "write MEASURE < LIMIT"),
        ("MPA < .1", "Did you mean 'MAP'?"),
        ("quality < .1", "Conditions are of AP, precision, MAP"),
        ("macro precision < .1", "Did you mean 'precision'?"),
        ("precision < .9", "write 'precision of automatic < .9'"),
        ("precision of automatic < -.1", "write 'precision of automatic < .9'"),
        ("macro f2 < .1", "Did you mean 'macro F1'?"),
        ("AP < -.1", "write 'AP of TOPIC'"),
        ("MAP < -5", "from -1 to 1"),
    ],
)
def test_what_is_no_condition_is_refused_with_a_remedy(text, remedy):
    with pytest.raises(TextcatError, match="condition") as error:
        parse_gate(text)
    assert remedy in str(error.value)


@given(st.text())
def test_any_text_is_a_condition_or_refused(text):
    with suppress(TextcatError):
        assert -1 <= parse_gate(text).limit <= 1


# --- deciding --------------------------------------------------------------------------------------------------------


def naive_interval(gate, old, new, samples):
    """By the formulas, with loops over topics and resamples: of both models, `samples` has the measures of these."""
    models = [(old, samples[0]), (new, samples[1])]
    used = models if gate.of_difference else models[1:]

    def difference(values):
        return values[-1] - values[0] if gate.of_difference else values[0]

    if gate.measure == "average_precision":
        place = TOPICS.index(gate.of)
        measured = difference([evaluation.topics[place].average_precision for evaluation, _ in used])
        drawn = [difference([sample.topics["average_precision"][place, k] for _, sample in used]) for k in range(100)]
        n = old.topics[place].test_positives
        spread = statistics.stdev(value for value in drawn if not math.isnan(value))
        reach = spread * student_t.ppf(0.95, n - 1) if n > 1 else math.inf
        return measured, measured - reach, measured + reach
    row = ["ALL", "TOP2"].index(gate.of)
    measured = difference([evaluation.bands[row][gate.measure] for evaluation, _ in used])
    drawn = [difference([sample.bands[gate.measure][row, k] for _, sample in used]) for k in range(100)]
    if gate.measure == "micro_f1":
        low, high = np.quantile(drawn, [0.05, 0.95])
        return measured, measured + low - statistics.mean(drawn), measured + high - statistics.mean(drawn)
    field = {"macro_average_precision": "average_precision", "macro_f1": "f1"}[gate.measure]
    topics = range(6) if gate.of == "ALL" else (4, 5)
    values = [difference([getattr(evaluation.topics[k], field) for evaluation, _ in used]) for k in topics]
    kept = [1 - 1 / old.topics[k].test_positives for k in topics]
    missed = [
        (value - statistics.mean(values)) ** 2 * (1 - (share if field == "average_precision" else share**2))
        for share, value in zip(kept, values, strict=True)
    ]
    reach = norm.ppf(0.95) * math.sqrt(statistics.variance(drawn) + sum(missed) / len(values) ** 2)
    return measured, measured - reach, measured + reach


@pytest.mark.parametrize("strict", [False, True])
def test_conditions_are_decided_as_by_a_slow_twin(strict, monkeypatch):
    measures = ("MAP", "MAP of TOP2", "macro F1", "micro F1", "AP of a", "AP of c", "AP of f")
    limits = ("-.3", "-.1", "-.02", "0", "+.05", ".3", ".6", ".9")
    results = {measure: set() for measure in measures}
    for seed in range(4):
        old, new = evaluations(2, 1.4, seed=seed)
        samples = [resampled_measures(evaluation, 100, 0) for evaluation in (old, new)]
        resampled = {id(old): samples[0], id(new): samples[1]}  # once for all conditions, of which each stands alone
        monkeypatch.setattr(
            "textcat.evaluation.gates.resampled_measures", lambda of, *_, known=resampled: known[id(of)]
        )
        for measure, limit in product(measures, limits):
            gate = parse_gate(f"{measure} < {limit}")
            found = decided(gate.text, old, new, strict=strict)
            measured, low, high = naive_interval(gate, old, new, samples)
            lowest = -1 if gate.of_difference else 0
            assert found.measured == pytest.approx(measured), gate.text
            assert found.interval == pytest.approx((max(low, lowest), min(high, 1)), abs=1e-9), gate.text
            assert found.failed == ((low if strict else high) < gate.limit), gate.text
            results[measure].add(found.failed)
    assert all(results[measure] == {False, True} for measure in measures if measure != "AP of a")


def test_several_conditions_share_the_chance_of_a_false_failure():
    old, new = evaluations(2, 1.8)
    gates = [parse_gate(text) for text in ("MAP < 0", "macro F1 < 0", "AP of f < 0", "micro F1 < 0", "MAP of TOP2 < 0")]
    for strict, level in ((False, 0.98), (True, 0.9)):
        results = check_gates(gates, old, new, n_resamples=100, seed=0, strict=strict)
        assert [result.level for result in results] == pytest.approx([level] * 5)
        for result in results:
            low, high = decided(result.gate, old, new).interval
            if strict:
                assert result.interval == (low, high)
            else:
                assert result.interval[0] <= low < high <= result.interval[1]
    macro = check_gates(gates, old, new, n_resamples=100, seed=0, strict=False)[0]
    single = decided("MAP < 0", old, new)
    reach = [result.interval[1] - result.measured for result in (macro, single)]
    assert reach[0] / reach[1] == pytest.approx(norm.ppf(0.99) / norm.ppf(0.95))


def test_a_model_does_not_fail_against_itself_unless_a_loss_must_be_excluded():
    old, worse = evaluations(3, 0)
    assert not decided("MAP < 0", old, old).failed
    assert decided("MAP < 0", old, worse).failed
    assert not decided("MAP < 0", worse, old, strict=True).failed
    alike, other = evaluations(1, 1)
    assert not decided("MAP < -.001", alike, other).failed
    assert decided("MAP < -.001", alike, other, strict=True).failed


def test_a_topic_of_one_test_document_fails_only_where_a_loss_must_be_excluded():
    labels = np.eye(4, 2, dtype=bool)
    new, old = (evaluate_scores(sign * labels, labels, ["a", "b"], [1, 1], 9, spec="ALL") for sign in (-1.0, 1.0))
    found = decided("AP of a < 0", old, new)
    assert (found.failed, found.interval) == (False, (-1, 1))
    assert decided("AP of a < 0", old, new, strict=True).failed


def test_intervals_are_wider_by_what_the_bootstrap_misses_of_topics_with_few_positives():
    values = np.random.default_rng(0).normal(size=50)
    wider = macro_interval(0.0, values, [0.1, 0.2, 0.6, math.nan], [1, 4, 5, 0])
    spread = math.sqrt(values.var(ddof=1) + (0.2**2 + 0.1**2 / 4 + 0.3**2 / 5) / 9)
    assert wider == pytest.approx((-norm.ppf(0.95) * spread, norm.ppf(0.95) * spread))
    assert t_interval(0.2, values, 1) == (-math.inf, math.inf)


@pytest.mark.parametrize("n_positives", [1, 2, 3, 20])
def test_the_variance_of_means_over_topics_is_right_however_few_their_positives(n_positives):
    """Each topic's value is the mean of its positives, as its average precision nearly is."""
    random, reach = np.random.default_rng(n_positives), []
    for _ in range(300):
        positives = random.normal(size=(40, n_positives))
        drawn = random.integers(0, n_positives, (200, 40, n_positives))
        resampled = np.take_along_axis(positives[None], drawn, axis=2).mean(axis=(1, 2))
        low, high = macro_interval(0.0, resampled, positives.mean(axis=1), [n_positives] * 40)
        reach.append((high - low) / 2 / norm.ppf(0.95))
    assert np.square(reach).mean() == pytest.approx(1 / (40 * n_positives), rel=0.1)


def test_many_topics_are_decided_by_their_documents():
    random = np.random.default_rng(0)
    labels = random.random((80, 6)) < 0.3
    rankings = [np.argsort(-(random.normal(size=labels.shape) + quality * labels)) for quality in (4, 1)]
    old, new = (evaluate_at_k(top, labels, TOPICS, SIZES, 100, ks=[1, 3, 5], spec=["ALL", "TOP2"]) for top in rankings)
    for condition in ("P@1 < -.05", "P@3 of TOP2 < 0"):
        found = decided(condition, old, new)
        gate = parse_gate(condition)
        row = ["ALL", "TOP2"].index(gate.of)
        assert found.measured == new.bands[row][gate.measure] - old.bands[row][gate.measure]
        assert found.failed
        assert found.interval[0] <= found.measured <= found.interval[1]


@pytest.mark.parametrize(("right", "failed", "strictly"), [(90, False, True), (98, False, False), (80, True, True)])
def test_the_precision_of_automatic_tags_is_of_all_topics_together(right, failed, strictly):
    old, new = evaluations(2, 2)
    checked = [("a", "precision", 60, 60), ("f", "precision", 40, right - 60), ("f", "recall", 50, 1)]
    new = replace(new, promises=tuple(CheckedPromise.of(topic, kind, 0.9, *n) for topic, kind, *n in checked))
    results = [decided("precision of automatic < .9", old, new, strict=strict) for strict in (False, True)]
    interval = binomtest(right, 100).proportion_ci(0.9)
    for result in results:
        assert result.measured == right / 100
        assert result.interval == pytest.approx((interval.low, interval.high))
    assert [result.failed for result in results] == [failed, strictly]
    with pytest.raises(TextcatError, match="train it with `--promise"):
        decided("precision of automatic < .9", new, old)


def test_a_topic_without_test_documents_cannot_be_decided():
    labels = np.eye(4, 2, dtype=bool)[:, [0, 0]] & [True, False]
    model = evaluate_scores(labels * 1.0, labels, ["a", "b"], [1, 1], 9, spec=["ALL", "LAST1"])
    with pytest.raises(TextcatError, match="no test document"):
        decided("AP of b < 0", model, model)
