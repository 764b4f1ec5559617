"""A person's words as a row of the pool."""

import numpy as np
import pytest

from textcat.corpus.documents import Document
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.teaching.descriptions import Descriptions

FILLER = ["market prices rose today"] * 400
TEXTS = (
    ["aluminium is a metal"] * 4
    + ["alumina plant"] * 3
    + ["the alum bath", "alum dyes", "sun seed oil", "sun seed crop"]
)
DOCUMENTS = FILLER + TEXTS + ["seed of soy", "sun and rain"]


@pytest.fixture(scope="module")
def features():
    return TfIdf(ngrams=2, min_df=2).fit(DOCUMENTS)


def entries(features, text):
    row = Descriptions(features).rows([text])
    assert row.shape == (1, len(features.vocabulary_))
    names = features.get_feature_names_out()
    return {names[column]: value for column, value in zip(row.indices, row.data, strict=True)}


def test_a_rare_word_stands_for_what_begins_with_it_at_half_the_weight(features):
    row, idf = entries(features, "alum"), dict(zip(features.get_feature_names_out(), features.idf_, strict=True))
    assert row.keys() == {"alum", "aluminium", "alumina"}
    assert row["alumina"] / row["alum"] == pytest.approx(0.5 * idf["alumina"] / np.sqrt(2) / idf["alum"])
    assert sum(value**2 for value in row.values()) == pytest.approx(1)


def test_a_word_that_no_document_has_stands_for_its_parts(features):
    assert entries(features, "sunseed").keys() == {"sun", "seed", "sun seed"}


def test_marks_belong_to_words():
    texts = ["किसान की फसल"] * 3 + ["किसानों का खेत"] * 3 + ["नदी का जल"] * 400
    features = TfIdf(Tokens("hi", remove_stop_words=False)).fit(texts)
    assert entries(features, "किसान").keys() == {"किसान", "किसानों"}


def test_a_common_word_stands_for_itself(features):
    both = Descriptions(features).rows(["market prices", "xyzzy"])
    np.testing.assert_array_equal(both.toarray(), features.transform(["market prices", "xyzzy"]).toarray())


def test_characters_and_titles_change_nothing_of_that():
    settings = {"ngrams": 2, "chars": 3, "char_weight": 0.4, "idf": "smooth", "zone_terms": ["title"]}
    documents = [Document(str(i), {"title": text, "body": text}) for i, text in enumerate(DOCUMENTS)]
    features = TfIdf(**settings).fit(documents)

    def words(text):
        return {name for name in entries(features, text) if not set("~: ") & set(name)}

    assert words("alum") == {"alum", "aluminium", "alumina"}
    assert words("sunseed") == {"sun", "seed"}
    assert words("market") == {"market"}
    assert words("xyzzy") == set()
