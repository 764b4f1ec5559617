"""Tag files as they arrive, until the process is stopped."""

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from textcat.base.disk import LockedError
from textcat.base.errors import TextcatError, install_hint
from textcat.reading import FileState, Source, is_url
from textcat.runs.growth import list_files
from textcat.runs.records import Log
from textcat.tagging.job import ReplacedError
from textcat.tagging.planning import TaggingPlan
from textcat.tagging.run import tag_to_folder
from textcat.tagging.summary import Summary

log = logging.getLogger(__name__)

SETTLED = 0.4  # seconds without a change after which a file is considered complete
_LOOKS = 0.1  # seconds between two checks of incomplete files
_POLLS = 1.0  # seconds between two checks where the system does not notify of changes
_SHARE = 0.1  # maximum share of the time spent on polling
LONGEST = 60.0  # maximum seconds between two attempts to read a file that keeps failing
_FEW_BYTES = 64 << 20  # bytes of new files that one process tags, because starting others would take longer

_PATTERN = frozenset("*?[")
_GONE = "gone"  # stands for the state of a missing file

States = dict[str, FileState]


def watch_archive(
    plan: Callable[[], TaggingPlan],
    inputs: Sequence[str],
    out: Path,
    show: Callable[[Summary], None],
    *,
    rounds: int | None = None,
    after: Callable[[TaggingPlan], object] | None = None,
    **options: Any,
) -> None:
    """Tag the inputs into a folder, then each file that arrives or changes, once it is complete.

    A file is complete when it has not changed for some tenths of a second. After the process was stopped in any way,
    the same call resumes the work.

    Parameters
    ----------
    plan : callable
        Finds the inputs, and returns the plan of a run.
    inputs : sequence of str
        The files, folders, patterns and URLs of the plan.
    out : path
        The folder of shards.
    show : callable
        Called with the summary of the first round, and of each later round with new documents or any `Growth`.
    rounds : int, optional
        Stop after this many rounds in which files were new or had changed; None: never.
    after : callable, optional
        Called when the tags of a round are written, with the plan of the files that are new or have changed, or of all
        files if all were tagged anew; not in later rounds without such files.
    **options
        Further options of `tag_to_folder`.
    """
    seen, clock, renew = SettledFiles(), _Clock(), Event()
    done: States | None = None
    left: States = {}  # files for which `after` could not be called yet
    former: Log | None = None  # of the last round
    told = ""  # why the inputs cannot be found
    for is_changed in _when_to_check(inputs, lambda: bool(seen.waiting), renew):
        is_due = clock.is_due()
        if not (is_changed or is_due):
            continue
        began = time.monotonic()
        try:
            planned = plan()
        except TextcatError as error:
            if done is None:
                raise
            if str(error) != told:
                log.warning("%s The inputs are looked at again later.", error)
            told = str(error)
            clock.set(0.0, began)
            continue
        told = ""
        if list_files(planned.sources) is None:
            raise TextcatError(
                "Standard input, and folders of very many files, cannot be watched: name folders or files."
            )
        sources, complete = seen.complete(planned.sources, done or {})
        if complete == done and not is_due:
            continue
        new = {name: state for name, state in complete.items() if (done or {}).get(name) != state}
        if any(state.is_blocked and complete.get(name) != state for name, state in (done or {}).items()):
            renew.set()  # the system does not notify of changes in a folder that could not be listed
        n_bytes = sum(max(state.size, 0) for state in new.values())
        jobs = planned.jobs if done is None or n_bytes > _FEW_BYTES else 1
        round_ = planned._replace(sources=sources, jobs=jobs)
        try:
            summary = tag_to_folder(round_, out, former=former, **options)
        except ReplacedError as error:  # between planning and tagging
            log.warning("%s It is read again.", error)
            clock.set(0.0, began)
            continue
        except LockedError as error:
            if done is None:
                raise
            log.warning("%s It is tried again until then.", error)
            clock.set(0.0, began)
            continue
        # Another log is that of a folder in which another model may have tagged all files.
        is_renewed = options.get("model_changes") == "all" and former is not summary.before.log
        former = summary.before.log
        options.pop("restart", None)  # the first round has already done it
        again = summary.growth.again if summary.growth else ()
        named = () if after is None else complete if is_renewed else dict.fromkeys((*left, *new, *again))
        left = {name: complete[name] for name in named if name in complete}
        if after is not None and (left or done is None):
            try:
                after(planned._replace(sources=seen.restricted(planned.sources, left), jobs=jobs))
                left = {}
            except (LockedError, ReplacedError) as error:
                if done is None and isinstance(error, LockedError):
                    raise
                log.warning("%s It is tried again.", error)
        is_new = done is None or bool(summary.growth) or summary.counts.records > summary.before.counts.records
        if is_new:
            show(summary)
        clock.set(0.0 if left else summary.wake, began, is_again=bool(again))
        rounds = rounds if rounds is None or not (is_new or complete != done) else rounds - 1
        done = complete
        if rounds == 0:
            return


