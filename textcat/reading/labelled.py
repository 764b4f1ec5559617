"""Read the documents of a corpus with their labels; anything unreadable is an error."""

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING

from textcat.base.errors import TextcatError, first_of
from textcat.base.surrogates import escape_undecodable
from textcat.reading.compression import plain_name
from textcat.reading.cutting import Place
from textcat.reading.discovery import find_sources
from textcat.reading.document import Document
from textcat.reading.faults import FaultKind, RefusedError, UnreadableError
from textcat.reading.formats import DOCUMENTS, REFERENCES, WHOLE, annif, block_records
from textcat.reading.input_settings import LAST, InputSettings, LabelSettings
from textcat.reading.labels import refuse_shared_field, unique_names, warn_of_missing_parts, with_meanings
from textcat.reading.layouts import BY_PLACE, Layout
from textcat.reading.recognition import ARCHIVES, FOLDERS
from textcat.reading.records import NO_VERSION, Block, Record, Rejection, log_left_out
from textcat.reading.source_reader import Opened, SourceReader, Wanted
from textcat.reading.sources import Source
from textcat.reading.versions_of_news import without_superseded

if TYPE_CHECKING:
    from textcat.base.progress import Bar

log = logging.getLogger(__name__)


class DamagedError(TextcatError):
    """Raised for a file or archive that is truncated or changed, or whose content does not match its name.

    The message gives the reason.
    """

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(f"{path} is damaged or incomplete ({reason}): fetch or copy it again.")


def read_documents(
    inputs: Iterable[str | PathLike[str]],
    settings: InputSettings,
    wanted: Wanted | None = None,
    opened: Opened | None = None,
    as_read: Callable[[Record], object] | None = None,
    progress: "Bar | None" = None,
) -> list[Document]:
    """Read the documents of a corpus, with their topics, dates and parts, in the order of their files' names.

    The topic of a text is the name of its folder; the topic of the documents in an mbox or a file of lines is the name
    of the folder, or else of the file. A folder that holds everything is not a topic. If neither a document nor its
    format gives the document's part, the name of its file or folder does, if it is ``train`` or ``test`` or ends in one
    of these (or in ``training``, ``testing``, ``dev`` and the like, see `layouts.part_of`), and if names of both kinds
    are next to each other, in the same folder. No other name gives a part. The messages of a Maildir have the topic of
    the folder above ``cur`` and ``new``.

    The inputs are those of `find_sources`. A TextcatError is raised if anything cannot be read, or if two documents
    have the same id.

    `wanted` takes the name of a file inside its input, without an ending such as ".gz", and returns whether to read the
    file. So the ``append`` of a list, which returns None, lists all files, and none is read. Archives are
    always opened. `opened` takes the name and the stream of a file to read, and returns the stream to read instead, or
    None to skip the file. `as_read` takes each record as soon as it is read, in stored order; the document
    made of it later has the same object as `zones`. `progress` shows how many bytes of the inputs have been read.
    """
    inputs = list(inputs)
    was_enabled = gc.isenabled()
    gc.disable()  # garbage collection would scan all documents again and again
    try:
        subjects: dict[str, tuple[str, ...]] = {}
        labelled = read_labelled(inputs, settings, wanted, opened, as_read, subjects, progress)
        if settings.format == FOLDERS:  # formats whose keywords are not used as topics
            labelled = (
                ("text", record._replace(topics=())) if form in REFERENCES else (form, record)
                for form, record in labelled
            )
        records = _without_left_out(sorted(labelled, key=lambda pair: pair[1].source))
        _find_topics(records, ", ".join(map(str, inputs)))
        # formats that are divided by record, not by position
        are_labelled = BY_PLACE.isdisjoint(form for form, _ in records)
        unused = settings.labels is None or settings.labels.unused
        documents = _documents_of(records, ", ".join(map(str, inputs)), subjects, unused=unused)
        if are_labelled:
            documents = with_meanings(documents, "" if settings.is_default("topics_field") else settings.topics_field)
        return _with_last_for_test(documents, settings.labels, inputs)
    finally:
        if was_enabled:
            gc.enable()


def _find_topics(records: list[tuple[str, Record]], location: str) -> None:
    """Take the topics of JSON records, in place, from the one field with a usual name (see `Record.candidates`).

    TextcatError is raised if the records have several such fields, or if a value is unreadable. If any record has the
    field ``topics``, no other field is used. `location` names the inputs in messages.
    """
    names = dict.fromkeys(name for _, record in records for name in record.candidates or ())
    if "topics" in names:
        if len(names) > 1:
            others = ", ".join(repr(name) for name in names if name != "topics")
            log.warning(
                "%s: records without the field 'topics' have no topics, as %s counts only if no record has that field; "
                "--topics-field chooses.",
                *(location, others),
            )
        return
    if len(names) > 1:
        raise TextcatError(
            f"{location} may have its topics in {' or '.join(map(repr, names))}: name the topics' field with "
            "--topics-field (in some files only, with --for; in Python topics=)."
        )
    for name in names:
        log.warning("%s: topics from %r, by its usual name; --topics-field chooses.", location, name)
    for i, (form, record) in enumerate(records):
        for labels in (record.candidates or {}).values():
            if isinstance(labels, UnreadableError):
                fault = labels
                raise TextcatError(f"{location}: {record.source}:{record.position} {fault}.")
            judged = labels.labelled_for if record.labelled_for is None else record.labelled_for
            records[i] = form, record._replace(topics=labels.topics, labelled_for=judged)


