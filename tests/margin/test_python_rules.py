"""A rule in Python trains exactly as the compiled one of the same formula, wherever a rule is taken."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import textcat
from textcat import MarginClassifier, rules
from textcat.base.errors import TextcatError
from textcat.recipes.recipe import Recipe


def twin(compiled, **constants):
    """A rule in Python with the parameters and the formula of a compiled one."""

    class Twin(rules.Rule):
        PARAMETERS = compiled.PARAMETERS
        CONSTANT = compiled.CONSTANT

        def threshold(self, y, N=0.0, t=0.0, R=1.0):
            return compiled(**self.parameters).threshold(y, N, t, R)

        def step(self, m, q, N=0.0, t=0.0, R=1.0):
            return compiled(**self.parameters).step(m, q, N, t, R)

    return Twin


class Uneven(rules.Rule):
    """PAUM, written in Python."""

    PARAMETERS = (rules.Parameter("tau_neg"), rules.Parameter("tau_pos"), rules.ETA)
    CONSTANT = True

    def threshold(self, y, N=0.0, t=0.0, R=1.0):
        return self.tau_pos if y > 0 else self.tau_neg

    def step(self, m, q, N=0.0, t=0.0, R=1.0):
        return 1.0, self.eta


@dataclass(eq=False, repr=False)
class UnevenLearner(MarginClassifier):
    """Classifier by the rule `Uneven`."""

    rule = Uneven
    tau_neg: float = -0.5
    tau_pos: float = 10.0
    eta: float = 1.0


class Failing(Uneven):
    """A rule with a mistake in its step."""

    def threshold(self, y, N=0.0, t=0.0, R=1.0):
        return 1.0

    def step(self, m, q, N=0.0, t=0.0, R=1.0):
        raise ZeroDivisionError("the step of Failing")


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    return sp.random_array((60, 30), density=0.3, random_state=generator, format="csr", dtype=np.float64)


@pytest.fixture(scope="module")
def labels():
    return np.where(np.random.default_rng(1).random((60, 5)) < 0.3, 1, -1)


COMPILED = [
    rules.PAM(2), rules.PAUM(-1, 50), rules.TMargitron(0.5, 2), rules.LMargitron(0.5, 2), rules.MICRA(1, 5),
    rules.CRAMMA(0.1, 2), rules.ALMA(0.5), rules.PDM(0.5),
]  # fmt: skip


@pytest.mark.parametrize("rule", COMPILED, ids=repr)
@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}, {"n_jobs": 2}], ids=str)
def test_it_gives_the_solution_of_the_compiled_rule_to_the_bit(rows, labels, rule, options):
    in_python = twin(type(rule))(**rule.parameters)
    ours, compiled = (
        textcat.solve(rows, [textcat.Problem.from_labels(y, one, lambda_=1, max_epochs=3) for y in labels.T], **options)
        for one in (in_python, rule)
    )
    for ours_of_topic, theirs in zip(ours, compiled, strict=True):
        assert (ours_of_topic.n_updates, ours_of_topic.n_epochs) == (theirs.n_updates, theirs.n_epochs)
        assert ours_of_topic.alpha.tobytes() == theirs.alpha.tobytes()
        assert ours_of_topic.unit == theirs.unit


def test_it_is_a_value_like_any_rule():
    rule = Uneven(-0.5, 10)
    assert rule == Uneven(tau_neg=-0.5, tau_pos=10) != Uneven(-0.5, 11)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert (repr(rule), rule.eta) == ("Uneven(tau_neg=-0.5, tau_pos=10.0, eta=1.0)", 1.0)
    with pytest.raises(ValueError, match="eta must be"):
        Uneven(1, 2, -1)


def test_its_error_reaches_the_caller_and_the_next_training_is_without(rows, labels):
    failing, problem = Failing(0, 0), textcat.Problem.from_labels
    for options in ({}, {"kernel": "linear"}, {"n_jobs": 2}):
        with pytest.raises(ZeroDivisionError, match="the step of Failing"):
            textcat.solve(rows, [problem(labels[:, 0], failing)] * 3, **options)
    (solution,) = textcat.solve(rows, [problem(labels[:, 0], Uneven(0, 0))])
    assert math.isfinite(solution.bias)


def test_a_learner_of_it_is_an_estimator_with_its_parameters(rows, labels):
    ours, compiled = UnevenLearner(tau_pos=20).fit(rows, labels > 0), textcat.PAUM(tau_pos=20).fit(rows, labels > 0)
    assert ours.coef_.tobytes() == compiled.coef_.tobytes()
    assert ours.get_params()["tau_pos"] == 20
    with pytest.raises(ValueError, match="'eta' parameter of UnevenLearner must be"):
        UnevenLearner(eta=-1).fit(rows, labels > 0)


def test_a_recipe_names_it_by_module_and_class_and_its_model_tags_without_it(tmp_path, monkeypatch):
    (tmp_path / "own_rules.py").write_text("from tests.margin.test_python_rules import UnevenLearner\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(textcat.__path__[0] + "/.."))
    corpus = textcat.open_corpus("newswire")
    shared = {"topics": {"description_copies": 0}, "tags": {"strategy": "probability"}}
    learner = {"tau_neg": -0.5, "tau_pos": 10.0, "lambda_": 1.0}
    own = Recipe("own", learner={"name": "own_rules:UnevenLearner", **learner}, **shared)
    ours = textcat.train(corpus, own)
    compiled = textcat.train(corpus, Recipe("paum", learner={"name": "paum", **learner}, **shared))
    textcat.save(ours, "m")
    (tmp_path / "own_rules.py").unlink()
    texts = [" ".join(document.zones.values()) for document in corpus.test[:50]]
    assert textcat.load("m").tag(texts) == ours.tag(texts) == compiled.tag(texts)
    with pytest.raises(TextcatError, match=r"'nowhere:X' cannot be imported \(ModuleNotFoundError"):
        own.changed("nowhere:X")
    with pytest.raises(TextcatError, match="'json:JSONDecoder' is not a learner"):
        own.changed("json:JSONDecoder")
