"""The middleware of every request: its id, key, limits and time, answers for errors, logs and counts."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import re
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from textcat.serving.http.keys import Keys
from textcat.serving.http.limits import Limits, Rates, inflated
from textcat.serving.http.log import Log
from textcat.serving.http.problems import TYPE, ClientGoneError, Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from textcat.serving.http.metrics import Metrics

JSON = b"application/json"
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PREFIX = secrets.token_hex(4)
_DISCARDED = 1 << 26  # bytes that are read beyond the limit, so that the client reads the answer
_BUFFERED = 8  # times the limit of a body: bytes of all bodies that are being read
_OPEN = ("/v2/health/", "/page/")  # paths that begin so need no key, nor do:
_OPEN_PATHS = frozenset({"/", "/openapi.json"})


class Call(Request):
    """A request, and the facts about it that the log will have."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, front: Front) -> None:
        super().__init__(scope, receive, send)
        self.front, self.started = front, time.perf_counter()
        self.head: dict[bytes, bytes] = dict(scope["headers"])
        sent_id = self.head.get(b"x-request-id")
        if sent_id is not None and _ID.fullmatch(sent_id):
            self.id = sent_id
        else:
            self.id = b"%b-%x-%x" % (_PREFIX.encode(), os.getpid(), next(_numbers))
        self.route, self.status, self.bytes_in, self.bytes_out, self.documents = "other", 0, 0, 0, 0
        self.model = self.version = self.key = ""
        self.expired = self.read = False
        self._held = 0
        self.timer: Any = None

    @property
    def kind(self) -> bytes:
        """The content type of the body, without parameters."""
        return self.head.get(b"content-type", b"").partition(b";")[0].strip().lower()

    async def data(self, kinds: tuple[bytes, ...]) -> bytes:
        """Return the body, decompressed if it is gzip; raise a Problem if it is too large, or of another kind."""
        kind = self.kind
        if kinds and kind and kind not in kinds:
            raise Problem(415, f"The body has the type {kind.decode('latin-1')!r:.80}: send {kinds[0].decode()}.")
        limit = self.front.limits.max_bytes
        encoding = self.head.get(b"content-encoding", b"").strip().lower()
        if encoding not in (b"", b"identity", b"gzip"):
            raise Problem(
                415,
                f"The body has the encoding {encoding.decode('latin-1')!r:.80}: send it uncompressed or as gzip.",
                {"Accept-Encoding": "gzip"},
            )
        body = await self._whole(limit)
        return inflated(body, limit) if encoding == b"gzip" else body

    async def _whole(self, limit: int) -> bytes:
        message = await self.next_message()
        body: bytes = message.get("body", b"")
        if not message.get("more_body"):
            if len(body) > limit:
                raise self._too_large(limit)
            return body
        parts, size = [body], len(body)
        try:
            self._hold(size)
            while message.get("more_body"):
                message = await self.next_message()
                part = message.get("body", b"")
                size += len(part)
                if size > limit:
                    self._hold(-self._held)
                    parts.clear()
                    if size > limit + _DISCARDED:
                        self.head[b"connection"] = b"close"
                        break
                else:
                    self._hold(len(part))
                    parts.append(part)
        finally:
            self._hold(-self._held)
        if size > limit:
            raise self._too_large(limit)
        return b"".join(parts)

    def _hold(self, size: int) -> None:
        self._held += size
        self.front.held += size
        if size > 0 and self.front.held > _BUFFERED * self.front.limits.max_bytes:
            raise Problem(503, "Too many large bodies are being read: try again in a second.", {"Retry-After": "1"})

    @staticmethod
    def _too_large(limit: int) -> Problem:
        return Problem(413, f"The body has more than {limit:,} bytes: send fewer documents at a time.")

    async def next_message(self) -> Message:
        """Return the next part of the body; raise ClientGoneError if the client has closed the connection."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self.bytes_in += len(message.get("body", b""))
        self.read = not message.get("more_body")
        return message

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer."""
        self.status = status
        headers.append((b"x-request-id", self.id))
        headers.append((b"x-content-type-options", b"nosniff"))
        if self.front.origins:
            headers += self.front.cors(self)
        if self.head.get(b"connection") == b"close":
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, body: bytes, *, more_body: bool = False) -> None:
        """Send the body of the answer, or a part of it."""
        self.bytes_out += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": more_body})

    async def answer(
        self, body: bytes, status: int = 200, kind: bytes = JSON, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer."""
        head = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if headers:
            head += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self.begin(status, head)
        await self.write(b"" if self.scope["method"] == "HEAD" else body)

    def restart_timer(self) -> None:
        """Restart the timer that ends the request after the seconds of its limit."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(
            self.front.limits.seconds, self._expire, asyncio.current_task()
        )

    def _expire(self, task: asyncio.Task[Any] | None) -> None:
        self.expired = True
        if task is not None:
            task.cancel()


_numbers = itertools.count(1)


