"""Rules of the house give and take topics as their file says, in every way to tag."""

import copy
import json
import pickle
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from cases import every
from hypothesis import assume, given
from hypothesis import strategies as st

import textcat
from textcat.base.errors import TextcatError
from textcat.base.settings import format_value
from textcat.evaluation.promises import Status
from textcat.model.conditions import Condition
from textcat.model.decisions import Decisions
from textcat.model.exclusions import excluded_topics
from textcat.model.rules import Rules
from textcat.model.storage import load
from textcat.reading import Document, Record
from textcat.tagging.planning import make_plan
from textcat.tagging.shards import read_tags
from textcat.tagging.write_back import write_back

TOPICS = [*"abcdef"]
SOME = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=2, unique=True)
BY_TOPIC = st.dictionaries(st.sampled_from(TOPICS), SOME, max_size=2)
FIELDS = {
    "replace": st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(TOPICS), max_size=2),
    "adds": st.dictionaries(st.sampled_from(TOPICS), SOME, max_size=4),
    "parents": st.booleans(),
    "only_with": BY_TOPIC,
    "never_with": BY_TOPIC,
    "never": SOME,
    "narrowest_only": st.booleans(),
    "at_most": st.integers(0, 3),
}
LANGUAGES, DESKS, DAYS = ("en", "fr-CA", ""), ("farm", "home"), ("1990-05-01", "1990-05-31", "1991", "")
CONDITIONS = {
    "language": st.lists(st.sampled_from(["en", "fr", "FR_ca"]), min_size=1, max_size=2),
    "fields": st.fixed_dictionaries({"desk": st.lists(st.sampled_from(DESKS), min_size=1, max_size=2)}),
    "source": st.sampled_from([["*.xml"], ["afp/*", "b"]]),
    "zone": st.sampled_from([["title"], ["title", "body"]]),
    "since": st.sampled_from([date(1990, 5, 1), date(1990, 5, 30)]),
    "before": st.sampled_from([date(1990, 5, 31), date(1991, 1, 2)]),
}


def some_of(strategies, **options):
    """Dicts with some of the entries that strategies make by name, and at least one of these."""
    names = st.lists(st.sampled_from([*strategies]), min_size=1, unique=True, **options)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: strategies[name] for name in chosen}))


WHEN = st.tuples(some_of(CONDITIONS, max_size=2), some_of(FIELDS, max_size=3)).map(lambda parts: parts[0] | parts[1])
FILES = st.fixed_dictionaries({"when": st.lists(WHEN, max_size=3)}, optional=FIELDS)
BROADER = st.dictionaries(st.sampled_from(TOPICS), SOME, min_size=1, max_size=4)
RECORDS = st.builds(
    Record,
    st.just("id"),
    st.sampled_from([{"body": "Text."}, {"title": "Title", "body": ""}, {"title": " ", "body": "Text."}]),
    date=st.sampled_from(DAYS),
    fields=st.sampled_from([None, {}, {"desk": "farm"}, {"desk": ["home", "farm"]}, {"language": "fr", "source": "b"}]),
    language=st.sampled_from(LANGUAGES),
    source=st.sampled_from(["news/afp/1", "b", "c.xml"]),
    position=st.just(1),
)


def text_of(rules):
    return "".join(
        "".join(f"[[when]]\n{text_of(part)}" for part in value)
        if name == "when"
        else f"{name} = {value if isinstance(value, date) else format_value(value)}\n"
        for name, value in sorted(rules.items(), key=lambda pair: pair[0] == "when")
    )


def all_linked(topic, links):
    """All to which a topic leads, without the topic."""
    found = {topic}
    while more := {other for one in found for other in links.get(one, [])} - found:
        found |= more
    return found - {topic}


def holds(when, record):
    """Whether a condition is met by a record, whose facts are those above."""
    fields = record.fields or {}
    language = record.language or fields.get("language", "")
    desks = {"farm": ["farm"], "home": []}.get(fields.get("desk"), []) if isinstance(fields.get("desk"), str) else None
    desks = fields.get("desk", []) if desks is None else desks
    named = {"en": {"en"}, "fr-CA": {"fr", "FR_ca"}, "fr": {"fr"}, "": set()}[language]
    sources = {"news/afp/1": {"afp/*"}, "b": {"b"}, "c.xml": {"*.xml"}}[record.source] | {fields.get("source")}
    zones = {zone for zone, text in record.zones.items() if text.strip()}
    day = {"1991": "1991-01-01"}.get(record.date, record.date)
    return (
        (not when.get("language") or bool({*when["language"]} & named))
        and (not when.get("fields", {}).get("desk") or bool({*when["fields"]["desk"]} & {*desks}))
        and (not when.get("source") or bool({*when["source"]} & sources))
        and (not when.get("zone") or bool({*when["zone"]} & zones))
        and ("since" not in when or (bool(day) and str(when["since"]) <= day))
        and ("before" not in when or (bool(day) and day < str(when["before"])))
    )


