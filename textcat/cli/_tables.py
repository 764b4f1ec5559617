"""Results of the commands → tables for people, or JSON for programs: what all share, and a function per command."""

from __future__ import annotations

import json
import os
import re
import string
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from textcat.cli import common
from textcat.evaluation import export
from textcat.evaluation.evaluation import TITLES, Evaluation, MeasuredOn
from textcat.evaluation.export import cell_text, markdown_table
from textcat.folders import write_atomically
from textcat.progress import Stages, peak_memory
from textcat.recipe import Recipe
from textcat.settings import format_value

if TYPE_CHECKING:
    from textcat.corpus.cards import Card
    from textcat.documents import Corpus
    from textcat.evaluation.significance import Comparison
    from textcat.model.tagger import Tagger
    from textcat.papers.experiments import Experiment, Result
    from textcat.tagging.summary import Summary
    from textcat.training.cross_validation import Trial
    from textcat.training.update import UpdateResult

_ENDS = 5  # of the first and last topics of a corpus that are printed
_LARGEST = 10  # of the topics that differ most between models, and of the pairs of topics that are mistaken most
_MOST_TRIALS = 30  # of a study; a file has them all


class Figure(str):
    """A cell of a column of numbers, which stands right."""


def show(console: Console, rows: Sequence[Mapping[str, Any]], *, needed: int | None = None) -> None:
    """Print rows that have the same keys, which are the headers; see `_show_columns`."""
    _show_columns(console, [(title, [row[title] for row in rows]) for title in rows[0]] if rows else [], needed=needed)


def _show_columns(console: Console, columns: Sequence[tuple[str, Sequence[Any]]], *, needed: int | None = None) -> None:
    """Print a table; no cell is cut off, on a terminal, in a pipe or in a file.

    Columns that hold words stand left. Where a line has no room for all of them, the last are left out, and named, but
    never the first `needed` ones (by default all); a last column of words is wrapped on a terminal.
    """
    table = [_Column(title, cells) for title, cells in columns]
    left_out: list[str] = []
    while needed is not None and len(table) > needed and sum(column.width + 2 for column in table) - 2 > console.width:
        left_out.insert(0, table.pop().title)
    if not table:
        return

    def print_line(cells: Sequence[str], style: str = "") -> None:
        aligned = (column.aligned(cell) for column, cell in zip(table, cells, strict=True))
        console.print(Text("  ".join(aligned).rstrip(), style), soft_wrap=True)

    table[0].is_words, last = True, table[-1]
    room = console.width - sum(column.width + 2 for column in table[:-1])
    if console.is_terminal and last.is_words and room >= max(20, cell_len(last.title)):
        last.width = min(last.width, room)
    for header in zip_longest(*(column.header for column in table), fillvalue=""):
        print_line(header, "bold")
    for *cells, words in zip(*(column.cells for column in table), strict=True):
        first, *others = textwrap.wrap(words, last.width) if cell_len(words) > last.width else [words]
        print_line([*cells, first])
        for piece in others:
            print_line([""] * len(cells) + [piece])
    if left_out:
        print_text(console, f"(no room for {', '.join(left_out)}: widen the terminal, or see --json)")


class _Column:
    """A column of a table as text."""

    def __init__(self, title: str, cells: Sequence[Any]):
        self.title, self.header = title, title.split("\n")
        self.cells = [common.harmless(cell_text(cell)) for cell in cells]
        self.is_words = any(isinstance(cell, (str, os.PathLike)) and type(cell) is not Figure for cell in cells)
        self.width = max(map(cell_len, [*self.header, *self.cells]))

    def aligned(self, text: str) -> str:
        padding = " " * (self.width - cell_len(text))
        return text + padding if self.is_words else padding + text


def format_figure(value: float | None, decimals: int = 3, undefined: str = "-", sign: str = "") -> Figure:
    """Return .751 for 0.751, as tables of precision have it."""
    return Figure(undefined if value is None else re.sub(r"^([+-]?)0\.", r"\1.", f"{value:{sign}.{decimals}f}"))


def _interval(bounds: tuple[float, float] | None, sign: str = "") -> Figure:
    return Figure("-" if bounds is None else " to ".join(format_figure(bound, sign=sign) for bound in bounds))


