"""Check that a run does not read its own output, detect changes of its inputs, and list the settings of reading."""

import logging
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base.disk import installed_version, resolved
from textcat.base.errors import TextcatError
from textcat.base.paths import paths_above
from textcat.base.surrogates import escape_undecodable
from textcat.reading import (
    ARCHIVES,
    NEWS,
    SCANS,
    SETTINGS,
    START_OVER,
    Batch,
    Change,
    ChangeKind,
    FaultKind,
    InputSettings,
    Rejection,
    Source,
    find_sources,
    format_by_name,
    is_url,
    path_inside,
)

log = logging.getLogger(__name__)

AGAIN = "give the same command again"  # a remedy, as part of messages
#: Libraries that read documents such as PDF: their versions are facts of a run that has such documents.
READERS = ("lxml", "markdown_it_py", "pypdf", "python_docx", "trafilatura")
_NOT_INSTALLED = "none"  # in place of a version
_READERS_OF = {
    **dict.fromkeys(("eml", "html", "mbox", "rcv1", "warc", *NEWS, *SCANS), ("lxml",)),
    "docx": ("lxml", "python_docx"),
    "markdown": ("markdown_it_py",),
    "pdf": ("pypdf",),
    **dict.fromkeys(("folder", *ARCHIVES), READERS),  # may have files of any format
}
_OF_PAGES = frozenset({"html", "warc", "folder", *ARCHIVES})  # formats from which --main-text extracts
_UNNAMED = frozenset({"html", "pdf", "rcv1", "warc"})  # formats that are recognised by content
_LOSSES = frozenset({FaultKind.ACCESS, FaultKind.CHANGED})
_WRITTEN_WHOLE = frozenset({"parquet", "zip"})  # formats to which nobody appends


def total_size(sources: Sequence[Source]) -> int | None:
    """Return the sum of the stored sizes of all sources, in bytes; None if the size of a source is unknown."""
    sizes = [source.size for source in sources if source.size is not None]
    return sum(sizes) if len(sizes) == len(sources) else None


def facts_of_reading(sources: Iterable[Source], settings: InputSettings) -> dict[str, Any]:
    """Return the settings and library versions that determine how sources are read, by names for messages."""
    return {
        **({"--main-text": True} if settings.main_text else {}),  # first, because it may report a missing library
        **_reader_versions(sources, settings),
        **{
            setting.option: getattr(settings, name) if kind is bool else settings.in_words(name)
            for name, (setting, kind) in SETTINGS.items()
            if setting.group == "reading"
        },
        "longest record": settings.max_bytes,
        "length of pieces": settings.block_bytes,
    }


