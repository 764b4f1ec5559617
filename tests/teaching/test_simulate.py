"""Replaying labels as the person who teaches: the loop, many runs, and the command."""

import json

import numpy as np
import pytest
from cases import every
from commands import Run
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.recipes.recipe import RankerSettings, read_recipe
from textcat.teaching import simulate
from textcat.teaching.ranker import Examples, Ranker
from textcat.teaching.simulate import Setting, SimulatedTopic


@pytest.fixture
def run(capsys, monkeypatch):
    return Run(capsys, monkeypatch)


# --- measures --------------------------------------------------------------------------------------------------------


# --- the loop --------------------------------------------------------------------------------------------------------


class Svm:
    """scikit-learn's ranker."""

    def __init__(self, rows, *, settings=None, seed=0):
        self.rows = rows

    def train(self, positions, labels, examples=None):
        return LinearSVC(C=0.11, random_state=0).fit(self.rows[positions], labels).coef_[0]

    def scores(self, weights):
        return self.rows @ weights


class Known:
    """Ranks by what is known beforehand, and keeps with how many judgements it was trained."""

    def __init__(self, scores):
        self.known, self.trained = np.asarray(scores, np.float32), []

    def train(self, positions, labels, examples=None):
        self.trained.append(len(positions))

    def scores(self, weights):
        return self.known


@pytest.fixture(scope="module")
def grain():
    """The stories of newswire as rows, and which are about grain."""
    documents = open_corpus("newswire").train[:150]
    texts = [" ".join(one.zones.values()) for one in documents]
    topics = [topic for one in documents for topic in one.topics]
    topic = max(sorted(set(topics)), key=topics.count)
    labels = np.array([topic in one.topics for one in documents])
    return SimulatedTopic(
        "newswire", "grain", csr_matrix(TfidfVectorizer().fit_transform(texts), dtype=np.float32), labels
    )


def naive_order(rows, labels, seed, n):
    """Return the first n positions asked for, one at a time."""
    generator = np.random.default_rng(seed)
    order = [generator.choice(np.flatnonzero(labels)), generator.choice(np.flatnonzero(~labels))]
    while len(order) < n:
        scores = rows @ LinearSVC(C=0.11, random_state=0).fit(rows[order], labels[order]).coef_[0]
        order.append(max(set(range(len(labels))) - set(order), key=lambda i: (scores[i], -i)))
    return order


def test_the_loop_asks_for_the_highest_score_that_is_left(grain):
    done = simulate.simulate(Svm(grain.rows), grain.labels, seed=3)
    assert done.order[:20].tolist() == naive_order(grain.rows, grain.labels, 3, 20)
    assert sorted(done.order) == list(range(len(grain.labels)))
    assert done.answers.tolist() == grain.labels[done.order].tolist()
    assert np.isnan(done.scores[:2]).all()
    assert not np.isnan(done.scores[2 : done.n_asked]).any()
    assert done.answers[: done.n_asked].sum() == grain.labels.sum() > done.answers[: done.n_asked - 10].sum()


def test_the_ranker_is_trained_after_as_many_answers_as_the_steps_say():
    labels = np.arange(40) % 2 == 0
    ranker = Known(np.zeros(40))
    done = simulate.simulate(ranker, labels, steps="1:5,4:20,10", whole=True)
    assert ranker.trained == [2, 3, 4, 5, 9, 13, 17, 21, 31]
    assert done.n_asked == 40
    sizes = simulate.batch_sizes()
    assert [sizes(n) for n in (0, 99, 100, 499, 500, 10**6)] == [1, 1, 5, 5, 10, 10]


@every("steps", ["", "0", "1:5", "1:5,2:5,3", "1:9,2:5,3", "a", "1:5,2,3"])
def test_steps_that_mean_nothing_are_told(steps):
    with pytest.raises(TextcatError, match="are not of the form '1:100,5:500,10'"):
        simulate.batch_sizes(steps)


def test_a_run_ends_with_the_last_relevant_document_unless_something_watches():
    labels = np.arange(30) < 5
    scores = -np.arange(30.0)
    assert simulate.simulate(Known(scores), labels).n_asked <= 6
    assert simulate.simulate(Known(scores), labels, whole=True).n_asked == 30
    seen = []

    def watch(history):
        seen.append((len(history.answers), int(history.answers.sum()), history.n_documents))
        return len(history.answers) < 12

    done = simulate.simulate(Known(scores), labels, watch=watch)
    assert done.n_asked == 12
    assert seen[-1] == (12, 5, 30)


