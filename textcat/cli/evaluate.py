"""The command `evaluate`: measure a model on a corpus; and the tables of an evaluation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.cli.printing import Figure, Part
    from textcat.evaluation.evaluation import Evaluation
    from textcat.evaluation.promises import CheckedPromise

_MOST_CONFUSED = 10  # number of the most frequent confusions that are listed


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
    documents = common.test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
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


def evaluation_parts(evaluation: "Evaluation", *, per_topic: bool, every_measure: bool = False) -> "Iterator[Part]":
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
        yield Table(wrong[:_MOST_CONFUSED])


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
