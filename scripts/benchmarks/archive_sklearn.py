"""A peer of `textcat tag`, as one would write it with scikit-learn: JSON Lines → JSON Lines, in several processes.

archive_sklearn.py MODEL.joblib ARCHIVE.jsonl OUT.jsonl PROCESSES

The model is a dictionary: vectorizer, weights of shape (n_columns, n_topics), bias, thresholds, topics.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import joblib
import numpy as np
import orjson

BATCH = 2000
_model: dict[str, Any] = {}


def main(model: str, archive: str, out: str, processes: str) -> None:
    workers = multiprocessing.Pool(int(processes), joblib_load, [model])
    with workers, open(archive, "rb") as lines, open(out, "wb") as tagged:
        for block in workers.imap(tag, batches(lines)):
            tagged.write(block)


def batches(lines: Any) -> Iterator[list[bytes]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def joblib_load(model: str) -> None:
    _model.update(joblib.load(model))


def tag(lines: list[bytes]) -> bytes:
    documents = [orjson.loads(line) for line in lines]
    rows = _model["vectorizer"].transform([f"{document['title']}\n{document['text']}" for document in documents])
    scores = rows @ _model["weights"] + _model["bias"]
    topics: list[list[dict[str, Any]]] = [[] for _ in documents]
    for i, j in np.argwhere(scores > _model["thresholds"]).tolist():
        topics[i].append({"topic": _model["topics"][j], "score": round(float(scores[i, j]), 4)})
    return b"".join(
        orjson.dumps({"id": document["id"], "topics": tags}) + b"\n"
        for document, tags in zip(documents, topics, strict=True)
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
