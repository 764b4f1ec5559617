"""Named corpora: find on disk, download, verify, open."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol

from textcat.corpus import descriptions
from textcat.corpus.cards import Card, card, cards, tree_digest
from textcat.corpus.descriptions import read_descriptions
from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.reading.members import DamagedError, Member, members, names
from textcat.reading.readers import READERS

__all__ = ["Card", "cache_folder", "card", "cards", "fetch", "locate", "open_corpus", "verify"]

_log = logging.getLogger(__name__)
_TIMEOUT = 30  # seconds without a byte before the next mirror is tried
_PARTIAL = ".partial-"  # start of the name of a download's temporary folder
_STALE = 24 * 3600  # seconds after which such a folder belongs to no running download
_REASONS = {
    "ChunkedEncodingError": "the connection broke off",
    "ConnectTimeout": "no answer",
    "ConnectionError": "no connection",
    "ReadTimeout": "no answer",
}


class Progress(Protocol):
    """What `fetch` reports to; pooch's protocol for progress bars."""

    total: int

    def update(self, n: int) -> None:
        """Advance by `n` bytes."""

    def reset(self) -> None:
        """Go back to 0 bytes."""

    def close(self) -> None:
        """Take note of the end."""


def cache_folder() -> Path:
    """Return the user's folder for downloaded corpora; it need not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("textcat", appauthor=False) / "corpora"


def search_folders(card: Card, corpus_dir: str | Path | None = None) -> list[Path]:
    """Return the folders a corpus is looked for in, in order.

    They are `corpus_dir`, the environment variable ``TEXTCAT_CORPORA``, the card's own folder, the user's cache.
    """
    named = [folder for folder in (corpus_dir, os.environ.get("TEXTCAT_CORPORA")) if folder]
    return [*(Path(folder).expanduser() for folder in named), card.folder, cache_folder()]


def locate(card: Card, corpus_dir: str | Path | None = None) -> Path | None:
    """Find a corpus on disk.

    Parameters
    ----------
    card : Card
    corpus_dir : str or Path, optional
        Folder to look in first.

    Returns
    -------
    Path or None
        The first of the card's `files` in the first of `search_folders` that has one, else None.
    """
    paths = (folder / file for folder in search_folders(card, corpus_dir) for file in card.files)
    return next((path for path in paths if path.exists()), None)


def verify(card: Card, path: Path) -> None:
    """Read a corpus through and compare its sums with the card's, without parsing it.

    Raises
    ------
    TextcatError
        If the file is cut off, a file of the corpus is missing, or a sum differs.
    """
    sums = {member.name: _sum(card, path, member) for member in members(path, card.wanted)}
    _check_complete(card, path, sums)


def fetch(card: Card, progress: Progress | None = None) -> Path:
    """Download a corpus into the user's cache, unless a whole copy is there already.

    The download gets its name only after it is verified, so a half one is never taken for a corpus. The licence is
    logged.

    Parameters
    ----------
    card : Card
    progress : Progress, optional
        For example a `textcat.progress.Bar`.

    Returns
    -------
    Path
        Where the corpus lies.

    Raises
    ------
    TextcatError
        If no mirror gives the file as the card describes it, with what went wrong at each; or the card names none, with
        how to get the corpus.
    """
    target = cache_folder() / card.files[0]
    kept = next((path for file in card.files if (path := cache_folder() / file).exists()), None)
    if kept is not None:
        try:
            verify(card, kept)
        except TextcatError as error:
            if not card.urls:
                raise
            _log.warning("%s It is fetched again.", error)
        else:
            return kept
    if not card.urls:
        raise TextcatError(f"The card of {card.name} names no URL to download from. {_by_hand(card)}")
    _log.info("%s. %s", card.title, card.licence)
    failures = []
    for url in card.urls:
        try:
            _download(card, url, target, progress)
        except (OSError, ValueError, TextcatError) as error:  # ValueError: an unknown kind of URL
            failures.append(f"{url}: {_reason(error)}")
            _log.warning("No download from %s", failures[-1])
        else:
            return target
    raise TextcatError(f"Corpus {card.name} could not be downloaded ({'; '.join(failures)}). {_by_hand(card)}")


def open_corpus(
    name_or_path: str | Path | Card,
    corpus_dir: str | Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Corpus:
    """Open a corpus by name, card or path.

    Parameters
    ----------
    name_or_path : str, Path or Card
        The name of a shipped corpus; the path of a card (``.toml``); or the path of the data itself: SGML files in
        Reuters' format, RCV1's XML, JSON Lines, or a folder per topic, each as a folder or an archive. A name goes
        before a path.
    corpus_dir : str or Path, optional
        Folder to look in first.
    download : bool
        Whether a corpus that is found nowhere is fetched.
    progress : Progress, optional
        Passed to `fetch`.

    Returns
    -------
    Corpus
        Its documents in the order of their files' names, however they are packed.

    Raises
    ------
    TextcatError
        If there is no such corpus, its files are missing, damaged or not as the card describes them, or two documents
        have the same id.
    """
    if not isinstance(name_or_path, Card):
        path = Path(name_or_path).expanduser()
        if path.exists() and path.suffix != ".toml" and str(name_or_path) not in cards():
            return _open(guess_card(path), path)
        name_or_path = card(path if path.suffix == ".toml" else name_or_path)
    found = locate(name_or_path, corpus_dir)
    if found is None:
        if not (download and name_or_path.urls):
            folders = ", ".join(map(str, search_folders(name_or_path, corpus_dir)))
            raise TextcatError(f"Corpus {name_or_path.name} is in none of {folders}. {_by_hand(name_or_path)}")
        found = fetch(name_or_path, progress)
    return _open(name_or_path, found)


def guess_card(path: Path) -> Card:
    """Describe data that has no card, by the names of its files.

    Raises
    ------
    TextcatError
        If there are neither SGML files, nor RCV1's, nor JSON Lines, nor folders with files.
    """
    found = names(path)
    described = _descriptions_among(found)
    # Not all that RCV1's reader takes: a topic's folder may well hold XML files with numbers.
    kinds = {
        "reuters": READERS["reuters"].wanted,
        "rcv1": lambda name: name.lower().endswith("newsml.xml"),
        "jsonl": READERS["jsonl"].wanted,
        "folders": READERS["folders"].wanted,
    }
    for reader, holds_documents in kinds.items():
        if any(map(holds_documents, found)):
            return Card(path.name, path.parent, reader, [path.name], descriptions=described)
    raise TextcatError(
        f"{path} holds neither .sgm nor newsML.xml nor .jsonl files nor a folder per topic: "
        "give it a card (.toml) with a reader."
    )


def _descriptions_among(found: list[str]) -> str:
    """Return the name of a file of descriptions in the folder that all files lie in, "" if there is none."""
    folder = os.path.commonpath(found) if len(found) > 1 else ""
    likely = (f"{folder}/{name}" if folder else name for name in descriptions.NAMES)
    return next((name for name in likely if name in found), "")


def _open(card: Card, path: Path) -> Corpus:
    _log.info("Reading %s from %s", card.name, path)
    described: dict[str, str] = {}
    documents = list(_documents(card, path, described))
    return Corpus.from_documents(card.name, documents, card.topics, described or _described_beside(card))


def _described_beside(card: Card) -> dict[str, str]:
    """Read the descriptions that lie beside the card."""
    if not card.descriptions:
        return {}
    path = card.folder / card.descriptions
    if not path.is_file():
        raise TextcatError(
            f"Corpus {card.name} has no file {card.descriptions}, neither in its source nor beside its card in "
            f"{card.folder}: put it there, or take 'descriptions' out of the card."
        )
    return read_descriptions(next(members(path)))


def _documents(card: Card, path: Path, described: dict[str, str]) -> Iterator[Document]:
    """Yield the documents of a source, and fill `described` where it says what its topics are about."""
    parsed: dict[str, list[Document]] = {}
    sums: dict[str, str] = {}
    for member in members(path, card.wanted):
        sums[member.name] = _sum(card, path, member)
        if card.describes(member.name):
            described.update(read_descriptions(member))
        else:
            parsed[member.name] = list(READERS[card.reader].parse(member, **card.options))
    _check_complete(card, path, sums)
    # The order of training follows that of the documents, so it must not hang on how an archive was packed.
    seen: dict[str, str] = {}
    for name in sorted(parsed):
        for document in parsed[name]:
            if document.id in seen:
                places = f"in {seen[document.id]} and in {name}"
                raise TextcatError(f"{path} has two documents {document.id!r}, {places}: remove one of them.")
            seen[document.id] = name
            yield document


def _sum(card: Card, path: Path, member: Member) -> str:
    if not (card.sha256 or card.tree):
        return ""
    digest = hashlib.sha256(member.data).hexdigest()
    if card.sha256 and digest != card.sha256[PurePosixPath(member.name).name]:
        raise DamagedError(path, f"{member.name} has not the checksum the card of {card.name} gives")
    return digest


def _check_complete(card: Card, path: Path, sums: Mapping[str, str]) -> None:
    missing = sorted(set(card.sha256) - {PurePosixPath(name).name for name in sums})
    if missing:
        raise DamagedError(path, f"{', '.join(missing)} not in it")
    if card.tree and tree_digest(sums) != card.tree:
        raise DamagedError(path, f"its files have not the checksum the card of {card.name} gives")
    if not sums:
        raise TextcatError(f"{path} holds no file the reader {card.reader!r} reads: check the path and the card.")


def _download(card: Card, url: str, target: Path, progress: Progress | None) -> None:
    from pooch import HTTPDownloader
    from pooch.downloaders import choose_downloader

    target.parent.mkdir(parents=True, exist_ok=True)
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


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, DamagedError):
        return "the file it gives is cut off or not the one the card describes"
    known = (_REASONS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _REASONS)
    return next(known, str(error))


def _by_hand(card: Card) -> str:
    lead = f"{card.obtain} " if card.obtain else ""
    return f"{lead}Put {card.files[0]} into a folder and name the folder in TEXTCAT_CORPORA."
