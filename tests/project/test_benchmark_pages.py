"""A page of docs/benchmarks has one table, and says when, of what, where and by which command it was measured."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/benchmarks"
PAGES = sorted({*FOLDER.glob("*.md")} - {FOLDER / "index.md"})
FIELDS = ["Date", "Commit", "Recipe", "Machine", "Load", "Software", "Command"]
UNKNOWN = "not recorded"
EXAMPLE = """# Speed

- Date: 2026-11-25
- Commit: 1234567
- Recipe: default
- Machine: two cores
- Load: not recorded
- Software: Python
- Command: `scripts/benchmark`

How fast it is.

| what | seconds |
| --- | --- |
| textcat | 1 |
"""


def head_of(text):
    """Return the fields of the list behind the title; a page whose head has others, or another order, is at fault."""
    block = re.match(r"# .+\n\n((?:- \w+: .+\n)+)\n", text)
    fields = dict(re.findall(r"^- (\w+): (.+)$", block[1], re.MULTILINE)) if block else {}
    assert [*fields] == FIELDS, f"the head has {', '.join(fields) or 'nothing'}, not {', '.join(FIELDS)}"
    return fields


def check(text):
    """Check what can be seen of a page alone."""
    fields = head_of(text)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 1, f"{len(tables)} tables"
    assert any(character.isdigit() for character in tables[0].partition("---")[2]), "no figures"
    for name, form in (("Date", r"20\d\d-\d\d-\d\d"), ("Commit", r"\b[0-9a-f]{7,40}\b")):
        assert fields[name] == UNKNOWN or re.search(form, fields[name]), f"{name} is {fields[name]}"
        assert "-changed" not in fields[name]
    assert fields["Command"] == UNKNOWN or re.fullmatch("`.+`", fields["Command"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_one_table_and_a_head(page):
    check(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE.replace("- Load: not recorded\n", ""),
        EXAMPLE.replace("- Load: not recorded\n- Software: Python\n", "- Software: Python\n- Load: 1\n"),
        EXAMPLE + "\n| a | b |\n| --- | --- |\n| c | 1 |\n",
        EXAMPLE.partition("| what")[0],
        EXAMPLE.replace("2026-11-25", "yesterday"),
        EXAMPLE.replace("1234567", "1234567-changed"),
        EXAMPLE.replace("| textcat | 1 |", "| textcat | fast |"),
    ],
)
def test_a_page_that_lacks_something_is_found(text):
    check(EXAMPLE)
    with pytest.raises(AssertionError):
        check(text)


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
        commit: page.name
        for page in PAGES
        for commit in re.findall(r"\b[0-9a-f]{7,40}\b", head_of(page.read_text(encoding="utf-8"))["Commit"])
    }
    found = git("cat-file", "--batch-check", input="".join(f"{commit}^{{commit}}\n" for commit in commits))
    lines = found.stdout.splitlines()
    assert len(lines) == len(commits)
    assert not [of for of, line in zip(commits.items(), lines, strict=True) if " commit " not in line]


def test_the_overview_has_each_page_with_a_figure_that_is_on_it():
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- \[(.+?)\]\(([\w-]+)\.md\): ((?:.+\n)(?:  .+\n)*)", index, re.MULTILINE)
    assert [name for _, name, _ in entries] == index.partition(":hidden:\n\n")[2].splitlines()[:-1]
    assert {name for _, name, _ in entries} == {page.stem for page in PAGES}
    for title, name, sentence in entries:
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {title}\n")
        (figure,) = re.findall(r"\*\*(.+?)\*\*", sentence)
        assert re.search(rf"(?<![\w.,]){re.escape(figure)}(?![\w])", text), f"{name} has no {figure}: mend the overview"


def test_every_picture_is_shown():
    shown = {name for page in PAGES for name in re.findall(r"!\[.+\]\((.+)\)", page.read_text(encoding="utf-8"))}
    assert shown == {path.name for path in FOLDER.iterdir() if path.suffix != ".md"}
