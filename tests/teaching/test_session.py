"""Topics are taught as one expects: questions, answers, persons, near-duplicates, keywords, and what is exported."""

import csv
import json
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from teaching_work import SUBJECTS, documents, small_pool, subject_of, teach

import textcat
from textcat import Document, TextcatError
from textcat.teaching.judgements import cohens_kappa
from textcat.teaching.pool import Pool
from textcat.teaching.session import Session


@pytest.fixture(scope="module")
def pool():
    return small_pool()


@pytest.fixture
def session(pool):
    with Session.create(None, pool) as session:
        session.add_topic("strike", "workers on strike for wages", random=0)
        yield session


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
    session.add_topic("t17", random=0, **evidence)
    assert subject_of(session.next("t17").position) == "wheat"
    judged = {each.id: (each.answer, each.source) for each in session.judgements("t17")}
    assert judged == dict.fromkeys(evidence.get("examples", ()), ("yes", "example"))


def test_the_name_of_a_topic_is_evidence_too(pool):
    session = Session.create(None, pool)
    session.add_topic("news.gold-bullion", random=0)
    assert subject_of(session.next("news.gold-bullion").position) == "gold"


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_topic_begins_with_what_a_model_knows(pool, tmp_path, in_folder):
    records = [
        {"text": f"{' '.join(SUBJECTS[name].split()[i : i + 4])} today", "topics": [name]}
        for name in SUBJECTS
        for i in range(4)
    ]
    tagger = textcat.train(textcat.Corpus.from_records(records), textcat.read_recipe("paum"))
    model = textcat.save(tagger, tmp_path / "model") if in_folder else tagger
    session = Session.create(tmp_path / "session" if in_folder else None, pool)
    session.add_topic("t17", model=(model, "ships"), random=0)
    teach(session, "t17", 5, subject="ships")
    assert session.progress("t17", None).yes >= 4
    scores = session.scores("t17")
    session.close()
    if in_folder:
        with Session.open(tmp_path / "session", pool) as again:
            assert again.scores("t17").tobytes() == scores.tobytes()
            kept = tmp_path / "session" / again.about("t17")["model"]["file"]
        kept.write_bytes(kept.read_bytes()[:-1])
        with Session.open(tmp_path / "session", pool) as again, pytest.raises(TextcatError, match="as it was written"):
            again.next("t17")


def test_a_model_is_refused_that_knows_no_such_topic_or_no_such_word(pool):
    records = [{"text": f"zzz {'xyw'[i % 3]}yyy", "topics": [f"a{i % 2}"]} for i in range(6)]
    tagger = textcat.train(textcat.Corpus.from_records(records), textcat.read_recipe("paum"))
    session = Session.create(None, pool)
    with pytest.raises(TextcatError, match="has no topic 'b'"):
        session.add_topic("t", model=(tagger, "b"))
    with pytest.raises(TextcatError, match="have no term"):
        session.add_topic("t", model=(tagger, "a0"))
    assert not session.topics()


def test_what_cannot_begin_a_topic_is_told(session):
    with pytest.raises(TextcatError, match="'strike' already"):
        session.add_topic("strike")
    with pytest.raises(TextcatError, match="No document has the id 'x9'"):
        session.add_topic("other", examples=["x9"])
    with pytest.raises(TextcatError, match="No strategy 'best': choose one of"):
        session.add_topic("other", strategy="best")
    with pytest.raises(TextcatError, match="share of questions at random cannot be 2"):
        session.add_topic("other", random=2)
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
        assert question.score == session.scores("strike")[question.position]
        assert question.model == session.progress("strike", None).model
        seen.add(question.position)
        before = session.scores("strike").copy()
        session.answer("strike", question.position, "yes" if subject_of(question.position) == "strike" else "no")
        assert (session.scores("strike") != before).any()
    assert session.progress("strike", None).yes >= 17


def test_the_highest_is_asked_with_its_rank(session, pool):
    question, scores = session.next("strike"), session.scores("strike")
    firsts = np.flatnonzero(np.asarray(pool.groups) == np.arange(len(pool)))
    assert question.position == firsts[np.argmax(scores[firsts])]
    assert (question.rank, question.why) == (1, "highest score")


