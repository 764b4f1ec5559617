"""Commands about data: `corpora`, its `fetch` and `show`, and `reproduce`, which runs the papers' experiments."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, BadParameter, Option

from textcat.cli import common, terminal
from textcat.cli.configuration import alternatives

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.corpus.cards import Card
    from textcat.corpus.documents import Corpus
    from textcat.papers.experiments import Experiment, Result

_ENDS = 5  # number of largest and of smallest topics of a corpus that are printed


def corpora(context: typer.Context, form: common.Form = "text", corpus_dir: common.CorpusDir = None) -> None:
    """List the known corpora; fetch one, or show its counts."""
    if context.invoked_subcommand is not None:
        return
    from textcat.corpus.cards import cards
    from textcat.corpus.fetch import locate_corpus

    show_corpora(terminal.console(), [(card, locate_corpus(card, corpus_dir)) for card in cards().values()], form)


def fetch(
    corpus: Annotated[
        str, Argument(help="Name of a corpus, or path of a card (.toml).", autocompletion=common.complete_corpus)
    ],
    corpus_dir: common.CorpusDir = None,
) -> None:
    """Find a corpus or download it, and check that it is complete."""
    from textcat.base.progress import download_bar
    from textcat.corpus.cards import card
    from textcat.corpus.fetch import fetch_corpus

    chosen = card(corpus)
    with download_bar(terminal.console(stderr=True), chosen.name, shows="bytes") as progress:
        path = fetch_corpus(chosen, progress, corpus_dir)
    show_fetched(terminal.console(), chosen, path)


@common.with_options(read=common.corpus_reader)
def show(corpus: common.CorpusName, read: common.CorpusReader, form: common.Form = "text") -> None:
    """Count a corpus' documents, topics and tokens."""
    from textcat.recipes.recipe import Recipe

    stages = terminal.new_stages()
    documents = read(corpus, stages)
    with stages.stage("count tokens"):
        texts = (text for document in (*documents.train, *documents.test) for text in document.zones.values())
        n_tokens = int(Recipe("").make_tokens().count(texts).sum())  # with default settings of tokenization
    show_corpus(terminal.console(), documents, n_tokens, form)


@alternatives("experiments everything")
def reproduce(
    experiments: Annotated[list[str] | None, Argument(help="Names of experiments; none: list them.")] = None,
    everything: Annotated[bool, Option("--all", help="Run all experiments.")] = False,
    slow_baselines: Annotated[
        bool, Option("--slow-baselines", help="Also run the baselines that take more than a few minutes.")
    ] = False,
    restart: Annotated[bool, Option("--restart", help="Run experiments again even if they have results.")] = False,
    jobs: common.Jobs = -1,
    form: common.Form = "text",
    out: Annotated[Path | None, Option(help="Also write a Markdown page per experiment to this folder.")] = None,
    results: Annotated[
        Path | None, Option(help="Folder in which results are kept.", show_default="the user's cache")
    ] = None,
) -> None:
    """Run the papers' experiments and compare our results with the published ones; without a name, list them."""
    from textcat.papers import find, known_experiments
    from textcat.papers.experiments import Settings, last_result, results_folder, run_experiment

    if everything and experiments:
        raise BadParameter("choose one of names and --all")
    folder, settings, stages = results or results_folder(), Settings(jobs, slow_baselines), terminal.new_stages()
    all_experiments = known_experiments().values()
    if not (everything or experiments):
        last_runs = {experiment: last_result(experiment, settings, folder) for experiment in all_experiments}
        show_experiments(terminal.console(), last_runs, form)
        return
    chosen = all_experiments if everything else find(experiments or [])
    ended = (run_experiment(experiment, settings, folder, restart=restart, stages=stages) for experiment in chosen)
    show_reproductions(terminal.console(), ended, out, form)


# --- what is printed and written -------------------------------------------------------------------------------------


def show_corpora(console: "Console", located: "Iterable[tuple[Card, Path | None]]", form: str = "text") -> None:
    """Print the known corpora, each with its folder; if it is not on this machine, with how to get it.

    `located` has each corpus's card and path; the path is None if the corpus is not on this machine.
    """
    from textcat.cli.printing import Table, show

    rows, shown = [], []
    for card, path in located:
        counts = {name: card.counts.get(name) for name in ("documents", "topics")}
        fetch = f"not here; `textcat corpora fetch {card.name}`"
        way = f"{fetch} downloads it from {card.urls[0]}" if card.urls else f"{fetch} says how to get it"
        rows.append({"corpus": card.name, **counts, "title": card.title, "path": path and str(path)})
        shown.append({"corpus": card.name, **{name: n or "?" for name, n in counts.items()}, "where": path or way})
    show(console, form, rows, Table(shown), rows=lambda: rows)


