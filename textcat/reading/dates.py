"""Convert dates to ISO 8601 from the forms of agencies, feeds, mail, spreadsheets, newspapers and Reuters-21578."""

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache

from textcat.base.normal_forms import normalised

_TIME = r"(?P<hour>\d\d):?(?P<minute>[0-5]\d)(?::?(?P<second>[0-5]\d|60)(?P<part>[.,]\d+)?)?"
_TIME += r"(?:\s*(?P<half>[AaPp][Mm]?)\b)?"
_NUMBERS = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    rf"(?:[Tt ]{_TIME}\s*(?P<zone>[A-Za-z]{{1,4}}|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_BEHIND = rf"(?:,?\s+{_TIME}\s*(?P<zone>[A-Za-z]{{1,4}}|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?(?:\s+\([^()]*\))?)?"
_WEEKDAY = r"(?:(?P<weekday>[A-Za-z]{3,10})\.?(?P<comma>,?)\s+)?"
_WORDS = re.compile(
    rf"{_WEEKDAY}(?P<day>\d\d?)(?:\.|st|nd|rd|th|er)?(?: de)?[ -](?P<month>[A-Za-z]{{3,10}})\.?(?: de)?[ -]"
    rf"(?P<year>\d{{4}}|\d\d){_BEHIND}",
    re.ASCII,
)
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<month>[A-Za-z]{{3,10}})\.? (?P<day>\d\d?)(?:st|nd|rd|th)?,? (?P<year>\d{{4}}){_BEHIND}", re.ASCII
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4}) (?P<month>[A-Za-z]{3,10})\.?(?: (?P<day>\d\d?))?", re.ASCII)  # of PubMed
_MONTH_ALONE = re.compile(r"([A-Za-z]{3,10})\.?,?(?: de)? (\d{4})", re.ASCII)
# A year comes first, or else a day with points, as no country writes them with the month before the day.
_SEPARATED = re.compile(rf"(?P<year>\d{{4}})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?){_BEHIND}", re.ASCII)
_POINTS = re.compile(rf"(?P<day>\d\d?)\. ?(?P<month>\d\d?)\. ?(?P<year>\d{{4}}){_BEHIND}", re.ASCII)
_HAN = re.compile(r"(\d{4})年(?:(\d\d?)月(?:(\d\d?)日)?)?", re.ASCII)
# A day of XML with a time zone, and a date as a table writes it whose column has numbers or missing values.
_WITHOUT_TIME = re.compile(r"(\d{4}-\d\d-\d\d|\d{4}(?:-\d\d)?)(?:Z|[+-]\d\d:\d\d)|(\d{4}|\d{8})\.0", re.ASCII)
_UNKNOWN_DAY = re.compile(r"(\d{4})(?:-(?:00|XX)|(-\d\d))?(?:-(?:00|XX))", re.ASCII)
_DASHES = re.compile("[\u2012-\u2015\u2212]")
_PARTS = "year", "month", "day", "hour", "minute", "second", "part", "half", "zone"
#: Names of each month, without accents, in Danish, Dutch, English, French, German, Italian, Norwegian, Portuguese,
#: Spanish and Swedish. A word is a month if the names that begin with it are of a single month.
_MONTHS = (
    "january januar januari janvier enero gennaio janeiro janner",
    "february februar februari fevrier febrero",
    "march marz maerz mars maart marts marzo marco mart",
    "april avril abril aprile apr",
    "may mai mei maj mayo maio maggio",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august augusti augustus aout agosto",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro desember",
)
#: First letters of the names of weekdays; without a comma, other words mean something else, such as "before".
_WEEKDAYS = re.compile(
    "mon|tue|wed|thu|fri|sat|sun|mit|die|don|fre|sam|son|lun|mar|mer|jeu|ven|dim|man|tir|ons|tor|lor|maa|din|woe|zat|"
    "mie|jue|vie|sab|dom|gio|seg|ter|qua|qui|sex",
    re.IGNORECASE,
)
# The time zones of RFC 822; other names are ambiguous.
_ZONES = {"z": "Z", "ut": "Z", "utc": "Z", "gmt": "Z", "est": "-05:00", "edt": "-04:00", "cst": "-06:00"}
_ZONES |= {"cdt": "-05:00", "mst": "-07:00", "mdt": "-06:00", "pst": "-08:00", "pdt": "-07:00"}
# The usual result of `iso_date`, its zone apart, which the standard library parses several times as fast.
_USUAL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)?)(?(2)(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)"
)
# A usual date of which only the day may be impossible.
_WITH_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)
_SHORT = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_LONGEST = 80  # maximum characters of a date


