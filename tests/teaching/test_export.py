"""What has been taught, as labels, a corpus, a model and an audit."""

import csv
import json
import sys
from contextlib import suppress

import pytest
from teaching_work import SUBJECTS, documents, teach

import textcat
from textcat import Document, TextcatError, cli
from textcat.teaching.export import (
    reference_line,
    write_audit,
    write_corpus,
    write_included,
    write_labels,
    write_model,
    write_records,
)
from textcat.teaching.pool import Pool, build_pool
from textcat.teaching.session import Session


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_labels_have_near_duplicates_and_no_topic_that_was_not_judged(session, tmp_path):
    session.add_topic("gold")
    session.answer("strike", 0, "yes", "anna", "list")
    session.answer("strike", 0, "no", "bert", "list")
    session.answer("gold", 2, "yes", source="list")
    session.answer("gold", 3, "skip", source="list")
    assert lines_of(write_labels(session.view, tmp_path / "labels.jsonl")) == [
        {"id": "d0", "position": 0, "group": 0, "labels": {"strike": True}, "judged_as": "d0", "disputed": ["strike"]},
        {"id": "d9", "position": 9, "group": 0, "labels": {"strike": True}, "judged_as": "d0", "disputed": ["strike"]},
        {"id": "d2", "position": 2, "group": 2, "labels": {"gold": True}, "judged_as": "d2"},
    ]
    assert len(lines_of(write_labels(session.view, tmp_path / "labels.jsonl", ["gold"]))) == 1


def test_labels_of_documents_with_the_same_id_are_told_apart(tmp_path):
    texts = ("Miners strike for wages in the north", "Gold bullion fell in London on Monday")
    session = Session.create(None, Pool.from_documents([Document("a", {"body": text}) for text in texts]))
    session.add_topic("strike")
    for position, answer in enumerate(("yes", "no")):
        session.answer("strike", position, answer, source="list")
    labels = [
        (line["id"], line["position"], line["labels"]["strike"])
        for line in lines_of(write_labels(session.view, tmp_path / "labels.jsonl"))
    ]
    assert labels == [("a", 0, True), ("a", 1, False)]
    with open(write_labels(session.view, tmp_path / "labels.csv"), newline="", encoding="utf-8") as file:
        assert [(row["position"], row["group"]) for row in csv.DictReader(file)] == [("0", "0"), ("1", "1")]


def test_an_exported_corpus_trains_and_an_exported_model_is_what_that_gives(session, pool, tmp_path):
    teach(session, "strike", 70)
    path = write_corpus(session.view, tmp_path / "corpus.jsonl")
    corpus = textcat.open_corpus(str(path))
    assert corpus.topics == ("strike",)
    assert {each.id: dict(each.zones) for each in corpus.train} == {
        pool.ids[i]: {"title": "", **pool.document(i)} for i in sorted(session.view.topic("strike").labels)
    }
    tagger = textcat.load(write_model(session.view, tmp_path / "model"))
    assert tagger.topics == ("strike",)
    tags = tagger.tag([SUBJECTS["strike"], SUBJECTS["gold"]])
    assert [[tag.topic for tag in each] for each in tags] == [["strike"], []]


def test_what_was_not_judged_for_a_topic_is_no_example_of_it(session, tmp_path):
    session.add_topic("gold", "gold bullion", random_share=0)
    teach(session, "strike", 45)
    teach(session, "gold", 45, subject="gold")
    corpus = textcat.open_corpus(str(write_corpus(session.view, tmp_path / "corpus.jsonl")))
    of_both = {topic: {f"d{i}" for i in session.view.topic(topic).labels} for topic in ("strike", "gold")}
    assert {each.id for each in corpus.train} == of_both["strike"] | of_both["gold"]
    for document in corpus.train:
        assert set(document.labelled_for) == {topic for topic, ids in of_both.items() if document.id in ids}
    assert corpus.unjudged(corpus.train).nnz > 0
    tagger = textcat.load(write_model(session.view, tmp_path / "model"))
    assert tagger.topics == ("gold", "strike")
    gold, strike = tagger.scores([SUBJECTS["gold"], SUBJECTS["strike"]])
    assert gold[0] > strike[0]
    assert strike[1] > gold[1]


