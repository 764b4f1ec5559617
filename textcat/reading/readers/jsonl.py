"""JSON Lines: one JSON object a line, one document an object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from textcat.documents import PARTS, Document
from textcat.errors import TextcatError
from textcat.reading.members import Member
from textcat.reading.readers.folders import part

_NAME = re.compile(r"\.(?:jsonl|ndjson)$", re.IGNORECASE)


def wanted(name: str, **options: str) -> bool:
    """Tell whether a file holds a JSON object a line."""
    return bool(_NAME.search(name))


def parse(
    member: Member, id: str = "id", text: str = "text", topics: str = "topics", encoding: str = "utf-8"
) -> Iterator[Document]:
    """Yield the documents of one file.

    An object has its text in ``text`` (which becomes the body), in ``title`` and ``body``, or in ``zones``, an object
    of them; and, if it has any, ``topics``: a list of names, or one name. What else it may have: ``id`` (by default
    the file's name and the line's number), ``date``, and ``split``: "train", "test" or "unused", by default what the
    name of the file or of a folder above it is or ends in (``test.jsonl``, ``news-train.jsonl``). Other fields, and
    fields that are null, are passed over.

    Parameters
    ----------
    member : Member
    id, text, topics : str
        The names that these three fields have in the file.
    encoding : str

    Yields
    ------
    Document

    Raises
    ------
    TextcatError
        If a line is no JSON object, has no text, or a field is not of its type, with the line's number.
    """
    *above, file = member.name.split("/")
    default_part = part([*above, _NAME.sub("", file)])
    for number, line in enumerate(member.text(encoding).removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = Fields.of_line(line)
            yield Document(
                fields.identifier(id) or f"{member.name}:{number}",
                fields.zones(text),
                fields.names(topics),
                fields.string("date"),
                fields.part() or default_part,
            )
        except FaultError as fault:
            raise TextcatError(f"{member}: line {number} {fault}.") from None


class FaultError(Exception):
    """What is wrong with a line and what it should be, as the rest of a sentence."""


class Fields:
    """The fields of one line; its methods read them, or raise FaultError."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @classmethod
    def of_line(cls, line: str) -> Fields:
        """Parse a line."""
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise FaultError(f"is not valid JSON ({error.msg} at column {error.colno}): mend it") from None
        except (ValueError, RecursionError) as error:  # a number of many digits; brackets within brackets
            raise FaultError(f"is not valid JSON ({error!s:.60}): mend it") from None
        if not isinstance(fields, dict):
            raise FaultError(f'holds {_shown(fields)}: it must be a JSON object, such as {{"text": "…"}}')
        return cls(fields)

    def identifier(self, field: str) -> str:
        """Give the id, "" if there is none."""
        value = self._fields.get(field)
        return str(value) if type(value) is int else self.string(field)

    def zones(self, text: str) -> dict[str, str]:
        """Give the texts: what `zones` holds, or title and body, which may be the field `text`."""
        zones = self._fields.get("zones")
        if zones is not None:
            if not isinstance(zones, dict):
                raise FaultError(f"has the zones {_shown(zones)}: they must be an object of texts by their names")
            return {_valid(name): _string(f"zones.{_valid(name)}", value) for name, value in zones.items()}
        body = text if self._fields.get(text) is not None else "body"
        if self._fields.get(body) is None and self._fields.get("title") is None:
            raise FaultError(f"has no text: give it {text!r}, or 'title' and 'body', or name the field that holds it")
        return {"title": self.string("title"), "body": self.string(body)}

    def names(self, field: str) -> tuple[str, ...]:
        """Give a list of names, each once."""
        value = self._fields.get(field)
        names = [] if value is None else value if isinstance(value, list) else [value]
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise FaultError(f"has the {field} {_shown(value)}: they must be a list of names, or one name")
        return tuple(dict.fromkeys(map(_valid, names)))

    def part(self) -> str:
        """Give the part, "" if the line does not say it."""
        value = self.string("split")
        if value and value not in PARTS:
            raise FaultError(f"has the split {value!r}: it must be one of {', '.join(PARTS)}")
        return value

    def string(self, field: str) -> str:
        """Give a string, "" if there is none."""
        value = self._fields.get(field)
        return "" if value is None else _string(field, value)


def _string(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise FaultError(f"has the {field} {_shown(value)}: it must be a string")
    return _valid(value)


def _valid(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON's escapes can write and no text can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _shown(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
