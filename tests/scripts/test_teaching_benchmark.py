"""scripts/benchmark teaching: ELAS u4 is what ASReview has, and both are compared on the same starts."""

import gzip
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def teaching(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS / "benchmarks"))
    import teaching

    return teaching


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two reviews of 50 records each."""
    folder = tmp_path_factory.mktemp("reviews")
    for seed, name in enumerate(("virus", "plants")):
        generator = np.random.default_rng(seed)
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for i in range(50):
                words = generator.choice(["study", "trial", "dose", "patient", "risk", "group"], 5)
                own = "statin lipid" if i % 6 == 0 else "nurse school"
                record = {"id": str(i), "title": own if i % 5 else "", "body": " ".join(words)}
                file.write(json.dumps(record | {"topics": ["included"] * (i % 6 == 0)}) + "\n")
    return folder


def test_elas_is_weighed_as_by_asreview_s_balancer(teaching):
    generator = np.random.default_rng(0)
    X = csr_matrix(generator.random((30, 8)) * (generator.random((30, 8)) < 0.5))
    y = np.arange(30) % 7 == 0
    # asreview.models.balancers.Balanced(ratio=9.8).compute_sample_weight
    weights = compute_sample_weight({1: 1.0, 0: sum(y == 1) / (9.8 * sum(y == 0))}, y=y.astype(int))
    weights = weights * (len(y) / sum(weights))
    known = LinearSVC(loss="squared_hinge", C=0.11, random_state=0).fit(X, y, weights).decision_function(X)
    elas = teaching.Elas(X)
    np.testing.assert_allclose(elas.scores(elas.train(np.arange(30), np.where(y, 1, -1))), known)


def test_both_are_compared_on_the_same_starts(teaching, folder, tmp_path, monkeypatch):
    from harness import Work

    monkeypatch.setenv("TEXTCAT_SCREENING", str(folder))
    rows = teaching.reviews(Work(tmp_path, rounds=2, jobs=1))
    assert [row["review"] for row in rows] == ["plants", "virus", "mean"]
    assert [row["N"] for row in rows] == [50, 50, None]
    ours = [float(row["loss textcat"]) for row in rows]
    assert ours[-1] == pytest.approx(np.mean(ours[:2]), abs=1e-4)
    for row in rows:
        difference = float(row["loss textcat"]) - float(row["ELAS u4"])
        assert float(row["Δ loss"].split()[0]) == pytest.approx(difference, abs=2e-4)
    assert teaching.reviews(Work(tmp_path, rounds=2, jobs=1)) == rows  # by what is kept


def test_a_topic_is_taught_over_http_and_no_answer_is_lost_by_a_kill(teaching, tmp_path, monkeypatch):
    page, work = importlib.import_module("teaching_page"), importlib.import_module("harness").Work(tmp_path)
    rows = [("a", ["t001"]), ("b", []), ("c", ["t030", "t002"]), *((str(i), ["t030"]) for i in range(8))]
    lines = [json.dumps({"id": i, "text": f"t030 word{i}", "topics": topics}) + "\n" for i, topics in rows]
    work.archive = lambda n: tmp_path / "archive.jsonl"
    (tmp_path / "archive.jsonl").write_text("".join(lines))
    has, first = page.labels_of(tmp_path / "archive.jsonl")
    assert (has[:4].tolist(), first) == ([False, False, True, True], "c")
    for name, value in (("SIZES", (11,)), ("ANSWERS", 4), ("PAUSE", 0.01)):
        monkeypatch.setattr(page, name, value)
    (row,) = page.measure(work)
    assert (row["documents"], row["all kept"]) == ("11", "yes")
