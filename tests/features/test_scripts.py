"""Runs of scripts without spaces are cut into n-grams of characters, whatever the language and what is around them."""

import unicodedata
from collections import Counter
from dataclasses import replace

import naive_features as naive
import numpy as np
import pytest
from cases import every
from hypothesis import example, given
from hypothesis import strategies as st

import textcat
from textcat.base.errors import TextcatError
from textcat.base.normal_forms import normalised
from textcat.corpus.documents import Corpus
from textcat.features.language import open_language
from textcat.features.scripts import UNSPACED_LANGUAGES, UNSPACED_RANGES, is_unspaced, places_in_run, shown
from textcat.features.settings import FeatureSettings
from textcat.features.spans import places
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import OTHER, KnownTerms, Tokens
from textcat.model import storage
from textcat.reading.document import Document
from textcat.recipes.recipe import default_recipe, read_recipe

SCRIPTS = "CJK ", "HIRAGANA ", "KATAKANA", "HENTAIGANA ", "HALFWIDTH KATAKANA ", "THAI ", "LAO ", "MYANMAR ", "KHMER "
SIGNS = "々〆〇〻゙゚ーﾞﾟｰ"  # whose names begin otherwise: they repeat, name, or change a sound
KEEP_ALL = {"alphabetic": False, "remove_stop_words": False}
TOKENS = {lang: Tokens(lang) for lang in ("en", "de", "zh", "th", "lo")}
characters = st.sampled_from(["中", "国", "の", "カ", "ー", "ไ", "ท", "ย", "ລ", "ក", "မ", "𠮷", "々", "ﾊ"])
others = st.sampled_from(
    [*"ab1.:)('", "Prices", "don't", " ", "  ", "\n", "\u3000", "，", "、", "é", "。", "๑", "😀", ":)"]
)
texts = st.lists(st.one_of(characters, others), max_size=25).map("".join)
ways = st.fixed_dictionaries(
    {}, optional={name: st.booleans() for name in ("lowercase", "alphabetic", "remove_stop_words", "singularize")}
)


def test_the_ranges_are_the_letters_and_marks_of_the_scripts():
    listed = {chr(c) for first, last in UNSPACED_RANGES for c in range(first, last + 1)}
    assert not [c for c in listed if unicodedata.category(c) != "Cn" and not _is_one(c)]
    assert not [chr(c) for c in range(0x0E00, 0xA000) if _is_one(chr(c)) and chr(c) not in listed]


def _is_one(character):
    of_script = unicodedata.name(character, "").startswith(SCRIPTS)
    return character in SIGNS or (unicodedata.category(character)[0] in "LM" and of_script)


@given(texts, st.sampled_from(sorted(TOKENS)))
@example("中 a", "en")
@example("中  a", "en")
@example("中\na :) )", "zh")
@example(":中)", "en")
@example(" 中 ", "th")
def test_tokens_are_characters_in_runs_and_those_of_spacy_around_them(text, lang):
    expected = naive.tokens(text, lang)
    assert TOKENS[lang].tokenize(text) == expected
    assert TOKENS[lang].count([text]).tolist() == [len(expected)]


@given(st.lists(texts, max_size=5), ways, st.sampled_from(["en", "zh"]), st.integers(1, 3), st.integers(0, 4))
def test_terms_are_those_of_the_slow_twin(documents, how, lang, ngrams, chars):
    lengths = FeatureSettings(chars=chars).char_lengths
    found = Tokens(lang, **how).count_terms(documents, ngrams=ngrams, char_lengths=lengths)
    start = 0
    for text, end in zip(documents, found.ends.tolist(), strict=True):
        got = Counter()
        for id_, n in zip(found.ids[start:end].tolist(), found.counts[start:end].tolist(), strict=True):
            got[_name(found, id_)] += n
        assert got == Counter(naive.grams(naive.terms(text, lang, **how), ngrams, chars))
        start = end


