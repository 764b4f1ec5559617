"""The command line as a contract: what each command prints, which mistakes it tells in a sentence, how it ends."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked_commands
import pytest
from cases import every
from command_reference import commands
from commands import COMMAND, environment
from new_files import new_file, new_folder, recipe

import textcat

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


# --- help and wrong use ----------------------------------------------------------------------------------------------


@every("command", ["", *COMMANDS])
def test_every_command_prints_how_it_is_used(run, command):
    assert run(*command.split(), "--help").code == 0
    assert f"Usage: textcat {command}" in run.out
    assert run.err == ""


@pytest.mark.parametrize("command", [*commands()])
def test_help_is_printed_as_it_is_written(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "2000")  # so that no line is wrapped
    printed = " ".join(run(*command.split(), "--help").out.split())
    described = commands()[command]
    inner = getattr(described, "commands", {}).values()
    texts = [described.help, *(each.help for each in described.params), *(each.help.split("\n\n")[0] for each in inner)]
    for text in filter(None, texts):
        assert " ".join(text.split()) in printed


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


@every("command", COMMANDS)
def test_an_unknown_option_is_wrong_use(run, command):
    assert "No such option: --nonsense" in run.misuses(*command.split(), "--nonsense")


@every(
    "arguments, message",
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["train"], "Missing argument"),
        (["train", "newswire", "--jobs", "0"], "give 1 or more, or -1 for one per core"),
        (["train", "newswire", "--jobs", "-7"], "-7 jobs do nothing; give 1 or more, or -1 for one per core"),
        (["tune", "newswire", "--seed", "-1"], "--seed"),
        (["train", "newswire", "--recipe", "paum-2002", "--set", "learner.kappa=-5"], "here τ₊ is fixed"),
        (["train", "newswire", "--set", "learner.tau_pos=50", "--set", "learner.kappa=-5"], "here τ₊ is fixed"),
        (["evaluate", "model", "--as", "xml"], "'xml' is none of text, json, csv, markdown, latex"),
        (["compare", "model"], "give 2 to 26 models"),
        (["evaluate", "model", "--report", "r.html"], "No such option: --report"),
        (["report", "model", "--folds", "1"], "1 part leaves no document to train on"),
        (["compare", *27 * ["model"]], "give 2 to 26 models"),
        (["compare", "model", "model", "--bootstrap", "5"], "--bootstrap"),
        (["tune", "newswire", "--folds", "1"], "--folds"),
    ],
)
def test_wrong_use_ends_as_such(run, arguments, message):
    assert message in run.misuses(*arguments)


@every(
    "text, message",
    [
        ("[learner]\neta = 0\n", "'eta' parameter"),
        ('[learner]\ntau_pos = "x"\n', "'tau_pos' parameter"),
        (
            "[learner]\ntau_pos = true\n",
            "of the recipe mine cannot be True; give a number or a text.",
        ),
        ("[learner]\nspeed = 1\n", "no field 'speed' in [learner] of the recipe mine. Known:"),
        ("[learner]\nn_jobs = 2\n", "no field 'n_jobs' in [learner]"),
        ('[learner]\nname = "svm"\n', "No learner 'svm'. Known learners:"),
        ("[learner]\nname = 3\n", "No learner '3'"),
        ("[learner]\neta = 1e39\nmax_epochs = 3\n", "overflowed; lower eta or the margins."),
        (
            "[lerner]\n",
            "Known: features, learner, promise, ranker, tags, title, tokens, topics. Did you mean 'learner'?",
        ),
        ("title = 3\n", "'title' in the recipe mine.toml cannot be 3; give a text."),
        ("learner = 3\n", "'learner' in the recipe mine.toml cannot be 3; give a table."),
        ("learner\n", "is not valid TOML"),
        (
            '[features]\nzones = "title"\n',
            "'zones' in [features] of the recipe mine cannot be 'title'; give a table of",
        ),
        ("[features]\nzones = { headline = 1 }\n", "in other zones than recipe mine reads"),
        ("[features]\nmin_df = 100000\n", "leaves no term of the 721 training documents"),
        ("[features]\nmin_df = 0\n", "min_df is 0"),
        (
            '[features]\nsublinear_tf = "no"\n',
            "[features] of the recipe mine cannot be 'no'; give true or false.",
        ),
        ('[features]\ndtype = "float16"\n', "dtype is 'float16'"),
        ('[features]\ntokens = "x"\n', "no field 'tokens' in [features]"),
        ('[tokens]\nlang = "qq"\n', "spaCy has no language 'qq'"),
        ("[tokens]\nlang = 3\n", "'lang' in [tokens] of the recipe mine cannot be 3; give a text."),
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
    assert "Is a directory" in run.refuses("train", "newswire", "--recipe", new_folder("folder.toml"))
    assert "is not a model" in run.refuses("evaluate", "absent")
    assert "is not a model" in run.refuses("tag", new_folder("empty"))
    assert "is not a model" in run.refuses("show", __file__)
    assert "no topic 'weather'" in run.refuses("show", model, "--topic", "weather")
    assert "No band 'BEST'" in run.refuses("evaluate", model, "--band", "BEST")
    assert "No topic 'weather'" in run.refuses("evaluate", model, "--band", "mine=weather")
    assert "No corpus 'absent'" in run.refuses("corpora", "show", "absent")
    assert "No corpus 'absent'" in run.refuses("corpora", "fetch", "absent")
    assert "holds no file of a known format and no folder per topic: name the format with --format" in run.refuses(
        "train", new_file("text.txt", b"text")
    )


def test_what_the_library_logs_is_a_warning_in_a_line(run, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Path("far.toml").write_text('reader = "folders"\nfiles = ["far.tar"]\ntree = "0"\nurls = ["nowhere://far.tar"]\n')
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
    ended = forked_commands.run(call, cwd=tmp_path, text=True, env=environment())
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


@pytest.mark.skipif(os.name == "nt", reason="system: locales of POSIX")
def test_a_name_that_the_encoding_of_file_names_does_not_have_ends_in_a_sentence(model, tmp_path):
    (tmp_path / "é.jsonl").write_text('{"text": "Wheat exports rose."}')
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    run = subprocess.run([*COMMAND, "tag", model, tmp_path / "é.jsonl"], env=ascii_only, capture_output=True, text=True)
    assert (run.returncode, run.stderr.count("\n"), "LC_ALL" in run.stderr) == (1, 1, True), run.stderr


def test_a_reader_that_has_gone_is_no_error_to_speak_of(model):
    with forked_commands.Popen(
        [*COMMAND, "topics", model, "--as", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_a_bug_shows_its_traceback(run, monkeypatch, model):
    monkeypatch.setattr("textcat.cli.models.show_topics", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("topics", model)


def test_ctrl_c_ends_training_in_a_sentence_and_leaves_nothing(tmp_path):
    # The corpus is a pipe nobody writes to: training has begun, and cannot end by itself.
    os.mkfifo(tmp_path / "wire.sgm")
    with (
        forked_commands.Popen(
            [*COMMAND, "train", "wire.sgm", "--out", "m"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
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
        run("train", "newswire", "--recipe", "paum", "--out", "m")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.code, run.out) == (130, "")
    assert list(Path().iterdir()) == []


def test_ctrl_c_again_does_not_disturb_the_end(run, monkeypatch):
    def interrupted(*_):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("os.fsync", interrupted)
        run("train", "newswire", "--recipe", "paum", "--out", "m")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.code, run.out) == (130, "")
    assert list(Path().iterdir()) == []


def test_ctrl_c_while_commands_are_imported_ends_without_a_traceback():
    program = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "textcat.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from textcat.__main__ import main
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="system: there is no /dev/full")
def test_a_full_disk_ends_in_a_sentence(model, unbuffered):
    with open("/dev/full", "w") as full:
        settings = {"stdout": full, "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": unbuffered}}
        ended = subprocess.run([*COMMAND, "topics", str(model)], text=True, **settings)
    assert (ended.returncode, ended.stderr) == (1, "textcat: No space left on device.\n")


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


@every("value", ["inf", "-inf", "nan", "1e999"])
@every(
    "command",
    [
        ("serve", "m", "--timeout"),
        ("serve", "m", "--rate-limit"),
        ("train", "newswire", "--test-size"),
        ("tag", "m", "x.jsonl", "--min-probability"),
        ("simulate", "newswire", "--target"),
        ("teach", "x.jsonl", "--overlap"),
    ],
)
def test_a_number_that_is_not_finite_is_wrong_usage(run, command, value):
    assert "--" in run.misuses(*command, value)


TRAIN = ["train", "newswire", "--recipe", "paum", "--out", "m"]


def test_on_a_terminal_progress_is_drawn_on_stderr(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        # Not COMMAND, whose one thread lets it count terms while another process reads: of how many is not known then.
        [sys.executable, "-c", "from textcat.cli import main; main()", *TRAIN],
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
