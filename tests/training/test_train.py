"""Training keeps the scale of scores that thresholds were chosen on; evaluation by cross-validation."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from cases import every
from sklearn.exceptions import ConvergenceWarning

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.evaluation import MeasuredOn
from textcat.evaluation.metrics import average_precisions
from textcat.features.tokens import Tokens
from textcat.recipes.recipe import Recipe, default_recipe, recipes
from textcat.training.checks import TrainingOptions, unevaluated_topics
from textcat.training.steps import train_and_evaluate

PLAIN = Recipe("plain")
DESCRIBED = Recipe("described", topics={"description_copies": 1})


@pytest.fixture(scope="module")
def corpus():
    whole = textcat.open_corpus("newswire")
    return Corpus.from_documents("untested", whole.train[:300])


def test_many_topics_are_measured_by_the_first_of_each_document_in_blocks_of_scores(corpus, monkeypatch):
    from textcat.evaluation.at_k import KS, evaluate_at_k
    from textcat.model.measure import relevant_topics

    # Topics of the test documents that training has not seen are relevant, too.
    seen = tuple(sorted({topic for document in corpus.train[:100] for topic in document.topics}))
    tested = Corpus("tested", corpus.train[:100], corpus.train[100:], seen)
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", len(tested.topics))
    whole = train_and_evaluate(tested, PLAIN)
    unknown = [len(set(document.topics) - set(tested.topics)) for document in tested.test]
    assert sum(unknown) > 0
    top = np.argsort(-whole.scores(tested.test), axis=1, kind="stable")[:, : max(KS)]
    known = whole.topics, whole.facts.train_sizes, whole.facts.train_documents
    assert whole.evaluation == evaluate_at_k(top, relevant_topics(whole, tested), *known, n_unknown=unknown)
    monkeypatch.setattr("textcat.model.measure.CELLS_AT_ONCE", 7 * len(tested.topics))
    assert textcat.evaluate(whole, tested) == whole.evaluation
    assert train_and_evaluate(tested, PLAIN).evaluation == whole.evaluation


def test_many_topics_without_test_documents_are_measured_by_cross_validation(corpus, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 5)
    tagger = train_and_evaluate(corpus, PLAIN)
    assert tagger.evaluation.measured_on is MeasuredOn.CROSS_VALIDATION
    assert 0.4 < tagger.evaluation.overall["precision@1"] < 1
    assert textcat.evaluate(tagger, corpus, bands=["ALL", "1-5", "6-20", "21-100", "101-"]) is tagger.evaluation
    with pytest.raises(TextcatError, match="was kept of ALL, 1-5"):
        textcat.evaluate(tagger, corpus, bands="ALL")


@pytest.mark.parametrize("recipe", [PLAIN, DESCRIBED], ids=lambda recipe: recipe.name)
def test_every_document_is_scored_by_a_tagger_trained_on_the_other_folds(corpus, recipe):
    labels = corpus.labels(corpus.train)
    of, scores = assign_folds(labels, 5, 0), np.empty(labels.shape)
    for fold in range(5):
        part = replace(corpus, train=[d for d, f in zip(corpus.train, of, strict=True) if f != fold])
        held_out = [d for d, f in zip(corpus.train, of, strict=True) if f == fold]
        scores[of == fold] = textcat.train(part, recipe).scores(held_out)
    evaluation = train_and_evaluate(corpus, recipe).evaluation
    expected = average_precisions(labels, scores)
    sizes = np.asarray(labels.sum(axis=0)).ravel()
    assert evaluation.test_documents == len(corpus.train)
    for topic, size, quality in zip(evaluation.topics, sizes, expected, strict=True):
        if size == 1 and recipe is PLAIN:
            assert topic.average_precision is None
        else:
            assert topic.average_precision == pytest.approx(quality, abs=1e-6)


def test_without_a_recipe_the_corpus_decides(corpus):
    few_texts = replace(corpus, train=corpus.train[:120])
    chosen = textcat.train(few_texts).facts
    assert chosen.choices["margins"]["held_out"] > 0
    learner = {name: chosen.recipe.learner[name] for name in ("kappa", "scale", "lambda_")}
    vectors = chosen.recipe.topics.vectors, chosen.recipe.topics.vector_weight
    fixed = [
        f"topics.vectors={vectors[0]}",
        f"topics.vector_weight={vectors[1]}",
        "features.chars=4",
        "features.char_min=2",
        "features.char_weight=0.35",
    ]
    few = textcat.read_recipe("few-documents")
    assert chosen.recipe == few.changed(**learner).with_settings(fixed).complete()
    words = [
        ("Who is he?", "person"),
        ("Who was she?", "person"),
        ("Where is it?", "place"),
        ("Where was it?", "place"),
    ]
    short = Corpus.from_records({"text": text, "topics": [topic]} for text, topic in words)
    fixed = ["topics.choose_margins=false", "topics.choose_vectors=false"]
    fixed += ["features.chars=4", "features.char_min=2", "features.char_weight=0.35"]
    assert textcat.train(short).facts.recipe == textcat.read_recipe("few-short-texts").with_settings(fixed).complete()


def test_a_recipe_and_a_corpus_may_be_given_by_name_or_path(corpus, tmp_path):
    expected = textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("paum")).scorer.weights
    (tmp_path / "mine.toml").write_text(recipes()["paum"].read_text())
    for recipe in ("paum", tmp_path / "mine.toml", str(tmp_path / "mine.toml")):
        np.testing.assert_array_equal(textcat.train("newswire", recipe).scorer.weights, expected)
    with pytest.raises(TextcatError, match=r"No recipe 'puam'.* Did you mean 'paum'"):
        textcat.train(corpus, "puam")
    with pytest.raises(TextcatError, match=r"{'learner': 'paum'} is no recipe: give the name or the path"):
        textcat.train(corpus, {"learner": "paum"})
    with pytest.raises(TextcatError, match=r"None is no list of records: give a list of dicts"):
        textcat.train(None)
    table = tmp_path / "news.csv"
    table.write_text("headline,story,section\nWheat up,Wheat rose.,grain;wheat\nGold down,Gold fell.,metal\n")
    columns = {"text": ("headline", "story"), "topics": "section", "topics_separator": ";"}
    assert textcat.train(table, "paum", **columns).topics == ("grain", "metal", "wheat")
    with pytest.raises(TextcatError, match=r"has no column 'grain' \(only headline, story, section\)"):
        textcat.train(table, "paum", topics=["grain"])


def test_one_job_and_many_give_the_same(corpus):
    one, many = (train_and_evaluate(corpus, PLAIN, TrainingOptions(n_jobs)).evaluation for n_jobs in (1, 3))
    assert one == many


def test_bands_are_those_asked_for(corpus):
    evaluation = train_and_evaluate(corpus, PLAIN, bands=["TOP5"]).evaluation
    assert [band.band for band in evaluation.bands] == ["TOP5"]


def test_the_terms_of_a_document_are_counted_once(corpus, monkeypatch):
    texts, count_terms = [], Tokens.count_terms

    def counting(tokens, new, **options):
        texts.extend(new := list(new))
        return count_terms(tokens, new, **options)

    monkeypatch.setattr(Tokens, "count_terms", counting)
    train_and_evaluate(corpus, PLAIN)
    assert len(texts) == sum(len(document.zones) for document in corpus.train)


@pytest.mark.parametrize("n_test", [0, 50])
def test_texts_that_are_not_kept_change_nothing(corpus, n_test):
    def of(texts_kept):
        copies = [replace(d, zones=dict(d.zones)) for d in corpus.train]
        own = replace(corpus, train=copies[n_test:], test=copies[:n_test])
        return train_and_evaluate(own, DESCRIBED, keep_texts=texts_kept), own

    (kept, whole), (dropped, emptied) = of(texts_kept=True), of(texts_kept=False)
    np.testing.assert_array_equal(dropped.scorer.weights, kept.scorer.weights)
    np.testing.assert_array_equal(dropped.evaluation.scored.scores, kept.evaluation.scored.scores)
    assert whole.train == corpus.train[n_test:]
    assert not any(document.zones for document in emptied.train)
    assert emptied.test == whole.test


@pytest.mark.parametrize("texts", [["rain"], ["rain", "rain"], ["rain", "sun", ""]])
def test_few_documents_are_measured_as_far_as_they_can_be(texts):
    documents = [Document(str(k), {"body": text}, (f"about {text}",)) for k, text in enumerate(texts)]
    few = Corpus.from_documents("few", [*documents, Document("other", {"body": "wind"})])
    for recipe in (PLAIN, DESCRIBED):
        assert train_and_evaluate(few, recipe).evaluation.test_documents == len(few.train)
    alone = Corpus.from_documents("alone", [Document("1", {"body": "rain sun"}, ("weather",))])
    assert train_and_evaluate(alone, PLAIN).evaluation.topics[0].average_precision is None


@pytest.mark.parametrize("learner", ["micra", "romma", "paum"])
def test_thresholds_of_folds_suit_the_model_whatever_the_length_of_its_weights(corpus, learner):
    recipe = textcat.Recipe("free", tags={"strategy": "probability"}).changed(learner, max_epochs=30)
    if learner == "micra":
        recipe = recipe.changed(eta=50.0, beta=0.3, epsilon=0.05, zeta=0.9, mini_epochs=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = textcat.train(corpus, recipe)
    [of_all] = textcat.evaluate(tagger, replace(corpus, test=textcat.open_corpus("newswire").test), bands="TOP10").bands
    assert of_all["macro_f1"] > 0.6


def test_the_scale_of_scores_is_that_of_the_solver_where_margins_have_a_size(corpus):
    recipe = Recipe("paum", learner={"name": "paum"})
    learner = recipe.make_learner()
    learner.fit(recipe.make_features().fit_transform(corpus.train), corpus.labels(corpus.train))
    tagger = textcat.train(corpus, recipe)
    np.testing.assert_array_equal(tagger.scorer.weights, learner.coef_.T)
    np.testing.assert_array_equal(tagger.scorer.bias, learner.intercept_)


def test_the_defaults_of_cramma_converge(corpus):
    stopped = textcat.train(corpus, PLAIN.changed("cramma")).facts.per_topic["stopped"]
    assert len(stopped) == len(corpus.topics)
    assert all(why.startswith("converged") for why in stopped)


def weather(*train, test=()):
    """A corpus of one document per topic of each part."""
    documents = [Document(f"train {t}", {"body": f"about {t}"}, (t,)) for t in train]
    return documents + [Document(f"test {t}", {"body": f"about {t}"}, (t,) if t else (), split="test") for t in test]


def test_topics_that_no_test_document_has_are_named():
    topics = [f"t{k}" for k in range(8)]
    corpus = Corpus.from_documents("c", weather(*topics, test=["t0"]), "train")
    assert unevaluated_topics(corpus) == (
        "7 topics of the training part have no test document, and are trained but not evaluated: "
        "t1, t2, t3, t4, t5 and 2 more."
    )
    corpus = Corpus.from_documents("c", weather("sun", "rain", test=["rain"]), "both")
    assert unevaluated_topics(corpus) == (
        "1 topic of the training part has no test document, and is neither trained nor evaluated: sun."
    )
    corpus = Corpus.from_documents("c", weather("sun", "rain", test=["rain", "hail"]), "train")
    assert unevaluated_topics(corpus) == (
        "1 topic of the training part has no test document, and is trained but not evaluated: sun.\n"
        "1 topic of the test part has no training document, and counts in no average: hail."
    )
    assert unevaluated_topics(Corpus.from_documents("c", weather("sun", test=["sun"]), "train")) == ""
    assert unevaluated_topics(Corpus.from_documents("c", weather("sun"), "train")) == ""


@pytest.mark.parametrize(("test", "theirs"), [(["snow"], "other ones, such as 'snow'"), ([""], "no topics at all")])
def test_a_test_part_that_shares_no_topic_is_told_as_what_it_is(test, theirs):
    apart = weather("sun", "rain", test=test)
    with pytest.raises(
        TextcatError, match=r"No topic of corpus c has documents in both parts \(in .* 'rain'\): look at"
    ):
        textcat.train(Corpus.from_documents("c", apart, "both"), PLAIN)
    corpus = Corpus.from_documents("c", apart, "train")
    tagger = train_and_evaluate(corpus, DESCRIBED)
    assert tagger.evaluation.measured_on is MeasuredOn.CROSS_VALIDATION
    with pytest.raises(
        TextcatError, match=f"No test document of corpus c has a topic of the model .*: they have {theirs}"
    ):
        textcat.evaluate(tagger, corpus)


def test_one_topic_a_document_is_that_of_the_highest_probability(corpus):
    recipe = replace(PLAIN, tags={"strategy": "single", "folds": 3})
    tagger = textcat.train(corpus, recipe)
    texts = [*corpus.train[:50], "", "rain"]
    scores = tagger.scores(texts)
    probabilities = tagger.decisions.calibration.probabilities(scores)
    expected = [tagger.topics[j] for j in probabilities.argmax(axis=1)]
    assert [[tag.topic for tag in tags] for tags in tagger.tag(texts)] == [[topic] for topic in expected]
    assert [tags[0].topic for tags in tagger.select(scores, top=2)] == expected
    assert list(tagger.tag_stream(texts, batch=7)) == tagger.tag(texts)
    assert tagger.decisions.decide(scores).sum(axis=1).tolist() == [1] * len(texts)
    few = Corpus.from_documents("few", weather("sun", "rain"))  # too few for folds: the highest score
    assert [tag.topic for tag in textcat.train(few, recipe).tag(["about rain"])[0]] == ["rain"]


UNSPACED = {
    "zh": ["今天北京的天气非常晴朗", "明天上海有大雨和大风", "股票市场今天大幅上涨", "银行提高了贷款的利率"],
    "ja": [
        "今日の東京の天気は晴れです",
        "明日の大阪は雨が降ります",
        "株式市場は大きく上昇しました",
        "銀行は金利を引き上げました",
    ],
    "th": ["วันนี้อากาศในกรุงเทพดีมาก", "พรุ่งนี้จะมีฝนตกหนัก", "ตลาดหุ้นวันนี้ปรับตัวขึ้น", "ธนาคารขึ้นอัตราดอกเบี้ย"],
}


@every("lang", UNSPACED)
def test_a_language_without_spaces_is_warned_of_if_it_is_left_to_a_language_with_spaces(lang):
    topics = [("weather",), ("weather",), ("money",), ("money",)]
    documents = [
        Document(str(k), {"body": text}, topic)
        for k, (text, topic) in enumerate(zip(UNSPACED[lang], topics, strict=True))
    ]
    corpus, recipe = Corpus.from_documents("unspaced", documents), PLAIN.with_settings(["tokens.alphabetic=false"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger = textcat.train(corpus, recipe)
    assert max(map(len, tagger.features.get_feature_names_out())) == 3
    recipe = recipe.with_settings(["tokens.segmenter=spacy"])
    with pytest.warns(UserWarning, match=rf"characters .* in runs without spaces.* segmenter = .* lang = '{lang}'"):
        tagger = textcat.train(corpus, recipe)
    assert max(map(len, tagger.features.get_feature_names_out())) > 5, "whole sentences are terms"
    if lang == "zh":  # the others need packages beside spaCy
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tagger = textcat.train(corpus, recipe.with_settings(["tokens.lang=zh"]))
        assert max(map(len, tagger.features.get_feature_names_out())) == 1


def test_a_language_with_spaces_is_not_warned_of(corpus):
    quoting = replace(corpus, train=[*corpus.train[:50], Document("q", {"body": UNSPACED["zh"][0]}, ("rain",))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        textcat.train(quoting, PLAIN)


def test_a_band_that_cannot_be_understood_is_refused_before_training(corpus):
    stages = Stages()
    with pytest.raises(TextcatError, match="No band 'FIRST3'"):
        train_and_evaluate(corpus, PLAIN, bands=["FIRST3"], stages=stages)
    assert stages.seconds == {}


@pytest.mark.parametrize(
    "sections",
    [
        {"features": {"dtype": "x"}},
        {"features": {"zones": {"title": 1e-300, "body": 1e-300}}},
        {"features": {"k1": 1e300, "weighting": "bm25"}},
        {"learner": {"eta": 1e300}},
    ],
    ids=json.dumps,
)
@pytest.mark.filterwarnings("ignore")
def test_a_recipe_that_cannot_be_followed_is_told_by_its_name(corpus, sections):
    with pytest.raises(TextcatError, match=r"Recipe mine|dtype is 'x'"):
        textcat.train(corpus, textcat.Recipe("mine", **sections))


@pytest.mark.parametrize("error", [ValueError, TypeError])
@pytest.mark.parametrize(
    "step", ["margin.learners.PAUM.fit_packed", "training.steps.held_out_scores", "training.steps._scorer"]
)
def test_a_bug_in_training_is_not_taken_for_a_recipe_that_cannot_be_followed(corpus, step, error, monkeypatch):
    def fail(*_, **__):
        raise error("a bug")

    monkeypatch.setattr(f"textcat.{step}", fail)
    with pytest.raises(error, match=r"^a bug$"):
        textcat.train(corpus, textcat.read_recipe("paum"))


def test_the_default_recipe_with_other_settings_gives_way_to_the_one_for_many_topics(monkeypatch):
    monkeypatch.setattr("textcat.recipes.recipe.MANY_TOPICS", 50)
    changed = default_recipe().with_settings(["features.chars=3", "topics.shortlist=20"])
    tagger = textcat.train(textcat.open_corpus("newswire"), changed)
    asked_for = textcat.read_recipe("many-topics").with_settings(["features.chars=3", "topics.shortlist=20"])
    assert tagger.facts.recipe == asked_for.complete()
    assert tagger.scorer.shortlist.size == 20
