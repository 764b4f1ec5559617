"""The commands `train`, `learn`, `tune` and `recipes`."""

import gc
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Abort, Argument, BadParameter, Option, confirm, echo

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.corpus.documents import Corpus, Document
    from textcat.model.history import LearningStep
    from textcat.model.tagger import Tagger
    from textcat.reading import ForkedCorpus
    from textcat.recipes.recipe import Recipe
    from textcat.training.cross_validation import Trial
    from textcat.training.examples import CountedCorpus
    from textcat.training.plan import TrainingPlan
    from textcat.training.updatable import UpdateResult

_RIGHT = "share of held-out documents whose topic with the highest score is right"
_MOST_TRIALS = 30  # number of trials that are printed; a file has all trials


def _changed_recipe(
    recipe: Annotated[
        str | None,
        Option(
            help="Name of a shipped recipe, or path of a recipe file.",
            show_default="default; others for short texts, below 5,000 documents and from 1,000 topics on",
            autocompletion=common.complete_recipe,
        ),
    ] = None,
    learner: common.Learner = None,
    lang: Annotated[
        str | None,
        Option(
            help="Language of the documents, such as de: short for --set tokens.lang=LANG. With auto, that of most "
            "documents is found."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting of the recipe, as in learner.tau_pos=50. May be repeated."),
    ] = None,
) -> "Recipe":
    """Return a recipe with the changes that options ask for."""
    from textcat.recipes.recipe import default_recipe, read_recipe

    chosen = default_recipe() if recipe is None else read_recipe(recipe)
    chosen = chosen.changed(learner).with_settings([*(settings or ()), *([f"tokens.lang={lang}"] if lang else ())])
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
    force: Annotated[bool, Option("--force", help="Replace an existing model without asking.")] = False,
    jobs: common.Jobs = -1,
    band: common.Bands = None,
    topics: common.PerTopic = False,
    form: common.Form = "text",
    rows_dir: Annotated[
        Path | None,
        Option(help="Keep rows (documents as vectors) in this folder, not in memory, and train from there."),
    ] = None,
    keep_support: Annotated[
        str | None,
        Option(
            help="What the model keeps of support documents for explanations: none, ids (with titles) or texts.",
            show_default="ids of up to 20,000 training documents, none with --rows-dir or a shortlist",
        ),
    ] = None,
    updatable: Annotated[bool, Option("--updatable", help="Keep training counts, for `textcat learn`.")] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only estimate time, memory and the size of the model, by training on samples.")
    ] = False,
    promise: Annotated[
        list[str] | None,
        Option(
            help="Promise of each topic that precision=.9 of its automatic tags are right, or that recall=.9 of its "
            "documents get it; or a TOML file with the fields of [promise]. May be repeated."
        ),
    ] = None,
    confidence: Annotated[
        float | None, Option(help="The share of the promises that should hold.", show_default="0.9")
    ] = None,
    unlabelled: Annotated[
        list[str] | None,
        Option(
            help="Unlabelled documents to train on, too, if that is better on held-out labelled ones. With a file of "
            "topics' names for CORPUS, nothing else is trained on. May be repeated."
        ),
    ] = None,
) -> None:
    """Train a ranker per topic, evaluate it on test documents or else on held-out training ones, and save the model."""
    from textcat.corpus.descriptions import has_names
    from textcat.model.support import checked_keep_support

    recipe = _with_promise(recipe, promise or (), confidence)
    stages, finds_language = terminal.new_stages(), recipe.tokens.lang == "auto"
    if unlabelled and any((scheduler, rows_dir, updatable, dry_run)):
        raise BadParameter("--unlabelled goes without --scheduler, --rows-dir, --updatable and --dry-run")
    read = read if finds_language else read.speaking(recipe)
    checked_keep_support(keep_support)  # checked before anything is read
    if out is not None and not dry_run:
        _check_replacing(out, force=force)
    if unlabelled and has_names(names := expanded(corpus)):
        if band or topics or keep_support:
            raise BadParameter("by names alone nothing is measured or kept: leave out --band, --topics, --keep-support")
        folder = out or Path("models", f"{names.stem}-names")
        if out is None:
            _check_replacing(folder, force=force)
        _train_by_names(names, _documents(unlabelled, read, stages), recipe, folder, stages, jobs, form)
        return
    reading = None if finds_language or dry_run or unlabelled else read.stream(corpus)
    # The recipe's and the learner's modules are imported while the other process reads, which takes as long.
    from textcat.base.cluster import on_cluster
    from textcat.model import storage

    recipe.check()
    counted = _counted_while_read(reading, recipe, stages, updatable=updatable)
    documents = counted.corpus if counted else read(corpus, stages)
    gc.freeze()  # exempt all documents from garbage collection: they stay in memory
    recipe = _in_language_of(documents, recipe) if finds_language else recipe
    from textcat.training.plan import check_memory, plan_training
    from textcat.training.train import train_and_evaluate

    recipe, why = recipe.for_corpus(documents)
    options: dict[str, Any] = {"n_jobs": jobs, "rows_dir": rows_dir, "keep_support": keep_support}
    options["updatable"] = updatable
    if dry_run:
        planned = plan_training(documents, recipe, train_and_evaluate, why=why, stages=stages, **options)
        show_plan(terminal.console(), planned, stages, form)
        return
    folder = out or Path("models", f"{documents.name}-{recipe.name}")
    if out is None:
        _check_replacing(folder, force=force)
    storage.check_target(folder)
    check_memory(documents, recipe, train_and_evaluate, **options)
    if why:
        terminal.say(f"{why}: trained by the recipe {recipe.name}; --recipe names another.")
    options |= {"bands": band, "stages": stages}
    if unlabelled:
        from textcat.training.self_training import train_with_unlabelled

        del options["updatable"], options["rows_dir"]
        tagger = train_with_unlabelled(documents, _documents(unlabelled, read, stages), recipe, **options)
    else:
        with on_cluster(scheduler):
            tagger = train_and_evaluate(documents, recipe, **options, keep_texts=False, counted=counted)
    with stages.stage("save"):
        storage.save(tagger, folder)
    show_training(terminal.console(), tagger, documents, folder, stages, form, per_topic=topics)