def print_text(console: Console, text: str) -> None:
    console.print(common.harmless(text), soft_wrap=True, markup=False)


def wrapped_text(console: Console, text: str, indent: str = "") -> str:
    width = max(40, min(console.width, 100)) - len(indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), indent)


def _facts(console: Console, facts: Mapping[str, Any]) -> None:
    """Print a line for each fact that is there."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            print_text(console, f"{name:{width}}  {value}")


def print_json(console: Console, value: Any, indent: int | None = 1) -> None:
    known = json.loads(json.dumps(value), parse_constant=lambda _: None)  # NaN is no number in JSON
    console.file.write(json.dumps(known, ensure_ascii=False, indent=indent) + "\n")


def _rows(console: Console, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    (print_json if as_json else show)(console, rows)


def _named(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """Return rows of cells as rows by title."""
    names = list(titles)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _largest_first(rows: Iterable[dict[str, Any]], size: str = "train") -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row[size], row["topic"]))


def training(
    console: Console, tagger: Tagger, corpus: Corpus, folder: Path, stages: Stages, *, per_topic: bool, as_json: bool
) -> None:
    """Print the bands, and which documents they are of; what did not converge, the model, and what it cost."""
    from textcat.training.train import unevaluated_topics

    late = [topic for topic, why in zip(tagger.topics, tagger.facts["stopped"], strict=True) if "not converge" in why]
    evaluation, unevaluated = tagger.evaluation, unevaluated_topics(corpus)
    assert evaluation is not None
    if as_json:
        run = {"model": str(folder), "corpus": tagger.corpus, "not_converged": late}
        console.file.write(export.json_text(evaluation, **run, **cost_of_stages(stages)))
        return
    if evaluation.measured_on is not MeasuredOn.TEST:
        why = ": none of the test documents has a topic of the model" if corpus.test else " has no test documents"
        measured = f"by cross-validation on its {tagger.train_documents} training documents"
        if evaluation.measured_on is MeasuredOn.SAMPLE:
            measured = f"on {evaluation.test_documents} of its {tagger.train_documents} {evaluation.measured_on}"
        print_text(console, f"Corpus {tagger.corpus}{why}: {measured},\n")
    quality(console, evaluation, per_topic=per_topic)
    console.print()
    show(console, stage_rows(stages.seconds, peak_memory()))
    console.print()
    if unevaluated:
        print_text(console, unevaluated)
    if late:
        print_text(console, f"Did not converge: {', '.join(late)}.")
    if not tagger.single and len(tagger.topics) > 1 and all(len(each.topics) == 1 for each in corpus.train):
        print_text(
            console,
            "Every training document has exactly one topic: with --set tags.strategy=single, so has every tagged one.",
        )
    print_text(console, f"Model: {folder}")


def updated(console: Console, result: UpdateResult, stages: Stages, *, per_topic: bool, as_json: bool) -> None:
    """Print what an update has changed: how many documents and topics before and after, and what was measured."""
    rows, evaluation = result.rows(), result.tagger.evaluation
    if as_json:
        ids = {name: list(getattr(result, name)) for name in ("added", "corrected", "removed")}
        print_json(console, {"model": str(result.folder), **ids, "topics": rows, **cost_of_stages(stages)})
        return
    n_changed = {"added": len(result.added), "corrected": len(result.corrected), "removed": len(result.removed)}
    said = ", ".join(f"{n:,} {what}" for what, n in n_changed.items() if n)
    print_text(console, f"Documents: {said}; {result.tagger.train_documents:,} are trained on.\n")
    shown = [
        {
            "topic": row["topic"],
            **{f"documents\n{when}": row[when] for when in ("before", "after")},
            **{
                f"{title}\n{when}": format_figure(row[f"{measure}_{when}"])
                for title, measure in (("AP", "ap"), ("F1", "f1"))
                for when in ("before", "after")
            },
        }
        for row in rows
        if per_topic or row["before"] != row["after"]
    ]
    show(console, shown, needed=3)
    if left := len(rows) - len(shown):
        those = "a topic has" if left == 1 else f"{left:,} topics have"
        print_text(
            console, f"{chr(10) if shown else ''}{those[0].upper()}{those[1:]} as many documents as before (--topics)."
        )
    if evaluation is not None:
        print_text(console, f"Measured on {evaluation.test_documents:,} {evaluation.measured_on}.")
    console.print()
    show(console, stage_rows(stages.seconds, peak_memory()))
    print_text(console, f"\nModel: {result.folder}")


def undone(console: Console, folder: Path, *, as_json: bool) -> None:
    """Print which model was brought back."""
    if as_json:
        print_json(console, {"model": str(folder)})
    else:
        print_text(console, f"The model {folder} is what it was before.")


def cost_of_stages(stages: Stages) -> dict[str, Any]:
    return {"seconds": stages.seconds, "peak_memory": peak_memory()}


def quality(
    console: Console,
    evaluation: Evaluation,
    *,
    form: str = "",
    per_topic: bool = False,
    every_measure: bool = False,
) -> None:
    """Print an evaluation: as tables, also in Markdown or LaTeX, or as JSON or CSV for programs."""
    if form in ("markdown", "latex"):
        tables: list[Any] = [topic_rows(evaluation)] * per_topic + [band_rows(evaluation, every_measure=every_measure)]
        console.file.write(export.formatted_tables(tables, form))  # type: ignore[arg-type]
        return
    if form:
        console.file.write(export.json_text(evaluation) if form == "json" else export.csv_lines(evaluation))
        return
    if per_topic and evaluation.topics:
        show(console, topic_rows(evaluation), needed=7)
        console.print()
    show(console, band_rows(evaluation, every_measure=every_measure))
    notes = _notes(evaluation)
    if per_topic and not evaluation.topics:
        notes.append("There is no table per topic of a model of many topics.")
    if notes:
        print_text(console, "\n" + "\n".join(notes))
    if evaluation.confusion is not None:
        accuracy = format_figure(evaluation.accuracy, undefined="not defined: no document has a topic")
        print_text(console, f"\naccuracy {accuracy}, over the documents that have a topic")
        wrong = [{"topic": topic, "got": got, "documents": n} for topic, got, n in evaluation.confusion if topic != got]
        show(console, wrong[:_LARGEST])


def band_rows(evaluation: Evaluation, *, every_measure: bool = False) -> list[dict[str, str]]:
    """Return the averages with a column per band, as Table 2 of Li et al. (2002) has them; sparsity only if known.

    Under a measure stands its interval, if it has been asked for. A line with the topics left out for lack of a test
    positive appears if there are any.
    """
    bands, rows = evaluation.bands, []

    def add(title: str, cells: Iterable[Figure]) -> None:
        rows.append({"": title, **{row.band: cell for row, cell in zip(bands, cells, strict=True)}})

    for measure, title in evaluation.titles().items():
        if every_measure or title.is_main:
            add(title.line, (format_figure(row[measure], title.decimals, undefined="no topic") for row in bands))
            if any(measure in row.intervals for row in bands):
                add("  95 % interval", (_interval(row.intervals.get(measure)) for row in bands))
    for count in ("documents", "pairs", "topics"):
        if any(getattr(row, count) is not None for row in bands):
            add(count, (Figure(getattr(row, count)) for row in bands))
    if any(row.left_out for row in bands):
        add("left out: no test positive", (Figure(row.left_out) for row in bands))
    return rows


def _notes(evaluation: Evaluation) -> list[str]:
    """Return what the figures of documents' first topics leave out or take in."""
    notes: dict[str, int | None] = {
        "{} of {} documents have no topic, and are left out.": evaluation.without_topic,
        "{} pairs of a document and a topic are of topics that the model does not know: they count as not found.": (
            evaluation.unknown
        ),
    }
    return [text.format(n, evaluation.test_documents) for text, n in notes.items() if n]


