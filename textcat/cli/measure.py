"""Commands that measure models: `evaluate`, `compare`, `report` (an HTML file) and `card`."""

import os
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option, echo

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal
from textcat.cli.configuration import alternatives

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.cli.printing import Figure, Part
    from textcat.corpus.documents import Corpus
    from textcat.evaluation.evaluation import Evaluation
    from textcat.evaluation.promises import CheckedPromise
    from textcat.evaluation.significance import Comparison, GateResult
    from textcat.model.tagger import Tagger

_LARGEST = 10  # number of topics listed that differ most between models, and of the most frequent confusions


@common.with_options(read=common.corpus_reader)
def evaluate(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    topics: common.PerTopic = False,
    band: common.Bands = None,
    form: common.Form = "text",
    trec: Annotated[Path | None, Option(help="Write run and qrels files for trec_eval to this folder.")] = None,
    labelled_only: common.LabelledOnly = False,
    bootstrap: Annotated[
        int, Option(min=0, help="Resamples of the documents for 95 % intervals, such as 1000; 0: no intervals.")
    ] = 0,
) -> None:
    """Measure a model's rankings, and its tags without house rules, on a corpus' test documents."""
    from textcat.base.disk import write_atomically
    from textcat.evaluation.export import trec_files
    from textcat.evaluation.significance import add_intervals
    from textcat.model import storage
    from textcat.model.measure import evaluate_tagger

    tagger, stages = storage.load(model, with_rules=False), terminal.new_stages()
    documents = test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    evaluation = evaluate_tagger(tagger, documents, bands=band, stages=stages)
    if trec:
        if (scored := evaluation.scored) is None:
            which = f"on {evaluation.measured_on}" if evaluation.topics else f"of {evaluation.n_topics:,} topics"
            raise TextcatError(f"Of the evaluation {which} no scores were kept: leave out --trec.")
        ids = [document.id for document in documents.test]
        for name, lines in trec_files(scored.scores, scored.relevant, ids, tagger.topics).items():
            write_atomically(trec / name, lines)
    if bootstrap:
        evaluation = add_intervals(evaluation, n_resamples=bootstrap)
    show_evaluation(terminal.console(), evaluation, form, per_topic=topics)


@alternatives("table topics", "table fail_if")
@common.with_options(read=common.corpus_reader)
def compare(
    models: Annotated[list[Path], Argument(help="Folders of two or more trained models; with --table also of one.")],
    read: common.CorpusReader,
    corpus: Annotated[
        str | None,
        Option(help="The corpus.", show_default="that of the first model", autocompletion=common.complete_corpus),
    ] = None,
    table: Annotated[
        bool,
        Option(
            "--table",
            help="Print a row per model and band, with intervals, instead of differences: by default, each model is "
            "measured on its own corpus, so that recipes and corpora make one table.",
        ),
    ] = False,
    fail_if: common.FailIf = None,
    strict: common.Strict = False,
    topics: common.PerTopic = False,
    band: common.Bands = None,
    form: common.Form = "text",
    labelled_only: common.LabelledOnly = False,
    bootstrap: Annotated[int, Option(min=100, help="Resamples of the documents.")] = 1000,
) -> None:
    """Compare models with the first of them on a corpus' test documents, by tests of significance.

    With --fail-if, the exit code is 4 if the second model fails by a condition.
    """
    from textcat.evaluation.significance import add_intervals
    from textcat.model import compare as comparing
    from textcat.model import storage
    from textcat.model.measure import evaluate_tagger

    if not table and not 2 <= len(models) <= 26:
        raise BadParameter("give 2 to 26 models: they are named by letters")
    if file := next(filter(Path.is_file, models), None):
        raise BadParameter(
            f"{file} is a file, not the folder of a model: to compare models on it, give --corpus {file}"
        )
    if table and topics:
        raise BadParameter("--table has no topics: leave out one of the two")
    if fail_if and (table or len(models) != 2):
        raise BadParameter("--fail-if is of two models, an old and a new one, and not for --table")
    if strict and not fail_if:
        raise BadParameter("--strict is of --fail-if: name a condition")
    stages = terminal.new_stages()
    if table:
        rows: list[dict[str, Any]] = []
        for model in models:
            tagger = storage.load(model, with_rules=False)
            documents = test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
            evaluation = evaluate_tagger(tagger, documents, bands=band, stages=stages)
            if evaluation.sample is not None:
                evaluation = add_intervals(evaluation, n_resamples=bootstrap)
            rows += rows_of_model(model, tagger.facts.recipe.title, documents.name, evaluation)
        show_models(terminal.console(), rows, form)
        return
    taggers = comparing.shared_topics(models)
    # mistakes in conditions are reported before the corpus is read
    comparing.read_gates(taggers[0], fail_if or (), band)
    documents = test_corpus(read, corpus, taggers[0], stages, labelled_only=labelled_only)
    options: dict[str, Any] = {"bands": band, "fail_if": fail_if or (), "strict": strict}
    compared = comparing.compare(taggers, documents, n_resamples=bootstrap, stages=stages, **options)
    show_comparison(terminal.console(), compared, models, documents.name, form, per_topic=topics)
    exit_if_failed(compared.gates)


