"""`textcat reproduce`, with experiments made up for the test: listing, running, going on after a break, pages, JSON."""

import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cases import every
from rich.console import Console
from typer.testing import CliRunner

from textcat import cli, papers
from textcat.base.errors import TextcatError
from textcat.cli.corpora import show_reproductions
from textcat.papers import datasets, experiments
from textcat.papers.datasets import MissingData
from textcat.papers.experiments import PUBLISHED, Experiment, Figure, Result, Row, Settings, Task

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"/>'


class Tasks:
    """Two tasks that count how often they are run, and fail as they are asked to."""

    def __init__(self):
        self.ran, self.failure, self.settings = [], None, None

    def first(self, settings):
        self.ran.append("first")
        self.settings = settings
        (settings.pictures / "toy-slope.svg").write_text(PICTURE)
        updates = Figure(np.int64(778990), 778412)
        return [Row("PA", {"updates": updates, "10³γ'": Figure(np.float64(0.7234), 0.72, 2)}, seconds=1.25)]

    def second(self, settings):
        self.ran.append("second")
        if self.failure is not None:
            raise self.failure
        rows = [Row("PAM(1)", {"updates": Figure(130), "10³γ'": Figure(float("nan"), 0.81, 2)}, note="τ is a guess.")]
        return rows * (2 if settings.slow_baselines else 1)


@pytest.fixture
def tasks():
    return Tasks()


@pytest.fixture
def toys(tasks, monkeypatch):
    toy = Experiment(
        "toy-table-1",
        "Toys, Table 1: updates of the perceptron",
        ("sonar", "newswire"),
        0.5,
        (Task("PA", tasks.first), Task("PAM(1)/τ", tasks.second)),
        "Rows in the order of the file.",
    )
    other = Experiment("toy-table-2", "Toys, Table 2", (), 1, (Task("one", lambda _: [Row("one")]),))
    monkeypatch.setattr(papers, "known_experiments", lambda: {"toy-table-1": toy, "toy-table-2": other})
    return toy


@pytest.fixture
def reproduce(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "results_folder", lambda: tmp_path / "results")
    monkeypatch.setenv("TEXTCAT_DATASETS", str(tmp_path / "none"))
    monkeypatch.setattr(experiments, "can_draw", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments):
        return CliRunner().invoke(cli.app, ["reproduce", *map(str, arguments)], catch_exceptions=False)

    return run


def printed(rows):
    """The table of an experiment's figures, as `textcat reproduce` prints it."""
    console = Console(file=io.StringIO(), width=200)
    experiment = Experiment("toy", "Toy", (), 1, ())
    result = Result(experiment, tuple(rows), 1.0, experiments.now(), 0, "textcat reproduce toy", ())
    show_reproductions(console, [result], None, "text")
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return list(itertools.takewhile(lambda line: line and not line.startswith("("), lines[2:]))


# --- the command -----------------------------------------------------------------------------------------------------


def test_without_a_name_the_experiments_are_listed_and_none_is_run(reproduce, tasks):
    ended = reproduce()
    lines = ended.stdout.splitlines()
    assert ended.exit_code == 0
    assert lines[:5] == [
        "toy-table-1",
        "  minutes        0.5",
        "  last run       never",
        "  what it shows  Toys, Table 1: updates of the perceptron",
        "  data           sonar (missing), newswire",
    ]
    sentence = " ".join(lines[len(lines) - lines[::-1].index("") :])
    assert sentence.startswith("The data set sonar needs the file sonar.mines: put it, from https://")
    assert tasks.ran == []


def test_the_list_says_when_an_experiment_was_run_and_with_how_many_tasks(reproduce, tasks, monkeypatch):
    tasks.failure = MissingData("No data.")
    reproduce("toy-table-1")
    assert "1 of 2 tasks" in reproduce().stdout
    tasks.failure = None
    reproduce("toy-table-1")
    today = f"{experiments.now():%Y-%m-%d}"
    assert f"last run       {today}\n  what it shows  Toys" in reproduce().stdout
    monkeypatch.setattr(experiments, "code_checksum", lambda: "other")
    assert f"last run       {today}, changed since\n" in reproduce().stdout


