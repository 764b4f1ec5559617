"""The application of a server on whose page people judge documents; requests that change state wait for each other."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from textcat.base.errors import TextcatError
from textcat.reading import common_fields
from textcat.serving.http.addresses import Hosts
from textcat.serving.http.application import Application
from textcat.serving.http.front import Call
from textcat.serving.http.metrics import Metrics
from textcat.serving.http.problems import Problem
from textcat.serving.http.processes import listen, run_alone, url_of
from textcat.serving.http.routes import LeanRoute, check_declared

if TYPE_CHECKING:
    from fastapi import APIRouter

T = TypeVar("T")


class PeoplesApplication(Application):
    """The ASGI application of a server on whose page people judge documents; it has one process.

    One thread handles answers and questions, in the order of the requests; another thread handles requests that only
    read. So an answer never waits for a slow estimate, and answers of two people never interfere.

    `fingerprint` identifies the session or the archive that is served. `hosts` are the host names that requests may
    use, besides addresses and `localhost`. The other parameters are those of `Application`. If the server needs keys,
    the name of a person's key is the name of the person.
    """

    def __init__(
        self,
        title: str,
        about: str,
        groups: Sequence[APIRouter],
        first_page: str,
        fingerprint: str,
        hosts: tuple[str, ...],
        **options: Any,
    ) -> None:
        options |= {"check": _Guard(fingerprint).check, "hosts": Hosts(hosts, "--host")}
        super().__init__(title, about, Metrics(), groups, first_page, **options)
        self._changes = ThreadPoolExecutor(1, thread_name_prefix="textcat-answer")
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="textcat-read")

    async def change(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call a function that changes state or asks for a question, in order, and return its result.

        The function is called after those of all earlier calls of `change`.
        """
        return await _called(self._changes, partial(function, *arguments, **named))

    async def read(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call a function that only reads state, and return its result.

        While it runs, another thread may call a function that changes something: the function must allow for that.
        """
        return await _called(self._reads, partial(function, *arguments, **named))

    def close(self) -> None:
        """Wait for running calls, and end the threads."""
        self._changes.shutdown()
        self._reads.shutdown()


async def _called(executor: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, function)
    except TextcatError as error:
        is_of_disk = isinstance(error.__cause__, OSError | sqlite3.Error)
        raise Problem(507 if is_of_disk else 409, str(error)) from None


class _Guard:
    """Refuse requests below /api/ from pages of other sites, and all requests from pages of another session.

    A browser may still show the page of an earlier session that was served at the same address.
    """

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint.encode()

    def check(self, call: Call) -> None:
        """Raise a Problem if a request must be refused: see the class."""
        host = call.head.get(b"host", b"").decode("latin-1")
        crosses = call.head.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none")
        origin = call.head.get(b"origin")
        if call.scope["method"] not in ("GET", "HEAD"):
            crosses |= origin is not None and origin.decode("latin-1").partition("://")[2] != host
        if crosses and call.scope["path"].startswith("/api/"):
            raise Problem(
                403, "The request comes from a page of another site: use the server's own page, or a program."
            )
        if call.head.get(b"if-match", self._fingerprint) != self._fingerprint:
            raise Problem(412, "The server now has another session than this page: reload the page.")


class ChangingRoute(LeanRoute):
    """A route that changes state or asks for a question; such requests are answered one after another."""

    async def result(self, call: Call, arguments: dict[str, Any]) -> Any:
        """Call the route's function in the thread of changes, and return its result."""
        if "body" in arguments:
            check_declared(call)
        return await call.app.change(self.endpoint, **arguments)


class ReadingRoute(LeanRoute):
    """A route that only reads, possibly while another request changes something."""

    async def result(self, call: Call, arguments: dict[str, Any]) -> Any:
        """Call the route's function in the thread of readers, and return its result."""
        return await call.app.read(self.endpoint, **arguments)


def person_of(call: Call, name: str) -> str:
    """Return the name of the sender: that of the key or, if the server needs no keys, the name that the page sends."""
    return call.key or name.strip()


def shown_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record under their common names, without its RIS lines, which repeat them."""
    return {name: value for name, value in common_fields(fields).items() if name != "ris"}


def serve_people(
    service: PeoplesApplication,
    host: str,
    port: int,
    *,
    open_browser: bool,
    path: str = "",
    on_start: Callable[[str], object],
) -> int:
    """Serve the application `service` on a host and port until a signal ends it; return the signal's number.

    Port 0 means any free port. `on_start` is called with the address of the page. If `open_browser`, the browser opens
    this address with `path` appended.
    """
    try:
        with listen(host, port) as listener:
            url = url_of(listener) + "/"
            on_start(url)
            if open_browser:
                threading.Thread(target=webbrowser.open, args=(url + path,), daemon=True).start()
            return run_alone(service, listener)
    finally:
        service.close()
