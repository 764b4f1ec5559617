"""Few documents: vectors, n-grams, margins and λ are chosen by held-out documents, as if they had been asked for."""

from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.metrics import average_precisions
from textcat.recipes.recipe import FEW_DOCUMENTS, Recipe, default_recipe, read_recipe
from textcat.training.cross_validation import MOST_TERMS, scores_of_split
from textcat.training.examples import CountedCorpus
from textcat.training.few_choices import CHARACTERS, EQUAL, EVEN, OWN, UNEVEN, choose_for_few
from textcat.training.forecast import forecast_growth
from textcat.training.row_choice import WORDS

ALL_SPLITS = pytest.mark.usefixtures("all_splits")


def corpus_of(shares: list[float], n: int, seed: int = 0) -> Corpus:
    """Make documents whose topics have the given shares; half of each text's words are of its topic's vocabulary."""
    random = np.random.default_rng(seed)
    vocabulary = [f"word{i}" for i in range(400)]
    documents = []
    for i in range(n):
        topic = int(random.choice(len(shares), p=shares))
        own, shared = random.integers(0, 25, 8) + 25 * topic, random.integers(0, 400, 8)
        text = " ".join(vocabulary[word] for word in [*own, *shared])
        documents.append(Document(str(i), {"body": text}, (f"topic{topic}",)))
    return Corpus.from_documents("made", documents, "train")


def margins(corpus, recipe):
    return choose_for_few(CountedCorpus(corpus, recipe), recipe).choices["margins"]


@pytest.fixture(scope="module")
def recipe():
    """Return a recipe by which only margins and λ are chosen, as the words here are no English ones."""
    return read_recipe("few-documents").with_settings(["topics.vectors=none", "features.chars=0"])


@pytest.fixture(scope="module")
def skewed():
    return corpus_of([0.7, 0.2, 0.04, 0.03, 0.03], 300)


@ALL_SPLITS
def test_the_figures_are_those_of_taggers_trained_without_the_held_out_documents(recipe):
    corpus = corpus_of([0.4, 0.3, 0.3], 1000)
    own = recipe.with_settings(["topics.choose_margins=false", "topics.forecast=false"])
    fold_of, right = assign_folds(corpus.labels(corpus.train), 5, seed=0), []
    for fold in range(5):
        train, held_out = (
            [
                document
                for document, number in zip(corpus.train, fold_of, strict=True)
                if (number == fold) == is_held_out
            ]
            for is_held_out in (False, True)
        )
        tagger = textcat.train(replace(corpus, train=train), own)
        first = tagger.scores(held_out).argmax(axis=1)
        right += [tagger.topics[j] in document.topics for j, document in zip(first, held_out, strict=True)]
    choice = margins(corpus, recipe)
    assert choice["held_out"] == 1000
    assert choice["precision@1"][OWN] == pytest.approx(np.mean(right), abs=1e-12)


@ALL_SPLITS
def test_other_margins_are_chosen_only_if_they_are_right_for_more_documents(recipe, skewed):
    for corpus in (skewed, corpus_of([0.2] * 5, 60)):
        choice = margins(corpus, recipe)
        right = choice["precision@1"]
        assert choice["chosen"] == OWN or right[choice["chosen"]] > right[OWN]


def test_more_even_margins_are_chosen_where_rare_topics_stay_rare(recipe, skewed):
    uneven = recipe.with_values({"learner": {"kappa": -20.0, "scale": 300.0, "tau_neg": 1.0}})
    choice = choose_for_few(CountedCorpus(skewed, uneven), uneven)
    assert choice.choices["margins"]["chosen"] == EVEN
    assert (choice.recipe.learner["kappa"], choice.recipe.learner["scale"]) == (-5.0, 60.0)


@ALL_SPLITS
def test_a_chosen_tagger_is_the_one_that_the_same_settings_give_for_any_number_of_jobs(recipe, skewed, tmp_path):
    recipe = recipe.with_settings("topics.forecast=false")
    chosen, by_two = (textcat.train(skewed, recipe, n_jobs=n_jobs) for n_jobs in (1, 2))
    learner = chosen.facts.recipe.learner
    asked_for = textcat.train(skewed, recipe.changed(**{name: learner[name] for name in ("kappa", "scale", "lambda_")}))
    assert chosen.facts.choices["margins"] == by_two.facts.choices["margins"]
    assert "margins" not in asked_for.facts.choices
    assert chosen.facts.recipe == asked_for.facts.recipe
    for other in (by_two, asked_for):
        np.testing.assert_array_equal(chosen.scorer.weights, other.scorer.weights)
    textcat.save(chosen, tmp_path / "model")
    assert textcat.load(tmp_path / "model").facts.choices == chosen.facts.choices


