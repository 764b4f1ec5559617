"""Decisions of two models on the same documents are told apart by what became right and wrong."""

import pytest
from hostile_reports import data_of
from scipy.stats import binomtest

import textcat
from textcat.model.measure import relevant_topics
from textcat.report.write import write_report


def test_a_report_of_two_models_counts_what_became_right_and_wrong(model, tmp_path):
    tagger, corpus = model
    other = textcat.train(corpus, textcat.read_recipe("default"))
    path = write_report(tmp_path / "r.html", tagger, corpus, before=other, names=("old", "new"), resamples=0)
    changes = data_of(path)["changes"]
    labels = relevant_topics(tagger, corpus).toarray() > 0
    right = [of.decisions.decide(of.scores(corpus.test)) == labels for of in (other, tagger)]
    for j, one in enumerate(changes["topics"]):
        better, worse = (right[1] & ~right[0])[:, j].sum(), (right[0] & ~right[1])[:, j].sum()
        assert (one["better"], one["worse"]) == (better, worse)
        expected = binomtest(int(better), int(better + worse)).pvalue if better + worse else 1
        assert one["p"][0] == pytest.approx(expected, rel=0.01)
    assert "What changed" in path.read_text(encoding="utf-8")