def _with_promise(recipe: "Recipe", promise: Sequence[str], confidence: float | None) -> "Recipe":
    """Return the recipe with promises parsed from texts such as "precision=.9", or from the files that they name."""
    from textcat.base.settings import format_value, read_toml

    if confidence is not None and not promise and not recipe.promise.is_asked:
        raise BadParameter("--confidence is that of promises: give --promise, too, such as --promise precision=.9")
    settings = [] if confidence is None else [f"promise.confidence={confidence}"]
    for text in promise:
        if "=" not in text and not text.endswith(".toml") and not os.path.isfile(expanded(text)):
            raise BadParameter(f"--promise takes MEASURE=VALUE, such as precision=.9, or a TOML file, not {text!r}")
        fields = {} if "=" in text else read_toml(expanded(text), "promise")
        settings += [f"promise.{text}"] if "=" in text else []
        settings += [f"promise.{name}={format_value(value)}" for name, value in fields.items()]
    return recipe.with_settings(settings)


def _train_by_names(
    names: Path,
    documents: "Iterator[Document]",
    recipe: "Recipe",
    folder: Path,
    stages: "Stages",
    jobs: int,
    form: str,
) -> None:
    from textcat.model import storage
    from textcat.training.names import names_corpus, read_names, train_by_names

    storage.check_target(folder)
    with stages.stage("read"):
        corpus = names_corpus(described := read_names(names), documents)
    recipe = _in_language_of(corpus, recipe) if recipe.tokens.lang == "auto" else recipe
    tagger = train_by_names(described, corpus, recipe, n_jobs=jobs, stages=stages)
    with stages.stage("save"):
        storage.save(tagger, folder)
    show_training_by_names(terminal.console(), tagger, folder, stages, form)


def _documents(unlabelled: list[str], read: common.CorpusReader, stages: "Stages") -> "Iterator[Document]":
    """Yield the documents of shipped corpora, and of files, folders, patterns and URLs."""
    from textcat.corpus.cards import is_shipped
    from textcat.reading import InputSettings
    from textcat.training.names import readable_documents

    if archives := [name for name in unlabelled if not is_shipped(name)]:
        yield from readable_documents(archives, read.settings or InputSettings())
    for corpus in (read(name, stages) for name in unlabelled if is_shipped(name)):
        yield from (*corpus.train, *corpus.test, *corpus.unused)


def _in_language_of(corpus: "Corpus", recipe: "Recipe") -> "Recipe":
    """Return the recipe with the language of most documents in the corpus, and print this language."""
    from textcat.training.identification import LANGUAGE_SAMPLE, identify_language

    language = identify_language(corpus.sample_train(LANGUAGE_SAMPLE))
    without = "" if language.lang != "xx" else "; spaCy has no rules for its words, so those of no language are used"
    echo(
        f"textcat: language {language.identified}, by {language.n_documents:,} of {language.n_sampled:,} sampled "
        f"documents{without}; --lang names another.",
        err=True,
    )
    return recipe.with_settings([f"tokens.lang={language.lang}"])


