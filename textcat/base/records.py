"""Read records: dataclasses whose fields have the types of the entries of a JSON object or a TOML table."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from textcat.base.errors import TextcatError, did_you_mean

_Record = TypeVar("_Record")
#: What `read_record` raises, and the methods of records, for entries that nobody has written for such a record.
MISFITS = (TextcatError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)

_WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_WORDS |= {dict: "a table", list: "a list"}
_IN_TOML: dict[Any, type] = {Mapping: dict, Sequence: list, tuple: list}  # what a file has in place of a type
_PLURALS = {int: "integers", float: "numbers", str: "strings"}


def read_record(cls: type[_Record], entries: Mapping[str, Any], where: str) -> _Record:
    """Return a record of a dataclass; raise TextcatError, or another of `MISFITS`, if its entries are others.

    Entries of a field that is a dataclass, or a list of one, are read in their turn: by its method `from_dict`, if it
    has one. Parameters as in `check_entries`.
    """
    kinds = field_types(cast(Any, cls))
    check_entries(entries, kinds, where)
    return cls(**{name: _read_value(kinds[name], value, where) for name, value in entries.items()})


def _read_value(annotation: Any, value: Any, where: str) -> Any:
    for kind, entry_type in _kinds(annotation):
        if kind is list and is_dataclass(entry_type):
            return [_read_value(entry_type, entries, where) for entries in value]
        if is_dataclass(kind) and value is not None:
            return kind.from_dict(value) if hasattr(kind, "from_dict") else read_record(cast(Any, kind), value, where)
    return value


def check_entries(entries: Mapping[str, Any], types: Mapping[str, Any], where: str) -> None:
    """Raise TextcatError unless all entries have a type in `types`, and values of this type.

    `where` ends the subject of the sentence, such as "in the card wheat.toml".
    """
    for name, value in entries.items():
        if name not in types:
            known = f"Known: {', '.join(sorted(types))}.{did_you_mean(name, types)}"
            raise TextcatError(f"There is no field {name!r} {where}. {known}")
        if not has_type(value, types[name]):
            what = describe_type(types[name])
            raise TextcatError(f"The field {name!r} {where} cannot be {value!r:.100}; give {what}.")


def entries_of(record: Any) -> dict[str, Any]:
    """Return the entries from which `read_record` makes a record, without those that equal their defaults."""
    values = ((field, getattr(record, field.name)) for field in fields(record))
    return {
        field.name: _as_entry(value)
        for field, value in values
        if value != (field.default if field.default_factory is MISSING else field.default_factory())
    }


def _as_entry(value: Any) -> Any:
    if is_dataclass(value):
        return value.as_dict() if hasattr(value, "as_dict") else entries_of(value)
    return [_as_entry(entry) for entry in value] if isinstance(value, list) else value


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
        plain = dict if is_dataclass(kind) else kind
        if kind is Any or type(value) is plain or (kind is float and type(value) is int):
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
    """Yield the types without arguments that an annotation allows, each with that of a list's or table's entries."""
    for kind in get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,):
        plain, arguments = get_origin(kind) or kind, get_args(kind)
        in_toml = _IN_TOML.get(plain, plain)
        yield in_toml, arguments[in_toml is dict] if arguments else Any