def test_it_may_start_at_random_or_from_examples_alone(grain):
    done = simulate.simulate(Svm(grain.rows), grain.labels, start="random", seed=1)
    n = int(np.isnan(done.scores[: done.n_asked]).sum())
    assert done.at_random[:n].all()
    assert 0 < done.answers[:n].sum() < n
    assert done.answers[: n - 1].all() or not done.answers[: n - 1].any()
    known = Known(np.arange(len(grain.labels)))
    simulate.simulate(known, grain.labels, start="description", examples=Examples(grain.rows[:1], [1], [1.0]))
    assert known.trained[0] == 0
    with pytest.raises(TextcatError, match="cannot start from"):
        simulate.simulate(known, grain.labels, start="nothing")
    with pytest.raises(TextcatError, match="Of 4 documents 0 are relevant"):
        simulate.simulate(known, np.zeros(4))


def test_a_share_is_asked_at_random_and_the_rest_by_its_score(grain):
    ranker, how = Ranker(grain.rows), {"strategy": "highest:0.3", "whole": True}
    done = simulate.simulate(ranker, grain.labels, **how)
    assert 0.15 < done.at_random.mean() < 0.45
    assert done.order.tobytes() == simulate.simulate(ranker, grain.labels, **how).order.tobytes()
    other = simulate.simulate(ranker, grain.labels, seed=1, **how)
    assert done.order.tobytes() != other.order.tobytes()


def test_a_ranker_that_knows_all_is_as_good_as_supervised_at_once_and_one_that_must_see_all_is_at_the_end():
    labels = np.random.default_rng(0).random(60) < 0.4
    done = simulate.simulate(Known(np.random.default_rng(1).random(60)), labels)
    assert simulate.supervised(Known(labels), labels, done) == 10

    class Late(Known):
        def train(self, positions, labels, examples=None):
            return len(positions)

        def scores(self, weights):
            return self.known if weights >= 48 else -self.known

    assert simulate.supervised(Late(labels), labels, done) == 60


# --- many runs -------------------------------------------------------------------------------------------------------


def without_seconds(results):
    return [result._replace(seconds=0.0) for result in results]


def test_any_number_of_jobs_gives_the_same_bits_and_what_is_kept_is_not_run_again(grain, tmp_path):
    ways = [Setting("ours", supervised=True), Setting("another", RankerSettings(C=1.0))]
    alone = simulate.experiment([grain], ways, range(3), n_jobs=1, kept=tmp_path / "runs.jsonl")
    together = simulate.experiment([grain], ways, range(3), n_jobs=2)
    assert without_seconds(alone) == without_seconds(together)
    assert [(one.way, one.seed) for one in alone] == [(name, seed) for name in ("ours", "another") for seed in range(3)]
    # As after a kill: of two results the line is lost, or broken off.
    lines = (tmp_path / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:50])
    counts = []
    resumed = simulate.experiment(
        [grain], ways, range(3), n_jobs=1, kept=tmp_path / "runs.jsonl", advance=counts.append
    )
    assert without_seconds(resumed) == without_seconds(alone)
    assert counts == [4, 1, 1]
    assert [one.seconds for one in resumed[:4]] == [one.seconds for one in alone[:4]]


def test_a_run_of_other_labels_or_settings_is_another_run(grain):
    labels = grain.labels.copy()
    labels[np.flatnonzero(labels)[0]] = False
    way = Setting("ours")
    keys = {
        simulate.run_key(grain, way, 0),
        simulate.run_key(grain, way, 1),
        simulate.run_key(grain, way._replace(settings=RankerSettings(C=2.0)), 0),
        simulate.run_key(grain, way._replace(strategy="uncertain"), 0),
        simulate.run_key(SimulatedTopic("newswire", "grain", grain.rows, labels), way, 0),
        simulate.run_key(SimulatedTopic("newswire", "grain", grain.rows * 2, grain.labels), way, 0),
    }
    assert len(keys) == 6
    assert simulate.run_key(grain, way._replace(name="called otherwise"), 0) in keys


