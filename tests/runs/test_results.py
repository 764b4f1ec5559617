"""Results of batches: counts that add up, and rejections as lines."""

import json

from textcat.reading import Rejection
from textcat.runs.results import Counts, encode_rejection, kind_of_reason


def test_a_rejection_tells_where_its_bytes_lie():
    line = encode_rejection(Rejection("a\udcff.jsonl", 3, "It is 'x\udcfe'.", 10, 20))
    assert json.loads(line) == {
        "source": "a\\udcff.jsonl",
        "position": 3,
        "reason": "It is 'x\\udcfe'.",
        "offset": 10,
        "length": 20,
    }


# --- summaries -------------------------------------------------------------------------------------------------------


def test_counts_add_up_and_come_back_from_json():
    counts, some = Counts(), Counts(3, 2, 1, 1)
    some.topics["wheat"], some.reasons["It is broken."] = 2, 1
    for _ in range(2):
        counts.add(some)
    assert (counts.records, counts.tagged, counts.rejected, counts.untagged) == (6, 4, 2, 2)
    assert (counts.topics, counts.reasons) == ({"wheat": 4}, {"It is broken.": 2})
    assert Counts.from_dict(json.loads(json.dumps(counts.as_dict()))) == counts


def test_reasons_are_counted_by_kind_and_no_more_than_so_many():
    assert kind_of_reason("The line is not utf-8 (byte 12 of 34).") == "The line is not utf-8 (byte … of …)."
    assert kind_of_reason("It has the format 'x-1'.") == "It has the format …."
    counts = Counts()
    for letter in map(chr, range(1000, 1500)):
        some = Counts()
        some.reasons[letter] = 1
        counts.add(some)
    assert len(counts.reasons) == 101
    assert counts.reasons.total() == 500
