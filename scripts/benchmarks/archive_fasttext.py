"""A peer of `textcat tag`: fastText's predict, on JSON Lines in several processes, or on lines of tokens in one.

archive_fasttext.py MODEL.bin ARCHIVE OUT PROCESSES

An archive that ends in .txt has a text a line, ready for fastText, and the output has labels only.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import fasttext
import orjson

BATCH = 2000
THRESHOLD = 0.5
_models: list[Any] = []


def main(model: str, archive: str, out: str, processes: str) -> None:
    tag = tag_lines if archive.endswith(".txt") else tag_json
    if processes == "1":
        load(model)
        with open(archive, "rb") as lines, open(out, "wb") as tagged:
            tagged.writelines(map(tag, batches(lines)))
        return
    workers = multiprocessing.Pool(int(processes), load, [model])
    with workers, open(archive, "rb") as lines, open(out, "wb") as tagged:
        tagged.writelines(workers.imap(tag, batches(lines)))


def load(model: str) -> None:
    _models.append(fasttext.load_model(model))


def batches(lines: Any) -> Iterator[list[bytes]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def tag_lines(lines: list[bytes]) -> bytes:
    labels, _ = predicted([line.decode() for line in lines])
    return "".join(" ".join(names) + "\n" for names in labels).encode()


def tag_json(lines: list[bytes]) -> bytes:
    documents = [orjson.loads(line) for line in lines]
    texts = [f"{document['title']} {document['text']}".lower().replace("\n", " ") + "\n" for document in documents]
    rows = []
    for document, labels, likely in zip(documents, *predicted(texts), strict=True):
        pairs = zip(labels, map(float, likely), strict=True)
        topics = [{"topic": label[9:], "probability": round(p, 4)} for label, p in pairs]
        rows.append(orjson.dumps({"id": document["id"], "topics": topics}) + b"\n")
    return b"".join(rows)


def predicted(lines: list[str]) -> Any:
    """Return labels and probabilities, by the compiled part: the Python wrapper does not work with numpy 2."""
    return _models[0].f.multilinePredict(lines, -1, THRESHOLD, "strict")


if __name__ == "__main__":
    main(*sys.argv[1:])