@pytest.mark.parametrize("n", [1, 2, 19])
def test_of_too_few_documents_to_hold_some_out_the_recipe_s_own_margins_are_taken(recipe, n):
    choice = margins(corpus_of([0.5, 0.5], n), recipe)
    assert (choice["chosen"], choice["held_out"]) == (EQUAL if n < 3 else OWN, 0)  # the first two have the same topic


def test_documents_without_a_topic_are_trained_on_but_do_not_count(recipe, skewed):
    with_others = replace(skewed, train=[*skewed.train, Document("other", {"body": "word1"}, ())])
    assert margins(with_others, recipe)["held_out"] % 60 == 0


def one_topic(n_narrow: int, n: int) -> Corpus:
    """Make documents of 16 narrow topics, of which the first ones are one broad topic, and the others none."""
    narrow = {f"topic{i}" for i in range(n_narrow)}
    documents = corpus_of([1 / 16] * 16, n).train
    train = [replace(document, topics=("broad",) * (document.topics[0] in narrow)) for document in documents]
    return Corpus.from_documents("made", train, "train")


@ALL_SPLITS
def test_of_a_single_topic_the_figures_are_average_precisions_of_taggers_trained_without_the_held_out_documents(recipe):
    corpus = one_topic(2, 1000)
    own = recipe.with_values({"topics": {"choose_margins": False}})
    fold_of, precisions = assign_folds(corpus.labels(corpus.train), 5, seed=0), []
    for fold in range(5):
        train = [document for document, number in zip(corpus.train, fold_of, strict=True) if number != fold]
        held_out = [document for document, number in zip(corpus.train, fold_of, strict=True) if number == fold]
        scores = textcat.train(replace(corpus, train=train), own).scores(held_out)
        precisions += average_precisions(corpus.labels(held_out), scores).tolist()
    choice = margins(corpus, recipe)
    assert choice["held_out"] == 1000
    assert choice["average_precision"][OWN] == pytest.approx(np.mean(precisions), abs=1e-12)


def rare_topic(n: int) -> Corpus:
    """Make documents of random words; a fifth of them have the topic, and four words of 60 instead of one."""
    random, documents = np.random.default_rng(0), []
    for i in range(n):
        is_rare = i % 5 == 0
        words = [*random.integers(0, 60, 4 if is_rare else 1), *random.integers(0, 400, 16)]
        documents.append(Document(str(i), {"body": " ".join(f"word{j}x" for j in words)}, ("rare",) * is_rare))
    return Corpus.from_documents("made", documents, "train")


@ALL_SPLITS
def test_a_single_topic_gets_less_even_margins_and_a_larger_lambda_only_if_they_rank_better(recipe):
    margins_of = {UNEVEN: (300.0, 2.0), OWN: ("prevalence", 0.0), EQUAL: (10.0, 0.0)}
    for corpus, expected in ((rare_topic(100), UNEVEN), (one_topic(2, 100), OWN), (one_topic(12, 100), EQUAL)):
        chosen = choose_for_few(CountedCorpus(corpus, recipe), recipe)
        precision, learner = chosen.choices["margins"]["average_precision"], chosen.recipe.complete().learner
        assert chosen.choices["margins"]["chosen"] == expected
        assert (precision[UNEVEN] > min(precision.values())) == (expected == UNEVEN)
        assert (learner["tau_pos"], learner["lambda_"]) == margins_of[expected]
        assert "lambda_" not in chosen.choices


@pytest.mark.parametrize(("n", "n_positive"), [(19, 9), (40, 1), (40, 0)])
def test_a_single_topic_of_too_few_documents_keeps_the_recipe_s_margins(recipe, n, n_positive):
    documents = [Document(str(i), {"body": f"word{i % 7}x"}, ("rare",) * (i < n_positive)) for i in range(n)]
    corpus = replace(Corpus.from_documents("made", documents, "train"), topics=("rare",))
    chosen = EQUAL if n_positive > n / 4 else OWN
    assert margins(corpus, recipe) == {"chosen": chosen, "average_precision": {}, "held_out": 0}