def topic_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return a row per topic, from the largest in training to the smallest, with what training knows of it."""
    facts, rows = _printed_facts(export.fact_names(evaluation)), []
    for row in evaluation.topics:
        quality = (
            *map(format_figure, (row.precision, row.recall, row.f1)),
            format_figure(row.average_precision, 3, "no positive"),
        )
        known = [_short(row.facts.get(name)) for name in facts]
        rows.append(
            (row.topic, row.train_positives, row.test_positives, *quality, format_figure(row.prevalence, 4), *known)
        )
    titles = ("topic", "train", "test", "precision", "recall", "F1", "AP", "prevalence", *facts)
    return _largest_first(_named(titles, rows))


def stage_rows(seconds: Mapping[str, float], peak_memory: int | None = None) -> list[dict[str, str]]:
    """Return the seconds each stage took, their sum, and the peak memory."""
    cells = {stage: f"{taken:.2f}" for stage, taken in (*seconds.items(), ("total", sum(seconds.values())))}
    if peak_memory is not None:
        cells["peak memory"] = f"{peak_memory / 1e6:.0f} MB"
    return [{"stage": stage, "seconds": Figure(cell)} for stage, cell in cells.items()]


def _printed_facts(names: Iterable[str]) -> list[str]:
    """Return the names of the facts that tables print; JSON and CSV have the margins, too."""
    return [name for name in names if "margin" not in name and name != "certificate"]


def _short(fact: Any) -> Any:
    """Return a fact without its explanation: ``converged: no update in epoch 8`` is ``converged``."""
    return fact.partition(":")[0] if isinstance(fact, str) else fact


def comparison(
    console: Console, compared: Comparison, folders: Sequence[Path], corpus: str, *, form: str = "", per_topic: bool
) -> None:
    """Print models side by side, named A, B and so on, and the topics they differ in most; or JSON for programs."""
    if form == "json":
        console.file.write(export.json_text(compared, models=list(map(str, folders)), corpus=corpus))
        return
    names = [string.ascii_uppercase[place] for place in range(len(folders))]
    if form:
        tables: list[Any] = [_named(("model", "folder"), zip(names, folders, strict=True))]
        tables += (measure_rows(compared, names, other) for other in range(1, len(names)))
        tables.append(difference_rows(compared, names, None if per_topic else _LARGEST))
        console.file.write(export.formatted_tables(tables, form))  # type: ignore[arg-type]
        return
    _facts(console, dict(zip(names, folders, strict=True)))
    print_text(console, f"\n{corpus}, {compared.test_documents} test documents\n")
    for other in range(1, len(names)):
        show(console, measure_rows(compared, names, other))
        console.print()
    resamples = f"Intervals and p docs: {compared.n_resamples} resamples of the documents,\nthe same for all models."
    if not compared.topics:
        print_text(console, f"{resamples} No p-value is corrected for the number of comparisons.")
        return
    show(console, difference_rows(compared, names, None if per_topic else _LARGEST))
    print_text(
        console,
        f"\nMAP: macro-averaged precision. {resamples} p topics: the signs of the topics' differences drawn by\n"
        "chance, 10000 times. No p-value is corrected for the number of comparisons.",
    )


def measure_rows(compared: Comparison, names: Sequence[str], other: int = 1) -> list[dict[str, str]]:
    """Return a row per band and measure: its values for the first and another model, and how these differ."""
    titles = (names[0], names[other], f"{names[other]} - {names[0]}", "95 % interval", "p docs", "p topics")
    rows = []
    for row in compared.measures:
        found = row.differences[other - 1]
        difference, interval, *p_values = astuple(found) if found else [None] * 4
        values = [format_figure(row.values[place], undefined="no topic") for place in (0, other)]
        differing = (
            format_figure(difference, sign="+"),
            _interval(interval, "+"),
            *(format_figure(p, 4) for p in p_values),
        )
        rows.append((row.band, TITLES[row.measure].column, *values, *differing))
    return _named(("band", "measure", *titles), rows)


def difference_rows(compared: Comparison, names: Sequence[str], n: int | None = None) -> list[dict[str, Any]]:
    """Return the average precision of the n topics (by default all) that differ most between the models."""
    rows = []
    for row in compared.topics[:n]:
        figures = (
            *map(format_figure, row.average_precision),
            *(format_figure(value, sign="+") for value in row.differences),
        )
        rows.append((row.topic, row.train_positives, row.test_positives, *figures))
    return _named(("topic", "train", "test", *names, *(f"{name} - {names[0]}" for name in names[1:])), rows)


def archive(console: Console, summary: Summary, out: Path | None, *, as_json: bool = False) -> None:
    """Print what tagging an archive came to: counts, reasons, a row per topic, and what differs from training."""
    counts, before = summary.counts, summary.before
    drifting = [drift.topic for drift in summary.drifts]
    if as_json:
        run = {"records_before": before.counts.records, "read_as": summary.formats, "drift": drifting}
        cost = {"seconds": summary.seconds, "peak_memory": summary.memory}
        print_json(console, counts.as_dict() | run | cost | {"output": out and str(out), "shards": summary.shards})
        return
    if before.finished:
        print_text(console, f"{out} is finished: nothing was left to do.\n")
    by = {source.format: source.guess.by for source in summary.sources}
    formats = (f"{form} (by {by[form]})" if by.get(form) else form for form in summary.formats)
    rate = (counts.records - before.counts.records) / max(summary.seconds, 1e-9)
    share = f" ({counts.untagged / counts.tagged:.1%} of those tagged)" if counts.tagged else ""
    facts = {
        "documents": f"{counts.records:,}",
        "tagged": f"{counts.tagged:,}",
        "rejected": f"{counts.rejected:,}",
        "without a topic": f"{counts.untagged:,}{share}",
        "done before": f"{before.counts.records:,}" if before.counts.records else None,
        "read as": ", ".join(formats) or None,
        "seconds": f"{summary.seconds:.1f} ({rate:,.0f} documents/s)",
        "peak memory": f"{summary.memory / 1e6:,.0f} MB",
        "output": None if out is None else f"{out} ({summary.shards} shard{'s' * (summary.shards != 1)})",
    }
    _facts(console, facts)
    if counts.reasons:
        console.print()
        show(console, [{"rejected": n, "because": reason} for reason, n in counts.reasons.most_common()])
    if counts.topics:
        console.print()
        _topics_of_archive(console, summary, set(drifting))


def _topics_of_archive(console: Console, summary: Summary, drifting: set[str]) -> None:
    sizes, counts, train_documents = summary.train_sizes, summary.counts, summary.manifest["train_documents"]
    rows = (
        (topic, counts.topics[topic], counts.topics[topic] / counts.tagged, size / train_documents, drift)
        for topic, size in sizes.items()
        if (drift := "*" if topic in drifting else "") or counts.topics[topic]
    )
    table = _largest_first(_named(("topic", "documents", "rate", "in training", "drift"), rows), "documents")
    show(console, table)
    if len(table) < len(sizes):
        print_text(console, f"\n{len(sizes) - len(table)} of {len(sizes)} topics have no document.")
    if drifting:
        print_text(
            console,
            f"\n* {len(drifting)} of {len(sizes)} topics have more than three times, or less than a third of, the rate "
            "of training, beyond chance: the archive may be about other things than the training documents were.",
        )


def topics(console: Console, manifest: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a model's topics, the largest first."""
    sizes, facts = manifest["train_sizes"], manifest["facts"]
    prevalence = [size / manifest["train_documents"] for size in sizes]
    columns = zip(manifest["topics"], sizes, prevalence, *facts.values(), strict=True)
    rows = _largest_first(_named(("topic", "train", "prevalence", *facts), columns))
    if as_json:
        print_json(console, rows)
        return
    names = _printed_facts(list(rows[0])[1:])
    show(console, [{"topic": row["topic"], **{name: _short(row[name]) for name in names}} for row in rows], needed=3)


