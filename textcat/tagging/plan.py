"""A model, inputs and settings → what a run is to do, and what must be the same for it to be gone on with."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from textcat import __version__
from textcat.errors import TextcatError
from textcat.model.manifest import SUM, read_manifest
from textcat.reading.records import InputSettings
from textcat.reading.remote import is_url
from textcat.reading.sources import Source, find
from textcat.tagging import forms
from textcat.tagging.job import Job
from textcat.tagging.output import OutputSettings

log = logging.getLogger(__name__)

INPUT, OUTPUT = InputSettings(), OutputSettings()
_SHOWN = 100  # inputs whose formats are logged


class Plan(NamedTuple):
    """What a run is to do.

    Parameters
    ----------
    job : Job
    sources : list of Source
    manifest : dict
        Of the model.
    """

    job: Job
    sources: Sequence[Source]
    manifest: dict[str, Any]

    @property
    def total(self) -> int | None:
        """Bytes of all sources, as they are stored; None if that is not known of one."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def make_plan(
    model: str | Path,
    inputs: Sequence[str],
    read: InputSettings = INPUT,
    write: OutputSettings = OUTPUT,
) -> Plan:
    """Find the inputs and the model, and check that they and the settings go together.

    Raises
    ------
    TextcatError
        If they do not, or there is no such model or input.
    """
    forms.check(write)
    manifest = read_manifest(model)
    folder = str(Path(model).expanduser().resolve())
    return Plan(Job(folder, manifest[SUM], version("spacy"), read, write), find(inputs, read), manifest)


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the output depends on beside the inputs, by its names for people."""
    read, write = plan.job.input, plan.job.output
    return {
        "model": plan.job.digest[:16],
        "textcat": __version__,
        "spacy": plan.job.spacy,
        **forms.libraries(write),
        "--format": read.format,
        "--text-field": read.text_field,
        "--id-field": read.id_field,
        "--encoding": read.encoding,
        "--lines": read.lines,
        "longest record": read.max_bytes,
        "length of pieces": read.block_bytes,
        "--to": write.to,
        "--compress": write.compress,
        "--top": write.top,
        "--scores all": write.everything,
        "--explain": write.explain,
    }


def check_apart(plan: Plan, out: Path) -> None:
    """Refuse to read what the run itself writes."""
    for source in plan.sources:
        if source.kind != "pipe" and not is_url(source.name):
            place, target = Path(source.name).resolve(), out.resolve()
            if place == target or place in target.parents or target in place.parents:
                raise TextcatError(f"{out} and the input {source.name} lie in each other: write to a folder elsewhere.")


def announce(plan: Plan, where: str) -> None:
    """Log what is about to be done."""
    n = len(plan.sources)
    log.info("Tagging %d input%s by %s into %s", n, "s" if n > 1 else "", plan.job.model, where)
    for source in plan.sources[:_SHOWN]:
        if source.format:
            log.info("%s is read as %s, told by %s", source.name, source.format, source.guess.by)


def warn_of_changes(plan: Plan) -> None:
    """Tell of inputs that are not what they were when the run began: what came late may not have been read."""
    for source in plan.sources:
        try:
            (now,) = find([source.name], plan.job.input)
            changed = now.fingerprint() != source.fingerprint()
        except (TextcatError, ValueError):
            changed = True
        if changed:
            log.warning("%s has changed while it was read: what is new in it may be missing.", source.name)
