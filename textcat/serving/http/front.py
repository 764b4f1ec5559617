"""The middleware of all requests: it checks keys and limits, ends slow requests, answers errors, logs and counts."""

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
from starlette.routing import Match

from textcat.base.errors import TextcatError
from textcat.serving.http.addresses import Hosts, forwarded_address
from textcat.serving.http.keys import Keys
from textcat.serving.http.limits import Limits, Rates, inflated
from textcat.serving.http.log import Log
from textcat.serving.http.problems import GONE, TYPE, ClientGoneError, Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from textcat.serving.http.metrics import Metrics

JSON = b"application/json"
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PREFIX = secrets.token_hex(4)
_DISCARDED = 1 << 26  # bytes read beyond the limit, so that the client gets to read the answer
_HELD = 8  # limit on the bodies of all running requests together, as a multiple of the limit on one body
_KEYS_SECONDS = 1.0  # seconds between checks of the file of keys
_OTHER = "other"  # in metrics: the route of requests for no route
_OPEN = ("/v2/health/", "/page/")  # prefixes of paths that need no key; the same holds for:
_OPEN_PATHS = frozenset({"/", "/shadow", "/openapi.json"})


class Call(Request):
    """A request and its answer, with what is logged and counted about them."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, front: Front) -> None:
        super().__init__(scope, receive, send)
        self.front, self.started = front, time.perf_counter()
        self.head: dict[bytes, bytes] = dict(scope["headers"])
        sent_id = self.head.get(b"x-request-id")
        if sent_id is not None and _ID.fullmatch(sent_id):
            self.id = sent_id
        else:
            self.id = b"%b-%x-%x" % (_PREFIX.encode(), os.getpid(), next(_numbers))
        self.route, self.status, self.bytes_in, self.bytes_out, self.documents = _OTHER, 0, 0, 0, 0
        self.model = self.version = self.key = ""
        peer = scope.get("client")
        self.client_address: str | None = peer[0] if peer else None
        self.expired = self.read = False
        self._held = 0
        self.timer: Any = None

    @property
    def kind(self) -> bytes:
        """The content type of the request's body, in lower case and without parameters such as the charset."""
        return self.head.get(b"content-type", b"").partition(b";")[0].strip().lower()

    async def data(self, kinds: tuple[bytes, ...]) -> bytes:
        """Return the request's body, decompressed if it is gzip.

        Raise a Problem if the body is too large or of a wrong type. `kinds` are the allowed content types; if it is
        empty, all types are allowed.
        """
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
        if encoding == b"gzip":
            body = inflated(body, limit)
            self.hold(len(body))
        return body

    async def _whole(self, limit: int) -> bytes:
        message = await self.next_message()
        body: bytes | bytearray = message.get("body", b"")
        size = len(body)
        self.hold(min(size, limit))
        while message.get("more_body"):
            message = await self.next_message()
            part = message.get("body", b"")
            size += len(part)
            if size <= limit:
                self.hold(size)
                body = bytearray(body) if isinstance(body, bytes) else body
                body += part
                continue
            body = b""
            self.hold(0)
            if size > limit + _DISCARDED:
                self.head[b"connection"] = b"close"
                break
        if size > limit:
            raise Problem(413, f"The body has more than {limit:,} bytes: send fewer documents at a time.")
        return bytes(body)

    def hold(self, size: int) -> None:
        """Count `size` bytes as held in memory by this request until it is answered.

        Raise a Problem if all running requests together hold too many bytes.
        """
        self.front.held += size - self._held
        self._held = size
        if size and self.front.held > _HELD * self.front.limits.max_bytes:
            raise Problem(503, "Too many large bodies are being read: try again in a second.", {"Retry-After": "1"})

    async def next_message(self) -> Message:
        """Return the next part of the body; raise ClientGoneError if the client has closed the connection."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self.bytes_in += len(message.get("body", b""))
        self.read = not message.get("more_body")
        return message

    async def pause(self) -> None:
        """Wait while other requests are handled; raise ClientGoneError if the client has closed the connection."""
        await asyncio.sleep(0)
        is_gone = self.scope.get("extensions", {}).get(GONE)
        if is_gone is not None and is_gone():
            raise ClientGoneError

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer: the status, the given headers, and those that every answer has."""
        self.status = status
        headers.append((b"x-request-id", self.id))
        headers.append((b"x-content-type-options", b"nosniff"))
        if self.front.origins:
            headers += self.front.cors(self)
        if self.head.get(b"connection") == b"close":
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, body: bytes, *, more_body: bool = False) -> None:
        """Send the body of the answer or, if `more_body`, a part of it; send no body for a HEAD request."""
        body = b"" if self.scope["method"] == "HEAD" else body
        self.bytes_out += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": more_body})

    async def answer(
        self, body: bytes, status: int = 200, kind: bytes = JSON, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole answer: its head (status and headers) and its body; `kind` is the content type."""
        head = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if headers:
            head += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self.begin(status, head)
        await self.write(body)

    def restart_timer(self) -> None:
        """Restart the timer that ends the request when the time limit is over."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(
            self.front.limits.timeout, self._expire, asyncio.current_task()
        )

    def _expire(self, task: asyncio.Task[Any] | None) -> None:
        self.expired = True
        if task is not None:
            task.cancel()


