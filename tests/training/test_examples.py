"""Descriptions as examples: positives of their own topics, and nothing to the others."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document
from textcat.features.tokens import Tokens
from textcat.recipes.recipe import Recipe
from textcat.training.examples import CountedCorpus

DOCUMENTS = [
    Document("1", {"title": "", "body": "maize and corn prices"}, ("corn",)),
    Document("2", {"title": "", "body": "bullion rose, and prices"}, ("gold",)),
    Document("3", {"title": "", "body": "rain in the north"}),
]
DESCRIBED = {"corn": "Corn or maize", "zinc": "Zinc, a metal", "x1": ""}


@pytest.fixture
def corpus():
    return Corpus.from_documents("c", DOCUMENTS, "described", DESCRIBED)


def examples(corpus, copies):
    recipe = Recipe("plain", topics={"description_copies": copies})
    counts = CountedCorpus(corpus, recipe)
    features = counts.fit(recipe.make_features())
    return features, counts.examples(features)


@pytest.mark.parametrize("copies", [1, 3])
def test_each_description_is_a_positive_of_its_topic_and_nothing_to_the_others(corpus, copies):
    features, (rows, labels, left_out) = examples(corpus, copies)
    assert corpus.topics == ("corn", "gold", "x1", "zinc")
    assert (
        rows[3:].toarray().tolist() == np.tile(features.transform(corpus.described()).toarray(), (copies, 1)).tolist()
    )
    assert labels[:3].toarray().tolist() == corpus.labels(corpus.train).toarray().tolist()
    assert not left_out[:3].nnz
    # Neither 'gold' nor 'x1' is a known term, so there is nothing to learn from these two.
    own = np.diag([1, 0, 0, 1])
    assert labels[3:].toarray().tolist() == np.tile(own, (copies, 1)).tolist()
    assert left_out[3:].toarray().tolist() == np.tile(1 - own, (copies, 1)).tolist()


def test_rows_are_counted_as_they_are_written_to_a_store(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("textcat.training.examples.ROWS_PER_BLOCK", 2)
    recipe, counted = Recipe("plain", topics={"description_copies": 1}), []
    counts = CountedCorpus(corpus, recipe)
    rows = counts.examples(counts.fit(recipe.make_features()), rows_dir=tmp_path / "rows", advance=counted.append).rows
    assert counted == [2, 2, 2, 1]
    assert len(rows) == 7


def test_without_descriptions_nothing_changes(corpus):
    features, (rows, labels, left_out) = examples(corpus, 0)
    assert rows.shape[0] == 3
    assert (labels != corpus.labels(corpus.train)).nnz == 0
    assert left_out is None
    assert features.n_documents_ == len(corpus.train)


def test_only_the_descriptions_of_topics_without_documents_are_counted(corpus):
    features, _ = examples(corpus, 1)
    assert {"zinc", "metal"} <= set(features.vocabulary_)
    assert "gold" not in features.vocabulary_
    assert features.n_documents_ == 5  # zinc and x1 have no document


def test_a_topic_without_a_document_is_learnt_from_its_description(corpus):
    tagger = textcat.train(corpus, Recipe("d", topics={"description_copies": 2}))
    assert {term for term, _ in tagger.terms("zinc", 2)} == {"zinc", "metal"}
    best, other = tagger.scores(["a zinc mine", "rain in the north"])[:, tagger.topics.index("zinc")]
    assert best > other
    assert tagger.facts.train_sizes.tolist() == [1, 1, 0, 0]
    assert tagger.facts.train_documents == 3


def test_a_model_keeps_that_it_learnt_from_descriptions(corpus, tmp_path):
    tagger = textcat.train(corpus, Recipe("d", topics={"description_copies": 2}))
    textcat.save(tagger, tmp_path / "model")
    loaded = textcat.load(tmp_path / "model")
    assert loaded.facts.recipe.topics.description_copies == 2
    assert np.array_equal(loaded.scores(["zinc and corn"]), tagger.scores(["zinc and corn"]))


def test_descriptions_help_where_a_topic_has_one_document():
    corpus = textcat.open_corpus("newswire")
    kept = dict.fromkeys(corpus.topics, 0)

    def thinned(document):
        topics = tuple(topic for topic in document.topics if kept[topic] == 0)
        kept.update((topic, 1) for topic in topics)
        return replace(document, topics=topics)

    # A document of a topic that it is no longer filed under would be a wrong negative example.
    train = [new for old in corpus.train if (new := thinned(old)).topics == old.topics or not old.topics]
    rare = Corpus(corpus.name, train, corpus.test, corpus.topics)
    quality = [
        textcat.evaluate(textcat.train(rare, Recipe("d", topics={"description_copies": copies})), rare).bands[0]
        for copies in (0, 2)
    ]
    assert quality[1]["macro_average_precision"] > quality[0]["macro_average_precision"] + 0.05


@pytest.mark.parametrize(("value", "message"), [(-1, "cannot be -1; give 0 or more"), (0.5, "give a whole number")])
def test_a_recipe_that_asks_for_no_whole_number_of_descriptions_is_told(corpus, value, message):
    with pytest.raises(TextcatError, match=message):
        textcat.train(corpus, Recipe("d", topics={"description_copies": value}))


def test_a_text_that_is_not_kept_is_gone_once_it_is_counted(monkeypatch):
    class Text(str):
        __slots__ = ("__weakref__",)

    def counting(tokens, texts, **options):
        seen = []
        for text in texts:
            assert not any(earlier() is not None for earlier in seen), "an earlier text is still there"
            seen.append(weakref.ref(text))
            del text
        return count_terms(tokens, ["gold"] * len(seen), **options)

    count_terms = Tokens.count_terms
    monkeypatch.setattr(Tokens, "count_terms", counting)
    documents = [Document(str(k), {"body": Text(f"gold {k}")}, ("gold",)) for k in range(5)]
    own = Corpus.from_documents("c", documents)
    counts = CountedCorpus(own, Recipe("plain"), keep_texts=False)
    assert counts.labels.shape == (5, 1)
    assert not any(document.zones for document in own.train)


class Stream:
    """A corpus that is read in the order of the documents, with some that are of neither part."""

    def __init__(self, documents):
        self._documents = documents

    def __iter__(self):
        yield from (document.zones for document in self._documents)
        self.corpus = Corpus.from_documents("c", self._documents, "described", DESCRIBED)


@pytest.mark.parametrize("copies", [0, 2])
def test_of_a_corpus_that_is_being_read_the_same_examples_are_made(copies):
    parts = ["test", "", "unused", "test", "train", "", "test"]
    texts = ["gold prices", "maize prices", "of no part", "prices of rain", "gold rose", "rain rose", "corn of zinc"]
    documents = [
        Document(f"{part}{i}", {"title": text[:3], "body": text}, ("gold",) if "gold" in text else ())
        for i, (part, text) in enumerate(zip(parts, texts, strict=True))
    ]
    documents = [replace(document, split=part) for document, part in zip(documents, parts, strict=True)]
    pairs, topics = {"ngrams": 2, "ngram_min_df": 1}, {"description_copies": copies}
    recipe = Recipe("plain", topics=topics, features={**pairs, "weighting": "bm25"})
    streamed = CountedCorpus(Stream(documents), Recipe("rare", topics=topics, features={**pairs, "ngram_min_df": 3}))
    assert streamed.serves(recipe)
    assert not streamed.serves(Recipe("words", topics=topics))
    read = CountedCorpus(streamed.corpus, recipe)
    features = {each: each.fit(recipe.make_features()) for each in (streamed, read)}
    assert features[streamed].vocabulary_ == features[read].vocabulary_
    assert np.array_equal(features[streamed].idf_, features[read].idf_)
    assert features[streamed].average_lengths_ == features[read].average_lengths_
    for ours, theirs in zip(streamed.examples(features[streamed]), read.examples(features[read]), strict=True):
        assert ours is theirs is None or (ours.dtype == theirs.dtype and (ours != theirs).nnz == 0)
    assert read.test_rows(features[read]) is None
    rows = streamed.test_rows(features[streamed])
    assert np.array_equal(rows.toarray(), features[read].transform(streamed.corpus.test).toarray())
    some = np.array([2, 0])
    assert np.array_equal(
        streamed.held_out_rows(features[streamed], some).toarray(), read.held_out_rows(features[read], some).toarray()
    )