def _check_replacing(folder: Path, *, force: bool) -> None:
    """If a folder has a model, ask at a terminal whether to replace it, unless `force` is set.

    Raise TextcatError if the answer is no, or if nobody can be asked.
    """
    from textcat.base.folders import MANIFEST

    if force or not (expanded(folder) / MANIFEST).exists():
        return
    if terminal.can_ask():
        with suppress(Abort):  # Ctrl-D means no
            if confirm(f"The model {folder} exists. Replace it?", err=True):
                return
        raise TextcatError(f"The model {folder} is not replaced: name another folder with --out.")
    raise TextcatError(f"The model {folder} exists: replace it with --force, or name another folder with --out.")


def _counted_while_read(
    reading: "ForkedCorpus | None", recipe: "Recipe", stages: "Stages", *, updatable: bool
) -> "CountedCorpus | None":
    """Count terms while the corpus is being read by another process, and return the counts.

    If `updatable` is set, the result also has the counts that `textcat learn` needs. Return None if `reading` is None,
    or if reading fails in the other process.
    """
    if reading is None:
        return None
    from textcat.reading import STREAM_ERRORS

    with stages.stage("read and count", shows="bytes") as bar, suppress(*STREAM_ERRORS):
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
        Argument(
            help="New documents, and corrections of earlier ones: files, folders or archives, or names of corpora."
        ),
    ] = None,
    corrections: Annotated[
        Path | None,
        Option("--from", help="Learn the new corrections of a folder, and unlearn retracted ones."),
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
    vocabulary: Annotated[
        Path | None, Option(help="File with names of topics to add or replace: TSV, CSV or SKOS.")
    ] = None,
    vocabulary_language: Annotated[
        str, Option(help="Language of these names.", show_default="that of the model's names, else of its texts")
    ] = "",
    force: Annotated[bool, Option("--force", help="Replace another model in --out without asking.")] = False,
    learner: common.ModelsLearner = None,
    undo: Annotated[bool, Option("--undo", help="Restore the model as it was before the last update.")] = False,
    undo_step: Annotated[
        int | None, Option(help="Undo the step of this number in the history; later steps stay.", show_default=False)
    ] = None,
    history: Annotated[bool, Option("--history", help="Print the steps in which the model has learnt.")] = False,
    jobs: common.Jobs = -1,
    topics: Annotated[bool, Option("--topics", help="Print a row for every topic, changed or not.")] = False,
    form: common.Form = "text",
) -> None:
    """Add documents, topics, corrections or names to a model, or remove documents.

    The result equals a new training with the model's settings; what `train` chose on the first documents stays.
    """
    import textcat
    from textcat.corpus.catalogue import settings_like
    from textcat.model.manifest import read_manifest
    from textcat.training.update import documents_to_learn

    changes = any((new, corrections, remove, out, new_topics_negative, vocabulary))
    if undo + history + (undo_step is not None) + changes > 1:
        raise BadParameter("--undo goes alone, and so do --undo-step and --history: run the command again for the rest")
    console, stages = terminal.console(), terminal.new_stages()
    if history:
        show_history(console, textcat.learning_history(model), read_manifest(model).sha256, form)
        return
    if undo:
        show_undone(console, textcat.undo_learn(model), form)
        return
    if undo_step is not None:
        result = textcat.undo_step(model, undo_step, n_jobs=jobs, stages=stages)
        show_update(console, result, stages, form, per_topic=topics)
        return
    if corrections and (new or remove or vocabulary):
        raise BadParameter("--from goes without other inputs, --remove and --vocabulary: learn these in another step")
    if vocabulary_language and not vocabulary:
        raise BadParameter("--vocabulary-language is that of the names in --vocabulary: give both")
    if out is not None and expanded(out).resolve() != expanded(model).resolve():
        _check_replacing(out, force=force)
    origin = read_manifest(model).origin if new else {}
    documents: list[Document] = []
    for corpus in new or ():
        reader = read if read.settings else read._replace(settings=settings_like(origin, corpus))
        documents += documents_to_learn(reader(corpus, stages))
    ids = [id_ for ids_or_file in remove or [] for id_ in _ids(ids_or_file)]
    options: dict[str, Any] = {"new_topics_negative": new_topics_negative, "n_jobs": jobs, "stages": stages}
    options |= {"vocabulary": vocabulary, "vocabulary_language": vocabulary_language or None}
    options["corrections"] = corrections
    result = textcat.learn(model, documents, ids, out=out, **options)
    show_update(console, result, stages, form, per_topic=topics)


