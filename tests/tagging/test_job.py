"""Batches are tagged by the model of the run, and no record is lost."""

import pytest
from archive_runs import READ
from tagged_rows import rows, to_stream

import textcat
from textcat.base.errors import TextcatError
from textcat.tagging import job
from textcat.tagging.planning import make_plan


def test_a_record_that_cannot_be_tagged_is_rejected_and_the_others_are_tagged(model, archive, undisturbed, monkeypatch):
    of_model = textcat.Tagger.scored

    def scored(self, documents, **options):
        if any(getattr(record, "id", "") == "1-7" for record in documents):
            raise ValueError("no such luck")
        return of_model(self, documents, **options)

    monkeypatch.setattr(textcat.Tagger, "scored", scored)
    stream, told, _ = to_stream(model, archive)
    assert rows(stream) == [row for row in rows(undisturbed[1]) if row["id"] != "1-7"]
    (rejection,) = [one for one in told if "ValueError" in one.reason]
    assert (rejection.position, rejection.reason) == (8, "It cannot be tagged (ValueError: no such luck).")


def test_a_lost_record_is_no_small_matter(model, archive, monkeypatch):
    tag = job.ENCODERS["jsonl"]

    def lose_first(rows, settings):
        return tag(rows._replace(records=rows.records[1:], tags=rows.tags[1:], reasons=rows.reasons[1:]), settings)

    monkeypatch.setitem(job.ENCODERS, "jsonl", lose_first)
    with pytest.raises(RuntimeError, match=r"\d+ records up to .*a.jsonl were read, but \d+ written and \d+ rejected"):
        to_stream(model, archive)


def test_a_worker_that_sees_another_model_refuses(model, archive):
    made = make_plan(model, [str(archive[0])], READ)
    with pytest.raises(TextcatError, match="is not the model that this run began with"):
        job.tag_batch(made.job._replace(digest="other"), None)
    with pytest.raises(TextcatError, match=r"spaCy 0\.1, "):
        job.tag_batch(made.job._replace(spacy="0.1"), None)
