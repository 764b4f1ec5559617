"""Texts that look the same have the same rows; explanations show places in the texts as they were given."""

import random
import unicodedata

import naive_features as naive
import numpy as np
import pytest
from cases import every
from hypothesis import example, given
from hypothesis import strategies as st

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document
from textcat.duplicates.groups import sketch_texts
from textcat.features.spans import places
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.recipes.recipe import default_recipe, read_recipe
from textcat.training.identification import identify_languages

LETTERS = [*"éàçñåüøßŁőǘệΐάйёїがプ각ক়ড়क़", "\u212b", "\u2126", "\u212a", "\u0344", "\u1fef", "\uf900", "ạ̈", "é̱", "ẛ̣"]
ALONE = ["\u0301", "\u0323", "\u05b0", "\u3099", "\u0e48", "\u11a8", "\ud800", "😀", "中", "ไทย", "don't", "U.S."]
AROUND = [*" \n.,:;-()!1a", "\u00a0", "\u2000", "\u2001", "\u2028", "\u3000", "\u00ad", "\u200b", "\u200d", "\ufeff"]
texts = st.lists(st.sampled_from([*LETTERS, *ALONE, *AROUND, *AROUND]), max_size=20).map("".join)
FRENCH = [
    "Le blé est récolté à l'été, près du Léman.",
    "L'or cuivré et naïf; la forêt brûlée",
    "Crédit émis à Genève: intérêts élevés",
    "Le blé français à 5 Å de l'hôpital",
]


def equivalents(text, seed=0):
    """Texts that are canonically equivalent: decomposed, composed, by turns, with singletons and marks out of order."""
    chance = random.Random(seed)
    back = {"Å": "\u212b", "Ω": "\u2126", "K": "\u212a", ";": "\u037e", "`": "\u1fef", "·": "\u0387"}
    decomposed = unicodedata.normalize("NFD", text)
    by_turns = "".join(unicodedata.normalize(chance.choice(("NFC", "NFD")), letter) for letter in text)
    singletons = "".join(back.get(letter, letter) for letter in unicodedata.normalize("NFC", text))
    return [decomposed, unicodedata.normalize("NFC", text), by_turns, singletons, _shuffled(decomposed, chance)]


def _shuffled(decomposed, chance):
    """A decomposed text whose marks of different classes stand in another order."""
    letters = list(decomposed)
    for i in range(len(letters) - 1):
        one, other = map(unicodedata.combining, letters[i : i + 2])
        if one and other and one != other and chance.random() < 0.5:
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
    return "".join(letters)


def same_row(features, one, other):
    rows = features.transform([one, other])
    first, second = rows[0], rows[1]
    return np.array_equal(first.indices, second.indices) and np.array_equal(first.data, second.data)


@pytest.fixture(scope="module", params=["words", "chars"])
def features(request):
    settings = {"words": {"ngrams": 2, "ngram_min_df": 1}, "chars": {"chars": 3}}
    tokens = Tokens("es", alphabetic=False, remove_stop_words=request.param == "words")
    everything = [*FRENCH, " ".join([*LETTERS, *ALONE]), "".join([*LETTERS, *ALONE])]
    return TfIdf(tokens, weighting="bm25", **settings[request.param]).fit(everything)


@given(texts, st.integers(0, 100))
@example("a\u0323\u0301b", 0)
@example(" \u0301a", 0)
@example("\u1112\u1161\u11a8", 0)
@example("x \u0958", 1)
def test_equivalent_texts_have_the_same_row_to_the_bit(features, text, seed):
    for other in equivalents(text, seed):
        assert unicodedata.normalize("NFC", other) == unicodedata.normalize("NFC", text)
        assert same_row(features, text, other)


TOKENS = {lang: (Tokens(lang), Tokens(lang, normal_form="none")) for lang in ("en", "es", "zh")}


@given(texts, st.sampled_from(sorted(TOKENS)))
def test_a_text_has_the_tokens_of_its_normal_form(text, lang):
    tokens, as_it_is = TOKENS[lang]
    assert tokens.tokenize(text) == as_it_is.tokenize(naive.normalised(text))
    whole = text.replace("\ud800", "\ufffd")  # spaCy takes no surrogates
    assert tokens.tokenize(text) == naive.tokens(whole, lang)
    assert as_it_is.tokenize(text) == naive.tokens(whole, lang, normal_form="none")


def is_mark_behind_a_sign(text):
    return len(text) > 1 and not text[0].isalnum() and all(map(unicodedata.combining, text[1:]))


@given(st.lists(st.sampled_from([*LETTERS, *AROUND, *"abc"]), max_size=25).map("".join), st.integers(0, 9))
def test_places_are_those_of_the_text_as_given(features, text, seed):
    """The text of each span has the column alone, and all forms of a text name the same terms in the same order."""
    form = unicodedata.normalize("NFC", text)
    wanted = features.transform([form]).indices.tolist()
    names = [(column, place.name) for column, place in places(features, form, wanted).items()]
    for other in equivalents(text, seed):
        found = places(features, other, wanted)
        assert [(column, place.name) for column, place in found.items()] == names
        for column, place in found.items():
            for span in place.spans:
                assert 0 <= span.start <= span.end <= len(other)
                if is_mark_behind_a_sign(other[span.start : span.end]):
                    continue  # the mark is the term, and is shown with the sign that it is written on
                assert column in features.transform([other[span.start : span.end]]).indices


