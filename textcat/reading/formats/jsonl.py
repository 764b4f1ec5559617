"""Read JSON: one object per line (JSON Lines), or one array of objects per file; each object is a document."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from textcat.base.surrogates import join_surrogates
from textcat.reading.annotations import plain_record
from textcat.reading.columns import (
    LONGEST_NAME,
    ColumnNames,
    check_labels,
    default_name,
    further_fields,
    has_default_names,
    hint_of_fields,
    log_usual_names,
    names_alike,
    texts_among,
    title_and_body,
    titled_zones,
    usual_name,
    with_default_names,
    without_unreadable,
)
from textcat.reading.dates import iso_date
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.annif import has_subjects
from textcat.reading.formats.json_values import ValueSpan, values_in
from textcat.reading.formats.text import LineCutter, nonblank_lines
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import Labels, labels_in, labels_of_fields
from textcat.reading.records import (
    Block,
    Candidates,
    Record,
    RecordFormat,
    RecordSpan,
    Rejection,
    by_record,
)

# A string, complete or cut off: at the end, or by a line end, which JSON does not allow in a string, if a line follows
# that begins with a brace. Or a brace outside of strings.
_QUOTED = rb'"[^"\\\n]*(?:(?:\\[^\n]|\\?\n(?![ \t,]*\{))[^"\\\n]*)*(?:"|\\?(?=\n)|\\?\Z)'
_TOKEN = re.compile(_QUOTED + rb"|[{}]")
_BRACKET = re.compile(_QUOTED + rb"|[][{}]")
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # one encoder, because json.dumps makes a new one for each value
_MOST_NAMES = 1000  # of fields that are known to have no default name in another case
_LARGE = 2.0**63  # smallest float that may stand for a large integer
BEFORE_CLOSING = b" \t\r\n[,\xef\xbb\xbf"  # separators between the objects of an array that is not closed,
_BETWEEN = BEFORE_CLOSING + b"]"  # and between concatenated files
_SEPARATORS = re.compile(rb"[%b]*" % re.escape(_BETWEEN))
_BEFORE_VALUES = re.compile(rb"[\s\xef\xbb\xbf]*(?:,|(?:\]\s*)?\[)?")  # a comma, or where an array begins
_FIRST_MEMBER = re.compile(rb'\{\s*("[^"\\]{1,100}")\s*:')
_SPACE, _MOST_SPACE = b" \t\r\n", 1000
_NAMED = {"topics": Labels()}  # the candidates of an object that has a field of topics


class _Lines(RecordFormat):
    """Read JSON Lines; if the settings do not ask for labels, most lines are read by a faster parser."""

    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        data, offset = block.without_mark(settings)
        source, plain = block.source, _plain_reader(settings)
        longest = settings.max_bytes if settings.in_utf8() else 0  # of what orjson reads
        for number, line in enumerate(data.split(b"\n"), block.position):
            try:  # inlined `_parse_by_orjson`: a call would take a thirtieth of the time of a short line
                loaded = orjson.loads(line) if 0 < len(line) <= longest else None
            except orjson.JSONDecodeError:
                loaded = None
            content = plain(loaded) if plain is not None and type(loaded) is dict else None
            if content is not None:
                name, zones, date, fields = content
                yield Record(
                    name or f"{source}:{number}", zones, (), date, fields=fields, source=source, position=number
                )
            elif line.strip():
                parse = partial(_loaded_content, loaded, source, settings)
                yield from self.read([RecordSpan(number, offset, line)], parse, block, settings)
            offset += len(line) + 1


def _objects(block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    """Yield the `RecordSpan` of each object of a JSON array.

    Other values, and anything else between the objects, such as an extra brace, are yielded, too.
    """
    data, offset = block.without_mark(settings)
    ends = [*_ends(data, is_whole=True), len(data)]
    for position, (start, end) in enumerate(_elements(data, ends, settings.max_bytes), block.position):
        text = data[start:end]
        # The brackets of an array that is a value are its own.
        yield RecordSpan(position, offset + start, text if text.startswith(b"[") else text.rstrip(_BETWEEN))


def _elements(data: bytes, ends: Iterable[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each object, of each other value, and of anything else between objects.

    `ends` are the positions after these, as `_ends` yields them; what lies between objects and has more than `most`
    bytes is not divided.
    """
    start = 0
    for end in ends:
        first = _SEPARATORS.match(data, start, end).end()  # type: ignore[union-attr]
        if first < end:
            values = [] if data[first] == ord("{") or end - first > most else _values(data[start:end])
            yield from [(start + value.start, start + value.end) for value in values] or [(first, end)]
        start = end


