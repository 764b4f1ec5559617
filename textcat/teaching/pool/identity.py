"""Decide whether two records are of the same work, by DOI and PMID, then by title, year and authors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from textcat.reading import common_fields

_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>]+")
_PMID = re.compile(r"\s*(?:PMID:?\s*)?0*(\d{1,8})\s*(?:\[.*\])?\s*", re.IGNORECASE)
_NOTED_PMID = re.compile(r"\bPMID:?\s*(\d{1,8})\b", re.IGNORECASE)
_PUBMED_URL = re.compile(r"//(?:pubmed\.ncbi\.nlm\.nih\.gov|www\.ncbi\.nlm\.nih\.gov/pubmed)/(\d{1,8})\b")
_PUBMED = re.compile(r"pubmed|medline|\bnlm\b", re.IGNORECASE)
_SUBTITLE = re.compile(r"[:?]|\s[-–—]|\.\s")
_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_ACCESSIONS, _DATABASES = ("AN", "accession-num", "accession"), ("DB", "DP", "remote-database-name", "database")
# fields with these facts
_TELLING = frozenset({"authors", "doi", "notes", "pages", "pmid", "url", "year", *_ACCESSIONS, "L3", "M3"})
_LEAST_WORDS = 4  # minimum words of a distinctive title: shorter ones, such as Editorial, are shared by many works


class Identity(NamedTuple):
    """The facts that identify the work of a record: DOI, PMID, year, title; unknown facts are empty."""

    doi: str = ""
    pmid: str = ""
    year: str = ""
    page: str = ""  # the first page
    title: tuple[str, ...] = ()  # words of the title
    main_title: tuple[str, ...] = ()  # words of the title without the subtitle
    persons: frozenset[str] = frozenset()  # words of the authors' names
    has_text: bool = False  # whether it has a text besides the title

    def conflicts(self, other: Identity) -> bool:
        """Return whether two records must be of different works, whatever their texts.

        If both have a DOI, they conflict if the DOIs differ; otherwise, if both have a PMID, they conflict if the PMIDs
        differ. Otherwise, they conflict if their years differ; or, if either has no text besides the title, if they
        have no author in common, or different first pages. Unknown facts do not differ.
        """
        if self.doi and other.doi:
            return self.doi != other.doi
        if self.pmid and other.pmid:
            return self.pmid != other.pmid
        if self.year and other.year and self.year != other.year:
            return True
        if self.has_text and other.has_text:
            return False
        return bool(
            (self.persons and other.persons and self.persons.isdisjoint(other.persons))
            or (self.page and other.page and self.page != other.page)
        )

    def joined(self, other: Identity) -> Identity:
        """Return a copy of this identity in which facts of the other one replace those that are empty."""
        return self._replace(**{name: value for name, value in other._asdict().items() if not getattr(self, name)})

    def is_same_title(self, other: Identity) -> bool:
        """Return whether two records that do not conflict are of the same work, by their titles and other facts.

        These facts are the year, the authors and the first page. If the titles are the same, one fact in common is
        enough, or two with the page if a title has less than four words. If one title is the other one with a subtitle,
        year and an author must be the same, and the page, too, if the shorter title has less than four words.
        """
        same_year, same_page = self.year == other.year != "", self.page == other.page != ""
        same_person = not self.persons.isdisjoint(other.persons)
        shorter, longer = sorted((self.title, other.title), key=len)
        if not shorter:
            return False
        is_long = len(shorter) >= _LEAST_WORDS
        if shorter == longer:
            return (is_long and (same_year or same_person or same_page)) or (same_page and (same_year or same_person))
        is_main = self.main_title == other.main_title and longer[: len(shorter)] == shorter
        return is_main and same_year and same_person and (is_long or same_page)


def identity_of(zones: Mapping[str, str], fields: Mapping[str, Any] | None) -> Identity | None:
    """Return the identity of a record, given its texts and further fields; None if no field identifies the work."""
    named = common_fields(fields or {})
    if _TELLING.isdisjoint(named):
        return None
    title = zones.get("title", "").strip()
    title_words, subtitle = _words(title), _SUBTITLE.search(title)
    names = "; ".join(_texts(named.get("authors")))
    page = _DIGITS.search(str(named.get("pages") or ""))
    return Identity(
        _doi_of(named),
        _pmid_of(named),
        str(named.get("year") or ""),
        page[0].lstrip("0") if page else "",
        title_words,
        _words(title[: subtitle.start()]) if subtitle else title_words,
        frozenset(word for word in _words(names) if len(word) > 2 and word != "and"),  # without initials
        any(not text.isspace() for zone, text in zones.items() if text and zone != "title"),
    )


def _texts(value: Any) -> list[str]:
    if not value:
        return []
    return [*map(str, value)] if isinstance(value, list | tuple) else [str(value)]


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text without case, accents and punctuation."""
    if text.isascii():
        return tuple(_WORD.findall(text.lower()))
    plain = unicodedata.normalize("NFKD", text.casefold())
    return tuple(_WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter))))


def _doi_of(fields: Mapping[str, Any]) -> str:
    """Return a record's DOI in lower case, from its own field or a URL of doi.org; "" if it has none."""
    urls = [text for text in _texts(fields.get("url")) if "doi.org/" in text.lower()]
    others = [text for tag in ("L3", "M3") for text in _texts(fields.get(tag)) if text.startswith("10.")]
    for text in (*_texts(fields.get("doi")), *urls, *others):
        if found := _DOI.search(unquote(text)):
            return found[0].casefold().rstrip(".,;:")
    return ""


def _pmid_of(fields: Mapping[str, Any]) -> str:
    """Return a record's number in PubMed, from its own field, an accession number of PubMed, a URL or a note."""
    numbers = _texts(fields.get("pmid"))
    if _PUBMED.search(" ".join(text for name in _DATABASES for text in _texts(fields.get(name)))):
        numbers += [text for name in _ACCESSIONS for text in _texts(fields.get(name))]
    for text in numbers:
        if found := _PMID.fullmatch(text):
            return found[1]
    noted = {*_PUBMED_URL.findall(" ".join(_texts(fields.get("url"))))}
    noted |= {*_NOTED_PMID.findall(" ".join(_texts(fields.get("notes"))))}
    return noted.pop().lstrip("0") if len(noted) == 1 else ""