def test_a_skipped_document_is_not_asked_again_and_is_no_example(session):
    question = session.next("strike")
    before = session.scores("strike")
    session.answer("strike", question.position, "skip")
    assert session.next("strike").position != question.position
    assert session.scores("strike").tobytes() == before.tobytes()
    assert question.position not in session.labels("strike")
    assert session.progress("strike", None).skipped == 1


def test_all_are_asked_once_and_then_none(pool):
    session = Session.create(None, pool)
    session.add_topic("gold", strategy="mixture", random=0.2)
    asked = []
    while question := session.next("gold"):
        asked.append(question.position)
        session.answer("gold", question.position, "yes" if subject_of(question.position) == "gold" else "no")
    assert sorted(asked) == sorted({int(group) for group in pool.groups})
    assert sorted(session.labels("gold")) == list(range(len(pool)))
    progress = session.progress("gold")
    assert (progress.yes + progress.no, progress.found) == (progress.n_groups, sum(session.labels("gold").values()))
    assert progress.at_random > 0


@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undoing_leads_back_through_the_same_questions_and_scores(pool, data):
    session = Session.create(None, pool)
    session.add_topic("strike", "strike", random=0.3)
    states = []
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["asked", "change", "keyword"]))
        states.append((session.next("strike", "anna"), session.scores("strike").tobytes()))
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
        assert session.scores("strike").tobytes() == scores
    assert session.undo("anna") is None


def test_the_scores_do_not_depend_on_the_order_of_answers(pool):
    answers = [(3, "yes"), (0, "yes"), (5, "no"), (8, "yes"), (2, "no")]
    scores = []
    for order in (answers, answers[::-1]):
        session = Session.create(None, pool)
        session.add_topic("strike")
        for position, answer in order:
            session.answer("strike", position, answer, source="list")
        scores.append(session.scores("strike").tobytes())
    assert scores[0] == scores[1]


def test_an_earlier_answer_can_be_changed_and_the_change_undone(session):
    session.answer("strike", 7, "yes", "anna", "list", "by mistake")
    session.answer("strike", 7, "no", "anna", "list")
    assert session.labels("strike")[7] is False
    (judgement,) = session.judgements("strike")
    assert (judgement.answer, judgement.note) == ("no", "")
    (undone,) = session.undo("anna")
    assert (undone.position, undone.answer) == (7, "no")
    assert session.labels("strike")[7] is True
    assert session.judgements("strike")[0].note == "by mistake"


def test_undo_takes_back_ones_own_answers_only(session):
    session.answer("strike", 4, "yes", "anna", "list")
    session.answer("strike", 8, "yes", "bert", "list")
    session.undo("anna")
    assert session.labels("strike") == {8: True}
    assert session.undo("anna") is None


def test_what_is_no_answer_is_told(session):
    with pytest.raises(TextcatError, match="No answer 'maybe'"):
        session.answer("strike", 0, "maybe")
    with pytest.raises(TextcatError, match="No document 120"):
        session.answer("strike", 120, "yes")
    with pytest.raises(TextcatError, match="No source 'guess'"):
        session.answer("strike", 0, "yes", source="guess")
    with pytest.raises(TextcatError, match="is not valid Unicode"):
        session.answer("strike", 0, "yes", note="\udcff")
    assert not session.judgements("strike")


def test_a_judgement_made_from_a_search_teaches_too(session):
    before = session.scores("strike").copy()
    found = session.search("gold bullion", "strike", limit=3)
    assert found.n_found > 3
    assert all(subject_of(each.position) == "gold" for each in found.documents)
    session.answer("strike", found.documents[0].position, "no", source="search")
    assert (session.scores("strike") != before).any()
    again = session.search("gold bullion", "strike", limit=3).documents[0]
    assert (again.answer, again.label) == ("no", False)
    assert session.judgements("strike")[0].source == "search"


def test_a_search_pages_and_finds_ids(session):
    everything = [each.position for each in session.search("gold", limit=200).documents]
    assert everything == [
        each.position for k in range(0, 200, 7) for each in session.search("gold", None, k, 7).documents
    ]
    assert session.search("d77").documents[0].id == "d77"
    assert session.search("xyzzy").n_found == 0


