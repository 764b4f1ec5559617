"""The tables answer as the regexes do, or leave the answer to them."""

import re
import sys
from functools import cache

import naive_features as naive
import pytest
from cases import every
from hypothesis import example, given
from hypothesis import strategies as st
from texts import LANGUAGES, PIECES, SOME_LANGUAGES

from textcat.features.affixes import (
    ANY_CHARACTER,
    OTHER,
    TOKENIZER_METHODS,
    UnmodelledRegexError,
    alternatives_of,
    parse_regex,
    read_affixes,
    read_url,
    regex_function,
    required_characters,
    tokenizer_regexes,
)
from textcat.features.language import AffixTable, SpanCutter


@cache
def regexes_of(lang):
    return tokenizer_regexes(naive.nlp_of(lang).tokenizer)


@cache
def affixes_of(lang):
    """To read them takes a thousand times as long as to cut a span by them."""
    return read_affixes(regexes_of(lang))


def cutter_of(regexes, affixes, specials=frozenset(), *, whole=False):
    """What cuts spans by the tables alone."""
    keeps_whole = len if whole or "token_match" in regexes else None
    return SpanCutter([None, None, None, None, keeps_whole], affixes, (), {}, specials)


@cache
def specials_of(lang):
    """With all their pieces, whatever way spaCy cuts them."""
    return {"".join(rule.split()) for rule in naive.nlp_of(lang).tokenizer.rules}


@cache
def language_cutter(lang, *, whole=False):
    return cutter_of(regexes_of(lang), affixes_of(lang), specials_of(lang), whole=whole)


chunks = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=5).map("".join),
    st.text(alphabet="abAB09.,:;-+*^/<>=()[]'\"’%°$€ckmKM \n…²é", max_size=8),
)


ROLES = ("prefix", "suffix", "infix")


def _table(function, alternatives, role):
    return AffixTable(function, alternatives, looks_back=role == "suffix")


def _found(table, role, string):
    """What a table finds: the spans of infixes, or the width of another affix: as spaCy asks for it, 0 for none."""
    return {"prefix": table.prefix, "suffix": table.suffix, "infix": table.infixes}[role](string)


def _matched(function, role, string):
    """The same, as a regex's own function finds it."""
    match = function(string)
    if role == "infix":
        return [each.span() for each in match]
    return match.end() - match.start() if match else 0


@cache
def tables_of(lang):
    """By role, and what `url_match` asks, with what it needs."""
    regexes = regexes_of(lang)
    asked = (regex_function(regexes, name) for name in TOKENIZER_METHODS)
    tables = {
        role: _table(function, alternatives, role)
        for function, alternatives, role in zip(asked, affixes_of(lang), ROLES, strict=False)
    }
    return tables, regex_function(regexes, "url_match"), read_url(regexes)


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
@given(chunk=chunks)
@example(chunk="5km/h")
@example(chunk="said.")
@example(chunk="a..")
@example(chunk="x\n")
@example(chunk="first-half")
@example(chunk="")
def test_tables_find_what_the_regexes_find(lang, chunk):
    tokenizer = naive.nlp_of(lang).tokenizer
    tables, url_match, url_needs = tables_of(lang)
    for role in ROLES:
        spacys = getattr(tokenizer, f"{role}_{'finditer' if role == 'infix' else 'search'}")
        assert _found(tables[role], role, chunk) == _matched(spacys, role, chunk)
    url, expected = url_match(chunk), tokenizer.url_match(chunk)
    assert (url is None) == (expected is None)
    if chunk.isascii() and any(not any(mask >> ord(c) & 1 for c in chunk) for mask in url_needs):
        assert expected is None