def test_the_list_of_the_papers_experiments_fits_80_columns(monkeypatch, tmp_path):
    for variable in ("TEXTCAT_DATASETS", "TEXTCAT_CORPORA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    ended = CliRunner().invoke(cli.app, ["reproduce", "--results", str(tmp_path)], catch_exceptions=False)
    paths_apart = [line for line in ended.stdout.splitlines() if not re.search(r"https?://|/", line)]
    assert max(map(len, paths_apart)) <= 80
    assert all(name in ended.stdout for name in papers.known_experiments())


def test_an_experiment_stands_beside_the_published_figures(reproduce):
    ended = reproduce("toy-table-1")
    assert ended.exit_code == 0
    assert [line.rstrip() for line in ended.stdout.splitlines()[:-2]] == [
        "toy-table-1: Toys, Table 1: updates of the perceptron",
        "",
        "          updates                          10³γ'",
        "        published    ours  difference  published  ours  difference  seconds  note",
        "PA         778412  778990    +0.074 %       0.72  0.72           =      1.2",
        "PAM(1)          -     130           -       0.81     -           -        -     1",
        "(1) τ is a guess.",
        "",
    ]
    assert re.fullmatch(r"\d+\.\d s", ended.stdout.splitlines()[-2])


def test_a_run_that_was_broken_off_resumes(reproduce, tasks):
    tasks.failure = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        reproduce("--all")
    tasks.failure = None
    ended = reproduce("--all")
    assert tasks.ran == ["first", "second", "second"]
    assert "1 of 2 tasks had been run before" in ended.stdout
    assert "toy-table-2: Toys, Table 2" in ended.stdout


def test_what_was_run_is_not_run_again_but_for_restart(reproduce, tasks):
    first, again = reproduce("toy-table-1").stdout, reproduce("toy-table-1").stdout
    assert tasks.ran == ["first", "second"]
    assert again.splitlines()[:-2] == first.splitlines()[:-2]
    reproduce("toy-table-1", "--restart")
    assert tasks.ran == ["first", "second"] * 2


@pytest.mark.parametrize("change", ["code", "machine", "jobs", "damage"])
def test_a_result_holds_only_with_the_same_code_machine_and_jobs(reproduce, tasks, tmp_path, monkeypatch, change):
    reproduce("toy-table-2", "toy-table-1")
    if change == "damage":
        for path in (tmp_path / "results").rglob("*.jsonl"):
            path.write_text("{")
    elif change != "jobs":
        monkeypatch.setattr(
            experiments, *{"code": ("code_checksum", lambda: "other"), "machine": ("machine", dict)}[change]
        )
    reproduce("toy-table-1", *(["--jobs", 1] if change == "jobs" else []))
    assert tasks.ran == ["first", "second"] * 2


def test_slow_baselines_are_run_when_asked_for_and_then_kept(reproduce, tasks):
    assert "PAM(1)" in reproduce("toy-table-1").stdout
    assert reproduce("toy-table-1", "--slow-baselines").stdout.count("PAM(1)") == 2
    assert tasks.ran == ["first", "second"] * 2
    assert reproduce("toy-table-1").stdout.count("PAM(1)") == 2
    assert tasks.ran == ["first", "second"] * 2


def test_missing_data_is_a_row_that_says_so_and_is_tried_again(reproduce, tasks):
    tasks.failure = MissingData("The data set toys needs the file toys.txt.")
    lines = reproduce("toy-table-1").stdout.splitlines()
    assert re.fullmatch(r"PAM\(1\)/τ +- +- +- +- +- +- +- +1", lines[5])
    assert lines[6] == "(1) The data set toys needs the file toys.txt."
    reproduce("toy-table-1")
    assert tasks.ran == ["first", "second", "second"]


def test_jobs_and_slow_baselines_reach_the_tasks(reproduce, tasks, tmp_path):
    reproduce("toy-table-1", "--jobs", 2, "--slow-baselines", "--results", tmp_path / "elsewhere")
    assert tasks.settings == Settings(2, True, tmp_path / "elsewhere" / "toy-table-1" / "PA")


def test_json_has_every_figure_in_full_and_null_for_what_is_not_known(reproduce):
    (result,) = json.loads(reproduce("toy-table-1", "--as", "json").stdout)
    assert result["experiment"] == "toy-table-1"
    assert result["command"] == "textcat reproduce toy-table-1"
    assert {"processor", "cores", "Python", "numpy", "textcat"} <= set(result["machine"])
    assert result["rows"][0]["figures"] == {
        "updates": {"ours": 778990, "published": 778412, "digits": 0},
        "10³γ'": {"ours": 0.7234, "published": 0.72, "digits": 2},
    }
    assert result["rows"][1]["figures"]["10³γ'"]["ours"] is None
    assert (result["rows"][0]["seconds"], result["rows"][1]["note"]) == (1.25, "τ is a guess.")


def test_the_list_as_json_has_the_whole_sentences(reproduce):
    first, second = json.loads(reproduce("--as", "json").stdout)
    assert first["missing"]["sonar"].startswith("The data set sonar needs")
    assert second == {
        "experiment": "toy-table-2",
        "minutes": 1,
        "data": "",
        "last run": "never",
        "what it shows": "Toys, Table 2",
        "missing": {},
    }


def test_a_page_has_the_table_the_notes_the_picture_and_how_it_was_run(reproduce, tmp_path):
    reproduce("toy-table-1", "--jobs", 1, "--out", tmp_path / "pages")
    page = (tmp_path / "pages" / "toy-table-1.md").read_text()
    assert page.startswith(
        "# Toys, Table 1: updates of the perceptron\n\nRows in the order of the file.\n\n"
        "|  | updates published | ours | difference | 10³γ' published | ours | difference | seconds | note |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| PA | 778412 | 778990 | +0.074 % | 0.72 | 0.72 | = | 1.2 |  |\n"
    )
    assert "\n\n1. τ is a guess.\n\n" in page
    assert "\n![toy-slope](toy-slope.svg)\n" in page
    assert (tmp_path / "pages" / "toy-slope.svg").read_text() == PICTURE
    measured = page.splitlines()[-1]
    assert re.match(r"Measured: date: \d{4}-\d\d-\d\d; command: `textcat reproduce toy-table-1 --jobs 1`; ", measured)
    assert re.search(r"; time in all: [^;]* s; processor: \S[^;]*; cores: \d+; ", measured)


def test_a_page_names_the_rows_whose_data_are_missing_below_its_table(reproduce, tasks, tmp_path):
    tasks.failure = MissingData("The data set toys needs the file toys.txt.")
    for _ in range(2):
        reproduce("toy-table-1", "--out", tmp_path)
        page = (tmp_path / "toy-table-1.md").read_text()
        assert "\n| PA | 778412 | 778990 |" in page
        assert "\n\nNot run for lack of data: PAM(1)/τ. The command says where to get them.\n\n" in page
        assert page.count("PAM(1)") == page.count("Not run ") == page.count("Measured: ") == 1


def test_what_was_written_above_the_table_is_kept_when_a_page_is_written_anew(reproduce, tmp_path):
    reproduce("toy-table-1", "--out", tmp_path)
    page = tmp_path / "toy-table-1.md"
    first = page.read_text()
    page.write_text(
        first.replace("Rows in the order of the file.", "Rows as they come.\n\nPAM(1) is ahead.").replace("778990", "1")
    )
    reproduce("toy-table-1", "--out", tmp_path)
    assert page.read_text() == first.replace("Rows in the order of the file.", "Rows as they come.\n\nPAM(1) is ahead.")


def test_the_index_lists_the_pages_that_are_there_and_pictures_are_kept(reproduce, tasks, tmp_path):
    reproduce("toy-table-1")
    reproduce("toy-table-1", "--out", tmp_path)
    index = (tmp_path / "README.md").read_text()
    assert tasks.ran == ["first", "second"]
    assert (tmp_path / "toy-slope.svg").exists()
    assert "| [toy-table-1](toy-table-1.md) | Toys, Table 1: updates of the perceptron |" in index
    assert "toy-table-2" not in index


def test_without_matplotlib_nothing_is_drawn_until_it_is_there(reproduce, monkeypatch):
    task = Task("draw", lambda settings: [Row("drawn" if settings.pictures else "not")])
    monkeypatch.setattr(papers, "known_experiments", lambda: {"toy": Experiment("toy", "Toy", (), 1, (task,))})
    for can_draw, label in ((False, "not"), (True, "drawn")):
        monkeypatch.setattr(experiments, "can_draw", lambda can_draw=can_draw: can_draw)
        assert label in reproduce("toy").stdout.splitlines()


@pytest.mark.parametrize("name", ["toy-tabel-1", "Toy Table 1", "table-1"])
def test_a_wrong_name_is_refused_with_the_nearest(reproduce, tasks, name):
    with pytest.raises(TextcatError, match=rf"no experiment '{name}'; .* Did you mean 'toy-table-1'\?"):
        reproduce("toy-table-2", name)
    assert tasks.ran == []


def opened(pipe, process):
    """Open a pipe for writing as soon as it is read; a process that ends before it reads is an error."""
    while process.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    pytest.fail(process.stderr.read())


def test_ctrl_c_ends_a_library_at_work_and_keeps_the_finished_tasks(tmp_path):
    # The second task reads a pipe that nobody writes to, in a process of its own: it has begun, and cannot end.
    program = """
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()
import sys
from textcat import papers
from textcat.papers import micra
from textcat.papers.experiments import Experiment, Row, Task
tasks = Task("quick", lambda _: [Row("quick")]), Task("endless", lambda _: micra.in_own_process(open, "pipe"))
papers.known_experiments = lambda: {"toy": Experiment("toy", "Toy", (), 1, tasks)}
sys.argv = ["textcat", "reproduce", "toy", "--results", "results"]
from textcat.__main__ import main
main()
"""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            written = opened(tmp_path / "pipe", process)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=300)
        finally:
            process.kill()  # else a failure would wait for it forever
        os.close(written)
    # before it, without matplotlib, a warning that no picture is drawn
    assert (process.returncode, err.splitlines()[-1]) == (130, "textcat: interrupted; no file was left half written.")
    kept = (tmp_path / "results" / "toy.jsonl").read_text().splitlines()
    assert [json.loads(line)["task"] for line in kept] == ["quick"]


