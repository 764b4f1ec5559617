"""Histories of an archive by chance, and what its folder of tags must hold after each run, worked out naively.

Files come, change, move, go, are locked and unlocked, and fail to be read; news is under embargo, and comes again with
another version; documents without versions have the ids of news; the clock jumps; runs are killed. `History` plays one
of them, and `check` says what is wrong. In a `NewsHistory`, versions of news come in any order, and go.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import gzip
import io
import json
import os
import random
import shutil
import signal
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.reading import InputSettings
from textcat.tagging.job import load_taggers
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_to_folder

Trial = tuple[str, bool, str]
TEXTS = (
    "Wheat exports rose to 12 mln tonnes, traders said.",
    "Gold fell, and silver followed it down.",
    "The central bank raised interest rates by half a point.",
    "Crude oil production fell in the second quarter.",
    "Nothing of this is known.",
    "Corn and wheat crops suffered from the drought, and shipping of grain was delayed.",
)
READ = InputSettings(block_bytes=600)
OUTPUTS = (
    OutputSettings(),
    OutputSettings(top=1),
    OutputSettings(to="csv", per_document=True),
    OutputSettings(all_topics=True, compress="zst"),
)
_OPERATIONS = ("write_all", "rename", "sync_folder", "truncate_file", "remove")
_START = datetime(2026, 3, 1, tzinfo=timezone.utc).timestamp()
_NO_DAC = ~((1 << 1) | (1 << 2))  # all capabilities but those by which root ignores the modes of files


class Doc(NamedTuple):
    """A document of a file: its id and version (0: it is no news), its text by number, and when its embargo ends."""

    id: str
    version: int
    text: int
    release: float | None
    is_canceled: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all other documents."""
        return self.id, self.version


class File:
    """The content of a file, from the moment at which it is written until it is replaced or removed."""

    def __init__(self, path: str, members: list[tuple[str, list[Doc]]]):
        self.path, self.members = path, members
        self.known_as = ""  # its path when a run was started last
        self.known_before = set[str]()  # its paths before runs that were killed, which may not have come to it
        self.done_as = ""  # its path when `check` saw that a run has read it to its end
        self.tried_as = ""  # its path when a run was killed that may have read it, or have removed its rows to do so
        self.size = 0

    @property
    def docs(self) -> list[Doc]:
        """All documents, in their order."""
        return [doc for _, docs in self.members for doc in docs]


class Fault(NamedTuple):
    """How a path fails: with which error; a file perhaps only from an offset on."""

    error: int
    offset: int = 0


class Ended(NamedTuple):
    """What a run said: its exit code (-9: it was killed), an error or traceback, and its counts."""

    code: int
    error: str = ""
    counts: Mapping[str, Any] = {}


