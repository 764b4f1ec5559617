"""What a session has acknowledged is kept, whatever ends it."""

import errno
import os
import random
import signal
import time
from dataclasses import asdict

import numpy as np
import pytest
from teaching_work import small_pool, teach, teach_until_killed

from textcat import TextcatError
from textcat.base import disk, journal
from textcat.recipes.recipe import RankerSettings
from textcat.teaching import judgements
from textcat.teaching.advice import Advisor
from textcat.teaching.journal import JOURNAL, SessionHeader, SessionJournal, is_session
from textcat.teaching.judgements import judgements_of
from textcat.teaching.progress import progress_of
from textcat.teaching.session import Session
from textcat.teaching.steps import Undone

KILLS = int(os.environ.get("TEXTCAT_KILLS", "6"))


def scores_of(session):
    return {topic: session.view.scores(topic).tobytes() for topic in session.topics()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
def test_nothing_acknowledged_is_lost_however_often_the_process_is_killed(tmp_path):
    pool, folder = small_pool(), tmp_path / "session"
    with Session.create(folder, pool) as session:
        session.add_topic("strike", "workers on strike")
    generator, known, acknowledged = random.Random(1), [], 1
    for number in range(KILLS):
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            try:
                teach_until_killed(folder, pool, number, writing)
            finally:
                os._exit(1)
        os.close(writing)
        with open(reading, "rb") as told:
            first = told.readline()
            time.sleep(generator.random() * 0.05)
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
            # What was told before the kill is in the pipe.
            acknowledged = int([first, *told.read().splitlines()][-1])
        with Session.open(folder, pool) as session:
            lines = [*session.view.steps]
            assert len(lines) in (acknowledged, acknowledged + 1)  # one may have been written, and not yet told
            assert lines[: len(known)] == known
            before = scores_of(session)
        with Session.open(folder, pool) as session:
            assert scores_of(session) == before
        known = lines
    assert len(known) > KILLS


def test_a_session_that_is_opened_again_ranks_to_the_bit_as_before_and_asks_the_same(tmp_path):
    pool = small_pool()
    with Session.create(tmp_path, pool, seed=5) as session:
        session.add_topic("strike", "workers on strike", strategy="mixture", random_share=0.3)
        session.add_topic("gold", query="gold bullion", examples=["d2"])
        teach(session, "strike", 25, "anna")
        teach(session, "gold", 6, "bert", "gold")
        session.set_keyword("strike", "union", True, "anna")
        session.undo("bert")
        before = scores_of(session), session.next("strike", "anna"), session.next("gold", "bert")
        before += (progress_of(session.view, "strike"), Advisor(session.view).advise("strike"))
    with Session.open(tmp_path, pool) as session:
        again = scores_of(session), session.next("strike", "anna"), session.next("gold", "bert")
        assert (*again, progress_of(session.view, "strike"), Advisor(session.view).advise("strike")) == before


@pytest.mark.parametrize("kept", [1, 10, -1, -2])
def test_a_torn_last_line_is_dropped_and_told(tmp_path, kept, caplog):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        teach(session, "strike", 3)
        n = len(session.view.steps)
    path = tmp_path / JOURNAL
    *whole, last, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*whole, last[:kept]]))
    with Session.open(tmp_path, pool) as session:
        assert len(session.view.steps) == n - 1
        assert "an incomplete line" in caplog.text
        teach(session, "strike", 1)
    with Session.open(tmp_path, pool) as session:
        assert len(session.view.steps) == n


def test_a_damaged_or_missing_line_in_the_middle_is_refused(tmp_path):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        teach(session, "strike", 5)
    path = tmp_path / JOURNAL
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], lines[3].replace(b'"', b"'", 1), *lines[4:]]))
    with pytest.raises(TextcatError, match=r"session\.jsonl is damaged.*\(line 4\)"):
        Session.open(tmp_path, pool)
    path.write_bytes(b"\n".join([*lines[:-2], lines[-2].replace(b'"', b"'", 1), b""]))
    before = path.read_bytes()
    with pytest.raises(TextcatError, match=rf"session\.jsonl is damaged.*\(line {len(lines) - 1}\)"):
        Session.open(tmp_path, pool)
    assert path.read_bytes() == before  # an answer that was given is not cut off
    path.write_bytes(b"\n".join(lines[:3] + lines[4:]))
    with pytest.raises(TextcatError, match="line 4 is not step 3"):
        Session.open(tmp_path, pool)
    path.write_bytes(b"nothing of the kind\n")
    with pytest.raises(TextcatError, match="is damaged"):
        Session.open(tmp_path, pool)


def test_two_may_not_write_one_session_but_others_may_read_it(tmp_path):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        for again in (Session.open, lambda *folder: Session.create(*folder)):
            with pytest.raises(TextcatError, match="Another process has the session"):
                again(tmp_path, pool)
        with Session.open(tmp_path, pool, read_only=True) as reading:
            assert reading.topics() == ["strike"]
            with pytest.raises(TextcatError, match="open for reading only"):
                reading.answer("strike", 0, "yes")
            assert not reading.view.judgements("strike")
    with pytest.raises(TextcatError, match="holds a session already"):
        Session.create(tmp_path, pool)
    Session.open(tmp_path, pool).close()


