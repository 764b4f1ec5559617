"""The IPTC's examples of news, written again with tags: valid by their schemas, and the same but for the tags."""

import json
import os
import re
import shutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from news_tags import CREATOR, changed, tags
from read_sources import read

import textcat
from textcat.reading import InputSettings, LabelSettings, Record, find_sources
from textcat.reading.formats.news import subject_of
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_to_folder
from textcat.tagging.shards import read_tags
from textcat.tagging.tags_in_json import edits_of_ninjs
from textcat.tagging.tags_in_xml import edits_of_newsml_g2, edits_of_nitf
from textcat.tagging.write_back import base_of, write_back

NEWS = Path(os.environ.get("TEXTCAT_NEWS") or "/nowhere")
FILES = sorted(path for path in NEWS.glob("*/examples/**/*") if path.suffix in (".json", ".xml"))
pytestmark = pytest.mark.skipif(
    not FILES, reason="data: the IPTC's examples are absent, TEXTCAT_NEWS is not set to them"
)

SCHEMA_OF = {"1.4": "1.4", "1.6": "1.6", "2.1": "2.2", "2.2": "2.2", "3.0": "3.1", "3.1": "3.1"}


@pytest.fixture(scope="module")
def coded_model(tmp_path_factory):
    """A model with topics of all kinds: names, codes with the short name of their scheme, and URIs."""
    topics = {"grain": "medtop:20000225", "shipping": "http://cv.iptc.org/newscodes/mediatopic/20000170"}
    corpus = textcat.open_corpus("newswire")
    folder = tmp_path_factory.mktemp("coded") / "model"
    lines = folder.parent / "train.jsonl"
    with open(lines, "w") as file:
        for one in corpus.train:
            named = [topics.get(topic, topic) for topic in one.topics]
            file.write(json.dumps({"id": one.id, "zones": one.zones, "topics": named}) + "\n")
    return textcat.save(textcat.train(textcat.open_corpus(str(lines)), textcat.read_recipe("default")), folder)


@pytest.fixture(scope="module")
def written(coded_model, tmp_path_factory):
    """The folder of the files, that of the files with tags, and the tags of each file."""
    folder = tmp_path_factory.mktemp("written")
    shutil.copytree(NEWS, folder / "in")
    plan = make_plan(coded_model, [folder / "in"], output_settings=OutputSettings(top=3), jobs=1)
    summary = write_back(plan, folder / "out", base_of([str(folder / "in")]))
    return folder / "in", folder / "out", summary


def news_in(folder):
    return [path for path in FILES if (folder / path.relative_to(NEWS)).exists()]


def topics_in(path, scheme=""):
    found = read(str(path), labels=LabelSettings(), topics_scheme=scheme)
    return [one.topics for one in found if isinstance(one, Record)]


def test_all_files_with_news_are_written(written):
    _, out, summary = written
    with_news = [path for path in FILES if any(isinstance(one, Record) for one in read(str(path)))]
    assert news_in(out) == with_news
    assert summary.written == len(with_news) > 50
    assert not summary.counts.reasons["A newer version of …, or the same again, took its place."]


def inserted(before, after):
    """The bytes that were put into a file at one place; None if the file was changed in another way."""
    n = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before))
    end = len(after) - (len(before) - n)
    return after[n:end] if after[end:] == before[n:] and end >= n else None


def test_the_bytes_outside_our_tags_are_as_they_were(written, coded_model):
    (_, out, _), tagger = written, textcat.load(coded_model)
    for path in news_in(out):
        added = inserted(path.read_bytes(), (out / path.relative_to(NEWS)).read_bytes())
        assert added is not None, path
        (item,) = (one for one in read(str(path)) if isinstance(one, Record))
        n_tags = 3 if tagger.scored([item]).has_terms[0] else 0
        assert added.count(b"textcat:model") == n_tags, path
        added.decode("ascii")


