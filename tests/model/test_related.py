"""The topics that a document most likely has raise the scores of those that go with them."""

import json
from dataclasses import replace

import naive_related as naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from manifests import rewrite

import textcat
from textcat.model import ModelError
from textcat.model.csr import csr_weights
from textcat.model.listed import Listed
from textcat.model.related import RelatedTopics, related_sums
from textcat.model.restrict import restrict_topics


def topic_shares(random, n_topics, density=0.4):
    shares = sp.random_array((n_topics, n_topics), density=density, rng=random, dtype=np.float32).tocsr()
    shares.setdiag(0)
    shares.eliminate_zeros()
    return csr_weights(shares.indptr, shares.indices, shares.data, n_topics)


def related_topics(seed, n_topics, best=4, unseen=None):
    random = np.random.default_rng(seed)
    return RelatedTopics(
        *(topic_shares(random, n_topics), random.random(n_topics), random.normal(size=n_topics), best, 0.4, 1e-3),
        np.zeros(n_topics, bool) if unseen is None else unseen,
    )


@given(seed=st.integers(0, 2**32 - 1), n_topics=st.integers(1, 20), size=st.integers(1, 12), best=st.integers(0, 14))
def test_compiled_sums_are_those_of_the_naive_twin(seed, n_topics, size, best):
    random = np.random.default_rng(seed)
    lists = [
        np.sort(random.choice(n_topics, random.integers(0, min(size, n_topics) + 1), replace=False)) for _ in range(5)
    ]
    listed = np.array([[*topics, *[-1] * (size - len(topics))] for topics in lists], np.int32).reshape(5, size)
    scores = random.choice(np.array([-2, 0, 0.5, 3], np.float32), listed.shape)  # many equal scores
    scores[listed < 0] = Listed.unlisted_score
    shares, a, b = topic_shares(random, n_topics), random.random(n_topics), random.normal(size=n_topics)
    sums = related_sums(listed, scores, a, b, shares.indptr, shares.indices, shares.data, best)
    assert sums.tolist() == naive.sums(listed, scores, a, b, shares.toarray(), best).tolist()


@given(seed=st.integers(0, 2**32 - 1))
def test_parts_add_up_to_the_evidence_and_name_topics_that_share_documents(seed):
    random = np.random.default_rng(seed)
    related = related_topics(seed, 12)
    listed = np.append(np.sort(random.choice(12, 7, replace=False)), -1).astype(np.int32)[None]
    scores = random.normal(size=(1, 8)).astype(np.float32)
    evidence = related.evidence(listed, scores)
    assert (evidence >= 0).all()
    assert evidence[0, -1] == 0
    for place, topic in enumerate(listed[0, :-1].tolist()):
        speaking, added = related.parts(listed[0], scores[0], topic)
        assert added.sum() == pytest.approx(evidence[0, place], rel=1e-5, abs=1e-6)
        assert (np.diff(added) <= 0).all()
        assert all(related.shares[s, topic] > 0 for s in speaking.tolist())


@given(seed=st.integers(0, 2**32 - 1))
def test_a_topic_without_documents_is_raised_as_much_as_the_one_raised_most(seed):
    random = np.random.default_rng(seed)
    unseen = random.random(12) < 0.3
    related = replace(related_topics(seed, 12), unseen=unseen)
    shares = sp.csr_array(related.shares.toarray() * ~unseen)
    related = replace(related, shares=csr_weights(shares.indptr, shares.indices, shares.data, 12))
    listed = np.append(np.sort(random.choice(12, 7, replace=False)), -1).astype(np.int32)[None]
    scores = random.normal(size=(1, 8)).astype(np.float32)
    before = replace(related, unseen=np.zeros(12, bool)).evidence(listed, scores)[0]
    evidence = related.evidence(listed, scores)[0]
    assert evidence[-1] == 0
    for place, topic in enumerate(listed[0, :-1].tolist()):
        assert evidence[place] == (before.max() if unseen[topic] else before[place])
        assert related.parts(listed[0], scores[0], topic)[1].sum() == pytest.approx(evidence[place], rel=1e-5, abs=1e-6)


@pytest.fixture(scope="module")
def tagger():
    """A tagger of the newswire with related topics drawn at random."""
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8", "topics.related=0"])
    tagger = textcat.train(textcat.open_corpus("newswire"), recipe)
    scorer = replace(tagger.scorer, related_topics=related_topics(1, len(tagger.topics)))
    return replace(tagger, scorer=scorer)


@pytest.fixture(scope="module")
def texts():
    return [document.zones["body"] for document in textcat.open_corpus("newswire").test[:40]] + [""]


def test_scores_rise_only_where_listed(tagger, texts):
    without = replace(tagger, scorer=replace(tagger.scorer, related_topics=None)).scores(texts)
    scores = tagger.scores(texts)
    assert ((scores == Listed.unlisted_score) == (without == Listed.unlisted_score)).all()
    assert (scores >= without).all()
    assert (scores > without).any()


def test_a_model_that_was_saved_scores_as_in_memory(tagger, texts, tmp_path):
    loaded = textcat.load(textcat.save(tagger, tmp_path / "model"))
    assert (loaded.scores(texts) == tagger.scores(texts)).all()
    assert loaded.tag(texts, top=5) == tagger.tag(texts, top=5)


@pytest.mark.parametrize(
    "numbers",
    [
        {"best": 0},
        {"weight": float("inf")},
        {"least": 0.0},
        {"best": None},
        {"unseen": [50]},
        {"unseen": [-1]},
        {"unseen": [True]},
        {"unseen": None},
    ],
)
def test_damaged_numbers_are_refused(tagger, tmp_path, numbers):
    folder = textcat.save(tagger, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scorer"]["related"] |= numbers
    rewrite(folder, **manifest)
    with pytest.raises(ModelError, match="damaged"):
        textcat.load(folder)


def test_a_tagger_of_some_topics_scores_them_as_the_whole_one_does(tagger, texts):
    columns = [3, 5, 11]
    some = restrict_topics(tagger, tuple(tagger.topics[j] for j in columns))
    assert (some.scores(texts) == tagger.scores(texts)[:, columns]).all()
    explained = [(tag.topic, text) for text in texts for tag in some.tag([text], top=1)[0]]
    topic, text = explained[0]
    assert some.explain(text, topic).related == tagger.explain(text, topic).related


def test_terms_related_topics_and_bias_add_up_to_the_score(tagger, texts):
    n_related = 0
    for text in texts[:20]:
        for tag in tagger.tag([text], top=3)[0]:
            explained = tagger.explain(text, tag.topic, n=3)
            related = sum(topic.contribution for topic in explained.related)
            terms = sum(reason.contribution for reason in explained) + explained.rest
            assert terms + related + explained.bias == pytest.approx(tag.score, abs=1e-4)
            n_related += len(explained.related)
            if explained.related:
                assert explained.as_dict()["related"][0]["topic"] == explained.related[0].topic
                assert "topic that often goes with it" in explained._repr_html_()
    assert n_related


def test_words_to_remove_take_the_tag_away_in_spite_of_related_topics(tagger, texts):
    explained = [one for text in texts[:20] for one in tagger.explain_all(text)]
    assert any(one.related for one in explained)
    assert all(one.without for one in explained)
