"""Bands are made by training sizes, ranges of them, or lists of topics, whatever the order of the columns."""

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.evaluation.bands import Band, choose_bands

TOPICS = ["acq", "corn", "earn", "rye", "tea"]
SIZES = [50, 9, 90, 1, 9]


def members(*spec, topics=TOPICS, sizes=SIZES):
    return {band.name: [topics[place] for place in band.topics] for band in choose_bands(topics, sizes, spec)}


def test_bands_follow_training_size_and_break_ties_by_name():
    assert members("ALL", "TOP3", "LAST3") == {
        "ALL": ["earn", "acq", "corn", "tea", "rye"],
        "TOP3": ["earn", "acq", "corn"],
        "LAST3": ["corn", "tea", "rye"],
    }


@given(st.permutations(TOPICS))
def test_the_order_of_the_columns_does_not_change_a_band(topics):
    sizes = [SIZES[TOPICS.index(topic)] for topic in topics]
    assert members("TOP3", "LAST2", "9-50", topics=topics, sizes=sizes) == members("TOP3", "LAST2", "9-50")


def test_a_corpus_with_fewer_topics_fills_a_band_as_far_as_it_goes():
    assert members("TOP10", "LAST30") == {name: ["earn", "acq", "corn", "tea", "rye"] for name in ("TOP10", "LAST30")}


def test_a_band_can_be_a_range_of_training_sizes_with_both_ends_in_it():
    assert members("9-50", "10-", "2-8") == {"9-50": ["acq", "corn", "tea"], "10-": ["earn", "acq"], "2-8": []}


def test_a_band_can_list_its_topics():
    assert members("drinks = tea, tea", "grain=rye,corn") == {"drinks": ["tea"], "grain": ["rye", "corn"]}


def test_a_listed_topic_may_have_commas():
    topics = ["trade, foreign", "trade", "foreign", "a,b,c", "b"]
    (band,) = choose_bands(topics, range(5), "x=trade, foreign,b, a,b,c,trade")
    assert [topics[column] for column in band.topics] == ["trade, foreign", "b", "a,b,c", "trade"]


def test_a_listed_topic_may_be_written_with_other_code_points_that_look_the_same():
    topics = ["tin", "\u00c9conomie", "Arme\u0301e"]  # the last one, as no corpus that textcat reads has it
    (band,) = choose_bands(topics, range(3), "x=E\u0301conomie,Arme\u0301e")
    assert band.topics == (1, 2)


def test_one_band_may_be_given_as_a_string_in_any_case():
    assert choose_bands(TOPICS, SIZES, "top1") == [Band("TOP1", (2,))]


@every("spec", ["", "TOP", "TOP0", "FIRST10", "50-10", "-5", "LAST-3", "١-٢"])
def test_a_band_that_cannot_be_understood_is_refused_with_the_forms_there_are(spec):
    with pytest.raises(TextcatError, match=f"^No band '{spec}': "):
        choose_bands(TOPICS, SIZES, spec)


@every("spec", ["grain=", "=rye", "grain=,"])
def test_a_listed_band_needs_a_name_and_topics(spec):
    with pytest.raises(TextcatError, match="lacks its name or its topics"):
        choose_bands(TOPICS, SIZES, spec)


def test_an_unknown_topic_of_a_band_is_named_with_the_nearest_known_one():
    with pytest.raises(TextcatError, match=r"^No topic 'earns' for the band 'mine'\. Did you mean 'earn'\?$"):
        choose_bands(TOPICS, SIZES, "mine=earns")
    with pytest.raises(TextcatError, match=r"^No topic 'zzz' for the band 'mine'\. Known topics: acq, corn, earn"):
        choose_bands(TOPICS, SIZES, "mine=zzz")


def test_every_topic_needs_a_training_size():
    with pytest.raises(ValueError, match="5 topics need as many training sizes, not 1"):
        choose_bands(TOPICS, [1])


def test_where_there_are_few_topics_the_default_bands_do_not_repeat_all():
    def names(n_topics):
        return [band.name for band in choose_bands([f"t{k:02}" for k in range(n_topics)], range(n_topics))]

    assert [names(n) for n in (4, 10, 11, 30, 31)] == [
        ["ALL"], ["ALL"], ["ALL", "TOP10"], ["ALL", "TOP10"], ["ALL", "TOP10", "LAST30"],
    ]  # fmt: skip
