"""Tags in the bytes of ninjs."""

import itertools
import json

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from lines_run import lines_run
from news_tags import CREATOR, TAGS, TOPICS, changed, tags

from textcat.reading import InputSettings, LabelSettings
from textcat.reading.formats import FORMATS
from textcat.reading.formats.news import subject_of
from textcat.reading.records import Block
from textcat.tagging.concepts import NoPlaceError
from textcat.tagging.tags_in_json import edits_of_ninjs

SETTINGS = InputSettings(labels=LabelSettings())


def tagged(item, tags=TAGS, **how):
    data = json.dumps(item, **how).encode()
    return json.loads(changed(data, edits_of_ninjs(data, tags, CREATOR)))


def topics_of(data):
    (record,) = FORMATS["ninjs"].records(Block("a.json", "ninjs", data), SETTINGS)
    return record.topics


FIRST = {"uri": "u:1", "headline": "Tin", "body_text": "Tin rose."}
SECOND = {"uri": "u:1", "headlines": [{"value": "Tin"}], "bodies": [{"value": "Tin rose."}]}
IPTC = "http://cv.iptc.org/newscodes/mediatopic/"


@pytest.mark.parametrize("more", [{}, {"$standard": {"name": "ninjs", "version": "1.4"}}])
def test_an_item_of_the_first_versions_has_the_creator_as_the_relation(more):
    assert tagged(FIRST | more)["subject"] == [
        {"name": "corn & <wheat>", "scheme": IPTC, "code": "20000225", "rel": CREATOR},
        {"scheme": IPTC, "code": "20000170", "rel": CREATOR},
        {"name": "étain gris", "code": "étain gris", "rel": CREATOR},
    ]


@every(
    "more",
    [
        {"$standard": {"version": "1.5"}},
        {"$standard": {"schema": "http://www.iptc.org/std/ninjs/ninjs-schema_1.6.json"}},
        {"digitalsourcetype": "x"},
        {"subject": [{"name": "a", "creator": "me"}]},
    ],
)
def test_an_item_of_version_1_5_has_the_creator(more):
    assert tagged(FIRST | more)["subject"][-3:] == [
        {
            "name": "corn & <wheat>",
            "scheme": IPTC,
            "code": "20000225",
            "creator": CREATOR,
            "relevance": 100,
            "confidence": 87,
        },
        {"scheme": IPTC, "code": "20000170", "creator": CREATOR, "relevance": 40},
        {"name": "étain gris", "code": "étain gris", "creator": CREATOR, "confidence": 3},
    ]


@every("more", [{}, {"standard": {"version": "3.1"}}, {"subjects": []}])
def test_an_item_of_a_later_version_has_subjects(more):
    assert tagged(SECOND | more)["subjects"] == [
        {"name": "corn & <wheat>", "uri": f"{IPTC}20000225", "creator": CREATOR, "relevance": 100, "confidence": 87},
        {"uri": f"{IPTC}20000170", "creator": CREATOR, "relevance": 40},
        {"name": "étain gris", "literal": "étain gris", "creator": CREATOR, "confidence": 3},
    ]
    assert "creator" not in tagged(SECOND | {"standard": {"version": "2.0"}})["subjects"][0]


@every("item", [FIRST, SECOND, SECOND | {"standard": {"version": "2.0"}}])
def test_our_tags_are_read_again_as_topics(item):
    assert topics_of(json.dumps(tagged(item)).encode()) == TOPICS


@every(
    "how, expected",
    [
        ({}, ', "subjects": [{"uri": "'),
        ({"indent": 2}, ',\n  "subjects": [\n    {"uri": "'),
        ({"indent": "\t"}, ',\n\t"subjects": [\n\t\t{"uri": "'),
        ({"separators": (",", ":")}, ',"subjects":[{"uri":"'),
    ],
)
def test_a_list_is_written_as_the_item_is(how, expected):
    (edit,) = edits_of_ninjs(json.dumps(SECOND, **how).encode(), TAGS[1:2], CREATOR)
    assert edit.data.decode().startswith(expected)


def test_what_is_no_list_is_refused_and_left_as_it_is_without_tags():
    data = b'{"uri": "u:1", "headlines": [], "subjects": {"name": "a"}}'
    with pytest.raises(NoPlaceError, match="its field subjects is not a list"):
        edits_of_ninjs(data, TAGS, CREATOR)
    assert edits_of_ninjs(data, [], CREATOR) == []


