"""Cut sources into batches of whole records, beginning at any checkpoint; read the documents of a corpus."""

import gc
import hashlib
import io
import logging
import posixpath
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from textcat.base.errors import TextcatError, first_of
from textcat.reading.containers import ContainerEntry, MemberNames, tar_entries, zip_entries
from textcat.reading.document import Document
from textcat.reading.formats import (
    BINARY,
    DOCUMENTS,
    FORMATS,
    NEWS,
    REFERENCES,
    WHOLE,
    annif,
    batch_records,
    block_records,
    block_zones,
    delimited,
    parquet,
    xml_items,
)
from textcat.reading.formats.delimited import RowCutter
from textcat.reading.formats.documents import LARGER
from textcat.reading.formats.text import LineCutter
from textcat.reading.formats.warc import RecordCutter
from textcat.reading.labels import unique_names, with_meanings
from textcat.reading.layouts import part_of, placed, without_part
from textcat.reading.records import (
    LAST,
    NO_VERSION,
    START_OVER,
    Batch,
    Block,
    Checkpoint,
    FaultKind,
    InputSettings,
    LabelSettings,
    PipeState,
    Record,
    RefusedError,
    Rejection,
    UnreadableError,
    log_left_out,
    log_usual_names,
    reject_or_raise,
    shrunk_error,
    without_superseded,
)
from textcat.reading.scans import AltoOwners, mets_blocks
from textcat.reading.sources import (
    ARCHIVES,
    FOLDERS,
    Source,
    find_sources,
    format_by_content,
    format_of,
    holds_array,
    is_archive,
    named_format,
)
from textcat.reading.streams import (
    STEP,
    ByteStream,
    LookAhead,
    as_utf8,
    of_file,
    plain_name,
    sought_in,
    unpacked_stream,
    whole_bytes,
    with_line_feeds,
)

if TYPE_CHECKING:
    from textcat.base.progress import Bar

log = logging.getLogger(__name__)

_DEPTH = 3  # archives that are opened inside of each other: one that holds itself must end
_OF_ONE = 256  # bytes that a block counts for besides its data, as a batch of empty files must end, too
_TAIL = 1 << 16  # bytes at the end of a block in which the last line end is looked for
_LONGEST_NAME = 200  # characters of a name that are shown
_BY_PLACE = DOCUMENTS | {"lines", "mbox", "mets", "warc"}  # formats whose topics come from where their files lie
_OF_VALUES = frozenset(("csv", "jsonl", "mbox", "tsv"))  # formats of lines in which carriage returns may be text
_LINE_FORMATS = REFERENCES - {"endnote"} | {"annif", "lines", *_OF_VALUES}
_OF_ITEMS = NEWS | {"warc"}  # formats of many documents, of which a file may have a single one

_Wanted: TypeAlias = Callable[[str], object]  # see `read_documents`
_Opened: TypeAlias = Callable[[str, ByteStream], ByteStream | None]


class _Place(NamedTuple):
    """Hold a position inside a source, from which reading can resume."""

    offset: int = 0  # in the uncompressed file; in a Parquet file, the number of the group of rows
    position: int = 0  # the line, row or number of the document that follows there; 0 at the beginning of a file
    base: int = 0  # bytes of a folder's files that come before the file
    path: tuple[int, ...] = ()  # the number of the source's entry; if that is an archive, of its entry, and so on

    def checkpoint(self, number: int) -> Checkpoint:
        """Return the checkpoint, from which reading can resume: this position in the source with the given number."""
        return (number, *self[:3], *self.path)


class _Step(NamedTuple):
    """Hold a block of records or a Rejection, and the place after it in the source."""

    item: Block | Rejection
    after: _Place | None  # the place after the item; None at the end of the source or file
    read: int  # bytes of the source that have been consumed so far


def read_batches(
    sources: Sequence[Source],
    settings: InputSettings,
    start: Iterable[int] | None = None,
    pipes: Mapping[str, PipeState] | None = None,
    start_over: str = START_OVER,
) -> Iterator[Batch]:
    """Yield the batches (about a megabyte of consecutive records) into which sources are cut.

    A Rejection in a batch stands for input that cannot be read.

    At most a few blocks and the longest record are in memory. A record from a pipe is returned as soon as it is
    complete. `start` is where reading begins: the end of an earlier batch of the same sources and settings. `pipes`
    has, for each pipe by name, the number and checksum of the bytes that an interrupted run has read; if a pipe gives
    other bytes now, a TextcatError is raised, in which the clause `start_over` says how to begin again. If `pipes` is
    None, as no run is to be resumed, nothing is compared, and batches have no checksums of files.
    """
    observed = [
        _Pipe(source, pipes.get(source.name), start_over)
        for source in sources
        if source.kind == "pipe" and pipes is not None
    ]
    opening = {pipe.name: pipe.open for pipe in observed}
    sources = [source._replace(open=opening.get(source.name, source.open)) for source in sources]

    begin: Checkpoint = tuple(start or _Place().checkpoint(0))
    blocks: list[Block | Rejection] = []
    size, end, read, sums = 0, begin, 0, dict[str, str]()
    for step in chain(_steps(sources, settings, begin, None if pipes is None else sums), [None]):
        if step is not None:
            item, end, read = step
            blocks.append(item)
            size += _OF_ONE + (len(item.data) if isinstance(item, Block) else 0)
        if blocks and (step is None or size >= settings.block_bytes):
            states = {pipe.name: pipe.state for pipe in observed if pipe.state.n_bytes}
            yield Batch(tuple(blocks), begin, end, read, states, dict(sums))
            begin, blocks, size = end, [], 0
            sums.clear()