def _documents_of(
    records: list[tuple[str, Record]], location: str, subjects: Mapping[str, tuple[str, ...]], *, unused: bool
) -> list[Document]:
    """Return the documents of (format, record) pairs; the list of pairs is emptied, to free memory.

    `subjects` has the topics of texts. Its keys are the paths of the text files inside their input, without the ending
    ``.txt``. If any text has topics there, every text must have an entry, which may be empty. A TextcatError is raised
    if an entry is missing, or if two documents have the same id. `location` names the inputs in messages. `unused` is
    that of `LabelSettings`.
    """
    by_place = {record.source for form, record in records if form in BY_PLACE}
    layout = Layout({record.source for _, record in records}, by_place)
    if layout.alone and not any(record.split for _, record in records):
        above = layout.alone.rpartition("/")[0]
        log.warning(
            "%s: the documents of %s count like the others: a name makes a test part only next to a training part, and "
            "there is no %s.",
            *(location, layout.alone, f"{above}/train".lstrip("/")),
        )
    listed, tidied = any(subjects.values()), lru_cache(maxsize=1024)(_encodable_names)
    if len({record.id for _, record in records}) < len(records):
        _refuse_twins(
            (
                (form, record)
                for form, record in records
                if listed or form not in BY_PLACE or record.topics or layout.topics_of(record.source, form)
            ),
            location,
        )
    in_parts = {record.source for _, record in records if record.split}  # files whose records name their parts
    of_parts = [record.split for _, record in records if record.source in in_parts]
    warn_of_missing_parts(of_parts.count(""), len(of_parts), location)
    documents: list[Document] = []
    without_topic: list[str] = []
    n_unused = 0
    records.reverse()
    while records:
        form, record = records.pop()
        if record.split == "unused" and not (unused or record.zones):  # only its id was wanted
            continue
        topics, part = record.topics, record.split
        if form == "text" and listed:
            topics = _listed_topics(record.source, subjects, location)
            part = layout.part_of(f"{record.source}/", form)  # formats whose folder is not the topic
        elif form in DOCUMENTS and not topics and layout.lies_in_part(record.source):
            without_topic.append(record.source)
            continue
        elif form in BY_PLACE and not topics:
            topics = layout.topics_of(record.source, form)
            if not topics:
                continue
        if not part and (part := layout.part_of(record.source, form)) == "unused":
            n_unused += 1
        documents.append(
            Document(escape_undecodable(record.id), record.zones, tidied(topics), record.date, part, *record[5:8])
        )
    if n_unused:
        log.warning(
            "%s: %d documents of the validation part are for neither training nor testing; to measure models on them, "
            "call their file or folder test.",
            *(location, n_unused),
        )
    _refuse_without_topics(documents, without_topic, location)
    return documents


def _encodable_names(topics: tuple[str, ...]) -> tuple[str, ...]:
    return unique_names(map(escape_undecodable, topics))  # the name of a folder may not be UTF-8


def _listed_topics(name: str, subjects: Mapping[str, tuple[str, ...]], location: str) -> tuple[str, ...]:
    stem = name if name in subjects else annif.stem_of_name(name)
    if stem not in subjects:
        raise TextcatError(
            f"{location}: {name} has no {PurePath(stem).name}.tsv or .key next to it, nor a line in "
            f"{annif.CATEGORIES}, as other texts have: add one with the subjects of the text, empty if it has "
            "none, or remove the text."
        )
    return subjects[stem]


def _refuse_without_topics(documents: Sequence[Document], without_topic: Sequence[str], location: str) -> None:
    """Log the files (`without_topic`) in no topic's folder of their part; raise TextcatError if no others exist."""
    if without_topic and not documents:
        raise TextcatError(
            f"{location}: {without_topic[0]} and all other texts lie in a training or test part, but in no topic's "
            "folder there: put them into folders per topic, or give their topics as fields of JSON Lines or CSV."
        )
    if without_topic:
        shown = first_of(without_topic)
        log.warning("%s: %d files in no topic's folder are left out: %s.", location, len(without_topic), shown)


def _without_left_out(records: list[tuple[str, Record]]) -> list[tuple[str, Record]]:
    """Return the records of a corpus, except older versions, and records that are left out, such as canceled news."""
    if all(record.version == NO_VERSION and not record.left_out for _, record in records):
        return records
    items = list(without_superseded(record for _, record in records))
    for item in items:
        if isinstance(item, Rejection):
            log_left_out(item.source, item.reason)
    return [pair for pair, item in zip(records, items, strict=True) if isinstance(item, Record)]


