"""Text files and standard input, as the command line names them, → texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from textcat.errors import TextcatError


def read_texts(paths: Iterable[Path], encoding: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Read text files.

    Parameters
    ----------
    paths : iterable of Path
        ``-`` is standard input.
    encoding : str

    Returns
    -------
    texts : list of (id, text)
        In the order of the paths; the id is the path as given.
    unreadable : list of str
        A sentence for each file that could not be read.

    Raises
    ------
    TextcatError
        If there is no such encoding.
    """
    texts, unreadable = [], []
    for path in paths:
        try:
            content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
            texts.append((str(path), content.decode(encoding).removeprefix("\ufeff")))
        except LookupError:
            raise TextcatError(f"There is no encoding {encoding!r}; try utf-8 or latin-1.") from None
        except UnicodeDecodeError as error:
            unreadable.append(f"{path} is not {encoding} (byte {error.start}): name its encoding with --encoding.")
        except OSError as error:
            unreadable.append(f"{path} cannot be read: {error.strerror}.")
    return texts, unreadable
