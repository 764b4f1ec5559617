"""Store beside the tags of an archive which model made them, and how the documents were read."""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textcat.base.errors import TextcatError
from textcat.base.paths import paths_above
from textcat.base.records import MISFITS, entries_of, read_record
from textcat.base.surrogates import escape_undecodable
from textcat.reading import InputSettings, Record, Source, batch_records, find_sources, is_url, read_batches
from textcat.runs.files import KnownFile
from textcat.runs.records import ORIGIN, write_changed
from textcat.tagging.shards import Row


@dataclass(frozen=True)
class RunOrigin:
    """The model that made the tags of an archive, and the inputs and settings by which its documents were read.

    Parameters
    ----------
    model : str
        The folder of the model, or of the models by language.
    digest : str
        The checksum of the model; "" if there are several, by language.
    inputs : list of str
        The names of the inputs of all runs into the folder of tags, relative to `folder`.
    folder : str
        The folder in which `textcat tag` was run.
    settings : dict
        The settings of reading that differ from the defaults.
    """

    model: str
    digest: str
    inputs: list[str]
    folder: str
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: str, digest: str, sources: Sequence[Source], settings: InputSettings) -> "RunOrigin":
        """Return the origin of tags made now, with this process's working directory."""
        return cls(model, digest, [source.name for source in sources], os.getcwd(), settings.as_entries())

    def write(self, folder: Path) -> None:
        """Write the origin to a folder of tags, with the inputs of an earlier one there, unless nothing has changed."""
        whole = self
        with suppress(TextcatError):  # there is none, or it is damaged
            whole = self._with_inputs_of(RunOrigin.read(folder))
        write_changed(folder / ORIGIN, json.dumps(entries_of(whole)) + "\n")

    def _with_inputs_of(self, former: "RunOrigin") -> "RunOrigin":
        is_here = former.folder == self.folder
        inputs = former.inputs if is_here else [former._absolute(name) for name in former.inputs]
        return replace(self, inputs=[*dict.fromkeys((*inputs, *self.inputs))])

    @classmethod
    def read(cls, folder: Path) -> "RunOrigin":
        """Read the origin of the tags in a folder; raise TextcatError if there is none, or it is damaged."""
        path = folder / ORIGIN
        try:
            return read_record(cls, json.loads(path.read_bytes()), f"in {path}")
        except FileNotFoundError:
            raise TextcatError(
                f"{folder} does not say where its documents are: name a folder that `textcat tag --out` has written."
            ) from None
        except MISFITS as error:
            raise TextcatError(f"{path} is damaged ({error}): give the command `textcat tag --out` again.") from error

    def paths(self) -> list[str]:
        """Return the absolute paths of the inputs that are files or folders."""
        return [self._absolute(name) for name in self.inputs if name != "-" and not is_url(name)]

    def read_documents(self, rows: Collection[Row], files: Mapping[str, KnownFile] | None = None) -> dict[Row, Record]:
        """Read documents of the archive again.

        Parameters
        ----------
        rows : collection of tuple of (str, int, str)
            The source, the position and the id of each document, as the tags have them.
        files : dict of str to KnownFile, optional
            The files that were tagged, as `tagged_files` returns them: those that were renamed since are read by their
            present names, and documents of those that have changed since are missing.

        Returns
        -------
        dict of tuple of (str, int, str) to Record
            Documents that are no longer at their position in their source are missing.
        """
        settings = InputSettings.from_entries(self.settings)
        at: dict[tuple[str, int], list[tuple[str, Row]]] = {}  # news may have several items at one position
        for row in rows:
            now = escape_undecodable(_present_name(row[0], files or {}))
            id_ = now + row[2][len(row[0]) :] if row[2].startswith(row[0]) else row[2]  # it may be made of the name
            at.setdefault((self._absolute(now), row[1]), []).append((id_, row))
        above = {part for name, _ in at for part in paths_above(name)}
        contents = {self._absolute(item.file.name): item.file.content for item in (files or {}).values()}
        found: dict[Row, Record] = {}
        for source in self._sources(settings):
            states = source.file_states() or []
            changed = {state.name for state in states if contents.get(state.name, state[1:]) != state[1:]}
            if source.kind == "folder" and source.states is not None:
                names = [state.name for state in states if escape_undecodable(state.name) in above]
                names = [name for name in names if name not in changed]
                source = source.restricted({name: number for number, name in enumerate(names)})
            elif source.name in changed or (source.kind != "folder" and escape_undecodable(source.name) not in above):
                continue
            for batch in read_batches([source], settings):
                for item in batch_records(batch, settings, all_versions=True):
                    for id_, row in at.get((escape_undecodable(item.source), item.position), ()):
                        if isinstance(item, Record) and self._is_same(id_, item):
                            found[row] = item
                if len(found) == len(rows):
                    return found
        return found

    def _sources(self, settings: InputSettings) -> Iterator[Source]:
        for name in self.inputs:
            if name == "-":
                raise TextcatError("The archive was read from standard input, and cannot be read again: name files.")
            try:
                yield from find_sources([name if is_url(name) else self._absolute(name)], settings)
            except TextcatError:
                continue  # the file is gone: its documents are missing

    def _is_same(self, id_: str, record: Record) -> bool:
        """Return whether a record has the id `id_`, which may have been made from the name of its source."""
        return escape_undecodable(record.id) in (id_, self._absolute(id_))

    def _absolute(self, name: str) -> str:
        return name if is_url(name) else os.path.join(self.folder, name) if name != "." else self.folder


def _present_name(source: str, files: Mapping[str, KnownFile]) -> str:
    """Return the present name of a source; it differs if the source is, or is in, a file that was renamed."""
    above = next((part for part in paths_above(source) if part in files), "")
    return files[above].file.name + source[len(above) :] if above else source