def _name(counts, id_):
    words = []
    while id_ < 0:
        id_, right = counts.ngrams[~id_].tolist()
        words.append(counts.terms[right])
    return (counts.terms[id_], *words[::-1])


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_of_runs_too_only_known_terms_have_an_id_of_their_own(learnt, documents):
    words = list(dict.fromkeys(word for text in learnt for word in naive.terms(text)))[::2]
    known = KnownTerms([*words, OTHER], np.array([[len(words)] * 2], np.int32))
    tokens = Tokens()
    tokens.count_terms(learnt)  # these ids are then changed
    found = tokens.count_terms(documents, known_terms=known)
    start = 0
    for text, end in zip(documents, found.ends.tolist(), strict=True):
        ids, counts = found.ids[start:end].tolist(), found.counts[start:end].tolist()
        got = {known.terms[i]: n for i, n in zip(ids, counts, strict=True)}
        assert got == Counter(term if term in words else OTHER for term in naive.terms(text))
        start = end


@given(texts)
def test_each_term_of_a_run_stands_where_it_is_said_to(text):
    located = TOKENS["en"].locate_tokens([text])[0]
    assert [one.term for one in located] == naive.terms(text, segmenter="runs")
    assert all(normalised(text[one.start : one.end]) == one.token for one in located)
    assert all(one.term == one.token for one in located if is_unspaced(one.term))


def test_a_full_token_cache_finds_the_same_terms(monkeypatch):
    monkeypatch.setattr("textcat.features.tokens.BATCH_TEXTS", 10)
    documents = [f"第{chr(0x4E00 + i)}{chr(0x5E00 + 7 * i)}章 word{i} 东西" for i in range(300)]
    small, large = (Tokens(memo_bytes=n, **KEEP_ALL).count_terms(documents) for n in (20_000, 2**28))
    assert small.terms == large.terms or len(small.terms) == len(large.terms)
    known = KnownTerms(["东西", "第", "word7", OTHER], np.zeros((1, 2), np.int32))
    counts = [Tokens(memo_bytes=n).count_terms(documents, known_terms=known) for n in (5_000, 2**28)]
    assert all(np.array_equal(*arrays) for arrays in zip(*(part[:3] for part in counts), strict=True))


def test_words_on_either_side_of_a_run_make_no_pair():
    found = Tokens().count_terms(["oil 石油 price rise"], ngrams=3)
    assert [_name(found, ~i) for i in range(len(found.ngrams))] == [("price", "rise")]


@every("lang", sorted(UNSPACED_LANGUAGES))
def test_a_language_without_spaces_needs_no_package(lang):
    assert Tokens(lang).tokenize("中国 don't") == ["中", "国", "don't"]


def test_the_places_in_a_run_are_those_of_its_ngrams_of_up_to_three_characters():
    assert places_in_run(1) == [(0, 1)]
    assert places_in_run(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_a_segmenter_that_there_is_not_is_refused():
    with pytest.raises(TextcatError, match=r"no segmenter 'jieba'.*'ngrams' or 'runs' or 'spacy'"):
        read_recipe("paum").with_settings(["tokens.segmenter=jieba"])


def test_spacy_segments_if_it_is_asked_to():
    assert Tokens("zh", segmenter="spacy").tokenize("我 ok吗") == naive.tokens("我 ok吗", "zh", "spacy")
    assert Tokens("en", segmenter="spacy", **KEEP_ALL).count_terms(["我们 ok"]).terms == ["我们", "ok"]
    assert open_language("zh").splits_at_space is False


@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from([1, 2]), st.sampled_from([0, 3]))
def test_each_column_of_a_row_has_a_place_in_the_text(documents, ngrams, chars):
    features = TfIdf(Tokens(**KEEP_ALL), ngrams=ngrams, chars=chars, idf="none", ngram_min_df=1)
    features.fit([*documents, "word"])
    for text in documents:
        row = features.transform([text])
        found = places(features, text, row.indices.tolist())
        assert sorted(found) == sorted(row.indices.tolist())
        for place in found.values():
            assert all(0 <= span.start < span.end <= len(text) for span in place.spans)


SENTENCES = {"rain": "北京今天下大雨", "money": "银行提高了利率"}


@pytest.fixture
def tagger():
    documents = [
        Document(f"{topic}{i}", {"title": f"{text} {i % 3} news{'，' * (i % 2)}明天"}, (topic,))
        for i in range(12)
        for topic, text in SENTENCES.items()
    ]
    recipe = read_recipe("short-texts").with_settings(["tokens.lang=zh", "tags.strategy=zero"])
    return textcat.train(Corpus.from_documents("zh", documents), recipe)


