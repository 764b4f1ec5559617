"""Corrections are kept in the order in which people make them, whatever happens to the processes that add them."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import permutations

import pytest

from textcat.base.errors import TextcatError
from textcat.corpus.corrections import (
    FILE,
    PLACE,
    Correction,
    Corrections,
    all_topics,
    majority_answers,
    with_text_in_id,
)
from textcat.reading.document import Document

WHEAT = Document("1", {"title": "Wheat", "body": "It rose."}, ("grain", "trade"), "2020-01-02", language="en")
_ADDS_FOR_EVER = """
import sys
from textcat.corpus.corrections import Correction, Corrections
from textcat.reading.document import Document
corrections = Corrections(sys.argv[1])
for n in range(100_000):
    corrections.add(Correction(Document(f"{n}", {"text": "wheat"}), {"grain": True}, sys.argv[2]))
    print(n, flush=True)
"""


def test_a_correction_comes_back_as_it_was_added(tmp_path):
    given = Correction(WHEAT, {"trade": False, "wheat": True}, "Ann", "page", "0123456789ab", ("trade",), "no trade")
    (made,) = Corrections(tmp_path).add(given)
    assert made.number == 1
    assert made.at.endswith("+00:00")
    assert [*Corrections(tmp_path, must_exist=True)] == [made]
    assert made.before == ("grain", "trade")
    assert made.after == ("grain", "wheat")


def test_texts_that_no_encoding_can_hold_are_kept(tmp_path):
    odd = Document("\udc80", {"text": "a\ud800b"}, fields={"year": 1999})
    (made,) = Corrections(tmp_path).add(Correction(odd, {"grain": True}, "\udcff"))
    (kept,) = Corrections(tmp_path)
    assert kept.document.zones == {"text": "a\ud800b"}
    assert (kept.document.id, kept.person, kept.document.fields) == (r"\udc80", r"\udcff", {"year": 1999})
    assert kept.number == made.number


def test_a_person_takes_back_the_own_last_correction(tmp_path):
    corrections = Corrections(tmp_path)
    corrections.add(Correction(WHEAT, {"grain": True}, "Ann"), Correction(WHEAT, {"grain": False}, "Bob"))
    assert corrections.take_back("Ann", "review").answers == {"grain": True}
    assert corrections.take_back("Ann", "review") is None
    assert corrections.take_back("Bob", "page") is None
    assert [correction.person for correction in corrections] == ["Bob"]
    assert corrections.add(Correction(WHEAT, {}, "Ann"))[0].number == 3  # numbers are never given twice


def test_the_last_answer_counts_when_documents_are_learnt(tmp_path):
    corrections = Corrections(tmp_path)
    corrections.add(
        Correction(WHEAT, {"grain": True, "trade": True}, "Ann"),
        Correction(Document("2", {"text": "gold"}), {"gold": True}),
        Correction(WHEAT, {"trade": False}, "Bob"),
        Correction(Document("3", {"text": "silver"}), {}, note="What is this?"),
    )
    first, second = corrections.documents()
    assert (first.id, first.topics, first.labelled_for) == ("1", ("grain",), ("grain", "trade"))
    assert (second.id, second.topics, second.labelled_for) == ("2", ("gold",), ("gold",))


def test_most_people_decide_in_whatever_order_they_answer(tmp_path):
    said = {"Ann": True, "Bob": False, "Carl": True}
    for number, order in enumerate(permutations(said)):
        corrections = Corrections(tmp_path / f"{number}")
        corrections.add(Correction(WHEAT, {"grain": not said[order[0]]}, order[0]))  # a person's last answer counts
        corrections.add(*(Correction(WHEAT, {"grain": said[person]}, person) for person in order))
        assert corrections.documents()[0].topics == ("grain",)
        assert corrections.topics_of("1") == {"grain"}
        assert corrections.agreement() == (1, 1)
        corrections.add(Correction(WHEAT, {"grain": False}, "Dan"))
        assert corrections.documents()[0].topics == ()  # the last one of as many on each side
    corrections.add(Correction(WHEAT, {"grain": True}, "Dan"), Correction(WHEAT, {"gold": True}, "Ann"))
    assert corrections.topics_of("1") == {"grain", "gold"}
    assert corrections.agreement() == (1, 1)


def test_who_judges_all_topics_says_no_to_those_that_others_name():
    complete = [Correction(WHEAT, {"grain": True}, person, is_complete=True) for person in ("Ann", "Bob")]
    one = Correction(WHEAT, {"grain": True, "gold": True}, "Carl", is_complete=True)
    for made in permutations([*complete, one]):
        assert all_topics(made) == {"grain"}
        assert majority_answers(made) == {"grain": True, "gold": False}
    assert all_topics([replace(one, is_complete=False)]) is None


def test_all_corrections_of_a_call_are_added_or_none(tmp_path):
    corrections = Corrections(tmp_path)
    with pytest.raises(TypeError):
        corrections.add(Correction(WHEAT, {"grain": True}), Correction(WHEAT, {"grain": object()}))
    assert [*corrections] == []


def test_several_threads_and_processes_add_at_the_same_time(tmp_path):
    def work(person):
        for n in range(20):
            Corrections(tmp_path).add(Correction(WHEAT, {"grain": bool(n % 2)}, person))

    threads = [threading.Thread(target=work, args=[f"p{n}"]) for n in range(4)]
    for thread in threads:
        thread.start()
    process = subprocess.run(
        [sys.executable, "-c", _ADDS_FOR_EVER.replace("100_000", "20"), tmp_path, "other"],
        check=True,
        capture_output=True,
    )
    for thread in threads:
        thread.join()
    made = [*Corrections(tmp_path)]
    assert [correction.number for correction in made] == [*range(1, 101)]
    assert len([correction for correction in made if correction.person == "other"]) == 20 == process.stdout.count(b"\n")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="system: nothing can be killed at once")
def test_nothing_is_lost_when_two_processes_that_add_are_killed(tmp_path):
    for round_ in range(3):
        adding = [
            subprocess.Popen(
                [sys.executable, "-c", _ADDS_FOR_EVER, tmp_path, f"{person}{round_}"], stdout=subprocess.PIPE
            )
            for person in "ab"
        ]
        for process in adding:
            for _ in range(5):
                process.stdout.readline()
        for process in adding:
            os.kill(process.pid, signal.SIGKILL)
        for person, process in zip("ab", adding, strict=True):
            said = 5 + process.communicate()[0].count(b"\n")
            kept = [correction for correction in Corrections(tmp_path) if correction.person == f"{person}{round_}"]
            assert said <= len(kept) <= said + 1  # one may be on disk before its process could say so
            assert [correction.document.id for correction in kept] == [f"{n}" for n in range(len(kept))]


def test_what_cannot_be_read_or_written_is_told_in_a_sentence(tmp_path):
    with pytest.raises(TextcatError, match="has no corrections: name a folder"):
        Corrections(tmp_path / "none", must_exist=True)
    assert not (tmp_path / "none").exists()
    Corrections(tmp_path / "old")
    with sqlite3.connect(tmp_path / "old" / FILE) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(TextcatError, match="format 99 instead of 2"):
        Corrections(tmp_path / "old")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(TextcatError, match="is damaged"):
        Corrections(tmp_path / "bad")
    (tmp_path / "file").write_text("")
    with pytest.raises(TextcatError, match="Cannot write to the corrections"):
        Corrections(tmp_path / "file")


def test_a_folder_that_is_moved_away_is_begun_anew(tmp_path):
    folder = tmp_path / "corrections"
    corrections = Corrections(folder)
    for name in ("first", "second"):
        corrections.add(Correction(WHEAT, {"wheat": True}, name))
        folder.rename(tmp_path / name)
        assert [correction.person for correction in Corrections(tmp_path / name)] == [name]
    folder.mkdir()
    (folder / FILE).touch()
    with pytest.raises(TextcatError, match="has no corrections"):
        Corrections(folder, must_exist=True)
    assert len(corrections.add(Correction(WHEAT, {"wheat": True}))) == 1


def test_documents_that_were_judged_completely_have_all_their_topics(tmp_path):
    def at(position, answers, is_complete):
        place = dict(zip(PLACE, ("a.jsonl", position, "f"), strict=True))
        return Correction(Document(f"{position}", {"text": "x"}, fields=place), answers, is_complete=is_complete)

    corrections = Corrections(tmp_path)
    corrections.add(
        at(1, {"grain": True, "trade": False}, True),
        at(2, {"grain": True}, False),
        at(3, {}, True),
        at(4, {"grain": True}, True),
        at(4, {"wheat": True, "grain": False}, False),
        Correction(WHEAT, {"grain": True}, is_complete=True),  # it is of no archive
    )
    topics_of = {place: all_topics(made) for place, made in corrections.by_place().items()}
    expected = {1: {"grain"}, 2: None, 3: set(), 4: {"wheat"}}
    assert topics_of == {("a.jsonl", n, f"{n}", "f"): topics for n, topics in expected.items()}


def test_documents_of_archives_with_one_id_and_other_texts_are_different_ones(tmp_path):
    def of(source, text, answers, number=1):
        fields = dict(zip(PLACE, (source, number, ""), strict=True))
        return Correction(Document("7", {"body": text}, fields=fields), answers)

    corrections = Corrections(tmp_path)
    corrections.add(of("a.jsonl", "Wheat rose", {"wheat": True}))
    corrections.add(of("b.jsonl", "Gold fell", {"gold": True}))
    corrections.add(of("a.jsonl", "Wheat rose", {"grain": True}, number=2))  # it has moved
    first, second = corrections.documents()
    assert (first.id, first.zones, first.topics) == ("7", {"body": "Wheat rose"}, ("wheat", "grain"))
    assert (second.id, second.topics) == (with_text_in_id(replace(second, id="7")).id, ("gold",))
    for _ in range(3):
        corrections.take_back("", "review")
        names = [document.id for document in corrections.documents()]
        assert names == [each for each in (first.id, second.id) if each in names]  # none takes the other's id
    assert names == []
