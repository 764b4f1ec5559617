"""Commands that measure models: `evaluate`, `compare`, and `report`, which makes one HTML file of their quality."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option, echo

from textcat.cli import common
from textcat.errors import TextcatError

if TYPE_CHECKING:
    from textcat.documents import Corpus
    from textcat.model.tagger import Tagger
    from textcat.progress import Stages


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
    from textcat.evaluation.export import trec_files
    from textcat.evaluation.significance import add_intervals
    from textcat.folders import write_atomically
    from textcat.model import storage

    form = common.table_form(json=as_json, csv=as_csv, markdown=markdown, latex=latex)
    tagger, stages = storage.load(model), common.new_stages()
    documents = _test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    evaluation = tagger.evaluate(documents, bands=band, stages=stages)
    if trec:
        if (scored := evaluation.scored) is None:
            which = f"on {evaluation.measured_on}" if evaluation.topics else f"of {evaluation.n_topics:,} topics"
            raise TextcatError(f"Of the evaluation {which} no scores were kept.")
        ids = [document.id for document in documents.test]
        for name, lines in trec_files(scored.scores, scored.relevant, ids, tagger.topics).items():
            write_atomically(trec / name, lines)
    if bootstrap:
        evaluation = add_intervals(evaluation, n_resamples=bootstrap)
    if report:
        from textcat.report.write import write_report

        write_report(report, tagger, documents, bands=band, resamples=bootstrap or 1000, stages=stages)
    if evaluation.sample is None and not form:
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
    from textcat.evaluation.significance import compare_evaluations
    from textcat.model import storage

    if not 2 <= len(models) <= 26:
        raise BadParameter("give 2 to 26 models: they are named by letters")
    form = common.table_form(json=as_json, markdown=markdown, latex=latex)
    if report and len(models) != 2:
        raise BadParameter(f"a report is of a model and the one before it: give 2 models, not {len(models)}")
    taggers, stages = [storage.load(model) for model in models], common.new_stages()
    first = taggers[0]
    for tagger, model in zip(taggers, models, strict=True):
        if tagger.topics != first.topics:
            raise TextcatError(f"{model} does not have the topics of {models[0]}: compare models of one corpus.")
    documents = _test_corpus(read, corpus, first, stages, labelled_only=labelled_only)
    evaluations = [tagger.evaluate(documents, bands=band, stages=stages) for tagger in taggers]
    compared = compare_evaluations(evaluations, n_resamples=bootstrap)
    if report:
        from textcat.report.write import write_report

        of: dict[str, Any] = {"before": first, "names": common.model_names(*models), "resamples": bootstrap}
        write_report(report, taggers[1], documents, bands=band, stages=stages, **of)
    _tables.comparison(common.console(), compared, models, documents.name, form=form, per_topic=topics)


@common.with_options(read=common.corpus_reader)
def report(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    out: Annotated[Path, Option(help="File to write.")] = Path("report.html"),
    before: Annotated[
        Path | None, Option(help="Another model of the same topics: show what changed since, and why.")
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
    jobs: common.Jobs = -1,
) -> None:
    """Write a model's quality, topic by topic and with evidence, as one HTML file.

    It needs no network: open it from disk, print it, send it. To find labels that are probably wrong, documents are
    scored by rankers that were not trained on them.
    """
    from textcat.model import storage
    from textcat.report.write import write_report

    if folds == 1:
        raise BadParameter("1 part leaves no document to train on: give 2 or more, or 0")
    tagger, stages = storage.load(model), common.new_stages()
    documents = _test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    how: dict[str, Any] = {
        "folds": folds,
        "resamples": bootstrap,
        "bands": band,
        "label_issues": label_issues,
        "n_jobs": jobs,
    }
    if before:
        how |= {"before": storage.load(before), "names": common.model_names(before, model)}
    path = write_report(out, tagger, documents, stages=stages, **how)
    echo(f"Report: {path} ({path.stat().st_size / 1e3:,.0f} kB)")


def _test_corpus(
    read: common.CorpusReader, corpus: str | None, tagger: "Tagger", stages: "Stages", *, labelled_only: bool
) -> "Corpus":
    """Open the corpus to measure on, by default the one that the tagger was trained on."""
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
