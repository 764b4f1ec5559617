"""Commands that train and measure models: `train`, `evaluate`, `compare`, `tune`, and `recipes`, what they train by."""

import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option, echo

from textcat.cli import common
from textcat.errors import TextcatError

if TYPE_CHECKING:
    from textcat.documents import Corpus
    from textcat.model.tagger import Tagger
    from textcat.progress import Stages
    from textcat.recipe import Recipe
    from textcat.training.examples import CorpusStream, _CountedCorpus


def changed_recipe(
    recipe: Annotated[
        str | None,
        Option(
            help="Name of a shipped recipe, or path of a recipe file.",
            show_default="best; subjects from 1,000 topics on",
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

    if recipe is None and not learner and not settings:
        return default_recipe().with_settings([f"tokens.lang={lang}"] if lang else ())
    chosen = read_recipe(recipe or "best").changed(learner)
    chosen = chosen.with_settings([*(settings or ()), *([f"tokens.lang={lang}"] if lang else ())])
    kappa = any(setting.partition("=")[0].strip() == "learner.kappa" for setting in settings or ())
    if kappa and chosen.learner.get("tau_pos", "prevalence") != "prevalence":
        raise BadParameter("kappa adapts τ₊ to prevalence, and here τ₊ is fixed; set learner.tau_pos=prevalence")
    return chosen


@common.with_options(recipe=changed_recipe, read=common.corpus_to_train_on, scheduler=common.scheduler_address)
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
    store: Annotated[Path | None, Option(help="Keep rows in this folder, not in memory, and train from there.")] = None,
    keep: Annotated[
        str | None,
        Option(
            help="What the model keeps of training documents: to explain by none, documents (ids and titles) or texts; "
            "for `textcat learn` counts, alone or after one of these and a comma.",
            show_default="documents of up to 20,000, none with --store or a shortlist",
        ),
    ] = None,
) -> None:
    """Train a ranker per topic, evaluate it on test documents or else on held-out training ones, and save the model."""
    from textcat.cli import _tables
    from textcat.cluster import on_cluster
    from textcat.model import storage
    from textcat.model.kept import what_to_keep

    stages, read = common.new_stages(), read.speaking(recipe)
    learns_on = what_to_keep(keep)[1]
    counted = _counted_while_read(read.stream(corpus), recipe, stages, keep=learns_on)
    documents = counted.corpus if counted else read(corpus, stages)
    from textcat.training.train import _train_and_evaluate

    if (other := recipe.for_topics(len(documents.topics))) is not recipe:
        recipe = other
        echo(
            f"textcat: {len(documents.topics):,} topics: trained by the recipe {recipe.name}; --recipe names another.",
            err=True,
        )
    folder = out or Path("models", f"{documents.name}-{recipe.name}")
    storage.check_target(folder)
    with on_cluster(scheduler):
        tagger = _train_and_evaluate(
            documents,
            recipe,
            bands=band,
            n_jobs=jobs,
            store=store,
            keep=keep,
            stages=stages,
            keep_texts=False,
            counted=counted,
        )
    with stages._stage("save"):
        storage.save(tagger, folder)
    _tables.training(common.console(), tagger, documents, folder, stages, per_topic=topics, as_json=as_json)


def _counted_while_read(
    reading: "CorpusStream | None", recipe: "Recipe", stages: "Stages", *, keep: bool
) -> "_CountedCorpus | None":
    """Import what training needs while a corpus is being read, and count its terms; None if something goes wrong."""
    if reading is None:
        return None
    with stages._stage("read and count") as bar, suppress(EOFError, pickle.UnpicklingError, TypeError, ValueError):
        import textcat.training.train  # noqa: F401
        from textcat.training.examples import _CountedCorpus

        return _CountedCorpus(reading, recipe, advance=bar, keep=keep)
    return None


@common.with_options(read=common.corpus_reader)
def evaluate(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    topics: common.PerTopic = False,
    band: common.Bands = None,
    as_json: common.AsJson = False,
    as_csv: Annotated[bool, Option("--csv", help="Print a row per topic as CSV.")] = False,
    markdown: common.AsMarkdown = False,
    latex: common.AsLatex = False,
    trec: Annotated[Path | None, Option(help="Write run and qrels files for trec_eval to this folder.")] = None,
    labelled_only: common.LabelledOnly = False,
    bootstrap: Annotated[
        int, Option(min=0, help="Resamples of the documents for 95 % intervals, such as 1000; 0: no intervals.")
    ] = 0,
    report: common.ReportFile = None,
) -> None:
    """Measure how well a model ranks a corpus' test documents."""
    from textcat.cli import _tables
    from textcat.evaluation import export, significance, top
    from textcat.files import _write_atomically
    from textcat.model import storage

    form = common._form_of(json=as_json, csv=as_csv, markdown=markdown, latex=latex)
    tagger, stages = storage.load(model), common.new_stages()
    documents = _test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    evaluation: Any = tagger.evaluate(documents, bands=band, stages=stages)
    of_tops = isinstance(evaluation, top.TopEvaluation)
    if trec:
        if of_tops or evaluation.scores is None:
            which = f"of {len(tagger.topics):,} topics" if of_tops else f"on {evaluation.measured_on}"
            raise TextcatError(f"Of the evaluation {which} no scores were kept.")
        ids = [document.id for document in documents.test]
        for name, lines in export._trec_files(evaluation.scores, evaluation.relevant, ids, tagger.topics).items():
            _write_atomically(trec / name, lines)
    if bootstrap:
        with_intervals = top._with_intervals if of_tops else significance._with_intervals
        evaluation = with_intervals(evaluation, n_resamples=bootstrap)
    if report:
        from textcat.report.write import write_report

        write_report(report, tagger, documents, bands=band, resamples=bootstrap or 1000, stages=stages)
    if (evaluation.values if of_tops else evaluation.scores) is None and not form:
        common.console().print(f"Measured after training, on {evaluation.test_documents} {evaluation.measured_on}:\n")
    _tables.quality(common.console(), evaluation, form=form, per_topic=topics, every_measure=True)


@common.with_options(read=common.corpus_reader)
def compare(
    models: Annotated[list[Path], Argument(help="Folders of two or more trained models.")],
    read: common.CorpusReader,
    corpus: Annotated[
        str | None,
        Option(help="The corpus.", show_default="that of the first model", autocompletion=common.complete_corpus),
    ] = None,
    topics: common.PerTopic = False,
    band: common.Bands = None,
    as_json: common.AsJson = False,
    markdown: common.AsMarkdown = False,
    latex: common.AsLatex = False,
    labelled_only: common.LabelledOnly = False,
    bootstrap: Annotated[int, Option(min=100, help="Resamples of the documents.")] = 1000,
    report: common.ReportFile = None,
) -> None:
    """Compare models with the first of them on a corpus' test documents, by tests of significance."""
    from textcat.cli import _tables
    from textcat.evaluation import significance, top
    from textcat.model import storage

    if not 2 <= len(models) <= 26:
        raise BadParameter("give 2 to 26 models: they are named by letters")
    form = common._form_of(json=as_json, markdown=markdown, latex=latex)
    if report and len(models) != 2:
        raise BadParameter(f"a report is of a model and the one before it: give 2 models, not {len(models)}")
    taggers, stages = [storage.load(model) for model in models], common.new_stages()
    first = taggers[0]
    for tagger, model in zip(taggers, models, strict=True):
        if tagger.topics != first.topics:
            raise TextcatError(f"{model} does not have the topics of {models[0]}: compare models of one corpus.")
    documents = _test_corpus(read, corpus, first, stages, labelled_only=labelled_only)
    evaluations: Any = [tagger.evaluate(documents, bands=band, stages=stages) for tagger in taggers]
    compare_all = top.compare_tops if isinstance(evaluations[0], top.TopEvaluation) else significance._compare
    compared = compare_all(evaluations, n_resamples=bootstrap)
    if report:
        from textcat.report.write import write_report

        of: dict[str, Any] = {"before": first, "names": common._names_of(*models), "resamples": bootstrap}
        write_report(report, taggers[1], documents, bands=band, stages=stages, **of)
    _tables.comparison(common.console(), compared, models, documents.name, form=form, per_topic=topics)


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
    from textcat.training.selection import _best
    from textcat.training.tune import _study

    start, stages = read_recipe(recipe), common.new_stages()
    documents = read.speaking(start)(corpus, stages)
    results = _study(
        documents, start, space, sampler, trials, out, stages, n_folds=folds, n_repeats=repeats, seed=seed, n_jobs=jobs
    )
    _tables.study(common.console(), results, _best(results), stages, out, as_json=as_json)


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


def _test_corpus(
    read: common.CorpusReader, corpus: str | None, tagger: "Tagger", stages: "Stages", *, labelled_only: bool
) -> "Corpus":
    """Open the corpus to measure on, by default the one that the tagger was trained on."""
    from dataclasses import replace

    documents = read(corpus or _origin(tagger), stages)
    if not labelled_only:
        return documents
    labelled = [document for document in documents.test if not set(tagger.topics).isdisjoint(document.topics)]
    return replace(documents, test=labelled or documents.test)  # evaluation refuses a corpus without any


def _origin(tagger: "Tagger") -> Mapping[str, Any]:
    """Return how the corpus of a tagger was opened."""
    from textcat.corpus.catalogue import cards

    where = tagger.origin.get("name_or_path", tagger.corpus)
    if not tagger.origin and (where in cards() or Path(where).exists()):
        return {"name_or_path": where}  # models of earlier versions say no more than a name
    if not tagger.origin or (Path(where).is_absolute() and "*" not in where and not Path(where).exists()):
        raise TextcatError(
            f"The model was trained on {tagger.corpus!r}, which is no known corpus: name the corpus to evaluate on."
            + (f" There is no file or folder {where}." if tagger.origin else "")
        )
    return tagger.origin
