"""What workers do without: these tests fail when spaCy or pyarrow import other things than they did."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

import textcat

TAG = """
import sys
from textcat.lean_imports import keep_imports_lean
if sys.argv[3] == "lean":
    keep_imports_lean()
from textcat import InputSettings, OutputSettings
from textcat.reading import read_batches
from textcat.tagging.job import tag_batch
from textcat.tagging.planning import make_plan
for kind in sys.argv[4:]:
    plan = make_plan(sys.argv[1], [sys.argv[2]], InputSettings(format="text"), OutputSettings(kind))
    (tagged,) = [tag_batch(plan.job, batch) for batch in read_batches(plan.sources, plan.job.input)]
    print(tagged.rows, len(tagged.rejections))
import spacy  # as for a language that needs it
spacy.blank("en")
print(*sorted(name for name, module in sys.modules.items() if name.startswith(("pandas", "spacy.cli"))))
"""


@pytest.fixture(scope="module")
def tagged(newswire_model, tmp_path_factory):
    """What "lean" and "plain" processes do: their rows of a text, and the modules they load that can be left out."""
    text = tmp_path_factory.mktemp("text") / "a.txt"
    text.write_text("wheat harvest and grain exports", encoding="utf-8")
    kinds = ["jsonl"] + ["parquet"] * bool(importlib.util.find_spec("pyarrow"))

    def tag(how):
        command = [sys.executable, "-c", TAG, str(newswire_model), str(text), how, *kinds]
        *tags, modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(tags) == len(kinds)
        assert all(each.endswith(" 0") for each in tags), "something was rejected"
        return tags, modules.split()

    return {how: tag(how) for how in ("lean", "plain")}


def test_spacy_imports_its_commands_for_one_name_only():
    assert version("spacy").startswith("3.8."), "does this spaCy import spacy.cli, too, and for what? see lean_imports"
    tree = ast.parse(Path(importlib.util.find_spec("spacy").origin).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "cli" in (node.module or "")]
    assert [(node.module, [alias.name for alias in node.names]) for node in imports] == [("cli.info", ["info"])]


@pytest.mark.where_long("processes that import much are compared")
def test_the_commands_of_spacy_are_not_missed_and_would_else_be_loaded(tagged):
    (rows, modules), (plain_rows, plain_modules) = tagged["lean"], tagged["plain"]
    assert modules == ["spacy.cli", "spacy.cli.info"]
    assert rows == plain_rows
    assert "spacy.cli.train" in plain_modules


@pytest.mark.where_long("processes that import much are compared")
def test_pandas_is_not_missed_and_would_else_be_loaded(tagged):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    (rows, modules), (plain_rows, plain_modules) = tagged["lean"], tagged["plain"]
    assert "pandas" not in modules
    assert rows == plain_rows
    assert "pandas" in plain_modules


TRAIN = """
import sys
if sys.argv[1] == "lean":
    from textcat.lean_imports import keep_imports_lean
    keep_imports_lean()
from textcat.corpus.catalogue import open_corpus
from textcat.recipes.recipe import read_recipe
from textcat.training.steps import train_and_evaluate
train_and_evaluate(open_corpus("newswire"), read_recipe("paum"))
parts = "f2py.f2py2e", "ma.core", "polynomial.chebyshev", "testing._private"
print(*[part for part in parts if f"numpy.{part}" in sys.modules])
import numpy
print(numpy.f2py.__all__[0], numpy.ma.count([1]), numpy.polynomial.Polynomial([2])(0), numpy.testing.assert_equal(1, 1))
"""


@pytest.mark.where_long("processes that import much are compared")
def test_training_does_without_what_would_else_be_loaded_and_can_be_used():
    def train(how):
        command = [sys.executable, "-c", TRAIN, how]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    used, parts = "run_main 1 2.0 None", "f2py.f2py2e ma.core polynomial.chebyshev testing._private"
    assert train("lean") == ["", used]
    assert train("plain") == [parts, used], "they do without: so can we"


def modules_of(command, text=""):
    """Return the names of the modules that a run of the program loads."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "textcat", *map(str, command)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}