def _steps(
    sources: Sequence[Source], settings: InputSettings, start: Checkpoint, sums: dict[str, str] | None
) -> Iterator[tuple[Block | Rejection, Checkpoint, int] | None]:
    """Yield the blocks of records of sources, and a Rejection for each part that cannot be read.

    Each is yielded with the checkpoint after it, from which reading can resume, and the number of bytes read so far.

    Yield None where a batch must end. The checksum of each file that has been read from its start to its end is put
    into `sums`; if that is None, no checksum is taken.
    """
    before = sum(source.size or 0 for source in sources[: start[0]])
    position = _Place(start[1], start[2], start[3], start[4:])
    for number, source in enumerate(sources[start[0] :], start[0]):
        if source.kind == "pipe":
            yield None
        for item, after, read in _Walk(source, settings, sums=sums).steps(position):
            if after:
                yield item, after.checkpoint(number), before + read
            else:
                yield item, _Place().checkpoint(number + 1), before + (read if source.size is None else source.size)
            if source.kind == "pipe":
                yield None
        before, position = before + (source.size or 0), _Place()


class _Walk:
    """Read all files of one source, and cut each file into blocks."""

    def __init__(
        self,
        source: Source,
        settings: InputSettings,
        wanted: _Wanted | None = None,
        opened: _Opened | None = None,
        sums: dict[str, str] | None = None,
    ) -> None:
        self._source, self._settings, self._wanted, self._opened = source, settings, wanted, opened
        self._sums = sums  # the checksums of files on disk that have been read whole, by their names; None: not wanted
        self.on_disk = source.name  # the file that is being read, itself or as an archive
        self._owners: dict[int, AltoOwners] = {}  # by the number of archives around the files
        self._told = False  # that ALTO files are parts of METS files
        self.subjects: dict[str, tuple[str, ...]] = {}  # that files beside texts list, by the texts' names without .txt

    def steps(self, position: _Place) -> Iterator[_Step]:
        """Yield the source's blocks of records and Rejections from a position on, each with the place after it."""
        source = self._source
        if source.kind == "folder":
            return self._folder(position)
        return self._file(source.name, source, position, 0, source.format)

    def _folder(self, position: _Place) -> Iterator[_Step]:
        source, size, read, files = self._source, 0, 0, 0

        def entries() -> Iterator[ContainerEntry]:
            nonlocal size, files
            for entry in source.entries():
                size, files = size + entry.size, files + (entry.fault is None)
                yield entry

        for step in self._entries(entries(), source.name, position, 0, lambda: 0):
            yield step
            read = step.read
        if source.size is not None and size < source.size:
            gone = source.files - files
            what = f"{gone} of its {source.files} files are" if gone > 0 else "a part of its files is"
            fault, missing = shrunk_error(source.size, size, what), source.size - size
            yield _Step(
                reject_or_raise(self._settings, fault, source.name, length=missing, subject="The folder"), None, read
            )

    def inside(self, name: str) -> str:
        """Return the path of a file inside the source, without the extension of a compression such as ".gz"."""
        above = self._source.name
        if name == above:
            return plain_name(PurePath(name).name)
        return plain_name(name if above == "." else name[len(above) :].lstrip("/"))

    def _file(
        self, name: str, entry: Source | ContainerEntry, position: _Place, depth: int, form: str = ""
    ) -> Iterator[_Step]:
        """Yield blocks of a file's records and Rejections of its unreadable parts, each with the place after it.

        `depth` counts the archives around the file. If `form` is "", the file's name or content tells its format.
        """
        self.on_disk = name if depth == 0 else self.on_disk
        # Documents of a corpus are named by where they are inside of it.
        inside = name if self._settings.labels is None else self.inside(name)
        is_document = self._settings.labels is not None and not is_archive(name)
        settings = self._settings.for_file(name)
        if settings.skip:
            return
        fault = entry.fault if isinstance(entry, ContainerEntry) else None
        if fault is None and self._wanted is not None and is_document and not self._wanted(inside):
            return
        try:
            if fault is not None:
                raise UnreadableError(*fault.args)  # another one, as it holds on to where it is raised
            with closing(entry.open()) as stored:
                if depth == 0 and self._sums is not None:
                    stored.sum_up()
                unpacked = unpacked_stream(stored, name)
                stream = self._opened(inside, unpacked) if self._opened is not None and is_document else unpacked
                if stream is None:
                    return
                form = format_of(stream, name, settings, form)
                for step in self._file_of(form, stream, name, entry, position, depth):
                    # With the last step, not after it: who stops there knows the sum of a file that is done.
                    is_last = step.after is None or step.read >= (entry.size or 0)
                    if depth == 0 and is_last and form not in ARCHIVES:
                        self._take_sum(name, stored)
                    yield step
                if depth == 0:
                    self._take_sum(name, stored)
        except UnreadableError as error:
            if self._settings.labels is not None and error.kind in (FaultKind.LINK, FaultKind.DANGLING):
                log.warning("%s %s.", name, error)
            elif self._settings.labels is not None and error.kind is FaultKind.LEFT_OUT:
                log_left_out(name, f"The file {error}.")
            else:
                yield _Step(reject_or_raise(self._settings, error, name), None, 0)

    def _file_of(
        self,
        form: str,
        stream: ByteStream,
        name: str,
        entry: Source | ContainerEntry,
        position: _Place,
        depth: int,
    ) -> Iterator[_Step]:
        """Yield the steps of reading a file, given its format and its unpacked stream."""
        inside, settings = name if self._settings.labels is None else self.inside(name), self._settings.for_file(name)
        model = Block(inside, form, b"")
        if form in ARCHIVES:
            if depth == _DEPTH:
                raise UnreadableError("is nested in too many archives: unpack the outer ones")
            is_reopened = depth == 0 and self._source.kind != "pipe"
            reopen = (lambda: unpacked_stream(entry.open(), name)) if is_reopened else None
            entries = zip_entries(stream) if form == "zip" else tar_entries(stream, reopen)
            yield from self._entries(entries, name, position, depth + 1, stream.consumed)
        elif form == annif.SUBJECTS:
            self._take_subjects(inside, stream)
        elif form == "mets":
            yield from _of_mets(stream, model, settings, position, entry)
        elif form != "alto" or not self._is_part_of_mets(name, entry, depth):
            if form in ("tsv", "annif") and not stream.peek(1):
                self.subjects.setdefault(annif.stem_of_name(inside), ())  # maybe of a text without subjects
            yield from _documents(stream, model, settings, position, name)

    def _is_part_of_mets(self, name: str, entry: Source | ContainerEntry, depth: int) -> bool:
        """Return whether an ALTO file is read as a part of a METS file in the same folder or archive."""
        if not isinstance(entry, ContainerEntry) or entry.neighbours is None:
            return False
        owners = self._owners.get(depth)
        if owners is None or owners.neighbours is not entry.neighbours:
            owners = self._owners[depth] = AltoOwners(entry.neighbours, name[: len(name) - len(entry.name)])
        owner = owners.owner(entry.name, self._settings)
        if owner and not self._told:
            self._told = True
            source = self._source.name
            log.warning("%s: the ALTO files of METS files, such as %s, are read as parts of these only.", source, owner)
        return bool(owner)

    def _take_sum(self, name: str, stored: ByteStream) -> None:
        if self._sums is not None and name not in self._sums and (sum_ := stored.checksum()):
            self._sums[name] = sum_

    def _take_subjects(self, name: str, stream: ByteStream) -> None:
        """Store the subjects (topics) that a file lists for the text next to it, but only if labels are wanted.

        UnreadableError is raised if the source is this file alone, without the text.
        """
        if self._source.kind != "folder" and self._source.format not in ARCHIVES:
            raise UnreadableError("lists the subjects of a text: name the folder that holds both, or the text")
        if self._settings.labels is not None:
            decoded = as_utf8(stream, self._settings.encoding)
            encoding, stream = "" if decoded else self._settings.encoding, decoded or stream
            data, stem = b"".join(iter(lambda: stream.read(STEP), b"")), annif.stem_of_name(name)
            if posixpath.basename(name) == annif.CATEGORIES:
                self.subjects |= annif.read_categories(name, data, encoding)
                return
            subjects = annif.read_subjects(name, data, encoding)
            if stem not in self.subjects or name.lower().endswith(".tsv"):  # which goes before a .key, as in Annif
                self.subjects[stem] = subjects

    def _entries(
        self, entries: Iterator[ContainerEntry], name: str, position: _Place, depth: int, consumed: Callable[[], int]
    ) -> Iterator[_Step]:
        """Yield blocks of records and Rejections of the files of a folder or an archive, beginning at a position.

        `depth` counts the archives around the files, and `consumed` returns how many bytes of the source have been
        used.
        """
        first, base = position.path[0] if position.path else 0, position.base
        within = _Place(position.offset, position.position, 0, position.path[1:])
        # In a corpus, names are topics and ids, and two documents with the same id are refused.
        names = MemberNames() if depth and self._settings.labels is None else None
        while True:
            try:
                entry = next(entries, None)
            except UnreadableError as fault:
                subject = "The archive, or the rest of it,"
                yield _Step(reject_or_raise(self._settings, fault, name, subject=subject), None, consumed())
                return
            if entry is None:
                return
            inside = names.unique(entry.name) if names is not None and entry.name else entry.name
            if entry.number < first:
                continue
            path = posixpath.join("" if name == "." else name, inside) if inside else name
            for item, after, read in self._file(path, entry, within if entry.number == first else _Place(), depth):
                if after:
                    yield _Step(item, after._replace(base=base, path=(entry.number, *after.path)), base + read)
                else:
                    behind = _Place(0, 0, base + entry.size, (entry.number + 1,))
                    read = entry.read if entry.read >= 0 else consumed()
                    yield _Step(item, behind, behind.base or read)
            base += entry.size


