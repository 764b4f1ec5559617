"""Explanations: what terms add, where they stand, and that texts come out of it whole."""

import html
import json
import re
from itertools import combinations

import pytest

import textcat
from textcat.features.spans import places

HOSTILE = "Wheat\0 prices <b>rose</b> &amp; \U0001f33e wheats' café é don't-know wheat-exports U.S. wheat"


def terms_of(features, space, text):
    """The names of all terms and n-grams that a text by itself has, in a space."""
    words = [each.term for each in features.tokens_._located([text])[0]]
    names = {" ".join(words[i : i + n]) for n in range(1, features.ngrams + 1) for i in range(len(words) - n + 1)}
    names |= {
        f"~{padded[i : i + features.chars]}~"
        for word in words
        for padded in [f" {word.lower()} "]
        for i in range(max(len(padded) - features.chars, 0) + 1)
        if features.chars
    }
    return {f"{space}:{name}" for name in names} | names


@pytest.fixture(scope="module")
def corpus():
    return textcat.open_corpus("newswire")


@pytest.fixture(scope="module", params=["best", "best-chars", "paum"])
def tagger(request, corpus):
    return textcat.train(corpus, textcat.read_recipe(request.param))


def test_the_text_of_every_span_by_itself_gives_the_term(corpus, tagger):
    features = tagger.features
    for document in [*corpus.test[:40], textcat.Document("odd", {"title": HOSTILE, "body": f"{HOSTILE}\n {HOSTILE}"})]:
        row = features.transform([document])
        found = places(features, document, row.indices.tolist())
        assert set(found) == set(row.indices.tolist())  # each column stands somewhere
        for column, (name, spans) in found.items():
            assert features.vocabulary_[name] == column
            for zone, start, end in spans:
                assert 0 <= start < end <= len(document.zones[zone])
                assert name in terms_of(features, zone, document.zones[zone][start:end])


def test_contributions_and_the_bias_and_the_rest_add_up_to_the_score(corpus, tagger):
    for document in corpus.test[:10]:
        everything = tagger.explain(document, "grain", n=None)
        assert sum(each.contribution for each in everything) + everything.bias == pytest.approx(
            everything.score, abs=1e-4
        )
        assert everything.rest == 0
        some = tagger.explain(document, "grain", n=3)
        total = sum(each.contribution for each in some) + some.rest + some.bias
        assert total == pytest.approx(some.score, abs=1e-4)
        assert json.loads(json.dumps(some.as_dict()))["reasons"][0]["term"] == some[0].term


def test_without_topics_the_tags_are_explained(corpus, tagger):
    for document in corpus.test[:20]:
        tags = tagger.tag([document])[0]
        explained = tagger.explain_all(document)
        assert [(each.topic, each.score, each.probability) for each in explained] == tags
        assert explained == [tagger.explain(document, tag.topic) for tag in tags]


def test_marked_texts_are_escaped_and_whole(tagger):
    document = {"title": HOSTILE, "body": "<script>alert('wheat')</script> wheat \ud800"}
    shown = tagger.explain(document, "wheat", n=None).html(document)
    assert "<script" not in shown
    assert "<b>" not in shown
    assert '<mark class="for"' in shown
    shown.encode()
    zones = re.findall('<div class="zone" data-zone="(.*?)">(.*?)</div>', shown, flags=re.DOTALL)
    plain = {zone: html.unescape(re.sub("<[^>]*>", "", text)) for zone, text in zones}
    assert plain == {zone: re.sub("[\0\ud800]", "\ufffd", text) for zone, text in document.items()}


def masked(tagger, text, words):
    """A text in which an unknown word stands in the place of words, from the last to the first."""
    located = tagger.features.tokens_._located([text])[0]
    for each in reversed(located):
        if each.term in words:
            text = f"{text[: each.start]}qqzzqx{text[each.end :]}"
    return text


@pytest.mark.parametrize("recipe", ["best", "best-chars", "paum", "single", "hashed"])
def test_without_these_words_the_tag_falls_and_of_smaller_sets_none_does_it(corpus, recipe):
    settings = {
        "single": ["tags.strategy=single"],
        "hashed": ["features.hash_bits=8", "features.min_df=1"],
    }
    base = textcat.read_recipe({"single": "paum", "hashed": "best"}.get(recipe, recipe))
    tagger = textcat.train(corpus, base.with_settings(settings.get(recipe, [])))
    n_least = 0
    for document in corpus.test[:6]:
        text = " ".join(document.zones.values())[:90]
        for tag in tagger.tag([text])[0]:
            explained = tagger.explain(text, tag.topic, n=2)

            def stays(words, topic=tag.topic, text=text):
                return topic in {each.topic for each in tagger.tag([masked(tagger, text, words)])[0]}

            if not explained.without or recipe == "hashed":
                continue
            assert not stays(set(explained.without))
            terms = {each.term for each in tagger.features.tokens_._located([text])[0]}
            for size in range(1, len(explained.without)) if explained.least else ():
                if len(terms) ** size < 3000:
                    assert all(stays(set(words)) for words in combinations(sorted(terms), size))
                    n_least += 1
    assert recipe == "hashed" or n_least or recipe == "best-chars"


def test_what_has_no_tag_has_nothing_to_fall(tagger):
    explained = tagger.explain("nothing of it", "wheat")
    assert explained.without is explained.least is None
    assert explained.as_dict()["without"] is None
