"""Training on as many generated documents as asked: time and memory.

Rows are tf-idf of the articles of scripts/make_archive.py; each training is a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import make_rows
import numpy as np
from harness import Row, Work, output, python
from scipy import sparse

import textcat

TOPICS, EPOCHS, TESTED = 103, 50, 20_480
DOCUMENTS, QUICK = 800_000, 4_000
# In the middle of ten groups of topics, from the most frequent to the rarest.
SAMPLE = [int((k + 0.5) * TOPICS / 10) for k in range(10)]
OURS = "textcat, rows in memory"
Facts = Mapping[str, Any]


def _rows(work: Work, n: int, start: int = 0) -> list[Path]:
    """Return the rows and the labels of n documents; the words are those of as many from the first one on."""
    store = work.path("rows", n, start)
    if not store.exists():
        archive = make_rows.Archive(topics=TOPICS)
        columns = make_rows.fit_columns(archive, work.documents(DOCUMENTS, QUICK) if start else n)
        sparse.save_npz(f"{store}.npz", make_rows.labels(archive, n, start))
        textcat.write_rows(store, make_rows.rows(archive, columns, n, start))
    return [store, Path(f"{store}.npz")]


def _test(work: Work) -> list[object]:
    """Return the options that name other documents to test on."""
    beyond = -(-work.documents(DOCUMENTS, QUICK) // make_rows.BLOCK) * make_rows.BLOCK
    return ["--test", *_rows(work, TESTED, beyond)]


def _train(work: Work, n: int, *options: object) -> Facts:
    facts: Facts = output(python("train_rows", *_rows(work, n), "--jobs", work.jobs, *options))
    return facts


def learners(work: Work) -> list[Row]:
    """Train on all documents: textcat on all topics, LinearSVC on ten, by which its time is multiplied."""
    n, test, ten = work.documents(DOCUMENTS, QUICK), _test(work), ["--topics", ",".join(map(str, SAMPLE))]
    facts_of = {
        OURS: _train(work, n, "--max-epochs", EPOCHS, *test),
        "textcat, rows on disk": _train(work, n, "--from", "disk", "--max-epochs", EPOCHS, *test),
        "LinearSVC(dual=True)": _train(work, n, "--by", "linearsvc", *ten, *test, "--dual"),
        "LinearSVC()": _train(work, n, "--by", "linearsvc", *ten, *test),
    }
    rows = []
    for name, facts in facts_of.items():
        seconds, precisions = facts["seconds"], facts["precisions"]
        if name.startswith("textcat"):
            precisions = [precisions[k] for k in SAMPLE]
        else:
            seconds *= TOPICS / len(SAMPLE)
        rows.append(
            {
                "what": name,
                "seconds": f"{seconds:.1f}",
                "times ours": f"{seconds / facts_of[OURS]['seconds']:.3g}",
                "peak memory, MB": f"{facts['peak_bytes'] / 1e6:.0f}",
                "apart from files, MB": f"{facts['anonymous_bytes'] / 1e6:.0f}",
                "MAP": _mean(precisions),
            }
        )
    return rows


def _mean(precisions: list[float | None]) -> str:
    return f"{np.mean([value for value in precisions if value is not None]):.3f}"
