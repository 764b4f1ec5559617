"""Read settings from TOML files and from texts, and write them."""

import errno
import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any

from textcat.base.errors import TextcatError, similar_files
from textcat.base.records import describe_type, has_type

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]


_MOST_BYTES = 1 << 24  # maximum size of a TOML file


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse a text in TOML; raise a TextcatError, which names its source `place`, if it is invalid."""
    # Also for numbers of thousands of digits, and for deeply nested brackets.
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextcatError(f"{place} is not valid TOML ({error}): mend it.") from error


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file; if that fails, raise a TextcatError that calls the file `what`, such as "recipe" or "card"."""
    try:
        text = _text_of(path)
    except OSError as error:
        raise TextcatError(f"Cannot read the {what} {path}: {error.strerror}.{similar_files(path)}") from error
    except ValueError as error:  # for bytes that are not text
        raise TextcatError(f"The {what} {path} is not valid TOML ({error}): mend it.") from error
    return parse_toml(text, f"The {what} {path}")


def _text_of(path: Path) -> str:
    """Return the text of a small file; a pipe of the shell, as of ``<(…)``, is read, too."""
    if stat.S_ISFIFO(os.stat(path).st_mode) and not str(path).startswith(("/dev/", "/proc/")):
        raise OSError(errno.EINVAL, "it is a pipe, which may never end: name a file", str(path))
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")  # including line ends of old Macs


def parse_value(text: str, annotation: Any) -> Any:
    """Parse a text such as ``5``, ``true`` or ``{ title = 2 }`` as TOML; return the text itself if that fails.

    ValueError is raised if neither the parsed value nor the text has the type `annotation`: see `has_type`.
    """
    candidates: list[Any] = [text]
    for parse in (float, lambda text: tomllib.loads(f"value = {text}")["value"]):  # float parses ".5", too
        with suppress(ValueError, RecursionError):
            candidates.insert(0, parse(text))
    for value in candidates:
        if has_type(value, annotation):
            return value
    raise ValueError(f"give {describe_type(annotation)}")


def check_whole_number(value: Any, least: int, what: str) -> None:
    """Raise TextcatError unless a value is a whole number and at least `least`; the sentence begins with `what`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise TextcatError(f"{what} cannot be {value!r}: give a whole number, {least} or more.")


def format_value(value: Any) -> str:
    """Return a value in the syntax of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {format_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
