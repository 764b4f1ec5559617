"""Bodies that are read, and those that are refused."""

from cases import every
from serving_requests import TAG, assert_problem, post


@every(
    "body, status, words",
    [
        (b"", 400, "not JSON"),
        (b'{"text": "a"', 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        (b'{"text": "\xff"}', 400, "not JSON"),
        (b'{"text": "\\ud80"}', 400, "not JSON"),
        (b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "not JSON"),
        (b'{"text": 1}', 422, "text"),
        (b'{"texts": "a"}', 422, "'text'"),
        (b"[]", 422, "'text'"),
        (b'{"text": "a", "zones": {"a": "b"}}', 422, "invalid: zones: "),
        (b'{"zones": {}}', 422, "zones"),
        (b'{"zones": {"a": {"b": "c"}}}', 422, "invalid: zones.a: "),
        (b'{"text": "a", "top": 1e999}', 422, "invalid: top: "),
        (b'{"text": "a", "top": 99999999999999999999999}', 422, "top"),
        (b'{"text": "a", "min_probability": NaN}', 422, "min_probability"),
        (b'{"text": "a", "top": true}', 422, "top"),
        (b'{"text": "' + b"a" * 20_000 + b'"}', 413, "20,000 bytes"),
    ],
)
def test_a_body_that_is_not_as_it_should_be_is_refused_in_a_sentence(service, body, status, words):
    assert_problem(post(service, TAG, content=body, headers={"content-type": "application/json"}), status, words)


def test_a_key_given_twice_counts_once(service):
    body = b'{"text": "gold", "text": "wheat exports", "top": 1}'
    assert (
        post(service, TAG, content=body).json()["tags"]
        == post(service, TAG, json={"text": "wheat exports", "top": 1}).json()["tags"]
    )


def test_a_whole_number_may_be_written_as_json_schema_allows(service):
    assert len(post(service, TAG, content=b'{"text": "gold", "top": 2.0}').json()["tags"]) == 2
    assert_problem(post(service, TAG, content=b'{"text": "gold", "top": 2.5}'), 422, "top")
