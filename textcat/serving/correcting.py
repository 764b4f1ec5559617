"""The route for corrections: clients say which topics of a document are right and wrong."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import Any, TypeVar

from textcat.base.errors import TextcatError, did_you_mean
from textcat.corpus.corrections import Correction
from textcat.corpus.documents import Document
from textcat.reading.labels import label_name
from textcat.serving import schemas as s
from textcat.serving.http.front import Call
from textcat.serving.http.problems import Problem
from textcat.serving.http.routes import check_declared, problems, router
from textcat.serving.models import Model
from textcat.serving.people import person_of
from textcat.serving.store import Served, served_model

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_COMPARED = 1000  # maximum number of topics that an unknown name is compared with: some 50 ms

routes = router("correct")


@routes.post(
    "/api/v1/models/{model}/corrections", response_model=s.CorrectionAnswer, responses=problems(507, body=True)
)
async def corrections(model: Model, body: s.CorrectRequest, call: Call) -> dict[str, Any]:
    """Save a person's corrections of a document (topics that are right, and topics that are wrong) to disk.

    If a person sends several corrections of a document, the last one about a topic is used; so sending the opposite
    retracts a correction, and sending it twice has no further effect. If people disagree, the majority is used, and if
    there is none, the last correction; corrections without `person` count as one person's.
    """
    check_declared(call)
    served = served_model(call, model, 1)
    if call.app.corrections is None:
        raise Problem(404, "This server takes no corrections: start it with --corrections FOLDER.")
    document = body.document
    whole = Document("", {"body": document}) if isinstance(document, str) else document
    if not any(map(str.strip, whole.zones.values())):
        raise Problem(422, "The document has no text, so nothing can be learnt from it: send its text.")
    id_ = body.id or _id_of(whole.zones)
    right, wrong = _names(served, body.right), _names(served, body.wrong)
    # Who adds a topic that the model lacks must be able to retract it.
    is_new = not {*wrong} <= served.columns.keys()
    added = await _call_in_thread(call, call.app.corrections.topics_of, id_) if is_new else set[str]()
    _check_topics(served, right, wrong, added)
    correction = Correction(
        replace(whole, id=id_, topics=tuple(served.work.topics_of(document))),
        {**dict.fromkeys(right, True), **dict.fromkeys(wrong, False)},
        person=person_of(call, body.person),
        via=body.via,
        model=served.version,
        note=body.note,
    )
    (saved,) = await _call_in_thread(call, call.app.corrections.add, correction)
    return {
        **served.named,
        "number": saved.number,
        "time": saved.at,
        "id": saved.document.id,
        "before": saved.before,
        "after": saved.after,
        "new": [topic for topic in right if topic not in served.columns],
    }


def _names(served: Served, topics: Iterable[str]) -> list[str]:
    """Return names of topics, each once: those of the model as they are, others as corpora have them."""
    return [*dict.fromkeys(topic if topic in served.columns else label_name(topic) for topic in topics)]


async def _call_in_thread(call: Call, function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    """Call a function that reads or writes stored corrections, in a thread; raise a Problem if it fails."""
    try:
        return await asyncio.to_thread(function, argument)
    except TextcatError as error:
        # leave out the folder, which is not the client's business
        call.front.log.write("corrections_failed", error=str(error))
        raise Problem(
            507, "The correction could not be written to the server's disk, and was not saved: send it again later."
        ) from None


def _check_topics(served: Served, right: list[str], wrong: list[str], added: Set[str]) -> None:
    """Raise a Problem if a correction names no topic, calls one both right and wrong, or an unknown one wrong.

    `added` are the document's topics by former corrections.
    """
    if not right and not wrong:
        raise Problem(422, "The correction names no topic: give topics that are `right`, `wrong`, or both.")
    if "" in right:
        raise Problem(422, "The name of a topic has no characters that are seen: give another.")
    for topic in wrong:
        if topic in right:
            raise Problem(422, f"The topic {topic!r:.100} is both right and wrong: name it once.")
        if topic not in served.columns and topic not in added:
            hint = did_you_mean(topic[:100], list(served.columns)[:_COMPARED])
            raise Problem(422, f"The model has no topic {topic!r:.100} that could be wrong.{hint}")


def _id_of(zones: dict[str, str]) -> str:
    """Return an id that is the same for the same texts, whoever sends them."""
    return f"text-{hashlib.sha256(json.dumps(zones, sort_keys=True).encode()).hexdigest()[:16]}"