class _Clock:
    """Determine when to read files again: when an embargo ends, and at intervals for files that cannot be read yet."""

    def __init__(self) -> None:
        self._wake: float | None = None  # in seconds since 1970; None: no file must be read again
        self._next, self._pause = 0.0, _POLLS  # earliest time of the next attempt, by the monotonic clock

    def is_due(self) -> bool:
        """Return whether the time to read again has come."""
        return self._wake is not None and self._wake <= time.time() and self._next <= time.monotonic()

    def set(self, wake: float | None, began: float, *, is_again: bool = False) -> None:
        """Set the time to read again (see `Rejection`), at least a pause after the last check, which began at `began`.

        `is_again`: failed files were tried again; the pauses grow while they keep failing.
        """
        self._wake = wake
        self._pause = min(2 * self._pause, LONGEST) if is_again and wake == 0 else _POLLS
        now = time.monotonic()
        self._next = now + max(self._pause, (now - began) / _SHARE)


class SettledFiles:
    """Decide which input files are complete, that is, no longer being written.

    `waiting` has the files that may be incomplete, by name: their size and time, and when these were first seen. A file
    that has just disappeared is also in it.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[FileState, float]] = {}
        self._source_of: dict[str, str] = {}  # the name of each file's source
        self._looked = False

    def complete(self, sources: Sequence[Source], done: Mapping[str, FileState]) -> tuple[list[Source], States]:
        """Return the sources restricted to their complete files, and the sizes and times of these files.

        A file is complete if its size and time have not changed for some tenths of a second. `done` has the states in
        which files were read before. A file that is changing, or has just disappeared, keeps its state in `done`; if it
        has none there, it is left out. So a renamed file disappears and appears in the same round. In the first round,
        all files are complete except those that changed a moment ago.
        """
        now, before, self.waiting = time.monotonic(), self.waiting, {}
        files = list_files(sources) or ()
        listed = {file.name: FileState(file.name, *file.content) for file in files}
        self._source_of = {name: self._source_of[name] for name in done} | {file.name: file.of for file in files}
        gone = (FileState(name, -1, _GONE) for name in done if name not in listed)
        complete: States = {}
        for state in (*listed.values(), *gone):
            former = done.get(state.name)
            since = before[state.name][1] if state.name in before and before[state.name][0] == state else now
            is_first = not self._looked and not _is_fresh(state)
            if state == former or is_first or now - since >= SETTLED:
                if state.state != _GONE:
                    complete[state.name] = state
            else:
                self.waiting[state.name] = (state, since)
                if former is not None:
                    complete[state.name] = former
        self._looked = True
        return self.restricted(sources, complete), complete

    def restricted(self, sources: Sequence[Source], states: States) -> list[Source]:
        """Return the sources, restricted to the files in `states`."""
        states_of = defaultdict[str, States](dict)
        for name, state in states.items():
            states_of[self._source_of[name]][name] = state
        return [part for source in sources for part in _restricted_source(source, states_of[source.name])]


def _is_fresh(state: FileState) -> bool:
    """Return whether a file's time of change is less than some tenths of a second ago."""
    return isinstance(state.state, int) and abs(time.time_ns() - state.state) < SETTLED * 1e9


