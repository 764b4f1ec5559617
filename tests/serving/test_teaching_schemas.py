"""What may be sent to a session, and what is refused."""

import math

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

from textcat.serving import teaching_schemas as s  # noqa: E402
from textcat.teaching.judgements import LONGEST_NAME  # noqa: E402
from textcat.teaching.steps import ANSWERS, SOURCES  # noqa: E402

ANSWER = {"topic": "wheat", "position": 3, "answer": "yes"}


def refused_places(kind, data):
    with pytest.raises(pydantic.ValidationError) as raised:
        kind.model_validate(data)
    return {".".join(map(str, error["loc"])) for error in raised.value.errors()}


@given(
    st.fixed_dictionaries(
        {
            "topic": st.text(min_size=1, max_size=LONGEST_NAME),
            "position": st.integers(0, 2**31 - 1),
            "answer": st.sampled_from(ANSWERS),
        },
        optional={
            "person": st.text(max_size=100),
            "source": st.sampled_from(sorted({*SOURCES} - {"example"})),
            "others": st.dictionaries(st.text(min_size=1, max_size=20), st.sampled_from(ANSWERS), max_size=3),
            "note": st.text(max_size=100),
            "ask": st.booleans(),
        },
    )
)
def test_an_answer_that_is_sent_is_read_as_it_is(sent):
    read = s.AnswerSent.model_validate_json(s.AnswerSent(**sent).model_dump_json())
    assert {name: getattr(read, name) for name in sent} == sent


@every(
    "change, place",
    [
        ({"topic": ""}, "topic"),
        ({"topic": "x" * (LONGEST_NAME + 1)}, "topic"),
        ({"position": -1}, "position"),
        ({"position": 2**31}, "position"),
        ({"position": 2.5}, "position"),
        ({"position": "3"}, "position"),
        ({"answer": "perhaps"}, "answer"),
        ({"source": "example"}, "source"),
        ({"others": {"gold": "perhaps"}}, "others.gold"),
        ({"person": "x" * 101}, "person"),
        ({"note": "x" * 10_001}, "note"),
        ({"ask": 1}, "ask"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_an_answer_is_refused_at_the_place_that_is_wrong(change, place):
    assert s.AnswerSent(**ANSWER).position == 3
    assert refused_places(s.AnswerSent, ANSWER | change) == {place}


def test_a_position_may_be_written_as_json_schema_allows():
    assert s.AnswerSent.model_validate_json('{"topic": "a", "position": 3.0, "answer": "no"}').position == 3


@given(st.floats())
def test_the_recall_to_reach_lies_between_0_and_1(target):
    if 0 < target < 1:
        assert s.ProgressQuery(topic="a", target=target).target == target
    else:
        assert refused_places(s.ProgressQuery, {"topic": "a", "target": target}) == {"target"}


@every("confidence", [0.49, 1, math.nan])
def test_a_confidence_of_less_than_a_half_or_of_certainty_is_refused(confidence):
    assert refused_places(s.ProgressQuery, {"topic": "a", "confidence": confidence}) == {"confidence"}


def test_a_keyword_is_marked_or_its_mark_taken_back_but_nothing_in_between():
    for speaks_for in (True, False, None):
        assert s.KeywordSent(topic="a", term="b", speaks_for=speaks_for).speaks_for is speaks_for
    assert refused_places(s.KeywordSent, {"topic": "a", "term": "b"}) == {"speaks_for"}
    assert refused_places(s.KeywordSent, {"topic": "a", "term": "", "speaks_for": "yes"}) == {"term", "speaks_for"}