def test_a_span_covers_the_marks_of_its_letters():
    text = unicodedata.normalize("NFD", "Å, le blé récolté")
    features = TfIdf(Tokens("es", alphabetic=False)).fit(["le blé récolté, Å"])
    found = places(features, text, range(len(features.idf_)))
    shown = {place.name: [text[span.start : span.end] for span in place.spans] for place in found.values()}
    assert shown["blé"] == ["ble\u0301"]
    assert shown["récolté"] == ["re\u0301colte\u0301"]
    assert shown["å"] == ["A\u030a"]


def test_stop_words_of_every_form_are_stop_words():
    word = "হয়েছে"  # Bengali: "has been"; the form C of its third letter is decomposed
    for text in equivalents(word):
        assert Tokens("bn").count_terms([text]).ids.tolist() == []


@every(
    "lang, one, other", [("hi", "हिन्\u200dदी", "हिन्दी"), ("de", "Waſ\xadſer", "Wasser"), ("fa", "می\u200cکند", "میکند")]
)
def test_words_that_look_the_same_are_the_same_term_or_stop_word(lang, one, other):
    tokens = Tokens(lang)
    assert tokens.count_terms([one]).terms == tokens.count_terms([other]).terms == [other.lower()][: lang != "fa"]


def test_a_span_covers_what_is_not_seen_in_its_word():
    text = "Der Mini\xadster der ﬁnanzen, Kö¬\nnigreich"
    features = TfIdf(Tokens("de", alphabetic=False)).fit(["Minister finanzen königreich"])
    found = places(features, text, range(3))
    shown = {place.name: [text[span.start : span.end] for span in place.spans] for place in found.values()}
    assert shown == {"minister": ["Mini\xadster"], "finanzen": ["ﬁnanzen"], "königreich": ["Kö¬\nnigreich"]}


@every(
    "lang, word", [("hi", "हिन्दी"), ("ta", "தமிழ்"), ("he", "שָׁלוֹם"), ("ar", "كِتَابٌ"), ("bn", "বাংলা"), ("en", "x\u0304y")]
)
def test_a_word_with_marks_on_its_letters_consists_of_letters(lang, word):
    assert Tokens(lang).count_terms([f"{word} {word}1 \u0301"]).terms == [word]


def test_a_setting_reads_texts_as_they_are():
    decomposed = unicodedata.normalize("NFD", "blé")
    assert Tokens("es", normal_form="none").tokenize(decomposed) == [decomposed]
    assert Tokens("es").tokenize(decomposed) == ["blé"]


@every("form", ["NFC", "nfd", "", "nfkc"])
def test_another_form_is_refused(form):
    with pytest.raises(TextcatError, match=r"normal_form is .*: give 'nfc' or 'none'"):
        read_recipe("default").with_settings([f"tokens.normal_form={form!r}"])


def test_equivalent_texts_are_duplicates_of_each_other_and_of_the_same_language():
    zones = [{"title": text, "body": " ".join(FRENCH)} for text in equivalents(FRENCH[0])]
    zones = [{name: unicodedata.normalize("NFD", text) for name, text in zones[0].items()}, *zones[1:]]
    assert len({sketch.tobytes() for sketch in sketch_texts(zones)}) == 1
    pytest.importorskip("py3langid", reason="py3langid is not installed")
    long = [{"body": form * 40} for form in equivalents(FRENCH[0])]
    assert len(set(identify_languages(long))) == 1


@pytest.mark.parametrize("name", ["default", "paum", "chars", "paum-2002", "short-texts", "many-topics"])
def test_corpora_in_any_form_give_the_same_model_and_the_same_tags(name):
    records = [(f"{i}", FRENCH[i % 4] + f" {'mot' * (i % 3)} 3 Å {i}", (f"c{i % 4}",)) for i in range(20)]
    recipe = read_recipe(name).with_settings(["tokens.lang=es", "features.min_df=1"])
    taggers = []
    for change in (str, lambda text: equivalents(text)[0], lambda text: equivalents(text)[3]):
        zones = [{"title": change(text[:20]), "body": change(text)} for _, text, _ in records]
        train = [Document(key, texts, topics) for (key, _, topics), texts in zip(records, zones, strict=True)]
        taggers.append(textcat.train(Corpus("c", train, [], ("c0", "c1", "c2", "c3")), recipe))
    expected = taggers[0].scores(FRENCH)
    for tagger in taggers:
        for k in range(5):
            assert np.array_equal(tagger.scores([equivalents(text, 7)[k] for text in FRENCH]), expected)


def test_the_recipe_for_short_texts_is_chosen_by_the_form_that_is_read():
    text = "é" * 290
    for form in ("NFC", "NFD"):
        train = [Document("1", {"body": unicodedata.normalize(form, text)}, ("a",))]
        chosen, _ = default_recipe().for_corpus(Corpus("c", train, [], ("a",)))
        assert chosen.name == "few-short-texts"
