"""Read lists of references in RIS and MEDLINE, write RIS, and share code with other formats of references.

In every format, a reference becomes fields with the same names: id, type, title, abstract, authors, year, date,
journal, volume, issue, pages, publisher, issn, doi, pmid, url, language, keywords and notes. Any other field keeps the
name that its source has for it. Authors, keywords and notes are lists. If fields are kept, a reference that was read
from RIS also has its lines, as the field `ris`, so that it can be written as it was.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from textcat.reading.dates import day_of, iso_date
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.jsonl import object_content
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_LISTS = frozenset({"authors", "keywords", "notes"})
#: The RIS tags of each field; the first one is used for writing.
RIS_TAGS = {
    "type": ("TY",),
    "id": ("ID", "AN"),
    "title": ("TI", "T1", "CT", "BT"),
    "abstract": ("AB", "N2"),
    "authors": ("AU", "A1"),
    "year": ("PY", "Y1"),
    "date": ("DA",),
    "journal": ("T2", "JF", "JO", "JA", "J2"),
    "volume": ("VL",),
    "issue": ("IS",),
    "pages": ("SP",),
    "publisher": ("PB",),
    "issn": ("SN",),
    "doi": ("DO",),
    "url": ("UR", "LK"),
    "language": ("LA",),
    "keywords": ("KW",),
    "notes": ("N1",),
}
_MEDLINE_TAGS = {
    "type": ("PT",),
    "id": ("PMID",),
    "title": ("TI", "BTI", "TT"),
    "abstract": ("AB", "OAB"),
    "authors": ("FAU",),
    "date": ("DP",),
    "journal": ("JT", "TA"),
    "volume": ("VI",),
    "issue": ("IP",),
    "pages": ("PG",),
    "publisher": ("PB",),
    "issn": ("IS",),
    "doi": ("doi",),
    "pmid": ("pmid",),
    "language": ("LA",),
    "keywords": ("MH", "OT"),
    "notes": ("GN",),
}
#: Further RIS tags whose meaning is the same in every source.
_OTHER_RIS = re.compile(r"A[234N]|AD|C[1-8ANY]|DB|ET|J[12AFO]|L[1-4B]|M[123]|N2|NV|OP|RI|RP|SE|ST|T[13T]|U[1-5]|Y[12]")
#: RIS tags of further fields, by their names in other formats, in lower case.
_FURTHER_RIS = {
    "accession": "AN",
    "accession-num": "AN",
    "address": "CY",
    "affiliations": "AD",
    "art. no.": "C7",
    "article number": "C7",
    "auth-address": "AD",
    "database": "DB",
    "dp": "",  # MEDLINE's date, which `date` has already
    "edition": "ET",
    "editor": "A2",
    "eid": "AN",
    "fed": "A2",
    "institution": "PB",
    "isbn": "SN",
    "label": "LB",
    "location": "CY",
    "pl": "CY",
    "place": "CY",
    "pmc": "C2",
    "pmcid": "C2",
    "pmid": "AN",
    "pubmed id": "AN",
    "remote-database-name": "DB",
    "school": "PB",
    "series": "T3",
    "short-title": "ST",
    "shorttitle": "ST",
    "ta": "J2",
    "urldate": "Y2",
    "ut (unique wos id)": "AN",
    "work-type": "M3",
}
_RIS_TYPES = {
    "article": "JOUR",
    "journal article": "JOUR",
    "book": "BOOK",
    "book section": "CHAP",
    "conference paper": "CPAPER",
    "conference proceedings": "CONF",
    "incollection": "CHAP",
    "inproceedings": "CPAPER",
    "mastersthesis": "THES",
    "phdthesis": "THES",
    "report": "RPRT",
    "techreport": "RPRT",
    "thesis": "THES",
}
#: Other names of fields, in lower case, in tables of databases and programs.
_OTHER_NAMES = {
    "authors": ("authors", "author", "author(s)", "creators", "creator", "author full names"),
    "year": ("year", "publication year", "publication_year", "pub_year", "published"),
    "journal": ("journal", "journal/book", "source title", "publication title", "journal title", "venue", "source"),
    "volume": ("volume", "vol", "vol."),
    "issue": ("issue", "issue number", "no.", "number"),
    "pages": ("pages", "page", "page numbers", "page range"),
    "publisher": ("publisher",),
    "issn": ("issn", "isbn/issn", "issn/isbn"),
    "doi": ("doi", "doi link", "digital object identifier"),
    "pmid": ("pmid", "pubmed id", "pubmed_id", "pubmedid", "pubmed"),
    "url": ("url", "link", "links", "urls"),
    "language": ("language", "language of original document", "languages"),
    "keywords": ("keywords", "author keywords", "key words"),
    "type": ("type", "document type", "publication type", "item type", "reference type"),
    "notes": ("notes", "note"),
}
_PAGE_ENDS = ("page start", "start page"), ("page end", "end page")
_RIS_START = re.compile(rb"^(?:\xef\xbb\xbf)?TY[ \t]{1,3}-", re.MULTILINE)
_RIS_LINE = re.compile(r"([A-Z][A-Z0-9])[ \t]{1,3}-(?:[ \t]+(.*)|[ \t]*)")
_RIS_END = re.compile(r"\nER[ \t]{1,3}-(?:[ \t].*)?(?=\n|\Z)")
_MEDLINE_START = re.compile(rb"^(?:\xef\xbb\xbf)?PMID-[ \t]*[0-9]", re.MULTILINE)
_MEDLINE_LINE = re.compile(r"(?=.{4}-)([A-Z]{2,4}) *-(?:[ \t]+(.*)|[ \t]*)")
_INITIALS = re.compile(r"\S.*\s[A-Z][A-Z.\- ]{0,7}")  # a name such as "Doe J." in a comma-separated list
_ISO_DATE = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")
_PUBMED = re.compile(r"pubmed|medline|\bnlm\b", re.IGNORECASE)
_RIS_DATE = re.compile(r"(\d{4})(?:/(\d\d)?(?:/(\d\d)?(?:/.*)?)?)?", re.ASCII)
_SEASON = re.compile(r"(\d{4}) [^\W\d_]+(?:-[^\W\d_]+)?")
_YEAR = re.compile(r"(?<!\d)(1[5-9]|20)\d\d(?!\d)")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>]+")


class StartCutter:
    """Cut a file of references into records: before each match of `start`, with which a record begins.

    In most formats, a record begins at the start of a line; in EndNote's XML, it may begin within a line.
    """

    def __init__(self, start: re.Pattern[bytes]) -> None:
        self._start = start
        # Several times as fast as ^ at every byte; the end of a line that is too long is missing.
        begins_line = start.pattern.startswith(b"^")
        self._behind_line_end = re.compile(rb"\n(?=" + start.pattern[1:] + rb")") if begins_line else None

    def _starts(self, data: bytes) -> Iterator[int]:
        if self._behind_line_end is None:
            yield from (match.start() for match in self._start.finditer(data))
            return
        if self._start.match(data):
            yield 0
        yield from (match.end() for match in self._behind_line_end.finditer(data))

    def cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of the data."""
        starts = list(self._starts(data))
        return starts[-1] if len(starts) > 1 else 0  # text before the first record belongs to it

    def count(self, data: bytes) -> int:
        """Return how many records start in the data."""
        return sum(1 for _ in self._starts(data))

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of the data belong to the record that is being skipped, and whether it ends there."""
        end = next(filter(None, self._starts(data)), 0)
        if end:
            return end, True
        # The rest begins with line ends, or within a line, so no record begins at its first byte.
        last_line = min(data.rfind(b"\n"), len(data.rstrip()))
        return last_line if last_line > 0 else max(len(data) - 1, 0), False


def reference_format(
    start: re.Pattern[bytes], content: Callable[[Block, InputSettings, RecordSpan], Record]
) -> RecordFormat:
    """Return a format whose records begin at matches of `start`, and are parsed by `content`, as in `by_record`."""
    return RecordFormat(partial(spans_from, start), by_record(content), "Record {}", lambda *_: StartCutter(start))


def spans_from(start: re.Pattern[bytes], block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    """Yield the `RecordSpan` of each record of a block; each begins at a match of `start`."""
    data, offset = block.without_mark(settings)
    position, starts = block.position, [match.start() for match in start.finditer(data)]
    for begin, end in pairwise([*starts, len(data)]):
        yield RecordSpan(position, offset + begin, data[begin:end])
        position += 1
    # Text before the first record is skipped: some databases write the origin of the list there.
    if not starts and data.strip() and block.offset == 0:
        yield RecordSpan(position, offset, data)


def reference_content(fields: dict[str, Any], settings: InputSettings) -> Record:
    """Convert the fields of a reference to the content of a record.

    By default, title and abstract are its texts, and keywords its topics.
    """
    if settings.is_default("text_fields") and not (fields.get("title") or fields.get("abstract")):
        raise UnreadableError("has neither title nor abstract: add one, or leave it out")
    settings, lists, absent = _for_references(settings, "topics" not in fields and "keywords" in fields)
    joined = {name: "; ".join(fields[name]) for name in lists if name in fields}
    if settings.topics_field in joined:
        settings = settings._replace(topics_separator=settings.topics_separator or ";")
    content = object_content({**absent, **fields, **joined}, settings)
    if settings.is_default("date_field"):
        content = content._replace(date=_date_of(fields) or content.date)
    if not settings.fields:
        return content
    return content._replace(fields={name: fields[name] for name in content.fields or () if name in fields})


def _date_of(fields: Mapping[str, Any]) -> str:
    """Return the date of a reference in ISO 8601, which some formats divide into date or month, and year; "" if none.

    A date of RIS, YYYY/MM/DD/other, may lack any part but the year, and a date of PubMed may have a season.
    """
    date, year, month, day = (str(fields.get(name) or "").strip() for name in ("date", "year", "month", "day"))
    if of_ris := _RIS_DATE.fullmatch(date):
        date = "-".join(filter(None, of_ris.groups()))
    if day_of(written := iso_date(date)):
        return written
    if in_season := _SEASON.fullmatch(date):
        return in_season[1]
    if _YEAR.search(date):  # such as ca. 1848, which is not 1848
        return ""
    month = month.zfill(2) if month.isdigit() else month
    with_year = f"{date} {year}" if date else ""
    forms = with_year, f"{day} {month} {year}", f"{year}-{month}-{day.zfill(2)}", f"{year}-{month}", year
    return next(filter(day_of, map(iso_date, forms)), "")


@lru_cache(maxsize=64)  # cached, because changing a NamedTuple of many settings for every reference is slow
def _for_references(
    settings: InputSettings, by_keywords: bool
) -> tuple[InputSettings, frozenset[str], dict[str, None]]:
    """Return the settings for references, the text fields that are lists, and the fields that a reference may lack.

    If `by_keywords`, keywords are its topics, unless the settings name another field.
    """
    if settings.is_default("text_fields"):
        settings = settings._replace(text_fields=("title", "abstract"))
    if settings.is_default("topics_field") and by_keywords:
        settings = settings._replace(topics_field="keywords")
    absent = dict.fromkeys(name for name in ("title", "abstract", *settings.text_fields) if name in RIS_TAGS)
    return settings, _LISTS & {*settings.text_fields}, absent


def reference_fields(values: Mapping[str, list[str]], tags: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Convert the tags of a reference, such as RIS's ``AU``, to fields with common names, such as "authors".

    `values` has the texts of each tag of the source, and `tags` lists the tags of each common name. A field that is a
    list gets the texts of all its tags, and the abstract all texts of one tag, each on a line. Any other field gets the
    first text of the first of its tags that occurs. The remaining texts are returned under their tags.
    """
    fields: dict[str, Any] = {}
    left = {tag: texts for tag, texts in values.items() if texts}
    for name, sources in tags.items():
        if left.keys().isdisjoint(sources):
            continue
        if name in _LISTS:
            fields[name] = [text for tag in sources for text in left.pop(tag, ())]
            continue
        tag = next(tag for tag in sources if tag in left)
        first, *others = left.pop(tag)
        if name == "abstract":  # in several languages, or in parts
            first, others = "\n".join([first, *others]), []
        if others:
            left[tag] = others
        fields[name] = first
    if year := _YEAR.search(fields.get("year") or fields.get("date", "")):
        if fields.get("year", year[0]) != year[0]:
            fields.setdefault("date", fields["year"].strip("/"))
        fields["year"] = year[0]
    if doi := _DOI.search(fields.get("doi", "")):
        fields["doi"] = doi[0]
    return fields | {tag: texts[0] if len(texts) == 1 else texts for tag, texts in left.items()}


