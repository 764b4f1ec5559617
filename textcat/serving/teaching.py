"""The server of a session: people and programs teach topics over HTTP, below /api/v1/teach."""

from __future__ import annotations

import asyncio
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from textcat.corpus.documents import shortened_text
from textcat.serving import teaching_schemas as s
from textcat.serving.http.front import Call
from textcat.serving.http.keys import Keys
from textcat.serving.http.log import Log
from textcat.serving.http.problems import Problem
from textcat.serving.http.routes import problems, router
from textcat.serving.people import (
    ChangingRoute,
    PeoplesApplication,
    ReadingRoute,
    person_of,
    serve_people,
    shown_fields,
)
from textcat.teaching.advice import Advisor
from textcat.teaching.entries import with_single_spaces
from textcat.teaching.evidence import evidence_for
from textcat.teaching.export import EXPORTS, FORMATS, reference_line
from textcat.teaching.progress import progress_of
from textcat.teaching.query import Reason
from textcat.teaching.screening import screening_counts
from textcat.teaching.search import Search

if TYPE_CHECKING:
    from textcat.teaching.judgements import Judgement
    from textcat.teaching.queues import Queue
    from textcat.teaching.session import Session
    from textcat.teaching.view import View

_ABOUT = """Topics are taught by answers: a client asks for the document to judge next, and each answer ranks all
documents again. Errors are `application/problem+json`."""
_POINTS = 400  # maximum number of points of a curve
_TITLE = 120  # maximum characters of a document's name in lists,
_EXCERPT = 300  # and of its text
_LISTED = 20  # maximum number of near-duplicates shown
_AGAIN = 10.0  # seconds after which the timer of a slow export is restarted
_KINDS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "ris": "application/x-research-info-systems",
    "zip": "application/zip",
}
_DOWNLOAD: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file; a model is a folder in a zip archive.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _KINDS.values()},
    }
}


class Teaching(PeoplesApplication):
    """The server of a session; `queues` are lists of documents to review, other options are of the base class."""

    def __init__(
        self, session: Session, *, queues: Sequence[Queue] = (), hosts: tuple[str, ...] = (), **options: Any
    ) -> None:
        groups = (changing, reading, downloads)
        super().__init__("textcat teach", _ABOUT, groups, "teach.html", session.fingerprint, hosts, **options)
        self.session, self.queues = session, queues
        self.search, self.advisor = Search(session.view), Advisor(session.view)


# --- routes that change the session, or ask for a question -----------------------------------------------------------


changing = router("teach", ChangingRoute)
_OF_CHANGES = problems(403, 409, 412, 421, 507, body=True)
_OF_QUERIES = problems(403, 409, 412, 421, 422)


@changing.post("/api/v1/teach/topics", response_model=s.NextAnswer, responses=_OF_CHANGES)
def topics(body: s.NewTopic, call: Call) -> dict[str, Any]:
    """Add a topic, with a description, a query or examples, and return its first question."""
    session, person = call.app.session, person_of(call, body.person)
    shown = {"criteria": body.criteria, "exclusion_reasons": body.exclusion_reasons}
    session.add_topic(body.topic, body.description, body.query, body.examples, **shown, person=person)
    return _next(session, with_single_spaces(body.topic), person)


@changing.get("/api/v1/teach/question", response_model=s.NextAnswer, responses=_OF_QUERIES)
def question(query: Annotated[s.QuestionQuery, Query()], call: Call) -> dict[str, Any]:
    """Return the next document for a person to judge, for a topic or for all topics, and why it was chosen."""
    return _next(call.app.session, query.topic, person_of(call, query.person), all_topics=query.all_topics)


@changing.post("/api/v1/teach/answer", response_model=s.NextAnswer, responses=_OF_CHANGES)
def answer(body: s.AnswerSent, call: Call) -> dict[str, Any]:
    """Save an answer to disk, rank all documents again, and return the next question."""
    session, person = call.app.session, person_of(call, body.person)
    _check(session, body.topic, *body.others, position=body.position)
    further = {"exclusion_reason": body.exclusion_reason, "others": body.others}
    session.answer(body.topic, body.position, body.answer, person, body.source, body.note.strip(), **further)
    return _next(session, body.topic, person, ask=body.ask, all_topics=body.all_topics)


