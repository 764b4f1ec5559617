"""Compare a served model's tags with those of a shadow model, in a separate process at idle priority.

Clients do not notice the shadow. Server processes send it batches of documents with the tags that clients got; batches
that it has no time for, or that exceed the size of a message, are left out and counted.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from textcat.base.disk import raise_write_errors, write_atomically
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Document
from textcat.model import storage
from textcat.model.manifest import model_id
from textcat.serving.http.log import Log

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger
    from textcat.serving.work import Answer, Choice

COUNTS = ("documents", "differing_documents", "tags_only_served", "tags_only_shadow", "failed_documents")
_SAMPLE, _CHARACTERS = 200, 2000  # maximum number of differing documents in the sample, and maximum characters of each
_SECONDS = 1.0  # seconds between checks whether the server still runs, and minimum seconds between writes of the sample
_KEYS = ("text", "served", "shadow")  # of a document in the sample
_MOST_BYTES = 1 << 22  # maximum bytes of a message


class Shadow:
    """Compare the tags of a shadow model with those of the served model `name`.

    Parameters
    ----------
    name : str
        The name of the served model.
    served : Tagger
    folder : Path
        The folder of the shadow. It is loaded once, even if it is replaced later.
    sample : Path, optional
        File for documents whose tags differ: a random sample of up to 200, as JSON Lines. A former sample is kept, as
        ``FILE.before``.

    Attributes
    ----------
    on_left_out : function of int
        Called in a process of the server with the number of documents that are left out.
    warning : str
        A sentence if the topics differ; "" if they are the same.
    """

    def __init__(self, name: str, served: Tagger, folder: Path, sample: Path | None = None) -> None:
        if not hasattr(os, "fork"):
            raise TextcatError("This system cannot run a shadow: leave out --shadow.")
        self.name, self._sample = name, sample
        self._tagger, digest = storage.load_versioned(folder, prepare=False)
        self.version = model_id(digest)
        self._shared = frozenset(served.topics) & frozenset(self._tagger.topics)
        if not self._shared:
            raise TextcatError(
                f"The shadow {folder} has none of the {len(served.topics):,} topics of {name!r}: give a model of the "
                "same topics."
            )
        if sample is not None:
            _set_aside(sample)
        other = [len(tagger.topics) - len(self._shared) for tagger in (served, self._tagger)]
        self.warning = ""
        if any(other):
            self.warning = (
                f"the shadow lacks {other[0]:,} topics of {name} and has {other[1]:,} others: tags of the "
                f"{len(self._shared):,} topics that both have are compared"
            )
        # Memory shared by the processes; only the shadow's own process writes to it.
        self._counts = np.frombuffer(mmap.mmap(-1, 8 * len(COUNTS)), np.int64)
        self._begun = np.frombuffer(mmap.mmap(-1, 8), np.int64)  # number of documents that it is tagging
        self._column_of = {topic: column for column, topic in enumerate(sorted(self._shared))}
        n = len(self._column_of)
        self._by_topic = np.frombuffer(mmap.mmap(-1, 8 * 2 * n), np.int64).reshape(2, n)
        self._there, self._here = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._here.setblocking(False)
        self.on_left_out: Callable[[int], object] = lambda n: None

    def counts(self) -> dict[str, int]:
        """Return the present counts by their names in `COUNTS`."""
        return dict(zip(COUNTS, self._counts.tolist(), strict=True))

    def by_topic(self) -> dict[str, tuple[int, int]]:
        """Return for each topic of both models how often only the served one gave it, and how often only the shadow."""
        return dict(zip(self._column_of, zip(*self._by_topic.tolist(), strict=True), strict=True))

    def offer(self, name: str, documents: Sequence[Any], choice: Choice, answers: Sequence[Answer]) -> None:
        """Send documents and the tags that clients got from a model to the shadow's process, unless it is busy."""
        if name != self.name or choice.all_topics:  # if all are asked for, nothing is chosen
            return
        texts = [
            document
            if isinstance(document, str)
            else {name: getattr(document, name) for name in ("zones", "date", "fields", "language")}
            for document in documents
        ]
        given = [[tag["topic"] for tag in answer.tags] for answer in answers]
        try:
            self._here.send(orjson.dumps([texts, [choice.top, choice.min_probability], given]))
        except (OSError, TypeError):  # it is busy or has ended, or this is too large, or no text of JSON
            self.on_left_out(len(documents))

    def run(self, *, replaces: bool = False) -> None:
        """Tag and compare the documents that arrive, until SIGTERM, or until the parent process has ended.

        If this process `replaces` one that died, the sample goes on, and the documents that the other one was tagging
        count as failed.
        """
        parent = os.getppid()
        ended: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.umask(0o077)  # the sample has texts: it is for this user alone
        _be_idle()
        self._there.settimeout(_SECONDS)
        differing, written = Reservoir(_SAMPLE), time.monotonic()
        if replaces:
            n_failed, self._begun[0] = int(self._begun[0]), 0  # if this process dies, too, they are not counted again
            self._counts[COUNTS.index("failed_documents")] += n_failed
            Log().write("shadow_replaced", model=self.name, shadow=self.version, failed_documents=n_failed)
            if self._sample:
                differing.resume(self._sample, self.counts()["differing_documents"])
        while not ended and os.getppid() == parent:
            with suppress(TimeoutError):
                self._compare(self._there.recv(_MOST_BYTES), differing)
            if self._sample and differing.has_changed and time.monotonic() > written + _SECONDS:
                differing.write(self._sample)
                written = time.monotonic()
        if self._sample and differing.has_changed:
            differing.write(self._sample)

    def _compare(self, message: bytes, differing: Reservoir) -> None:
        texts, (top, least), given = orjson.loads(message)
        self._begun[0] = len(texts)
        for sent, topics in zip(texts, given, strict=True):
            document = sent if isinstance(sent, str) else Document("", **sent)
            try:
                (tags,) = self._tagger.tag([document], top=top, min_probability=least)
            except Exception:  # such as for probabilities, which the shadow may not have
                self._counts[COUNTS.index("failed_documents")] += 1
            else:
                self._count(sent, topics, [tag.topic for tag in tags], differing)
            self._begun[0] -= 1

    def _count(self, sent: Any, of_served: Sequence[str], of_shadow: Sequence[str], differing: Reservoir) -> None:
        served, shadow = (self._shared.intersection(topics) for topics in (of_served, of_shadow))
        self._counts[:4] += (1, served != shadow, len(served - shadow), len(shadow - served))
        for side, topics in enumerate((served - shadow, shadow - served)):
            self._by_topic[side, [self._column_of[topic] for topic in topics]] += 1
        if served != shadow:
            text = _beginning(sent if isinstance(sent, str) else sent["zones"])
            differing.add(dict(zip(_KEYS, (text, sorted(served), sorted(shadow)), strict=True)))


