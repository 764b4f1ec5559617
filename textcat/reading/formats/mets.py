"""Read METS files that refer to ALTO files: the documents are articles or, without articles, pages.

`read_plan` returns the documents of a METS file, and the parts of ALTO files that each consists of. The caller reads
the files, and puts documents and the pages that they need into blocks (`block_of`), which `FORMAT` parses. References
to other METS files are not followed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from textcat.base.surrogates import mark_surrogates
from textcat.reading.columns import titled_zones
from textcat.reading.dates import iso_date
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.alto import (
    AltoPage,
    Word,
    main_language,
    mean_confidence,
    read_page,
    text_of,
)
from textcat.reading.formats.news import left_out
from textcat.reading.formats.xml_items import attribute, children, line_of, outermost, parse_file
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan

#: Maximum number of parts of articles in a METS file; each may be linked many times.
MOST_AREAS = 1_000_000
_MOST_DESCRIPTIONS = 32  # of a div at most, as they are looked up for everything inside it
_LONGEST = 4096  # maximum characters of a title, a date or a language, which many documents may share
#: How often a page's words may occur in documents: this many times each, or at least this many in total.
MOST_TIMES, LEAST_WORDS = 100, 1_000_000
_XLINK = "{http://www.w3.org/1999/xlink}"
_HEADINGS, _BYLINES = frozenset(("heading", "headline", "title")), frozenset(("author", "byline"))
_XML_TYPES = frozenset(("", "text/xml", "application/xml"))
_TEXTS = re.compile(r"alto|fulltext", re.IGNORECASE)
_XML_NAME = re.compile(r"\.xml(?:\.\w+)?\Z", re.IGNORECASE)
_DRIVE_OR_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Area(NamedTuple):
    """A part of a document: the words of an ALTO file from one element to another."""

    page: int  # index of the file among those of the METS file
    begin: str  # ID of the first element; "": the whole file
    end: str  # ID of the last element; "": only the first one
    is_title: bool


class PlannedDocument(NamedTuple):
    """A document in a METS file: its metadata, and the areas of pages with its text."""

    id: str  # ID in the METS file, or ""
    title: str  # title, for a document whose areas have none
    date: str
    language: str
    publication: str  # title of the newspaper or book
    areas: tuple[Area, ...]


class ScanPlan(NamedTuple):
    """The documents of a METS file, in the order of their first pages, and the paths of its ALTO files."""

    documents: list[PlannedDocument]
    pages: list[str]  # as written in the METS file


class PageFile(NamedTuple):
    """The bytes of an ALTO file, or the reason why it cannot be read."""

    name: str
    data: bytes
    is_decoded: bool = False  # the data were converted to UTF-8
    fault: str = ""  # end of a sentence with the file as subject


def path_of(reference: str) -> str:
    """Return the path of a file to which a METS file refers, relative to the METS file's folder.

    UnreadableError is raised if the reference is a URL, or leads out of the folder.
    """
    path = unquote(reference.strip()).replace("\\", "/")
    path = re.sub(r"\Afile:(?://)?(?=\.|[^/])", "", path)  # relative paths as docWorks writes them
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part == "..":
            raise _outside(reference)
        elif part not in ("", "."):
            parts.append(part)
    if not parts or path.startswith("/") or "\0" in path or _DRIVE_OR_SCHEME.match(path):
        raise _outside(reference)
    return "/".join(parts)


def _outside(reference: str) -> UnreadableError:
    shown = mark_surrogates(" ".join(reference.split()))
    return UnreadableError(
        f"is at {shown!r:.80}, outside of the METS file's folder, so it is not read: put it into the folder, and refer "
        "to it by a relative path"
    )


# --- parsing a METS file ---------------------------------------------------------------------------------------------


def read_plan(data: bytes, settings: InputSettings) -> ScanPlan:
    """Return the documents of a METS file.

    These are the articles of its logical structure, and the pages of which no article has any part. UnreadableError is
    raised if the file is broken, or refers to no ALTO file.
    """
    root, _ = parse_file(data, settings)
    pages = _page_files(root)
    if not pages:
        others = next(root.iter("{*}mptr"), None) is not None
        why = "points to other METS files, which are read by themselves" if others else "refers to no ALTO file"
        raise left_out(f"is METS that {why}")
    files = {name: number for number, name in enumerate(pages)}
    about = _Descriptions(root)
    articles = list(_articles(root, files, about))
    used = {area.page for article in articles for area in article.areas}
    documents = articles + [page for page in _pages(root, files, about) if page.areas[0].page not in used]
    order = sorted(range(len(documents)), key=lambda number: documents[number].areas[0].page)
    return ScanPlan([documents[number] for number in order], [*pages.values()])


def _page_files(root: Any) -> dict[str, str]:
    """Return the references to ALTO files, by the IDs of their elements, in the order of the METS file."""
    references: list[tuple[bool, str, str]] = []
    is_of_texts = _Inherited(
        lambda element, around: bool(
            around
            or (_is(element, "fileGrp") and any(_TEXTS.search(attribute(element, name)) for name in ("USE", "ID")))
        ),
        False,
    )
    for file in root.iter("{*}file"):
        kind = attribute(file, "MIMETYPE").lower()
        reference = next((attribute(location, f"{_XLINK}href", "href") for location in children(file, "FLocat")), "")
        if not reference or not ("alto" in kind or (kind in _XML_TYPES and _XML_NAME.search(reference))):
            continue
        is_named = bool(_TEXTS.search(kind)) or is_of_texts[file.getparent()]
        references.append((is_named, attribute(file, "ID") or reference, reference))
    are_named = any(is_named for is_named, *_ in references)  # otherwise, all XML files are tried
    return {name: reference for is_named, name, reference in references if is_named or not are_named}


_Value = TypeVar("_Value")


class _Inherited(Generic[_Value]):
    """Look up an inherited property of elements, from the element or its ancestors; each element is evaluated once.

    `evaluate` takes an element and its parent's property (`nothing` for the root), and returns the element's property.
    """

    def __init__(self, evaluate: Callable[[Any, _Value], _Value], nothing: _Value) -> None:
        self._evaluate, self._inherited = evaluate, {None: nothing}

    def __getitem__(self, element: Any) -> _Value:
        inner = []
        while element not in self._inherited:
            inner.append(element)
            element = element.getparent()
        value = self._inherited[element]
        for element in reversed(inner):
            value = self._inherited[element] = self._evaluate(element, value)
        return value


def _is(element: Any, name: str) -> bool:
    return bool(element.tag.rpartition("}")[2] == name)


def _kind(div: Any) -> str:
    return attribute(div, "TYPE").lower()


def _own_areas(div: Any, files: Mapping[str, int], is_title: bool = False) -> Iterator[Area]:
    for pointer in children(div, "fptr"):
        areas = list(pointer.iter("{*}area")) or [pointer]
        for area in areas:
            if (page := files.get(attribute(area, "FILEID"))) is not None:
                begin, end = attribute(area, "BEGIN"), attribute(area, "END")
                is_by_id = attribute(area, "BETYPE").upper() in ("IDREF", "")
                yield Area(page, begin if is_by_id else "", end if is_by_id else "", is_title)


def _areas(div: Any, files: Mapping[str, int], is_title: bool = False, is_body: bool = False) -> Iterator[Area]:
    """Yield the areas of an article or of a part of it (`div`), without those of articles inside of it.

    `is_title` and `is_body` say that the part is in the title or in the body of its article.
    """
    yield from _own_areas(div, files, is_title)
    for part in children(div, "div"):
        kind = _kind(part)
        if kind != "article" and kind not in _BYLINES:
            in_body = is_body or kind == "body"
            yield from _areas(part, files, is_title or (kind in _HEADINGS and not in_body), in_body)


def _articles(root: Any, files: Mapping[str, int], about: "_Descriptions") -> Iterator[PlannedDocument]:
    divs = {name: div for div in root.iter("{*}div") if (name := attribute(div, "ID"))}
    links, most = _links(root), MOST_AREAS
    areas_of: dict[str, list[Area]] = {}  # by ID of a linked div

    def linked_to(name: str) -> list[Area]:
        if name not in areas_of:
            areas_of[name] = [area for area in _own_areas(divs[name], files) if area.begin] if name in divs else []
        return areas_of[name]

    linked: dict[str, list[Area]] = {}  # by ID of an article
    for div in root.iter("{*}div"):
        if _kind(div) != "article":
            continue
        # If a whole page is linked, the article's part of it is unknown.
        areas = [area for area in _areas(div, files) if area.begin]
        if not areas:  # parts of pages may be linked, too
            if (name := attribute(div, "ID")) not in linked:
                parts = (area for other in links.get(name, ()) for area in linked_to(other))
                linked[name] = [*islice(parts, MOST_AREAS + 1)]
            areas = linked[name]
        most -= len(areas)
        if most < 0:
            raise UnreadableError(f"is METS with more than {MOST_AREAS:,} parts of articles: split it")
        if areas:
            yield about.document(div, areas, is_article=True)


def _links(root: Any) -> dict[str, list[str]]:
    """Return for the ID of each div that has links the IDs of the divs that it links to."""
    links = defaultdict[str, list[str]](list)
    for group in root.iter("{*}structLink", "{*}smLinkGrp"):
        labels = {
            attribute(locator, f"{_XLINK}label"): attribute(locator, f"{_XLINK}href").lstrip("#")
            for locator in children(group, "smLocatorLink")
        }
        for link in (*children(group, "smLink"), *children(group, "smArcLink")):
            start, end = (attribute(link, f"{_XLINK}{name}").lstrip("#") for name in ("from", "to"))
            links[labels.get(start, start)].append(labels.get(end, end))
    return links


def _pages(root: Any, files: Mapping[str, int], about: "_Descriptions") -> Iterator[PlannedDocument]:
    """Yield the pages of the physical structure; if it has none, each ALTO file is a page."""
    pages = set[int]()
    for structure in children(root, "structMap"):
        if _kind(structure) != "physical":
            continue
        for div, page in _page_divs(structure, files):
            if page not in pages:
                pages.add(page)
                yield about.document(div, [Area(page, "", "", False)])
    if not pages:
        yield from (about.document(None, [Area(page, "", "", False)]) for page in files.values())


def _page_divs(above: Any, files: Mapping[str, int]) -> Iterator[tuple[Any, int]]:
    """Yield the outermost divs with ALTO files, each with its first file: further files have the same text."""
    for div in children(above, "div"):
        area = next(_own_areas(div, files), None)
        if area is None:
            yield from _page_divs(div, files)
        else:
            yield div, area.page


class _DivMetadata(NamedTuple):
    """The metadata of a `<div>` of a METS file, inherited from its ancestors."""

    date: str = ""  # from the nearest div that has one, like the language
    language: str = ""
    publication: str = ""  # from the outermost div, because inner ones are issues and parts


class _Descriptions:
    """Look up metadata of divs in the MODS and Dublin Core sections of a METS file."""

    def __init__(self, root: Any) -> None:
        self._sections = {attribute(section, "ID"): _description(section) for section in children(root, "dmdSec")}
        of_articles = {name for div in root.iter("{*}div") if _kind(div) == "article" for name in _described_by(div)}
        others = [self._sections[name] for name in self._sections if name not in of_articles]
        firsts = (next(filter(None, texts), "") for texts in zip(*others, strict=True))
        self._any = _Description(*firsts) if others else _Description()
        self._label = _shortened(attribute(root, "LABEL"))
        self._around = _Inherited(self._inherited, _DivMetadata())

    def _inherited(self, element: Any, around: _DivMetadata) -> _DivMetadata:
        if not _is(element, "div"):
            return around
        described = self._own_metadata(element)
        return _DivMetadata(
            described.date or around.date, described.language or around.language, around.publication or described.title
        )

    def _own_metadata(self, div: Any) -> "_Description":
        """Return a div's own title, date and language: the first of each in its metadata sections."""
        descriptions = [self._sections[name] for name in _described_by(div) if name in self._sections]
        return _Description(*(next(filter(None, texts), "") for texts in zip(*descriptions, strict=True)))

    def document(self, div: Any, areas: Iterable[Area], is_article: bool = False) -> PlannedDocument:
        """Return the document of a div, or of a page without a div (None); only an article gets a title."""
        metadata = self._around[div]
        above = _DivMetadata() if div is None else self._around[div.getparent()]
        title = (_shortened(attribute(div, "LABEL")) or self._own_metadata(div).title) if is_article else ""
        return PlannedDocument(
            attribute(div, "ID"),
            title,
            metadata.date or self._any.date,
            metadata.language or self._any.language,
            above.publication or self._any.title or self._label,
            tuple(areas),
        )


