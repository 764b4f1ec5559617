"""Read TEI (P5 and older), the format of text archives: a `<TEI>` is a document.

A `<teiCorpus>` is read document by document. Of alternatives, such as the original and the corrected spelling, the
editor's version is read. Words that are divided at the ends of lines are joined. Notes follow the text.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from textcat.reading.formats.documents import clean, tidy_lines
from textcat.reading.formats.news import NewsItem, Subject, news_content, subject_of
from textcat.reading.formats.xml_items import (
    Opening,
    attribute,
    child,
    children,
    item_format,
    language_of,
    line_of,
    outermost,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import NO_VERSION, Record

_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
# attribute `value` in versions before P5
_DATES = ("when", "when-iso", "from", "from-iso", "notBefore", "value", "notAfter", "to")
_LINES = frozenset(
    re.findall(
        r"\w+",
        "ab address addrLine argument bibl biblStruct body byline castGroup castItem castList cit closer dateline div "
        "div0 div1 div2 div3 div4 div5 div6 div7 docAuthor docDate docImprint docTitle eg egXML entry epigraph figDesc "
        "figure floatingText front group head headLabel imprimatur item l label lg list listBibl opener p postscript "
        "quote row salute set signed sp spGrp speaker stage table text titlePage titlePart trailer u",
    )
)
_BREAKS = frozenset(("cb", "gb", "lb", "pb"))
# Not the author's text: deleted, damaged or repeated on each page, or alternatives.
_LEFT_OUT = frozenset(
    re.findall(
        r"\w+",
        "binaryObject del fw gap graphic index listAnnotation media metamark notatedMusic standOff teiHeader witDetail",
    )
)
_MEANT = ("corr", "reg", "expan", "ex", "lem")  # preferred among alternatives; otherwise the first
_EITHER = frozenset(("app", "choice"))
# Placeholders for the ends of lines and pages; XML has no such characters.
_BREAK, _NO_BREAK = "\x01", "\x02"
_SOFT_HYPHENS = "\xad\u00ac\u2e17"  # characters that only divide words
_RUN = re.compile(rf"([-\u2010{_SOFT_HYPHENS}]?)([ \t\r\n{_BREAK}{_NO_BREAK}]+)")


def _content(tei: Any, opening: Opening, settings: InputSettings) -> Record:
    header, text = child(tei, "teiHeader"), child(tei, "text")
    described, profile = child(header, "fileDesc"), child(header, "profileDesc")
    of_text = frozenset() if text is None else frozenset(_abstracts(text))
    abstracts = [*children(profile, "abstract"), *of_text]
    texts = {
        "title": _title(described),
        "abstract": _text_of(abstracts or _parts(text, "front"), frozenset(_parts(text, "titlePage"))),
        "body": _text_of(_parts(text, "body"), of_text),
    }
    item = NewsItem(
        attribute(tei, _XML_ID, "id") or next(_ids(described), ""),
        texts,
        _date(described, profile),
        _language(tei, text, header, profile) or opening.language,
        list(_subjects(header, profile)) if settings.labels is not None or settings.fields else (),
    )
    return news_content(item, settings)._replace(version=NO_VERSION)


def _parts(element: Any, name: str) -> list[Any]:
    return [] if element is None else [*outermost(element, name)]


def _abstracts(text: Any) -> Iterator[Any]:
    from lxml import etree

    walk = etree.iterwalk(text, events=("start",), tag=("{*}div", "{*}div1"))
    for _, div in walk:
        if attribute(div, "type").lower() == "abstract":
            walk.skip_subtree()
            yield div


# --- the header ------------------------------------------------------------------------------------------------------


def _ids(described: Any) -> Iterator[str]:
    for place in ("publicationStmt", "sourceDesc"):
        for element in _inside(child(described, place), "idno"):
            yield from filter(None, ((element.text or "").strip(),))  # some contain others


def _inside(element: Any, name: str) -> Iterable[Any]:
    return () if element is None else element.iter(f"{{*}}{name}")


def _title(described: Any) -> str:
    """Return the title of the article in a header's description; or else the main title, or the first one."""
    titles_here = [*children(child(described, "titleStmt"), "title")]
    others = _parts(child(described, "sourceDesc"), "title")
    articles = [title for title in (*titles_here, *others) if title.get("level") == "a"]
    mains = [title for title in titles_here if title.get("type") == "main"]
    simple = [title for title in titles_here if title.get("type") is None]
    titles = (_text_of([title]) for title in (*articles, *mains, *simple, *titles_here, *others))
    return next(filter(None, titles), "")


def _date(described: Any, profile: Any) -> str:
    """Return the date of the text or of its source; or else that of its edition."""
    for place in (child(profile, "creation"), child(described, "sourceDesc"), child(described, "publicationStmt")):
        dates = _parts(place, "date")
        said = next(filter(None, (attribute(date, *_DATES) for date in dates)), "")
        if said := said or next(filter(None, map(line_of, dates)), ""):
            return said
    return ""


