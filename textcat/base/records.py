"""Read records: dataclasses whose fields have the types of the entries of a JSON object or a TOML table."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")
#: What `read_record` raises, and the methods of records, for entries that nobody has written for such a record.
MISFITS = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)

_WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_WORDS |= {dict: "a table", list: "a list"}
_IN_TOML: dict[Any, type] = {Mapping: dict, Sequence: list, tuple: list}  # what a file has in place of a type
_PLURALS = {int: "integers", float: "numbers", str: "strings"}


def read_record(cls: type[_Record], entries: Mapping[str, Any]) -> _Record:
    """Return a record of a dataclass; raise one of `MISFITS` if an entry is missing, unknown or of another type.

    The entries of a field whose class has a method `from_dict` are given to it; those of another dataclass are read in
    their turn.
    """
    kinds = field_types(cast(Any, cls))
    return cls(**{name: _read_value(kinds[name], value) for name, value in entries.items()})


def _read_value(kind: Any, value: Any) -> Any:
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if isinstance(kind, type) and is_dataclass(kind):
        return read_record(kind, value)
    if not has_type(value, kind):
        raise ValueError(f"{value!r:.40} is not {describe_type(kind)}")
    return value


def entries_of(record: Any) -> dict[str, Any]:
    """Return the entries from which `read_record` makes a record, without those that equal their defaults."""
    entries = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if value != (field.default if field.default_factory is MISSING else field.default_factory()):
            nested = entries_of(value) if is_dataclass(value) else value
            entries[field.name] = value.as_dict() if hasattr(value, "as_dict") else nested
    return entries


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def has_type(value: Any, annotation: Any) -> bool:
    """Return whether a value of a JSON or TOML file has the type `annotation`, such as ``float | None``.

    Whole numbers pass as floats; true and false do not pass as numbers.
    """
    for kind, entry_type in _kinds(annotation):
        if kind is Any or type(value) is kind or (kind is float and type(value) is int):
            entries = value.values() if kind is dict else value if kind is list else ()
            of_each_type = {type(entry): entry for entry in entries}  # of a million texts, one is enough to look at
            some = entries if of_each_type.keys() & {dict, list} else of_each_type.values()
            if all(has_type(entry, entry_type) for entry in some):
                return True
    return False


def describe_type(annotation: Any) -> str:
    """Return a type in words, such as "a number or a text" or "a list of strings"."""
    return " or ".join(
        f"{_WORDS.get(kind, 'a value')}{f' of {_PLURALS[entry_type]}' if entry_type in _PLURALS else ''}"
        for kind, entry_type in _kinds(annotation)
        if kind is not type(None)
    )


def _kinds(annotation: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the plain types that an annotation allows, each with the type of its entries if it is a list or table."""
    for kind in get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,):
        plain, arguments = get_origin(kind) or kind, get_args(kind)
        in_toml = _IN_TOML.get(plain, plain)
        yield in_toml, arguments[in_toml is dict] if arguments else Any
