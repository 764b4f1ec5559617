"""Routes that bypass FastAPI's parsing and serialisation, which take longer than tagging a document."""

from __future__ import annotations

import codecs
import inspect
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, get_args, get_type_hints
from urllib.parse import parse_qsl

import numpy as np
from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from textcat.serving.http.front import JSON, Call
from textcat.serving.http.limits import Limits
from textcat.serving.http.problems import Problem, json_bytes, problem_of_validation

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

FORM = b"application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_LARGE = 100_000  # bytes of a body: tagging it takes some milliseconds
# maximum number of values in a JSON body; a value takes up to 400 bytes while it is validated
_MOST_VALUES, _VALUES_PER_DOCUMENT = 100_000, 20
_NO_MARKS = bytes({*range(256)} - {*b',[{"'})
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_PAIR = re.compile(rb"%s(?!%s)|(?<!%s)%s" % (_HIGH, _LOW, _HIGH, _LOW))
_BACKSLASH, _NO_JSON = rb"\\", b"\\\n"  # an escaped backslash, and its temporary replacement
_PROBLEMS = {
    400: "The body, or the query, cannot be read.",
    401: "A key is needed.",
    403: "The request comes from a page of another site.",
    404: "There is no such model, topic or page.",
    405: "The path does not allow this method.",
    408: "The body arrived too slowly.",
    409: "The request conflicts with the session: `detail` says why.",
    412: "The session is not the one that `If-Match` names.",
    413: "The body, sent or decompressed, is too large, or has too many documents.",
    415: "The content type or content encoding of the body is not supported.",
    421: "The request names another host.",
    422: "The request is invalid: `errors` says where.",
    429: "Too many requests from this client: `Retry-After` says how many seconds to wait.",
    500: "The server failed to answer the request.",
    507: "The data sent could not be written to disk, and were discarded.",
    503: "The server is busy, or the answer took too long.",
}
_ALWAYS = (400, 401, 404, 405, 429, 500, 503)
_OF_BODIES = (408, 413, 415, 422)


class ProblemAnswer(BaseModel):
    """An error, explained in a sentence, as in RFC 9457."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["No model 'x' is served here: `GET /api/v1/models` lists them."])
    request_id: str = Field(examples=["5b0c-1"])
    errors: list[dict[str, str]] | None = Field(None, description="Where the request is wrong, and how.")


class LeanRoute(APIRoute):
    """A route whose endpoint takes the parameters of its path, and any of the arguments `call`, `query` and `body`.

    `call` is the request, and `call.app` the application; `query` is a pydantic model of the query, and `body` a
    pydantic model of the JSON body. The endpoint returns an object that orjson can write, or JSON as bytes; it returns
    None if it has already sent the answer.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        hints = get_type_hints(endpoint, include_extras=True)
        names = inspect.signature(endpoint).parameters
        self._query = TypeAdapter(hints["query"]) if "query" in names else None
        self._fields = get_args(hints["query"])[0].model_fields if "query" in names else {}
        self._body = TypeAdapter(hints["body"]) if "body" in names else None
        self._takes_call = "call" in names
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope["textcat"]
        call.route = self.path
        arguments = dict(scope["path_params"])
        if self._takes_call:
            arguments["call"] = call
        try:
            if self._query is not None:
                arguments["query"] = self._query.validate_python(fields_of(scope["query_string"], self._fields))
            if self._body is not None:
                arguments["body"] = parse_json(self._body, await _data_of(call), call.front.limits)
        except ValidationError as error:
            raise problem_of_validation(error) from None
        answer = await self.result(call, arguments)
        if answer is not None:
            await call.answer(answer if isinstance(answer, bytes) else json_bytes(answer))

    async def result(self, call: Call, arguments: dict[str, Any]) -> Any:
        """Call the route's function with the arguments, await it, and return its result."""
        return await self.endpoint(**arguments)


