"""Requests and responses of `textcat review`."""

from typing import Any

from pydantic import BaseModel, Field

from textcat.serving.schemas import QueryModel, RequestModel
from textcat.serving.teaching_schemas import Note, Person, Position

_TOPICS = 1000  # maximum number of topics that are judged together
_NUMBER = Field(description="The document's place in the queue, from 0.")


class TopicsJudged(RequestModel):
    """A person's answers about the topics of a document."""

    number: Position
    answers: dict[str, bool] = Field(
        max_length=_TOPICS,
        description="For each topic judged, by id or name, whether the document belongs to it; {}: skip the document.",
        examples=[{"wheat": True, "gold": False}],
    )
    note: Note = ""
    person: Person = ""
    is_complete: bool = Field(
        False, description="Whether it has no other topics; then all tags must be judged, and {} says that it has none."
    )


class PersonSent(RequestModel):
    """A request to take back a person's last answer."""

    person: Person = ""


class PersonQuery(QueryModel):
    """The name of the person who sends the request."""

    person: Person = ""


class EvidenceOfTopicQuery(QueryModel):
    """A request to explain the score of a document by its n most important terms."""

    number: int = Field(ge=0)
    topic: str
    n: int = Field(60, ge=1, le=1000)


class TopicsQuery(QueryModel):
    """A search for topics by words of their ids and names."""

    query: str = Field("", max_length=300)
    n: int = Field(20, ge=1, le=200)


class ReviewTagRow(BaseModel):
    """A tag of a document."""

    topic: str
    name: str | None
    probability: float | None
    status: str | None
    is_asked: bool = Field(description="Whether a person is to judge it.")
    is_audited: bool = Field(description="Whether it was drawn at random among automatic tags.")


class EarlierAnswer(BaseModel):
    """An earlier answer about a document."""

    person: str
    at: str
    answers: dict[str, bool]
    note: str


class ReviewedDocument(BaseModel):
    """A document to review, with its tags."""

    number: int = _NUMBER
    id: str
    zones: dict[str, str]
    fields: dict[str, Any]
    date: str
    tags: list[ReviewTagRow]
    earlier: list[EarlierAnswer] = Field(description="Earlier answers that the person may see.")


class ReviewNext(BaseModel):
    """The next document to judge, if one is left, and how many were answered."""

    document: ReviewedDocument | None
    answered: int


class ReviewUndone(ReviewNext):
    """A document whose answer was retracted; `undone` is false if there was no answer to retract."""

    undone: bool


class ReviewAnswer(BaseModel):
    """The queue: how many documents it has, and how people share them."""

    session: str = Field(description="Identifies the queue; requests may name it by If-Match.")
    archive: str
    documents: int
    open: int = Field(
        description="How many documents were to be judged when the queue was made: with tags for review, or sampled."
    )
    independent: bool
    is_sample: bool = Field(description="Whether it is a random sample, of which all topics are to be judged.")
    topics: int = Field(description="How many topics people can give.")
    person: str | None = Field(description="The name of the key, if the server needs keys.")


class ReasonsAnswer(BaseModel):
    """The terms of a document for and against a topic; `reasons` is null if the model is gone or lacks the topic."""

    number: int = _NUMBER
    topic: str
    reasons: list[dict[str, Any]] | None


class TopicName(BaseModel):
    """A topic, and its name if it has one."""

    topic: str
    name: str | None


class TopicsFound(BaseModel):
    """The topics that a search has found."""

    topics: list[TopicName]


class AuditedRow(BaseModel):
    """How many of the audited tags of a topic or a month are right; "" stands for all topics or months."""

    topic: str
    month: str
    judged: int
    right: int
    precision: float
    low: float = Field(description="Lower end of the 95 % interval of Clopper and Pearson.")
    high: float


class AuditAnswer(BaseModel):
    """The audited precision of automatic tags."""

    rows: list[AuditedRow]