def _ids(ids_or_file: str) -> list[str]:
    """Return ids from an argument: the lines of a file, if it names a file; otherwise, ids separated by commas."""
    is_file = os.path.isfile(ids_or_file)  # unlike Path.is_file, also False for a list that is too long for a name
    ids = Path(ids_or_file).read_text(encoding="utf-8-sig").splitlines() if is_file else ids_or_file.split(",")
    return [id_.strip() for id_ in ids if id_.strip()]


@common.with_options(read=common.corpus_to_train_on)
def tune(
    corpus: common.CorpusName,
    read: common.CorpusReader,
    recipe: common.RecipeName = "default",
    space: Annotated[
        Path | None, Option(help="File of the values to try; by default the margins of docs/background/tau-study.md.")
    ] = None,
    sampler: Annotated[
        str, Option(help="Recipes to try: all of the space (grid), random ones, or those that optuna suggests (tpe).")
    ] = "grid",
    trials: Annotated[
        int | None, Option(min=1, help="How many recipes to try, for random and tpe.", show_default="100")
    ] = None,
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
    form: common.Form = "text",
    out: Annotated[
        Path | None, Option(help="Folder for the table, the best recipe, and the trials; the same study resumes there.")
    ] = None,
) -> None:
    """Compare recipes on training documents that are held out, and find the best."""
    from textcat.recipes.recipe import read_recipe
    from textcat.training.tune import best_trial, run_trials

    if trials and sampler == "grid":
        raise BadParameter("--trials goes with --sampler random or tpe: the grid has all recipes of its space")
    start, stages = read_recipe(recipe), terminal.new_stages()
    documents = read.speaking(start)(corpus, stages)
    results = run_trials(
        documents,
        start,
        space,
        sampler,
        trials or 100,
        out,
        stages,
        n_folds=folds,
        n_repeats=repeats,
        seed=seed,
        n_jobs=jobs,
    )
    show_trials(terminal.console(), results, best_trial(results), stages, out, form)


def recipes(
    name: Annotated[
        str | None,
        Argument(help="A recipe to print: its name or file; none: list them.", autocompletion=common.complete_recipe),
    ] = None,
    form: common.Form = "text",
) -> None:
    """List the recipes, or print one as a file, with the meaning, type and default of every setting."""
    from textcat.recipes.recipe import read_recipe
    from textcat.recipes.recipe import recipes as shipped_recipes

    if name is None:
        show_recipes(terminal.console(), list(map(read_recipe, shipped_recipes())), form)
    else:
        recipe = read_recipe(name)
        recipe.check()
        show_recipe(terminal.console(), recipe, form)


# --- what is printed and written -------------------------------------------------------------------------------------


def show_plan(console: "Console", plan: "TrainingPlan", stages: "Stages", form: str) -> None:
    """Print a plan: the recipe and why, the data, the cost of each stage, and whether it fits into memory."""
    from textcat.cli.printing import Facts, Table, named_rows, seconds_cell, show

    facts = {
        "recipe": plan.recipe + (f" ({plan.why})" if plan.why else ""),
        "documents": f"{plan.documents:,} to train on, {plan.test_documents:,} to test on",
        "topics": plan.topics,
        "peak memory": "unknown" if plan.peak_memory is None else plan.peak_memory,
        "available memory": plan.available_memory,
        "model": f"{plan.model_bytes / 1e6:,.1f} MB",
    }
    processor = plan.processor_seconds
    costs = [(stage, taken, processor.get(stage)) for stage, taken in plan.seconds.items()]
    costs.append(("total", sum(plan.seconds.values()), sum(processor.values())))
    rows = [(stage, *map(seconds_cell, cost)) for stage, *cost in costs]
    show(
        console,
        form,
        plan.as_dict(),
        Facts(facts),
        Table(named_rows(("stage", "seconds", "of all threads"), rows)),
        f"Planned in {stages.seconds['plan']:.1f} s, by training on samples. Nothing was written.",
        "" if plan.fits else "This does not fit into memory, and would be refused.",
    )


