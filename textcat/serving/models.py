"""Routes that describe the served models and their topics."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any, TypeAlias

import numpy as np
from fastapi import Path, Query

from textcat.model.card import card_elements, plain
from textcat.model.topic_names import name_entry, topic_label
from textcat.serving import schemas as s
from textcat.serving.http.application import page_file
from textcat.serving.http.front import Call
from textcat.serving.http.problems import Problem
from textcat.serving.http.routes import problems, router
from textcat.serving.store import Served, served_model

Model: TypeAlias = Annotated[str, Path(description="The name of a model, as GET /api/v1/models lists them.")]
routes = router("models")


@routes.get("/api/v1/models", response_model=s.ModelsAnswer, responses=problems())
async def models(call: Call) -> dict[str, Any]:
    """List the served models, and whether the server accepts corrections."""
    limits = call.front.limits
    return {
        "models": [served.summary() for served in call.app.store.models.values()],
        "limits": {"bytes": limits.max_bytes, "documents": limits.max_documents},
        "corrections": call.app.corrections is not None,
    }


@routes.get("/api/v1/models/{model}", response_model=s.ModelAnswer, responses=problems())
async def model(model: Model, call: Call) -> dict[str, Any]:
    """Describe a model: its version, number of topics, corpus and recipe."""
    return served_model(call, model).summary()


@routes.get("/api/v1/models/{model}/card", response_model=s.CardAnswer, responses=problems())
async def card(model: Model, call: Call) -> dict[str, Any]:
    """Return a model's card as Markdown, and as the elements of HTML that a page may safely show."""
    served = served_model(call, model)
    text = call.app.store.card(model)
    elements = None if text is None else plain(await asyncio.to_thread(card_elements, text))
    return {**served.named, "text": text, "elements": elements}


@routes.get("/api/v1/models/{model}/topics", response_model=s.TopicsAnswer, responses=problems(422))
async def topics(model: Model, query: Annotated[s.TopicsQuery, Query()], call: Call) -> dict[str, Any]:
    """List a model's topics whose name contains the query; without a query, all."""
    served = served_model(call, model)
    wanted = query.query.casefold()
    of_topics = served.tagger.topic_names
    names = [name for name in served.tagger.topics if wanted in topic_label(name, of_topics).casefold()]
    shown = names[query.offset : query.offset + query.limit]
    return {**served.named, "total": len(names), "topics": [_topic_row(served, name) for name in shown]}


@routes.get("/api/v1/models/{model}/topic", response_model=s.TopicAnswer, responses=problems(422))
async def topic(model: Model, query: Annotated[s.TopicQuery, Query()], call: Call) -> dict[str, Any]:
    """Describe a topic: its terms, its quality, and the curve of its probabilities."""
    served = served_model(call, model)
    j, calibration = served.column_of(query.name), served.tagger.decisions.calibration
    quality = served.quality.get(query.name)
    return {
        **served.named,
        **_topic_row(served, query.name),
        "terms": [{"term": term, "weight": weight} for term, weight in served.tagger.terms(query.name, query.terms)],
        "quality": dataclasses.asdict(quality) if quality is not None else None,
        "curve": None if calibration is None else {"a": float(calibration.a[j]), "b": float(calibration.b[j])},
    }


def _topic_row(served: Served, topic: str) -> dict[str, Any]:
    j, tagger = served.columns[topic], served.tagger
    largest = float(np.finfo(np.float32).max)  # JSON has no infinity
    return {
        "topic": topic,
        "train_size": int(tagger.facts.train_sizes[j]),
        "name": tagger.topic_names.get(topic),
        "threshold": float(np.clip(tagger.decisions.thresholds[j], -largest, largest)),
    }


@routes.get("/api/v1/shadow", response_model=s.ShadowAnswer, responses=problems(404))
async def shadow(call: Call) -> dict[str, Any]:
    """Return how the tags of a served model differ from those of its shadow, a new model; no text is shown."""
    watched = call.app.shadow
    if watched is None:
        raise Problem(404, "No shadow runs here: start the server with --shadow FOLDER.")
    names = call.app.store[watched.name].tagger.topic_names
    differing = [(topic, *counts) for topic, counts in watched.by_topic().items() if any(counts)]
    differing.sort(key=lambda row: (-row[1] - row[2], row[0]))
    rows = [
        {"topic": topic, **name_entry(topic, names), "only_served": served, "only_shadow": new}
        for topic, served, new in differing
    ]
    return {"model": watched.name, "shadow": watched.version, **watched.counts(), "topics": rows}


@routes.get("/shadow", include_in_schema=False)
async def shadow_page(call: Call) -> None:
    """Send the HTML page that shows what `shadow` returns."""
    await page_file("shadow.html", call)