def exit_if_failed(gates: "Sequence[GateResult]") -> None:
    """Exit with code 4 if a model fails by a condition, and say by which."""
    if failed := [repr(gate.gate) for gate in gates if gate.failed]:
        terminal.say(f"the new model fails by {', '.join(failed)}.")
        raise Exit(4)


@common.with_options(read=common.corpus_reader)
def report(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    out: Annotated[Path, Option(help="File to write.")] = Path("report.html"),
    before: Annotated[
        Path | None, Option(help="An earlier model: show and explain the changes since, for the topics that both have.")
    ] = None,
    label_issues: Annotated[
        Path | None, Option(help="Write labels that are probably wrong to this file, as JSON Lines.")
    ] = None,
    folds: Annotated[
        int,
        Option(min=0, help="Folds by which training documents are scored; 0: test documents only."),
    ] = 5,
    bootstrap: Annotated[int, Option(min=0, help="Resamples of the documents, for intervals.")] = 1000,
    band: common.Bands = None,
    labelled_only: common.LabelledOnly = False,
    learner: common.ModelsLearner = None,
    jobs: common.Jobs = -1,
) -> None:
    """Write an HTML file about a model's quality, overall and topic by topic, with example documents.

    The file needs no network, so it can be opened from disk, printed and sent. To find labels that are probably wrong,
    documents are scored by rankers that were not trained on them.
    """
    from textcat.model.card import read_card
    from textcat.model.compare import shared_topics
    from textcat.report.write import write_report

    if folds == 1:
        raise BadParameter("1 part leaves no document to train on: give 2 or more, or 0")
    tagger, *earlier = shared_topics([model, before] if before else [model])
    stages = terminal.new_stages()
    documents = test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    options: dict[str, Any] = {
        "folds": folds,
        "resamples": bootstrap,
        "bands": band,
        "label_issues": label_issues,
        "card": read_card(model) or "",
        "n_jobs": jobs,
    }
    if before:
        options |= {"before": earlier[0], "names": common.model_names(before, model)}
    path = write_report(out, tagger, documents, stages=stages, **options)
    echo(f"Report: {path} ({path.stat().st_size / 1e3:,.0f} kB)")


