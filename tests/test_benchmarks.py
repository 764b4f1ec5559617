"""scripts/benchmarks: what peers are given, and how runs are paired; no test measures time."""

import ast
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from textcat.corpus.catalogue import open_corpus
from textcat.documents import Document
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.recipe import read_recipe
from textcat.training.train import _train_and_evaluate

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS / "benchmarks"))


WORDS = ["alpha", "bravo", "carrot", "delta", "echelon", "foxtrot"]


def documents(n=60):
    """Return documents of words that both tokenizers take as they are."""
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, size)) for size in generator.integers(2, 9, 2 * n)]
    return [Document(str(i), {"title": texts[2 * i], "body": texts[2 * i + 1]}) for i in range(n)]


@pytest.mark.parametrize("least", [{"min_df": 1, "ngram_min_df": 1}, {"min_df": 2, "ngram_min_df": 15}])
def test_the_peer_has_the_rows_of_recipe_best(least):
    from equal_kind import ZonedRows

    settings = read_recipe("best").features | least
    # What is too rare is known to textcat while it counts lengths; b = 0 leaves lengths out.
    settings |= {"b": 0} if least["ngram_min_df"] > 1 else {}
    ours, its = TfIdf(Tokens(), **settings), ZonedRows(settings, stop_words=None)
    X, Z = ours.fit_transform(documents()), its.fit_transform(documents())
    known = its._words.vocabulary_
    assert known.keys() == ours.vocabulary_.keys()
    assert least["min_df"] == 1 or len(known) < len(WORDS) + len(WORDS) ** 2
    order = [known[term] for term in ours.vocabulary_]
    np.testing.assert_allclose(Z.toarray()[:, order], X.toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(its.transform(documents()).toarray(), Z.toarray())


@pytest.mark.parametrize("positives", [1, 2, 4, 5, 20])
def test_a_peer_decides_on_topics_that_have_fewer_positives_than_folds(positives):
    from equal_kind import LEARNERS, PROBABILITY, Calibrated

    y = np.arange(60) < positives
    X = np.random.default_rng(0).normal(size=(60, 2)) + 8.0 * y[:, np.newaxis]
    for learner in LEARNERS.values():
        probabilities = Calibrated(learner).fit(X, y.astype(int)).predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert probabilities[y, 1].min() > probabilities[~y, 1].max()
        if positives == 1:
            assert (probabilities[:, 1] > PROBABILITY).tolist() == y.tolist()


def test_what_runs_once_is_paired_with_the_first_counted_round():
    from measuring import Task, Timing, interleaved

    order = []
    tasks = {name: Task(lambda _, name=name: order.append(name), once=name == "slow") for name in ("fast", "slow")}
    timings = interleaved(tasks, 3)
    assert order == ["fast", "fast", "slow", "fast", "fast"]
    assert [len(timings[name].seconds) for name in tasks] == [3, 1]
    assert Timing([2.0, 1.0, 1.0]).ratio(Timing([4.0])) == "0.5"


def test_a_table_says_recipe_commit_and_load():
    from machine import Conditions, commit

    line, empty, head, *_ = Conditions("best").table([{"what": "textcat", "seconds": "1"}]).splitlines()
    assert line.startswith(f"Recipe: best. Commit: {commit()}. Load: ")
    assert (empty, head) == ("", "| what | seconds |")


@pytest.fixture
def titles_of_subjects():
    """Return 1,000 titles whose subject p1 is the most frequent, then p2 and so on to p300."""
    numbers = [1 + min(int(x), 299) for x in np.random.default_rng(0).exponential(60, 1000)]
    return [[f"title {i}", f"p{number} p{number + 1}"] for i, number in enumerate(numbers)]


def test_titles_are_chosen_by_a_seed_and_keep_the_most_frequent_subjects(titles_of_subjects):
    import titles

    names = {"p1": "wheat", "p2": "money", "p3": "money"}
    corpus = titles.sample(titles_of_subjects, names, 800)
    assert corpus == titles.sample(titles_of_subjects, names, 800)
    assert len(corpus.train) + len(corpus.test) == 800
    assert 140 < len(corpus.test) < 260
    assert len(corpus.topics) == titles.N_TOPICS
    assert {"wheat", "p2", "p3"} <= set(corpus.topics)
    assert "money" not in corpus.topics
    assert any(not document.topics for document in corpus.train)


def test_written_titles_are_read_as_the_same_corpus(titles_of_subjects, tmp_path):
    import titles

    corpus = titles.sample(titles_of_subjects, {}, 500)
    titles.write(corpus, tmp_path / "titles.jsonl")
    assert json.loads((tmp_path / "titles.jsonl").read_text().splitlines()[0])["split"] == "train"
    read = open_corpus(tmp_path / "titles.jsonl")
    assert read.topics == corpus.topics
    for part in ("train", "test"):
        written, again = getattr(corpus, part), getattr(read, part)
        assert [(d.id, d.zones["body"], d.topics) for d in again] == [
            (d.id, d.zones["body"], d.topics) for d in written
        ]


def test_training_alone_ranks_as_the_trained_model_does():
    from other_corpora import OURS, PEER, training_rows

    corpus = open_corpus("newswire")
    quality = {row["what"]: row["MAP"] for row in training_rows(corpus, 1)}
    trained = _train_and_evaluate(corpus, read_recipe("best")).evaluation.bands[0].macro_average_precision
    assert quality[OURS] == f"{trained:.3f}"
    assert float(quality[PEER]) > 0.8


@pytest.mark.parametrize("script", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_all_that_a_script_takes_from_textcat_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "textcat":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")
