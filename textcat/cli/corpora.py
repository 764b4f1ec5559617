"""Commands about data: `corpora`, `corpora fetch` and `show`; and `reproduce`, which runs the papers' experiments."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, BadParameter, Option

from textcat.cli import common


def corpora(context: typer.Context, as_json: common.AsJson = False, corpus_dir: common.CorpusDir = None) -> None:
    """List the known corpora; fetch one, or show its counts."""
    if context.invoked_subcommand is not None:
        return
    from textcat.cli import _tables
    from textcat.corpus.catalogue import cards, locate_corpus

    _tables.corpora(
        common.console(), [(card, locate_corpus(card, corpus_dir)) for card in cards().values()], as_json=as_json
    )


def fetch(
    corpus: Annotated[
        str, Argument(help="Name of a corpus, or path of a card (.toml).", autocompletion=common.complete_corpus)
    ],
    corpus_dir: common.CorpusDir = None,
) -> None:
    """Find a corpus or download it, and check that it is complete."""
    from textcat.cli import _tables
    from textcat.corpus import catalogue
    from textcat.progress import download_bar

    chosen = catalogue.card(corpus)
    with download_bar(common.console(stderr=True), chosen.name, shows="bytes") as progress:
        path = catalogue.fetch_corpus(chosen, progress, corpus_dir)
    _tables.fetched(common.console(), chosen, path)


@common.with_options(read=common.corpus_reader)
def show(corpus: common.CorpusName, read: common.CorpusReader, as_json: common.AsJson = False) -> None:
    """Count a corpus' documents, topics and tokens."""
    from textcat.cli import _tables
    from textcat.recipe import Recipe

    stages = common.new_stages()
    documents = read(corpus, stages)
    with stages.stage("count tokens"):
        texts = (text for document in (*documents.train, *documents.test) for text in document.zones.values())
        n_tokens = int(Recipe("").make_tokens().count(texts).sum())  # as a recipe that says nothing makes them
    _tables.corpus(common.console(), documents, n_tokens, as_json=as_json)


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
    from textcat.cli import _tables
    from textcat.papers import find, known_experiments
    from textcat.papers.experiments import Settings, last_result, results_folder, run_experiment

    if everything and experiments:
        raise BadParameter("choose one of names and --all")
    folder, settings, stages = results or results_folder(), Settings(jobs, slow_baselines), common.new_stages()
    all_experiments = known_experiments().values()
    if not (everything or experiments):
        _tables.experiments(
            common.console(), {one: last_result(one, settings, folder) for one in all_experiments}, as_json=as_json
        )
        return
    chosen = all_experiments if everything else find(experiments or [])
    ended = (run_experiment(one, settings, folder, restart=restart, stages=stages) for one in chosen)
    _tables.reproductions(common.console(), ended, out, as_json=as_json)