def parse_json(adapter: TypeAdapter[Any], data: bytes, limits: Limits) -> Any:
    """Parse and validate a body of JSON; raise ValidationError if it is invalid.

    A byte order mark at its start is ignored. Half of a surrogate pair, which JavaScript writes if a text was cut
    inside an emoji, becomes U+FFFD. A Problem is raised before any work on a body of very many values.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    most = max(_MOST_VALUES, _VALUES_PER_DOCUMENT * limits.max_documents)
    if sum(map(data.count, (b",", b"[", b"{"))) > most and _n_values(data) > most:
        raise Problem(413, f"The body has more than {most:,} values: send fewer documents or fields at a time.")
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        if error.error_count() > 1 or error.errors(include_url=False)[0]["type"] != "json_invalid":
            raise
        joined = _join_surrogates(data)
        if joined == data:
            raise
    return adapter.validate_json(joined)


def check_declared(call: Call) -> None:
    """Raise a Problem if the body is not declared as JSON: no page of another site can send JSON without a preflight.

    Requests that change what the server keeps are checked in this way.
    """
    if call.kind != JSON:
        raise Problem(415, "The body is not declared as JSON: send Content-Type: application/json.")


def _n_values(data: bytes) -> int:
    """Return an upper bound of the number of values inside the JSON value, ignoring the contents of strings."""
    data = data.replace(_BACKSLASH, b"").replace(rb"\"", b"")
    marks = np.frombuffer(data.translate(None, _NO_MARKS), np.uint8)
    is_quote = marks == ord('"')
    return int(np.count_nonzero(~(np.logical_xor.accumulate(is_quote) | is_quote)))


def _join_surrogates(data: bytes) -> bytes:
    """Return JSON with each escaped half of a surrogate pair as U+FFFD."""
    if _NO_JSON in data:
        return data
    return _HALF_PAIR.sub(rb"\\ufffd", data.replace(_BACKSLASH, _NO_JSON)).replace(_NO_JSON, _BACKSLASH)


async def _data_of(call: Call) -> bytes:
    """Return the body of a request; raise ClientGoneError if the client has gone.

    Requests with large bodies wait for each other here, so that no work is done for clients that have gone while
    waiting.
    """
    data = await call.data((JSON,))
    if len(data) > _LARGE:
        async with call.front.turn():
            await call.pause()
    return data


def fields_of(data: bytes, single: Collection[str]) -> dict[str, str]:
    """Return the fields of a query or a form.

    Raise a Problem if they cannot be parsed, or if a field in `single` occurs twice.
    """
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except UnicodeDecodeError:
        raise Problem(400, "The query or form is not UTF-8: encode it as UTF-8 before percent-encoding it.") from None
    except ValueError as error:
        raise Problem(400, f"The query or form cannot be read: {error}.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields and name in single:
            raise Problem(422, f"The query or form has {name!r} twice: give it once.")
        fields[name] = value
    return fields


async def form_of(call: Call, kind: type[BaseModel]) -> Any:
    """Read a request's body as a form, and return it as a pydantic model of class `kind`.

    Raise a Problem if the form is invalid.
    """
    try:
        return kind.model_validate(fields_of(await call.data((FORM,)), kind.model_fields))
    except ValidationError as error:
        raise problem_of_validation(error) from None


def form_body(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a form with the fields of a pydantic model."""
    schema = {FORM.decode(): {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": schema}}


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the errors that a route may send.

    These are the errors of all routes, the given statuses, and (with `body`) the errors of requests with a body.
    """
    wanted = sorted({*_ALWAYS, *statuses, *(_OF_BODIES if body else ())})
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}
    return {status: {"description": _PROBLEMS[status], "content": content} for status in wanted}


def router(tag: str, route_class: type[LeanRoute] = LeanRoute) -> APIRouter:
    """Return a router without routes, to which routes of class `route_class` can be added.

    `tag` is the heading that groups these routes in the OpenAPI description.
    """
    return APIRouter(route_class=route_class, tags=[tag], redirect_slashes=False)


def check_documents(n: int, limits: Limits) -> None:
    """Raise a Problem if n is more than the documents that a request may have."""
    if n > limits.max_documents:
        raise Problem(413, f"The request has {n:,} documents: send at most {limits.max_documents:,} at a time.")
