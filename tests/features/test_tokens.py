"""The tokens are spaCy's, whatever the text, the language, the batch and the token cache."""

import copy
import gc
import html
import os
import pickle
import re
import signal
import tarfile
import threading
from collections import Counter

import naive_features as naive
import numpy as np
import pytest
import spacy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from language_texts import TOKENS, gaps, texts, with_tables
from sklearn.base import clone
from texts import LANGUAGES, SOME_LANGUAGES

from textcat.features.language import open_language, read_language
from textcat.features.settings import FeatureSettings
from textcat.features.tokens import OTHER, KnownTerms, Tokens, no_garbage_collection

KNOWN = KnownTerms(["word", "the", "x", OTHER], np.zeros((1, 2), np.int32))


def _reuters_texts(archive):
    with tarfile.open(archive) as tar:
        members = sorted((m for m in tar.getmembers() if m.name.endswith(".sgm")), key=lambda m: m.name)
        for member in members:
            data = tar.extractfile(member).read().decode("latin-1")
            for text in re.findall(r"<TEXT.*?</TEXT>", data, re.DOTALL):
                yield html.unescape(re.sub(r"</?(?:TEXT|TITLE|BODY|DATELINE|AUTHOR)[^>]*>", "\n", text))


@given(texts)
@example("x:) )")
@example(":) )")
@example("Fischer 8 -) 8- )")
@example("  a  b ")
@example(" ")
@example("( ^_^ ) (^_^ )")
def test_tokens_are_those_of_spacy(text):
    assert TOKENS["en"].tokenize(text) == naive.tokens(text)


before = st.sampled_from(["", "(", '"', "'", "$", "''"])
core = st.sampled_from(["word", "Words", "the", "Of", "A", "x", "co", "12", "1980s", ":", "Companies", "us"])
behind = st.sampled_from(["", ",", ".", ")", '"', "'s", "km", ".)", "n't", "é"])
plain = st.lists(st.tuples(before, core, behind, gaps).map("".join), max_size=8).map("".join)


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
@given(text=st.one_of(texts, plain))
@example(text="The word, (word) 'Word' word. Of:) (x) co. 12km")
def test_tokens_of_plain_chunks_are_those_of_spacy_where_only_known_terms_count(lang, text):
    found = TOKENS[lang].count_terms([text], known_terms=KNOWN)
    assert TOKENS[lang].tokenize(text) == naive.tokens(text, lang)
    terms = [term if term in KNOWN.terms else OTHER for term in naive.terms(text, lang)]
    entries = zip([KNOWN.terms[i] for i in found.ids.tolist()], found.counts.tolist(), strict=True)
    assert dict(entries) == Counter(terms)


@pytest.mark.parametrize("lang", SOME_LANGUAGES[1:])
@given(text=texts)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_tokens_of_other_languages_are_those_of_spacy(lang, text):
    assert TOKENS[lang].tokenize(text) == naive.tokens(text, lang)


ways = st.fixed_dictionaries(
    {},
    optional={
        "lowercase": st.booleans(),
        "alphabetic": st.booleans(),
        "alphanumeric": st.booleans(),
        "remove_stop_words": st.booleans(),
        "singularize": st.booleans(),
    },
)