@common.with_options(read=common.corpus_reader)
def card(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    out: Annotated[
        Path | None, Option(help="File to write; -: print.", show_default="README.md in the model's folder")
    ] = None,
    title: Annotated[str, Option(help="Heading.", show_default="the corpus and the number of topics")] = "",
    licence: Annotated[str, Option(help="Licence of the model, such as mit or cc-by-4.0.")] = "",
    about: Annotated[str, Option(help="A paragraph: what the model is for, and who answers for it.")] = "",
    dataset: Annotated[
        list[str] | None, Option(help="Id of the training data on the Hugging Face hub. May be repeated.")
    ] = None,
    bootstrap: Annotated[
        int,
        Option(min=0, help="Resamples of the documents, for intervals; 0: the measures of training, without a corpus."),
    ] = 1000,
    band: common.Bands = None,
    labelled_only: common.LabelledOnly = False,
    learner: common.ModelsLearner = None,
    force: Annotated[bool, Option("--force", help="Replace an existing card.")] = False,
) -> None:
    """Write a model's card: data, recipe, quality with intervals, thresholds, limits and use, as a README.md.

    The model is first measured on its test documents. The Hugging Face hub reads the card; `textcat report` and the
    page of `textcat serve` show it. The card is not part of the model's checksums, so it may be edited. Training or
    teaching the model again removes it.
    """
    from textcat.model import CARD, storage
    from textcat.model.manifest import model_id
    from textcat.report.card import CardFields, card_text, measure_for_card, write_card

    path = model / CARD if out is None else out
    if str(path) != "-" and os.path.lexists(path) and not force:
        raise TextcatError(f"The card {path} exists: replace it with --force, or name another file with --out.")
    (tagger, digest), stages = storage.load_versioned(model, with_rules=False), terminal.new_stages()
    evaluation = tagger.evaluation
    if bootstrap or corpus:
        documents = test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
        evaluation = measure_for_card(tagger, documents, bands=band, resamples=bootstrap, stages=stages)
    fields = CardFields(title, licence, about, dataset or (), model_id(digest))
    if str(path) == "-":
        echo(card_text(tagger, evaluation, fields), nl=False)
    else:
        if out is None and path.is_symlink():  # replace a link that came with the model, not its target
            path.unlink()
        echo(f"Card: {write_card(path, tagger, evaluation, fields)}")


def test_corpus(
    read: common.CorpusReader, corpus: str | None, tagger: "Tagger", stages: "Stages", *, labelled_only: bool
) -> "Corpus":
    """Open the corpus to measure a tagger on, by default its training corpus, and return it with a test part.

    With `labelled_only`, the test part has only documents that have a topic of the tagger, if there are such documents.
    """
    from textcat.corpus.cards import is_shipped
    from textcat.model.evaluate import measured_part, with_test_documents
    from textcat.reading import InputSettings, named_in_training, warn_of_unnamed_texts

    own = tagger.facts.origin if corpus else _origin(tagger)
    documents = with_test_documents(tagger, read(corpus or None, stages, own))
    if corpus and not is_shipped(corpus) and not named_in_training(documents.origin):
        warn_of_unnamed_texts(named_in_training(own), read.settings or InputSettings(), [corpus])
    if corpus and not is_shipped(corpus) and (said := measured_part(tagger, documents, corpus)):
        terminal.say(said)
    if not labelled_only:
        return documents
    labelled = [document for document in documents.test if not set(tagger.topics).isdisjoint(document.topics)]
    return replace(documents, test=labelled or documents.test)  # evaluation raises an error if none has


def _origin(tagger: "Tagger") -> Mapping[str, Any]:
    """Return the arguments that open a tagger's training corpus again; raise TextcatError if they are not known."""
    where = tagger.facts.origin.get("name_or_path", "")
    if not where or (Path(where).is_absolute() and "*" not in where and not Path(where).exists()):
        raise TextcatError(
            f"The model was trained on {tagger.facts.corpus!r}, which is no known corpus: name the corpus to evaluate "
            "on." + (f" There is no file or folder {where}." if where else "")
        )
    return tagger.facts.origin


# --- what is printed and written -------------------------------------------------------------------------------------


def show_evaluation(
    console: "Console", evaluation: "Evaluation", form: str = "text", *, per_topic: bool = False
) -> None:
    """Print all measures of an evaluation; if `per_topic` is set, print a table of topics, too."""
    from textcat.cli.printing import show
    from textcat.evaluation.export import plain_rows

    measured = f"Measured after training, on {evaluation.test_documents} {evaluation.measured_on}:"
    parts = evaluation_parts(evaluation, per_topic=per_topic, every_measure=True)
    where = "" if evaluation.sample is not None else measured
    show(console, form, evaluation.as_dict(), where, *parts, rows=partial(plain_rows, evaluation))