def test_training_imports_nothing_that_only_estimators_need(tmp_path):
    lines = [{"text": f"{word} prices rose {i}", "topics": [word]} for i in range(30) for word in ("wheat", "gold")]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, lines)))  # so many that all choices are made
    modules = modules_of(["train", tmp_path / "news.jsonl", "--out", tmp_path / "model"])
    assert "joblib.memory" in modules
    assert "textcat.training.forecast" in modules
    assert "textcat.margin.learners" in modules
    assert not modules & {"asyncio.events", "sklearn", "scipy.linalg", "scipy.special", "scipy.stats", "narwhals"}


def test_a_help_is_the_same_without_what_is_of_no_use_for_it():
    def helped(how):
        program = "import sys; from textcat.cli import app; from textcat.lean_imports import keep_imports_lean\n"
        program += f"if {how!r} == 'lean': keep_imports_lean()\n"
        program += "try: app(['train', '--help'], prog_name='textcat')\n"
        program += "except SystemExit: print(*[name in sys.modules for name in ('markdown_it', 'rich.syntax')])"
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    (*lean, left_out), (*plain, imported) = helped("lean"), helped("plain")
    assert lean == plain
    assert (left_out, imported) == ("False False", "True True")


def test_a_text_is_tagged_without_what_is_of_no_use_for_it(newswire_model):
    modules = modules_of(["tag", newswire_model], "wheat harvest and grain exports")
    assert "textcat.tagging.stream" in modules
    assert not modules & {
        "email",
        "importlib.metadata",
        "msgspec",
        "pydantic",
        "rich.console",
        "scipy",
    }


# What docs/how-to/install.md names for a machine that only tags, and what these packages require in their turn.
TO_TAG = [
    "filelock",
    "fsspec",
    "msgspec",
    "numpy",
    "orjson",
    "platformdirs",
    "typer",
    "annotated-doc",
    "rich",
    "shellingham",
]
TO_TAG += ["markdown-it-py", "mdurl", "pygments", "typing_extensions"]


@pytest.fixture
def run_slim(tmp_path):
    """Run the command line where only what tagging takes is installed, not spaCy; return code, output and errors."""
    site = tmp_path / "site"
    site.mkdir()
    for package in map(distribution, TO_TAG):
        for entry in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
            (site / entry).symlink_to(package.locate_file(entry))
    path = os.pathsep.join([str(Path(textcat.__file__).parents[1]), str(site)])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*command, text=""):
        command = [sys.executable, "-S", "-m", "textcat", *map(str, command)]
        ended = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=tmp_path)
        return ended.returncode, ended.stdout, ended.stderr

    return run


@pytest.mark.skipif(os.name == "nt", reason="system: links need rights")
def test_a_model_tags_where_little_is_installed_as_it_does_elsewhere(newswire_model, run_slim, tmp_path):
    text = "wheat harvest and grain exports"
    plain = [sys.executable, "-m", "textcat", "tag", str(newswire_model)]
    expected = subprocess.run(plain, input=text, capture_output=True, text=True, check=True).stdout
    assert run_slim("tag", newswire_model, text=text) == (0, expected, "")
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    code, _, errors = run_slim("tag", newswire_model, "a.txt", "--out", "tagged")
    assert code == 0, errors
    assert '"wheat"' in next(Path(tmp_path, "tagged").glob("part-*")).read_text(encoding="utf-8")


def test_a_recipe_is_read_without_what_learners_need_so_that_its_corpus_is_read_meanwhile():
    program = "import sys; from textcat.recipes.recipe import default_recipe\n"
    program += "default_recipe().changed().with_settings([])\n"
    program += "print(*{'joblib', 'scipy', 'sklearn'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
