"""Read the shards (output files) of a run again, to list their documents or to remove some of them."""

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from textcat.base.errors import TextcatError
from textcat.base.spreadsheets import plain_text, texts_of_cell
from textcat.base.surrogates import escape_undecodable
from textcat.corpus.corrections import ArchivePlace
from textcat.model import Reason
from textcat.reading import START_OVER, FaultKind, Rejection, superseded_reason
from textcat.reading.dates import month_of
from textcat.runs.files import checksum_of_source, is_within, tagged_files
from textcat.runs.news_version_chunks import hash_of_id
from textcat.runs.news_versions import OldRows
from textcat.runs.records import facts_of_run, own_journal
from textcat.runs.results import Counts
from textcat.runs.settling import RemovedRows
from textcat.runs.shard_writer import counted_topics_path
from textcat.tagging.groups import FIELD, group_at
from textcat.tagging.output import MODEL, REASON, RULES, OutputSettings, file_format, text_of_value

_MOST_UNPACKED = 1 << 31  # bytes of a shard, which has some 64 MiB before compression

Row: TypeAlias = tuple[str, int, str]  # the source, the position and the id of a document


class TaggedDocument(NamedTuple):
    """A document in the output of a run: its id, its source and position in the input, and its topics."""

    id: str
    source: str
    position: int
    topics: tuple[str, ...]
    reason: str | None = None  # reason why it gives no evidence for any topic
    probabilities: tuple[float | None, ...] = ()  # probabilities of the topics; None: the model has none
    # statuses of the topics; None: the model makes no promises, or rows have no statuses
    statuses: tuple[str | None, ...] = ()
    model: str = ""  # id of the model that tagged it; "": no model has its language
    date: str = ""  # date; "" if it has none
    group: str = ""  # its group of duplicates; "": tagged without --duplicates

    @property
    def repeats_another(self) -> bool:
        """Whether the document repeats an earlier one, as far as its group of duplicates is known."""
        return self.group not in ("", group_at(self.source, self.position))


class TagShard(NamedTuple):
    """A shard of a folder of tags."""

    path: Path
    was_replaced: bool  # whether rows were removed from it since it was written
    is_escaped: bool = True  # whether texts of CSV are cells of `safe_cell`
    rules: str | None = None  # digest of the house rules by which its tags were chosen; None: there were none


def remove_rows(settings: OutputSettings, path: Path, names: Collection[str], rows: OldRows) -> RemovedRows:
    """Return the content of a shard without the rows of some input files, and without rows replaced by newer versions.

    A shard is an output file. `names` has the input files. `rows` has the rows of news that may have newer versions,
    and tells which of them are replaced. Rows found in the shard are dropped from `rows`; those replaced are returned
    as rejections.
    """
    rejections: list[Rejection] = []
    places = {key[:2] for key in rows}
    is_stale = is_within({*map(escape_undecodable, names)})

    def is_removed(document: TaggedDocument) -> bool:
        if is_stale(document.source):
            return True
        place = document.source, document.position
        waiting = rows.get((*place, hash_of_id(document.id))) if place in places else None
        if waiting:
            row = waiting.pop(0)
            if row.is_removed:
                reason = superseded_reason(document.id, row.is_withdrawn)
                rejections.append(Rejection(*place, reason, kind=FaultKind.LEFT_OUT))
            return row.is_removed
        return False

    content = _content_without(settings, path, is_removed)
    content.counts.records += len(rejections)
    content.counts.add_rejections(rejections)
    return content._replace(rejections=rejections)


def _content_without(settings: OutputSettings, path: Path, removed: Callable[[TaggedDocument], bool]) -> RemovedRows:
    counts, form = Counts(), file_format(settings)
    counted = None if settings.shows_counted else _counted_topics(path)

    def count(document: TaggedDocument) -> None:
        """Subtract a document, with its topics, from the counts."""
        topics: Sequence[str] = document.topics
        if counted is not None:
            topics = counted.get((document.source, document.position), ())
        counts.records -= 1
        counts.tagged -= 1
        counts.inputs[document.source] -= 1
        counts.untagged -= not topics
        counts.unknown -= document.reason == Reason.NO_KNOWN_TERM
        counts.topics.subtract({*topics})
        month = month_of(document.date)
        counts.months[month] -= 1
        counts.months_untagged[month] -= not topics
        counts.months_unknown[month] -= document.reason == Reason.NO_KNOWN_TERM
        counts.months_topics.subtract({f"{month} {topic}" for topic in topics})

    if settings.to == "parquet":
        data = _without_parquet(path, removed, form, count)
    else:
        parts = [form.begin()]
        for document, row in _rows_of(TagShard(path, was_replaced=True, is_escaped=not settings.no_csv_escape)):
            if removed(document):
                count(document)
            else:
                parts.append(form.add(row))
        data = b"".join([*parts, form.end()])
    return RemovedRows(data, counts)