def _restricted_source(source: Source, states: States) -> Iterator[Source]:
    """Yield a folder, restricted to the files in `states`; yield a single file only if it is in `states`."""
    if source.kind != "folder":
        if state := states.get(source.name):
            size = state.size if state.size >= 0 else None
            yield source._replace(size=size, state=state.state, changed=_unchanged)
        return
    above = "" if source.name == "." else f"{source.name}/"
    # Also of files that have just disappeared, which the folder no longer has.
    inside = [state._replace(name=name[len(above) :]) for name, state in states.items()]
    restricted = source._replace(states=inside).restricted({name: number for number, name in enumerate(states)})
    yield restricted._replace(state=None, changed=_unchanged)


def _unchanged() -> None:
    """Report no change of a file, without looking: a change is found at the next check of the inputs."""


def _when_to_check(inputs: Sequence[str], is_waiting: Callable[[], bool], renew: Event) -> Iterator[bool]:
    """Yield True whenever the inputs should be checked: at first, after a change, and while `is_waiting()` is True.

    False is yielded when nothing has happened for a while. If the event `renew` is set, notification of changes is set
    up anew. True is also yielded from time to time, because the system may not notify of all changes, such as those
    that other machines make on a network file system.
    """
    yield True
    folders = None if any(map(is_url, inputs)) else sorted(set(map(folder_of, inputs)))
    try:
        if folders is None:
            raise ImportError
        from watchfiles import watch
    except ImportError:
        if folders is not None:
            log.info("Changes are looked for every second; to be notified of them, run `%s`.", install_hint("watch"))
        yield from _polls(is_waiting)
        return
    options: dict[str, Any] = {"debounce": 50, "step": 25, "rust_timeout": int(_LOOKS * 1000)}
    options |= {"watch_filter": None, "yield_on_timeout": True, "ignore_permission_denied": True, "stop_event": renew}
    paths = {*map(os.path.abspath, folders)}
    due = 0.0  # when to check even without a notification
    while True:
        renew.clear()
        watched, compared = [*map(identity_of, folders)], time.monotonic()
        try:
            for changes in watch(*folders, raise_interrupt=True, **options):
                began = time.monotonic()
                is_checked = bool(changes) or is_waiting() or began >= due
                yield is_checked
                if is_checked:
                    due = (now := time.monotonic()) + max(LONGEST, (now - began) * (1 / _SHARE - 1))
                # The system only tells of the former folders; a new one may have got the identity of a deleted one.
                is_gone = any(kind.name == "deleted" and os.path.abspath(path) in paths for kind, path in changes)
                if is_gone or began - compared >= _POLLS:
                    compared = began
                    if is_gone or [*map(identity_of, folders)] != watched:
                        renew.set()
        except OSError as error:
            if None not in watched:
                log.warning("The system notifies of no changes (%s): they are looked for.", error)
            time.sleep(_POLLS)
            yield True
        due = 0.0  # changes may have been missed until now


def identity_of(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from others that get its name later; None if it is missing."""
    with suppress(OSError):
        state = os.stat(folder)
        return state.st_dev, state.st_ino
    return None


def _polls(is_waiting: Callable[[], bool]) -> Iterator[bool]:
    while True:
        began = time.monotonic()
        yield True
        took = time.monotonic() - began
        time.sleep(_LOOKS if is_waiting() else max(_POLLS, took * (1 / _SHARE - 1)))


def folder_of(text: str) -> str:
    """Return the folder in which to watch for changes of an input (a file, folder or pattern)."""
    path = text
    while not _PATTERN.isdisjoint(path) and not os.path.exists(path):
        path = os.path.dirname(path)
    path = path or "."
    return path if os.path.isdir(path) else os.path.dirname(path) or "."
