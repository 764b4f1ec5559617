"""Requests and responses of `textcat teach`."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from textcat.serving.schemas import QueryModel, RequestModel, whole_number
from textcat.teaching.entries import LONGEST_EXCLUSION_REASON
from textcat.teaching.judgements import LONGEST_NAME

Answer: TypeAlias = Literal["yes", "no", "skip"]
Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, examples=["strikes in the energy sector"])
]
Person: TypeAlias = Annotated[
    str, Field(max_length=100, description="Who asks or answers; with keys, the name of the key counts instead.")
]
_MOST = 2**31 - 1
Position: TypeAlias = Annotated[
    int, Field(ge=0, le=_MOST, description="Place of a document in the archive, from 0."), BeforeValidator(whole_number)
]
Note: TypeAlias = Annotated[str, Field(max_length=10_000)]
ExclusionReason: TypeAlias = Annotated[str, Field(max_length=LONGEST_EXCLUSION_REASON)]

AllTopics: TypeAlias = Annotated[
    bool,
    Field(description="Ask about the document that helps most over all topics, if the strategy of all is uncertain."),
]


class NewTopic(RequestModel):
    """A new topic; description, query and examples are optional."""

    topic: Name
    description: str = Field("", max_length=100_000, description="What the topic is about, in one or more sentences.")
    query: str = Field("", max_length=1000, description="Words that occur in its documents.")
    examples: list[str] = Field([], max_length=1000, description="Ids of documents that belong to it.")
    criteria: str = Field("", max_length=100_000, description="Criteria that people decide by; no evidence.")
    exclusion_reasons: list[ExclusionReason] = Field([], max_length=100, description="Reasons for no, to choose from.")
    person: Person = ""


class AnswerSent(RequestModel):
    """A person's answer on a document."""

    topic: Name
    position: Position
    answer: Answer
    person: Person = ""
    source: Literal["asked", "search", "list", "adjudicated"] = Field(
        "asked", description="How the document was found; an adjudicated answer replaces people's own answers."
    )
    others: dict[Name, Answer] = Field({}, max_length=1000, description="Answers on the document for other topics.")
    note: Note = ""
    exclusion_reason: ExclusionReason = Field("", description="Why not, with the answer no.")
    ask: bool = Field(True, description="Whether to answer with the next question.")
    all_topics: AllTopics = False


class UndoSent(RequestModel):
    """A request to retract a person's last answer, keyword or split of near-duplicates, and to ask again."""

    topic: Name
    person: Person = ""


class KeywordSent(RequestModel):
    """A keyword to add or remove: one or several words for or against a topic."""

    topic: Name
    term: str = Field(min_length=1, max_length=1000, examples=["walkout"])
    speaks_for: bool | None = Field(description="false: it speaks against the topic; null: remove the keyword.")
    person: Person = ""


class SplitSent(RequestModel):
    """A request to split records off from their group of near-duplicates; they become a group of their own."""

    positions: list[Position] = Field(min_length=1, max_length=1000)
    person: Person = ""


class OfTopic(QueryModel):
    """The topic of a request."""

    topic: Name


class QuestionQuery(OfTopic):
    """A request for the next question to a person."""

    person: Person = ""
    all_topics: AllTopics = False


class DocumentQuery(QueryModel):
    """A request for a document, with its judgements for a topic."""

    position: int = Field(ge=0, le=_MOST)
    topic: str = Field("", max_length=LONGEST_NAME)


class EvidenceQuery(OfTopic):
    """A request to explain the score of a document by its n most important terms."""

    position: int = Field(ge=0, le=_MOST)
    n: int = Field(60, ge=1, le=1000)


class SearchQuery(QueryModel):
    """A request to search for words, and the page of results to return."""

    query: str = Field(max_length=1000)
    topic: str = Field("", max_length=LONGEST_NAME, description="Return the answers for this topic.")
    person: str = Field("", max_length=100, description="Return the answers of this person.")
    offset: int = Field(0, ge=0, le=_MOST)
    limit: int = Field(20, ge=1, le=200)


class JudgementsQuery(OfTopic):
    """A request to list judgements, the latest first: those with a certain answer or by a certain person, or all."""

    answer: Literal["", "yes", "no", "skip"] = ""
    person: str | None = Field(None, max_length=100)
    offset: int = Field(0, ge=0, le=_MOST)
    limit: int = Field(50, ge=1, le=1000)