@changing.post("/api/v1/teach/undo", response_model=s.UndoAnswer, responses=_OF_CHANGES)
def undo(body: s.UndoSent, call: Call) -> dict[str, Any]:
    """Retract a person's last answer, keyword or split of duplicates; ask about the answered document again, if any."""
    session, person = call.app.session, person_of(call, body.person)
    _check(session, body.topic)
    undone = session.undo(person)
    following = _next(session, undone[0].topic if undone else body.topic, person, ask=not undone)
    if not undone:
        return {**following, "undone": undone}
    again = _document(session.view, undone[0].position)
    again |= {"topic": undone[0].topic, "topics": [judgement.topic for judgement in undone]}
    again |= {"rank": None, "score": None, "why": Reason.TAKEN_BACK, "n_answers": 0, "duplicates": [], "answers": {}}
    return {**following, "question": again, "undone": [_judgement(session.view, judgement) for judgement in undone]}


@changing.post("/api/v1/teach/keyword", response_model=s.KeywordsAnswer, responses=_OF_CHANGES)
def keyword(body: s.KeywordSent, call: Call) -> dict[str, Any]:
    """Add or remove a keyword for or against a topic, which affects the next question."""
    session = call.app.session
    _check(session, body.topic)
    session.set_keyword(body.topic, body.term, body.speaks_for, person_of(call, body.person))
    return {"keywords": session.keywords(body.topic)}


@changing.post("/api/v1/teach/split", response_model=s.SplitAnswer, responses=_OF_CHANGES)
def split(body: s.SplitSent, call: Call) -> dict[str, int]:
    """Split records off from their group of near-duplicates, so that they are judged separately."""
    for position in body.positions:
        _check(call.app.session, position=position)
    call.app.session.split(body.positions, person_of(call, body.person))
    return _sizes(call.app.session)


# --- routes that read the session ------------------------------------------------------------------------------------


reading, downloads = router("teach", ReadingRoute), router("teach")


@reading.get("/api/v1/teach", response_model=s.SessionAnswer, responses=problems(403, 412, 421))
def about(call: Call) -> dict[str, Any]:
    """Return the session's topics, people and lists, and its number of documents."""
    session, rows, people = call.app.session, [], set()
    for name in session.topics():
        progress, started = progress_of(session.view, name), session.about(name)
        people.update(progress.persons)
        rows.append(
            {
                "topic": name,
                "description": started["description"],
                "query": started["query"],
                "criteria": started.get("criteria", ""),
                "exclusion_reasons": started.get("exclusion_reasons", []),
                "strategy": session.view.topic(name).query.name,
                "counts": progress.counts,
                "keywords": session.keywords(name),
                "disagreements": progress.disagreements,
            }
        )
    return {
        "session": session.fingerprint,
        **_sizes(session),
        "person": call.key or None,
        "people": sorted(people - {""}),
        "topics": rows,
        "queues": [_answer(s.QueueRow, queue, documents=len(queue.documents)) for queue in call.app.queues],
    }


@reading.get("/api/v1/teach/document", response_model=s.DocumentAnswer, responses=_OF_QUERIES)
def document(query: Annotated[s.DocumentQuery, Query()], call: Call) -> dict[str, Any]:
    """Return a document and its judgements for a topic."""
    view, topics_asked = call.app.session.view, [query.topic] if query.topic else []
    _check(call.app.session, *topics_asked, position=query.position)
    groups = view.groups
    rows = [
        _judgement(view, judgement)
        for topic in topics_asked
        for judgement in view.judgements(topic)
        if groups.of(judgement.position) == groups.of(query.position)
    ]
    return {**_document(view, query.position), "judgements": rows}


@reading.get("/api/v1/teach/evidence", response_model=s.EvidenceAnswer, responses=_OF_QUERIES)
def evidence(query: Annotated[s.EvidenceQuery, Query()], call: Call) -> dict[str, Any]:
    """Explain a document's score: words of the document, where they occur, and their contributions."""
    session = call.app.session
    _check(session, query.topic, position=query.position)
    explanation = evidence_for(session.view, query.topic, query.position, query.n)
    numbers = {"score": float(explanation.score), "bias": float(explanation.bias)}
    return _answer(s.EvidenceAnswer, explanation, position=query.position, **numbers)


@reading.get("/api/v1/teach/search", response_model=s.SearchAnswer, responses=_OF_QUERIES)
def search(query: Annotated[s.SearchQuery, Query()], call: Call) -> dict[str, Any]:
    """Find the documents that share a word with a query, the most similar first, or that have it as their id."""
    session = call.app.session
    if query.topic:
        _check(session, query.topic)
    person = person_of(call, query.person)
    results = call.app.search.find(query.query, query.topic or None, query.offset, query.limit, person)
    rows = []
    for hit in results.documents:
        text = " ".join(text for name, text in hit.zones.items() if text and name != "title")
        if not hit.zones.get("title", "").strip():
            text = " ".join(text[: 8 * _EXCERPT].split())[_TITLE - 1 :]  # it continues the heading
        shown = {"title": _heading(hit.zones), "text": shortened_text(text, _EXCERPT), "answer": hit.answer or None}
        rows.append(_answer(s.FoundRow, hit, **shown))
    return {"total": results.n_found, "documents": rows}


