"""The routes of KServe's Open Inference Protocol, below /v2: only those for metadata and health, not for inference."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Path
from pydantic import BaseModel, Field

import textcat
from textcat.serving.http.front import Call
from textcat.serving.http.problems import Problem
from textcat.serving.http.routes import problems, router
from textcat.serving.store import served_model

Name: TypeAlias = Annotated[str, Path(description="The name of a model.")]
routes = router("kserve")


class KServeServer(BaseModel):
    """The name, the version and the extensions of the server."""

    name: str
    version: str
    extensions: list[str]


class KServeLive(BaseModel):
    """The confirmation that the server runs."""

    live: Literal[True]


class KServeReady(BaseModel):
    """The confirmation that requests can be answered."""

    ready: Literal[True]


class KServeModel(BaseModel):
    """A model, as KServe describes it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[str] = Field(max_length=0, description="None: this protocol is served for metadata and health only.")
    outputs: list[str] = Field(max_length=0, description="None, as for inputs.")
    model: str
    version: str


class KServeModelReady(BaseModel):
    """The confirmation that a model is ready."""

    name: str
    ready: Literal[True]
    model: str
    version: str


@routes.get("/v2", response_model=KServeServer, responses=problems())
async def server() -> dict[str, Any]:
    """Return the name and version of the server."""
    return {"name": "textcat", "version": textcat.__version__, "extensions": []}


@routes.get("/v2/health/live", response_model=KServeLive, responses=problems())
async def live() -> dict[str, Any]:
    """Confirm that the server runs."""
    return {"live": True}


@routes.get("/v2/health/ready", response_model=KServeReady, responses=problems())
async def ready(call: Call) -> dict[str, Any]:
    """Confirm that all models are loaded and requests can be answered; otherwise answer 503."""
    store = call.app.store
    if (name := store.failed()) is not None:
        store[name]  # raises a Problem, which says why
    if len(store.models) < len(store.folders):
        raise Problem(503, "The models are being loaded: try again in a second.", {"Retry-After": "1"})
    return {"ready": True}


@routes.get("/v2/models/{name}", response_model=KServeModel, responses=problems())
async def model(name: Name, call: Call) -> dict[str, Any]:
    """Return the name and version of a model; inputs and outputs are empty: the server offers no inference here."""
    served = served_model(call, name)
    about = {"name": served.name, "versions": [served.version], "platform": "textcat", "inputs": [], "outputs": []}
    return {**served.named, **about}


@routes.get("/v2/models/{name}/ready", response_model=KServeModelReady, responses=problems())
async def model_ready(name: Name, call: Call) -> dict[str, Any]:
    """Confirm that a model is loaded and can tag documents."""
    served = served_model(call, name)
    return {"name": served.name, "ready": True, **served.named}
