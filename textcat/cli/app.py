"""The command line: one thin command per verb, over plain functions."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textcat.errors import TextcatError

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.documents import Corpus
    from textcat.progress import Stages
    from textcat.reading.records import Rejection

app = typer.Typer(
    help="Train, evaluate and use rankers of documents by topic.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
corpora_app = typer.Typer(help="List the known corpora; fetch one, or show its counts.", invoke_without_command=True)
app.add_typer(corpora_app, name="corpora")

CorpusName = Annotated[
    str, typer.Argument(help="Name of a corpus, path of a card (.toml), or folder or archive of documents.")
]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a trained model.")]
CorpusDir = Annotated[Path | None, typer.Option(help="Folder in which corpora are looked for first.")]


def _not_zero(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 jobs do nothing; give 1 or more, or -1 for one a core")
    return jobs


Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", callback=_not_zero, help="Blocks of topics trained at the same time; -1: one a core."),
]
RecipeName = Annotated[str, typer.Option(help="Name of a shipped recipe, or path of a recipe file.")]
LearnerOption = partial(typer.Option, rich_help_panel="Learner (instead of what the recipe says)")
InputOption = partial(typer.Option, rich_help_panel="Input")
OutputOption = partial(typer.Option, rich_help_panel="Output")
Backend = Annotated[
    str, typer.Option(help="Who does the work: processes of this machine (local), or a Dask cluster (dask).")
]
Scheduler = Annotated[str, typer.Option(help="Address of the Dask cluster's scheduler, such as tcp://host:8786.")]
BandSpecs = Annotated[
    list[str] | None,
    typer.Option("--band", help="Band to average over: ALL, TOPn, LASTn, 10-50 or name=topic,topic. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LabelledOnly = Annotated[
    bool, typer.Option("--labelled-only", help="Leave out test documents that have none of the model's topics.")
]
PerTopic = Annotated[bool, typer.Option("--topics", help="Print a row per topic, too.")]


@app.command()
def train(
    corpus: CorpusName,
    recipe: RecipeName = "best",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the model to.", show_default="models/CORPUS-RECIPE")
    ] = None,
    jobs: Jobs = -1,
    learner: Annotated[str | None, LearnerOption(help="Train by another learner than the recipe's.")] = None,
    tau: Annotated[float | None, LearnerOption(help="Margin τ asked of all documents: pam.")] = None,
    tau_neg: Annotated[float | None, LearnerOption(help="Margin τ₋ asked of negative documents: paum.")] = None,
    tau_pos: Annotated[
        str | None, LearnerOption(help="Margin τ₊ asked of positive ones, or 'prevalence': paum.")
    ] = None,
    kappa: Annotated[float | None, LearnerOption(help="How τ₊ changes with a topic's prevalence, κ: paum.")] = None,
    eta: Annotated[float | None, LearnerOption(help="Learning rate η: pa, pam, paum, micra, cramma.")] = None,
    beta: Annotated[float | None, LearnerOption(help="Directional margin β asked for at first: micra, cramma.")] = None,
    epsilon: Annotated[
        float | None, LearnerOption(help="Exponent ε of the margin: micra, cramma, margitrons; fraction: pdm.")
    ] = None,
    zeta: Annotated[float | None, LearnerOption(help="Exponent ζ of the steps: micra.")] = None,
    b: Annotated[float | None, LearnerOption("--b", help="Size b of the margin: t-margitron, l-margitron.")] = None,
    alpha: Annotated[float | None, LearnerOption(help="Fraction α of the margin that may be missed: alma.")] = None,
    delta: Annotated[float | None, LearnerOption(help="Fraction δ of the margin that may be missed: romma.")] = None,
    lambda_: Annotated[
        float | None, LearnerOption("--lambda", help="λ = Δ² of each document's private coordinate.")
    ] = None,
    rho: Annotated[str | None, LearnerOption(help="Coordinate ρ behind the bias, or R.")] = None,
    mini_epochs: Annotated[
        int | None, LearnerOption(min=0, help="Passes over the active set after each epoch ('red-').")
    ] = None,
    max_epochs: Annotated[int | None, LearnerOption(min=1, help="Give up on a topic after so many epochs.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Train in a random order drawn with this seed.")] = None,
    band: BandSpecs = None,
    topics: PerTopic = False,
    store: Annotated[
        Path | None, typer.Option(help="Keep rows in this folder, not in memory, and train from there.")
    ] = None,
    backend: Backend = "local",
    scheduler: Scheduler = "",
    corpus_dir: CorpusDir = None,
) -> None:
    """Train a ranker per topic, evaluate it on test documents or else by cross-validation, and save the model."""
    from textcat.cli import tables
    from textcat.cluster import on_cluster
    from textcat.model import storage
    from textcat.model.tagger import Tagger
    from textcat.recipe import read_recipe
    from textcat.training.train import cross_evaluate

    chosen = read_recipe(recipe).changed(
        learner, tau=tau, tau_neg=tau_neg, tau_pos=_number_or("prevalence", tau_pos, "--tau-pos"), kappa=kappa,
        eta=eta, beta=beta, epsilon=epsilon, zeta=zeta, b=b, alpha=alpha, delta=delta, lambda_=lambda_,
        rho=_number_or("R", rho, "--rho"), mini_epochs=mini_epochs, max_epochs=max_epochs, seed=seed,
    )  # fmt: skip
    if kappa is not None and chosen.learner.get("tau_pos", "prevalence") != "prevalence":
        raise typer.BadParameter("--kappa adapts τ₊ to prevalence, and here τ₊ is fixed; add --tau-pos prevalence")
    address, stages = _scheduler(backend, scheduler), _stages()
    documents = _open(corpus, corpus_dir, stages)
    folder = out or Path("models", f"{documents.name}-{chosen.name}")
    storage.check_target(folder)
    with on_cluster(address):
        tagger = Tagger.fit(documents, chosen, n_jobs=jobs, store=store, stages=stages)
        if documents.test:
            evaluation = tagger.evaluate(documents, bands=band, stages=stages)
        else:
            evaluation = cross_evaluate(tagger, documents, chosen, bands=band, n_jobs=jobs, store=store, stages=stages)
    with stages.stage("save"):
        storage.save(tagger, folder)
    tables.training(_console(), tagger, evaluation, folder, stages, tested=bool(documents.test), per_topic=topics)


@app.command()
def evaluate(
    model: ModelFolder,
    corpus: Annotated[str | None, typer.Argument(help="The corpus; by default the one it was trained on.")] = None,
    topics: PerTopic = False,
    band: BandSpecs = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a row per topic as CSV.")] = False,
    trec: Annotated[Path | None, typer.Option(help="Write run and qrels files for trec_eval to this folder.")] = None,
    labelled_only: LabelledOnly = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Give 95 % intervals from that many resamples of the documents, such as 1000.")
    ] = 0,
    corpus_dir: CorpusDir = None,
) -> None:
    """Measure how well a model ranks a corpus' test documents."""
    from textcat.cli import tables
    from textcat.evaluation import export, significance
    from textcat.model import storage

    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    tagger, stages = storage.load(model), _stages()
    documents = _open(corpus or _known_corpus(tagger.corpus), corpus_dir, stages)
    if labelled_only:
        documents = _labelled(documents, tagger.topics)
    evaluation = tagger.evaluate(documents, bands=band, stages=stages)
    if bootstrap:
        evaluation = significance.with_intervals(evaluation, n_resamples=bootstrap)
    if trec:
        ids = [document.id for document in documents.test]
        export.write_trec(trec, evaluation.scores, evaluation.relevant, ids, tagger.topics)
    form = "json" if as_json else "csv" if as_csv else ""
    tables.quality(_console(), evaluation, form=form, per_topic=topics, every_measure=True)