def show_training(
    console: "Console",
    tagger: "Tagger",
    corpus: "Corpus",
    folder: Path,
    stages: "Stages",
    form: str,
    *,
    per_topic: bool,
) -> None:
    """Print the evaluation, the time of each stage, topics that did not converge, and the model's folder."""
    from textcat.cli.measure import evaluation_parts
    from textcat.cli.printing import cost_of_stages, show, stage_table
    from textcat.evaluation.evaluation import MeasuredOn
    from textcat.evaluation.export import plain_rows
    from textcat.training.checks import are_single
    from textcat.training.train import unevaluated_topics

    states = () if tagger.facts.converged is None else zip(tagger.topics, tagger.facts.converged, strict=True)
    late = [topic for topic, converged in states if not converged]
    evaluation, cost = tagger.evaluation, cost_of_stages(stages)
    assert evaluation is not None
    where = ""
    if evaluation.measured_on is not MeasuredOn.TEST:
        why = ": none of the test documents has a topic of the model" if corpus.test else " has no test documents"
        measured = f"by cross-validation on its {tagger.facts.train_documents} training documents"
        if evaluation.measured_on is MeasuredOn.SAMPLE:
            measured = f"on {evaluation.test_documents} of its {tagger.facts.train_documents} {evaluation.measured_on}"
        where = f"Corpus {tagger.facts.corpus}{why}: {measured},"
    chosen = ("rows", "vectors", "margins", "lambda_", "unlabelled")
    rows, vectors, margins, lambda_, unlabelled = map(tagger.facts.choices.get, chosen)
    single = "Every training document has exactly one topic: with --set tags.strategy=single, so has every tagged one."
    show(
        console,
        form,
        {
            "model": str(folder),
            "corpus": tagger.facts.corpus,
            "choices": {**tagger.facts.choices},
            "not_converged": late,
            **cost,
            **evaluation.as_dict(),
        },
        where,
        *evaluation_parts(evaluation, per_topic=per_topic),
        stage_table(**cost),
        unevaluated_topics(corpus) or "",
        _rows_sentence(rows) if rows else "",
        _vectors_sentence(vectors) if vectors else "",
        _margins_sentence(margins) if margins and margins["held_out"] else "",
        _lambda_sentence(lambda_) if lambda_ and lambda_["held_out"] else "",
        _promised_sentence(tagger),
        f"{forecast}, forecast from training on parts of these; --set topics.forecast=false leaves it out."
        if (forecast := tagger.facts.forecast)
        else "",
        _aging_sentence(tagger),
        _unlabelled_sentence(unlabelled) if unlabelled else "",
        f"Did not converge: {', '.join(late)}." if late else "",
        single if not tagger.decisions.single and are_single(corpus) else "",
        f"Model: {folder}",
        rows=partial(plain_rows, evaluation),
    )


def _aging_sentence(tagger: "Tagger") -> str:
    """Return a sentence on how ranking quality falls as documents get newer; "" if the recipe does not ask for it."""
    if aging := tagger.facts.aging:
        return f"{aging}, measured by a model of the earlier half of the training documents."
    if tagger.facts.recipe.topics.measures_aging:
        return (
            "Aging was not measured: of the training documents with a date and a topic, at least 500 must be earlier "
            "than the day of the middle one, and 500 on this day or later."
        )
    return ""


