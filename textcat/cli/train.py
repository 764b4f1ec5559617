"""Commands that train: `train`, `learn` and `tune`; and `recipes`, what they train by."""

import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option, echo

from textcat.cli import common

if TYPE_CHECKING:
    from textcat.documents import Document
    from textcat.progress import Stages
    from textcat.recipe import Recipe
    from textcat.training.examples import CountedCorpus


def _changed_recipe(
    recipe: Annotated[
        str | None,
        Option(
            help="Name of a shipped recipe, or path of a recipe file.",
            show_default="default; short-texts for short texts, many-topics from 1,000 topics on",
            autocompletion=common.complete_recipe,
        ),
    ] = None,
    learner: common.Learner = None,
    lang: Annotated[
        str | None, Option(help="Language of the documents, such as de: short for --set tokens.lang=LANG.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting of the recipe, as in learner.tau_pos=50. May be repeated."),
    ] = None,
) -> "Recipe":
    """Return a recipe with the changes that options ask for."""
    from textcat.recipe import default_recipe, read_recipe

    chosen = default_recipe() if recipe is None else read_recipe(recipe)
    if learner or settings:
        chosen = replace(chosen, many=None).changed(learner)  # settings for few topics are none for thousands
    chosen = chosen.with_settings([*(settings or ()), *([f"tokens.lang={lang}"] if lang else ())])
    kappa = any(setting.partition("=")[0].strip() == "learner.kappa" for setting in settings or ())
    if kappa and chosen.learner.get("tau_pos", "prevalence") != "prevalence":
        raise BadParameter("kappa adapts τ₊ to prevalence, and here τ₊ is fixed; set learner.tau_pos=prevalence")
    return chosen


@common.with_options(recipe=_changed_recipe, read=common.corpus_to_train_on, scheduler=common.scheduler_address)
def train(
    corpus: common.CorpusName,
    recipe: "Recipe",
    read: common.CorpusReader,
    scheduler: str,
    out: Annotated[
        Path | None, Option(help="Folder to write the model to.", show_default="models/CORPUS-RECIPE")
    ] = None,
    jobs: common.Jobs = -1,
    band: common.Bands = None,
    topics: common.PerTopic = False,
    as_json: common.AsJson = False,
    rows_dir: Annotated[
        Path | None, Option(help="Keep rows in this folder, not in memory, and train from there.")
    ] = None,
    keep_support: Annotated[
        str | None,
        Option(
            help="What explanations keep of support documents: none, ids (with titles) or texts.",
            show_default="ids of up to 20,000 training documents, none with --rows-dir or a shortlist",
        ),
    ] = None,
    updatable: Annotated[bool, Option("--updatable", help="Keep training counts, for `textcat learn`.")] = False,
) -> None:
    """Train a ranker per topic, evaluate it on test documents or else on held-out training ones, and save the model."""
    from textcat.cli import _tables
    from textcat.cluster import on_cluster
    from textcat.model import storage
    from textcat.model.support import checked_keep_support

    stages, read = common.new_stages(), read.speaking(recipe)
    checked_keep_support(keep_support)  # before anything is read
    counted = _counted_while_read(read.stream(corpus), recipe, stages, updatable=updatable)
    documents = counted.corpus if counted else read(corpus, stages)
    from textcat.training.train import train_and_evaluate

    recipe, why = recipe.for_corpus(documents)
    if why:
        echo(f"textcat: {why}: trained by the recipe {recipe.name}; --recipe names another.", err=True)
    folder = out or Path("models", f"{documents.name}-{recipe.name}")
    storage.check_target(folder)
    with on_cluster(scheduler):
        tagger = train_and_evaluate(
            documents,
            recipe,
            bands=band,
            n_jobs=jobs,
            rows_dir=rows_dir,
            keep_support=keep_support,
            updatable=updatable,
            stages=stages,
            keep_texts=False,
            counted=counted,
        )
    with stages.stage("save"):
        storage.save(tagger, folder)
    _tables.training(common.console(), tagger, documents, folder, stages, per_topic=topics, as_json=as_json)


def _counted_while_read(
    reading: "common._ForkedReading | None", recipe: "Recipe", stages: "Stages", *, updatable: bool
) -> "CountedCorpus | None":
    """Import what training needs while a corpus is being read, and count its terms; None if something goes wrong."""
    if reading is None:
        return None
    errors = EOFError, pickle.UnpicklingError, TypeError, ValueError
    with stages.stage("read and count", shows="bytes") as bar, suppress(*errors):
        import textcat.training.train  # noqa: F401
        from textcat.training.examples import CountedCorpus

        reading.show = bar.show
        return CountedCorpus(reading, recipe, updatable=updatable)
    return None


