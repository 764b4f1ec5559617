"""The command `train`."""

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Option

from textcat.base.disk import expanded
from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.corpus.documents import Corpus, Document
    from textcat.model.tagger import Tagger
    from textcat.reading import ForkedCorpus
    from textcat.recipes.recipe import Recipe
    from textcat.training.examples import CountedCorpus
    from textcat.training.plan import TrainingPlan

_RIGHT = "share of held-out documents whose topic with the highest score is right"
_MOST_TOPICS = 30  # number of topics that are printed after training by names


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
            help="What to promise of each topic: precision=.9 of its automatic tags are right, recall=.9 of its "
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
    finds_language = recipe.tokens.lang == "auto"
    if unlabelled and any((scheduler, rows_dir, updatable, dry_run)):
        raise BadParameter("--unlabelled goes without --scheduler, --rows-dir, --updatable and --dry-run")
    read = read if finds_language else read.in_language_of(recipe)
    checked_keep_support(keep_support)  # checked before anything is read
    if out is not None and not dry_run:
        terminal.check_replacing(out, force=force)
    if unlabelled and has_names(names := expanded(corpus)):
        if band or topics or keep_support:
            raise BadParameter("by names alone nothing is measured or kept: leave out --band, --topics, --keep-support")
        if recipe.promise.is_asked:
            raise BadParameter("by names alone nothing can be promised, as no document has labels: leave out --promise")
        folder, stages = out or Path("models", f"{names.stem}-names"), terminal.new_stages()
        if out is None:
            terminal.check_replacing(folder, force=force)
        _train_by_names(names, _documents(unlabelled, read, stages), recipe, folder, stages, jobs, form)
        return
    reading = None if finds_language or dry_run or unlabelled else read.stream(corpus)
    # All that reading does not need is imported while the other process reads, which takes as long.
    from textcat.base.cluster import on_cluster
    from textcat.model import storage

    stages = terminal.new_stages()
    recipe.check()
    counted = _count_during_reading(reading, recipe, stages, updatable=updatable)
    documents = counted.corpus if counted else read(corpus, stages)
    gc.freeze()  # exempt all documents from garbage collection: they stay in memory
    recipe = _with_language_of(documents, recipe) if finds_language else recipe
    from textcat.training.checks import TrainingOptions
    from textcat.training.plan import check_memory, plan_training
    from textcat.training.steps import train_and_evaluate

    recipe, why = recipe.for_corpus(documents)
    options = TrainingOptions(jobs, rows_dir, keep_support, updatable)
    if dry_run:
        planned = plan_training(documents, recipe, options, why=why, stages=stages)
        show_plan(terminal.console(), planned, stages, form)
        return
    folder = out or Path("models", f"{documents.name}-{recipe.name}")
    if out is None:
        terminal.check_replacing(folder, force=force)
    storage.check_target(folder)
    check_memory(documents, recipe, options)
    if why:
        terminal.say(f"{why}: trained by the recipe {recipe.name}; --recipe names another.")
    if unlabelled:
        from textcat.training.self_training import train_with_unlabelled

        texts = _documents(unlabelled, read, stages)
        tagger = train_with_unlabelled(
            documents, texts, recipe, bands=band, n_jobs=jobs, keep_support=keep_support, stages=stages
        )
    else:
        with on_cluster(scheduler):
            tagger = train_and_evaluate(
                documents, recipe, options, bands=band, stages=stages, keep_texts=False, counted=counted
            )
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
    recipe = _with_language_of(corpus, recipe) if recipe.tokens.lang == "auto" else recipe
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
    read_shipped = read._replace(settings=None, test_size=None, keep_groups=False)  # these are of the labelled corpus
    for corpus in (read_shipped(name, stages) for name in unlabelled if is_shipped(name)):
        yield from (*corpus.train, *corpus.test, *corpus.unused)


def _with_language_of(corpus: "Corpus", recipe: "Recipe") -> "Recipe":
    """Return the recipe with the language of most documents in the corpus, and print this language."""
    from textcat.training.identification import LANGUAGE_SAMPLE, identify_language

    language = identify_language(corpus.sample_train(LANGUAGE_SAMPLE))
    without = "" if language.lang != "xx" else "; spaCy has no rules for its words, so those of no language are used"
    terminal.say(
        f"language {language.identified}, by {language.n_documents:,} of {language.n_sampled:,} sampled "
        f"documents{without}; --lang names another."
    )
    return recipe.with_settings([f"tokens.lang={language.lang}"])