def _described_by(div: Any) -> list[str]:
    return attribute(div, "DMDID").split(None, _MOST_DESCRIPTIONS)[:_MOST_DESCRIPTIONS]


class _Description(NamedTuple):
    """The metadata in one section; missing values are ""."""

    title: str = ""
    date: str = ""
    language: str = ""


def _description(section: Any) -> _Description:
    """Return the title, the date and the language in a MODS or Dublin Core section, as far as given."""
    mods = next(section.iter("{*}mods"), None)
    titles = outermost(section, "title") if mods is None else children(mods, "titleInfo")
    dates = (line_of(date) for name in ("dateIssued", "dateCreated", "date") for date in outermost(section, name))
    languages = sorted(outermost(section, "languageTerm"), key=lambda term: term.get("type") != "code")
    languages = languages or list(outermost(section, "language"))
    return _Description(
        _shortened(" ".join(filter(None, map(line_of if mods is None else _title, titles)))),
        iso_date(_shortened(next(filter(None, dates), ""))),
        _shortened(next(filter(None, map(line_of, languages)), "")),
    )


def _shortened(text: str) -> str:
    return " ".join(text[: _LONGEST * 2].split())[:_LONGEST]


def _title(info: Any) -> str:
    parts = (line_of(part) for name in ("nonSort", "title") for part in children(info, name))
    return " ".join(filter(None, parts))


