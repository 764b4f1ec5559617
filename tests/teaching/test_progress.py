"""How far a topic is: its history, its curve, its pace."""

import json

from teaching_work import teach

from textcat import Document
from textcat.teaching.advice import Advisor
from textcat.teaching.export import write_included, write_labels
from textcat.teaching.pool import Pool
from textcat.teaching.progress import history, progress_of
from textcat.teaching.search import Search
from textcat.teaching.session import Session


def test_the_history_has_each_group_once_in_the_order_of_the_first_answers(session):
    for position, answer in ((12, "yes"), (3, "skip"), (9, "no"), (12, "no")):
        session.answer("strike", position, answer, source="list")
    teach(session, "strike", 1)
    taught = history(session.view, "strike")
    assert taught.answers.tolist()[:2] == [False, False]
    assert len(taught.answers) == 3
    assert taught.n_documents == progress_of(session.view, "strike").n_documents
    assert not taught.at_random.any()


def test_the_history_tells_which_answers_were_on_documents_drawn_at_random(session):
    session.change_topic("strike", random_share=1)
    teach(session, "strike", 2)
    session.change_topic("strike", random_share=0)
    teach(session, "strike", 1)
    assert history(session.view, "strike").at_random.tolist() == [True, True, False]


def test_found_total_and_band_count_near_duplicates_once():
    texts = [{"body": f"workers on strike at mine {i} over pay and hours since {i} May"} for i in range(12)]
    texts += [{"body": f"wheat exports of port {i} rose to {i} tonnes"} for i in range(12)]
    pool = Pool.from_documents([Document(f"{i}", zones) for i, zones in enumerate([*texts, *texts[:12], *texts[:6]])])
    session = Session.create(None, pool)
    session.add_topic("strike")
    advisor, n = Advisor(session.view), 0
    while question := session.next("strike"):
        session.answer("strike", question.position, "yes" if "strike" in question.zones["body"] else "no")
        so_far, n = progress_of(session.view, "strike"), n + 1
        relevant = advisor.advise("strike").estimate.relevant
        assert so_far.curve[-1] == so_far.yes <= relevant <= so_far.n_documents == 24
        assert so_far.open == 24 - n
    assert (so_far.yes, so_far.no, relevant) == (12, 12, 12)


def test_a_search_and_the_included_records_count_near_duplicates_once(session, pool, tmp_path):
    groups = {int(pool.groups[i]) for i in range(len(pool)) if "strike" in " ".join(pool.document(i).values())}
    assert Search(session.view).find("strike").n_found == len(groups)
    named = Search(session.view).find("d9").documents[0]
    assert named.id == "d9"  # the near-duplicate that was asked for, not its first
    for position in (0, 9, 4):
        session.answer("strike", position, "yes", source="list")
    included = write_included(session.view, tmp_path / "included.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in included] == ["d0", "d4"]
    assert len(write_labels(session.view, tmp_path / "labels.jsonl").read_text().splitlines()) == 3