def test_what_is_read_again_is_the_same_text_with_our_tags_as_topics(written, coded_model, tmp_path):
    origin, out, _ = written
    plan = make_plan(coded_model, [origin], output_settings=OutputSettings(top=3), jobs=1)
    tags = {}
    for path in news_in(out):
        tag_to_folder(plan._replace(sources=find_sources([str(path)], InputSettings())), tmp_path / path.stem / "t")
        (document,) = read_tags(tmp_path / path.stem / "t")
        tags[path] = {subject_of(topic).topic for topic in document.topics}
        shutil.rmtree(tmp_path / path.stem)
    kinds = set().union(*tags.values())
    assert {"medtop:20000225", "medtop:20000170"} < kinds
    assert any(":" not in kind for kind in kinds)
    for path, of_document in tags.items():
        (before,) = (one for one in read(str(path), labels=LabelSettings()) if isinstance(one, Record))
        again = out / path.relative_to(NEWS)
        (after,) = (one for one in read(str(again), labels=LabelSettings()) if isinstance(one, Record))
        assert after[3:4] + after[5:] == before[3:4] + before[5:], path
        assert {*after.topics} == {*before.topics} | of_document, path
        of_scheme = read(str(again), labels=LabelSettings(), topics_scheme="medtop")[-1].topics
        assert {topic for topic in of_document if topic.startswith("medtop:")} <= {*of_scheme}


def errors_of_xml(schema, data):
    """What a schema finds wrong with a file, without places."""
    schema.validate(etree.fromstring(data))
    return Counter(error.message for error in schema.error_log)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas")
    for path in [*NEWS.glob("newsml-g2/examples/*.xsd"), *NEWS.glob("newsml-g2/schema/*.xsd")]:
        shutil.copy(path, folder)  # each next to those that it imports
    names = {"g2": "NewsML-G2_2.35-spec-All-Power.xsd", "nitf": "nitf-3-6.xsd"}
    return {name: etree.XMLSchema(etree.parse(folder / file)) for name, file in names.items()}


def test_the_written_files_of_newsml_g2_are_as_valid_as_before(written, schemas):
    n_valid = 0
    for path in news_in(written[1]):
        before, after = path.read_bytes(), (written[1] / path.relative_to(NEWS)).read_bytes()
        if path.suffix == ".xml" and b"<newsItem" in before:
            errors = errors_of_xml(schemas["g2"], before)
            assert errors_of_xml(schemas["g2"], after) == errors, path
            n_valid += not errors
    assert n_valid >= 12


def test_the_written_nitf_is_as_valid_as_before(written, schemas):
    for path in news_in(written[1]):
        if path.suffix == ".xml" and b"<nitf" in path.read_bytes():
            trees = [etree.parse(one) for one in (path, written[1] / path.relative_to(NEWS))]
            nitfs = [next(tree.iter("{*}nitf")) for tree in trees]
            before, after = (errors_of_xml(schemas["nitf"], etree.tostring(nitf)) for nitf in nitfs)
            assert after == before, path


@cache
def validators():
    """The module of jsonschema's validators, which is in sys.modules no longer: it is imported once."""
    with patch.dict(sys.modules, rfc3987_syntax=None):  # which takes seconds to import, to check what is not asked for
        import jsonschema
    return jsonschema.validators


@cache
def validator_of(version):
    """The validator of a version of ninjs."""
    schema = json.loads((NEWS / f"ninjs/schema/ninjs-schema_{version}.json").read_text())
    return validators().validator_for(schema)(schema)


def test_the_written_files_of_ninjs_are_as_valid_as_before(written):
    n_valid = 0
    for path in news_in(written[1]):
        version = SCHEMA_OF.get(path.parent.name)
        if path.suffix == ".json" and version:
            validator = validator_of(version)
            before, after = (
                Counter(error.message for error in validator.iter_errors(json.loads(one.read_text())))
                for one in (path, written[1] / path.relative_to(NEWS))
            )
            assert after == before, path
            n_valid += not before
    assert n_valid >= 25


