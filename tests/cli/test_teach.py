"""`textcat teach` as a contract: it begins and goes on, asks in the terminal, exports, and tells what is wrong."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from teach_commands import BEGIN, answers
from teaching_work import subject_of, teach

import textcat
from textcat.teaching.session import Session


@pytest.fixture
def run(run_teach):
    return run_teach


def test_an_archive_that_is_named_again_goes_on_with_its_session(run):
    run(*BEGIN, keys="y\n")
    ended = run("news.jsonl", "--topic", "strike", "--topic", "gold", "--terminal", keys="yn\n")
    assert "resuming news-session with the 120 documents it was started with" in ended.err
    assert answers() == ["yes", "yes"]
    assert answers(topic="gold") == ["no"]


def test_exports_are_taken_by_train_and_tag(run, tmp_path):
    run(*BEGIN, "--session", "s", keys="q\n")
    with Session.open("s") as session:
        teach(session, "strike", 80)
    for kind, out in (("labels", "l.jsonl"), ("corpus", "c.jsonl"), ("audit", "a.csv"), ("model", "m")):
        ended = run("s", "--export", kind, "--out", out)
        assert (ended.code, ended.err) == (0, f"textcat: wrote {out}\n")
    assert len(Path("a.csv").read_text().splitlines()) == 82
    labels = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert all(each["labels"]["strike"] == (subject_of(int(each["id"][1:])) == "strike") for each in labels)
    corpus = textcat.open_corpus("c.jsonl")
    assert (len(corpus.train), corpus.topics) == (80, ("strike",))
    tags = textcat.load("m").tag(["workers union strike wages walkout", "gold silver ounce bullion"])
    assert [[tag.topic for tag in each] for each in tags] == [["strike"], []]


def test_a_topic_begins_with_what_a_model_knows(run, newswire_model):
    ended = run("news.jsonl", "-j", 1, "--topic", "t", "--model", f"{newswire_model}:grain", "--terminal", keys="q\n")
    assert ended.code == 0
    with Session.open("news-session", read_only=True) as session:
        assert session.about("t")["model"]["topic"] == "grain"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["news.jsonl", "--export", "labels"], 2, "--export KIND and --out FILE go together"),
        (["news.jsonl", "--export", "tags", "--out", "x"], 2, "--export takes one of labels, included"),
        (["news.jsonl", "--description", "x"], 2, "describe one topic: give one --topic"),
        (["news.jsonl", "--topic", "t", "--model", "nowhere:x"], 2, "--model takes FOLDER:TOPIC"),
        (["news.jsonl", "-j", 1, "--terminal"], 1, "has no topic yet: give one with --topic"),
        (["news.jsonl", "-j", 1, "--topic", "t", "--example", "x9", "--terminal"], 1, "No document has the id 'x9'"),
        (["news.jsonl", "-j", 1, "--topic", "t", "--strategy", "best", "--terminal"], 1, "No strategy 'best'"),
        (["absent.jsonl", "-j", 1, "--topic", "t"], 1, "absent.jsonl"),
        (["absent-session", "--export", "labels", "--out", "x"], 1, "absent-session-session is no session"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(run, arguments, code, sentence):
    ended = run(*arguments)
    assert ended.code == code
    assert sentence in ended.err
    assert "Traceback" not in ended.err
    assert not Path("x").exists()
    assert Path("news-session").exists() == ("--example" in arguments)  # all else is known before the archive is read


def test_the_same_command_goes_on_and_what_begins_a_topic_otherwise_is_refused(run):
    begin = (*BEGIN, "--example", "d7", "--example", "d3", "--example", "d7", "--strategy", "mixture")
    for _ in range(2):
        assert run(*begin, keys="y\n").code == 0
    assert len(answers()) == 4
    with Session.open("news-session", read_only=True) as session:
        assert len(session.view.steps) == 3
    for other in (("--query", "workers"), ("--description", "other"), ("--example", "d9")):
        ended = run(*begin, *other)
        assert (ended.code, len(answers())) == (1, 4)
        assert "'strike' already" in ended.err


def test_a_pool_that_is_gone_is_made_anew_of_the_same_archive_and_no_other(run):
    run(*BEGIN, keys="y\n")
    shutil.rmtree("news-session/pool")
    ended = run("news-session", "--terminal")
    assert (ended.code, "give `textcat teach` the archive again" in ended.err) == (1, True)
    assert run("news.jsonl", "-j", 1, "--terminal", keys="n\n").code == 0
    assert answers() == ["yes", "no"]
    shutil.rmtree("news-session/pool")
    with open("news.jsonl", "a") as file:
        file.write('\n{"id": "new", "text": "new"}')
    ended = run("news.jsonl", "-j", 1, "--terminal")
    assert (ended.code, "are not those that the session news-session was started with" in ended.err) == (1, True)


def test_a_page_needs_an_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ended = run("news.jsonl", "-j", 1, "--topic", "strike")
    assert ended.code == 1
    sentence = "The page needs fastapi: pip install 'textcat-margin[serve]', or answer in the terminal with --terminal"
    assert sentence in ended.err


def test_duplicates_are_listed_and_a_record_is_split_off_and_stays_so(run):
    lines = Path("news.jsonl").read_text().splitlines()
    Path("news.jsonl").write_text("\n".join([*lines[:20], lines[0], lines[0]]) + "\n")
    run(*BEGIN, "--session", "s", keys="q\n")
    run("s", "--export", "duplicates", "--out", "before.csv")
    rows = Path("before.csv").read_text().splitlines()
    group = [row.split(",")[1] for row in rows[1:] if row.startswith("0,")]
    assert group[-2:] == ["20", "21"]
    ended = run("s", "--split", 20, "--split", 21)
    assert (ended.code, ended.out) == (0, "")
    assert "2 split off" in ended.err
    run("s", "--export", "duplicates", "--out", "after.csv")
    assert [
        row.split(",")[1] for row in Path("after.csv").read_text().splitlines()[1:] if row.startswith("0,")
    ] == group[:-2]
    refused = run("s", "--split", 20)
    assert refused.code == 1
    assert "cannot be split off" in refused.err