def test_names_and_all_exclude_each_other(reproduce):
    ended = reproduce("toy-table-1", "--all")
    assert ended.exit_code == 2
    assert "choose one of names and --all" in ended.stderr


# --- the real experiments --------------------------------------------------------------------------------------------


@every("experiment", papers.known_experiments().values())
def test_an_experiment_says_what_it_is_and_needs(experiment):
    assert re.fullmatch(r"[a-z]+(-[a-z0-9.]+)+", experiment.name)
    assert experiment.title
    assert experiment.minutes > 0
    assert len({task.name for task in experiment.tasks}) == len(experiment.tasks) > 0
    for name in experiment.data:
        datasets.missing(name)  # raises if there is no such data set or corpus


# --- its parts -------------------------------------------------------------------------------------------------------


@every(
    "figure, cells",
    [
        (Figure(820261, 820261), ["820261", "820261", "="]),
        (Figure(0.8441111, 0.8441, 4), ["0.8441", "0.8441", "="]),
        (Figure(0.743, 0.751, 3), ["0.751", "0.743", "-1.1 %"]),
        (Figure(206468, 206469), ["206469", "206468", "-0.00048 %"]),
        (Figure(3.0, 0.0, 1), ["0.0", "3.0", "+3"]),
        (Figure(-2.0, -1.0, 0), ["-1", "-2", "-100 %"]),
        (Figure(None, 5.0, 1), ["5.0", "-", "-"]),
    ],
)
def test_a_difference_is_that_of_the_printed_figures(figure, cells):
    assert [cell.strip() for cell in re.split(r"  +", printed([Row("x", {"c": figure})])[2])] == [
        "x",
        *cells,
    ]