def _promised_sentence(tagger: "Tagger") -> str:
    """Return a sentence on how many topics have promises; "" if the recipe asks for none."""
    if (promises := tagger.decisions.promises) is None:
        return ""
    asked, n = tagger.facts.recipe.promise, len(tagger.topics)
    alone = int((promises.has_precision & (promises.together == 0)).sum())
    together = int(promises.together.sum())
    of_recall = int(promises.has_recall.sum())
    parts = [
        f"a precision of {asked.precision:g} of {alone:,} of {n:,} topics" if alone or asked.precision else "",
        f"the same of {together:,} small topics together" if together else "",
        f"a recall of {asked.recall:g} of {of_recall:,}" if of_recall or asked.recall else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f"Promised, with a confidence of {asked.confidence:g}: {said}; `textcat topics` lists them."


def show_training_by_names(console: "Console", tagger: "Tagger", folder: Path, stages: "Stages", form: str) -> None:
    """Print how many documents were pseudo-labelled with each topic, the time of each stage, and the model's folder."""
    from textcat.cli.printing import Table, cost_of_stages, show, stage_table

    cost, n_documents = cost_of_stages(stages), tagger.facts.train_documents
    rows = [
        {"topic": topic, "taken for examples": int(n), "terms of largest weight": ", ".join(t for t, _ in terms)}
        for topic, n in zip(tagger.topics, tagger.facts.train_sizes, strict=True)
        for terms in [tagger.terms(topic, 5)]
    ]
    vectors = "vectors of words" if tagger.facts.choices["names"]["vectors"] else "no vectors, as they know few words"
    show(
        console,
        form,
        {"model": str(folder), "unlabelled": n_documents, "topics": rows, **cost},
        Table(rows, 2, _MOST_TRIALS),
        f"Trained by names alone on {n_documents:,} unlabelled documents, with {vectors}. Nothing was measured: "
        f"`textcat evaluate {folder} CORPUS` does so, on labelled documents.",
        stage_table(**cost),
        f"Model: {folder}",
        rows=lambda: rows,
    )


def _rows_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the kinds of terms that rows have, and the measured values by which training chose them.

    `choice` is an entry of `TrainingFacts.choices`, as in the functions below.
    """
    if "ndcg@10" in choice:  # with a shortlist
        measure = f"nDCG@10 of {choice['held_out']:,} held-out documents by nearest centroids"
        values = choice["ndcg@10"]
    else:
        measure, values = _RIGHT, choice["precision@1"]
    figures = ", ".join(f"{value:.3f} by {name}" for name, value in values.items())
    measured = f" ({measure}: {figures})" if figures else ""
    return f"Rows consist of {choice['chosen']}{measured}; --set features.chars=N fixes it."


def _vectors_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the weight that training gave to word vectors, and why."""
    from textcat.features.vectors import STATIC

    chosen, known, name = choice["chosen"], choice["known_words"], choice["vectors"]
    of = "English words" if name == STATIC else f"words in {name}"
    used = "not used" if chosen == "0" else f"weight {chosen}"
    figures = ", ".join(f"{value:.3f} by weight {name}" for name, value in choice["precision@1"].items())
    why = f"{_RIGHT}: {figures}" if figures else f"{known:.0%} of the words of the training documents have one"
    return f"Vectors of {of}: {used} ({why}); --set topics.vector_weight=W fixes their weight, 0 for none."


def _margins_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the margins that training chose, and the measured values by which it did."""
    figures = ", ".join(f"{value:.3f} by {name}" for name, value in choice["precision@1"].items())
    kept = "--set learner.tau_pos=prevalence keeps the recipe's own"
    return f"Margins: {choice['chosen']} ({_RIGHT}: {figures}); {kept}."


def _lambda_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the λ that training chose, and the measured values by which it did."""
    figures = ", ".join(f"{value:.3f} by {name}" for name, value in choice["precision@1"].items())
    return f"λ: {choice['chosen']} ({_RIGHT}: {figures}); --set learner.lambda_=X fixes it."


def _unlabelled_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on whether unlabelled documents were used, and the measured values that decided this."""
    figures = ", ".join(f"{value:.3f} {name}" for name, value in choice["precision@1"].items())
    return f"Unlabelled documents: {choice['chosen']}, of {choice['documents']:,} ({_RIGHT}: {figures})."


def show_update(console: "Console", result: "UpdateResult", stages: "Stages", form: str, *, per_topic: bool) -> None:
    """Print the documents that an update has changed, and each topic's size and quality before and after."""
    from textcat.base.errors import first_of
    from textcat.cli.printing import Facts, Table, cost_of_stages, show, stage_table

    if result.number is None:
        facts = {"model": str(result.folder), "step": None}
        said = f"Nothing new: the model {result.folder} stays as it is."
        show(console, form, facts, said if form == "text" else Facts(facts))
        return

    rows, evaluation, cost = result.rows(), result.tagger.evaluation, cost_of_stages(stages)
    has_changed = any((result.added, result.corrected, result.removed))
    shown = [_update_row(row) for row in rows if per_topic or row["before"] != row["after"]]
    left = len(rows) - len(shown) if has_changed else 0
    those = "A topic has" if left == 1 else f"{left:,} topics have"
    measured = evaluation is not None and (shown or has_changed)
    show(
        console,
        form,
        {
            "model": str(result.folder),
            "step": result.number,
            **{name: list(getattr(result, name)) for name in ("added", "corrected", "removed", "named", "kept")},
            "topics": rows,
            **cost,
        },
        *_changes(result),
        Table(shown, needed=3),
        f"{those} as many documents as before (--topics)." if left else "",
        f"Measured on {evaluation.test_documents:,} {evaluation.measured_on}." if evaluation and measured else "",
        f"Documents that later steps labelled, too, keep these labels: {first_of(result.kept)}." if result.kept else "",
        stage_table(**cost),
        f"Model: {result.folder}, after step {result.number}",
        rows=lambda: rows,
    )


def _changes(result: "UpdateResult") -> list[str]:
    """Return sentences: how many topics have names, and how many documents were added, corrected and removed."""
    tagger, changes = result.tagger, []
    if names := tagger.topic_names:
        language = f" ({tagger.names_language})" if tagger.names_language else ""
        are_new = f", {len(result.named):,} of them new or changed" if result.named else ""
        changes.append(f"Names: {len(names):,} of {len(tagger.topics):,} topics{language}{are_new}.")
    n_changed = {"added": len(result.added), "corrected": len(result.corrected), "removed": len(result.removed)}
    said = ", ".join(f"{n:,} {what}" for what, n in n_changed.items() if n) or "none changed"
    return [*changes, f"Documents: {said}; {tagger.facts.train_documents:,} are trained on."]


def _update_row(row: Mapping[str, Any]) -> dict[str, Any]:
    from textcat.cli import printing

    whens, measures = ("before", "after"), (("AP", "ap"), ("F1", "f1"))
    counts = {f"documents\n{when}": row[when] for when in whens}
    figures = {
        f"{title}\n{when}": printing.format_figure(row[f"{name}_{when}"]) for title, name in measures for when in whens
    }
    return {"topic": row["topic"], **counts, **figures}


def show_history(console: "Console", steps: "Sequence[LearningStep]", model: str, form: str) -> None:
    """Print the history of a model, a row per update; `model` is the checksum of the present model."""
    from textcat.cli.printing import Table, show

    data = [step.as_dict() for step in steps]
    said = "" if steps else "The model has learnt nothing since it was trained."
    if steps and steps[-1].model != model:
        said = "Since then, another model was put there, whose steps will follow."
    figures = _shown_figures(steps)
    rows = [_history_row(step, figures) for step in steps]
    show(console, form, data, Table(rows, 6), said, rows=lambda: [_plain_history_row(step, figures) for step in steps])


def _shown_figures(steps: "Sequence[LearningStep]") -> list[str]:
    """Return the names of the measures to show: the first main ones; MAP and macro F1 with few topics."""
    from textcat.evaluation.evaluation import TITLES

    measured = {name for step in steps for name in step.figures}
    return [name for name in TITLES if name in measured and name != "mean_support"][:2]


def _history_row(step: "LearningStep", figures: Sequence[str]) -> dict[str, Any]:
    from textcat.cli import printing
    from textcat.evaluation.evaluation import TITLES
    from textcat.model.manifest import model_id

    said = "learnt" if step.action == "learn" else "another model" if step.number else "first model"
    if step.undoes is not None:
        said = f"undid step {step.undoes}"
    if step.corrections:
        said += f" from {Path(step.corrections).name}"
    row = {"step": step.number, "when": step.at[:16].replace("T", " "), "what": said, **_documents_in(step)}
    for name in figures:
        row[f"{TITLES[name].column}\nbefore"] = printing.format_figure(step.figures_before.get(name))
        row[f"{TITLES[name].column}\nafter"] = printing.format_figure(step.figures.get(name))
    return {**row, "who": step.who, "model": model_id(step.model)}


def _plain_history_row(step: "LearningStep", figures: Sequence[str]) -> dict[str, Any]:
    row = {name: value for name, value in step.as_dict().items() if not isinstance(value, list | dict)}
    row |= _documents_in(step)
    for name in figures:
        row |= {f"{name}_before": step.figures_before.get(name), f"{name}_after": step.figures.get(name)}
    return row


def _documents_in(step: "LearningStep") -> dict[str, int]:
    """Return how many documents an update, a step of the history, added, corrected and removed."""
    removed = len(step.removed) + len(step.unlearnt)
    return {"added": len(step.added), "corrected": len(step.corrected), "removed": removed}


def show_undone(console: "Console", folder: Path, form: str) -> None:
    """Print the folder of the model that `learn --undo` has restored."""
    from textcat.cli.printing import Facts, show

    facts = {"model": str(folder)}
    show(console, form, facts, f"The model {folder} is what it was before." if form == "text" else Facts(facts))


def settings_text(values: Mapping[str, Any], between: str = "=") -> str:
    """Return settings as text, "name=value, …", without those that are None; return "defaults" if there are no others.

    `between` separates a name and its value.
    """
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None) or "defaults"


