"""The command `compare`: models side by side, with tests of significance; and the conditions of a new model."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option

from textcat.cli import common, terminal
from textcat.cli.configuration import alternatives

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.evaluation.evaluation import Evaluation
    from textcat.evaluation.significance import Comparison, GateResult

_LARGEST = 10  # number of topics listed that differ most between models


@alternatives("table topics", "table fail_if")
@common.with_options(read=common.corpus_reader)
def compare(
    models: Annotated[list[Path], Argument(help="Folders of two or more trained models; with --table also of one.")],
    read: common.CorpusReader,
    corpus: Annotated[
        str | None,
        Option(help="The corpus.", show_default="that of the first model", autocompletion=common.complete_corpus),
    ] = None,
    table: Annotated[
        bool,
        Option(
            "--table",
            help="Print a row per model and band, with intervals, instead of differences; each model is measured on "
            "its own corpus, unless --corpus names one.",
        ),
    ] = False,
    fail_if: common.FailIf = None,
    strict: common.Strict = False,
    topics: common.PerTopic = False,
    band: common.Bands = None,
    form: common.Form = "text",
    labelled_only: common.LabelledOnly = False,
    bootstrap: Annotated[int, Option(min=100, help="Resamples of the documents.")] = 1000,
) -> None:
    """Compare models with the first of them on a corpus' test documents, by tests of significance.

    With --fail-if, the exit code is 4 if the second model fails by a condition.
    """
    from textcat.evaluation.significance import add_intervals
    from textcat.model import compare as comparing
    from textcat.model import storage
    from textcat.model.measure import evaluate_tagger

    if not table and not 2 <= len(models) <= 26:
        raise BadParameter("give 2 to 26 models: they are named by letters")
    if file := next(filter(Path.is_file, models), None):
        raise BadParameter(
            f"{file} is a file, not the folder of a model: to compare models on it, give --corpus {file}"
        )
    if table and topics:
        raise BadParameter("--table has no topics: leave out one of the two")
    if fail_if and (table or len(models) != 2):
        raise BadParameter("--fail-if is of two models, an old and a new one, and not for --table")
    if strict and not fail_if:
        raise BadParameter("--strict is of --fail-if: name a condition")
    stages = terminal.new_stages()
    if table:
        rows: list[dict[str, Any]] = []
        for model in models:
            tagger = storage.load(model, with_rules=False)
            documents = common.test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
            evaluation = evaluate_tagger(tagger, documents, bands=band, stages=stages)
            if evaluation.sample is not None:
                evaluation = add_intervals(evaluation, n_resamples=bootstrap)
            rows += rows_of_model(model, tagger.facts.recipe.title, documents.name, evaluation)
        show_models(terminal.console(), rows, form)
        return
    taggers = comparing.shared_topics(models)
    # mistakes in conditions are reported before the corpus is read
    comparing.read_gates(taggers[0], fail_if or (), band)
    documents = common.test_corpus(read, corpus, taggers[0], stages, labelled_only=labelled_only)
    compared = comparing.compare(
        taggers, documents, bands=band, fail_if=fail_if or (), strict=strict, n_resamples=bootstrap, stages=stages
    )
    show_comparison(terminal.console(), compared, models, documents.name, form, per_topic=topics)
    exit_if_failed(compared.gates)


def exit_if_failed(gates: "Sequence[GateResult]") -> None:
    """Exit with code 4 if a model fails by a condition, and say by which."""
    if failed := [repr(gate.gate) for gate in gates if gate.failed]:
        terminal.say(f"the new model fails by {', '.join(failed)}.")
        raise Exit(4)


def show_comparison(
    console: "Console", compared: "Comparison", folders: Sequence[Path], corpus: str, form: str, *, per_topic: bool
) -> None:
    """Print models, named A, B and so on, side by side, and the topics that differ most between the models.

    If `per_topic` is set, tables have all topics.
    """
    from textcat.cli.printing import Facts, Note, Table, show

    names = [string.ascii_uppercase[number] for number in range(len(folders))]
    tables = [measure_rows(compared, names, other) for other in range(1, len(names))]
    show(
        console,
        form,
        {"models": list(map(str, folders)), "corpus": corpus, **compared.as_dict()},
        Facts(dict(zip(names, folders, strict=True))),
        f"{corpus}, {compared.test_documents} test documents",
        *map(Table, tables),
        Table(difference_rows(compared, names, None if per_topic else _LARGEST)),
        *map(Note, comparison_notes(compared, len(names))),
        Table(gate_rows(compared.gates)),
        rows=partial(_plain_measures, compared, names),
    )


def gate_rows(gates: "Sequence[GateResult]") -> list[dict[str, Any]]:
    """Return a row per condition: the measured value, its interval, the limit, and whether the new model passes."""
    from textcat.cli.printing import format_figure, format_interval

    rows = []
    for gate in gates:
        sign = "+" if gate.of_difference else ""
        rows.append(
            {
                "fails if": gate.gate,
                "measured": format_figure(gate.measured, 4, sign=sign),
                f"{100 * gate.level:.3g} % interval": format_interval(gate.interval, sign),
                "limit": format_figure(gate.limit, 4, sign=sign),
                "result": "FAILS" if gate.failed else "holds",
            }
        )
    return rows


def _plain_measures(compared: "Comparison", names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per band (a group of topics), measure and model: its value, and the difference from the first."""
    rows = []
    for row in compared.measures:
        for name, value, difference in zip(names, row.values, (None, *row.differences), strict=True):
            low, high = difference.interval if difference else (None, None)
            figures = {"difference": difference and difference.difference, "low": low, "high": high}
            figures |= {name: difference and getattr(difference, name) for name in ("p_documents", "p_topics")}
            rows.append({"band": row.band, "measure": row.measure, "model": name, "value": value, **figures})
    return rows


