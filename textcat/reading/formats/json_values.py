"""Locate JSON values in bytes, so that they can be changed and the rest of a file kept as it is."""

import json
import re
from typing import NamedTuple

# An unclosed string ends with the data; otherwise, each of its quotes would be searched.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\],:]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")


class ValueSpan(NamedTuple):
    """The position of a JSON value in bytes."""

    start: int
    end: int
    name: str = ""  # the value's name, if it is a member of an object
    begin: int = -1  # start of the member, i.e. of its name; or of the value


def values_in(data: bytes, start: int) -> tuple[list[ValueSpan], int]:
    """Locate the values of the object or array that begins at `start` in valid JSON, and its closing bracket."""
    values: list[ValueSpan] = []
    depth, name, begin, member = 0, "", start + 1, -1
    for token in _TOKEN.finditer(data, start):
        sign = token[0][:1]
        if sign in (b"{", b"["):
            depth += 1
        elif depth > 1:
            depth -= sign in (b"}", b"]")
        elif sign == b":":
            begin = token.end()
        elif sign == b'"':
            if member < 0 and data[start] == ord("{"):
                name, member = json.loads(token[0].decode("utf-8", "replace")), token.start()
        else:
            first = _end_of_space(data, begin)
            if first < token.start():
                end = first + len(data[first : token.start()].rstrip(b" \t\r\n"))
                values.append(ValueSpan(first, end, name, first if member < 0 else member))
            name, begin, member = "", token.end(), -1
            if sign != b",":
                return values, token.start()
    return values, len(data)


def _end_of_space(data: bytes, start: int) -> int:
    match = _SPACE.match(data, start)
    return match.end() if match else start


def members_of(data: bytes, start: int) -> dict[str, ValueSpan]:
    """Locate the members of the object that begins at `start` in valid JSON: return the span of each value by its name.

    If a name occurs several times, its last value counts.
    """
    return {value.name: value for value in values_in(data, start)[0]}