def show_recipes(console: "Console", shipped: "Sequence[Recipe]", form: str) -> None:
    """Print the names, learners and titles of recipes."""
    from textcat.cli.printing import Table, show

    rows = [{"recipe": recipe.name, "learner": recipe.learner["name"], "title": recipe.title} for recipe in shipped]
    show(console, form, rows, Table(rows))


def show_recipe(console: "Console", recipe: "Recipe", form: str) -> None:
    """Print a recipe, with every setting and its meaning: as a TOML file that can be read again, or as a table."""
    from textcat.cli.printing import Table, show

    fields = [field._asdict() for field in recipe.fields()]
    data = {"recipe": recipe.name, "title": recipe.title, "fields": fields}
    show(console, form, data, _as_toml(console, recipe) if form == "text" else Table(fields))


def _as_toml(console: "Console", recipe: "Recipe") -> str:
    from textcat.base.settings import format_value
    from textcat.cli.printing import wrapped_text

    lines, section = [f"title = {format_value(recipe.title)}"], ""
    for field in recipe.fields():
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        default = "none" if field.default is None else format_value(field.default)
        lines += ["", wrapped_text(console, f"{field.explanation} ({field.type}; default: {default})", "# ")]
        lines.append(f"# {field.name} =" if field.value is None else f"{field.name} = {format_value(field.value)}")
    return "\n".join(lines)


