"""The commands and Python blocks of README.md and docs/*/*.md run, and what reference/cli.md and recipes.md list is so.

``python tests/project/test_documentation.py --write`` writes docs/reference/cli.md (by command_reference.py) and the
tables of recipes.md anew.

A block is not run if the line before it is an HTML comment that begins with ``not run``, as in ``<!-- not run: takes an
hour -->``; nor is what needs an absent corpus. A block behind ``<!-- file: NAME -->`` is written to that file, for the
commands that follow. The lines of one behind ``<!-- printed -->`` are among those that the command before it prints;
what stands before ``…`` begins one. What a pycon block prints is compared by doctest.
The last command of a block behind ``<!-- served -->`` serves until the page ends, at another address; ``curl`` asks it.
"""

import doctest
import inspect
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import every
from filelock import FileLock

from textcat import cli
from textcat.base.disk import shipped
from textcat.cli.serve import serve
from textcat.corpus.cards import ENTRY_TYPES, READERS, cards
from textcat.evaluation.thresholds import STRATEGIES
from textcat.margin.learners import LEARNERS
from textcat.reading import FORMATS
from textcat.recipes import recipe
from textcat.recipes.recipe import Recipe
from textcat.teaching.export import EXPORTS
from textcat.teaching.stopping import RULES
from textcat.training import names as _names  # noqa: F401  it reads the limit that `train_faster` lowers when it is imported
from textcat.training.tune import SAMPLERS

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))  # which only pytest knows
import command_reference
import forked_commands

ROOT = Path(__file__).parents[2]
CLI_PAGE = ROOT / "docs/reference/cli.md"
RECIPES_PAGE = ROOT / "docs/reference/recipes.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/index.md",
    *sorted({*ROOT.glob("docs/*/*.md"), *ROOT.glob("docs/reference/python/*.md")} - {CLI_PAGE}),
]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>not run|file|printed|served)(?:: (?P<of>[^>]*?))? -->\n)?"
    r"^```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LEAST_SHARE_RUN = 0.95
FIELDS = re.compile(r"(?<=<!-- fields of )(\w+)( -->\n).*?(?=<!-- end of fields -->)", re.DOTALL)


def blocks(page):
    """The blocks of a page that are to be run: their kinds and texts. Of one that is a file, the kind is its name;
    of output, "printed"; of what goes on serving, "served"."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        (
            {"file": block["of"], "printed": "printed", "served": "served"}.get(block["mark"], block["kind"]),
            block["text"],
        )
        for block in found
        if block["mark"] != "not run"
    ]


def commands(kind, text):
    """The commands of a block that call textcat; in a console block they follow a dollar sign."""
    lines = text.replace("\\\n", " ").splitlines()
    if kind == "console" or any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    elif kind not in ("sh", "bash", "served"):
        lines = []
    return [line.strip() for line in lines if re.match(r"(.*\| *)?textcat( |$)|curl ", line.strip())]


def is_to_run(page):
    return any(kind in ("python", "pycon") or commands(kind, text) for kind, text in blocks(page))


def absent_corpora():
    from textcat.corpus.cards import cards
    from textcat.corpus.fetch import locate_corpus

    return [name for name, card in cards().items() if locate_corpus(card) is None]


MOST_FREQUENT, ITS_MODEL = "textcat train newswire --out models/newswire", Path("models/newswire")


@pytest.fixture(scope="session")
def first_runs(tmp_path_factory):
    """A folder of what the most frequent line printed and made when it was first run, for all processes with tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "first-runs"
    folder.mkdir(exist_ok=True)
    return folder


def after_figures(page):
    """The number of blocks up to the last that shows figures of the newswire: 0 if none does.

    A figure of Python has two decimals or more: else what is printed depends on no number of splits.
    """
    read, last = "", 0
    for number, (kind, text) in enumerate(blocks(page), start=1):
        read += text
        if (
            kind == "printed" or (kind == "pycon" and re.search(r"^[^>.].*\d\.\d\d", text, re.M))
        ) and "newswire" in read:
            last = number
    return last