def _counted_topics(shard: Path) -> dict[tuple[str, int], Sequence[str]]:
    """Return the topics that the run's summary counts for each row of a shard, by source and position."""
    path = counted_topics_path(shard)
    try:
        lines = map(orjson.loads, path.read_bytes().splitlines())
        return {(source, position): topics for source, position, topics in lines}
    except (OSError, ValueError):
        raise TextcatError(f"{path} is missing or changed: restore it, or {START_OVER}.") from None


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".zst":
        return data
    import zstandard

    return zstandard.ZstdDecompressor().decompress(data, max_output_size=_MOST_UNPACKED)


def _rows_of(shard: TagShard) -> Iterator[tuple[TaggedDocument, bytes]]:
    """Yield each document of a shard of JSON Lines or CSV, with the bytes of its rows."""
    is_csv = ".csv" in shard.path.name
    return _csv_rows(shard) if is_csv else _json_rows(_unpacked(shard.path))


def _json_rows(data: bytes) -> Iterator[tuple[TaggedDocument, bytes]]:
    for line in data.splitlines(keepends=True):
        row = orjson.loads(line)
        yield _document_of(row), line


def _document_of(row: dict[str, Any]) -> TaggedDocument:
    """Return the document of a row of JSON Lines or Parquet."""
    tags = row["topics"]
    topics = tuple([tag["topic"] for tag in tags])
    probabilities = tuple([tag.get("probability") for tag in tags])
    statuses = tuple([tag.get("status") for tag in tags])
    about, model = (topics, row.get(REASON), probabilities, statuses), row.get(MODEL) or ""
    group = text_of_value(row.get("fields", row).get(FIELD))
    return TaggedDocument(row["id"], row["source"], row["position"], *about, model, row.get("date") or "", group)


def _csv_cells(shard: TagShard) -> Iterator[tuple[dict[str, str], bytes]]:
    """Yield the cells of each row of a CSV shard by the names of their columns, and the bytes of the row."""
    head, _, rest = _unpacked(shard.path).partition(b"\n")
    names = _texts_of_row(head, shard)
    for row in _csv_records(rest):
        yield dict(zip(names, _texts_of_row(row, shard), strict=True)), row


def _texts_of_row(row: bytes, shard: TagShard) -> list[str]:
    cells = next(csv.reader(io.StringIO(row.decode(), newline="")))
    return [plain_text(cell) for cell in cells] if shard.is_escaped else cells


def _csv_rows(shard: TagShard) -> Iterator[tuple[TaggedDocument, bytes]]:
    document: TaggedDocument | None = None
    rows: list[bytes] = []
    for cells, row in _csv_cells(shard):
        topics, probabilities, statuses = (_texts(cells, one, all_) for one, all_ in _OF_TAGS)
        n = len(topics)
        row_document = TaggedDocument(
            cells["id"],
            cells["source"],
            int(float(cells["position"])),
            topics,
            cells.get(REASON) or None,
            tuple(float(p) if p else None for p in probabilities) or (None,) * n,
            tuple(status or None for status in statuses) or (None,) * n,
            cells[MODEL],
            cells["date_text"],
            cells.get(FIELD, ""),
        )
        if document is not None and row_document[:3] == document[:3]:
            joined = {name: getattr(document, name) + getattr(row_document, name) for name in _LISTS}
            document, rows = document._replace(**joined), [*rows, row]
            continue
        if document is not None:
            yield document, b"".join(rows)
        document, rows = row_document, [row]
    if document is not None:
        yield document, b"".join(rows)


# Columns with a fact about one tag, and those with a list for all tags of a document.
_OF_TAGS = (("topic", "topics"), ("probability", "probabilities"), ("status", "statuses"))
_LISTS = ("topics", "probabilities", "statuses")


def _texts(cells: dict[str, str], one: str, all_: str) -> tuple[str, ...]:
    return tuple(texts_of_cell(cells[all_])) if all_ in cells else tuple(filter(None, [cells.get(one, "")]))


def _csv_records(data: bytes) -> Iterator[bytes]:
    """Split CSV into rows; line ends within quotation marks end no row."""
    begin, end, is_quoted = 0, 0, False
    for line in data.split(b"\n")[:-1]:
        end += len(line) + 1
        is_quoted ^= bool(line.count(b'"') % 2)
        if not is_quoted:
            yield data[begin:end]
            begin = end


def _without_parquet(
    path: Path,
    removed: Callable[[TaggedDocument], bool],
    form: Any,
    count: Callable[[TaggedDocument], object],
) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = (table.column(name).to_pylist() for name in ("id", "source", "position", "topics", REASON, "date_text"))
    keep = []
    for id_, source, position, tags, reason, date in zip(*columns, strict=True):
        topics = tuple(tag["topic"] for tag in tags)
        document = TaggedDocument(id_, source, position, topics, reason, date=date or "")
        keep.append(not removed(document))
        if not keep[-1]:
            count(document)
    form.begin()
    stream = io.BytesIO()
    kept = table.filter(pa.array(keep, pa.bool_()))
    with pa.ipc.new_stream(stream, kept.schema) as writer:
        writer.write_table(kept)
    form.add(stream.getvalue())
    data: bytes = form.end()
    return data


