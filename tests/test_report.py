"""Tables are plain and whole off a terminal; files read back to what was written, by the tools they are for."""

import csv
import io
import json
import os
import re
import stat
import threading
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import sparse

from textcat.errors import TextcatError
from textcat.evaluation import report
from textcat.evaluation.comparison import Comparison, Difference, MeasureComparison, TopicComparison
from textcat.evaluation.ranking import average_precisions, evaluate
from textcat.files import replacing, write_atomically

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]])
SCORES = np.array([[2.0, -1.0, 1.0], [1.0, 3.0, -1.0], [-1.0, 2.0, -1.0], [-2.0, -2.0, -1.0]], dtype=np.float32)
FACTS = {
    "tau_pos": [1.5, np.nan, 2.0],
    "support": [10, 20, 60],
    "shuffled": [True, False, True],
    "stopped": ["converged", "converged", "epochs"],
}
EVALUATION = evaluate(SCORES, LABELS, ["mid", "big[0]", "none"], [4, 8, 2], 16, spec=["ALL", "TOP1"], facts=FACTS)


def printed(table, **options):
    console = Console(file=io.StringIO(), **options)
    report.show(console, table)
    return console.file.getvalue().splitlines()


def test_the_band_table_has_a_column_per_band_like_the_papers():
    assert printed(report.band_table(EVALUATION)) == [
        "                             ALL  TOP1",
        "macro-averaged precision    .875  .750",
        "average sparsity              30    20",
        "macro F1                    .750  .500",
        "micro F1                    .667  .500",
        "topics                         2     1",
        "left out: no test positive     1     0",
    ]


def test_the_band_table_leaves_out_lines_that_say_nothing():
    evaluation = evaluate(SCORES[:, :2], LABELS[:, :2], ["mid", "big"], [4, 8], 16, spec="ALL")
    titles = [line.split("  ")[0] for line in printed(report.band_table(evaluation))]
    assert titles[1:] == ["macro-averaged precision", "macro F1", "micro F1", "topics"]


def test_a_band_without_a_topic_to_count_says_so():
    evaluation = evaluate(SCORES, LABELS, ["mid", "big", "none"], [4, 8, 2], 16, spec="LAST1")
    assert printed(report.band_table(evaluation))[1].split("  ")[-1] == "no topic"


def test_every_measure_can_have_a_line():
    titles = [line.split("  ")[0] for line in printed(report.band_table(EVALUATION, every_measure=True))]
    assert titles[1:] == [
        "macro-averaged precision",
        "macro R-precision",
        "macro P@10",
        "macro nDCG",
        "average sparsity",
        *(f"{average} {of}" for average in ("macro", "micro", "sample") for of in ("precision", "recall", "F1")),
        "label ranking average precision",
        "coverage error",
        "top-1 accuracy",
        "topics",
        "left out: no test positive",
    ]


def test_an_interval_stands_under_its_measure():
    band = replace(EVALUATION.bands[0], intervals={"micro_f1": (0.5, 0.75)})
    other = replace(EVALUATION.bands[1], intervals={"micro_f1": None})
    lines = printed(report.band_table(replace(EVALUATION, bands=(band, other))))
    place = next(place for place, line in enumerate(lines) if line.startswith("micro F1"))
    assert re.split("  +", lines[place + 1].strip()) == ["95 % interval", ".500 to .750", "-"]
    assert sum("interval" in line for line in lines) == 1


COMPARISON = Comparison(
    test_documents=4,
    n_resamples=100,
    seed=0,
    measures=(
        MeasureComparison("ALL", "macro_average_precision", (0.5, 0.75), (Difference(0.25, (-0.1, 0.6), 0.04, 0.5),)),
        MeasureComparison("ALL", "micro_f1", (0.5, 0.25), (Difference(-0.25, (-0.5, 0.0), 0.04, None),)),
        MeasureComparison("LAST1", "macro_f1", (None, None), (None,)),
    ),
    topics=(TopicComparison("[b]", 3, 2, (0.5, 1.0), (0.5,)), TopicComparison("a", 1, 1, (1.0, 0.75), (-0.25,))),
)


def test_models_stand_side_by_side_with_what_the_tests_say():
    assert printed(report.measures_table(COMPARISON, ["A", "B"])) == [
        "band   measure                          A         B  B - A   95 % interval  p (documents)  p (topics)",
        "ALL    macro-averaged precision      .500      .750  +.250  -.100 to +.600          .0400       .5000",
        "ALL    micro F1                      .500      .250  -.250  -.500 to +.000          .0400           -",
        "LAST1  macro F1                  no topic  no topic      -               -              -           -",
    ]


def test_topics_that_differ_most_stand_first():
    assert printed(report.differences_table(COMPARISON, ["A", "B"])) == [
        "topic  train  test      A      B  B - A",
        "[b]        3     2   .500  1.000  +.500",
        "a          1     1  1.000   .750  -.250",
    ]
    assert len(printed(report.differences_table(COMPARISON, ["A", "B"], 1))) == 2


def test_a_comparison_is_json_too():
    read = json.loads(report.to_json(COMPARISON, models=["a", "b"]))
    assert read["models"] == ["a", "b"]
    assert read["measures"][0]["differences"][0]["p_topics"] == 0.5
    assert read["measures"][2]["values"] == [None, None]
    assert read["topics"][0]["differences"] == [0.5]


