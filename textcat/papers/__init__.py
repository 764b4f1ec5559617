"""The papers' tables and figures, run anew: the experiments by name."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from textcat.errors import TextcatError

if TYPE_CHECKING:
    from textcat.papers.experiments import Experiment


def known_experiments() -> "dict[str, Experiment]":
    """Return the experiments by name, in the order of the papers."""
    from textcat.papers import margitron, micra, notes, paum

    modules = (paum, micra, margitron, notes)
    return {experiment.name: experiment for module in modules for experiment in module.EXPERIMENTS}


def find(names: Sequence[str]) -> "list[Experiment]":
    """Return experiments by name; a TextcatError names the nearest one where there is none of that name."""
    known = known_experiments()
    for name in names:
        if name not in known:
            near = get_close_matches(name.lower(), known, n=1, cutoff=0.0)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TextcatError(f"There is no experiment {name!r}; `textcat reproduce` lists them.{hint}")
    return [known[name] for name in dict.fromkeys(names)]
