"""The server of a review: people judge the tags of an archive over HTTP, below /api/v1/review."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query

from textcat.serving import review_schemas as s
from textcat.serving.http.front import Call
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

if TYPE_CHECKING:
    from textcat.review.review import Review, ReviewDocument
    from textcat.serving.http.keys import Keys

_ABOUT = """People judge the tags of an archive: a client asks for the next document, and sends what a person says of
its topics. Errors are `application/problem+json`."""
_OF_CHANGES = problems(403, 404, 409, 412, 421, 507, body=True)
_OF_QUERIES = problems(403, 404, 409, 412, 421, 422)


class Reviewing(PeoplesApplication):
    """The server of a review; further options are those of `PeoplesApplication`."""

    def __init__(self, review: Review, *, hosts: tuple[str, ...] = (), **options: Any) -> None:
        groups = (changing, reading)
        super().__init__("textcat review", _ABOUT, groups, "review.html", review.fingerprint, hosts, **options)
        self.review = review


changing, reading = router("review", ChangingRoute), router("review", ReadingRoute)


@changing.get("/api/v1/review/next", response_model=s.ReviewNext, responses=_OF_QUERIES)
def next_document(query: Annotated[s.PersonQuery, Query()], call: Call) -> dict[str, Any]:
    """Return the next document for a person to judge."""
    return _next(call.app.review, person_of(call, query.person))


@changing.post("/api/v1/review/answer", response_model=s.ReviewNext, responses=_OF_CHANGES)
def answer(body: s.TopicsJudged, call: Call) -> dict[str, Any]:
    """Save a person's answers about a document's topics, and return the next document."""
    review, person = call.app.review, person_of(call, body.person)
    _check(review, body.number)
    review.answer(body.number, body.answers, person, body.note.strip(), is_complete=body.is_complete)
    return _next(review, person)


@changing.post("/api/v1/review/undo", response_model=s.ReviewUndone, responses=_OF_CHANGES)
def undo(body: s.PersonSent, call: Call) -> dict[str, Any]:
    """Retract a person's last answer, and return its document; if it is not in the queue, return the next document."""
    review, person = call.app.review, person_of(call, body.person)
    undone = review.undo(person)
    document = None if undone is None else undone.document
    following = _next(review, person) if document is None else _answered(review, document, person)
    return {**following, "undone": undone is not None}


@reading.get("/api/v1/review", response_model=s.ReviewAnswer, responses=problems(403, 412, 421))
def about(call: Call) -> dict[str, Any]:
    """Describe the queue: its archive, its number of documents, and how people share them."""
    review = call.app.review
    return {
        "session": review.fingerprint,
        "archive": review.folder.name,
        "documents": len(review.documents),
        "open": review.n_open,
        "independent": review.independent,
        "is_sample": review.sample > 0,
        "topics": len(review.topics.topics),
        "person": call.key or None,
    }


@reading.get("/api/v1/review/evidence", response_model=s.ReasonsAnswer, responses=_OF_QUERIES)
def evidence(query: Annotated[s.EvidenceOfTopicQuery, Query()], call: Call) -> dict[str, Any]:
    """Explain a document's score for a topic: words of the document, with their contributions."""
    review = call.app.review
    _check(review, query.number)
    explanation = review.explain(query.number, query.topic, query.n)
    reasons = None if explanation is None else [reason.as_dict() for reason in explanation.reasons]
    return {"number": query.number, "topic": query.topic, "reasons": reasons}


@reading.get("/api/v1/review/topics", response_model=s.TopicsFound, responses=_OF_QUERIES)
def topics(query: Annotated[s.TopicsQuery, Query()], call: Call) -> dict[str, Any]:
    """Find topics to choose, by words of their ids and names."""
    found = call.app.review.topics
    return {"topics": [_named(call.app.review, topic) for topic in found.search(query.query.strip(), query.n)]}


@reading.get("/api/v1/review/audit", response_model=s.AuditAnswer, responses=problems(403, 412, 421))
def audit(call: Call) -> dict[str, Any]:
    """Return the audit: how many of the automatic tags that were drawn at random and judged are right."""
    return {"rows": [row._asdict() for row in call.app.review.audited_precision()]}


def _check(review: Review, number: int) -> None:
    if number >= len(review.documents):
        raise Problem(404, f"There is no document {number:,} in the queue: it has {len(review.documents):,}, from 0.")


def _next(review: Review, person: str) -> dict[str, Any]:
    return _answered(review, review.next(person), person)


def _answered(review: Review, document: ReviewDocument | None, person: str) -> dict[str, Any]:
    row = None if document is None else _document(review, document, person)
    return {"document": row, "answered": review.n_answered(person)}


def _document(review: Review, document: ReviewDocument, person: str) -> dict[str, Any]:
    read = document.document
    earlier = review.answers_of(document.number, person)
    return {
        "number": document.number,
        "id": read.id,
        "zones": read.zones,
        "fields": shown_fields(document.fields),
        "date": read.date,
        "tags": [{**tag._asdict(), **_named(review, tag.topic)} for tag in document.tags],
        "earlier": [{name: getattr(made, name) for name in s.EarlierAnswer.model_fields} for made in earlier],
    }


def _named(review: Review, topic: str) -> dict[str, Any]:
    return {"topic": topic, "name": review.topics.names.get(topic)}


def serve(
    review: Review,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    open_browser: bool = True,
    keys: Keys | None = None,
    on_start: Callable[[str], object] = lambda url: None,
) -> int:
    """Serve a review until a signal ends the server; return the signal's number. Parameters as for `serve_people`."""
    service = Reviewing(review, hosts=(host,), keys=keys, log=Log(requests=False))
    return serve_people(service, host, port, open_browser=open_browser, on_start=on_start)