def model(console: Console, manifest: Mapping[str, Any], folder: Path, *, as_json: bool = False) -> None:
    """Print how a model was trained."""
    recipe = Recipe(name="", **manifest["recipe"])
    size = sum(path.stat().st_size for path in folder.iterdir())
    counts = {"topics": len(manifest["topics"]), "terms": manifest["features"]["n_terms"]}
    if as_json:
        names = ("format", "corpus", "train_documents", "recipe", "versions", "evaluation")
        known = {name: manifest.get(name) for name in names}
        print_json(console, {"model": str(folder), **known, **counts, "bytes": size})
        return
    facts = {
        "model": f"{folder} ({size / 1e6:.1f} MB, format {manifest['format']})",
        "corpus": f"{manifest['corpus']}, {manifest['train_documents']} training documents",
        **counts,
        "recipe": recipe.title,
        **{section: _settings(getattr(recipe, section)) for section in ("tokens", "features", "learner")},
        "made with": _settings(manifest["versions"], " "),
    }
    _facts(console, facts)
    if (measured := manifest.get("evaluation")) and measured["bands"]:
        print_text(console, f"\nMeasured after training, on {measured['test_documents']} {measured['measured_on']}:\n")
        show(console, band_rows(Evaluation.from_dict(measured)))


def _settings(values: Mapping[str, Any], between: str = "=") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None) or "defaults"


