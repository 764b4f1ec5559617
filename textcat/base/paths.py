"""Paths: those that an argument names, and those of files in folders and archives, with "/" between their parts."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from textcat.base.errors import TextcatError

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def named_paths(named: Paths) -> list[str | os.PathLike[str]]:
    """Return the paths that an argument names: one, or several.

    TextcatError is raised if it is a table, or holds anything but paths.
    """
    if isinstance(named, str | os.PathLike):
        return [named]
    wrong: Any = named
    if not hasattr(named, "columns") and hasattr(named, "__iter__"):
        paths = [*named]
        if all(isinstance(path, str | os.PathLike) for path in paths):
            return paths
        wrong = next(path for path in paths if not isinstance(path, str | os.PathLike))
    raise TextcatError(
        f"A value of the type {type(wrong).__name__} is no path: give the paths of files or folders; tables and texts "
        "in memory are for `Tagger.tag`."
    )


def paths_above(path: str) -> Iterator[str]:
    """Yield a path, then the paths of all folders and archives around it, the innermost first."""
    while path:
        yield path
        path = path.rpartition("/")[0]
