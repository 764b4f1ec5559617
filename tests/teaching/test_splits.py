"""Persons split records off their groups of near-duplicates; the journal keeps it, and an undo takes it back."""

import csv
import json
import random
from contextlib import suppress

import pytest

from textcat import Document, TextcatError
from textcat.teaching.export import write_audit, write_duplicates
from textcat.teaching.pool import Pool
from textcat.teaching.progress import progress_of
from textcat.teaching.search import Search
from textcat.teaching.session import Session

TEXTS = [{"body": f"workers on strike at mine {i} over pay and hours since {i} May"} for i in range(6)]
TEXTS += [{"body": f"wheat exports of port {i} rose to {i} tonnes"} for i in range(6)]


@pytest.fixture(scope="module")
def pool():
    records = [*TEXTS, *TEXTS[:3], TEXTS[0], TEXTS[0]]  # the groups 0, 12, 15, 16; 1, 13; 2, 14
    return Pool.from_documents([Document(f"d{i}", zones) for i, zones in enumerate(records)])


@pytest.fixture
def session(pool, tmp_path):
    with Session.create(tmp_path / "session", pool) as session:
        session.add_topic("strike", random_share=0)
        yield session


def groups_of(session):
    return [positions for _, positions in session.view.groups.all_members() if len(positions) > 1]


def opened_again(session, pool):
    return Session.open(session.folder, pool, read_only=True)


def state_of(session):
    return groups_of(session), session.view.labels("strike"), session.view.scores("strike").tolist(), session.topics()


def test_a_record_that_is_split_off_is_asked_about_and_counted_for_itself(session):
    session.answer("strike", 0, "yes", source="list")
    assert session.view.labels("strike") == {0: True, 12: True, 15: True, 16: True}
    before = progress_of(session.view, "strike")
    session.split([15])
    after = progress_of(session.view, "strike")
    assert (before.n_documents, after.n_documents, after.yes) == (12, 13, 1)
    assert session.view.labels("strike") == {0: True, 12: True, 16: True}
    assert groups_of(session) == [[0, 12, 16], [1, 13], [2, 14]]
    session.answer("strike", 15, "no", source="list")
    assert session.view.labels("strike") == {0: True, 12: True, 15: False, 16: True}


def test_answers_stay_with_the_record_that_was_judged_also_if_the_first_one_is_split_off(session):
    session.answer("strike", 12, "yes", source="search")
    session.split([0])
    assert session.view.labels("strike") == {12: True, 15: True, 16: True}
    assert session.view.groups.of(16) == 12


def test_several_records_are_split_off_together(session):
    session.split([16, 12])
    assert groups_of(session) == [[0, 15], [1, 13], [2, 14], [12, 16]]


def test_a_session_that_is_opened_again_has_its_splits_and_ranks_alike(session, pool):
    session.answer("strike", 0, "yes", source="list")
    session.answer("strike", 7, "no", source="list")
    session.split([15], "ada")
    session.split([13], "bob")
    session.answer("strike", 15, "no", source="list")
    again = opened_again(session, pool)
    assert state_of(again) == state_of(session)
    asked, same = session.next("strike"), again.next("strike")
    assert (asked.position, asked.score, asked.rank, asked.model) == (same.position, same.score, same.rank, same.model)


def test_an_undo_takes_a_split_back_and_leaves_those_of_others(session, pool):
    session.answer("strike", 0, "yes", "ada", "list")
    before = state_of(session)
    session.split([15], "ada")
    assert session.undo("ada") == []
    assert state_of(session) == before
    session.split([15, 16], "ada")
    session.split([16], "bob")
    session.undo("ada")
    assert groups_of(session) == [[0, 12, 15], [1, 13], [2, 14]]
    assert state_of(opened_again(session, pool)) == state_of(session)
    session.undo("bob")
    assert state_of(session) == before
    assert session.undo("ada")[0].answer == "yes"


def test_a_topic_that_is_added_after_a_split_has_its_groups(session, pool):
    session.split([15])
    session.add_topic("wheat", examples=["d7"])
    session.answer("wheat", 15, "no", source="list")
    assert session.view.labels("wheat") == {7: True, 15: False}
    assert opened_again(session, pool).view.labels("wheat") == session.view.labels("wheat")


@pytest.mark.parametrize("positions", [[], [3], [0, 12, 15, 16], [0, 1], [15, 3]])
def test_what_cannot_be_split_off_is_told_and_changes_nothing(session, positions):
    with pytest.raises(TextcatError, match="cannot be split off: give some, but not all, of one group"):
        session.split(positions)
    with pytest.raises(TextcatError, match="No document 99"):
        session.split([99])
    assert len(session.view.steps) == 1


def test_a_search_finds_what_was_split_off(session):
    assert Search(session.view).find("strike").n_found == 6
    session.split([15])
    assert Search(session.view).find("strike").n_found == 7
    session.undo()
    assert Search(session.view).find("strike").n_found == 6


def test_the_groups_and_the_splits_are_exported(session, tmp_path):
    session.split([15], "ada")
    with open(write_duplicates(session.view, tmp_path / "groups.csv"), newline="") as file:
        rows = [(row["group"], row["position"], row["id"]) for row in csv.DictReader(file)]
    assert rows == [
        *(("0", "0", "d0"), ("0", "12", "d12"), ("0", "16", "d16"), ("1", "1", "d1"), ("1", "13", "d13")),
        *(("2", "2", "d2"), ("2", "14", "d14")),
    ]
    lines = write_duplicates(session.view, tmp_path / "groups.jsonl").read_text().splitlines()
    assert [json.loads(line)["position"] for line in lines] == [0, 12, 16, 1, 13, 2, 14]
    session.undo("ada")
    audit = [json.loads(line) for line in write_audit(session.view, tmp_path / "audit.jsonl").read_text().splitlines()]
    assert audit[1] | {"time": ""} == {
        "step": 2,
        "time": "",
        "person": "ada",
        "what": "split",
        "undone": 3,
        "detail": {"positions": [15], "ids": ["d15"]},
    }


@pytest.mark.parametrize("seed", range(4))
def test_after_any_steps_of_two_persons_a_session_opened_again_is_the_same(session, pool, seed):
    generator = random.Random(seed)
    for _ in range(40):
        person, step = generator.choice("ab"), generator.random()
        with suppress(TextcatError):  # a split that cannot be, or an adjudication by "skip"
            if step < 0.4:
                answer, source = generator.choice(["yes", "no", "skip"]), generator.choice(["list", "adjudicated"])
                session.answer("strike", generator.randrange(len(pool)), answer, person, source)
            elif step < 0.7:
                session.split(generator.sample(range(len(pool)), generator.choice([1, 1, 2])), person)
            else:
                session.undo(person)
    again = opened_again(session, pool)
    assert state_of(again) == state_of(session)
    assert again.view.judgements("strike") == session.view.judgements("strike")
    assert again.next("strike", "c") == session.next("strike", "c")
    so_far = progress_of(session.view, "strike")
    assert so_far.yes + so_far.no + so_far.open == so_far.n_documents == len(session.view.groups)
