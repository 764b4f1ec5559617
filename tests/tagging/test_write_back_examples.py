"""The IPTC's examples of news, written again with tags: valid by their schemas, and the same but for the tags."""

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from lxml import etree
from read_sources import read

import textcat
from textcat.reading import InputSettings, LabelSettings, Record, find_sources
from textcat.reading.formats.news import subject_of
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import make_plan, tag_to_folder
from textcat.tagging.shards import read_tags
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
    assert not summary.counts.reasons["It is an older version of …, or the same again: the newest one counts."]


def inserted(before, after):
    """The bytes that were put into a file at one place; None if the file was changed in another way."""
    n = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before))
    end = len(after) - (len(before) - n)
    return after[n:end] if after[end:] == before[n:] and end >= n else None


def test_the_bytes_outside_our_tags_are_as_they_were(written):
    _, out, _ = written
    for path in news_in(out):
        added = inserted(path.read_bytes(), (out / path.relative_to(NEWS)).read_bytes())
        assert added is not None, path
        assert added.count(b"textcat:model") == 3, path
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


def test_the_written_files_of_ninjs_are_as_valid_as_before(written):
    with patch.dict(sys.modules, rfc3987_syntax=None):  # which takes seconds to import, to check what is not asked for
        import jsonschema
    n_valid = 0
    for path in news_in(written[1]):
        version = SCHEMA_OF.get(path.parent.name)
        if path.suffix == ".json" and version:
            schema = json.loads((NEWS / f"ninjs/schema/ninjs-schema_{version}.json").read_text())
            validator = jsonschema.validators.validator_for(schema)(schema)
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
