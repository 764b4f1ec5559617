"""Topics are taught as one expects: questions, answers, persons, near-duplicates, keywords."""

import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from teaching_work import SUBJECTS, documents, subject_of, teach

from textcat import TextcatError
from textcat.teaching.advice import Advisor
from textcat.teaching.evidence import evidence_for
from textcat.teaching.progress import progress_of
from textcat.teaching.search import Search
from textcat.teaching.session import Session

# --- how a topic begins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "evidence",
    [
        {"description": SUBJECTS["wheat"]},
        {"query": "wheat harvest"},
        {"examples": ["d1"]},
        {"examples": ["d1", "d5"], "description": "grain", "query": "corn"},
    ],
    ids=lambda evidence: " ".join(evidence),
)
def test_a_topic_begins_with_a_description_a_query_or_examples(pool, evidence):
    session = Session.create(None, pool)
    session.add_topic("t17", random_share=0, **evidence)
    assert subject_of(session.next("t17").position) == "wheat"
    judged = {each.id: (each.answer, each.source) for each in session.view.judgements("t17")}
    assert judged == dict.fromkeys(evidence.get("examples", ()), ("yes", "example"))


def test_the_name_of_a_topic_is_evidence_too(pool):
    session = Session.create(None, pool)
    session.add_topic("news.gold-bullion", random_share=0)
    assert subject_of(session.next("news.gold-bullion").position) == "gold"


def test_what_cannot_begin_a_topic_is_told(session):
    for same in ("strike", " strike\n"):
        with pytest.raises(TextcatError, match="'strike' already"):
            session.add_topic(same)
    with pytest.raises(TextcatError, match="No document has the id 'x9'"):
        session.add_topic("other", examples=["x9"])
    with pytest.raises(TextcatError, match="No strategy 'best': choose one of"):
        session.add_topic("other", strategy="best")
    with pytest.raises(TextcatError, match="share of questions at random cannot be 2"):
        session.add_topic("other", random_share=2)
    with pytest.raises(TextcatError, match="needs a name"):
        session.add_topic(" ")
    with pytest.raises(TextcatError, match="has 301 characters, and 300 are the most"):
        session.add_topic("x" * 301)
    session.add_topic("x" * 300)
    for name, person, description in (("\udcff", "", ""), ("other", "\udcff", ""), ("other", "", "é\udcff")):
        with pytest.raises(TextcatError, match="is not valid Unicode"):
            session.add_topic(name, description, person=person)
    with pytest.raises(TextcatError, match=r"no topic 'strikes'.*Did you mean 'strike'"):
        session.next("strikes")


# --- questions and answers -------------------------------------------------------------------------------------------


def test_each_answer_changes_the_ranking_and_the_topic_is_soon_found(session, pool):
    seen = set()
    for _ in range(20):
        question = session.next("strike")
        assert question.position not in seen
        assert question.score == session.view.scores("strike")[question.position]
        assert question.model == progress_of(session.view, "strike").model
        seen.add(question.position)
        before = session.view.scores("strike").copy()
        session.answer("strike", question.position, "yes" if subject_of(question.position) == "strike" else "no")
        assert (session.view.scores("strike") != before).any()
    assert progress_of(session.view, "strike").yes >= 17


def test_a_skipped_document_is_not_asked_again_and_is_no_example(session):
    question = session.next("strike")
    before = session.view.scores("strike")
    session.answer("strike", question.position, "skip")
    assert session.next("strike").position != question.position
    assert session.view.scores("strike").tobytes() == before.tobytes()
    assert question.position not in session.view.labels("strike")
    assert progress_of(session.view, "strike").skipped == 1