def test_a_tag_is_explained_by_ngrams_and_by_characters_without_which_it_would_go(tagger):
    text = "上海明天下大雨 news"
    [explanation] = tagger.explain_all(text, ["rain"])
    reasons = {reason.term: reason for reason in explanation.reasons}
    assert {"大雨", "下大雨", "雨"} <= set(reasons)
    assert [text[span.start : span.end] for span in reasons["下大雨"].spans] == ["下大雨"]
    total = sum(reason.contribution for reason in explanation.reasons) + explanation.rest + explanation.bias
    assert total == pytest.approx(explanation.score, rel=1e-5)
    assert explanation.without
    assert all(len(word) == 1 or word.isascii() for word in explanation.without)
    left = text
    for word in explanation.without:
        left = left.replace(word, "䴥")  # a character that no training document has
    assert [tag.topic for tag in tagger.tag([left])[0] if tag.topic == "rain"] == []


def test_a_stored_model_has_the_same_scores_and_the_tables_of_words(tmp_path, tagger):
    storage.save(tagger, tmp_path / "model")
    loaded = textcat.load(tmp_path / "model")
    texts = ["明天有雨 and news", "利率", "plain words", ""]
    np.testing.assert_array_equal(loaded.scores(texts), tagger.scores(texts))
    assert loaded.features.tokens_.segmenter == "ngrams"
    assert loaded.features.tokens_.tables().lang == "xx"


def test_the_same_model_is_made_by_any_number_of_jobs():
    documents = [Document(str(i), {"body": SENTENCES["rain"][i % 5 :]}, (str(i % 2),)) for i in range(10)]
    corpus, recipe = Corpus.from_documents("zh", documents), read_recipe("short-texts")
    one, two = (textcat.train(replace(corpus), recipe, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.scores(["今天下雨"]), two.scores(["今天下雨"]))


def test_ngrams_with_other_characters_count_where_runs_are_a_good_part_of_a_text():
    counted = {shown(term) for term in Tokens("zh", alphabetic=False).count_terms(["08年考研 (组图) NBA"]).terms}
    assert {"08年", "8年", "研␣(", "(组图", "图)␣", "nba", "年考研"} <= counted
    mostly_words = "An article about oil that names 石油 once and no more in all of its words"
    tokens, of_runs = Tokens("en"), Tokens("en", segmenter="runs")
    assert tokens.count_terms([mostly_words]).terms == of_runs.count_terms([mostly_words]).terms


@every("text", ["ราคา ข้าว 2565 (ไทย)", "ລາວ 2023, ວຽງຈັນ", "မြန်မာ (2021) ရန်ကုန်", "ភ្នំពេញ 2020"])
def test_ngrams_cross_no_edge_where_spaces_divide_phrases(text):
    tokens, of_runs = Tokens("th", alphabetic=False), Tokens("th", alphabetic=False, segmenter="runs")
    assert tokens.count_terms([text]).terms == of_runs.count_terms([text]).terms


@every("text", ["\U00040000A", "石油\U00040041", "\U0005ffff 中", "é\U0004e2d0ng", "油\U00040020\ud800"])
def test_an_unassigned_character_that_looks_like_a_stand_in_is_read_as_unknown(text):
    tokens, read = Tokens(alphabetic=False), "".join("\ufffd" if "\U00040000" <= c < "\U00060000" else c for c in text)
    assert tokens.as_read(text) == read
    assert tokens.tokenize(text) == tokens.tokenize(read)
    assert tokens.count_terms([text]).terms == tokens.count_terms([read]).terms
    assert tokens.locate_tokens([text]) == tokens.locate_tokens([read])


@every(
    "title, name",
    [
        ("08年考研复试 (组图) NBA", "few-documents"),
        ("東京で大雨のニュース、2021年", "few-short-texts"),
        ("ราคา ข้าว 2565 (ไทย)", "few-short-texts"),
        ("An article on 石油", "few-short-texts"),
    ],
)
def test_short_chinese_texts_have_the_recipe_of_long_ones(title, name):
    corpus = Corpus.from_documents("short", [Document(str(i), {"title": title}, ("a",)) for i in range(5)])
    assert default_recipe().for_corpus(corpus)[0].name == name
    of_runs = default_recipe().with_settings(["tokens.segmenter=runs"])
    assert of_runs.for_corpus(corpus)[0].name == "few-short-texts"
