"""Results of the commands → what they print."""

from __future__ import annotations

import json
import math
import os
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from textcat.evaluation import export
from textcat.evaluation.ranking import Evaluation
from textcat.files import write_atomically
from textcat.progress import Stages, peak_memory
from textcat.recipe import Recipe

if TYPE_CHECKING:
    from textcat.corpus.cards import Card
    from textcat.documents import Corpus
    from textcat.evaluation.ranking import BandQuality
    from textcat.evaluation.significance import Comparison, Difference
    from textcat.model.tagger import Tagger
    from textcat.papers.experiments import Result, Row, _State
    from textcat.tagging.summary import Summary
    from textcat.training.selection import Trial

# How many of the first and last topics a corpus' page shows.
_ENDS = 5

# How many of the topics that differ most between models are shown.
_LARGEST = 10
# How many trials of a study are printed; a file has them all.
_SHOWN = 30


_NO_VALUE = "-"
_UNLIMITED = 100_000

_BAND_LINES = (
    ("macro-averaged precision", "macro_average_precision", 3),
    ("average sparsity", "average_sparsity", 0),
    ("macro F1", "macro_f1", 3),
    ("micro F1", "micro_f1", 3),
)
_ALL_BAND_LINES = (
    _BAND_LINES[0],
    ("macro R-precision", "macro_r_precision", 3),
    ("macro P@10", "macro_precision_at_10", 3),
    ("macro nDCG", "macro_ndcg", 3),
    _BAND_LINES[1],
    *(
        (f"{average} {title}", f"{average}_{measure}", 3)
        for average in ("macro", "micro", "sample")
        for title, measure in (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))
    ),
    ("label ranking average precision", "label_ranking_average_precision", 3),
    ("coverage error", "coverage_error", 2),
    ("top-1 accuracy", "top_1_accuracy", 3),
)
_TITLES = {measure: title for title, measure, _ in _ALL_BAND_LINES}


def training(
    console: Console,
    tagger: Tagger,
    corpus: Corpus,
    folder: Path,
    stages: Stages,
    *,
    per_topic: bool,
    as_json: bool = False,
) -> None:
    """Print the bands, and which documents they are of; what did not converge, the model, and what it cost."""
    from textcat.training.train import unevaluated_topics

    late = [topic for topic, why in zip(tagger.topics, tagger.facts["stopped"], strict=True) if "not converge" in why]
    evaluation, unevaluated = tagger.evaluation, unevaluated_topics(corpus)
    assert evaluation is not None
    if as_json:
        cost = {"seconds": stages.seconds, "peak_memory": peak_memory()}
        run = {"model": str(folder), "corpus": tagger.corpus, "not_converged": late, **cost}
        console.file.write(export.to_json(evaluation, **run))
        return
    if evaluation.measured_on != "test documents":
        why = "none of the test documents has a topic of the model" if corpus.test else "has no test documents"
        console.print(
            f"Corpus {tagger.corpus}{': ' if corpus.test else ' '}{why}: by cross-validation on its "
            f"{tagger.train_documents} training documents,\n",
            soft_wrap=True,
            markup=False,
        )
    quality(console, evaluation, per_topic=per_topic)
    console.print()
    show(console, stage_table(stages.seconds, peak_memory()))
    console.print()
    if unevaluated:
        console.print(unevaluated, soft_wrap=True, markup=False)
    if late:
        console.print(f"Did not converge: {', '.join(late)}.", soft_wrap=True)
    console.print(f"Model: {folder}", soft_wrap=True)


def quality(
    console: Console, evaluation: Evaluation, *, form: str = "", per_topic: bool = False, every_measure: bool = False
) -> None:
    """Print an evaluation: as tables, or as JSON or CSV for programs."""
    if form:
        console.file.write(export.to_json(evaluation) if form == "json" else export.to_csv(evaluation))
        return
    if per_topic:
        show(console, topic_table(evaluation))
        console.print()
    show(console, band_table(evaluation, every_measure=every_measure))
    if evaluation.confusion is None:
        return
    wrong = [(topic, got, n) for topic, got, n in evaluation.confusion if topic != got]
    accuracy = _figure(evaluation.accuracy, undefined="not defined: no document has a topic")
    console.print(f"\naccuracy {accuracy}; {sum(n for *_, n in wrong)} documents got a wrong topic", soft_wrap=True)
    rows = [{"topic": topic, "got": got, "documents": n} for topic, got, n in wrong[:_LARGEST]]
    if rows:
        show(console, plain_table(rows))


