"""Keep a model's history beside its folder: a line for each step (change of the model), so that it can be undone."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textcat.base.disk import resolved
from textcat.base.errors import TextcatError
from textcat.base.journal import append_to_journal, read_whole_journal, rewrite_journal, when_and_who
from textcat.base.records import MISFITS, entries_of, read_record
from textcat.evaluation.evaluation import TITLES, Evaluation
from textcat.model.manifest import model_id, read_manifest

HISTORY = ".history.jsonl"  # suffix of the history file, which lies beside the model's folder
# prefix of the placeholder for the id of a removed document, or for a topic that only removed documents had
_REMOVED = "\0"
_REMEDY = "make room or allow it"
_LISTED = ("number", "action", "at", "who", "model", "replaced", "corrections", "undoes")


@dataclass(frozen=True, kw_only=True)
class LearningStep:
    """A step of a model's history: a change of the model by `learn`, its undoing, or a replacement by other commands.

    The attributes are the entries of a line of the history file.

    Attributes
    ----------
    number : int
        From 0, which is the model before the first step.
    action : {"found", "learn", "undo"}
        "found": since the previous step, the model was replaced by another command, such as `train` or `promote`.
    at, who : str
        UTC in ISO 8601, and the user's name.
    model, replaced : str
        The checksums of the manifests of the model after the step and before it; "" if there was none.
    corrections : str
        The folder of the corrections that were learnt; "" if there was none.
    undoes : int or None
        The number of the step that was undone.
    added, corrected, unlearnt : list of str
        The ids of documents that were added, that were corrected, and that left the model because a step was undone or
        answers were retracted.
    removed : list of str
        A placeholder for each removed document, instead of its id.
    figures, figures_before : dict of str to float
        The main measures of all topics, such as ``macro_f1``, after the step and before it.
    documents : dict of str to dict
        By id of a learnt document: its labels, and a checksum of its text, if it had a text.
    new_topics_negative : bool
    vocabulary : dict or None
        The names of topics that were learnt.
    labels : dict or None
        Only of "found", and if the model is updatable: the labels of all its documents.
    """

    number: int = 0
    action: str
    at: str = ""
    who: str = ""
    model: str = ""
    replaced: str = ""
    corrections: str = ""
    undoes: int | None = None
    added: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)
    unlearnt: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    figures: dict[str, float | None] = field(default_factory=dict)
    figures_before: dict[str, float | None] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_topics_negative: bool = False
    vocabulary: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entries that users are shown, as JSON values; removed documents are only counted."""
        ids = {name: [id_ for id_ in getattr(self, name) if not _is_removed(id_)] for name in _OF_IDS}
        listed = {name: getattr(self, name) for name in _LISTED}
        about = {"named": self.vocabulary is not None, "figures": self.figures, "figures_before": self.figures_before}
        return {**listed, **ids, "removed": len(self.removed), **about}


_OF_IDS = ("added", "corrected", "unlearnt")


def learning_history(model: str | os.PathLike[str]) -> list[LearningStep]:
    """Return the steps in which a model has learnt, in order; the list is empty if there are none.

    Parameters
    ----------
    model : path
        The model's folder.

    Returns
    -------
    list of LearningStep

    Raises
    ------
    TextcatError
        If the folder is no model, or the history is damaged.
    """
    folder = resolved(model)
    steps = _read_steps(_place(folder), repair=False)
    return steps[: len(steps) - _is_last_undone(steps, read_manifest(folder).sha256)]


def descends_from(model: str | os.PathLike[str], id_: str) -> bool:
    """Return whether a model was made by `learn` from the model with an id, or by undoing what was learnt."""
    if not _place(resolved(model)).exists():  # this also works for a folder with a model of each language
        return False
    steps = learning_history(model)
    if not steps or steps[-1].model != read_manifest(model).sha256:  # the model was replaced by another command
        return False
    found = max(i for i, step in enumerate(steps) if step.action == "found")
    return any(model_id(step.replaced) == id_ for step in steps[found + 1 :])


def n_learnt(model: str | os.PathLike[str]) -> int:
    """Return the number of steps, without undone ones, in which the model in a folder has learnt since training.

    It is 0 if another command has replaced the model since. Raise TextcatError as `learning_history` does.
    """
    steps = learning_history(model)
    is_last = bool(steps) and steps[-1].model == read_manifest(model).sha256
    return sum(step.action == "learn" for step in active_steps(steps)) if is_last else 0


def active_steps(steps: Sequence[LearningStep]) -> list[LearningStep]:
    """Return the last step of the action "found" (the model was replaced), and the later ones that were not undone."""
    start = max(i for i, step in enumerate(steps) if step.action == "found")
    undone: set[int] = set()
    active: list[LearningStep] = []
    for step in reversed(steps[start:]):
        if step.number not in undone:
            active.append(step)
            undone |= {step.undoes} - {None}  # type: ignore[arg-type]
    return active[::-1]


