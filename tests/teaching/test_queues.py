"""Lists of documents to look at."""

import json

import pytest
from commodities import commodity_pool

from textcat.base.errors import TextcatError
from textcat.teaching.queues import Queue, read_queues


@pytest.fixture(scope="module")
def pool():
    return commodity_pool()


def test_a_list_is_read_as_a_report_writes_it(pool, tmp_path):
    path = tmp_path / "label-issues.jsonl"
    rows = [("d3", "wheat", True), ("d9", "gold", False), ("elsewhere", "gold", False), ("d5", "wheat", None)]
    path.write_text(
        "".join(json.dumps({"id": i, "topic": t, "labelled": has, "split": "train"}) + "\n" for i, t, has in rows)
    )
    names = ["wheat in label-issues.jsonl", "gold in label-issues.jsonl"]
    assert read_queues(path, pool) == [
        Queue(names[0], "wheat", [(3, True), (5, None)]),
        Queue(names[1], "gold", [(9, False)]),
    ]
    for text, words in (
        ('{"id": 3, "topic": "a"}', "Line 1"),
        ("[]", "Line 1"),
        ("{", "Line 1"),
        ("", "is empty"),
        ('{"id": "x", "topic": "a"}', "none of the 1"),
    ):
        path.write_text(text)
        with pytest.raises(TextcatError, match=words):
            read_queues(path, pool)
    with pytest.raises(TextcatError, match="Cannot read the list"):
        read_queues(tmp_path / "absent", pool)
