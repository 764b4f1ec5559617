"""Texts much longer than the training documents are scored in parts; all others as if there were no parts."""

import json
import math
import re
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat.corpus.documents import Corpus, Document
from textcat.model import MODEL, ModelError
from textcat.model.measure import measure_at_k, measure_test_documents
from textcat.model.parts import are_long, cut, parts_of_document
from textcat.model.restrict import restrict_topics
from textcat.model.shortlist import NOT_LISTED

SETTINGS = ["topics.shortlist=8", "topics.part_length=120"]


@pytest.fixture(scope="module")
def tagger():
    return textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("many-topics").with_settings(SETTINGS))


@pytest.fixture(scope="module")
def whole(tagger):
    return replace(tagger, part_length=0)


@pytest.fixture(scope="module")
def long_text():
    bodies = [document.zones["body"] for document in textcat.open_corpus("newswire").test[:6]]
    return "\n\n".join(bodies)


SHORT = "Wheat exports rose in May"


@given(text=st.text(alphabet="ab \n麦", max_size=60), length=st.integers(1, 20))
def test_pieces_make_up_the_text_and_are_of_nearly_equal_length(text, length):
    starts = cut(text, length)
    assert starts[0] == 0
    assert len(starts) == max(1, math.ceil(len(text) / length))
    assert starts == sorted(starts)
    assert starts[-1] <= len(text)
    sizes = np.diff([*starts, len(text)])
    assert sizes.max() <= 2 * length + 1


def test_a_part_ends_at_white_space_if_there_is_some():
    text = "one two three four five six"
    pieces = [text[start:end] for start, end in zip(cut(text, 10), [*cut(text, 10)[1:], None], strict=True)]
    assert pieces == ["one two three ", "four ", "five six"]
    assert cut("麦" * 30, 10) == [0, 10, 20]


def test_parts_have_the_pieces_of_all_zones(tagger):
    zones = {"title": "Wheat", "body": "one two three four"}
    parts = parts_of_document(replace(tagger, part_length=10), Document("", zones))
    assert [part.document.zones for part in parts] == [{"title": "Wheat", "body": "one two three "}, {"body": "four"}]
    assert [part.starts for part in parts] == [{"title": 0, "body": 0}, {"body": 14}]


def test_the_score_of_a_long_text_is_that_of_the_joined_probabilities_of_its_parts(tagger, whole, long_text):
    parts = [part.document for part in parts_of_document(tagger, long_text)]
    n = len(parts)
    assert n > 10
    scores = whole.scores(parts)
    probabilities = np.where(scores > NOT_LISTED, whole.calibration.probabilities(scores), 0)
    mean = (np.sqrt(probabilities).sum(axis=0) + np.sqrt(probabilities[0])) / (n + 1)
    expected = 1 - (1 - mean**2) ** n
    found = tagger.predict_proba([long_text])[0]
    listed = (scores > NOT_LISTED).any(axis=0)
    assert listed.any()
    np.testing.assert_allclose(found[listed], expected[listed], rtol=1e-3, atol=1e-6)
    assert (tagger.scores([long_text])[0][~listed] == NOT_LISTED).all()


def test_texts_that_are_not_long_are_scored_as_a_whole_to_the_bit(tagger, whole, long_text):
    texts = [SHORT, long_text, "Corn and wheat fell", "", long_text, long_text, "Gold"]
    assert are_long(tagger, texts).tolist() == [False, True, False, False, True, True, False]
    scores, of_whole = tagger.scores(texts), whole.scores(texts)
    short = [0, 2, 3, 6]
    assert (scores[short] == of_whole[short]).all()
    assert (scores[[1, 4, 5]] != of_whole[1]).any(axis=1).all()
    assert (scores[4] == scores[1]).all()
    for choice in ({}, {"top": 3}, {"everything": True}, {"min_probability": 0.1}):
        tags = tagger.tag(texts, **choice)
        assert [tags[i] for i in short] == [whole.tag(texts, **choice)[i] for i in short]
        assert tags == [tagger.tag([text], **choice)[0] for text in texts]
        assert list(tagger.tag_stream(texts, batch=1, **choice)) == tags
        assert tagger.select(scores, **choice, in_parts=are_long(tagger, texts)) == tags


