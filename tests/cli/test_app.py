"""The command line as a contract: what each command prints, which mistakes it tells in a sentence, how it ends."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import ir_measures
import pytest
from commands import COMMAND, Run, environment

import textcat
from textcat.cli.common import LEARNERS as LEARNER_NAMES
from textcat.evaluation.evaluation import TITLES
from textcat.margin.learners import LEARNERS
from textcat.recipe import read_recipe, recipes

COMMANDS = (
    "train",
    "evaluate",
    "compare",
    "tag",
    "topics",
    "show",
    "simulate",
    "tune",
    "recipes",
    "reproduce",
    "corpora",
    "corpora fetch",
    "corpora show",
)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


@pytest.fixture(scope="module")
def tagger():
    return textcat.Tagger.fit(textcat.open_corpus("newswire"), textcat.read_recipe("paum"))


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory):
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "newswire")


@pytest.fixture
def own(tmp_path):
    """A folder of documents per topic, without a test part."""
    for topic, text in {"cats": "the cat purrs", "dogs": "the dog barks"}.items():
        for number in range(3):
            path = tmp_path / "own" / topic / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text} {number}\n")
    return tmp_path / "own"


def recipe(text, name="mine"):
    path = Path(f"{name}.toml")
    path.write_text(text)
    return path


# --- help and wrong use ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_prints_how_it_is_used(run, command):
    assert run(*command.split(), "--help").code == 0
    assert f"Usage: textcat {command}" in run.out
    assert run.err == ""


def test_the_version_is_printed(run):
    assert run("--version").out == f"textcat {textcat.__version__}\n"
    assert (run.code, run.err) == (0, "")


def test_it_can_be_run_as_a_module():
    found = subprocess.run([sys.executable, "-m", "textcat", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: textcat" in found.stdout


def test_help_imports_no_library_that_is_slow_to_import():
    slow = {"numpy", "scipy", "sklearn", "spacy", "joblib", "pooch"}
    program = (
        "import sys\n"
        "from textcat.cli import main\n"
        f"for command in {['', *COMMANDS]}:\n"
        "    sys.argv = ['textcat', *command.split(), '--help']\n"
        "    try: main()\n"
        f"    except SystemExit: print(command, 'imported', sorted({slow} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    imported = [line for line in printed.splitlines() if " imported " in line]
    assert imported == [f"{command} imported []" for command in ["", *COMMANDS]]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_wrong_use(run, command):
    assert "No such option: --nonsense" in run.misuses(*command.split(), "--nonsense")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["train"], "Missing argument"),
        (["train", "newswire", "--tau-pos", "large"], "--set learner.tau_pos=VALUE"),
        (["train", "newswire", "--tau-neg=1"], "--set learner.tau_neg=VALUE"),
        (["train", "newswire", "--lambda", "1"], "--set learner.lambda_=VALUE"),
        (["train", "newswire", "--jobs", "0"], "give 1 or more, or -1 for one per core"),
        (["train", "newswire", "--jobs", "-7"], "-7 jobs do nothing; give 1 or more, or -1 for one per core"),
        (["tune", "newswire", "--seed", "-1"], "--seed"),
        (["train", "newswire", "--recipe", "paum-2002", "--set", "learner.kappa=-5"], "here τ₊ is fixed"),
        (["train", "newswire", "--set", "learner.tau_pos=50", "--set", "learner.kappa=-5"], "here τ₊ is fixed"),
        (["evaluate", "model", "--json", "--csv"], "choose one of --json, --csv, --markdown and --latex"),
        (["compare", "model"], "give 2 to 26 models"),
        (["compare", "a", "b", "c", "--report", "r.html"], "give 2 models, not 3"),
        (["report", "model", "--folds", "1"], "1 part leaves no document to train on"),
        (["compare", *27 * ["model"]], "give 2 to 26 models"),
        (["compare", "model", "model", "--bootstrap", "5"], "--bootstrap"),
        (["tune", "newswire", "--folds", "1"], "--folds"),
    ],
)
def test_wrong_use_ends_as_such(run, arguments, message):
    assert message in run.misuses(*arguments)


# --- train -----------------------------------------------------------------------------------------------------------


def test_where_no_recipe_is_named_many_topics_have_one_of_their_own(run, monkeypatch):
    monkeypatch.setattr("textcat.recipe.MANY_TOPICS", 50)
    run("train", "newswire", "--out", "many")
    assert run.err == "textcat: 50 topics: trained by the recipe many-topics; --recipe names another.\n"
    by_name = textcat.load("many")
    assert by_name.recipe == textcat.read_recipe("many-topics").complete().as_dict()
    alone = textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("many-topics"))
    assert (by_name.weights != alone.weights).nnz == 0
    run("train", "newswire", "--out", "default", "--recipe", "default")
    assert (run.err, textcat.load("default").shortlist) == ("", None)


def test_where_no_recipe_is_named_short_texts_have_one_of_their_own_with_the_settings_asked_for(run):
    texts = {"person": ("Who is he?", "Who was she?"), "place": ("Where is it?", "Where was it?")}
    lines = [{"text": text, "topics": [topic]} for topic, both in texts.items() for text in both]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = "textcat: texts of 12 characters on average: trained by the recipe {}; --recipe names another.\n"
    run("train", "questions.jsonl", "--out", "short")
    assert run.err == said.format("short-texts")
    assert "Every training document has exactly one topic: with --set tags.strategy=single" in run.out
    short = textcat.load("short")
    assert short.recipe == textcat.read_recipe("short-texts").complete().as_dict()
    assert "who" in dict(short.terms("person", 50))
    run("train", "questions.jsonl", "--out", "other", "--learner", "pam", "--set", "tags.strategy=zero")
    assert run.err == said.format("short-texts-pam")
    asked_for = textcat.read_recipe("short-texts").changed("pam").with_settings(["tags.strategy=zero"])
    assert textcat.load("other").recipe == asked_for.complete().as_dict()


def test_train_prints_bands_stages_and_the_model_and_nothing_on_stderr(run):
    run("train", "newswire")
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0].split() == ["ALL", "TOP10", "LAST30"]
    titles = [re.split(r"  +", line)[0] for line in lines]
    for title in (
        "macro-averaged precision (MAP)",
        "read",
        "tokens to rows",
        "train topics",
        "evaluate",
        "save",
        "peak memory",
    ):
        assert title in titles
    assert lines[-1] == "Model: models/newswire-default"
    assert textcat.load("models/newswire-default").corpus == "newswire"


def test_options_go_before_the_recipe(run):
    settings = ("--set", "learner.tau_neg=1", "--set", "learner.tau_pos=5", "--set", "learner.seed=3")
    run("train", "newswire", "--out", "m", *settings, "--jobs", "1", "--topics")
    assert run.code == 0
    learner = json.loads(Path("m/manifest.json").read_text())["recipe"]["learner"]
    assert (learner["tau_neg"], learner["tau_pos"], learner["seed"]) == (1, 5, 3)
    assert run.out.splitlines()[0].split()[:4] == ["topic", "train", "test", "precision"]


def test_kappa_is_a_setting_where_the_margin_follows_prevalence(run, own):
    assert run("train", own, "--out", "m", "--set", "learner.kappa=-7").code == 0
    assert json.loads(Path("m/manifest.json").read_text())["recipe"]["learner"]["kappa"] == -7


@pytest.mark.parametrize("form", ["folder", "card", "sgm"])
def test_a_corpus_of_the_users_own_is_given_by_path(run, own, form):
    if form == "card":
        Path("pets.toml").write_text('reader = "folders"\nfiles = ["own"]\n')
    elif form == "sgm":
        shutil.copy(textcat.folders.shipped("corpora") / "newswire" / "newswire.sgm", "wire.sgm")
    path = {"folder": own, "card": "pets.toml", "sgm": "wire.sgm"}[form]
    assert run("train", path, "--out", "m").code == 0
    assert run("evaluate", "m", path).code == 0
    assert ("Measured after training" in run.out) == (form != "sgm")


def test_a_corpus_without_a_test_part_is_cross_validated(run, model, own):
    run("train", own, "--recipe", "default", "--out", "m")
    assert (run.code, run.err) == (0, "")
    measured_on, _, names, averages = run.out.splitlines()[:4]
    assert measured_on == "Corpus own has no test documents: by cross-validation on its 6 training documents,"
    assert names.split() == ["ALL"]
    assert averages.split()[-1] == "1.000"
    assert re.search(r"^cross-validate +[0-9.]+$", run.out, re.MULTILINE)
    shown = run.out.split("\n\n")[1]
    for command in (("evaluate", "m", own, "--band", "ALL"), ("show", "m")):
        said = "Measured after training, on 6 training documents, by cross-validation:\n\n"
        assert run(*command).out.partition(said)[2].splitlines()[1].split() == shown.splitlines()[1].split()
    measured = json.loads(run("evaluate", "m", own, "--json").out)
    assert (measured["measured_on"], measured["test_documents"]) == ("training documents, by cross-validation", 6)
    assert "was kept of ALL alone" in run.refuses("evaluate", "m", own, "--band", "TOP1")
    assert "no scores were kept" in run.refuses("evaluate", "m", own, "--trec", "t")
    assert "the scores" in run.refuses("evaluate", "m", own, "--bootstrap", "100")
    own.rename("other")
    assert "no test documents" in run.refuses("evaluate", "m", "other")


def test_one_topic_a_document_is_measured_by_accuracy_and_confusions(run):
    run("train", "newswire", "--out", "m", "--recipe", "paum", "--set", "tags.strategy=single")
    assert re.search(r"^accuracy \.[0-9]{3}, over the documents that have a topic$", run.out, re.MULTILINE)
    measured = json.loads(run("evaluate", "m", "--json").out)
    rows = list(csv.DictReader(io.StringIO(run("evaluate", "m", "--csv").out)))
    for topic, got, n in measured["confusion"]:
        assert next(row for row in rows if row["topic"] == topic)[f"got {got}"] == str(n)
    assert f"accuracy {measured['accuracy']:.3f}".replace("0.", ".") in run("evaluate", "m").out
    Path("texts.txt").write_text("wheat harvest and grain exports\n")
    run("tag", "m", "texts.txt", "--lines")
    assert len(json.loads(run.out)["topics"]) == 1


def test_models_of_many_topics_are_measured_by_the_first_topics_of_each_document(run, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 50)
    trained = run("train", "newswire", "--out", "m", "--recipe", "paum").out.split("\n\n")
    assert trained[0].splitlines()[0].split() == ["ALL", "1-5", "6-20", "21-100", "101-"]
    titles = [line.partition("  ")[0] for line in trained[0].splitlines()[1:]]
    assert titles == [*(title.line for name, title in TITLES.items() if "@" in name), "documents", "pairs", "topics"]
    for command in (("evaluate", "m"), ("show", "m")):
        assert trained[0] in run(*command).out
    measured = json.loads(run("evaluate", "m", "--json").out)
    assert measured["bands"][0] == measured["overall"]
    assert trained[0].splitlines()[1].split()[1] == f"{measured['overall']['precision']['1']:.3f}".lstrip("0")
    rows = list(csv.DictReader(io.StringIO(run("evaluate", "m", "--csv", "--band", "1-5", "--band", "ALL").out)))
    assert [row["band"] for row in rows] == ["1-5", "ALL"]
    assert float(rows[1]["ndcg@10"]) == measured["overall"]["ndcg"]["10"]
    assert run("evaluate", "m", "--bootstrap", "100").out.count("95 % interval") == 4
    without = sum(not document.topics for document in textcat.open_corpus("newswire").test)
    notes = run("evaluate", "m", "--topics").out.splitlines()[-2:]
    assert notes[0].startswith(f"{without} of {measured['test_documents']} documents have no topic")
    assert notes[1].startswith("There is no table per topic")
    assert "Of the evaluation of 50 topics no scores were kept" in run.refuses("evaluate", "m", "--trec", "t")
    run("train", "newswire", "--out", "n", "--recipe", "paum-2002")
    lines = run("compare", "m", "n", "--bootstrap", "100").out.splitlines()
    assert [line.split()[:2] for line in lines[6:8]] == [["ALL", "P@1"], ["ALL", "P@3"]]
    assert "MAP" not in run.out
    compared = json.loads(run("compare", "m", "n", "--bootstrap", "100", "--json").out)
    assert compared["measures"][0]["values"][0] == measured["overall"]["precision"]["1"]


def test_topics_that_did_not_converge_are_named_and_warned_of_in_a_line(run):
    run("train", "newswire", "--out", "m", "--recipe", recipe("[learner]\nmax_epochs = 2\n"))
    assert run.code == 0
    assert re.fullmatch(r"textcat: warning: \d+ of 50 topics did not converge in 2 epochs[^\n]*\n", run.err)
    late = re.search(r"^Did not converge: (.+)\.$", run.out, re.MULTILINE)[1].split(", ")
    stopped = {row["topic"]: row["stopped"] for row in json.loads(run("topics", "m", "--json").out)}
    assert sorted(late) == sorted(topic for topic, why in stopped.items() if why.startswith("did not converge"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[learner]\neta = 0\n", "'eta' parameter"),
        ('[learner]\ntau_pos = "x"\n', "'tau_pos' parameter"),
        ("[learner]\ntau_pos = true\n", "tau_pos in [learner] cannot be True; give a number or a text."),
        ("[learner]\nspeed = 1\n", "[learner] has no parameter 'speed'. Known parameters:"),
        ("[learner]\nn_jobs = 2\n", "[learner] has no parameter 'n_jobs'"),
        ('[learner]\nname = "svm"\n', "No learner 'svm'. Known learners:"),
        ("[learner]\nname = 3\n", "No learner '3'"),
        ("[learner]\neta = 1e39\nmax_epochs = 3\n", "overflowed; lower eta or the margins."),
        ("[lerner]\n", "Known entries: features, learner, ranker, tags, tokens, topics. Did you mean 'learner'?"),
        ("title = 3\n", "title must be a text"),
        ("learner = 3\n", "learner must be a section"),
        ("learner\n", "is not valid TOML"),
        ('[features]\nzones = "title"\n', "zones in [features] cannot be 'title'; give a table of numbers."),
        ("[features]\nzones = { headline = 1 }\n", "leaves no term of the 721 training documents"),
        ("[features]\nmin_df = 100000\n", "leaves no term of the 721 training documents"),
        ("[features]\nmin_df = 0\n", "min_df is 0"),
        ('[features]\nsublinear_tf = "no"\n', "sublinear_tf in [features] cannot be 'no'; give true or false."),
        ('[features]\ndtype = "float16"\n', "dtype is 'float16'"),
        ('[features]\ntokens = "x"\n', "[features] has no parameter 'tokens'"),
        ('[tokens]\nlang = "qq"\n', "spaCy has no language 'qq'"),
        ("[tokens]\nlang = 3\n", "lang in [tokens] cannot be 3; give a text."),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_recipe_that_cannot_be_followed_ends_in_a_sentence(run, text, message):
    run("train", "newswire", "--out", "m", "--recipe", recipe(text))
    assert run.code == 1
    assert message in run.err.splitlines()[-1]
    assert "Traceback" not in run.err
    assert not Path("m").exists()


def test_what_does_not_exist_ends_in_a_sentence(run, model, tmp_path):
    assert "No corpus 'newswir'. Known corpora:" in run.refuses("train", "newswir")
    assert "Did you mean 'paum'?" in run.refuses("train", "newswire", "--recipe", "paun")
    assert "No such file" in run.refuses("train", "newswire", "--recipe", "absent.toml")
    assert "absent.csv" in run.refuses("train", "absent.csv")
    assert "Is a directory" in run.refuses("train", "newswire", "--recipe", _folder("folder.toml"))
    assert "is not a model" in run.refuses("evaluate", "absent")
    assert "is not a model" in run.refuses("tag", _folder("empty"))
    assert "is not a model" in run.refuses("show", __file__)
    assert "no topic 'weather'" in run.refuses("show", model, "--topic", "weather")
    assert "No band 'BEST'" in run.refuses("evaluate", model, "--band", "BEST")
    assert "No topic 'weather'" in run.refuses("evaluate", model, "--band", "mine=weather")
    assert "No corpus 'absent'" in run.refuses("corpora", "show", "absent")
    assert "No corpus 'absent'" in run.refuses("corpora", "fetch", "absent")
    assert "holds no file of a known format and no folder per topic: name the format with --format" in run.refuses(
        "train", _file("text.txt", b"text")
    )


def _folder(name):
    Path(name).mkdir()
    return name


def _file(name, content):
    Path(name).write_bytes(content)
    return name


@pytest.mark.parametrize("target", ["folder", "file", "file/below", "/proc/model", "."])
def test_where_no_model_can_be_written_training_does_not_begin(run, monkeypatch, target):
    if target.startswith("/proc") and not Path("/proc").exists():
        pytest.skip("system: there is no /proc")
    monkeypatch.setattr(textcat.Tagger, "fit", None)
    Path("folder").mkdir()
    Path("folder/notes.txt").touch()
    Path("file").touch()
    refusal = run.refuses("train", "newswire", "--out", target)
    assert target != "file" or "file exists and is not a model" in refusal
    assert sorted(path.name for path in Path().rglob("*")) == ["file", "folder", "notes.txt"]


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
    run("train", pets, *read, "--recipe", "paum", "--out", "m", "--json")
    assert (run.code, run.err) == (0, "")
    trained = json.loads(run.out)
    assert {row["topic"]: row["train_positives"] + row["test_positives"] for row in trained["topics"]} == {
        "7": 12, "cars": 6, "cats": 6, "dogs": 6,
    }  # fmt: skip
    measured = json.loads(run("evaluate", "m", pets, *read, "--json").out)
    assert measured["topics"] == trained["topics"]
    compared = json.loads(run("compare", "m", "m", "--corpus", pets, *read, "--bootstrap", "100", "--json").out)
    assert compared["test_documents"] == measured["test_documents"] >= 6
    space = _file("space.toml", b"[learner]\ntau_pos = [5.0, 20.0]\n")
    assert len(json.loads(run("tune", pets, *read, "--folds", "2", "--space", space, "--json").out)["trials"]) == 2
    tagged = [json.loads(line) for line in run("tag", "m", pets, *TEXTS).out.splitlines()]
    assert [line["id"] for line in tagged] == [str(number) for number in range(18)]
    assert {tag["topic"] for line in tagged for tag in line["topics"]} <= {"7", "cars", "cats", "dogs"}
    monkeypatch.chdir(_folder("elsewhere"))
    assert json.loads(run("evaluate", "../m", "--json").out)["topics"] == trained["topics"], "read as for training"


@pytest.mark.parametrize("command", ["train", "tune", "tag"])
def test_a_column_that_is_not_there_is_refused_with_those_that_are(run, model, pets, command):
    for column in ("text", "title"):
        arguments = [model, pets] if command == "tag" else [pets]
        run(command, *arguments, *(() if column == "text" else ("--text-field", column)))
        assert (run.code, run.out) == (1 if command != "tag" else run.code, "")
        assert f"has no column '{column}' (only nr, headline, abstract, labels)" in run.err


def test_encoding_quotes_lines_and_format_are_options_of_training_and_of_tagging(run, pets):
    Path("wide.data").write_text(Path(pets).read_text(), encoding="utf-16")
    Path("plain.tsv").write_text(
        'text\ttopics\n"the cat purrs\tcats\nthe "dog" barks\tdogs\na cat"\tcats\nmy dog\tdogs\n'
    )
    options = {"wide.data": ("--format", "csv", *TEXTS), "plain.tsv": ("--quote", "none")}
    for path, read in options.items():
        labels = LABELS if path == "wide.data" else ()
        assert run("train", path, *read, *labels, "--recipe", "paum", "--out", "m").code == 0, run.err
        lines = run("tag", "m", path, *read).out.splitlines()
        assert (run.code, len(lines)) == (0, 18 if path == "wide.data" else 4)
    assert "--quote is 'double' or 'none', not 'single'" in run.misuses("train", "plain.tsv", "--quote", "single")


# --- evaluate --------------------------------------------------------------------------------------------------------


def test_evaluate_takes_the_corpus_the_model_was_trained_on(run, model):
    bands = run("evaluate", model)
    assert (bands.code, bands.err) == (0, "")
    assert bands.out == run("evaluate", model, "newswire").out


def test_evaluate_asks_for_a_corpus_it_cannot_know(run, own):
    run("train", own, "--out", "m")
    shutil.move(own, own.with_name("moved"))
    assert "trained on 'own', which is no known corpus: name the corpus" in run.refuses("evaluate", "m")


def test_evaluate_finds_the_corpus_from_another_folder(run, own, monkeypatch):
    run("train", own, "--out", "m")
    model = Path("m").resolve()
    here = run("evaluate", model)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    there = run("evaluate", model)
    assert (here.code, there.code) == (0, 0)
    assert there.out == here.out


def test_options_of_input_are_refused_where_the_corpus_of_training_is_opened_again(run, own):
    run("train", own, "--out", "m")
    for option in (("--text-field", "headline"), ("--test-size", "0.5"), ("--topics-separator", ";")):
        for command in (("evaluate", "m"), ("compare", "m", "m")):
            assert "go with a corpus that is named: the model's own is read as" in run.misuses(*command, *option)
    assert run("evaluate", "m", own, "--encoding", "latin-1").code == 0


def test_options_of_input_that_a_corpus_does_not_take_are_refused(run, model):
    named = "Corpus newswire is read as its card says, so --text-field headline would change nothing: leave it out"
    own = "options of input go with a corpus that is named: the model's own is read as for its training"
    with_name = {"evaluate": (model, "newswire"), "compare": (model, model, "--corpus", "newswire")}
    for command in ("train", "tune", "evaluate", "compare"):
        arguments = with_name.get(command, ("newswire",))
        assert named in run.refuses(command, *arguments, "--text-field", "headline")
        assert "--test-seed 3 draws the documents of --test-size" in run.misuses(command, *arguments, "--test-seed", 3)
        assert "has a test part of 350 documents already" in run.refuses(command, *arguments, "--test-size", 0.5)
    for arguments in (("evaluate", model), ("compare", model, model)):
        for option in (("--text-field", "headline"), ("--test-size", 0.5)):
            assert own in run.misuses(*arguments, *option)
    assert run("evaluate", model, "--corpus-dir", "elsewhere").code == 0


def test_json_csv_and_tables_agree(run, model):
    as_json = json.loads(run("evaluate", model, "--json").out)
    as_csv = list(csv.DictReader(io.StringIO(run("evaluate", model, "--csv").out)))
    table = run("evaluate", model, "--topics").out
    assert [row["topic"] for row in as_csv] == [row["topic"] for row in as_json["topics"]]
    for line, row in zip(as_csv, as_json["topics"], strict=True):
        assert float(line["average_precision"]) == row["average_precision"]
        cells = re.search(rf"^{re.escape(row['topic'])} +(.*)$", table, re.MULTILINE)[1].split()
        assert float(cells[5]) == pytest.approx(row["average_precision"], abs=5e-4)
        assert int(cells[0]) == row["train_positives"]


def test_bands_of_the_users_own(run, model):
    run("evaluate", model, "--band", "TOP3", "--band", "1-2", "--band", "mine=grain,wheat")
    assert run.code == 0
    assert run.out.splitlines()[0].split() == ["TOP3", "1-2", "mine"]
    assert re.search(r"^topics +3 +\d+ +2$", run.out, re.MULTILINE)


def test_trec_files_give_the_same_average_precision_to_other_tools(run, model):
    topics = json.loads(run("evaluate", model, "--json", "--trec", "trec").out)["topics"]
    measured = ir_measures.iter_calc(
        [ir_measures.AP],
        list(ir_measures.read_trec_qrels("trec/qrels.txt")),
        list(ir_measures.read_trec_run("trec/run.txt")),
    )
    theirs = {row.query_id: row.value for row in measured}
    ours = {row["topic"]: row["average_precision"] for row in topics if row["average_precision"] is not None}
    assert theirs.keys() == ours.keys()
    # Documents of equal score are retrieved together here, and in the order of their names there.
    assert sum(abs(theirs[topic] - ours[topic]) < 1e-6 for topic in ours) >= 0.9 * len(ours)
    assert theirs == pytest.approx(ours, abs=0.05)


def test_a_model_is_evaluated_on_another_corpus_by_the_topics_they_share(run, model, reuters_archive):
    run("evaluate", model, reuters_archive, "--json")
    assert run.code == 0
    rows = {row["topic"]: row for row in json.loads(run.out)["topics"]}
    assert rows["wheat"]["test_positives"] == 71
    assert rows["results"]["average_precision"] is None


def test_evaluate_prints_every_measure_and_intervals_if_asked_for(run, model):
    lines = run("evaluate", model, "--bootstrap", "100").out.splitlines()
    assert {"macro nDCG", "sample F1", "coverage error"} <= {re.split(r"  +", line)[0] for line in lines}
    assert sum(line.startswith("  95 % interval") for line in lines) == 3
    for band in json.loads(run("evaluate", model, "--json", "--bootstrap", "100").out)["bands"]:
        low, high = band["intervals"]["micro_f1"]
        assert low < band["micro_f1"] < high


def test_documents_without_a_topic_can_be_left_out(run, model):
    everything, labelled = (
        json.loads(run("evaluate", model, "--json", *option).out) for option in ((), ("--labelled-only",))
    )
    assert (everything["test_documents"], labelled["test_documents"]) == (350, 309)
    for all_row, row in zip(everything["topics"], labelled["topics"], strict=True):
        assert (row["recall"], row["test_positives"]) == (all_row["recall"], all_row["test_positives"])
    assert labelled["bands"][0]["micro_precision"] > everything["bands"][0]["micro_precision"]


# --- compare ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rival(tmp_path_factory):
    tagger = textcat.Tagger.fit(textcat.open_corpus("newswire"), textcat.read_recipe("paum-2002"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "rival")


def test_compare_sets_models_side_by_side(run, model, rival):
    run("compare", model, rival, "--bootstrap", "100")
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[:2] == [f"A  {model}", f"B  {rival}"]
    assert lines[3] == "newswire, 350 test documents"
    assert [line.split()[0] for line in lines[6:15]] == ["ALL"] * 3 + ["TOP10"] * 3 + ["LAST30"] * 3
    start = next(place for place, line in enumerate(lines) if line.startswith("topic"))
    assert lines[start + 11] == "", "the ten topics that differ most"
    assert len(run("compare", model, rival, "--bootstrap", "100", "--topics").out.splitlines()) > len(lines)


def test_compare_gives_the_values_of_evaluate(run, model, rival):
    found = json.loads(run("compare", model, rival, model, "--json", "--labelled-only", "--bootstrap", "100").out)
    assert (found["models"], found["test_documents"]) == ([str(model), str(rival), str(model)], 309)
    alone = [json.loads(run("evaluate", folder, "--json", "--labelled-only").out) for folder in (model, rival, model)]
    bands = [{band["band"]: band for band in evaluation["bands"]} for evaluation in alone]
    for row in found["measures"]:
        assert row["values"] == [of[row["band"]][row["measure"]] for of in bands]
        assert row["differences"][1]["p_documents"] == 1, "the same model"


def test_models_of_different_topics_are_not_compared(run, model, own):
    run("train", own, "--out", "m")
    assert run.refuses("compare", model, "m") == (
        f"m does not have the topics of {model}: compare models of one corpus."
    )


# --- topics, show ----------------------------------------------------------------------------------------------------


def test_topics_are_listed_with_what_training_knows_of_them(run, model, tagger):
    rows = json.loads(run("topics", model, "--json").out)
    assert sorted(row["topic"] for row in rows) == list(tagger.topics)
    assert [row["train"] for row in rows] == sorted(tagger.train_sizes, reverse=True)
    table = run("topics", model).out.splitlines()
    margins = ["directional_margin", "margin", "certificate"]  # more than a table has room for
    assert table[0].split() == [name for name in rows[0] if name not in margins]
    assert all(row[name] is not None for row in rows for name in margins)
    assert [line.split()[0] for line in table[1:]] == [row["topic"] for row in rows]


def test_show_prints_how_a_model_was_made_and_what_it_has_learnt(run, model):
    shown = run("show", model).out
    assert re.search(r"^corpus +newswire, 721 training documents$", shown, re.MULTILINE)
    assert f"textcat {textcat.__version__}" in shown
    terms = run("show", model, "--topic", "wheat", "--terms", "3").out.splitlines()
    assert len(terms) == 4
    assert terms[1].split()[0] == "wheat"


# --- tune, corpora ---------------------------------------------------------------------------------------------------


def test_tune_compares_recipes_and_writes_the_table_and_the_best(run):
    space = _file("space.toml", b"[learner]\ntau_neg = [-0.5]\ntau_pos = [5.0, 20.0]\n")
    run("tune", "newswire", "--folds", "2", "--space", space, "--out", "study")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0].split()[:3] == ["tau_pos", "MAP", "ALL"]
    assert len(Path("study/table.md").read_text().splitlines()) == 2 + 2
    assert read_recipe("study/recipe.toml").learner["tau_pos"] in (5.0, 20.0)
    assert len(Path("study/trials.jsonl").read_text().splitlines()) == 2


def test_tune_measures_recipes_with_a_shortlist_on_documents_that_are_held_out(run):
    space = _file("space.toml", b"[topics]\nshortlist = [8, 10]\n")
    run("tune", "newswire", "--recipe", "many-topics", "--space", space, "--out", "study")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0].split()[:5] == ["shortlist", "nDCG@10", "ALL", "P@1", "ALL"]
    assert "\nMeasured on 72 training documents held out, trained on 649 others.\n" in run.out
    assert "The sparsest that ranks as well as the best by nDCG@10: shortlist=" in run.out
    assert "PSP@5 21-100" in Path("study/table.md").read_text().splitlines()[0]
    assert read_recipe("study/recipe.toml").shortlist in (8, 10)
    as_json = json.loads(
        run("tune", "newswire", "--recipe", "many-topics", "--space", space, "--out", "study", "--json").out
    )
    assert as_json["chosen"] in as_json["trials"]
    assert set(as_json["trials"][0]["ndcg@10"]) == {"ALL", "1-5", "6-20", "21-100", "101-"}
    assert "leave --folds and --repeats out" in run.refuses(
        "tune", "newswire", "--recipe", "many-topics", "--space", space, "--repeats", "1"
    )


def test_a_shortlist_is_measured_on_a_sample_where_there_are_no_test_documents(run):
    documents = [{"text": d.zones["body"], "topics": [*d.topics]} for d in textcat.open_corpus("newswire").train[:90]]
    own = _file("own.jsonl", "\n".join(map(json.dumps, documents)).encode())
    run("train", own, "--recipe", "many-topics", "--set", "topics.shortlist=8", "--out", "m", "--jobs", "2")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith(
        "Corpus own.jsonl has no test documents: on 9 of its 90 training documents, held out as a sample,\n\n"
    )
    assert re.search(r"^held-out sample +[0-9.]+$", run.out, re.MULTILINE)
    for command in (("evaluate", "m", own), ("show", "m")):
        assert "Measured after training, on 9 training documents, held out as a sample:\n\n" in run(*command).out


def test_recipes_are_listed_with_what_they_are(run):
    run("recipes")
    assert (run.code, run.err) == (0, "")
    assert [line.split()[0] for line in run.out.splitlines()] == ["recipe", *recipes()]
    assert [row["recipe"] for row in json.loads(run("recipes", "--json").out)] == list(recipes())


@pytest.mark.parametrize("name", ["default", "paum-2002"])
def test_a_recipe_is_printed_as_a_file_with_every_setting_explained(run, name):
    printed, fields = run("recipes", name).out, read_recipe(name).fields()
    assert read_recipe(recipe(printed)).fields() == fields
    assert max(map(len, printed.splitlines()[1:])) <= 100
    words = " ".join(re.sub(r"^# ", "", line) for line in printed.splitlines())
    for field in fields:
        assert f"{field.explanation} ({field.type}; default:" in words
        assert re.search(rf"^(# )?{field.name} =", printed, re.MULTILINE)
    as_json = json.loads(run("recipes", name, "--json").out)
    assert [(row["section"], row["name"]) for row in as_json["fields"]] == [row[:2] for row in fields]
    assert "Did you mean 'default'?" in run.refuses("recipes", "defualt")
    assert "'default'" in run.refuses("recipes", "best")


def test_tune_refuses_what_cannot_be_compared(run, own):
    mine = recipe('[learner]\nname = "pa"\n')
    assert "only paum has margins to compare" in run.refuses("tune", "newswire", "--recipe", mine)
    assert "cannot be split into 7 folds" in run.refuses("tune", own, "--folds", "7")


def test_corpora_says_where_each_is_or_how_to_get_it(run, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run("corpora")
    assert (run.code, run.err) == (0, "")
    lines = {line.split()[0]: line for line in run.out.splitlines()}
    assert lines["newswire"].endswith("newswire.sgm")
    assert "textcat corpora fetch reuters21578" in lines["reuters21578"]


def test_corpora_show_counts_documents_topics_and_tokens(run):
    run("corpora", "show", "newswire")
    assert run.code == 0
    assert re.search(r"^train +721 +\d+$", run.out, re.MULTILINE)
    assert re.search(r"^topics +50$", run.out, re.MULTILINE)
    assert re.search(r"^tokens +\d+ in train and test$", run.out, re.MULTILINE)


def test_corpora_fetch_finds_what_is_there_and_checks_it(run):
    run("corpora", "fetch", "newswire")
    assert (run.code, run.err) == (0, "")
    assert re.search(r"^licence +MIT", run.out, re.MULTILINE)
    Path("news.toml").write_text(
        f'reader = "reuters"\nfiles = ["wire.sgm"]\n[sha256]\n"wire.sgm" = "{"0" * 64}"\n', encoding="utf-8"
    )
    Path("wire.sgm").write_text("<REUTERS></REUTERS>")
    assert "checksum" in run.refuses("corpora", "fetch", "news.toml")


def test_what_the_library_logs_is_a_warning_in_a_line(run, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Path("far.toml").write_text('reader = "folders"\nfiles = ["far.tar"]\nurls = ["nowhere://far.tar"]\n')
    for command in (["corpora", "fetch"], ["train"]):
        run(*command, "far.toml")
        warning, sentence = run.err.splitlines()
        assert (run.code, run.out) == (1, "")
        assert warning.startswith("textcat: warning: No download from nowhere://far.tar")
        assert sentence.startswith("textcat: Corpus far could not be downloaded")


# --- how a process ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "newswire", "--nonsense"], 2, "No such option: --nonsense"),
        (["evaluate", "absent"], 1, "absent is not a model"),
        (["tag", "{model}", "absent.txt"], 1, "absent.txt cannot be read"),
    ],
)
def test_a_mistake_ends_a_process_in_one_sentence(model, tmp_path, arguments, code, message):
    call = [*COMMAND, *(argument.format(model=model) for argument in arguments)]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.fullmatch(r"textcat: [^\n]+\n", ended.stderr), ended.stderr
    assert message in ended.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "message"),
    [
        (0, ["tag"], "Standard input is closed: name files to tag, or send documents to standard input."),
        (0, ["tag", "-"], "Standard input is closed: name files to tag, or send documents to standard input."),
        (1, ["tag"], "standard output is closed: send it to a file, a pipe or /dev/null."),
        (1, ["topics"], "standard output is closed: send it to a file, a pipe or /dev/null."),
    ],
)
def test_a_closed_stream_ends_in_a_sentence(model, closed, arguments, message):
    call = [*COMMAND, arguments[0], str(model), *arguments[1:]]
    ended = subprocess.run(call, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(closed))
    assert (ended.returncode, ended.stderr) == (1, f"textcat: {message}\n")


def test_files_are_tagged_where_standard_input_is_closed(model, tmp_path):
    (tmp_path / "a.txt").write_text("wheat")
    call = [*COMMAND, "tag", str(model), "a.txt"]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, preexec_fn=lambda: os.close(0))
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout)["id"] == "a.txt"


def test_a_reader_that_has_gone_is_no_error_to_speak_of(model):
    with subprocess.Popen(
        [*COMMAND, "topics", str(model), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


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
    ended = subprocess.run(COMMAND, capture_output=True, text=True, env=environment(**asked))
    assert ended.stdout.split() == completions


def test_the_learners_that_are_completed_are_those_that_there_are():
    assert sorted(LEARNER_NAMES) == sorted(LEARNERS)


def test_a_bug_shows_its_traceback(run, monkeypatch, model):
    monkeypatch.setattr("textcat.cli.tag.show_topics", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("topics", model)


def test_ctrl_c_ends_training_in_a_sentence_and_leaves_nothing(tmp_path):
    # The corpus is a pipe nobody writes to: training has begun, and cannot end by itself.
    os.mkfifo(tmp_path / "wire.sgm")
    with (
        subprocess.Popen(
            [*COMMAND, "train", "wire.sgm", "--out", "m"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process,
        open(tmp_path / "wire.sgm", "wb"),
    ):  # opens once the command reads
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err) == (130, "textcat: interrupted; no file was left half written.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["wire.sgm"]


def test_ctrl_c_between_two_stages_leaves_no_half_written_model(run, monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("os.fsync", interrupted)
        run("train", "newswire", "--out", "m")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.code, run.out) == (130, "")
    assert list(Path().iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="system: there is no /dev/full")
def test_a_full_disk_ends_in_a_sentence(model):
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*COMMAND, "topics", str(model)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (1, "textcat: No space left on device.\n")


def test_a_model_is_measured_on_a_file_of_test_documents_alone_which_nothing_trains_on(run, model):
    documents = textcat.open_corpus("newswire").test
    lines = [json.dumps({"id": each.id, "zones": each.zones, "topics": each.topics}) for each in documents]
    Path("test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert json.loads(run("evaluate", model, "test.jsonl", "--json").out) == json.loads(
        run("evaluate", model, "--json").out
    )
    assert json.loads(run("corpora", "show", "test.jsonl", "--json").out)["documents"]["test"] == len(documents)
    assert "no topic with a training document" in run.refuses("train", "test.jsonl")
    Path("test.jsonl").rename("some.jsonl")
    assert "--test-size" in run.refuses("evaluate", model, "some.jsonl")
    assert "--test-size" in run.refuses("report", model, "some.jsonl")


def test_of_a_model_without_test_documents_no_intervals_are_made_and_the_remedy_is_told(run, own):
    run("train", own, "--out", "m", "--recipe", "paum")
    for command in (["evaluate", "m", "--bootstrap", "100"], ["compare", "m", "m"]):
        assert "measure on a corpus that has test documents" in run.refuses(*command)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["report", "{model}", "--out", "own"], "own is a folder: name a file to write."),
        (["tune", "newswire", "--out", "file"], "file is a file: name a folder for the results."),
        (["train", "newswire", "--set", "learner.eta=inf"], "Recipe default: The 'eta' parameter of PAUM must be"),
    ],
)
def test_what_cannot_be_written_or_followed_is_told_by_the_name_that_was_given(run, model, own, command, told):
    Path("file").touch()
    assert run.refuses(*(part.format(model=model) for part in command)).startswith(told)


def test_on_a_terminal_progress_is_drawn_on_stderr(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        # Not COMMAND, whose one thread lets it count terms while another process reads: of how many is not known then.
        [sys.executable, "-c", "from textcat.cli import main; main()", "train", "newswire", "--out", "m"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(),
        text=True,
    )
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # how Linux tells that the other end of a terminal is closed
        while piece := os.read(ours, 1 << 16):
            drawn += piece
    out = process.communicate()[0]
    os.close(ours)
    assert process.returncode == 0
    for stage in ("read", "tokens to rows", "train topics", "thresholds"):
        assert stage.encode() in drawn
    assert b"721/721" in drawn
    assert b"974.9/974.9 kB" in drawn
    assert "\x1b" not in out


FORKED = """
import logging, os, sys, warnings
from types import SimpleNamespace as Record
from textcat.reading import read_forked
def open_corpus(as_read, progress):
    zones = [{{"body": str(i)}} for i in range(1000)]
    for i, each in enumerate(zones):
        as_read(Record(zones=each, split="unused" if i == 7 else ""))
        if i % 300 == 299:
            progress.show(completed=i + 1, total=1000)
    {}
    return tuple(zones[::-1])