@app.command()
def compare(
    models: Annotated[list[Path], typer.Argument(help="Folders of two or more trained models.")],
    corpus: Annotated[str | None, typer.Option(help="The corpus.", show_default="that of the first model")] = None,
    topics: PerTopic = False,
    band: BandSpecs = None,
    as_json: AsJson = False,
    labelled_only: LabelledOnly = False,
    bootstrap: Annotated[int, typer.Option(min=100, help="Resamples of the documents.")] = 1000,
    corpus_dir: CorpusDir = None,
) -> None:
    """Compare models on a corpus' test documents: each with the first, and whether the differences may be chance."""
    from textcat.cli import tables
    from textcat.evaluation.significance import compare as compare_evaluations
    from textcat.model import storage

    if not 2 <= len(models) <= 26:
        raise typer.BadParameter("give 2 to 26 models: they are named by letters")
    taggers, stages = [storage.load(model) for model in models], _stages()
    first = taggers[0]
    for tagger, model in zip(taggers, models, strict=True):
        if tagger.topics != first.topics:
            raise TextcatError(f"{model} does not have the topics of {models[0]}: compare models of one corpus.")
    documents = _open(corpus or _known_corpus(first.corpus), corpus_dir, stages)
    if labelled_only:
        documents = _labelled(documents, first.topics)
    evaluations = [tagger.evaluate(documents, bands=band, stages=stages) for tagger in taggers]
    found = compare_evaluations(evaluations, n_resamples=bootstrap)
    tables.comparison(_console(), found, models, documents.name, as_json=as_json, per_topic=topics)


