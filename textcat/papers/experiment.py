"""What an experiment is: tasks that give rows, and rows that set our figures beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A published number and ours.

    Parameters
    ----------
    ours : float or None
        None where the data is not at hand.
    published : float or None
        None where the paper has no such figure.
    digits : int
        Decimals to print; the published figure's.
    """

    ours: float | None
    published: float | None = None
    digits: int = 0


@dataclass(frozen=True)
class Row:
    """A row of an experiment's table.

    Parameters
    ----------
    label : str
        What was run: the learner with its parameters, the data set.
    figures : mapping of str to Figure
        By column, in the order of the paper's table.
    seconds : float or None
        What the run took, training alone; None where nothing was timed.
    note : str
        What a reader must know: what is missing and where it may be put, a setting that the paper leaves open.
    """

    label: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Settings:
    """How experiments are run.

    Parameters
    ----------
    n_jobs : int
        As for `textcat.margin.solve.solve`.
    slow_baselines : bool
        Whether to run the baselines that take more than a few minutes.
    pictures : Path, optional
        Folder for a task's pictures (SVG), whose names begin with the experiment's; None: draw none.
    """

    n_jobs: int = -1
    slow_baselines: bool = False
    pictures: Path | None = None


@dataclass(frozen=True)
class Task:
    """The part of an experiment that is run, and kept, as one: an experiment that was broken off goes on with the next.

    Parameters
    ----------
    name : str
        Unique within the experiment.
    run : callable
        Takes `Settings`, returns the rows.
    """

    name: str
    run: Callable[[Settings], Sequence[Row]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Parameters
    ----------
    name : str
        As on the command line: ``micra-table-1``.
    title : str
        Paper, table and what it shows, in one line.
    data : tuple of str
        The data sets and corpora it needs, by name.
    minutes : float
        How long it takes on two cores, about.
    tasks : tuple of Task
    text : str
        What the page says above the table: the setting, and what the paper leaves open. Markdown.
    """

    name: str
    title: str
    data: tuple[str, ...]
    minutes: float
    tasks: tuple[Task, ...]
    text: str = ""