def applied(file, topics, scores, broader, record):
    """The topics of one document by the rules, as plainly as their file reads."""
    topics, parts = {*topics}, [file, *(when for when in file["when"] if holds(when, record))]
    above = {topic: all_linked(topic, broader) for topic in TOPICS}
    of_all, of_conditions = file.get("replace", {}), [when.get("replace", {}) for when in parts[1:]]
    by = {topic: {of_all[topic]} for topic in of_all}
    by |= {topic: {some[topic] for some in of_conditions if topic in some} for topic in {*chain(*of_conditions)}}
    while topics & by.keys():
        topics = {other for topic in topics for other in by.get(topic, {topic})}
    before = None
    while before != topics:
        before = {*topics}
        for rules in parts:
            for topic in before & rules.get("adds", {}).keys():
                topics |= {*rules["adds"][topic]}
            if rules.get("parents"):
                topics |= {parent for topic in before for parent in above[topic]}
    before = None
    while before != topics:
        before = topics
        required = [pair for rules in parts for pair in rules.get("only_with", {}).items()]
        topics = {topic for topic in before if all(before & {*others} for one, others in required if one == topic)}
    excluders = {
        topic: {other for rules in parts for other in rules.get("never_with", {}).get(topic, ()) if other in topics}
        for topic in topics
    }
    rank = {topic: place for place, topic in enumerate(sorted(topics, key=lambda topic: -scores[topic]))}
    topics -= excluded_topics(excluders, rank).keys()
    for rules in parts:
        topics -= {*rules.get("never", [])}
    if any(rules.get("narrowest_only") for rules in parts):
        topics -= {parent for topic in topics for parent in above[topic] if topic not in above[parent]}
    for rules in parts:
        if most := rules.get("at_most", 0):
            topics = {*sorted(topics, key=lambda topic: -scores[topic])[:most]}
    return topics


@given(FILES, BROADER, st.lists(RECORDS, min_size=1, max_size=20), st.integers(0, 10**6))
def test_documents_get_what_the_file_says(file, broader, records, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(records), len(TOPICS)))
    above = scores > 0
    try:
        rules = Rules.parse(text_of(file), TOPICS, {}, broader)
    except TextcatError:
        assume(False)  # it contradicts itself, or lacks a condition or a rule
    rules = pickle.loads(pickle.dumps(rules))  # as another process gets them
    holding = rules.holding(records)
    changed, met = rules.apply(above, scores, holding)
    of_each = [rules.apply(above[i : i + 1], scores[i : i + 1], holding[i : i + 1])[1] for i in range(len(above))]
    assert met == {rule: sum(of_one[rule] for of_one in of_each) for rule in rules.texts}
    for i, row in enumerate(changed):
        before = {TOPICS[j] for j in np.flatnonzero(above[i])}
        expected = applied(file, before, dict(zip(TOPICS, scores[i], strict=True)), broader, records[i])
        assert {TOPICS[j] for j in np.flatnonzero(row)} == expected
        for j in range(len(TOPICS)):
            if changed[i, j] != above[i, j]:
                here = slice(i, i + 1)
                assert rules.reason(above[here], scores[here], j, holding[here]) in rules.texts
                assert any(met.values())
    assert {*met} == {*rules.texts}
    assert np.array_equal(above, scores > 0)  # what was passed in is as it was
    alone = Rules.parse(text_of({**file, "when": []}), TOPICS, {}, broader)
    assert np.array_equal(rules.apply(above, scores)[0], alone.apply(above, scores)[0])  # no condition is known to hold


def turned(rules):
    """The same rules, with the entries of each table in the reverse order."""
    return {name: turned(rules[name]) for name in reversed(rules)} if isinstance(rules, dict) else rules


@given(FILES, st.lists(RECORDS, min_size=1, max_size=20), st.integers(0, 10**6))
def test_the_order_of_keys_and_tables_is_of_no_account(file, records, seed):
    file = {name: value for name, value in file.items() if name not in ("parents", "narrowest_only")}
    file["when"] = [when for when in file["when"] if not {"parents", "narrowest_only"} & when.keys()]
    scores = np.random.default_rng(seed).normal(size=(len(records), len(TOPICS)))
    try:
        one = Rules.parse(text_of(file), TOPICS)
    except TextcatError:
        assume(False)
    lists = {"when": [*map(turned, reversed(file["when"]))]} | {
        name: turned(value) for name, value in file.items() if name != "when"
    }
    other = Rules.parse(text_of(lists), TOPICS)
    expected, _ = one.apply(scores > 0, scores, one.holding(records))
    changed, _ = other.apply(scores > 0, scores, other.holding(records))
    assert np.array_equal(changed, expected)


def by_rules(text, document, scores=range(6)):
    """The topics of a document with the given ones, by rules, and the rule that gave or took each topic."""
    row, scores = np.array([[topic in document for topic in TOPICS]]), np.array([scores])
    rules = Rules.parse(text, TOPICS)
    changed = rules.apply(row, scores)[0]
    reasons = {topic: rules.reason(row, scores, j) for j, topic in enumerate(TOPICS)}
    return "".join(TOPICS[j] for j in np.flatnonzero(changed[0])), {of: why for of, why in reasons.items() if why}


@pytest.mark.parametrize("links", [["a = ['b']", "b = ['c']"], ["b = ['c']", "a = ['b']"]])
def test_a_topic_is_lost_with_all_that_it_needs(links):
    text = f"only_with = {{ {', '.join(links)} }}"
    assert by_rules(text, "ab") == ("", {"a": "only_with a: b", "b": "only_with b: c"})
    assert by_rules(text, "abc") == ("abc", {})


