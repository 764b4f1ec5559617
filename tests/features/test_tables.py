"""Tables of a language that were read from a file give spaCy's tokens, or spaCy is asked again."""

from functools import lru_cache
from importlib.metadata import version

import naive_features as naive
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language_texts import TOKENS, tables_from_a_file, texts, with_tables
from texts import LANGUAGES, SOME_LANGUAGES

from textcat.features.language import read_language
from textcat.features.tables import read_cached_tables
from textcat.features.tokens import Tokens

_kept_with_tables = lru_cache(with_tables)  # to begin anew takes longer than an example


WORDS = """
don't can't, company's "It's" Calif., (N.J.), long-term two-for-one 1-1/4 ... x...y a.m. U.S.-based http://x.org,
www.x.org a@b.com S/P :) (:) x:) '' 'tis o'clock l'an aujourd'hui, z.B. d.h., 10°C 😀 👍, naïve ,- -,- .) [a](b)
$5.50 5km/h, _x_ the Wheat, exports 350.25), x-350.25
""".split()  # noqa: SIM905
sentences = st.lists(st.one_of(st.sampled_from(WORDS), st.text(alphabet="ab'.,-/():%$5s", max_size=8)), max_size=8)


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
@given(st.one_of(texts, sentences.map(" ".join), sentences.map("\n\n".join)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tokens_by_tables_from_a_file_are_those_of_spacy(lang, text):
    assert _kept_with_tables(lang).tokenize(text) == naive.tokens(text, lang)


@pytest.fixture
def languages(tmp_path, monkeypatch):
    """Returns the folder that tables are kept in, which is not there yet."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path)
    for function in (read_language, read_cached_tables):
        function.cache_clear()
    yield tmp_path / "languages"
    read_cached_tables.cache_clear()


def test_the_tables_of_a_language_are_kept_for_the_next_process(languages):
    expected = Tokens("de").tables()
    (file,) = languages.iterdir()
    assert file.name == f"de-{version('spacy')}-1.json"
    read_cached_tables.cache_clear()
    assert read_cached_tables("de") == expected
    assert read_cached_tables("../de") is None


@pytest.mark.parametrize("damage", [b"", b"abc", None])
def test_tables_that_are_damaged_are_read_from_spacy_again(languages, damage):
    expected = Tokens("de").tables()
    (file,) = languages.iterdir()
    content = file.read_bytes()
    file.write_bytes(content.replace(b"z.B.", b"z.C.") if damage is None else damage)
    for function in (read_language, read_cached_tables):
        function.cache_clear()
    assert Tokens("de").tables() == expected
    assert file.read_bytes() == content


def test_tables_need_not_be_kept(languages):
    languages.write_text("a file where the folder would be")
    assert Tokens("de").tokenize("z.B. das") == naive.tokens("z.B. das", "de")


def test_tables_of_another_language_are_not_used():
    tokens = with_tables("en").set_params(lang="de")
    assert tokens.tokenize("z.B. don't") == naive.tokens("z.B. don't", "de")


@pytest.mark.sampled
@pytest.mark.parametrize("lang", LANGUAGES)
def test_tables_are_read_as_they_were_written(lang):
    assert tables_from_a_file(lang) == TOKENS[lang].tables()