@reading.get("/api/v1/teach/judgements", response_model=s.JudgementsAnswer, responses=_OF_QUERIES)
def judgements(query: Annotated[s.JudgementsQuery, Query()], call: Call) -> dict[str, Any]:
    """List the judgements of a topic, the latest first."""
    session = call.app.session
    _check(session, query.topic)
    listed = [
        judgement
        for judgement in reversed(session.view.judgements(query.topic))
        if query.answer in ("", judgement.answer) and query.person in (None, judgement.person)
    ]
    shown = listed[query.offset : query.offset + query.limit]
    return {"total": len(listed), "judgements": [_judgement(session.view, judgement) for judgement in shown]}


@reading.get("/api/v1/teach/duplicates", response_model=s.DuplicatesAnswer, responses=_OF_QUERIES)
def duplicates(query: Annotated[s.DuplicatesQuery, Query()], call: Call) -> dict[str, Any]:
    """List the groups of near-duplicates, each of which counts as one document."""
    view = call.app.session.view
    groups = view.groups
    of_several = groups.of_several()
    rows = [
        [{**_named(view, i), "reference": reference_line(view.pool, i)} for i in groups.members(group)]
        for group in of_several[query.offset : query.offset + query.limit]
    ]
    return {"total": len(of_several), "groups": rows}


@reading.get("/api/v1/teach/progress", response_model=s.ProgressAnswer, responses=_OF_QUERIES)
def progress(query: Annotated[s.ProgressQuery, Query()], call: Call) -> dict[str, Any]:
    """Return the progress of teaching a topic: counts of documents, the gain curve, the estimated recall, and advice.

    The advice says when to stop, given a target for the recall and a confidence. Answers per minute are added.
    """
    session = call.app.session
    _check(session, query.topic)
    state = progress_of(session.view, query.topic)
    advice = call.app.advisor.advise(query.topic, query.target, query.confidence)
    return _answer(
        s.ProgressAnswer,
        state,
        **advice._asdict(),
        documents=state.n_documents,
        found=state.yes,
        curve=state.points(_POINTS),
        target=query.target,
        confidence=query.confidence,
    )


@reading.get("/api/v1/teach/screening", response_model=s.ScreeningAnswer, responses=_OF_QUERIES)
def screening(query: Annotated[s.OfTopic, Query()], call: Call) -> dict[str, Any]:
    """Return the number of records at each stage of screening."""
    _check(call.app.session, query.topic)
    return screening_counts(call.app.session.view, query.topic).as_dict()


@reading.get("/api/v1/teach/agreement", response_model=s.AgreementAnswer, responses=_OF_QUERIES)
def agreement(query: Annotated[s.OfTopic, Query()], call: Call) -> dict[str, Any]:
    """Return how far people agree, and the documents on which they disagree."""
    session = call.app.session
    _check(session, query.topic)
    result = session.view.agreement(query.topic)
    rows = [
        _answer(s.DisagreementRow, disagreement, title=_heading(session.view.pool.document(disagreement.position)))
        for disagreement in result.disagreements
    ]
    return _answer(s.AgreementAnswer, result, disagreements=rows)


@reading.get("/api/v1/teach/queue", response_model=s.QueueAnswer, responses=_OF_QUERIES)
def queue(query: Annotated[s.QueueQuery, Query()], call: Call) -> dict[str, Any]:
    """Return one of the lists of documents to review, by its name."""
    view, person = call.app.session.view, person_of(call, query.person)
    listed = next((listed for listed in call.app.queues if listed.name == query.name), None)
    if listed is None:
        raise Problem(404, f"There is no list {query.name!r:.80}: GET /api/v1/teach names the lists.")
    with view.unchanged():
        state, groups = view.topic(listed.topic), view.groups
        answers = [state.own_answer(groups.of(position), person) or None for position, _ in listed.documents]
    rows = [
        {**_named(view, position), "labelled": labelled, "answer": answer}
        for (position, labelled), answer in zip(listed.documents, answers, strict=True)
    ]
    return _answer(s.QueueAnswer, listed, documents=rows)


