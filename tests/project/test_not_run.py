"""A run tells what it left out; where CI is set, it may leave out only what nobody can install."""

import re
from pathlib import Path

import not_run
import pytest

pytest_plugins = ["pytester"]
FOLDER = Path(not_run.__file__).parent

TESTS = """
import pytest

def test_of_another_system():
    pytest.skip("system: there is no fork")

@pytest.mark.skipif(True, reason="data: wheat is absent")
@pytest.mark.parametrize("i", [1, 2])
def test_of_data(i):
    pass

def test_of_another_step():
    pytest.skip("step: scripts/build tries it")

def test_of_a_package():
    pytest.importorskip("nowhere_to_be_found", reason="nowhere is not installed")

@pytest.mark.xfail(reason="known")
def test_that_is_known_to_fail():
    raise ValueError

def test_of_two_parts(leave_out):
    leave_out("data: 3 commands need absent corpora")
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run the tests with the table, with or without CI set."""

    def run_(ci, *arguments):
        monkeypatch.setenv("CI", ci)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to load those of other tests takes longest
        monkeypatch.delenv("TEXTCAT_LONG", raising=False)
        pytester.makeconftest(f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nfrom not_run import *")
        return pytester.runpytest(*arguments, "-p", "no:cacheprovider", "-p", "xdist.plugin")

    return run_


@pytest.mark.parametrize(("ci", "processes"), [("", []), ("false", ["--numprocesses=1"])])
def test_the_table_tells_reasons_and_numbers_before_the_closing_line(run, pytester, ci, processes):
    pytester.makepyfile(TESTS)
    result = run(ci, *processes)
    result.assert_outcomes(passed=1, skipped=5, xfailed=1)
    lines = [
        "*= not run, and why =*",
        "    2  data         wheat is absent",
        "    1  data         3 commands need absent corpora",
        "    1  installable  nowhere is not installed",
        "    1  step         scripts/build tries it",
        "    1  system       there is no fork",
        "       time         TEXTCAT_LONG is not set: *",
        "*= 1 passed, 5 skipped, 1 xfailed in *",
    ]
    result.stdout.fnmatch_lines(lines, consecutive=False)


def test_in_ci_what_could_be_installed_fails(run, pytester):
    pytester.makepyfile(TESTS)
    result = run("true")
    result.assert_outcomes(passed=1, skipped=4, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["*nowhere is not installed*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("processes", [[], ["--numprocesses=1"]])
def test_in_ci_a_whole_file_that_could_be_run_fails(run, pytester, processes):
    pytester.makepyfile("import pytest\npytest.importorskip('nowhere_to_be_found', reason='nowhere is not installed')")
    assert run("", *processes).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = run("true", *processes)
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    result.stdout.fnmatch_lines(["*nowhere is not installed*"])


@pytest.mark.parametrize("processes", [[], ["--numprocesses=1"]])
def test_a_second_run_takes_the_tests_that_the_first_one_could_not_run(run, pytester, monkeypatch, tmp_path, processes):
    pytester.makepyfile(TESTS)
    skipped = tmp_path / "skipped"
    monkeypatch.setenv("TEXTCAT_SKIPPED", str(skipped))
    run("", *processes)
    names = [line.partition("::")[2] for line in skipped.read_text().splitlines()]
    assert names == ["test_of_a_package", "test_of_another_step"]
    run("true", f"@{skipped}").assert_outcomes(failed=1, skipped=1)


def test_a_second_run_has_all_parameters_that_it_makes(run, pytester, monkeypatch, tmp_path):
    pytester.makepyfile("""
        import os, pytest

        @pytest.mark.parametrize("i", range(2 if "FIRST" in os.environ else 4))
        def test_of_much(i):
            if "FIRST" in os.environ:
                pytest.skip("step: the second run tries all")
    """)
    skipped = tmp_path / "skipped"
    monkeypatch.setenv("TEXTCAT_SKIPPED", str(skipped))
    monkeypatch.setenv("FIRST", "1")
    run("").assert_outcomes(skipped=2)
    monkeypatch.delenv("FIRST")
    run("true", f"@{skipped}").assert_outcomes(passed=4)


def test_what_is_left_to_another_step_is_a_line_of_ci():
    root = FOLDER.parents[1]
    sources = [path.read_text(encoding="utf-8") for path in root.glob("tests/**/*.py")]
    steps = {step for text in sources for step in re.findall(r'"step: (scripts/\S+ --\w+) ', text)}
    assert steps == {"scripts/site --check", "scripts/wheel --check"}
    run = [line.partition("run ./")[2] for line in (root / ".ci/run").read_text(encoding="utf-8").splitlines()]
    assert steps <= set(run)