@common.with_options(read=common.corpus_reader)
def learn(
    model: Annotated[Path, Argument(help="Folder of a model that was trained with --updatable.")],
    read: common.CorpusReader,
    new: Annotated[
        list[str] | None,
        Argument(help="New documents, and corrections of known ones: files, folders or archives, or names of corpora."),
    ] = None,
    remove: Annotated[
        list[str] | None,
        Option(help="Ids of documents to remove, comma-separated, or a file of one per line. May be repeated."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder to write the new model to.", show_default="MODEL, in place of the old one")
    ] = None,
    new_topics_negative: Annotated[
        bool, Option("--new-topics-negative", help="Use earlier documents as negatives of new topics.")
    ] = False,
    undo: Annotated[bool, Option("--undo", help="Restore the model as it was before the last step.")] = False,
    jobs: common.Jobs = -1,
    topics: Annotated[bool, Option("--topics", help="Print a row for every topic, changed or not.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Add documents, topics and corrections to a model, or remove documents, as if it were trained from scratch."""
    from textcat.cli import _tables
    from textcat.training.update import learn, undo_learn

    if undo:
        if new or remove or out or new_topics_negative:
            raise BadParameter("--undo goes alone: it brings back the model that was there before the last step")
        _tables.undone(common.console(), undo_learn(model), as_json=as_json)
        return
    stages = common.new_stages()
    documents = [document for corpus in new or [] for document in _documents(read, corpus, stages)]
    ids = [id_ for given in remove or [] for id_ in _ids(given)]
    options: dict[str, Any] = {"new_topics_negative": new_topics_negative, "n_jobs": jobs, "stages": stages}
    result = learn(model, documents, ids, out=out, **options)
    _tables.updated(common.console(), result, stages, per_topic=topics, as_json=as_json)


def _documents(read: common.CorpusReader, corpus: str, stages: "Stages") -> "list[Document]":
    opened = read(corpus, stages)
    return [*opened.train, *(replace(document, split="test") for document in opened.test)]


def _ids(given: str) -> list[str]:
    """Return the ids of a file, one a line, or those between commas."""
    if Path(given).is_file():
        return [line.strip() for line in Path(given).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [id_.strip() for id_ in given.split(",") if id_.strip()]


@common.with_options(read=common.corpus_to_train_on)
def tune(
    corpus: common.CorpusName,
    read: common.CorpusReader,
    recipe: common.RecipeName = "paum",
    space: Annotated[
        Path | None, Option(help="File of the values to try; by default the margins of docs/tau-study.md.")
    ] = None,
    sampler: Annotated[
        str, Option(help="Recipes to try: all of the space (grid), random ones, or those that optuna suggests (tpe).")
    ] = "grid",
    trials: Annotated[int, Option(min=1, help="How many recipes to try, for random and tpe.")] = 100,
    folds: Annotated[
        int | None, Option(min=2, help="Parts the training documents are split into.", show_default="5")
    ] = None,
    repeats: Annotated[
        int | None, Option(min=1, help="How many splits into folds to average over.", show_default="1")
    ] = None,
    seed: Annotated[
        int, Option(min=0, help="Seed of the first split (of the sample, with a shortlist) and of the sampler.")
    ] = 0,
    jobs: common.Jobs = -1,
    as_json: common.AsJson = False,
    out: Annotated[
        Path | None, Option(help="Folder for the table, the best recipe, and the trials; the same study resumes there.")
    ] = None,
) -> None:
    """Compare recipes on training documents that are held out, and find the best."""
    from textcat.cli import _tables
    from textcat.recipe import read_recipe
    from textcat.training.tune import best_trial, run_trials

    start, stages = read_recipe(recipe), common.new_stages()
    documents = read.speaking(start)(corpus, stages)
    results = run_trials(
        documents, start, space, sampler, trials, out, stages, n_folds=folds, n_repeats=repeats, seed=seed, n_jobs=jobs
    )
    _tables.study(common.console(), results, best_trial(results), stages, out, as_json=as_json)


def recipes(
    name: Annotated[
        str | None,
        Argument(help="A recipe to print: its name or file; none: list them.", autocompletion=common.complete_recipe),
    ] = None,
    as_json: common.AsJson = False,
) -> None:
    """List the recipes, or print one as a file, every setting with its meaning, its type and its default."""
    from textcat.cli import _tables
    from textcat.recipe import read_recipe
    from textcat.recipe import recipes as shipped_recipes

    if name is None:
        _tables.recipes(common.console(), [read_recipe(one) for one in shipped_recipes()], as_json=as_json)
    else:
        _tables.recipe(common.console(), read_recipe(name), as_json=as_json)
