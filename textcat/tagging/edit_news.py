"""Tag the news items of a batch; return the edits that write the tags into their files, or the reasons against it.

An item that cannot be written with its tags is rejected here, with the reason. Other reasons against writing an item
are decided elsewhere: its file is not chosen (read_news.py), it is embargoed or canceled (reading/formats/news.py), no
model has its language (job.py), or its file is not written (`Fate` in write_news.py).
"""

import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from textcat.base.disk import resolved
from textcat.base.surrogates import escape_undecodable
from textcat.reading import (
    FORMATS,
    OWN,
    Batch,
    Block,
    FaultKind,
    InputSettings,
    Rejection,
    Subject,
    declared_encoding,
    is_cut_by_characters,
)
from textcat.runs.results import BatchResult
from textcat.tagging.concepts import CodeTable, Edit, NoPlaceError, Tag, concept_of
from textcat.tagging.encodings import Editor, edits_in
from textcat.tagging.job import Job, tag_batch
from textcat.tagging.output import MODEL
from textcat.tagging.tags_in_json import edits_of_ninjs
from textcat.tagging.tags_in_xml import EDITS_OF

log = logging.getLogger(__name__)

EDITORS: dict[str, Editor] = {**EDITS_OF, "ninjs": edits_of_ninjs}
_RSS_1 = re.compile(rb"<(?:[\w.-]+:)?RDF[\s>]")  # formats whose items have no categories
_BROKEN = frozenset({FaultKind.ACCESS, FaultKind.CHANGED, FaultKind.DAMAGE})


class EditJob(NamedTuple):
    """The settings by which a run tags batches and writes tags into news files."""

    job: Job
    creator: str  # name that signs the tags, without the id of the model
    codes: CodeTable = CodeTable()
    copies_rest: bool = False  # whether unread files are copied, in which case they are not errors


class EditedBlock(NamedTuple):
    """The edits that write tags into one block of a file: some whole records, one after the other."""

    source: str
    documents: int = 0  # number of items that were tagged
    edits: tuple[Edit, ...] = ()  # sorted by their positions in the unpacked file
    lacks_place: str = ""  # the format of the file, if it has no place for tags
    is_broken: bool = False  # whether the file must not be written
    is_unread: bool = False  # whether it cannot be read now, so that its content is unknown
    # None: positions refer to the stored bytes; otherwise, the `encoding` for `EditedStream`
    encoding: str | None = None
    reason: str = ""  # the reason to reject the file, or the first rejected part of it; "": nothing was rejected
    is_due: bool = False  # whether the file must be written again later, because it has news under embargo


def edit_batch(work: EditJob, batch: Batch) -> tuple[BatchResult, list[EditedBlock]]:
    """Tag the records of a batch; return the result, and the edits that write the tags into each block of the batch.

    A TextcatError is raised as by `tag_batch`.
    """
    blocks = [
        _reject_encoding(block, work.job.input) if isinstance(block, Block) else _excused(block, work)
        for block in batch.blocks
    ]
    kept = [block for block in blocks if isinstance(block, Rejection) or not _format_without_place(block)]
    # all versions, as each file is written
    tagged = tag_batch(work.job, batch._replace(blocks=tuple(kept)), all_versions=True)
    tags: dict[tuple[str, int], dict[str, Any]] = {}  # rows of documents
    for rows in tagged.rows:
        for row in map(orjson.loads, rows.splitlines()):
            tags[row["source"], row["position"]] = row
    tagged.rows = []
    places: set[tuple[str, int]] = set()
    edited = [_edits_of_block(work, block, tags, places, tagged) for block in blocks]
    reasons = {rejection.source: rejection.reason for rejection in reversed(tagged.rejections)}  # keep the first one
    due = {rejection.source for rejection in tagged.rejections if rejection.due is not None}
    return tagged, [item._replace(reason=reasons.get(item.source, ""), is_due=item.source in due) for item in edited]


def _reject_encoding(block: Block, settings: InputSettings) -> Block | Rejection:
    """Return a block of a file or, if tags cannot be written in its encoding, a Rejection of the file."""
    encoding = settings.for_file(block.source).encoding
    if not block.decoded or block.format not in EDITORS or is_cut_by_characters(encoding):
        return block
    reason = f"The file is in {encoding}, in which tags are not written back: convert it to UTF-8."
    return Rejection(block.source, 0, reason)


