"""The routes below /api/v1/teach for teaching the topics of a session, and the process that serves them."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import tempfile
import threading
import webbrowser
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query

from textcat.documents import shortened_text
from textcat.errors import TextcatError
from textcat.serving import _teach_schemas as s
from textcat.serving._front import JSON, Call, Front, Limits, Log
from textcat.serving._lean import problems, router
from textcat.serving._metrics import Metrics
from textcat.serving._problems import Problem
from textcat.serving.app import Application, site
from textcat.serving.keys import Keys

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from textcat.teaching.judgements import Judgement
    from textcat.teaching.queues import Queue
    from textcat.teaching.session import Session

T = TypeVar("T")
_ABOUT = """Topics are taught by answers: a client asks for the document to judge next, and each answer ranks all
documents again. Errors are `application/problem+json`."""
_POINTS = 400  # of a curve
_TITLE = 120  # characters of a document's name in lists,
_EXCERPT = 300  # and of its text
_LISTED = 20  # near-duplicates that are named
_AGAIN = 10.0  # seconds after which an export that takes long is given time again
_EXPORTS = {
    "labels": ("labels.jsonl", b"application/jsonl"),
    "corpus": ("corpus.jsonl", b"application/jsonl"),
    "model": ("model.zip", b"application/zip"),
    "audit": ("audit.jsonl", b"application/jsonl"),
}
_DOWNLOAD: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file; a model is a folder in a zip archive.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("application/jsonl", "application/zip")
        },
    }
}


class Teaching(Application):
    """The server of a session, as an ASGI application of one process.

    One thread takes answers and asks questions, in the order of the requests; requests that only read have another
    thread. So an answer never waits for a slow estimate, and two people's answers never mix.

    Parameters
    ----------
    session : Session
    queues : sequence of Queue
    hosts : tuple of str
        Host names that requests may use, besides addresses and `localhost`.
    limits : Limits, optional
    keys : Keys, optional
        The keys that clients may use; a key's name is then the person.
    log : Log, optional
    """

    def __init__(
        self,
        session: Session,
        *,
        queues: Sequence[Queue] = (),
        hosts: tuple[str, ...] = (),
        limits: Limits | None = None,
        keys: Keys | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__("textcat teach", _ABOUT, Metrics(), limits=limits, keys=keys, log=log)
        self.session, self.queues, self._hosts = session, queues, hosts
        self._answering = ThreadPoolExecutor(1, thread_name_prefix="textcat-answer")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="textcat-read")
        self.add(_teaching(self), _reading(self), site(self, "teach.html"))

    def build_middleware_stack(self) -> ASGIApp:
        """Return the middleware of all requests: `Front`, after a check of where the asking page comes from."""
        return _Guard(self._hosts, self.session.tag, self.router, self.metrics, self.log, self.limits, self._keys)

    async def _change(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that changes the session or asks for a question, after all earlier calls of this kind."""
        return await self._called(self._answering, function, *arguments)

    async def _look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that only reads the session, at the same time as those that change it."""
        return await self._called(self._reading, function, *arguments)

    async def _called(self, executor: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, partial(function, *arguments))
        except TextcatError as error:
            raise Problem(507 if isinstance(error.__cause__, OSError) else 409, str(error)) from None

    def close(self) -> None:
        """End when all running calls are done."""
        self._answering.shutdown()
        self._reading.shutdown()


class _Guard(Front):
    """Refuses requests from pages of other sites: cross-site requests, and DNS rebinding.

    It also refuses requests from a page that is still open, but shows an earlier session at the same address.
    """

    def __init__(self, hosts: tuple[str, ...], tag: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._hosts, self.tag_text = frozenset(host.casefold() for host in hosts), tag.encode()

    def _admit(self, call: Call) -> None:
        host = call.head.get(b"host", b"").decode("latin-1")
        name = _without_port(host)
        if not (name in self._hosts or _is_address(name) or name == "localhost" or name.endswith(".localhost")):
            raise Problem(421, f"This server is not {host!r:.80}: use its address, or start it with --host NAME.")
        crosses = call.head.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none")
        origin = call.head.get(b"origin")
        if call.scope["method"] not in ("GET", "HEAD"):
            crosses |= origin is not None and origin.decode("latin-1").partition("://")[2] != host
        if crosses and call.scope["path"].startswith("/api/"):
            raise Problem(
                403, "The request comes from a page of another site: use the server's own page, or a program."
            )
        if call.head.get(b"if-match", self.tag_text) != self.tag_text:
            raise Problem(412, "The server now has another session than this page: reload the page.")
        super()._admit(call)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].casefold().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


async def _check_json(call: Call) -> None:
    """Refuse a body that is not declared as JSON; no page of another site can send JSON without a preflight."""
    if call.kind != JSON:
        raise Problem(415, "The body is not declared as JSON: send Content-Type: application/json.")


# --- what changes the session ----------------------------------------------------------------------------------------


def _teaching(service: Teaching) -> APIRouter:
    routes, session = router("teach"), service.session
    changing = problems(403, 409, 412, 421, 507, body=True)

    @routes.post("/api/v1/teach/topics", response_model=s.NextAnswer, responses=changing)
    async def topics(body: s.NewTopic, call: Call) -> dict[str, Any]:
        """Begin a topic, from a description, a query or examples, and return its first question."""
        await _check_json(call)

        def add() -> dict[str, Any]:
            person = _person(call, body.person)
            session.add_topic(body.topic, body.description, body.query, body.examples, person=person)
            return _next(session, body.topic, person)

        return await service._change(add)

    @routes.get("/api/v1/teach/question", response_model=s.NextAnswer, responses=problems(403, 409, 412, 421, 422))
    async def question(query: Annotated[s.QuestionQuery, Query()], call: Call) -> dict[str, Any]:
        """Return the document to judge next."""
        return await service._change(_next, session, query.topic, _person(call, query.person))

    @routes.post("/api/v1/teach/answer", response_model=s.NextAnswer, responses=changing)
    async def answer(body: s.AnswerSent, call: Call) -> dict[str, Any]:
        """Save an answer to disk, rank all documents again, and return the next question."""
        await _check_json(call)
        person = _person(call, body.person)

        def take() -> dict[str, Any]:
            _check_topic(session, body.topic)
            _check_positions(session, [body.position])
            for other in body.others:
                _check_topic(session, other)
            session.answer(
                body.topic, body.position, body.answer, person, body.source, body.note.strip(), others=body.others
            )
            return _next(session, body.topic, person, ask=body.ask)

        return await service._change(take)

    @routes.post("/api/v1/teach/undo", response_model=s.UndoAnswer, responses=changing)
    async def undo(body: s.UndoSent, call: Call) -> dict[str, Any]:
        """Take back a person's last answer for a topic, and ask about its document again."""
        await _check_json(call)
        person = _person(call, body.person)

        def take_back() -> dict[str, Any]:
            _check_topic(session, body.topic)
            undone = session.undo(person)
            found = _next(session, body.topic, person, ask=not undone)
            if not undone:
                return {**found, "undone": undone}
            again = _document(session, undone[0].position)
            again |= {"rank": None, "score": None, "why": "taken back", "n_answers": 0, "duplicates": [], "answers": {}}
            return {**found, "question": again, "undone": [_judgement(session, each) for each in undone]}

        return await service._change(take_back)

    @routes.post("/api/v1/teach/keyword", response_model=s.KeywordsAnswer, responses=changing)
    async def keyword(body: s.KeywordSent, call: Call) -> dict[str, Any]:
        """Add a keyword that speaks for a topic or against it, which also affects the choice of the next question."""
        await _check_json(call)
        person = _person(call, body.person)

        def take() -> dict[str, Any]:
            _check_topic(session, body.topic)
            session.set_keyword(body.topic, body.term, body.speaks_for, person)
            return {"keywords": session.keywords(body.topic)}

        return await service._change(take)

    return routes


