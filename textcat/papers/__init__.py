"""Experiments, by name, that repeat tables and figures of the papers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textcat.base.errors import TextcatError, did_you_mean

if TYPE_CHECKING:
    from textcat.papers.experiments import Experiment


def known_experiments() -> "dict[str, Experiment]":
    """Return the experiments by name, in the order of the papers."""
    from textcat.papers import margitron, micra, notes, paum

    modules = (paum, micra, margitron, notes)
    return {experiment.name: experiment for module in modules for experiment in module.EXPERIMENTS}


def find(names: Sequence[str]) -> "list[Experiment]":
    """Return the experiments with the given names; raise TextcatError, with a hint, for an unknown name."""
    experiments = known_experiments()
    for name in names:
        if name not in experiments:
            hint = did_you_mean(name.lower(), experiments)
            raise TextcatError(f"There is no experiment {name!r}; `textcat reproduce` lists them.{hint}")
    return [experiments[name] for name in dict.fromkeys(names)]