@downloads.get("/api/v1/teach/export", response_model=None, responses={**_OF_QUERIES, **_DOWNLOAD})
async def export(query: Annotated[s.ExportQuery, Query()], call: Call) -> None:
    """Download labels, included documents, counts, a corpus, a model, the log of actions, all records or duplicates."""
    formats = FORMATS[query.what]
    made_as = query.format or formats[0]
    if made_as not in formats:
        raise Problem(422, f"There is no export of {query.what} as {made_as}: choose {' or '.join(formats)}.")
    name, kind = f"{query.what}.{made_as}", _KINDS[made_as].encode()
    making = asyncio.ensure_future(call.app.read(_export, call.app.session, query.what, name, query.topic))
    while not making.done():
        call.restart_timer()
        await asyncio.wait([making], timeout=min(_AGAIN, call.front.limits.timeout / 2))
    await call.answer(making.result(), kind=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


# --- conversion of the session's records to responses ----------------------------------------------------------------


def _check(session: Session, *names: str, position: int = -1) -> None:
    """Raise a Problem if the session lacks a topic in `names`, or the document.

    The document is given by its position in the pool; -1: no document is checked.
    """
    for name in names:
        if name not in session.topics():
            raise Problem(404, f"No topic {name!r:.80} is taught here: GET /api/v1/teach lists the topics.")
    n = len(session.view.pool)
    if position >= n:
        raise Problem(404, f"There is no document at position {position:,}: the archive has {n:,}, counted from 0.")


def _answer(kind: type[BaseModel], source: Any, **fields: Any) -> dict[str, Any]:
    """Return an answer with the fields of the schema `kind`; a field that is not in `fields` comes from `source`."""
    return {name: fields[name] if name in fields else getattr(source, name) for name in kind.model_fields}


def _next(session: Session, topic: str, person: str, *, ask: bool = True, all_topics: bool = False) -> dict[str, Any]:
    _check(session, topic)
    asked = session.next_of([topic, *(session.topics() if all_topics else ())], person) if ask else None
    row = None
    if asked is not None:
        shown = {"zones": _filled(asked.zones), "fields": shown_fields(asked.fields)}
        row = _answer(s.QuestionAnswer, asked, **shown, duplicates=list(asked.duplicates[:_LISTED]))
    return {"question": row, "counts": progress_of(session.view, asked.topic if asked else topic).counts}


def _sizes(session: Session) -> dict[str, int]:
    n = len(session.view.groups)
    return {"documents": n, "duplicates": len(session.view.pool) - n}


def _filled(zones: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in zones.items() if text}


def _document(view: View, position: int) -> dict[str, Any]:
    pool = view.pool
    zones, fields = _filled(pool.document(position)), shown_fields(pool.fields(position))
    return {"position": int(position), "id": pool.ids[position], "zones": zones, "fields": fields}


def _heading(zones: Mapping[str, str]) -> str:
    return shortened_text(zones.get("title", "").strip() or " ".join(filter(None, zones.values())), _TITLE)


def _named(view: View, position: int) -> dict[str, Any]:
    pool = view.pool
    return {"position": int(position), "id": pool.ids[position], "title": _heading(pool.document(position))}


def _judgement(view: View, judgement: Judgement) -> dict[str, Any]:
    at = datetime.fromtimestamp(judgement.at, timezone.utc).isoformat(timespec="seconds")
    return _answer(s.JudgementRow, judgement, **_named(view, judgement.position), at=at)


def _export(session: Session, what: str, name: str, topic: str) -> bytes:
    if topic:
        _check(session, topic)
    with tempfile.TemporaryDirectory(prefix="textcat-teach-") as folder:
        path = Path(folder, name.removesuffix(".zip"))
        EXPORTS[what](session.view, path, [topic] if topic else None)
        return _zipped(path) if path.is_dir() else path.read_bytes()


def _zipped(folder: Path) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder.parent))
    return packed.getvalue()


# --- the process -----------------------------------------------------------------------------------------------------


def serve(
    session: Session,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    queues: Sequence[Queue] = (),
    open_browser: bool = True,
    path: str = "",
    keys: Keys | None = None,
    on_start: Callable[[str], object] = lambda url: None,
) -> int:
    """Serve a session until a signal ends the server; return the signal's number.

    `queues` and `keys` are passed to `Teaching`; port 0 means any free port. `on_start` is called with the
    address of the page. If `open_browser`, the browser opens this address with `path`, such as ``#view=topics``,
    appended.
    """
    log = Log(requests=False)
    service = Teaching(session, queues=queues, hosts=(host,), keys=keys, log=log)
    return serve_people(service, host, port, open_browser=open_browser, path=path, on_start=on_start)
