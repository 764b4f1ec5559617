"""Read METS whose text is in ALTO files beside it: its articles are documents, or else its pages.

`read_plan` tells, for a METS file, which documents it has and which parts of which ALTO files each consists of. Whoever
reads the files puts documents and the pages that they need into blocks (`block_of`), which `FORMAT` parses. Other METS
files, to which one may point, are not followed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from textcat.reading.dates import iso_date
from textcat.reading.formats.alto import (
    AltoPage,
    Word,
    kept_fields,
    main_language,
    mean_confidence,
    read_page,
    text_of,
)
from textcat.reading.formats.news import left_out
from textcat.reading.formats.xml_items import attribute, children, line_of, parse_file
from textcat.reading.records import (
    Block,
    InputSettings,
    RecordContent,
    RecordFormat,
    RecordSpan,
    UnreadableError,
    titled_zones,
)
from textcat.surrogates import mark_surrogates

#: Parts of articles in a METS file; each may be linked to many times.
MOST_AREAS = 1_000_000
_MOST_DESCRIPTIONS = 32  # of a div, as they are looked up for all that is inside of it
_XLINK = "{http://www.w3.org/1999/xlink}"
_HEADINGS, _BYLINES = frozenset(("heading", "headline", "title")), frozenset(("author", "byline"))
_XML_TYPES = frozenset(("", "text/xml", "application/xml"))
_TEXTS = re.compile(r"alto|fulltext", re.IGNORECASE)
_XML_NAME = re.compile(r"\.xml(?:\.\w+)?\Z", re.IGNORECASE)
_DOTTED = re.compile(r"\A(\d\d)\.(\d\d)\.(\d{4})\Z")  # as European libraries write dates
_DRIVE_OR_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Area(NamedTuple):
    """Name a part of a document: the words of an ALTO file from one element to another."""

    page: int  # the number of the file among those of the METS file
    begin: str  # the ID of the first element; "": the whole file
    end: str  # the ID of the last element; "": the first one only
    is_title: bool


class PlannedDocument(NamedTuple):
    """Hold what a METS file says about a document, besides its text."""

    id: str  # in the METS file; or ""
    title: str  # for a document whose areas have none
    date: str
    language: str
    publication: str  # the title of the newspaper or book
    areas: tuple[Area, ...]


class Plan(NamedTuple):
    """Hold the documents of a METS file, in the order of their first pages, and the ALTO files that have their text."""

    documents: list[PlannedDocument]
    pages: list[str]  # as the METS file refers to them


class PageFile(NamedTuple):
    """Hold the bytes of an ALTO file, or why it cannot be read."""

    name: str
    data: bytes
    is_decoded: bool = False  # the data were converted to UTF-8
    fault: str = ""  # the end of a sentence whose subject is the file


def path_of(reference: str) -> str:
    """Return the path of a file to which a METS file refers, from its own folder on.

    UnreadableError is raised if the reference is a URL, or leads out of the folder.
    """
    path = unquote(reference.strip()).replace("\\", "/")
    path = re.sub(r"\Afile:(?://)?(?=\.|[^/])", "", path)  # as docWorks writes relative paths
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


# --- what a METS file says --------------------------------------------------------------------------------------------


def read_plan(data: bytes, settings: InputSettings) -> Plan:
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
    return Plan([documents[number] for number in order], [*pages.values()])


def _page_files(root: Any) -> dict[str, str]:
    """Return the references to ALTO files, by the IDs of their elements, in the order of the METS file."""
    found: list[tuple[bool, str, str]] = []
    for file in root.iter("{*}file"):
        kind = attribute(file, "MIMETYPE").lower()
        reference = next((attribute(one, f"{_XLINK}href", "href") for one in children(file, "FLocat")), "")
        if not reference or not ("alto" in kind or (kind in _XML_TYPES and _XML_NAME.search(reference))):
            continue
        groups = (one for one in file.iterancestors("{*}fileGrp"))
        said = [kind, *(attribute(one, name) for one in groups for name in ("USE", "ID"))]
        found.append((any(map(_TEXTS.search, said)), attribute(file, "ID") or reference, reference))
    are_named = any(is_named for is_named, *_ in found)  # or else all XML files are tried
    return {name: reference for is_named, name, reference in found if is_named or not are_named}


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
    """Yield the areas of an article or of a part of it, without those of articles inside of it."""
    yield from _own_areas(div, files, is_title)
    for part in children(div, "div"):
        kind = _kind(part)
        if kind != "article" and kind not in _BYLINES:
            in_body = is_body or kind == "body"
            yield from _areas(part, files, is_title or (kind in _HEADINGS and not in_body), in_body)


def _articles(root: Any, files: Mapping[str, int], about: "_Descriptions") -> Iterator[PlannedDocument]:
    divs = {name: div for div in root.iter("{*}div") if (name := attribute(div, "ID"))}
    links, most = _links(root), MOST_AREAS
    for div in root.iter("{*}div"):
        if _kind(div) != "article":
            continue
        # Of a whole page, it is not known which part is the article's.
        areas = [area for area in _areas(div, files) if area.begin]
        if not areas:  # the parts of pages may be linked to
            linked = (divs[name] for name in links.get(attribute(div, "ID"), ()) if name in divs)
            areas = [*islice((area for one in linked for area in _own_areas(one, files) if area.begin), most + 1)]
        most -= len(areas)
        if most < 0:
            raise UnreadableError(f"is METS with more than {MOST_AREAS:,} parts of articles: split it")
        if areas:
            yield about.document(div, areas, attribute(div, "LABEL") or about.own(div, "title"))


def _links(root: Any) -> dict[str, list[str]]:
    """Return the links from one div to others, by IDs."""
    links = defaultdict[str, list[str]](list)
    for group in root.iter("{*}structLink", "{*}smLinkGrp"):
        labels = {
            attribute(one, f"{_XLINK}label"): attribute(one, f"{_XLINK}href").lstrip("#")
            for one in children(group, "smLocatorLink")
        }
        for link in (*children(group, "smLink"), *children(group, "smArcLink")):
            start, end = (attribute(link, f"{_XLINK}{name}").lstrip("#") for name in ("from", "to"))
            links[labels.get(start, start)].append(labels.get(end, end))
    return links


def _pages(root: Any, files: Mapping[str, int], about: "_Descriptions") -> Iterator[PlannedDocument]:
    """Yield the pages of the physical structure; if it has none, each ALTO file is a page."""
    found = set[int]()
    for structure in children(root, "structMap"):
        if _kind(structure) != "physical":
            continue
        for div, page in _page_divs(structure, files):
            if page not in found:
                found.add(page)
                yield about.document(div, [Area(page, "", "", False)])
    if not found:
        yield from (about.document(None, [Area(page, "", "", False)]) for page in files.values())


def _page_divs(above: Any, files: Mapping[str, int]) -> Iterator[tuple[Any, int]]:
    """Yield the outermost divs that have ALTO files, each with its first file: others have the same text."""
    for div in children(above, "div"):
        area = next(_own_areas(div, files), None)
        if area is None:
            yield from _page_divs(div, files)
        else:
            yield div, area.page


class _Descriptions:
    """Look up what the sections of MODS and Dublin Core in a METS file say about its divs."""

    def __init__(self, root: Any) -> None:
        self._sections = {attribute(one, "ID"): _description(one) for one in root.iter("{*}dmdSec")}
        of_articles = {name for div in root.iter("{*}div") if _kind(div) == "article" for name in _described_by(div)}
        self._others = [self._sections[name] for name in self._sections if name not in of_articles]
        self._label = attribute(root, "LABEL")

    def own(self, div: Any, what: str) -> str:
        """Return what the first of a div's own sections says that says anything; or ""."""
        return next(filter(None, (self._sections.get(name, {}).get(what, "") for name in _described_by(div))), "")

    def _nearest(self, div: Any, what: str) -> str:
        """Return what the sections of a div say, or else those of the divs around it, or else any of the whole."""
        around = () if div is None else (div, *div.iterancestors("{*}div"))
        said = next(filter(None, (self.own(one, what) for one in around)), "")
        return said or self._any(what)

    def _any(self, what: str) -> str:
        return next(filter(None, (section.get(what, "") for section in self._others)), "")

    def _publication(self, div: Any) -> str:
        """Return the title of the outermost div that has one, as those inside are issues and parts of these."""
        around = [] if div is None else [*div.iterancestors("{*}div")][::-1]
        return next(filter(None, (self.own(one, "title") for one in around)), "") or self._any("title") or self._label

    def document(self, div: Any, areas: Iterable[Area], title: str = "") -> PlannedDocument:
        """Return the document of a div, or of a page without one."""
        return PlannedDocument(
            attribute(div, "ID"),
            title,
            iso_date(self._nearest(div, "date")),
            self._nearest(div, "language"),
            self._publication(div),
            tuple(areas),
        )


