"""Texts of zones count by their weights, and as terms of their own where they are asked to."""

import naive_features as naive
from cases import every
from zoned_texts import NEW, TOKENS, TRAIN, Zones, assert_same_rows, naive_rows

from textcat.features.tfidf import TfIdf


@every(
    "how",
    [
        {},
        {"zones": {"title": 2, "body": 1}},
        {"zone_terms": True, "ngrams": 2},
        {"zone_terms": ["title"], "ngrams": 3, "ngram_min_df": 1, "ngram_weight": 0.5},
        {"chars": 4, "char_weight": 0.3, "min_df": 2},
        {"weighting": "bm25", "ngrams": 2, "zones": {"title": 2, "body": 1}},
        {"ngrams": 3, "chars": 3, "zone_terms": ["title"]},
        {"idf": "smooth"},
        {"idf": "none"},
    ],
)
def test_rows_of_documents_in_zones_are_those_of_plain_python(how):
    transformer = TfIdf(**how).fit(TRAIN)
    names, expected = naive_rows(TRAIN, NEW, how)
    assert_same_rows(transformer.transform(NEW), names, expected, transformer)


def test_a_zone_named_apart_counts_as_shared_terms_too():
    document = Zones({"title": "cocoa rise", "body": "cocoa"})
    names = TfIdf(TOKENS, zone_terms=["title"]).fit([document]).get_feature_names_out().tolist()
    assert names == ["cocoa", "rise", "title:cocoa", "title:rise"]
    names = TfIdf(TOKENS, zone_terms=True).fit([document]).get_feature_names_out().tolist()
    assert names == ["body:cocoa", "title:cocoa", "title:rise"]


def test_ngrams_do_not_cross_zones():
    transformer = TfIdf(TOKENS, ngrams=3, ngram_min_df=1).fit(
        [Zones({"title": "cocoa rise", "body": "oil wheat corn"})]
    )
    ngrams = [name for name in transformer.vocabulary_ if " " in name]
    assert ngrams == ["cocoa rise", "oil wheat", "oil wheat corn", "wheat corn"]


def test_a_zone_counts_sublinearly_before_it_is_weighted():
    half = {"zones": {"title": 0.5, "body": 1}, "sublinear_tf": True}
    names, expected = naive.tf_idf(TRAIN, NEW, **half)
    transformer = TfIdf(TOKENS, **half).fit(TRAIN)
    assert_same_rows(transformer.transform(NEW), names, expected, transformer)
    assert transformer.transform(NEW).data.min() > 0
