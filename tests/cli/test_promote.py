"""`textcat promote` and `rollback`: one model in place of another, unless a condition is against it."""

import json
from pathlib import Path

import pytest

import textcat


@pytest.fixture(scope="module")
def rival(tmp_path_factory):
    tagger = textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("paum-2002"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "rival")


def test_a_model_is_promoted_unless_it_fails_by_a_condition(run, model, rival):
    assert run("promote", model, "served").code == 0
    before = Path("served/manifest.json").read_bytes()
    options = ("--bootstrap", "100")
    run("promote", rival, "served", "--fail-if", "macro F1 < -.1", *options)
    assert (run.code, run.err) == (4, "textcat: the new model fails by 'macro F1 < -.1'.\n")
    assert run.out.split()[-6:] == ["FAILS", "served", "stays", "as", "it", "is."]
    assert Path("served/manifest.json").read_bytes() == before
    refused = json.loads(run("promote", rival, "served", "--fail-if", "macro F1 < -.1", "--as", "json", *options).out)
    assert (run.code, refused["promoted"], refused["gates"][0]["failed"]) == (4, False, True)
    promoted = json.loads(run("promote", rival, "served", "--fail-if", "MAP < -.5", "--as", "json", *options).out)
    assert (run.code, promoted["promoted"], promoted["source"]) == (0, True, str(rival))
    assert Path("served/manifest.json").read_bytes() == Path(rival, "manifest.json").read_bytes()
    assert f"served has model {promoted['replaced'][:12]} now" in run("rollback", "served").out
    assert Path("served/manifest.json").read_bytes() == before
    assert "no earlier state is kept" in run.refuses("rollback", "served")
    lines = [json.loads(line)["action"] for line in Path("served.promotions.jsonl").read_text().splitlines()]
    assert lines == ["promote", "promote", "rollback"]


def test_what_cannot_be_promoted_is_refused_in_a_sentence(run, model, rival):
    assert "--corpus and --strict are of --fail-if" in run.misuses("promote", rival, "served", "--strict")
    assert "is not a model" in run.refuses("promote", rival, "served", "--fail-if", "MAP < 0")
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    assert "one leads in a circle of symbolic links" in run.refuses("promote", rival, "one")
    assert "two leads in a circle of symbolic links" in run.refuses("rollback", "two")
    assert "Did you mean 'wheat'?" in run.refuses("promote", rival, model, "--fail-if", "AP of weat < 0")
    assert "its own place" in run.refuses("promote", model, model)
    assert "is not a model" in run.refuses("promote", "nothing", "served")
    assert "is not a model" in run.refuses("rollback", "served")
    assert not Path("served").exists()
