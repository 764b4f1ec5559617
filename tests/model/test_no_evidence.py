"""A document without any term that the model knows gets no topic, says why, and counts so everywhere."""

import json
from collections import Counter

import numpy as np
import pytest

import textcat
from textcat import Corpus
from textcat.model import Reason
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags

LETTERS = [
    ("Please find our invoice for May attached.", ["invoice"]),
    ("The parcel came broken, I want my money back.", ["complaint", "refund"]),
    ("Second reminder: the invoice of April is unpaid.", ["invoice", "reminder"]),
    ("Where is my refund? The parcel was broken!", ["complaint", "refund"]),
    ("Reminder: your invoice is due on Friday.", ["invoice", "reminder"]),
    ("I complain about the broken parcel.", ["complaint"]),
]
UNKNOWN = ["", " \n\t", "😀", "xyzzy plugh", "​", "…"]
KNOWN = ["The invoice is still unpaid", "xyzzy parcel"]


@pytest.fixture(scope="module")
def tagger():
    corpus = Corpus.from_records([{"text": text, "topics": topics} for text, topics in LETTERS], name="letters")
    return textcat.train(corpus, textcat.read_recipe("short-texts"))


@pytest.mark.parametrize(
    "choice", [{}, {"top": 3}, {"all_topics": True}, {"min_probability": 0.01}, {"top": 2, "min_probability": 0.0}]
)
def test_a_document_without_a_known_term_gets_no_topic_however_topics_are_chosen(tagger, choice):
    tags = tagger.tag([*UNKNOWN, *KNOWN], **choice)
    assert [bool(given) for given in tags] == [False] * len(UNKNOWN) + [True] * len(KNOWN)
    assert tags.reasons == [Reason.NO_KNOWN_TERM] * len(UNKNOWN) + [None] * len(KNOWN)
    assert list(tagger.tag_stream([*UNKNOWN, *KNOWN], batch=1, **choice)) == list(tags)


def test_predictions_and_tags_agree_on_documents_without_a_known_term(tagger):
    given = tagger.predict([*UNKNOWN, *KNOWN])
    tags = tagger.tag([*UNKNOWN, *KNOWN])
    assert [[tagger.topics[j] for j in np.flatnonzero(row)] for row in given] == [
        sorted((tag.topic for tag in of_document), key=tagger.topics.index) for of_document in tags
    ]
    assert not given[: len(UNKNOWN)].any()


def test_scores_of_such_documents_stay_the_bias(tagger):
    assert (tagger.scores(UNKNOWN) == tagger.scorer.bias).all()


def test_a_document_that_must_have_one_topic_has_one_and_says_that_nothing_speaks_for_it():
    tags = textcat.train(
        Corpus.from_records([{"text": text, "topics": topics[:1]} for text, topics in LETTERS], name="letters"),
        textcat.read_recipe("short-texts").with_settings(["tags.strategy=single"]),
    ).tag([*UNKNOWN, *KNOWN])
    assert [len(given) for given in tags] == [1] * (len(UNKNOWN) + len(KNOWN))
    assert tags.reasons == [Reason.NO_KNOWN_TERM] * len(UNKNOWN) + [None] * len(KNOWN)


def test_an_evaluation_counts_what_tagging_gives(tagger):
    unknown = [{"text": text, "topics": ["invoice"]} for text in UNKNOWN]
    records = [{"text": text, "topics": topics} for text, topics in LETTERS] + unknown
    evaluation = textcat.evaluate(tagger, Corpus.from_records(records, name="others"))
    tags = tagger.tag([record["text"] for record in records])
    given = Counter(tag.topic for of_document in tags for tag in of_document)
    assert evaluation.scored.given.sum(axis=0).tolist() == [given[topic] for topic in tagger.topics]
    assert all(row.threshold is not None for row in evaluation.topics)  # one per topic, also here


def test_an_explanation_of_such_a_document_explains_no_tag(tagger):
    assert [tagger.explain_all(text) for text in UNKNOWN] == [[]] * len(UNKNOWN)


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_every_output_gives_the_reason_and_the_summary_counts_it(tagger, tmp_path, to):
    if to == "parquet":
        pytest.importorskip("pyarrow")
    textcat.save(tagger, tmp_path / "model")
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*UNKNOWN, *KNOWN]))
    summary = textcat.tag_archive(
        tmp_path / "model", documents, tmp_path / "out", output_settings=OutputSettings(to=to)
    )
    assert summary.counts.unknown == len(UNKNOWN)
    rows = list(read_tags(tmp_path / "out"))
    assert [row.reason for row in rows] == ["no_known_term"] * len(UNKNOWN) + [None] * len(KNOWN)
    assert [bool(row.topics) for row in rows] == [False] * len(UNKNOWN) + [True] * len(KNOWN)