@app.command()
def tag(
    model: ModelFolder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders, patterns such as '*.jsonl', URLs; - or none: standard input."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write shards to, and a journal by which a broken-off run goes on.")
    ] = None,
    filter_: Annotated[
        bool, typer.Option("--stdin", help="Read a document a line from standard input, as a filter.")
    ] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Write to standard output, as without --out.")] = False,
    format_: Annotated[
        str, InputOption("--format", help="Format of all inputs, if name and content do not tell it.")
    ] = "",
    lines: Annotated[bool, InputOption("--lines", help="Read a document a line from text files.")] = False,
    text_field: Annotated[str, InputOption(help="Field or column of the text: jsonl, csv, tsv, parquet.")] = "text",
    id_field: Annotated[str, InputOption(help="Field or column of the id: jsonl, csv, tsv, parquet.")] = "id",
    encoding: Annotated[
        str, InputOption(help="Encoding of the inputs.", show_default="that of the format, mostly utf-8")
    ] = "",
    top: Annotated[
        int | None, OutputOption(min=1, help="Give that many topics, not those above their thresholds.")
    ] = None,
    scores: Annotated[str, OutputOption(help="Which topics to give: those above their thresholds, or all.")] = "above",
    explain: Annotated[int, OutputOption(min=0, help="Give that many terms that speak for each topic.")] = 0,
    to: Annotated[str, OutputOption(help="Format of the output: jsonl, csv or parquet.")] = "jsonl",
    compress: Annotated[str, OutputOption(help="Compress the output: zst.")] = "",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", callback=_not_zero, help="Processes that tag; -1: one a core.")
    ] = -1,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first document that cannot be read.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove what an earlier run has written to --out.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Draw no progress, and print no summary.")] = False,
    log: Annotated[Path | None, typer.Option(help="Add lines on the progress of the run to this file.")] = None,
    backend: Backend = "local",
    scheduler: Scheduler = "",
) -> None:
    """Tag documents: print a JSON line for each, or write an archive's tags to a folder of shards.

    A document that cannot be read is named on standard error, or in rejected.jsonl with --out; the exit code is then 3.
    A run that was broken off goes on where it was when the same command is given again.
    """
    from textcat.tagging.workers import without_blas_threads

    without_blas_threads()
    from textcat.reading.records import InputSettings
    from textcat.tagging import run
    from textcat.tagging.meter import Meter
    from textcat.tagging.output import OutputSettings
    from textcat.tagging.plan import make_plan

    _check_tag(inputs, out, filter_=filter_, stdout=stdout, scores=scores, restart=restart)
    read = InputSettings(format_, text_field, id_field, encoding, lines or filter_)
    write = OutputSettings(to, compress, top, scores == "all", explain)
    how = run.How(jobs, _scheduler(backend, scheduler), strict)
    with _log_to(log), _going_on(out), Meter(_meter_console(out, quiet=quiet)) as show:
        plan = make_plan(model, inputs or ["-"], read, write)
        if out is None:
            summary = run.tag_to_stream(plan, sys.stdout.buffer, how, tell=_tell, show=show)
        else:
            summary = run.tag_to_folder(plan, out, how, restart=restart, show=show)
    from textcat.cli import tables  # now, as until here the process that hands out the work has been kept small

    tables.archive(_summary_console(out, summary.counts.records, quiet=quiet), summary, out)
    raise typer.Exit(3 if summary.counts.rejected else 0)


@app.command()
def topics(model: ModelFolder, as_json: AsJson = False) -> None:
    """List a model's topics with what training knows of each."""
    from textcat.cli import tables
    from textcat.model.manifest import read_manifest

    tables.topics(_console(), read_manifest(model), as_json=as_json)