def _described_by(div: Any) -> list[str]:
    return attribute(div, "DMDID").split(None, _MOST_DESCRIPTIONS)[:_MOST_DESCRIPTIONS]


def _description(section: Any) -> dict[str, str]:
    """Return the title, the date and the language in a section of MODS or Dublin Core, as far as it has them."""
    mods = next(section.iter("{*}mods"), None)
    titles = section.iter("{*}title") if mods is None else children(mods, "titleInfo")
    dates = [line_of(one) for name in ("dateIssued", "dateCreated", "date") for one in section.iter(f"{{*}}{name}")]
    languages = sorted(section.iter("{*}languageTerm"), key=lambda one: one.get("type") != "code")
    languages = languages or list(section.iter("{*}language"))
    return {
        "title": " ".join(filter(None, map(line_of if mods is None else _title, titles))),
        "date": _DOTTED.sub(r"\3-\2-\1", next(filter(None, dates), "")),
        "language": next(filter(None, map(line_of, languages)), ""),
    }


def _title(info: Any) -> str:
    parts = (line_of(one) for name in ("nonSort", "title") for one in children(info, name))
    return " ".join(filter(None, parts))


# --- documents with the pages that they need --------------------------------------------------------------------------


def block_of(model: Block, position: int, documents: Sequence[PlannedDocument], pages: Mapping[int, PageFile]) -> Block:
    """Return a block of documents with the pages that they need, by number; `model` is a block without data."""
    numbers = sorted(pages)
    listed = [(number, *pages[number]._replace(data=b""), len(pages[number].data)) for number in numbers]
    header = [
        [(number, name, decoded, fault, length) for number, name, _, decoded, fault, length in listed],
        documents,
    ]
    data = b"".join(pages[number].data for number in numbers)
    return model._replace(data=data, position=position, offset=-1, header=json.dumps(header).encode())


