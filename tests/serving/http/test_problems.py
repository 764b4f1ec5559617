"""Errors as RFC 9457 has them, and answers as JSON."""

import json
from http import HTTPStatus
from typing import NamedTuple

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

from textcat.serving.http.problems import Problem, json_bytes, problem_of_validation  # noqa: E402
from textcat.serving.schemas import TagRequest  # noqa: E402


class Pair(NamedTuple):
    left: object
    right: object


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_json_is_read_as_the_value_that_was_written(value):
    assert json.loads(json_bytes(value)) == value


@given(values, st.booleans())
def test_named_tuples_are_objects_wherever_they_stand(value, surrogate):
    """The slow way, which a lone surrogate takes, writes the same."""
    tail = "\ud800" if surrogate else "?"
    written = json.loads(json_bytes({"pairs": [Pair(value, Pair(1, tail))]}))
    assert written == {"pairs": [{"left": value, "right": {"left": 1, "right": "?"}}]}


def test_what_json_cannot_hold_is_an_error():
    with pytest.raises(TypeError):
        json_bytes({"value": object()})


@every("status", [400, 404, 413, 422, 503])
def test_a_problem_has_its_status_its_title_and_all_that_is_told(status):
    body = json.loads(
        Problem(status, "Too many words: send fewer.", {"Retry-After": "1"}, errors=[{"where": "a"}]).as_json("7")
    )
    assert body == {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": "Too many words: send fewer.",
        "errors": [{"where": "a"}],
        "request_id": "7",
    }


class Request(pydantic.BaseModel):
    numbers: list[int]


def problem_of(data):
    with pytest.raises(pydantic.ValidationError) as raised:
        Request.model_validate_json(data)
    return problem_of_validation(raised.value)


def test_what_is_no_json_is_400_and_other_errors_are_422_with_their_places():
    assert problem_of("{").status == 400
    problem = problem_of('{"numbers": [1, "a", 2, "b"]}')
    assert problem.status == 422
    assert [error["where"] for error in problem.fields["errors"]] == ["numbers.1", "numbers.3"]
    assert problem.fields["errors"][0]["what"] in problem.detail


def test_of_many_errors_the_first_ten_are_listed_and_long_places_are_cut():
    problem = problem_of(json.dumps({"numbers": ["a"] * 50}))
    assert [error["where"] for error in problem.fields["errors"]] == [f"numbers.{i}" for i in range(10)]

    with pytest.raises(pydantic.ValidationError) as raised:
        pydantic.TypeAdapter(dict[str, int]).validate_python({"x" * 1000: "a"})
    (error,) = problem_of_validation(raised.value).fields["errors"]
    assert error["where"] == "x" * 200


def test_of_very_many_errors_none_is_looked_at():
    body = json.dumps({"text": "x", **{f"key {i}": i for i in range(200_000)}})
    with pytest.raises(pydantic.ValidationError) as raised:
        pydantic.TypeAdapter(TagRequest).validate_json(body)
    problem = problem_of_validation(raised.value)
    assert (problem.status, "200,000 errors, too many to list" in problem.detail) == (422, True)