@app.command()
def show(
    model: ModelFolder,
    topic: Annotated[str | None, typer.Option(help="Show the terms with the largest weights for this topic.")] = None,
    n: Annotated[int, typer.Option("--terms", min=1, help="How many terms.")] = 20,
) -> None:
    """Show how a model was trained, or what it has learnt of a topic."""
    from textcat.cli import tables
    from textcat.model import storage
    from textcat.model.manifest import read_manifest

    if topic is None:
        tables.model(_console(), read_manifest(model), model)
    else:
        tables.topic_terms(_console(), storage.load(model, prepare=False).terms(topic, n))


@app.command()
def tune(
    corpus: CorpusName,
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
    out: Annotated[
        Path | None, typer.Option(help="Folder for the table, the best recipe, and the trials: a study goes on there.")
    ] = None,
    corpus_dir: CorpusDir = None,
) -> None:
    """Compare recipes by cross-validation on the training documents, and find the best."""
    from textcat.cli import tables
    from textcat.recipe import read_recipe
    from textcat.training.selection import best
    from textcat.training.tune import study

    start, stages = read_recipe(recipe), _stages()
    documents = _open(corpus, corpus_dir, stages)
    found = study(
        documents, start, space, sampler, trials, out, stages, n_folds=folds, n_repeats=repeats, seed=seed, n_jobs=jobs
    )
    tables.study(_console(), found, best(found), stages, out)


@app.command()
def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(help="Names of experiments; none: list them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    slow_baselines: Annotated[
        bool, typer.Option("--slow-baselines", help="Also run the baselines that take more than a few minutes.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Run anew what had been run before, too.")] = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Also write a Markdown page per experiment to this folder.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder in which results are kept.", show_default="the user's cache")
    ] = None,
) -> None:
    """Run the papers' experiments and compare our figures with the published ones; without a name, list them."""
    from textcat.cli import tables
    from textcat.papers import runs
    from textcat.papers.experiment import Settings

    if everything and experiments:
        raise typer.BadParameter("choose one of names and --all")
    folder, settings, stages = results or runs.results_folder(), Settings(jobs, slow_baselines), _stages()
    known = runs.experiments().values()
    if not (everything or experiments):
        tables.experiments(_console(), [runs.state(one, settings, folder) for one in known], as_json=as_json)
        return
    chosen = known if everything else runs.find(experiments or [])
    ended = (runs.run(one, settings, folder, restart=restart, stages=stages) for one in chosen)
    tables.reproductions(_console(), ended, out, as_json=as_json)


@corpora_app.callback()
def corpora(context: typer.Context, corpus_dir: CorpusDir = None) -> None:
    """List the known corpora; fetch one, or show its counts."""
    if context.invoked_subcommand is not None:
        return
    from textcat.cli import tables
    from textcat.corpus.catalogue import cards, locate

    tables.corpora(_console(), [(card, locate(card, corpus_dir)) for card in cards().values()])


@corpora_app.command()
def fetch(
    corpus: Annotated[str, typer.Argument(help="Name of a corpus, or path of a card (.toml).")],
    corpus_dir: CorpusDir = None,
) -> None:
    """Find a corpus or download it, and check that it is complete."""
    from textcat.cli import tables
    from textcat.corpus.catalogue import cache_folder, card, locate, verify
    from textcat.corpus.catalogue import fetch as fetch_corpus
    from textcat.progress import bar_on

    chosen = card(corpus)
    path = locate(chosen, corpus_dir)
    if path is None or path.parent == cache_folder():
        with bar_on(_console(stderr=True), chosen.name, shows="bytes") as progress:
            path = fetch_corpus(chosen, progress)
    else:
        verify(chosen, path)
    tables.fetched(_console(), chosen, path)


@corpora_app.command("show")
def show_corpus(corpus: CorpusName, corpus_dir: CorpusDir = None) -> None:
    """Count a corpus' documents, topics and tokens."""
    from textcat.cli import tables
    from textcat.features.tokens import Tokens

    stages = _stages()
    documents = _open(corpus, corpus_dir, stages)
    with stages.stage("count tokens"):
        n_tokens = sum(
            int(Tokens().count(text for document in part for text in document.zones.values()).sum())
            for part in (documents.train, documents.test)
        )
    tables.corpus(_console(), documents, n_tokens)


class _Interrupted(BaseException):
    """Ctrl-C, and what that means for the user; unlike KeyboardInterrupt, typer lets it pass."""


