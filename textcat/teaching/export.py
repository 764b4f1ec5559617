"""Export the results of a session: records with labels, a corpus, a trained model, and an audit log of all steps.

Each `write_…` function exports the given topics, by default all, to `out`, and returns its path (duplicates do not
depend on topics). It raises TextcatError if the session has no such topic, or if the extension of `out` names no format
that the function can write. A corpus and a model need a document with the label "yes" for each topic; a model also
needs a document with the label "no".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document, shortened_text
from textcat.reading import common_fields, ris_entry
from textcat.teaching.judgements import TopicState
from textcat.teaching.output import csv_lines, format_by_ending, json_line, write_lines
from textcat.teaching.screening import COUNT_FORMATS, write_counts
from textcat.teaching.steps import KeywordSet, SessionStep, Split, TopicAdded, TopicChanged, Undone, answers_of
from textcat.teaching.view import View

if TYPE_CHECKING:
    from textcat.teaching.pool import Pool
    from textcat.teaching.pool.duplicates import Groups

_REMEDY = "answer some more, or leave the topic out"
_COLUMNS = (
    *("step", "time", "person", "what", "topic", "id", "position", "answer", "source", "why", "model", "rank", "score"),
    *("note", "exclusion_reason", "undone", "detail"),
)
#: The formats of each export, the default first.
FORMATS = {
    "labels": ("jsonl", "csv", "ris"),
    "included": ("jsonl", "csv", "ris"),
    "counts": COUNT_FORMATS,
    "corpus": ("jsonl",),
    "model": ("zip",),  # a folder, which a server packs
    "audit": ("jsonl", "csv"),
    "records": ("csv", "ris"),
    "duplicates": ("jsonl", "csv"),
}
LONGEST_FACT = 200  # maximum characters of a bibliographic fact, such as the authors, where a document is shown
_DECISION_COLUMNS = ("decision", "exclusion_reason", "rank", "answers", "notes")  # columns for each topic
_BIBLIOGRAPHIC = ("title", "authors", "year", "journal", "doi")


class _Decision(NamedTuple):
    """The label of a document for a topic, with the reason to exclude it, persons' answers and notes, and its rank."""

    label: bool | None  # the label; None: it has none
    exclusion_reason: str
    is_disputed: bool
    rank: int  # rank by score in the latest ranking, from 1; each group of near-duplicates counts once
    answers: list[str]  # each person's answer, such as "ada: yes"
    notes: list[str]

    @property
    def word(self) -> str:
        """The label as a word, "yes" or "no"; "" if there is none."""
        return "" if self.label is None else "yes" if self.label else "no"


_UNDECIDED = _Decision(None, "", False, 0, [], [])


class _Exported(NamedTuple):
    """A document with the decisions on its group of near-duplicates."""

    position: int
    judged_as: int  # position of the first of its near-duplicates, which represents the whole group
    decisions: dict[str, _Decision]  # decisions by topic

    @property
    def labels(self) -> dict[str, bool]:
        """The labels by topic, for topics that have one."""
        return {topic: decision.label for topic, decision in self.decisions.items() if decision.label is not None}

    @property
    def disputed(self) -> list[str]:
        """The topics on which persons disagree."""
        return [topic for topic, decision in self.decisions.items() if decision.is_disputed]


