"""Draw prevalences of topics by period as one HTML page, with a curve and its interval band for each topic."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from textcat.base.markup import html_text
from textcat.report.figures import rounded_values
from textcat.report.page import report_page, scrolled_table
from textcat.tagging.periods import NO_VALUE, PERIODS, UNDATED
from textcat.tagging.trends import TrendRow, Trends

_MOST_BYTES = 230_000  # of the topics' numbers: with all else, the page stays below 300 kB
_IN_TABLE = 10  # topics
_DIGITS = 4


def trends_page(trends: Trends, title: str) -> str:
    """Return a page with the prevalence of each topic by period, its 95 % interval, and the share of tagged documents.

    It shows the most frequent topics, as many as fit into 300 kB.
    """
    of_topics = [[*rows] for _, rows in groupby(trends.rows, lambda row: row.topic)]
    periods = [row.period for row in of_topics[0]]
    topics: list[dict[str, Any]] = []
    size = 0
    for rows in of_topics:
        topics.append(_topic(rows, trends.names.get(rows[0].topic, rows[0].topic)))
        size += len(json.dumps(topics[-1]))
        if size > _MOST_BYTES:
            topics.pop()
            break
    data = {
        "periods": periods,
        "documents": [row.documents for row in of_topics[0]],
        "undated": [period in (UNDATED, NO_VALUE) for period in periods],
        "dated": trends.by in PERIODS,
        "topics": topics,
    }
    sections = [
        ("about", "About", f"<p>{html_text(_about(trends, len(topics)))}</p>"),
        ("curves", "Topics", _TOOLS + '<div id="plots" class="plots"></div><p class="tools" id="more"></p>'),
        ("topic", "One topic", '<div id="one"></div>'),
        ("first", "The most frequent topics", _table(of_topics[:_IN_TABLE], trends.names, periods)),
    ]
    return report_page(title, sections, data, "trends")


_TOOLS = (
    '<p class="tools"><label>Show topics whose name has <input type="search" id="filter"></label> '
    '<label>Order <select id="order"></select></label> <span id="shown" aria-live="polite"></span></p>'
)


def _topic(rows: Sequence[TrendRow], name: str) -> dict[str, Any]:
    shares = {
        key: rounded_values([getattr(row, key) for row in rows], _DIGITS) for key in ("prevalence", "low", "high")
    }
    tagged = rounded_values([row.tagged / row.documents if row.documents else 0 for row in rows], _DIGITS)
    return {"name": name, **shares, "tagged": tagged}


def _about(trends: Trends, n_shown: int) -> str:
    by = f"by {trends.by}" if trends.by in PERIODS else f"by the field {trends.by}"
    judged = f" and the topics of {trends.judged:,} documents that people have judged" if trends.judged else ""
    lines = "dotted lines" if trends.by in PERIODS else "grey strokes"
    rest = f" The page shows the {n_shown:,} most frequent ones." if n_shown < trends.topics else ""
    return (
        f"The prevalence of {trends.topics:,} topics among {trends.documents:,} documents {by}, estimated from the "
        f"scores of the model {trends.model}{judged} (estimator: {trends.estimator}). Bands are intervals that contain "
        f"the true share with a confidence of 95 %; {lines} are the shares of documents that got the topic as a "
        f"tag.{rest}"
    )


def _table(of_topics: Sequence[Sequence[TrendRow]], names: dict[str, str], periods: Sequence[str]) -> str:
    cells = [
        (names.get(rows[0].topic, rows[0].topic), *(f"{row.prevalence:.2%}" for row in rows)) for rows in of_topics
    ]
    return scrolled_table("table", "Estimated prevalence", ("Topic", *periods), cells)
