"""The commands `report` (an HTML file about a model's quality) and `card` (its model card)."""

import os
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option, echo

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal


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

    The file needs no network. Labels that are probably wrong are found by rankers that were not trained on them.
    """
    from textcat.model.card import read_card
    from textcat.model.compare import shared_topics
    from textcat.report.write import write_report

    if folds == 1:
        raise BadParameter("1 part leaves no document to train on: give 2 or more, or 0")
    tagger, *earlier = shared_topics([model, before] if before else [model])
    stages = terminal.new_stages()
    documents = common.test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
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

    The card may be edited, as it has no checksum. Training the model again, or `textcat learn`, removes it.
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
        documents = common.test_corpus(read, corpus, tagger, stages, labelled_only=labelled_only)
        evaluation = measure_for_card(tagger, documents, bands=band, resamples=bootstrap, stages=stages)
    fields = CardFields(title, licence, about, dataset or (), model_id(digest))
    if str(path) == "-":
        echo(card_text(tagger, evaluation, fields), nl=False)
    else:
        if out is None and path.is_symlink():  # replace a link that came with the model, not its target
            path.unlink()
        echo(f"Card: {write_card(path, tagger, evaluation, fields)}")