# --- documents with the pages that they need -------------------------------------------------------------------------


def block_of(model: Block, position: int, documents: Sequence[PlannedDocument], pages: Mapping[int, PageFile]) -> Block:
    """Return a block of documents, with the pages that have their texts; `model` is a block without data to copy from.

    `position` is the number of the first document, and `pages` has the pages by number.
    """
    numbers = sorted(pages)
    listed = [(number, *pages[number]._replace(data=b""), len(pages[number].data)) for number in numbers]
    texts: dict[str, int] = {}  # the number of each text: documents share titles, and areas share IDs

    def number_of(text: str) -> int:
        return texts.setdefault(text, len(texts))

    numbered = [
        (
            *map(number_of, document[:-1]),
            [(area.page, number_of(area.begin), number_of(area.end), area.is_title) for area in document.areas],
        )
        for document in documents
    ]
    header = [
        [(number, name, decoded, fault, length) for number, name, _, decoded, fault, length in listed],
        [*texts],
        numbered,
    ]
    data = b"".join(pages[number].data for number in numbers)
    return model._replace(data=data, position=position, offset=-1, header=json.dumps(header).encode())


def _spans(block: Block, _: InputSettings) -> list[RecordSpan]:
    *_, documents = json.loads(block.header)
    return [
        RecordSpan(position, -1, json.dumps(document).encode())
        for position, document in enumerate(documents, block.position)
    ]


