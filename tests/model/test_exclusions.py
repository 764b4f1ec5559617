"""Of topics that exclude each other, those stay that the definition says, in whatever order they are named."""

from hypothesis import given
from hypothesis import strategies as st

from textcat.model.exclusions import excluded_topics

TOPICS = range(5)
EXCLUDERS = st.dictionaries(st.sampled_from(TOPICS), st.sets(st.sampled_from(TOPICS)))
RANKS = st.permutations(TOPICS).map(lambda order: {topic: place for place, topic in enumerate(order)})


@given(EXCLUDERS, RANKS)
def test_no_topic_stays_with_one_that_excludes_it_and_none_is_lost_for_a_lost_one(excluders, rank):
    lost = excluded_topics(excluders, rank)
    stay = {*TOPICS} - lost.keys()
    assert not any(stay & excluders.get(topic, set()) for topic in stay)
    for topic, other in lost.items():
        assert topic in excluders.get(topic, ()) or other in stay
        if other not in excluders.get(topic, ()):  # it excludes the other, with which it is in a circle
            assert topic in excluders[other]
            assert rank[other] < rank[topic]


@given(EXCLUDERS, RANKS)
def test_the_order_of_topics_is_of_no_account(excluders, rank):
    turned = {topic: {*sorted(others, reverse=True)} for topic, others in reversed(excluders.items())}
    assert excluded_topics(turned, rank) == excluded_topics(excluders, rank)


def test_chains_are_decided_from_their_beginning_and_circles_by_rank():
    rank = {topic: topic for topic in range(10)}
    assert excluded_topics({0: {1}, 1: {2}}, rank) == {1: 2}
    assert excluded_topics({0: {1}, 1: {0}}, rank) == {1: 0}
    assert excluded_topics({0: {1}, 1: {2}, 2: {0}}, rank) == {1: 0, 2: 0}
    assert excluded_topics({2: {1}, 1: {2, 0}, 0: {1}}, rank) == {1: 0}
    assert excluded_topics({0: {3}, 1: {2, 3}, 2: {1}}, rank) == {0: 3, 1: 3}
    assert excluded_topics({4: {4}, 5: {4}}, rank) == {4: 4}