def test_a_column_without_a_published_figure_has_ours_alone():
    table = printed([Row("x", {"seconds of LIBSVM": Figure(12.5, None, 1)}), Row("y")])
    assert [line.split() for line in table] == [["seconds", "of", "LIBSVM"], ["x", "12.5"], ["y", "-"]]


def test_rows_without_figures_have_one_line_of_headers():
    assert printed([Row("x", seconds=123.4), Row("y", note="No data.")]) == [
        "   seconds  note",
        "x      123",
        "y        -     1",
    ]


def test_the_digest_of_the_code_changes_with_any_source(tmp_path, monkeypatch):
    for name in ("margin/rules.pyx", "papers/figures.toml", "evaluation/ranking.py", "cli/app.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(experiments, "PACKAGE", tmp_path)
    digests = [experiments.code_checksum.__wrapped__()]
    for name in ("cli/app.py", "margin/rules.pyx", "papers/figures.toml", "evaluation/ranking.py"):
        (tmp_path / name).write_text("2")
        digests.append(experiments.code_checksum.__wrapped__())
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_the_published_figures_are_there_for_every_table():
    figures = PUBLISHED
    assert set(figures["micra"]) == {f"table{number}" for number in range(1, 9)}
    assert figures["paum"]["table2"]["PAUM(1,50)"]["map"] == [0.751, 0.924, 0.636]
    assert figures["micra"]["table1"]["micra"][-1] == [4.95, 8.37, 11610899]