def test_what_was_written_is_not_changed_by_writing_it_again(written, coded_model, tmp_path):
    _, out, _ = written
    plan = make_plan(coded_model, [out], output_settings=OutputSettings(top=3), jobs=1)
    write_back(plan, tmp_path / "again", base_of([str(out)]))
    for path in news_in(out):
        again = (tmp_path / "again" / path.relative_to(NEWS)).read_bytes()
        assert again == (out / path.relative_to(NEWS)).read_bytes(), path


def test_without_a_topic_our_tags_go_and_nothing_else_does(written, coded_model, tmp_path):
    _, out, _ = written
    output = OutputSettings(min_probability=1.0)
    write_back(make_plan(coded_model, [out], output_settings=output, jobs=1), tmp_path / "none", base_of([str(out)]))
    left = 0
    for path in news_in(out):
        before, after = path.read_bytes(), (tmp_path / "none" / path.relative_to(NEWS)).read_bytes()
        assert b"textcat:" not in after
        added = inserted(before, after)
        assert added is not None, path
        left += bool(added)  # the empty element or list that held them
        assert len(added) < 200
    assert left < 40


# --- items with the subjects of people in all places where the schemas allow them ---

PEOPLE_G2 = [
    '<subject qcode="medtop:1"/>',
    '<subject type="cpnat:abstract" literal="x" creator="me:ann" confidence="2"><name xml:lang="en">n</name></subject>',
    '<subject uri="http://a.org/b"><!-- creator="textcat:x" --><name>textcat:x</name></subject>',
    '<subject qcode="a:b" how="howextr:person"><broader qcode="c:d"/></subject>',
]
OTHERS_G2 = [
    '<language tag="en"/>',
    '<genre qcode="g:1"/>',
    "<keyword>tin</keyword>",
    "<slugline>tin</slugline>",
    "<headline>Tin</headline>",
    "<by>Ann</by>",
    "<description><![CDATA[<subject creator='textcat:x'/>]]></description>",
]
OURS_G2 = '<subject literal="old" how="howextr:tool" creator="textcat:old"/>'
ITEM_G2 = (
    '<newsItem xmlns="http://iptc.org/std/nar/2006-10-01/" standard="NewsML-G2" standardversion="2.35" '
    'conformance="power" guid="urn:1" version="1"><catalogRef href="http://a.org/c"/>'
    '<itemMeta><itemClass qcode="ninat:text"/>'
    '<provider qcode="p:1"/><versionCreated>2024-05-01T10:15:00Z</versionCreated></itemMeta>%s<contentSet>'
    '<inlineData contenttype="text/plain">Tin.</inlineData></contentSet></newsItem>'
)
PEOPLE_NITF = [
    '<classifier type="a" value="b">c</classifier>',
    '<classifier class="desk" type="a"/>',
    "<classifier>textcat:x</classifier>",
    '<person class="x">Ann</person>',
    "<org>ACME</org>",
]
OURS_NITF = '<classifier class="textcat:old" value="old"/>'
PEOPLE_NINJS = [{"name": "a"}, {"name": "b", "rel": "about"}, {"name": "textcat:x"}]
OURS_NINJS = {"name": "old", "rel": "textcat:old"}


def spread(data, parts, spaces):
    """The parts in any order and number, each behind a space of its own."""
    chosen = data.draw(st.lists(st.sampled_from(parts), max_size=7))
    return "".join(data.draw(st.sampled_from(spaces)) + part for part in chosen)


