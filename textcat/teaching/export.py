"""Export the results of a session: labels, a corpus, a trained model, and an audit log of all steps.

Each `write_…` function exports the given topics, by default all, to `out`, and returns its path. It raises TextcatError
if the session has no such topic, or if the extension of `out` names no format that the function can write. A corpus
and a model need a document with the label "yes" for each topic; a model also needs a document with the label "no".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.documents import Corpus, Document, shortened_text
from textcat.errors import TextcatError
from textcat.reading import common_fields, ris_entry
from textcat.teaching.judgements import judgements_of
from textcat.teaching.output import csv_lines, format_by_ending, json_line, write_lines

if TYPE_CHECKING:
    from textcat.teaching.pool import Pool
    from textcat.teaching.session import Session

_REMEDY = "answer some more, or leave the topic out"
_COLUMNS = (
    *("step", "time", "person", "what", "topic", "id", "position", "answer", "source", "why", "model", "rank", "score"),
    *("note", "exclusion_reason", "undone", "detail"),
)
#: The formats that labels can be written in.
LABEL_FORMATS = ("jsonl", "csv", "ris")
LONGEST_FACT = 200  # characters of a bibliographic fact, such as the authors, where a document is shown
_BIBLIOGRAPHIC = ("title", "authors", "year", "journal", "doi")


class _Labelled(NamedTuple):
    """A document with its labels: a document that was judged, or a near-duplicate of a judged document."""

    position: int
    judged_as: int  # position of the first of its near-duplicates, which represents the whole group
    labels: dict[str, bool]  # by topic
    disputed: list[str]  # topics on which persons disagree
    exclusion_reasons: dict[str, str]  # by topic


def write_labels(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents that have a label for any of the topics as JSON Lines, CSV or RIS, by the extension of `out`.

    A line of JSON is ``{"id": "17", "labels": {"strikes": true}, "judged_as": "17"}``. All documents judged by yes or
    no are written, and so are their near-duplicates; a near-duplicate has the label of the document in ``judged_as``.
    Topics for which a document was not judged are not in its ``labels``. ``"disputed": ["strikes"]`` names topics on
    which persons disagree and nobody has adjudicated the label; ``"exclusion_reasons": {"strikes": "no strike"}`` tells
    why a label is no. CSV and RIS also have title, authors, year, journal and DOI. RIS has all fields of the record
    that RIS can hold, and a note for each topic, such as ``strikes: no (no strike)``.
    """
    return _write_records(session, out, topics, included_only=False)