@given(st.lists(texts, max_size=6), ways, st.integers(1, 3), st.integers(0, 5), st.integers(0, 5))
@example(["a b a b a", "b a b"], {"remove_stop_words": False}, 3, 0, 0)
@example(["~ab~ ab ~", "~ab~"], {"alphabetic": False}, 1, 2, 0)
@example(["Prices price 1980s -- x_ _ ½"], {"alphabetic": False, "alphanumeric": True, "singularize": True}, 2, 0, 0)
@example(
    ["it's s's ## \x1f \x7f\x7f x- aS a's xs-ys n't 77 5KM ÉA"], {"alphabetic": False, "singularize": True}, 1, 0, 0
)
@example(["the The x-y -- x_s __ 77 7s ##"], {"alphabetic": False, "alphanumeric": True}, 1, 0, 0)
@example(["a ab abc abcdefg"], {}, 1, 4, 2)
@example(["the The ab a7 77 x-y abs"], {"singularize": True}, 1, 0, 0)
def test_terms_are_counted_as_spacy_and_python_count_them(documents, how, ngrams, longest, shortest):
    counts = Tokens(**how)
    lengths = FeatureSettings(chars=longest, char_min=shortest).char_lengths
    counts.counter = _counter_for(counts)
    found = counts.count_terms(documents, ngrams=ngrams, char_lengths=lengths)
    start = 0
    for text, end in zip(documents, found.ends.tolist(), strict=True):
        words = naive.terms(text, **how)
        entries = list(zip(found.ids[start:end].tolist(), found.counts[start:end].tolist(), strict=True))
        assert len({i for i, _ in entries}) == len(entries)
        got = Counter()
        for i, n in entries:  # a term may read like a character n-gram
            got[_name(found, i)] += n
        assert got == Counter(naive.grams(words, ngrams, longest, shortest))
        start = end


def test_a_plural_counts_as_its_singular_and_joins_it_in_pairs():
    found = Tokens(singularize=True).count_terms(["Oil prices, oil price"], ngrams=2)
    assert dict(zip([_name(found, i) for i in found.ids.tolist()], found.counts.tolist(), strict=True)) == {
        ("oil",): 2,
        ("price",): 2,
        ("oil", "price"): 2,
        ("price", "oil"): 1,
    }


_COUNTERS = {}


def _counter_for(tokens):
    """One counter per settings: loading a language takes longer than the examples."""
    key = tuple(sorted(tokens.get_params().items()))
    if key not in _COUNTERS:
        _COUNTERS[key] = tokens.term_counter()
    return _COUNTERS[key]


def _name(found, i):
    if i >= 0:
        return (found.terms[i],)
    before, last = found.ngrams[~i].tolist()
    return (*_name(found, before), found.terms[last])


@pytest.mark.sampled
def test_tokens_of_all_reuters_documents_are_those_of_spacy(reuters_archive):
    documents = list(_reuters_texts(reuters_archive))
    assert len(documents) == 21578
    if "TEXTCAT_LONG" not in os.environ:
        documents = documents[::40]
    ours = Tokens()
    ours.count_terms([], known_terms=KNOWN)  # so that plain chunks are cut without strings, too
    by_tables = with_tables("en")
    totals = ours.count(documents)
    nlp = spacy.blank("en")
    # Neither changes tokens: both save time.
    nlp.vocab.lex_attr_getters = {}
    nlp.tokenizer.max_cache_size = 1_000_000
    for i, text in enumerate(documents):
        expected = [token.text for token in nlp.tokenizer(text)]
        assert ours.tokenize(text) == expected, i
        assert by_tables.tokenize(text) == expected, i
        assert totals[i] == len(expected)


def test_the_same_chunk_in_strings_of_different_width_has_the_same_tokens():
    for tail in ("", "é", "☃", "𝄞"):
        text = f"don't stop, café at 5pm. {tail}".strip()
        assert TOKENS["en"].tokenize(text) == naive.tokens(text)


def test_results_do_not_depend_on_batches_or_on_what_the_token_cache_holds(monkeypatch):
    documents = [f"Word{i % 7} isn't here, said Mr. X{i} :) )" for i in range(60)]
    whole = Tokens().count_terms(documents, ngrams=3, char_lengths=range(3, 4))
    monkeypatch.setattr("textcat.features.tokens.BATCH_CHARACTERS", 100)
    small = Tokens(memo_bytes=0)
    for _ in range(2):
        found = small.count_terms(documents, ngrams=3, char_lengths=range(3, 4))
        assert [_name(found, i) for i in found.ids] == [_name(whole, i) for i in whole.ids]
        assert found.counts.tolist() == whole.counts.tolist()
        assert found.ends.tolist() == whole.ends.tolist()


learnable = st.lists(st.one_of(texts, plain), max_size=4)


