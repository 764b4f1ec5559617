"""The command `report`: a model's quality as one HTML file."""

from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option, echo

from textcat.cli import common
from textcat.cli.train import _test_corpus


@common.with_options(read=common.corpus_reader)
def report(
    model: common.ModelFolder,
    read: common.CorpusReader,
    corpus: common.OwnCorpus = None,
    out: Annotated[Path, Option(help="File to write.")] = Path("report.html"),
    before: Annotated[
        Path | None, Option(help="Another model of the same topics: show what changed since, and why.")
    ] = None,
    suspects: Annotated[
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
    """Write how good a model is, topic by topic and with evidence, as one HTML file.

    It needs no network: open it from the disk, print it, send it. Labels that are probably wrong are found by scores of
    rankers that were not trained on the document.
    """
    from textcat.model import storage
    from textcat.report.write import write_report

    if folds == 1:
        raise BadParameter("1 part leaves no document to train on: give 2 or more, or 0")
    tagger, stages = storage.load(model), common.new_stages()
    documents = _test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
    how: dict[str, Any] = {"folds": folds, "resamples": bootstrap, "bands": band, "suspects": suspects, "n_jobs": jobs}
    if before:
        how |= {"before": storage.load(before), "names": common._names_of(before, model)}
    path = write_report(out, tagger, documents, stages=stages, **how)
    echo(f"Report: {path} ({path.stat().st_size / 1e3:,.0f} kB)")
