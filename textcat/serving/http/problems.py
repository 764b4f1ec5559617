"""Errors of requests, as `application/problem+json` (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

TYPE = b"application/problem+json"
_MOST_ERRORS = 10  # that are listed of a body


class Problem(Exception):  # noqa: N818  (the standard's word)
    """An error to answer with: its status, a sentence, and headers."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.more = status, detail, dict(headers or {}), more

    def as_json(self, request_id: str) -> bytes:
        """Return the body of the answer."""
        title = HTTPStatus(self.status).phrase
        known = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        # What a client has sent may have halves of characters, which no JSON can have.
        return orjson.dumps(_encodable({**known, **self.more, "request_id": request_id}))


class ClientGoneError(Exception):
    """The client closed its connection before the answer was sent."""


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, list) else value


def of_validation(errors: list[dict[str, Any]]) -> Problem:
    """Return the problem with a body or a query, given the errors of pydantic."""
    if errors[0]["type"] == "json_invalid":
        return Problem(400, f"The body is not JSON: {errors[0]['ctx']['error']}.")
    listed = [
        {"where": ".".join(map(str, _place(each["loc"])))[:200], "what": each["msg"][:300]}
        for each in errors[:_MOST_ERRORS]
    ]
    first = f"{listed[0]['where']}: {listed[0]['what']}" if listed[0]["where"] else listed[0]["what"]
    return Problem(422, f"The request is invalid: {first}.", errors=listed)


def _place(loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return where an error is, without pydantic's name for the kind of document that was sent."""
    for i, part in enumerate(loc[:-1]):
        if part in ("text", "zones"):
            return loc[:i] + loc[i + 1 :]
    return loc
