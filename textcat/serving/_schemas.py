"""What may be sent, and what is answered: read by pydantic, and described in OpenAPI."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

_STORY = "Wheat exports rose to 12 mln tonnes, the ministry said."
Texts: TypeAlias = Annotated[dict[str, str], Field(min_length=1, max_length=100)]


def _whole(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value  # 2.0 is a whole number in JSON Schema


_Top: TypeAlias = Annotated[int, Field(ge=1, le=100_000), BeforeValidator(_whole)]
_Terms: TypeAlias = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class _Choice(_Sent):
    """Which topics of a document are answered."""

    top: _Top | None = Field(None, description="That many topics, whether above their thresholds or not.")
    min_probability: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The topics of at least this probability, instead of those above their thresholds.",
    )
    everything: bool = Field(False, description="All topics.")

    @property
    def choice(self) -> tuple[int | None, float | None, bool]:
        """The three; documents with the same can be tagged together."""
        return self.top, self.min_probability, self.everything


class _Text(_Sent):
    text: str = Field(description="A text; it is never taken for a path or a URL.", examples=[_STORY])

    @property
    def document(self) -> Any:
        return self.text


class _Zones(_Sent):
    zones: Texts = Field(
        description="The text of each zone by its name.", examples=[{"title": "Wheat up", "body": _STORY}]
    )

    @property
    def document(self) -> Any:
        from textcat.documents import Document

        return Document("", self.zones)


def _kind(value: Any) -> str | None:
    names = value if isinstance(value, dict) else vars(value) if isinstance(value, BaseModel) else {}
    return "text" if "text" in names else "zones" if "zones" in names else None


_either = Discriminator(
    _kind,
    custom_error_type="text_or_zones",
    custom_error_message="give an object with 'text', a string, or 'zones', an object of strings",
)


class TextDocument(_Text):
    """A document that is one text."""


class ZonesDocument(_Zones):
    """A document in zones, such as its title and its body."""


AnyDocument: TypeAlias = Annotated[
    Annotated[TextDocument, Tag("text")] | Annotated[ZonesDocument, Tag("zones")], _either
]


class TagText(_Choice, _Text):
    """A text that is to be tagged."""


class TagZones(_Choice, _Zones):
    """A document in zones that is to be tagged."""


TagRequest: TypeAlias = Annotated[Annotated[TagText, Tag("text")] | Annotated[TagZones, Tag("zones")], _either]


class TagBatch(_Choice):
    """Documents that are to be tagged."""

    documents: list[AnyDocument] = Field(min_length=1)


class _Explained(_Sent):
    topics: list[str] | None = Field(None, max_length=100, description="Explain these; else the tags of the document.")
    n: _Terms = Field(10, description="How many terms for each topic.")


class ExplainText(_Explained, _Text):
    """A text whose topics are to be explained."""


class ExplainZones(_Explained, _Zones):
    """A document in zones whose topics are to be explained."""


ExplainRequest: TypeAlias = Annotated[
    Annotated[ExplainText, Tag("text")] | Annotated[ExplainZones, Tag("zones")], _either
]


class TopicsQuery(BaseModel):
    """Which topics of a model are listed."""

    model_config = ConfigDict(extra="forbid")
    query: str = Field("", max_length=1000, description="Topics whose name has this in it.")
    offset: int = Field(0, ge=0, le=10**9)
    limit: int = Field(100, ge=1, le=10_000)


class TopicQuery(BaseModel):
    """Which topic is shown."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="The topic; it may have any characters.", examples=["wheat"])
    terms: int = Field(20, ge=1, le=1000, description="How many terms.")


