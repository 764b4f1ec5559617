"""Paths of files in folders and archives, with "/" between their parts."""

from collections.abc import Iterator


def paths_above(path: str) -> Iterator[str]:
    """Yield a path, then the paths of all folders and archives around it, the innermost first."""
    while path:
        yield path
        path = path.rpartition("/")[0]
