"""The tagging of an archive of generated articles: speed beside peers, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import archive_peers
from harness import Cost, Row, Work, cost, costs, short

DOCUMENTS, QUICK = 1_000_000, 3_000
SLOWER = 5  # of how many parts of the archive the peers get one


def speed(work: Work) -> list[Row]:
    """Compare with what one would write with scikit-learn or fastText."""
    n = work.documents(DOCUMENTS, QUICK)
    few = n // SLOWER
    tag = work.tag(work.model("default"), work.archive(n), work.path("out", "default"))
    commands = {f"textcat, {work.jobs} processes": tag}
    counts = dict.fromkeys(commands, n)
    peers = archive_peers.commands(work, work.archive(few))
    counts |= dict.fromkeys(peers, few)
    taken = costs(commands | peers, work.rounds)
    ours = next(iter(taken))
    return [
        {
            "what": name,
            "documents": f"{counts[name]:,}",
            "seconds": short(median(one.seconds for one in its)),
            "documents/s": f"{counts[name] / median(one.seconds for one in its):,.0f}",
            "µs of processor time per document": short(1e6 * median(one.cpu_seconds for one in its) / counts[name]),
            "times slower than the first": short(ratio(its, taken[ours]) * n / counts[name]),
            **_memory(its),
        }
        for name, its in taken.items()
    ]


def ratio(mine: Sequence[Cost], others: Sequence[Cost]) -> float:
    """Return how many times as long as others something took: the median over rounds."""
    return median(one.seconds / other.seconds for one, other in zip(mine, others, strict=True))


def _memory(taken: Iterable[Cost]) -> dict[str, str]:
    """Write the peak of all processes of a run together: shared memory counted for each process, and once."""
    taken = [*taken]
    return {
        "MB, added up": short(max(one.rss_bytes for one in taken) / 1e6),
        "MB, shared once": short(max(one.pss_bytes for one in taken) / 1e6),
    }


def memory(work: Work) -> list[Row]:
    """Tag archives of a tenth, one and two times as many articles."""
    rows, n = [], work.documents(DOCUMENTS, QUICK)
    for documents in (n // 10, n, 2 * n):
        taken = cost(work.tag(work.model("default"), work.archive(documents), work.path("out", "memory")))
        speed = {"seconds": short(taken.seconds), "documents/s": f"{documents / taken.seconds:,.0f}"}
        rows.append({"documents": f"{documents:,}", **speed, **_memory([taken])})
    return rows
