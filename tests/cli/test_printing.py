"""What commands print: tables whole, names as they are, lines without trailing spaces."""

from types import SimpleNamespace

import numpy as np
from evaluations import EVALUATION
from hypothesis import given
from hypothesis import strategies as st
from printed_tables import printed, shown

from textcat.cli import corpora, evaluate, models, printing
from textcat.corpus.cards import Card
from textcat.model.decisions import Decisions


def test_names_that_look_like_markup_are_printed_as_they_are():
    assert printed(models.show_terms, [("[bold]", 1.5)], "text") == ["term    weight", "[bold]     1.5"]
    card = Card("[red]", None, "folders", ["x"], title="[bold]Title", licence="[link]")
    assert printed(corpora.show_fetched, card, "/a/[b]")[0] == "corpus   [red]: [bold]Title"


def test_topics_come_the_largest_first_and_equals_by_name():
    facts = {"end": ["x", "y", "z"]}
    manifest = SimpleNamespace(topics=["c", "a", "b"], train_sizes=[1, 1, 5], train_documents=10, facts=facts, names={})
    tagger = SimpleNamespace(decisions=Decisions(np.array([0.25, -1.5, 2.0])), promises={})
    lines = printed(models.show_topics, manifest, tagger, "text")
    assert [line.split() for line in lines[1:]] == [
        ["b", "5", "0.5", "2", "z"],
        ["a", "1", "0.1", "-1.5", "y"],
        ["c", "1", "0.1", "0.25", "x"],
    ]


def test_words_stand_left_and_lines_have_no_trailing_spaces(tmp_path):
    cards = [Card(name, tmp_path, "folders", [name], urls=["https://example.org/" + name]) for name in ("a", "b" * 30)]
    lines = printed(corpora.show_corpora, [(cards[0], tmp_path), (cards[1], None)])
    assert lines == [line.rstrip() for line in lines]
    assert lines[1].index(str(tmp_path)) == lines[0].index("where") == lines[2].index("not here; ")


def test_facts_are_printed_as_far_as_a_line_has_room_and_the_others_named():
    lines = shown(evaluate.topic_rows(EVALUATION), needed=7, width=80)
    assert lines[0].split()[-3:] == ["AP", "prevalence", "tau_pos"]
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1] == "(no room for support, shuffled, stopped: widen the terminal, or see --as json)"
    assert shown(evaluate.topic_rows(EVALUATION), needed=7, width=20)[0].split()[-1] == "AP"
    assert shown(evaluate.topic_rows(EVALUATION), needed=7, width=200) == shown(evaluate.topic_rows(EVALUATION))


def test_a_long_topic_is_wrapped_so_that_its_figures_have_room():
    name = " ".join(["foreign trade"] * 20)
    terminal = {"width": 100, "force_terminal": True, "color_system": None}
    rows = [{**row, "topic": name if i == 1 else row["topic"]} for i, row in enumerate(evaluate.topic_rows(EVALUATION))]
    lines, plain = shown(rows, needed=7, **terminal), shown(evaluate.topic_rows(EVALUATION), needed=7, **terminal)
    assert max(map(len, lines[:-1])) <= 100
    assert lines[0].split() == plain[0].split()[: len(lines[0].split())]
    assert "AP" in lines[0].split()
    assert " ".join(line[:40].strip() for line in lines if line.startswith(("foreign", "trade"))) == name


@given(st.integers(1, 60))
def test_a_narrow_terminal_cuts_nothing_off(width):
    rows = [{name: row[name] for name in ("topic", "precision", "AP")} for row in evaluate.topic_rows(EVALUATION)]
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


def test_colour_and_bold_type_are_for_terminals_only():
    assert "\x1b[" in "".join(shown(evaluate.band_rows(EVALUATION), force_terminal=True, color_system="standard"))
    assert "\x1b[" not in "".join(shown(evaluate.band_rows(EVALUATION)))


def test_the_stage_table_adds_up_the_seconds_and_has_the_peak_memory():
    (table, *_) = printing.stage_table({"read": 0.5, "train": 1.25}, peak_memory=412_300_000)
    assert shown(table) == [
        "stage        seconds",
        "read            0.50",
        "train           1.25",
        "total           1.75",
        "peak memory   412 MB",
    ]
    assert shown(printing.stage_table({"read": 1.0}).rows)[-1].startswith("total")