def stream():
    if (reading := read_forked(open_corpus)) is None:
        sys.exit("alone")
    shown = []
    reading.show = lambda completed, total: shown.append(f"{{completed}}/{{total}}")
    texts = list(reading)
    again = {{id(each) for each in texts}} == {{id(each) for each in reading.corpus if each["body"] != "7"}}
    return len(texts), texts[998]["body"], len(reading.corpus), again, *shown
try:
    print(*stream())
except EOFError:
    print("EOFError")
"""


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("pass", "999 999 1000 True 300/1000 600/1000 900/1000"),
        ("raise ValueError", "EOFError"),
        ("warnings.warn('odd')", "EOFError"),
        ("logging.getLogger('textcat.corpus').warning('odd')", "EOFError"),
        ("os.kill(os.getpid(), 9)", "EOFError"),
        ("logging.getLogger('textcat.corpus').info('read')", "999 999 1000 True 300/1000 600/1000 900/1000"),
    ],
)
def test_a_corpus_read_in_a_process_of_its_own_comes_whole_unless_that_failed_or_warned(line, result):
    run = subprocess.run([sys.executable, "-c", FORKED.format(line)], capture_output=True, text=True, check=False)
    if run.stderr == "alone\n":
        pytest.skip("system: there is one processor, or no fork")
    assert (run.stdout, run.stderr) == (f"{result}\n", "")


ABANDONED = """
import os, sys
from textcat.reading import read_forked
def open_corpus(as_read, progress):
    print(os.getpid(), flush=True)
    return "x" * 10_000_000
if read_forked(open_corpus) is None:
    sys.exit("alone")
"""


def test_a_process_whose_result_nobody_takes_ends():
    with subprocess.Popen([sys.executable, "-c", ABANDONED], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        out, err = run.communicate()  # until both processes have closed their output
    if err == b"alone\n":
        pytest.skip("system: there is one processor, or no fork")
    assert out.strip().isdigit()