@pytest.mark.parametrize("links", [["a = ['b']", "b = ['c']"], ["b = ['c']", "a = ['b']"]])
def test_a_topic_that_is_excluded_excludes_none(links):
    text = f"never_with = {{ {', '.join(links)} }}"
    assert by_rules(text, "abc") == ("ac", {"b": "never_with b: c"})
    assert by_rules(text, "ab") == ("b", {"a": "never_with a: b"})


@pytest.mark.parametrize("links", [["a = ['b']", "b = ['a']"], ["b = ['a']", "a = ['b']"]])
def test_of_topics_that_exclude_each_other_the_highest_score_stays(links):
    text = f"never_with = {{ {', '.join(links)} }}"
    assert by_rules(text, "ab", [2, 1, 0, 0, 0, 0]) == ("a", {"b": "never_with b: a"})
    assert by_rules(text, "ab", [1, 2, 0, 0, 0, 0]) == ("b", {"a": "never_with a: b"})
    assert by_rules(text, "ab", [0, 0, 0, 0, 0, 0]) == ("a", {"b": "never_with b: a"})


@pytest.mark.parametrize("links", [["a = 'b'", "b = 'c'"], ["b = 'c'", "a = 'b'"]])
def test_what_replaces_a_topic_is_replaced_too(links):
    text = f"replace = {{ {', '.join(links)} }}"
    assert by_rules(text, "a") == ("c", {"a": "replace a: b"} | dict.fromkeys("bc", "replace b: c"))


@every(
    "named, language, holds",
    [
        ("ger", "de", True),
        ("deu", "de", True),
        ("de", "ger", True),
        ("GER", "deu", True),
        ("fre-CA", "fr", True),
        ("fr", "fre-CA", False),
        ("gre", "gr", False),
        ("dan", "da", True),
        ("den", "de", False),
        ("frm", "fr", False),  # Middle French
    ],
)
def test_a_language_has_the_codes_of_two_and_of_three_letters(named, language, holds):
    document = Document("", {"body": "x"}, fields={"language": named})
    assert Condition(language=[language]).holds(document) is holds


FRENCH, FARM = "[[when]]\nlanguage = ['fr']\n", "[[when]]\nfields.desk = ['farm']\n"


@every(
    "text, expected",
    [
        (FARM + "replace = { b = 'c' }\n" + FRENCH + "replace = { a = 'b' }", "c"),
        (FARM + "replace = { a = 'b' }\n" + FRENCH + "replace = { b = 'c' }", "c"),
        ("replace = { b = 'c' }\n" + FRENCH + "replace = { a = 'b' }", "c"),
        ("replace = { a = 'b' }\n" + FRENCH + "replace = { b = 'c' }", "c"),
        ("replace = { a = 'b' }\n" + FRENCH + "replace = { a = 'c' }", "c"),  # an exception
        ("replace = { a = 'b' }\n[[when]]\nlanguage = ['de']\nreplace = { a = 'c' }", "b"),
        (FARM + "replace = { a = 'b' }\n" + FRENCH + "replace = { a = 'c' }", "bc"),
        (FARM + "replace = { a = 'c' }\n" + FRENCH + "replace = { a = 'b' }", "bc"),
    ],
)
def test_replacements_of_all_tables_are_followed_together(text, expected):
    rules = Rules.parse(text, TOPICS)
    holding = rules.holding([Document("", {}, language="fr", fields={"desk": "farm"})])
    changed, _ = rules.apply(np.eye(1, 6, dtype=bool), np.zeros((1, 6)), holding)
    assert "".join(TOPICS[j] for j in np.flatnonzero(changed[0])) == expected


def test_a_dict_may_have_its_fields_as_a_request_to_the_server_has_them(newswire_model, tmp_path):
    tagger = textcat.load(newswire_model)
    topic = tagger.topics[0]
    (tmp_path / "rules.toml").write_text(f"{FARM}adds = {{ wheat = ['{topic}'] }}")
    ruled = tagger.with_rules(tmp_path / "rules.toml")
    text = "Wheat exports rose, and wheat prices, as traders of wheat said."
    records = [{"text": text}, {"text": text, "desk": "farm"}, {"text": text, "fields": {"desk": "farm"}}]
    plain, *of_farm = ([tag.topic for tag in tags] for tags in ruled.tag(records))
    assert "wheat" in plain
    assert topic not in plain
    assert all(topic in topics for topics in of_farm)


@every("pair", [("a", "Alpha"), ("Alpha", "a"), ("Alpha", "ALPHA")])
@every("start", ["", FRENCH])
@every("field", ["replace", "adds", "only_with", "never_with"])
def test_a_topic_is_not_named_twice_in_a_table(field, start, pair):
    others = ("'b'", "'c'") if field == "replace" else ("['b']", "['c']")
    text = f"{start}{field} = {{ {pair[0]} = {others[0]}, {pair[1]} = {others[1]} }}"
    with pytest.raises(TextcatError, match=f"one topic twice in {field}, as '{pair[0]}' and '{pair[1]}': name it once"):
        Rules.parse(text, TOPICS, {"a": "Alpha"})


