"""What a stretch of input came to, as counts that add up."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_MOST_REASONS = 100  # that are told apart: what a reason quotes may be anything
_OTHER = "other reasons"


@dataclass
class Counts:
    """How many documents there were, and what became of them.

    Parameters
    ----------
    records : int
        All that the input holds: whatever a reader gave, document or rejection.
    tagged : int
        Documents that were written.
    rejected : int
    untagged : int
        Tagged documents that score above the threshold of no topic.
    topics : Counter of str
        Documents above the threshold of each topic, whatever else is asked to be written.
    reasons : Counter of str
        Rejections, by reason without its numbers and quotations.
    """

    records: int = 0
    tagged: int = 0
    rejected: int = 0
    untagged: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add what another stretch came to."""
        self.records += other.records
        self.tagged += other.tagged
        self.rejected += other.rejected
        self.untagged += other.untagged
        self.topics.update(other.topics)
        for reason, n in other.reasons.items():
            known = reason in self.reasons or len(self.reasons) < _MOST_REASONS
            self.reasons[reason if known else _OTHER] += n

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        return {**vars(self), "topics": dict(self.topics), "reasons": dict(self.reasons)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Counts:
        """Return counts that `as_dict` gave."""
        counters = {name: Counter(values[name]) for name in ("topics", "reasons")}
        return cls(**{**values, **counters})


def kind(reason: str) -> str:
    """Return a reason without what differs from case to case: numbers and quotations.

    >>> kind("It is not utf-8 (byte 12).")
    'It is not utf-8 (byte …).'
    """
    return re.sub(r"(?<![\w-])\d+(?![\w-])|'[^']*'", "…", reason)
