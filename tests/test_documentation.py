"""The commands and Python blocks of README.md and docs/*.md run, and docs/cli.md holds the help texts as printed.

``python tests/test_documentation.py --write`` writes docs/cli.md anew. A block is not run if the line before it is an
HTML comment that begins with ``not run``, as in ``<!-- not run: takes an hour -->``; nor is what needs an
absent corpus.
"""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from textcat import cli

ROOT = Path(__file__).parent.parent
CLI_PAGE = ROOT / "docs" / "cli.md"
PAGES = [path for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))] if path != CLI_PAGE]
COMMANDS = (
    "",
    "train",
    "evaluate",
    "compare",
    "tag",
    "topics",
    "show",
    "tune",
    "reproduce",
    "corpora",
    "corpora fetch",
    "corpora show",
)
BLOCK = re.compile(
    r"(?P<skipped><!-- not run[^>]*-->\n)?^```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page):
    """The blocks of a page that are to be run: their kinds and texts."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [(block["kind"], block["text"]) for block in found if not block["skipped"]]


def commands(kind, text):
    """The commands of a block that call textcat; in a console block they follow a dollar sign."""
    lines = text.replace("\\\n", " ").splitlines()
    if kind == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    elif kind not in ("sh", "bash"):
        lines = []
    return [line.strip() for line in lines if re.match(r"(.*\| *)?textcat( |$)", line.strip())]


def absent_corpora():
    from textcat.corpus.catalogue import cards, locate

    return [name for name, card in cards().items() if locate(card) is None]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a line of shell in an empty folder, `textcat` being the one that is tested; gives exit code and output."""
    command = tmp_path / "bin" / "textcat"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from textcat.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"}
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def shell(line):
        ended = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=environment, capture_output=True, text=True)
        return ended.returncode, ended.stdout + ended.stderr

    def here(line):
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        try:
            cli.main()
        except SystemExit as end:
            return end.code or 0, "".join(capsys.readouterr())

    # A process of its own costs seconds for its imports alone.
    return lambda line: shell(line) if re.search(r"[|<>&;$`*?]", line.partition(" #")[0]) else here(line)


def needs(text, names):
    return any(re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", text) for name in names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_and_the_python_of_a_page_run_in_their_order(page, run):
    names, unavailable, n_run = {}, absent_corpora(), 0
    for kind, text in blocks(page):
        for line in commands(kind, text):
            if needs(line, unavailable):
                # What this command would have made is absent, too.
                unavailable += re.findall(r"--out[ =](\S+)", line) + [f"models/{name}-best" for name in unavailable]
                continue
            code, printed = run(line)
            assert code == 0, f"{line}\n{printed}"
            n_run += 1
        if kind == "python" and not needs(text, unavailable):
            exec(compile(text, page.name, "exec"), names)
            n_run += 1
    if not n_run:
        pytest.skip("this page has no command to run here")


def helps():
    """Each command and what it prints when asked for help, at a fixed width and without colours."""
    environment = {
        name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "PYTHONPATH", "SYSTEMROOT")
    }
    environment |= {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    for name in COMMANDS:
        call = [sys.executable, "-c", "from textcat.cli import main; main()", *name.split(), "--help"]
        printed = subprocess.run(
            call, env=environment, capture_output=True, text=True, check=True, encoding="utf-8"
        ).stdout
        lines = [line.rstrip() for line in printed.splitlines()]
        yield f"textcat {name}".strip(), "\n".join(lines).strip("\n")


def printed_by():
    return f"typer {'.'.join(version('typer').split('.')[:2])}"


def cli_page():
    head = (
        "# Command line\n\n"
        "What every command prints with `--help`. A user's mistake is told in one sentence on standard error and ends\n"
        "with exit code 1, wrong usage with 2, Ctrl-C with 130. Results go to standard output, progress to standard\n"
        "error, and only if that is a terminal.\n\n"
        f"<!-- Written by `python tests/test_documentation.py --write` with {printed_by()}. -->\n"
    )
    return head + "".join(f"\n## `{name}`\n\n```text\n{text}\n```\n" for name, text in helps())


def test_the_page_of_the_command_line_holds_the_help_texts_as_printed():
    page = CLI_PAGE.read_text(encoding="utf-8")
    written_with = re.search(r"with (typer [\d.]+)\. -->", page)[1]
    if written_with != printed_by():
        pytest.skip(
            f"docs/cli.md was written with {written_with}, and {printed_by()} lays its help texts out differently"
        )
    assert page == cli_page(), "run `python tests/test_documentation.py --write`"


def test_the_page_of_the_command_line_has_every_command():
    from typer.main import get_command

    def names(command, prefix=""):
        yield prefix.strip()
        for name, inner in getattr(command, "commands", {}).items():
            yield from names(inner, f"{prefix} {name}")

    assert sorted(COMMANDS) == sorted(names(get_command(cli.app)))
    assert re.findall(r"^## `(.*)`$", CLI_PAGE.read_text(encoding="utf-8"), re.MULTILINE) == [
        f"textcat {name}".strip() for name in COMMANDS
    ]


def test_commands_are_found_in_shell_and_console_blocks_only():
    assert commands("sh", "textcat train a \\\n  --out b\npip install .\necho x | textcat tag m  # why\n") == [
        "textcat train a    --out b",
        "echo x | textcat tag m  # why",
    ]
    assert commands("console", "$ textcat corpora\ntextcat is printed\n") == ["textcat corpora"]
    assert commands("text", "textcat corpora\n") == []


if __name__ == "__main__" and "--write" in sys.argv:
    CLI_PAGE.write_text(cli_page(), encoding="utf-8")