@every(
    "text, message",
    [
        ('never = ["f", "g"]', "no topic 'g'.*Mend the file of rules"),
        ('nevr = ["a"]', "no field 'nevr'.*Did you mean 'never'"),
        ('never = "a"', "cannot be 'a'; give a list of strings"),
        ("at_most = -1", "give 1 or more, or 0"),
        ("adds = { a = 'b' }", "give a table of lists of strings"),
        ("[adds]\npolitics.eu.law = ['a']", 'put names with dots in quotes, "politics.eu.law"'),
        ("[replace]\npolitics.eu = 'a'", 'topic politics.eu in replace.*in quotes, "politics.eu"'),
        ("[[when]]\nzone = ['title']\nonly_with = { a.b = ['c'] }", 'in quotes, "a.b"'),
        ("parents = true", "knows no broader topics.*textcat learn MODEL --vocabulary"),
        ("[when]\nnever = ['a']", r"write \[\[when\]\]"),
        ("[[when]]\nnever = ['a']", "has no condition"),
        ("[[when]]\nlanguage = ['fr']", "has no rule"),
        ("[[when]]\nlanguage = ['fr']\nnever = ['g']", "no topic 'g'"),
        ("[[when]]\nlangage = ['fr']\nnever = ['a']", "no field 'langage'.*Did you mean 'language'"),
        ("[[when]]\nbefore = '1990-01-01'\nnever = ['a']", "give a date such as 1990-12-31, without quotes"),
        ("[[when]]\nbefore = 1990-13-01\nnever = ['a']", "is not valid TOML"),
        ("[[when]]\nsince = 1990-01-01\nbefore = 1990-01-01\nnever = ['a']", "give the earlier day first"),
        ("never = ['b']\n[[when]]\nzone = ['title']\nadds = { a = ['b'] }", "add 'b' to 'a', and never give it"),
        ("never = [", "is not valid TOML"),
        ("replace = { a = 'a' }", "replace 'a' by 'a', which leads back"),
        ("replace = { a = 'b', b = 'c', c = 'a' }", "replace '.' by '.' by '.' by '.', which leads back.*remove one"),
        ("[[when]]\nlanguage = ['fr']\nreplace = { b = 'a', a = 'b' }", "leads back to the first"),
        (
            "replace = { a = 'b' }\n[[when]]\nzone = ['title']\nreplace = { b = 'a' }",
            "'.' by '.' by '.', which leads back",
        ),
        (
            "[[when]]\nlanguage = ['fr']\nreplace = { a = 'b' }\n[[when]]\nzone = ['title']\nreplace = { b = 'a' }",
            "leads back to the first",
        ),
        ('never = ["b"]\nreplace = { a = "b" }', "replace 'a' by 'b', and never give it: remove one of the two"),
        (
            "only_with = { a = [] }",
            r"give 'a' only with another topic, and name none: name one, or write never = \['a'\]",
        ),
        ('only_with = { a = ["b"] }\nnever_with = { a = ["b", "c"] }', "give 'a' only with 'b', and never with it"),
        ('never = ["b"]\nadds = { a = ["b"] }', "add 'b' to 'a', and never give it: remove one of the two"),
        (
            'adds = { a = ["b", "c"] }\nnever_with = { b = ["c"] }',
            "give 'b' and 'c' together with 'a', and never give them together: remove one",
        ),
    ],
)
def test_rules_that_cannot_be_followed_are_refused_in_a_sentence(text, message):
    with pytest.raises(TextcatError, match=message):
        Rules.parse(text, TOPICS)


@every(
    "text, message",
    [
        ("parents = true\nnarrowest_only = true", "parents, which adds .* and narrowest_only, which takes them away"),
        ("narrowest_only = true\nadds = { a = ['c'] }", "add 'c' to 'a', and narrowest_only takes it away"),
        ("narrowest_only = true\n[[when]]\nzone = ['title']\nparents = true", "remove one of the two"),
    ],
)
def test_broader_topics_are_not_added_and_taken_away(text, message):
    with pytest.raises(TextcatError, match=message):
        Rules.parse(text, TOPICS, {}, {"a": ["b"], "b": ["c"]})


def test_a_condition_may_be_an_exception_from_the_rules_for_all():
    text = "adds = { a = ['b'] }\nparents = true\n[[when]]\nlanguage = ['fr']\nnever = ['b']\nnarrowest_only = true"
    rules = Rules.parse(text, TOPICS, {}, {"a": ["c"]})
    holding = rules.holding([Document("", {}, language="fr"), Document("", {})])
    assert rules.apply(np.eye(2, 6, dtype=bool)[[0, 0]], np.zeros((2, 6)), holding)[0].tolist() == [
        [True, False, False, False, False, False],
        [True, True, True, False, False, False],
    ]


def test_a_long_chain_is_followed_in_either_order():
    topics = [str(i) for i in range(2000)]
    links = [f"{i} = ['{i + 1}']\n" for i in range(1999)]
    for lines in (links, links[::-1]):
        rules = Rules.parse("[adds]\n" + "".join(lines), topics)
        changed, met = rules.apply(np.eye(1, 2000, 7, bool), np.zeros((1, 2000)))
        assert changed[0].nonzero()[0].tolist() == [*range(7, 2000)]
        assert sum(met.values()) == 1992
        assert rules.reason(np.eye(1, 2000, 7, bool), np.zeros((1, 2000)), 9) == "adds 8: 9"


