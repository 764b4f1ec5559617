"""End a run early if it rejects too many documents, as when the archive is damaged or settings are wrong."""

import re
from typing import NamedTuple

from textcat.base.errors import TextcatError
from textcat.runs.results import BatchResult, Counts

# number of documents read before a percentage is checked, because the first ones may be broken by chance
_JUDGED = 1000


class RejectionLimit(NamedTuple):
    """The number or percentage of documents that a run may reject before it ends with an error."""

    most: float
    is_share: bool  # whether `most` is a percentage

    def __str__(self) -> str:
        return f"{self.most:g}%" if self.is_share else f"{self.most:.0f}"

    @classmethod
    def parse(cls, text: str) -> "RejectionLimit | None":
        """Parse a limit such as ``"500"`` or ``"2.5%"``; return None for an empty text.

        A TextcatError is raised if it is not a limit.
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
        """Raise a TextcatError if too many documents of a run were rejected because of an error.

        Parameters
        ----------
        counts : Counts
            Counts of the documents that this run has read.
        last : Rejection or str
            The last rejection, for the message; "" if there is none.
        """
        n, read = counts.faults, counts.records
        is_judged = not self.is_share or read >= _JUDGED
        if is_judged and n > (self.most / 100 * read if self.is_share else self.most):
            raise TextcatError(
                f"{f'{last} ' if last else ''}By now, {n:,} of {read:,} documents are rejected, more than "
                f"--max-rejected {self} allows: mend the inputs, or allow more, and give the same command again."
            )


def counts_to_judge(result: BatchResult) -> Counts:
    """Return the counts of a batch's documents by which a limit is checked, those that were left out included.

    Further documents that a rejected rest of a file seems to have, see `Rejection.n_further`, count as rejected.
    """
    counts, n_further = result.counts, sum(rejection.n_further for rejection in result.rejections)
    return Counts(counts.records + n_further, 0, counts.rejected + n_further, left_out=counts.left_out)
