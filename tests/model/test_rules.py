"""Rules of the house give and take topics as their file says, in every way to tag."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import textcat
from textcat.base.errors import TextcatError
from textcat.base.settings import format_value
from textcat.evaluation.promises import Status
from textcat.model.rules import Rules
from textcat.model.storage import load

TOPICS = [*"abcdef"]
SOME = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=2, unique=True)
BY_TOPIC = st.dictionaries(st.sampled_from(TOPICS), SOME, max_size=2)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "replace": st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(TOPICS), max_size=2),
        "adds": BY_TOPIC,
        "only_with": BY_TOPIC,
        "never_with": BY_TOPIC,
        "never": SOME,
        "at_most": st.integers(0, 3),
    },
)


def text_of(rules):
    return "".join(f"{name} = {format_value(value)}\n" for name, value in rules.items())


def all_added(topic, adds):
    """A topic, and all that it adds, and what these add."""
    found = {topic}
    while more := {added for one in found for added in adds.get(one, [])} - found:
        found |= more
    return found


def applied(rules, topics, scores):
    """The topics of one document by the rules, as plainly as their file reads."""
    topics = {*topics}
    for old, new in rules.get("replace", {}).items():
        if old in topics:
            topics = topics - {old} | {new}
    adds = rules.get("adds", {})
    for topic in adds:
        if topic in topics:
            topics |= all_added(topic, adds)
    for topic, others in rules.get("only_with", {}).items():
        if not topics & {*others}:
            topics.discard(topic)
    for topic, others in rules.get("never_with", {}).items():
        if topics & {*others}:
            topics.discard(topic)
    topics -= {*rules.get("never", [])}
    if most := rules.get("at_most", 0):
        topics = {*sorted(topics, key=lambda topic: -scores[topic])[:most]}
    return topics


@given(FILES, st.integers(0, 10**6))
def test_documents_get_what_the_file_says(file, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(20, len(TOPICS)))
    above = scores > 0
    try:
        rules = Rules.parse(text_of(file), TOPICS)
    except TextcatError:
        assume(False)  # it contradicts itself
    changed, met = rules.apply(above, scores)
    of_each = [rules.apply(above[i : i + 1], scores[i : i + 1])[1] for i in range(len(above))]
    assert met == {rule: sum(of_one[rule] for of_one in of_each) for rule in rules.texts}
    for i, row in enumerate(changed):
        before = {TOPICS[j] for j in np.flatnonzero(above[i])}
        expected = applied(file, before, dict(zip(TOPICS, scores[i], strict=True)))
        assert {TOPICS[j] for j in np.flatnonzero(row)} == expected
        for j in range(len(TOPICS)):
            if changed[i, j] != above[i, j]:
                assert rules.reason(above[i : i + 1], scores[i : i + 1], j) in rules.texts
                assert any(met.values())
    assert {*met} == {*rules.texts}
    assert np.array_equal(above, scores > 0)  # what was passed in is as it was


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('never = ["f", "g"]', "no topic 'g'.*Mend the file of rules"),
        ('nevr = ["a"]', "no field 'nevr'.*Did you mean 'never'"),
        ('never = "a"', "cannot be 'a'; give a list of strings"),
        ("at_most = -1", "give 1 or more, or 0"),
        ("never = [", "is not valid TOML"),
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
    with pytest.raises(TextcatError, match="began with --rules"):
        textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", jobs=1)
    one = textcat.OutputSettings(topics=("wheat",))
    with pytest.raises(TextcatError, match="leave out --topic, or the rules"):
        textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "one", output_settings=one, jobs=1)


def test_other_rules_are_taken_where_those_beside_the_model_cannot_be_followed(ruled, tmp_path):
    (tmp_path / "model.rules.toml").write_text('never = ["wheet"]\n')
    (tmp_path / "other.toml").write_text('never = ["wheat"]\n')
    (tmp_path / "story.jsonl").write_text(json.dumps({"text": STORY}) + "\n")
    other = textcat.OutputSettings(rules=str(tmp_path / "other.toml"))
    textcat.tag_archive(ruled, tmp_path / "story.jsonl", tmp_path / "out", output_settings=other, jobs=1)
    (part,) = (tmp_path / "out").glob("part-*.jsonl")
    assert "wheat" not in {tag["topic"] for tag in json.loads(part.read_text())["topics"]}
    with pytest.raises(TextcatError, match="Did you mean 'wheat'"):
        load(ruled)


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
    only = replace(ruled, decisions=replace(ruled.decisions, automatic_only=True))
    assert all(tag.status is Status.AUTOMATIC for tags in only.tag(newswire.test) for tag in tags)
