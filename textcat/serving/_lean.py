"""A route that FastAPI describes, but does not read and answer: that takes longer than to tag a document."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, get_args, get_type_hints
from urllib.parse import parse_qsl

import orjson
from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel, TypeAdapter, ValidationError

from textcat.serving._front import JSON, Call, Limits
from textcat.serving._problems import Problem, of_validation

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

FORM = b"application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_PROBLEMS = {
    400: "The body, or the query, cannot be read.",
    401: "A key is needed.",
    403: "A page of another site asks.",
    404: "There is no such model, topic or page.",
    405: "The path cannot be asked by this method.",
    408: "The body has come too slowly.",
    409: "It does not fit what there is: `detail` says why.",
    412: "Another session is served than `If-Match` names.",
    413: "The body, or what it is inflated to, is too large; or there are too many documents.",
    415: "The body is of another type, or encoding.",
    421: "The request names another host.",
    422: "The request is not as it should be: `errors` says where.",
    429: "Too many requests of this client: `Retry-After` says how many seconds to wait.",
    500: "The server has failed.",
    507: "What was sent could not be written to the disk, and does not count.",
    503: "The server is busy, or the answer took too long.",
}
_ALWAYS = (400, 401, 404, 405, 429, 500, 503)
_OF_BODIES = (408, 413, 415, 422)


class _LeanRoute(APIRoute):
    """A route whose endpoint takes its path's parameters, and of these what it names.

    `call`, the request; `query`, a model of the query; `body`, what the JSON of the body is. It returns what orjson
    writes, JSON as bytes, or None if it has answered itself.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        hints = get_type_hints(endpoint, include_extras=True)
        names = inspect.signature(endpoint).parameters
        self._endpoint = endpoint
        self._query = TypeAdapter(hints["query"]) if "query" in names else None
        self._known = get_args(hints["query"])[0].model_fields if "query" in names else {}
        self._body = TypeAdapter(hints["body"]) if "body" in names else None
        self._wants_call = "call" in names
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope["textcat"]
        call.route = self.path
        arguments = dict(scope["path_params"])
        if self._wants_call:
            arguments["call"] = call
        try:
            if self._query is not None:
                arguments["query"] = self._query.validate_python(fields_of(scope["query_string"], self._known))
            if self._body is not None:
                arguments["body"] = self._body.validate_json(await call.data((JSON,)))
        except ValidationError as error:
            raise of_validation(error.errors(include_url=False, include_input=False)) from None  # type: ignore[arg-type]
        answer = await self._endpoint(**arguments)
        if answer is not None:
            await call.answer(answer if isinstance(answer, bytes) else orjson.dumps(answer))


def fields_of(data: bytes, known: Collection[str]) -> dict[str, str]:
    """Return the fields of a query or a form; those that are known may be given once."""
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except UnicodeDecodeError:
        raise Problem(400, "The query or form is not UTF-8: encode it so before it is percent-encoded.") from None
    except ValueError as error:
        raise Problem(400, f"The query or form cannot be read: {error}.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields and name in known:
            raise Problem(422, f"The query or form has {name!r} twice: give it once.")
        fields[name] = value
    return fields


async def form_of(call: Call, kind: type[BaseModel]) -> Any:
    """Return the model of a form that was sent."""
    try:
        return kind.model_validate(fields_of(await call.data((FORM,)), kind.model_fields))
    except ValidationError as error:
        raise of_validation(error.errors(include_url=False, include_input=False)) from None  # type: ignore[arg-type]


def form_body(kind: type[BaseModel]) -> dict[str, Any]:
    """Return how OpenAPI describes that form."""
    schema = {FORM.decode(): {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": schema}}


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return how OpenAPI describes the errors of a route."""
    wanted = sorted({*_ALWAYS, *statuses, *(_OF_BODIES if body else ())})
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}
    return {status: {"description": _PROBLEMS[status], "content": content} for status in wanted}


def router(*tags: str) -> APIRouter:
    """Return an empty group of lean routes."""
    return APIRouter(route_class=_LeanRoute, tags=list(tags), redirect_slashes=False)


def check_documents(n: int, limits: Limits) -> None:
    """Refuse more documents than a request may have."""
    if n > limits.max_documents:
        raise Problem(413, f"The request has {n:,} documents: send {limits.max_documents:,} at a time at most.")