def test_settings_of_the_ranker_are_a_section_of_the_recipe():
    def ranker(*changes):
        return read_recipe("active-learning").with_settings([f"ranker.{change}" for change in changes]).ranker

    assert ranker() == RankerSettings()
    assert ranker("C=.3", "ratio = 4") == RankerSettings(C=0.3, ratio=4)
    with pytest.raises(TextcatError, match=r"no field 'ranker.ration'.*Did you mean 'ranker.ratio'\?"):
        ranker("ration=4")
    with pytest.raises(TextcatError, match=r"ranker\.ratio cannot be 'much'; give a number"):
        ranker("ratio=much")
    with pytest.raises(TextcatError, match=r"The ranker's C cannot be -1.*must be a number above 0"):
        ranker("C=-1")
    with pytest.raises(TextcatError, match=r"The ranker's growth cannot be nan: it must be 0 or"):
        ranker("growth=nan")


def test_the_cases_of_a_corpus_are_its_topics_over_all_its_documents():
    words = [("wheat", "a"), ("gold mine", "b"), ("wheat corn", "a"), ("gold", "b"), ("silver", "c")]
    documents = [Document(str(i), {"body": text}, ("all", topic)) for i, (text, topic) in enumerate(words)]
    corpus = Corpus.from_documents("x.jsonl.gz", documents, descriptions={"a": "corn and wheat"})
    cases = simulate.simulated_topics(corpus, read_recipe("default").with_settings(["features.min_df=1"]))
    assert [(one.corpus, one.topic, one.labels.sum()) for one in cases] == [("x", "a", 2), ("x", "b", 2), ("x", "c", 1)]
    assert cases[0].rows is cases[1].rows
    assert cases[0].examples.rows.nnz == 2
    with pytest.raises(TextcatError, match=r"x.jsonl.gz has no topic 'al'. Did you mean 'all'\?"):
        simulate.simulated_topics(corpus, read_recipe("default"), ["al"])


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def review(tmp_path_factory):
    """A review as a file: 60 records, 12 of them included."""
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("review") / "review.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(60):
            included = i % 5 == 0
            common = generator.choice(["study", "trial", "dose", "patient", "risk", "group", "effect"], 6)
            own = generator.choice(["statin", "placebo", "lipid"] if included else ["nurse", "survey", "school"], 2)
            record = {"id": str(i), "title": " ".join(own), "body": " ".join(common)}
            file.write(json.dumps(record | {"topics": ["included"] if included else []}) + "\n")
    return path


def test_the_command_prints_narrow_tables_and_keeps_its_runs(run, review, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "out"
    command = ["simulate", review, "--seeds", 2, "--jobs", 1, "--out", out]
    command += ["--strategy", "highest", "--strategy", "mixture:0.05"]
    run(*command)
    assert run.code == 0, run.err
    assert max(map(len, run.out.splitlines()[:-1])) <= 80  # the last line names the folder
    assert "loss" in run.out
    assert "mixture:0.05" in run.out
    assert "coverage" in run.out
    assert "as if all" in run.out
    assert (out / "curves.svg").read_text().startswith("<?xml")
    assert len((out / "runs.jsonl").read_text().splitlines()) == 4
    printed = run.out.split(" s of processor time")[0]
    assert run(*command).out.split(" s of processor time")[0] == printed
    assert len((out / "runs.jsonl").read_text().splitlines()) == 4
    summary = json.loads((out / "summary.json").read_text())
    told = json.loads(run(*command, "--as", "json").out)
    assert {name: told[name] for name in summary} == summary
    assert [one["strategy"] for one in told["means"]] == ["highest", "mixture:0.05"]
    losses = [one["loss"] for one in told["runs"] if one["strategy"] == "highest"]
    assert told["means"][0]["loss"]["mean"] == pytest.approx(np.mean(losses))
    assert all(loss < 0.3 for loss in losses)


def test_the_command_tells_what_it_cannot_do(run, review, tmp_path):
    assert run("simulate", review, "--topic", "include").err == (
        "textcat: review.jsonl has no topic 'include'. Did you mean 'included'?\n"
    )
    assert "Did you mean 'ranker.C'?" in run("simulate", review, "--set", "ranker.c=1").err
    assert "are not of the form" in run("simulate", review, "--steps", "x").err
    assert "--rule takes one of" in run("simulate", review, "--rule", "fifty").err
    assert "review.jsonl cannot be a folder of results: there is a file" in run("simulate", review, "--out", review).err
    (tmp_path / "all.jsonl").write_text('{"text": "a b", "topics": ["t"]}\n{"text": "c d", "topics": ["t"]}\n')
    assert "nothing to simulate" in run("simulate", tmp_path / "all.jsonl").err
    assert run.code == 1
