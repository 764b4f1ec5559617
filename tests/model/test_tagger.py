"""The trained thing: its scores are sums of terms, its tags are what scores above the threshold."""

import itertools
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import naive_features
import numpy as np
import pytest
from cases import every
from scipy import sparse

import textcat
from textcat.base.errors import TextcatError
from textcat.evaluation.thresholds import STRATEGIES
from textcat.model import Reason
from textcat.model import tagger as module
from textcat.model.dense import product

TEXTS = ["wheat harvest and grain exports", "", "gold and silver fixing, gold mine", "qqqq"]


def test_scores_are_those_of_the_learner_on_the_rows(corpus, tagger):
    recipe = textcat.read_recipe("paum")
    features, learner = recipe.make_features(), recipe.make_learner()
    learner.fit(features.fit_transform(corpus.train), corpus.labels(corpus.train))
    expected = learner.decision_function(features.transform(corpus.test))
    np.testing.assert_allclose(tagger.scores(corpus.test), expected, rtol=1e-5, atol=1e-5)
    assert tagger.scores(corpus.test).dtype == np.float32


@every("n_topics", [1, 7, 16, 90, 103])
def test_the_product_is_that_of_plain_python_to_the_bit(n_topics):
    rng = np.random.default_rng(n_topics)
    X = rng.normal(size=(6, 40)).astype(np.float32) * (rng.random((6, 40)) < 0.3)
    X[2] = 0
    X = sparse.csr_matrix(X)
    W, b = rng.normal(size=(40, n_topics)).astype(np.float32), rng.normal(size=n_topics).astype(np.float32)
    found = product(X.indptr.astype(np.int64), X.indices, X.data, W, b)
    np.testing.assert_array_equal(found, naive_features.product(X, W, b))
    np.testing.assert_array_equal(found, X @ W + b)


def test_weights_of_another_type_are_multiplied_in_it(tagger):
    double = textcat.Tagger(
        **{**vars(tagger), "scorer": replace(tagger.scorer, weights=tagger.scorer.weights.astype(np.float64))}
    )
    assert double.scores(TEXTS).dtype == np.float64
    np.testing.assert_allclose(double.scores(TEXTS), tagger.scores(TEXTS), rtol=1e-4, atol=1e-4)


def test_a_document_without_a_known_term_scores_the_bias(tagger):
    np.testing.assert_array_equal(tagger.scores(["", "qqqq"]), [tagger.scorer.bias, tagger.scorer.bias])
    assert tagger.scores([]).shape == (0, len(tagger.topics))


def test_tags_are_the_topics_above_their_threshold_the_best_first(tagger):
    scores = tagger.scores(TEXTS)
    for row, tags in zip(scores, tagger.tag(TEXTS), strict=True):
        rows = zip(tagger.topics, row.tolist(), tagger.decisions.thresholds.tolist(), strict=True)
        above = {topic: score for topic, score, threshold in rows if score > threshold}
        assert {tag.topic: tag.score for tag in tags} == above
        assert all(0.25 <= tag.probability + 1e-6 <= 1 + 1e-6 for tag in tags)
        assert [tag.score for tag in tags] == sorted(above.values(), reverse=True)


def test_tags_do_not_depend_on_how_many_documents_go_together(corpus, tagger, monkeypatch):
    whole = tagger.tag(corpus.test)
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 7)
    assert tagger.tag(iter(corpus.test)) == whole


def test_every_topic_can_be_asked_for_or_the_highest_ones(tagger):
    scores = tagger.scores(TEXTS)
    every, above = tagger.select(scores, all_topics=True), tagger.select(scores)
    for row, tags, some in zip(scores, every, above, strict=True):
        assert [tag.topic for tag in tags] == [tagger.topics[j] for j in np.argsort(-row, kind="stable")]
        assert [tag.score for tag in tags] == sorted(row.tolist(), reverse=True)
        assert all(0 <= tag.probability <= 1 for tag in tags)
        assert some == [tag for tag in tags if tag.score > tagger.decisions.thresholds[tagger.topics.index(tag.topic)]]
    for k in (1, 3, len(tagger.topics), 10_000):
        assert tagger.select(scores, top=k) == [tags[:k] for tags in every]