def test_documents_that_were_not_judged_for_a_single_topic_are_not_held_out(recipe):
    corpus = one_topic(2, 100)
    unjudged = [replace(document, topics=(), labelled_for=()) for document in corpus_of([1.0], 30).train]
    judged_alone = margins(corpus, recipe)
    with_unjudged = replace(corpus, train=[*corpus.train, *unjudged])
    assert margins(with_unjudged, recipe)["held_out"] == judged_alone["held_out"]


@pytest.fixture
def terms_of_splits(monkeypatch):
    """Return a list that gets the number of terms of each split that a choice or a forecast trains and scores."""
    processed = []

    def counting(counted, recipe, split, *args):
        processed.append(int(counted.n_terms()[np.concatenate(split)].sum()))
        return scores_of_split(counted, recipe, split, *args)

    for module in ("few_choices", "forecast"):
        monkeypatch.setattr(f"textcat.training.{module}.scores_of_split", counting)
    return processed


def long_texts(n: int, n_terms: int) -> Corpus:
    """Make documents of so many different words in different orders; one word is of their topic."""
    words = np.array([f"word{i}x" for i in range(n_terms - 1)])
    texts = (" ".join(np.random.default_rng(i).permutation(words)) for i in range(n))
    documents = [
        Document(str(i), {"body": f"{text} topic{i % 2}x"}, (f"topic{i % 2}",)) for i, text in enumerate(texts)
    ]
    return Corpus.from_documents("made", documents, "train")


@ALL_SPLITS
@pytest.mark.parametrize(("n", "n_terms", "n_splits"), [(40, 40, 25), (40, 400, 12), (150, 2000, 1)])
def test_the_number_of_terms_limits_the_splits_and_in_the_end_the_documents(
    recipe, terms_of_splits, monkeypatch, n, n_terms, n_splits
):
    most_terms = MOST_TERMS // 10
    for module in ("cross_validation", "few_choices"):
        monkeypatch.setattr(f"textcat.training.{module}.MOST_TERMS", most_terms)
    words = recipe.with_settings("features.ngrams=1")
    choose_for_few(CountedCorpus(long_texts(n, n_terms), words), words)
    n_settings = 3  # the recipe's own, more even margins, and a larger λ
    assert len(terms_of_splits) == n_settings * n_splits
    assert most_terms * 0.9 <= sum(terms_of_splits) / n_settings <= most_terms or n_splits == 25


@ALL_SPLITS
def test_a_forecast_for_long_texts_has_fewer_splits(recipe, terms_of_splits):
    words = recipe.with_settings("features.ngrams=1")
    forecast_growth(CountedCorpus(long_texts(100, 4000), words), words)
    n_splits, trained_on = 5, (0.1, 0.2, 0.3, 0.4, 0.57, 0.8)  # of each split, nested parts
    assert len(terms_of_splits) == n_splits * len(trained_on)


def test_the_number_of_terms_is_that_of_the_rows(recipe):
    counted = CountedCorpus(corpus := words_of({"music": MUSIC, "grain": GRAIN}, 10), recipe)
    rows = counted.examples(counted.fit(recipe.make_features())).rows
    np.testing.assert_array_equal(counted.n_terms(), np.diff(rows.indptr)[: len(corpus.train)])


def test_a_setting_of_the_learner_turns_the_choice_off_in_all_alternatives():
    for recipe in (
        default_recipe().with_settings("learner.tau_pos=10"),
        default_recipe().changed(tau_pos=10.0),
        default_recipe().changed("micra"),
    ):
        for few in (recipe.few, recipe.short.few):
            assert not few.topics.chooses_margins
            for name in ("name", "tau_pos"):
                assert few.learner.get(name) == recipe.learner.get(name)
    assert default_recipe().with_settings("features.k1=1.2").few.topics.chooses_margins


def with_wrong_labels(corpus: Corpus, share: float) -> Corpus:
    """Replace the labels of a random share of the documents by a random one of the topics."""
    random = np.random.default_rng(1)
    wrong = [
        replace(document, topics=(corpus.topics[random.integers(len(corpus.topics))],))
        if random.random() < share
        else document
        for document in corpus.train
    ]
    return replace(corpus, train=wrong)


