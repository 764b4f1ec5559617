"""Documents that repeat each other are held out together, and count once: a label given by chance is not foreseen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from learning import bytes_of, check_same, train_from_the_start

import textcat
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.evaluation import MeasuredOn
from textcat.recipes.recipe import default_recipe, read_recipe
from textcat.training.aging import measure_aging
from textcat.training.checks import TrainingOptions
from textcat.training.cross_validation import hold_out_sample, measure_by_folds
from textcat.training.examples import CountedCorpus
from textcat.training.few_choices import choose_for_few
from textcat.training.forecast import forecast_growth
from textcat.training.out_of_fold import cross_validate
from textcat.training.row_choice import choose_rows
from textcat.training.self_training import train_with_unlabelled
from textcat.training.shortlist import train_shortlist
from textcat.training.steps import train_and_evaluate
from textcat.training.tune import run_trials

pytestmark = pytest.mark.filterwarnings("ignore:.*repeat earlier ones")

TOPICS = ("grain", "music", "sports", "trade")
N = 120
BY_CHANCE = 0.45  # a quarter, and what small samples add; rankers that saw a document's repeat reach .9


def documents(n=N, seed=0):
    """Return documents of words drawn at random, with a topic that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    words = np.array([f"{a}{b}{c}a" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"])
    topics = rng.permutation(np.resize(TOPICS, n))
    texts = (" ".join(rng.choice(words, 25)) for _ in range(n))
    return [Document(f"{seed} {i}", {"body": text}, (str(topics[i]),)) for i, text in enumerate(texts)]


def repeated(document):
    """Return the document as another paper prints it."""
    body = f"From our own correspondent. {document.zones['body']}"
    return replace(document, id=f"{document.id} again", zones={"body": body})


def corpus_of(firsts, name="made"):
    train = [*firsts, *map(repeated, firsts)]
    return Corpus.from_documents(name, [train[i] for i in np.random.default_rng(1).permutation(len(train))])


@pytest.fixture(scope="module")
def corpus():
    return corpus_of(documents())


@pytest.fixture(scope="module")
def recipe(corpus):
    chosen, _ = default_recipe().with_settings("topics.vectors=none").for_corpus(corpus)
    return chosen


def test_figures_are_those_of_documents_that_were_not_seen_before(corpus, recipe):
    tagger = train_and_evaluate(corpus, recipe)
    evaluation = tagger.evaluation
    assert evaluation.measured_on is MeasuredOn.CROSS_VALIDATION
    assert evaluation.bands[0]["macro_average_precision"] < BY_CHANCE
    assert sum(topic.test_positives for topic in evaluation.topics) == N
    assert (tagger.facts.train_sizes.sum(), tagger.facts.train_documents) == (2 * N, 2 * N)
    assert tagger.scored(documents(seed=1))[0].shape == (N, len(TOPICS))


def test_choices_and_the_forecast_are_made_by_documents_that_were_not_seen_before(corpus, recipe):
    counted = CountedCorpus(corpus, recipe)
    for choice in choose_for_few(counted, recipe).choices.values():
        assert choice["held_out"]
        assert all(right < BY_CHANCE for right in choice["precision@1"].values())
    forecast = forecast_growth(CountedCorpus(corpus, recipe), recipe)
    assert forecast.documents == 2 * N
    assert all(right < BY_CHANCE for _, right in forecast.measured)


def test_nothing_is_promised_about_labels_by_chance(corpus, recipe):
    with pytest.raises(TextcatError, match=r"No promise of 0\.8 can be kept"):
        textcat.train(corpus, recipe.with_settings(["promise.precision=0.8", "promise.confidence=0.8"]))


def test_nothing_is_promised_if_too_few_documents_differ_to_hold_repeats_out_together(recipe):
    asked = recipe.with_settings(["promise.precision=0.9"])
    for n, reason in ((19, "19 of 38 training documents repeat earlier ones"), (20, "No promise of")):
        with pytest.raises(TextcatError, match=reason):
            textcat.train(corpus_of(documents(n)), asked)


def test_a_group_is_no_more_evidence_for_a_promise_than_one_document():
    """Ten documents of a topic are too few for a promise, also if each has been reprinted nine times."""
    rng, words = np.random.default_rng(0), [f"word{i}" for i in range(300)]
    few = [
        Document(f"{i}", {"body": f"{' '.join(rng.choice(words, 30))} {topic} {topic} {topic}"}, (topic,))
        for i, topic in enumerate(["grain", "music"] * 10)
    ]
    again = [replace(document, id=f"{document.id} {k}") for document in few for k in range(9)]
    asked = read_recipe("default").with_settings(["promise.precision=0.9", "promise.confidence=0.9"])
    with pytest.raises(TextcatError, match=r"No promise of 0\.9 can be kept.* has 10\)"):
        textcat.train(Corpus.from_documents("few", [*few, *again]), asked)


def test_recipes_are_compared_by_documents_that_were_not_seen_before(corpus, recipe):
    (trial,) = measure_by_folds(corpus, [recipe])
    assert trial.goal < BY_CHANCE
    assert trial.measures["macro_average_precision"]["POOLED"] < BY_CHANCE


def test_no_document_of_a_sample_repeats_one_that_is_trained_on(corpus):
    sample = hold_out_sample(corpus, seed=0)
    groups = corpus.groups
    assert not np.isin(groups[sample.held_out], groups[sample.trained]).any()
    assert len(np.unique(groups[sample.held_out])) == len(sample.held_out) == N // 10
    assert len(sample.trained) == 2 * (N - N // 10)


def test_unlabelled_documents_are_used_if_they_help_with_documents_that_were_not_seen_before(corpus, recipe):
    unlabelled = [replace(document, topics=()) for document in documents(40, seed=2)]
    tagger = train_with_unlabelled(corpus, unlabelled, recipe.with_settings("topics.forecast=false"))
    assert all(right < BY_CHANCE for right in tagger.facts.choices["unlabelled"]["precision@1"].values())


def test_rankings_get_no_better_with_time_by_repeats(recipe):
    dated = [replace(document, date=f"2001-{1 + i // 100:02}-05") for i, document in enumerate(documents(1200))]
    aging = measure_aging(CountedCorpus(corpus_of(dated), recipe), recipe)
    assert sum(n for _, n, *_ in aging["parts"]) == pytest.approx(600 + 120, abs=5)  # of similar ones, a few are missed
    assert all(right < BY_CHANCE for _, _, right, *_ in aging["parts"])


def test_rows_are_chosen_by_documents_that_were_not_seen_before(corpus_of_many, many_topics):
    ndcg = choose_rows(CountedCorpus(corpus_of_many, many_topics), many_topics).ndcg
    assert 0 < ndcg["words"] < 0.7  # four topics in any order have .64; with repeats, nearly 1


@pytest.fixture(scope="module")
def corpus_of_many():
    return corpus_of(documents(600))


@pytest.fixture(scope="module")
def many_topics():
    return read_recipe("many-topics").with_settings(
        ["topics.shortlist=4", "topics.description_copies=0", "topics.related=0", "topics.vectors=none"]
    )


def test_evidence_of_a_shortlist_is_weighed_by_documents_that_were_not_seen_before(corpus_of_many, many_topics):
    tagger = textcat.train(corpus_of_many, many_topics.with_settings("topics.choose_chars=false"))
    scores, _ = tagger.scored(documents(100, seed=5))
    first = tagger.decisions.calibration.probabilities(np.asarray(scores)).max(axis=1)
    assert first.mean() < BY_CHANCE
    rows, labels = CountedCorpus(corpus_of_many, many_topics), corpus_of_many.labels(corpus_of_many.train)
    features = rows.fit(many_topics.make_features())
    examples = rows.examples(features, left_out=False)
    parts = examples.rows, labels, rows.descriptions(features), many_topics.make_learner()
    apart, together = (
        train_shortlist(*parts, size=4, groups=groups).evidence
        for groups in (np.arange(len(corpus_of_many.train)), corpus_of_many.groups)
    )
    assert apart["ranker"] > 4 * together["ranker"]


def test_a_fold_has_all_documents_of_its_groups_and_each_document_is_scored(corpus, recipe):
    validated = cross_validate(corpus, recipe.with_settings("topics.forecast=false"))
    scores = np.asarray(validated.scores)
    assert scores.shape == (2 * N, len(TOPICS))
    assert scores.any(axis=1).all()
    with pytest.raises(TextcatError, match="120 different documents cannot be divided into 121 folds"):
        cross_validate(corpus, recipe, folds=N + 1)


def test_of_few_different_documents_repeats_are_not_kept_together_and_a_warning_says_so(recipe):
    different = documents(19)
    corpus = Corpus.from_documents("alike", [*different, *map(repeated, different)])
    with pytest.warns(UserWarning, match="19 of 38 .* with 19 different ones, .* are too good for new ones"):
        tagger = train_and_evaluate(corpus, recipe)
    assert corpus.groups.tolist() == [*range(38)]
    assert tagger.facts.train_documents == 38


@pytest.mark.parametrize(
    ("n", "told"), [(19, "with 19 different ones, .* are too good for new ones"), (30, "each is measured")]
)
def test_a_study_of_recipes_on_repeats_warns_of_them(n, told):
    different = documents(n)
    corpus = Corpus.from_documents("alike", [*different, *map(repeated, different)])
    with pytest.warns(UserWarning, match=f"{n} of {2 * n} training documents repeat earlier ones: .*{told}"):
        run_trials(corpus, read_recipe("default"), None, "grid", 0, None, Stages(), n_folds=2, seed=0, n_jobs=1)


def test_a_document_that_is_repeated_with_another_label_counts_once_with_both(recipe):
    firsts = documents()
    other = [replace(repeated(d), topics=("another",)) for d in firsts]
    corpus = Corpus.from_documents("relabelled", [*firsts, *other])
    evaluation = train_and_evaluate(corpus, recipe).evaluation
    assert {topic.topic: topic.test_positives for topic in evaluation.topics} == {
        **dict.fromkeys(TOPICS, N // 4),
        "another": N,
    }


def test_below_a_fifth_of_repeats_each_document_counts():
    firsts = documents()
    few = Corpus.from_documents("few", [*firsts, *map(repeated, firsts[:29])])
    assert few.n_repeats == 29
    assert few.groups.tolist() == [*range(149)]
    assert Corpus.from_documents("small", [*firsts[:6], *map(repeated, firsts[:4])]).groups.tolist() == [*range(10)]
    many = Corpus.from_documents("many", [*firsts, *map(repeated, firsts[:30])])
    assert many.groups.tolist() == [*range(120), *range(30)]


def test_a_model_that_has_learnt_knows_the_repeats_of_texts_that_are_gone(tmp_path, recipe):
    plain = recipe.with_settings(
        ["topics.choose_vectors=false", "topics.choose_margins=false", "topics.forecast=false"]
    )
    plain = plain.with_settings("topics.choose_chars=false")
    firsts = documents(60)
    known, new = [*firsts, *map(repeated, firsts[:8])], [*map(repeated, firsts[8:50])]
    train_from_the_start(known, plain, tmp_path / "model", measured=True)
    with pytest.warns(UserWarning, match="50 of 110 training documents repeat earlier ones"):
        learnt = textcat.learn(tmp_path / "model", new)
    assert learnt.tagger.evaluation.bands[0]["macro_average_precision"] < BY_CHANCE
    train_from_the_start([*known, *new], plain, tmp_path / "other", measured=True)
    check_same(bytes_of(tmp_path / "model"), bytes_of(tmp_path / "other"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        textcat.learn(tmp_path / "model", remove=[document.id for document in new])


def test_the_result_is_the_same_to_the_bit_for_any_number_of_jobs(corpus, recipe, tmp_path):
    for jobs in (1, 2):
        textcat.save(train_and_evaluate(corpus, recipe, TrainingOptions(jobs)), tmp_path / str(jobs))
    check_same(bytes_of(tmp_path / "1"), bytes_of(tmp_path / "2"))
