"""Files read back to what was written, by the tools they are for."""

import csv
import io
import json
import re

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from evaluations import COMPARISON, EVALUATION
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from textcat.base.errors import TextcatError
from textcat.evaluation import export
from textcat.evaluation.metrics import average_precisions


def test_a_comparison_is_json_too():
    read = json.loads(json.dumps(COMPARISON.as_dict(), allow_nan=False))
    assert read["measures"][0]["differences"][0]["p_topics"] == 0.5
    assert read["measures"][2]["values"] == [None, None]
    assert read["topics"][0]["differences"] == [0.5]


def test_json_has_null_where_a_measure_is_not_defined():
    read = json.loads(json.dumps(EVALUATION.as_dict(), allow_nan=False))
    assert read["bands"][0]["macro_average_precision"] == 0.875
    none = read["topics"][2]
    assert none["average_precision"] is none["f1"] is read["topics"][1]["facts"]["tau_pos"] is None
    assert (none["topic"], none["test_positives"], none["facts"]["stopped"]) == ("none", 0, "epochs")


def test_csv_has_a_line_per_topic_and_nothing_where_a_measure_is_not_defined():
    mid, big, none = csv.DictReader(io.StringIO(export.csv_of_rows(export.plain_rows(EVALUATION))))
    assert (mid["topic"], float(mid["average_precision"]), mid["stopped"]) == ("mid", 1, "converged")
    assert (big["topic"], big["tau_pos"], big["support"]) == ("big[0]", "", "20")
    assert none["average_precision"] == none["precision"] == none["recall"] == none["f1"] == ""


def write_trec(folder, *arguments):
    files = export.trec_files(*arguments)
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("".join(lines))
    return folder / "run.txt", folder / "qrels.txt"


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(st.tuples(st.booleans(), FINITE), min_size=1, max_size=20, unique_by=lambda pair: pair[1]))
def test_trec_files_read_back_to_the_same_scores_and_the_same_average_precision(tmp_path_factory, pairs):
    labels = np.array([[label] for label, _ in pairs])
    scores = np.array([[score] for _, score in pairs], dtype=np.float32)
    ids = [f"id {place}" for place in range(len(pairs))]
    run, qrels = write_trec(tmp_path_factory.mktemp("trec"), scores, labels, ids, ["a topic"])
    with run.open() as file:
        read = pytrec_eval.parse_run(file)["a%20topic"]
    assert [np.float32(read[f"id%20{place}"]) for place in range(len(ids))] == scores[:, 0].tolist()
    if labels.any():
        theirs = ir_measures.calc_aggregate(
            [ir_measures.AP], ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
        )
        assert theirs[ir_measures.AP] == pytest.approx(average_precisions(labels, scores)[0])


def test_float64_scores_read_back_too(tmp_path):
    scores = np.array([[1 / 3], [np.nextafter(1 / 3, 1)]])
    run, _ = write_trec(tmp_path, scores, [[1], [0]], ["a", "b"], ["t"])
    assert [float(line.split()[4]) for line in run.read_text().splitlines()] == [scores[1, 0], scores[0, 0]]


def test_trec_files_have_the_columns_trec_eval_wants_and_its_order_of_ties(tmp_path):
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]], dtype=np.float32)
    labels = sparse.csr_matrix([[0, 0], [1, 0], [1, 0]])
    run, qrels = write_trec(tmp_path / "new", scores, labels, ["a", "b", "c"], ["tea", "rye"])
    assert run.read_text().splitlines() == [
        "tea Q0 c 1 2 textcat",
        "tea Q0 b 2 1 textcat",
        "tea Q0 a 3 1 textcat",
        "rye Q0 c 1 0 textcat",
        "rye Q0 b 2 0 textcat",
        "rye Q0 a 3 0 textcat",
    ]
    assert qrels.read_text().splitlines() == ["tea 0 b 1", "tea 0 c 1"]


@pytest.mark.parametrize(("ids", "wrong"), [(["7", "7"], "'7'"), (["", "7"], "''")])
def test_document_ids_that_trec_eval_could_not_tell_apart_are_refused(tmp_path, ids, wrong):
    with pytest.raises(TextcatError, match=f"every document, but {wrong} is empty or occurs twice"):
        write_trec(tmp_path, [[1.0], [2.0]], [[1], [0]], ids, ["t"])
    assert not list(tmp_path.iterdir())


NAMES = st.text(alphabet='ab |*_[]<>&%$#{}~^\\"`\n', max_size=8)


@given(st.lists(st.tuples(NAMES, st.floats(-9, 9)), min_size=1, max_size=4))
def test_a_table_in_markdown_has_its_cells_whatever_names_there_are(rows):
    text = export.formatted_tables([[{"name": name, "value": value} for name, value in rows]], "markdown")
    lines = [re.split(r"(?<!\\)(?:\\\\)*\|", line) for line in text.splitlines()]
    assert {len(line) for line in lines} == {4}
    assert lines[1][2] == " ---: "
    for line, (name, _) in zip(lines[2:], rows, strict=True):
        assert " ".join(re.sub(r"\\(.)", r"\1", line[1]).split()) in " ".join(name.split()) + "\\"


def test_a_table_in_latex_says_names_as_they_are():
    rows = [{"topic": r"R&D_50% \ [a]", "AP": 0.5}, {"topic": "b", "AP": None}]
    assert export.formatted_tables([rows], "latex").splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"topic & AP \\",
        r"\midrule",
        r"R\&D\_50\% \textbackslash{} {[}a{]} & 0.5 \\",
        r"b & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