def _values(between: bytes) -> Sequence[ValueSpan]:
    """Return the spans of the values between objects of an array, or before or after all; [] if they are not valid."""
    begin = _BEFORE_VALUES.match(between).end()  # type: ignore[union-attr]
    end = len(between.rstrip(_SPACE))
    end -= between.endswith(b",", 0, end)
    for closing in range(1 + between.endswith(b"]", begin, end)):  # the array may end there
        array = b"[%b]" % between[begin : end - closing]
        try:
            json.loads(array.decode("latin-1"))  # which keeps the structure, whatever the encoding
        except (ValueError, RecursionError):
            continue
        spans = values_in(array, 0)[0]
        return [ValueSpan(span.start + begin - 1, span.end + begin - 1) for span in spans]
    return []


def _ends(data: bytes, *, is_whole: bool = False) -> Iterator[int]:
    """Yield the position after each JSON object in `data` that is not inside another object.

    The position after anything else between such objects is yielded, too. An object that is not closed, because its
    line was cut off, ends before the first line that begins as its own line does, unless that begins a nested object.
    `is_whole`: no more data follow, so that an object that is not closed by now never is.
    """
    depth = end = 0
    before = b"\n"  # the line end and space before the object
    nesting, nested = _Nesting(0), list[int]()  # where lines inside the object begin that may be objects of their own
    for token in _TOKEN.finditer(data):
        if token[0] == b"{":
            place = token.start()
            if not depth:
                between = data[end:place]
                if is_other := bool(between.strip(_BETWEEN)):
                    yield place
                before = _line_start(b"" if is_other else between)
                nesting, nested = _Nesting(place), []
            elif data[place - 1] == before[-1] and data.startswith(before, line_end := place - len(before)):
                nested.append(line_end)
                if not nesting.can_hold(data, line_end):
                    yield from nested
                    depth, end, nesting, nested = 0, line_end, _Nesting(place), []
            depth += 1
        elif depth and token[0] == b"}":
            depth -= 1
            if not depth:
                end = token.end()
                yield end
    if is_whole and depth:
        yield from nested


def further_objects(data: bytes) -> int:
    """Return how many objects seem to follow in data of an object that is not closed: those with its first member."""
    member = _FIRST_MEMBER.search(data)
    return len(re.findall(rb"\}[\s,]*\{\s*%s\s*:" % re.escape(member[1]), data)) if member else 0


def is_unclosed(data: bytes) -> bool:
    """Return whether the last bytes of a file are one object that is not closed, of which no line is another one."""
    return not any(_ends(data, is_whole=True))


def _line_start(between: bytes) -> bytes:
    """Return the line end and what follows it before an object, given the bytes since the previous object's end."""
    _, line_end, space = between.rpartition(b"\n")
    return line_end + space if line_end and len(space) <= _MOST_SPACE else b"\n"


def _last_sign(data: bytes) -> bytes:
    """Return the last byte of the data that is no white space; b"" if they end with very much white space."""
    return data[-_MOST_SPACE:].rstrip(_SPACE)[-1:]


class _Nesting:
    """Find out at which ends of lines inside an object that begins at `start` another object may follow, in order."""

    def __init__(self, start: int) -> None:
        self._place, self._open = start, bytearray()  # the brackets that are open there

    def can_hold(self, data: bytes, line_end: int) -> bool:
        """Return whether an object that follows a line end in `data` can be a part of the object."""
        for token in _BRACKET.finditer(data, self._place):
            if token.start() >= line_end:
                break
            if token[0] in (b"{", b"["):
                self._open += token[0]
            elif token[0] in (b"}", b"]"):
                del self._open[-1:]
            elif token.end() == line_end:
                return False  # a string that the line end cuts off, or one after which a comma is missing
        self._place = line_end
        sign = _last_sign(data[max(line_end - _MOST_SPACE, 0) : line_end])
        return sign in (b"[", b":", b"") or (sign == b"," and self._open.endswith(b"["))