@lru_cache(maxsize=4096)  # number of cached dates: a batch has few distinct ones
def iso_date(text: str) -> str:
    """Convert a date to ISO 8601, with its time and time zone, if any; return a date in an unknown form unchanged."""
    text = text.strip()
    if len(text) > _LONGEST:
        return text
    match = _NUMBERS.fullmatch(text) or _WORDS.fullmatch(text)
    return (_iso(match) if match else "") or _plain_date(text) or text


def _plain_date(text: str) -> str:
    """Return a date in ISO 8601, given one of a form other than those of agencies, feeds and mail; "" if it is none."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFD", _DASHES.sub("-", normalised(" ".join(text.split()))))
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    if usual := _WITHOUT_TIME.fullmatch(text):
        text = usual[1] or usual[2]
    if partial := _UNKNOWN_DAY.fullmatch(text):
        text = f"{partial[1]}{partial[2] or ''}"
    if _SHORT.fullmatch(text):
        return text if _time_and_zone(text) else ""
    if in_han := _HAN.fullmatch(text):
        text = "-".join([in_han[1], *(number.zfill(2) for number in in_han.groups()[1:] if number)])
        return text if _time_and_zone(text) else ""
    if alone := _MONTH_ALONE.fullmatch(text):
        month = _month(alone[1])
        return f"{alone[2]}-{month:02}" if month and alone[2] != "0000" else ""
    if (first := _YEAR_FIRST.fullmatch(text)) and (month := _month(first["month"])):
        text = f"{first['year']}-{month:02}" + (f"-{first['day'].zfill(2)}" if first["day"] else "")
        return text if _time_and_zone(text) else ""
    forms = _NUMBERS, _WORDS, _MONTH_FIRST, _SEPARATED, _POINTS
    match = next(filter(None, (form.fullmatch(text) for form in forms)), None)
    return _iso(match) if match else ""


def _iso(match: "re.Match[str]") -> str:
    """Return a date in ISO 8601, given its parts, of which some may be impossible: then ""."""
    year, month, day, hour, minute, second, part, half, zone = match.group(*_PARTS)
    weekday = match["weekday"] if "weekday" in match.re.groupindex else ""
    if weekday and not match["comma"] and not _WEEKDAYS.match(weekday):
        return ""
    if half and int(hour) <= 12:
        hour = f"{int(hour) % 12 + 12 * (half[0] in 'Pp'):02}"
    is_end = hour == "24" and not any(map(int, (minute, second or 0, (part or ".0")[1:])))  # midnight at a day's end
    date = _iso_day(year, month, day, is_end)
    hour = "00" if is_end else hour
    if not date or int(hour or 0) > 23:
        return ""
    if hour is None:
        return date
    return f"{date}T{hour}:{minute}:{second or '00'}{(part or '').replace(',', '.')}{_zone(zone)}"


@lru_cache(maxsize=1024)
def _iso_day(year: str, month: str, day: str, following: bool) -> str:
    """Return a date in ISO 8601, given a year of two or four digits and a month's number or name; "" if none is.

    `following`: return the day after.
    """
    number = int(month) if month.isdigit() else _month(month)
    if len(year) != 4:
        year = str(int(year) + (1900 if year > "49" else 2000))
    try:
        return (date(int(year), number, int(day)) + timedelta(days=following)).isoformat()
    except (ValueError, OverflowError):
        return ""


@lru_cache(maxsize=1024)
def _month(word: str) -> int:
    """Return the number of the month whose name a word is or begins; 0 if it is none, or of several months."""
    word = word.lower()
    numbers = [k for k, names in enumerate(_MONTHS, start=1) if any(name.startswith(word) for name in names.split())]
    return numbers[0] if len(numbers) == 1 else 0


def _zone(text: str | None) -> str:
    if not text or text[0] not in "+-":
        return _ZONES.get((text or "").lower(), "")
    digits = text[1:].replace(":", "").ljust(4, "0")
    return f"{text[0]}{digits[:2]}:{digits[2:]}"


def date_text(value: object) -> str:
    """Return a date or time, such as a datetime, as text; in UTC if its zone has seconds, which ISO 8601 does not."""
    offset = value.utcoffset() if isinstance(value, datetime) else None
    if offset is not None and offset.total_seconds() % 60:
        with suppress(OverflowError):
            return str(value.astimezone(timezone.utc))  # type: ignore[attr-defined]
    return str(value)


def _offset(text: str) -> timedelta:
    zone = _zone(text)
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) if len(zone) > 1 else timedelta()
    return -offset if zone.startswith("-") else offset


def _time_and_zone(date: str) -> tuple[datetime, str] | None:
    """Return the time of a date in ISO 8601, without its zone, and its zone; None for any other text."""
    if usual := _USUAL.fullmatch(date):
        with suppress(ValueError):  # a leap second, or not a date; before Python 3.11, some fractions of a second
            return datetime.fromisoformat(usual[1]), usual[3] or ""
    if short := _SHORT.fullmatch(date):
        date = f"{short[1]}-{short[2] or '01'}-01"
    match = _NUMBERS.fullmatch(date)
    if not match or match["half"]:
        return None
    year, month, day, hour, minute, second, part, _, zone = match.group(*_PARTS)
    time = int(hour or 0), int(minute or 0), min(int(second or 0), 59)  # 59 in place of a leap second
    try:
        return datetime(int(year), int(month), int(day), *time, int(f"{(part or '')[1:7]:0<6}")), _zone(zone)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def moment(date: str) -> datetime | None:
    """Parse a date in ISO 8601; return None for any other text.

    A date without a time is the first second of the day, and a date without a time zone is in UTC. A time before year 1
    or after year 9999 in UTC is the first or the last one that Python can hold.
    """
    parsed = _time_and_zone(date)
    if parsed is None:
        return None
    time, zone = parsed
    try:
        return (time - _offset(zone) if zone else time).replace(tzinfo=timezone.utc)
    except OverflowError:
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=timezone.utc)


def with_zone(date: str, zone: str) -> str:
    """Add a time zone, such as "-12:00", to a date in ISO 8601 that has none; return any other text unchanged."""
    parsed = _time_and_zone(date)
    return date if parsed is None or parsed[1] else f"{parsed[0].isoformat()}{zone}"


def time_of(date: str) -> datetime | None:
    """Return the time that a date states, in its own time zone, as a datetime without a zone.

    `date` is in ISO 8601. A day stands for its first second, a month or a year for that of its first day. None is
    returned for any other text.
    """
    parsed = _time_and_zone(date) if date else None
    return parsed and parsed[0]


def day_of(date: str) -> str:
    """Return the day of a date, such as "1990-12-31", in its own time zone; "" for a text that is no date.

    A year or a month stands for its first day.
    """
    return _day(date[:10] if _WITH_TIME.fullmatch(date) else date)


@lru_cache(maxsize=1 << 15)  # days of 90 years
def _day(date: str) -> str:
    when = time_of(iso_date(date))
    return "" if when is None else when.date().isoformat()


def month_of(date: str) -> str:
    """Return the month of a date, such as "1990-12", in its own time zone; "" for a text that is no date.

    A year without a month gives its first month.
    """
    return day_of(date)[:7]


def date_range(dates: Iterable[str]) -> tuple[str, str] | None:
    """Return the earliest and the latest of dates, as they are written; None if no date can be parsed."""
    moments = [(when, date) for date in dict.fromkeys(dates) if (when := moment(date)) is not None]
    return (min(moments)[1], max(moments)[1]) if moments else None