def check_undoable(steps: Sequence[LearningStep], number: int) -> None:
    """Raise TextcatError, with the reason, if the step with this number cannot be undone."""
    if not 0 < number < len(steps):
        known = f"1 to {len(steps) - 1}" if len(steps) > 1 else "none"
        raise TextcatError(
            f"There is no step {number} to undo: the steps are {known}; `textcat learn MODEL --history`."
        )
    active = active_steps(steps)
    if number <= active[0].number:
        raise TextcatError(
            f"Step {number} cannot be undone, as another model took the place of the one that learnt it: give this "
            "one what it should know in a new step."
        )
    if number not in {step.number for step in active}:
        by = next(step.number for step in active[::-1] if step.undoes == number)
        raise TextcatError(f"Step {number} is undone already: undo step {by}, which undid it, to learn it again.")
    if steps[number].removed:
        raise TextcatError(f"Step {number} removed documents, of which nothing is kept: learn them again.")


def removed_numbers(steps: Iterable[LearningStep], corrections: str) -> set[int]:
    """Return the numbers of those corrections in a folder whose documents were removed later."""
    said = (d for step in steps if step.corrections == corrections for d in step.documents.items())
    return {number for id_, entries in said if _is_removed(id_) for number in entries.get("numbers", ())}


def main_figures(evaluation: Evaluation | None) -> dict[str, float | None]:
    """Return the main measures over all topics of an evaluation; {} if nothing was measured."""
    if evaluation is None:
        return {}
    row = next((row for row in evaluation.rows if row.band == "ALL"), evaluation.rows[0])
    return {name: row[name] for name, title in TITLES.items() if title.is_main and row.measures.get(name) is not None}


class History:
    """The history of a model during a change.

    A step is logged just before its model is put in place. If the process is killed in between, the line names a model
    that does not exist, and the next change removes the line.

    Parameters
    ----------
    folder : Path
        The model's folder, which is locked.
    model : str
        The checksum of the model in the folder.
    labels : callable
        Returns `labels_of` the model's documents; None if the model is not updatable.
    """

    def __init__(self, folder: Path, model: str, labels: Callable[[], dict[str, Any] | None]) -> None:
        self._path = _place(folder)
        self.steps = _read_steps(self._path)
        if _is_last_undone(self.steps, model):
            self.steps.pop()
            self._rewrite()
        self._forget_removed(labels)
        self._n_noted = len(self.steps)
        if not self.steps or self.steps[-1].model != model:
            at, who = when_and_who()
            found = LearningStep(action="found", at=at, who=who, model=model, labels=labels())
            self.steps.append(replace(found, number=len(self.steps)))

    @classmethod
    def read(cls, folder: Path, model: str, labels: Callable[[], dict[str, Any] | None]) -> "History | None":
        """Return the history of the model in a folder; None if there is no history yet."""
        return cls(folder, model, labels) if _place(folder).exists() else None

    def next_step(self, action: str, **entries: Any) -> LearningStep:
        """Return a new step of the history, with the next number; the checksum of its model is still empty."""
        at, who = when_and_who()
        number, replaced = len(self.steps), self.steps[-1].model
        return LearningStep(number=number, action=action, at=at, who=who, replaced=replaced, **entries)

    def note(self, step: LearningStep) -> None:
        """Append a step (a change of the model) to the history file, just before the changed model is put in place."""
        self.steps.append(step)
        append_to_journal(self._path, map(entries_of, self.steps[self._n_noted :]), _REMEDY)
        self._n_noted = len(self.steps)

    def note_restored(self, model: str) -> None:
        """Record, before `model` is put back, that the last step is undone, if that step had replaced `model`."""
        last = self.steps[-1]
        if last.replaced == model:
            changes = {"added": last.unlearnt, "corrected": last.corrected, "unlearnt": last.added}
            figures = {"figures": last.figures_before, "figures_before": last.figures}
            self.note(self.next_step("undo", undoes=last.number, model=model, **changes, **figures))

    def finish(self, labels: dict[str, Any] | None) -> None:
        """Delete the data of documents that the last step removed; `labels` are the labels after that step."""
        self._forget_removed(lambda: labels)

    def write_elsewhere(
        self, folder: Path, step: LearningStep | None = None, labels: dict[str, Any] | None = None
    ) -> None:
        """Write the history, with one more step if it is given, beside another folder, which holds its last model."""
        steps = self.steps if step is None else _without_removed([*self.steps, step], labels)
        rewrite_journal(_place(folder), map(entries_of, steps), _REMEDY)

    def _forget_removed(self, labels: Callable[[], dict[str, Any] | None]) -> None:
        if any(not _is_removed(id_) for step in self.steps for id_ in step.removed):
            self.steps = _without_removed(self.steps, labels())
            self._rewrite()

    def _rewrite(self) -> None:
        rewrite_journal(self._path, map(entries_of, self.steps), _REMEDY)


