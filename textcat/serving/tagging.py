"""The routes below /api/v1, and the application that all routes are put together in."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from importlib.resources import files as package_files
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import orjson
from fastapi import APIRouter, FastAPI, Path, Query
from pydantic import TypeAdapter, ValidationError

import textcat
from textcat.serving import files
from textcat.serving import schemas as s
from textcat.serving.annif import annif_routes, kserve_routes
from textcat.serving.http.front import Call, Front, Limits, Log, Rates
from textcat.serving.http.keys import Keys
from textcat.serving.http.metrics import Metrics
from textcat.serving.http.problems import ClientGoneError, Problem, of_validation
from textcat.serving.http.routes import check_documents, problems, router
from textcat.serving.store import Served, Store

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Model = Annotated[str, Path(description="The name of a model, as GET /api/v1/models lists them.")]
_NDJSON = b"application/x-ndjson"
_LINES = 256  # of a stream that are tagged at once
_PAGE_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ABOUT = """Tags texts by trained models, and explains the tags. Every answer names the model and its version; errors
are `application/problem+json`. If an object has a key twice, the last counts. No text is taken for a path or a URL."""
_STREAM = {
    "requestBody": {
        "required": False,
        "content": {
            "application/x-ndjson": {
                "schema": {},  # lines of JSON are no JSON
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


class Application(FastAPI):
    """An ASGI application of one process whose requests all go through `Front`, with a page.

    Parameters
    ----------
    title, about : str
        Title and text of the OpenAPI description.
    metrics : Metrics
    limits : Limits, optional
        Limits of a request.
    keys : Keys, optional
        The keys that clients may use; without any, no key is needed.
    origins : tuple of str
        Origins whose pages may send requests.
    log : Log, optional
        By default lines of JSON on standard output.
    rates : Rates, optional
        Number of requests of each client, shared by several processes.
    """

    def __init__(
        self,
        title: str,
        about: str,
        metrics: Metrics,
        *,
        limits: Limits | None = None,
        keys: Keys | None = None,
        origins: tuple[str, ...] = (),
        log: Log | None = None,
        rates: Rates | None = None,
    ) -> None:
        super().__init__(
            title=title,
            version=textcat.__version__,
            description=about,
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self.limits, self.metrics, self.log = limits or Limits(), metrics, log or Log()
        self._keys, self._origins, self._rates = keys or Keys(), origins, rates
        self._page = _read_page()
        self._description = b""

    def add(self, *groups: APIRouter) -> None:
        """Add groups of routes."""
        for group in groups:
            self.router.routes.extend(group.routes)

    def build_middleware_stack(self) -> ASGIApp:
        """Return the middleware of all requests, in place of FastAPI's."""
        return Front(self.router, self.metrics, self.log, self.limits, self._keys, self._origins, self._rates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end."""
        if scope["type"] == "http":
            await super().__call__(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        beside = asyncio.create_task(self._beside())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        beside.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _beside(self) -> None:
        """Run the background tasks of the server."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of all routes."""
        schema = super().openapi()
        schemas: dict[str, Any] = schema["components"]["schemas"]
        schemas["ProblemAnswer"] = s.ProblemAnswer.model_json_schema()
        for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own errors, which are nowhere answered
            schemas.pop(name, None)
        for operation in (each for path in schema["paths"].values() for each in path.values()):
            if "application/json" in operation["responses"].get("422", {}).get("content", {}):
                del operation["responses"]["422"]
        if self._keys:
            schema["components"]["securitySchemes"] = {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            }
            schema["security"] = [{"bearer": []}, {"header": []}]
        return schema

    @property
    def description_json(self) -> bytes:
        """The description of all routes as JSON."""
        if not self._description:
            self._description = orjson.dumps(self.openapi())
        return self._description

    def page(self, name: str) -> tuple[bytes, bytes]:
        """Return a file of the page, and its content type."""
        try:
            return self._page[name]
        except KeyError:
            raise Problem(404, f"The page has no file {name!r:.80}.") from None


class Service(Application):
    """The server of models.

    Parameters
    ----------
    store : Store
        The models, loaded.
    labels : mapping of str to str, optional
        Labels of topics, for Annif's clients.
    check_seconds : float
        Seconds between looks at the folders, for replaced models.
    **options
        Options of `Application`: limits, keys, origins, log, rates.
    """

    def __init__(
        self, store: Store, *, labels: Mapping[str, str] | None = None, check_seconds: float = 1.0, **options: Any
    ) -> None:
        super().__init__("textcat", _ABOUT, Metrics(store), **options)
        self.store, self.labels, self._seconds = store, dict(labels or {}), check_seconds
        store.on_batch = self.metrics.batches.observe
        store.on_load = self._on_load
        self.add(_tagging(self), _models(self), annif_routes(self), kserve_routes(self), site(self, "index.html"))

    def _on_load(self, name: str, outcome: str, what: str) -> None:
        self.metrics.loaded(name, outcome)
        self.log.write(f"model_{outcome}", model=name, **{"version" if outcome == "loaded" else "error": what})

    async def _beside(self) -> None:
        while True:
            try:
                await self.store.check()
            except Exception as error:
                self.log.write("error", error=repr(error))
            await asyncio.sleep(self._seconds)


def _read_page() -> dict[str, tuple[bytes, bytes]]:
    folder = package_files(textcat).joinpath("serving").joinpath("page")
    if not folder.is_dir():
        return {}
    named = {each.name: each for each in folder.iterdir()}
    kinds = {name: _PAGE_TYPES.get(name[name.rfind(".") :]) for name in named}
    return {name: (named[name].read_bytes(), kind) for name, kind in kinds.items() if kind}


# --- tagging ---------------------------------------------------------------------------------------------------------


def _tagging(service: Service) -> APIRouter:
    routes, store, limits = router("tag"), service.store, service.limits

    @routes.post("/api/v1/models/{model}/tag", response_model=s.Tagged, responses=problems(body=True))
    async def tag(model: Model, body: s.TagRequest, call: Call) -> bytes:
        """Tag a document: its topics above their thresholds, or as many as asked for, the highest score first."""
        served: Served = call.of(store[model], 1)
        return served.answer("tags", await served.work.tag_one(body.document, body.choice))

    @routes.post("/api/v1/models/{model}/tag-batch", response_model=s.BatchAnswer, responses=problems(body=True))
    async def tag_batch(model: Model, body: s.TagBatch, call: Call) -> bytes:
        """Tag several documents."""
        check_documents(len(body.documents), limits)
        served: Served = call.of(store[model], len(body.documents))
        tags = await served.work.tag_all([each.document for each in body.documents], body.choice)
        return served.answer("results", [{"tags": of_document} for of_document in tags])

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
        """Tag a stream of JSON lines: answer each with a line of JSON, in the same order, as they arrive.

        Each line is like the body of `tag`. A line that cannot be read is answered by a line with `error`, and the
        stream continues. The whole stream is tagged by the version of the model that it began with.
        """
        await _Stream(call.of(store[model]), call).run()

    @routes.post("/api/v1/models/{model}/explain", response_model=s.ExplainAnswer, responses=problems(body=True))
    async def explain(model: Model, body: s.ExplainRequest, call: Call) -> bytes:
        """Explain why a document has topics, or has not: terms, where they occur, and what they add to the score."""
        served: Served = call.of(store[model], 1)
        for topic in body.topics or []:
            served.column_of(topic)
        explained = served.tagger.explain_all(body.document, body.topics, n=body.n)
        return served.answer("explanations", [each.as_dict() for each in explained])

    @routes.post("/api/v1/text", response_model=s.FileAnswer, openapi_extra=_FILE, responses=problems(body=True))
    async def text(query: Annotated[s.FileQuery, Query()], call: Call) -> dict[str, Any]:
        """Return the texts of a file: HTML, mail, Markdown, docx, PDF or plain text, recognised by its name."""
        name = query.name or files.NAMES.get(call.kind, "")
        return {"zones": await files.of_file(name, await call.data(()), limits.seconds)}

    return routes


_LINE: TypeAdapter[Any] = TypeAdapter(s.TagRequest)


class _Stream:
    """A stream of lines that are tagged as they arrive."""

    def __init__(self, served: Served, call: Call) -> None:
        self._served, self._call, self._limit = served, call, call.front.limits.max_bytes

    async def run(self) -> None:
        call, rest = self._call, b""
        kind = call.kind
        if kind not in (b"", _NDJSON, b"application/jsonl", b"application/json"):
            raise Problem(415, f"The stream has the type {kind.decode('latin-1')!r:.80}: send application/x-ndjson.")
        if call.head.get(b"content-encoding", b"identity") != b"identity":
            raise Problem(415, "The stream has a content encoding: send it uncompressed.")
        await call.begin(200, [(b"content-type", _NDJSON)])
        more = True
        while more:
            try:
                message = await call.next_call()
            except ClientGoneError:
                return
            more = bool(message.get("more_body"))
            *lines, rest = (rest + message.get("body", b"")).split(b"\n")
            if not more:
                lines, rest = [*lines, rest], b""
            if len(rest) > self._limit:
                await call.write(
                    orjson.dumps({"error": f"A line has more than {self._limit:,} bytes: send shorter lines."}) + b"\n"
                )
                break
            stream = iter([line for line in lines if line.strip()])
            while part := list(islice(stream, _LINES)):
                await call.write(await self._tagged(part), more=True)
                call.wait()  # a stream may last, as long as it goes on
        await call.write(b"")

    async def _tagged(self, lines: list[bytes]) -> bytes:
        """Return the answers to lines; lines with the same options are tagged together."""
        answers: list[dict[str, Any]] = [{} for _ in lines]
        groups: dict[Any, list[tuple[int, Any]]] = {}
        for i, line in enumerate(lines):
            try:
                body = _LINE.validate_json(line)
            except ValidationError as error:
                answers[i] = {"error": of_validation(cast(Any, error.errors(include_url=False))).detail}
            else:
                groups.setdefault(body.choice, []).append((i, body.document))
        for choice, group in groups.items():
            places, documents = zip(*group, strict=True)
            try:
                tags = await self._served.work.tag_all(documents, choice)
            except Problem as problem:
                tags = []
                for i in places:
                    answers[i] = {"error": problem.detail}
            for i, of_document in zip(places, tags, strict=False):
                answers[i] = {**self._served.named, "tags": of_document}
            self._call.documents += len(documents)
        return b"".join(orjson.dumps(answer) + b"\n" for answer in answers)


# --- models ----------------------------------------------------------------------------------------------------------


def _models(service: Service) -> APIRouter:
    routes, store = router("models"), service.store

    @routes.get("/api/v1/models", response_model=s.ModelsAnswer, responses=problems())
    async def models() -> dict[str, Any]:
        """List the models that are served."""
        most = {"bytes": service.limits.max_bytes, "documents": service.limits.max_documents}
        return {"models": [served.summary() for served in store.models.values()], "limits": most}

    @routes.get("/api/v1/models/{model}", response_model=s.ModelAnswer, responses=problems())
    async def model(model: Model, call: Call) -> Any:
        """Describe a model."""
        return call.of(store[model]).summary()

    @routes.get("/api/v1/models/{model}/topics", response_model=s.TopicsAnswer, responses=problems(422))
    async def topics(model: Model, query: Annotated[s.TopicsQuery, Query()], call: Call) -> dict[str, Any]:
        """List a model's topics, or those whose name contains the query."""
        served: Served = call.of(store[model])
        wanted = query.query.casefold()
        found = [topic for topic in served.tagger.topics if wanted in topic.casefold()]
        shown = found[query.offset : query.offset + query.limit]
        return {**served.named, "total": len(found), "topics": [_topic(served, topic) for topic in shown]}

    @routes.get("/api/v1/models/{model}/topic", response_model=s.TopicAnswer, responses=problems(422))
    async def topic(model: Model, query: Annotated[s.TopicQuery, Query()], call: Call) -> dict[str, Any]:
        """Describe a topic: its terms, its quality, and the curve of its probabilities."""
        served: Served = call.of(store[model])
        j, calibration = served.column_of(query.name), served.tagger.calibration
        quality = served.quality.get(query.name)
        return {
            **served.named,
            **_topic(served, query.name),
            "terms": [
                {"term": term, "weight": weight} for term, weight in served.tagger.terms(query.name, query.terms)
            ],
            "quality": dataclasses.asdict(quality) if quality is not None else None,
            "curve": None if calibration is None else {"a": float(calibration.a[j]), "b": float(calibration.b[j])},
        }

    return routes


def _topic(served: Served, topic: str) -> dict[str, Any]:
    j, tagger = served.columns[topic], served.tagger
    threshold = float(tagger.thresholds[j])
    return {
        "topic": topic,
        "train_size": int(tagger.train_sizes[j]),
        "threshold": threshold if np.isfinite(threshold) else float(np.finfo(np.float32).max) * np.sign(threshold),
    }


# --- the rest --------------------------------------------------------------------------------------------------------


def site(service: Application, first: str) -> APIRouter:
    """Return the routes of the page, of the metrics, and of the OpenAPI description.

    Parameters
    ----------
    service : Application
    first : str
        The file that is served at ``/``.

    Returns
    -------
    APIRouter
    """
    routes = router("site")

    @routes.get("/metrics", include_in_schema=False)
    async def metrics(call: Call) -> None:
        await call.answer(service.metrics.text(), kind=b"text/plain; version=0.0.4; charset=utf-8")

    @routes.get("/openapi.json", include_in_schema=False)
    async def description() -> bytes:
        return service.description_json

    async def answer_page(call: Call, name: str) -> None:
        content, kind = service.page(name)
        headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
        await call.answer(content, kind=kind, headers=headers)

    @routes.get("/", include_in_schema=False)
    async def page(call: Call) -> None:
        await answer_page(call, first)

    @routes.get("/page/{file}", include_in_schema=False)
    async def page_file(file: str, call: Call) -> None:
        await answer_page(call, file)

    return routes
