"""Paths, queries and methods: what is refused, and how."""

import pytest
from serving_requests import TAG, assert_problem, get, post


def test_too_many_documents_are_refused(service):
    assert_problem(post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 51}), 413, "51", "50")
    assert_problem(post(service, f"{TAG}-batch", json={"documents": []}), 422, "documents")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/models/other", 404),
        ("/api/v1/models/..", 404),
        ("/api/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/api/v1/models/news%00", 404),
        ("/page/..%2fapp.py", 404),
        ("/page/%2e%2e", 404),
        ("//etc/passwd", 404),
        ("/api/v1/models/news/topic", 422),
        ("/api/v1/models/news/topic?name=a%2F..%2Fb", 404),
        ("/api/v1/models/news/topic?name=%ff", 400),
        ("/api/v1/models/news/topics?limit=x", 422),
        ("/api/v1/models/news/topics?limit=" + "9" * 5000, 422),
        ("/api/v1/models/news/topics?limits=1", 422),
        ("/api/v1/models/news/topics?limit=2&limit=1", 422),
    ],
)
def test_tricks_with_paths_and_queries_find_nothing(service, path, status):
    assert_problem(get(service, path), status)


def test_a_path_that_takes_another_method_says_which(service):
    answer = get(service, TAG)
    assert_problem(answer, 405, "POST")
    assert answer.headers["allow"] == "POST"
