"""Read the decisions of a model from the arrays in its folder, without its features and scorer."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from textcat.base.calibration import Calibration
from textcat.evaluation.expected_recall import ExpectedRecall
from textcat.evaluation.promises import Promises
from textcat.model.decisions import Decisions
from textcat.model.manifest import CALIBRATION, HELD_OUT, MODEL, PROMISES, THRESHOLDS, Manifest
from textcat.model.scorer import NUMBERS
from textcat.trends.held_out import HeldOut

ARRAYS = (THRESHOLDS, CALIBRATION, PROMISES, HELD_OUT)


def read_decisions(folder: str | os.PathLike[str]) -> tuple[Decisions, Manifest]:
    """Read the decisions of the model in a folder, without rules; raise ModelError if the model is damaged."""
    with MODEL.open(folder) as model, model.raise_read_errors():
        files = {name: f"{name}.npy" for name in ARRAYS if f"{name}.npy" in model.manifest.files}
        model.check({file: model.manifest.files[file] for file in files.values()})
        return decisions_of({name: model.array(name, NUMBERS) for name in files}, model.manifest), model.manifest


def decisions_of(arrays: Mapping[str, Any], manifest: Manifest) -> Decisions:
    """Return the decisions of a model, given its arrays by name and its manifest; raise ValueError if these misfit."""
    n_topics = len(manifest.topics)
    return Decisions(
        arrays[THRESHOLDS],
        Calibration(*arrays[CALIBRATION]) if CALIBRATION in arrays else None,
        manifest.recipe.tags.strategy,
        Promises.from_table(arrays[PROMISES], n_topics) if PROMISES in arrays else None,
        ExpectedRecall(np.array(manifest.expected_recall)) if manifest.expected_recall else None,
        held_out=HeldOut.from_table(arrays[HELD_OUT], n_topics) if HELD_OUT in arrays else None,
    )
