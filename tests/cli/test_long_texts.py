"""Commands score a long text in parts, as the tagger does in Python."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import textcat


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    settings = ["topics.shortlist=8", "topics.part_length=120"]
    recipe = textcat.read_recipe("many-topics").with_settings(settings)
    return textcat.save(textcat.train(textcat.open_corpus("newswire"), recipe), tmp_path_factory.mktemp("m") / "parts")


@pytest.fixture(scope="module")
def texts():
    bodies = [document.zones["body"] for document in textcat.open_corpus("newswire").test[:6]]
    return ["Wheat exports rose in May", " ".join(bodies), "Corn fell"]


def test_explain_prints_the_part_that_speaks(run, model, texts):
    explained = textcat.load(model).explain_all({"text": texts[1]}, None)[0]
    assert run("explain", model, stdin=texts[1].encode()).code == 0, run.err
    printed = " ".join(run.out.split())
    assert f"Part {explained.part.number} of {explained.part.of} speaks most for the topic" in printed
    assert " ".join(explained.part.words.split()) in printed
    assert run("explain", model, stdin=texts[0].encode()).code == 0
    assert "speaks most" not in run.out
    assert run("explain", model, "--json", stdin=texts[1].encode()).code == 0
    assert json.loads(run.out)["explanations"][0]["part"]["score"] == pytest.approx(explained.part.score)


def test_explain_prints_how_often_the_text_names_the_topic(run, model, texts, tmp_path):
    tagger = replace(textcat.load(model), name_weight=1.0)
    naming = textcat.save(tagger, tmp_path / "naming")
    text = texts[1] + " gold Gold"
    n = tagger.explain(text, "gold").named.occurrences
    assert n >= 2
    assert run("explain", naming, "--topic", "gold", stdin=text.encode()).code == 0, run.err
    printed = " ".join(run.out.split())
    assert f"The text has the topic's name {n} times, which adds {math.log(1 + n):+.3f} to its log odds." in printed
    assert run("explain", model, "--topic", "gold", stdin=text.encode()).code == 0, run.err
    assert "the topic's name" not in " ".join(run.out.split())


@pytest.mark.parametrize("options", [{}, {"top": 4}])
def test_an_archive_gets_the_tags_that_python_gives(run, model, texts, options):
    Path("in.jsonl").write_text("".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts)))
    expected = textcat.load(model).tag(texts, **options)
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    assert run("tag", model, "in.jsonl", "--out", "tags", *arguments).code == 0, run.err
    (shard,) = Path("tags").glob("part-*.jsonl")
    rows = [json.loads(line) for line in shard.read_text().splitlines()]
    assert [[tag["topic"] for tag in row["topics"]] for row in rows] == [
        [tag.topic for tag in tags] for tags in expected
    ]
    found = [tag["probability"] for row in rows for tag in row["topics"]]
    assert found == pytest.approx([tag.probability for tags in expected for tag in tags], abs=1e-4)
