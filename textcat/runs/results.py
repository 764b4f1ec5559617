"""Hold the result of a batch: encoded rows, rejections, and counts."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from platform import node
from typing import Any

import orjson

from textcat.base.surrogates import escape_undecodable
from textcat.reading import Rejection

_OF_MONTHS = ("months", "months_untagged", "months_unknown", "months_topics")
_MAX_REASONS = 100  # counted separately, because a reason may quote any text, so there may be one per document


@dataclass
class Counts:
    """Counts of documents that were read, tagged and rejected, and of documents by topic and by reason."""

    records: int = 0  # documents in the input: tagged + rejected
    tagged: int = 0  # documents that were written
    rejected: int = 0
    untagged: int = 0  # documents without a topic, by thresholds and rules
    unknown: int = 0  # documents without a term of the model
    left_out: int = 0  # records rejected on purpose, such as a request in a web archive, or news under embargo
    topics: Counter[str] = field(default_factory=Counter)  # documents with each topic, by thresholds and rules
    reasons: Counter[str] = field(default_factory=Counter)  # rejections by kind of reason, see `kind_of_reason`
    inputs: Counter[str] = field(default_factory=Counter)  # documents that were written, by input
    # Rows do not say these three, so they count all documents read, those of files that have changed since included:
    fields: Counter[str] = field(default_factory=Counter)  # documents with each of the fields that records keep
    languages: Counter[str] = field(default_factory=Counter)  # documents by language, if languages are identified
    rules: Counter[str] = field(default_factory=Counter)  # documents that each rule applied to, also if that is none
    # By the month of the date, such as "1990-12", or "" if there is none; all add up to `tagged`:
    months: Counter[str] = field(default_factory=Counter)  # documents that were written
    months_untagged: Counter[str] = field(default_factory=Counter)  # documents of the month without a topic
    months_unknown: Counter[str] = field(default_factory=Counter)  # documents of the month without a known term
    # documents of the month with a topic, by keys such as "1990-12 wheat"
    months_topics: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> int:
        """The number of documents that were rejected because of an error, not on purpose."""
        return self.rejected - self.left_out

    def add(self, other: "Counts", *, by_month: bool = False) -> None:
        """Add other counts to these; add counts by month only if `by_month` is set, because they may be many."""
        for name, value in vars(other).items():
            if not isinstance(value, Counter):
                setattr(self, name, getattr(self, name) + value)
            elif name != "reasons" and (by_month or name not in _OF_MONTHS):
                getattr(self, name).update(value)
        for reason, n in other.reasons.items():
            is_counted = reason in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[reason if is_counted else "other reasons"] += n

    def add_rejections(self, rejections: Sequence[Rejection]) -> None:
        """Count rejections: in `rejected` and `left_out`, and by reason in `reasons`."""
        self.rejected += len(rejections)
        self.left_out += sum(not rejection.is_fault for rejection in rejections)
        self.reasons.update(kind_of_reason(rejection.reason) for rejection in rejections)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as a dict of JSON values."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counts":
        """Return the counts that `as_dict` has converted to a dict."""
        return cls(**values | {name: Counter(value) for name, value in values.items() if isinstance(value, dict)})


def kind_of_reason(reason: str) -> str:
    """Return the reason of a rejection with "…" in place of numbers and quotations, to group similar reasons."""
    return re.sub(r"(?<![\w-])\d+(?:,\d{3})*(?![\w-])|'[^']*'", "…", reason)


@dataclass
class BatchResult:
    """The result of a batch of records: encoded rows of its documents, rejections, and counts."""

    rows: list[bytes]  # encoded rows of the documents, in the order of the input
    rejections: list[Rejection]
    counts: Counts
    process: str  # name of the process that worked on the batch, see `process_name`
    memory: int = 0  # peak memory of that process in bytes; 0 if unknown
    versions: bytes = b""  # versions of news items, from `encode_versions`
    #: The topics that the summary counts for each row, if they differ from the topics in the rows: lines of JSON, see
    #: `encode_counted`.
    counted: bytes = b""
    score_bins: bytes = b""  # frames with the bins of each row's scores, which are appended to the shard's file of bins


def process_name() -> str:
    """Return the machine's name and this process's number, which identify the process in a cluster."""
    return f"{node()}:{os.getpid()}"


def encode_counted(source: str, position: int, topics: Sequence[str]) -> bytes:
    """Return the topics that the summary counts for a row, with the row's source and position, as a line of JSON."""
    return orjson.dumps([escape_undecodable(source), position, topics], option=orjson.OPT_APPEND_NEWLINE)


def encode_rejection(rejection: Rejection) -> bytes:
    """Return a rejection as a line of JSON: source, position, reason, and offset and length of its bytes.

    An item that was left out on purpose also has ``"left_out": true``; a source that could not be opened, listed or
    examined has ``"unread": true``.
    """
    line = rejection._asdict()
    del line["due"], line["kind"], line["n_further"], line["needs"]
    line |= {} if rejection.is_fault else {"left_out": True}
    line |= {"unread": True} if rejection.is_of_all else {}
    line |= {"source": escape_undecodable(rejection.source), "reason": escape_undecodable(rejection.reason)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