def _refuse_twins(records: Iterable[tuple[str, Record]], location: str) -> None:
    seen: dict[str, tuple[str, Record]] = {}
    for pair in records:
        if (other := seen.setdefault(pair[1].id, pair)) is not pair:
            twins = (other, pair)
            places = [
                f"in {record.source}" if form in WHOLE else f"in {record.source}:{record.position}"
                for form, record in twins
            ]
            raise TextcatError(
                f"{location} has two documents {pair[1].id!r}, {' and '.join(places)}: remove one of them, "
                "or name another field of ids with --id-field (in some files only, with --for)."
            )


def _with_last_for_test(
    documents: list[Document], labels: LabelSettings | None, inputs: list[str | PathLike[str]]
) -> list[Document]:
    """Assign the last documents to the test part if `LabelSettings.test` says so, the others to training."""
    if not documents or labels is None or not (last := LAST.fullmatch(labels.test)):
        return documents
    n = len(documents) - int(last[1])
    if n <= 0:
        held = f"{', '.join(map(str, inputs))} has {len(documents)} documents"
        raise TextcatError(f"{held}, so the {labels.test} cannot be its test part: name fewer in the card's 'test'.")
    documents[n:] = [replace(document, split="test") for document in documents[n:]]
    return [
        replace(document, split="") if document.split and i < n else document for i, document in enumerate(documents)
    ]


def read_labelled(
    inputs: Iterable[str | PathLike[str]],
    settings: InputSettings,
    wanted: Wanted | None,
    opened: Opened | None = None,
    as_read: Callable[[Record], object] | None = None,
    subjects: dict[str, tuple[str, ...]] | None = None,
    progress: "Bar | None" = None,
) -> Iterator[tuple[str, Record]]:
    """Yield the format and the record of each document, in the order in which the inputs store them.

    A record's source is the name of its file inside the input. If a file lists the subjects of a text, the subjects are
    added to the dict `subjects`, with the text's source without ``.txt`` as key. For the other parameters see
    `read_documents`.
    """
    settings = settings if settings.labels is not None else settings._replace(labels=LabelSettings())
    refuse_shared_field(settings.text_fields, settings.topic_fields or settings.topics_field)
    sources = find_sources(inputs, settings)
    total, before, shown = sum(source.size or 0 for source in sources), 0, 0
    for source in sources:
        reader = SourceReader(source, settings, wanted, opened)
        try:
            for item, _, read in reader.steps(Place()):
                assert isinstance(item, Block)  # a Rejection was raised as an error
                if len(sources) > 1:
                    above = plain_name(source.name)
                    item = item._replace(source=above if source.kind == "file" else f"{above}/{item.source}")
                for record in block_records(item, settings):
                    assert isinstance(record, Record)
                    if as_read is not None:
                        as_read(record)
                    yield item.format, record
                if progress is not None and before + read - shown >= total / 100:  # there may be one step per file
                    shown = before + read
                    progress.show(completed=shown, total=total or None)
        except RefusedError as refusal:
            raise _error(refusal, source, reader) from None
        if subjects is not None:
            above = f"{plain_name(source.name)}/" if len(sources) > 1 else ""
            subjects.update({f"{above}{stem}": listed for stem, listed in reader.subjects.items()})
        before += source.size or 0


def _error(refusal: RefusedError, source: Source, reader: SourceReader) -> TextcatError:
    """Return the error for an unreadable part of a corpus, with its file, its position there, and the remedy.

    `reader` was reading `source` when it raised `refusal`.
    """
    fault, name, kind, detail = refusal.fault, refusal.source, refusal.fault.kind, refusal.fault.detail
    if kind is FaultKind.DAMAGE:
        inner = name[len(reader.on_disk) :].lstrip("/") if name.startswith(reader.on_disk) else ""
        return DamagedError(reader.on_disk, f"{inner}: {detail}" if inner else detail)
    if kind is FaultKind.UNSAFE:
        return TextcatError(f"{reader.on_disk} holds {detail}, so nothing of it is read: get it again from its source.")
    inside = reader.inside(name) if name.startswith(source.name) else name
    is_file = source.kind != "folder" and source.format not in ARCHIVES
    location = source.name if is_file else f"{inside} in {source.name}"
    if kind in (FaultKind.ACCESS, FaultKind.UNLISTED):
        return TextcatError(f"{location} {fault}: check the file and your rights to it.")
    if kind is FaultKind.STORY:
        return TextcatError(f"{location}: {detail}.")
    if not refusal.part:
        return TextcatError(f"{location} {fault}.")
    return TextcatError(f"{location}: {refusal.part[0].lower()}{refusal.part[1:]} {fault}.")
