"""Text → a file that is replaced whole: a reader sees the old one or the new one, never half."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from textcat.errors import TextcatError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a temporary sibling of a file for writing, and rename it to the file when the block ends well.

    Parent folders are made. If the block raises, the sibling is removed and the file stays as it was. What is there but
    is no regular file (a pipe, ``/dev/stdout``) cannot be renamed over and is written directly.

    Parameters
    ----------
    path : str or path-like
        The file to write, in UTF-8, its lines ending in a line feed on every system.

    Yields
    ------
    TextIO

    Raises
    ------
    TextcatError
        If nothing can be written there.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with _opened(path, "w") as file:
            yield file
        return
    # The file a symbolic link points to is replaced, the link stays.
    path = path.resolve()
    sibling = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    file = _opened(sibling, "x")
    try:
        with file:
            yield file
        os.replace(sibling, path)
    except BaseException:
        sibling.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole, or not at all; parameters and errors as in `replacing`."""
    with replacing(path) as file:
        file.write(text)


def _opened(path: Path, mode: Literal["w", "x"]) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, mode, encoding="utf-8", newline="\n")
    except OSError as error:
        raise TextcatError(
            f"Cannot write in {path.parent} ({error.strerror}): name a folder that you may write to."
        ) from error
