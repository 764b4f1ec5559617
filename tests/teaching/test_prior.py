"""What a model knows of a topic, in the terms of a pool."""

import pytest
from teaching_work import SUBJECTS, teach

import textcat
from textcat import TextcatError
from textcat.teaching.progress import progress_of
from textcat.teaching.session import Session


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
    session.add_topic("t17", model=(model, "ships"), random_share=0)
    teach(session, "t17", 5, subject="ships")
    assert progress_of(session.view, "t17").yes >= 4
    scores = session.view.scores("t17")
    session.close()
    if in_folder:
        with Session.open(tmp_path / "session", pool) as again:
            assert again.view.scores("t17").tobytes() == scores.tobytes()
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
