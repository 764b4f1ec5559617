"""Every column of a row is found where its terms stand in the texts, and nowhere else."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from zoned_texts import TOKENS, Zones

from textcat.features.spans import Span, places
from textcat.features.tfidf import TfIdf

WORDS = ["cocoa", "corn", "oil", "rye", "wheat"]
ROWS = TfIdf(TOKENS, ngrams=2, ngram_min_df=1).fit([f"{left} {right}" for left in WORDS for right in WORDS])
ZONE_ROWS = TfIdf(TOKENS, zones={"title": 2, "body": 1}, zone_terms=["title"]).fit(
    [Zones({"title": f"{left} {right}", "body": right}) for left in WORDS for right in WORDS if left != right]
)
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "  ", "\n"])).map("".join), max_size=8).map(
    "".join
)


def naive_spans(text):
    """The spans of words and of pairs of words that follow each other, by name."""
    words = [(match[0], *match.span()) for match in re.finditer(r"\w+", text)]
    pairs = [(f"{left[0]} {right[0]}", left[1], right[2]) for left, right in pairwise(words)]
    spans = {}
    for name, start, end in [*words, *pairs]:
        spans.setdefault(name, set()).add((start, end))
    return spans


def spans_by_name(features, document):
    columns = range(len(features.get_feature_names_out()))
    return dict(places(features, document, columns).values())


@given(texts)
def test_words_and_pairs_are_found_wherever_they_stand(text):
    found = spans_by_name(ROWS, text)
    assert {name: {span[1:] for span in spans} for name, spans in found.items()} == naive_spans(text)
    assert {span.zone for spans in found.values() for span in spans} <= {"body"}
    assert all(list(spans) == sorted(spans) for spans in found.values())


@given(texts, st.sets(st.sampled_from(sorted(ROWS.vocabulary_.values()))))
def test_only_wanted_columns_that_the_document_has_are_found(text, wanted):
    found = places(ROWS, text, wanted)
    assert found.keys() == wanted & set(ROWS.transform([text]).indices.tolist())
    everything = places(ROWS, text, ROWS.vocabulary_.values())
    assert found == {column: everything[column] for column in found}


@given(texts, texts)
def test_a_term_of_a_zone_apart_stands_in_that_zone_and_a_shared_one_in_every_zone(title, body):
    found = spans_by_name(ZONE_ROWS, Zones({"title": title, "body": body}))
    for word in WORDS:
        of_zone = {
            zone: {Span(zone, *match.span()) for match in re.finditer(word, text)}
            for zone, text in (("title", title), ("body", body))
        }
        assert set(found.get(f"title:{word}", ())) == of_zone["title"]
        assert set(found.get(word, ())) == of_zone["title"] | of_zone["body"]


def test_a_piece_that_would_be_cut_into_other_tokens_by_itself_is_made_wider():
    features = TfIdf(TOKENS).fit(["10 am", "corn"])
    text = "corn at 10am"
    for name, spans in places(features, text, features.vocabulary_.values()).values():
        for _, start, end in spans:
            assert name in TfIdf(TOKENS).fit(["corn", text[start:end]]).vocabulary_