def _of_mets(
    stream: ByteStream, model: Block, settings: InputSettings, position: _Place, entry: Source | ContainerEntry
) -> Iterator[_Step]:
    """Yield blocks of the documents of a METS file, each with the place after it."""
    inside = posixpath.dirname(entry.name) if isinstance(entry, ContainerEntry) else ""
    blocks = mets_blocks(stream, model, settings, entry.neighbours, inside, max(position.position, 1))
    block = next(blocks)
    for following in chain(blocks, [None]):
        after = None if following is None else _Place(0, following.position)
        yield _Step(block, after, stream.consumed())
        if following is not None:
            block = following


def _documents(
    stream: ByteStream, model: Block, settings: InputSettings, position: _Place, name: str
) -> Iterator[_Step]:
    """Return an iterator over the steps of reading a file: blocks of whole records, and Rejections of unreadable parts.

    `model` is a block without data, whose source and format the blocks of the file get.
    """
    if model.format == "parquet":
        return _tables(stream, model, settings, position, name)
    if model.format in BINARY & WHOLE:
        return _whole(stream, model, LARGER * settings.max_bytes)
    decoded = None if model.format in BINARY else as_utf8(stream, settings.encoding)
    if decoded is not None:
        stream, model, settings = decoded, model._replace(decoded=True), settings._replace(encoding="utf-8")
    if model.format in WHOLE:
        return _whole(stream, model, settings.max_bytes)
    if model.format in _LINE_FORMATS:
        stream = with_line_feeds(stream, only_if_alone=model.format in _OF_VALUES)
    return _cut(stream, model, settings, position, name)