class DuplicatesQuery(QueryModel):
    """A request to list groups of near-duplicates."""

    offset: int = Field(0, ge=0, le=_MOST)
    limit: int = Field(50, ge=1, le=1000)


class ProgressQuery(OfTopic):
    """A request for the progress of a topic, with the recall to reach and the confidence of its estimate."""

    target: float = Field(0.95, gt=0, lt=1, allow_inf_nan=False)
    confidence: float = Field(0.95, ge=0.5, lt=1, allow_inf_nan=False)


class QueueQuery(QueryModel):
    """A request for a list of documents to review, by its name."""

    name: str = Field(max_length=1000)
    person: Person = ""


class ExportQuery(QueryModel):
    """A request to export something, and the format; some formats are for some exports only."""

    what: Literal["labels", "included", "counts", "corpus", "model", "audit", "records", "duplicates"]
    format: Literal["", "jsonl", "csv", "ris"] = Field(
        "", description="By default JSON Lines, but CSV for counts and records."
    )
    topic: str = Field("", max_length=LONGEST_NAME, description="Export only this topic; by default all.")


# --- answers ---------------------------------------------------------------------------------------------------------


class Counts(BaseModel):
    """The number of documents with each answer for a topic."""

    yes: int
    no: int
    skip: int


class TaughtTopic(BaseModel):
    """A topic of the session: its description, its keywords, and the number of answers of each kind."""

    topic: str
    description: str
    query: str
    criteria: str
    exclusion_reasons: list[str] = Field(description="Reasons for no, to choose from.")
    strategy: str = Field(description="The query strategy.", examples=["highest", "uncertain", "mixture"])
    counts: Counts
    keywords: dict[str, bool] = Field(description="Keywords that speak for the topic (true) or against it (false).")
    disagreements: int = Field(description="Number of documents on which people disagree.")


class QueueRow(BaseModel):
    """A list of documents to review: its name, its topic, and its number of documents."""

    name: str
    topic: str
    documents: int


class SessionAnswer(BaseModel):
    """The session: its documents, topics, people and lists."""

    session: str = Field(description="Identifies the session; if it is sent as `If-Match`, other sessions answer 412.")
    documents: int = Field(description="Documents of the archive; near-duplicates count once.")
    duplicates: int = Field(description="Further records of the archive: near-duplicates of these documents.")
    person: str | None = Field(description="The name of the key, if keys are needed.")
    people: list[str]
    topics: list[TaughtTopic]
    queues: list[QueueRow]


class DocumentRow(BaseModel):
    """A document in a list."""

    position: int
    id: str
    title: str


class JudgementRow(DocumentRow):
    """A person's judgement of a document."""

    topic: str
    answer: Answer
    person: str
    source: str
    note: str
    exclusion_reason: str
    at: str | None = Field(description="When, in UTC.")


class _Document(BaseModel):
    position: int
    id: str
    zones: dict[str, str]
    fields: dict[str, Any] = Field(description="Further fields of its record, such as authors, year, journal and doi.")


class DocumentAnswer(_Document):
    """A document and its judgements."""

    judgements: list[JudgementRow]


class QuestionAnswer(_Document):
    """A document to judge, and why it was chosen."""

    topic: str = Field(description="The topic that rank, score and the reason are of.")
    topics: list[str] = Field(description="The topics that the document is to be judged for.")
    rank: int | None = Field(description="Its rank by score among the documents without an answer, from 1.")
    score: float | None
    why: str = Field(examples=["highest score", "uncertain", "at random", "taken back"])
    n_answers: int
    answers: dict[str, str] = Field(description="The person's own answers on the document for other topics.")
    duplicates: list[str] = Field(description="Near-duplicates, which get the same answer.")


class NextAnswer(BaseModel):
    """The next question, and the counts; the question is null if no document is left, or the client wanted none."""

    question: QuestionAnswer | None
    counts: Counts


class UndoAnswer(NextAnswer):
    """The retracted judgements, and a question on their document; or the next question on the topic."""

    undone: list[JudgementRow] | None = Field(
        description="The judgements taken back; empty: a keyword or a split was; null: there was nothing to take back."
    )