def shards_of(folder: Path) -> list[TagShard]:
    """Return the shards of a folder of tags, in order; raise a TextcatError if the folder has none."""
    journal = own_journal(folder) if folder.is_dir() else None
    lines = [] if journal is None else journal.lines
    is_escaped = not facts_of_run(folder).get("--no-csv-escape")
    replaced = {line["name"] for line in lines if line.get("record") == "replaced"}
    shards: list[TagShard] = []
    rules: str | None = None
    for line in lines:
        if "facts" in line:
            rules = line["facts"].get(RULES)
        elif line.get("record") == "shard" and line["name"]:
            shards.append(TagShard(folder / line["name"], line["name"] in replaced, is_escaped, rules))
    if not shards:
        raise TextcatError(f"{folder} has no tags: name a folder that `textcat tag --out` has written.")
    return shards


def read_tags(folder: Path) -> Iterator[TaggedDocument]:
    """Yield the documents of a folder of tags, in order; raise a TextcatError if the folder has none."""
    for shard in shards_of(folder):
        yield from read_shard(shard)


def read_shard(shard: TagShard) -> Iterator[TaggedDocument]:
    """Yield the documents of a shard, in order."""
    if ".parquet" in shard.path.name:
        import pyarrow.parquet as pq

        columns = ["id", "source", "position", "date_text", "topics", REASON, MODEL]
        with_group = FIELD in pq.read_schema(shard.path).names
        table = pq.read_table(shard.path, columns=[*columns, FIELD] if with_group else columns)
        for row in table.rename_columns({"date_text": "date"}).to_pylist():
            yield _document_of(row)
    else:
        for document, _ in _rows_of(shard):
            yield document


def read_field(shard: TagShard, name: str) -> dict[tuple[str, int], str]:
    """Return a kept field of each row of a shard as text ("" if it is missing), by the row's source and position.

    `name` is the field's name, or "source" for the input file.
    """
    if ".parquet" in shard.path.name:
        import pyarrow.parquet as pq

        rows = pq.read_table(shard.path, columns=[*dict.fromkeys(("source", "position", name))]).to_pylist()
    elif ".csv" in shard.path.name:
        rows = [cells for cells, _ in _csv_cells(shard)]
    else:
        rows = [row.get("fields", {}) | row for row in map(orjson.loads, _unpacked(shard.path).splitlines())]
    return {(row["source"], int(float(row["position"]))): text_of_value(row.get(name)) for row in rows}


def find_documents(folder: Path, wanted: Collection[ArchivePlace]) -> dict[ArchivePlace, TaggedDocument]:
    """Find documents in a folder of tags: by file and position or, if the file has changed since, by their ids.

    Parameters
    ----------
    folder : Path
    wanted : collection of ArchivePlace
        The documents to find, with the files, positions and ids that they had.

    Returns
    -------
    dict of ArchivePlace to TaggedDocument
        Documents that are not in the folder are missing. So are documents of a changed file that have no ids of their
        own, or share them with other documents of the file. Renamed files are recognised by their checksums.
    """
    files, ids = tagged_files(folder), {(row.source, row.id) for row in wanted}
    names = defaultdict[str, list[str]](list)
    for name, item in files.items():
        names[item.checksum].append(name)
    unchanged = {row for row in wanted if row.file == checksum_of_source(files, row.source)}
    rows_of = {row: [row[:3]] if row in unchanged else [*_rows_if_renamed(row, names)] for row in wanted}
    rows = {of for listed in rows_of.values() for of in listed}
    in_place: dict[Row, TaggedDocument] = {}
    with_id: dict[tuple[str, str], list[TaggedDocument]] = {}
    for document in read_tags(folder):
        if (row := (document.source, document.position, document.id)) in rows:
            in_place.setdefault(row, document)
        if (document.source, document.id) in ids:
            with_id.setdefault((document.source, document.id), []).append(document)
    found: dict[ArchivePlace, TaggedDocument] = {}
    for place, listed in rows_of.items():
        is_made = place.id in (place.source, f"{place.source}:{place.position}")  # for want of an id in the document
        there = [] if is_made or place in unchanged else with_id.get((place.source, place.id), [])
        there = there if len(there) == 1 else [in_place[row] for row in listed if row in in_place]
        found |= {place: there[0]} if there else {}
    return found


def _rows_if_renamed(place: ArchivePlace, names: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yield the rows that a document may have now, if its file was renamed; `names` has names of files by checksum.

    If the document is in an archive, it is unknown how much of its source was the name of the archive.
    """
    named = names.get(place.file, ()) if place.file else ()
    for name in named if len(named) == 1 else ():
        for end in [len(place.source), *(i for i, sign in enumerate(place.source) if sign == "/")]:
            source = name + place.source[end:]
            is_of_source = place.id.startswith(place.source)
            yield source, place.position, source + place.id[len(place.source) :] if is_of_source else place.id
