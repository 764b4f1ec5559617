"""Lists of documents to review, such as the documents whose labels are probably wrong according to a report."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, similar_files
from textcat.teaching.pool import Pool


class Queue(NamedTuple):
    """A list of documents of a pool for a person to review for one topic."""

    name: str
    topic: str
    # Pairs of a position, and whether the document had the topic's label when the list was made (None: unknown).
    documents: list[tuple[int, bool | None]]


def read_queues(path: str | os.PathLike[str], pool: Pool) -> list[Queue]:
    """Read lines of JSON with `id`, `topic` and optionally `labelled`, as `textcat report --label-issues` writes them.

    Return a queue for each topic. Documents that are not in the pool are left out; TextcatError is raised if no
    document is left, or if the file is not such a list.
    """
    documents_of: dict[str, list[tuple[int, bool | None]]] = {}
    entries = [*_entries(expanded(path))]
    positions = pool.positions_of(entry["id"] for entry in entries)
    for entry in entries:
        if entry["id"] in positions:
            document = positions[entry["id"]], entry.get("labelled")
            documents_of.setdefault(entry["topic"], []).append(document)
    if not documents_of:
        if not entries:
            raise TextcatError(f"The list {path} is empty: `textcat report --label-issues FILE` writes such lists.")
        raise TextcatError(
            f"The archive has none of the {len(entries):,} documents of the list {path}: give the archive that it was "
            "made from."
        )
    return [Queue(f"{topic} in {Path(path).name}", topic, documents) for topic, documents in documents_of.items()]


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TextcatError(f"Cannot read the list {path}: {error.strerror}.{similar_files(path)}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = orjson.loads(line)
        except ValueError:
            entry = None
        is_entry = isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in ("id", "topic"))
        if not is_entry or not isinstance(entry.get("labelled"), bool | None):
            raise TextcatError(
                f"Line {number} of the list {path} is not a JSON object with `id`, `topic` and `labelled`: "
                "`textcat report --label-issues FILE` writes such lists."
            )
        yield entry