class KeywordsAnswer(BaseModel):
    """The keywords of a topic: true if a keyword is evidence for the topic, false if it is evidence against it."""

    keywords: dict[str, bool]


class DuplicateRow(DocumentRow):
    """A record of a group of near-duplicates."""

    reference: str = Field(description="Authors, journal, year and DOI in a line; empty if the record has none.")


class DuplicatesAnswer(BaseModel):
    """A page of the groups of near-duplicates, each with its records, and the number of all groups."""

    total: int
    groups: list[list[DuplicateRow]]


class SplitAnswer(BaseModel):
    """The session's numbers of documents and of their near-duplicates, after records were split off."""

    documents: int
    duplicates: int


class EvidenceAnswer(BaseModel):
    """The score of a document for a topic, and the contributions of its terms."""

    topic: str
    position: int
    score: float | None
    bias: float
    reasons: list[dict[str, Any]]


class FoundRow(DocumentRow):
    """A document found by a search."""

    text: str
    answer: Answer | None = Field(description="The person's own answer.")
    label: bool | None = Field(description="The label that all answers give together.")


class SearchAnswer(BaseModel):
    """A page of search results, and the number of all documents found."""

    total: int | None
    documents: list[FoundRow]


class JudgementsAnswer(BaseModel):
    """A page of the judgements that a request asks for, the latest first, and the number of all of these judgements."""

    total: int
    judgements: list[JudgementRow]


class EstimateAnswer(BaseModel):
    """The estimated recall of a topic, with a lower and an upper bound at the required confidence."""

    rule: str
    recall: float
    low: float
    high: float
    relevant: float
    more: int | None = Field(description="Answers still needed if none of them is yes; null: not known yet.")


class BandAnswer(BaseModel):
    """An estimate of recall, and the number of answers that it is based on."""

    estimate: EstimateAnswer
    n_answers: int


class ProgressAnswer(BaseModel):
    """The progress of teaching a topic: counts, relevant documents found, estimated recall, and advice when to stop."""

    topic: str
    documents: int = Field(description="Documents of the archive; near-duplicates count once, here and below.")
    counts: Counts
    open: int = Field(description="Documents without an answer, or skipped.")
    found: int = Field(description="Documents of the topic that are found: those with the label yes.")
    at_random: int = Field(description="Answers on documents that were drawn at random.")
    curve: list[tuple[int, int]] = Field(
        description="Up to 400 pairs of a number of answers, and the number of documents found by then."
    )
    target: float
    confidence: float
    estimate: EstimateAnswer | None
    band: BandAnswer | None = Field(
        description="The latest informative estimate; others only say that most documents may belong to the topic."
    )
    advice: str = Field(description="A sentence that tells when to stop.")
    about_band: str = Field(description="A sentence that tells why there is no new band; empty if there is one.")
    pace: float | None = Field(description="Answers per minute.")


class ScreeningAnswer(BaseModel):
    """The number of records at each stage of screening, as the flow diagram of PRISMA 2020 asks for them."""

    topic: str
    identified: int
    unreadable: int
    duplicates: int = Field(description="Near-duplicates of an earlier record; the counts below leave them out.")
    screened: int
    included: int
    excluded: int
    exclusion_reasons: dict[str, int]
    not_screened: int


class PairRow(BaseModel):
    """The agreement of two people on the documents that both have judged."""

    people: tuple[str, str]
    documents: int = Field(description="Number of documents that both judged.")
    kappa: float | None


class DisagreementRow(DocumentRow):
    """A document on which people disagree, and each person's answer."""

    answers: dict[str, str]


class AgreementAnswer(BaseModel):
    """The agreement of people on a topic: over all pairs, for each pair, and the documents on which they disagree."""

    kappa: float | None = Field(description="Cohen's kappa; for several pairs the mean, weighted by their documents.")
    agreed: float | None = Field(description="The fraction of the pairs' documents on which both people agree.")
    documents: int
    pairs: list[PairRow]
    disagreements: list[DisagreementRow]


class QueueEntry(DocumentRow):
    """A document to review."""

    labelled: bool | None = Field(description="Whether it had the topic when the list was made.")
    answer: Answer | None = Field(description="The person's own answer.")


class QueueAnswer(BaseModel):
    """A list of documents to review for a topic."""

    name: str
    topic: str
    documents: list[QueueEntry]
