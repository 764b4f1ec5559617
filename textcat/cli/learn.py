"""The command `learn`: update a model, print its history, and undo updates."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from textcat.base.disk import resolved
from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.corpus.documents import Document
    from textcat.model.history import LearningStep
    from textcat.training.updatable import UpdateResult

_WORSE = 0.05  # topics whose AP or F1 has fallen by this much are shown, too


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
    if out is not None and resolved(out) != resolved(model):
        terminal.check_replacing(out, force=force)
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


def show_update(console: "Console", result: "UpdateResult", stages: "Stages", form: str, *, per_topic: bool) -> None:
    """Print the documents that an update has changed, and each topic's size and quality before and after."""
    from textcat.base.errors import first_of
    from textcat.cli.printing import Facts, Table, cost_of_stages, show, stage_table

    if result.number is None:
        facts = {"model": str(result.folder), "step": None}
        said = f"Nothing new: the model in {result.folder} is the same as before."
        show(console, form, facts, said if form == "text" else Facts(facts))
        return

    rows, evaluation, cost = result.rows(), result.tagger.evaluation, cost_of_stages(stages)
    has_changed = any((result.added, result.corrected, result.removed))
    shown = [_update_row(row) for row in rows if per_topic or row["before"] != row["after"] or _is_worse(row)]
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
        f"{those} as many documents as before, and no figure that fell by {_WORSE:g} (--topics)." if left else "",
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


def _is_worse(row: Mapping[str, Any]) -> bool:
    """Return whether a topic's average precision or F1 has fallen clearly."""
    pairs = ((row[f"{name}_before"], row[f"{name}_after"]) for name in ("ap", "f1"))
    return any(before is not None and after is not None and before - after >= _WORSE for before, after in pairs)


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
    figures = _shown_measures(steps)
    rows = [_history_row(step, figures) for step in steps]
    show(console, form, data, Table(rows, 6), said, rows=lambda: [_plain_history_row(step, figures) for step in steps])


def _shown_measures(steps: "Sequence[LearningStep]") -> list[str]:
    """Return the names of the measures in a table of updates: the first two of `TITLES` that the steps recorded."""
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