def test_a_larger_lambda_is_chosen_for_wrong_labels_alone(recipe):
    clean = corpus_of([0.25] * 4, 600)
    for corpus, expected in ((clean, "0"), (with_wrong_labels(clean, 0.3), "2")):
        chosen = choose_for_few(CountedCorpus(corpus, recipe), recipe)
        choice = chosen.choices["lambda_"]
        assert choice["chosen"] == expected
        assert {*choice["precision@1"]} == {"0", "2"}
        assert chosen.recipe.learner["lambda_"] == float(expected)
        assert (choice["precision@1"]["2"] > choice["precision@1"]["0"]) == (expected == "2")


def test_lambda_is_the_learner_s_where_a_recipe_gives_none(recipe):
    learner = {name: value for name, value in recipe.learner.items() if name != "lambda_"}
    without = replace(recipe, learner=learner)
    choice = choose_for_few(CountedCorpus(corpus_of([0.5, 0.5], 40), without), without).choices["lambda_"]
    assert f"{without.complete().learner['lambda_']:g}" in choice["precision@1"]


def test_the_recipe_s_own_lambda_is_a_candidate_once(recipe):
    own = recipe.with_values({"learner": {"lambda_": 2.0}})
    choice = choose_for_few(CountedCorpus(corpus_of([0.5, 0.5], 40), own), own).choices["lambda_"]
    assert choice == {"chosen": "2", "precision@1": {}, "held_out": 0}


STEMS = ("kirjasto", "satama", "metsa", "laiva")
ENDINGS = ("", "n", "ssa", "lle", "sta", "ksi", "tta", "inen", "oiden", "eille", "mme", "kaan", "lta", "ton", "seen")


def inflected(n: int) -> Corpus:
    """Make documents that have a stem of their topic, with two random endings, and words that say nothing."""
    random = np.random.default_rng(0)
    documents = []
    for i in range(n):
        stem = STEMS[i % len(STEMS)]
        text = " ".join([stem + "".join(random.choice(ENDINGS, 2)), *random.choice(["aamu", "ilta", "paiva"], 4)])
        documents.append(Document(str(i), {"body": text}, (stem,)))
    return Corpus.from_documents("made", documents, "train")


def with_identifiers(n: int) -> Corpus:
    """Make documents that have a word of their topic among random identifiers, whose n-grams are many and rare."""
    random = np.random.default_rng(0)
    documents = []
    for i in range(n):
        topic = STEMS[i % len(STEMS)]
        identifiers = ("".join(random.choice([*ascii_lowercase], 30)) for _ in range(10))
        documents.append(Document(str(i), {"body": " ".join([*identifiers, topic[:2]])}, (topic,)))
    return Corpus.from_documents("made", documents, "train")


def rows_choice(corpus: Corpus) -> dict:
    recipe = read_recipe("few-documents")
    return choose_for_few(CountedCorpus(corpus, recipe), recipe).choices["rows"]


def test_ngrams_of_characters_are_left_out_only_if_words_alone_are_right_for_more_documents():
    for corpus, expected in ((inflected(80), CHARACTERS), (with_identifiers(60), WORDS)):
        choice = rows_choice(corpus)
        right = choice["precision@1"]
        assert choice["chosen"] == expected
        assert (right[WORDS] > right[CHARACTERS]) == (expected == WORDS)
    assert rows_choice(corpus_of([0.5, 0.5], 10)) == {"chosen": CHARACTERS, "precision@1": {}, "held_out": 0}


def test_rows_have_ngrams_of_characters_beside_vectors_too():
    corpus = words_of({"music": MUSIC, "grain": GRAIN}, 24)
    recipe = read_recipe("few-documents").with_settings("topics.vector_weight=0.4")
    chosen = choose_for_few(CountedCorpus(corpus, recipe), recipe)
    assert chosen.recipe.topics.vector_weight == 0.4
    assert chosen.choices["rows"]["chosen"] == CHARACTERS
    assert list(chosen.recipe.features.char_lengths) == [2, 3, 4]