@every(
    "text",
    [
        "adds = { b = ['c'] }\n[[when]]\nzone = ['body']\nadds = { a = ['b'] }",
        "adds = { a = ['b'], b = ['c'], c = ['a'] }",
        "adds = { c = ['a'], b = ['c'], a = ['b'] }",
        "adds = { b = ['c'] }\nparents = true",
        "parents = true\n[[when]]\nzone = ['body']\nadds = { a = ['f'], b = ['e'] }",
        "parents = true\nadds = { f = ['c'] }\n[[when]]\nzone = ['body']\nadds = { d = ['b'], a = ['f'] }",
    ],
)
def test_what_is_added_adds_more_whichever_rule_stands_first(text):
    broader = {"a": ["b"], "e": ["c"]}
    rules = Rules.parse(text, TOPICS, {}, broader if "parents" in text else {})
    changed, met = rules.apply(np.eye(1, 6, dtype=bool), np.zeros((1, 6)), rules.holding(["A text."]))
    assert {TOPICS[j] for j in np.flatnonzero(changed)} >= {*"abc"}
    assert {*met.values()} <= {0, 1}


def test_topics_are_named_by_id_or_name():
    rules = Rules.parse('never = ["Wheat"]', ["p1", "p2"], {"p2": "Wheat"})
    assert rules.apply(np.ones((1, 2), bool), np.zeros((1, 2)))[0].tolist() == [[True, False]]


@pytest.fixture
def ruled(newswire_tagger, tmp_path):
    """A model with rules beside it: its folder, and the topic that one of them adds to another."""
    folder = textcat.save(newswire_tagger, tmp_path / "model")
    (tmp_path / "model.rules.toml").write_text('never = ["tin"]\nadds = { wheat = ["zinc"] }\n')
    return folder


STORY = "Wheat exports rose to 12 mln tonnes, the ministry said. Wheat and grain prices fell."


def test_every_way_to_tag_follows_the_rules_beside_a_model(ruled, newswire_tagger, tmp_path):
    plain, tagger = [tag.topic for tag in newswire_tagger.tag([STORY])[0]], load(ruled)
    assert "wheat" in plain
    expected = {*plain, "zinc"} - {"tin"}
    assert {tag.topic for tag in tagger.tag([STORY])[0]} == expected
    assert {tag.topic for (tags,) in [[*tagger.tag_stream([STORY])]] for tag in tags} == expected
    assert {tagger.topics[j] for j in np.flatnonzero(tagger.predict([STORY])[0])} == expected
    (tmp_path / "story.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    summary = textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    assert {tag["topic"] for tag in json.loads(part.read_text())["topics"]} == expected
    assert {*summary.counts.topics} == expected
    assert summary.counts.rules == {"never tin": 0, "adds wheat: zinc": 1}
    assert [tag.topic for tag in tagger.with_rules(None).tag([STORY])[0]] == plain


def test_a_tagger_is_saved_with_its_rules_unless_there_are_others(ruled, tmp_path, caplog):
    tagger = load(ruled)
    for _ in range(2):
        again = load(textcat.save(tagger, tmp_path / "again"))
        assert again.tag([STORY]) == tagger.tag([STORY])
    assert not caplog.text
    (tmp_path / "current").symlink_to("again")
    textcat.save(tagger, tmp_path / "current")
    assert load(tmp_path / "current").tag([STORY]) == tagger.tag([STORY])
    (tmp_path / "again.rules.toml").write_text('never = ["wheat"]')
    textcat.save(tagger, tmp_path / "again")
    assert "again.rules.toml stays as it is, although the tagger has other rules" in caplog.text
    assert (tmp_path / "again.rules.toml").read_text() == 'never = ["wheat"]'


RECORDED = [
    {"text": STORY, "language": "fr-CA", "date": "1989-12-31T23:30:00-05:00", "source": "afp"},
    {"text": STORY, "language": "en", "date": "1990-01-01", "desk": ["farm", "home"]},
    {"text": STORY, "title": "Wheat", "date": "12 May 1991"},
    {"text": STORY},
]
CONDITIONAL = """never = ["tin"]
[[when]]
language = ["fr"]
never = ["wheat"]
[[when]]
source = ["afp"]
before = 1990-01-01
adds = { wheat = ["zinc"] }
[[when]]
fields.desk = ["farm"]
adds = { wheat = ["gold"] }
[[when]]
zone = ["title"]
since = 1991-05-12
replace = { wheat = "barley" }
[[when]]
language = ["de"]
at_most = 1
"""


@pytest.fixture
def conditional(newswire_tagger, tmp_path):
    """A model with rules that have conditions, and the topics that each of the records gets by them."""
    folder = textcat.save(newswire_tagger, tmp_path / "model")
    (tmp_path / "model.rules.toml").write_text(CONDITIONAL)
    plain, titled = ({tag.topic for tag in tags} - {"tin"} for tags in newswire_tagger.tag([RECORDED[0], RECORDED[2]]))
    expected = [plain - {"wheat"} | {"zinc"}, plain | {"gold"}, titled - {"wheat"} | {"barley"}, plain]
    assert "wheat" in plain & titled
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "stories.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDED))
    return folder, expected


def documents_of(records):
    for record in records:
        zones = {"title": record.get("title", ""), "body": record["text"]}
        yield Document("", zones, (), record.get("date", ""), fields=record, language=record.get("language", ""))


def test_conditions_hold_for_documents_records_and_streams_in_python(conditional):
    tagger, expected = load(conditional[0]), conditional[1]
    for documents in ([*documents_of(RECORDED)], RECORDED):
        assert [{tag.topic for tag in tags} for tags in tagger.tag(documents)] == expected
        assert [{tag.topic for tag in tags} for tags in tagger.tag_stream(iter(documents), batch=3)] == expected
        assert [{tagger.topics[j] for j in np.flatnonzero(row)} for row in tagger.predict(documents)] == expected
        scores, has_terms = tagger.scored(documents)
        holding = tagger.decisions.holding([*documents_of(RECORDED)])
        selected = tagger.select(scores, has_terms=has_terms, holding=holding)
        assert [{tag.topic for tag in tags} for tags in selected] == expected
    assert {tag.topic for tag in tagger.tag([STORY])[0]} == expected[-1]  # of a text, no fields are known
    assert tagger.predict([]).shape == (0, len(tagger.topics))
    many = [record for record in documents_of(RECORDED) for _ in range(1500)]  # more than are held at a time
    assert [{tag.topic for tag in tags} for tags in tagger.tag(many)[::1500]] == expected


def test_a_tagger_with_rules_can_be_pickled_and_copied(conditional):
    tagger = load(conditional[0])
    for copied in (pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)):
        assert copied.tag(RECORDED) == tagger.tag(RECORDED)
        assert copied.decisions.rules.texts == tagger.decisions.rules.texts