class _ObjectCutter:
    """Cut a file that is a JSON array between the objects of the array."""

    def __init__(self, most: int) -> None:
        self._most = most  # of `_elements`
        self._depth, self._in_string = 0, False  # state inside the object that is skipped
        self._is_other = False  # whether the skipped data are not an object
        self._before, self._sign = b"\n", b""  # the line start before the skipped object, and its last byte so far
        self._passed: bool | None = None  # whether it ends in the data that were skipped last, if any
        # the length of the last piece that was cut and not yet counted, and its elements
        self._n_bytes, self._n_cut = -1, 0

    def cut(self, data: bytes) -> int:
        ends = [*_ends(data)]
        self._n_bytes, self._n_cut = ends[-1] if ends else 0, self._count(data, ends)
        return self._n_bytes

    def count(self, data: bytes) -> int:
        if self._passed is not None:  # data that may begin within a string have no complete objects
            passed, self._passed = self._passed, None
            return int(passed)
        n_bytes, self._n_bytes = self._n_bytes, -1  # the last data of a file may be as long, and are not cut
        if len(data) == n_bytes:
            return self._n_cut
        return self._count(data, [*_ends(data), len(data)])

    def _count(self, data: bytes, ends: Iterable[int]) -> int:
        return sum(1 for _ in _elements(data, ends, self._most))

    def skip(self, data: bytes) -> tuple[int, bool]:
        n, self._passed = self._pass_over(data)
        self._is_other = not self._passed and (self._is_other or (not self._depth and bool(data.strip(_BETWEEN))))
        return n, self._passed

    def _pass_over(self, data: bytes) -> tuple[int, bool]:
        opening = b'"' if self._in_string else b""
        text, self._in_string, previous = opening + data, False, -1
        n = len(data)
        for token in _TOKEN.finditer(text):
            place = token.start() - len(opening)
            if token[0] == b"{":
                line_end = place - len(self._before)
                if not self._depth:
                    if self._is_other or data[:place].strip(_BETWEEN):
                        return place, True
                    self._before = _line_start(data[:place])
                elif line_end >= 0 and data.startswith(self._before, line_end):
                    before = _last_sign(self._sign + data[max(line_end - _MOST_SPACE, 0) : line_end])
                    if previous == line_end or before not in (b",", b"[", b":", b""):
                        self._depth = 0
                        return line_end, True
                self._depth += 1
            elif token[0] == b"}":
                if self._depth == 1:
                    self._depth = 0
                    return place + 1, True
                self._depth -= self._depth > 0
            elif token.end() == len(text) and not _string_end(text, token.start() + 1):
                self._in_string = True
                n = _without_escape(data)
            previous = token.end() - len(opening)
        # a line end at the end of the data is passed over together with what follows it
        n_space = n - len(data[:n].rstrip(_SPACE + b","))
        n -= n_space if n_space <= _MOST_SPACE else 0
        self._sign = _last_sign(self._sign + data[max(n - _MOST_SPACE, 0) : n])
        return n, False


def _string_end(data: bytes, start: int) -> int:
    """Return the position after the quote that ends a JSON string, given a position inside the string.

    Return 0 if the data do not have the end of the string.
    """
    rest = data[start:]
    if b"\\" in rest:
        rest = rest.replace(rb"\\", b"..").replace(rb"\"", b"..")
    return start + rest.index(b'"') + 1 if b'"' in rest else 0


def _without_escape(data: bytes) -> int:
    """Return the length of the data without the backslash of an incomplete escape at their end."""
    n_backslashes = len(data) - len(data.rstrip(b"\\"))
    return len(data) - n_backslashes % 2


_Plain = tuple[str, dict[str, str], str, dict[str, Any] | None]