def _place(folder: Path) -> Path:
    return folder.with_name(folder.name + HISTORY)


def _read_steps(path: Path, *, repair: bool = True) -> list[LearningStep]:
    lines = read_whole_journal(path, repair=repair)
    try:
        steps = [read_record(LearningStep, line, "in the history") for line in lines]
    except MISFITS as error:
        raise TextcatError(f"{path} is damaged ({error}): move it away, or restore a copy.") from error
    if [step.number for step in steps] != [*range(len(steps))] or (steps and steps[0].action != "found"):
        raise TextcatError(f"{path} is damaged, as steps are missing: move it away, or restore a copy.")
    return steps


def _is_last_undone(steps: Sequence[LearningStep], model: str) -> bool:
    """Return whether the model of the last step was never put in place, or was undone by `rollback`."""
    return bool(steps) and steps[-1].model != model == steps[-1].replaced


def _is_removed(id_: str) -> bool:
    return id_.startswith(_REMOVED)


def _without_removed(steps: Sequence[LearningStep], labels: Mapping[str, Any] | None) -> list[LearningStep]:
    """Return steps without any data of the removed documents, except how many there were.

    Numbers replace their ids, and the topics that only such documents have; `labels` are those of the model's present
    documents.
    """
    gone = dict.fromkeys(id_ for step in steps for id_ in step.removed if not _is_removed(id_))
    if not gone:
        return [*steps]
    number_of = {id_: f"{_REMOVED}{steps[-1].number}.{i}" for i, id_ in enumerate(gone)}
    mentioned: set[str] = set()
    left = {*labels["topics"], *labels["labels"]["topics"]} if labels else set[str]()
    for step in steps:
        for id_, topics, judged in _labels_in(step):
            if id_ in gone:
                mentioned |= {*topics, *judged}
            else:
                left |= {*topics}
    topics_gone = sorted(topic for topic in mentioned - left if not _is_removed(topic))
    topic_of = {topic: f"{_REMOVED}topic {steps[-1].number}.{i}" for i, topic in enumerate(topics_gone)}
    return [_renamed(step, number_of, topic_of) for step in steps]


def _labels_in(step: LearningStep) -> Iterable[tuple[str, Iterable[str], Iterable[str]]]:
    """Yield the id of each document with labels in a step, its topics, and all topics that it was judged for."""
    for id_, said in step.documents.items():
        answers = said.get("answers", {})
        yield (
            id_,
            [*said.get("topics", ()), *(topic for topic in answers if answers[topic])],
            said.get("labelled_for") or answers,
        )
    if step.labels:
        labels = step.labels["labels"]
        names, sets = labels["topics"], labels["labelled_for"]
        for id_, topics, judged in zip(labels["ids"], labels["topics_of"], labels["labelled_for_of"], strict=True):
            yield id_, [names[i] for i in topics], [] if judged is None else [names[i] for i in sets[judged]]


def _renamed(step: LearningStep, number_of: Mapping[str, str], topic_of: Mapping[str, str]) -> LearningStep:
    """Return a step in which some ids of documents (`number_of`) and some topics (`topic_of`) have been replaced.

    These documents have the new id instead of a text, and no date; these topics have no name and no description.
    """

    def ids(names: Iterable[str]) -> list[str]:
        return [number_of.get(id_, id_) for id_ in names]

    def topics(names: Iterable[str]) -> list[str]:
        return [topic_of.get(topic, topic) for topic in names]

    def said(id_: str, entries: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in entries.items() if id_ not in number_of or name not in ("date", "text")}
        if id_ in number_of and "text" in entries:
            kept["text"] = number_of[id_]
        kept |= {name: topics(kept[name]) for name in ("topics", "labelled_for") if kept.get(name) is not None}
        if "answers" in kept:
            kept["answers"] = {topic_of.get(topic, topic): belongs for topic, belongs in kept["answers"].items()}
        return kept

    labels = step.labels
    if labels:
        of_documents = dict(labels["labels"])
        for name in ("descriptions", "names"):
            of_documents[name] = {topic: text for topic, text in of_documents[name].items() if topic not in topic_of}
        dates = of_documents.get("dates") and [
            "" if id_ in number_of else date
            for id_, date in zip(of_documents["ids"], of_documents["dates"], strict=True)
        ]
        of_documents |= {"topics": topics(of_documents["topics"]), "ids": ids(of_documents["ids"])}
        of_documents |= {"dates": dates} if dates else {}
        labels = {"topics": topics(labels["topics"]), "labels": of_documents}
    documents = {number_of.get(id_, id_): said(id_, entries) for id_, entries in step.documents.items()}
    lists: dict[str, Any] = {name: ids(getattr(step, name)) for name in (*_OF_IDS, "removed")}
    return replace(step, **lists, documents=documents, labels=labels)