_numbers = itertools.count(1)


class Front:
    """The ASGI application that handles every request, and calls the routes to answer it.

    Parameters
    ----------
    routes : ASGI application
    metrics : Metrics
    limits : Limits, optional
        The limits of requests.
    keys : Keys, optional
        The keys that clients may use; if there are none, clients need no key.
    origins : tuple of str
        Origins whose pages may send requests.
    hosts : Hosts, optional
        Host names that requests may use; the default allows addresses and `localhost`.
    trust_proxy : bool
        Whether a proxy is trusted to name the client's address, in X-Forwarded-For or Forwarded.
    log : Log, optional
        The default writes lines of JSON to standard output.
    rates : Rates, optional
        Limits each client's requests per second, over all processes that share it.
    check : function of Call
        Raises a Problem if a request must be refused.
    """

    def __init__(
        self,
        routes: ASGIApp,
        metrics: Metrics,
        *,
        limits: Limits | None = None,
        keys: Keys | None = None,
        origins: tuple[str, ...] = (),
        hosts: Hosts | None = None,
        trust_proxy: bool = False,
        log: Log | None = None,
        rates: Rates | None = None,
        check: Callable[[Call], object] = lambda call: None,
    ) -> None:
        self._routes, self.metrics, self._check = routes, metrics, check
        self.limits, self.keys, self.log = limits or Limits(), keys or Keys(), log or Log()
        self.origins, self.running, self.held = frozenset(origin.encode() for origin in origins), 0, 0
        self._rates = rates or (Rates(self.limits.rate_limit) if self.limits.rate_limit else None)
        self._hosts, self._trust_proxy, self._next_look = hosts or Hosts(), trust_proxy, 0.0
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def turn(self) -> asyncio.Lock:
        """Return the lock that requests with large bodies acquire, so that they begin one after the other.

        Each event loop has its own lock.
        """
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; pass on the server's start-up and shutdown (ASGI's lifespan) to the routes."""
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
                    # HEAD requests use the routes of GET.
                    is_head = scope["method"] == "HEAD"
                    await self._routes({**scope, "method": "GET"} if is_head else scope, receive, send)
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
            call.hold(0)
            self.running -= 1
            self.metrics.running.dec()
            self._count(call)

    def _admit(self, call: Call) -> None:
        """Raise a Problem if the request must be refused.

        It is refused if it names a wrong host, lacks a key, exceeds a limit, or fails another check.
        """
        if self._trust_proxy:
            call.client_address = forwarded_address(call.head) or call.client_address
        self._check_host(call)
        self._check(call)
        path: str = call.scope["path"]
        if path.startswith(_OPEN) or path in _OPEN_PATHS:
            return
        if self.keys.are_needed:
            self._check_key(call)
        if self.running > self.limits.max_concurrency:
            sentence = (
                f"The server is already working on {self.limits.max_concurrency} requests: try again in a second."
            )
            raise Problem(503, sentence, {"Retry-After": "1"})
        if self._rates is not None:
            wait = self._rates.take((call.key or call.client_address or "").encode())
            if wait:
                raise Problem(
                    429,
                    f"You sent more than {self.limits.rate_limit:g} requests per second: wait before the next one.",
                    {"Retry-After": str(math.ceil(wait))},
                )

    def _check_host(self, call: Call) -> None:
        names = [value for name, value in call.scope["headers"] if name == b"host"]
        if len(names) == 1:
            self._hosts.check(names[0].decode("latin-1"))
        elif names or call.scope["http_version"] != "1.0":  # an old process that does not have the header yet
            raise Problem(400, f"The request has {len(names)} Host headers: send one.")

    def refresh_keys(self, *, now: bool = False) -> None:
        """Read the file of keys again if the file has changed.

        This is checked at most once a second; with `now`, it is checked in any case.
        """
        if not now and time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _KEYS_SECONDS
        try:
            if self.keys.refresh():
                self.log.write("keys_loaded", keys=len(self.keys.names))
        except TextcatError as error:
            self.log.write("keys_failed", error=str(error), keys=len(self.keys.names))

    def _check_key(self, call: Call) -> None:
        self.refresh_keys()
        kind, _, key = call.head.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            key = call.head.get(b"x-api-key", b"")
        call.key = self.keys.name_of(key.strip()) or ""
        if not call.key:
            needed = "A key is needed: send Authorization: Bearer KEY, or X-API-Key: KEY."
            unknown = "The key is unknown: use one from the server's file of keys."
            raise Problem(401, unknown if key else needed, {"WWW-Authenticate": "Bearer"})

    def _late(self, call: Call) -> Problem:
        seconds = f"{self.limits.timeout:g} seconds"
        if call.scope["method"] == "POST" and not call.read:
            call.head[b"connection"] = b"close"
            return Problem(408, f"The body did not arrive within {seconds}: send it faster, or send less.")
        return Problem(503, f"The answer was not ready within {seconds}: send less at a time.", {"Retry-After": "1"})

    async def _refuse(self, call: Call, problem: Problem) -> None:
        if call.status:  # the answer has begun, so the connection can only be closed
            self.log.write("broken_off", request_id=call.id.decode(), reason=problem.detail)
            return
        if call.route == _OTHER:  # refused before any route was called
            call.route = self._path_of_route(call.scope)
        await call.answer(problem.as_json(call.id.decode()), problem.status, TYPE, problem.headers)

    def _path_of_route(self, scope: Scope) -> str:
        """Return the path of the route that a request is for, whatever its method; "other" if there is none."""
        routes = getattr(self._routes, "routes", ())
        return next((route.path for route in routes if route.matches(scope)[0] != Match.NONE), _OTHER)

    def _count(self, call: Call) -> None:
        seconds = time.perf_counter() - call.started
        self.metrics.count(call.scope["method"], call.route, call.status, seconds)
        if call.documents:
            self.metrics.documents(call.model, call.documents)
        if self.log.requests:
            fields: dict[str, Any] = {"key": call.key} if call.key else {}
            if call.model:
                fields |= {"model": call.model, "version": call.version, "documents": call.documents}
            self.log.write(
                "request",
                request_id=call.id.decode(),
                client=call.client_address,
                method=call.scope["method"],
                path=call.scope["path"][:200],  # without the query, which may contain a text
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
        exposed = b"X-Request-ID, X-Model, X-Model-Version, Retry-After"
        return [*vary, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", exposed)]

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