@pytest.fixture
def train_faster(page, request, monkeypatch):
    """Let hundreds of documents be no longer few: as long as a page shows figures, they must be those of users."""
    if after_figures(page):
        request.getfixturevalue("all_splits")
    return lambda: monkeypatch.setattr(recipe, "FEW_DOCUMENTS", 100)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, first_runs):
    """Runs a line of shell in an empty folder, `textcat` being the one that is tested; gives exit code and output."""
    command = tmp_path / "bin" / "textcat"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m textcat "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"}
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)  # as python itself does
    monkeypatch.setenv("TEXTCAT_SIMULATE_JOBS", "1")  # the other processors run other tests
    monkeypatch.setenv("TEXTCAT_SIMULATE_STEPS", "1:10,60")  # simulations are long by their trainings

    def shell(line):
        ended = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=environment, capture_output=True, text=True)
        return ended.returncode, ended.stdout + ended.stderr

    def here(line, given=""):
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        try:
            cli.main()
        except SystemExit as end:
            return end.code or 0, "".join(capsys.readouterr())

    def once(line):
        if line != MOST_FREQUENT:
            return here(line)
        first = first_runs / f"few-{recipe.FEW_DOCUMENTS}"  # with figures as users have them, and quicker ones
        with FileLock(first.with_suffix(".lock")):
            if first.exists():
                shutil.copytree(first / "model", ITS_MODEL)
                return json.loads((first / "answer.json").read_text(encoding="utf-8"))
            answer = here(line)
            shutil.copytree(ITS_MODEL, first / "model")
            (first / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
        return answer

    def run_(line):
        """Run a line in this process unless it needs a shell: another process costs seconds by its imports alone."""
        line = line.replace("$PWD", str(folder))
        given, pipe, command = line.rpartition(" | ")
        if not needs_shell(command) and command.startswith("textcat "):
            return here(command, subprocess.check_output(["bash", "-c", given], text=True)) if pipe else once(command)
        return shell(line)

    return run_


def needs_shell(line):
    """Whether a line has what only a shell knows: outside of quotes and comments, or replaced in double ones."""
    bare = re.sub(r"""'[^']*'|"[^"$`\\]*"|\s#.*""", "", line)
    return bool(re.search(r"[|<>&;$`*?]", bare))


@pytest.fixture
def started(run, tmp_path):
    """Starts a command that serves, at a free port; gives its address when it has one."""
    processes = []

    def start(line):
        options = "--port 0" + " --no-browser" * line.startswith("textcat teach")
        log = (tmp_path / "served").open("w+")
        command = [sys.executable, "-m", *shlex.split(f"{line} {options}", comments=True)]
        processes.append(forked_commands.Popen(command, stdout=log, stderr=log))
        for _ in range(1200):
            said = (tmp_path / "served").read_text(encoding="utf-8")
            if address := re.search(r"http://([\w.]+:\d+)", said):
                return address[1].replace("0.0.0.0", "127.0.0.1")
            assert processes[-1].poll() is None, f"{line}\n{said}"
            time.sleep(0.1)
        raise AssertionError(f"{line} serves nothing")

    yield start
    for process in processes:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def needs(text, names):
    return any(re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", text) for name in names)


@pytest.mark.parametrize("page", [*filter(is_to_run, PAGES)], ids=lambda page: page.name)
@pytest.mark.long
def test_the_commands_and_the_python_of_a_page_run_in_their_order(page, run, train_faster, started, leave_out):
    if "import duckdb" in page.read_text(encoding="utf-8"):
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    names, unavailable, n_run, n_left_out, printed, address = {}, absent_corpora(), 0, 0, "", "127.0.0.1:8000"
    for number, (kind, text) in enumerate(blocks(page)):
        if number == after_figures(page):
            train_faster()
        if "." in kind:
            Path(kind).parent.mkdir(parents=True, exist_ok=True)
            Path(kind).write_text(text, encoding="utf-8")
        lines = commands(kind, text)
        for line in lines:
            if needs(line, unavailable):
                # What this command would have made is absent, too.
                unavailable += re.findall(r"--out[ =](\S+)", line) + [f"models/{name}-default" for name in unavailable]
                n_left_out += 1
                continue
            if kind == "served" and line == lines[-1]:
                address = started(line)
                n_run += 1
                continue
            code, printed = run(line.replace("127.0.0.1:8000", address))
            assert code == 0, f"{line}\n{printed}"
            n_run += 1
        if kind == "printed":
            shown = {line.rstrip() for line in printed.splitlines()}
            for line in filter(None, text.splitlines()):
                assert any(one.startswith(line[:-1]) if line[-1] == "…" else one == line for one in shown), line
        if kind == "python" and needs(text, unavailable):
            n_left_out += 1
        elif kind == "python":
            exec(compile(text, page.name, "exec"), names)
            n_run += 1
        elif kind == "pycon":
            example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
            example.globs = names  # which the next block has, too
            assert not doctest.DocTestRunner().run(example, clear_globs=False).failed
            n_run += 1
    if n_left_out:
        leave_out(f"data: {n_left_out} commands of {page.name} need absent corpora")
    if not n_run:
        pytest.skip("data: all commands of this page need corpora")


def test_the_page_of_the_command_line_has_what_the_commands_have():
    page = CLI_PAGE.read_text(encoding="utf-8")
    assert page == command_reference.page(), "run `python tests/project/test_documentation.py --write`"
    assert len(page.encode()) < 60_000


def test_each_command_takes_the_options_of_its_section_and_of_the_groups_that_it_names_and_no_others():
    """Read from the page alone, what a command takes is what it has."""
    sections = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", CLI_PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    all_commands = command_reference.commands()
    assert {f"`textcat {name}`" for name in all_commands if name} == {name for name in sections if name[0] == "`"}

    def names(text):
        rows = re.findall(r"^\| (`-.*?) \|", text, re.MULTILINE)
        return {name for row in rows for name in re.findall("`(.*?)`", row)}

    for name, command in all_commands.items():
        if not name:
            continue
        section = sections[f"`textcat {name}`"]
        told = names(section)
        groups = re.findall(r"\[\w+\]\(#options-of-(\w+)\)(?: \((but )?(.*?)\))?", section)
        for group, but, listed in groups:
            some, all_ = set(re.findall("`(.*?)`", listed)), names(sections[f"Options of {group}"])
            told |= all_ - some if but or not listed else some
        options = [option for option in command.params if option.param_type_name == "option" and option.name != "help"]
        has = {one for option in options for one in (*option.opts, *option.secondary_opts) if one.startswith("--")}
        assert {one for one in told if one.startswith("--")} == has, name
        arguments = {each.name for each in command.params if each.param_type_name == "argument"}
        assert arguments == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)), name