class Front:
    """The ASGI application around the routes.

    Parameters
    ----------
    routes : ASGI application
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
    check : function of Call
        Raises a Problem for a request that must not be answered.
    """

    def __init__(
        self,
        routes: ASGIApp,
        metrics: Metrics,
        *,
        limits: Limits | None = None,
        keys: Keys | None = None,
        origins: tuple[str, ...] = (),
        log: Log | None = None,
        rates: Rates | None = None,
        check: Callable[[Call], object] = lambda call: None,
    ) -> None:
        self._routes, self.metrics, self._check = routes, metrics, check
        self.limits, self.keys, self.log = limits or Limits(), keys or Keys(), log or Log()
        self.origins, self.running, self.held = frozenset(origin.encode() for origin in origins), 0, 0
        self._rates = rates or (Rates(self.limits.rate) if self.limits.rate else None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; start-up and shutdown go to the routes unchanged."""
        if scope["type"] == "lifespan":
            await self._routes(scope, receive, send)
            return
        call = Call(scope, receive, send, self)
        scope["textcat"] = call
        call.restart_timer()
        self.running += 1
        self.metrics.running.inc()
        try:
            try:
                if not (self.origins and await self._preflight(call)):
                    self._admit(call)
                    await self._routes(scope, receive, send)
            except asyncio.CancelledError:
                if not call.expired:
                    raise
                await self._refuse(call, self._late(call))
            except Problem as problem:
                await self._refuse(call, problem)
            except HTTPException as error:
                await self._refuse(call, _of_http(error, scope))
            except ClientGoneError:
                call.status = 499
            except Exception as error:
                self.log.write(
                    "error", request_id=call.id.decode(), error=repr(error), traceback=traceback.format_exc()
                )
                await self._refuse(call, Problem(500, "The server failed to answer this request; its log says why."))
        finally:
            call.timer.cancel()
            self.running -= 1
            self.metrics.running.dec()
            self._count(call)

    def _admit(self, call: Call) -> None:
        """Raise a Problem if the request lacks a key, or exceeds a limit."""
        self._check(call)
        path: str = call.scope["path"]
        if path.startswith(_OPEN) or path in _OPEN_PATHS:
            return
        if self.keys:
            self._check_key(call)
        if self.running > self.limits.concurrent:
            sentence = f"The server is already working on {self.limits.concurrent} requests: try again in a second."
            raise Problem(503, sentence, {"Retry-After": "1"})
        if self._rates is not None:
            wait = self._rates.take((call.key or (call.scope.get("client") or ("",))[0]).encode())
            if wait:
                raise Problem(
                    429,
                    f"You sent more than {self.limits.rate:g} requests per second: wait before the next one.",
                    {"Retry-After": str(math.ceil(wait))},
                )

    def _check_key(self, call: Call) -> None:
        kind, _, key = call.head.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            key = call.head.get(b"x-api-key", b"")
        call.key = self.keys.name_of(key.strip()) or ""
        if not call.key:
            needed = "A key is needed: send Authorization: Bearer KEY, or X-API-Key: KEY."
            unknown = "The key is unknown: use one from the server's file of keys."
            raise Problem(401, unknown if key else needed, {"WWW-Authenticate": "Bearer"})

    def _late(self, call: Call) -> Problem:
        seconds = f"{self.limits.seconds:g} seconds"
        if call.scope["method"] == "POST" and not call.read:
            call.head[b"connection"] = b"close"
            return Problem(408, f"The body did not arrive within {seconds}: send it faster, or send less.")
        return Problem(503, f"The answer was not ready within {seconds}: send less at a time.", {"Retry-After": "1"})

    async def _refuse(self, call: Call, problem: Problem) -> None:
        if call.status:  # the answer has begun: it can only be broken off
            self.log.write("broken_off", request_id=call.id.decode(), reason=problem.detail)
            return
        await call.answer(problem.as_json(call.id.decode()), problem.status, TYPE, problem.headers)

    def _count(self, call: Call) -> None:
        seconds = time.perf_counter() - call.started
        self.metrics.count(call.scope["method"], call.route, call.status, seconds)
        if call.documents:
            self.metrics.documents(call.model, call.documents)
        if self.log.requests:
            fields: dict[str, Any] = {"key": call.key} if call.key else {}
            if call.model:
                fields |= {"model": call.model, "version": call.version, "documents": call.documents}
            client = call.scope.get("client")
            self.log.write(
                "request",
                request_id=call.id.decode(),
                client=client[0] if client else None,
                method=call.scope["method"],
                path=call.scope["path"][:200],  # no query: it may be a text
                status=call.status,
                seconds=round(seconds, 6),
                bytes_in=call.bytes_in,
                bytes_out=call.bytes_out,
                **fields,
            )

    # --- CORS ---

    def cors(self, call: Call) -> list[tuple[bytes, bytes]]:
        """Return the headers that let a page of an allowed origin read the answer."""
        origin, vary = call.head.get(b"origin"), [(b"vary", b"Origin")]
        if origin not in self.origins:
            return vary
        return [*vary, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", b"X-Request-ID")]

    async def _preflight(self, call: Call) -> bool:
        if call.scope["method"] != "OPTIONS" or b"access-control-request-method" not in call.head:
            return False
        allowed = call.head.get(b"origin") in self.origins
        head = [
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", b"Authorization, Content-Type, X-API-Key, X-Request-ID"),
            (b"access-control-max-age", b"600"),
        ]
        await call.begin(204, head if allowed else [])
        await call.write(b"")
        return True


def _of_http(error: HTTPException, scope: Scope) -> Problem:
    path = str(scope["path"])[:200]
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return Problem(405, f"{path} does not allow {scope['method']}: use {allowed}.", error.headers)
    if error.status_code == 404:
        return Problem(404, f"There is no route {path}: GET /openapi.json lists them all.")
    return Problem(error.status_code, str(error.detail), error.headers)