def _spans(block: Block, _: InputSettings) -> list[RecordSpan]:
    _, documents = json.loads(block.header)
    return [
        RecordSpan(position, -1, json.dumps(document).encode())
        for position, document in enumerate(documents, block.position)
    ]


class _Pages:
    """Parse the pages of a block, each once."""

    def __init__(self, block: Block, settings: InputSettings) -> None:
        listed, documents = json.loads(block.header)
        self._settings, self._data, self._files, start = settings, block.data, dict[int, tuple[Any, ...]](), 0
        for number, name, is_decoded, fault, length in listed:
            self._files[number] = (name, is_decoded, fault, start, start + length)
            start += length
        self._wanted = {name for document in documents for _, begin, end, _ in document[-1] for name in (begin, end)}
        self._pages: dict[int, AltoPage | str] = {}

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
        return words

    def _parsed(self, number: int) -> AltoPage | str:
        _, is_decoded, fault, start, stop = self._files[number]
        settings = self._settings._replace(encoding="utf-8") if is_decoded else self._settings
        try:
            return fault or read_page(self._data[start:stop], settings, self._wanted - {""})
        except UnreadableError as error:
            return error.fault


def _parser(block: Block, settings: InputSettings) -> Callable[[RecordSpan], RecordContent]:
    pages = _Pages(block, settings)

    def parse(span: RecordSpan) -> RecordContent:
        name, title, date, language, publication, areas = json.loads(span.data)
        areas = tuple(Area(*area) for area in areas)
        document = PlannedDocument(name, title, date, language, publication, areas)
        texts: dict[bool, list[Word]] = {True: [], False: []}
        for area in document.areas:
            texts[area.is_title].extend(pages.words(area))
            if len(texts[area.is_title]) > settings.max_bytes:  # the same words again and again
                raise settings.too_long(len(texts[area.is_title]))
        words = texts[True] + texts[False]
        return _content(document, words, text_of(texts[True]), text_of(texts[False]), block.source, settings)

    return parse


def _content(
    document: PlannedDocument, words: list[Word], title: str, body: str, source: str, settings: InputSettings
) -> RecordContent:
    if not (title or body):
        raise left_out("has no words")
    title = " ".join((title or document.title).split())
    language = document.language or main_language(words)
    said = {"date": document.date, "language": language, "publication": document.publication}
    fields = kept_fields(settings, said | {"word_confidence": mean_confidence(words)})
    zones = titled_zones(title, [body], settings)
    name = f"{source}#{document.id}" if document.id else ""
    return RecordContent(name, zones, (), document.date, fields=fields, language=language)


FORMAT = RecordFormat(_spans, _parser, "Document {}")
