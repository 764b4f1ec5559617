"""Conditions of rules: for which documents they hold, by language, date, zones and other fields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from textcat.base.errors import TextcatError
from textcat.reading.dates import day_of
from textcat.reading.input_settings import is_matched


@dataclass(frozen=True)
class Condition:
    """Hold for the documents that are as each of these fields says; a field that is empty says nothing.

    Parameters
    ----------
    language : list of str
        The document is in one of these languages, as its source names them: "en" also stands for "en-GB".
    source : list of str
        The document comes from one of these: its field ``source`` is one of them, or one of these patterns matches the
        field, the name of its file, or the path of this from any folder on.
    fields : dict of str to list of str
        The further field of this name has one of these values, or a list in which one of them is.
    zone : list of str
        The document has text in one of these zones.
    since, before : date, optional
        The document is of this day or a later one; of an earlier one. The day is that of its own time zone, and a year
        or a month counts as its first day.
    """

    language: list[str] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    zone: list[str] = field(default_factory=list)
    since: date | None = None
    before: date | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.before is not None and self.since >= self.before:
            raise TextcatError(
                f"No document is since {self.since} and before {self.before}: give the earlier day first."
            )

    @property
    def text(self) -> str:
        """The condition in words, such as "language fr or de, since 1990-01-01"; "" if it holds for all documents."""
        listed = {"language": self.language, "source": self.source, **self.fields, "zone": self.zone}
        days = {"since": self.since, "before": self.before}
        return ", ".join(
            [
                *(f"{name} {' or '.join(values)}" for name, values in listed.items() if values),
                *(f"{name} {day}" for name, day in days.items() if day),
            ]
        )

    @property
    def read_fields(self) -> tuple[str, ...]:
        """The fields of records that must be read to know whether it holds."""
        return (*(name for name in ("language", "source") if getattr(self, name)), *self.fields)

    def holds(self, document: Any) -> bool:
        """Return whether it holds for a text, a Document or a Record. A text has only the zone body, and no fields."""
        zones: Mapping[str, str] = {"body": document} if isinstance(document, str) else document.zones
        further: Mapping[str, Any] = getattr(document, "fields", None) or {}
        sources = [getattr(document, "source", ""), *_texts(further.get("source"))]
        day = day_of(getattr(document, "date", ""))
        return (
            (not self.language or any(_names(named, self.language) for named in languages_of(document)))
            and (not self.source or any(_is_from(name, self.source) for name in sources if name))
            and all(not v or not {*v}.isdisjoint(_texts(further.get(name))) for name, v in self.fields.items())
            and (not self.zone or any(zones.get(zone, "").strip() for zone in self.zone))
            and (self.since is None or day >= str(self.since))  # "" is before all days
            and (self.before is None or "" < day < str(self.before))
        )


def languages_of(document: Any) -> list[str]:
    """Return the languages that the source of a document names, or else the values of its field ``language``."""
    named = getattr(document, "language", "")
    return [named] if named else _texts((getattr(document, "fields", None) or {}).get("language"))


def _names(named: str, languages: list[str]) -> bool:
    """Return whether a code such as "en-GB" names one of the languages, of which "en" includes it."""
    code = f"{named.casefold().replace('_', '-')}-"
    return any(code.startswith(f"{language.casefold().replace('_', '-')}-") for language in languages)


def _is_from(name: str, sources: list[str]) -> bool:
    return name in sources or any(is_matched(name, pattern) for pattern in sources)


def _texts(value: Any) -> list[str]:
    """Return the values of a field as texts: those of a list, or the only one."""
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one is not None]