@given(learnable, learnable, st.integers(1, 3), ways)
@example(["a b c a b"], ["x a b c y b c", "b x", "x y z"], 3, {"remove_stop_words": False})
@example(["price 12 x-y ."], ["Prices (prices) 12, gas. A. --"], 2, {"alphabetic": False, "singularize": True})
@example(["price 12"], ["Prices 12km '' $5"], 1, {"alphabetic": False, "alphanumeric": True, "singularize": True})
def test_what_is_not_known_counts_as_the_last_term_and_the_last_ngram(learnt, documents, ngrams, how):
    words = list(dict.fromkeys(gram for text in learnt for gram in naive.grams(naive.terms(text, **how), ngrams)))
    known = _known(words[::2])
    counts = Tokens(**how)
    counts.counter = _counter_for(counts)
    found = counts.count_terms(documents, ngrams=ngrams, known_terms=known)
    start = 0
    for text, end in zip(documents, found.ends.tolist(), strict=True):
        grams = [tuple(gram) for gram in naive.grams(naive.terms(text, **how), ngrams)]
        names = {_name(found, i): n for i, n in zip(found.ids[start:end], found.counts[start:end], strict=True)}
        everything = {_name(known, i) for i in range(len(known.terms))} | {
            _name(known, ~i) for i in range(len(known.ngrams))
        }
        others = {True: (OTHER,), False: (OTHER, OTHER)}
        assert names == Counter(gram if gram in everything else others[len(gram) == 1] for gram in grams)
        start = end


def _known(grams):
    """What is known, from some n-grams of terms: their terms, what they begin with, and at last OTHER."""
    terms = {word: None for gram in grams for word in gram} | {OTHER: None}
    places = {word: i for i, word in enumerate(terms)}
    numbers = {}
    for gram in [*grams, (OTHER, OTHER)]:
        left = places[gram[0]]
        for word in gram[1:]:
            left = ~numbers.setdefault((left, places[word]), len(numbers))
    return KnownTerms(list(terms), np.array(list(numbers), np.int32))


def test_what_was_learnt_of_chunks_serves_to_count_what_is_known(monkeypatch):
    documents = ["Word by word, said Mr. X :) )", "nothing new"]
    tokens, known = Tokens(), _known([("word", "word"), ("said",)])
    tokens.count_terms(documents)
    asked = _asked(tokens, monkeypatch)
    found = tokens.count_terms(documents, known_terms=known)
    fresh = Tokens().count_terms(documents, known_terms=known)
    assert asked == []
    assert all(np.array_equal(*each) for each in zip(found[:3], fresh[:3], strict=True))
    assert tokens.count_terms(documents).terms == Tokens().count_terms(documents).terms


def _asked(tokens, monkeypatch):
    """The spans that the language is asked about from now on."""
    language, asked = tokens.term_counter().language, []
    cut_spans = language.cut_spans
    monkeypatch.setattr(language, "cut_spans", lambda spans: (asked.extend(spans), cut_spans(spans))[1])
    return asked


def test_a_full_token_cache_is_emptied(monkeypatch):
    monkeypatch.setattr("textcat.features.tokens.BATCH_TEXTS", 100)
    tokens = Tokens(memo_bytes=100_000)
    for start in range(0, 20_000, 2_000):
        tokens.count_terms([f"word{i} {i}x," for i in range(start, start + 2_000)])
    assert tokens.counter.cache.span_bytes < 250_000
    assert len(tokens.counter.terms) < 10_000


@pytest.mark.parametrize("memo_bytes", [0, 50_000, 200_000])
def test_a_full_token_cache_keeps_what_comes_again(monkeypatch, memo_bytes):
    monkeypatch.setattr("textcat.features.tokens.BATCH_TEXTS", 20)
    # Chunks that are not of ASCII letters, so that the language is asked about them.
    documents = [f"öfter {'lóng' * 20} Word{i} isn't, éternel{i} saïd" for i in range(2_000)]
    known = _known([("öfter", "word1"), ("saïd",)])
    expected = Tokens().count_terms(documents, ngrams=2, known_terms=known)
    tokens = Tokens(memo_bytes=memo_bytes)
    asked = _asked(tokens, monkeypatch)
    found = tokens.count_terms(documents, ngrams=2, known_terms=known)
    assert all(np.array_equal(*each) for each in zip(found[:3], expected[:3], strict=True))
    for span in ("öfter", "lóng" * 20, "isn't,", "saïd"):
        assert asked.count(span) == (1 if memo_bytes else 100)
    assert tokens.tokenize(documents[7]) == naive.tokens(documents[7])