def test_explanations_name_the_condition(conditional):
    tagger = load(conditional[0])
    for records in (RECORDED, [*documents_of(RECORDED)]):
        assert tagger.explain(records[0], "zinc").rule == "for source afp, before 1990-01-01: adds wheat: zinc"
        assert tagger.explain(records[0], "wheat").rule == "for language fr: never wheat"
        assert tagger.explain(records[3], "wheat").rule == ""
        assert {one.topic for one in tagger.explain_all(records[2])} == conditional[1][2]
        of_one = textcat.explain(tagger, [records[0]], "zinc")[0].explanations[0]
        assert of_one.rule == "for source afp, before 1990-01-01: adds wheat: zinc"
    of_file = textcat.explain(tagger, conditional[0].parent / "in" / "stories.jsonl", "zinc")
    assert [bool(explained.explanations[0].rule) for explained in of_file] == [True, False, False, False]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_conditions_hold_in_archives(conditional, tmp_path, form):
    (folder, expected), settings = conditional, textcat.OutputSettings(to=form, keep_fields=("desk",))
    summary = textcat.tag_archive(folder, tmp_path / "in", tmp_path / "out", output_settings=settings, jobs=1)
    assert [{*document.topics} for document in read_tags(tmp_path / "out")] == expected
    assert {rule for rule, n in summary.counts.rules.items() if not n} == {"never tin", "for language de: at_most 1"}
    if form == "jsonl":  # fields that rules look at are not written
        (part,) = (tmp_path / "out").glob("part-*.jsonl")
        fields = [json.loads(line)["fields"] for line in part.read_text().splitlines()]
        assert fields == [{}, {"desk": ["farm", "home"]}, {}, {}]


def test_the_path_of_a_file_is_its_source(ruled, tmp_path):
    for agency in ("afp", "dpa"):
        (tmp_path / "in" / agency).mkdir(parents=True)
        (tmp_path / "in" / agency / "1.txt").write_text(STORY)
    (tmp_path / "model.rules.toml").write_text('[[when]]\nsource = ["afp/*"]\nadds = { wheat = ["zinc"] }\n')
    textcat.tag_archive(ruled, tmp_path / "in", tmp_path / "out", jobs=1)
    of_source = {document.source: document.topics for document in read_tags(tmp_path / "out")}
    assert [name for name, topics in of_source.items() if "zinc" in topics] == [f"{tmp_path}/in/afp/1.txt"]


def test_a_field_that_no_document_has_is_told(ruled, tmp_path, caplog):
    (tmp_path / "model.rules.toml").write_text('[[when]]\nfields.dessk = ["farm"]\nnever = ["tin"]\n')
    (tmp_path / "story.jsonl").write_text(json.dumps(RECORDED[1]) + "\n")
    textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", jobs=1)
    assert "No document has the field dessk" in caplog.text


def test_conditions_hold_where_tags_are_written_back(newswire_tagger, tmp_path):
    folder = textcat.save(newswire_tagger, tmp_path / "model")
    (tmp_path / "in").mkdir()
    for language in ("fr", "en"):
        item = {"uri": language, "type": "text", "language": language, "bodies": [{"value": STORY}]}
        (tmp_path / "in" / f"{language}.json").write_text(json.dumps(item))
    (tmp_path / "model.rules.toml").write_text('[[when]]\nlanguage = ["fr"]\nadds = { wheat = ["zinc"] }\n')
    plan = make_plan(folder, [tmp_path / "in"], jobs=1)
    summary = write_back(plan, tmp_path / "out", str(tmp_path / "in"))
    assert summary.counts.rules == {"for language fr: adds wheat: zinc": 1}
    written = {language: (tmp_path / "out" / f"{language}.json").read_text() for language in ("fr", "en")}
    assert ["zinc" in text for text in written.values()] == [True, False]