def test_the_topic_table_goes_from_the_largest_topic_down_and_marks_topics_without_a_positive():
    assert printed(report.topic_table(EVALUATION)) == [
        "topic   train  test  prevalence  tau_pos  support  shuffled    stopped  precision  recall     F1           AP",
        "big[0]      8     2       .5000        -       20        no  converged       .500    .500   .500         .750",
        "mid         4     2       .2500      1.5       10       yes  converged      1.000   1.000  1.000        1.000",
        "none        2     0       .1250        2       60       yes     epochs          -       -      -  no positive",
    ]


@given(st.integers(1, 60))
def test_a_narrow_terminal_cuts_nothing_off(width):
    on_terminal = printed(report.topic_table(EVALUATION), width=width, force_terminal=True, color_system=None)
    assert on_terminal == printed(report.topic_table(EVALUATION))


def test_colour_and_bold_type_are_for_terminals_only():
    assert "\x1b[" in "".join(printed(report.band_table(EVALUATION), force_terminal=True, color_system="standard"))
    assert "\x1b[" not in "".join(printed(report.band_table(EVALUATION)))


def test_the_stage_table_adds_up_the_seconds_and_tells_the_peak_memory():
    table = report.stage_table({"read": 0.5, "train": 1.25}, peak_memory=412_300_000)
    assert printed(table) == [
        "stage        seconds",
        "read            0.50",
        "train           1.25",
        "total           1.75",
        "peak memory   412 MB",
    ]
    assert printed(report.stage_table({"read": 1.0}))[-1].startswith("total")


def test_json_has_null_where_a_measure_is_not_defined():
    read = json.loads(report.to_json(EVALUATION))
    assert read["bands"][0]["macro_average_precision"] == 0.875
    none = read["topics"][2]
    assert none["average_precision"] is none["f1"] is read["topics"][1]["facts"]["tau_pos"] is None
    assert (none["topic"], none["test_positives"], none["facts"]["stopped"]) == ("none", 0, "epochs")


def test_csv_has_a_line_per_topic_and_nothing_where_a_measure_is_not_defined():
    mid, big, none = csv.DictReader(io.StringIO(report.to_csv(EVALUATION)))
    assert (mid["topic"], float(mid["average_precision"]), mid["stopped"]) == ("mid", 1, "converged")
    assert (big["topic"], big["tau_pos"], big["support"]) == ("big[0]", "", "20")
    assert none["average_precision"] == none["precision"] == none["recall"] == none["f1"] == ""


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(st.tuples(st.booleans(), FINITE), min_size=1, max_size=20, unique_by=lambda pair: pair[1]))
def test_trec_files_read_back_to_the_same_scores_and_the_same_average_precision(tmp_path_factory, pairs):
    labels = np.array([[label] for label, _ in pairs])
    scores = np.array([[score] for _, score in pairs], dtype=np.float32)
    ids = [f"id {place}" for place in range(len(pairs))]
    run, qrels = report.write_trec(tmp_path_factory.mktemp("trec"), scores, labels, ids, ["a topic"])
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
    run, _ = report.write_trec(tmp_path, scores, [[1], [0]], ["a", "b"], ["t"])
    assert [float(line.split()[4]) for line in run.read_text().splitlines()] == [scores[1, 0], scores[0, 0]]


def test_trec_files_have_the_columns_trec_eval_wants_and_its_order_of_ties(tmp_path):
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]], dtype=np.float32)
    labels = sparse.csr_matrix([[0, 0], [1, 0], [1, 0]])
    run, qrels = report.write_trec(tmp_path / "new", scores, labels, ["a", "b", "c"], ["tea", "rye"], run_name="my run")
    assert run.read_text().splitlines() == [
        "tea Q0 c 1 2 my%20run",
        "tea Q0 b 2 1 my%20run",
        "tea Q0 a 3 1 my%20run",
        "rye Q0 c 1 0 my%20run",
        "rye Q0 b 2 0 my%20run",
        "rye Q0 a 3 0 my%20run",
    ]
    assert qrels.read_text().splitlines() == ["tea 0 b 1", "tea 0 c 1"]


@pytest.mark.parametrize(("ids", "wrong"), [(["7", "7"], "'7'"), (["", "7"], "''")])
def test_document_ids_that_trec_eval_could_not_tell_apart_are_refused(tmp_path, ids, wrong):
    with pytest.raises(TextcatError, match=f"every document, but {wrong} is empty or occurs twice"):
        report.write_trec(tmp_path, [[1.0], [2.0]], [[1], [0]], ids, ["t"])
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "result.json"
    write_atomically(path, "old\n")
    with replacing(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old\n"
    assert path.read_bytes() == b"new\n"
    assert [file.name for file in path.parent.iterdir()] == ["result.json"]


def fail_while_writing(path):
    with replacing(path) as file:
        file.write("half of")
        raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    write_atomically(path, "old\n")
    with pytest.raises(KeyboardInterrupt):
        fail_while_writing(path)
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions, links and pipes")
def test_a_replaced_file_has_the_permissions_of_any_new_file_and_a_link_stays_a_link(tmp_path):
    target, link, plain = tmp_path / "target", tmp_path / "link", tmp_path / "plain"
    plain.touch()
    link.symlink_to(target)
    write_atomically(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions, links and pipes")
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
