"""Commands about data: `corpora`, `corpora fetch` and `show`; and `reproduce`, which runs the papers' experiments."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, BadParameter, Option

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.corpus.cards import Card
    from textcat.corpus.documents import Corpus
    from textcat.papers.experiments import Experiment, Result

_ENDS = 5  # largest and smallest topics of a corpus that are printed


def corpora(context: typer.Context, as_json: common.AsJson = False, corpus_dir: common.CorpusDir = None) -> None:
    """List the known corpora; fetch one, or show its counts."""
    if context.invoked_subcommand is not None:
        return
    from textcat.corpus.cards import cards
    from textcat.corpus.fetch import locate_corpus

    show_corpora(
        terminal.console(), [(card, locate_corpus(card, corpus_dir)) for card in cards().values()], as_json=as_json
    )


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
def show(corpus: common.CorpusName, read: common.CorpusReader, as_json: common.AsJson = False) -> None:
    """Count a corpus' documents, topics and tokens."""
    from textcat.recipes.recipe import Recipe

    stages = terminal.new_stages()
    documents = read(corpus, stages)
    with stages.stage("count tokens"):
        texts = (text for document in (*documents.train, *documents.test) for text in document.zones.values())
        n_tokens = int(Recipe("").make_tokens().count(texts).sum())  # as a recipe that says nothing makes them
    show_corpus(terminal.console(), documents, n_tokens, as_json=as_json)


def reproduce(
    experiments: Annotated[list[str] | None, Argument(help="Names of experiments; none: list them.")] = None,
    everything: Annotated[bool, Option("--all", help="Run all experiments.")] = False,
    slow_baselines: Annotated[
        bool, Option("--slow-baselines", help="Also run the baselines that take more than a few minutes.")
    ] = False,
    restart: Annotated[bool, Option("--restart", help="Also run again what has a result.")] = False,
    jobs: common.Jobs = -1,
    as_json: common.AsJson = False,
    out: Annotated[Path | None, Option(help="Also write a Markdown page per experiment to this folder.")] = None,
    results: Annotated[
        Path | None, Option(help="Folder in which results are kept.", show_default="the user's cache")
    ] = None,
) -> None:
    """Run the papers' experiments and compare our figures with the published ones; without a name, list them."""
    from textcat.papers import find, known_experiments
    from textcat.papers.experiments import Settings, last_result, results_folder, run_experiment

    if everything and experiments:
        raise BadParameter("choose one of names and --all")
    folder, settings, stages = results or results_folder(), Settings(jobs, slow_baselines), terminal.new_stages()
    all_experiments = known_experiments().values()
    if not (everything or experiments):
        last_runs = {experiment: last_result(experiment, settings, folder) for experiment in all_experiments}
        show_experiments(terminal.console(), last_runs, as_json=as_json)
        return
    chosen = all_experiments if everything else find(experiments or [])
    ended = (run_experiment(experiment, settings, folder, restart=restart, stages=stages) for experiment in chosen)
    show_reproductions(terminal.console(), ended, out, as_json=as_json)


# --- what is printed and written -------------------------------------------------------------------------------------


def show_corpora(console: "Console", located: "Iterable[tuple[Card, Path | None]]", *, as_json: bool = False) -> None:
    """Print the known corpora, each with its folder or, if it is not on this machine, with how to get it.

    `located` has each corpus's card and path; the path is None if the corpus is not on this machine.
    """
    from textcat.cli import tables

    rows = []
    for card, path in located:
        counts = {name: card.counts.get(name, None if as_json else "?") for name in ("documents", "topics")}
        fetch = f"not here; `textcat corpora fetch {card.name}`"
        way = f"{fetch} downloads it from {card.urls[0]}" if card.urls else f"{fetch} says how to get it"
        row = {"title": card.title, "path": path and str(path)} if as_json else {"where": path or way}
        rows.append({"corpus": card.name, **counts, **row})
    tables.show_rows(console, rows, as_json=as_json)