def _whole(stream: ByteStream, model: Block, most: int) -> Iterator[_Step]:
    """Yield a file that is one document, as a single block; raise UnreadableError if it has more than `most` bytes.

    `model` is a block without data, whose source and format the yielded block gets.
    """
    data = whole_bytes(stream, most)
    if data or not stream.prompt:
        yield _Step(model._replace(data=data), None, stream.consumed())


def _tables(stream: ByteStream, model: Block, settings: InputSettings, position: _Place, name: str) -> Iterator[_Step]:
    """Yield blocks of rows of a Parquet file, each with the place after it; if it is damaged, end with a Rejection.

    UnreadableError is raised if the file does not have the needed columns.
    """
    file, part = sought_in(stream)
    try:
        for block, *after, share in parquet.row_blocks(
            file, model.source, settings, position.offset, position.position
        ):
            yield _Step(block, _Place(*after), part.at(share))
    except UnreadableError as fault:
        if fault.kind in (FaultKind.CONTENT, FaultKind.ENCODING):
            raise  # it is not damaged, but has not the columns
        yield _Step(reject_or_raise(settings, fault, name, subject="The file, or the rest of it,"), None, part.end)


def _cut(stream: ByteStream, model: Block, settings: InputSettings, position: _Place, name: str) -> Iterator[_Step]:
    """Yield the steps of reading a file of many records: blocks that end where a record ends, and Rejections."""
    ahead, largest = LookAhead(stream), settings.most_held
    if model.format in delimited.SEPARATORS:
        n = ahead.find(partial(delimited.header_length, quotes=settings.quotes), settings.block_bytes, largest)
        if not n and not ahead.ended:
            raise UnreadableError(f"has a header of more than {largest} bytes: check that it is a table")
        if not n and ahead.error:
            raise ahead.error
        row = ahead.data[:n] if settings.columns else ahead.drop(n)
        header = delimited.read_header(row, model.format, settings) if settings.columns and row.strip() else row
        model = model._replace(header=header)
        if not model.header.strip():
            return  # an empty file has no names of columns, either
    if model.format in xml_items.TAGS:
        model = _with_opening(ahead, model, settings, largest)
    is_array = model.format in ("json", "ninjs", "json-feed") and holds_array(stream, settings)
    is_enclosed = is_array or model.format in xml_items.TAGS
    whole = _WholeRecords(ahead, model, settings, largest, is_enclosed)
    if position.position:
        ahead.move_to(position.offset)
        whole.position = position.position
    while (item := whole.take()) is not None:
        yield _Step(item, _Place(ahead.offset, whole.position), stream.consumed())
    if ahead.error:
        fault, subject = ahead.error, f"The file, from byte {ahead.offset} on,"
        n_left = fault.n_expected - ahead.offset if fault.n_expected >= 0 and stream.file else -1
        rejection = reject_or_raise(settings, fault, name, offset=ahead.offset, length=n_left, subject=subject)
        yield _Step(rejection, None, stream.consumed())
    elif is_enclosed and (end := _end_of_enclosed(ahead, model, settings, whole.position, name, is_array)):
        yield _Step(end, None, stream.consumed())


