"""End a run early if it rejects too many documents, as when an archive is damaged or read by wrong settings."""

import re
from typing import NamedTuple

from textcat.base.errors import TextcatError
from textcat.runs.results import Counts

_JUDGED = 1000  # documents that are read before a share of them is judged: a few broken ones may come first


class RejectionLimit(NamedTuple):
    """Hold how many documents, or what percentage of those read, a run may reject before it ends."""

    most: float
    is_share: bool  # whether `most` is a percentage

    def __str__(self) -> str:
        return f"{self.most:g}%" if self.is_share else f"{self.most:.0f}"

    @classmethod
    def parse(cls, text: str) -> "RejectionLimit | None":
        """Return the limit that a text such as ``"500"`` or ``"2.5%"`` gives; None if it is empty.

        A TextcatError is raised if it gives none.
        """
        if not text:
            return None
        is_share = text.endswith("%")
        if not re.fullmatch(r"\d+(\.\d+)?%|\d+", text, re.ASCII) or (is_share and float(text[:-1]) > 100):
            raise TextcatError(
                f"{text!r} is no limit of rejected documents: give a number, or a percentage of those read such as 5%."
            )
        return cls(float(text.rstrip("%")), is_share)

    def check(self, counts: Counts, last: object = "") -> None:
        """Raise a TextcatError if the documents of a run that were rejected because of an error are too many.

        Parameters
        ----------
        counts : Counts
            Of the documents that this run has read.
        last : Rejection or str
            The last rejection, for the message; "": none.
        """
        n, read = counts.faults, counts.records
        is_judged = not self.is_share or read >= _JUDGED
        if is_judged and n > (self.most / 100 * read if self.is_share else self.most):
            raise TextcatError(
                f"{f'{last} ' if last else ''}By now, {n:,} of {read:,} documents are rejected, more than "
                f"--max-rejected {self} allows: mend the inputs, or allow more, and give the same command again."
            )
