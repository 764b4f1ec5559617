"""What may be sent to teach a topic, and what is answered."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from textcat.serving._schemas import _Sent, _whole

LONGEST_NAME = 300  # characters: that of textcat.teaching.judgements, which a test compares it with

Answer: TypeAlias = Literal["yes", "no", "skip"]
Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, examples=["strikes in the energy sector"])
]
Person: TypeAlias = Annotated[
    str, Field(max_length=100, description="Who asks or answers; with keys, the name of the key counts instead.")
]
_MOST = 2**31 - 1
Position: TypeAlias = Annotated[
    int, Field(ge=0, le=_MOST, description="Place of a document in the archive, from 0."), BeforeValidator(_whole)
]
Note: TypeAlias = Annotated[str, Field(max_length=10_000)]


class NewTopic(_Sent):
    """A topic that begins; any of the three may help, and none is needed."""

    topic: Name
    description: str = Field("", max_length=100_000, description="What it is about, in a sentence or many.")
    query: str = Field("", max_length=1000, description="Words that its documents have.")
    examples: list[str] = Field([], max_length=1000, description="Ids of documents that belong to it.")
    person: Person = ""


class AnswerSent(_Sent):
    """What a person says of a document."""

    topic: Name
    position: Position
    answer: Answer
    person: Person = ""
    source: Literal["asked", "search", "list", "settled"] = Field(
        "asked", description="How the document was come by; what is settled counts in place of people's own answers."
    )
    others: dict[Name, Answer] = Field({}, max_length=1000, description="Answers on the document for other topics.")
    note: Note = ""
    ask: bool = Field(True, description="Whether to answer with the next question.")


class UndoSent(_Sent):
    """Whose last answer, or mark, is taken back, and which topic goes on."""

    topic: Name
    person: Person = ""


class MarkSent(_Sent):
    """A word that speaks for a topic, or against it."""

    topic: Name
    term: str = Field(min_length=1, max_length=1000, examples=["walkout"])
    speaks_for: bool | None = Field(description="false: against it; null: no longer either.")
    person: Person = ""


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class OfTopic(_Query):
    """Which topic."""

    topic: Name


class QuestionQuery(OfTopic):
    """What is asked for."""

    person: Person = ""


class DocumentQuery(_Query):
    """Which document, and for which topic it is judged."""

    position: int = Field(ge=0, le=_MOST)
    topic: str = Field("", max_length=LONGEST_NAME)


class EvidenceQuery(OfTopic):
    """Which document, and of how many terms."""

    position: int = Field(ge=0, le=_MOST)
    n: int = Field(60, ge=1, le=1000)


class SearchQuery(_Query):
    """What is looked for."""

    query: str = Field(max_length=1000)
    topic: str = Field("", max_length=LONGEST_NAME, description="Answers are those to this topic,")
    person: str = Field("", max_length=100, description="by this person.")
    offset: int = Field(0, ge=0, le=_MOST)
    limit: int = Field(20, ge=1, le=200)


class JudgementsQuery(OfTopic):
    """Which judgements are listed, the last ones first."""

    answer: Literal["", "yes", "no", "skip"] = ""
    person: str | None = Field(None, max_length=100)
    offset: int = Field(0, ge=0, le=_MOST)
    limit: int = Field(50, ge=1, le=1000)


class ProgressQuery(OfTopic):
    """How much is to be found, and how surely."""

    target: float = Field(0.95, gt=0, lt=1, allow_inf_nan=False)
    confidence: float = Field(0.95, ge=0.5, lt=1, allow_inf_nan=False)


class QueueQuery(_Query):
    """Which list of documents."""

    name: str = Field(max_length=1000)
    person: Person = ""


class ExportQuery(_Query):
    """What is exported."""

    what: Literal["labels", "corpus", "model", "audit"]
    topic: str = Field("", max_length=LONGEST_NAME, description="That alone; else all of them.")


# --- answers ---------------------------------------------------------------------------------------------------------


class Counts(BaseModel):
    """How many documents have been judged for a topic."""

    yes: int
    no: int
    skip: int


class TaughtTopic(BaseModel):
    """A topic."""

    topic: str
    description: str
    query: str
    counts: Counts
    marks: dict[str, bool] = Field(description="Words that were said to speak for it, or (false) against it.")
    disagreements: int = Field(description="Documents of which people have said different things.")


class QueueRow(BaseModel):
    """A list of documents that wait to be looked at."""

    name: str
    topic: str
    documents: int


class SessionAnswer(BaseModel):
    """What is taught from, and what."""

    session: str = Field(description="Tells the session from others: sent as `If-Match`, others answer 412.")
    documents: int
    person: str | None = Field(description="The name of the key, where keys are asked for.")
    people: list[str]
    topics: list[TaughtTopic]
    queues: list[QueueRow]


class JudgementRow(BaseModel):
    """What somebody has said of a document."""

    topic: str
    position: int
    id: str
    title: str
    answer: Answer
    person: str
    source: str
    note: str
    at: str | None = Field(description="When, in UTC.")


class DocumentAnswer(BaseModel):
    """A document, and what has been said of it."""

    position: int
    id: str
    zones: dict[str, str]
    judgements: list[JudgementRow]


class QuestionAnswer(BaseModel):
    """A document that is to be judged, and why."""

    position: int
    id: str
    zones: dict[str, str]
    rank: int | None = Field(description="Its place by score among those that are open, from 1.")
    score: float | None
    why: str = Field(examples=["highest score", "uncertain", "at random", "taken back"])
    n_answers: int
    answers: dict[str, str] = Field(description="The person's own on the document for other topics.")
    duplicates: list[str] = Field(description="Documents that are as good as the same, and get the same answer.")


class NextAnswer(BaseModel):
    """The next question; null if none is left, or none was asked for."""

    question: QuestionAnswer | None
    counts: Counts


class UndoAnswer(NextAnswer):
    """What was taken back: answers, whose document is the question again; or, if there are none, a mark."""

    undone: list[JudgementRow] | None = Field(description="null: there was nothing to take back.")


class MarksAnswer(BaseModel):
    """All marked words."""

    marks: dict[str, bool]


class EvidenceAnswer(BaseModel):
    """The terms of a document by what they add to its score."""

    topic: str
    position: int
    score: float | None
    bias: float
    reasons: list[dict[str, Any]]


class FoundRow(BaseModel):
    """A document that was found."""

    position: int
    id: str
    title: str
    text: str
    answer: Answer | None = Field(description="The person's own,")
    label: bool | None = Field(description="and what all answers come to.")


class SearchAnswer(BaseModel):
    """What was found."""

    total: int | None
    documents: list[FoundRow]


class JudgementsAnswer(BaseModel):
    """Judgements, the last ones first."""

    total: int
    judgements: list[JudgementRow]


class EstimateAnswer(BaseModel):
    """How much of a topic has been found; low and high bound the recall at the confidence."""

    rule: str
    recall: float
    low: float
    high: float
    relevant: float
    more: int | None = Field(description="Answers that are still needed if none of them is yes; null: not known yet.")


class ProgressAnswer(BaseModel):
    """How far a topic is."""

    topic: str
    documents: int
    counts: Counts
    open: int = Field(description="Documents that are not judged; near-duplicates count once.")
    found: int = Field(description="Documents of the topic, near-duplicates among them.")
    at_random: int = Field(description="Answers to questions that were drawn at random.")
    curve: list[tuple[int, int]] = Field(description="Answers, and what they have found, at up to 400 points.")
    target: float
    confidence: float
    estimate: EstimateAnswer | None
    pace: float | None = Field(description="Answers a minute.")


class PairRow(BaseModel):
    """How far two people agree."""

    people: tuple[str, str]
    documents: int = Field(description="That both have judged.")
    kappa: float | None


class DisagreementRow(BaseModel):
    """A document of which people have said different things."""

    position: int
    id: str
    title: str
    answers: dict[str, str]


class AgreementAnswer(BaseModel):
    """How far people agree on a topic."""

    kappa: float | None = Field(description="Cohen's; of several pairs the mean, weighted by their documents.")
    agreed: float | None = Field(description="The share of answers that are the same.")
    documents: int
    pairs: list[PairRow]
    disagreements: list[DisagreementRow]


class QueueEntry(BaseModel):
    """A document that waits to be looked at."""

    position: int
    id: str
    title: str
    labelled: bool | None = Field(description="Whether it bore the topic's label where the list was made.")
    answer: Answer | None = Field(description="The person's own.")


class QueueAnswer(BaseModel):
    """A list of documents."""

    name: str
    topic: str
    documents: list[QueueEntry]