def _count_during_reading(
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
        import textcat.training.steps  # noqa: F401
        from textcat.training.examples import CountedCorpus

        reading.show = bar.show
        return CountedCorpus(reading, recipe, updatable=updatable)
    return None


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
    from textcat.cli.evaluate import evaluation_parts
    from textcat.cli.printing import cost_of_stages, show, stage_table
    from textcat.evaluation.evaluation import MeasuredOn
    from textcat.evaluation.export import plain_rows
    from textcat.training.checks import are_single, unevaluated_topics

    states = () if tagger.facts.converged is None else zip(tagger.topics, tagger.facts.converged, strict=True)
    late = [topic for topic, converged in states if not converged]
    evaluation, cost = tagger.evaluation, cost_of_stages(stages)
    assert evaluation is not None
    where = ""
    if evaluation.measured_on is not MeasuredOn.TEST:
        why = ": none of the test documents has a topic of the model" if corpus.test else " has no test documents"
        n, n_trained = evaluation.test_documents, tagger.facts.train_documents
        measured = f"by cross-validation on {'its' if n == n_trained else f'{n} of its'} {n_trained} training documents"
        if evaluation.measured_on is MeasuredOn.SAMPLE:
            measured = f"on {n} of its {n_trained} {evaluation.measured_on}"
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
        _terms_sentence(rows) if rows else "",
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
    """Return sentences on the promises of topics and of missed topics; "" if the recipe asks for none."""
    if (promises := tagger.decisions.promises) is None:
        return ""
    asked, n, alone = tagger.facts.recipe.promise, len(tagger.topics), promises.together == 0
    parts = []
    if any((asked.precision, *asked.precision_of.values())):
        shares = promises.precision[promises.has_precision & alone]
        of_each = _range([*shares] or [asked.precision, *asked.precision_of.values()])
        parts.append(f"a precision of {of_each} of {len(shares):,} of {n:,} topics")
        if together := int(promises.together.sum()):
            parts.append(f"a precision of {asked.precision:g} of {together:,} small topics together")
    if any((asked.recall, *asked.recall_of.values())):
        shares = promises.recall[promises.has_recall]
        of_each = _range([*shares] or [asked.recall, *asked.recall_of.values()])
        parts.append(f"a recall of {of_each} of {len(shares):,} of {n:,} topics")
    sentences = []
    if parts:
        said = ", ".join(parts)
        sentences = [f"Promised, with a confidence of {asked.confidence:g}: {said}; `textcat topics` lists them."]
    if asked.missed:
        sentences.append(f"Promised: tags miss on average at most {asked.missed:g} of a document's topics.")
    return " ".join(sentences)


def _range(shares: Sequence[float]) -> str:
    """Return the lowest and the highest share, as one number if they are equal; 0 is none."""
    lowest, highest = min(share for share in shares if share), max(shares)
    return f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"


def show_training_by_names(console: "Console", tagger: "Tagger", folder: Path, stages: "Stages", form: str) -> None:
    """Print how many documents were pseudo-labelled with each topic, the time of each stage, and the model's folder."""
    from textcat.cli.printing import Table, cost_of_stages, show, stage_table

    cost, n_documents = cost_of_stages(stages), tagger.facts.train_documents
    rows = [
        {"topic": topic, "taken for examples": int(n), "terms of largest weight": ", ".join(t for t, w in terms if w)}
        for topic, n in zip(tagger.topics, tagger.facts.train_sizes, strict=True)
        for terms in [tagger.terms(topic, 5)]
    ]
    vectors = "vectors of words" if tagger.facts.choices["names"]["vectors"] else "no vectors, as they know few words"
    show(
        console,
        form,
        {"model": str(folder), "unlabelled": n_documents, "topics": rows, **cost},
        Table(rows, 2, _MOST_TOPICS),
        f"Trained by names alone on {n_documents:,} unlabelled documents, with {vectors}. Nothing was measured: "
        f"`textcat evaluate {quote(str(folder))} CORPUS` does so, on labelled documents.",
        stage_table(**cost),
        f"Model: {folder}",
        rows=lambda: rows,
    )


def _measured(choice: Mapping[str, Any], by: str = "by ") -> str:
    """Return the measure by which training chose, and its value for each candidate, in words; "" if none was compared.

    `choice` is an entry of `TrainingFacts.choices`, as in the functions below.
    """
    measures = {
        "precision@1": _RIGHT,
        "ndcg@10": f"nDCG@10 of {choice.get('held_out', 0):,} held-out documents by nearest centroids",
        "average_precision": "average precision on held-out documents",
    }
    measure = next(name for name in measures if name in choice)
    figures = ", ".join(f"{value:.3f} {by}{name}" for name, value in choice[measure].items())
    return f"{measures[measure]}: {figures}" if figures else ""


def _terms_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the kinds of terms in document vectors, with the measured values that decided it."""
    measured = _measured(choice)
    return f"Rows consist of {choice['chosen']}{f' ({measured})' if measured else ''}; --set features.chars=N fixes it."


def _vectors_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the weight that training gave to word vectors, and why."""
    from textcat.features.vectors import STATIC

    chosen, known, name = choice["chosen"], choice["known_words"], choice["vectors"]
    of = "English words" if name == STATIC else f"words in {name}"
    used = "not used" if chosen == "0" else f"weight {chosen}"
    why = _measured(choice, "by weight ") or f"{known:.0%} of the words of the training documents have one"
    return f"Vectors of {of}: {used} ({why}); --set topics.vector_weight=W fixes their weight, 0 for none."


def _margins_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on the margins that training chose, and the measured values by which it did."""
    return (
        f"Margins: {choice['chosen']} ({_measured(choice)}); --set learner.tau_pos=prevalence keeps the recipe's own."
    )


def _lambda_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on λ, the softness of the margin, with the measured values by which training chose it."""
    return f"λ: {choice['chosen']} ({_measured(choice)}); --set learner.lambda_=X fixes it."


def _unlabelled_sentence(choice: Mapping[str, Any]) -> str:
    """Return a sentence on whether unlabelled documents were used, and the measured values that decided this."""
    return f"Unlabelled documents: {choice['chosen']}, of {choice['documents']:,} ({_measured(choice, '')})."