def evaluation_parts(
    evaluation: "Evaluation", *, per_topic: bool = False, every_measure: bool = False
) -> "Iterator[Part]":
    """Yield the parts of an evaluation to print: tables of topics, of bands (groups of topics) and of confusions.

    `per_topic` adds a table of topics; `every_measure` shows all measures, not only the main ones.
    """
    from textcat.cli.printing import Table, format_figure

    if per_topic and evaluation.topics:
        yield Table(topic_rows(evaluation), needed=7)
    yield Table(band_rows(evaluation, every_measure=every_measure))
    if evaluation.promises:
        yield _promises_sentence(evaluation.promises)
        yield Table(_promise_rows(evaluation.promises, every_one=per_topic))
    yield from _notes(evaluation)
    if per_topic and not evaluation.topics:
        yield "There is no table per topic of a model of many topics."
    if evaluation.confusion is not None:
        accuracy = format_figure(evaluation.accuracy, undefined="not defined: no document has a topic")
        yield f"accuracy {accuracy}, over the documents that have a topic"
        wrong = [{"topic": topic, "got": got, "documents": n} for topic, got, n in evaluation.confusion if topic != got]
        yield Table(wrong[:_LARGEST])


def band_rows(evaluation: "Evaluation", *, every_measure: bool = False) -> list[dict[str, str]]:
    """Return a row per measure with a column per band: a group of topics to average over, such as ALL or TOP10.

    The table is like Table 2 of Li et al. (2002). Only the main measures have rows, unless `every_measure` is set. A
    measure that has intervals is followed by a row with the intervals. Rows with counts of documents and topics follow.
    If topics were left out because they have no positive in the test part, the last row counts these topics.
    """
    from textcat.cli import printing

    bands, rows = evaluation.bands, []

    def add(title: str, cells: "Iterable[Figure]") -> None:
        rows.append({"": title, **{row.band: cell for row, cell in zip(bands, cells, strict=True)}})

    for measure, title in evaluation.titles().items():
        if every_measure or title.is_main:
            add(
                title.line,
                (printing.format_figure(row[measure], title.decimals, undefined="no topic") for row in bands),
            )
            if any(measure in row.intervals for row in bands):
                add("  95 % interval", (printing.format_interval(row.intervals.get(measure)) for row in bands))
    for count in ("documents", "pairs", "topics"):
        if any(getattr(row, count) is not None for row in bands):
            add(count, (printing.Figure(getattr(row, count)) for row in bands))
    if any(row.left_out for row in bands):
        add("left out: no test positive", (printing.Figure(row.left_out) for row in bands))
    return rows


def _promises_sentence(promises: "Sequence[CheckedPromise]") -> str:
    """Return a sentence: how many promises were kept, how many tags are automatic, and what share of these is right."""
    from textcat.evaluation.promises import Verdict, automatic_tags

    counts = Counter(promise.verdict for promise in promises)
    said = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in Verdict if counts[verdict])
    n, right = automatic_tags(promises)
    automatic = f" Automatic tags: {n:,}, of which {right / n:.1%} are right." if n else ""
    return f"Promises: {len(promises):,}, of which {said}.{automatic}"


def _promise_rows(promises: "Sequence[CheckedPromise]", *, every_one: bool) -> list[dict[str, Any]]:
    """Return a row per promise with its measured share and interval: all promises, or only those not kept."""
    from textcat.cli import printing
    from textcat.evaluation.promises import Verdict

    return [
        {
            "topic": promise.topic,
            "promised": f"{promise.measure} {printing.format_figure(promise.promised, 2)}",
            "documents": promise.documents,
            "right": promise.right,
            "share": printing.format_figure(promise.share),
            "95 % interval": printing.format_interval(promise.interval),
            "verdict": str(promise.verdict),
        }
        for promise in promises
        if every_one or promise.verdict in (Verdict.BY_CHANCE, Verdict.BROKEN)
    ]


def _notes(evaluation: "Evaluation") -> list[str]:
    """Return notes on documents without a topic, which are left out, and on topics that the model lacks.

    A note is a sentence for people; the list is empty if there are no such documents and topics.
    """
    notes: dict[str, int | None] = {
        "{} of {} documents have no topic, and are left out.": evaluation.without_topic,
        "{} pairs of a document and a topic are of topics that the model does not know: they count as not found.": (
            evaluation.unknown
        ),
    }
    return [text.format(n, evaluation.test_documents) for text, n in notes.items() if n]