def topic_terms(console: Console, terms: Iterable[tuple[str, float]], *, as_json: bool = False) -> None:
    _rows(console, [{"term": term, "weight": weight} for term, weight in terms], as_json=as_json)


def corpora(console: Console, located: Iterable[tuple[Card, Path | None]], *, as_json: bool = False) -> None:
    """Print the known corpora, and where each is or how to get it."""
    rows = []
    for card, path in located:
        counts = {name: card.counts.get(name, None if as_json else "?") for name in ("documents", "topics")}
        fetch = f"not here; `textcat corpora fetch {card.name}`"
        way = f"{fetch} downloads it from {card.urls[0]}" if card.urls else f"{fetch} says how to get it"
        place = {"title": card.title, "path": path and str(path)} if as_json else {"where": path or way}
        rows.append({"corpus": card.name, **counts, **place})
    _rows(console, rows, as_json=as_json)


def fetched(console: Console, card: Card, path: Path) -> None:
    """Print where a corpus is, and its terms of use."""
    title = f"{card.name}: {card.title}"
    _facts(console, {"corpus": title, "licence": card.licence, "cite": card.citation, "at": path})


def corpus(console: Console, documents: Corpus, n_tokens: int, *, as_json: bool = False) -> None:
    """Print a corpus' counts, and its largest and smallest topics; as JSON all of them."""
    statistics = documents.statistics()
    sizes = zip(statistics.topics, statistics.train_positives.tolist(), statistics.test_positives.tolist(), strict=True)
    rows = _named(("topic", "train", "test"), sizes)
    if as_json:
        counts = {"documents": statistics.documents, "without_topic": statistics.without_topic, "tokens": n_tokens}
        print_json(console, {"corpus": documents.name, **counts, "topics": rows})
        return
    parts = ((part, n, statistics.without_topic[part]) for part, n in statistics.documents.items())
    show(console, _named(("part", "documents", "without topic"), parts))
    console.print()
    _facts(console, {"topics": len(rows), "tokens": f"{n_tokens} in train and test"})
    console.print()
    rates = map(float, statistics.prevalence)
    rows = _largest_first(row | {"prevalence": rate} for row, rate in zip(rows, rates, strict=True))
    show(console, rows if len(rows) <= 2 * _ENDS else rows[:_ENDS] + rows[-_ENDS:])
    if len(rows) > 2 * _ENDS:
        print_text(console, f"(the {_ENDS} largest and the {_ENDS} smallest of {len(rows)} topics)")


