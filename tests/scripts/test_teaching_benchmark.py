"""scripts/benchmark teaching: ELAS u4 is what ASReview has, and the page says what was measured."""

import gzip
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


def test_the_page_compares_both_on_the_same_starts(teaching, folder, tmp_path, capsys):
    teaching.main(["--reviews", str(folder), "--only", "reviews,speed", "--seeds", "2", "--jobs", "1"])
    page = capsys.readouterr().out
    assert "2 reviews, 2 seeds" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows] == ["| review", "| ---", "| plants", "| virus", "| mean"]
    ours, its = float(rows[-1][3]), float(rows[-1][4])
    assert ours == pytest.approx(np.mean([float(row[3]) for row in rows[2:4]]), abs=1e-4)
    assert f"Mean loss: {ours / its:.2f}" in page or its < 0.05
    assert "virus " in page.split("Ferdinands")[1]
    assert "4 simulations" in page


def test_the_pages_times_are_told_for_each_size(teaching, tmp_path, monkeypatch):
    page = teaching.teaching_page
    archive = tmp_path / "archive.jsonl"
    rows = [("a", ["t001"]), ("b", []), ("c", ["t030", "t002"]), ("d", ["t030"])]
    archive.write_text("".join(json.dumps({"id": i, "text": "t030", "topics": topics}) + "\n" for i, topics in rows))
    has, first = page.labels_of(archive)
    assert (has.tolist(), first) == ([False, False, True, True], "c")
    seconds = {"answer": [0.001, 0.003], "evidence": [0.002], "progress": [0.004]}
    found = {"first": 1.0, "reading": 1e6, "teaching": 2e6, "again": 0.5, "kept": True, "seconds": seconds}
    monkeypatch.setattr(page, "rows_of_size", lambda *_: found)
    told = page.measured([50_000])
    assert "| 50,000 | 1.0 | 2 / 3 | 2 / 2 | 4 / 4 | 0.5 | yes | 1 | 2 |" in told
    monkeypatch.setattr(page, "measured", lambda: "## The page\n")
    assert "The page" in teaching.PARTS["page"](None)


def test_settings_are_chosen_for_each_review_by_the_others(teaching, folder, tmp_path, capsys):
    grid = teaching.grid(["ranker.C=.05,5", "strategy=highest,uncertain"])
    assert [*grid.values()][1] == ["ranker.C=.05", "strategy=uncertain"]
    corpora = teaching.read_reviews(folder)
    figures = teaching.measured(grid, corpora, seeds=range(2), n_jobs=1, kept=tmp_path / "kept.jsonl")
    assert figures.keys() == grid.keys()
    assert figures["ranker.C=.05 strategy=highest"] != figures["ranker.C=.05 strategy=uncertain"]
    page = teaching.chosen_page(figures)
    best = min(grid, key=lambda name: figures[name]["plants"])
    assert f"| virus | {best} | {figures[best]['virus']:.4f} |" in page
