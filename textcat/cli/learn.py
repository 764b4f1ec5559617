"""The command `learn`: add documents to a trained model, remove some, or undo that."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from textcat.cli import common

if TYPE_CHECKING:
    from textcat.documents import Document
    from textcat.progress import Stages


@common.with_options(read=common.corpus_reader)
def learn(
    model: Annotated[Path, Argument(help="Folder of a model that was trained with --keep counts.")],
    read: common.CorpusReader,
    new: Annotated[
        list[str] | None,
        Argument(help="New documents, and corrections of known ones: files, folders or archives, or names of corpora."),
    ] = None,
    unlearn: Annotated[
        list[str] | None,
        Option(help="Ids of documents to remove, comma-separated, or a file of one per line. May be repeated."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder to write the new model to.", show_default="MODEL, in place of the old one")
    ] = None,
    complete: Annotated[
        bool, Option("--complete", help="Take documents that were known before for negatives of new topics.")
    ] = False,
    undo: Annotated[bool, Option("--undo", help="Restore the model as it was before the last step.")] = False,
    jobs: common.Jobs = -1,
    topics: Annotated[bool, Option("--topics", help="Print a row for every topic, changed or not.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Add documents, topics and corrections to a model, or remove documents, as if it were trained from scratch."""
    from textcat.cli import _tables
    from textcat.training.learn import learn, undo_learn

    if undo:
        if new or unlearn or out or complete:
            raise BadParameter("--undo goes alone: it brings back the model that was there before the last step")
        _tables.undone(common.console(), undo_learn(model), as_json=as_json)
        return
    stages = common.new_stages()
    documents = [document for corpus in new or [] for document in _documents(read, corpus, stages)]
    ids = [id_ for given in unlearn or [] for id_ in _ids(given)]
    learnt = learn(model, documents, ids, out=out, complete=complete, n_jobs=jobs, stages=stages)
    _tables.learnt(common.console(), learnt, stages, per_topic=topics, as_json=as_json)


def _documents(read: common.CorpusReader, corpus: str, stages: "Stages") -> "list[Document]":
    opened = read(corpus, stages)
    return [*opened.train, *(replace(document, split="test") for document in opened.test)]


def _ids(given: str) -> list[str]:
    """Return the ids of a file, one a line, or those between commas."""
    if Path(given).is_file():
        return [line.strip() for line in Path(given).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [id_.strip() for id_ in given.split(",") if id_.strip()]
