"""What commands print: tables whole, names as they are, lines without trailing spaces."""

import io
import re
from dataclasses import replace

import pytest
from evaluations import COMPARISON, EVALUATION, LABELS, SCORES
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from textcat.cli import corpora, measure, tables, tag, train
from textcat.corpus.cards import Card
from textcat.evaluation.evaluation import evaluate
from textcat.progress import Stages
from textcat.recipe import Recipe, read_recipe
from textcat.training.cross_validation import EXPECTED, Trial


def printed(function, *arguments, **options):
    console = Console(file=io.StringIO(), width=40)
    function(console, *arguments, **options)
    return console.file.getvalue().splitlines()


def shown(rows, *, needed=None, **options):
    console = Console(file=io.StringIO(), **options)
    tables.show(console, rows, needed=needed)
    return console.file.getvalue().splitlines()


def test_names_that_look_like_markup_are_printed_as_they_are():
    assert printed(tag.show_terms, [("[bold]", 1.5)]) == ["term    weight", "[bold]     1.5"]
    card = Card("[red]", None, "folders", ["x"], title="[bold]Title", licence="[link]")
    assert printed(corpora.show_fetched, card, "/a/[b]")[0] == "corpus   [red]: [bold]Title"


def test_topics_come_the_largest_first_and_equals_by_name():
    manifest = {
        "topics": ["c", "a", "b"],
        "train_sizes": [1, 1, 5],
        "train_documents": 10,
        "facts": {"stopped": ["x", "y", "z"]},
    }
    lines = printed(tag.show_topics, manifest, as_json=False)
    assert [line.split() for line in lines[1:]] == [
        ["b", "5", "0.5", "z"],
        ["a", "1", "0.1", "y"],
        ["c", "1", "0.1", "x"],
    ]


def test_words_stand_left_and_lines_have_no_trailing_spaces(tmp_path):
    cards = [Card(name, tmp_path, "folders", [name], urls=["https://example.org/" + name]) for name in ("a", "b" * 30)]
    lines = printed(corpora.show_corpora, [(cards[0], tmp_path), (cards[1], None)])
    assert lines == [line.rstrip() for line in lines]
    assert lines[1].index(str(tmp_path)) == lines[0].index("where") == lines[2].index("not here; ")


def test_a_study_prints_what_varies_and_the_recipe_to_take_and_writes_both(tmp_path):
    def trial(expected, sparsity, **learner):
        recipe = Recipe("mine", features={"min_df": 2}, learner={"tau_neg": -0.5, **learner})
        quality = {"ALL": 0.75, "RARE": float("nan"), EXPECTED: expected}
        return Trial(recipe, {"macro_average_precision": quality, "average_sparsity": {"ALL": sparsity}})

    trials = [trial(0.75, 462.0, tau_pos=20.0), trial(0.7499, 400.0, tau_pos="prevalence", kappa=-10.0)]
    lines = printed(train.show_trials, trials, trials[1], Stages(), tmp_path)
    assert lines[1].split()[:2] == ["20", "-"]
    assert lines[2].split()[:2] == ["prevalence", "-10"]
    assert "The sparsest that ranks as well as the best over EXPECTED: tau_pos=prevalence, kappa=-10.0" in lines
    table = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert table[2].startswith("| 20 | - | 0.7500 |")
    assert read_recipe(tmp_path / "recipe.toml").learner == trials[1].recipe.learner


@pytest.mark.parametrize("n_topics", [3, 30])
def test_a_corpus_page_shows_the_ends_of_a_long_list_of_topics(n_topics):
    from textcat.documents import Corpus, Document

    documents = [
        Document(f"{topic}-{k}", {"body": "x"}, (f"t{topic:02}",))
        for topic in range(n_topics)
        for k in range(n_topics - topic)
    ]
    lines = printed(corpora.show_corpus, Corpus.from_documents("long", documents), 100)
    shown = [line.split()[0] for line in lines if line.startswith("t") and line[1].isdigit()]
    order = [f"t{topic:02}" for topic in range(n_topics)]
    assert shown == (order if n_topics == 3 else order[:5] + order[-5:])


# --- tables ---


def test_the_band_table_has_a_column_per_band_like_the_papers():
    assert shown(measure.band_rows(EVALUATION)) == [
        "                                       ALL  TOP1",
        "macro-averaged precision (MAP)        .875  .750",
        "average sparsity (support documents)    30    20",
        "macro F1                              .750  .500",
        "micro F1                              .667  .500",
        "topics                                   2     1",
        "left out: no test positive               1     0",
    ]


def test_the_band_table_leaves_out_lines_that_say_nothing():
    evaluation = evaluate(SCORES[:, :2], LABELS[:, :2], ["mid", "big"], [4, 8], 16, spec="ALL")
    titles = [line.split("  ")[0] for line in shown(measure.band_rows(evaluation))]
    assert titles[1:] == ["macro-averaged precision (MAP)", "macro F1", "micro F1", "topics"]


