"""Export the results of a session: labels, a corpus, a trained model, and an audit log of all steps.

Each function writes the topics named, by default all, and returns the path. TextcatError is raised if there is no such
topic, if a topic of a corpus or a model has no answer "yes", or if a topic of a model has no answer "no".
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.folders import write_atomically
from textcat.spreadsheets import safe_cell
from textcat.teaching.judgements import judgements_of

if TYPE_CHECKING:
    from textcat.teaching.session import Session

_REMEDY = "answer some more, or leave the topic out"
_COLUMNS = (
    *("step", "time", "person", "what", "topic", "id", "position", "answer", "source", "why", "model", "rank", "score"),
    *("note", "undone", "detail"),
)


def write_labels(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write a line of JSON for each document that has been judged for one of the topics.

    An example is ``{"id": "17", "labels": {"strikes": true}, "judged_as": "17"}``. Documents judged by yes or no are
    written, and their near-duplicates, which get the label of the document in ``judged_as``. A topic that a document
    has not been judged for is not in its labels. ``"disputed": ["strikes"]`` names topics on which persons disagree
    and nobody has adjudicated the label.
    """
    ids, lines = session.pool.ids, {}
    with session.lock:
        states = [session.topic_state(topic) for topic in _chosen(session, topics)]
        for group in sorted({group for state in states for group in state.labels}):
            labels = {state.name: state.labels[group] for state in states if group in state.labels}
            line: dict[str, Any] = {"labels": labels, "judged_as": ids[group]}
            if disputed := [state.name for state in states if state.is_disagreement(group)]:
                line["disputed"] = disputed
            lines[group] = line
    members = ((i, line) for group, line in lines.items() for i in session.groups.members(group))
    return _written(out, (_as_line({"id": ids[i], **line}) for i, line in members))


def write_corpus(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents judged for any of the topics as JSON Lines, a corpus for `textcat train` and `textcat learn`.

    The field ``labelled_for`` has the topics that a document was judged for; for others it is neither a positive nor a
    negative example. Of a group of near-duplicates only one is written, so that it does not count several times.
    """
    documents = _documents(session, _chosen(session, topics))
    lines = (
        {"id": document.id, **_fields(document.zones), "topics": document.topics, "labelled_for": document.labelled_for}
        for document in documents
    )
    return _written(out, map(_as_line, lines))


def write_model(
    session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None, *, n_jobs: int | None = None
) -> Path:
    """Train a model by the pool's recipe on the documents judged for any of the topics, and save it."""
    from textcat.model.storage import save
    from textcat.training.train import train

    chosen = _chosen(session, topics)
    documents = _documents(session, chosen)
    for topic in chosen:
        if all(topic in document.topics for document in documents if topic in (document.labelled_for or ())):
            raise TextcatError(f"The topic {topic!r} has no document judged by no: {_REMEDY}.")
    described = {topic: about for topic in chosen if (about := session.about(topic)["description"])}
    corpus = Corpus.from_documents("taught", documents, descriptions=described)
    return Path(save(train(corpus, session.pool.recipe, n_jobs=n_jobs), out))


def write_audit(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write all steps in order as JSON Lines, or as CSV if the file's name ends in .csv.

    A line is an answer: who gave it and when, the document's rank and score, the number of the model that gave these
    (the number of earlier changes to the topic), why the document was shown, where it was answered, and whether the
    answer was undone. Or it is a new topic, a keyword, an undo, or a change of strategy.
    """
    chosen = _chosen(session, topics)
    lines = [*session.journal.lines]
    undone = {line["undo"]: line["step"] for line in lines if "undo" in line}
    rows = (row for line in lines for row in _audited(line, undone) if row.get("topic", chosen[0]) in chosen)
    if Path(out).suffix.lower() == ".csv":
        return _written(out, _as_csv(rows))
    return _written(out, map(_as_line, rows))


def _audited(line: Mapping[str, Any], undone: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    at = datetime.fromtimestamp(line["at"], timezone.utc).isoformat(timespec="milliseconds")
    step = {"step": line["step"], "time": at.replace("+00:00", "Z"), "person": line["person"]}
    if "about" in line or "change" in line:
        what = "topic" if "about" in line else "strategy"
        detail = {key: value for key, value in (line.get("about") or line["change"]).items() if value not in ("", None)}
        yield {**step, "what": what, "topic": line["topic"], "detail": detail}
    if "undo" in line:
        yield {**step, "what": "undo", "detail": {"step": line["undo"]}}
    taken_back = {"undone": undone[line["step"]]} if line["step"] in undone else {}
    if "keyword" in line:
        detail = {"term": line["keyword"], "speaks_for": line["speaks_for"]}
        yield {**step, "what": "keyword", "topic": line["topic"], "detail": detail, **taken_back}
    for judgement in judgements_of(line):
        facts = {key: value for key, value in judgement._asdict().items() if key not in ("step", "at", "person")}
        yield {**step, "what": "answer", **facts, **taken_back}


def _as_csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        detail = {"detail": json.dumps(row["detail"], ensure_ascii=False)} if "detail" in row else {}
        writer.writerow({key: safe_cell(value) for key, value in {**row, **detail}.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _chosen(session: Session, topics: Sequence[str] | None) -> list[str]:
    chosen = session.topics() if topics is None else list(dict.fromkeys(topics))
    if not chosen:
        raise TextcatError("The session has no topic: add one first.")
    for topic in chosen:
        session.topic_state(topic)
    return chosen


def _documents(session: Session, topics: list[str]) -> list[Document]:
    """Return the documents judged for any of the topics, in the order of the archive, with their topics."""
    with session.lock:
        of_topic = {topic: session.topic_state(topic).labels.copy() for topic in topics}
    for topic, labels in of_topic.items():
        if not any(labels.values()):
            raise TextcatError(f"The topic {topic!r} has no document judged by yes: {_REMEDY}.")
    pool, taken, documents = session.pool, set[str](), []
    for group in sorted(set().union(*of_topic.values())):
        judged = tuple(topic for topic in topics if group in of_topic[topic])
        name = pool.ids[group] if pool.ids[group] not in taken else f"{pool.ids[group]}#{group}"
        taken.add(name)
        relevant = tuple(topic for topic in judged if of_topic[topic][group])
        documents.append(Document(name, pool.document(group), relevant, labelled_for=judged))
    return documents


def _fields(zones: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a record from which the same zones are read."""
    return dict(zones) if set(zones) <= {"title", "body"} and "body" in zones else {"zones": dict(zones)}


def _as_line(fields: Mapping[str, Any]) -> str:
    try:
        return json.dumps(fields, ensure_ascii=False).encode("utf-8").decode() + "\n"
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(fields) + "\n"


def _written(out: str | os.PathLike[str], lines: Iterator[str]) -> Path:
    path = Path(out).expanduser()
    write_atomically(path, lines)
    return path