def _plain_reader(settings: InputSettings) -> Callable[[dict[str, Any]], _Plain | None] | None:
    """Return a fast function that takes an object that orjson read and returns its id, zones, date and further fields.

    The function returns None for an object that needs the slower parser, for example if orjson may have read it
    differently from Python's json. Instead of a function, None is returned if the settings ask for labels.
    """
    if settings.labels is not None:
        return None
    id_field, requires_id = settings.id_field, not settings.is_default("id_field")
    date_field, keeps_others = settings.date_field, bool(settings.fields)
    title_field, body = title_and_body(settings.text_fields or ("title", "text"))
    requires_title = bool(settings.text_fields and title_field)
    usual: set[str] = set()  # names of fields that are not default names in another case

    def plain(fields: dict[str, Any]) -> _Plain | None:
        if "zones" in fields or (requires_id and id_field not in fields):
            return None
        if not usual.issuperset(fields):
            if not has_default_names(fields):
                return None
            if len(usual) < _MOST_NAMES:  # objects may have ever new names
                usual.update(name for name in fields if len(name) <= LONGEST_NAME)
        if requires_title and title_field not in fields:
            return None
        name, title = fields.get(id_field), fields.get(title_field) if title_field else None
        if name is None and not requires_id and "document_id" in fields and has_subjects(fields):
            name = fields["document_id"]
        name = "" if name is None else str(name) if type(name) is int else name
        title = "" if title is None else title
        if len(body) == 1:
            text = fields.get(body[0])
        else:
            texts = [fields.get(field) for field in body]
            text = "\n".join(filter(None, texts)) if all(type(text) is str for text in texts) and texts else None
        if type(text) is not str or type(name) is not str or type(title) is not str:
            return None  # also an integer of more than 64 bits, which orjson returns as a float
        date = _date(fields[date_field]) if date_field in fields else ""
        others = _further_fields(fields, settings) if keeps_others else None
        if others and not all(map(_is_plain, others.values())):
            return None  # it may contain a number that orjson parses differently
        if title:
            return name, {"title": title, "body": text} if text else {"title": title}, date, others
        return name, {"body": text}, date, others

    return plain


def _is_plain(value: Any) -> bool:
    """Return whether orjson surely reads a value as Python's json does: it reads very large integers as floats."""
    kind = type(value)
    if kind is float:
        return abs(value) < _LARGE
    return kind in _PLAIN_TYPES or (kind is list and _PLAIN_TYPES.issuperset(map(type, value)))


def _content(block: Block, settings: InputSettings, span: RecordSpan) -> Record:
    return _loaded_content(_parse_by_orjson(span.data) if settings.in_utf8() else None, block.source, settings, span)


def _loaded_content(loaded: Any, source: str, settings: InputSettings, span: RecordSpan) -> Record:
    """Return the content of a record; `loaded` is its JSON as parsed by orjson, None if orjson did not parse it."""
    is_plain = type(loaded) is dict and all(map(_is_plain, loaded.values()))
    fields = loaded if is_plain else read_object(span.text(settings))
    plain = plain_record(
        fields, settings.topics_field, settings.is_default("topics_field"), settings.labels is not None
    )
    return object_content(*_with_usual_names(plain, source, settings), _candidates(plain, settings))


def _with_usual_names(
    fields: Mapping[str, Any], source: str, settings: InputSettings
) -> tuple[Mapping[str, Any], InputSettings]:
    """Return an object and the settings to read it by, if fields with default names are missing.

    Such a field is replaced by the only field that has one of the usual names, such as "content" for the text; those of
    dates and parts by the only one whose name differs from the default only in case, such as "Date".
    """
    if has_default_names(fields):
        return _with_usual_text(fields, source, settings)
    names = without_unreadable(fields, lambda name, default: _can_be(fields[name], default))
    given, settings = settings, with_default_names(names, settings)
    title = default_name(names, "title") if settings.is_default("text_fields") else ""
    if title not in ("", "title"):
        fields = _with_title(fields, title, settings)
    name, date = settings.id_field, settings.date_field
    part = settings.split_field if settings.labels is not None else ""
    log_usual_names(source, ColumnNames(title, (), name, split=part, date=date), given)
    return _with_usual_text(fields, source, settings)


def _can_be(value: Any, default: str) -> bool:
    """Return whether the value of a field can be read as that of a default field, which is its name in another case."""
    return default == "date" or value is None or type(value) is str or (default == "id" and type(value) is int)