def test_the_tables_of_spacy_do_not_grow_without_a_bound(monkeypatch):
    monkeypatch.setattr("textcat.features.language.MAX_LEXEMES", 1_000)
    tokens, sizes = Tokens("zh", segmenter="spacy"), []
    for start in range(0, 1_500, 100):
        tokens.count_terms([f"nové{i}-x, ({i}é)" for i in range(start, start + 100)], known_terms=KNOWN)
        sizes.append(len(tokens.counter.language.nlp.vocab))
    assert max(sizes) < 1_000 + 100 * 20  # and what a batch brings
    for text in ("nové1-x, don't stop :) )", "Mr. X said 5km. Word"):
        assert tokens.tokenize(text) == naive.tokens(text, "zh", "spacy")


def test_endless_new_words_take_no_more_memory_than_allowed():
    tokens, known = Tokens(memo_bytes=500_000), _known([("known", "word")])
    for start in range(0, 50_000, 1_000):
        found = tokens.count_terms([f"known word{i}, nové{i}" for i in range(start, start + 1_000)], known_terms=known)
        assert found.terms is known.terms
    counter = tokens.counter
    assert counter.terms == ["known", "word", OTHER]
    assert len(counter.ids) == 3
    assert counter.cache.nbytes < 500_000 + 2_000 * 200  # and what a batch brings


def test_counts_of_tokens_are_those_of_spacy():
    documents = ["", " ", "One, two :) )", "\n\nthree\n"]
    assert Tokens().count(iter(documents)).tolist() == [len(naive.tokens(text)) for text in documents]
    assert Tokens().count([]).tolist() == []
    assert Tokens().tokenize("") == []


def test_no_texts_have_no_counts():
    found = Tokens().count_terms([])
    assert (len(found.ends), len(found.ids), len(found.counts)) == (0, 0, 0)


def test_lone_surrogates_are_read_as_the_replacement_character():
    assert TOKENS["en"].tokenize("a\ud800b, c") == naive.tokens("a\ufffdb, c")
    assert TOKENS["en"].tokenize("\ud800 :) )") == naive.tokens("\ufffd :) )")


def test_texts_longer_than_a_pipeline_takes_are_read():
    text = "word, " * 200_000
    assert Tokens().count([text])[0] == 400_000


@pytest.mark.parametrize("lang", ["zh", "xx"])
def test_tokenizers_of_another_kind_are_asked_for_whole_texts(lang):
    text = "我喜欢吃苹果。 Hello world 你好\n"
    tokens = Tokens(lang, segmenter="spacy")
    for _ in range(2):
        assert tokens.tokenize(text) == naive.tokens(text, lang, "spacy")
    found = tokens.count_terms([text, "", text])
    assert np.diff(found.ends, prepend=0).tolist()[1] == 0
    assert sorted(found.terms) == sorted(set(naive.terms(text, lang, segmenter="spacy")))


def test_a_tokenizer_that_is_not_made_of_regexes_is_asked_for_whole_texts(monkeypatch):
    def words(lang):
        class Words(spacy.util.get_lang_class("en")):
            class Defaults(spacy.util.get_lang_class("en").Defaults):
                token_match = staticmethod(lambda string: string == "(and)")

        return Words

    monkeypatch.setattr("textcat.features.language.blank", lambda lang: words(lang)())
    read_language.cache_clear()
    tokens = Tokens("words")
    assert tokens.tables() is None
    assert tokens.tokenize("this (and) that (or)") == ["this", "(and)", "that", "(", "or", ")"]