def write_included(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents whose label is yes for at least one of the topics, in the formats of `write_labels`.

    Of each group of near-duplicates, only the first document is written.
    """
    return _write_records(session, out, topics, included_only=True)


def _write_records(
    session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None, *, included_only: bool
) -> Path:
    made_as, chosen = format_by_ending(out, LABEL_FORMATS, "labels"), session.chosen_topics(topics)
    records = [*_labelled(session, chosen)]
    if included_only:
        records = [one for one in records if any(one.labels.values()) and one.position == one.judged_as]
    if made_as == "jsonl":
        return write_lines(out, (json_line(_label_line(session, one)) for one in records))
    if made_as == "ris":
        return write_lines(out, (ris_entry(_as_reference(session, one)) for one in records))
    prefixes = dict.fromkeys(chosen, "") if len(chosen) == 1 else {topic: f"{topic}: " for topic in chosen}
    decisions = [prefix + name for prefix in prefixes.values() for name in ("decision", "exclusion_reason")]
    columns = ["id", *_BIBLIOGRAPHIC, *decisions, "disputed", "judged_as"]
    return write_lines(out, csv_lines(columns, (_label_row(session, one, prefixes) for one in records)))


def _labelled(session: Session, topics: list[str]) -> Iterator[_Labelled]:
    with session.lock:
        states = [session.topic_state(topic) for topic in topics]
        of_group = {}
        for group in sorted({group for state in states for group in state.labels}):
            labels = {state.name: state.labels[group] for state in states if group in state.labels}
            disputed = [state.name for state in states if state.is_disagreement(group)]
            reasons = {state.name: reason for state in states if (reason := state.exclusion_reason(group))}
            of_group[group] = labels, disputed, reasons
    for group, facts in of_group.items():
        for position in session.groups.members(group):
            yield _Labelled(int(position), int(group), *facts)


def _label_line(session: Session, record: _Labelled) -> dict[str, Any]:
    ids = session.pool.ids
    line: dict[str, Any] = {"id": ids[record.position], "labels": record.labels, "judged_as": ids[record.judged_as]}
    further = {"disputed": record.disputed, "exclusion_reasons": record.exclusion_reasons}
    return line | {name: value for name, value in further.items() if value}


def _label_row(session: Session, record: _Labelled, prefixes: Mapping[str, str]) -> dict[str, Any]:
    fields = bibliographic_fields(session.pool, record.position)
    row = {name: "; ".join(map(str, value)) if isinstance(value, list) else value for name, value in fields.items()}
    ids = session.pool.ids
    row = {name: value for name, value in row.items() if name in _BIBLIOGRAPHIC} | {"id": ids[record.position]}
    for topic, label in record.labels.items():
        row[f"{prefixes[topic]}decision"] = "yes" if label else "no"
        row[f"{prefixes[topic]}exclusion_reason"] = record.exclusion_reasons.get(topic, "")
    return row | {"disputed": "; ".join(record.disputed), "judged_as": ids[record.judged_as]}


def _as_reference(session: Session, record: _Labelled) -> dict[str, Any]:
    """Return the fields of a document's record, with an additional note for each label."""
    notes = []
    for topic, label in record.labels.items():
        reason = f" ({record.exclusion_reasons[topic]})" if topic in record.exclusion_reasons else ""
        disputed = "; disputed" if topic in record.disputed else ""
        notes.append(f"{topic}: {'yes' if label else 'no'}{reason}{disputed}")
    if record.position != record.judged_as:
        notes.append(f"near-duplicate of {session.pool.ids[record.judged_as]}")
    fields = bibliographic_fields(session.pool, record.position)
    earlier = fields.get("notes") or []
    return fields | {"notes": [*(earlier if isinstance(earlier, list) else [earlier]), *notes]}


def bibliographic_fields(pool: Pool, i: int) -> dict[str, Any]:
    """Return a document's fields under the common names of references; its text is the field `abstract`."""
    zones = pool.document(i)
    text = "\n".join(text for name, text in zones.items() if text and name != "title")
    own = {"id": pool.ids[i], "title": zones.get("title", ""), "abstract": text}
    return common_fields(pool.fields(i)) | {name: value for name, value in own.items() if value}


def write_corpus(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the documents judged for any of the topics as JSON Lines, a corpus for `textcat train` and `textcat learn`.

    The field ``labelled_for`` has the topics that a document was judged for; for all other topics the document is
    neither a positive nor a negative example. Only the first document of each group of near-duplicates is written, so
    that the group counts as one example.
    """
    format_by_ending(out, ("jsonl",), "a corpus")
    documents = _documents(session, session.chosen_topics(topics))
    lines = (
        {"id": document.id, **_fields(document.zones), "topics": document.topics, "labelled_for": document.labelled_for}
        for document in documents
    )
    return write_lines(out, map(json_line, lines))


def write_model(
    session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None, *, n_jobs: int | None = None
) -> Path:
    """Train a model with the pool's recipe on the documents judged for any of the topics, and save it in a folder.

    TextcatError is also raised if the recipe names a learner of another package that has not been imported. The package
    is not imported here, because a session from a stranger could name any package.
    """
    from textcat.model.storage import save
    from textcat.training.train import train

    recipe = session.pool.recipe.of_model("The session trains models by")
    chosen = session.chosen_topics(topics)
    documents = _documents(session, chosen)
    for topic in chosen:
        if all(topic in document.topics for document in documents if topic in (document.labelled_for or ())):
            raise TextcatError(f"The topic {topic!r} has no document judged by no: {_REMEDY}.")
    described = {topic: about for topic in chosen if (about := session.about(topic)["description"])}
    corpus = Corpus.from_documents("taught", documents, descriptions=described)
    return Path(save(train(corpus, recipe, n_jobs=n_jobs), out))


def write_audit(session: Session, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write all steps of the session in order, as JSON Lines or CSV, by the extension of `out`.

    A step is an answer, a new topic, a change of a topic, a keyword, or an undo. The line of an answer has the person,
    the time, the document's rank and score, the number of the model that computed both (the number of earlier changes
    to the topic), why the document was shown, where it was answered, and whether the answer was undone.
    """
    made_as, chosen = format_by_ending(out, ("jsonl", "csv"), "an audit log"), session.chosen_topics(topics)
    lines = [*session.journal.lines]
    undone = {line["undo"]: line["step"] for line in lines if "undo" in line}
    rows = (row for line in lines for row in _audited(line, undone) if row.get("topic", chosen[0]) in chosen)
    if made_as == "jsonl":
        return write_lines(out, map(json_line, rows))
    as_text = (
        row | {"detail": json.dumps(row["detail"], ensure_ascii=False)} if "detail" in row else row for row in rows
    )
    return write_lines(out, csv_lines(_COLUMNS, as_text))


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


def reference_line(pool: Pool, i: int) -> str:
    """Return the authors, journal, year and DOI of a document as one line; "" if its record has no such field."""
    fields = bibliographic_fields(pool, i)
    authors = fields.get("authors") or ""
    by = "; ".join(map(str, authors)) if isinstance(authors, list) else str(authors)
    facts = [by, fields.get("journal"), fields.get("year"), fields.get("doi")]
    shown = [shortened_text(str(fact), LONGEST_FACT) for fact in facts if fact]
    ended = [fact.removesuffix(".") for fact in shown[:-1]]  # initials and abbreviations have their own full stop
    return ". ".join([*ended, *shown[-1:]])


def _documents(session: Session, topics: list[str]) -> list[Document]:
    """Return the documents judged for any of the topics, with their topics, in the order of the archive.

    Raise TextcatError if a topic has no document with the label "yes".
    """
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
    """Return the fields of a record such that reading the record gives these zones (named texts) again."""
    return dict(zones) if set(zones) <= {"title", "body"} and "body" in zones else {"zones": dict(zones)}