def rows_of_model(folder: Path, recipe: str, corpus: str, evaluation: "Evaluation") -> list[dict[str, Any]]:
    """Return a row per band (a group of topics such as ALL) of a model.

    A row says where the model was measured, and has its main measures and their intervals.
    """
    where = {"model": str(folder), "recipe": recipe, "corpus": corpus}
    where |= {"measured on": f"{evaluation.test_documents} {evaluation.measured_on}"}
    rows = []
    for band in evaluation.bands:
        row: dict[str, Any] = {**where, "band": band.band, "topics": band.topics}
        for name, title in evaluation.titles().items():
            if title.is_main and name != "mean_support":
                row[title.column] = band[name]
                row[f"{title.column} low"], row[f"{title.column} high"] = band.intervals.get(name) or (None, None)
        rows.append(row)
    return rows


def show_models(console: "Console", rows: Sequence[Mapping[str, Any]], form: str) -> None:
    """Print a row per model and band (a group of topics such as ALL); the rows are those of `rows_of_model`."""
    from textcat.cli.printing import Table, format_figure, format_interval, show

    names = [name.removesuffix(" low") for name in rows[0] if name.endswith(" low")]
    shown = []
    for row in rows:
        cells = {title: row[title] for title in ("corpus", "model", "band", "topics")}
        for name in names:
            bounds = (row[f"{name} low"], row[f"{name} high"]) if row.get(f"{name} low") is not None else None
            cells |= {name: format_figure(row.get(name)), f"{name} 95 %": format_interval(bounds)}
        shown.append(cells)
    note = "Intervals of 95 %: the bootstrap over test documents; MAP: mean average precision."
    show(console, form, list(rows), Table(shown), note, rows=lambda: rows)


def comparison_notes(compared: "Comparison", n_models: int) -> list[str]:
    """Return sentences that explain the p-values of a comparison, one or two for each table."""
    of_documents = f"Intervals and p docs: {compared.n_resamples} resamples of the documents, the same for all models."
    if not compared.topics:
        return [f"{of_documents} No p-value is corrected for the number of comparisons."]
    corrected = "corrected p" if n_models == 2 else "p B and so on"
    return [
        f"MAP: mean average precision. {of_documents} p topics: the signs of the topics' differences drawn by chance, "
        "10000 times. Neither is corrected for the number of comparisons.",
        f"The table of topics has average precision, sorted by {corrected}: a t-test of the difference, its standard "
        "error from the resamples, corrected by Holm's method over topics.",
    ]


def measure_rows(compared: "Comparison", names: Sequence[str], other: int = 1) -> list[dict[str, str]]:
    """Return a row per band (a group of topics) and measure, with the values of the first model and of number `other`.

    A row also has the difference of the two values, the interval of this difference, and p-values. `names` are the
    names of the models.
    """
    from textcat.cli import printing
    from textcat.evaluation.evaluation import TITLES

    titles = (names[0], names[other], f"{names[other]} - {names[0]}", "95 % interval", "p docs", "p topics")
    rows = []
    for row in compared.measures:
        of_model = row.differences[other - 1]
        difference, interval, *p_values = astuple(of_model) if of_model else [None] * 4
        values = [printing.format_figure(row.values[column], undefined="no topic") for column in (0, other)]
        differing = (
            printing.format_figure(difference, sign="+"),
            printing.format_interval(interval, "+"),
            *map(printing.format_p_value, p_values),
        )
        rows.append((row.band, TITLES[row.measure].column, *values, *differing))
    return printing.named_rows(("band", "measure", *titles), rows)


def difference_rows(compared: "Comparison", names: Sequence[str], n: int | None = None) -> list[dict[str, Any]]:
    """Return a row per topic with each model's average precision, the differences, and the corrected p-values.

    There are rows for the first n topics, or for all topics if n is None. `names` are the names of the models.
    """
    from textcat.cli import printing

    rows = []
    for row in compared.topics[:n]:
        figures = (
            *map(printing.format_figure, row.average_precision),
            *(printing.format_figure(value, sign="+") for value in row.differences),
            *map(printing.format_p_value, row.p_values),
        )
        rows.append((row.topic, row.train_positives, row.test_positives, *figures))
    differences = (f"{name} - {names[0]}" for name in names[1:])
    p_values = ("corrected p",) if len(names) == 2 else (f"p {name}" for name in names[1:])
    return printing.named_rows(("topic", "train", "test", *names, *differences, *p_values), rows)
