"""A file is replaced whole, results are kept, and values of TOML have types."""

import json
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from textcat.errors import TextcatError, did_you_mean, similar_files
from textcat.folders import installed_version, write_atomically
from textcat.journal import KeptResults, journal_line, read_journal
from textcat.settings import describe_type, has_type, parse_value


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "result.json"
    write_atomically(path, "old\n")

    def lines():
        yield "new\n"
        assert path.read_text() == "old\n"

    write_atomically(path, lines())
    assert path.read_bytes() == b"new\n"
    assert [file.name for file in path.parent.iterdir()] == ["result.json"]


def interrupted():
    yield "half of"
    raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    write_atomically(path, "old\n")
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="system: POSIX permissions, links and pipes")
def test_a_replaced_file_has_the_permissions_of_any_new_file_and_a_link_stays_a_link(tmp_path):
    target, link, plain = tmp_path / "target", tmp_path / "link", tmp_path / "plain"
    plain.touch()
    link.symlink_to(target)
    write_atomically(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="system: POSIX permissions, links and pipes")
def test_what_is_no_regular_file_is_written_to_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_atomically, args=(pipe, "through the pipe"))
    writer.start()
    assert pipe.read_text() == "through the pipe"
    writer.join()
    assert pipe.is_fifo()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(TextcatError, match=r"^Cannot write in .*file.* name a folder that you may write to\.$"):
        write_atomically(Path(blocker, "result.json"), "text")


# --- kept results and journals ---------------------------------------------------------------------------------------


def test_results_are_kept_and_found_again(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    kept = KeptResults(path)
    assert kept.get("a") is None
    kept["a"] = {"figure": 0.5}
    kept["b"] = {"figure": 1}
    kept["a"] = {"figure": 0.75}
    again = KeptResults(path)
    assert again.get("a") == kept.get("a") == {"key": "a", "figure": 0.75}
    assert again.get("b") == {"key": "b", "figure": 1}


def test_a_result_whose_line_is_broken_or_changed_is_none_and_the_others_stay(tmp_path):
    path = tmp_path / "results.jsonl"
    kept = KeptResults(path)
    for key in "abc":
        kept[key] = {"figure": 1}
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1].replace("1", "2", 1), "[", lines[2][:20]]))
    resumed = KeptResults(path)
    assert [resumed.get(key) is not None for key in "abc"] == [True, False, False]
    resumed["c"] = {"figure": 3}
    assert KeptResults(path).get("c") == {"key": "c", "figure": 3}


def test_lines_without_a_checksum_are_those_of_an_earlier_version(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({"key": "a", "figure": 1}) + "\n")
    assert KeptResults(path).get("a") == {"key": "a", "figure": 1}


def test_without_a_file_results_are_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = KeptResults(None)
    kept["a"] = {"figure": 1}
    assert kept.get("a") == {"key": "a", "figure": 1}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cut", "damaged"), [(0, False), (1, False), (10, False), (10**6, True)], ids=["whole", "end", "line", "all"]
)
def test_a_journal_is_read_as_far_as_it_is_whole(tmp_path, cut, damaged):
    path = tmp_path / "journal"
    assert read_journal(path) is None
    first = journal_line({"format": 1})
    content = first + journal_line({"batch": 2})
    path.write_bytes(content[: max(len(content) - cut, 0)])
    journal = read_journal(path)
    lines = [{"format": 1}, {"batch": 2}][: 2 if not cut else 0 if damaged else 1]
    assert (journal.lines, journal.damaged) == (lines, damaged)
    assert journal.length == len(content) if not cut else journal.length == (0 if damaged else len(first))


def test_lines_behind_a_broken_one_are_damage(tmp_path):
    path = tmp_path / "journal"
    line = journal_line({"format": 1})
    path.write_bytes(line + b"{}\n" + line)
    journal = read_journal(path)
    assert (journal.lines, journal.length, journal.damaged) == ([{"format": 1}], len(line), True)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("5", int, 5),
        ("5", float, 5),
        (".5", float, 0.5),
        ("1e-3", float | None, 1e-3),
        ("true", bool, True),
        ("prevalence", float | str, "prevalence"),
        ('"5"', str, "5"),
        ("5", str, "5"),
        ("{ title = 2, body = 1 }", Mapping[str, float] | None, {"title": 2, "body": 1}),
        ('["title"]', bool | Sequence[str], ["title"]),
        ("a = 1\nb = 2", str, "a = 1\nb = 2"),
    ],
)
def test_a_text_has_the_value_that_the_type_allows(text, annotation, value):
    parsed = parse_value(text, annotation)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "annotation", "wanted"),
    [
        ("1", bool, "true or false"),
        ("true", int, "a whole number"),
        ("x", int | None, "a whole number"),
        ("{ title = 'x' }", Mapping[str, float], "a table of numbers"),
        ("[1]", bool | Sequence[str], "true or false or a list of strings"),
    ],
)
def test_a_text_of_another_type_is_refused_with_the_type(text, annotation, wanted):
    with pytest.raises(ValueError, match=f"^give {wanted}$"):
        parse_value(text, annotation)
    assert describe_type(annotation) == wanted
    assert not has_type(object(), annotation)


def test_near_names_are_told(tmp_path):
    assert did_you_mean("micr", ["micra", "paum"]) == " Did you mean 'micra'?"
    assert did_you_mean("xyz", ["micra", "paum"]) == ""
    (tmp_path / "articles.csv").touch()
    assert similar_files(tmp_path / "article.csv") == f" Did you mean '{tmp_path / 'articles.csv'}'?"
    assert similar_files(tmp_path / "articles.csv") == ""
    assert similar_files(tmp_path / "nowhere" / "articles.csv") == ""


@pytest.mark.parametrize("name", ["spacy", "numpy", "scikit-learn"])
def test_the_version_of_a_library_is_that_of_its_metadata(name):
    assert installed_version(name) == version(name)


def test_a_version_that_the_names_of_files_leave_open_is_asked_of_python(tmp_path, monkeypatch):
    for release in ("2.0", "3.0"):
        (tmp_path / f"spacy-{release}.dist-info").mkdir()
        (tmp_path / f"spacy-{release}.dist-info" / "METADATA").write_text(f"Name: spacy\nVersion: {release}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_version("spacy") == version("spacy")
    with pytest.raises(PackageNotFoundError):
        installed_version("no-such-library")
