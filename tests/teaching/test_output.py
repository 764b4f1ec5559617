"""The ending of a name decides the format; cells are safe; a file is whole or not there."""

import csv
import json

import pytest

from textcat import TextcatError
from textcat.teaching.output import csv_lines, format_by_ending, json_line, write_lines


def test_the_ending_decides_and_any_other_is_refused_with_those_that_there_are():
    assert format_by_ending("a/b.CSV", ("jsonl", "csv"), "labels") == "csv"
    with pytest.raises(
        TextcatError, match=r"l\.xlsx: labels cannot be written as \.xlsx: give a name in \.jsonl or \.csv"
    ):
        format_by_ending("l.xlsx", ("jsonl", "csv"), "labels")
    with pytest.raises(
        TextcatError, match=r"labels: a corpus cannot be written as a file without ending: .* \.jsonl\."
    ):
        format_by_ending("labels", ("jsonl",), "a corpus")


def test_cells_are_safe_in_spreadsheets_and_missing_ones_empty(tmp_path):
    path = write_lines(tmp_path / "a.csv", csv_lines(["=a", "b"], [{"=a": "=1+1", "b": -3}, {"b": "x;y\n"}]))
    with open(path, newline="", encoding="utf-8") as file:
        assert [*csv.reader(file)] == [["'=a", "b"], ["'=1+1", "-3"], ["", "x;y\n"]]
    assert (tmp_path / "b.csv") == write_lines(tmp_path / "b.csv", csv_lines(["a"], []))
    assert (tmp_path / "b.csv").read_text(encoding="utf-8").strip() == "a"


def test_a_line_holds_any_text():
    assert json.loads(json_line({"a": "é\n"})) == {"a": "é\n"}
    assert json.loads(json_line({"a": "\ud800"})) == {"a": "\ud800"}


def test_what_fails_midway_leaves_no_file(tmp_path):
    def lines():
        yield "a"
        raise KeyError

    with pytest.raises(KeyError):
        write_lines(tmp_path / "a.jsonl", lines())
    assert not [*tmp_path.iterdir()]