# --- what reads it ---------------------------------------------------------------------------------------------------


def _reading(service: Teaching) -> APIRouter:
    routes, session = router("teach"), service.session
    of_query = problems(403, 409, 412, 421, 422)

    @routes.get("/api/v1/teach", response_model=s.SessionAnswer, responses=problems(403, 412, 421))
    async def about(call: Call) -> dict[str, Any]:
        """Return the topics of the session and the number of documents."""
        return {
            "session": session.tag,
            "person": call.key or None,
            **await service._look(_about, session, service.queues),
        }

    @routes.get("/api/v1/teach/document", response_model=s.DocumentAnswer, responses=of_query)
    async def document(query: Annotated[s.DocumentQuery, Query()]) -> dict[str, Any]:
        """Return a document and its judgements for a topic."""

        def read() -> dict[str, Any]:
            _check_positions(session, [query.position])
            found = _judgements(session, query.topic) if query.topic else []
            own = [_judgement(session, each) for each in found if each.position == query.position]
            return {**_document(session, query.position), "judgements": own}

        return await service._look(read)

    @routes.get("/api/v1/teach/evidence", response_model=s.EvidenceAnswer, responses=of_query)
    async def evidence(query: Annotated[s.EvidenceQuery, Query()]) -> dict[str, Any]:
        """Return the words by which a document is ranked: where they occur, and what they add to its score."""

        def read() -> dict[str, Any]:
            _check_topic(session, query.topic)
            _check_positions(session, [query.position])
            found = session.evidence(query.topic, query.position, query.n)
            reasons = [{**each._asdict(), "spans": [span._asdict() for span in each.spans]} for each in found.reasons]
            known = {"topic": query.topic, "position": query.position}
            return {**known, "score": float(found.score), "bias": float(found.bias), "reasons": reasons}

        return await service._look(read)

    @routes.get("/api/v1/teach/search", response_model=s.SearchAnswer, responses=of_query)
    async def search(query: Annotated[s.SearchQuery, Query()], call: Call) -> dict[str, Any]:
        """Find documents by words."""
        return await service._look(_search, session, query, _person(call, query.person))

    @routes.get("/api/v1/teach/judgements", response_model=s.JudgementsAnswer, responses=of_query)
    async def judgements(query: Annotated[s.JudgementsQuery, Query()]) -> dict[str, Any]:
        """List the judgements of a topic, the latest first."""

        def read() -> dict[str, Any]:
            found = [
                each
                for each in reversed(_judgements(session, query.topic))
                if query.answer in ("", each.answer) and query.person in (None, each.person)
            ]
            shown = found[query.offset : query.offset + query.limit]
            return {"total": len(found), "judgements": [_judgement(session, each) for each in shown]}

        return await service._look(read)

    @routes.get("/api/v1/teach/progress", response_model=s.ProgressAnswer, responses=of_query)
    async def progress(query: Annotated[s.ProgressQuery, Query()]) -> dict[str, Any]:
        """Return the gain curve, the estimate of how much of the topic has been found, and the pace."""

        def read() -> dict[str, Any]:
            _check_topic(session, query.topic)
            return _progress(session, query)

        return await service._look(read)

    @routes.get("/api/v1/teach/agreement", response_model=s.AgreementAnswer, responses=of_query)
    async def agreement(query: Annotated[s.OfTopic, Query()]) -> dict[str, Any]:
        """Return how far people agree, and the documents on which they disagree."""

        def read() -> dict[str, Any]:
            _check_topic(session, query.topic)
            return _agreement(session, query.topic)

        return await service._look(read)

    @routes.get("/api/v1/teach/queue", response_model=s.QueueAnswer, responses=of_query)
    async def queue(query: Annotated[s.QueueQuery, Query()], call: Call) -> dict[str, Any]:
        """Return a list of documents to review."""
        return await service._look(_queue, session, service.queues, query.name, _person(call, query.person))

    @routes.get("/api/v1/teach/export", response_model=None, responses={**of_query, **_DOWNLOAD})
    async def export(query: Annotated[s.ExportQuery, Query()], call: Call) -> None:
        """Download the labels as JSON Lines, a corpus to train on, a trained model, or the log of all actions."""
        name, kind = _EXPORTS[query.what]
        making = asyncio.ensure_future(service._look(_export, session, query.what, query.topic))
        while not making.done():
            call.wait()
            await asyncio.wait([making], timeout=min(_AGAIN, service.limits.seconds / 2))
        await call.answer(making.result(), kind=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    return routes


# --- from the session's words to those of the routes -----------------------------------------------------------------


def _person(call: Call, given: str) -> str:
    return call.key or given.strip()


def _check_topic(session: Session, name: str) -> None:
    if name not in session.topics():
        raise Problem(404, f"No topic {name!r:.80} is taught here: GET /api/v1/teach lists the topics.")


def _check_positions(session: Session, positions: Iterable[int]) -> None:
    n = len(session.pool)
    for position in positions:
        if position >= n:
            raise Problem(404, f"There is no document at position {position:,}: the archive has {n:,}, counted from 0.")


def _next(session: Session, topic: str, person: str, *, ask: bool = True) -> dict[str, Any]:
    _check_topic(session, topic)
    asked = session.next(topic, person) if ask else None
    question = None
    if asked is not None:
        same = ("position", "rank", "score", "why", "n_answers", "answers")
        question = {name: getattr(asked, name) for name in same}
        question |= {
            "id": _plain(asked.id),
            "zones": _zones(asked.zones),
            "duplicates": list(asked.duplicates[:_LISTED]),
        }
    return {"question": question, "counts": _counts(session, topic)}


def _zones(zones: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that are not empty, without characters that JSON cannot hold."""
    return {name: _plain(text) for name, text in zones.items() if text}


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _document(session: Session, position: int) -> dict[str, Any]:
    pool = session.pool
    return {"position": int(position), "id": _plain(pool.ids[position]), "zones": _zones(pool.document(position))}


def _heading(zones: Mapping[str, str]) -> str:
    return shortened_text(zones.get("title", "").strip() or " ".join(zones.values()), _TITLE)


def _named(session: Session, position: int) -> dict[str, Any]:
    document = _document(session, position)
    return {"position": document["position"], "id": document["id"], "title": _heading(document["zones"])}


def _judgements(session: Session, topic: str) -> list[Judgement]:
    _check_topic(session, topic)
    return session.judgements(topic)


def _judgement(session: Session, judgement: Judgement) -> dict[str, Any]:
    at = datetime.fromtimestamp(judgement.at, timezone.utc).isoformat(timespec="seconds")
    plain = {name: getattr(judgement, name) for name in ("topic", "answer", "person", "source", "note")}
    return {**_named(session, judgement.position), **plain, "at": at}


def _counts(session: Session, topic: str) -> dict[str, int]:
    told = session.progress(topic, None)
    return {"yes": told.yes, "no": told.no, "skip": told.skipped}


def _about(session: Session, given: Sequence[Queue]) -> dict[str, Any]:
    topics, people = [], set()
    for name in session.topics():
        told, about = session.progress(name, None), session.about(name)
        people.update(told.persons)
        topics.append(
            {
                "topic": name,
                "description": about["description"],
                "query": about["query"],
                "counts": {"yes": told.yes, "no": told.no, "skip": told.skipped},
                "keywords": session.keywords(name),
                "disagreements": told.disagreements,
            }
        )
    queues = [{"name": each.name, "topic": each.topic, "documents": len(each.documents)} for each in given]
    return {"documents": len(session.pool), "people": sorted(people - {""}), "topics": topics, "queues": queues}


def _search(session: Session, query: s.SearchQuery, person: str) -> dict[str, Any]:
    if query.topic:
        _check_topic(session, query.topic)
    found = session.search(query.query, query.topic or None, query.offset, query.limit, person)
    documents = []
    for each in found.documents:
        zones = _zones(each.zones)
        text = " ".join(text for name, text in zones.items() if name != "title")
        if not zones.get("title", "").strip():
            text = " ".join(text[: 8 * _EXCERPT].split())[_TITLE - 1 :]  # it goes on where the heading ends
        documents.append(
            {
                "position": each.position,
                "id": _plain(each.id),
                "title": _heading(zones),
                "text": shortened_text(text, _EXCERPT),
                "answer": each.answer or None,
                "label": each.label,
            }
        )
    return {"total": found.n_found, "documents": documents}


def _progress(session: Session, query: s.ProgressQuery) -> dict[str, Any]:
    told = session.progress(query.topic, target=query.target, confidence=query.confidence)
    n = len(told.curve)
    places = sorted({round(k * (n - 1) / (_POINTS - 1)) for k in range(_POINTS)}) if n else []
    estimate = None
    if told.estimate is not None:
        estimate = told.estimate._asdict()
        if not all(math.isfinite(estimate[name]) for name in ("recall", "low", "high", "relevant")):
            estimate = None
    return {
        "topic": query.topic,
        "documents": told.n_documents,
        "counts": {"yes": told.yes, "no": told.no, "skip": told.skipped},
        "open": told.n_groups - told.yes - told.no,
        "found": told.found,
        "at_random": told.at_random,
        "curve": [(0, 0), *((place + 1, told.curve[place]) for place in places)],
        "target": query.target,
        "confidence": query.confidence,
        "estimate": estimate,
        "pace": told.pace,
    }


def _agreement(session: Session, topic: str) -> dict[str, Any]:
    found = session.agreement(topic)
    return {
        "kappa": found.kappa,
        "agreed": found.observed,
        "documents": found.n,
        "pairs": [{"people": people, "documents": n, "kappa": kappa} for people, (kappa, n) in found.pairs.items()],
        "disagreements": [
            {**_named(session, each.position), "answers": {one.person: one.answer for one in each.judgements}}
            for each in found.disagreements
        ],
    }


def _queue(session: Session, given: Sequence[Queue], wanted: str, person: str) -> dict[str, Any]:
    for queue in given:
        if queue.name == wanted:
            with session.lock:
                own = [session.own_answer(queue.topic, position, person) or None for position, _ in queue.documents]
            documents = [
                {**_named(session, position), "labelled": labelled, "answer": answer}
                for (position, labelled), answer in zip(queue.documents, own, strict=True)
            ]
            return {"name": queue.name, "topic": queue.topic, "documents": documents}
    raise Problem(404, f"There is no list {wanted!r:.80}: GET /api/v1/teach names the lists.")


def _export(session: Session, what: str, topic: str) -> bytes:
    if topic:
        _check_topic(session, topic)
    with tempfile.TemporaryDirectory(prefix="textcat-teach-") as folder:
        path = Path(folder, _EXPORTS[what][0].removesuffix(".zip"))
        getattr(session, f"export_{what}")(path, [topic] if topic else None)
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
    limits: Limits | None = None,
    log_requests: bool = False,
    on_start: Callable[[str], object] = lambda url: None,
) -> int:
    """Serve a session until a signal ends it.

    Parameters
    ----------
    session : Session
    host : str
        Address to listen on.
    port : int
        0: any free port.
    queues : sequence of Queue
    open_browser : bool
        Whether to open the page in a browser.
    path : str
        Appended to the page's address in the browser, such as ``#view=topics``.
    keys : Keys, optional
        The keys that clients may use; a key's name is then the person.
    limits : Limits, optional
    log_requests : bool
        Whether a line is written for each request.
    on_start : function of str
        Is called with the address of the page.

    Returns
    -------
    int
        The signal's number.
    """
    from textcat.serving.run import listen, run_alone

    listener = listen(host, port)
    service = Teaching(session, queues=queues, hosts=(host,), limits=limits, keys=keys, log=Log(requests=log_requests))
    try:
        name, bound = listener.getsockname()[:2]
        url = f"http://{f'[{name}]' if ':' in name else name}:{bound}/"
        on_start(url)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(url + path,), daemon=True).start()
        return run_alone(service, listener)
    finally:
        listener.close()
        service.close()