def test_of_equal_scores_the_first_topic_comes_first(tagger):
    scores = np.zeros((2, len(tagger.topics)), np.float32)
    scores[1, 5] = 1
    assert [tag.topic for tag in tagger.select(scores, top=2)[0]] == list(tagger.topics[:2])
    assert [tag.topic for tag in tagger.select(scores, top=2)[1]] == [tagger.topics[5], tagger.topics[0]]


def test_a_number_of_tags_that_makes_no_sense_is_told_of(tagger):
    scores = tagger.scores(TEXTS)
    with pytest.raises(TextcatError, match=r"The 0 highest topics cannot be given"):
        tagger.select(scores, top=0)
    with pytest.raises(TextcatError, match=r"Every topic and the 2 highest"):
        tagger.select(scores, top=2, all_topics=True)


@pytest.mark.parametrize("batch", [1, 7, 100, 100_000])
def test_a_stream_of_documents_gets_the_same_tags(corpus, tagger, batch):
    assert list(tagger.tag_stream(iter(corpus.test), batch=batch)) == tagger.tag(corpus.test)
    assert list(tagger.tag_stream([], batch=batch)) == []


def test_a_stream_is_read_no_further_than_a_batch_ahead(tagger):
    read = []
    endless = (read.append(i) or f"wheat {i}" for i in itertools.count())
    stream = tagger.tag_stream(endless, batch=10)
    assert read == []
    for i in range(25):
        assert next(stream) == tagger.tag([f"wheat {i}"])[0]
        assert len(read) == 10 * (i // 10 + 1)


def test_a_stream_takes_the_same_memory_however_long_it_is(tagger):
    def grown(n):
        stream = tagger.tag_stream(f"wheat word{i} and {'x' * 1000}" for i in range(n))
        tracemalloc.start()
        for _ in stream:
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    grown(2_000)
    assert grown(8_000) < 1.2 * grown(2_000)


def test_what_is_no_stream_of_documents_is_told_of(tagger):
    for ask in (tagger.tag, tagger.tag_stream):
        with pytest.raises(TextcatError, match=r"A single text is no stream of documents"):
            ask("wheat")
        with pytest.raises(TextcatError, match=r"None is no stream of documents: give a list of texts"):
            ask(None)
    with pytest.raises(TextcatError, match=r"documents in a batch cannot be 0"):
        tagger.tag_stream(["wheat"], batch=0)


def test_an_unknown_table_or_a_single_record_is_no_stream_of_documents(tagger):
    class Table:
        columns = ("text",)

        def __iter__(self):
            return iter(self.columns)

    for ask in (tagger.tag, tagger.tag_stream, tagger.scores):
        with pytest.raises(
            TextcatError, match=r"A Table is no stream of documents: give a DataFrame of pandas or polars"
        ):
            ask(Table())
        for record in ({"text": "wheat"}, textcat.Document("1", {"body": "wheat"})):
            with pytest.raises(
                TextcatError, match=r"A single record is no stream of documents: give a list of records"
            ):
                ask(record)


@pytest.mark.parametrize("wrong", [3, None, float("nan"), ["wheat"]])
def test_what_is_no_document_is_told_by_its_number_from_1(tagger, wrong):
    for documents in ([wrong], ["wheat"] * 5000 + [wrong]):
        for ask in (tagger.scores, tagger.tag):
            with pytest.raises(
                TextcatError, match=rf"^Document {len(documents)} is .*: give a text, a dict or a Docum"
            ):
                ask(documents)


def test_records_are_tagged_as_their_texts(tagger):
    zones = [{"title": "wheat exports", "body": text} for text in TEXTS]
    documents = [textcat.Document(str(i), texts) for i, texts in enumerate(zones)]
    expected = tagger.tag(documents)
    assert tagger.tag(zones) == tagger.tag([{"zones": texts, "topics": 2.5} for texts in zones]) == expected
    renamed = [{"title": "wheat exports", "abstract": text} for text in TEXTS]
    assert tagger.tag(renamed, text=["title", "abstract"]) == expected
    assert list(tagger.tag_stream(renamed, text=["abstract", "title"])) == expected
    np.testing.assert_array_equal(tagger.scores(renamed, text=["title", "abstract"]), tagger.scores(documents))
    assert tagger.tag(renamed, text="abstract") == tagger.tag([*TEXTS])
    assert tagger.explain(zones[0], "wheat") == tagger.explain(documents[0], "wheat")
    assert tagger.tag([{"text": text} for text in TEXTS]) == tagger.tag(TEXTS)
    with pytest.raises(TextcatError, match=r"Record 2 has no text in 'body': .* content"):
        tagger.tag([{"text": "wheat"}, {"content": "gold"}])


@pytest.mark.parametrize("strategy", ["probability", "single"])
def test_predictions_are_the_tags_as_0_and_1(corpus, strategy):
    recipe = textcat.read_recipe("paum").with_settings([f"tags.strategy={strategy}"])
    tagger = textcat.train(corpus, recipe)
    predicted = tagger.predict(corpus.test)
    assert {*predicted.ravel().tolist()} == {0, 1}
    for row, tags in zip(predicted, tagger.tag(corpus.test), strict=True):
        assert {tagger.topics[column] for column in np.flatnonzero(row)} == {tag.topic for tag in tags}
    if strategy == "single":
        assert (predicted.sum(axis=1) == 1).all()
    assert tagger.predict([]).shape == (0, len(tagger.topics))


def test_a_document_that_gets_one_topic_gets_none_below_the_probability_asked_for(corpus):
    tagger = textcat.train(corpus, "paum", single=True)
    texts = [*corpus.test, "nothing known"]
    tagged, likely = tagger.tag(texts), tagger.tag(texts, min_probability=0.6)
    assert likely == [[tag for tag in tags if tag.probability >= 0.6] for tags in tagged]
    assert {len(tags) for tags in likely[:-1]} == {0, 1}
    assert (likely[-1], likely.reasons[-1]) == ([], Reason.NO_KNOWN_TERM)
    decisions = tagger.decisions.with_min_probability(0.6)
    scores, has_terms = tagger.scored(texts)
    assert decisions.decide(scores, has_terms).sum(axis=1).tolist() == [*map(len, likely)]


def test_probabilities_are_those_of_the_tags(tagger):
    probabilities = tagger.predict_proba(TEXTS)
    assert probabilities.shape == (len(TEXTS), len(tagger.topics))
    for row, tags in zip(probabilities, tagger.select(tagger.scores(TEXTS), all_topics=True), strict=True):
        for tag in tags:
            assert tag.probability == pytest.approx(row[tagger.topics.index(tag.topic)])
    without = with_decisions(tagger, calibration=None)
    with pytest.raises(TextcatError, match="The model has no probabilities"):
        without.predict_proba(TEXTS)


def test_the_cause_is_told_if_there_are_no_probabilities():
    few = textcat.train([{"text": "wheat", "topics": "grain"}, {"text": "gold", "topics": "metal"}], "paum")
    for tagger, cause in (
        (few, "as it was trained on too few labelled documents: train it on more"),
        (with_decisions(few, strategy="zero"), "as its recipe has the strategy 'zero'"),
    ):
        with pytest.raises(TextcatError, match=f"The model has no probabilities, {cause}"):
            tagger.predict_proba(["wheat"])


def test_a_tagger_is_printed_in_one_line_and_shown_as_a_table(tagger):
    assert repr(tagger).startswith("Tagger(50 topics, ")
    assert repr(tagger).endswith("trained on 721 documents of 'newswire' by paum)")
    odd = replace(tagger, facts=replace(tagger.facts, corpus="<own>"), topics=("<i>", *tagger.topics[1:]))
    shown = odd._repr_html_()
    assert "&lt;own&gt;" in shown
    assert "<own>" not in shown
    assert "<i>" not in shown
    assert "and 30 smaller topics" in shown


def test_tagging_needs_no_library_that_is_slow_to_import(tagger, tmp_path):
    model = textcat.save(tagger, tmp_path / "model")
    program = (
        "import sys, textcat; tags = textcat.load(sys.argv[1]).tag(['wheat exports']); "
        "print(tags[0][0].topic, {'sklearn', 'scipy.sparse', 'pandas', 'joblib', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, model], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tagger.tag(['wheat exports'])[0][0].topic} set()\n"


def test_a_raised_threshold_takes_tags_away(tagger):
    strict = with_decisions(tagger, thresholds=np.full(len(tagger.topics), 10, np.float32))
    for some, all_ in zip(strict.tag(TEXTS), tagger.tag(TEXTS), strict=True):
        assert some == [tag for tag in all_ if tag.score > 10]


def test_contributions_and_the_bias_add_up_to_the_score(corpus, tagger):
    for document in corpus.test[:20]:
        scores = tagger.scores([document])[0]
        for topic in ("grain", "results"):
            column = tagger.topics.index(topic)
            reasons = tagger.explain(document, topic, n=10_000)
            total = sum(reason.contribution for reason in reasons) + tagger.scorer.bias[column]
            assert total == pytest.approx(scores[column], abs=1e-3)
            for reason in reasons:
                assert reason.contribution == pytest.approx(reason.value * reason.weight, rel=1e-5, abs=1e-9)
            assert [abs(r.contribution) for r in reasons] == sorted(
                (abs(r.contribution) for r in reasons), reverse=True
            )
            assert tagger.explain(document, topic, n=3).reasons == reasons[:3]


def test_terms_are_those_of_largest_weight(tagger):
    terms = tagger.terms("wheat", 5)
    weights = tagger.scorer.weights[:, tagger.topics.index("wheat")]
    assert terms[0][0] == "wheat"
    assert [weight for _, weight in terms] == sorted(weights.tolist(), reverse=True)[:5]


def test_an_unknown_topic_is_told_of(tagger):
    for ask in (lambda: tagger.terms("weather"), lambda: tagger.explain("rain", "weather")):
        with pytest.raises(TextcatError, match=r"no topic 'weather'"):
            ask()


def test_what_cannot_be_learnt_from_is_told_of(corpus):
    recipe = textcat.read_recipe("paum")
    bare = [textcat.Document("1", {"body": "rain"})]
    with pytest.raises(TextcatError, match=r"Corpus bare has no topic"):
        textcat.train(textcat.Corpus.from_documents("bare", bare), recipe)
    silent = [textcat.Document("1", {"body": ""}, ("weather",))]
    with pytest.raises(TextcatError, match=r"None of the 1 training documents has a word"):
        textcat.train(textcat.Corpus.from_documents("silent", silent), recipe)
    with pytest.raises(TextcatError, match=r"has no test documents to evaluate on"):
        textcat.evaluate(textcat.train(corpus, recipe), textcat.Corpus("newswire", corpus.train, [], corpus.topics))


def test_a_topic_that_every_document_has_can_be_trained():
    documents = [
        textcat.Document(str(k), {"body": f"rain {word}"}, ("weather",))
        for k, word in enumerate(["fog", "fog", "sun", "sun"])
    ]
    tagger = textcat.train(textcat.Corpus.from_documents("rainy", documents), textcat.Recipe("plain"))
    assert [tag.topic for tag in tagger.tag(["rain fog"])[0]] == ["weather"]


def test_stages_are_timed_in_the_order_they_ran(corpus):
    from textcat.base.progress import Stages

    stages = Stages()
    textcat.evaluate(textcat.train(corpus, textcat.read_recipe("paum"), stages=stages), corpus, stages=stages)
    assert list(stages.seconds) == ["tokens to rows", "train topics", "thresholds", "evaluate"]


@pytest.mark.parametrize("thresholds", [0.5, [0.5], [[0.0, 0.0]], ["a", "b"], [0.0, np.nan], None, [True, False]])
def test_thresholds_that_cannot_be_are_refused_where_they_are_set(tmp_path, two_topics, thresholds):
    with pytest.raises(TextcatError, match="threshold"):
        with_decisions(two_topics, thresholds=thresholds)
    changed = with_decisions(two_topics, thresholds=np.array([0.5, np.inf]))
    textcat.save(changed, tmp_path / "model")
    np.testing.assert_array_equal(textcat.load(tmp_path / "model").decisions.thresholds, [0.5, np.inf])
    changed.decisions.thresholds[1] = np.nan
    with pytest.raises(TextcatError, match="The threshold of 'metal' is NaN"):
        textcat.save(changed, tmp_path / "model")
    np.testing.assert_array_equal(textcat.load(tmp_path / "model").decisions.thresholds, [0.5, np.inf])


def test_a_tagger_whose_thresholds_are_set_past_its_decisions_is_refused(two_topics):
    with pytest.raises(AttributeError):
        two_topics.thresholds = np.ones(2)
    with pytest.raises(AttributeError):
        two_topics.decisions.thresholds = np.ones(2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_that_is_set_stays_with_the_model(tmp_path, two_topics, strategy):
    changed = with_decisions(two_topics, strategy=strategy)
    texts = ["corn", "gold", "corn and gold", "", "nothing known"]
    again = textcat.load(textcat.save(changed, tmp_path / "model"))
    assert again.decisions.strategy == strategy
    assert again.tag(texts) == changed.tag(texts)
    assert again.decisions.single == (strategy == "single")
    if again.decisions.single:
        assert [len(tags) for tags in again.tag(texts)] == [1] * len(texts)
    else:
        assert again.tag(texts) == two_topics.tag(texts)


def test_a_strategy_that_there_is_not_is_not_saved(tmp_path, two_topics):
    with pytest.raises(TextcatError, match="No strategy 'singel' in"):
        textcat.save(with_decisions(two_topics, strategy="singel"), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def with_decisions(tagger, **changes):
    return replace(tagger, decisions=replace(tagger.decisions, **changes))


@pytest.mark.parametrize("probability", [50, 1.5, -0.1, float("nan"), float("inf"), "0.5"])
def test_what_is_no_probability_is_refused(two_topics, probability):
    for ask in (
        lambda: two_topics.tag(["corn"], min_probability=probability),
        lambda: two_topics.decisions.with_min_probability(probability),
        lambda: two_topics.select(np.zeros((1, 2), np.float32), min_probability=probability),
        lambda: two_topics.decisions.calibration.threshold(probability),
    ):
        with pytest.raises(TextcatError, match="is not a probability: give one from 0 to 1"):
            ask()


def test_a_probability_of_0_is_one_and_0_topics_are_refused(two_topics):
    assert [len(tags) for tags in two_topics.tag(["corn", "gold"], min_probability=0)] == [2, 2]
    assert two_topics.tag(["corn"], min_probability=1) == [[]]
    for top in (0, -1, 2.5, float("nan")):
        with pytest.raises(TextcatError, match="highest topics cannot be given: ask for 1 or more"):
            two_topics.tag(["corn"], top=top)


@pytest.fixture(scope="module")
def two_topics():
    rows = [
        {"text": f"{text} {k}", "topics": topic}
        for k in range(5)
        for text, topic in (("corn", "grain"), ("gold", "metal"))
    ]
    return textcat.train(rows, textcat.read_recipe("paum").with_settings("tags.strategy=probability"))


@pytest.mark.parametrize("number", [-1, 2.5, float("nan"), float("inf"), True, "3"])
def test_what_is_no_number_of_terms_or_documents_is_refused(two_topics, number):
    for ask in (
        lambda: two_topics.terms("grain", n=number),
        lambda: two_topics.explain("corn", "grain", n=number),
        lambda: two_topics.tag_stream(["corn"], batch=number),
    ):
        with pytest.raises(TextcatError, match=r"The number of .* cannot be .*: give a whole number, [01] or more"):
            ask()


def test_no_jobs_are_refused():
    with pytest.raises(TextcatError, match="The number of jobs cannot be 0"):
        textcat.train([{"text": "corn", "topics": "grain"}, {"text": "gold", "topics": "metal"}], "paum", n_jobs=0)
