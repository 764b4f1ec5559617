"""The routes of Annif's API, below /v1, with each model as a project."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, NamedTuple, TypeAlias

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from textcat.model import Reason
from textcat.serving.http.front import Call
from textcat.serving.http.problems import Problem, json_bytes
from textcat.serving.http.routes import check_documents, form_body, form_of, problems, router
from textcat.serving.schemas import NO_EVIDENCE, VersionedAnswer
from textcat.serving.store import Served, served_model
from textcat.serving.work import Choice, Tags

Project: TypeAlias = Annotated[str, Path(description="The name of a model.")]
routes = router("annif")


class Labels(NamedTuple):
    """Labels of topics from a vocabulary, by language, and the language that clients get by default."""

    by_language: Mapping[str, Mapping[str, str]] = {}  # by language, then by topic; "": language unknown
    language: str = ""  # "": the model's language

    def languages(self, served: Served) -> list[str]:
        """Return the languages in which a model's topics have labels, the default one first."""
        tagger = served.tagger
        languages = {*self.by_language, tagger.names_language or tagger.features.tokens_.lang}
        first = [self.language, tagger.names_language, tagger.features.tokens_.lang, "", *sorted(languages)]
        by_default = next((language for language in first if language in (self.by_language or languages)), "")
        return [*dict.fromkeys([by_default, *sorted(languages)])]

    def find(self, topic: str, name: str, language: str, served: Served) -> str | None:
        """Return the label of a topic in a language; for the language "", in the default language.

        If there is none, return `name`, the topic's name in the model, for the language "" and for the language of the
        model's names; return None for other languages.
        """
        by_default, *_ = self.languages(served)
        label = self.by_language.get(language or by_default, {}).get(topic)
        is_of_model = language in ("", served.tagger.names_language or served.tagger.features.tokens_.lang)
        return label or (name if is_of_model else None)


class SuggestQuery(BaseModel):
    """The options of a request to suggest subjects."""

    limit: int = Field(10, ge=1, le=100_000)
    threshold: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    language: str = Field("", max_length=20, description="Language of the labels; by default the model's.")


class SuggestForm(SuggestQuery):
    """A form with a text for which subjects are to be suggested, and options."""

    text: str


class AnnifDocument(BaseModel):
    """A text in a request for several texts, with an optional id."""

    model_config = ConfigDict(strict=True)
    text: str
    document_id: str | None = None
    metadata: dict[str, Any] | None = None


class AnnifBatch(BaseModel):
    """A request to suggest subjects for several texts."""

    model_config = ConfigDict(strict=True)
    documents: list[AnnifDocument] = Field(min_length=1)


class AnnifBackend(BaseModel):
    """The backend of a project: the program that suggests its subjects."""

    backend_id: str


class AnnifProject(BaseModel):
    """A model, as Annif describes a project."""

    project_id: str
    name: str
    language: str
    backend: AnnifBackend
    vocab: dict[str, Any] | None = None
    vocab_language: str | None = None
    is_trained: bool = True
    modification_time: str | None = None
    model: str
    version: str


class AnnifProjects(BaseModel):
    """All projects: one for each served model."""

    projects: list[AnnifProject]


class AnnifSubject(BaseModel):
    """A suggested subject."""

    uri: str
    label: str | None
    notation: str | None
    score: float


class AnnifSuggestions(VersionedAnswer):
    """The suggested subjects of a text."""

    results: list[AnnifSubject]
    reason: Reason | None = NO_EVIDENCE


class AnnifBatchRow(BaseModel):
    """The suggested subjects of one of several texts."""

    document_id: str | None
    results: list[AnnifSubject]
    reason: Reason | None = NO_EVIDENCE


@routes.get("/v1/projects", response_model=AnnifProjects, responses=problems())
async def projects(call: Call) -> dict[str, Any]:
    """List the models as Annif's projects."""
    return {"projects": [_project(served, call.app.labels) for served in call.app.store.models.values()]}


@routes.get("/v1/projects/{project}", response_model=AnnifProject, responses=problems())
async def project(project: Project, call: Call) -> dict[str, Any]:
    """Describe a model as one of Annif's projects."""
    return _project(served_model(call, project), call.app.labels)


@routes.post(
    "/v1/projects/{project}/suggest",
    response_model=AnnifSuggestions,
    openapi_extra=form_body(SuggestForm),
    responses=problems(body=True),
)
async def suggest(project: Project, call: Call) -> bytes:
    """Suggest subjects for a text, as Annif does; the request is a form with `text`, `limit` and `threshold`.

    The `limit` subjects that the model ranks first are ordered by their `score`, which is the probability, if the model
    has probabilities.
    """
    form: SuggestForm = await form_of(call, SuggestForm)
    served = served_model(call, project, 1)
    answer = await served.work.tag_one(form.text, _choice(form, served))
    subjects = _subjects(answer.tags, call.app.labels, _language(form, call, served), served)
    return served.answer(answer.entries("results", subjects))


@routes.post("/v1/projects/{project}/suggest-batch", response_model=list[AnnifBatchRow], responses=problems(body=True))
async def suggest_batch(
    project: Project, query: Annotated[SuggestQuery, Query()], body: AnnifBatch, call: Call
) -> None:
    """Suggest subjects for several texts, as Annif does, and send the response.

    The answer's header `X-Model-Version` has the model's version.
    """
    check_documents(len(body.documents), call.front.limits)
    served = served_model(call, project, len(body.documents))
    language = _language(query, call, served)
    texts = [document.text for document in body.documents]
    answers = await served.work.tag_all(texts, _choice(query, served), call.pause)
    rows = [
        {
            "document_id": document.document_id,
            **answer.entries("results", _subjects(answer.tags, call.app.labels, language, served)),
        }
        for document, answer in zip(body.documents, answers, strict=True)
    ]
    await call.answer(json_bytes(rows), headers={"X-Model": served.name, "X-Model-Version": served.version})


def _choice(query: SuggestQuery, served: Served) -> Choice:
    has_probabilities = served.tagger.decisions.calibration is not None
    return Choice(query.limit, query.threshold or None if has_probabilities else None)


def _language(query: SuggestQuery, call: Call, served: Served) -> str:
    """Return the language that a request asks for; raise a Problem if it has no label."""
    language = query.language.lower()
    languages = [code for code in call.app.labels.languages(served) if code]
    if language and language not in languages:
        raise Problem(400, f"The model has no labels in {language!r}, but in {', '.join(languages)}: ask for these.")
    return language


def _subjects(tags: Tags, labels: Labels, language: str, served: Served) -> list[dict[str, Any]]:
    subjects = [
        {
            "uri": tag["topic"],
            "label": labels.find(tag["topic"], tag.get("name") or tag["topic"], language, served),
            "notation": None,
            "score": tag["score"] if tag["probability"] is None else tag["probability"],
            **({"status": tag["status"]} if "status" in tag else {}),
        }
        for tag in tags
    ]
    return sorted(subjects, key=lambda subject: -subject["score"])


def _project(served: Served, labels: Labels) -> dict[str, Any]:
    languages = [code for code in labels.languages(served) if code]
    return {
        "project_id": served.name,
        "name": served.name,
        "language": served.tagger.features.tokens_.lang,
        "backend": {"backend_id": "textcat"},
        "vocab": {"vocab_id": served.tagger.facts.corpus, "languages": sorted(languages)},
        "vocab_language": languages[0],
        "is_trained": True,
        "modification_time": datetime.fromtimestamp(served.loaded, timezone.utc).isoformat(),
        **served.named,
    }