class FileQuery(BaseModel):
    """What a file is called."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(
        "", max_length=255, description="Its name, by whose end the format is known.", examples=["a.html"]
    )


# --- answers ---------------------------------------------------------------------------------------------------------


class _Answer(BaseModel):
    model: str = Field(examples=["newswire"])
    version: str = Field(
        description="The first 12 digits of the sha256 of the model's manifest.", examples=["0f9a3c5d7e21"]
    )


class ModelAnswer(_Answer):
    """What a model is."""

    topics: int
    corpus: str
    recipe: str
    train_documents: int


class LimitsAnswer(BaseModel):
    """What a request may hold at most."""

    bytes: int
    documents: int


class ModelsAnswer(BaseModel):
    """The models that are served, and what may be sent to them."""

    models: list[ModelAnswer]
    limits: LimitsAnswer


class TopicRow(BaseModel):
    """A topic."""

    topic: str = Field(examples=["wheat"])
    train_size: int = Field(description="Its positive training documents.")
    threshold: float = Field(description="A document gets the topic if it scores above.")


class TopicsAnswer(_Answer):
    """Topics of a model."""

    total: int = Field(description="How many there are that fit the query.")
    topics: list[TopicRow]


class TermRow(BaseModel):
    """A term of a topic."""

    term: str
    weight: float


class Curve(BaseModel):
    """The probability of a score s is 1 / (1 + exp(-(a s + b)))."""

    a: float
    b: float


class TopicAnswer(_Answer, TopicRow):
    """What is known of a topic."""

    terms: list[TermRow] = Field(description="Those of largest weight.")
    quality: dict[str, Any] | None = Field(description="What was measured after training.")
    curve: Curve | None


class TagRow(BaseModel):
    """A topic of a document."""

    topic: str = Field(examples=["wheat"])
    score: float = Field(description="Signed, unscaled; larger = more relevant. Not a probability.", examples=[1.53])
    probability: float | None = Field(description="null where the model has none.", examples=[0.97])


class Tagged(_Answer):
    """The topics of a document, the highest score first."""

    tags: list[TagRow]


class BatchRow(BaseModel):
    """The topics of a document of the batch."""

    tags: list[TagRow]


class BatchAnswer(_Answer):
    """The topics of each document, in their order."""

    results: list[BatchRow]


class ExplainAnswer(_Answer):
    """Why topics were given, or were not."""

    explanations: list[dict[str, Any]]


class FileAnswer(BaseModel):
    """The texts that a file holds."""

    zones: dict[str, str]


class ProblemAnswer(BaseModel):
    """What went wrong, in a sentence, as in RFC 9457."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["No model 'x' is served here: `GET /api/v1/models` lists them."])
    request_id: str = Field(examples=["5b0c-1"])
    errors: list[dict[str, str]] | None = Field(None, description="What is wrong where in the request.")


# --- Annif and KServe ------------------------------------------------------------------------------------------------


class SuggestQuery(BaseModel):
    """How many subjects Annif's clients ask for."""

    limit: int = Field(10, ge=1, le=100_000)
    threshold: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    language: str = Field("", max_length=20)


class SuggestForm(SuggestQuery):
    """The form of Annif's clients."""

    text: str


class AnnifDocument(BaseModel):
    """A text of Annif's clients."""

    model_config = ConfigDict(strict=True)
    text: str
    document_id: str | None = None
    metadata: dict[str, Any] | None = None


class AnnifBatch(BaseModel):
    """The texts of Annif's clients."""

    model_config = ConfigDict(strict=True)
    documents: list[AnnifDocument] = Field(min_length=1)


class AnnifBackend(BaseModel):
    """What works in a project."""

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
    """The projects."""

    projects: list[AnnifProject]


class AnnifSubject(BaseModel):
    """A suggested subject."""

    uri: str
    label: str | None
    notation: str | None
    score: float


class AnnifSuggestions(_Answer):
    """The suggested subjects of a text."""

    results: list[AnnifSubject]


class AnnifBatchRow(BaseModel):
    """The suggested subjects of a text of several."""

    document_id: str | None
    results: list[AnnifSubject]


class KServeServer(BaseModel):
    """What the server is."""

    name: str
    version: str
    extensions: list[str]


class KServeLive(BaseModel):
    """Whether the server runs."""

    live: Literal[True]


class KServeReady(BaseModel):
    """Whether requests can be answered."""

    ready: Literal[True]


class KServeTensor(BaseModel):
    """What goes in or comes out."""

    name: str
    datatype: str
    shape: list[int]


class KServeModel(BaseModel):
    """What a model is, as KServe describes it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[KServeTensor]
    outputs: list[KServeTensor]
    model: str
    version: str


class KServeModelReady(BaseModel):
    """Whether a model can be asked."""

    name: str
    ready: Literal[True]
    model: str
    version: str