def test_a_link_to_a_model_has_rules_of_its_own(ruled, newswire_tagger, tmp_path):
    (tmp_path / "current").symlink_to(ruled)
    (tmp_path / "current.rules.toml").write_text('never = ["wheat"]\n')
    (tmp_path / "story.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    textcat.tag_archive(tmp_path / "current", tmp_path / "story.jsonl", tmp_path / "out", jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    given = {tag["topic"] for tag in json.loads(part.read_text())["topics"]}
    assert given == {tag.topic for tag in load(tmp_path / "current").tag([STORY])[0]}
    assert given == {tag.topic for tag in newswire_tagger.tag([STORY])[0]} - {"wheat"}


def test_other_rules_are_named_and_end_a_run_that_began_with_others(ruled, tmp_path):
    (tmp_path / "story.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    (tmp_path / "other.toml").write_text('never = ["wheat"]\n')
    other = textcat.OutputSettings(rules=str(tmp_path / "other.toml"))
    textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", output_settings=other, jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    assert not {"wheat", "zinc"} & {tag["topic"] for tag in json.loads(part.read_text())["topics"]}
    with pytest.raises(TextcatError, match="began with other rules, but now has its present ones: give --model-chang"):
        textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", jobs=1)
    one = textcat.OutputSettings(topics=("wheat",))
    with pytest.raises(TextcatError, match="leave out --topic, or the rules"):
        textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "one", output_settings=one, jobs=1)


@pytest.mark.parametrize("rules", ['never = ["wheat"]', None])
def test_files_are_tagged_by_changed_rules_as_by_a_changed_model(ruled, tmp_path, rules):
    def topics(folder):
        rows = (json.loads(line) for part in sorted(folder.glob("part-*.jsonl")) for line in part.open())
        return {row["source"]: {tag["topic"] for tag in row["topics"]} for row in rows}

    folder, out, beside = tmp_path / "news", tmp_path / "out", tmp_path / "model.rules.toml"
    folder.mkdir()
    (folder / "1.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    tag = partial(textcat.tag_archive, ruled, folder, out, jobs=1)
    tag()
    (first,) = topics(out).values()
    if rules is None:
        beside.unlink()
    else:
        beside.write_text(rules)
    present = {tag.topic for tag in load(ruled).tag([STORY])[0]}
    assert present != first
    (folder / "2.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    tag(model_changes="new")
    assert [*topics(out).values()] == [first, present]
    tag(model_changes="all")
    assert [*topics(out).values()] == [present, present]
    assert [*topics(tmp_path / "out.before").values()] == [first, present]
    assert not tag(model_changes="all").growth
    assert not (tmp_path / "out.next").exists()


def test_other_rules_are_taken_where_those_beside_the_model_cannot_be_followed(ruled, tmp_path):
    (tmp_path / "model.rules.toml").write_text('never = ["wheet"]\n')
    (tmp_path / "other.toml").write_text('never = ["wheat"]\n')
    (tmp_path / "story.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    other = textcat.OutputSettings(rules=str(tmp_path / "other.toml"))
    textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", output_settings=other, jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    assert "wheat" not in {tag["topic"] for tag in json.loads(part.read_text())["topics"]}
    with pytest.raises(
        TextcatError, match=r"model\.rules\.toml does not fit the model; mend it: .* Did you mean 'wheat'"
    ):
        load(ruled)
    with pytest.raises(
        TextcatError, match=r"model\.rules\.toml does not fit the model; mend it: .* Did you mean 'wheat'"
    ):
        textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "beside", jobs=1)
    assert textcat.evaluate(ruled, "newswire").test_documents  # measured without rules
    textcat.compare([ruled, ruled], "newswire", n_resamples=10)


def test_explanations_name_the_rule(ruled):
    wheat, zinc = load(ruled).explain_all(STORY, ["wheat", "zinc"])
    assert (wheat.rule, zinc.rule) == ("", "adds wheat: zinc")
    assert zinc.as_dict()["rule"] == "adds wheat: zinc"
    assert "rule" not in wheat.as_dict()
    assert "by the rule: adds wheat: zinc" in zinc._repr_html_()
    assert zinc.without is None  # no words make the score pass the threshold


def test_what_a_rule_adds_is_automatic_if_its_cause_is(newswire):
    settings = ["promise.precision=0.8", "promise.confidence=0.8"]
    tagger = textcat.train(newswire, textcat.read_recipe("default").with_settings(settings))
    cause = next(topic for topic, promise in tagger.promises.items() if promise.precision)
    added = next(topic for topic, promise in tagger.promises.items() if promise.precision is None)
    ruled = tagger.with_rules_of(f"adds = {{ {cause} = [{added!r}] }}")
    seen = set()
    for before, after in zip(tagger.tag(newswire.test), ruled.tag(newswire.test), strict=True):
        of_cause = {tag.topic: tag.status for tag in before}.get(cause)
        of_added = {tag.topic: tag.status for tag in after}.get(added)
        if of_cause is not None and added not in {tag.topic for tag in before}:
            assert of_added == of_cause
            seen.add(of_added)
    assert Status.AUTOMATIC in seen
    others = [topic for topic in tagger.topics if topic != cause]
    for rules in (f"adds = {{ {cause} = [{added!r}] }}", "at_most = 1", f"never_with = {{ {cause} = {others} }}"):
        ruled = tagger.with_rules_of(rules)
        only = replace(ruled, decisions=replace(ruled.decisions, automatic_only=True))
        automatic = [[tag for tag in tags if tag.status is Status.AUTOMATIC] for tags in ruled.tag(newswire.test)]
        assert only.tag(newswire.test) == automatic
        assert any(automatic)
        scores = ruled.scores(newswire.test)
        assert ruled.select(scores, given=ruled.decisions.decide(scores)) == ruled.select(scores)


@pytest.mark.parametrize(
    ("rules", "automatic"),
    [
        ('adds = { a = ["b"] }', {"a", "b"}),
        ('replace = { a = "b" }', {"b"}),
        ('never = ["c"]\nat_most = 1\nadds = { a = ["b"] }', set()),  # b alone stays, which has no promise
        ('adds = { a = ["b"] }\nnever_with = { a = ["c"] }', set()),
    ],
)
def test_a_topic_that_a_document_does_not_get_makes_no_other_automatic_unless_it_is_replaced(rules, automatic):
    scores, promises = np.array([[1.0, 2.0, 3.0]]), SimpleNamespace(threshold=np.array([0.5, np.inf, np.inf]))
    decisions = Decisions(np.zeros(3), promises=promises, rules=Rules.parse(rules, ["a", "b", "c"]))
    found = decisions.automatic(scores, decisions.decide(scores))
    assert {"abc"[column] for column in np.flatnonzero(found)} == automatic


def test_a_topic_below_its_threshold_makes_the_one_that_replaces_it_not_automatic():
    promises = SimpleNamespace(threshold=np.array([0.5, np.inf]))
    decisions = Decisions(np.array([1.5, 0]), promises=promises, rules=Rules.parse('replace = { a = "b" }', ["a", "b"]))
    scores = np.array([[1.0, 2.0], [2.0, 2.0]])
    assert decisions.automatic(scores, decisions.decide(scores)).tolist() == [[False, False], [False, True]]


SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix t: <http://e.org/> .
t:pine a skos:Concept ; skos:prefLabel "pine"@en ; skos:broader t:conifer .
t:conifer a skos:Concept ; skos:broader t:tree .
t:tree a skos:Concept ; skos:prefLabel "tree"@en ; skos:narrower t:oak ; skos:broader t:plant .
t:oak a skos:Concept ; skos:prefLabel "oak"@en .
t:plant a skos:Concept ; skos:prefLabel "plant"@en ; skos:broader t:tree, t:life .
"""


@pytest.fixture
def thesaurus(tmp_path):
    """A vocabulary, and a file of documents with pine, oak, and the broader tree and plant, in a circle."""
    pytest.importorskip("rdflib", reason="rdflib is not installed")
    (tmp_path / "trees.ttl").write_text(SKOS)
    texts = {
        "pine": "needles and cones",
        "oak": "acorns on a branch",
        "tree": "a trunk with bark",
        "plant": "leaf",
    }
    records = [{"text": text, "topics": [f"http://e.org/{name}"]} for name, text in texts.items() for _ in range(6)]
    records.append({"text": texts["pine"] + " " + texts["tree"], "topics": ["http://e.org/pine", "http://e.org/tree"]})
    (tmp_path / "trees.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path / "trees.ttl", tmp_path / "trees.jsonl"


def names_of(tags):
    return {tag.topic.removeprefix("http://e.org/") for tag in tags}


@pytest.mark.parametrize("when", ["in training", "learnt", "learnt by an updatable model"])
def test_broader_topics_come_from_the_vocabulary_of_the_model(thesaurus, tmp_path, when):
    (vocabulary, path), recipe = thesaurus, textcat.read_recipe("default").with_settings(["tags.strategy=zero"])
    corpus = textcat.open_corpus(path, vocabulary=vocabulary if when == "in training" else None)
    tagger = textcat.train(corpus, recipe, updatable="updatable" in when)
    folder = textcat.save(tagger, tmp_path / "trees")
    if when == "in training":
        assert load(folder).broader == tagger.broader
    else:
        assert not tagger.broader
        tagger = textcat.learn(folder, vocabulary=vocabulary).tagger
        assert load(folder).broader == tagger.broader
    assert {topic[13:]: [other[13:] for other in others] for topic, others in tagger.broader.items()} == {
        "oak": ["tree"],
        "pine": ["tree"],  # over a concept that is no topic
        "plant": ["tree"],
        "tree": ["plant"],
    }
    (tmp_path / "trees.rules.toml").write_text("parents = true\n")
    ruled = load(folder)
    assert names_of(ruled.tag(["needles and cones"])[0]) == {"pine", "tree", "plant"}
    assert ruled.explain("needles and cones", "plant").rule == "parents"
    both = "needles and cones a trunk with bark"
    assert names_of(tagger.tag([both])[0]) == {"pine", "tree"}
    assert names_of(tagger.with_rules_of("narrowest_only = true").tag([both])[0]) == {"pine"}
    circle = "a trunk with bark leaf"
    assert names_of(tagger.with_rules_of("narrowest_only = true").tag([circle])[0]) == names_of(tagger.tag([circle])[0])


def test_a_plan_knows_the_broader_topics(thesaurus, tmp_path):
    vocabulary, path = thesaurus
    tagger = textcat.train(textcat.open_corpus(path, vocabulary=vocabulary), "paum")
    folder = textcat.save(tagger, tmp_path / "trees")
    (tmp_path / "trees.rules.toml").write_text("parents = true\n")
    summary = textcat.tag_archive(folder, path, tmp_path / "out", jobs=1)
    assert summary.counts.rules["parents"] > 6