def write_labels(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents that have a label for any of the topics as JSON Lines, CSV or RIS, by the extension of `out`.

    A line of JSON is ``{"id": "17", "position": 16, "group": 16, "labels": {"strikes": true}, "judged_as": "17"}``. All
    documents judged by yes or no are written, and so are their near-duplicates; a near-duplicate has the label of the
    document in ``judged_as``, whose position is ``group``. Positions in the archive count from 0; ids may repeat.
    Topics for which a document was not judged are not in its ``labels``. ``"disputed": ["strikes"]`` names topics on
    which persons disagree and nobody has adjudicated the label; ``"exclusion_reasons": {"strikes": "no strike"}`` tells
    why a label is no. CSV also has title, authors, year, journal and DOI, and for each topic the rank by the latest
    ranking, each person's answer, and notes. RIS has all fields of the record, and the rest as notes, such as
    ``strikes: no (no strike)``.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    return _write_records(view, out, topics, "labels", lambda record: bool(record.labels))


def write_included(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents whose label is yes for at least one of the topics, in the formats of `write_labels`.

    Of each group of near-duplicates, only the first document is written.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    return _write_records(
        view,
        out,
        topics,
        "included",
        lambda record: any(record.labels.values()) and record.position == record.judged_as,
    )


def write_records(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write all documents as CSV or RIS, as `write_labels` writes those that have a label.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    return _write_records(view, out, topics, "records", lambda record: True)


def _write_records(
    view: View,
    out: str | os.PathLike[str],
    topics: Sequence[str] | None,
    what: str,
    is_wanted: Callable[[_Exported], bool],
) -> Path:
    made_as, chosen = format_by_ending(out, FORMATS[what], "records"), view.chosen_topics(topics)
    records = filter(is_wanted, _exported(view, chosen))
    if made_as == "jsonl":
        return write_lines(out, (json_line(_label_line(view, record)) for record in records))
    if made_as == "ris":
        return write_lines(
            out,
            (ris_entry(bibliographic_fields(view.pool, record.position), _notes(view, record)) for record in records),
        )
    prefixes = dict.fromkeys(chosen, "") if len(chosen) == 1 else {topic: f"{topic}: " for topic in chosen}
    decisions = [prefix + name for prefix in prefixes.values() for name in _DECISION_COLUMNS]
    columns = ["id", "position", "group", *_BIBLIOGRAPHIC, *decisions, "disputed", "judged_as"]
    return write_lines(out, csv_lines(columns, (_label_row(view, record, prefixes) for record in records)))


def _exported(view: View, topics: list[str]) -> Iterator[_Exported]:
    """Yield all documents of the pool, near-duplicates together, with their decisions and ranks for topics.

    Decisions and ranks are those at the time when iteration begins: later answers change nothing.
    """
    with view.unchanged():
        states = {topic: view.topic(topic) for topic in topics}
        ranks = {topic: _ranks(view.scores(topic), view.groups) for topic in topics}
        decided = {
            topic: {group: _decision(state, group) for group in {*state.answers, *state.adjudications}}
            for topic, state in states.items()
        }
        members = view.groups.all_members()
    for group, positions in members:
        decisions = {
            topic: decided[topic].get(group, _UNDECIDED)._replace(rank=int(ranks[topic][group])) for topic in topics
        }
        for position in positions:
            yield _Exported(position, group, decisions)


def _decision(state: TopicState, group: int) -> _Decision:
    adjudicated = state.adjudications.get(group, [])[-1:]
    answers, notes = [], []
    for judgement in (*state.standing(group).values(), *adjudicated):
        person = judgement.person + " (adjudicated)" * (judgement.source == "adjudicated")
        answers.append(": ".join(filter(None, [person.strip(), judgement.answer])))
        if judgement.note:
            notes.append(": ".join(filter(None, [person.strip(), judgement.note])))
    reason = state.exclusion_reason(group)
    return _Decision(state.labels.get(group), reason, state.is_disagreement(group), 0, answers, notes)


def _ranks(scores: NDArray[np.float32], groups: Groups) -> NDArray[np.int64]:
    """Return for each document how many groups of near-duplicates have a higher score than it has, plus 1."""
    ordered = np.sort(scores[groups.is_first])
    return len(ordered) - np.searchsorted(ordered, scores, side="right") + 1


def _label_line(view: View, record: _Exported) -> dict[str, Any]:
    ids = view.pool.ids
    line: dict[str, Any] = {"id": ids[record.position], **_place(record), "labels": record.labels}
    line["judged_as"] = ids[record.judged_as]
    reasons = {
        topic: decision.exclusion_reason for topic, decision in record.decisions.items() if decision.exclusion_reason
    }
    further = {"disputed": record.disputed, "exclusion_reasons": reasons}
    return line | {name: value for name, value in further.items() if value}


def _place(record: _Exported) -> dict[str, int]:
    """Return what tells a document and its group from others with the same id, as in `write_duplicates`."""
    return {"position": record.position, "group": record.judged_as}


def _label_row(view: View, record: _Exported, prefixes: Mapping[str, str]) -> dict[str, Any]:
    ids = view.pool.ids
    row = _bibliographic_row(view.pool, record.position) | {"id": ids[record.position], **_place(record)}
    for topic, decision in record.decisions.items():
        texts = (
            decision.word,
            decision.exclusion_reason,
            decision.rank,
            "; ".join(decision.answers),
            "; ".join(decision.notes),
        )
        row |= {prefixes[topic] + name: text for name, text in zip(_DECISION_COLUMNS, texts, strict=True)}
    return row | {"disputed": "; ".join(record.disputed), "judged_as": ids[record.judged_as]}


def _notes(view: View, record: _Exported) -> Iterator[str]:
    """Yield the notes that a document gets in RIS: for each topic its label, rank, answers, and persons' notes."""
    for topic, decision in record.decisions.items():
        reason = f" ({decision.exclusion_reason})" if decision.exclusion_reason else ""
        disputed = "; disputed" if decision.is_disputed else ""
        yield f"{topic}: {decision.word or 'not judged'}{reason}{disputed}"
        yield f"{topic}: {'; '.join([f'rank {decision.rank}', *decision.answers])}"
        yield from (f"{topic}: note of {note}" if ": " in note else f"{topic}: note: {note}" for note in decision.notes)
    if record.position != record.judged_as:
        yield f"near-duplicate of {view.pool.ids[record.judged_as]}"


def write_duplicates(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the records of each group of near-duplicates of at least two, as JSON Lines or CSV.

    `group` is the position of the group's first record, and `position` that of the record, both counted from 0.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        Not used: the groups do not depend on topics.

    Returns
    -------
    Path
    """
    made_as = format_by_ending(out, FORMATS["duplicates"], "duplicates")
    with view.unchanged():
        groups = [(group, positions) for group, positions in view.groups.all_members() if len(positions) > 1]
    rows = (_duplicate_row(view.pool, group, position) for group, positions in groups for position in positions)
    columns = ("group", "position", "id", *_BIBLIOGRAPHIC)
    return write_lines(out, map(json_line, rows) if made_as == "jsonl" else csv_lines(columns, rows))


def _duplicate_row(pool: Pool, group: int, position: int) -> dict[str, Any]:
    return {"group": group, "position": position, "id": pool.ids[position], **_bibliographic_row(pool, position)}


def _bibliographic_row(pool: Pool, position: int) -> dict[str, Any]:
    """Return the fields of a record that have a column in CSV; several values are joined to one text."""
    fields = bibliographic_fields(pool, position)
    wanted = {name: fields[name] for name in _BIBLIOGRAPHIC if name in fields}
    return {name: "; ".join(map(str, value)) if isinstance(value, list) else value for name, value in wanted.items()}


def bibliographic_fields(pool: Pool, i: int) -> dict[str, Any]:
    """Return a document's fields by the names of reference managers; `abstract` is all its text but the title."""
    zones = pool.document(i)
    text = "\n".join(text for name, text in zones.items() if text and name != "title")
    values = {"id": pool.ids[i], "title": zones.get("title", ""), "abstract": text}
    return common_fields(pool.fields(i)) | {name: value for name, value in values.items() if value}


def write_corpus(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents judged for any of the topics as JSON Lines, a corpus for `textcat train` and `textcat learn`.

    The field ``labelled_for`` has the topics that a document was judged for; for all other topics the document is
    neither a positive nor a negative example. Only the first document of each group of near-duplicates is written, so
    that the group counts as one example.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    format_by_ending(out, FORMATS["corpus"], "a corpus")
    documents = _documents(view, view.chosen_topics(topics))
    lines = (
        {"id": document.id, **_fields(document.zones), "topics": document.topics, "labelled_for": document.labelled_for}
        for document in documents
    )
    return write_lines(out, map(json_line, lines))


def write_model(
    view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None, *, n_jobs: int | None = None
) -> Path:
    """Train a model with the pool's recipe on the documents judged for any of the topics, and save it in a folder.

    TextcatError is also raised if the recipe names a learner of another package that has not been imported. The package
    is not imported here, because a session from a stranger could name any package.

    Parameters
    ----------
    view : View
    out : path
        The folder of the model.
    topics : sequence of str, optional
        By default all.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Returns
    -------
    Path
    """
    from textcat.model.storage import save
    from textcat.training.train import train

    recipe = view.pool.recipe.of_model("The session trains models by")
    chosen = view.chosen_topics(topics)
    documents = _documents(view, chosen)
    for topic in chosen:
        if all(topic in document.topics for document in documents if topic in (document.labelled_for or ())):
            raise TextcatError(f"The topic {topic!r} has no document judged by no: {_REMEDY}.")
    described = {topic: about for topic in chosen if (about := view.topic(topic).about["description"])}
    corpus = Corpus.from_documents("taught", documents, descriptions=described)
    return Path(save(train(corpus, recipe, n_jobs=n_jobs), out))


def write_audit(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write all steps of the session in order, as JSON Lines or CSV, by the extension of `out`.

    A step is an answer, a topic, a change of a topic, a keyword, a split of duplicates, or an undo. Splits and undos
    belong to no topic, and are always written. The line of an answer has the person, the time, the document's rank and
    score, the number of the model that computed both (the number of earlier changes to the topic), why the document was
    shown, where it was answered, and whether the answer was undone.

    Parameters
    ----------
    view : View
    out : path
        Its extension decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    made_as, chosen = format_by_ending(out, FORMATS["audit"], "an audit log"), view.chosen_topics(topics)
    steps = view.steps
    undone = {step.undo: step.step for step in steps if isinstance(step, Undone)}
    rows = (row for step in steps for row in _audited(step, undone) if row.get("topic", chosen[0]) in chosen)
    if made_as == "jsonl":
        return write_lines(out, map(json_line, rows))
    as_text = (
        row | {"detail": json.dumps(row["detail"], ensure_ascii=False)} if "detail" in row else row for row in rows
    )
    return write_lines(out, csv_lines(_COLUMNS, as_text))


def _audited(step: SessionStep, undone: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    at = datetime.fromtimestamp(step.at, timezone.utc).isoformat(timespec="milliseconds")
    row = {"step": step.step, "time": at.replace("+00:00", "Z"), "person": step.person}
    taken_back = {"undone": undone[step.step]} if step.step in undone else {}
    if isinstance(step, TopicAdded | TopicChanged):
        what, about = ("topic", step.about) if isinstance(step, TopicAdded) else ("change", step.change)
        detail = {key: value for key, value in about.items() if value not in ("", None)}
        yield {**row, "what": what, "topic": step.topic, "detail": detail}
    elif isinstance(step, Split):
        yield {**row, "what": "split", "detail": {"positions": step.split, "ids": step.ids}, **taken_back}
    elif isinstance(step, Undone):
        yield {**row, "what": "undo", "detail": {"step": step.undo}}
    elif isinstance(step, KeywordSet):
        detail = {"term": step.keyword, "speaks_for": step.speaks_for}
        yield {**row, "what": "keyword", "topic": step.topic, "detail": detail, **taken_back}
    for answer in answers_of(step):
        yield {**row, "what": "answer", **vars(answer), **taken_back}


def reference_line(pool: Pool, i: int) -> str:
    """Return the authors, journal, year and DOI of a document as one line; "" if its record has no such field."""
    fields = bibliographic_fields(pool, i)
    authors = fields.get("authors") or ""
    by = "; ".join(map(str, authors)) if isinstance(authors, list) else str(authors)
    facts = [by, fields.get("journal"), fields.get("year"), fields.get("doi")]
    shown = [shortened_text(str(fact), LONGEST_FACT) for fact in facts if fact]
    ended = [fact.removesuffix(".") for fact in shown[:-1]]  # initials and abbreviations end with a full stop already
    return ". ".join([*ended, *shown[-1:]])


def _documents(view: View, topics: list[str]) -> list[Document]:
    """Return the documents judged for any of the topics, with their topics, in the order of the archive.

    Raise TextcatError if a topic has no document with the label "yes".
    """
    with view.unchanged():
        of_topic = {topic: view.topic(topic).labels.copy() for topic in topics}
    for topic, labels in of_topic.items():
        if not any(labels.values()):
            raise TextcatError(f"The topic {topic!r} has no document judged by yes: {_REMEDY}.")
    pool, taken, documents = view.pool, set[str](), []
    for group in sorted(set().union(*of_topic.values())):
        judged = tuple(topic for topic in topics if group in of_topic[topic])
        name = pool.ids[group] if pool.ids[group] not in taken else f"{pool.ids[group]}#{group}"
        taken.add(name)
        relevant = tuple(topic for topic in judged if of_topic[topic][group])
        documents.append(Document(name, pool.document(group), relevant, labelled_for=judged))
    return documents


def _fields(zones: Mapping[str, str]) -> dict[str, Any]:
    """Return fields of a record that, when read, give these zones (named texts) again."""
    return dict(zones) if set(zones) <= {"title", "body"} and "body" in zones else {"zones": dict(zones)}


#: All exports, by the names used in `textcat teach --export` and on the page.
EXPORTS: dict[str, Callable[..., Path]] = {
    "labels": write_labels,
    "included": write_included,
    "counts": write_counts,
    "corpus": write_corpus,
    "model": write_model,
    "audit": write_audit,
    "records": write_records,
    "duplicates": write_duplicates,
}
