"""How far a run has come, in bytes and words."""

from textcat.runs.progress import RunProgress, clock
from textcat.runs.results import Counts


def reached(**changed):
    of = RunProgress(Counts(200, 190, 10), 5_000_000, 20_000_000, 100, 2_000_000, 4.0, 300 << 20)
    return of._replace(**changed)


def test_how_far_a_run_is_is_told_by_bytes():
    assert (
        str(reached()) == "200 documents, 10 rejected, 25/s, 0.5 MB/s, 0:30 left, 300 MB of memory, 25% of 20 MB read"
    )
    assert str(reached(total=None)) == "200 documents, 10 rejected, 25/s, 0.5 MB/s, 300 MB of memory, 5.0 MB read"
    assert reached(n_bytes=0).seconds_left is None
    assert [clock(seconds) for seconds in (0, 59.6, 3725)] == ["0:00", "1:00", "1:02:05"]
