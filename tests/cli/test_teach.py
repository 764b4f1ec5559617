"""`textcat teach` as a contract: it begins and goes on, asks in the terminal, exports, and tells what is wrong."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from commands import COMMAND, Run, environment
from teaching_work import documents, subject_of, teach

import textcat
from textcat.teaching.session import Session


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    write_archive("news.jsonl")

    def teach(*arguments, keys=""):
        return Run(capsys, monkeypatch)("teach", *arguments, stdin=keys.encode())

    return teach


def write_archive(path):
    lines = (json.dumps({"id": f"d{i}", **zones}) for i, zones in enumerate(documents()))
    Path(path).write_text("\n".join(lines))


BEGIN = ("news.jsonl", "--topic", "strike", "--description", "workers on strike", "--random", 0, "-j", 1, "--terminal")


def answers(folder="news-session", topic="strike"):
    with Session.open(folder, read_only=True) as session:
        return [each.answer for each in session.judgements(topic)]


def test_it_asks_in_the_terminal_and_goes_on_where_it_ended(run):
    ended = run(*BEGIN, "--person", "anna", keys="y\nn\ns\nn\nu\nq\n")
    assert ended.code == 0
    assert answers() == ["yes", "no", "skip"]
    assert "highest score, rank 1" in ended.out
    assert "Undone." in ended.out
    assert "every answer is saved; `textcat teach news-session` resumes" in ended.err
    asked = re.findall(r"^(d\d+)  highest", ended.out, re.MULTILINE)
    assert len(set(asked)) == 5
    assert asked[-1] == asked[3]
    again = run("news-session", "--terminal", "--person", "anna", keys="y\n")
    assert re.findall(r"^(d\d+)  highest", again.out, re.MULTILINE)[0] == asked[3]
    assert len(answers()) == 4
    with Session.open("news-session", read_only=True) as session:
        assert {each.person for each in session.judgements("strike")} == {"anna"}


def test_an_archive_that_is_named_again_goes_on_with_its_session(run):
    run(*BEGIN, keys="y\n")
    ended = run("news.jsonl", "--topic", "strike", "--topic", "gold", "--terminal", keys="yn\n")
    assert "resuming news-session with the 120 documents it was started with" in ended.err
    assert answers() == ["yes", "yes"]
    assert answers(topic="gold") == ["no"]


def test_what_a_search_finds_is_judged_from_its_list(run):
    ended = run(*BEGIN, keys="/gold bullion\n1n\n2n\n99y\n\ny\n")
    assert answers() == ["no", "no", "yes"]
    assert "Write a number and a letter" in ended.out
    with Session.open("news-session", read_only=True) as session:
        assert [each.source for each in session.judgements("strike")] == ["search", "search", "asked"]


def test_wrong_keys_are_told_and_nothing_is_answered(run):
    ended = run(*BEGIN, keys="x\nyy\n\n")
    assert ended.out.count("Press one of: y yes") == 3
    assert answers() == []


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
        (["news.jsonl", "--export", "tags", "--out", "x"], 2, "--export takes one of labels, corpus, model, audit"),
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
        assert len(session.journal.lines) == 3
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


def test_topics_and_documents_that_hold_commands_of_a_terminal_are_only_shown(run):
    Path("news.jsonl").write_text(json.dumps({"id": "\x1b]0;id\a", "text": "Gold \x1b[2J\r\nfell\x9b31m [/b] today"}))
    ended = run(*BEGIN[:1], "--topic", "[/x] \x1b[31m", *BEGIN[3:], keys="/gold\n\ny\n")
    assert ended.code == 0
    assert not set(ended.out) & {"\x1b", "\x9b", "\a", "\r"}
    assert "\n␛]0;id␇  highest score" in ended.out
    assert "\nGold ␛[2J \nfell\ufffd31m [/b] today\n" in ended.out
    assert " 1 -    ␛]0;id␇  Gold" in ended.out
    assert "\n[/x] ␛[31m: 1 yes, 0 no of 1" in ended.out


def test_a_page_needs_an_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ended = run("news.jsonl", "-j", 1, "--topic", "strike")
    assert ended.code == 1
    sentence = "The page needs fastapi: pip install 'textcat-margin[serve]', or answer in the terminal with --terminal"
    assert sentence in ended.err


@pytest.mark.skipif(sys.platform == "win32", reason="system: there is no such terminal")
def test_single_keys_are_enough_in_a_terminal_and_ctrl_c_says_how_to_go_on(tmp_path):
    write_archive(tmp_path / "news.jsonl")
    terminal, theirs = pty.openpty()
    command = [*COMMAND, "teach", *map(str, BEGIN)]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
        # Whoever runs the tests may ignore Ctrl-C, as a shell does for what it runs in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(theirs)
    try:
        for key in (b"y", b"n", "é".encode(), b"y"):  # one that is no answer is asked for again
            read_until(process.stdout, b"q quit) ")
            os.write(terminal, key)
        read_until(process.stdout, b"q quit) ")
        modes = termios.tcgetattr(terminal)
        modes[3] |= termios.ICANON  # as a shell does after Ctrl-Z
        termios.tcsetattr(terminal, termios.TCSANOW, modes)
        read_until(process.stdout, b"q quit) ")
        os.write(terminal, b"n")
        read_until(process.stdout, b"q quit) ")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(terminal)
    assert process.returncode == 130
    assert told.decode().endswith("interrupted; every answer is saved; `textcat teach news-session` resumes.\n")
    assert answers(tmp_path / "news-session") == ["yes", "no", "yes", "no"]


def read_until(stream, ending, seconds=60):
    """Read what a process prints until some bytes come."""
    began, read = time.monotonic(), b""
    while ending not in read and time.monotonic() - began < seconds:
        more = os.read(stream.fileno(), 1 << 16)
        assert more, f"it has ended; it printed {read!r}"
        read += more