def _with_opening(ahead: LookAhead, model: Block, settings: InputSettings, largest: int) -> Block:
    """Return a block without data whose header is what stands before the first item of an XML file, if it has any."""
    n = ahead.find(lambda data, _: xml_items.first_item(model.format, data) + 1, settings.block_bytes, largest)
    if not n and not ahead.ended:
        raise UnreadableError(f"has no item in its first {largest} bytes: check its format")
    return model._replace(header=ahead.drop(n - 1)) if n else model


def _end_of_enclosed(
    ahead: LookAhead, model: Block, settings: InputSettings, position: int, name: str, is_array: bool
) -> Block | Rejection | None:
    """Return what is left of a file behind its last whole record; None if it is nothing.

    It is a Rejection if the array or the element that encloses all records is not closed.
    """
    rest = model._replace(offset=ahead.offset, position=position, data=ahead.data)
    if is_array:
        # The end is a step of its own, and no place is behind it: whoever resumes after the last object meets it again.
        if settings.without_mark(rest)[0].strip(b" \t\r\n[,"):  # a ], or what is no whole object and rejected as such
            return rest
        closing, what, missing = "]", "The array", "objects"
    else:
        is_cut_off = xml_items.first_item(model.format, rest.data) >= 0
        root = "" if is_cut_off else xml_items.ends_without_root(model.header, rest.data)
        if not root:
            return rest if rest.data.strip() or (rest.data and rest.offset) else None
        closing, what, missing = f"</{root}>", "The file", "items"
    why = f"ends without {closing}, so {missing} may be missing: check whether the file is complete"
    fault = UnreadableError(why, FaultKind.DAMAGE, f"its {'array ' if is_array else 'XML '}ends without {closing}")
    return reject_or_raise(settings, fault, name, what, rest.position, rest.offset, len(rest.data))


def text_of_file(name: str, data: bytes, *, main_text: bool = False) -> dict[str, str]:
    """Return the texts of a document, given the bytes of its file.

    Nothing but these bytes is read: no file, and nothing that the document refers to.

    Parameters
    ----------
    name : str
        The file's name, whose ending tells the format: HTML, ``.eml``, Markdown, ``.docx``, PDF, text, ALTO, or XML or
        JSON of a news agency or feed with a single item. If it has no ending, the content tells the format.
    data : bytes
    main_text : bool
        The text of a page of HTML is its main text, as by `InputSettings.main_text`.

    Returns
    -------
    dict
        The text of each zone: ``title``, if the document has one, ``body`` and, of news, ``slugline`` and
        ``abstract``.

    Raises
    ------
    TextcatError
        If the document has another format, is broken or encrypted, has no text, or is too large.
    """
    settings, stream = InputSettings(main_text=main_text), of_file(io.BytesIO(data))
    called = " ".join(name.split())[-_LONGEST_NAME:] or "The file"
    form = named_format(name) if "." in name else _document_in(stream, settings)
    try:
        if (form not in DOCUMENTS or form == "text") and plain_name(name) == name:
            form = format_of(stream, name, settings, form)
        if form == "mets":
            raise TextcatError(
                f"{called} is METS, whose text is in ALTO files: give one of them, or use `textcat tag`."
            )
        if form not in DOCUMENTS | _OF_ITEMS or plain_name(name) != name:
            what = "HTML, .eml, Markdown, .docx, PDF, plain text, ALTO, news of an agency, or a page in WARC"
            raise TextcatError(f"{called} is not a document: give {what}.")
        steps = _documents(stream, Block(called, form, b""), settings, _Place(), called)
        if form in _OF_ITEMS:
            return _zones_of_news(called, [item for item, *_ in steps], settings)
        ((block, *_),) = steps
        assert isinstance(block, Block)
        return block_zones(block, settings)
    except UnreadableError as fault:
        if fault.kind is FaultKind.ENCODING:
            raise TextcatError(f"{called} {fault.detail}: save it as UTF-8.") from None
        raise TextcatError(f"{called} {fault}.") from None


def _zones_of_news(name: str, blocks: list[Block | Rejection], settings: InputSettings) -> dict[str, str]:
    """Return the texts of the only item in a file; raise a TextcatError if it has none, or several."""
    items = [*batch_records(Batch(tuple(blocks), (), (), 0), settings)]
    records = [item for item in items if isinstance(item, Record)]
    if len(records) == 1:
        return records[0].zones
    if records:
        raise TextcatError(f"{name} has {len(records)} documents: give a file of one, or use `textcat tag`.")
    reason = items[0].reason if items and isinstance(items[0], Rejection) else "It is empty."
    raise TextcatError(f"{reason} {name} has no document to read: give another file.")


def _document_in(stream: ByteStream, settings: InputSettings) -> str:
    """Return the format of a nameless document by its content, or "text" if the content does not tell it."""
    form = format_by_content(stream, "a.", settings).format
    return "docx" if stream.peek(4) == b"PK\x03\x04" else form if form in DOCUMENTS | _OF_ITEMS else "text"


