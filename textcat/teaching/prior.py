"""Match a model's weights for a topic to a pool's terms, so that a new topic can start from these weights."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.model.topic_names import find_topic
from textcat.teaching.ranker import Weights

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger
    from textcat.teaching.pool import Pool


def save_prior(
    pool: Pool, folder: Path | None, model: Tagger | str | os.PathLike[str], topic: str, *, number: int
) -> dict[str, Any]:
    """Save a model's weights for a topic, matched to a pool's terms by name; return an entry for the journal.

    A weight is multiplied by the idf of its term in the model, and divided by the term's idf in the pool, so that an
    occurrence of the term counts as much as in the model. Terms that the pool does not have are left out. The weights
    are saved in `folder`, in a file with `number` in its name; if `folder` is None, the entry itself contains the
    weights. `topic` is the topic's id or name. TextcatError is raised if the model has no such topic, or shares no term
    with the pool.
    """
    if not hasattr(model, "features"):
        from textcat.model import storage

        name, tagger = str(model), storage.load(Path(os.fspath(model)), prepare=False)
    else:
        name, tagger = "a model in memory", model  # type: ignore[assignment]
    topic = find_topic(tagger.topics, tagger.topic_names, topic)
    weights = tagger.weights_of(topic)
    columns_of_pool = pool.features.vocabulary_
    names = tagger.features.listed_names()
    mapped = np.zeros(len(pool.features.idf_), np.float64)
    theirs = np.flatnonzero(weights)
    n_shared = 0
    for j in theirs.tolist():
        # Terms of a single zone are matched to plain ones if the pool has no such zone.
        column = columns_of_pool.get(names[j], columns_of_pool.get(names[j].partition(":")[2], -1))
        idf = 0.0 if column < 0 else pool.features.idf_[column]
        if idf > 0:
            mapped[column] += float(weights[j]) * tagger.features.idf_[j] / idf
            n_shared += 1
    if not n_shared:
        raise TextcatError(f"The documents have no term that {name} has for {topic!r}: start without the model.")
    columns = np.flatnonzero(mapped).astype(np.int32)
    values = mapped[columns].astype(np.float32)
    entry = {"name": name, "topic": topic, "terms": len(theirs), "shared": n_shared}
    if folder is None:
        return {**entry, "columns": columns.tolist(), "values": values.tolist()}
    content = io.BytesIO()
    np.savez(content, columns=columns, values=values)
    path = folder / f"topic-{number:04}.npz"
    with disk.create(path) as file:
        disk.write_all(file, content.getvalue())
        disk.sync(file)
    disk.sync_folder(folder)
    return {**entry, "file": path.name, "sha256": disk.sha256_of_file(path)}


def read_prior(folder: Path | None, entry: Mapping[str, Any]) -> Weights:
    """Return the weights that `save_prior` saved, by its entry; raise TextcatError unless their file is intact."""
    if folder is None:
        return Weights(np.array(entry["columns"], np.int32), np.array(entry["values"], np.float32), 0.0)
    path = folder / entry["file"]
    if not path.is_file() or disk.sha256_of_file(path) != entry["sha256"]:
        raise TextcatError(f"{path} is missing or not as it was written: restore it from a backup.")
    kept = disk.read_arrays(path)
    return Weights(kept["columns"], kept["values"], 0.0)