def show_trials(
    console: "Console",
    trials: "Sequence[Trial]",
    chosen: "Trial",
    stages: "Stages",
    out: Path | None,
    form: str,
) -> None:
    """Print the compared recipes, the best first, and the chosen one.

    If `out` is not None, write the table and the chosen recipe to this folder, too.
    """
    from textcat.base.disk import write_atomically
    from textcat.cli.printing import Table, cost_of_stages, show, stage_table
    from textcat.evaluation.evaluation import TITLES
    from textcat.evaluation.export import markdown_table
    from textcat.training.cross_validation import EXPECTED, MAP
    from textcat.training.tune import is_yardstick, to_toml

    varied = _varied([trial.recipe for trial in trials])
    figures = [(measure, band) for measure, values in trials[0].measures.items() for band in values]
    if out is not None:
        write_atomically(out / "table.md", markdown_table([_trial_row(trial, varied, figures) for trial in trials]))
        write_atomically(out / "recipe.toml", to_toml(chosen.recipe))
    figures.sort(key=lambda figure: figure[1] not in ("ALL", EXPECTED))  # sort by these bands first; the sort is stable
    measure, band = chosen.judged_by
    goal = f"the best over {band}" if measure == MAP else f"the best by {TITLES[measure].column}"
    if any(map(is_yardstick, trials)):
        goal = "PAUM(1, 50) over ALL, TOP10 and RARE"
    taken = {key: chosen.recipe.settings(section).get(key) for section, key in varied}
    cost = cost_of_stages(stages)
    show(
        console,
        form,
        {"chosen": chosen.as_dict(), "trials": [trial.as_dict() for trial in trials], **cost},
        Table([_trial_row(trial, varied, figures) for trial in trials], len(varied) + 3, _MOST_TRIALS),
        stage_table(**cost),
        f"Measured on {chosen.measured_on}." if chosen.measured_on else "",
        f"The sparsest that ranks as well as {goal}: {settings_text(taken)}",
        "" if out is None else f"Table, recipe and trials: {out}",
    )


def _trial_row(trial: "Trial", varied: list[tuple[str, str]], figures: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the row of a trial in the table: its values of the parameters that vary, and of the measures to show.

    `varied` has each parameter as (section, name), and `figures` each measure as (measure, band), where a band is a set
    of topics to average over.
    """
    from textcat.cli import printing
    from textcat.evaluation.evaluation import TITLES

    row = {key: trial.recipe.settings(section).get(key) for section, key in varied}
    for measure, band in figures:
        title, value = TITLES[measure], trial.measures[measure][band]
        row[f"{title.column} {band}"] = printing.Figure(f"{value:.{4 if title.decimals else 0}f}")
    return row


def _varied(recipes: "Sequence[Recipe]") -> list[tuple[str, str]]:
    """Return the parameters in which recipes differ, each as (section of the recipe file, name)."""
    sections = ("tokens", "features", "topics", "learner")
    named = dict.fromkeys((section, key) for section in sections for r in recipes for key in r.settings(section))
    return [
        (section, key)
        for section, key in named
        if len({json.dumps(recipe.settings(section).get(key)) for recipe in recipes}) > 1
    ]
