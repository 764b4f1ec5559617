"""The ASGI application of a server process: its routes, which `Front` calls, its page, and its OpenAPI description."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from importlib.resources import files as package_files
from itertools import product
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

import textcat
from textcat.serving.http.front import Call, Front
from textcat.serving.http.metrics import Metrics
from textcat.serving.http.problems import Problem
from textcat.serving.http.routes import ProblemAnswer, router

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_PAGE_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}


class Application(FastAPI):
    """The ASGI application of one process, with routes, a page in HTML, and an OpenAPI description.

    Parameters
    ----------
    title, about : str
        Title and text of the OpenAPI description.
    metrics : Metrics
    groups : sequence of APIRouter
        The routes.
    first_page : str
        Name of the HTML file that is served at ``/``.
    **options
        Options of `Front`: limits, keys, origins, hosts, trust_proxy, log, rates, check.
    """

    def __init__(
        self, title: str, about: str, metrics: Metrics, groups: Sequence[APIRouter], first_page: str, **options: Any
    ) -> None:
        super().__init__(
            title=title,
            version=textcat.__version__,
            description=about,
            lifespan=self._with_background,
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        for group in (*groups, site):
            self.router.routes.extend(group.routes)  # not include_router, which would look each route up twice
        self.front = Front(self.router, metrics, **options)
        for route in self.router.routes:
            if isinstance(route, APIRoute):
                for method, status in product(route.methods or (), (200, *map(int, route.responses))):
                    metrics.prepare(method, route.path, status)
        self.first_page, self._page = first_page, _read_page()

    def build_middleware_stack(self) -> ASGIApp:
        """Return `Front` as the only middleware, instead of FastAPI's."""
        return self.front

    @asynccontextmanager
    async def _with_background(self, _: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(self.background())
        yield
        task.cancel()

    def reload(self) -> None:
        """Reload the file of keys if it has changed; a subclass may reload other files, too."""
        self.front.refresh_keys(now=True)

    async def background(self) -> None:
        """Do nothing; in a subclass, this may do other work until the server stops, while requests are answered."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description of all routes."""
        schema = super().openapi()
        schemas: dict[str, Any] = schema["components"]["schemas"]
        schemas["ProblemAnswer"] = ProblemAnswer.model_json_schema()
        for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own error responses, which no route returns
            schemas.pop(name, None)
        for operation in (operation for path in schema["paths"].values() for operation in path.values()):
            if "application/json" in operation["responses"].get("422", {}).get("content", {}):
                del operation["responses"]["422"]
        if self.front.keys.are_needed:
            schema["components"]["securitySchemes"] = {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            }
            schema["security"] = [{"bearer": []}, {"header": []}]
        return schema

    @cached_property
    def description_json(self) -> bytes:
        """The OpenAPI description of all routes as JSON."""
        return orjson.dumps(self.openapi())

    def page(self, name: str) -> tuple[bytes, bytes]:
        """Return the content and the content type of an HTML page, or of a file that it loads.

        Raise a Problem if there is no such file.
        """
        try:
            return self._page[name]
        except KeyError:
            raise Problem(404, f"The page has no file {name!r:.80}.") from None


def _read_page() -> dict[str, tuple[bytes, bytes]]:
    folder = package_files(textcat).joinpath("serving").joinpath("page")
    if not folder.is_dir():
        return {}
    named = {file.name: file for file in folder.iterdir()}
    kinds = {name: _PAGE_TYPES.get(name[name.rfind(".") :]) for name in named}
    return {name: (named[name].read_bytes(), kind) for name, kind in kinds.items() if kind}


# --- the routes of every application ---------------------------------------------------------------------------------

site = router("site")


@site.get("/metrics", include_in_schema=False)
async def metrics(call: Call) -> None:
    """Send all counts and times in Prometheus' text format."""
    await call.answer(call.front.metrics.text(), kind=b"text/plain; version=0.0.4; charset=utf-8")


@site.get("/openapi.json", include_in_schema=False)
async def description(call: Call) -> bytes:
    """Return the OpenAPI description of all routes."""
    return bytes(call.app.description_json)


@site.get("/", include_in_schema=False)
async def page(call: Call) -> None:
    """Send the application's HTML page, at `/`."""
    await page_file(call.app.first_page, call)


@site.get("/page/{file}", include_in_schema=False)
async def page_file(file: str, call: Call) -> None:
    """Send an HTML page, or a file that it loads, such as a style sheet."""
    content, kind = call.app.page(file)
    await call.answer(content, kind=kind, headers=_PAGE_HEADERS)