def _with_usual_text(
    fields: Mapping[str, Any], source: str, settings: InputSettings
) -> tuple[Mapping[str, Any], InputSettings]:
    """Return an object and the settings to read it by, if fields of text and id with default names are missing."""
    if fields.get("text") is not None:
        return fields, settings
    has_text = any(fields.get(name) is not None for name in ("text", "body", "zones"))
    body = "" if has_text or not settings.is_default("text_fields") else usual_name(fields, "body")
    changed, title = settings, ""
    if body:
        title = "" if "title" in fields else usual_name(fields, "title")
        changed = changed._replace(text_fields=("title", body) if title or "title" in fields else (body,))
        if settings.is_default("id_field") and "id" not in fields:
            changed = changed._replace(id_field=usual_name(fields, "id") or "id")
        log_usual_names(source, ColumnNames(title or "title", (body,), changed.id_field), settings)
    return _with_title(fields, title, settings) if title else fields, changed


def _with_title(fields: Mapping[str, Any], name: str, settings: InputSettings) -> Mapping[str, Any]:
    """Return an object with the field of that name as its "title"; the field stays only if it is asked for by name."""
    others = {field: value for field, value in fields.items() if field != name or field in settings.fields}
    return others | {"title": fields[name]}


def _candidates(fields: Mapping[str, Any], settings: InputSettings) -> Candidates | None:
    """Return the fields of an object that may hold its topics, for `Record.candidates`.

    An object may lack a field just because it has no topics, so that all objects of a corpus show which field is meant.
    """
    if settings.labels is None or settings.topic_fields or not settings.is_default("topics_field"):
        return None
    if "topics" in fields or "subjects" in fields:
        return _NAMED
    return {name: _labels_or_fault(fields[name], name, settings) for name in names_alike(fields, "topics")}


def _labels_or_fault(value: Any, field: str, settings: InputSettings) -> Labels | UnreadableError:
    try:
        return labels_in(_joined(value), field, settings.topics_separator)
    except UnreadableError as fault:
        return fault.with_traceback(None)


def object_content(fields: Mapping[str, Any], settings: InputSettings, candidates: Candidates | None = None) -> Record:
    """Return the content (id, texts and labels) of a record that is a JSON object, with the given `candidates`.

    The record's text is in the fields that the settings name. If they name none, it is in ``title`` and ``text`` or
    ``body``, or in ``zones``, an object of texts by the names of zones. Null fields and zones without text are ignored,
    and so are other fields unless `settings.fields` asks for them. A NUL written as an escape of JSON is part of the
    text; a NUL byte is not valid JSON.
    """
    check_labels(fields, settings)
    if has_subjects(fields):
        # Annif's names of fields, if there are none of the usual names.
        if settings.is_default("topics_field") and fields.get("topics") is None:
            settings = settings._replace(topics_field="subjects")
        if settings.is_default("id_field") and fields.get("id") is None and "document_id" in fields:
            settings = settings._replace(id_field="document_id")
    identifier = fields.get(settings.id_field)
    name = str(identifier) if type(identifier) is int else _text(fields, settings.id_field)
    zones, others = settings.filled(_zones(fields, settings)), _further_fields(fields, settings)
    date = fields.get(settings.date_field)
    if settings.labels is None:
        return Record(name, zones, (), _date(date), fields=others)
    part = settings.part_in(_text(fields, settings.split_field))
    field, separator = settings.topics_field, settings.topics_separator
    if settings.topic_fields:
        topics, labelled_for = labels_of_fields({name: fields.get(name) for name in settings.topic_fields})
    else:
        topics, labelled_for = labels_in(_joined(fields.get(field)), field, separator)
    if fields.get("labelled_for") is not None:
        labelled_for = labels_in(_joined(fields["labelled_for"]), "labelled_for", separator).topics
    return Record(name, zones, topics, _date(date), part, labelled_for, others, candidates=candidates)