def recipes(console: Console, known: Sequence[Recipe], *, as_json: bool) -> None:
    rows = [{"recipe": one.name, "learner": one.learner.get("name", "paum"), "title": one.title} for one in known]
    _rows(console, rows, as_json=as_json)


def recipe(console: Console, one: Recipe, *, as_json: bool) -> None:
    """Print a recipe as a file that can be read again, with every setting and what it means."""
    if as_json:
        print_json(console, {"recipe": one.name, "title": one.title, "fields": [f._asdict() for f in one.fields()]})
        return
    lines, section = [f"title = {format_value(one.title)}"], ""
    for field in one.fields():
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        default = "none" if field.default is None else format_value(field.default)
        lines += ["", wrapped_text(console, f"{field.explanation} ({field.type}; default: {default})", "# ")]
        lines.append(f"# {field.name} =" if field.value is None else f"{field.name} = {format_value(field.value)}")
    print_text(console, "\n".join(lines))


def study(
    console: Console, trials: Sequence[Trial], chosen: Trial, stages: Stages, out: Path | None, *, as_json: bool = False
) -> None:
    """Print the recipes compared, the best first, and the one to take; write both to a folder if asked."""
    from textcat.training.tune import is_yardstick, to_toml

    varied = _varied([trial.recipe for trial in trials])
    rows = [
        {
            **{key: getattr(trial.recipe, section).get(key) for section, key in varied},
            **{
                f"{TITLES[measure].column} {band}": Figure(f"{value:.{4 if TITLES[measure].decimals else 0}f}")
                for measure, of_bands in trial.measures.items()
                for band, value in of_bands.items()
            },
        }
        for trial in trials
    ]
    if out is not None:
        write_atomically(out / "table.md", markdown_table(rows))
        write_atomically(out / "recipe.toml", to_toml(chosen.recipe))
    if as_json:
        tried = [trial.as_dict() for trial in trials]
        print_json(console, {"chosen": chosen.as_dict(), "trials": tried, **cost_of_stages(stages)})
        return
    first = [name for name in rows[0] if name in {key for _, key in varied} or name.endswith((" ALL", " EXPECTED"))]
    order = list(dict.fromkeys([*first, *rows[0]]))
    show(console, [{name: row[name] for name in order} for row in rows[:_MOST_TRIALS]], needed=len(varied) + 3)
    if len(rows) > _MOST_TRIALS:
        console.print(f"... and {len(rows) - _MOST_TRIALS} more", style="dim")
    console.print()
    show(console, stage_rows(stages.seconds, peak_memory()))
    measure, band = chosen.judged_by
    goal = f"the best over {band}" if TITLES[measure].column == "MAP" else f"the best by {TITLES[measure].column}"
    if any(map(is_yardstick, trials)):
        goal = "PAUM(1, 50) over ALL, TOP10 and RARE"
    if chosen.measured_on:
        print_text(console, f"\nMeasured on {chosen.measured_on}.")
    taken = {key: getattr(chosen.recipe, section).get(key) for section, key in varied}
    print_text(console, f"\nThe sparsest that ranks as well as {goal}: {_settings(taken)}")
    if out is not None:
        print_text(console, f"Table, recipe and trials: {out}")


