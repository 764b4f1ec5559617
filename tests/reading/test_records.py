"""Settings of reading: fields are mapped, labels are checked."""

import pytest
from same_documents import tagged, trained_on, write

from textcat.corpus.catalogue import open_corpus
from textcat.errors import TextcatError
from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches

# Columns and fields

ABSTRACTS = {
    "headline": "Tin up",
    "abstract": "Tin rose.",
    "note": "In May.",
    "codes": "3; 14",
    "part": "train",
    "nr": "7",
}


MAPPED = {
    "text_fields": ("abstract", "note"),
    "id_field": "nr",
    "topics_field": "codes",
    "topics_separator": ";",
    "split_field": "part",
}


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_fields_are_mapped_for_every_format_that_has_them(tmp_path, form):
    path = write(tmp_path, form, ABSTRACTS)
    (document,) = open_corpus(path, settings=InputSettings(**MAPPED)).train
    assert (document.id, document.topics, document.split) == ("7", ("3", "14"), "train")
    assert document.zones == {"title": "", "body": "Tin rose.\nIn May."}
    assert tagged(path, **MAPPED) == [("", "Tin rose.\nIn May.")]
    path = write(tmp_path, form, {"title": "Tin up", **ABSTRACTS})
    for fields in (("abstract", "note"), ("title", "abstract", "note")):
        assert tagged(path, **{**MAPPED, "text_fields": fields}) == [("Tin up", "Tin rose.\nIn May.")]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    ("setting", "option"),
    [
        ("text_fields", "--text-field"),
        ("id_field", "--id-field"),
        ("topics_field", "--topics-field"),
        ("split_field", "--split-field"),
    ],
)
def test_a_field_that_is_not_there_is_refused_with_those_that_are(tmp_path, form, setting, option):
    path = write(tmp_path, form, ABSTRACTS)
    value = ("abstract", "nosuch") if setting == "text_fields" else "nosuch"
    known = r"'nosuch' \(only headline, abstract, note, codes, part, nr\): name the .* with "
    with pytest.raises(TextcatError, match=known + option):
        open_corpus(path, settings=InputSettings(**{**MAPPED, setting: value}))
    how = InputSettings(**{**MAPPED, setting: value})
    (item,) = [
        item for batch in read_batches(find_sources([path], how), how) for item in formats.batch_records(batch, how)
    ]
    # Labels are no matter of tagging.
    assert isinstance(item, Rejection if setting in ("text_fields", "id_field") else Record)


@pytest.mark.parametrize("label", [3, "3", [3], ["3"]])
@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_whole_numbers_are_names_of_topics(tmp_path, form, label):
    assert trained_on(write(tmp_path, form, {"text": "Tin", "topics": label}))[1] == [("3",)]
