"""Convert dates to ISO 8601 from the forms of agencies, feeds, mail and Reuters-21578."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache

_TIME = r"(?P<hour>\d\d):?(?P<minute>[0-5]\d)(?::?(?P<second>[0-5]\d|60)(?P<part>[.,]\d+)?)?"
_TIME += r"(?:\s*(?P<half>[AaPp][Mm]?)\b)?"
_NUMBERS = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    rf"(?:[Tt ]{_TIME}\s*(?P<zone>[A-Za-z]{{1,4}}|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_WORDS = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?(?P<day>\d\d?)[ -](?P<month>[A-Za-z]{3,9})\.?[ -](?P<year>\d{4}|\d\d)"
    rf"(?:,?\s+{_TIME}\s*(?P<zone>[A-Za-z]{{1,4}}|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?(?:\s+\([^()]*\))?)?",
    re.ASCII,
)
_PARTS = "year", "month", "day", "hour", "minute", "second", "part", "half", "zone"
_MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6}
_MONTHS |= {"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}
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
    match = (_NUMBERS.fullmatch(text) or _WORDS.fullmatch(text)) if len(text) <= _LONGEST else None
    if not match:
        return text
    year, month, day, hour, minute, second, part, half, zone = match.group(*_PARTS)
    if half and int(hour) <= 12:
        hour = f"{int(hour) % 12 + 12 * (half[0] in 'Pp'):02}"
    is_end = hour == "24" and not any(map(int, (minute, second or 0, (part or ".0")[1:])))  # midnight at a day's end
    date = _iso_day(year, month, day, is_end)
    hour = "00" if is_end else hour
    if not date or int(hour or 0) > 23:
        return text
    if hour is None:
        return date
    return f"{date}T{hour}:{minute}:{second or '00'}{(part or '').replace(',', '.')}{_zone(zone)}"


@lru_cache(maxsize=1024)
def _iso_day(year: str, month: str, day: str, following: bool) -> str:
    """Return a date in ISO 8601, given a year of two or four digits and a month's number or name; "" if none is.

    `following`: return the day after.
    """
    number = int(month) if month.isdigit() else _MONTHS.get(month[:3].lower(), 0)
    if len(year) != 4:
        year = str(int(year) + (1900 if year > "49" else 2000))
    try:
        return (date(int(year), number, int(day)) + timedelta(days=following)).isoformat()
    except (ValueError, OverflowError):
        return ""


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