def test_all_are_asked_once_and_then_none(pool):
    session = Session.create(None, pool)
    session.add_topic("gold", strategy="mixture", random_share=0.2)
    asked = []
    while question := session.next("gold"):
        asked.append(question.position)
        session.answer("gold", question.position, "yes" if subject_of(question.position) == "gold" else "no")
    assert sorted(asked) == sorted({int(group) for group in pool.groups})
    assert sorted(session.view.labels("gold")) == list(range(len(pool)))
    so_far = progress_of(session.view, "gold")
    assert so_far.yes + so_far.no == so_far.n_documents == len(set(pool.groups))
    assert so_far.at_random > 0


@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undoing_leads_back_through_the_same_questions_and_scores(pool, data):
    session = Session.create(None, pool)
    session.add_topic("strike", "strike", random_share=0.3)
    states = []
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["asked", "change", "keyword"]))
        states.append((session.next("strike", "anna"), session.view.scores("strike").tobytes()))
        if kind == "asked":
            answer = data.draw(st.sampled_from(["yes", "no", "skip"]))
            session.answer("strike", states[-1][0].position, answer, "anna")
        elif kind == "change":
            session.answer(
                "strike", data.draw(st.integers(0, 20)), data.draw(st.sampled_from(["yes", "no"])), "anna", "list"
            )
        else:
            session.set_keyword(
                "strike", data.draw(st.sampled_from(["union", "gold"])), data.draw(st.booleans()), "anna"
            )
    for question, scores in reversed(states):
        assert session.undo("anna") is not None
        again = session.next("strike", "anna")
        assert again._replace(model=0) == question._replace(model=0)
        assert session.view.scores("strike").tobytes() == scores
    assert session.undo("anna") is None


def test_the_scores_do_not_depend_on_the_order_of_answers(pool):
    answers = [(3, "yes"), (0, "yes"), (5, "no"), (8, "yes"), (2, "no")]
    scores = []
    for order in (answers, answers[::-1]):
        session = Session.create(None, pool)
        session.add_topic("strike")
        for position, answer in order:
            session.answer("strike", position, answer, source="list")
        scores.append(session.view.scores("strike").tobytes())
    assert scores[0] == scores[1]


def test_what_is_no_answer_is_told(session):
    with pytest.raises(TextcatError, match="No answer 'maybe'"):
        session.answer("strike", 0, "maybe")
    with pytest.raises(TextcatError, match="No document 120"):
        session.answer("strike", 120, "yes")
    with pytest.raises(TextcatError, match="No source 'guess'"):
        session.answer("strike", 0, "yes", source="guess")
    with pytest.raises(TextcatError, match="is not valid Unicode"):
        session.answer("strike", 0, "yes", note="\udcff")
    assert not session.view.judgements("strike")


def test_a_mark_is_an_example_of_its_words_alone(session):
    before = session.view.scores("strike").copy()
    session.set_keyword("strike", "  bullion ", True)
    assert session.keywords("strike") == {"bullion": True}
    with_word = [i for i, each in enumerate(documents()) if "bullion" in f"{each['title']} {each['body']}".split()]
    assert (session.view.scores("strike") - before)[with_word].mean() > 0.01
    session.set_keyword("strike", "bullion", False)
    assert session.keywords("strike") == {"bullion": False}
    session.set_keyword("strike", "bullion", None)
    assert session.view.scores("strike").tobytes() == before.tobytes()
    with pytest.raises(TextcatError, match="No term of the documents is in 'xyzzy'"):
        session.set_keyword("strike", "xyzzy", True)


def test_the_same_seed_asks_the_same_and_another_one_does_not(pool):
    asked = []
    for seed in (0, 0, 1):
        session = Session.create(None, pool, seed=seed)
        session.add_topic("strike", random_share=0.5)
        positions = []
        for _ in range(12):
            question = session.next("strike")
            positions.append((question.position, question.why))
            session.answer("strike", question.position, "no")
        asked.append(positions)
    assert asked[0] == asked[1] != asked[2]
    assert {why for _, why in asked[0]} == {"at random", "highest score"}


def test_the_strategy_can_be_changed(session):
    session.change_topic("strike", random_share=1)
    assert session.next("strike").why == "at random"
    session.change_topic("strike", strategy="uncertain", random_share=0)
    assert session.next("strike").why == "uncertain"
    assert session.about("strike")["strategy"] == "uncertain"