def test_topics_of_a_long_text_are_in_the_order_of_their_probabilities(tagger, long_text):
    by_topic = dict(zip(tagger.topics, tagger.predict_proba([long_text])[0].tolist(), strict=True))
    (tags,) = tagger.tag([long_text], top=8)
    probabilities = [tag.probability for tag in tags]
    assert probabilities == sorted(probabilities, reverse=True)
    assert probabilities[0] == pytest.approx(max(by_topic.values()), rel=1e-6)
    scores = [tag.score for tag in tagger.tag([long_text], everything=True)[0]]
    assert scores != sorted(scores, reverse=True)  # which scores alone would not give


def test_a_zone_that_the_recipe_leaves_out_makes_no_text_long(tagger, long_text):
    assert not are_long(tagger, [Document("", {"body": SHORT, "notes": long_text})])[0]


def test_an_explanation_names_the_part_that_speaks_and_marks_places_in_the_whole_text(tagger, whole, long_text):
    (tag,) = tagger.tag([long_text], top=1)[0]
    explained = tagger.explain(long_text, tag.topic, n=None)
    parts = parts_of_document(tagger, long_text)
    of_parts = [
        dict(zip(whole.topics, row.tolist(), strict=True))[tag.topic]
        for row in whole.scores([part.document for part in parts])
    ]
    best = int(np.argmax(of_parts))
    assert (explained.part.number, explained.part.of) == (best + 1, len(parts))
    assert explained.part.start == parts[best].starts["body"]
    assert " ".join(long_text[explained.part.start :].split()).startswith(explained.part.words)
    assert explained.part.score == pytest.approx(of_parts[best], abs=1e-6)
    assert (explained.score, explained.probability) == (tag.score, tag.probability)
    related = sum(topic.contribution for topic in explained.related)
    total = explained.bias + explained.rest + related + sum(reason.contribution for reason in explained)
    assert total == pytest.approx(explained.part.score, abs=1e-4)
    end = parts[best + 1].starts["body"] if best + 1 < len(parts) else len(long_text)
    spans = [span for reason in explained for span in reason.spans]
    assert spans
    assert all(explained.part.start <= span.start < span.end <= end for span in spans)
    words = [reason for reason in explained if reason.term.isalpha()]
    assert all(reason.term[:3] in long_text[span.start : span.end].lower() for reason in words for span in reason.spans)
    assert explained.as_dict()["part"]["words"] == explained.part.words
    assert tagger.explain(SHORT, "wheat").part is None


def test_a_saved_model_and_one_of_some_topics_score_parts_alike(tagger, long_text, tmp_path):
    loaded = textcat.load(textcat.save(tagger, tmp_path / "model"))
    texts = [SHORT, long_text]
    assert (loaded.scores(texts) == tagger.scores(texts)).all()
    assert loaded.tag(texts) == tagger.tag(texts)
    some = restrict_topics(tagger, tagger.topics[2:6])
    assert (some.scores(texts) == tagger.scores(texts)[:, 2:6]).all()
    (tag,) = some.tag([long_text], top=1)[0]
    assert some.explain(long_text, tag.topic).part == tagger.explain(long_text, tag.topic).part