def _varied(recipes: Sequence[Recipe]) -> list[tuple[str, str]]:
    """Return the parameters in which recipes differ, by section and name."""
    sections = ("tokens", "features", "topics", "learner")
    named = dict.fromkeys((section, key) for section in sections for r in recipes for key in getattr(r, section))
    return [
        (section, key)
        for section, key in named
        if len({json.dumps(getattr(recipe, section).get(key)) for recipe in recipes}) > 1
    ]


def experiments(console: Console, last_runs: Mapping[Experiment, str], *, as_json: bool) -> None:
    """Print the papers' experiments: how long each takes, when it was run, what data it needs, and what is missing."""
    from textcat.papers.datasets import missing

    rows = []
    for one, last_run in last_runs.items():
        sentences = {name: sentence for name in one.data if (sentence := missing(name)) is not None}
        data = ", ".join(f"{name} (missing)" if name in sentences else name for name in one.data)
        rows.append((one.name, one.minutes, last_run, one.title, data, sentences))
    if as_json:
        titles = ("experiment", "minutes", "last run", "what it shows", "data", "missing")
        print_json(console, _named(titles, rows))
        return
    for name, minutes, last_run, title, data, _ in rows:
        print_text(console, f"{name:16}  {minutes:>4} min  last run: {last_run}")
        for text in filter(None, (title, data and f"data: {data}")):
            print_text(console, wrapped_text(console, text, "    "))
    for sentence in dict.fromkeys(sentence for *_, sentences in rows for sentence in sentences.values()):
        print_text(console, "\n" + wrapped_text(console, sentence))


def reproductions(console: Console, results: Iterable[Result], out: Path | None, *, as_json: bool) -> None:
    """Print the published figures of experiments beside ours, as they come or as JSON; write pages if asked."""
    from textcat.papers.experiments import as_objects, columns, notes, write_result

    ended = []
    for result in results:
        ended.append(result)
        page = "" if out is None else f"Page: {write_result(out, result)}\n"
        if as_json:
            continue
        print_text(console, f"{result.experiment.name}: {result.experiment.title}\n")
        labels, *figures = columns(result.rows)
        _show_columns(console, [labels, *((head, list(map(Figure, cells))) for head, cells in figures)])
        for number, note in enumerate(notes(result.rows), start=1):
            print_text(console, f"({number}) {note}")
        kept = f"; {result.n_kept} of {len(result.experiment.tasks)} tasks had been run before" if result.n_kept else ""
        print_text(console, f"\n{result.seconds:.1f} s{kept}\n{page}")
    if as_json:
        print_json(console, as_objects(ended), indent=2)
