"""A model keeps its promises from training on: in its folder, in what it tags, and where it is measured."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from cases import every
from manifests import rewrite

import textcat
from textcat.base.disk import sha256_of_file
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.promises import ALL_TOPICS, Status
from textcat.model.storage import load, save
from textcat.report.card import card_text
from textcat.training.examples import CountedCorpus
from textcat.training.steps import train_and_evaluate
from textcat.training.thresholds import held_out_scores, promise_scores, shares_by_topic

ASKED = ["promise.precision=0.8", "promise.recall=0.7", "promise.confidence=0.8"]


@pytest.fixture(scope="module")
def promising(newswire):
    """A tagger of newswire that promises what can be promised of so few documents."""
    return train_and_evaluate(newswire, textcat.read_recipe("default").with_settings(ASKED))


def test_promises_are_what_the_thresholds_say(promising, newswire):
    promises = promising.promises
    assert {*promises} == {*promising.topics}
    assert any(promise.precision == 0.8 for promise in promises.values())
    for column, (topic, promise) in enumerate(promises.items()):
        assert promise.topic == topic
        assert promise.review_threshold <= promise.threshold
        assert promising.decisions.thresholds[column] == np.float32(promise.review_threshold)
        assert (promise.precision is None) == np.isinf(promise.threshold)
        if promise.precision is not None:
            assert promise.correct / promise.documents >= 0.8


def test_tags_say_whether_a_person_is_to_review_them(promising, newswire):
    tags = promising.tag(newswire.test)
    seen = {tag.status for of_document in tags for tag in of_document}
    assert seen == {Status.AUTOMATIC, Status.REVIEW}
    for tag in (tag for of_document in tags for tag in of_document):
        assert (tag.status is Status.AUTOMATIC) == (tag.score > promising.promises[tag.topic].threshold)
    assert any(tag.status is None for of_document in promising.tag(newswire.test[:9], top=20) for tag in of_document)
    assert {*tags.to_frame()["status"]} == {"automatic", "review"}


def test_a_model_in_a_folder_makes_the_same_promises(promising, newswire, tmp_path):
    loaded = load(save(promising, tmp_path / "model"))
    assert loaded.promises == promising.promises
    assert loaded.tag(newswire.test) == promising.tag(newswire.test)
    assert loaded.evaluation == promising.evaluation
    assert loaded.evaluation.promises
    scores = promising.scores(newswire.test)
    np.testing.assert_array_equal(
        loaded.decisions.expected_recalls(scores), promising.decisions.expected_recalls(scores)
    )


@pytest.mark.parametrize(
    ("row", "value"),
    [(0, 2.0), (1, -0.5), (2, np.nan), (3, np.nan), (3, -np.inf), (4, np.nan), (5, np.inf), (6, -1.0), (None, None)],
)
def test_damaged_promises_are_refused_whatever_their_checksum_says(promising, tmp_path, row, value):
    folder = save(promising, tmp_path / "model")
    files = json.loads((folder / "manifest.json").read_text())["files"]
    table = np.load(folder / "promises.npy")
    if row is None:
        table = table[:, 1:]
    else:
        table[row, 0] = value
    np.save(folder / "promises.npy", table)
    rewrite(folder, files={**files, "promises.npy": sha256_of_file(folder / "promises.npy")})
    with pytest.raises(TextcatError, match="damaged"):
        load(folder)


@pytest.mark.parametrize("weights", [[1.0], [float("nan")] * 16])
def test_weights_that_are_none_are_refused(promising, tmp_path, weights):
    folder = save(promising, tmp_path / "model")
    rewrite(folder, expected_recall=weights)
    with pytest.raises(TextcatError, match="damaged"):
        load(folder)


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_every_output_has_the_status_of_each_tag(promising, newswire, tmp_path, to):
    folder = save(promising, tmp_path / "model")
    documents = tmp_path / "documents.jsonl"
    texts = ["\n".join(document.zones.values()) for document in newswire.test[:20]]
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    textcat.tag_archive(
        folder, documents, tmp_path / "out", output_settings=textcat.OutputSettings(to, expected_recall=True), jobs=1
    )
    (part,) = (tmp_path / "out").glob(f"part-*.{to}")
    recalls = promising.decisions.expected_recalls(*promising.scored(texts)).round(4).tolist()
    if to == "jsonl":
        lines = [json.loads(line) for line in part.read_text().splitlines()]
        assert [line["expected_recall"] for line in lines] == recalls
        rows = [line["topics"] for line in lines]
        found = [(tag["topic"], tag["status"]) for row in rows for tag in row]
    elif to == "csv":
        with part.open(newline="") as lines:
            found = [(row["topic"], row["status"]) for row in csv.DictReader(lines) if row["topic"]]
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(part).to_pylist()
        assert [row["expected_recall"] for row in rows] == recalls
        found = [(tag["topic"], tag["status"]) for row in rows for tag in row["topics"]]
    assert found == [(tag.topic, tag.status.value) for tags in promising.tag(texts) for tag in tags]


def test_few_topics_are_missed_if_that_is_promised(newswire):
    """The limit holds on the scores that it was chosen by, and more tags are for review than without it."""
    settings = ["promise.precision=0.8", "promise.confidence=0.8"]
    plain = textcat.train(newswire, textcat.read_recipe("default").with_settings(settings))
    limited = textcat.train(newswire, textcat.read_recipe("default").with_settings([*settings, "promise.missed=0.05"]))
    assert [promise.threshold for promise in plain.promises.values()] == [
        promise.threshold for promise in limited.promises.values()
    ]
    given, more = (tagger.predict(newswire.test).astype(bool) for tagger in (plain, limited))
    labels = newswire.labels(newswire.test).toarray() > 0
    assert more.sum() > given.sum()
    assert (more & labels).sum() / labels.sum() >= 0.9
    assert "at most 0.05 of a document's topics" in card_text(limited, None)
    assert "of a document's topics" not in card_text(plain, None)
    (checked,) = (promise for promise in textcat.evaluate(limited, newswire).promises if promise.topic == ALL_TOPICS)
    assert (checked.measure, checked.promised) == ("sample recall", 0.95)
    has_topic = labels.any(axis=1)
    assert checked.share == pytest.approx(
        ((more & labels).sum(axis=1)[has_topic] / labels.sum(axis=1)[has_topic]).mean()
    )


def grown(newswire, *, labelled_for=None):
    """Return the corpus, whose documents were labelled for its topics, with one more document, of a new topic."""
    known = tuple(newswire.topics)
    older = [replace(document, labelled_for=known) for document in newswire.train]
    new = Document(
        "new", {"body": "The gold jewellery market in London."}, ("gold", "jewellery"), labelled_for=labelled_for
    )
    return Corpus.from_documents("grown", [*older, new])


@pytest.mark.parametrize("labelled_for", [None, ("gold", "jewellery")])
def test_documents_count_for_expected_recall_and_missed_topics_though_a_new_topic_was_not_labelled(
    newswire, labelled_for
):
    settings = [*ASKED, "promise.missed=0.1"]
    tagger = textcat.train(
        grown(newswire, labelled_for=labelled_for), textcat.read_recipe("default").with_settings(settings)
    )
    given = tagger.predict(newswire.test) > 0
    labels = np.array([[topic in document.topics for topic in tagger.topics] for document in newswire.test])
    has_topic = labels.any(axis=1)
    recall = (given & labels)[has_topic].sum(axis=1) / labels[has_topic].sum(axis=1)
    expected = tagger.expected_recalls(newswire.test)[has_topic]
    assert 0.85 < recall.mean() < 0.99
    assert abs(expected.mean() - recall.mean()) < 0.1
    assert np.corrcoef(expected, recall)[0, 1] > 0.5


def test_a_new_topic_that_every_labelled_document_has_does_not_raise_the_expected_recall(newswire):
    rng, words = np.random.default_rng(0), ["ring", "necklace", "bracelet", "pearl", "brooch", "gem"]
    older = [replace(document, labelled_for=(*newswire.topics,)) for document in newswire.train]
    new = [Document(f"n{i}", {"body": " ".join(rng.choice(words, 12))}, ("jewellery",)) for i in range(30)]
    recipe = textcat.read_recipe("default").with_settings([*ASKED, "promise.missed=0.1"])
    tagger = textcat.train(Corpus.from_documents("grown", [*older, *new]), recipe)
    given = tagger.predict(newswire.test) > 0
    labels = np.array([[topic in document.topics for topic in tagger.topics] for document in newswire.test])
    has_topic = labels.any(axis=1)
    recall = (given & labels)[has_topic].sum(axis=1) / labels[has_topic].sum(axis=1)
    expected = tagger.expected_recalls(newswire.test)[has_topic]
    assert abs(expected.mean() - recall.mean()) < 0.05
    assert np.corrcoef(expected, recall)[0, 1] > 0.6


def test_promises_are_made_of_documents_that_were_each_labelled_for_one_topic(tmp_path):
    rng = np.random.default_rng(0)
    words = {"wheat": "grain crop harvest", "oil": "barrel crude opec"}
    documents = []
    for i in range(200):
        topic, of_topic = rng.choice([*words], 2).tolist()
        text = " ".join(rng.choice([*words[of_topic].split(), "the", "market", "rose"], 8))
        documents.append(Document(str(i), {"body": text}, (topic,) * (topic == of_topic), labelled_for=(topic,)))
    settings = ["promise.precision=0.8", "promise.missed=0.2"]
    tagger = textcat.train(
        Corpus.from_documents("goods", documents), textcat.read_recipe("default").with_settings(settings)
    )
    recalls = load(save(tagger, tmp_path / "model")).expected_recalls(["crude barrel opec", "the market rose"])
    assert recalls[0] > 0.5
    assert np.isfinite(recalls).all()


def test_only_automatic_tags_are_given_where_these_are_asked_for(promising, newswire, newswire_model, tmp_path):
    folder = save(promising, tmp_path / "model")
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(json.dumps({"text": "\n".join(each.zones.values())}) + "\n" for each in newswire.test))
    settings = textcat.OutputSettings(automatic=True)
    summary = textcat.tag_archive(folder, documents, tmp_path / "out", output_settings=settings, jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    given = [tag for line in part.read_text().splitlines() for tag in json.loads(line)["topics"]]
    texts = ["\n".join(each.zones.values()) for each in newswire.test]
    automatic = [tag for tags in promising.tag(texts) for tag in tags if tag.status is Status.AUTOMATIC]
    assert [tag["topic"] for tag in given] == [tag.topic for tag in automatic]
    assert {tag["status"] for tag in given} == {"automatic"}
    assert summary.counts.topics.total() == len(given)
    for wanted in (settings, textcat.OutputSettings(expected_recall=True)):
        with pytest.raises(TextcatError, match="makes no promises: leave out --automatic"):
            textcat.tag_archive(newswire_model, documents, tmp_path / "none", output_settings=wanted, jobs=1)
    both = settings._replace(top=3)
    with pytest.raises(TextcatError, match="Ask for automatic tags"):
        textcat.tag_archive(folder, documents, tmp_path / "none", output_settings=both, jobs=1)


def test_outputs_of_models_without_promises_have_no_status(newswire_model, newswire, tmp_path):
    (tmp_path / "documents.jsonl").write_text(json.dumps(newswire.test[0].zones) + "\n")
    textcat.tag_archive(newswire_model, tmp_path / "documents.jsonl", tmp_path / "out", jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    assert "status" not in part.read_text()


def test_single_topics_can_promise_otherwise_than_all(newswire):
    topic = max(newswire.topics, key=lambda topic: sum(topic in document.topics for document in newswire.train))
    recipe = textcat.read_recipe("default").with_settings(
        ["promise.confidence=0.8", f"promise.precision_of={{ {topic} = 0.7 }}"]
    )
    promises = textcat.train(newswire, recipe).promises
    assert promises[topic].precision == 0.7
    assert all(promise.precision is None for name, promise in promises.items() if name != topic)


def test_small_topics_together_get_a_promise(newswire):
    settings = ["promise.precision=0.8", "promise.confidence=0.8"]
    alone = textcat.train(newswire, textcat.read_recipe("default").with_settings(settings)).promises
    settings.append("promise.small_topics=together")
    together = textcat.train(newswire, textcat.read_recipe("default").with_settings(settings)).promises
    small = [topic for topic, promise in alone.items() if promise.precision is None]
    assert small
    assert all(together[topic].together and together[topic].precision == 0.8 for topic in small)
    assert all(together[topic] == alone[topic] for topic in alone if topic not in small)


def test_each_document_has_one_topic_and_its_status():
    """Of documents that get exactly one topic, a promise is about those that get the topic."""
    rng = np.random.default_rng(0)
    words = {"wheat": "grain crop harvest", "oil": "barrel crude opec", "gold": "mine ounce bullion"}
    documents = [
        Document(str(i), {"body": " ".join(rng.choice([*words[topic].split(), "the", "market", "rose"], 8))}, (topic,))
        for i in range(300)
        for topic in [rng.choice([*words])]
    ]
    settings = ["tags.strategy=single", "promise.precision=0.9"]
    tagger = textcat.train(
        Corpus.from_documents("goods", documents), textcat.read_recipe("default").with_settings(settings)
    )
    tags = tagger.tag(["crude barrel opec", "the market rose", "ounce the market"])
    assert [len(of_document) for of_document in tags] == [1, 1, 1]
    assert all(tag.status in (Status.AUTOMATIC, Status.REVIEW) for (tag,) in tags)
    assert tags[0][0].status is Status.AUTOMATIC
    only = replace(tagger, decisions=replace(tagger.decisions, automatic_only=True))
    texts = ["crude barrel opec", "the market rose", "ounce the market"]
    assert only.tag(texts) == [[tag for tag in of_one if tag.status is Status.AUTOMATIC] for of_one in tags]


def test_a_promise_of_a_topic_may_name_it_with_other_code_points_that_look_the_same():
    shares = shares_by_topic(0.5, {"E\u0301conomie": 0.9}, ["tin", "\u00c9conomie"])
    assert shares.tolist() == [0.5, 0.9]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["promise.precision=0.9", "promise.confidence=0.999"], "No promise of 0.9 can be kept"),
        (["promise.precision=1"], "precision of 1.* cannot be promised: give one below 1"),
        (["promise.precision=0.9", "promise.confidence=0.3"], "confidence of 0.3: give one from 0.5"),
        (["promise.precision=0.9", "promise.small_topics=none"], "cannot be 'none'; give review or together"),
        (["promise.precision=0.9", "tags.strategy=zero"], "choose another, as 'probability'"),
        (["promise.recall=0.9", "tags.strategy=single"], "promise a precision only"),
        (["promise.precision=0.9", "topics.shortlist=20"], "set topics.shortlist = 0"),
        (["promise.precision_of={ wheet = 0.9 }"], "'wheet', which is no topic of the corpus. Did you mean 'wheat'"),
    ],
)
def test_what_cannot_be_promised_is_told_with_the_remedy(newswire, settings, message):
    with pytest.raises(TextcatError, match=message):
        textcat.train(newswire, textcat.read_recipe("default").with_settings(settings))


@every(
    "settings, message",
    [
        (["promise.precision=0.9"], "'(tin|oil|gold)' has enough documents, 100, but .* wrong too often.*documents.$"),
        (["promise.precision=0.99", "promise.recall=.99"], "takes at least 230 documents .* has 100.*small_topics"),
        (["promise.precision=0.99", "promise.small_topics=together"], "takes at least 230 documents.*documents.$"),
        (["promise.recall=0.99"], "takes at least 230 documents.*documents.$"),
        (
            ["promise.precision=0.99", "promise.precision_of={ oil = 0.9 }"],
            "promise of 0.9 .*'oil' has enough documents, 100, but .* wrong too often",
        ),
    ],
)
def test_without_any_promise_the_cause_is_told(settings, message):
    """Texts say nothing of their topic, and each topic has enough documents for a share of 0.9 but not for 0.99."""
    rng = np.random.default_rng(0)
    words = ["market", "price", "week", "rose", "fell", "dealer"]
    documents = [
        Document(str(i), {"body": " ".join(rng.choice(words, 8))}, (["tin", "oil", "gold"][i % 3],)) for i in range(300)
    ]
    recipe = textcat.read_recipe("default").with_settings(settings)
    with pytest.raises(TextcatError, match=message):
        textcat.train(Corpus.from_documents("noise", documents), recipe)


@every("settings", ["promise.precision=0.5", "promise.recall=0.5", "promise.missed=0.1"])
def test_nothing_is_promised_by_fewer_documents_than_there_are_folds(settings):
    records = [{"text": f"{topic}wood {topic}grove", "topics": topic} for topic in ("ash", "birch", "cedar", "elm")]
    with pytest.raises(TextcatError, match=r"too small for promises: it has 4 training documents, and at least 5 are"):
        textcat.train(records, textcat.read_recipe("paum").with_settings([settings]))


@pytest.mark.parametrize("name", ["paum", "few-documents"])
def test_with_few_documents_promises_change_no_probability(newswire, name):
    few = replace(newswire, train=newswire.train[:60], test=[])
    recipe = textcat.read_recipe(name).with_settings(["topics.choose_margins=false", "topics.forecast=false"])
    plain, promising = (textcat.train(few, recipe.with_settings(settings)) for settings in ([], ["promise.recall=0.5"]))
    texts = [document.zones["body"] for document in newswire.test]
    np.testing.assert_array_equal(promising.predict_proba(texts), plain.predict_proba(texts))


def test_scores_that_promises_are_made_by_are_of_rows_as_later_documents_have_them(newswire):
    """Terms that the other folds do not know have no part in a row's length."""
    recipe = textcat.read_recipe("default")
    counted = CountedCorpus(newswire, recipe)
    features = counted.fit(recipe.make_features())
    examples = counted.examples(features)
    learner = recipe.make_learner()
    learner.fit_packed(examples.rows, examples.labels)
    fold_of = assign_folds(counted.labels, 5, seed=0)
    found = promise_scores(examples, learner, fold_of, features)
    plain = held_out_scores(examples, learner, fold_of, own=1.0)
    X, names = examples.rows[: len(fold_of)].toarray(), features.listed_names()
    for i in range(0, len(fold_of), 37):
        others = (X[fold_of != fold_of[i]] > 0).sum(axis=0)
        least = [features.ngram_min_df if " " in name else features.min_df for name in names]
        length = np.linalg.norm(X[i, others >= least])
        expected = learner.intercept_ + (plain[i] - learner.intercept_) / length
        np.testing.assert_allclose(found[i], expected, rtol=1e-3, atol=1e-3)


def test_rules_change_nothing_in_what_is_measured(promising, newswire):
    topic = next(name for name, promise in promising.promises.items() if promise.precision is not None)
    ruled = promising.with_rules_of(f"never = [{topic!r}]")
    assert textcat.evaluate(ruled, newswire).promises == textcat.evaluate(promising, newswire).promises


def test_the_report_and_the_card_tell_of_promises(promising, newswire, newswire_tagger, tmp_path):
    options = {"folds": 0, "resamples": 0}
    textcat.write_report(tmp_path / "report.html", promising, newswire, **options)
    page = (tmp_path / "report.html").read_text()
    assert "Promises, and what test documents say of them" in page
    assert page.count(">precision 0.8<") == sum(promise.precision == 0.8 for promise in promising.promises.values())
    textcat.write_report(tmp_path / "plain.html", newswire_tagger, newswire, **options)
    assert "what test documents say" not in (tmp_path / "plain.html").read_text()
    assert "with a promised precision" in card_text(promising, None)
    assert "with a promised precision" not in card_text(newswire_tagger, None)
