"""Find corpora on disk, or download and verify them."""

import logging
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from textcat.base.disk import expanded, user_cache
from textcat.base.errors import TextcatError
from textcat.corpus.cards import Card
from textcat.corpus.contents import verify
from textcat.reading import DamagedError

if TYPE_CHECKING:
    from textcat.base.progress import Bar

_log = logging.getLogger(__name__)

_TIMEOUT = 30  # seconds without data before the next mirror is tried
_PARTIAL = ".partial-"  # prefix of a download's temporary folder
_STALE = 24 * 3600  # seconds after which such a folder is abandoned
_REASONS = {
    "ChunkedEncodingError": "the connection broke off",
    "ConnectTimeout": "no answer",
    "ConnectionError": "no connection",
    "ReadTimeout": "no answer",
}


def cache_folder() -> Path:
    """Return the user's folder for downloaded corpora; it need not exist. Raise TextcatError without a home folder."""
    return user_cache() / "corpora"


def cache_folders() -> list[Path]:
    """Return the one cache folder in a list, which is empty if the user has no home folder."""
    with suppress(TextcatError):
        return [cache_folder()]
    return []


def search_folders(card: Card, corpus_dir: str | Path | None) -> list[Path]:
    """Return the folders to search for the corpus that a card describes, in the order of the search.

    These are `corpus_dir`, the folder in the variable ``TEXTCAT_CORPORA``, the card's folder, and the user's cache.
    """
    variable = os.environ.get("TEXTCAT_CORPORA")
    if variable and not expanded(variable).is_dir():
        warn_once(f"TEXTCAT_CORPORA names {variable}, and there is no such folder.")
    named = [folder for folder in (corpus_dir, variable) if folder]
    return [*(expanded(folder) for folder in named), card.folder, *cache_folders()]


@cache
def warn_once(sentence: str) -> None:
    """Log a warning, unless it has been logged before."""
    _log.warning(sentence)


def locate_corpus(card: Card, corpus_dir: str | Path | None = None) -> Path | None:
    """Return the path of a corpus on disk; None if no searched folder has one of the card's `files`.

    A card describes a corpus. `corpus_dir` is searched first.
    """
    paths = (folder / file for folder in search_folders(card, corpus_dir) for file in card.files)
    return next((path for path in paths if path.exists()), None)


def obtain_corpus(card: Card, corpus_dir: str | Path | None, *, download: bool, progress: "Bar | None") -> Path:
    """Return the path of a corpus on disk; if it is in no searched folder, download it, unless `download` is False.

    `corpus_dir` is searched first. TextcatError is raised if the corpus is in no folder and is not downloaded.
    """
    if path := locate_corpus(card, corpus_dir):
        return path
    if not (download and card.urls):
        folders = ", ".join(map(str, search_folders(card, corpus_dir)))
        raise TextcatError(f"Corpus {card.name} is in none of {folders}. {instructions(card)}")
    return _download(card, progress)


def fetch_corpus(card: Card, progress: "Bar | None" = None, corpus_dir: str | Path | None = None) -> Path:
    """Find a corpus on disk, or download it into the user's cache; verify it as a whole, and return its path.

    `corpus_dir` is searched first. A damaged copy in the cache is downloaded again. A download gets its name only after
    it is verified, so a partial download is never used. Before a download, the licence is logged.

    A TextcatError is raised if the files are faulty, if all URLs fail, or if the card has no URL.
    """
    path = locate_corpus(card, corpus_dir)
    if path is not None:
        try:
            verify(card, path)
            return path
        except TextcatError as error:
            if not card.urls or path.parent not in cache_folders():
                raise
            _log.warning("%s It is fetched again.", error)
    if not card.urls:
        raise TextcatError(f"The card of {card.name} names no URL to download from. {instructions(card)}")
    return _download(card, progress)


def _download(card: Card, progress: "Bar | None") -> Path:
    """Download a corpus from the first of its URLs that works into the user's cache, verify it, and return its path."""
    if not (card.sha256 or card.tree):
        raise TextcatError(
            f"The card of {card.name} has neither 'sha256' nor 'tree', so a download cannot be verified: add one. "
            f"{instructions(card)}"
        )
    _log.info("%s. %s", card.title, card.licence)
    target, failures = cache_folder() / card.files[0], []
    _check_writable(target.parent)
    for url in card.urls:
        try:
            _download_from(url, card, target, progress)
            return target
        except (OSError, ValueError, TextcatError) as error:  # ValueError: an unknown URL scheme
            failures.append(f"{url}: {_reason(error)}")
            _log.warning("No download from %s", failures[-1])
    raise TextcatError(f"Corpus {card.name} could not be downloaded ({'; '.join(failures)}). {instructions(card)}")


def _download_from(url: str, card: Card, target: Path, progress: "Bar | None") -> None:
    from pooch import HTTPDownloader
    from pooch.downloaders import choose_downloader

    for left_over in target.parent.glob(f"{_PARTIAL}*"):
        if time.time() - left_over.stat().st_mtime > _STALE:
            shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=target.parent) as folder:
        partial = Path(folder, target.name)
        download = choose_downloader(url, progressbar=progress)
        if isinstance(download, HTTPDownloader):
            download.kwargs["timeout"] = _TIMEOUT
        download(url, str(partial), None)
        verify(card, partial)
        os.replace(partial, target)


def _check_writable(folder: Path) -> None:
    """Create the folder for a download; raise a TextcatError if nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TextcatError(
            f"Nothing can be written to the cache {folder} ({error.strerror}): name another folder in XDG_CACHE_HOME, "
            "or free or unlock this one."
        ) from None


def _reason(error: Exception) -> str:
    if (response := getattr(error, "response", None)) is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, DamagedError):
        return "the file it gives is cut off or not the one the card describes"
    reasons = (_REASONS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _REASONS)
    return next(reasons, str(error))


def instructions(card: Card) -> str:
    """Return instructions for downloading a corpus manually: where from, and where to put the files."""
    return f"{card.obtain} Put {card.files[0]} into a folder and name the folder in TEXTCAT_CORPORA.".lstrip()
