"""A peer of `textcat tag`, as one would write it oneself: JSON Lines → JSON Lines, in several processes.

archive_peer.py sklearn MODEL.joblib ARCHIVE OUT PROCESSES
archive_peer.py fasttext MODEL.bin ARCHIVE OUT PROCESSES

A model of scikit-learn is a dictionary: vectorizer, weights, bias, thresholds, topics.
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
THRESHOLD = 0.5  # of fastText's probabilities
_models: list[Any] = []


def main(peer: str, model: str, archive: str, out: str, processes: str) -> None:
    tag = {"sklearn": _by_sklearn, "fasttext": _by_fasttext}[peer]
    with open(archive, "rb") as lines, open(out, "wb") as tagged:
        if processes == "1":
            _load(model)
            tagged.writelines(map(tag, _batches(lines)))
        else:
            with multiprocessing.Pool(int(processes), _load, [model]) as workers:
                tagged.writelines(workers.imap(tag, _batches(lines)))


def _load(model: str) -> None:
    if model.endswith(".joblib"):
        _models.append(joblib.load(model))
    else:
        import fasttext

        _models.append(fasttext.load_model(model))


def _batches(lines: Any) -> Iterator[list[bytes]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def _by_sklearn(lines: list[bytes]) -> bytes:
    (model,) = _models
    documents = [orjson.loads(line) for line in lines]
    rows = model["vectorizer"].transform([f"{document['title']}\n{document['text']}" for document in documents])
    scores = rows @ model["weights"] + model["bias"]
    topics: list[list[dict[str, Any]]] = [[] for _ in documents]
    for i, j in np.argwhere(scores > model["thresholds"]).tolist():
        topics[i].append({"topic": model["topics"][j], "score": round(float(scores[i, j]), 4)})
    return _encoded(documents, topics)


def _by_fasttext(lines: list[bytes]) -> bytes:
    documents = [orjson.loads(line) for line in lines]
    texts = [f"{document['title']} {document['text']}".lower().replace("\n", " ") + "\n" for document in documents]
    topics = []
    for labels, likely in zip(*_predicted(texts), strict=True):
        pairs = zip(labels, map(float, likely), strict=True)
        topics.append([{"topic": label[9:], "probability": round(p, 4)} for label, p in pairs])
    return _encoded(documents, topics)


def _predicted(lines: list[str]) -> Any:
    """Return labels and probabilities, by the compiled part: the Python wrapper does not work with numpy 2."""
    return _models[0].f.multilinePredict(lines, -1, THRESHOLD, "strict")


def _encoded(documents: list[dict[str, Any]], topics: list[list[dict[str, Any]]]) -> bytes:
    pairs = zip(documents, topics, strict=True)
    return b"".join(orjson.dumps({"id": document["id"], "topics": tags}) + b"\n" for document, tags in pairs)


if __name__ == "__main__":
    main(*sys.argv[1:])
