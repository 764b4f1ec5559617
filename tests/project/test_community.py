"""What a stranger reads before a report or a change is true: forms, citation, security policy, roadmap."""

import inspect
import re
from pathlib import Path

import pytest

import textcat
from textcat.cli.serve import serve
from textcat.model import MOST_CARD_BYTES
from textcat.serving.files import MEMORY

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra test)")
ROOT = Path(__file__).parents[2]
SECURITY, ROADMAP = ((ROOT / name).read_text(encoding="utf-8") for name in ("SECURITY.md", "docs/project/roadmap.md"))


def test_the_citation_has_what_its_schema_requires_and_agrees_with_the_readme():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["cff-version"], citation["type"], citation["license"]) == ("1.2.0", "software", "MIT")
    assert citation["version"] == textcat.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", citation["date-released"])
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)
    bibtex = re.search(r"```bibtex\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    fields = dict(re.findall(r"(\w+) = \{([^{}]*)\}", bibtex))
    assert (fields["title"], fields["version"]) == (citation["title"], citation["version"])
    assert (fields["year"], fields["url"]) == (citation["date-released"][:4], citation["repository-code"])


def test_forms_for_issues_can_be_read_and_the_one_for_errors_asks_for_doctor():
    forms = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")
    }
    fields = {field["id"]: field for field in forms["bug"]["body"]}
    assert "textcat doctor" in fields["doctor"]["attributes"]["label"]
    assert fields["doctor"]["validations"]["required"]
    for name in set(forms) - {"config"}:
        assert {"name", "description", "body"} <= set(forms[name])


def test_the_security_policy_names_the_limits_that_there_are():
    defaults = {name: parameter.default for name, parameter in inspect.signature(serve).parameters.items()}
    for name, words in (
        ("max_bytes", "bodies ({:.0f} MB)"),
        ("max_documents", "documents ({:,})"),
        ("timeout", "seconds ({:g})"),
        ("max_concurrency", "requests at a time ({})"),
    ):
        value = defaults[name] / 1e6 if name == "max_bytes" else defaults[name]
        assert words.format(value) in SECURITY
    assert f"{MOST_CARD_BYTES >> 10} kB" in SECURITY
    assert f"{MEMORY >> 30} GB of memory" in SECURITY


def test_the_tasks_of_the_roadmap_name_files_that_there_are_and_a_test():
    rows = [row.split("|")[1:-1] for row in re.findall(r"^\| \*\*.*\|$", ROADMAP, re.MULTILINE)]
    assert len(rows) >= 8
    for _, room, size, test in rows:
        assert re.search(r"\d+ lines", size)
        assert test.strip()
        for path in re.findall(r"`((?:textcat|tests|docs)/[\w./-]+)`", room + test):
            assert (ROOT / path).exists(), path


def test_no_task_of_the_roadmap_is_done():
    """A task that was done must go from the list: each of these would then differ."""
    source = {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in ("textcat/runs/workers.py", "textcat/training/memory.py", "textcat/reading/formats/unread.py")
    }
    assert "cpu.max" not in source["textcat/runs/workers.py"]
    assert "/proc/self/cgroup" not in source["textcat/training/memory.py"]
    assert all(ending in source["textcat/reading/formats/unread.py"] for ending in ('"odt"', "epub"))
    assert not hasattr(textcat.rules, "PassiveAggressive")
