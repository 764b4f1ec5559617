"""Commands that train: `train`, `tune`, and `recipes`, which lists what they train by."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from textcat.cli.app import (
    AsJson,
    Bands,
    CorpusName,
    Jobs,
    Learner,
    PerTopic,
    RecipeName,
    complete_recipe,
    console,
    corpus_reader,
    new_stages,
    scheduler_address,
    with_options,
)

if TYPE_CHECKING:
    from textcat.documents import Corpus
    from textcat.recipe import Recipe

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting of the recipe, as in learner.tau_pos=50. May be repeated."),
]


def changed_recipe(
    recipe: RecipeName = "best",
    learner: Learner = None,
    lang: Annotated[
        str | None, typer.Option(help="Language of the documents, such as de: short for --set tokens.lang=LANG.")
    ] = None,
    settings: Settings = None,
) -> "Recipe":
    """Return a recipe with the changes that options ask for."""
    from textcat.recipe import read_recipe

    chosen = read_recipe(recipe).changed(learner)
    chosen = chosen.with_settings([*(settings or ()), *([f"tokens.lang={lang}"] if lang else ())])
    kappa = any(setting.partition("=")[0].strip() == "learner.kappa" for setting in settings or ())
    if kappa and chosen.learner.get("tau_pos", "prevalence") != "prevalence":
        raise typer.BadParameter("kappa adapts τ₊ to prevalence, and here τ₊ is fixed; set learner.tau_pos=prevalence")
    return chosen


@with_options(recipe=changed_recipe, read=corpus_reader, scheduler=scheduler_address)
def train(
    corpus: CorpusName,
    recipe: "Recipe",
    read: "Callable[..., Corpus]",
    scheduler: str,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the model to.", show_default="models/CORPUS-RECIPE")
    ] = None,
    jobs: Jobs = -1,
    band: Bands = None,
    topics: PerTopic = False,
    as_json: AsJson = False,
    store: Annotated[
        Path | None, typer.Option(help="Keep rows in this folder, not in memory, and train from there.")
    ] = None,
) -> None:
    """Train a ranker per topic, evaluate it on test documents or else by cross-validation, and save the model."""
    from textcat.cli import _tables
    from textcat.cluster import on_cluster
    from textcat.model import storage
    from textcat.training.train import train_and_evaluate

    stages = new_stages()
    documents = read(corpus, stages)
    folder = out or Path("models", f"{documents.name}-{recipe.name}")
    storage.check_target(folder)
    with on_cluster(scheduler):
        tagger = train_and_evaluate(documents, recipe, bands=band, n_jobs=jobs, store=store, stages=stages)
    with stages.stage("save"):
        storage.save(tagger, folder)
    _tables.training(console(), tagger, documents, folder, stages, per_topic=topics, as_json=as_json)


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(help="A recipe to print: its name or file; none: list them.", autocompletion=complete_recipe),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes, or print one as a file, every setting with its meaning, its type and its default."""
    from textcat.cli import _tables
    from textcat.recipe import read_recipe
    from textcat.recipe import recipes as shipped_recipes

    if name is None:
        _tables.recipes(console(), [read_recipe(one) for one in shipped_recipes()], as_json=as_json)
    else:
        _tables.recipe(console(), read_recipe(name), as_json=as_json)


@with_options(read=corpus_reader)
def tune(
    corpus: CorpusName,
    read: "Callable[..., Corpus]",
    recipe: RecipeName = "paum",
    space: Annotated[
        Path | None, typer.Option(help="File of the values to try; by default the margins of the study in the docs.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="All of the space (grid), random ones of it, or tpe.")] = "grid",
    trials: Annotated[int, typer.Option(min=1, help="How many recipes to try, for random and tpe.")] = 100,
    folds: Annotated[int, typer.Option(min=2, help="Parts the training documents are split into.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How many splits into folds to average over.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first split into folds, and of the sampler.")] = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table, the best recipe, and the trials; the same study resumes there."),
    ] = None,
) -> None:
    """Compare recipes by cross-validation on the training documents, and find the best."""
    from textcat.cli import _tables
    from textcat.recipe import read_recipe
    from textcat.training.selection import best
    from textcat.training.tune import study

    start, stages = read_recipe(recipe), new_stages()
    documents = read(corpus, stages)
    results = study(
        documents, start, space, sampler, trials, out, stages, n_folds=folds, n_repeats=repeats, seed=seed, n_jobs=jobs
    )
    _tables.study(console(), results, best(results), stages, out, as_json=as_json)