class _Pages:
    """Parse the pages of a block, each once."""

    def __init__(self, block: Block, settings: InputSettings) -> None:
        listed, self._texts, documents = json.loads(block.header)
        self._settings, self._data, self._files, start = settings, block.data, dict[int, tuple[Any, ...]](), 0
        for number, name, is_decoded, fault, length in listed:
            self._files[number] = (name, is_decoded, fault, start, start + length)
            start += length
        named = {number for document in documents for _, *numbers, _ in document[-1] for number in numbers}
        self._wanted = {self._texts[number] for number in named} - {""}
        self._pages: dict[int, AltoPage | str] = {}
        self._left: dict[int, int] = {}  # how many more words of each page may be used in documents

    def document(self, data: bytes) -> PlannedDocument:
        """Return the document that `_spans` has encoded in these bytes."""
        *numbers, areas = json.loads(data)
        texts = self._texts
        parts = tuple(Area(page, texts[begin], texts[end], is_title) for page, begin, end, is_title in areas)
        name, title, date, language, publication = (texts[number] for number in numbers)
        return PlannedDocument(name, title, date, language, publication, parts)

    def words(self, area: Area) -> list[Word]:
        """Return the words of an area; raise UnreadableError if its page cannot be read or has no such area."""
        name, *_ = self._files[area.page]
        page = self._pages.get(area.page)
        if page is None:
            page = self._pages[area.page] = self._parsed(area.page)
        if isinstance(page, str):
            fault = page
            raise UnreadableError(f"needs {name}, which {fault}")
        words = page.between(area.begin, area.end)
        if words is None:
            begin = mark_surrogates(f"{area.begin!r:.60}")
            raise UnreadableError(
                f"needs {name}, which has no element {begin}: check whether the files belong together"
            )
        left = self._left.get(area.page, max(MOST_TIMES * len(page.words), LEAST_WORDS)) - len(words)
        if left < 0:
            raise UnreadableError(f"needs words of {name} that {MOST_TIMES} documents have: check the METS file")
        self._left[area.page] = left
        return words

    def _parsed(self, number: int) -> AltoPage | str:
        _, is_decoded, fault, start, stop = self._files[number]
        settings = self._settings._replace(encoding="utf-8") if is_decoded else self._settings
        try:
            return fault or read_page(self._data[start:stop], settings, self._wanted)
        except UnreadableError as error:
            return error.fault


