"""Routes of other servers, for clients that are pointed here: Annif's, where a model is a project, and KServe's."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query

import textcat
from textcat.serving import _schemas as s
from textcat.serving._front import Call
from textcat.serving._lean import check_documents, form_body, form_of, problems, router
from textcat.serving._problems import Problem

if TYPE_CHECKING:
    from textcat.serving._work import Choice, Tags
    from textcat.serving.app import Service
    from textcat.serving.store import Served

Name = Annotated[str, Path(description="The name of a model.")]


def annif_routes(service: Service) -> APIRouter:
    """Return Annif's routes, which are below /v1."""
    annif, store, labels = router("annif"), service.store, service.labels

    def choice(query: s.SuggestQuery, served: Served) -> Choice:
        return query.limit, query.threshold or None if served.tagger.calibration is not None else None, False

    def subjects(tags: Tags) -> list[dict[str, Any]]:
        return [
            {
                "uri": tag["topic"],
                "label": labels.get(tag["topic"], tag["topic"]),
                "notation": None,
                "score": tag["score"] if tag["probability"] is None else tag["probability"],
            }
            for tag in tags
        ]

    @annif.get("/v1/projects", response_model=s.AnnifProjects, responses=problems())
    async def projects() -> dict[str, Any]:
        """List the models as Annif's projects."""
        return {"projects": [_project(served) for served in store.models.values()]}

    @annif.get("/v1/projects/{project}", response_model=s.AnnifProject, responses=problems())
    async def project(project: Name, call: Call) -> dict[str, Any]:
        """Return a model as a project of Annif's."""
        return _project(call.of(store[project]))

    @annif.post(
        "/v1/projects/{project}/suggest",
        response_model=s.AnnifSuggestions,
        openapi_extra=form_body(s.SuggestForm),
        responses=problems(body=True),
    )
    async def suggest(project: Name, call: Call) -> bytes:
        """Suggest subjects for a text, as Annif does: a form with `text`, `limit` and `threshold`."""
        form: s.SuggestForm = await form_of(call, s.SuggestForm)
        served: Served = call.of(store[project], 1)
        return served.answer("results", subjects(await served.work.tag_one(form.text, choice(form, served))))

    @annif.post(
        "/v1/projects/{project}/suggest-batch", response_model=list[s.AnnifBatchRow], responses=problems(body=True)
    )
    async def suggest_batch(
        project: Name, query: Annotated[s.SuggestQuery, Query()], body: s.AnnifBatch, call: Call
    ) -> None:
        """Suggest subjects for texts, as Annif does; the version is in the header `X-Model-Version`."""
        check_documents(len(body.documents), service.limits)
        served: Served = call.of(store[project], len(body.documents))
        tags = await served.work.tag_all([each.text for each in body.documents], choice(query, served))
        rows = [
            {"document_id": each.document_id, "results": subjects(of_document)}
            for each, of_document in zip(body.documents, tags, strict=True)
        ]
        await call.answer(orjson.dumps(rows), headers={"X-Model": served.name, "X-Model-Version": served.version})

    return annif


def _project(served: Served) -> dict[str, Any]:
    language = served.tagger.features.tokens_.lang
    return {
        "project_id": served.name,
        "name": served.name,
        "language": language,
        "backend": {"backend_id": "textcat"},
        "vocab": {"vocab_id": served.tagger.corpus, "languages": [language]},
        "vocab_language": language,
        "is_trained": True,
        "modification_time": datetime.fromtimestamp(served.loaded, timezone.utc).isoformat(),
        **served.named,
    }


def kserve_routes(service: Service) -> APIRouter:
    """Return the routes of the open inference protocol below /v2 for metadata and health."""
    kserve, store = router("kserve"), service.store

    @kserve.get("/v2", response_model=s.KServeServer, responses=problems())
    async def server() -> dict[str, Any]:
        """Return the name and version of the server."""
        return {"name": "textcat", "version": textcat.__version__, "extensions": []}

    @kserve.get("/v2/health/live", response_model=s.KServeLive, responses=problems())
    async def live() -> dict[str, Any]:
        """Confirm that the server runs."""
        return {"live": True}

    @kserve.get("/v2/health/ready", response_model=s.KServeReady, responses=problems())
    async def ready() -> dict[str, Any]:
        """Confirm that requests can be answered."""
        if len(store.models) < len(store.folders):
            raise Problem(503, "The models are being loaded: try again in a second.", {"Retry-After": "1"})
        return {"ready": True}

    @kserve.get("/v2/models/{name}", response_model=s.KServeModel, responses=problems())
    async def model(name: Name, call: Call) -> dict[str, Any]:
        """Return the name and version of a model; it has no tensors, as there is no inference by this protocol."""
        served = call.of(store[name])
        return {
            **served.named,
            "name": served.name,
            "versions": [served.version],
            "platform": "textcat",
            "inputs": [],
            "outputs": [],
        }

    @kserve.get("/v2/models/{name}/ready", response_model=s.KServeModelReady, responses=problems())
    async def model_ready(name: Name, call: Call) -> dict[str, Any]:
        """Confirm that a model is ready."""
        served = call.of(store[name])
        return {"name": served.name, "ready": True, **served.named}

    return kserve
