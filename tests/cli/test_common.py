"""Options that commands share: how inputs are read, and what the shell completes."""

import json
from pathlib import Path

import forked_commands
import pytest
from commands import COMMAND, environment
from new_files import new_file, new_folder

from textcat.cli.common import LEARNERS as LEARNER_NAMES
from textcat.margin.learners import LEARNERS

# --- inputs of every format, by the same options ---------------------------------------------------------------------

TEXTS = ("--text-field", "headline", "--text-field", "abstract", "--id-field", "nr")


LABELS = ("--topics-field", "labels", "--topics-separator", ";")


@pytest.fixture
def pets():
    """A table whose columns have names of their own; labels are numbers and words."""
    texts = {"7;cats": "the cat purrs", "7;dogs": "the dog barks", "cars": "the car honks"}
    rows = [(f"{k} {name}", f"{text}, {k}", name) for k in range(6) for name, text in texts.items()]
    lines = [f'{number},{",".join(cells[:1])},"{cells[1]}",{cells[2]}' for number, cells in enumerate(rows)]
    Path("pets.csv").write_text("\n".join(["nr,headline,abstract,labels", *lines]) + "\n")
    return "pets.csv"


def test_all_commands_read_a_table_by_the_same_options(run, monkeypatch, pets):
    read = (*TEXTS, *LABELS, "--test-size", "0.34", "--test-seed", "3")
    run("train", pets, *read, "--recipe", "paum", "--out", "m", "--as", "json")
    assert (run.code, run.err) == (0, "")
    trained = json.loads(run.out)
    assert {row["topic"]: row["train_positives"] + row["test_positives"] for row in trained["topics"]} == {
        "7": 12, "cars": 6, "cats": 6, "dogs": 6,
    }  # fmt: skip
    measured = json.loads(run("evaluate", "m", pets, *read, "--as", "json").out)
    assert measured["topics"] == trained["topics"]
    compared = json.loads(run("compare", "m", "m", "--corpus", pets, *read, "--bootstrap", "100", "--as", "json").out)
    assert compared["test_documents"] == measured["test_documents"] >= 6
    space = new_file("space.toml", b"[learner]\ntau_pos = [5.0, 20.0]\n")
    assert (
        len(json.loads(run("tune", pets, *read, "--folds", "2", "--space", space, "--as", "json").out)["trials"]) == 2
    )
    tagged = [json.loads(line) for line in run("tag", "m", pets, *TEXTS).out.splitlines()]
    assert [line["id"] for line in tagged] == [str(number) for number in range(18)]
    assert {tag["topic"] for line in tagged for tag in line["topics"]} <= {"7", "cars", "cats", "dogs"}
    monkeypatch.chdir(new_folder("elsewhere"))
    assert json.loads(run("evaluate", "../m", "--as", "json").out)["topics"] == trained["topics"], (
        "read as for training"
    )


@pytest.mark.parametrize("command", ["train", "tune", "tag"])
def test_a_column_that_is_not_there_is_refused_with_those_that_are(run, model, pets, command):
    for column in ("text", "title"):
        arguments = [model, pets] if command == "tag" else [pets]
        run(command, *arguments, "--text-field", column, *(() if column == "title" else ("--text-field", "headline")))
        assert (run.code, run.out) == (1 if command != "tag" else run.code, "")
        assert f"has no column '{column}' (only nr, headline, abstract, labels)" in run.err


def test_encoding_quotes_lines_and_format_are_options_of_training_and_of_tagging(run, pets):
    Path("wide.data").write_text(Path(pets).read_text(), encoding="utf-16")
    Path("plain.tsv").write_text(
        'text\ttopics\n"the cat purrs\tcats\nthe "dog" barks\tdogs\na cat"\tcats\nmy dog\tdogs\n'
    )
    options = {"wide.data": ("--format", "csv", *TEXTS), "plain.tsv": ("--plain-quotes",)}
    for path, read in options.items():
        labels = LABELS if path == "wide.data" else ()
        model = Path(path).stem
        assert run("train", path, *read, *labels, "--recipe", "paum", "--out", model).code == 0, run.err
        lines = run("tag", model, path, *read).out.splitlines()
        assert (run.code, len(lines)) == (0, 18 if path == "wide.data" else 4)


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("textcat ev", ["evaluate"]),
        ("textcat train new", ["newswire"]),
        ("textcat train newswire --recipe paum", ["paum", "paum-2002"]),
        ("textcat train newswire --learner p", ["pa", "pam", "paum", "pdm"]),
        ("textcat recipes paum", ["paum", "paum-2002"]),
        ("textcat corpora fetch r", ["rcv1", "rcv1-lyrl2004", "reuters21578"]),
    ],
)
def test_the_shell_completes_commands_corpora_recipes_and_learners(words, completions):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_TEXTCAT_COMPLETE": "complete_bash"}
    ended = forked_commands.run(COMMAND, text=True, env=environment(**asked))
    assert ended.stdout.split() == completions


def test_the_learners_that_are_completed_are_those_that_there_are():
    assert sorted(LEARNER_NAMES) == sorted(LEARNERS)