def comparison(
    console: Console, found: Comparison, folders: Sequence[Path], corpus: str, *, as_json: bool, per_topic: bool
) -> None:
    """Print models side by side, named A, B and so on, and the topics they differ in most; or JSON for programs."""
    if as_json:
        console.file.write(export.to_json(found, models=list(map(str, folders)), corpus=corpus))
        return
    names = [string.ascii_uppercase[place] for place in range(len(folders))]
    _facts(console, dict(zip(names, folders, strict=True)))
    console.print(f"\n{corpus}, {found.test_documents} test documents\n", soft_wrap=True, markup=False)
    show(console, measures_table(found, names))
    console.print()
    show(console, differences_table(found, names, None if per_topic else _LARGEST))
    sentences = (
        f"Intervals and p (documents): {found.n_resamples} resamples of the documents, the same for each model.",
        "p (topics): the signs of the differences of the topics thrown by a coin, 10000 times.",
        "No p-value is corrected for the number of comparisons.",
    )
    console.print("\n" + "\n".join(sentences), soft_wrap=True, markup=False)


def archive(console: Console, summary: Summary, out: Path | None, *, as_json: bool = False) -> None:
    """Print what tagging an archive came to: counts, reasons, a row per topic, and what differs from training."""
    counts, before = summary.counts, summary.before
    records = counts.records - before.counts.records
    if as_json:
        run = {"records_before": before.counts.records, "read_as": summary.formats, "drift": _drifting(summary)}
        cost = {"seconds": summary.seconds, "peak_memory": summary.memory}
        output = {"output": None if out is None else str(out), "shards": summary.shards}
        _print_json(console, counts.as_dict() | run | cost | output)
        return
    if before.finished:
        console.print(f"{out} is finished: nothing was left to do.\n", soft_wrap=True, markup=False)
    facts = {
        "documents": f"{counts.records:,}",
        "tagged": f"{counts.tagged:,}",
        "rejected": f"{counts.rejected:,}",
        "without a topic": f"{counts.untagged:,}{_share(counts.untagged, counts.tagged)}",
        "done before": f"{before.counts.records:,}" if before.counts.records else None,
        "read as": ", ".join(_formats(summary)) or None,
        "seconds": f"{summary.seconds:.1f} ({records / max(summary.seconds, 1e-9):,.0f} documents/s)",
        "peak memory": f"{summary.memory / 1e6:,.0f} MB",
        "output": None if out is None else f"{out} ({summary.shards} shard{'s' * (summary.shards != 1)})",
    }
    _facts(console, {name: value for name, value in facts.items() if value is not None})
    if counts.reasons:
        console.print()
        rows = [{"rejected": n, "because": reason} for reason, n in counts.reasons.most_common()]
        show(console, plain_table(rows))
    if counts.topics:
        console.print()
        _topics_of_archive(console, summary)


def _formats(summary: Summary) -> Iterable[str]:
    """Yield the formats that inputs were read as, and by what those of whole files were recognised."""
    by = {source.format: source.guess.by for source in summary.sources}
    return (f"{form} (by {by[form]})" if by.get(form) else form for form in summary.formats)


def _share(n: int, of: int) -> str:
    return f" ({n / of:.1%} of those tagged)" if of else ""


def _drifting(summary: Summary) -> list[str]:
    return [drift.topic for drift in summary.drifts]


def _topics_of_archive(console: Console, summary: Summary) -> None:
    sizes, drifting = summary.train_sizes, set(_drifting(summary))
    rows = [
        {
            "topic": topic,
            "documents": summary.counts.topics[topic],
            "rate": summary.counts.topics[topic] / summary.counts.tagged,
            "in training": size / summary.manifest["train_documents"],
            "drift": "*" if topic in drifting else "",
        }
        for topic, size in sizes.items()
        if summary.counts.topics[topic] or topic in drifting
    ]
    rows.sort(key=lambda row: (-row["documents"], row["topic"]))
    show(console, plain_table(rows))
    if n_without := len(sizes) - len(rows):
        console.print(f"\n{n_without} of {len(sizes)} topics have no document.")
    if drifting:
        console.print(
            f"\n* {len(drifting)} of {len(sizes)} topics have more than three times, or less than a third of, the rate "
            "of training, beyond chance: the archive may be about other things than the training documents were.",
            soft_wrap=True,
            markup=False,
        )