def topic_rows(evaluation: "Evaluation") -> list[dict[str, Any]]:
    """Return a row per topic, the largest topic first: its measures, and the facts that training recorded about it."""
    from textcat.cli import printing
    from textcat.evaluation.export import fact_names

    facts, rows = printed_facts(fact_names(evaluation)), []
    named = [name for name in facts if name == "name"]
    facts = [name for name in facts if name not in named]
    for row in evaluation.topics:
        quality = (
            *map(printing.format_figure, (row.precision, row.recall, row.f1)),
            printing.format_figure(row.average_precision, 3, "no positive"),
        )
        counts, prevalence = (row.train_positives, row.test_positives), printing.format_figure(row.prevalence, 4)
        names, others = ([short_fact(row.facts.get(name)) for name in chosen] for chosen in (named, facts))
        rows.append((row.topic, *names, *counts, *quality, prevalence, *others))
    titles = ("topic", *named, "train", "test", "precision", "recall", "F1", "AP", "prevalence", *facts)
    return printing.largest_first(printing.named_rows(titles, rows))


def printed_facts(names: Iterable[str]) -> list[str]:
    """Return the names of the facts about topics that tables show: all except margins and certificates.

    Those are only in JSON and CSV.
    """
    return [name for name in names if "margin" not in name and name != "certificate"]


def short_fact(fact: Any) -> Any:
    """Return a fact up to its first colon: ``converged: no update in epoch 8`` becomes ``converged``."""
    return fact.partition(":")[0] if isinstance(fact, str) else fact


def show_comparison(
    console: "Console", compared: "Comparison", folders: Sequence[Path], corpus: str, form: str, *, per_topic: bool
) -> None:
    """Print models, named A, B and so on, side by side, and the topics that differ most between the models.

    If `per_topic` is set, tables have all topics.
    """
    from textcat.cli.printing import Facts, Note, Table, show

    names = [string.ascii_uppercase[number] for number in range(len(folders))]
    tables = [measure_rows(compared, names, other) for other in range(1, len(names))]
    show(
        console,
        form,
        {"models": list(map(str, folders)), "corpus": corpus, **compared.as_dict()},
        Facts(dict(zip(names, folders, strict=True))),
        f"{corpus}, {compared.test_documents} test documents",
        *map(Table, tables),
        Table(difference_rows(compared, names, None if per_topic else _LARGEST)),
        *map(Note, comparison_notes(compared, len(names))),
        Table(gate_rows(compared.gates)),
        rows=partial(_plain_measures, compared, names),
    )


def gate_rows(gates: "Sequence[GateResult]") -> list[dict[str, Any]]:
    """Return a row per condition: the measured value, its interval, the limit, and whether the new model passes."""
    from textcat.cli.printing import format_figure, format_interval

    rows = []
    for gate in gates:
        sign = "+" if gate.of_difference else ""
        rows.append(
            {
                "fails if": gate.gate,
                "measured": format_figure(gate.measured, 4, sign=sign),
                f"{100 * gate.level:.3g} % interval": format_interval(gate.interval, sign),
                "limit": format_figure(gate.limit, 4, sign=sign),
                "result": "FAILS" if gate.failed else "holds",
            }
        )
    return rows


