"""Requests and responses as pydantic models, which validate requests, and describe both in OpenAPI."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag

from textcat.corpus.documents import Document
from textcat.evaluation.promises import Status
from textcat.model import Reason
from textcat.serving.work import Choice

_STORY = "Wheat exports rose to 12 mln tonnes, the ministry said."
Texts: TypeAlias = Annotated[dict[str, str], Field(min_length=1, max_length=100)]


def whole_number(value: Any) -> Any:
    """Return a float such as 2.0 as an int, and every other value unchanged."""
    return int(value) if type(value) is float and value.is_integer() else value  # in JSON Schema, 2.0 is an integer


_Top: TypeAlias = Annotated[int, Field(ge=1, le=100_000), BeforeValidator(whole_number)]
_Terms: TypeAlias = Annotated[int, Field(ge=1, le=1000), BeforeValidator(whole_number)]


class RequestModel(BaseModel):
    """A request; unknown fields and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class _Choice(RequestModel):
    """The options that choose which topics of a document are returned."""

    top: _Top | None = Field(None, description="Return this many topics, above their thresholds or not.")
    min_probability: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Return topics of at least this probability, instead of those above their thresholds.",
    )
    all_topics: bool = Field(False, description="Return all topics.")
    expected_recall: bool = Field(
        False,
        description="Also return the expected recall: the expected share of a document's topics among its tags.",
    )

    @property
    def choice(self) -> Choice:
        """The request's options as a `Choice`; documents with equal options are tagged together."""
        return Choice(self.top, self.min_probability, self.all_topics, self.expected_recall)


class _About(RequestModel):
    """Facts about a document besides its text, for house rules with conditions."""

    language: str = Field(
        "", max_length=100, description="The document's language, for house rules with a condition.", examples=["en"]
    )
    date: str = Field(
        "",
        max_length=100,
        description="The document's date, for house rules with a condition.",
        examples=["1987-02-26"],
    )
    fields: dict[str, Any] | None = Field(
        None,
        max_length=1000,
        description="Other fields of the document, for house rules with a condition.",
        examples=[{"desk": "farm"}],
    )

    def _with_zones(self, zones: dict[str, str]) -> Document:
        return Document("", zones, date=self.date, fields=self.fields, language=self.language)


class _OfText(RequestModel):
    text: str = Field(description="A text; it is never taken for a path or a URL.", examples=[_STORY])


class TextDocument(_About, _OfText):
    """A document that is one text."""

    @property
    def document(self) -> str | Document:
        """The request's text or, if the request has further facts, a document with this text as its body."""
        has_more = self.language or self.date or self.fields
        return self._with_zones({"body": self.text}) if has_more else self.text


class _OfZones(RequestModel):
    zones: Texts = Field(
        description="The text of each zone by its name.", examples=[{"title": "Wheat up", "body": _STORY}]
    )


class ZonesDocument(_About, _OfZones):
    """A document in zones, such as its title and its body."""

    @property
    def document(self) -> Document:
        """The zones of the request as one document."""
        return self._with_zones(self.zones)


def _kind(value: Any) -> str | None:
    names = value if isinstance(value, dict) else vars(value) if isinstance(value, BaseModel) else {}
    return "text" if "text" in names else "zones" if "zones" in names else None


_either = Discriminator(
    _kind,
    custom_error_type="text_or_zones",
    custom_error_message="give an object with 'text', a string, or 'zones', an object of strings",
)


AnyDocument: TypeAlias = Annotated[
    Annotated[TextDocument, Tag("text")] | Annotated[ZonesDocument, Tag("zones")], _either
]


class TagText(_Choice, TextDocument):
    """A text to tag."""


class TagZones(_Choice, ZonesDocument):
    """A document in zones, such as title and body, to tag."""


TagRequest: TypeAlias = Annotated[Annotated[TagText, Tag("text")] | Annotated[TagZones, Tag("zones")], _either]


