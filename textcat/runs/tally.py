"""Add up the results of a run's batches once they are written: counts, missing bytes, memory and time."""

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

from textcat.base.progress import peak_memory
from textcat.reading import Batch, InputSettings
from textcat.runs.inputs import AGAIN, InputChange, bytes_missing, documents_of_inputs, warn_of_changes
from textcat.runs.progress import RunProgress, RunState, ShowProgress
from textcat.runs.results import Counts, process_name


class RunTally:
    """Add up the counts, the memory and the time of a run, and report its progress.

    `counts` are those of all documents, including those of the runs that `state` resumes; `changes` are the inputs that
    changed while they were read. `total` is the stored size of the inputs in bytes; None if it is unknown.
    """

    def __init__(self, state: RunState, total: int | None, progress: ShowProgress | None = None):
        self.counts, self.changes = Counts(), list[InputChange]()
        self.counts.add(state.counts)
        self._state, self._total, self._progress = state, total, progress
        self._missing = Counter[str]()  # bytes of each input that could not be read
        self._memory, self._started = dict[str, int](), time.monotonic()

    def followed(
        self,
        results: Generator[tuple[Batch, Any]],
        after: Callable[[Batch, Any], object] = lambda batch, result: None,
    ) -> Generator[tuple[Batch, Any]]:
        """Yield batches with their results, of the class `BatchResult`, and count the documents of each by input.

        A result is added when the caller asks for the next one, and has therefore written it; then `after` is called.
        """
        sources = self._state.sources
        with closing(results):
            for batch, result in results:
                result.counts.inputs = documents_of_inputs(result.counts.inputs, sources, batch)
                yield batch, result
                self.add(batch, result)
                self.show(batch)
                after(batch, result)

    def warn_of_changes(self, settings: InputSettings, start_over: str) -> None:
        """Log a warning for each input that changed while it was read, once `counts` are final.

        `start_over` says how to begin the run again.
        """
        log, inputs, missing = self._state.log, self.counts.inputs, self._missing
        reads_changes = log is not None and log.header.files is not None and not self._state.is_part
        again = AGAIN if reads_changes else start_over
        self.changes = warn_of_changes(self._state.sources, settings, inputs, missing, start_over, again)

    def add(self, batch: Batch, result: Any) -> None:
        """Add the result of a batch."""
        self.counts.add(result.counts)
        self._missing.update(bytes_missing(batch, self._state.sources))
        self._memory[result.process] = result.memory

    def show(self, batch: Batch) -> None:
        """Report the progress after a batch."""
        if self._progress is not None:
            records, n_bytes = self.counts.records - self._state.counts.records, batch.read - self._state.read
            self._progress(RunProgress(self.counts, batch.read, self._total, records, n_bytes, *self.cost()))

    def cost(self) -> tuple[float, int]:
        """Return the seconds since the run began, and the peak memory of its processes in bytes."""
        memory = self._memory | {process_name(): peak_memory() or 0}
        return max(time.monotonic() - self._started, 0.0), sum(memory.values())