def test_what_is_no_session_or_another_pools_is_refused(tmp_path):
    assert not is_session(tmp_path)
    with pytest.raises(TextcatError, match="is no session"):
        Session.open(tmp_path)
    Session.create(tmp_path, small_pool()).close()
    with pytest.raises(TextcatError, match="not those that the session"):
        Session.open(tmp_path, small_pool(110))
    with pytest.raises(TextcatError, match="pool in memory"):
        Session.open(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / JOURNAL).write_bytes(journal.journal_line({"textcat archive": 1}))
    with pytest.raises(TextcatError, match="not the journal of a session"):
        Session.open(tmp_path / "other")


HEADER = SessionHeader("", 1, "0", 0, 1.0, RankerSettings())


@pytest.mark.parametrize(
    "change", [{"seed": "0"}, {"ranker": {"k": 1}}, {"ranker": {"C": 0}}, {"ranker": []}, {"k": 1}]
)
def test_a_session_with_another_header_is_refused(tmp_path, change):
    (tmp_path / JOURNAL).write_bytes(journal.journal_line({"textcat session": 3, **asdict(HEADER), **change}))
    with pytest.raises(TextcatError, match=r"session\.jsonl begins with a line that no session has .*: start a new"):
        SessionJournal.open(tmp_path)


@pytest.mark.parametrize(
    "line", [{"undo": "1", "person": ""}, {"person": ""}, {"person": "", "answers": [{"topic": "a"}]}, {"k": 1}]
)
def test_a_line_of_no_kind_of_step_is_refused(tmp_path, line):
    lines = {"textcat session": 3, **asdict(HEADER)}, {"step": 1, "at": 0.0, **line}
    (tmp_path / JOURNAL).write_bytes(b"".join(map(journal.journal_line, lines)))
    with pytest.raises(TextcatError, match=r"session\.jsonl has a line that no session has .*: start a new session"):
        SessionJournal.open(tmp_path)


@pytest.mark.parametrize("version", [0, 1, 2, 99])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_session_of_another_format_is_refused_and_stays(tmp_path, version, read_only):
    (tmp_path / JOURNAL).write_bytes(journal.journal_line({"textcat session": version, "seed": 0}))
    before = (tmp_path / JOURNAL).read_bytes()
    for _ in range(2):  # the lock is released
        with pytest.raises(TextcatError, match=rf"another version .* format {version} instead of 3: start a new"):
            SessionJournal.open(tmp_path, read_only=read_only)
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_an_answer_that_a_full_disk_refuses_is_not_kept_and_the_next_one_is(tmp_path, monkeypatch):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        teach(session, "strike", 2)
        n = len(session.view.steps)

        def full(file, data):
            file.write(data[:7])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(disk, "write_all", full)
            with pytest.raises(TextcatError, match="No space left"):
                session.answer("strike", 50, "yes", source="list")
        assert 50 not in session.view.labels("strike")
        session.answer("strike", 60, "yes", source="list")
    with Session.open(tmp_path, pool) as session:
        assert len(session.view.steps) == n + 1
        assert session.view.labels("strike")[60]
        assert 50 not in session.view.labels("strike")


@pytest.mark.parametrize("where", ["write_all", "sync"])
def test_an_answer_that_ctrl_c_breaks_off_is_there_whole_or_not_at_all(tmp_path, monkeypatch, where):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        teach(session, "strike", 2)

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(disk, where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.answer("strike", 50, "yes", source="list")
        with monkeypatch.context() as patch:
            first = iter([interrupted])
            patch.setattr(judgements, "judgements_of", lambda line: next(first, judgements_of)(line))
            with pytest.raises(KeyboardInterrupt):
                session.answer("strike", 60, "yes", source="list")
        teach(session, "strike", 2)
        before = session.view.labels("strike"), scores_of(session)
        assert 50 not in before[0]
    with Session.open(tmp_path, pool) as session:
        assert (session.view.labels("strike"), scores_of(session)) == before


def test_a_journal_in_memory_needs_no_folder():
    memory = SessionJournal.create(None, HEADER)
    assert memory.append(Undone(undo=1, person="anna")) == Undone(step=1, undo=1, person="anna")
    memory.close()


def test_many_answers_are_replayed_in_little_time(tmp_path):
    pool = small_pool()
    with Session.create(tmp_path, pool) as session:
        session.add_topic("strike")
        generator = np.random.default_rng(0)
        for i in range(500):
            session.answer("strike", int(generator.integers(len(pool))), "yes" if i % 3 else "no", source="list")
    began = time.process_time()
    with Session.open(tmp_path, pool) as session:
        session.next("strike")
    assert time.process_time() - began < 1