class TagBatch(_Choice):
    """Documents to tag."""

    documents: list[AnyDocument] = Field(min_length=1)


class _Explained(RequestModel):
    topics: list[str] | None = Field(
        None, max_length=100, description="Topics to explain; by default the tags of the document."
    )
    n: _Terms = Field(10, description="Number of terms for each topic.")


class ExplainText(_Explained, TextDocument):
    """A text, and the topics whose scores to explain."""


class ExplainZones(_Explained, ZonesDocument):
    """A document in zones, such as title and body, and the topics whose scores to explain."""


ExplainRequest: TypeAlias = Annotated[
    Annotated[ExplainText, Tag("text")] | Annotated[ExplainZones, Tag("zones")], _either
]


_Topic: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]*$")
]
_Topics: TypeAlias = list[_Topic]


class _Corrected(RequestModel):
    right: _Topics = Field(
        [],
        max_length=1000,
        description="Topics that the document belongs to; the model may lack them.",
        examples=[["gold"]],
    )
    wrong: _Topics = Field([], max_length=1000, description="Topics of the model that it does not belong to.")
    id: str = Field(
        "",
        max_length=1000,
        description="The document's id; by default a hash of the texts of its zones.",
    )
    note: str = Field("", max_length=10_000, description="A remark of the person.")
    person: str = Field(
        "",
        max_length=100,
        description="Name of the person; if the server has keys, the name of the key is used instead.",
    )
    via: Literal["api", "page"] = Field("api", description="Where the person made the correction.")


class CorrectText(_Corrected, TextDocument):
    """A text, with topics that a person marked as right or wrong."""


class CorrectZones(_Corrected, ZonesDocument):
    """A document in zones, with topics that a person marked as right or wrong."""


CorrectRequest: TypeAlias = Annotated[
    Annotated[CorrectText, Tag("text")] | Annotated[CorrectZones, Tag("zones")], _either
]


class QueryModel(BaseModel):
    """A URL query; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class TopicsQuery(QueryModel):
    """A request to list topics of a model: those whose name contains the query."""

    query: str = Field("", max_length=1000, description="Return only topics whose name contains this text.")
    offset: int = Field(0, ge=0, le=10**9)
    limit: int = Field(100, ge=1, le=10_000)


class TopicQuery(QueryModel):
    """A request to describe a topic."""

    name: str = Field(description="Name of the topic; it may have any characters.", examples=["wheat"])
    terms: int = Field(20, ge=1, le=1000, description="Number of terms.")


class FileQuery(QueryModel):
    """The name of an uploaded file."""

    name: str = Field(
        "", max_length=255, description="The file's name; its extension determines the format.", examples=["a.html"]
    )


# --- answers ---------------------------------------------------------------------------------------------------------


class VersionedAnswer(BaseModel):
    """An answer that names the model that gave it, and the model's version."""

    model: str = Field(examples=["newswire"])
    version: str = Field(
        description="The first 12 digits of the sha256 of the model's manifest.", examples=["0f9a3c5d7e21"]
    )


class ModelAnswer(VersionedAnswer):
    """A served model: its name and version, number of topics, and training."""

    topics: int
    corpus: str
    recipe: str
    train_documents: int
    names_language: str | None = Field(None, description="The language of the topics' names, if it is known.")


class CardAnswer(VersionedAnswer):
    """A model's card, written by its trainer: untrusted content."""

    text: str | None = Field(description="The card in Markdown, with a head in YAML; null if the model has none.")
    elements: list[Any] | None = Field(
        description="The card without its head, as plain texts and lists [tag, address of a link, contents]."
    )


class LimitsAnswer(BaseModel):
    """The maximum number of bytes, and of documents, in a request."""

    bytes: int
    documents: int


class ModelsAnswer(BaseModel):
    """The served models, the limits of requests, and whether the server accepts corrections."""

    models: list[ModelAnswer]
    limits: LimitsAnswer
    corrections: bool = Field(description="Whether the server accepts corrections.")