class _WholeRecords:
    """Take whole records from a buffer of a file's next bytes: about `block_bytes`, or more if a record is longer."""

    def __init__(
        self, ahead: LookAhead, model: Block, settings: InputSettings, largest: int, is_enclosed: bool
    ) -> None:
        self.position = 1 + (0 if model.format in xml_items.TAGS else model.header.count(b"\n"))
        self._ahead, self._model, self._settings, self._largest = ahead, model, settings, largest
        self._is_enclosed = is_enclosed
        self._cutter = FORMATS[model.format].cutter(model.header, model.format, settings)  # type: ignore[misc]
        if isinstance(self._cutter, RowCutter):
            log_usual_names(model.source, self._cutter.columns, settings)

    def take(self) -> Block | Rejection | None:
        """Return a block of the next whole records, or a Rejection if the next record is too long.

        Return None at the end of the data, even if the data end because of an error.
        """
        ahead = self._ahead
        n = ahead.find(self._end, self._settings.block_bytes, self._largest, self._without_rest)
        if not n:
            return None if ahead.ended else self._passed_over()
        block = self._model._replace(offset=ahead.offset, position=self.position, data=ahead.drop(n))
        self.position += self._cutter.count(block.data)
        return block

    def _end(self, data: bytes, whole: bool) -> int:
        # A line that had been written in part when the file was found is left with what was added after it.
        is_part = whole and isinstance(self._cutter, LineCutter) and self._ahead.ends_within_line()
        return len(data) if whole and not self._is_enclosed and not is_part else self._cutter.cut(data)

    def _without_rest(self, size: int) -> int:
        """Return how many bytes to read: `size`, or fewer if a line ends shortly before `size`.

        Reading then stops at the end of this line. No part of a record is left over, which would have to be copied.
        """
        start = size - _TAIL
        if start < 0 or type(self._cutter) is not LineCutter:
            return size
        end = self._cutter.cut(self._ahead.ahead(start, _TAIL))
        return start + end if end else size

    def _passed_over(self) -> Block | Rejection:
        ahead, settings, start, position = self._ahead, self._settings, self._ahead.offset, self.position
        ends = False
        while not ends:
            n, ends = self._cutter.skip(ahead.data)
            n = len(ahead.data) if ahead.ended and not ends else n
            self.position += self._cutter.count(ahead.drop(n))
            if ahead.ended:
                break
            ahead.fill(len(ahead.data) + settings.block_bytes)
        length = ahead.offset - start
        if isinstance(self._cutter, RecordCutter):
            fault = self._cutter.fault(length)
            if settings.labels is not None and fault.kind is FaultKind.LEFT_OUT:
                log_left_out(self._model.source, f"{fault.detail}.")
                return self._model._replace(position=position, offset=start)
        elif length <= settings.max_bytes:
            fault = UnreadableError(f"has a quote that is not closed within {settings.max_bytes} bytes: close it")
        else:
            fault = settings.too_long(length)
        return reject_or_raise(settings, fault, self._model.source, "The record", position, start, length)


# --- pipes: when a run is resumed, they must give what they gave before ----------------------------------------------


class _Pipe:
    """Read one pipe, and check by a checksum that it gives the same bytes as to an interrupted run."""

    def __init__(self, source: Source, before: PipeState | None, start_over: str):
        self.name, self._open, self._before = source.name, source.open, before or PipeState(0, "")
        self._n, self._sha256, self._start_over = 0, hashlib.sha256(), start_over

    @property
    def state(self) -> PipeState:
        return PipeState(self._n, self._sha256.hexdigest())

    def open(self) -> ByteStream:
        inner = self._open()
        return ByteStream(lambda n: self._checked(inner.read(n)), lambda: self._n, inner.prompt, inner.close)

    def _checked(self, data: bytes) -> bytes:
        left = max(self._before.n_bytes - self._n, 0)
        self._add(data[:left])
        if left and (not data or (left <= len(data) and self.state != self._before)):
            raise TextcatError(
                f"{self.name} does not give the same bytes as when the run began: give the same input, or "
                f"{self._start_over}."
            )
        self._add(data[left:])
        return data

    def _add(self, data: bytes) -> None:
        self._sha256.update(data)
        self._n += len(data)


# --- corpora: all documents, with their labels ------------------------------------------------------------------------


class DamagedError(TextcatError):
    """Report a file or archive that is truncated or changed, or that is of another kind than its name says.

    The message gives the reason.
    """

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(f"{path} is damaged or incomplete ({reason}): fetch or copy it again.")