def check_written(edits_of, before, ours, tags, other):
    """Write tags and others into an item; all bytes but ours are as they were. Return the item with tags."""
    found = changed(before, edits_of(before, tags, CREATOR))
    assert changed(found, edits_of(found, tags, CREATOR)) == found
    again = changed(found, edits_of(found, other, CREATOR))
    assert changed(again, edits_of(again, tags, CREATOR)).count(CREATOR.encode()) == len(tags)
    if ours not in before:  # nothing is replaced, and something is put in at one place only
        opened = re.sub(rb"<(contentMeta|identified-content)/>", rb"<\1></\1>", before)
        assert inserted(opened if tags else before, found) is not None
    return found


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), tags, tags)
def test_items_of_newsml_g2_stay_valid(schemas, data, first, second):
    meta = spread(data, [*PEOPLE_G2, *OTHERS_G2, OURS_G2], ["", "\n  ", "<!-- x -->", "<?y z?>"])
    core = data.draw(st.sampled_from(["", "<urgency>3</urgency>", '<creator qcode="c:1"/>', "<altId>c</altId>"]))
    whole = data.draw(st.sampled_from([f"<contentMeta>{core}{meta}</contentMeta>", "<contentMeta/>", ""]))
    before = (ITEM_G2 % whole).encode()
    assert not errors_of_xml(schemas["g2"], before)
    found = check_written(edits_of_newsml_g2, before, OURS_G2.encode(), first, second)
    assert not errors_of_xml(schemas["g2"], found)
    for one in PEOPLE_G2:
        assert found.count(one.encode()) == before.count(one.encode())


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), tags, tags)
def test_items_of_nitf_stay_valid(schemas, data, first, second):
    content = spread(data, [*PEOPLE_NITF, OURS_NITF], ["", "\n  ", "<!-- x -->"])
    name = "identified-content"
    held = data.draw(st.sampled_from([f"<{name}>{content}</{name}>", f"<{name}/>", ""]))
    before_it = data.draw(st.sampled_from(["", '<urgency ed-urg="3"/>', '<doc-id id-string="1"/>']))
    about = data.draw(st.sampled_from([f"<docdata>{before_it}{held}</docdata>", ""]))
    head = data.draw(st.sampled_from([f"<head><title>T</title>{about}</head>", f"<head>{about}<pubdata/></head>", ""]))
    body = "<body><body.content><p>Tin.</p></body.content></body>"
    before = f'<nitf xmlns="http://iptc.org/std/NITF/2006-10-18/">{head}{body}</nitf>'.encode()
    assert not errors_of_xml(schemas["nitf"], before)
    found = check_written(edits_of_nitf, before, OURS_NITF.encode(), first, second)
    assert not errors_of_xml(schemas["nitf"], found)


@pytest.mark.parametrize("version", ["1.4", "1.6", "2.2", "3.1"])
def test_items_of_ninjs_stay_valid(version):
    validator = validator_of(version)
    item = {"uri": "http://a.org/1", "type": "text"}
    item |= {"headline": "Tin"} if version < "2" else {"headlines": [{"value": "Tin"}]}
    name = "subject" if version < "2" else "subjects"
    if version < "2":
        item["$standard"] = {"name": "ninjs", "version": version, "schema": f"http://a.org/ninjs-schema_{version}.json"}
    else:
        item["standard"] = {"name": "ninjs", "version": version, "schema": f"http://a.org/ninjs-schema_{version}.json"}

    @settings(max_examples=25)
    @given(st.lists(st.sampled_from([*PEOPLE_NINJS, OURS_NINJS])), st.sampled_from([None, 0, 2]), tags, tags)
    def holds(subjects, indent, first, second):
        before = json.dumps(item | ({name: subjects} if subjects else {}), indent=indent).encode()
        assert not list(validator.iter_errors(json.loads(before)))
        found = check_written(edits_of_ninjs, before, b"textcat:old", first, second)
        assert not [error.message for error in validator.iter_errors(json.loads(found))]
        kept = [one for one in json.loads(found).get(name, []) if CREATOR not in one.values()]
        assert kept == [one for one in subjects if one != OURS_NINJS]

    holds()