_NAME = Field(None, description="The topic's name in a vocabulary, if the model was trained with one.")


class TopicRow(BaseModel):
    """A topic of a model."""

    topic: str = Field(examples=["wheat"])
    train_size: int = Field(description="Number of positive training documents of the topic.")
    threshold: float = Field(description="A document gets the topic if its score is above this.")
    name: str | None = _NAME


class TopicsAnswer(VersionedAnswer):
    """A page of the topics that match a query, and the number of all topics that match it."""

    total: int = Field(description="Number of topics that match the query.")
    topics: list[TopicRow]


class TermRow(BaseModel):
    """A term, and its weight for a topic."""

    term: str
    weight: float


class Curve(BaseModel):
    """The calibration curve of a topic, from a score s to the probability 1 / (1 + exp(-(a s + b)))."""

    a: float
    b: float


class TopicAnswer(VersionedAnswer, TopicRow):
    """A topic of a model, with its terms, its quality, and the curve of its probabilities."""

    terms: list[TermRow] = Field(description="The terms with the largest weights.")
    quality: dict[str, Any] | None = Field(description="Quality of the topic as measured after training.")
    curve: Curve | None


class TagRow(BaseModel):
    """A topic of a document, with the document's score and probability."""

    topic: str = Field(examples=["wheat"])
    score: float = Field(description="Signed, unscaled; larger = more relevant. Not a probability.", examples=[1.53])
    probability: float | None = Field(description="null if the model has no probabilities.", examples=[0.97])
    status: Status | None = Field(
        None, description="Whether a person is to review the tag; missing if the model makes no promises."
    )
    name: str | None = _NAME


NO_EVIDENCE = Field(None, description="Why a document gives no evidence for any topic; missing if it gives some.")


class BatchRow(BaseModel):
    """The topics of one of the documents in a request."""

    tags: list[TagRow]
    reason: Reason | None = NO_EVIDENCE
    expected_recall: float | None = Field(
        None, description="The expected recall of the document's tags, if it was requested.", examples=[0.84]
    )


class Tagged(BatchRow, VersionedAnswer):
    """The topics of a document, the highest score first."""


class BatchAnswer(VersionedAnswer):
    """The topics of each document, in the order of the documents."""

    results: list[BatchRow]


class ExplainAnswer(VersionedAnswer):
    """Explanations of why a document has, or does not have, topics."""

    explanations: list[dict[str, Any]]


class CorrectionAnswer(VersionedAnswer):
    """A saved correction: its number, its time, and the topics of its document."""

    number: int = Field(description="The correction's number in the server's folder, from 1.")
    time: str = Field(description="Time of the correction, as UTC in ISO 8601.", examples=["2026-03-01T09:30:00+00:00"])
    id: str = Field(description="The document's id.")
    before: list[str] = Field(description="The topics that the model gives the document.")
    after: list[str] = Field(description="The document's topics after the correction.")
    new: list[str] = Field(description="Topics in `right` that the model lacks.")


class FileAnswer(BaseModel):
    """The texts of a file by zone, such as title and body."""

    zones: dict[str, str]


class ShadowTopic(BaseModel):
    """How often only one of two models gave a topic."""

    topic: str
    name: str | None = _NAME
    only_served: int
    only_shadow: int


class ShadowAnswer(BaseModel):
    """Differences between the tags of a served model and of its shadow, a new model that tags the same documents."""

    model: str = Field(description="The served model.")
    shadow: str = Field(description="The version of the new model: the first 12 digits of its manifest's sha256.")
    documents: int = Field(description="Number of documents that both models have tagged.")
    differing_documents: int
    tags_only_served: int
    tags_only_shadow: int
    failed_documents: int = Field(description="Number of documents that the new model could not tag.")
    topics: list[ShadowTopic] = Field(description="Topics with different tags, the largest difference first.")