def test_a_mark_is_an_example_of_its_words_alone(session):
    before = session.scores("strike").copy()
    session.set_keyword("strike", "  bullion ", True)
    assert session.keywords("strike") == {"bullion": True}
    with_word = [i for i, each in enumerate(documents()) if "bullion" in f"{each['title']} {each['body']}".split()]
    assert (session.scores("strike") - before)[with_word].mean() > 0.01
    session.set_keyword("strike", "bullion", False)
    assert session.keywords("strike") == {"bullion": False}
    session.set_keyword("strike", "bullion", None)
    assert session.scores("strike").tobytes() == before.tobytes()
    with pytest.raises(TextcatError, match="No term of the documents is in 'xyzzy'"):
        session.set_keyword("strike", "xyzzy", True)


def test_evidence_has_spans_and_adds_up_to_the_score(session, pool):
    teach(session, "strike", 6)
    question = session.next("strike")
    explained = session.evidence("strike", question.position, n=1000)
    assert sum(each.contribution for each in explained) + explained.bias == pytest.approx(question.score, abs=1e-5)
    zone, start, end = explained[0].spans[0]
    assert question.zones[zone][start:end].split()
    assert len(session.terms("strike", 5)) == 5


def test_the_same_seed_asks_the_same_and_another_one_does_not(pool):
    asked = []
    for seed in (0, 0, 1):
        session = Session.create(None, pool, seed=seed)
        session.add_topic("strike", random=0.5)
        positions = []
        for _ in range(12):
            question = session.next("strike")
            positions.append((question.position, question.why))
            session.answer("strike", question.position, "no")
        asked.append(positions)
    assert asked[0] == asked[1] != asked[2]
    assert {why for _, why in asked[0]} == {"at random", "highest score"}


def test_the_strategy_can_be_changed(session):
    session.choose_by("strike", random=1)
    assert session.next("strike").why == "at random"
    session.choose_by("strike", "uncertain", 0)
    assert session.next("strike").why == "uncertain"
    assert session.about("strike")["strategy"] == "uncertain"


# --- near-duplicates, topics, persons --------------------------------------------------------------------------------


def test_near_duplicates_are_asked_once_and_take_the_answer(session, pool):
    assert pool.groups[9] == 0
    session.answer("strike", 9, "yes", source="search")
    assert session.labels("strike") == {0: True, 9: True}
    assert session.progress("strike", None).found == 2
    while question := session.next("strike"):
        assert question.position not in (0, 9)
        assert question.duplicates == tuple(f"d{i}" for i in np.flatnonzero(pool.groups == question.position)[1:])
        session.answer("strike", question.position, "no")


def test_a_document_is_answered_for_several_topics_at_once(session):
    session.add_topic("gold", "gold bullion", random=0)
    question = session.next("strike")
    session.answer("strike", question.position, "yes", others={"gold": "no"})
    assert session.labels("gold")[question.position] is False
    assert session.next("strike").answers == {"gold": ""}
    of_gold = session.judgements("gold")[0]
    assert (of_gold.why, session.judgements("strike")[0].why) == ("", "highest score")
    assert len(session.undo()) == 2
    assert not session.labels("gold")
    with pytest.raises(TextcatError, match="no topic 'silver'"):
        session.answer("strike", question.position, "yes", others={"silver": "no"})
    assert not session.labels("strike")


def test_each_person_is_asked_for_all_or_for_what_others_have_not_answered(pool):
    asked = {}
    for overlap in (1.0, 0.0, 0.4):
        session = Session.create(None, pool, overlap=overlap)
        session.add_topic("strike")
        teach(session, "strike", 200, "anna")
        asked[overlap] = set()
        while question := session.next("strike", "bert"):
            asked[overlap].add(question.position)
            session.answer("strike", question.position, "no", "bert")
    n = len(set(pool.groups.tolist()))
    assert len(asked[1.0]) == n
    assert not asked[0.0]
    assert 0.2 * n < len(asked[0.4]) < 0.6 * n


