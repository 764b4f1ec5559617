"""Teaching in a terminal: keys, searches, and texts that are only shown."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import forked_commands
import pytest
from commands import COMMAND, environment
from teach_commands import BEGIN, answers, write_archive

from textcat.teaching.session import Session


@pytest.fixture
def run(run_teach):
    return run_teach


def test_it_asks_in_the_terminal_and_goes_on_where_it_ended(run):
    ended = run(*BEGIN, "--person", "anna", keys="y\nn\ns\nn\nu\nq\n")
    assert ended.code == 0
    assert answers() == ["yes", "no", "skip"]
    assert ended.out.startswith("strike: workers on strike\n")  # what the topic is about
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
        assert {each.person for each in session.view.judgements("strike")} == {"anna"}


def test_what_a_search_finds_is_judged_from_its_list(run):
    ended = run(*BEGIN, keys="/gold bullion\n1n\n2n\n99y\n\ny\n")
    assert answers() == ["no", "no", "yes"]
    assert "Write a number and a letter" in ended.out
    with Session.open("news-session", read_only=True) as session:
        assert [each.source for each in session.view.judgements("strike")] == ["search", "search", "asked"]


def test_wrong_keys_are_told_and_nothing_is_answered(run):
    ended = run(*BEGIN, keys="x\nyy\n\n")
    assert ended.out.count("Press one of: y yes") == 3
    assert answers() == []


TWO = ("news.jsonl", "--topic", "strike", "--topic", "gold", "--random-share", 0, "-j", 1, "--terminal")


def test_with_the_strategy_uncertain_each_document_is_answered_for_all_topics(run):
    ended = run(*TWO, "--strategy", "uncertain", keys="y\nyn\nu\nnn\nsy\nq\n")
    assert "Write a letter for each of strike, gold, such as yn: y yes" in ended.out  # one letter is not enough
    assert ended.out.count("strike, gold? ") == 6
    assert (answers(topic="strike"), answers(topic="gold")) == (["no", "skip"], ["no", "yes"])
    asked = re.findall(r"^(d\d+)  (?:strike|gold): uncertain, rank", ended.out, re.MULTILINE)
    assert (len(asked), asked[2]) == (5, asked[0])
    again = run("news-session", "--topic", "gold", "--topic", "strike", "--terminal", keys="yn\n")
    assert re.findall(r"^(d\d+)  (?:strike|gold): uncertain", again.out, re.MULTILINE)[0] == asked[4]
    assert "gold, strike? " in again.out
    assert (answers(topic="strike"), answers(topic="gold")) == (["no", "skip", "no"], ["no", "yes", "yes"])


def test_with_another_strategy_a_line_may_answer_for_the_first_topics_only(run):
    ended = run(*TWO, keys="y\nyn\nynn\nq\n")
    assert ended.out.count("Press one of: y yes") == 1
    assert (answers(topic="strike"), answers(topic="gold")) == (["yes", "yes"], ["no"])


def test_topics_and_documents_that_hold_commands_of_a_terminal_are_only_shown(run):
    Path("news.jsonl").write_text(json.dumps({"id": "\x1b]0;id\a", "text": "Gold \x1b[2J\r\nfell\x9b31m [/b] today"}))
    ended = run(*BEGIN[:1], "--topic", "[/x] \x1b[31m", *BEGIN[3:], keys="/gold\n\ny\n")
    assert ended.code == 0
    assert not set(ended.out) & {"\x1b", "\x9b", "\a", "\r"}
    assert "\n␛]0;id␇  highest score" in ended.out
    assert "\nGold ␛[2J \nfell\ufffd31m [/b] today\n" in ended.out
    assert " 1 -    ␛]0;id␇  Gold" in ended.out
    assert "\n[/x] ␛[31m: 1 yes, 0 no of 1" in ended.out


@pytest.mark.skipif(sys.platform == "win32", reason="system: there is no such terminal")
def test_single_keys_are_enough_in_a_terminal_and_ctrl_c_says_how_to_go_on(tmp_path):
    write_archive(tmp_path / "news.jsonl")
    terminal, theirs = pty.openpty()
    command = [*COMMAND, "teach", *map(str, BEGIN)]
    process = forked_commands.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
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