# --- near-duplicates, topics, persons --------------------------------------------------------------------------------


def test_near_duplicates_are_asked_once_and_take_the_answer(session, pool):
    assert pool.groups[9] == 0
    session.answer("strike", 9, "yes", source="search")
    assert session.view.labels("strike") == {0: True, 9: True}
    assert progress_of(session.view, "strike").yes == 1
    while question := session.next("strike"):
        assert question.position not in (0, 9)
        assert question.duplicates == tuple(f"d{i}" for i in np.flatnonzero(pool.groups == question.position)[1:])
        session.answer("strike", question.position, "no")


def test_a_document_is_answered_for_several_topics_at_once(session):
    session.add_topic("gold", "gold bullion", random_share=0)
    question = session.next("strike")
    session.answer("strike", question.position, "yes", others={"gold": "no"})
    assert session.view.labels("gold")[question.position] is False
    assert session.next("strike").answers == {"gold": ""}
    of_gold = session.view.judgements("gold")[0]
    assert (of_gold.why, session.view.judgements("strike")[0].why) == ("", "highest score")
    assert len(session.undo()) == 2
    assert not session.view.labels("gold")
    with pytest.raises(TextcatError, match="no topic 'silver'"):
        session.answer("strike", question.position, "yes", others={"silver": "no"})
    assert not session.view.labels("strike")


# --- several topics at once ------------------------------------------------------------------------------------------


def begin_two(pool, folder=None, strategy="uncertain", random_share=0, **options):
    session = Session.create(folder, pool, **options)
    for topic, query in (("strike", "strike wages"), ("gold", "gold bullion")):
        session.add_topic(topic, query=query, strategy=strategy, random_share=random_share)
    return session


def answer_for_all(session, question, person=""):
    answers = {topic: "yes" if subject_of(question.position) == topic else "no" for topic in question.topics}
    session.answer(question.topic, question.position, answers.pop(question.topic), person, others=answers)


def test_what_is_asked_is_the_most_uncertain_over_all_topics(pool):
    session, differs = begin_two(pool), 0
    judged = set()
    for _ in range(25):
        question = session.next_of(["strike", "gold"])
        scores = np.abs([session.view.scores(topic).astype(float) for topic in ("strike", "gold")])
        is_open = [i for i in np.unique(pool.groups) if i not in judged]
        uncertainty = (1 / (1 + scores)).sum(axis=0)
        assert question.position == max(is_open, key=lambda i: (uncertainty[i], -i))
        assert question.topic == ("strike", "gold")[np.argmin(scores[:, question.position])]
        assert question.topics == ("strike", "gold")
        assert question.why == "uncertain"
        assert abs(question.score) == scores[:, question.position].min()
        signed = session.view.scores(question.topic)
        assert question.rank == 1 + sum(signed[i] > signed[question.position] for i in is_open)
        differs += any(question.position != session.next(topic).position for topic in ("strike", "gold"))
        session.next_of(["strike", "gold"])
        answer_for_all(session, question)
        judged.add(question.position)
        last = session.view.judgements(question.topic)[-1]
        assert (last.why, last.rank, last.score) == (question.why, question.rank, pytest.approx(question.score))
    assert differs > 10


def test_all_are_asked_about_for_all_topics_and_then_none(pool):
    session, asked = begin_two(pool, random_share=0.1), Counter()
    while question := session.next_of(["strike", "gold"]):
        asked[question.position] += 1
        answer_for_all(session, question)
    assert asked == Counter(set(pool.groups.tolist()))
    for topic in ("strike", "gold"):
        assert sorted(session.view.labels(topic)) == list(range(len(pool)))
        assert 0 < progress_of(session.view, topic).at_random < 30


