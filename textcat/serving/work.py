"""Tag the documents of several requests together, which takes a tenth of the time of tagging each alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from textcat.model import Reason
from textcat.model.topic_names import name_entry
from textcat.serving.http.limits import bounded_time
from textcat.serving.http.problems import Problem

if TYPE_CHECKING:
    from textcat.model.selection import Tag
    from textcat.model.tagger import Tagger

Tags: TypeAlias = list[dict[str, Any]]


class Answer(NamedTuple):
    """A document's tags, the reason if it has no evidence for any topic, and its expected recall if requested."""

    tags: Tags
    reason: Reason | None
    expected_recall: float | None = None

    def entries(self, name: str, tags: Any) -> dict[str, Any]:
        """Return entries of a JSON object: the tags under `name`, and the other facts about the document."""
        more = {"reason": self.reason, "expected_recall": self.expected_recall}
        return {name: tags, **{entry: value for entry, value in more.items() if value is not None}}


_MOST_DOCUMENTS = 128  # maximum number of documents that are tagged before other requests have their turn,
# maximum number of their characters, if there are several documents: some milliseconds of work,
_MOST_CHARACTERS = 200_000
_MOST_TAGS = 1 << 18  # and maximum number of tags that they get
MOST_ANSWERED = 500_000  # maximum number of tags of all documents of a request: 200 MB until they are written


def number_of_characters(document: Any) -> int:
    """Return the number of characters of a text, or of all zones of a document."""
    return len(document) if isinstance(document, str) else sum(map(len, document.zones.values()))


class Choice(NamedTuple):
    """The options of a request: which topics of a document to return, and whether to return its expected recall."""

    top: int | None = None
    min_probability: float | None = None
    all_topics: bool = False
    expected_recall: bool = False


def _entry(tag: Tag, names: Mapping[str, str], *, with_status: bool) -> dict[str, Any]:
    """Return a tag as an object of JSON: with a status if the model makes promises, and with its name if it has one."""
    entry = tag._asdict()
    if not with_status:
        del entry["status"]
    return entry | name_entry(tag.topic, names) if names else entry


class Work:
    """Tag documents with one version of a model, for all requests that use this version.

    `on_batch` is called with the number of documents tagged together; `seconds` returns the maximum processor seconds
    of such a batch. `on_tagged` is called with the documents, the choice and the answers.
    """

    def __init__(
        self,
        tagger: Tagger,
        on_batch: Callable[[int], object],
        seconds: Callable[[], float],
        on_tagged: Callable[[Sequence[Any], Choice, list[Answer]], object] = lambda documents, choice, answers: None,
    ) -> None:
        self._tagger, self._on_batch, self._seconds, self._on_tagged = tagger, on_batch, seconds, on_tagged
        self._waiting: list[tuple[Any, Choice, asyncio.Future[Answer]]] = []
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}  # lock of requests with several documents

    def tag_one(self, document: Any, choice: Choice) -> asyncio.Future[Answer]:
        """Return a future for the tags of a document that `choice` asks for.

        Documents that arrive at the same time are tagged together.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._tag_waiting)
        self._waiting.append((document, choice, future))
        return future

    async def tag_all(
        self, documents: Sequence[Any], choice: Choice, pause: Callable[[], Awaitable[None]]
    ) -> list[Answer]:
        """Tag the documents of one request in parts, and return the tags of each document.

        `pause` is awaited after each part, so that other requests can be answered in between. Requests with several
        documents wait for each other, because the tags of all of them at once would fill the memory. Raise a Problem if
        the documents get too many tags.
        """
        answers: list[Answer] = []
        n_tags = 0
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            for part in self._parts(documents, choice):
                of_part = self.tags(part, choice)
                answers += of_part
                n_tags += sum(len(answer.tags) for answer in of_part)
                if n_tags > MOST_ANSWERED:
                    raise Problem(
                        413, f"The documents have more than {MOST_ANSWERED:,} tags: send fewer, or ask for fewer tags."
                    )
                await pause()
        return answers

    def tags(self, documents: Sequence[Any], choice: Choice) -> list[Answer]:
        """Tag documents together, and return the answer for each document.

        Raise a Problem if this takes too long, or if the choice needs probabilities or promises that the model lacks.
        """
        top, least, all_topics, with_recall = choice
        tagger = self._tagger
        if least is not None and tagger.decisions.calibration is None:
            raise Problem(422, "The model has no probabilities: leave out min_probability.")
        if with_recall and tagger.decisions.promises is None:
            raise Problem(422, "The model makes no promises: leave out expected_recall.")
        self._on_batch(len(documents))
        all_topics, names = all_topics and top is None, tagger.topic_names
        with bounded_time(self._seconds()):
            tagged = tagger.tag(documents, top=top, all_topics=all_topics, min_probability=least)
            recalls = tagger.expected_recalls(documents).tolist() if with_recall else [None] * len(documents)
        entry = partial(_entry, names=names, with_status=tagger.decisions.promises is not None)
        of_documents = ([*map(entry, tags)] for tags in tagged)
        answers = [*map(Answer, of_documents, tagged.reasons, recalls)]
        self._on_tagged(documents, choice, answers)
        return answers

    def topics_of(self, document: Any) -> list[str]:
        """Return the topics of a document that no client asked to tag, so that neither alarms nor a shadow count it."""
        with bounded_time(self._seconds()):
            (tags,) = self._tagger.tag([document])
        return [tag.topic for tag in tags]

    def _tag_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        groups: dict[Choice, list[tuple[Any, asyncio.Future[Answer]]]] = {}
        for document, choice, future in waiting:
            if not future.cancelled():
                groups.setdefault(choice, []).append((document, future))
        for choice, group in groups.items():
            start = 0
            for part in self._parts([document for document, _ in group], choice):
                self._answer(part, choice, [future for _, future in group[start : start + len(part)]])
                start += len(part)

    def _answer(self, documents: list[Any], choice: Choice, futures: list[asyncio.Future[Answer]]) -> None:
        try:
            for future, answer in zip(futures, self.tags(documents, choice), strict=True):
                future.set_result(answer)
        except Exception as error:
            if len(futures) == 1:
                futures[0].set_exception(error)
                return
            for document, future in zip(documents, futures, strict=True):  # only the faulty document fails
                if not future.done():
                    self._answer([document], choice, [future])

    def _parts(self, documents: Sequence[Any], choice: Choice) -> Iterator[list[Any]]:
        part: list[Any] = []
        characters, most = 0, _MOST_DOCUMENTS
        may_be_all = choice.all_topics or choice.min_probability is not None
        if n := choice.top or (len(self._tagger.topics) if may_be_all else 0):
            most = max(1, min(most, _MOST_TAGS // n))
        for document in documents:
            length = number_of_characters(document)
            if part and (len(part) == most or characters + length > _MOST_CHARACTERS):
                yield part
                part, characters = [], 0
            part.append(document)
            characters += length
        if part:
            yield part