def test_a_band_without_a_topic_to_count_says_so():
    evaluation = evaluate(SCORES, LABELS, ["mid", "big", "none"], [4, 8, 2], 16, spec="LAST1")
    assert shown(measure.band_rows(evaluation))[1].split("  ")[-1] == "no topic"


def test_every_measure_can_have_a_line():
    titles = [line.split("  ")[0] for line in shown(measure.band_rows(EVALUATION, every_measure=True))]
    assert titles[1:] == [
        "macro-averaged precision (MAP)",
        "macro R-precision",
        "macro P@10",
        "macro nDCG",
        "average sparsity (support documents)",
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
    lines = shown(measure.band_rows(replace(EVALUATION, bands=(band, other))))
    place = next(place for place, line in enumerate(lines) if line.startswith("micro F1"))
    assert re.split("  +", lines[place + 1].strip()) == ["95 % interval", ".500 to .750", "-"]
    assert sum("interval" in line for line in lines) == 1


def test_models_stand_side_by_side_with_what_the_tests_say():
    assert shown(measure.measure_rows(COMPARISON, ["A", "B"])) == [
        "band   measure          A         B  B - A   95 % interval  p docs  p topics",
        "ALL    MAP           .500      .750  +.250  -.100 to +.600   .0400     .5000",
        "ALL    micro F1      .500      .250  -.250  -.500 to +.000   .0400         -",
        "LAST1  macro F1  no topic  no topic      -               -       -         -",
    ]


def test_topics_that_differ_most_stand_first():
    assert shown(measure.difference_rows(COMPARISON, ["A", "B"])) == [
        "topic  train  test      A      B  B - A",
        "[b]        3     2   .500  1.000  +.500",
        "a          1     1  1.000   .750  -.250",
    ]
    assert len(shown(measure.difference_rows(COMPARISON, ["A", "B"], 1))) == 2


def test_the_topic_table_goes_from_the_largest_topic_down_and_marks_topics_without_a_positive():
    assert shown(measure.topic_rows(EVALUATION)) == [
        "topic   train  test  precision  recall     F1           AP  prevalence  tau_pos  support  shuffled  stopped",
        "big[0]      8     2       .500    .500   .500         .750       .5000        -       20        no  converged",
        "mid         4     2      1.000   1.000  1.000        1.000       .2500      1.5       10       yes  converged",
        "none        2     0          -       -      -  no positive       .1250        2       60       yes  epochs",
    ]


def test_facts_are_printed_as_far_as_a_line_has_room_and_the_others_named():
    lines = shown(measure.topic_rows(EVALUATION), needed=7, width=80)
    assert lines[0].split()[-3:] == ["AP", "prevalence", "tau_pos"]
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1] == "(no room for support, shuffled, stopped: widen the terminal, or see --json)"
    assert shown(measure.topic_rows(EVALUATION), needed=7, width=20)[0].split()[-1] == "AP"
    assert shown(measure.topic_rows(EVALUATION), needed=7, width=200) == shown(measure.topic_rows(EVALUATION))


@given(st.integers(1, 60))
def test_a_narrow_terminal_cuts_nothing_off(width):
    rows = [{name: row[name] for name in ("topic", "precision", "AP")} for row in measure.topic_rows(EVALUATION)]
    assert shown(rows, width=width, force_terminal=True, color_system=None) == shown(rows)


def test_a_last_column_of_words_is_wrapped_on_a_terminal_alone():
    rows = [{"n": 12, "title": "one two three four five six"}, {"n": 3, "title": "seven"}]
    assert shown(rows, width=24, force_terminal=True, color_system=None) == [
        "n   title",
        "12  one two three four",
        "    five six",
        "3   seven",
    ]
    assert shown(rows, width=24)[1] == "12  one two three four five six"


def test_of_single_labels_the_accuracy_is_printed_and_the_topics_that_are_mistaken_most():
    evaluation = replace(EVALUATION, accuracy=0.5, confusion=(("big", "big", 9), ("big", "none", 3), ("mid", "big", 2)))
    assert printed(measure.show_evaluation, evaluation)[-4:] == [
        "accuracy .500, over the documents that have a topic",
        "topic  got   documents",
        "big    none          3",
        "mid    big           2",
    ]


def test_colour_and_bold_type_are_for_terminals_only():
    assert "\x1b[" in "".join(shown(measure.band_rows(EVALUATION), force_terminal=True, color_system="standard"))
    assert "\x1b[" not in "".join(shown(measure.band_rows(EVALUATION)))


def test_the_stage_table_adds_up_the_seconds_and_has_the_peak_memory():
    table = tables.stage_rows({"read": 0.5, "train": 1.25}, peak_memory=412_300_000)
    assert shown(table) == [
        "stage        seconds",
        "read            0.50",
        "train           1.25",
        "total           1.75",
        "peak memory   412 MB",
    ]
    assert shown(tables.stage_rows({"read": 1.0}))[-1].startswith("total")
