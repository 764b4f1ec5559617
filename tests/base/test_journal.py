"""Journals: kept results and lines with checksums, whole or told of."""

from unittest.mock import Mock

import pytest

from textcat.base.journal import KeptResults, journal_line, read_journal, read_matching, user_name

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


@pytest.mark.parametrize("place", [0, 5, -2])
def test_a_last_line_that_ends_and_is_wrong_is_damage(tmp_path, place):
    first, last = journal_line({"format": 1}), bytearray(journal_line({"batch": 2}))
    last[place] ^= 1
    (tmp_path / "journal").write_bytes(first + last)
    journal = read_journal(tmp_path / "journal")
    assert (journal.lines, journal.length, journal.damaged) == ([{"format": 1}], len(first), True)


def test_lines_behind_a_broken_one_are_damage(tmp_path):
    path = tmp_path / "journal"
    line = journal_line({"format": 1})
    path.write_bytes(line + b"{}\n" + line)
    journal = read_journal(path)
    assert (journal.lines, journal.length, journal.damaged) == ([{"format": 1}], len(line), True)


def test_lines_that_begin_so_are_read_without_the_damaged_ones(tmp_path):
    path = tmp_path / "journal"
    assert not [*read_matching(path, {"record": "facts"})]
    lines = [{"first": 1}, {"record": "facts", "n": 1}, {"record": "facts", "n": 2}, {"record": "shard"}]
    path.write_bytes(
        b"".join(map(journal_line, lines)) + b'{"record": "facts", "n": 3, "crc32": 7}\n{"record": "facts"'
    )
    assert [line["n"] for line in read_matching(path, {"record": "facts"})] == [2, 1]
    assert not [*read_matching(path, {"record": "sums"})]


@pytest.mark.parametrize("error", [ImportError, KeyError, OSError])
def test_a_user_without_a_name_has_an_empty_one(monkeypatch, error):
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=error))
    assert user_name() == ""
