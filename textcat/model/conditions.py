"""Conditions on documents (language, date, zones and other fields) under which house rules about topics apply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from textcat.base.errors import TextcatError
from textcat.reading.dates import day_of
from textcat.reading.input_settings import is_matched

#: The codes of ISO 639-2, as MARC, MODS and METS have them, of languages with a code of two letters, which comes first.
_CODES = (
    "af afr,am amh,ar ara,az aze,be bel,bg bul,bn ben,bo bod tib,bs bos,ca cat,cs ces cze,cy cym wel,da dan,de deu ger,"
    "el ell gre,en eng,eo epo,es spa,et est,eu eus baq,fa fas per,fi fin,fo fao,fr fra fre,ga gle,gl glg,gu guj,he heb,"
    "hi hin,hr hrv,hu hun,hy hye arm,id ind,is isl ice,it ita,ja jpn,ka kat geo,kk kaz,km khm,kn kan,ko kor,ku kur,"
    "ky kir,la lat,lb ltz,lo lao,lt lit,lv lav,mk mkd mac,ml mal,mn mon,mr mar,ms msa may,mt mlt,my mya bur,nb nob,"
    "ne nep,nl nld dut,nn nno,no nor,oc oci,or ori,pa pan,pl pol,ps pus,pt por,ro ron rum,ru rus,sa san,si sin,"
    "sk slk slo,sl slv,sq sqi alb,sr srp,sv swe,sw swa,ta tam,te tel,th tha,tl tgl,tr tur,tt tat,ug uig,uk ukr,"
    "ur urd,uz uzb,vi vie,yi yid,zh zho chi"
)
_OF_LIBRARIES = {code: codes.split()[0] for codes in _CODES.split(",") for code in codes.split()[1:]}


@dataclass(frozen=True)
class Condition:
    """A condition on a document: all of its non-empty fields must match.

    Parameters
    ----------
    language : list of str
        The document's declared language is one of these: "en" also matches "en-GB" and "eng".
    source : list of str
        One of these names or patterns matches the document's field ``source``, the name of its file, or a trailing part
        of its path.
    fields : dict of str to list of str
        By name of a further field: its value, or an item of it if it is a list, is one of these.
    zone : list of str
        The document has text in one of these zones.
    since, before : date, optional
        The document's date is this day or later; or earlier than this day. Days are those of the document's own time
        zone. A date that is only a year or a month counts as its first day.
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
        """The fields of records that are needed to check the condition."""
        return (*(name for name in ("language", "source") if getattr(self, name)), *self.fields)

    def holds(self, document: Any) -> bool:
        """Return whether the condition holds for a text (which has a body and no fields), a Document or a Record."""
        zones: Mapping[str, str] = {"body": document} if isinstance(document, str) else document.zones
        further: Mapping[str, Any] = getattr(document, "fields", None) or {}
        sources = [getattr(document, "source", ""), *_texts(further.get("source"))]
        day = day_of(getattr(document, "date", ""))
        return (
            (not self.language or any(_matches_language(named, self.language) for named in languages_of(document)))
            and (not self.source or any(_is_from(name, self.source) for name in sources if name))
            and all(not v or not {*v}.isdisjoint(_texts(further.get(name))) for name, v in self.fields.items())
            and (not self.zone or any(zones.get(zone, "").strip() for zone in self.zone))
            and (self.since is None or day >= str(self.since))  # "" sorts before all days
            and (self.before is None or "" < day < str(self.before))
        )


def languages_of(document: Any) -> list[str]:
    """Return the languages that a document's source declares, or else the values of its field ``language``."""
    named = getattr(document, "language", "")
    return [named] if named else _texts((getattr(document, "fields", None) or {}).get("language"))


def _matches_language(named: str, languages: list[str]) -> bool:
    """Return whether a code such as "en-GB" or "eng" matches one of the languages; "en" matches both."""
    code = f"{_short_code(named)}-"
    return any(code.startswith(f"{_short_code(language)}-") for language in languages)


def _short_code(language: str) -> str:
    """Return a code of a language in lower case, with two letters for the language where libraries write three."""
    code, hyphen, rest = language.casefold().replace("_", "-").partition("-")
    return f"{_OF_LIBRARIES.get(code, code)}{hyphen}{rest}"


def _is_from(name: str, sources: list[str]) -> bool:
    return name in sources or any(is_matched(name, pattern) for pattern in sources)


def _texts(value: Any) -> list[str]:
    """Return the value of a field as a list of texts: the items of a list, or the single value."""
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one is not None]