def _excused(rejection: Rejection, work: EditJob) -> Rejection:
    """Return a rejection; it becomes no error if its whole file, such as a picture, is copied unchanged.

    The kind of such a rejection becomes `FaultKind.LEFT_OUT`.
    """
    is_whole = not rejection.position and rejection.kind is FaultKind.CONTENT
    return rejection._replace(kind=FaultKind.LEFT_OUT) if work.copies_rest and is_whole else rejection


def _format_without_place(block: Block) -> str:
    """Return the format of a block if items of this format cannot contain tags; otherwise ""."""
    if block.format == "rss" and _RSS_1.search(block.header):
        return "RSS 1"
    return "" if block.format in EDITORS else block.format


def _edits_of_block(
    work: EditJob,
    block: Block | Rejection,
    tags: Mapping[tuple[str, int], dict[str, Any]],
    places: set[tuple[str, int]],
    tagged: BatchResult,
) -> EditedBlock:
    """Return the edits that write tags into a block; add its items to `places`, and rejections to `tagged`."""
    if isinstance(block, Rejection):
        is_part = block.position or block.kind is FaultKind.LEFT_OUT
        is_broken = block.kind in _BROKEN or not is_part
        return EditedBlock(block.source, is_broken=is_broken, is_unread=block.due is not None)
    if unwritable := _format_without_place(block):
        return EditedBlock(block.source, lacks_place=unwritable if block.data else "")
    edits, n, source, table = list[Edit](), 0, escape_undecodable(block.source), work.codes.concepts()
    settings = work.job.input.for_file(block.source)
    encoding = settings.encoding if block.decoded else None
    settings = settings._replace(encoding="utf-8") if block.decoded else settings
    declared = declared_encoding(block.header) if block.header and not settings.encoding else ""
    edit = partial(edits_in, settings.encoding or declared, EDITORS[block.format])
    for span in FORMATS[block.format].spans(block, settings):
        place = source, span.position
        row = tags.get(place)
        if row is None:
            continue
        if place in places:
            reason = "It has several feeds, whose items have the same numbers: write each feed to a file."
            _reject_tagged(Rejection(block.source, span.position, reason), tagged)
            return EditedBlock(block.source, is_broken=True)
        places.add(place)
        try:
            changes = edit(span.data, _tags(row["topics"], table), _signature(work.creator, row))
        except (LookupError, UnicodeError):
            name = settings.encoding or declared or "UTF-8"
            reason = f"It is in {name}, in which tags cannot be written into it: convert it to UTF-8."
        except NoPlaceError as error:
            reason = f"Its tags cannot be written into it, as {error}."
        except Exception as error:  # reject only this item, like a document that cannot be tagged
            log.warning("%s:%d cannot be written back", block.source, span.position, exc_info=error)
            reason = f"Its tags cannot be written into it ({type(error).__name__}: {error})."
        else:
            n += 1
            edits += (edit._replace(start=span.offset + edit.start, end=span.offset + edit.end) for edit in changes)
            continue
        _reject_tagged(Rejection(block.source, span.position, reason), tagged)
    return EditedBlock(block.source, n, tuple(edits), encoding=encoding)


def _reject_tagged(rejection: Rejection, tagged: BatchResult) -> None:
    """Add the rejection of an item, which counts as tagged before, to the result of a batch."""
    tagged.rejections.append(rejection)
    tagged.counts.add_rejections([rejection])
    tagged.counts.tagged -= 1


def _tags(topics: Sequence[dict[str, Any]], table: Mapping[str, Subject]) -> list[Tag]:
    """Return the tags for a news item, given its topics as rows of JSON Lines have them, and a table of codes.

    Each concept appears once.
    """
    largest = max((topic["score"] for topic in topics), default=0)
    tags: dict[str, Tag] = {}
    for topic in topics:
        name, probability = topic.get("name") or "", topic.get("probability")
        concept = table.get(topic["topic"]) or concept_of(topic["topic"], name)
        concept = concept if concept.name else concept._replace(name=name)
        relevance = max(round(100 * topic["score"] / largest), 0) if largest > 0 else None
        confidence = None if probability is None else round(100 * probability)
        tags.setdefault(concept.topic, Tag(concept, confidence, relevance))
    return list(tags.values())


def _signature(creator: str, row: Mapping[str, Any]) -> str:
    """Return the name that signs tags: `creator`, followed by the id of the model that tagged the row's document."""
    return f"{creator}-{row[MODEL]}" if MODEL in row else creator


def creator_of(model: Path) -> str:
    """Return the name that signs a model's tags in news files, without its id: ``textcat:`` and its folder's name."""
    return f"{OWN}:{re.sub('[^A-Za-z0-9_.-]+', '-', resolved(model).name) or 'model'}"