def _language(tei: Any, text: Any, header: Any, profile: Any) -> str:
    declared = language_of(text, child(text, "body")) or attribute(text, "lang")
    used = [
        (_share(language), attribute(language, "ident", "id"))
        for language in _parts(child(profile, "langUsage"), "language")
    ]
    most = max(used, key=lambda pair: pair[0])[1] if used else ""  # ties: the first
    return declared or most or language_of(tei, header) or attribute(tei, "lang")


def _share(language: Any) -> float:
    usage = attribute(language, "usage").rstrip("%")
    return float(usage) if usage.isdecimal() and len(usage) < 4 else 0.0


def _subjects(header: Any, profile: Any) -> Iterator[Subject]:
    """Yield keywords, categories and codes of classifications, each with its scheme."""
    categories: dict[str, tuple[str, str]] | None = None
    for group in children(profile, "textClass"):
        for keywords in children(group, "keywords"):
            scheme = _without_hash(attribute(keywords, "scheme"))
            for term in _parts(keywords, "term") or _parts(keywords, "item"):
                code = _without_hash(attribute(term, "key", "ref"))
                yield subject_of(code, line_of(term), "" if "/" in code else scheme)
        for code in children(group, "classCode"):
            yield subject_of(line_of(code), "", _without_hash(attribute(code, "scheme")))
        for reference in children(group, "catRef"):
            categories = _categories(header) if categories is None else categories
            for target in attribute(reference, "target").split():
                scheme, name = categories.get(_without_hash(target), ("", ""))
                scheme = _without_hash(attribute(reference, "scheme")) or scheme
                yield subject_of(_without_hash(target), name, "" if "/" in target else scheme)


def _without_hash(reference: str) -> str:
    """Return a reference without the "#" before an ID in the same file; other references stay as they are."""
    return reference.removeprefix("#")


def _categories(header: Any) -> dict[str, tuple[str, str]]:
    """Return the taxonomy and the name of each category that a header declares, by its ID."""
    taxonomies = _parts(child(header, "encodingDesc", "classDecl"), "taxonomy")
    return {
        attribute(category, _XML_ID, "id"): (attribute(taxonomy, _XML_ID, "id"), line_of(child(category, "catDesc")))
        for taxonomy in taxonomies
        for category in _inside(taxonomy, "category")
    }


# --- texts ------------------------------------------------------------------------------------------------------------


def _text_of(elements: Iterable[Any], apart: frozenset[Any] = frozenset()) -> str:
    """Return the text of elements, with one line per paragraph or similar block, followed by notes.

    The elements in `apart` are left out.
    """
    text = _Text(apart)
    for element in elements:
        text.add(element)
    return text.joined()


class _Text:
    """Gather the text of elements."""

    def __init__(self, apart: frozenset[Any]) -> None:
        self._apart, self._pieces = apart, list[str]()
        self._notes = list[str]()

    def joined(self) -> str:
        text = "".join([*self._pieces, *self._notes])
        return tidy_lines(clean(_RUN.sub(_between, text)))

    def add(self, element: Any) -> None:
        """Add the text of an element, on a line of its own if the element is a paragraph or the like."""
        name = element.tag.rpartition("}")[2]
        if name in _BREAKS:
            self._pieces.append(_NO_BREAK if element.get("break") == "no" else _BREAK)
        elif name in _EITHER:
            versions = {
                version.tag.rpartition("}")[2]: version for version in reversed(element)
            }  # the first of each name
            if versions:
                self.add(next((versions[name] for name in _MEANT if name in versions), element[0]))
        elif name == "note" and element.get("place") != "inline":
            before, self._pieces = self._pieces, ["\n"]
            self._add_parts(element)
            self._notes += self._pieces
            self._pieces = before
        elif name not in _LEFT_OUT and element not in self._apart:
            around = "\n" if name in _LINES else " " if name in ("cell", "space") else ""
            self._pieces.append(around)
            self._add_parts(element)
            self._pieces.append(around or (" " if name == "w" and _is_before_word(element) else ""))

    def _add_parts(self, element: Any) -> None:
        if element.text:
            self._pieces.append(element.text.replace("\n", " "))
        for part in element:
            self.add(part)
            if part.tail:
                self._pieces.append(part.tail.replace("\n", " "))


def _is_before_word(word: Any) -> bool:
    """Return whether another word follows directly: in files of tokenized words, spaces are implicit."""
    if word.tail or word.get("join") in ("right", "both"):
        return False
    following = word.getnext()
    return following is not None and following.tag == word.tag and following.get("join") not in ("left", "both")


def _between(match: "re.Match[str]") -> str:
    """Return the text to put between two words; "" if they are the parts of one word, which was divided."""
    hyphen, run = match[1], match[2]
    if "\n" in run or not (_BREAK in run or _NO_BREAK in run):
        return hyphen + re.sub(f"[{_BREAK}{_NO_BREAK}]", " ", run)
    before, behind = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    if hyphen and hyphen not in _SOFT_HYPHENS and behind.isupper():
        return hyphen if before.isalpha() else f"{hyphen} "  # "Nord-" and "Amerika"
    is_divided = bool(hyphen) and (hyphen in _SOFT_HYPHENS or (before.isalpha() and behind.isalpha()))
    return "" if is_divided or _NO_BREAK in run else f"{hyphen} "


FORMAT = item_format(_content)