def topics(console: Console, manifest: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a model's topics, the largest first."""
    facts = manifest["facts"]
    rows = [
        {
            "topic": topic,
            "train": size,
            "prevalence": size / manifest["train_documents"],
            **{name: values[k] for name, values in facts.items()},
        }
        for k, (topic, size) in enumerate(zip(manifest["topics"], manifest["train_sizes"], strict=True))
    ]
    rows.sort(key=lambda row: (-row["train"], row["topic"]))
    if as_json:
        _print_json(console, rows)
    else:
        shown = without_margins(rows[0])
        show(console, plain_table([{name: row[name] for name in shown} for row in rows]))


def model(console: Console, manifest: Mapping[str, Any], folder: Path, *, as_json: bool = False) -> None:
    """Print how a model was trained."""
    recipe = Recipe(name="", **manifest["recipe"])
    size = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        names = ("format", "corpus", "train_documents", "recipe", "versions", "evaluation")
        counts = {"topics": len(manifest["topics"]), "terms": manifest["features"]["n_terms"], "bytes": size}
        _print_json(console, {"model": str(folder), **{name: manifest.get(name) for name in names}, **counts})
        return
    measured = manifest.get("evaluation") or {"bands": []}
    facts = {
        "model": f"{folder} ({size / 1e6:.1f} MB, format {manifest['format']})",
        "corpus": f"{manifest['corpus']}, {manifest['train_documents']} training documents",
        "topics": len(manifest["topics"]),
        "terms": manifest["features"]["n_terms"],
        "recipe": recipe.title,
        **{section: _settings(getattr(recipe, section)) for section in ("tokens", "features", "learner")},
        "made with": _settings(manifest["versions"], " "),
    }
    _facts(console, facts)
    if measured["bands"]:
        console.print(f"\nMeasured after training, on {measured['test_documents']} {measured['measured_on']}:\n")
        show(console, band_table(Evaluation.from_dict({**measured, "topics": []})))


def topic_terms(console: Console, terms: Iterable[tuple[str, float]], *, as_json: bool = False) -> None:
    """Print terms with their weights."""
    _rows(console, [{"term": term, "weight": weight} for term, weight in terms], as_json=as_json)


def corpora(console: Console, located: Iterable[tuple[Card, Path | None]], *, as_json: bool = False) -> None:
    """Print the known corpora, and where each is or how to get it."""
    if as_json:
        rows: list[dict[str, Any]] = [
            {"corpus": card.name, "title": card.title, **card.counts, "path": None if path is None else str(path)}
            for card, path in located
        ]
        _print_json(console, rows)
        return
    rows = [
        {
            "corpus": card.name,
            "documents": card.counts.get("documents", "?"),
            "topics": card.counts.get("topics", "?"),
            "where": path or f"not here; {_how_to_get(card)}",
        }
        for card, path in located
    ]
    show(console, plain_table(rows))


def _how_to_get(card: Card) -> str:
    fetch = f"`textcat corpora fetch {card.name}`"
    return f"{fetch} downloads it from {card.urls[0]}" if card.urls else f"{fetch} tells how to get it"


def fetched(console: Console, card: Card, path: Path) -> None:
    """Print where a corpus is, and its terms of use."""
    _facts(
        console, {"corpus": f"{card.name}: {card.title}", "licence": card.licence, "cite": card.citation, "at": path}
    )


def corpus(console: Console, documents: Corpus, n_tokens: int, *, as_json: bool = False) -> None:
    """Print a corpus' counts, and its largest and smallest topics; all of them as JSON."""
    statistics = documents.statistics()
    if as_json:
        topics = {"train": statistics.train_positives, "test": statistics.test_positives}
        rows = [
            {"topic": topic, **{part: int(sizes[k]) for part, sizes in topics.items()}}
            for k, topic in enumerate(statistics.topics)
        ]
        counts = {"documents": statistics.documents, "without_topic": statistics.without_topic, "tokens": n_tokens}
        _print_json(console, {"corpus": documents.name, **counts, "topics": rows})
        return
    show(
        console,
        plain_table(
            [
                {"part": part, "documents": count, "without topic": statistics.without_topic[part]}
                for part, count in statistics.documents.items()
            ]
        ),
    )
    _facts(console, {"topics": len(statistics.topics), "tokens": f"{n_tokens} in train and test"})
    order = sorted(range(len(statistics.topics)), key=lambda k: (-statistics.train_positives[k], statistics.topics[k]))
    shown = order if len(order) <= 2 * _ENDS else order[:_ENDS] + order[-_ENDS:]
    show(
        console,
        plain_table(
            [
                {
                    "topic": statistics.topics[k],
                    "train": int(statistics.train_positives[k]),
                    "test": int(statistics.test_positives[k]),
                    "prevalence": float(statistics.prevalence[k]),
                }
                for k in shown
            ]
        ),
    )


def study(
    console: Console,
    trials: Sequence[Trial],
    chosen: Trial,
    stages: Stages,
    out: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Print the recipes compared, the best first, and the one to take; write both to a folder if asked."""
    from textcat.training.selection import is_the_papers
    from textcat.training.tune import to_toml

    varied = _varied([trial.recipe for trial in trials])
    rows = [
        {
            **{key: getattr(trial.recipe, section).get(key) for section, key in varied},
            **{f"MAP {band}": f"{value:.4f}" for band, value in trial.macro_average_precision.items()},
            **{f"sparsity {band}": f"{value:.0f}" for band, value in trial.average_sparsity.items()},
        }
        for trial in trials
    ]
    if out is not None:
        write_atomically(out / "table.md", markdown_table(rows))
        write_atomically(out / "recipe.toml", to_toml(chosen.recipe))
    if as_json:
        cost = {"seconds": stages.seconds, "peak_memory": peak_memory()}
        _print_json(console, {"chosen": _trial(chosen), "trials": [_trial(trial) for trial in trials], **cost})
        return
    show(console, plain_table(rows[:_SHOWN]))
    if len(rows) > _SHOWN:
        console.print(f"... and {len(rows) - _SHOWN} more", style="dim")
    console.print()
    show(console, stage_table(stages.seconds, peak_memory()))
    yardstick = any(is_the_papers(trial.recipe) for trial in trials)
    goal = "PAUM(1, 50) over ALL, TOP10 and RARE" if yardstick else "the best over EXPECTED"
    taken = {key: getattr(chosen.recipe, section).get(key) for section, key in varied}
    console.print(f"\nThe sparsest that ranks as well as {goal}: {_settings(taken)}", soft_wrap=True)
    if out is not None:
        console.print(f"Table, recipe and trials: {out}", soft_wrap=True)


def _trial(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON can hold it: a band without a figure has None."""
    figures = {"map": trial.macro_average_precision, "sparsity": trial.average_sparsity}
    return {
        "recipe": trial.recipe.as_dict(),
        **{
            name: {band: None if math.isnan(value) else value for band, value in by_band.items()}
            for name, by_band in figures.items()
        },
    }


def _varied(recipes: Sequence[Recipe]) -> list[tuple[str, str]]:
    """Return the parameters in which recipes differ, by section and name."""
    sections = ("tokens", "features", "topics", "learner")
    named = dict.fromkeys((section, key) for section in sections for r in recipes for key in getattr(r, section))
    return [
        (section, key)
        for section, key in named
        if len({json.dumps(getattr(recipe, section).get(key)) for recipe in recipes}) > 1
    ]


def experiments(console: Console, states: Sequence[_State], *, as_json: bool) -> None:
    """Print the papers' experiments: how long each takes, when it was run, what data it needs, and what is missing."""
    rows = [
        {
            "experiment": state.experiment.name,
            "minutes": state.experiment.minutes,
            "last run": _last_run(state),
            "what it shows": state.experiment.title,
            "data": ", ".join(f"{name} (missing)" * (name in state.missing) or name for name in state.experiment.data),
        }
        for state in states
    ]
    if as_json:
        _print_json(console, [row | {"missing": state.missing} for row, state in zip(rows, states, strict=True)])
        return
    show(console, plain_table(rows))
    sentences = dict.fromkeys(sentence for state in states for sentence in state.missing.values())
    for sentence in sentences:
        console.print(f"\n{sentence}", soft_wrap=True, markup=False)


def _last_run(state: _State) -> str:
    if state.last_run is None:
        return "never"
    n_tasks = len(state.experiment.tasks)
    if 0 < state.n_finished < n_tasks:
        return f"{state.n_finished} of {n_tasks} tasks"
    changed = "" if state.n_finished else ", changed since"
    return f"{state.last_run:%Y-%m-%d}{changed}"


def reproductions(console: Console, results: Iterable[Result], out: Path | None, *, as_json: bool) -> None:
    """Print the published figures of experiments beside ours, as they come or as JSON; write pages if asked."""
    from textcat.papers import pages

    ended = []
    for result in results:
        ended.append(result)
        page = None if out is None else pages.write(out, result)
        if not as_json:
            _reproduction(console, result, page)
    if as_json:
        console.file.write(pages.to_json(ended))


def _reproduction(console: Console, result: Result, page: Path | None) -> None:
    from textcat.papers import pages

    experiment = result.experiment
    console.print(f"{experiment.name}: {experiment.title}\n", soft_wrap=True, markup=False)
    show(console, comparison_table(result.rows))
    for number, note in enumerate(pages.comparison_notes(result.rows), start=1):
        console.print(f"({number}) {note}", soft_wrap=True, markup=False)
    kept = f"; {result.n_kept} of {len(experiment.tasks)} tasks had been run before" if result.n_kept else ""
    console.print(f"\n{result.seconds:.1f} s{kept}", soft_wrap=True)
    if page is not None:
        console.print(f"Page: {page}", soft_wrap=True, markup=False)
    console.print()


def _rows(console: Console, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        _print_json(console, rows)
    else:
        show(console, plain_table(rows))


def _print_json(console: Console, value: Any) -> None:
    console.file.write(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def _facts(console: Console, facts: Mapping[str, Any]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        console.print(f"{name:{width}}  {value}", soft_wrap=True, markup=False)


def _settings(values: Mapping[str, Any], between: str = "=") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None) or "defaults"


# --- tables ----------------------------------------------------------------------------------------------------------


def show(console: Console, table: Table) -> None:
    """Print a table at its full width: nothing is cut off or wrapped, on a terminal, in a pipe or in a file.

    Parameters
    ----------
    console : rich.console.Console
        Colours and bold type appear only if it is a terminal.
    table : rich.table.Table
    """
    unlimited = console.options.update(width=_UNLIMITED)
    table.width = Measurement.get(console, unlimited, table).maximum
    with console.capture() as drawn:
        console.print(table, soft_wrap=True)
    # rich fills the last column with spaces, which a narrow terminal would show as empty lines.
    lines = re.sub(r" +((?:\x1b\[[0-9;]*m)*)$", r"\1", drawn.get(), flags=re.MULTILINE)
    console.print(Text.from_ansi(lines.removesuffix("\n")), soft_wrap=True)


def band_table(evaluation: Evaluation, *, every_measure: bool = False) -> Table:
    """Lay out the averages with a column per band, as Table 2 of Li et al. (2002) does; sparsity only if it is known.

    Under a measure stands its interval, if it has been asked for. A line with the topics left out for lack of a test
    positive appears if there are any.

    Parameters
    ----------
    evaluation : Evaluation
    every_measure : bool, default False
        Lay out all measures instead of the four that tell most.
    """
    rows = evaluation.bands
    table = _table("", *(row.band for row in rows))
    for title, measure, decimals in _ALL_BAND_LINES if every_measure else _BAND_LINES:
        if measure != "average_sparsity" or any(row.average_sparsity is not None for row in rows):
            table.add_row(title, *(_average(row, measure, decimals) for row in rows))
        if any(measure in row.intervals for row in rows):
            table.add_row("  95 % interval", *(_interval(row.intervals.get(measure)) for row in rows))
    table.add_row("topics", *(str(row.topics) for row in rows))
    if any(row.left_out for row in rows):
        table.add_row("left out: no test positive", *(str(row.left_out) for row in rows))
    return table


def topic_table(evaluation: Evaluation) -> Table:
    """Lay out a row per topic, from the largest in training to the smallest, with what training knows of it."""
    facts = without_margins(export.fact_names(evaluation))
    table = _table("topic", "train", "test", "prevalence", *facts, "precision", "recall", "F1", "AP")
    for row in sorted(evaluation.topics, key=lambda row: (-row.train_positives, row.topic)):
        table.add_row(
            Text(row.topic),
            str(row.train_positives),
            str(row.test_positives),
            _figure(row.prevalence, 4),
            *(Text(_fact(row.facts.get(name))) for name in facts),
            _figure(row.precision),
            _figure(row.recall),
            _figure(row.f1),
            _figure(row.average_precision, undefined="no positive"),
        )
    return table


def stage_table(seconds: Mapping[str, float], peak_memory: int | None = None) -> Table:
    """Lay out the seconds each stage took, their sum, and the peak memory.

    Parameters
    ----------
    seconds : mapping of str to float
        Wall-clock seconds per stage, in the order of the stages.
    peak_memory : int, optional
        Bytes.
    """
    table = _table("stage", "seconds")
    for stage, taken in (*seconds.items(), ("total", sum(seconds.values()))):
        table.add_row(stage, f"{taken:.2f}")
    if peak_memory is not None:
        table.add_row("peak memory", f"{peak_memory / 1e6:.0f} MB")
    return table


def plain_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out rows that all have the same keys, which are the headers; columns that hold words stand left."""
    table = _table(*rows[0]) if rows else Table()
    for column, name in zip(table.columns, rows[0] if rows else (), strict=True):
        if any(isinstance(row[name], (str, os.PathLike)) for row in rows):
            column.justify = "left"
    for row in rows:
        table.add_row(*(Text(_fact(value)) for value in row.values()))
    return table


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows that all have the same keys as a Markdown table."""
    cells = ([_fact(value) for value in row.values()] for row in rows)
    return _markdown([list(rows[0]), ["---"] * len(rows[0]), *cells])


def _markdown(lines: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in (first, *others):
        table.add_column(Text(header), no_wrap=True, justify="right" if table.columns else "left")
    return table


def _average(row: BandQuality, measure: str, decimals: int) -> str:
    return _figure(getattr(row, measure), decimals, undefined="no topic")


def _figure(value: float | None, decimals: int = 3, undefined: str = _NO_VALUE) -> str:
    """Write .751 for 0.751, as tables of precision do."""
    if value is None:
        return undefined
    text = f"{value:.{decimals}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _interval(bounds: tuple[float, float] | None, write: Callable[[float], str] = _figure) -> str:
    return _NO_VALUE if bounds is None else " to ".join(map(write, bounds))


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1)


def without_margins(names: Iterable[str]) -> list[str]:
    """Return the names of facts that a table has room for; JSON and CSV tell of the margins, too."""
    return [name for name in names if "margin" not in name and name != "certificate"]


def _fact(value: Any) -> str:
    match value:
        case None:
            return _NO_VALUE
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
    return str(value)


# --- models side by side ---------------------------------------------------------------------------------------------


def measures_table(comparison: Comparison, names: Sequence[str]) -> Table:
    """Lay out a row per band and measure: its value for each model, and how the others differ from the first."""
    table = _table(
        "band", "measure", *names, *(title for name in names[1:] for title in _difference_titles(names, name))
    )
    table.columns[1].justify = "left"
    for row in comparison.measures:
        told = [cell for difference in row.differences for cell in _told(difference)]
        table.add_row(row.band, _TITLES[row.measure], *(_figure(v, undefined="no topic") for v in row.values), *told)
    return table


def differences_table(comparison: Comparison, names: Sequence[str], n: int | None = None) -> Table:
    """Lay out the average precision of the n topics (by default all) that differ most between the models."""
    table = _table("topic", "train", "test", *names, *(f"{name} - {names[0]}" for name in names[1:]))
    for row in comparison.topics[:n]:
        table.add_row(
            Text(row.topic),
            str(row.train_positives),
            str(row.test_positives),
            *(_figure(value) for value in row.average_precision),
            *(_signed(difference) for difference in row.differences),
        )
    return table


def _difference_titles(names: Sequence[str], name: str) -> tuple[str, ...]:
    return f"{name} - {names[0]}", "95 % interval", "p (documents)", "p (topics)"


def _told(difference: Difference | None) -> tuple[str, ...]:
    if difference is None:
        return (_NO_VALUE,) * 4
    p_values = (_figure(p, 4) for p in (difference.p_documents, difference.p_topics))
    return _signed(difference.difference), _interval(difference.interval, _signed), *p_values


# --- a paper's figures beside ours ---


def comparison_table(rows: Sequence[Row]) -> Table:
    """Lay out the published figures, ours, and by how many percent these differ."""
    from textcat.papers import pages

    columns = pages.columns(rows)
    titled = any(column.title for column in columns)
    table = _table("", *(f"{column.title}\n{column.part}" if titled else column.part for column in columns))
    for number, row in enumerate(rows):
        table.add_row(Text(row.label), *(column.cells[number] for column in columns))
    return table
