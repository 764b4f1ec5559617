"""The counts of a review add up at every stage."""

import csv
import json

import pytest

from textcat import Document, TextcatError
from textcat.teaching.pool import Pool
from textcat.teaching.screening import screening_counts, write_counts
from textcat.teaching.session import Session

WORDS = ("tin", "gold", "iron", "zinc", "lead", "copper")
TEXTS = [f"The trial number {i} of {word} in {word} patients of ward {i} was long" for i, word in enumerate(WORDS)]


@pytest.fixture
def review():
    pool = Pool.from_documents([Document(f"r{i}", {"body": text}) for i, text in enumerate([*TEXTS, TEXTS[0]])])
    session = Session.create(None, pool)
    session.add_topic("tin", exclusion_reasons=["wrong population", "no trial"])
    return session


def test_counts_add_up(review):
    review.answer("tin", 0, "yes", source="list")
    review.answer("tin", 1, "no", source="list", exclusion_reason="no trial")
    review.answer("tin", 2, "no", source="list", exclusion_reason="wrong  population")
    review.answer("tin", 3, "no", source="list", exclusion_reason="no trial")
    review.answer("tin", 4, "no", source="list")
    review.answer("tin", 5, "skip", source="list")
    counts = screening_counts(review.view, "tin")
    assert counts.as_dict() == {
        "topic": "tin",
        "identified": 7,
        "unreadable": 0,
        "duplicates": 1,
        "screened": 5,
        "included": 1,
        "excluded": 4,
        "exclusion_reasons": {"no trial": 2, "wrong population": 1},
        "not_screened": 1,
    }
    assert counts.identified == counts.unreadable + counts.duplicates + counts.screened + counts.not_screened


def test_a_reason_goes_with_its_answer(review):
    review.answer("tin", 1, "no", "ada", "list", exclusion_reason="no trial")
    review.answer("tin", 1, "no", "bob", "list", exclusion_reason="wrong population")
    assert screening_counts(review.view, "tin").exclusion_reasons == {"wrong population": 1}
    review.undo("bob")
    assert screening_counts(review.view, "tin").exclusion_reasons == {"no trial": 1}
    review.answer("tin", 1, "yes", "ada", "list")
    counts = screening_counts(review.view, "tin")
    assert (counts.included, counts.excluded, counts.exclusion_reasons) == (1, 0, {})


def test_counts_are_written_as_a_table_or_as_json(review, tmp_path):
    review.answer("tin", 1, "no", source="list", exclusion_reason="=no trial")
    with open(write_counts(review.view, tmp_path / "counts.csv"), newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [(row["stage"], row["exclusion_reason"], row["records"]) for row in rows] == [
        ("identified", "", "7"),
        ("unreadable", "", "0"),
        ("duplicates", "", "1"),
        ("screened", "", "1"),
        ("included", "", "0"),
        ("excluded", "", "1"),
        ("excluded", "'=no trial", "1"),
        ("not_screened", "", "5"),
    ]
    line = json.loads(write_counts(review.view, tmp_path / "counts.jsonl").read_text(encoding="utf-8"))
    assert line == screening_counts(review.view, "tin").as_dict()
    with pytest.raises(TextcatError, match=r"counts cannot be written as \.ris"):
        write_counts(review.view, tmp_path / "counts.ris")