def test_two_who_share_the_work_are_not_asked_for_one_document_at_the_same_time(pool):
    session = Session.create(None, pool, overlap=0)
    session.add_topic("strike")
    of_anna = session.next("strike", "anna").position
    assert session.next("strike", "bert").position != of_anna
    teach(session, "strike", len(set(pool.groups.tolist())) - 1, "bert")
    assert session.next("strike", "bert").position == of_anna  # who has gone away keeps nobody from the last one


def test_a_disagreement_counts_as_yes_until_it_is_settled(session):
    session.answer("strike", 4, "yes", "anna", "list", "pay talks")
    session.answer("strike", 4, "no", "bert", "list")
    session.answer("strike", 6, "no", "anna", "list")
    session.answer("strike", 6, "no", "bert", "list")
    agreement = session.agreement("strike")
    (disagreement,) = agreement.disagreements
    assert [(each.person, each.answer, each.note) for each in disagreement.judgements] == [
        ("anna", "yes", "pay talks"),
        ("bert", "no", ""),
    ]
    assert (agreement.documents, agreement.agreed, agreement.kappa) == (2, 0.5, 0.0)
    assert session.labels("strike") == {4: True, 6: False}
    assert session.progress("strike", None).disagreements == 1
    session.answer("strike", 4, "no", "carl", "adjudicated")
    assert session.labels("strike") == {4: False, 6: False}
    assert not session.agreement("strike").disagreements
    assert session.agreement("strike").documents == 2
    with pytest.raises(TextcatError, match="skip adjudicates nothing"):
        session.answer("strike", 4, "skip", "carl", "adjudicated")
    session.undo("carl")
    assert session.labels("strike")[4] is True
    session.answer("strike", 4, "no", "carl", "list")  # two of three
    assert session.labels("strike")[4] is False


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
@settings(max_examples=40)
def test_kappa_is_that_of_scikit_learn(pairs):
    from sklearn.metrics import cohen_kappa_score

    kappa = cohens_kappa(pairs)
    if kappa is None:
        assert len({answer for pair in pairs for answer in pair}) == 1
    else:
        assert kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_several_threads_may_answer(pool):
    session = Session.create(None, pool)
    session.add_topic("strike")

    def work(person):
        teach(session, "strike", 15, person)
        session.progress("strike")
        session.search(f"gold {person}", "strike")
        session.evidence("strike", 3)

    threads = [threading.Thread(target=work, args=(person,)) for person in ("anna", "bert", "carl")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [
        len([each for each in session.judgements("strike") if each.person == who]) for who in ("anna", "bert", "carl")
    ] == [
        15,
        15,
        15,
    ]
    assert [line["step"] for line in session.journal.lines] == list(range(1, len(session.journal.lines) + 1))


def test_the_history_has_each_group_once_in_the_order_of_the_first_answers(session):
    for position, answer in ((12, "yes"), (3, "skip"), (9, "no"), (12, "no")):
        session.answer("strike", position, answer, source="list")
    teach(session, "strike", 1)
    history = session.history("strike")
    assert history.answers.tolist()[:2] == [False, False]
    assert len(history.answers) == 3
    assert history.n_documents == session.progress("strike", None).n_groups
    assert not history.at_random.any()


def test_a_document_drawn_at_random_is_reached_when_so_many_as_ranked_before_it_have_been_asked(session):
    session.choose_by("strike", random=1)
    question = session.next("strike")
    session.answer("strike", question.position, "yes")
    session.choose_by("strike", random=0)
    for n in range(1, question.rank + 1):
        assert not session.history("strike").reached[0]
        teach(session, "strike", 1)
        assert len(session.history("strike").reached) == n + 1
    assert session.history("strike").reached[0]


# --- exports ---------------------------------------------------------------------------------------------------------


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_labels_have_near_duplicates_and_no_topic_that_was_not_judged(session, tmp_path):
    session.add_topic("gold")
    session.answer("strike", 0, "yes", "anna", "list")
    session.answer("strike", 0, "no", "bert", "list")
    session.answer("gold", 2, "yes", source="list")
    session.answer("gold", 3, "skip", source="list")
    assert lines_of(session.export_labels(tmp_path / "labels.jsonl")) == [
        {"id": "d0", "labels": {"strike": True}, "judged_as": "d0", "disputed": ["strike"]},
        {"id": "d9", "labels": {"strike": True}, "judged_as": "d0", "disputed": ["strike"]},
        {"id": "d2", "labels": {"gold": True}, "judged_as": "d2"},
    ]
    assert len(lines_of(session.export_labels(tmp_path / "labels.jsonl", ["gold"]))) == 1


def test_an_exported_corpus_trains_and_an_exported_model_is_what_that_gives(session, pool, tmp_path):
    teach(session, "strike", 70)
    path = session.export_corpus(tmp_path / "corpus.jsonl")
    corpus = textcat.open_corpus(str(path))
    assert corpus.topics == ("strike",)
    assert {each.id: dict(each.zones) for each in corpus.train} == {
        pool.ids[i]: {"title": "", **pool.document(i)} for i in sorted(session.topic_state("strike").labels)
    }
    tagger = textcat.load(session.export_model(tmp_path / "model"))
    assert tagger.topics == ("strike",)
    tags = tagger.tag([SUBJECTS["strike"], SUBJECTS["gold"]])
    assert [[tag.topic for tag in each] for each in tags] == [["strike"], []]


def test_what_was_not_judged_for_a_topic_is_no_example_of_it(session, tmp_path):
    session.add_topic("gold", "gold bullion", random=0)
    teach(session, "strike", 45)
    teach(session, "gold", 45, subject="gold")
    corpus = textcat.open_corpus(str(session.export_corpus(tmp_path / "corpus.jsonl")))
    of_both = {topic: {f"d{i}" for i in session.topic_state(topic).labels} for topic in ("strike", "gold")}
    assert {each.id for each in corpus.train} == of_both["strike"] | of_both["gold"]
    for document in corpus.train:
        assert set(document.labelled_for) == {topic for topic, ids in of_both.items() if document.id in ids}
    assert corpus.unjudged(corpus.train).nnz > 0
    tagger = textcat.load(session.export_model(tmp_path / "model"))
    assert tagger.topics == ("gold", "strike")
    gold, strike = tagger.scores([SUBJECTS["gold"], SUBJECTS["strike"]])
    assert gold[0] > strike[0]
    assert strike[1] > gold[1]


def test_documents_of_one_id_get_their_own_in_a_corpus(tmp_path):
    pool = Pool.from_documents([Document("same", zones) for zones in documents(20)])
    session = Session.create(None, pool)
    session.add_topic("strike")
    teach(session, "strike", 8)
    corpus = textcat.open_corpus(str(session.export_corpus(tmp_path / "corpus.jsonl")))
    assert len({each.id for each in corpus.train}) == 8


def test_what_cannot_be_exported_is_told(session, tmp_path):
    with pytest.raises(TextcatError, match="'strike' has no document judged by yes: answer some more"):
        session.export_corpus(tmp_path / "corpus.jsonl")
    session.answer("strike", 0, "yes", source="list")
    with pytest.raises(TextcatError, match="no document judged by no"):
        session.export_model(tmp_path / "model")
    session.add_topic("gold")
    with pytest.raises(
        TextcatError, match="'gold' has no document judged by yes: answer some more, or leave the topic"
    ):
        session.export_corpus(tmp_path / "corpus.jsonl")
    with pytest.raises(TextcatError, match="no topic 'silver'"):
        session.export_labels(tmp_path / "labels.jsonl", ["silver"])
    with pytest.raises(TextcatError, match="add one first"):
        Session.create(None, session.pool).export_audit(tmp_path / "audit.jsonl")


def test_the_audit_has_all_that_was_done(session, tmp_path):
    teach(session, "strike", 2, "anna")
    session.answer("strike", 20, "no", "bert", "search", '=HYPERLINK("x")')
    session.set_keyword("strike", "union", True, "anna")
    session.undo("bert")
    rows = lines_of(session.export_audit(tmp_path / "audit.jsonl"))
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
    with open(session.export_audit(tmp_path / "audit.csv"), encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["what"] for row in table] == [row["what"] for row in rows]
    assert (table[1]["score"], table[3]["note"]) == (str(first["score"]), '\'=HYPERLINK("x")')