def is_other(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a setting differs from before.

    A library that was not installed, or of whose formats there was no file, has read nothing that another version could
    read otherwise.
    """
    if name in READERS and before.get(name, _NOT_INSTALLED) == _NOT_INSTALLED:
        return False
    return before.get(name) != now.get(name)


def _reader_versions(sources: Iterable[Source], settings: InputSettings) -> dict[str, str]:
    """Return the versions of the libraries that read files such as PDF among those of the sources, by library."""
    formats = {form for source in sources for form in _formats_in(source, settings)}
    needed = {library for form in formats for library in _READERS_OF.get(form, ())} - {"trafilatura"}
    extracts = settings.main_text or any("main_text" in dict(values) for _, values in settings.for_files)
    if extracts and not formats.isdisjoint(_OF_PAGES):
        needed.add("trafilatura")
    return {name: _version(name) for name in READERS if name in needed}


def _formats_in(source: Source, settings: InputSettings) -> Iterator[str]:
    """Yield the formats that files of a source have by their names, or may have by their content.

    A folder of very many files, which are not listed, may have files of any format.
    """
    if source.kind != "folder" or source.states is None:
        yield source.format
        return
    for state in source.states:
        of_file = settings.for_file(path_inside(source.name, state.name)) if settings.for_files else settings
        form = format_by_name(state.name, of_file).format
        yield from [form] if form else _UNNAMED
        if not form and "." not in state.name.rpartition("/")[2]:
            yield from ARCHIVES


def _version(library: str) -> str:
    with suppress(ModuleNotFoundError):  # the base of PackageNotFoundError
        return installed_version(library)
    return _NOT_INSTALLED


def check_output_apart(sources: Iterable[Source], out: Path) -> None:
    """Raise a TextcatError if an input is in the output folder `out`, or `out` is in an input."""
    check_paths_apart((source.name for source in sources if source.kind != "pipe" and not is_url(source.name)), out)


def check_paths_apart(inputs: Iterable[str], out: Path) -> None:
    """Raise a TextcatError if one of the `inputs`, files or folders, is in the output folder `out`, or contains it."""
    target = resolved(out)
    for name in inputs:
        origin = resolved(name)
        if origin == target or origin in target.parents or target in origin.parents:
            raise TextcatError(
                f"{out} and the input {name} overlap, as one contains the other: write to another folder."
            )


class InputChange(NamedTuple):
    """An input that changed while a run read it, and how much of it is missing from the output."""

    name: str
    change: Change
    documents: int  # documents of the input that were read
    missing: int | None  # lower bound of the bytes that could not be read; 0: unknown, None: all were read
    start_over: str = START_OVER  # how to read all inputs anew
    again: str = START_OVER  # how to read what was added to the input or is missing

    @property
    def grew(self) -> bool:
        """Return whether the input has only grown, and the output has all documents that it had at first."""
        return self.change.kind is ChangeKind.GREW and self.missing is None

    def __str__(self) -> str:
        before, now = self.change.before, self.change.now
        sizes = "" if before is None or now is None else f", from {before:,} to {now:,} bytes,"
        if self.grew:
            return (
                f"{self.name} grew{sizes} while it was read: its {self.documents:,} documents from the run's start "
                f"are read, but not what was added; to read that, too, {self.again}."
            )
        became = f"{self.name} {_BECAME[self.change.kind]}{sizes} while it was read"
        # A file that is restored after it was replaced has the size and time that it had at first.
        remedy = self.start_over if self.change.kind is ChangeKind.REPLACED else self.again
        return (
            f"{became}: {self.documents:,} documents of it are read, and {self._loss}; restore it if need be, then "
            f"{remedy}."
        )

    @property
    def _loss(self) -> str:
        before, now, files = self.change.before or 0, self.change.now or 0, self.change.files
        if self.missing is None:
            is_other = self.change.kind is ChangeKind.REPLACED
            return "others may be missing" if is_other else "no document of the start of the run is missing"
        n_bytes, in_files = (
            self.missing or max(before - now, 0),
            f" in {files:,} file{'s' * (files > 1)}" if files else "",
        )
        if not n_bytes:
            return "a part of it is missing"
        return f"at least {n_bytes:,} bytes{in_files} are missing"


_BECAME = {
    ChangeKind.GREW: "changed",
    ChangeKind.SHRANK: "shrank",
    ChangeKind.REPLACED: "was replaced",
    ChangeKind.GONE: "was removed",
}


def warn_of_changes(
    sources: Iterable[Source],
    settings: InputSettings,
    documents: Mapping[str, int],
    missing: Mapping[str, int],
    start_over: str,
    again: str,
) -> list[InputChange]:
    """Return the inputs that changed during the run, and log a warning for each.

    `documents` has the number of documents read from each input, and `missing` the number of bytes of the input that
    could not be read. `start_over` and `again` are the remedies that the warning ends with, see `InputChange`.
    """
    changes = []
    for source in sources:
        change = _change(source, settings)
        if change is not None:
            name = source.name
            changes.append(InputChange(name, change, documents.get(name, 0), missing.get(name), start_over, again))
            log.warning("%s", escape_undecodable(str(changes[-1])))
    return changes


def _change(source: Source, settings: InputSettings) -> Change | None:
    if source.kind == "pipe":
        return None
    if source.changed is not None:
        change = source.changed()
        if change and change.kind is ChangeKind.GREW and source.format in _WRITTEN_WHOLE:
            return change._replace(kind=ChangeKind.REPLACED)
        return change
    try:
        (now,) = find_sources([source.name], settings)
    except (TextcatError, ValueError):
        return Change(ChangeKind.GONE, source.size)
    same = now.fingerprint() == source.fingerprint()
    return None if same else Change(ChangeKind.REPLACED, source.size, now.size)


def documents_of_inputs(documents: Mapping[str, int], sources: Sequence[Source], batch: Batch) -> Counter[str]:
    """Count the documents of a batch by input; an input may be a folder of files.

    `documents` has the number of documents by file, and `sources` are the inputs.
    """
    input_of, counts = _inputs_by_file(documents, sources, batch), Counter[str]()
    for file, n in documents.items():
        counts[input_of[file]] += n
    return counts


def bytes_missing(batch: Batch, sources: Sequence[Source]) -> Counter[str]:
    """Return how many bytes of each input could not be read in a batch because the input shrank or was removed."""
    faults = [item for item in batch.blocks if isinstance(item, Rejection) and item.kind in _LOSSES]
    input_of, missing = _inputs_by_file([fault.source for fault in faults], sources, batch), Counter[str]()
    size_of = {source.name: source.size or 0 for source in sources} if faults else {}
    for fault in faults:
        # A shrunk compressed file is reported by its decompressor.
        whole = size_of.get(fault.source, 0) if fault.kind is FaultKind.ACCESS else 0
        missing[input_of[fault.source]] += fault.length if fault.length >= 0 else whole
    return missing


def _inputs_by_file(files: Iterable[str], sources: Sequence[Source], batch: Batch) -> dict[str, str]:
    """Return the name of the input that each file of a batch belongs to: the file itself, or a folder above it.

    Only the inputs between the beginning and the end of the batch are searched.
    """
    names = {source.name for source in sources[batch.start[0] : batch.end[0] + 1]} if files else set()
    return {file: input_of(file, names) for file in files}


def input_of(file: str, names: Container[str]) -> str:
    """Return the input that a file belongs to: itself, or a folder above it, if in `names`; otherwise the file."""
    return next((above for above in (*paths_above(file), ".") if above in names), file)
