"""Send errors as `application/problem+json` (RFC 9457), and convert answers to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from pydantic import ValidationError

GONE = "textcat.gone"  # key of an extension of the ASGI scope: whether the client has closed the connection
TYPE = b"application/problem+json"
_MOST_ERRORS = 10  # maximum number of errors listed for a request
_MOST_LOOKED_AT = 1000  # maximum number of errors to select these from


class Problem(Exception):  # noqa: N818  (the standard's word)
    """An error that is sent to the client: an HTTP status, a sentence, headers, and further fields."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **fields: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.fields = status, detail, dict(headers or {}), fields

    def as_json(self, request_id: str) -> bytes:
        """Return the body of the answer: the error as JSON, with the id of the request."""
        title = HTTPStatus(self.status).phrase
        always = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return json_bytes({**always, **self.fields, "request_id": request_id})


class ClientGoneError(Exception):
    """Raised if the client closes its connection before the answer is sent."""


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON in UTF-8.

    A named tuple becomes an object, and a lone surrogate, which UTF-8 cannot encode, becomes "?".
    """
    try:
        return orjson.dumps(value, default=_fields)
    except orjson.JSONEncodeError:  # requests and archives may contain lone surrogates
        return orjson.dumps(_plain(value))


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    raise TypeError


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def problem_of_validation(error: ValidationError) -> Problem:
    """Return a Problem (an error to send) that lists up to ten of the errors that pydantic found in a body or query."""
    if (n := error.error_count()) > _MOST_LOOKED_AT:  # pydantic converts all errors to dicts, or none
        return Problem(422, f"The request has {n:,} errors, too many to list: send what `GET /openapi.json` describes.")
    errors: list[Any] = error.errors(include_url=False, include_input=False)
    if errors[0]["type"] == "json_invalid":
        return Problem(400, f"The body is not JSON: {errors[0]['ctx']['error']}.")
    listed = [
        {"where": ".".join(map(str, _place(detail["loc"])))[:200], "what": detail["msg"][:300]}
        for detail in errors[:_MOST_ERRORS]
    ]
    first = f"{listed[0]['where']}: {listed[0]['what']}" if listed[0]["where"] else listed[0]["what"]
    return Problem(422, f"The request is invalid: {first}.", errors=listed)


def _place(loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the path to an error in a request, without the part "text" or "zones" that pydantic inserts.

    The inserted part names the member of the union by which pydantic parsed the document.
    """
    for i, part in enumerate(loc[:-1]):
        if part in ("text", "zones"):
            return loc[:i] + loc[i + 1 :]
    return loc
