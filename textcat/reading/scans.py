"""Read METS files with their ALTO files, and find out which ALTO files belong to METS files."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple

from textcat.reading.compression import COMPRESSIONS, plain_name, unpacked_stream
from textcat.reading.containers import Neighbours
from textcat.reading.decoding import as_utf8, text_start
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats.documents import LARGER
from textcat.reading.formats.mets import PageFile, PlannedDocument, ScanPlan, block_of, path_of, read_plan
from textcat.reading.formats.xml_items import xml_format
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block
from textcat.reading.streams import ByteStream, whole_bytes

_HEAD = 1 << 12  # first bytes of an XML file that are examined
#: Maximum number of XML files of a folder examined for METS; with more, and for URLs, only those with "mets" in their
#: names.
MOST_LOOKED_INTO = 1000
_ENDINGS = ("", *(compression.endings[0] for compression in COMPRESSIONS))


class _Text(NamedTuple):
    """The bytes of a METS or ALTO file, and whether they were converted to UTF-8."""

    data: bytes
    is_decoded: bool

    def settings(self, settings: InputSettings) -> InputSettings:
        return settings._replace(encoding="utf-8") if self.is_decoded else settings


def _text(stream: ByteStream, settings: InputSettings) -> _Text:
    decoded = as_utf8(stream, settings.encoding)
    return _Text(whole_bytes(stream if decoded is None else decoded, settings.max_bytes), decoded is not None)


def _plan(stream: ByteStream, settings: InputSettings) -> ScanPlan:
    text = _text(stream, settings)
    return read_plan(text.data, text.settings(settings))


def mets_blocks(
    stream: ByteStream,
    model: Block,
    settings: InputSettings,
    neighbours: Neighbours | None,
    inside: str,
    position: int,
) -> Iterator[Block]:
    """Yield blocks of the documents of a METS file, beginning with the document at a position, counted from 1.

    `model` is a block without data, whose source and format the blocks get. `neighbours` opens the files around the
    METS file, whose folder is `inside`. A block has a document, the pages that it needs, and the next documents that
    need no other pages. UnreadableError is raised if there is no document.
    """
    plan = _plan(stream, settings)
    held: list[PlannedDocument] = []
    pages: dict[int, PageFile] = {}
    n_bytes = 0
    for number, document in enumerate(plan.documents[position - 1 :], position):
        needed = sorted({area.page for area in document.areas} - pages.keys())
        if held and needed and n_bytes >= settings.block_bytes:
            yield block_of(model, number - len(held), held, pages)
            held, pages, n_bytes = [], {}, 0
            needed = sorted({area.page for area in document.areas})
        for page in needed:
            left = LARGER * settings.max_bytes - n_bytes
            pages[page] = _page(plan.pages[page], settings, neighbours, inside, left)
            n_bytes += len(pages[page].data)
        held.append(document)
    yield block_of(model, len(plan.documents) + 1 - len(held), held, pages)


def _page(reference: str, settings: InputSettings, neighbours: Neighbours | None, inside: str, most: int) -> PageFile:
    """Return a file to which a METS file in the folder `inside` refers, or why it cannot be read.

    It cannot, for example, if it has more than `most` bytes. `neighbours` opens the files around the METS file.
    """
    name = plain_name(reference)
    try:
        path = name = path_of(reference)
        if neighbours is None:
            raise UnreadableError("cannot be looked up, as the METS file comes from a pipe or an inner tar: unpack it")
        with closing(_opened(neighbours, inside, path)) as stored:
            text = _text(unpacked_stream(stored, path), settings)
        if len(text.data) > most:
            raise UnreadableError(f"makes a document of more than {LARGER * settings.max_bytes} bytes: split it")
        return PageFile(name, *text)
    except UnreadableError as error:
        return PageFile(name, b"", fault=error.fault)


def _opened(neighbours: Neighbours, inside: str, path: str) -> ByteStream:
    """Open a file, which may have been compressed since it was referred to; raise UnreadableError if this fails."""
    faults = list[UnreadableError]()
    for ending in _ENDINGS:
        try:
            return neighbours.open(inside, f"{path}{ending}")
        except UnreadableError as error:
            faults.append(error)
            if error.kind is not FaultKind.ACCESS:
                break
    raise faults[0]


def pages_of_mets(opened: Callable[[], ByteStream], name: str, settings: InputSettings) -> set[str]:
    """Return the paths of the ALTO files of a METS file, relative to its folder and without extensions such as ".gz".

    The set is empty if the file that `opened` opens is no METS file, or cannot be read.
    """
    try:
        with closing(opened()) as stored:
            stream = unpacked_stream(stored, name)
            if xml_format(text_start(stream.peek(_HEAD), settings.encoding))[0] != "mets":
                return set()
            plan = _plan(stream, settings)
    except UnreadableError:
        return set()
    return {plain_name(path) for reference in plan.pages if (path := _path(reference))}


def _path(reference: str) -> str:
    try:
        return path_of(reference)
    except UnreadableError:
        return ""


class AltoOwners:
    """Find the METS file to which an ALTO file in a folder or an archive belongs.

    A METS file owns files in its own folder and below. `above` is the path of the folder or archive.
    """

    def __init__(self, neighbours: Neighbours, above: str) -> None:
        self.neighbours, self._above = neighbours, above
        # The METS file of each ALTO file in the folders around the last file.
        self._owners: dict[str, dict[str, str]] = {}

    def owner(self, path: str, settings: InputSettings) -> str:
        """Return the path of the METS file that owns the ALTO file at a path; "" if there is none."""
        parts = path.split("/")
        folders = ["/".join(parts[:depth]) for depth in range(len(parts))]
        self._owners = {folder: self._owners[folder] for folder in folders if folder in self._owners}
        for folder in folders:
            if folder not in self._owners:
                self._owners[folder] = self._of_folder(folder, settings)
            owner = self._owners[folder].get(plain_name(path[len(folder) :].lstrip("/")))
            if owner and owner != path:
                return owner
        return ""

    def _of_folder(self, folder: str, settings: InputSettings) -> dict[str, str]:
        names = [name for name in self.neighbours.names(folder) if plain_name(name).lower().endswith(".xml")]
        if len(names) > MOST_LOOKED_INTO or self.neighbours.is_remote:
            names = [name for name in names if "mets" in name.lower()]
        owners: dict[str, str] = {}
        for name in names:
            path = f"{folder}/{name}".lstrip("/")
            settings_of_file = settings.for_file(f"{self._above}{path}")
            if not settings_of_file.skip and settings_of_file.format in ("", "mets"):
                pages = pages_of_mets(partial(self.neighbours.open, folder, name), name, settings_of_file)
                owners |= dict.fromkeys(pages - owners.keys(), path)
        return owners
