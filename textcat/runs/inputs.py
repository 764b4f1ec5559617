"""Check that a run does not read its own output, and that its inputs do not change; list the settings of reading."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textcat.errors import TextcatError
from textcat.folders import installed_version
from textcat.reading import ARCHIVES, DOCUMENTS, InputSettings, Source, find_sources, is_url

log = logging.getLogger(__name__)

_CHANGED = "%s %s while it was read: its documents may be missing; start again when it no longer changes."


def total_size(sources: Sequence[Source]) -> int | None:
    """Return the stored size of all sources together, in bytes; None if the size of a source is unknown."""
    sizes = [source.size for source in sources if source.size is not None]
    return sum(sizes) if len(sizes) == len(sources) else None


def facts_of_reading(sources: Iterable[Source], settings: InputSettings) -> dict[str, Any]:
    """Return what decides how sources are read: the settings and the versions of libraries, by readable names."""
    return {
        **_reader_versions(sources),
        "--format": settings.format,
        "--text-field": ", ".join(settings.text_fields),
        "--id-field": settings.id_field,
        "--encoding": settings.encoding,
        **({} if settings.quotes else {"--quote": "none"}),
        "--lines": settings.lines,
        **({"--for": repr(settings.for_files)} if settings.for_files else {}),
        "longest record": settings.max_bytes,
        "length of pieces": settings.block_bytes,
    }


def _reader_versions(sources: Iterable[Source]) -> dict[str, str]:
    """Return the versions of the libraries that read documents such as PDF, by name; "none": not installed.

    Return {} if no source holds such documents.
    """
    if not any(source.format in {"folder", *ARCHIVES, *DOCUMENTS} - {"text"} for source in sources):
        return {}
    versions = dict.fromkeys(("lxml", "markdown_it_py", "pypdf", "python_docx"), "none")
    for name in versions:
        with suppress(ModuleNotFoundError):  # the base of PackageNotFoundError
            versions[name] = installed_version(name)
    return versions


def check_output_apart(sources: Iterable[Source], out: Path) -> None:
    """Raise a TextcatError if an input is in the output folder `out`, or `out` is in an input."""
    for source in sources:
        if source.kind != "pipe" and not is_url(source.name):
            origin, target = Path(source.name).resolve(), out.resolve()
            if origin == target or origin in target.parents or target in origin.parents:
                raise TextcatError(
                    f"{out} and the input {source.name} overlap, as one contains the other: write to another folder."
                )


def warn_of_changes(sources: Iterable[Source], settings: InputSettings) -> list[str]:
    """Return the names of inputs that have changed since the run began, and log a warning for each."""
    changed = []
    for source in sources:
        try:
            (now,) = find_sources([source.name], settings)
        except (TextcatError, ValueError):
            fault = "is gone"
        else:
            if now.fingerprint() == source.fingerprint():
                continue
            sizes = f", from {source.size:,} to {now.size:,} bytes" if None not in (source.size, now.size) else ""
            fault = f"changed{sizes},"
        log.warning(_CHANGED, source.name, fault)
        changed.append(source.name)
    return changed