def common_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields of a reference in a table to common names: "Publication Year" becomes "year".

    A field without a common name keeps its name.
    """
    taken, page_ends = _common_names(tuple(fields))
    renamed = {taken.get(name, name): value for name, value in fields.items()}
    if "pages" not in renamed and (pages := "-".join(str(fields[name]) for name in page_ends if fields[name])):
        renamed["pages"] = pages
    if year := _YEAR.search(str(renamed.get("year") or renamed.get("date") or "")):
        renamed["year"] = year[0]
    return renamed


@lru_cache(maxsize=1024)  # the records of a source have few distinct sets of names
def _common_names(given: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Return the common names of fields by the given names, and the names of the fields of the first and last page."""
    names = {name.lower().strip(): name for name in reversed(given)}
    taken = {}
    for common, others in _OTHER_NAMES.items():
        source = common if common in given else next((names[other] for other in others if other in names), None)
        if source is not None:
            taken[source] = common
    ends = (next((names[end] for end in of_end if end in names), None) for of_end in _PAGE_ENDS)
    return taken, [end for end in ends if end is not None]


def ris_entry(fields: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """Return a reference as an entry of RIS, with further notes behind its own; the entry ends with an empty line.

    `fields` are those of `Document.fields` with title and abstract; their names are common names or tags of RIS. If the
    reference was read from RIS, its lines are written as they were read; otherwise, fields without a tag are left out.
    """
    further = "".join(f"N1  - {' '.join(note.split())}\n" for note in notes)
    if lines := fields.get("ris"):
        return f"{lines}\n{further}ER  - \n\n"
    kind = str(fields.get("type") or "")
    by_default = "JOUR" if fields.get("journal") else "GEN"
    of_ris = kind if re.fullmatch("[A-Z]{3,7}", kind) else _RIS_TYPES.get(kind.lower(), "")
    lines = [("TY", of_ris or by_default), *([] if of_ris or not kind else [("M3", " ".join(kind.split()))])]
    first, _, last = str(fields.get("pages") or "").partition("-")
    values = {**fields, "type": None, "pages": first, "EP": last.strip("-")}
    for name, value in values.items():
        tag = RIS_TAGS[name][0] if name in RIS_TAGS else _FURTHER_RIS.get(name.lower(), name)
        if name in RIS_TAGS or name.lower() in _FURTHER_RIS or name == "EP" or _OTHER_RIS.fullmatch(name):
            lines += [
                (tag, text)
                for value_text in _texts_for_ris(tag, value)
                if tag and (text := " ".join(value_text.split()))
            ]
    return "".join(f"{tag}  - {text}\n" for tag, text in dict.fromkeys(lines)) + f"{further}ER  - \n\n"


def _texts_for_ris(tag: str, value: Any) -> list[str]:
    """Return the texts that a field has in RIS: each author or keyword is one, and dates have slashes."""
    texts = [str(item) for item in (value if isinstance(value, list) else [value]) if item is not None]
    if tag in ("AU", "A2", "KW") and isinstance(value, str):
        return divided_names(value) if tag != "KW" else value.split(";")
    if tag in ("DA", "Y2"):
        return [f"{date[1]}/{date[2]}/{date[3] or ''}/" if (date := _ISO_DATE.match(text)) else text for text in texts]
    return texts


def divided_names(names: str) -> list[str]:
    """Split a text into the names of persons, at semicolons, the word "and", or commas behind initials."""
    if ";" in names:
        return [*filter(None, map(str.strip, names.split(";")))]
    if " and " in names:
        return [*filter(None, map(str.strip, names.split(" and ")))]
    parts = [*filter(None, map(str.strip, names.split(",")))]
    if not (parts[1:] and all(map(_INITIALS.fullmatch, parts))):
        return [names.strip()]
    ends_list = parts[-1].endswith(".") and not parts[0].endswith(".")
    return [*parts[:-1], parts[-1].removesuffix(".") if ends_list else parts[-1]]


def tagged_lines(text: str, line_pattern: re.Pattern[str], end: str = "") -> dict[str, list[list[str]]]:
    """Return for each tag in a record, which ends at the tag `end`, if that occurs, its texts, each as its lines.

    A line without a tag continues the text of the line before.
    """
    values: dict[str, list[list[str]]] = {}  # lines of each text
    lines: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():  # in a concatenated file
        if match := line_pattern.fullmatch(line):
            if match[1] == end:
                break
            lines = [(match[2] or "").strip()]
            values.setdefault(match[1], []).append(lines)
        elif lines:
            lines.append(line.strip())
    return values


def _tagged_values(text: str, line_pattern: re.Pattern[str], end: str = "") -> dict[str, list[str]]:
    """Return the texts of each tag in a record, as `tagged_lines` finds them; none of them is empty."""
    joined = {
        tag: [" ".join(filter(None, lines)) if lines[1:] else lines[0] for lines in texts]
        for tag, texts in tagged_lines(text, line_pattern, end).items()
    }
    return {tag: kept for tag, texts in joined.items() if (kept := [*filter(None, texts)])}


def _ris_content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    text = span.text(settings)
    values = _tagged_values(text, _RIS_LINE, "ER")
    if "TY" not in values:
        raise UnreadableError("has no line such as 'TY  - JOUR', so it is not RIS: name its format with --format")
    if "AU" in values and "A1" in values:  # perhaps the same persons, with their names in other forms
        persons = {_surname(name) for name in values["AU"]}
        values["A1"] = [name for name in values["A1"] if _surname(name) not in persons]
    if "EP" in values and "SP" in values and "-" not in values["SP"][0]:
        values["SP"][0] += f"-{values.pop('EP')[0]}"
    accession = values.get("AN", [""])[0]  # used as the id of a reference without another id
    of_pubmed = accession.isdecimal() and _PUBMED.search(" ".join(values.get("DB", []) + values.get("DP", [])))
    fields = reference_fields(values, RIS_TAGS)
    fields |= {"pmid": accession} if of_pubmed else {}
    if settings.fields:
        fields["ris"] = _lines_of_ris(text)
    return reference_content(fields, settings)


def _surname(name: str) -> str:
    return name.partition(",")[0].strip().casefold()


def _lines_of_ris(text: str) -> str:
    """Return the lines of a record, up to the one that ends it, as they are."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    end = _RIS_END.search(text)
    return "\n".join(map(str.rstrip, text[: end and end.start()].split("\n"))).strip("\n")


def _medline_content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    values = _tagged_values(span.text(settings), _MEDLINE_LINE)
    if "PMID" not in values:
        raise UnreadableError(
            "has no line such as 'PMID- 123', so it is not from PubMed: name its format with --format"
        )
    short = values.pop("AU", [])  # full names are in FAU, except in old records
    values.setdefault("FAU", short)
    values["pmid"] = values["PMID"][:1]
    if "MH" in values:  # an asterisk marks the headings and subheadings that a reference is chiefly about
        values["MH"] = [heading.replace("*", "") for heading in values["MH"]]
    values["doi"] = [
        identifier for tag in ("LID", "AID") for identifier in values.get(tag, ()) if identifier.endswith("[doi]")
    ]
    return reference_content(reference_fields(values, _MEDLINE_TAGS), settings)


RIS = reference_format(_RIS_START, _ris_content)
MEDLINE = reference_format(_MEDLINE_START, _medline_content)