def show_fetched(console: "Console", card: "Card", path: Path) -> None:
    """Print a corpus' folder, licence and citation."""
    from textcat.cli.printing import Facts, show

    facts = {"corpus": f"{card.name}: {card.title}", "licence": card.licence, "cite": card.citation, "at": path}
    show(console, "text", facts, Facts(facts))


def show_corpus(console: "Console", documents: "Corpus", n_tokens: int, form: str = "text") -> None:
    """Print a corpus' counts, and its largest and smallest topics; JSON and CSV have all topics."""
    from textcat.cli.printing import Facts, Table, largest_first, named_rows, show

    statistics = documents.statistics()
    sizes = zip(statistics.topics, statistics.train_positives.tolist(), statistics.test_positives.tolist(), strict=True)
    rows = named_rows(("topic", "train", "test"), sizes)
    counts = {"documents": statistics.documents, "without_topic": statistics.without_topic, "tokens": n_tokens}
    parts = ((part, n, statistics.without_topic[part]) for part, n in statistics.documents.items())
    rates = map(float, statistics.prevalence)
    ranked = largest_first(row | {"prevalence": rate} for row, rate in zip(rows, rates, strict=True))
    is_cut = len(rows) > 2 * _ENDS
    show(
        console,
        form,
        {"corpus": documents.name, **counts, "topics": rows},
        Table(named_rows(("part", "documents", "without topic"), parts)),
        Facts({"topics": len(rows), "tokens": f"{n_tokens:,} in train and test"}),
        Table(ranked[:_ENDS] + ranked[-_ENDS:] if is_cut else ranked),
        f"(the {_ENDS} largest and the {_ENDS} smallest of {len(rows)} topics)" if is_cut else "",
        rows=lambda: ranked,
    )


def show_experiments(console: "Console", last_runs: "Mapping[Experiment, str]", form: str) -> None:
    """Print for each of the papers' experiments how long it takes, when it last ran, and its data.

    `last_runs` describes the last run of each experiment in words. Missing data is marked, and sentences below the list
    say how to get it.
    """
    from textcat.cli.printing import Facts, Note, show
    from textcat.papers.datasets import missing

    rows: list[dict[str, Any]] = []
    experiments = []
    for experiment, last_run in last_runs.items():
        sentences = {name: sentence for name in experiment.data if (sentence := missing(name)) is not None}
        data = ", ".join(f"{name} (missing)" if name in sentences else name for name in experiment.data)
        facts = {"minutes": experiment.minutes, "last run": last_run, "what it shows": experiment.title, "data": data}
        rows.append({"experiment": experiment.name, **facts, "missing": sentences})
        experiments.append(Facts({**facts, "data": data or None}, experiment.name))
    remedies = dict.fromkeys(sentence for row in rows for sentence in row["missing"].values())
    show(console, form, rows, *experiments, *map(Note, remedies), rows=lambda: rows)


def show_reproductions(console: "Console", results: "Iterable[Result]", out: Path | None, form: str) -> None:
    """Print the published results of experiments next to ours; if `out` is not None, write pages to this folder."""
    from textcat.cli.printing import Figure, Table, named_rows, print_text, show, show_columns
    from textcat.papers.experiments import as_objects, columns, notes, write_result

    ended = []
    for result in results:
        ended.append(result)
        page = "" if out is None else f"Page: {write_result(out, result)}\n"
        if form != "text":
            continue
        print_text(console, f"{result.experiment.name}: {result.experiment.title}\n")
        labels, *figures = columns(result.rows)
        show_columns(console, [labels, *((head, list(map(Figure, cells))) for head, cells in figures)])
        for number, note in enumerate(notes(result.rows), start=1):
            print_text(console, f"({number}) {note}")
        kept = f"; {result.n_kept} of {len(result.experiment.tasks)} tasks had been run before" if result.n_kept else ""
        print_text(console, f"\n{result.seconds:.1f} s{kept}\n{page}")
    if form != "text":
        figures_of = (
            (result.experiment.name, row.label, name, figure.published, figure.ours)
            for result in ended
            for row in result.rows
            for name, figure in row.figures.items()
        )
        rows = named_rows(("experiment", "row", "measure", "published", "ours"), figures_of)
        show(console, form, as_objects(ended), Table(rows))
