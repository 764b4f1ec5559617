"""Options from environment variables and from a configuration file."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import COMMAND


def _configure(text):
    Path("options.toml").write_text(text)
    return "--config", "options.toml"


def test_a_file_sets_options_and_the_environment_and_the_command_line_come_before_it(run, monkeypatch, newswire_model):
    file = _configure("[topics]\nas = 'json'\nmodel = 'absent'\n[corpora.show]\nas = 'json'\ncorpus = 'newswire'\n")
    assert "absent" in run.refuses(*file, "topics")
    monkeypatch.setenv("TEXTCAT_TOPICS_MODEL", "nowhere")
    assert "nowhere" in run.refuses(*file, "topics")
    assert run(*file, "topics", newswire_model).out.startswith("[")
    monkeypatch.setenv("TEXTCAT_TOPICS_AS", "text")
    assert not run(*file, "topics", newswire_model).out.startswith("[")
    monkeypatch.setenv("TEXTCAT_CONFIG", "options.toml")
    assert run("corpora", "show").out.startswith("{")
    assert run("topics", newswire_model).code == 0  # the file has a table of another command, too


def test_of_options_that_exclude_each_other_the_one_of_higher_precedence_holds(run, monkeypatch, newswire_model):
    file = _configure("[tag]\nout = 'o'\nall-topics = true\nlog = ''\n")
    Path("a.txt").write_text("Wheat exports rose.")
    tag = (*file, "tag", newswire_model, "a.txt")
    assert len(json.loads(run(*tag, "--stdout", "--top", "1").out)["topics"]) == 1
    assert not Path("o").exists()
    assert len(json.loads(run(*tag, "--stdout", "--as", "text").out)["topics"]) > 1
    assert run(*tag, "-q").code == 0
    assert Path("o").exists()
    assert "choose one of" in run.misuses(*tag, "--stdout", "--out", "p")
    monkeypatch.setenv("TEXTCAT_TAG_STDOUT", "true")
    assert run(*tag).out
    monkeypatch.setenv("TEXTCAT_TAG_OUT", "p")
    assert "choose one of" in run.misuses(*tag)
    assert run(*tag, "--out", "q", "-q").code == 0
    assert Path("q").exists()
    assert not Path("p").exists()


def test_options_that_can_be_repeated_take_a_list_or_values_between_white_space(run, monkeypatch):
    file = _configure("[train]\ncorpus = 'newswire'\nset = ['learner.tau_pos=x', 'learner.tau_neg=1']\n")
    assert "tau_pos" in run.refuses(*file, "train")
    monkeypatch.setenv("TEXTCAT_TRAIN_SET", "learner.tau_pos=50 learner.tau_neg=y")
    assert "tau_neg" in run.refuses(*file, "train")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tag]\ntopp = 3\n", "options.toml: `textcat tag` has no option topp. Did you mean 'top'?"),
        ("[corpora.shows]\n", "options.toml: `textcat corpora` has no option shows. Did you mean 'show'?"),
        ("[tags]\n", "options.toml: tags is not the table of a command, as [serve] is: mend it. Did you mean 'tag'?"),
        ("port = 1\n", "options.toml: port is not the table of a command, as [serve] is: mend it."),
        (
            "[tag]\ntop = [[3]]\n",
            "options.toml: top of `textcat tag` is [[3]]: give a text, a number, or true or false.",
        ),
        ("[tag\n", "The configuration options.toml is not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(run, text, told):
    assert run.refuses(*_configure(text), "tag", "model").startswith(told)


def test_a_file_that_is_missing_is_told(run):
    assert run.refuses("--config", "absent.toml", "tag") == (
        "Cannot read the configuration absent.toml: No such file or directory."
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="system: there are no pipes")
def test_a_named_pipe_and_what_never_ends_are_told_and_a_pipe_of_the_shell_is_read(run, tmp_path):
    os.mkfifo("pipe")
    assert "is a pipe, which may never end" in run.refuses("--config", "pipe", "corpora")
    Path("zeros").symlink_to("/dev/zero")
    assert "it has more than" in run.refuses("--config", "zeros", "corpora")
    script = '"$@" --config <(echo "[corpora.show]") corpora show newswire >/dev/null'
    subprocess.run(["bash", "-c", script, "bash", *COMMAND], check=True)


def test_a_wrong_value_is_told_with_where_it_is_from(run, monkeypatch):
    assert "(in the configuration)." in run.misuses(*_configure("[tag]\ntop = 0\n"), "tag", "model")
    monkeypatch.setenv("TEXTCAT_TAG_TOP", "many")
    assert "(in TEXTCAT_TAG_TOP)." in run.misuses("tag", "model")
    assert " (in " not in run.misuses("tag", "model", "--top", "0")


def test_a_variable_that_names_no_option_is_told_and_others_are_left_alone(run, monkeypatch):
    monkeypatch.setenv("TEXTCAT_VERSION", "1.0")  # of an image, say
    monkeypatch.setenv("TEXTCAT_TOPICS_ASS", "true")
    assert run("corpora", "show", "newswire").code == 0
    told = run.refuses("topics", "model")
    assert told.startswith("`textcat topics` has no option for the variable TEXTCAT_TOPICS_ASS: unset it.")
    assert told.endswith("Did you mean 'TEXTCAT_TOPICS_AS'?")
