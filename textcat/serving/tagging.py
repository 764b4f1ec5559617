"""The application of `textcat serve`, and its routes that tag and explain documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any

from fastapi import Query
from pydantic import TypeAdapter, ValidationError

# imported here, because modules loaded during a large request keep its memory from being given back
import textcat.model.counterfactual
import textcat.model.explain  # noqa: F401
from textcat.corpus.corrections import Corrections
from textcat.serving import annif, correcting, files, kserve, models
from textcat.serving import schemas as s
from textcat.serving.alarms import Alarms
from textcat.serving.http.application import Application
from textcat.serving.http.front import Call
from textcat.serving.http.limits import bounded_time
from textcat.serving.http.metrics import Metrics
from textcat.serving.http.problems import ClientGoneError, Problem, json_bytes, problem_of_validation
from textcat.serving.http.routes import check_documents, parse_json, problems, router
from textcat.serving.models import Model
from textcat.serving.shadow import Shadow
from textcat.serving.store import Served, Store, served_model
from textcat.serving.work import number_of_characters

_NDJSON = b"application/x-ndjson"
_LINES = 256  # maximum number of lines of a stream that are tagged together
_WRONG = 1000  # number of wrong lines that a stream may have, in addition to the number of right lines
_MOST_EXPLAINED = 4_000_000  # maximum of characters times topics: two seconds, and 260 MB
_ABOUT = """Tags texts by trained models, and explains the tags. Every answer names the model and its version; errors
are `application/problem+json`. If an object has a key twice, the last counts. No text is taken for a path or a URL."""
_STREAM = {
    "requestBody": {
        "required": False,
        "content": {
            "application/x-ndjson": {
                "schema": {},  # the content type of JSON Lines is not that of JSON
                "example": '{"text": "Wheat exports rose."}\n{"zones": {"title": "Gold", "body": "It fell."}}\n',
            }
        },
    }
}
_FILE = {
    "requestBody": {
        "required": False,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

routes = router("tag")


class Service(Application):
    """The application of `textcat serve`: an API and a page for trained models.

    Parameters
    ----------
    store : Store
        The loaded models.
    labels : Labels
        Labels of topics that clients of Annif's API see.
    main_text : bool
        Extract only the main text of an uploaded web page, without navigation and comments.
    check_seconds : float
        Seconds between checks of whether folders of models were replaced.
    shadow : Shadow, optional
        The shadow of one of the models, whose counts are among the metrics.
    alarms : Alarms, optional
        The alarms of one of the models, which are among the metrics.
    corrections : Corrections, optional
        The folder for corrections from clients; without it, the server accepts none.
    **options
        Options of `Front`: limits, keys, origins, hosts, trust_proxy, log, rates.
    """

    def __init__(
        self,
        store: Store,
        *,
        labels: annif.Labels = annif.Labels(),  # noqa: B008  (nothing changes it)
        main_text: bool = False,
        check_seconds: float = 1.0,
        shadow: Shadow | None = None,
        alarms: Alarms | None = None,
        corrections: Corrections | None = None,
        **options: Any,
    ) -> None:
        groups = (routes, correcting.routes, models.routes, annif.routes, kserve.routes)
        super().__init__("textcat", _ABOUT, Metrics(store.versions, shadow, alarms), groups, "index.html", **options)
        self.shadow, self.alarms = shadow, alarms
        self.store, self.labels, self.main_text, self._seconds = store, labels, main_text, check_seconds
        self.corrections = corrections
        self._reloading = asyncio.Event()
        store.on_batch = self.front.metrics.batches.observe
        if shadow is not None:
            shadow.on_left_out = self.front.metrics.left_out.labels(shadow.name).inc
        store.on_load, store.seconds = self._on_load, self.front.limits.timeout

    def _on_load(self, name: str, outcome: str, what: str) -> None:
        self.front.metrics.loaded(name, outcome)
        self.front.log.write(f"model_{outcome}", model=name, **{"version" if outcome == "loaded" else "error": what})

    def reload(self) -> None:
        """Read the keys again, and load models whose folders were replaced, or could not be loaded before."""
        super().reload()
        self._reloading.set()

    async def background(self) -> None:
        """Check the folders of the models until the server stops, and load models whose folders were replaced.

        Add up what is counted for alarms.
        """
        while True:
            now = self._reloading.is_set()
            self._reloading.clear()
            try:
                await self.store.check(now=now)
                if self.alarms is not None:
                    monitored = self.alarms.version, self.alarms.rules
                    served = self.store.models.get(self.alarms.name)
                    self.alarms.is_served = served is not None and (served.version, served.rules) == monitored
                    if self.alarms.add_up():
                        await asyncio.to_thread(self.alarms.evaluate)
            except Exception as error:
                self.front.log.write("error", error=repr(error))
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._reloading.wait(), self._seconds)


# --- routes ----------------------------------------------------------------------------------------------------------


@routes.post("/api/v1/models/{model}/tag", response_model=s.Tagged, responses=problems(body=True))
async def tag(model: Model, body: s.TagRequest, call: Call) -> bytes:
    """Tag a document: return its topics above their thresholds, or the requested number, the highest score first."""
    served = served_model(call, model, 1)
    answer = await served.work.tag_one(body.document, body.choice)
    return served.answer(answer.entries("tags", answer.tags))


@routes.post("/api/v1/models/{model}/tag-batch", response_model=s.BatchAnswer, responses=problems(body=True))
async def tag_batch(model: Model, body: s.TagBatch, call: Call) -> bytes:
    """Tag several documents: return the topics of each, the highest score first."""
    check_documents(len(body.documents), call.front.limits)
    served = served_model(call, model, len(body.documents))
    answers = await served.work.tag_all([row.document for row in body.documents], body.choice, call.pause)
    return served.answer({"results": [answer.entries("tags", answer.tags) for answer in answers]})


@routes.post(
    "/api/v1/models/{model}/tag-stream",
    response_model=None,
    openapi_extra=_STREAM,
    responses={
        **problems(body=True),
        200: {"description": "A line per line sent.", "content": {"application/x-ndjson": {"schema": {}}}},
    },
)
async def tag_stream(model: Model, call: Call) -> None:
    """Tag a stream of JSON lines as they arrive: for each line, return a line of JSON, in the same order.

    Each line is like the body of `tag`; blank lines are skipped. For a line that cannot be read, return a line with
    `error`; the stream continues until there are 1,000 more such lines than valid ones. The whole stream is tagged by
    the same version of the model, even if the model is replaced.
    """
    await _Stream(served_model(call, model), call).run()


@routes.post("/api/v1/models/{model}/explain", response_model=s.ExplainAnswer, responses=problems(body=True))
async def explain(model: Model, body: s.ExplainRequest, call: Call) -> bytes:
    """Explain why a document has, or does not have, topics: which terms occur where, and what they add to the score."""
    served = served_model(call, model, 1)
    topics = served.work.topics_of(body.document) if body.topics is None else list(dict.fromkeys(body.topics))
    for topic in topics:
        served.column_of(topic)
    size = number_of_characters(body.document)
    if size * len(topics) > _MOST_EXPLAINED:
        raise Problem(
            413,
            f"A text of {size:,} characters times {len(topics)} topics is more than {_MOST_EXPLAINED:,}: ask for fewer "
            "topics at a time, or send a shorter text.",
        )
    with bounded_time(call.front.limits.timeout):
        explanations = served.tagger.explain_all(body.document, topics, n=body.n)
    return served.answer({"explanations": [explanation.as_dict() for explanation in explanations]})


@routes.post("/api/v1/text", response_model=s.FileAnswer, openapi_extra=_FILE, responses=problems(body=True))
async def text(query: Annotated[s.FileQuery, Query()], call: Call) -> dict[str, Any]:
    """Return the text of each zone of a file: HTML, mail, Markdown, docx, PDF, news or text, by its name."""
    name = query.name or files.NAMES.get(call.kind, "")
    data, seconds = await call.data(()), call.front.limits.timeout
    return {"zones": await files.read_texts(name, data, seconds, main_text=call.app.main_text)}


_LINE: TypeAdapter[Any] = TypeAdapter(s.TagRequest)


class _Stream:
    """A stream of documents in a request, one per line: tag them as they arrive, and answer each line with a line."""

    def __init__(self, served: Served, call: Call) -> None:
        self._served, self._call, self._limit = served, call, call.front.limits.max_bytes
        self._wrong = 0  # number of wrong lines minus number of right lines

    async def run(self) -> None:
        """Read the lines of the request and send the answers, until the request ends, fails, or the client has gone."""
        call, kind = self._call, self._call.kind
        if kind not in (b"", _NDJSON, b"application/jsonl", b"application/json"):
            raise Problem(415, f"The stream has the type {kind.decode('latin-1')!r:.80}: send application/x-ndjson.")
        if call.head.get(b"content-encoding", b"identity") != b"identity":
            raise Problem(415, "The stream has a content encoding: send it uncompressed.")
        await call.begin(200, [(b"content-type", _NDJSON)])
        try:
            async for lines in self._lines():
                await call.write(await self._tagged(lines), more_body=True)
                if self._wrong > _WRONG:
                    raise Problem(422, f"Over {_WRONG:,} lines are wrong: see the error of each, and send JSON lines.")
                call.restart_timer()  # a stream may last as long as lines arrive
                await call.pause()
        except ClientGoneError:
            return
        except Problem as problem:
            await call.write(json_bytes({"error": problem.detail}) + b"\n")
        else:
            await call.write(b"")

    async def _lines(self) -> AsyncIterator[list[bytes]]:
        """Yield up to 256 lines at a time, as they arrive.

        Raise a Problem if a line is too long, or if all running requests together hold too many bytes.
        """
        call, more_body, rest = self._call, True, bytearray()  # rest: the beginning of an unfinished line
        while more_body:
            message = await call.next_message()
            body, more_body = message.get("body", b""), bool(message.get("more_body"))
            call.hold(len(rest) + len(body))
            first, *others = body.split(b"\n")
            rest += first
            lines = []
            if others:
                *whole, last = others
                lines, rest = [bytes(rest), *whole], bytearray(last)
            if not more_body:
                lines, rest = [*lines, bytes(rest)], bytearray()
            if max(map(len, [rest, *lines])) > self._limit:
                raise Problem(413, f"A line has more than {self._limit:,} bytes: send shorter lines.")
            stream = iter([line for line in lines if line.strip()])
            while part := list(islice(stream, _LINES)):
                yield part

    async def _tagged(self, lines: list[bytes]) -> bytes:
        """Return a line with the answer to each line; documents with the same options are tagged together."""
        answers: list[dict[str, Any]] = [{} for _ in lines]
        groups: dict[Any, list[tuple[int, Any]]] = {}
        for i, line in enumerate(lines):
            try:
                body = parse_json(_LINE, line, self._call.front.limits)
            except (ValidationError, Problem) as error:
                problem = error if isinstance(error, Problem) else problem_of_validation(error)
                answers[i] = {"error": problem.detail}
                self._wrong += 1
            else:
                self._wrong -= 1
                groups.setdefault(body.choice, []).append((i, body.document))
        for choice, group in groups.items():
            places, documents = zip(*group, strict=True)
            try:
                tagged = await self._served.work.tag_all(documents, choice, self._call.pause)
            except Problem as problem:
                tagged = []
                for i in places:
                    answers[i] = {"error": problem.detail}
            for i, answer in zip(places, tagged, strict=False):
                answers[i] = {**self._served.named, **answer.entries("tags", answer.tags)}
            self._call.documents += len(documents)
        return b"".join(json_bytes(answer) + b"\n" for answer in answers)