@given(st.text(alphabet=":@a./", max_size=12))
@example("a:b@c.com")
@example("a@b:c@a.aa")
@example(":@a.aa")
@example("@a.aa")
@example("aa://a:@a.aa/@")
def test_a_url_with_colons_and_at_signs_is_one_for_the_regex_of_spacy(chunk):
    _, url_match, _ = tables_of("en")
    spacys = naive.nlp_of("en").tokenizer.url_match
    assert url_match.__self__.pattern != spacys.__self__.pattern  # it is not tried with each colon and each "@"
    assert (url_match(chunk) is None) == (spacys(chunk) is None)


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
@given(chunk=chunks.filter(lambda chunk: not any(map(str.isspace, chunk))))
@example(chunk="word.")
@example(chunk='"word"')
@example(chunk="($5")
@example(chunk="Mr.")
@example(chunk="co.")
@example(chunk="(co.")
@example(chunk=":)")
@example(chunk="a:)")
@example(chunk="'s")
def test_what_the_tables_cut_is_cut_as_the_tokenizer_does_it(lang, chunk):
    tokens, lengths = language_cutter(lang).cut([chunk])
    assert lengths.tolist() == [len(tokens)]
    assert tokens in ([], naive.tokens(chunk, lang))


@pytest.mark.sampled
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_tables_of_every_language_are_read(lang):
    tokens, lengths = language_cutter(lang).cut(["word", "(word", "word,", "(word)"])
    if naive.nlp_of(lang).tokenizer.token_match is None:
        assert (tokens, lengths.tolist()) == (["word", "(", "word", "word", ",", "(", "word", ")"], [1, 2, 2, 3])
    else:  # it is asked about everything that has an affix
        assert (tokens, lengths.tolist()) == (["word"], [1, 0, 0, 0])


ATOMS = r"""
a b \. [ab] [^a] . \d \W \s é [à-ü] (?:ab|b) a+ b* (?:ab)? [ab]{2,3} (a|bb) a+? (?:a|) \b
(?<=a) (?<=[ab].) (?<!a) (?=b) (?!b) $ ^ (?>a+) a++ [^é] (?<=a|b) (?=[^b]) (?:a(?=b)|b)
""".split()  # noqa: SIM905
atoms = st.sampled_from([atom for atom in ATOMS if sys.version_info >= (3, 11) or atom not in ("(?>a+)", "a++")])
branches = st.lists(st.lists(atoms, min_size=1, max_size=3).map("".join), min_size=1, max_size=4)
strings = st.text(alphabet="ab.é1 _\n", max_size=8)


@given(branches, strings)
def test_tables_of_any_regex_find_what_it_finds(parts, string):
    for role, pattern, method in (
        ("prefix", "|".join("^" + part for part in parts), "search"),
        ("suffix", "|".join(part + "$" for part in parts), "search"),
        ("infix", "|".join(parts), "finditer"),
    ):
        regex = re.compile(pattern)
        function = getattr(regex, method)
        table = _table(function, alternatives_of(regex, role), role)
        assert _found(table, role, string) == _matched(function, role, string)


@given(branches, strings)
def test_a_string_without_a_required_character_does_not_match(parts, string):
    regex = re.compile("|".join(parts))
    held = 0
    for character in string:
        held |= 1 << ord(character) if ord(character) < 128 else OTHER
    if any(not mask & held for mask in required_characters(parse_regex(regex))):
        assert regex.search(string) is None


@every(
    "pattern, role, flags",
    [
        ("^a|b", "prefix", 0),
        ("a$|b", "suffix", 0),
        ("^a", "prefix", re.IGNORECASE),
        ("(?i:a)", "infix", 0),
        (r"(a)\1", "infix", 0),
        ("|".join("(?:a|b[cd]|ef)" * 9 for _ in range(2)), "infix", 0),
    ],
)
def test_what_cannot_be_read_is_left_to_the_regex(pattern, role, flags):
    regex = re.compile(pattern, flags)
    with pytest.raises(UnmodelledRegexError):
        alternatives_of(regex, role)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="system: atomic groups came with Python 3.11")
