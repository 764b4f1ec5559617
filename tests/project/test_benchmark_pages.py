"""Pages of docs/benchmarks show tables as they were measured: when, of what, where and by which command is told."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.tables import FOLDER, Conditions, make_table, names_of_tables, read_table, with_tables, write_table
from cases import every

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/benchmarks"
TABLES = {path.stem: path for path in (PAGES / FOLDER).glob("*.json")}
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md"))}
UNKNOWN = "not recorded"
CONDITIONS = Conditions("2026-11-25", "1234567", "default", "two cores", UNKNOWN, "Python", "`scripts/benchmark speed`")


@every("path", TEXTS)
def test_a_page_shows_the_tables_that_it_names_as_they_were_measured(path):
    assert with_tables(TEXTS[path], PAGES / FOLDER) == TEXTS[path], "write it by scripts/benchmarks/tables.py"


def test_each_table_is_shown_once():
    assert Counter(name for text in TEXTS.values() for name in names_of_tables(text)) == Counter(TABLES.keys())


@every("name", TABLES)
def test_a_table_has_figures_and_says_how_they_were_measured(name):
    table = read_table(TABLES[name])
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert any(character.isdigit() for row in table.rows for cell in row for character in cell or "")
    date, commit, *_, command = table.conditions
    assert re.search(r"20\d\d-\d\d-\d\d", date)
    assert re.search(r"\b[0-9a-f]{7,40}\b", commit)
    assert "-changed" not in commit
    assert command == UNKNOWN or re.fullmatch("`.+`", command)
    assert all(table.conditions)


def test_a_page_gets_what_was_measured_and_keeps_its_text(tmp_path):
    page = "# Speed\n\nHow fast it is.\n\n<!-- table: speed -->\nold\n<!-- end of table -->\n\nNotes.\n"
    rows = [{"what": "textcat", "seconds": 1}, {"what": "é", "seconds": None}]
    write_table(tmp_path / "tables" / "speed.json", make_table("Speed", CONDITIONS, rows))
    shown = with_tables(page, tmp_path / "tables")
    lines = ["| what | seconds |", "| --- | --- |", "| textcat | 1 |", "| é | - |"]
    assert shown.splitlines()[6:10] == lines
    assert "old" not in shown
    assert "commit: 1234567; recipe: default;" in shown
    assert shown.splitlines()[:5] == page.splitlines()[:5]
    assert shown.endswith("<!-- end of table -->\n\nNotes.\n")
    assert with_tables(shown, tmp_path / "tables") == shown
    assert read_table(tmp_path / "tables" / "speed.json").rows == [["textcat", "1"], ["é", None]]


@pytest.mark.parametrize(
    ("loads", "said"),
    [
        ("111", ["", ""]),
        ("112", ["", ", except load: 2"]),
        ("122", [", except load: 2", ""]),
        ("121", [", except load: 2", ", except load: 1"]),
        ("1", []),
    ],
)
def test_a_table_says_only_what_differs_from_how_the_one_above_was_measured(tmp_path, loads, said):
    page = ""
    for n, load in enumerate(loads):
        rows = [{"seconds": n}]
        write_table(tmp_path / f"t{n}.json", make_table("Speed", CONDITIONS._replace(load=load), rows))
        page += f"<!-- table: t{n} -->\n<!-- end of table -->\n\n"
    shown = with_tables(page, tmp_path)
    assert shown.count("Measured: date: 2026-11-25; ") == 1
    assert re.findall("Measured as the table above(.*)[.]", shown) == said
    assert [line for line in shown.splitlines() if re.fullmatch(r"\| \d \|", line)] == [
        f"| {n} |" for n in range(len(loads))
    ]
    assert with_tables(shown, tmp_path) == shown


def test_the_commits_are_in_the_history():
    def git(*words, **options):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, **options)

    try:
        shallow = git("rev-parse", "--is-shallow-repository").stdout.strip()
    except OSError:
        shallow = "there is no git"
    if shallow != "false":
        pytest.skip("system: this checkout has no history")
    commits = {
        commit: name
        for name, path in TABLES.items()
        for commit in re.findall(r"\b[0-9a-f]{7,40}\b", read_table(path).conditions.commit)
    }
    found = git("cat-file", "--batch-check", input="".join(f"{commit}^{{commit}}\n" for commit in commits))
    lines = found.stdout.splitlines()
    assert len(lines) == len(commits)
    assert not [of for of, line in zip(commits.items(), lines, strict=True) if " commit " not in line]


def test_the_overview_has_each_page_with_a_figure_that_is_on_it():
    index = TEXTS[PAGES / "index.md"]
    entries = re.findall(r"^- \[(.+?)\]\(([\w-]+)\.md\): ((?:.+\n)(?:  .+\n)*)", index, re.MULTILINE)
    assert [name for _, name, _ in entries] == index.partition(":hidden:\n\n")[2].splitlines()[:-1]
    assert {name for _, name, _ in entries} == {path.stem for path in TEXTS} - {"index"}
    for title, name, sentence in entries:
        text = TEXTS[PAGES / f"{name}.md"]
        assert text.startswith(f"# {title}\n")
        (figure,) = re.findall(r"\*\*(.+?)\*\*", sentence)
        assert re.search(rf"(?<![\w.,]){re.escape(figure)}(?![\w])", text), f"{name} has no {figure}: mend the overview"


def test_every_picture_is_shown():
    shown = {name for text in TEXTS.values() for name in re.findall(r"!\[.+\]\((.+)\)", text)}
    assert shown == {path.name for path in PAGES.glob("*.*") if path.suffix != ".md"}
