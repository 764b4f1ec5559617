"""Check the inputs of a run: they must not include its output and should not change; list what it depends on."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textcat.errors import TextcatError
from textcat.folders import installed_version
from textcat.reading import ARCHIVES, DOCUMENTS, InputSettings, Source, find_sources, is_url

log = logging.getLogger(__name__)


def total_size(sources: Sequence[Source]) -> int | None:
    """Return the bytes of all stored sources; None if the size of one is not known."""
    sizes = [source.size for source in sources if source.size is not None]
    return sum(sizes) if len(sizes) == len(sources) else None


def facts_of_reading(sources: Iterable[Source], settings: InputSettings) -> dict[str, Any]:
    """Return the settings and versions on which the documents depend, besides the inputs, by readable names."""
    return {
        **_reader_versions(sources),
        "--format": settings.format,
        "--text-field": ", ".join(settings.text_fields),
        "--id-field": settings.id_field,
        "--encoding": settings.encoding,
        **({} if settings.quotes else {"--quote": "none"}),
        "--lines": settings.lines,
        "longest record": settings.max_bytes,
        "length of pieces": settings.block_bytes,
    }


def _reader_versions(sources: Iterable[Source]) -> dict[str, str]:
    """Return the versions, by name, of libraries that the documents may depend on; "none" for a missing one."""
    if not any(source.format in {"folder", *ARCHIVES, *DOCUMENTS} - {"text"} for source in sources):
        return {}
    versions = dict.fromkeys(("lxml", "markdown_it_py", "pypdf", "python_docx"), "none")
    for name in versions:
        with suppress(ModuleNotFoundError):  # as PackageNotFoundError is
            versions[name] = installed_version(name)
    return versions


def check_output_apart(sources: Iterable[Source], out: Path) -> None:
    """Raise an error if a run would read its own output."""
    for source in sources:
        if source.kind != "pipe" and not is_url(source.name):
            origin, target = Path(source.name).resolve(), out.resolve()
            if origin == target or origin in target.parents or target in origin.parents:
                raise TextcatError(
                    f"{out} and the input {source.name} overlap, as one contains the other: write to another folder."
                )


def warn_of_changes(sources: Iterable[Source], settings: InputSettings) -> None:
    """Warn of inputs that have changed since the run began; additions may not have been read."""
    for source in sources:
        try:
            (now,) = find_sources([source.name], settings)
            changed = now.fingerprint() != source.fingerprint()
        except (TextcatError, ValueError):
            changed = True
        if changed:
            log.warning("%s changed while it was read: its new documents may be missing.", source.name)