def test_a_lookbehind_after_an_atomic_group_does_not_look_before_the_match():
    find = re.compile("(?>a+)(?<=[ab].)").finditer
    assert _found(_table(find, alternatives_of(find.__self__, "infix"), "infix"), "infix", "ba _") == [(1, 2)]


def test_an_unread_regex_is_always_asked():
    for role in ROLES:
        find = getattr(re.compile("(?i)^x|x$"), "finditer" if role == "infix" else "search")
        assert _found(_table(find, None, role), role, "X") == ([(0, 1)] if role == "infix" else 1)


def test_a_tokenizer_without_regexes_has_no_affixes():
    class Bare:
        prefix_search = suffix_search = infix_finditer = url_match = token_match = None

    assert tokenizer_regexes(Bare) == {}
    assert cutter_of({}, read_affixes({})).cut(["(a-b)."])[0] == ["(a-b)."]


def test_other_callables_than_regexes_are_not_read():
    class Custom:
        prefix_search = suffix_search = staticmethod(re.compile("^a$").fullmatch)
        infix_finditer = staticmethod(lambda string: iter(()))
        url_match = token_match = staticmethod(lambda string: None)

    assert tokenizer_regexes(Custom) is None


def test_a_tokenizer_that_keeps_some_chunks_whole_is_asked_about_every_affix():
    assert language_cutter("en", whole=True).cut(["x,", "x"])[1].tolist() == [0, 1]


def test_exact_alternatives_know_their_width():
    (unit,) = alternatives_of(re.compile("(?<=[0-9])km$"), "suffix")
    assert unit.width == 2
    assert unit.before[:2] == (1 << ord("m"), 1 << ord("k"))
    assert unit.before[3] == ANY_CHARACTER
    assert [each.width for each in alternatives_of(re.compile(r"\.\.+$"), "suffix")] == [-1]


# --- what is used of Python and spaCy beyond what they promise -------------------------------------------------------


def test_python_names_the_nodes_of_a_regex_as_the_tables_read_them():
    # Private: `re._parser` (before Python 3.11: `sre_parse`).
    nodes = parse_regex(re.compile(r"^(a|[^b-d\d])x?(?<=é)(?!y).$"))
    names = ["AT", "SUBPATTERN", "MAX_REPEAT", "ASSERT", "ASSERT_NOT", "ANY", "AT"]
    assert [str(op) for op, _ in nodes] == names
    ((branch, (_, ways)),) = nodes[1][1][3]
    assert str(branch) == "BRANCH"
    assert [[str(op) for op, _ in way] for way in ways] == [["LITERAL"], ["IN"]]
    members = [(str(op), str(value)) for op, value in ways[1][0][1]]
    assert members == [("NEGATE", "None"), ("RANGE", "(98, 100)"), ("CATEGORY", "CATEGORY_DIGIT")]
    assert nodes[2][1][:2] == (0, 1)
    assert [nodes[k][1][0] for k in (3, 4)] == [-1, 1]


def test_spacy_asks_for_affixes_by_bound_methods_of_regexes():
    # Not promised: a tokenizer's callables are methods of patterns, whose parse trees the tables are made from.
    tokenizer = naive.nlp_of("en").tokenizer
    for name, method in (
        ("prefix_search", "search"),
        ("suffix_search", "search"),
        ("infix_finditer", "finditer"),
        ("url_match", "match"),
    ):
        function = getattr(tokenizer, name)
        assert isinstance(function.__self__, re.Pattern)
        assert function.__name__ == method
    assert isinstance(tokenizer.rules, dict)
    assert tokenizer.token_match is None
    assert tokenizer.faster_heuristics is True


@pytest.mark.sampled
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_regex_of_a_language_is_left_unread(lang):
    tokenizer = naive.nlp_of(lang).tokenizer
    for function, role in (
        (tokenizer.prefix_search, "prefix"),
        (tokenizer.suffix_search, "suffix"),
        (tokenizer.infix_finditer, "infix"),
    ):
        assert alternatives_of(function.__self__, role)