def test_documents_of_one_id_get_their_own_in_a_corpus(tmp_path):
    pool = Pool.from_documents([Document("same", zones) for zones in documents(20)])
    session = Session.create(None, pool)
    session.add_topic("strike")
    teach(session, "strike", 8)
    corpus = textcat.open_corpus(str(write_corpus(session.view, tmp_path / "corpus.jsonl")))
    assert len({each.id for each in corpus.train}) == 8


def test_what_cannot_be_exported_is_told(session, tmp_path):
    with pytest.raises(TextcatError, match="'strike' has no document judged by yes: answer some more"):
        write_corpus(session.view, tmp_path / "corpus.jsonl")
    session.answer("strike", 0, "yes", source="list")
    with pytest.raises(TextcatError, match="no document judged by no"):
        write_model(session.view, tmp_path / "model")
    session.add_topic("gold")
    with pytest.raises(
        TextcatError, match="'gold' has no document judged by yes: answer some more, or leave the topic"
    ):
        write_corpus(session.view, tmp_path / "corpus.jsonl")
    with pytest.raises(TextcatError, match="no topic 'silver'"):
        write_labels(session.view, tmp_path / "labels.jsonl", ["silver"])
    with pytest.raises(TextcatError, match="add one first"):
        write_audit(Session.create(None, session.view.pool).view, tmp_path / "audit.jsonl")


def test_the_audit_has_all_that_was_done(session, tmp_path):
    teach(session, "strike", 2, "anna")
    session.answer("strike", 20, "no", "bert", "search", '=HYPERLINK("x")')
    session.set_keyword("strike", "union", True, "anna")
    session.undo("bert")
    rows = lines_of(write_audit(session.view, tmp_path / "audit.jsonl"))
    assert [(row["what"], row["person"]) for row in rows] == [
        ("topic", ""),
        *[("answer", "anna")] * 2,
        ("answer", "bert"),
        ("keyword", "anna"),
        ("undo", "bert"),
    ]
    first, found = rows[1], rows[3]
    assert (first["why"], first["model"], first["rank"], first["source"]) == ("highest score", 0, 1, "asked")
    assert isinstance(first["score"], float)
    assert first["time"].endswith("Z")
    assert (found["source"], found["undone"]) == ("search", rows[5]["step"])
    with open(write_audit(session.view, tmp_path / "audit.csv"), encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["what"] for row in table] == [row["what"] for row in rows]
    assert (table[1]["score"], table[3]["note"]) == (str(first["score"]), '\'=HYPERLINK("x")')


def test_the_audit_says_that_criteria_or_the_strategy_of_a_topic_were_changed(session, tmp_path):
    session.change_topic("strike", criteria="Workers stop work.")
    session.change_topic("strike", strategy="uncertain")
    _, criteria, strategy = lines_of(write_audit(session.view, tmp_path / "audit.jsonl"))
    assert criteria["what"] == strategy["what"] == "change"
    assert criteria["detail"]["criteria"] == "Workers stop work."
    assert strategy["detail"]["strategy"] == "uncertain"


REFERENCE = {"type": "JOUR", "authors": ["Doe, J.", "Roe, R."], "year": "2001", "journal": "Tin", "doi": "10.1/a"}


@pytest.fixture
def review():
    texts = ("Tin in adults, a trial of seven weeks", "Gold in mice and rats of two colonies", "Iron pans: an opinion")
    records = [
        Document(f"r{i}", {"title": f"=Title {i % 3}", "body": text}, fields=REFERENCE | {"notes": ["seen"], "C7": "x"})
        for i, text in enumerate([*texts, texts[0]])
    ]
    session = Session.create(None, Pool.from_documents(records))
    session.add_topic("tin")
    session.answer("tin", 0, "yes", source="list")
    session.answer("tin", 1, "no", source="list", exclusion_reason="no adults")
    return session


