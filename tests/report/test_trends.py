"""The page of trends: sound HTML that shows every figure, and shuts nobody out."""

import json

import pytest
from hostile_reports import HOSTILE

from textcat.report.trends import trends_page
from textcat.tagging.periods import UNDATED
from textcat.tagging.trends import TrendRow, Trends


def trends_of(names, periods=("2024-01", "2024-02", "2024-04", UNDATED), by="month"):
    rows = [
        TrendRow(f"t{j}", period, 1000, 0, 10 * j + i, (j + i + 1) / 100, (j + i) / 100, (j + i + 3) / 100)
        for j in range(len(names))
        for i, period in enumerate(periods)
    ]
    ids = [f"t{j}" for j in range(len(names))]
    return Trends(rows, by, "adaptive", "0123456789ab", dict(zip(ids, names, strict=True)), 4000, len(names))


@pytest.fixture
def opened(new_page, tmp_path):
    def open_trends(trends, **options):
        path = tmp_path / "trends.html"
        path.write_text(trends_page(trends, "Trends"), encoding="utf-8")
        return new_page(path.as_uri(), **options)

    return open_trends


def test_the_page_has_the_figures_as_they_are_and_stays_small():
    html5lib = pytest.importorskip("html5lib")
    trends = trends_of(HOSTILE)
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(trends_page(trends, "<b>"))
    data = json.loads(next(tree.iter("script")).text)
    assert [topic["name"] for topic in data["topics"]] == [*HOSTILE]
    assert data["topics"][1]["prevalence"] == [row.prevalence for row in trends.rows[4:8]]
    assert data["topics"][1]["tagged"] == [row.tagged / 1000 for row in trends.rows[4:8]]
    assert data["undated"] == [False, False, False, True]
    many = trends_page(trends_of([f"topic {j}" for j in range(3000)], [f"2024-{m:02}" for m in range(1, 13)]), "many")
    assert 200_000 < len(many.encode()) <= 300_000
    assert "most frequent ones" in many


def test_topics_are_searched_ordered_and_shown_in_full(opened):
    page = opened(trends_of([f"topic {j}" for j in range(30)]))
    figures = page.locator("#plots figure")
    assert figures.count() == 12
    page.click("#more button")
    assert figures.count() == 24
    page.select_option("#order", "largest rise")
    assert figures.first.locator("button").inner_text() == "topic 0"  # from 1 to 3 %
    page.fill("#filter", "TOPIC 29")
    assert figures.count() == 1
    figures.first.locator("button").press("Enter")
    assert page.inner_text("#one h3") == "topic 29"
    assert page.evaluate("document.activeElement.tagName") == "H3"
    rows = page.locator("#one tbody tr").all_inner_texts()
    assert rows[0].split() == ["2024-01", "1,000", "29.00%", "30.00%", "29.00%", "32.00%"]
    assert UNDATED in rows[3]
    label = figures.first.locator("svg").get_attribute("aria-label")
    assert "30.00% (29.00% to 32.00%) in 2024-01, 32.00% (31.00% to 34.00%) in 2024-04" in label


def test_no_text_runs_and_nobody_is_asked_for_anything(opened, new_page):
    page = opened(trends_of(HOSTILE))
    page.fill("#filter", "o")
    assert page.evaluate("window.hacked") is None
    assert len(new_page.asked) == 1
    assert page.query_selector("main b[onclick], img, [onload]") is None


@pytest.mark.parametrize(("scheme", "by"), [("light", "month"), ("dark", "desk")])
def test_axe_finds_nothing_that_shuts_anybody_out(opened, look, scheme, by):
    periods = ("2024-01", "2024-02", "2024-04", UNDATED) if by == "month" else ("home", "world")
    page = opened(trends_of([f"topic {j}" for j in range(5)], periods, by), color_scheme=scheme, bypass_csp=True)
    look(page)
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
