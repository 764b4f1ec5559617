"""The routes of the open inference protocol (KServe, version 2) that say who is there and whether it is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path

import textcat
from textcat.serving import _schemas as s
from textcat.serving._front import Call
from textcat.serving._lean import problems, router
from textcat.serving._problems import Problem

if TYPE_CHECKING:
    from textcat.serving.app import Service

Name = Annotated[str, Path(description="The name of a model.")]


def routes(service: Service) -> APIRouter:
    """Return the routes below /v2."""
    kserve, store = router("kserve"), service.store

    @kserve.get("/v2", response_model=s.KServeServer, responses=problems())
    async def server() -> dict[str, Any]:
        """Return what the server is."""
        return {"name": "textcat", "version": textcat.__version__, "extensions": []}

    @kserve.get("/v2/health/live", response_model=s.KServeLive, responses=problems())
    async def live() -> dict[str, Any]:
        """Say that the server runs."""
        return {"live": True}

    @kserve.get("/v2/health/ready", response_model=s.KServeReady, responses=problems())
    async def ready() -> dict[str, Any]:
        """Say that requests can be answered."""
        if len(store.models) < len(store.folders):
            raise Problem(503, "The models are being loaded: try again in a second.", {"Retry-After": "1"})
        return {"ready": True}

    @kserve.get("/v2/models/{name}", response_model=s.KServeModel, responses=problems())
    async def model(name: Name, call: Call) -> dict[str, Any]:
        """Return what a model takes and gives."""
        served = call.of(store[name])
        rows = {"datatype": "BYTES", "shape": [-1]}
        return {
            **served.named,
            "name": served.name,
            "versions": [served.version],
            "platform": "textcat",
            "inputs": [{"name": "text", **rows}],
            "outputs": [{"name": "topic", **rows}, {"name": "probability", "datatype": "FP64", "shape": [-1]}],
        }

    @kserve.get("/v2/models/{name}/ready", response_model=s.KServeModelReady, responses=problems())
    async def model_ready(name: Name, call: Call) -> dict[str, Any]:
        """Say that a model can be asked."""
        served = call.of(store[name])
        return {"name": served.name, "ready": True, **served.named}

    return kserve