def show_fetched(console: "Console", card: "Card", path: Path) -> None:
    """Print a corpus' folder, licence and citation."""
    from textcat.cli import tables

    title = f"{card.name}: {card.title}"
    tables.show_facts(console, {"corpus": title, "licence": card.licence, "cite": card.citation, "at": path})


def show_corpus(console: "Console", documents: "Corpus", n_tokens: int, *, as_json: bool = False) -> None:
    """Print a corpus' counts, and its largest and smallest topics; the JSON output has all topics."""
    from textcat.cli import tables

    statistics = documents.statistics()
    sizes = zip(statistics.topics, statistics.train_positives.tolist(), statistics.test_positives.tolist(), strict=True)
    rows = tables.named_rows(("topic", "train", "test"), sizes)
    if as_json:
        counts = {"documents": statistics.documents, "without_topic": statistics.without_topic, "tokens": n_tokens}
        tables.print_json(console, {"corpus": documents.name, **counts, "topics": rows})
        return
    parts = ((part, n, statistics.without_topic[part]) for part, n in statistics.documents.items())
    tables.show(console, tables.named_rows(("part", "documents", "without topic"), parts))
    console.print()
    tables.show_facts(console, {"topics": len(rows), "tokens": f"{n_tokens} in train and test"})
    console.print()
    rates = map(float, statistics.prevalence)
    rows = tables.largest_first(row | {"prevalence": rate} for row, rate in zip(rows, rates, strict=True))
    tables.show(console, rows if len(rows) <= 2 * _ENDS else rows[:_ENDS] + rows[-_ENDS:])
    if len(rows) > 2 * _ENDS:
        tables.print_text(console, f"(the {_ENDS} largest and the {_ENDS} smallest of {len(rows)} topics)")


def show_experiments(console: "Console", last_runs: "Mapping[Experiment, str]", *, as_json: bool) -> None:
    """Print for each of the papers' experiments how long it takes, when it last ran, and its data.

    `last_runs` describes the last run of each experiment in words. Missing data is marked, and sentences below the list
    say how to get it.
    """
    from textcat.cli import tables
    from textcat.papers.datasets import missing

    rows = []
    for experiment, last_run in last_runs.items():
        sentences = {name: sentence for name in experiment.data if (sentence := missing(name)) is not None}
        data = ", ".join(f"{name} (missing)" if name in sentences else name for name in experiment.data)
        rows.append((experiment.name, experiment.minutes, last_run, experiment.title, data, sentences))
    if as_json:
        titles = ("experiment", "minutes", "last run", "what it shows", "data", "missing")
        tables.print_json(console, tables.named_rows(titles, rows))
        return
    for name, minutes, last_run, title, data, _ in rows:
        tables.print_text(console, f"{name:16}  {minutes:>4} min  last run: {last_run}")
        for text in filter(None, (title, data and f"data: {data}")):
            tables.print_text(console, tables.wrapped_text(console, text, "    "))
    for sentence in dict.fromkeys(sentence for *_, sentences in rows for sentence in sentences.values()):
        tables.print_text(console, "\n" + tables.wrapped_text(console, sentence))


def show_reproductions(console: "Console", results: "Iterable[Result]", out: Path | None, *, as_json: bool) -> None:
    """Print the published figures of experiments next to ours; if `out` is not None, write pages to this folder."""
    from textcat.cli import tables
    from textcat.papers.experiments import as_objects, columns, notes, write_result

    ended = []
    for result in results:
        ended.append(result)
        page = "" if out is None else f"Page: {write_result(out, result)}\n"
        if as_json:
            continue
        tables.print_text(console, f"{result.experiment.name}: {result.experiment.title}\n")
        labels, *figures = columns(result.rows)
        tables.show_columns(console, [labels, *((head, list(map(tables.Figure, cells))) for head, cells in figures)])
        for number, note in enumerate(notes(result.rows), start=1):
            tables.print_text(console, f"({number}) {note}")
        kept = f"; {result.n_kept} of {len(result.experiment.tasks)} tasks had been run before" if result.n_kept else ""
        tables.print_text(console, f"\n{result.seconds:.1f} s{kept}\n{page}")
    if as_json:
        tables.print_json(console, as_objects(ended), indent=2)
