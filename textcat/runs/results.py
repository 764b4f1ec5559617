"""The results of a batch of input: encoded rows, rejections, and counts that can be added."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from platform import node
from typing import Any

import orjson

from textcat.reading import Rejection
from textcat.surrogates import escape_undecodable

_MAX_REASONS = 100  # that are counted each by itself: what a reason quotes may be anything


@dataclass
class Counts:
    """Numbers of documents: read, tagged, rejected, and with each topic."""

    records: int = 0  # all that the input holds, document or rejection
    tagged: int = 0  # documents that were written
    rejected: int = 0
    untagged: int = 0  # tagged documents that score above the threshold of no topic
    topics: Counter[str] = field(default_factory=Counter)  # documents above each threshold, whatever is written
    reasons: Counter[str] = field(default_factory=Counter)  # of rejections, without numbers and quotations

    def add(self, other: "Counts") -> None:
        """Add the counts of another stretch of the input."""
        for name in ("records", "tagged", "rejected", "untagged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.topics.update(other.topics)
        for reason, n in other.reasons.items():
            is_counted = reason in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[reason if is_counted else "other reasons"] += n

    def add_rejections(self, rejections: Sequence[Rejection]) -> None:
        """Add rejections, and why they were rejected."""
        self.rejected += len(rejections)
        self.reasons.update(kind_of_reason(rejection.reason) for rejection in rejections)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as a dict of JSON values."""
        return {**vars(self), "topics": dict(self.topics), "reasons": dict(self.reasons)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counts":
        """Return the counts of a dict that `as_dict` returned."""
        return cls(**values | {name: Counter(values[name]) for name in ("topics", "reasons")})


def kind_of_reason(reason: str) -> str:
    """Return a reason without numbers and quotations, which differ from case to case: ``It is not utf-8 (byte …).``."""
    return re.sub(r"(?<![\w-])\d+(?![\w-])|'[^']*'", "…", reason)


@dataclass
class BatchResult:
    """The results of a batch."""

    rows: list[bytes]  # as an encoder returns them, in the order of the input
    rejections: list[Rejection]
    counts: Counts
    process: str  # that did it, see `process_name`
    memory: int = 0  # the most that process has held so far, in bytes; 0 where the system does not tell


def process_name() -> str:
    """Return a name of this process that is unique among all machines."""
    return f"{node()}:{os.getpid()}"


def encode_rejection(rejection: Rejection) -> bytes:
    """Return the line of a rejection: source, position, reason, and the place of its bytes."""
    line = rejection._asdict()
    del line["kind"]
    line |= {"source": escape_undecodable(rejection.source), "reason": escape_undecodable(rejection.reason)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