def _parser(block: Block, settings: InputSettings) -> Callable[[RecordSpan], Record]:
    pages = _Pages(block, settings)

    def parse(span: RecordSpan) -> Record:
        document = pages.document(span.data)
        texts: dict[bool, list[Word]] = {True: [], False: []}
        length = 0
        for area in document.areas:
            words = pages.words(area)
            length += sum(len(word.text) + len(word.whole) + 1 for word in words)
            if length > settings.max_bytes:  # the same words were used too often
                raise settings.too_long(length)
            texts[area.is_title] += words
        words = texts[True] + texts[False]
        return _content(document, words, text_of(texts[True]), text_of(texts[False]), block.source, settings)

    return parse


def _content(
    document: PlannedDocument, words: list[Word], title: str, body: str, source: str, settings: InputSettings
) -> Record:
    if not (title or body):
        raise left_out("has no words")
    title = " ".join(title.split()) if title else document.title
    language = document.language or main_language(words)
    said = {"date": document.date, "language": language, "publication": document.publication}
    fields = settings.kept(said | {"word_confidence": mean_confidence(words)})
    zones = titled_zones(title, [body], settings)
    name = f"{source}#{document.id}" if document.id else ""
    return Record(name, zones, (), document.date, fields=fields, language=language)


FORMAT = RecordFormat(_spans, _parser, "Document {}")