def _parse_by_orjson(data: bytes) -> Any:
    """Parse JSON by orjson; return None if orjson cannot parse it: it is invalid, or has a lone surrogate."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None  # a lone surrogate, or invalid JSON


def read_object(text: str) -> dict[str, Any]:
    """Parse a text as an object of JSON; raise UnreadableError if it is anything else."""
    try:
        fields = json.loads(text.removeprefix("\ufeff"))  # byte order mark of a concatenated file
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        if "\r" in text[: error.pos]:
            raise UnreadableError(
                "has several lines that end in a carriage return only, in a file with line feeds: replace these"
            ) from None
        raise UnreadableError(f"is not valid JSON ({what} at column {error.colno}): correct it") from None
    except (ValueError, RecursionError) as error:  # a number of very many digits, or deeply nested brackets
        raise UnreadableError(f"is not valid JSON ({error!s:.60}): correct it") from None
    if not isinstance(fields, dict):
        raise UnreadableError(f'holds {_shown(fields)}: it must be a JSON object, such as {{"text": "…"}}')
    return fields


def _zones(fields: Mapping[str, Any], settings: InputSettings) -> dict[str, str]:
    """Return the texts in the fields that the settings name; by default ``zones``, or those of title and body."""
    title, body = _text_fields(fields, settings)
    zones = fields.get("zones")
    if body == ("zones",) and (isinstance(zones, dict) or not settings.text_fields):
        if not isinstance(zones, dict):
            raise UnreadableError(f"has the zones {_shown(zones)}: they must be an object of texts by their names")
        return {
            join_surrogates(name): _string(f"zones.{join_surrogates(name)}", value) for name, value in zones.items()
        }
    if all(fields.get(field) is None for field in [*body, title]):
        if not settings.text_fields and (several := hint_of_fields(fields, "texts")):
            raise UnreadableError(
                f"has no field 'text'{several}: name the texts' field with --text-field (in some files only, with "
                "--for; in Python text=)"
            )
        which = " or ".join(map(repr, settings.text_fields)) or "'text', or 'title' and 'body'"
        raise UnreadableError(f"has no text: give it {which}, or name the field that holds it")
    parts = [_text(fields, field) for field in body]
    return titled_zones(_text(fields, title) if title else "", parts, settings)


def _text_fields(fields: Mapping[str, Any], settings: InputSettings) -> tuple[str, tuple[str, ...]]:
    """Return the field of the title ("" if there is none) and the fields of the body; ``zones`` has both."""
    if settings.text_fields:
        return texts_among(fields, settings)
    if fields.get("zones") is not None:
        return "", ("zones",)
    # Unlike in a table, a title alone is enough, and null counts as missing.
    return "title", ("text",) if fields.get("text") is not None else ("body",)


def _further_fields(fields: Mapping[str, Any], settings: InputSettings) -> dict[str, Any] | None:
    """Return the fields that a record keeps besides its zones, by name; None if the settings ask for no fields."""
    if not settings.fields:
        return None
    return {name: _joined(fields[name]) for name in further_fields(fields, *_text_fields(fields, settings), settings)}


def _joined(value: Any) -> Any:
    """Return a JSON value in whose strings each surrogate pair is joined into one character."""
    if isinstance(value, str):
        return join_surrogates(value)
    if isinstance(value, list):
        return [*map(_joined, value)]
    if isinstance(value, dict):
        return {join_surrogates(name): _joined(member) for name, member in value.items()}
    return value


def _date(value: Any) -> str:
    """Return the date in a field, in ISO 8601; "" if the value is neither a text nor a number (a year)."""
    is_date = type(value) in (str, int, float) and value == value  # no NaN
    return iso_date(join_surrogates(str(value))) if is_date else ""


def _text(fields: Mapping[str, Any], field: str) -> str:
    """Return the text in a field, "" if the field is missing or null; raise UnreadableError if it is no string."""
    value = fields.get(field)
    return "" if value is None else _string(field, value)


def _string(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UnreadableError(f"has the {field} {_shown(value)}: it must be a string")
    return join_surrogates(value)


def _shown(value: Any) -> str:
    shown = _ENCODER.encode(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


LINES = _Lines(nonblank_lines, by_record(_content), "Line {}", lambda *_: LineCutter())
ARRAY = RecordFormat(
    _objects, by_record(_content), "Object {}", lambda _, __, settings: _ObjectCutter(settings.max_bytes)
)
