"""Tag an archive batch by batch in one process, and print as JSON how long that has taken at some points.

archive_course.py MODEL ARCHIVE
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

from textcat.model.manifest import read_manifest
from textcat.reading import Batch, InputSettings, find_sources, read_batches
from textcat.tagging.job import Job, tag_batch

PAGE = resource.getpagesize()


def main(model: str, archive: str) -> None:
    settings = InputSettings()
    job = Job(model, read_manifest(model).sha256, version("spacy"), input=settings)
    tag_batch(job, _small(settings, Path(archive).with_suffix(".small.jsonl")))  # loads the model
    batches = read_batches(find_sources([archive], settings), settings)
    documents, wanted, before = 0, 10_000, (0, 0.0)
    points: list[dict[str, float]] = []
    started = time.process_time()
    for batch in batches:
        documents += tag_batch(job, batch).counts.records
        if documents >= wanted:
            taken = time.process_time() - started
            points.append(_point(documents, taken, *before))
            before, wanted = (documents, taken), wanted * 2
    if documents > before[0]:
        points.append(_point(documents, time.process_time() - started, *before))
    print(json.dumps(points))


def _small(settings: InputSettings, path: Path) -> Batch:
    path.write_text('{"text": "one"}\n')
    return next(read_batches(find_sources([str(path)], settings), settings))


def _point(documents: int, taken: float, documents_before: int, taken_before: float) -> dict[str, float]:
    return {
        "documents": documents,
        "so_far": 1e6 * taken / documents,
        "since": 1e6 * (taken - taken_before) / (documents - documents_before),
        "rss_bytes": int(Path("/proc/self/statm").read_text().split()[1]) * PAGE if sys.platform == "linux" else 0,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
