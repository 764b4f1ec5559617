"""Without the words of a counterfactual the tag falls, and no smaller set of words does it."""

from itertools import combinations

import pytest

import textcat


@pytest.fixture(scope="module", params=["default", "chars", "paum"])
def tagger(request, trained):
    return trained(request.param)


def masked(tagger, text, words):
    """A text in which an unknown word stands in the place of words, from the last to the first."""
    located = tagger.features.tokens_.locate_tokens([text])[0]
    for each in reversed(located):
        if each.term in words:
            text = f"{text[: each.start]}qqzzqx{text[each.end :]}"
    return text


@pytest.mark.parametrize("recipe", ["default", "chars", "paum", "single"])
def test_without_these_words_the_tag_falls_and_of_smaller_sets_none_does_it(corpus, recipe, trained):
    tagger = trained("paum", "tags.strategy=single") if recipe == "single" else trained(recipe)
    n_least = 0
    for document in corpus.test[:6]:
        text = " ".join(document.zones.values())[:90]
        for tag in tagger.tag([text])[0]:
            explained = tagger.explain(text, tag.topic, n=2)

            def stays(words, topic=tag.topic, text=text):
                return topic in {each.topic for each in tagger.tag([masked(tagger, text, words)])[0]}

            if not explained.without:
                continue
            assert not stays(set(explained.without))
            terms = {each.term for each in tagger.features.tokens_.locate_tokens([text])[0]}
            for size in range(1, len(explained.without)) if explained.least else ():
                if len(terms) ** size < 3000:
                    assert all(stays(set(words)) for words in combinations(sorted(terms), size))
                    n_least += 1
    assert n_least or recipe == "chars"


def test_what_has_no_tag_has_nothing_to_fall(tagger):
    explained = tagger.explain("nothing of it", "wheat")
    assert explained.without is explained.least is None
    assert explained.as_dict()["without"] is None


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:The topic .news. is on all")
def test_a_tag_of_all_documents_stays_as_long_as_a_word_is_known(corpus):
    texts = [document.zones["body"][:300] for document in corpus.train[:60]]
    tagger = textcat.train([{"text": text, "topics": ["news"]} for text in texts], "paum")
    explained = tagger.explain(texts[0], "news")
    assert explained.threshold == float("-inf")
    assert (explained.without, explained.least) == ([], True)
