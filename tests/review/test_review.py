"""A queue hands out documents, keeps what people say, and goes on where it was left."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
from read_sources import zipped

from textcat.base.errors import TextcatError
from textcat.corpus.corrections import PLACE, Correction, Corrections, all_topics, archive_place
from textcat.review.review import Review
from textcat.review.sheet import read_sheet, write_sheet
from textcat.runs.records import ORIGIN
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import tag_archive
from textcat.tagging.shards import read_tags

TEXTS = ["Wheat exports rose.", "Gold fell in Zurich.", "Oil prices fell in London.", "Corn and soybean are late."]


@pytest.fixture
def review(tagged_archive, tmp_path):
    return Review(tagged_archive, tmp_path / "said", most=40)


def asked(document):
    return [tag.topic for tag in document.tags if tag.is_asked]


def test_a_document_of_the_queue_has_its_text_and_its_tags(review, tagged_archive, newswire):
    rows = {row.id: row for row in read_tags(tagged_archive)}
    texts = {document.id: document.zones for document in newswire.train}
    assert len(review.documents) == 40
    assert review.n_missing == 0
    for document in review.documents:
        row = rows[document.document.id]
        read = {name: texts[row.id][name] for name in ("title", "body")}
        assert document.document.zones == {name: text for name, text in read.items() if text}
        assert document.place == (row.source, row.position)
        assert tuple(tag.topic for tag in document.tags) == row.topics == document.document.topics
        assert asked(document) == [t for t, said in zip(row.topics, row.statuses, strict=True) if said == "review"]
        assert document.document.date.startswith("2024-0")


def test_people_share_the_work(review):
    first, second = review.next("Ann"), review.next("Bob")
    assert (first.number, second.number) == (0, 1)
    assert review.next("Ann") is first  # it waits for an answer
    review.answer(0, {asked(first)[0]: True}, "Ann")
    assert review.next("Ann").number == 2
    assert [made.person for made in review.answers_of(0, "Bob")] == ["Ann"]
    assert review.n_answered("Bob") == 1


def test_a_document_that_someone_left_without_an_answer_is_shown_to_others_last(tagged_archive, tmp_path):
    review = Review(tagged_archive, tmp_path, most=2)
    assert [review.next("Ann").number, review.next("Bob").number] == [0, 1]
    review.answer(1, {}, "Bob")
    assert review.next("Bob").number == 0  # Ann may have left
    review.answer(0, {}, "Bob")
    assert review.next("Ann") is None


def test_people_who_review_independently_see_all_documents_and_no_answers(tagged_archive, tmp_path):
    review = Review(tagged_archive, tmp_path, most=2, independent=True)
    assert review.next("Ann").number == review.next("Bob").number == 0
    review.answer(0, {}, "Ann")
    assert review.next("Ann").number == 1
    assert review.next("Bob").number == 0
    assert review.answers_of(0, "Bob") == []
    review.answer(1, {}, "Ann")
    assert review.next("Ann") is None
    assert (review.n_answered("Ann"), review.n_answered("Bob")) == (2, 0)
    again = Review(tagged_archive, tmp_path, most=2, independent=True)
    assert again.next("Ann") is None
    assert again.next("Bob").number == 0


def test_an_answer_is_kept_with_all_that_was_said(review, tmp_path):
    document = review.next("Ann")
    (topic, *_), missing = asked(document), next(t for t in review.topics.topics if t not in document.document.topics)
    made = review.answer(0, {topic: False, missing: True}, "Ann", "odd")
    (kept,) = Corrections(tmp_path / "said")
    assert kept == made
    assert (kept.answers, kept.person, kept.via, kept.note) == ({topic: False, missing: True}, "Ann", "review", "odd")
    assert kept.before == document.document.topics
    assert kept.after == (*(other for other in document.document.topics if other != topic), missing)
    assert kept.document.zones == document.document.zones
    assert len(kept.model) == 12


def test_the_next_queue_has_other_documents(review, tagged_archive, tmp_path):
    for number in range(5):
        review.answer(number, {}, "Ann")
    again = Review(tagged_archive, tmp_path / "said", most=40)
    before, now = ([document.place for document in each.documents] for each in (review, again))
    assert now[:35] == before[5:]
    assert again.n_open == review.n_open - 5


def test_the_last_answer_of_a_person_is_undone(review):
    for number in (0, 1):
        review.answer(number, {}, "Ann")
    review.answer(2, {}, "Bob")
    undone = review.undo("Ann")
    assert undone.document.number == 1
    assert review.next("Ann").number == 1
    assert review.n_answered() == 2
    assert review.undo("Cid") is None


def test_an_answer_of_an_earlier_queue_is_undone_too(review, tagged_archive, tmp_path):
    review.answer(0, {}, "Ann")
    again = Review(tagged_archive, tmp_path / "said", most=3)
    undone = again.undo("Ann")
    assert undone.document is None
    assert undone.correction.document.id == review.documents[0].document.id
    assert [*Corrections(tmp_path / "said")] == []


def test_topics_are_given_by_id_and_unknown_ones_refused(review):
    with pytest.raises(TextcatError, match=r"has no topic 'wheatt'.* Did you mean 'wheat'"):
        review.answer(0, {"wheatt": True}, "Ann")
    with pytest.raises(TextcatError, match="no document 40 in the queue"):
        review.answer(40, {}, "Ann")
    assert review.n_answered() == 0
    assert review.topics.search("whe", 5) == ["wheat"]
    assert len(review.topics.search("", 3)) == 3


def test_the_words_of_a_document_are_explained(review):
    topic = asked(review.documents[0])[0]
    explanation = review.explain(0, topic, 3)
    assert explanation.topic == topic
    assert len(explanation.reasons) == 3


def test_without_the_model_documents_are_judged_without_words(tagged_archive, tmp_path):
    archive = shutil.copytree(tagged_archive, tmp_path / "tags")
    origin = json.loads((archive / ORIGIN).read_text())
    (archive / ORIGIN).write_text(json.dumps(origin | {"model": str(tmp_path / "gone")}))
    review = Review(archive, most=3)
    assert review.explain(0, asked(review.documents[0])[0]) is None
    review.answer(0, {"a topic that nobody knows": True}, "Ann")
    assert (tmp_path / "tags-corrections").is_dir()


def test_texts_that_have_gone_are_left_out_and_counted(tagged_archive, tmp_path):
    archive = shutil.copytree(tagged_archive, tmp_path / "tags")
    shutil.copytree(tagged_archive.parent / "archive", tmp_path / "archive")
    origin = json.loads((archive / ORIGIN).read_text())
    whole = str(tagged_archive.parent / "archive")
    assert origin["inputs"] == [whole]
    lines = (tmp_path / "archive" / "a.jsonl").read_text().splitlines(keepends=True)
    lines[:100] = [line.replace('"id": "', '"id": "x') for line in lines[:100]]  # other documents are there now
    (tmp_path / "archive" / "a.jsonl").write_text("".join(lines))
    (tmp_path / "archive" / "b.jsonl").unlink()
    (archive / ORIGIN).write_text(json.dumps(origin | {"inputs": [str(tmp_path / "archive")]}))
    for shard in archive.glob("part-*"):
        shard.write_text(shard.read_text().replace(whole, str(tmp_path / "archive")))
    review = Review(archive, most=300)
    there = {document.document.id for document in review.documents}
    assert there <= {json.loads(line)["id"] for line in lines[100:]}
    assert review.n_missing == review.n_open - len(review.documents) > 0


def test_a_folder_without_tags_or_origin_is_refused(tagged_archive, tmp_path):
    with pytest.raises(TextcatError, match="does not say where its documents are"):
        Review(tmp_path)
    archive = shutil.copytree(tagged_archive, tmp_path / "tags")
    (archive / ORIGIN).write_text('{"model": 3}')
    with pytest.raises(TextcatError, match="damaged"):
        Review(archive)
    with pytest.raises(TextcatError, match="A queue cannot have 0 documents"):
        Review(tagged_archive, tmp_path, most=0)


def judged(review):
    """All topics of each completely judged document."""
    topics_of = {place: all_topics(made) for place, made in review.corrections.by_place().items()}
    return {place: topics for place, topics in topics_of.items() if topics is not None}


def test_of_a_sample_all_topics_are_judged(tagged_archive, tmp_path):
    review = Review(tagged_archive, tmp_path / "said", sample=8)
    assert len(review.documents) == 24
    assert Counter(document.document.date[:7] for document in review.documents) == dict.fromkeys(
        ("2024-01", "2024-02", "2024-03"), 8
    )
    document = next(each for each in review.documents if each.tags)
    assert asked(document) == [*document.document.topics]
    with pytest.raises(TextcatError, match="have no answer"):
        review.answer(document.number, {}, is_complete=True)
    made = review.answer(document.number, dict.fromkeys(asked(document), False) | {"gold": True}, is_complete=True)
    untagged = next((each for each in review.documents if not each.tags), None)
    assert made.is_complete
    assert judged(review) == {archive_place(document.document): {"gold"}}
    again = Review(tagged_archive, tmp_path / "said", sample=8)
    assert len(again.documents) == 23
    again.answer(next(each.number for each in again.documents if each.tags), {})  # skipped
    if untagged is not None:
        number = next(each.number for each in again.documents if each.document.id == untagged.document.id)
        again.answer(number, {}, is_complete=True)
        assert judged(again)[archive_place(untagged.document)] == set()
    assert len(Review(tagged_archive, tmp_path / "said", sample=8).documents) == 22 - (untagged is not None)


def test_an_answer_to_single_tags_does_not_take_a_document_from_the_sample(tagged_archive, tmp_path):
    sample = Review(tagged_archive, tmp_path / "said", sample=500)
    document = next(each for each in sample.documents if each.tags)
    sample.answer(document.number, {asked(document)[0]: True})
    assert document.place in {each.place for each in Review(tagged_archive, tmp_path / "said", sample=500).documents}


@pytest.fixture
def queue_of(newswire_model, tmp_path):
    """A function that writes files of texts, tags the folder, and returns its queue.

    The names of files whose documents have ids of their own begin with "id".
    """
    (tmp_path / "in").mkdir()

    def queue(restart=False, **texts_of):
        for name, texts in texts_of.items():
            ids = [{"id": text[:4]} if name.startswith("id") else {} for text in texts]
            lines = [json.dumps({"text": text} | id_) + "\n" for text, id_ in zip(texts, ids, strict=True)]
            data = "".join(lines).encode()
            path = tmp_path / "in" / name
            path.with_suffix(".jsonl").write_bytes(data)
            path.with_suffix(".zip").write_bytes(zipped(("x.jsonl", data)))
        top = OutputSettings(top=1)
        tag_archive(newswire_model, tmp_path / "in", tmp_path / "out", jobs=1, output_settings=top, restart=restart)
        return Review(tmp_path / "out", tmp_path / "said")

    return queue


def test_answers_count_whatever_the_present_names_of_files(queue_of, tmp_path):
    review = queue_of(a=TEXTS, ids=TEXTS[:2])
    assert len(review.documents) == 12
    write_sheet(review, tmp_path / "sheet.csv")
    for document in review.documents:
        review.answer(document.number, {asked(document)[0]: True}, "Ann")
    for path in [*(tmp_path / "in").iterdir()]:
        path.rename(path.with_name(f"moved-{path.name}"))
    assert queue_of().documents == []
    review = queue_of(restart=True)  # only now, rows have the new names
    assert review.documents == []
    rows = (tmp_path / "sheet.csv").read_text().replace(",,,,", ",yes,,,")
    (tmp_path / "sheet.csv").write_text(rows)
    assert read_sheet(tmp_path / "sheet.csv", tmp_path / "out", tmp_path / "said", "Bob").kept == 12
    assert review.undo("Ann").correction.person == "Ann"
    assert len(queue_of().documents) == 0  # Bob has answered all


def test_answers_count_for_documents_not_for_places(queue_of):
    review = queue_of(a=TEXTS, ids=TEXTS)
    for document in review.documents:
        review.answer(document.number, {asked(document)[0]: True}, "Ann")
    changed = [TEXTS[0], "Copper miners strike.", *TEXTS[2:], "Tin fell."]
    review = queue_of(a=changed, ids=["Rates rose.", *TEXTS[::-1]])
    new = [*chain.from_iterable(document.document.zones.values() for document in review.documents)]
    assert Counter(new) == Counter(dict.fromkeys((changed[1], changed[-1], "Rates rose."), 2))


def test_answers_about_several_contents_of_a_file_stay_in_their_order(queue_of, tmp_path):
    review = queue_of(ids=TEXTS[:1])
    place = next(document.document for document in review.documents if document.place[0].endswith(".jsonl"))
    former = replace(place, fields=place.fields | {PLACE[-1]: "former"})
    tag = {asked(review.documents[0])[0]: True}
    review.corrections.add(*(Correction(document, tag, "Ann") for document in (place, former, place)))
    again = Review(tmp_path / "out", tmp_path / "said", independent=True)
    (number,) = (document.number for document in again.documents if document.document.fields == place.fields)
    assert [made.number for made in again.answers_of(number, "Ann")] == [1, 2, 3]
