"""Commands that measure models on test documents: `evaluate` and `compare`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textcat.cli.app import (
    AsJson,
    Bands,
    LabelledOnly,
    ModelFolder,
    PerTopic,
    complete_corpus,
    console,
    corpus_reader,
    new_stages,
    with_options,
)
from textcat.errors import TextcatError

if TYPE_CHECKING:
    from textcat.documents import Corpus
    from textcat.model.tagger import Tagger
    from textcat.progress import Stages


@with_options(read=corpus_reader)
def evaluate(
    model: ModelFolder,
    read: "Callable[..., Corpus]",
    corpus: Annotated[
        str | None,
        typer.Argument(help="The corpus; by default the one it was trained on.", autocompletion=complete_corpus),
    ] = None,
    topics: PerTopic = False,
    band: Bands = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a row per topic as CSV.")] = False,
    trec: Annotated[Path | None, typer.Option(help="Write run and qrels files for trec_eval to this folder.")] = None,
    labelled_only: LabelledOnly = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Print 95 % intervals from that many resamples of the documents, such as 1000.")
    ] = 0,
) -> None:
    """Measure how well a model ranks a corpus' test documents."""
    from textcat.cli import _tables
    from textcat.evaluation import export, significance
    from textcat.model import storage

    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    tagger, stages = storage.load(model), new_stages()
    documents = _test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    evaluation = tagger.evaluate(documents, bands=band, stages=stages)
    if bootstrap:
        evaluation = significance.with_intervals(evaluation, n_resamples=bootstrap)
    if trec:
        ids = [document.id for document in documents.test]
        if evaluation.scores is None:
            raise TextcatError(f"Of the evaluation on {evaluation.measured_on} no scores were kept.")
        export.write_trec(trec, evaluation.scores, evaluation.relevant, ids, tagger.topics)
    form = "json" if as_json else "csv" if as_csv else ""
    if evaluation.scores is None and not form:
        console().print(f"Measured after training, on {evaluation.test_documents} {evaluation.measured_on}:\n")
    _tables.quality(console(), evaluation, form=form, per_topic=topics, every_measure=True)


@with_options(read=corpus_reader)
def compare(
    models: Annotated[list[Path], typer.Argument(help="Folders of two or more trained models.")],
    read: "Callable[..., Corpus]",
    corpus: Annotated[
        str | None,
        typer.Option(help="The corpus.", show_default="that of the first model", autocompletion=complete_corpus),
    ] = None,
    topics: PerTopic = False,
    band: Bands = None,
    as_json: AsJson = False,
    labelled_only: LabelledOnly = False,
    bootstrap: Annotated[int, typer.Option(min=100, help="Resamples of the documents.")] = 1000,
) -> None:
    """Compare models on a corpus' test documents: each with the first, and whether the differences may be chance."""
    from textcat.cli import _tables
    from textcat.evaluation import significance
    from textcat.model import storage

    if not 2 <= len(models) <= 26:
        raise typer.BadParameter("give 2 to 26 models: they are named by letters")
    taggers, stages = [storage.load(model) for model in models], new_stages()
    first = taggers[0]
    for tagger, model in zip(taggers, models, strict=True):
        if tagger.topics != first.topics:
            raise TextcatError(f"{model} does not have the topics of {models[0]}: compare models of one corpus.")
    documents = _test_corpus(read, corpus, first, stages, labelled_only=labelled_only)
    evaluations = [tagger.evaluate(documents, bands=band, stages=stages) for tagger in taggers]
    compared = significance.compare(evaluations, n_resamples=bootstrap)
    _tables.comparison(console(), compared, models, documents.name, as_json=as_json, per_topic=topics)


def _test_corpus(
    read: "Callable[..., Corpus]", corpus: str | None, tagger: "Tagger", stages: "Stages", *, labelled_only: bool
) -> "Corpus":
    """Open the corpus to measure on, by default the one that the tagger was trained on."""
    from dataclasses import replace

    documents = read(corpus or _origin(tagger), stages)
    if not labelled_only:
        return documents
    labelled = [document for document in documents.test if not set(tagger.topics).isdisjoint(document.topics)]
    return replace(documents, test=labelled or documents.test)  # evaluation refuses a corpus without any


def _origin(tagger: "Tagger") -> str | Mapping[str, Any]:
    """Return the name of the corpus of a tagger, or how it was opened."""
    from textcat.corpus.catalogue import cards

    where = tagger.origin.get("name_or_path", tagger.corpus)
    if (where in cards() and len(tagger.origin) < 2) or (not tagger.origin and Path(where).exists()):
        return where  # models of earlier versions say no more than a name
    if not tagger.origin or (Path(where).is_absolute() and "*" not in where and not Path(where).exists()):
        raise TextcatError(
            f"The model was trained on {tagger.corpus!r}, which is no known corpus: name the corpus to evaluate on."
            + (f" There is no file or folder {where}." if tagger.origin else "")
        )
    return tagger.origin