def test_items_within_an_item_are_not_touched():
    inner = {"main": FIRST | {"subject": [{"name": "x", "creator": "textcat:old"}]}}
    assert tagged(FIRST | {"associations": inner})["associations"] == inner


OURS, OTHERS = '{"creator": "textcat:old"}', '{"name": "a"}'


@every("parts", [[OURS], [OTHERS], [OURS, OTHERS], [OTHERS, OURS, OURS]])
@every("tags", [[], TAGS])
def test_the_work_grows_as_the_number_of_subjects_does(parts, tags):
    def work(n):
        data = f'{{"uri": "u:1", "headlines": [], "subjects": [{", ".join(parts * n)}]}}'.encode()
        return lines_run(edits_of_ninjs, data, tags, CREATOR)

    assert work(80) < 2.2 * work(40)


def test_subjects_of_all_orders_are_replaced_as_a_list_of_objects_would_be():
    for owned in itertools.product([False, True], repeat=5):
        subjects = [{"name": f"{i}"} | ({"rel": "textcat:old"} if own else {}) for i, own in enumerate(owned)]
        kept = [one for one in subjects if "rel" not in one]
        assert tagged(SECOND | {"subjects": subjects}, [])["subjects"] == kept
        found = tagged(SECOND | {"subjects": subjects}, TAGS[:1])["subjects"]
        place = owned.index(True) if any(owned) else len(kept)
        assert [one.get("name") for one in found[:place]] == [one["name"] for one in kept[:place]]
        assert found[:place] + found[place + 1 :] == kept


def test_a_space_of_any_length_between_our_subjects_is_written_no_more_than_once():
    data = f'{{"uri": "u:1", "headlines": [], "subjects": [{OURS},{" " * 5000}{OURS}]}}'.encode()
    found = changed(data, edits_of_ninjs(data, TAGS, CREATOR))
    assert len(found) < len(data)
    assert len(json.loads(found)["subjects"]) == 3


def test_a_version_of_many_digits_is_no_version():
    item = SECOND | {"standard": {"version": "1" * 5000 + ".2"}}
    assert "creator" in tagged(item)["subjects"][0]


people = st.sampled_from(
    [{"name": "a"}, {"name": "b", "creator": "me"}, "plain", {"name": "textcat:x", "rel": "about"}]
)
ours = st.sampled_from([{"name": "old", "creator": "textcat:old"}, {"name": "older", "rel": "textcat:old"}])


@given(st.lists(people | ours, max_size=6), st.sampled_from([None, 0, 2, "\t"]), tags, tags)
def test_our_subjects_are_replaced_and_others_never_touched(subjects, indent, first, second):
    item = SECOND | {"subjects": subjects}
    kept = [one for one in subjects if "textcat:old" not in str(one)]
    data = json.dumps(item, indent=indent).encode()
    found = changed(data, edits_of_ninjs(data, first, CREATOR))
    assert changed(found, edits_of_ninjs(found, first, CREATOR)) == found
    again = changed(found, edits_of_ninjs(found, second, CREATOR))
    loaded = json.loads(again)
    assert loaded | {"subjects": None} == item | {"subjects": None}
    assert [one for one in loaded["subjects"] if one in kept] == kept
    ours = [one.get("uri") or one["literal"] for one in loaded["subjects"] if one not in kept]
    assert [subject_of(code).topic for code in ours] == [subject_of(tag.concept.topic).topic for tag in second]
    assert json.loads(changed(again, edits_of_ninjs(again, [], CREATOR)))["subjects"] == kept


@every("indent", [None, 2])
@every("item, name", [(FIRST, "subject"), (SECOND, "subjects")])
def test_no_subjects_may_be_written_as_null(item, name, indent):
    for members in ({name: None, **item}, {**item, name: None}):
        expected = tagged(item, indent=indent)[name]
        assert tagged(members, indent=indent) == members | {name: expected}
        assert tagged(members, [], indent=indent) == members
    data = json.dumps({**item, name: None}, indent=2).encode()
    added = json.dumps(item, indent=2).encode()
    assert changed(data, edits_of_ninjs(data, TAGS, CREATOR)) == changed(added, edits_of_ninjs(added, TAGS, CREATOR))