def read_documents(
    inputs: Iterable[str | PathLike[str]],
    settings: InputSettings,
    wanted: _Wanted | None = None,
    opened: _Opened | None = None,
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
    file; if it is the ``append`` of a list, which returns None, all files are listed and none is read. Archives are
    always opened. `opened` takes the name and the stream of a wanted file, and returns the stream to read instead, or
    None to skip the file. `as_read` takes each record as soon as it is read, in stored order; its document has the same
    `zones`. `progress` shows how many bytes of the inputs have been read.
    """
    inputs = list(inputs)
    was_enabled = gc.isenabled()
    gc.disable()  # it would go through all documents again and again, and none of them is garbage
    try:
        subjects: dict[str, tuple[str, ...]] = {}
        labelled = read_labelled(inputs, settings, wanted, opened, as_read, subjects, progress)
        if settings.format == FOLDERS:  # in which keywords are no topics
            labelled = (
                ("text", record._replace(topics=())) if form in REFERENCES else (form, record)
                for form, record in labelled
            )
        records = _current(sorted(labelled, key=lambda pair: pair[1].source))
        are_labelled = _BY_PLACE.isdisjoint(form for form, _ in records)  # by their records, not by their places
        documents = _documents_of(records, ", ".join(map(str, inputs)), subjects)
        if are_labelled:
            documents = with_meanings(documents, "" if settings.is_default("topics_field") else settings.topics_field)
        return _with_last_for_test(documents, settings.labels, inputs)
    finally:
        if was_enabled:
            gc.enable()


def _documents_of(
    records: list[tuple[str, Record]], location: str, subjects: Mapping[str, tuple[str, ...]]
) -> list[Document]:
    """Return the documents of (format, record) pairs; the list of pairs is emptied, to free memory.

    `subjects` has the topics of texts. Its keys are the paths of the text files inside their input, without the ending
    ``.txt``. If any text has topics there, every text must have an entry, which may be empty. A TextcatError is raised
    if an entry is missing, or if two documents have the same id. `location` names the inputs in messages.
    """
    depth = shared_depth({record.source for form, record in records if form in _BY_PLACE})
    topics_of = lru_cache(maxsize=8)(partial(_topic_by_place, depth=depth))  # of many records that follow each other
    pairs, alone = _pairs({record.source for _, record in records})
    if alone and not any(record.split for _, record in records):
        log.warning(
            "%s: the documents of %s count like the others: a name makes a test part only next to a training part, and "
            "there is no %s.",
            *(location, alone, f"{alone.rpartition('/')[0]}/train".lstrip("/")),
        )
    part_by_place = lru_cache(maxsize=8)(partial(_part_by_place, pairs=pairs))
    lies_in_part = lru_cache(maxsize=8)(partial(_is_part, pairs=pairs))
    listed, tidied = any(subjects.values()), lru_cache(maxsize=1024)(unique_names)
    if len({record.id for _, record in records}) < len(records):
        _refuse_twins(
            (
                (form, record)
                for form, record in records
                if listed or form not in _BY_PLACE or record.topics or topics_of(record.source, form)
            ),
            location,
        )
    documents: list[Document] = []
    without_topic: list[str] = []
    n_unused = 0
    records.reverse()
    while records:
        form, record = records.pop()
        topics, part = record.topics, record.split
        if form == "text" and listed:
            stem = record.source if record.source in subjects else annif.stem_of_name(record.source)
            if stem not in subjects:
                raise TextcatError(
                    f"{location}: {record.source} has no {PurePath(stem).name}.tsv or .key next to it, nor a line in "
                    f"{annif.CATEGORIES}, as other texts have: add one with the subjects of the text, empty if it has "
                    "none, or remove the text."
                )
            topics, part = subjects[stem], part_by_place(f"{record.source}/", form)  # no folder is its topic
        elif form in DOCUMENTS and not topics and lies_in_part(placed(record.source).rpartition("/")[0]):
            without_topic.append(record.source)
            continue
        elif form in _BY_PLACE and not topics:
            topics = topics_of(record.source, form)
            if not topics:
                continue
        if not part and (part := part_by_place(record.source, form)) == "unused":
            n_unused += 1
        topics = tidied(topics)
        documents.append(Document(record.id, record.zones, topics, record.date, part, *record[7:10]))
    if n_unused:
        log.warning(
            "%s: %d documents of the validation part are for neither training nor testing; to measure models on them, "
            "call their file or folder test.",
            *(location, n_unused),
        )
    _refuse_without_topics(documents, without_topic, location)
    return documents


def _refuse_without_topics(documents: Sequence[Document], without_topic: Sequence[str], location: str) -> None:
    """Log which files lie in a part, but in no topic's folder there; raise TextcatError if all files are such."""
    if without_topic and not documents:
        raise TextcatError(
            f"{location}: {without_topic[0]} and all other texts lie in a training or test part, but in no topic's "
            "folder there: put them into folders per topic, or give their topics as fields of JSON Lines or CSV."
        )
    if without_topic:
        shown = first_of(without_topic)
        log.warning("%s: %d files in no topic's folder are left out: %s.", location, len(without_topic), shown)


def _current(records: list[tuple[str, Record]]) -> list[tuple[str, Record]]:
    """Return the records of a corpus that count: without older versions, and without those that are to be left out."""
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
    """Return the documents; if `LabelSettings.test` says so, the last ones are for test, the others for training."""
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
    wanted: _Wanted | None = None,
    opened: _Opened | None = None,
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
    sources = find_sources(inputs, settings)
    total, before, shown = sum(source.size or 0 for source in sources), 0, 0
    for source in sources:
        walk = _Walk(source, settings, wanted, opened)
        try:
            for item, _, read in walk.steps(_Place()):
                assert isinstance(item, Block)  # a Rejection has been raised
                if len(sources) > 1:
                    above = plain_name(source.name)
                    item = item._replace(source=above if source.kind == "file" else f"{above}/{item.source}")
                for record in block_records(item, settings):
                    assert isinstance(record, Record)
                    if as_read is not None:
                        as_read(record)
                    yield item.format, record
                if progress is not None and before + read - shown >= total / 100:  # there may be a step for every file
                    shown = before + read
                    progress.show(completed=shown, total=total or None)
        except RefusedError as refusal:
            raise _error(refusal, source, walk) from None
        if subjects is not None:
            above = f"{plain_name(source.name)}/" if len(sources) > 1 else ""
            subjects.update({f"{above}{stem}": listed for stem, listed in walk.subjects.items()})
        before += source.size or 0


def _error(refusal: RefusedError, source: Source, walk: _Walk) -> TextcatError:
    """Return the error to raise if a part of a corpus is refused as unreadable; it says the place and the remedy.

    `walk` is the reading of `source` that was refused.
    """
    fault, name, kind, detail = refusal.fault, refusal.source, refusal.fault.kind, refusal.fault.detail
    if kind is FaultKind.DAMAGE:
        inner = name[len(walk.on_disk) :].lstrip("/") if name.startswith(walk.on_disk) else ""
        return DamagedError(walk.on_disk, f"{inner}: {detail}" if inner else detail)
    if kind is FaultKind.UNSAFE:
        return TextcatError(f"{walk.on_disk} holds {detail}, so nothing of it is read: get it again from its source.")
    inside = walk.inside(name) if name.startswith(source.name) else name
    is_file = source.kind != "folder" and source.format not in ARCHIVES
    location = source.name if is_file else f"{inside} in {source.name}"
    if kind in (FaultKind.ACCESS, FaultKind.UNLISTED):
        return TextcatError(f"{location} {fault}: check the file and your rights to it.")
    if kind is FaultKind.STORY:
        return TextcatError(f"{location}: {detail}.")
    if not refusal.part:
        return TextcatError(f"{location} {fault}.")
    return TextcatError(f"{location}: {refusal.part[0].lower()}{refusal.part[1:]} {fault}.")


def shared_depth(names: Iterable[str]) -> int:
    """Return the number of leading folders that all files share.

    If all files lie in the same folder, this folder is not counted, because its name may be their topic.
    """
    folders = [placed(name).split("/")[:-1] for name in names]
    return max(min(len(posixpath.commonprefix(folders)), max(map(len, folders), default=0) - 1), 0)


def _topic_by_place(name: str, form: str, depth: int) -> tuple[str, ...]:
    *folders, file = placed(name).split("/")
    if form in DOCUMENTS:
        named = folders_of(name)[-1:] if len(folders) > depth else []
        return tuple(named or folders[depth:][-1:])
    named = [folder for folder in folders[depth:] if folder in folders_of(name) and not part_of(folder)]
    return (named[-1] if named else without_part(_stem(file)),)


def folders_of(name: str) -> list[str]:
    """Return the names of the folders on the path of a file, from the outermost, without archives."""
    return [folder for folder in placed(name).split("/")[:-1] if not is_archive(folder)]


def _pairs(names: Set[str]) -> tuple[set[str], str]:
    """Return the folders that hold both a training and a test part, and a test part without a training part.

    A folder with train.csv and test.csv is an example of the former; in the set, "" is the outermost folder. The latter
    is the name of a file or folder that is named like a test part and has other files around it, but no training part
    next to it; it is "" if there is none.
    """
    parts_in: dict[str, dict[str, str]] = defaultdict(dict)
    names = {*map(placed, names)}
    folders_above = {name.rpartition("/")[0] for name in names}
    stems = {_stem(name) for name in names}
    for path in folders_above | {stem for stem in stems if part_of(posixpath.basename(stem))}:
        entries = path.split("/")
        for depth, entry in enumerate(entries):
            if part := part_of(entry):
                parts_in["/".join(entries[:depth])][part] = "/".join(entries[: depth + 1])
    tests = [path for parts in parts_in.values() if "train" not in parts for path in parts.values()]
    alone = min((test for test in tests if not all(name.startswith(test) for name in names)), default="")
    alone = next((name for name in names if _stem(name) == alone), alone)
    return {folder for folder, parts in parts_in.items() if "train" in parts and len(parts) > 1}, alone


def _is_part(folder: str, pairs: Container[str]) -> bool:
    above, _, name = folder.rpartition("/")
    return bool(part_of(name)) and above in pairs


def _part_by_place(name: str, form: str, pairs: Container[str]) -> str:
    if form in ("reuters", "rcv1") or not pairs:
        return ""
    *folders, file = placed(name).split("/")
    names = folders[:-1] if form in DOCUMENTS else [*folders, _stem(file)]
    for depth in reversed(range(len(names))):
        if (part := part_of(names[depth])) and "/".join(folders[:depth]) in pairs:
            return part
    return ""


def _stem(file: str) -> str:
    return file.rpartition(".")[0] or file