def test_chosen_ngrams_of_characters_are_those_that_the_same_settings_give(tmp_path):
    corpus, recipe = inflected(80), read_recipe("few-documents")
    texts = [document.zones["body"] for document in corpus.train]
    chosen, by_two = (textcat.train(corpus, recipe, n_jobs=n_jobs) for n_jobs in (1, 2))
    learner = chosen.facts.recipe.learner
    settings = ["topics.vectors=none", "features.chars=4", "features.char_min=2", "features.char_weight=0.5"]
    settings += [f"learner.{name}={learner[name]}" for name in ("kappa", "scale", "lambda_")]
    asked_for = textcat.train(corpus, recipe.with_settings(settings))
    assert chosen.facts.choices["rows"] == by_two.facts.choices["rows"]
    assert "rows" not in asked_for.facts.choices
    own = {"topics": {"vectors": chosen.facts.recipe.topics.vectors, "vector_weight": 0.0}}
    assert chosen.facts.recipe == asked_for.facts.recipe.with_values(own)
    for other in (by_two, asked_for):
        np.testing.assert_array_equal(chosen.scores(texts), other.scores(texts))
    textcat.save(chosen, tmp_path / "model")
    loaded = textcat.load(tmp_path / "model")
    assert loaded.facts.choices == chosen.facts.choices
    explained = loaded.explain("kirjastottaksi", topic="kirjasto", n=None)
    assert any(reason.term.startswith("~") for reason in explained)
    for reasons in (explained, explained.documents):
        total = sum(reason.contribution for reason in reasons) + explained.bias
        assert explained.score == pytest.approx(total, abs=1e-4)


def test_ngrams_of_characters_are_added_to_counts_as_if_they_had_been_counted_with_the_texts():
    corpus, recipe = words_of({"music": MUSIC, "grain": GRAIN}, 24), read_recipe("few-documents")
    with_chars = recipe.with_settings(["topics.vectors=none", "features.chars=3"])
    counted, features = CountedCorpus(corpus, recipe), recipe.make_features()
    counted.examples(counted.fit(features, np.arange(12)), np.arange(12))  # with vectors, which add words
    rows, of_texts = (
        examples_of.examples(examples_of.fit(with_chars.make_features())).rows
        for examples_of in (counted.with_char_ngrams(with_chars), CountedCorpus(corpus, with_chars))
    )
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(of_texts, name))
    assert counted.serves(recipe)  # as before: the n-grams are those of a copy


def test_learning_keeps_the_chosen_ngrams_of_characters_and_is_as_training_anew(tmp_path):
    corpus, recipe = inflected(80), read_recipe("few-documents")
    early = textcat.train(replace(corpus, train=corpus.train[:60]), recipe, updatable=True)
    assert early.facts.recipe.features.chars == 4
    textcat.save(early, tmp_path / "model")
    learnt = textcat.learn(tmp_path / "model", corpus.train[60:]).tagger
    expected = textcat.train(corpus, replace(early.facts.recipe, name="same"))
    texts = [document.zones["body"] for document in corpus.train]
    np.testing.assert_array_equal(learnt.scores(texts), expected.scores(texts))


def test_setting_characters_turns_their_choice_off_for_few_documents():
    few = read_recipe("few-documents")
    assert few.topics.choose_chars
    assert not few.with_settings("features.chars=0").topics.choose_chars
    assert few.with_settings("learner.tau_pos=10").topics.choose_chars


def test_only_the_margins_of_paum_can_be_chosen():
    with pytest.raises(TextcatError, match="set choose_margins = false"):
        Recipe("mine", topics={"choose_margins": True}, learner={"name": "micra"}).check()


def test_the_number_of_training_documents_decides_on_the_recipe():
    def name(n: int, text: str) -> str:
        documents = [Document(str(i), {"body": text}, ("a",)) for i in range(n)]
        return default_recipe().for_corpus(Corpus.from_documents("made", documents, "train"))[0].name

    long = "wheat exports rose " * 30
    assert [name(n, long) for n in (10, FEW_DOCUMENTS - 1, FEW_DOCUMENTS)] == [
        "few-documents",
        "few-documents",
        "default",
    ]
    assert [name(n, "wheat") for n in (10, FEW_DOCUMENTS)] == ["few-short-texts", "short-texts"]


MUSIC, GRAIN = "violin piano orchestra guitar flute melody", "wheat corn rice oats flour bread"
ENGLISH = read_recipe("few-documents").with_settings(["topics.choose_margins=false", "features.chars=0"])


