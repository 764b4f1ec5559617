"""Tell at the end of a run what was not run and why; where CI is set, let nothing be skipped that could be installed.

A reason may begin with what cannot be installed: "system: ", "data: ", "time: ". Any other skip is a failure where CI
is set.
"""

import os
import shutil
from collections import Counter
from enum import Enum

import pytest

LEFT_OUT = "not run"


class Absence(Enum):
    """Why a test, or a part of one, is not run."""

    SYSTEM = "system"  # another operating system, more processors, fewer rights
    DATA = "data"  # corpora and data sets, which tests never download
    TIME = "time"  # what takes long is run where TEXTCAT_LONG is set
    INSTALLABLE = "installable"  # all others


def _absence_and_reason(text):
    """Return what a reason begins with, and the rest of it."""
    kind, colon, rest = text.partition(": ")
    known = colon and kind in [absence.value for absence in Absence]
    return (Absence(kind), rest) if known else (Absence.INSTALLABLE, text)


def _reason(report):
    return report.longrepr[2].removeprefix("Skipped: ")


def _failed_if_installable(report):
    in_ci = (os.environ.get("CI") or "false") != "false"
    if in_ci and report.skipped and not hasattr(report, "wasxfail"):
        absence, reason = _absence_and_reason(_reason(report))
        if absence is Absence.INSTALLABLE:
            report.outcome, report.longrepr = "failed", f"{reason}: where CI is set, it must be installed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _failed_if_installable((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _failed_if_installable((yield))


@pytest.fixture
def leave_out(record_property):
    """Tell the table of what was not run that a part of this test was not, by a reason as of a skip."""
    return lambda reason: record_property(LEFT_OUT, reason)


def _reasons(stats):
    for report in stats.get("skipped", ()):
        whole_file = isinstance(report, pytest.CollectReport)
        yield _reason(report) + f" (all of {report.nodeid})" * whole_file
    for report in (report for reports in stats.values() for report in reports):
        if getattr(report, "when", None) == "call":
            yield from (reason for name, reason in report.user_properties if name == LEFT_OUT)


def pytest_terminal_summary(terminalreporter):
    """Write how many tests were not run for each reason, before pytest's closing line."""
    reasons = Counter(map(_absence_and_reason, _reasons(terminalreporter.stats)))
    lines = [
        f"{n:5}  {absence.value:11}  {reason}"
        for (absence, reason), n in sorted(reasons.items(), key=lambda item: (item[0][0].value, -item[1], item[0][1]))
    ]
    if "TEXTCAT_LONG" not in os.environ:
        lines.append(f"{'':5}  {'time':11}  TEXTCAT_LONG is not set: some tests look at a part of their data")
    terminalreporter.section("not run, and why")
    width = max(120, shutil.get_terminal_size().columns)
    for line in lines:
        terminalreporter.line(line if len(line) <= width else f"{line[: width - 1]}…")