def test_documents_are_asked_about_for_the_topics_that_lack_the_persons_answer(pool):
    session = begin_two(pool)
    teach(session, "strike", 1000)  # no document is left for this topic
    question = session.next_of(["strike", "gold"])
    assert (question.topic, question.topics) == ("gold", ("gold",))
    assert question.position == session.next("gold").position
    other = Session.create(None, pool)
    other.add_topic("strike", strategy="uncertain")
    assert other.next_of(["strike"]) == other.next("strike")
    assert other.next_of([]) is None
    with pytest.raises(TextcatError, match="no topic 'gold'"):
        other.next_of(["strike", "gold"])


def test_an_answer_for_one_of_the_topics_leaves_the_others_open(pool):
    session = begin_two(pool)
    question = session.next_of(["strike", "gold"])
    (other,) = {"strike", "gold"} - {question.topic}
    session.answer(question.topic, question.position, "no")
    while (asked := session.next_of(["strike", "gold"])).position != question.position:
        answer_for_all(session, asked)
    assert (asked.topic, asked.topics) == (other, (other,))


def test_an_undo_and_a_session_that_is_opened_again_ask_the_same_over_topics(pool, tmp_path):
    questions = []
    with begin_two(pool, tmp_path, random_share=0.3, seed=2) as session:
        for _ in range(12):
            questions.append(session.next_of(["strike", "gold"], "anna"))
            answer_for_all(session, questions[-1], "anna")
        last = session.next_of(["strike", "gold"], "anna")
    assert {question.why for question in questions} == {"uncertain", "at random"}
    with Session.open(tmp_path, pool) as session:
        assert session.next_of(["strike", "gold"], "anna") == last
        for question in reversed(questions):
            assert len(session.undo("anna")) == 2
            again = session.next_of(["strike", "gold"], "anna")
            assert again._replace(model=0) == question._replace(model=0)


def test_two_who_share_the_work_are_not_asked_over_topics_for_one_document_at_the_same_time(pool):
    session = begin_two(pool, overlap=0)
    of_anna = session.next_of(["strike", "gold"], "anna")
    of_bert = session.next_of(["gold", "strike"], "bert")
    assert of_bert.position != of_anna.position
    assert session.next_of(["strike", "gold"], "anna").position == of_anna.position
    answer_for_all(session, of_anna, "anna")
    asked = Counter([of_anna.position])
    while question := session.next_of(["strike", "gold"], "bert"):
        asked[question.position] += 1
        answer_for_all(session, question, "bert")
    assert asked == Counter(set(pool.groups.tolist()))
    assert session.next_of(["strike", "gold"], "anna") is None
    both = begin_two(pool)
    assert both.next_of(["strike", "gold"], "anna").position == both.next_of(["strike", "gold"], "bert").position


@pytest.mark.parametrize("strategies", [("highest", "highest"), ("uncertain", "highest"), ("mixture", "uncertain")])
def test_with_another_strategy_the_first_topic_is_asked_about_first(pool, strategies):
    session = begin_two(pool)
    for topic, strategy in zip(("strike", "gold"), strategies, strict=True):
        session.change_topic(topic, strategy=strategy)
    question = session.next_of(["gold", "strike"])
    assert question == session.next("gold")
    assert question.topics == ("gold",)
    teach(session, "gold", 1000, subject="gold")
    assert session.next_of(["gold", "strike"]) == session.next("strike")


def test_several_threads_may_answer(pool):
    session = Session.create(None, pool)
    session.add_topic("strike")

    def work(person):
        teach(session, "strike", 15, person)
        progress_of(session.view, "strike")
        Advisor(session.view).advise("strike")
        Search(session.view).find(f"gold {person}", "strike")
        evidence_for(session.view, "strike", 3)

    threads = [threading.Thread(target=work, args=(person,)) for person in ("anna", "bert", "carl")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = Counter(judgement.person for judgement in session.view.judgements("strike"))
    assert answers == {"anna": 15, "bert": 15, "carl": 15}
    assert [step.step for step in session.view.steps] == list(range(1, len(session.view.steps) + 1))