def words_of(topics: dict[str, str], n: int, seed: int = 0) -> Corpus:
    """Make documents of a word of their topic each, with words that say nothing."""
    random, others = np.random.default_rng(seed), ["yesterday", "people", "said", "about", "things", "many"]
    documents = []
    for i in range(n):
        topic = [*topics][i % len(topics)]
        text = " ".join([random.choice(topics[topic].split()), *random.choice(others, 3)])
        documents.append(Document(str(i), {"body": text}, (topic,)))
    return Corpus.from_documents("made", documents, "train")


def test_words_that_no_training_document_has_count_by_what_they_mean():
    corpus = words_of({"music": MUSIC, "grain": GRAIN}, 24)
    tagger = textcat.train(corpus, ENGLISH)
    scores = tagger.scores(["a barley harvest", "trumpets and a cello"])
    assert [tagger.topics[j] for j in scores.argmax(axis=1)] == ["grain", "music"]
    assert "cello" in dict(tagger.terms("music", 5000))
    without = textcat.train(corpus, ENGLISH.with_settings("topics.vectors=none"))
    assert not without.scored(["a barley harvest"]).has_terms.any()


def test_the_weight_of_vectors_is_chosen_and_is_the_same_as_if_it_had_been_asked_for(tmp_path):
    corpus = words_of({"music": MUSIC, "grain": GRAIN}, 24)
    weak = ENGLISH.with_values({"topics": {"vector_weight": 0.01}})
    chosen = textcat.train(corpus, weak)
    facts = chosen.facts.choices["vectors"]
    assert {*facts["precision@1"]} == {"0.01", "0", "0.005", "0.02"}
    asked_for = textcat.train(corpus, weak.with_settings(f"topics.vector_weight={facts['chosen']}"), n_jobs=2)
    assert "vectors" not in asked_for.facts.choices
    np.testing.assert_array_equal(chosen.scorer.weights, asked_for.scorer.weights)


def test_vectors_are_not_used_for_texts_of_other_words():
    chosen = choose_for_few(CountedCorpus(corpus := corpus_of([0.5, 0.5], 40), ENGLISH), ENGLISH)
    facts = {"chosen": "0", "precision@1": {}, "held_out": 0, "known_words": 0.0, "vectors": "static"}
    assert chosen.choices["vectors"] == facts
    assert not chosen.recipe.topics.uses_vectors
    without = ENGLISH.with_settings("topics.vectors=none")
    np.testing.assert_array_equal(
        textcat.train(corpus, ENGLISH).scorer.weights, textcat.train(corpus, without).scorer.weights
    )


def test_vectors_take_documents_from_disk_and_learning_as_training_anew_does(tmp_path):
    corpus = words_of({"music": MUSIC, "grain": GRAIN}, 30)
    fixed = ENGLISH.with_settings("topics.vector_weight=0.5")
    expected = textcat.train(corpus, fixed)
    on_disk = textcat.train(corpus, fixed, rows_dir=tmp_path / "rows")
    np.testing.assert_array_equal(on_disk.scorer.weights, expected.scorer.weights)
    early = textcat.train(replace(corpus, train=corpus.train[:20]), fixed, updatable=True)
    textcat.save(early, tmp_path / "model")
    learnt = textcat.learn(tmp_path / "model", corpus.train[20:]).tagger
    np.testing.assert_array_equal(learnt.scorer.weights, expected.scorer.weights)


def test_support_documents_add_up_to_the_score_with_vectors_too(tmp_path):
    tagger = textcat.train(
        words_of({"music": MUSIC, "grain": GRAIN}, 30), ENGLISH.with_settings("topics.vector_weight=1")
    )
    textcat.save(tagger, tmp_path / "model")
    for model in (tagger, textcat.load(tmp_path / "model")):
        explained = model.explain("a barley harvest", topic="grain", n=None)
        (barley,) = (reason for reason in explained if reason.term == "barley")
        assert set(barley.like) <= {*GRAIN.split()}
        assert barley.label.startswith("barley (like ")
        assert explained.score == pytest.approx(
            sum(reason.contribution for reason in explained) + explained.bias, abs=1e-4
        )
        assert explained.score == pytest.approx(
            sum(document.contribution for document in explained.documents) + explained.bias, abs=1e-4
        )