def test_an_error_half_way_leaves_no_trace(monkeypatch):
    tokens = Tokens()
    tokens.tokenize("a")
    with monkeypatch.context() as patch:
        patch.setattr(tokens.counter.language, "cut_spans", lambda spans: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tokens.tokenize("never-seen, chunks.")
    assert tokens.tokenize("never-seen, chunks.") == naive.tokens("never-seen, chunks.")


def test_a_text_that_is_no_string_is_refused():
    with pytest.raises(TypeError):
        Tokens().count_terms([b"bytes"])


def test_copies_share_settings_and_not_the_token_cache():
    tokens = Tokens("de", lowercase=False)
    tokens.tokenize("Guten Tag")
    for copied in (clone(tokens), pickle.loads(pickle.dumps(tokens)), copy.deepcopy(tokens)):
        assert copied.get_params() == tokens.get_params()
        assert not hasattr(copied, "counter")
        assert copied.tokenize("Guten Tag, z.B.") == naive.tokens("Guten Tag, z.B.", "de")


def test_threads_may_share_the_token_cache():
    documents = [[f"thread{k} word{i}, said U.S. Mr. {i}k :) )" for i in range(200)] for k in range(4)]
    shared = Tokens()
    results = [None] * 4

    def run(k):
        results[k] = [shared.tokenize(text) for text in documents[k]]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[naive.tokens(text) for text in batch] for batch in documents]


# --- what is used of spaCy beyond what it promises -------------------------------------------------------------------
def test_spacy_computes_what_a_term_needs_by_functions_that_methods_of_strings_stand_for():
    # Not promised: the getters of `Vocab.lex_attr_getters`, and that stop words are a `functools.partial` over a set.
    counter = Tokens().term_counter()
    assert counter.lower is str.lower
    assert counter.excluded[0] is str.isspace
    assert counter.stops == spacy.blank("en").Defaults.stop_words


def test_spacy_looks_only_for_the_rules_with_affixes_among_tokens():
    # Not promised: `Tokenizer.rules`, `faster_heuristics`, and that `dont`, which has no affix, stays whole here.
    tables, _ = read_language("en")
    assert set(tables.tokens) == set(spacy.blank("en").tokenizer.rules)
    assert "Mont." in tables.cuts
    assert "dont" not in tables.cuts
    text = "x-dont D-Mont. x-:)"
    assert TOKENS["en"].tokenize(text) == naive.tokens(text) == "x - dont D - Mont. x- :)".split()  # noqa: SIM905


def test_spacys_tokenizer_is_the_one_that_works_on_spans_between_white_space():
    # Not promised: languages with this very class (not one derived from it) tokenize each span for itself.
    assert all(open_language(lang).splits_at_space for lang in LANGUAGES)
    assert not open_language("zh").splits_at_space


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
@pytest.mark.parametrize("holds", ["the token cache", "nothing"])
def test_a_process_that_is_forked_while_threads_count_does_not_wait_for_them(holds):
    tokens, reached, release = Tokens(), threading.Event(), threading.Event()
    tokens.tokenize("Wheat")

    def texts():
        reached.set()
        release.wait()
        yield "Wheat rose."

    def hold():
        if holds == "the token cache":
            with no_garbage_collection():
                tokens.count_terms(texts())
        else:
            reached.set()

    thread = threading.Thread(target=hold)
    thread.start()
    reached.wait()
    child = os.fork()
    if not child:
        signal.alarm(300)  # ends a child that waits
        os._exit(0 if tokens.tokenize("Maize fell.") == ["Maize", "fell", "."] and gc.isenabled() else 1)
    release.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert tokens.tokenize("Maize fell.") == ["Maize", "fell", "."]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
def test_a_forked_process_keeps_a_token_cache_that_no_thread_held():
    tokens = Tokens()
    tokens.tokenize("Wheat")
    counter = tokens.term_counter()
    child = os.fork()
    if not child:
        os._exit(0 if tokens.term_counter() is counter else 1)
    assert os.waitpid(child, 0)[1] == 0