def field_rows(fields):
    for field in fields:
        yield f"| `{field.name}` | {field.type} | {default_of(field)} | {meaning_of(field)} |\n"


def meaning_of(field):
    return field.explanation.replace("|", "&#124;").replace("``", "`")


def default_of(field):
    return "none" if field.default is None else f"`{json.dumps(field.default, ensure_ascii=False)}`"


def field_table(section):
    """The fields of a section of a recipe as a table; "learners" are those that learners have of their own."""
    by_learner = {
        name: [field for field in Recipe("", learner={"name": name}).fields() if field.section == "learner"]
        for name in LEARNERS
    }
    shared = set.intersection(*({field.name for field in fields} for fields in by_learner.values()))
    head = "| field | type | default | meaning |\n|---|---|---|---|\n"
    if section == "learners":
        alike = {}  # fields that mean the same for several learners stand in one row
        for name, fields in by_learner.items():
            for field in fields:
                if field.name not in shared:
                    alike.setdefault((field.name, field.type, meaning_of(field)), {})[name] = default_of(field)
        lines = []
        for (name, type_, meaning), defaults in alike.items():
            learners = ", ".join(f"`{learner}`" for learner in defaults)
            values = [*defaults.values()]
            default = values[0] if len({*values}) == 1 else ", ".join(values)
            lines.append(f"| {learners} | `{name}` | {type_} | {default} | {meaning} |\n")
        return head.replace("| field", "| learner | field").replace("|---", "|---|---", 1) + "".join(lines)
    fields = [field for field in Recipe("").fields() if field.section == section]
    return head + "".join(field_rows(field for field in fields if section != "learner" or field.name in shared))


def recipes_page():
    text = RECIPES_PAGE.read_text(encoding="utf-8")
    return FIELDS.sub(lambda place: f"{place[1]}{place[2]}{field_table(place[1])}", text)


def test_the_page_of_the_recipes_has_every_field():
    page = RECIPES_PAGE.read_text(encoding="utf-8")
    assert page == recipes_page(), "run `python tests/project/test_documentation.py --write`"
    sections = {field.section for field in Recipe("").fields()}
    assert {place[1] for place in FIELDS.finditer(page)} == {*sections, "learners"}