def _plain_measures(compared: "Comparison", names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per band (a group of topics), measure and model: its value, and the difference from the first."""
    rows = []
    for row in compared.measures:
        for name, value, difference in zip(names, row.values, (None, *row.differences), strict=True):
            low, high = difference.interval if difference else (None, None)
            figures = {"difference": difference and difference.difference, "low": low, "high": high}
            figures |= {name: difference and getattr(difference, name) for name in ("p_documents", "p_topics")}
            rows.append({"band": row.band, "measure": row.measure, "model": name, "value": value, **figures})
    return rows


def rows_of_model(folder: Path, recipe: str, corpus: str, evaluation: "Evaluation") -> list[dict[str, Any]]:
    """Return a row per band (a group of topics such as ALL) of a model.

    A row says where the model was measured, and has its main measures and their intervals.
    """
    where = {"model": str(folder), "recipe": recipe, "corpus": corpus}
    where |= {"measured on": f"{evaluation.test_documents} {evaluation.measured_on}"}
    rows = []
    for band in evaluation.bands:
        row: dict[str, Any] = {**where, "band": band.band, "topics": band.topics}
        for name, title in evaluation.titles().items():
            if title.is_main and name != "mean_support":
                row[title.column] = band[name]
                row[f"{title.column} low"], row[f"{title.column} high"] = band.intervals.get(name) or (None, None)
        rows.append(row)
    return rows


def show_models(console: "Console", rows: Sequence[Mapping[str, Any]], form: str) -> None:
    """Print a row per model and band (a group of topics such as ALL); the rows are those of `rows_of_model`."""
    from textcat.cli.printing import Table, format_figure, format_interval, show

    names = [name.removesuffix(" low") for name in rows[0] if name.endswith(" low")]
    shown = []
    for row in rows:
        cells = {title: row[title] for title in ("corpus", "model", "band", "topics")}
        for name in names:
            bounds = (row[f"{name} low"], row[f"{name} high"]) if row.get(f"{name} low") is not None else None
            cells |= {name: format_figure(row.get(name)), f"{name} 95 %": format_interval(bounds)}
        shown.append(cells)
    note = "Intervals of 95 %: the bootstrap over test documents; MAP: mean average precision."
    show(console, form, list(rows), Table(shown), note, rows=lambda: rows)


def comparison_notes(compared: "Comparison", n_models: int) -> list[str]:
    """Return sentences that explain the p-values of a comparison, one or two for each table."""
    of_documents = f"Intervals and p docs: {compared.n_resamples} resamples of the documents, the same for all models."
    if not compared.topics:
        return [f"{of_documents} No p-value is corrected for the number of comparisons."]
    corrected = "corrected p" if n_models == 2 else "p B and so on"
    return [
        f"MAP: mean average precision. {of_documents} p topics: the signs of the topics' differences drawn by chance, "
        "10000 times. Neither is corrected for the number of comparisons.",
        f"The table of topics has average precision, sorted by {corrected}: a t-test of the difference, its standard "
        "error from the resamples, corrected by Holm's method over topics.",
    ]


def measure_rows(compared: "Comparison", names: Sequence[str], other: int = 1) -> list[dict[str, str]]:
    """Return a row per band (a group of topics) and measure, with the values of the first model and of number `other`.

    A row also has the difference of the two values, the interval of this difference, and p-values. `names` are the
    names of the models.
    """
    from textcat.cli import printing
    from textcat.evaluation.evaluation import TITLES

    titles = (names[0], names[other], f"{names[other]} - {names[0]}", "95 % interval", "p docs", "p topics")
    rows = []
    for row in compared.measures:
        of_model = row.differences[other - 1]
        difference, interval, *p_values = astuple(of_model) if of_model else [None] * 4
        values = [printing.format_figure(row.values[column], undefined="no topic") for column in (0, other)]
        differing = (
            printing.format_figure(difference, sign="+"),
            printing.format_interval(interval, "+"),
            *map(printing.format_p_value, p_values),
        )
        rows.append((row.band, TITLES[row.measure].column, *values, *differing))
    return printing.named_rows(("band", "measure", *titles), rows)


def difference_rows(compared: "Comparison", names: Sequence[str], n: int | None = None) -> list[dict[str, Any]]:
    """Return a row per topic with each model's average precision, the differences, and the corrected p-values.

    There are rows for the first n topics, or for all topics if n is None. `names` are the names of the models.
    """
    from textcat.cli import printing

    rows = []
    for row in compared.topics[:n]:
        figures = (
            *map(printing.format_figure, row.average_precision),
            *(printing.format_figure(value, sign="+") for value in row.differences),
            *map(printing.format_p_value, row.p_values),
        )
        rows.append((row.topic, row.train_positives, row.test_positives, *figures))
    differences = (f"{name} - {names[0]}" for name in names[1:])
    p_values = ("corrected p",) if len(names) == 2 else (f"p {name}" for name in names[1:])
    return printing.named_rows(("topic", "train", "test", *names, *differences, *p_values), rows)