def main() -> None:
    """Run the command line; a user's mistake is told in a sentence, a bug shows its traceback."""
    try:
        with _sentences(), _interruptible():
            try:
                app(prog_name="textcat")
            finally:
                # Here, a full disk or a reader that has gone can still be told; at exit it could not.
                if sys.stdout is not None:
                    sys.stdout.flush()
    except TextcatError as error:
        _fail(str(error), 1)
    except _Interrupted as end:
        _fail(f"interrupted; {str(end) or 'no file was left half written'}.", 130)
    except BrokenPipeError:
        # The reader of our output has gone (as with `| head`); the interpreter must not flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)


def _fail(message: str, code: int) -> None:
    typer.echo(f"textcat: {message}", err=True)
    sys.exit(code)


@contextmanager
def _sentences() -> Iterator[None]:
    """Print what the library warns of as sentences, and never fail for a character that the output cannot show."""
    import logging
    import warnings

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show_warning(record.getMessage())

    def show_warning(message: Any, *_: Any, **__: Any) -> None:
        typer.echo(f"textcat: warning: {message}", err=True)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    log, handler = logging.getLogger("textcat"), Handler(logging.WARNING)
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        log.removeHandler(handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn Ctrl-C into `_Interrupted`, unless whoever started us wants it ignored."""

    def interrupt(*_: Any) -> None:
        raise _Interrupted

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_tag(
    inputs: list[str] | None, out: Path | None, *, filter_: bool, stdout: bool, scores: str, restart: bool
) -> None:
    if inputs and filter_:
        raise typer.BadParameter("--stdin reads standard input: leave out the inputs, or --stdin")
    if out is not None and stdout:
        raise typer.BadParameter("choose one of --out and --stdout")
    if out is None and restart:
        raise typer.BadParameter("--restart goes with --out")
    if scores not in ("above", "all"):
        raise typer.BadParameter(f"--scores is 'above' or 'all', not {scores!r}")


def _scheduler(backend: str, scheduler: str) -> str:
    """Return the address of the scheduler, "" if this machine does the work."""
    if backend not in ("local", "dask"):
        raise typer.BadParameter(f"--backend is 'local' or 'dask', not {backend!r}")
    if (backend == "dask") != bool(scheduler):
        raise typer.BadParameter("--backend dask and --scheduler ADDRESS go together")
    return scheduler


@contextmanager
def _log_to(path: Path | None) -> Iterator[None]:
    """Add what the library tells of its work to a file, with the time."""
    import logging

    if path is None:
        yield
        return
    log, handler = logging.getLogger("textcat.tagging"), logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)
        handler.close()


@contextmanager
def _going_on(out: Path | None) -> Iterator[None]:
    try:
        yield
    except _Interrupted:
        raise _Interrupted("the same command, without --restart, goes on where it was" if out else "") from None


def _meter_console(out: Path | None, *, quiet: bool) -> Console | None:
    """Return where progress is drawn: on standard error, unless tags are printed on the same terminal."""
    return None if quiet or (out is None and sys.stdout.isatty()) else _console(stderr=True)


def _summary_console(out: Path | None, n_records: int, *, quiet: bool) -> Console | None:
    """Return where a run is summed up: behind the tags only for people, and where there is something to sum up."""
    if quiet or (out is None and (n_records < 2 or not sys.stderr.isatty())):
        return None
    return _console(stderr=out is None)


def _tell(rejection: Rejection) -> None:
    from textcat.tagging.run import told

    typer.echo(f"textcat: {told(rejection)}", err=True)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def _stages() -> Stages:
    from textcat.progress import Stages

    return Stages(_console(stderr=True))


def _open(corpus: str, corpus_dir: Path | None, stages: Stages) -> Corpus:
    from textcat.corpus.catalogue import open_corpus

    with stages.stage("read") as bar:
        return open_corpus(corpus, corpus_dir, progress=bar)


def _labelled(corpus: Corpus, topics: tuple[str, ...]) -> Corpus:
    from dataclasses import replace

    labelled = [document for document in corpus.test if not set(topics).isdisjoint(document.topics)]
    return replace(corpus, test=labelled or corpus.test)  # of a corpus without any, the evaluation tells


def _known_corpus(trained_on: str) -> str:
    from textcat.corpus.catalogue import cards

    if trained_on not in cards() and not Path(trained_on).exists():
        raise TextcatError(
            f"The model was trained on {trained_on!r}, which is no known corpus: name the corpus to evaluate on."
        )
    return trained_on


def _number_or(word: str, text: str | None, option: str) -> float | str | None:
    if text is None or text == word:
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{option} is a number or {word!r}, not {text!r}") from None