@every(
    "page, head, names",
    [
        ("reference/formats", "format", FORMATS),
        ("reference/corpora", "name", cards()),
        ("reference/corpora", "field", ENTRY_TYPES),
        ("reference/corpora", "reader", READERS),
        ("reference/learners", "name", LEARNERS),
        ("reference/recipes", "`--sampler`", SAMPLERS),
        ("reference/recipes", "recipe", [path.stem for path in shipped("recipes").glob("*.toml")]),
        ("reference/recipes", "strategy", STRATEGIES),
        ("how-to/teaching", "export", EXPORTS),
        ("background/teaching-stopping", "rule", RULES),
    ],
)
def test_a_table_has_all_that_there_is(page, head, names):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(rf"^\| {head} \|.*\n\|[-|]*\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    assert sorted(re.findall(r"`(.*?)`", " ".join(row.split("|")[1] for row in table.splitlines()))) == sorted(names)


def test_the_page_of_the_server_has_the_defaults_of_its_limits():
    limits = re.findall(r"^\| `--([\w-]+) (\d+)`", (ROOT / "docs/how-to/serving.md").read_text(), re.MULTILINE)
    assert len(limits) == 5
    for name, default in limits:
        assert inspect.signature(serve).parameters[name.replace("-", "_")].default == float(default)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 6000


def test_the_layout_in_contributing_names_the_folders_that_there_are():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^│? *[├└]── (\w+)/", text.partition("textcat/")[2], re.MULTILINE))
    assert drawn == {path.parent.name for path in (ROOT / "textcat").glob("*/__init__.py")}


def headings(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings_that_there_are():
    broken = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8")):
            path, _, heading = target.partition("#")
            other = page.parent / path if path else page
            if not other.exists() or (heading and heading not in headings(other)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def code_blocks():
    """Yield the blocks of code of all pages, with their first lines: whether they are run, and else the reason.

    Those of background/reproductions are left out: each names the command that has written its page.
    """
    pages = {*PAGES, *ROOT.glob("docs/**/*.md")} - {*ROOT.glob("docs/background/reproductions/*.md")}
    for page in sorted(pages):
        text = page.read_text(encoding="utf-8")
        # The notebooks are run when the site is built, and a cell that fails ends that.
        for cell in re.findall(r"^```\{code-cell\}.*\n((?:(?!```).*\n)*)", text, re.MULTILINE):
            yield f"{page.name}: {cell.partition(chr(10))[0]}", ":tags: [skip-execution]" not in cell, ""
        for block in BLOCK.finditer(text):
            of_shell = block["kind"] in ("sh", "bash", "console") or block["text"].startswith("$ ")
            if of_shell or block["kind"] in ("python", "pycon"):
                has_code = not of_shell or commands(block["kind"], block["text"])
                is_run = bool(has_code) and block["mark"] != "not run" and (page in PAGES)
                reason = block["of"] if block["mark"] == "not run" else ""
                yield f"{page.name}: {block['text'].partition(chr(10))[0]}", is_run, reason


def test_nearly_all_blocks_of_code_are_run_and_the_others_say_why_not():
    blocks = list(code_blocks())
    left = {first_line: reason for first_line, is_run, reason in blocks if not is_run}
    assert not [first_line for first_line, reason in left.items() if not reason], "say why, by <!-- not run: REASON -->"
    share = 1 - len(left) / len(blocks)
    assert share >= LEAST_SHARE_RUN, f"{len(left)} of {len(blocks)} blocks are not run: {json.dumps(left, indent=1)}"


def test_commands_are_found_in_shell_and_console_blocks_only():
    assert commands("sh", "textcat train a \\\n  --out b\npip install .\necho x | textcat tag m  # why\n") == [
        "textcat train a    --out b",
        "echo x | textcat tag m  # why",
    ]
    assert commands("console", "$ textcat corpora\ntextcat is printed\n") == ["textcat corpora"]
    assert commands("text", "textcat corpora\n") == []


if __name__ == "__main__" and "--write" in sys.argv:
    CLI_PAGE.write_text(command_reference.page(), encoding="utf-8")
    RECIPES_PAGE.write_text(recipes_page(), encoding="utf-8")