class Reservoir:
    """Keep a random sample of up to n of all lines that are added (Vitter's algorithm R, 1985)."""

    def __init__(self, n: int) -> None:
        self._n, self._seen, self._random, self.has_changed = n, 0, random.Random(0), False
        self.lines: list[dict[str, Any]] = []

    def add(self, line: dict[str, Any]) -> None:
        """Add a line; if the sample is full, chance decides whether the line takes the place of another."""
        self._seen += 1
        place = self._random.randrange(self._seen) if self._seen > self._n else len(self.lines)
        if place < self._n:
            self.lines[place : place + 1] = [line]
            self.has_changed = True

    def resume(self, path: Path, n: int) -> None:
        """Go on with the lines of a file that were written when `n` lines had been added, if there are any."""
        with suppress(OSError, ValueError):
            self.lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        self._seen = n

    def write(self, path: Path) -> None:
        """Write the lines to a file as JSON Lines, in place of what it has."""
        with suppress(OSError, TextcatError):  # a full disk does not end the comparison
            write_atomically(path, [orjson.dumps(line).decode() + "\n" for line in self.lines])
            self.has_changed = False


def _set_aside(sample: Path) -> None:
    """Rename a former sample; raise TextcatError if the file has something else."""
    try:
        lines = [orjson.loads(line) for line in sample.read_bytes().splitlines()]
        is_sample = all(isinstance(line, dict) and {*line} == {*_KEYS} for line in lines)
    except FileNotFoundError:
        return
    except ValueError:
        is_sample = False
    except OSError as error:
        raise TextcatError(f"Cannot write the sample to {sample} ({error.strerror}): name another file.") from error
    if not is_sample:
        raise TextcatError(f"{sample} is no sample of a shadow, and would be replaced: name another file.")
    with raise_write_errors(sample.parent, "name another file"):
        os.replace(sample, f"{sample}.before")


def _beginning(text: str | dict[str, str]) -> str | dict[str, str]:
    """Return the first characters of a text, or of each zone."""
    if isinstance(text, str):
        return text[:_CHARACTERS]
    return {zone: content[:_CHARACTERS] for zone, content in text.items()}


def _be_idle() -> None:
    """Give this process the lowest priority, so that it runs only when no other process wants to."""
    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
