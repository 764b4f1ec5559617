"""Tags go to people by a spreadsheet, and their answers come back; a sheet that was damaged changes nothing."""

import csv
import io
import json
import re
from functools import partial

import pytest
from archive_runs import make_archive, run

from textcat.base.errors import TextcatError
from textcat.corpus.corrections import Corrections, all_topics
from textcat.review.review import Review
from textcat.review.sheet import read_sheet, write_sheet
from textcat.tagging.output import OutputSettings


@pytest.fixture
def sheet(tagged_archive, tmp_path):
    """The path of a sheet of ten documents, and the review of it."""
    review = Review(tagged_archive, tmp_path / "said", most=10, audit=0.1)
    path = tmp_path / "review.csv"
    assert write_sheet(review, path) == sum(tag.is_asked for document in review.documents for tag in document.tags)
    return path, review


def rows_of(path):
    return [*csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))]


def write(path, rows, between=",", encoding="utf-8"):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0].keys(), delimiter=between)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding=encoding)


@pytest.mark.parametrize(("between", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-8")])
def test_answers_come_back_from_a_sheet(sheet, tagged_archive, tmp_path, between, encoding):
    path, review = sheet
    rows = rows_of(path)
    for number, row in enumerate(rows):
        row["answer"] = ("yes", "NO", "", "1")[number % 4]
    given = {row["topic"] for row in rows if row["id"] == rows[0]["id"]}
    added = sorted({"gold", "wheat", "tin", "cocoa"} - given)[:2]
    rows[0]["note"], rows[0]["add"] = "perhaps", "; ".join(added)
    write(path, rows[::-1], between, encoding)  # in any order
    result = read_sheet(path, tagged_archive, tmp_path / "said", "Ann")
    made = [*Corrections(tmp_path / "said")]
    assert result.kept == len(made) > 5
    expected: dict = {}
    for number, row in enumerate(rows):
        if row["answer"]:
            expected.setdefault(row["id"], {})[row["topic"]] = number % 4 in (0, 3)
    for topic in added:
        expected[rows[0]["id"]].setdefault(topic, True)
    assert {correction.document.id: correction.answers for correction in made} == expected
    assert {(correction.person, correction.via) for correction in made} == {("Ann", "sheet")}
    first = next(correction for correction in made if correction.document.id == rows[0]["id"])
    assert first.note == "perhaps"
    texts = {document.document.id: document.document.zones for document in review.documents}
    assert all(correction.document.zones == texts[correction.document.id] for correction in made)
    automatic = {(row["id"], row["topic"]) for row in rows if row["status"] == "automatic" and row["answer"]}
    assert {(made_.document.id, topic) for made_ in made for topic in made_.audited} == automatic


def test_a_sheet_that_is_read_twice_counts_once(sheet, tagged_archive, tmp_path):
    path, _ = sheet
    rows = rows_of(path)
    rows[0]["answer"] = "yes"
    write(path, rows)
    assert read_sheet(path, tagged_archive, tmp_path / "said", "Ann")[:2] == (1, 0)
    assert read_sheet(path, tagged_archive, tmp_path / "said", "Ann")[:2] == (0, 1)
    rows[0]["answer"] = "no"
    write(path, rows)
    assert read_sheet(path, tagged_archive, tmp_path / "said", "Ann")[:2] == (1, 0)


def test_an_answer_that_is_removed_again_is_told_and_stays(sheet, tagged_archive, tmp_path):
    path, _ = sheet
    rows = rows_of(path)
    rows[0]["answer"] = "yes"
    write(path, rows)
    read_sheet(path, tagged_archive, tmp_path / "said", "Ann")
    rows[0]["answer"] = ""
    write(path, rows)
    assert read_sheet(path, tagged_archive, tmp_path / "said", "Ann") == (0, 0, 1, (), ())
    assert len([*Corrections(tmp_path / "said")]) == 1


def test_automatic_tags_that_are_named_as_missing_are_not_audited(tagged_archive, tmp_path):
    review, path = Review(tagged_archive, tmp_path / "said", most=40), tmp_path / "sheet.csv"
    write_sheet(review, path)
    rows = rows_of(path)
    named = next(row for row in rows if row["other tags"])
    assert all(row["status"] == "review" for row in rows)
    named["add"] = named["other tags"]
    write(path, rows)
    read_sheet(path, tagged_archive, tmp_path / "said", "Ann")
    (made,) = Corrections(tmp_path / "said")
    assert made.answers == dict.fromkeys(named["other tags"].split("; "), True)
    assert made.audited == ()


def test_a_sheet_with_answers_is_not_replaced(sheet):
    path, review = sheet
    empty = path.read_bytes()
    write_sheet(review, path)
    assert path.read_bytes() == empty
    rows = rows_of(path)
    rows[1]["note"] = "which wheat?"
    write(path, rows)
    filled = path.read_bytes()
    with pytest.raises(TextcatError, match=r"has answers: read them by `textcat review .* --read"):
        write_sheet(review, path)
    path.write_text("id,text\n1,Wheat\n")
    with pytest.raises(TextcatError, match="has no column"):
        write_sheet(review, path)
    assert filled != empty


def test_documents_that_move_within_their_file_keep_their_answers(newswire_model, tmp_path):
    file = make_archive(tmp_path / "in" / "a.jsonl", 40)
    lines = file.read_bytes().splitlines(keepends=True)
    tag = partial(run, newswire_model, [tmp_path / "in"], tmp_path / "out")
    tag()
    path = tmp_path / "sheet.csv"
    write_sheet(Review(tmp_path / "out", most=10), path)
    rows = [row | {"answer": "yes"} for row in rows_of(path)]
    write(path, rows)
    moved = int(rows[0]["position"]) - 1
    file.write_bytes(b"".join([b'{"id": "new", "text": "Wheat rose."}\n', *lines[:moved], *lines[moved + 1 :]]))
    read = partial(read_sheet, path, tmp_path / "out", tmp_path / "said", "Ann")
    n_documents = len({row["id"] for row in rows})
    before = read()  # the file has other documents than its tags, up to the removed one
    assert before.missing[0] == rows[0]["id"]
    assert before.kept + len(before.missing) == n_documents
    tag()
    with pytest.raises(TextcatError, match=f"that .* has no tags of, '{rows[0]['id']}'.* remove its answers"):
        read()
    write(path, [row | {"answer": ""} if row["id"] == rows[0]["id"] else row for row in rows])
    assert read() == (n_documents - 1 - before.kept, before.kept, 0, (), ())
    assert {made.document.id for made in Corrections(tmp_path / "said")} == {row["id"] for row in rows[1:]} - {
        rows[0]["id"]
    }


@pytest.mark.parametrize("length", [1, 2000])
def test_answers_about_a_former_text_are_not_stored(newswire_model, tmp_path, length):
    file, rise = tmp_path / "in.jsonl", " ".join(["Wheat exports rose."] * length)
    lines = [json.dumps({"id": id_, "text": rise}) for id_ in ("s1", "s2")]
    file.write_text("\n".join(lines))
    tag = partial(run, newswire_model, [file], tmp_path / "out", write=OutputSettings(top=1))
    tag()
    path = tmp_path / "sheet.csv"
    write_sheet(Review(tmp_path / "out"), path)
    write(path, [row | {"answer": "yes"} for row in rows_of(path)])
    file.write_text("\n".join([lines[0].replace('."', ' not."'), lines[1]]))
    tag()
    read = partial(read_sheet, path, tmp_path / "out", tmp_path / "said")
    assert read() == (1, 0, 0, (), ("s1",))
    assert read() == (0, 1, 0, (), ("s1",))
    assert [made.document.id for made in Corrections(tmp_path / "said")] == ["s2"]
    write(path, [row | {"answer": "" if row["id"] == "s1" else "yes"} for row in rows_of(path)])
    assert read() == (0, 1, 0, (), ())


def test_what_spreadsheets_do_to_ids_and_numbers_is_understood(sheet, tagged_archive, tmp_path):
    path, _ = sheet
    rows = rows_of(path)
    for row in rows:
        row["row"], row["position"], row["id"] = f"{row['row']}.0", f"{row['position']}.0", "1.2E+19"
        row["text"], row["answer"] = row["text"].replace(" ", "\u00a0"), "no"
    write(path, rows)
    assert read_sheet(path, tagged_archive, tmp_path / "said").kept == 10


def with_key(row, place, value):
    """Return a row with another value in a place of its key."""
    key = json.loads(row["key"])
    key[place] = value
    return row | {"key": json.dumps(key)}


def slipped(rows, name):
    """Return the rows with the cells of a column moved down by a row."""
    return [row | {name: above[name]} for row, above in zip(rows, [rows[-1], *rows[:-1]], strict=True)]


def test_ids_that_a_spreadsheet_changes_to_those_of_other_documents_harm_nothing(newswire_model, tmp_path):
    file = tmp_path / "in.jsonl"
    texts = {"0012": "Wheat exports rose", "12": "Gold fell", "1E5": "Copper mine strike", "100000": "Oil prices fell"}
    lines = [{"id": id_, "text": text} for id_, text in texts.items()]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tag = partial(run, newswire_model, [file], tmp_path / "out", write=OutputSettings(top=1))
    tag()
    path = tmp_path / "sheet.csv"
    write_sheet(Review(tmp_path / "out"), path)
    rows = rows_of(path)
    topics = {row["id"]: row["topic"] for row in rows}
    write(path, [row | {"answer": "yes", "id": str(int(float(row["id"])))} for row in rows])
    file.write_text('{"id": "new", "text": "Corn fell"}\n' + file.read_text())
    tag()
    read_sheet(path, tmp_path / "out", tmp_path / "said")
    made = {each.document.id: (each.answers, *each.document.zones.values()) for each in Corrections(tmp_path / "said")}
    assert made == {id_: ({topics[id_]: True}, text) for id_, text in texts.items()}


DAMAGES = {
    "a row is missing": (lambda rows: rows[:2] + rows[3:], r"lacks some .* such as 3: .*Nothing was read"),
    "the last row is missing": (lambda rows: rows[:-1], "lacks some"),
    "a row is there twice": (lambda rows: [*rows, rows[0]], "has rows twice"),
    "a row is of another sheet": (lambda rows: [with_key(rows[0], 1, 10**9), *rows[1:]], "of another sheet"),
    "there should be very many rows": (lambda rows: [with_key(row, 1, 10**9) for row in rows], "lacks some"),
    "a key was changed": (lambda rows: [rows[0] | {"key": "5"}, *rows[1:]], "'key' was changed"),
    "a key is missing": (lambda rows: [rows[0] | {"key": ""}, *rows[1:]], "'key' was changed"),
    "topics have slipped": (lambda rows: slipped(rows, "topic"), "has the topic of another row"),
    "texts have slipped": (lambda rows: slipped(rows, "text"), "has the text of another row"),
    "keys have slipped": (lambda rows: slipped(rows, "key"), "of another row"),
    "a topic was replaced": (lambda rows: [rows[0] | {"topic": "tin"}, *rows[1:]], "Row 1 .* in the column add"),
    "a cell is too long": (lambda rows: [rows[0] | {"note": "x" * 5000}, *rows[1:]], "no CSV at line"),
    "a column is missing": (
        lambda rows: [{k: v for k, v in row.items() if k != "answer"} for row in rows],
        "has no column 'answer'",
    ),
    "an answer is none": (
        lambda rows: [rows[0] | {"answer": "maybe"}, *rows[1:]],
        "Row 1 .*cannot be 'maybe'.*yes or no",
    ),
    "a topic is none": (lambda rows: [rows[0] | {"add": "wheatt"}, *rows[1:]], "Row 1 .*Did you mean 'wheat'"),
    "nobody has the document": (
        lambda rows: [with_key(with_key(rows[0], 4, 9999), 5, "x"), *rows[1:]],
        "Row 1 .* is about a document that .* has no tags of, 'x'",
    ),
    "a tag is both wrong and missing": (
        lambda rows: [rows[0] | {"answer": "no", "add": rows[0]["topic"]}, *rows[1:]],
        "is no, but the column add names it",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_sheet_changes_nothing(sheet, tagged_archive, tmp_path, damage, request):
    path, _ = sheet
    request.addfinalizer(partial(csv.field_size_limit, csv.field_size_limit(4000)))
    rows = [row | {"answer": "yes"} for row in rows_of(path)]
    change, sentence = DAMAGES[damage]
    write(path, change(rows))
    with pytest.raises(TextcatError, match=sentence):
        read_sheet(path, tagged_archive, tmp_path / "said", "Ann")
    assert [*Corrections(tmp_path / "said")] == []


def test_a_sheet_without_rows_is_refused(sheet, tagged_archive, tmp_path):
    path, review = sheet
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[0] + "\n", encoding="utf-8")
    with pytest.raises(TextcatError, match="has no rows, but only its header: restore"):
        read_sheet(path, tagged_archive, tmp_path / "said")
    with pytest.raises(TextcatError, match="has no rows"):
        write_sheet(review, path)


def test_a_file_that_is_no_sheet_is_refused(tagged_archive, tmp_path):
    with pytest.raises(TextcatError, match="Cannot read the sheet"):
        read_sheet(tmp_path / "none.csv", tagged_archive, tmp_path / "said")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TextcatError, match="has no column 'key'"):
        read_sheet(tmp_path / "empty.csv", tagged_archive, tmp_path / "said")
    (tmp_path / "latin.csv").write_bytes("row,id\nä".encode("latin-1"))
    with pytest.raises(TextcatError, match="not UTF-8"):
        read_sheet(tmp_path / "latin.csv", tagged_archive, tmp_path / "said")


@pytest.fixture
def sampled(tagged_archive, tmp_path):
    """The path of a sheet of a random sample, and the rows of each of its documents."""
    path = tmp_path / "sample.csv"
    write_sheet(Review(tagged_archive, tmp_path / "said", sample=200), path)
    by_document: dict = {}
    for row in rows_of(path):
        by_document.setdefault((row["source"], int(row["position"])), []).append(row)
    return path, by_document


def test_documents_of_a_sample_are_judged_whole_or_not_at_all(sampled, tagged_archive, tmp_path):
    path, by_document = sampled
    tagged = [place for place, rows in by_document.items() if rows[0]["topic"]]
    untagged = [place for place, rows in by_document.items() if not rows[0]["topic"]]
    assert len(by_document) == 300
    assert untagged
    for row in by_document[tagged[0]]:
        row["answer"] = "yes"
    by_document[tagged[0]][0]["add"] = "gold"
    by_document[untagged[0]][0]["answer"] = "no"
    by_document[untagged[1]][0]["add"] = "wheat"
    write(path, [row for rows in by_document.values() for row in rows])
    assert read_sheet(path, tagged_archive, tmp_path / "said").kept == 3
    expected = {row["topic"] for row in by_document[tagged[0]]} | {"gold"}
    judged = {place: all_topics(made) for place, made in Corrections(tmp_path / "said").by_place().items()}
    assert {key[:2]: topics for key, topics in judged.items()} == {
        tagged[0]: expected,
        untagged[0]: set(),
        untagged[1]: {"wheat"},
    }


def test_a_sample_with_a_document_that_is_judged_in_part_is_refused(sampled, tagged_archive, tmp_path):
    path, by_document = sampled
    rows = next(rows for rows in by_document.values() if len(rows) > 1)
    rows[0]["answer"] = "yes"
    everything = [row for rows in by_document.values() for row in rows]
    write(path, everything)
    with pytest.raises(TextcatError, match="answer in all of them, or in none"):
        read_sheet(path, tagged_archive, tmp_path / "said")
    rows[0]["answer"] = ""
    next(row for row in everything if not row["topic"])["answer"] = "yes"
    write(path, everything)
    with pytest.raises(TextcatError, match="the row has no topic"):
        read_sheet(path, tagged_archive, tmp_path / "said")
    assert [*Corrections(tmp_path / "said")] == []


def test_documents_without_ids_of_their_own_are_found_only_if_their_file_is_the_same(newswire_model, tmp_path):
    file = make_archive(tmp_path / "in" / "a.jsonl", 40)
    lines = [re.sub(rb'^{"id": "[^"]*", ', b"{", line) for line in file.read_bytes().splitlines(keepends=True)]
    file.write_bytes(b"".join(lines))
    tag = partial(run, newswire_model, [tmp_path / "in"], tmp_path / "out")
    tag()
    path, read = tmp_path / "sheet.csv", partial(read_sheet, folder=tmp_path / "out", person="Ann")
    write_sheet(Review(tmp_path / "out", most=10), path)
    write(path, [row | {"answer": "yes"} for row in rows_of(path)])
    assert read(path, corrections=tmp_path / "first").kept == 10
    file.write_bytes(b'{"text": "Wheat rose."}\n' + b"".join(lines))
    assert len(read(path, corrections=tmp_path / "second").missing) == 10  # it was not tagged again yet
    assert Review(tmp_path / "out", most=10).documents == []
    tag()
    with pytest.raises(TextcatError, match=r"is about a document that .* has no tags of"):
        read(path, corrections=tmp_path / "second")