@pytest.mark.parametrize("length", [-1, 2.5, True, "120"])
def test_a_damaged_length_is_refused(tagger, tmp_path, length):
    folder = textcat.save(tagger, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["part_length"] = length
    MODEL.write_manifest(folder, {key: value for key, value in manifest.items() if key not in ("format", "sha256")})
    with pytest.raises(ModelError, match="damaged"):
        textcat.load(folder)


@pytest.fixture(scope="module")
def naming(tagger):
    """The tagger, for which names in texts count."""
    return replace(tagger, name_weight=0.5)


def test_a_name_in_a_long_text_adds_to_the_log_odds_of_its_topic(tagger, naming, long_text):
    text = f"{long_text} wheat Wheat, buckwheat"
    n = len(re.findall(r"\bwheat\b", text.lower()))
    assert n >= 2
    before, after = (
        dict(zip(tagger.topics, one.predict_proba([text])[0].tolist(), strict=True)) for one in (tagger, naming)
    )
    added = {
        topic: math.log(after[topic] / (1 - after[topic]) * (1 - p) / p) for topic, p in before.items() if p > 1e-9
    }
    assert added["wheat"] == pytest.approx(0.5 * math.log(1 + n), abs=1e-3)
    unnamed = [topic for topic in added if topic not in text.lower()]
    assert unnamed
    assert [added[topic] for topic in unnamed] == pytest.approx([0.0] * len(unnamed), abs=1e-6)


def test_names_in_texts_that_are_not_long_do_not_count(tagger, naming):
    assert (naming.scores([SHORT]) == tagger.scores([SHORT])).all()


def test_an_explanation_says_how_often_the_text_names_the_topic(tagger, naming, long_text):
    text = f"{long_text} wheat"
    n = len(re.findall(r"\bwheat\b", text.lower()))
    explained = naming.explain(text, "wheat")
    assert explained.named == (n, pytest.approx(0.5 * math.log(1 + n)))
    assert explained.as_dict()["named"] == explained.named._asdict()
    column = tagger.topics.index("wheat")
    assert explained.score == naming.scores([text])[0, column] > tagger.scores([text])[0, column]
    assert explained.part == tagger.explain(text, "wheat").part
    assert tagger.explain(text, "wheat").named is None
    assert "named" not in tagger.explain(text, "wheat").as_dict()


def test_a_document_is_read_once_for_the_names_of_all_topics_that_are_explained(naming, long_text, monkeypatch):
    counted = []
    counts = type(naming.names_in_texts).counts
    monkeypatch.setattr(
        type(naming.names_in_texts), "counts", lambda names, texts: counted.append(1) or counts(names, texts)
    )
    topics = list(naming.topics[:4])
    alone = [naming.explain(long_text, topic).as_dict() for topic in topics]
    assert len(counted) == 4
    assert [one.as_dict() for one in naming.explain_all(long_text, topics)] == alone
    assert len(counted) == 5


def test_a_saved_model_and_one_of_some_topics_count_names_alike(naming, long_text, tmp_path):
    loaded = textcat.load(textcat.save(naming, tmp_path / "model"))
    assert loaded.name_weight == 0.5
    assert (loaded.scores([long_text]) == naming.scores([long_text])).all()
    some = restrict_topics(naming, naming.topics[2:6])
    assert (some.scores([long_text]) == naming.scores([long_text])[:, 2:6]).all()


@pytest.mark.parametrize("weight", [-1.0, True, "1", math.inf, math.nan])
def test_a_damaged_weight_of_names_is_refused(tagger, tmp_path, weight):
    folder = textcat.save(tagger, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["name_weight"] = weight
    MODEL.write_manifest(folder, {key: value for key, value in manifest.items() if key not in ("format", "sha256")})
    with pytest.raises(ModelError, match="damaged"):
        textcat.load(folder)


def test_the_weight_of_names_is_a_setting_and_off_by_default(tagger):
    corpus = textcat.open_corpus("newswire")
    recipe = textcat.read_recipe("many-topics").with_settings([*SETTINGS, "topics.name_weight=1"])
    trained = textcat.train(corpus, recipe)
    assert (trained.name_weight, tagger.name_weight) == (1.0, 0.0)
    assert (trained.weights != tagger.weights).nnz == 0
    assert textcat.train(corpus, textcat.read_recipe("paum").with_settings(["topics.name_weight=1"])).name_weight == 0
    with pytest.raises(textcat.TextcatError, match=r"name_weight in \[topics\] cannot be nan"):
        textcat.read_recipe("many-topics").with_settings(["topics.name_weight=nan"]).check()


def test_the_length_of_parts_is_chosen_by_the_lengths_of_training_documents():
    documents = [Document(str(i), {"body": "x" * i, "notes": "y" * 999}, ("ab"[i % 2],)) for i in range(1, 102)]
    corpus = Corpus.from_documents("made", [replace(one, split="train") for one in documents])
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=1", "features.min_df=1"])
    assert textcat.train(corpus, recipe).part_length == 0
    recipe = recipe.with_settings(["topics.choose_parts=true"])
    assert textcat.train(corpus, recipe).part_length == 150  # half as much again as that of the 99th percentile
    for settings, expected in (
        ("topics.part_length=0", 0),
        ("topics.part_length=70", 70),
        ("topics.choose_parts=false", 0),
    ):
        assert textcat.train(corpus, recipe.with_settings([settings])).part_length == expected
    assert textcat.train(corpus, textcat.read_recipe("paum")).part_length == 0


def test_evaluation_ranks_the_topics_of_long_documents_by_probability(tagger, long_text):
    scores = np.full((1, len(tagger.topics)), NOT_LISTED, np.float32)
    likely, rare = np.argmax(tagger.calibration.b), np.argmin(tagger.calibration.b)
    scores[0, likely], scores[0, rare] = 1.0, 1.01
    relevant = np.zeros(scores.shape, bool)
    relevant[0, likely] = True
    for in_parts, expected in ((np.ones(1, bool), 1), (np.zeros(1, bool), 0), (None, 0)):
        measured = measure_at_k(tagger, scores, relevant, in_parts=in_parts, ks=(1,))
        assert measured.bands[0]["precision@1"] == expected


def test_a_corpus_is_evaluated_as_its_documents_are_tagged(tagger, whole):
    corpus = textcat.open_corpus("newswire")
    in_parts = are_long(tagger, corpus.test)
    assert 0 < in_parts.sum() < len(in_parts)
    scores = tagger.scores(corpus.test)
    assert (scores[~in_parts] == whole.scores(corpus.test)[~in_parts]).all()
    assert tagger.evaluate(corpus).bands == measure_test_documents(tagger, corpus, scores, in_parts=in_parts).bands


def test_a_long_text_in_any_form_is_cut_where_its_normal_form_is(tagger, long_text):
    accented = re.sub(r"\bthe\b", "thé", re.sub(r"\bof\b", "öf", long_text))
    decomposed = unicodedata.normalize("NFD", accented)
    edge = decomposed[:119]  # with more characters than a part has only as it is written
    edge = unicodedata.normalize("NFD", edge[:100] + "é" * 15)
    assert are_long(tagger, [unicodedata.normalize("NFC", edge), edge]).tolist() == [False, False]
    forms = [accented, decomposed]
    assert np.array_equal(*tagger.scores(forms)[:, None])
    (tag,) = tagger.tag([accented], top=1)[0]
    one, other = (tagger.explain(form, tag.topic, n=None) for form in forms)
    assert one.part._replace(start=0) == other.part._replace(start=0)
    assert decomposed[other.part.start :].split()[:5] == [
        unicodedata.normalize("NFD", word) for word in accented[one.part.start :].split()[:5]
    ]
    for first, second in zip(one, other, strict=True):
        assert first[:4] == second[:4]
        places = [
            [text[span.start : span.end] for span in reason.spans]
            for text, reason in zip(forms, (first, second), strict=True)
        ]
        assert [unicodedata.normalize("NFC", piece) for piece in places[1]] == places[0]
