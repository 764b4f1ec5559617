"""`textcat serve` before it serves: keys that it makes and reads, and what it refuses."""

import re
import sys
from pathlib import Path

import pytest

from textcat.base.errors import TextcatError
from textcat.cli.serve import read_keys
from textcat.serving.http.keys import Keys


def test_a_new_key_is_known_by_the_line_that_is_printed_with_it(run):
    lines = []
    for name in ("anna", "ben"):
        printed = run("serve", "--new-key", name).out
        key, line = re.fullmatch(r"Give.*:  (\S+)\nAdd.*:  (.+)\n", printed).groups()
        assert key not in line
        lines.append((name, key, line))
    Path("keys").write_text("# ours\n" + "\n".join(line for *_, line in lines) + "\n")
    accepted = Keys(Path("keys"))
    assert [accepted.name_of(key.encode()) for _, key, _ in lines] == ["anna", "ben"]
    assert accepted.name_of(lines[0][1][:-1].encode()) is None


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", False), ("::1", False), ("0.0.0.0", True), ("::", True)])
def test_without_keys_only_an_address_that_others_reach_is_warned_of(tmp_path, capsys, host, warns):
    assert not read_keys(None, host, "answer questions").are_needed
    told = capsys.readouterr().err
    assert (f"anyone who can reach {host} can answer questions: give --keys FILE" in told) is warns
    (tmp_path / "keys").write_text(f"anna sha256:{'0' * 64}\n")
    assert read_keys(tmp_path / "keys", host, "answer questions").are_needed
    assert capsys.readouterr().err == ""


def test_a_line_of_keys_that_is_none_is_told_by_its_number_and_not_shown(tmp_path):
    (tmp_path / "keys").write_text(f"anna sha256:{'0' * 64}\nben tc_secret\n")
    with pytest.raises(TextcatError, match=r"Line 2 of the keys .*--new-key") as error:
        read_keys(tmp_path / "keys", "0.0.0.0", "answer questions")
    assert "tc_secret" not in str(error.value)


def test_without_its_packages_serving_says_what_to_install(run, newswire_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'textcat-margin[serve]'" in run.refuses("serve", newswire_model)


def test_a_vocabulary_that_is_missing_is_told_before_anything_is_served(run, newswire_model):
    assert "absent.tsv" in run.refuses("serve", newswire_model, "--port", 0, "--vocabulary", "absent.tsv")


def test_labels_are_read_in_the_language_of_the_model_or_the_one_asked_for(run, newswire_model, monkeypatch, tmp_path):
    served, path = [], tmp_path / "v.csv"
    monkeypatch.setattr("textcat.serving.server.serve_models", lambda *_, **options: served.append(options) or 0)
    path.write_text("uri,label_en,label_fi\nwheat,wheat,vehn\u00e4\n", encoding="utf-8")
    for options in ([], ["--vocabulary-language", "fi"]):
        run("serve", newswire_model, "--vocabulary", path, *options)
    both = {"en": {"wheat": "wheat"}, "fi": {"wheat": "vehn\u00e4"}}
    assert [tuple(options["labels"]) for options in served] == [(both, ""), (both, "fi")]
    assert "--vocabulary-language" in run.refuses(
        "serve", newswire_model, "--vocabulary", path, "--vocabulary-language", "sv"
    )
    path.write_text("uri,label_fi\nwheat,vehn\u00e4\n", encoding="utf-8")
    assert "--vocabulary-language" in run.refuses("serve", newswire_model, "--vocabulary", path)
    assert "give both" in run.misuses("serve", newswire_model, "--vocabulary-language", "fi")


def test_the_main_text_of_pages_is_asked_of_the_server_if_its_package_is_there(run, newswire_model, monkeypatch):
    served = []
    monkeypatch.setattr("textcat.serving.server.serve_models", lambda *_, **options: served.append(options) or 0)
    for options in ([], ["--main-text"]):
        run("serve", newswire_model, *options)
    assert [options["main_text"] for options in served] == [False, True]
    monkeypatch.setattr("textcat.reading.formats.main_text.find_spec", lambda name: None)
    assert "pip install 'textcat-margin[web]'" in run.refuses("serve", newswire_model, "--main-text")


def test_seconds_that_no_timer_takes_are_wrong_usage(run):
    assert "--timeout" in run.misuses("serve", "m", "--timeout", "1e300")