class History:
    """An archive in a folder of its own, its tags, and all that has happened to it."""

    def __init__(self, model: Path, seed: int, output: OutputSettings | None = None, other: Path | None = None):
        self.other, self.changes = other, "ask"  # another model that gives the same tags, and what is done about it
        self.draw = random.Random(seed)
        self.base = Path(tempfile.mkdtemp(prefix="history-"))
        self.archive, self.out, self.model = self.base / "in", self.base / "out", model
        self.output = (output or self.draw.choice(OUTPUTS))._replace(keep_fields=("version",))
        self.archive.mkdir()
        self.files: list[File] = []
        self.ended: list[tuple[File, str]] = []  # contents that are gone, with the path of the file that replaced them
        self.modes: dict[str, int] = {}  # of folders and files that are locked
        self.faults: dict[str, Fault] = {}
        self.links: dict[str, str] = {}  # links that lead nowhere, with where they lead
        self.clock, self._tick, self._number = _START, 0, 0
        self.latest = 0.0  # the latest time of a run
        self.held: set[tuple[str, int]] = set()  # documents that had rows at the last check
        self.told: set[str] = set()  # sources that were rejected at the last check, or since
        self.withheld: set[tuple[str, int]] = set()  # news that a run may know to be canceled or under embargo
        self.plain: set[str] = set()  # ids of documents without versions
        self.moved: set[str] = set()  # paths of renamed files, whose rows may have the former one as their source
        self._n_ended = 0  # contents that were gone at the last check
        self.log: list[str] = []

    def close(self) -> None:
        """Remove the archive and its tags."""
        for path in self.modes:
            os.chmod(self.archive / path, 0o755)
        shutil.rmtree(self.base)

    # --- what happens ------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Let something happen to the archive."""
        steps = self._steps()
        (step,) = self.draw.choices([*steps], [*steps.values()])
        self.log.append(f"{step.__name__} {step() or ''}")

    def _steps(self) -> dict[Callable[[], object], int]:
        """Return what may happen, with how often it does."""
        return {
            self.add: 4, self.change: 3, self.rename: 2, self.replace_by_rename: 1, self.swap: 1, self.delete: 1,
            self.touch: 1, self.lock: 4, self.fail: 3, self.link: 1, self.folder_becomes_file: 1, self.reissue: 3,
            self.move_clock: 3, self.repair: 3,
        }  # fmt: skip

    def add(self) -> str:
        """Write a new file, perhaps under the name of one that was there before."""
        gone = [file.path for file, _ in self.ended if self._is_free(file.path)]
        if gone and self.draw.random() < 0.3:
            path = self.draw.choice(gone)
            path = path if path.endswith((".jsonl", ".zip", ".tar", ".gz")) else f"{path}.jsonl"
        else:
            ending = self.draw.choice([".jsonl", ".jsonl", ".jsonl", ".zip", ".tar", ".jsonl.gz"])
            path = f"{self.draw.choice(['', 'd/', 'e/', 'd/f/'])}{self._new()}{ending}"
        if not self._is_free(path):
            return ""
        self._write(File(path, self._members(path)))
        return path

    def change(self) -> str:
        """Write another content into a file."""
        file = self._any(lambda file: self._may_end(file))
        if file is None:
            return ""
        self._change(file)
        return file.path

    def rename(self) -> str:
        """Rename a file, which keeps its size and time."""
        file, before, path = self._any(), "", ""
        if file is not None:
            before = file.path
            path = os.path.join(self.draw.choice(["", "d", "e"]), f"{self._new()}.{file.path.partition('.')[2]}")
            self._move(file, path)
        return f"{before} {path}"

    def replace_by_rename(self) -> str:
        """Rename a file over another one."""
        file = self._any()
        other = self._any(lambda other: other is not file and self._may_end(other) and _ends_like(other, file))
        if file is None or other is None:
            return ""
        before, path = file.path, other.path
        self._end(other, other.path)
        self._move(file, path)
        return f"{before} {path}"

    def swap(self) -> str:
        """Let two files change their names."""
        one = self._any()
        other = self._any(lambda other: other is not one and _ends_like(other, one))
        if one is None or other is None:
            return ""
        first, second = one.path, other.path
        self._move(one, f"{self._new()}.swap")
        self._move(other, first)
        self._move(one, second)
        return f"{first} {second}"

    def delete(self) -> str:
        """Remove a file."""
        file = self._any(lambda file: self._may_end(file))
        if file is None:
            return ""
        self._delete(file)
        return file.path

    def touch(self) -> str:
        """Give a file another time."""
        file = self._any()
        if file is not None:
            self._set_time(self.archive / file.path)
            file.done_as = ""
        return str(file and file.path)

    def lock(self) -> str:
        """Take rights away from a file or a folder."""
        paths = [name for name in ("d", "e", "d/f", ".") if (self.archive / name).is_dir()]
        paths = [*paths, *(file.path for file in self.files)]
        paths = [path for path in paths if path not in self.modes]
        if not paths:
            return ""
        path = self.draw.choice(paths)
        is_folder = (self.archive / path).is_dir()
        self.modes[path] = self.draw.choice([0o300, 0o600, 0o000]) if is_folder else 0o000
        os.chmod(self.archive / path, self.modes[path])
        return f"{path} {self.modes[path]:o}"

    def fail(self) -> str:
        """Let a file fail when it is opened or read, or a folder when it is listed."""
        if self.draw.random() < 0.3:
            path = self.draw.choice(["d", "e", "d/f"])
            if not (self.archive / path).is_dir():
                return ""
            self.faults[path] = Fault(self.draw.choice([errno.ESTALE, errno.EIO]))
            return f"{path} {self.faults[path]}"
        file = self._any()
        if file is None:
            return ""
        offset = self.draw.choice([0, self.draw.randrange(max(file.size, 1))])
        self.faults[file.path] = Fault(self.draw.choice([errno.ESTALE, errno.EIO]), offset)
        return f"{file.path} {self.faults[file.path]}"

    def link(self) -> str:
        """Make a link that leads nowhere yet."""
        path = f"link{self._new()}.jsonl"
        self.links[path] = f"target{self._new()}.jsonl"
        (self.archive / path).symlink_to(self.base / self.links[path])
        return path

    def folder_becomes_file(self) -> str:
        """Replace a folder by a file of its name."""
        path = "e"
        inside = [file for file in self.files if file.path.startswith("e/")]
        if path in self.modes or not inside or not all(map(self._may_end, inside)):
            return ""
        for file in inside:
            self._end(file, "")
            self._repair(file.path)
        self.faults.pop(path, None)
        shutil.rmtree(self.archive / path)
        self._write(File(path, self._members("e.jsonl")))
        return path

    def reissue(self) -> str:
        """Write another version of news into a file of its own."""
        if not (again := self._reissued()):
            return ""
        path = f"{self._new()}.jsonl"
        self._write(File(path, [("", again)]))
        return f"{again} in {path}"

    def move_clock(self) -> str:
        """Let time pass, or set the clock back."""
        self.clock += self.draw.choice([3600, 7200, 86400, 86400, -3600, -86400])
        return str((self.clock - _START) / 3600)

    def repair(self) -> str:
        """Give back what was locked, mend what failed, or let a link lead to a file; one of them, or all."""
        broken = [*self.modes, *self.faults, *self.links]
        chosen = broken if self.draw.random() < 0.3 else broken and [self.draw.choice(broken)]
        for path in chosen:
            self._repair(path)
        return str(chosen)

    def repair_all(self) -> None:
        """Give back and mend all."""
        for path in [*self.modes, *self.faults, *self.links]:
            self._repair(path)
        self.log.append("repair_all")

    def _repair(self, path: str) -> None:
        if path in self.modes:
            del self.modes[path]
            os.chmod(self.archive / path, 0o755)
        self.faults.pop(path, None)
        if target := self.links.pop(path, None):
            file = File(path, self._members(path))
            (self.base / target).write_bytes(_content(path, file.members))
            self._set_time(self.base / target)
            file.size = (self.base / target).stat().st_size
            self.files.append(file)

    def _new(self) -> int:
        self._number += 1
        return self._number

    def _any(self, is_wanted: Callable[[File], bool] = lambda file: True) -> File | None:
        files = [file for file in self.files if is_wanted(file)]
        return self.draw.choice(files) if files else None

    def _may_end(self, file: File) -> bool:
        """Return whether no news in the file has several versions."""
        counts = Counter(doc.id for one in self.files for doc in one.docs if doc.version)
        return all(counts[doc.id] <= 1 for doc in file.docs)

    def _change(self, file: File) -> None:
        self._end(file, file.path)
        self._write(File(file.path, self._members(file.path)))

    def _delete(self, file: File) -> None:
        self._end(file, "")
        self._repair(file.path)
        (self.archive / file.path).unlink()

    def _end(self, file: File, replaced_at: str) -> None:
        self.files.remove(file)
        self.ended.append((file, replaced_at))

    def _is_free(self, path: str) -> bool:
        parts = path.split("/")
        above = ("/".join(parts[:i]) for i in range(1, len(parts)))
        return not os.path.lexists(self.archive / path) and not any((self.archive / one).is_file() for one in above)

    def _members(self, path: str) -> list[tuple[str, list[Doc]]]:
        if not path.endswith((".zip", ".tar")):
            return [("", self._docs())]
        names = [self.draw.choice(["a.jsonl", "b.jsonl", "c/a.jsonl"]) for _ in range(self.draw.randrange(1, 5))]
        return [(name, self._docs()) for name in names]

    def _docs(self) -> list[Doc]:
        is_news, n = self.draw.random() < 0.5, self.draw.choice([1, 1, 2, 5, 12])
        return [
            Doc(f"urn:{self._new()}", 1, self.draw.randrange(len(TEXTS)), self._release()) if is_news else self._plain()
            for _ in range(n)
        ]

    def _plain(self) -> Doc:
        """Return a document without a version, perhaps with the id of news, but not with that of another such one."""
        # of the last files, which may be in the same batch
        ids = {doc.id for file in self.files[-3:] for doc in file.docs if doc.version} - self.plain
        id_ = self.draw.choice(sorted(ids)) if ids and self.draw.random() < 0.5 else str(self._new())
        self.plain.add(id_)
        return Doc(id_, 0, self.draw.randrange(len(TEXTS)), None)

    def _reissued(self) -> list[Doc]:
        """Return a newer version of some news; [] if there is no news."""
        news = [doc for file in self.files for doc in file.docs if doc.version]
        if not news:
            return []
        doc = self.draw.choice(news)
        newest = max(one.version for one in news if one.id == doc.id)
        return [Doc(doc.id, newest + 1, self.draw.randrange(len(TEXTS)), self._release())]

    def _release(self) -> float | None:
        hours = self.draw.choice([None, None, -5, 1, 3, 20, 30])
        return None if hours is None else self.clock + 3600 * hours + 1

    def _write(self, file: File) -> None:
        path = self.archive / file.path
        if not self._is_free(os.path.dirname(file.path) + "/x"):  # its folder is a file now
            file.path = path.name
            path = self.archive / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(file.path, file.members))
        self._set_time(path)
        file.size = path.stat().st_size
        self.files.append(file)

    def _set_time(self, path: Path) -> None:
        self._tick += 1
        ns = (1_700_000_000 + self._tick) * 10**9
        os.utime(path, ns=(ns, ns))

    def _move(self, file: File, path: str) -> None:
        if not self._is_free(os.path.dirname(path) + "/x"):
            path = os.path.basename(path)
        (self.archive / path).parent.mkdir(parents=True, exist_ok=True)
        (self.archive / file.path).rename(self.archive / path)
        self.moved.update((file.path, path))
        moved = self.modes.pop(file.path, None), self.faults.pop(file.path, None)
        self.modes.pop(path, None)
        self.faults.pop(path, None)
        if moved[0] is not None:
            self.modes[path] = moved[0]
        if moved[1] is not None:
            self.faults[path] = moved[1]
        file.path = path
        file.done_as = file.done_as if self._is_new_name(path) else ""

    def _is_new_name(self, path: str) -> bool:
        return all(one.known_as != path for one in [*self.files, *(one for one, _ in self.ended)])

    # --- runs --------------------------------------------------------------------------------------------------------

    def run(self, kill_at: int = 0, *, by_the_same: bool = False) -> Ended:
        """Tag the archive in a process of its own, which is killed before its n-th operation on a disk, if so."""
        self.latest = max(self.latest, self.clock)
        if self.other is not None:
            if self.draw.random() < 0.4 and not by_the_same:
                self.model, self.other = self.other, self.model
            self.changes = "new" if by_the_same else self.draw.choice(["new", "all"])
            self.log.append(f"by {self.model.name}, {self.changes}")
        blocked = self._blocked()
        seen = [file for file in self.files if not self._is_hidden(file, blocked)]
        self.withheld.update(doc.key for file in seen for doc in file.docs if not self._is_free_to_tag(doc))
        for file in seen:
            if file.known_as:
                file.known_before.add(file.known_as)
            file.known_as = file.path
        # What has the name of a file that is gone may replace its rows, even if it is gone, too, before the next run.
        paths = {file.path for file in seen}
        self.ended = [(file, at or (file.known_as if file.known_as in paths else "")) for file, at in self.ended]
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(ours)
                os.write(theirs, json.dumps(self._run_here(kill_at)).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        with open(ours, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        ended = Ended(*json.loads(said)) if said else Ended(-signal.SIGKILL)
        self.log.append(f"run, kill at {kill_at}: {ended.code}")
        if ended.code == -signal.SIGKILL:
            for file in self.files:
                if self._is_readable(file, blocked):
                    file.done_as, file.tried_as = "", file.path
            self.told.update(line["source"] for line in self._rejections())
        else:
            for file in seen:
                file.known_before.clear()
        return ended

    def _run_here(self, kill_at: int) -> tuple[int, str, Mapping[str, Any]]:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            plan = make_plan(self.model, [self.archive], READ, self.output, jobs=1)
            load_taggers(plan.job)
            time.time = lambda: self.clock
            _give_up_rights()
            fail_at({str(self.archive / path): fault for path, fault in self.faults.items()})
            _kill_at(kill_at)
            plan = make_plan(self.model, [self.archive], READ, self.output, jobs=1)
            summary = tag_to_folder(plan, self.out, max_records=8, model_changes=self.changes)
            is_done = summary.before.finished and not summary.growth
            counts = {**summary.counts.as_dict(), "is_done": is_done, "drifts": len(summary.drifts)}
        except TextcatError as error:
            return 1, str(error), {}
        except BaseException:
            return 99, traceback.format_exc(), {}
        return 3 if summary.counts.faults or summary.changed else 0, "", counts

    # --- what must be ------------------------------------------------------------------------------------------------

    def check(self, ended: Ended, topics_of: list[list[str]]) -> list[str]:
        """Return what is wrong after a run that was not killed; `topics_of` has the topics of each text."""
        if ended.code not in (0, 3):
            root = self.modes.get(".", 0o700)
            return [] if ended.code == 1 and not root & 0o100 else [f"exit {ended.code}: {ended.error}"]
        rows, lines = list(self._rows()), self._rejections()
        wrong = [f"{key} has {n} rows" for key, n in Counter(key for key, _ in rows).items() if n > 1]
        in_rows = {key for key, _ in rows}
        source_of = dict(rows)
        blocked = self._blocked()
        faults = [line for line in lines if not line.get("left_out")]
        expected = Counter(str(self.archive / path) if path else str(self.archive) for path in blocked)
        by_id: dict[str, list[tuple[Doc, File]]] = {}
        is_told = Counter(line["source"] for line in faults)
        for file in self.files:
            name = str(self.archive / file.path)
            is_hidden, is_broken = self._is_hidden(file, blocked), self._is_broken(file)
            for doc in file.docs:
                by_id.setdefault(doc.id, []).append((doc, file))
            inside = [source for source in is_told if source == name or source.startswith(f"{name}/")]
            if not is_hidden and not is_broken:
                file.done_as = file.path
            elif self.changes == "all" and inside and not (is_hidden or any(doc.key in in_rows for doc in file.docs)):
                # It had no rows, perhaps because of an embargo: nothing of it was kept when all was written anew.
                expected.update({source: is_told[source] for source in inside})
                file.done_as = ""
            elif file.done_as != file.path and file.path not in blocked:
                # Under another name, it is not known without being read.
                is_in = file.tried_as == file.path and self._is_whole_in(file, in_rows)
                is_needed = not is_hidden and not file.done_as and not is_in
                expected.update({source: is_told[source] for source in inside} or ({name: 1} if is_needed else {}))
                file.done_as = file.path if is_in and not inside and not is_hidden else file.done_as
        wrong += self._wrong_documents(by_id, blocked, in_rows)
        wrong += self._wrong_news(by_id, blocked, in_rows)
        wrong += self._wrong_places(blocked, source_of, lines)
        present = {doc.key for docs in by_id.values() for doc, _ in docs}
        in_ended = Counter(doc.key for file, _ in self.ended for doc in file.docs)
        ends = {
            doc.key: (file, at)
            for file, at in self.ended
            for doc in file.docs
            if doc.key not in present and in_ended[doc.key] == 1
        }
        # Read again at an earlier time than before, as the clock was put back.
        waiting = {doc.key for file, _ in self.ended for doc in file.docs if (doc.release or 0) > self.clock}
        for key in {*in_rows, *self.held} & {*ends}:
            file, replaced_at = ends[key]
            source = source_of.get(key, "")
            path = os.path.relpath(source, self.archive) if source else file.known_as
            there = [one for one in self.files if _is_at(path, one)]
            is_known = file.known_as == file.path and _is_at(path, file)
            if there and is_known and key in in_rows:
                if not self._is_hidden(there[0], blocked):
                    wrong.append(f"{key} of {file.path} was replaced, and still has a row of {source}")
            elif there or replaced_at or any(_is_at(before, one) for before in file.known_before for one in self.files):
                continue  # what has its name now replaced it
            elif key in self.held and key not in in_rows and key not in waiting and not self._may_be_replaced(key):
                wrong.append(f"{key} of {file.path}, which is gone, has no row")
        strange = in_rows - present - in_ended.keys()
        wrong += [f"{key} is in no file" for key in strange]
        gone = {str(self.archive / file.known_as) for file, _ in self.ended if file.known_as}
        # What was rejected in a folder that cannot be listed now may be there still, or not.
        old = {source for source in self.told if self._is_within(os.path.relpath(source, self.archive), blocked)}
        found = Counter(
            {source: n for source, n in is_told.items() if source in expected or not _is_inside(source, gone | old)}
        )
        self.told = {*is_told}
        if found != expected:
            wrong.append(f"rejected are {found - expected}, and not {expected - found}")
        if (ended.code == 3) != bool(faults):
            wrong.append(f"exit {ended.code} with {len(faults)} faults")
        wrong += self._wrong_counts(ended.counts, rows, lines, topics_of)
        self.held, self._n_ended = in_rows, len(self.ended)
        if self.changes == "all":
            wrong += self._wrong_models(blocked)
        return wrong

    def _wrong_models(self, blocked: set[str]) -> Iterator[str]:
        """Yield what is wrong after all documents were to be tagged by one model."""
        readable = [file for file in self.files if self._is_readable(file, blocked)]
        for source, model in self._models():
            path = os.path.relpath(source, self.archive)
            if model != read_manifest(self.model).id and any(_is_at(path, file) for file in readable):
                yield f"{path} has rows by {model}"
        if (left := self.out.with_name("out.next")).exists():
            yield f"{left.name} was left"

    def _is_whole_in(self, file: File, in_rows: set[tuple[str, int]]) -> bool:
        """Return whether all documents of a file have rows, but for news that was under embargo or has versions."""
        files = [*self.files, *(one for one, _ in self.ended)]
        counts = Counter(doc.id for one in files for doc in one.docs if doc.version)
        needed = (doc.key for doc in file.docs if doc.release is None and (not doc.version or counts[doc.id] == 1))
        return all(key in in_rows for key in needed)

    def _wrong_documents(
        self, by_id: Mapping[str, list[tuple[Doc, File]]], blocked: set[str], in_rows: set[tuple[str, int]]
    ) -> Iterator[str]:
        for doc, file in (pair for docs in by_id.values() for pair in docs):
            is_readable, is_lost = self._is_readable(file, blocked), doc.key in self.held - in_rows
            if not doc.version and is_readable and doc.key not in in_rows:
                yield f"{doc.key} of {file.path} has no row"
            if not is_readable and file.done_as == file.path and is_lost and not self._may_be_replaced(doc.key):
                yield f"{doc.key} of {file.path}, which cannot be read now, has lost its row"

    def _wrong_news(
        self, by_id: Mapping[str, list[tuple[Doc, File]]], blocked: set[str], in_rows: set[tuple[str, int]]
    ) -> Iterator[str]:
        """Yield which items have several rows, or the row of an older version than one that can be read."""
        self.withheld -= {*self._replaced(blocked)}
        rows = defaultdict[str, list[int]](list)
        for id_, version in in_rows:
            if version:
                rows[id_].append(version)
        yield from (f"{id_} has rows of the versions {found}" for id_, found in rows.items() if len(found) > 1)
        for id_, docs in by_id.items():
            readable = [pair for pair in docs if pair[0].version and self._is_readable(pair[1], blocked)]
            if not readable:
                continue
            doc, file = max(readable, key=lambda pair: pair[0].version)
            where, found = f"{doc.key} of {file.path}", max(rows[id_], default=-1)
            is_withheld = any(key[0] == id_ and key[1] > doc.version for key in self.withheld)
            if self._is_free_to_tag(doc):
                self.withheld.discard(doc.key)
                if found < doc.version and not (is_withheld and found < 0):
                    yield f"{where} has no row, and version {found} has one"
            elif 0 <= found < doc.version:
                yield f"version {found} has a row, although {where} is newer"
            elif found == doc.version and (doc.is_canceled or (doc.release or 0) > self.latest):
                yield f"{where} has a row, but is canceled or under embargo"

    def _replaced(self, blocked: set[str]) -> Iterator[tuple[str, int]]:
        """Yield the documents of contents that were certainly replaced, under their names, by others that were read."""
        n_contents = Counter(doc.key for file in [*self.files, *(file for file, _ in self.ended)] for doc in file.docs)
        read = {file.path for file in self.files if self._is_readable(file, blocked)}
        for file, replaced_at in self.ended:
            if replaced_at in read and file.known_as == replaced_at and file.known_before <= {replaced_at}:
                yield from (doc.key for doc in file.docs if n_contents[doc.key] == 1)

    def _wrong_places(
        self, blocked: set[str], source_of: Mapping[tuple[str, int], str], lines: list[dict[str, Any]]
    ) -> Iterator[str]:
        """Yield which documents of lines of JSON have not either a row, or one line as left out.

        A file with the content of another one, or another one's former name, may pass for this one under a new name.
        """
        contents = [*self.files, *(file for file, _ in self.ended)]
        n_left_out = Counter((line["source"], line["position"]) for line in lines if line.get("left_out"))
        for file in self.files:
            source = str(self.archive / file.path)
            is_alone = file.path not in self.moved and sum(one.docs == file.docs for one in contents) == 1
            if not file.path.endswith(".jsonl") or not is_alone or not self._is_readable(file, blocked):
                continue
            for position, doc in enumerate(file.docs, 1):
                is_repeated = sum(one.key == doc.key for one in file.docs) > 1
                has_row, n = source_of.get(doc.key) == source, n_left_out[source, position]
                if not is_repeated and has_row + n != 1:
                    yield f"{doc.key} of {file.path} has {int(has_row)} rows there, and is left out {n} times"

    def _may_be_replaced(self, key: tuple[str, int]) -> bool:
        """Return whether a run since the last check may have seen a newer version of news."""
        files = [*self.files, *(file for file, _ in self.ended[self._n_ended :])]
        return bool(key[1]) and any(doc.id == key[0] and doc.version > key[1] for file in files for doc in file.docs)

    def _is_free_to_tag(self, doc: Doc) -> bool:
        return not doc.is_canceled and (doc.release is None or doc.release <= self.clock)

    def _wrong_counts(
        self, counts: Mapping[str, Any], rows: list[Any], lines: list[Any], topics_of: list[list[str]]
    ) -> Iterator[str]:
        text_of = {doc.key: doc.text for file in self.files for doc in file.docs}
        text_of |= {doc.key: doc.text for file, _ in self.ended for doc in file.docs}
        topics = Counter(topic for key, _ in rows for topic in topics_of[text_of[key]])
        expected = {
            "tagged": len(rows), "rejected": len(lines), "records": len(rows) + len(lines),
            "left_out": sum(bool(line.get("left_out")) for line in lines),
            "untagged": sum(not topics_of[text_of[key]] for key, _ in rows),
            "topics": dict(topics),
        }  # fmt: skip
        for name, value in expected.items():
            found = {topic: n for topic, n in counts[name].items() if n} if name == "topics" else counts[name]
            if found != value:
                yield f"{name} are counted as {found}, but are {value}"
        yield from self._wrong_months(rows, [topics_of[text_of[key]] for key, _ in rows])

    def _wrong_months(self, rows: list[Any], topics: list[list[str]]) -> Iterator[str]:
        """Yield what is wrong in the folder's summary by month, given its rows and their topics."""
        expected: dict[str, Counter[str]] = defaultdict(Counter)
        for (key, _), of_row in zip(rows, topics, strict=True):
            expected[_month(key)].update(["all", *of_row])
        found = json.loads((self.out / "_summary.json").read_bytes())["months"]
        n_by_topic = {
            one["month"]: {"all": one["documents"]} | {topic["topic"]: topic["documents"] for topic in one["topics"]}
            for one in found
        }
        if n_by_topic != expected:
            yield f"by month there are {dict(expected)}, and not {n_by_topic}"

    def _blocked(self) -> set[str]:
        """Return the paths that must be rejected as they cannot be listed or looked at; "" is the archive itself."""
        blocked = {path for path in self.links if self._is_seen(path)}
        for name in (".", "d", "e", "d/f"):
            path = "" if name == "." else name
            if (self.archive / name).is_dir() and self._is_seen(path):
                mode = self.modes.get(name, 0o700)
                above = os.path.dirname(path)
                is_reached = not path or self.modes.get(above or ".", 0o700) & 0o100
                if name in self.faults or not mode & 0o400 or not is_reached:
                    blocked.add(path)
                elif not mode & 0o100:
                    inside = [file.path for file in self.files if os.path.dirname(file.path) == path]
                    inside += [link for link in self.links if os.path.dirname(link) == path]
                    blocked.update(inside)
        return blocked

    def _is_seen(self, path: str) -> bool:
        """Return whether all folders above a path can be listed and passed."""
        parts = path.split("/")
        above = [".", *("/".join(parts[:i]) for i in range(1, len(parts)))] if path else []
        for i, name in enumerate(above):
            mode = self.modes.get(name, 0o700)
            if name in self.faults or not mode & 0o400 or (i < len(above) - 1 and not mode & 0o100):
                return False
        return True

    def _is_hidden(self, file: File, blocked: set[str]) -> bool:
        return file.path in blocked or not self._is_seen(file.path) or self._is_within(file.path, blocked)

    def _is_within(self, path: str, blocked: set[str]) -> bool:
        return any(one == "" or path.startswith(f"{one}/") for one in blocked)

    def _is_broken(self, file: File) -> bool:
        fault = self.faults.get(file.path)
        return file.path in self.modes or (fault is not None and fault.offset < file.size)

    def _is_readable(self, file: File, blocked: set[str]) -> bool:
        return not self._is_hidden(file, blocked) and not self._is_broken(file)

    def _rows(self) -> Iterator[tuple[tuple[str, int], str]]:
        """Yield the id, version and source of each row."""
        for path in sorted(self.out.glob("part-*")):
            data = path.read_bytes()
            if path.name.endswith(".zst"):
                import zstandard

                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            if ".csv" in path.name:
                import csv

                for row in csv.DictReader(io.StringIO(data.decode(), newline="")):
                    yield (row["id"], int(row["version"] or 0)), row["source"]
            else:
                for one in map(json.loads, data.splitlines()):
                    yield (one["id"], int(one.get("fields", {}).get("version", 0))), one["source"]

    def _models(self) -> set[tuple[str, str]]:
        """Return the source and the model of all rows."""
        from textcat.tagging.shards import read_tags

        return {(row.source, row.model) for row in read_tags(self.out)} if any(self.out.glob("part-*")) else set()

    def _rejections(self) -> list[dict[str, Any]]:
        path = self.out / "_rejected.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    # --- all of it ---------------------------------------------------------------------------------------------------

    def play(self, steps: int, topics_of: list[list[str]]) -> list[str]:
        """Let something happen so many times, with runs between; mend all in the end; return what was wrong first."""
        for _ in range(4):
            self.log.append(f"add {self.add()}")
        for _ in range(steps):
            for _ in range(self.draw.randrange(1, 4)):
                self.step()
            for _ in range(self.draw.choice([0, 0, 0, 1, 2])):
                ended = self.run(kill_at=self.draw.randrange(1, 40))
                if ended.code != -signal.SIGKILL and (wrong := self.check(ended, topics_of)):
                    return wrong
                if self.draw.random() < 0.5:
                    self.step()
            if wrong := self.check(self.run(), topics_of):
                return wrong
        self.repair_all()
        if wrong := self.check(self.run(), topics_of):
            return wrong
        self.clock += 40 * 86400
        if wrong := self.check(self.run(), topics_of):
            return wrong
        ended = self.run(by_the_same=True)
        return self.check(ended, topics_of) or ([] if ended.counts["is_done"] else ["something is left to do"])


class NewsHistory(History):
    """A history of few items with many versions, in whose archive any file may change or go."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.versions = defaultdict[str, set[int]](lambda: {100})  # all versions that there have been, by id

    def _steps(self) -> dict[Callable[[], object], int]:
        return dict.fromkeys(super()._steps(), 1) | {self.repair: 3, self.reissue: 20, self.end_newest: 20}

    def end_newest(self) -> str:
        """Change or delete the file with the newest version of news, and perhaps that with the next older one."""
        docs = defaultdict[str, list[tuple[Doc, File]]](list)
        for file in self.files:
            for doc in file.docs:
                if doc.version:
                    docs[doc.id].append((doc, file))
        several = [found[0][0] for found in docs.values() if len({file.path for _, file in found}) > 1]
        if not several:
            return ""
        found = sorted(docs[self._with_many_versions(several).id], key=lambda pair: -pair[0].version)
        ended = [*dict.fromkeys(file for _, file in found)][: self.draw.choice([1, 1, 2])]
        for file in ended:
            self.draw.choice([self._change, self._delete])(file)
        return str([file.path for file in ended])

    def _with_many_versions(self, docs: list[Doc]) -> Doc:
        """Return the document with the most versions of some, so that few items have many."""
        return max(self.draw.choices(docs, k=12), key=lambda doc: len(self.versions[doc.id]))

    def _may_end(self, file: File) -> bool:
        return True

    def _docs(self) -> list[Doc]:
        n = self.draw.choice([1, 1, 2])
        if self.draw.random() < 0.3:
            return [self._plain() for _ in range(n)]
        docs = [Doc(f"urn:{self._new()}", 100, self.draw.randrange(len(TEXTS)), self._release()) for _ in range(n)]
        return docs if self.draw.random() < 0.7 else docs + self._reissued()

    def _reissued(self) -> list[Doc]:
        """Return another version of some news: a newer or an older one, or the same again; [] if there is no news."""
        news = [doc for file in self.files for doc in file.docs if doc.version]
        if not news:
            return []
        doc = self._with_many_versions(news)
        if self.draw.random() < 0.2:
            return [doc]
        versions = self.versions[doc.id]
        version = min(versions) - 1 if self.draw.random() < 0.2 else max(versions) + 1
        versions.add(version)
        release = self._release() if self.draw.random() < 0.2 else None
        return [Doc(doc.id, version, self.draw.randrange(len(TEXTS)), release, self.draw.random() < 0.15)]


def _ends_like(one: File, other: File | None) -> bool:
    return other is not None and one.path.partition(".")[2] == other.path.partition(".")[2]


def _is_at(source: str, file: File) -> bool:
    return source == file.path or (file.path.endswith((".zip", ".tar")) and source.startswith(f"{file.path}/"))


def _is_inside(source: str, names: set[str]) -> bool:
    return any(source == name or source.startswith(f"{name}/") for name in names)


def _content(path: str, members: list[tuple[str, list[Doc]]]) -> bytes:
    if path.endswith(".gz"):
        return gzip.compress(_lines(members[0][1]), mtime=0)
    if not path.endswith((".zip", ".tar")):
        return _lines(members[0][1])
    stream = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(stream, "w") as archive:
            for name, docs in members:
                archive.NameToInfo.pop(name, None)  # or else it warns of a name that occurs twice
                archive.writestr(name, _lines(docs))
    else:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name, docs in members:
                data = _lines(docs)
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def _lines(docs: list[Doc]) -> bytes:
    return b"".join(json.dumps(_fields(doc)).encode() + b"\n" for doc in docs)


def _month(key: tuple[str, int]) -> str:
    """Return the month of a document, given its id and version."""
    return f"2025-{1 + sum(key[0].encode()) % 12:02}"


def _fields(doc: Doc) -> dict[str, Any]:
    if not doc.version:
        return {"id": doc.id, "text": TEXTS[doc.text], "date": f"{_month(doc.key)}-03"}
    fields = {
        "uri": doc.id, "type": "text", "version": str(doc.version), "versioncreated": f"{_month(doc.key)}-01T00:00:00Z",
        "body_text": TEXTS[doc.text],
    }  # fmt: skip
    if doc.is_canceled:
        fields["pubstatus"] = "canceled"
    if doc.release is not None:
        zone = timezone(timedelta(hours=sum(doc.id.encode()) % 25 - 12))
        fields["embargoed"] = datetime.fromtimestamp(doc.release, zone).isoformat()
    return fields


def _give_up_rights() -> None:
    """Let the modes of files hold for this process, too, if it is root's."""
    if os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, data):
        raise OSError(ctypes.get_errno(), "capget")
    data[0] &= _NO_DAC & 0xFFFFFFFF
    data[1] &= _NO_DAC & 0xFFFFFFFF
    if libc.capset(header, data):
        raise OSError(ctypes.get_errno(), "capset")


def fail_at(faults: Mapping[str, Fault]) -> None:
    """Let paths fail when they are opened, read or listed."""
    opened, listed = builtins.open, os.scandir

    class Failing(io.FileIO):
        offset, error = 0, errno.EIO

        def _check(self) -> int:
            if (left := self.offset - self.tell()) <= 0:
                raise OSError(self.error, os.strerror(self.error), self.name)
            return left

        def read(self, n: int | None = -1) -> Any:
            left = self._check()
            return super().read(left if n is None or n < 0 else min(n, left))

        def readinto(self, buffer: Any) -> Any:
            return super().readinto(memoryview(buffer)[: self._check()])

    def fail_open(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        fault = faults.get(str(path))
        if fault is None or "b" not in mode or isinstance(path, int):
            return opened(path, mode, *arguments, **options)
        if not fault.offset:
            raise OSError(fault.error, os.strerror(fault.error), path)
        file = Failing(path, "rb")
        file.offset, file.error = fault.offset, fault.error
        return file

    def fail_listing(path: Any = ".") -> Any:
        if fault := faults.get(os.path.normpath(str(path))):
            raise OSError(fault.error, os.strerror(fault.error), path)
        return listed(path)

    builtins.open, os.scandir = fail_open, fail_listing  # type: ignore[assignment]


def _kill_at(number: int) -> None:
    left = [number]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return call

    for name in _OPERATIONS:
        setattr(disk, name, counted(getattr(disk, name)))


def topics_of_texts(model: Path) -> list[list[str]]:
    """Return the topics above their thresholds of each text."""
    import textcat

    return [[tag.topic for tag in tags] for tags in textcat.load(model).tag(list(TEXTS))]


def model_with_the_same_tags(model: Path) -> Path:
    """Return another model that gives the same tags, beside a model."""
    import textcat

    tagger = textcat.load(model)
    named = replace(tagger, facts=replace(tagger.facts, corpus="another"))
    return textcat.save(named, model.with_name("other"))


@contextmanager
def history(
    model: Path,
    seed: int,
    output: OutputSettings | None = None,
    other: Path | None = None,
    kind: type[History] = History,
) -> Iterator[History]:
    """Yield a history, perhaps by two models in turns, and remove its files in the end."""
    one = kind(model, seed, output, other)
    try:
        yield one
    finally:
        one.close()


def trials(random: random.Random, seconds: float, part: str = "") -> Iterator[Trial]:
    """Yield a history after the other until the time is over."""
    from .commands import train_model

    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model"
        train_model(model)
        topics_of, other = topics_of_texts(model), model_with_the_same_tags(model)
        while time.monotonic() < end:
            seed = random.randrange(1 << 30)
            for name, second, kind in (
                ("a history of an archive", None, History),
                ("a history of an archive by two models", other, History),
                ("a history of news", None, NewsHistory),
                ("a history of news by two models", other, NewsHistory),
            ):
                with history(model, seed, other=second, kind=kind) as one:
                    wrong = one.play(8, topics_of)
                    detail = f"seed {seed}, after {'; '.join(one.log)}: {'; '.join(wrong)}"
                yield name, not wrong, detail