def test_labels_as_csv_have_a_row_per_document_with_its_reference(review, tmp_path):
    with open(write_labels(review.view, tmp_path / "labels.csv"), newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    known = {"authors": "Doe, J.; Roe, R.", "year": "2001", "journal": "Tin", "doi": "10.1/a", "disputed": ""}
    assert rows == [
        known
        | {"id": id, "title": f"'=Title {k}", "decision": answer, "exclusion_reason": why, "judged_as": judged}
        | {"answers": answer, "notes": "", "rank": rank, "position": id[1:], "group": judged[1:]}
        for id, k, answer, why, judged, rank in (
            ("r0", 0, "yes", "", "r0", "1"),
            ("r3", 0, "yes", "", "r0", "1"),
            ("r1", 1, "no", "no adults", "r1", "3"),
        )
    ]
    review.add_topic("gold")
    review.answer("gold", 1, "yes", source="list")
    with open(write_included(review.view, tmp_path / "included.csv"), newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    decisions = [(row["id"], row["tin: decision"], row["gold: decision"]) for row in rows]
    assert decisions == [("r0", "yes", ""), ("r1", "no", "yes")]


def test_labels_as_ris_have_all_fields_and_a_note_and_are_read_again(review, tmp_path):
    path = write_labels(review.view, tmp_path / "labels.ris")
    read = textcat.reading.read_documents([str(path)], textcat.InputSettings(fields=("*",)))
    fields = {record.id: (record.zones, record.fields) for record in read}
    assert [*fields] == ["r0", "r3", "r1"]
    assert fields["r1"][0] == {"title": "=Title 1", "body": "Gold in mice and rats of two colonies"}
    assert (
        fields["r1"][1].items()
        >= {**REFERENCE, "C7": "x", "notes": ["seen", "tin: no (no adults)", "tin: rank 3; no"]}.items()
    )
    assert fields["r3"][1]["notes"] == ["seen", "tin: yes", "tin: rank 1; yes", "near-duplicate of r0"]
    included = write_included(review.view, tmp_path / "included.ris").read_text(encoding="utf-8")
    assert included.count("TY  - JOUR") == included.count("ER  - ") == 1


def test_all_records_have_their_rank_and_everybodys_answers_and_notes(review, tmp_path):
    review.answer("tin", 1, "yes", "ada", "list", note="mice\nand =rats")
    review.answer("tin", 1, "no", "bob", "adjudicated", note="animals")
    review.answer("tin", 2, "skip", "ada", "list", note="no abstract")
    with open(write_records(review.view, tmp_path / "records.csv"), newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert [(id, row["decision"], row["judged_as"]) for id, row in rows.items()] == [
        *(("r0", "yes", "r0"), ("r3", "yes", "r0"), ("r1", "no", "r1"), ("r2", "", "r2"))
    ]
    assert sorted(rows[id]["rank"] for id in ("r0", "r1", "r2")) == ["1", "2", "3"]
    assert rows["r1"]["answers"] == "no; ada: yes; bob (adjudicated): no"
    assert rows["r1"]["notes"] == "ada: mice\nand =rats; bob (adjudicated): animals"
    assert (rows["r2"]["answers"], rows["r2"]["notes"]) == ("ada: skip", "ada: no abstract")
    path = write_records(review.view, tmp_path / "records.ris")
    read = {one.id: one for one in textcat.reading.read_documents([str(path)], textcat.InputSettings(fields=("*",)))}
    assert len(read) == len(review.view.pool)
    rank = rows["r2"]["rank"]
    assert read["r2"].fields["notes"] == [
        *("seen", "tin: not judged", f"tin: rank {rank}; ada: skip", "tin: note of ada: no abstract")
    ]
    assert "tin: note of ada: mice and =rats" in read["r1"].fields["notes"]
    with pytest.raises(TextcatError, match="cannot be written as"):
        write_records(review.view, tmp_path / "records.jsonl")


def test_a_review_from_ris_to_ris_keeps_every_line(tmp_path):
    lines = [
        "TY  - JOUR",
        "A1  - Doe, J.",
        "TI  - Tin",
        "UR  - http://a",
        "UR  - http://b",
        "Y1  - 2019/03//",
        "XX  - 1",
    ]
    others = ["TY  - BOOK", "TI  - Gold in mines", "M3  - Book", "AN  - WOS:2", "N1  - first"]
    entries = ["\n".join([*entry, "ER  - "]) for entry in (lines, others)]
    (tmp_path / "found.ris").write_text("\n\n".join(entries) + "\n")
    with Session.create(None, build_pool([str(tmp_path / "found.ris")], tmp_path / "pool")) as session:
        session.add_topic("tin")
        session.answer("tin", 0, "yes", source="list")
        written = write_included(session.view, tmp_path / "included.ris").read_text().splitlines()
        everything = write_records(session.view, tmp_path / "all.ris").read_text()
    assert written[: len(lines)] == lines
    assert written[len(lines) :] == ["N1  - tin: yes", "N1  - tin: rank 1; yes", "ER  - ", ""]
    assert "\n".join(others) + "\nN1  - tin: not judged" in everything


def test_a_name_with_another_ending_is_refused(review, tmp_path):
    for export, name in (
        (write_labels, "labels.xlsx"),
        (write_corpus, "corpus.csv"),
        (write_audit, "audit.ris"),
    ):
        with pytest.raises(TextcatError, match="cannot be written as"):
            export(review.view, tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_no_code_of_a_strangers_session_is_run_by_an_export(tmp_path, monkeypatch):
    (tmp_path / "of_a_session.py").write_text(
        "from dataclasses import dataclass\nfrom textcat import PAUM\n\n\n"
        "@dataclass(eq=False, repr=False)\nclass Own(PAUM):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text('[learner]\nname = "of_a_session:Own"\n')
    (tmp_path / "found.jsonl").write_text("".join(f"{json.dumps(zones)}\n" for zones in documents(20)))
    pool = build_pool(["found.jsonl"], tmp_path / "session" / "pool", recipe="own.toml")
    with Session.create(tmp_path / "session", pool) as session:
        session.add_topic("strike")
        teach(session, "strike", 12)
    monkeypatch.delitem(sys.modules, "of_a_session", raising=False)
    with Session.open(tmp_path / "session", read_only=True) as session:
        sentence = "The session trains models by a learner of another package, 'of_a_session:Own', whose code would run"
        with pytest.raises(TextcatError, match=sentence):
            write_model(session.view, tmp_path / "model")
        assert "of_a_session" not in sys.modules
        write_corpus(session.view, tmp_path / "corpus.jsonl")  # which needs no code
    options = ("--export", "model", "--out", str(tmp_path / "model"), "--learner", "of_a_session:Own")
    monkeypatch.setattr(sys, "argv", ["textcat", "teach", str(tmp_path / "session"), *options])
    with suppress(SystemExit):
        cli.main()
    assert textcat.load(tmp_path / "model").topics == ("strike",)
    assert textcat.load(tmp_path / "model").facts.recipe.learner["name"] == "of_a_session:Own"


def test_the_line_of_a_reference_has_no_two_full_stops(tmp_path):
    (tmp_path / "found.ris").write_text(
        "TY  - JOUR\nTI  - Wheat\nAB  - Corn\nAU  - Doe, J.\nJO  - J. Virol.\nPY  - 2001\nDO  - 10.1/a.\nER  - \n"
    )
    pool = build_pool([str(tmp_path / "found.ris")], tmp_path / "pool")
    assert reference_line(pool, 0) == "Doe, J. J. Virol. 2001. 10.1/a."
