"""The main text of pages: what surrounds it is left out, and pages without one are read as they are shown."""

import sys

import lxml.html
import pytest
import trafilatura
from cases import every
from read_sources import read
from web_records import MORE, PAGE, TEXT

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, find_sources
from textcat.reading.formats import main_text
from textcat.reading.formats.html import extract_page, extract_text


def test_a_page_is_read_without_what_surrounds_its_main_text(folder):
    (folder / "a.html").write_text(PAGE)
    (shown,), (main,) = read("a.html"), read("a.html", main_text=True)
    assert "Sport" in shown.zones["body"]
    assert main.zones["title"] == "Tin rose"
    assert TEXT in main.zones["body"]
    assert MORE in main.zones["body"]
    assert "Sport" not in main.zones["body"]
    assert (main.id, main.date) == (shown.id, shown.date) == ("a.html", "2024-04-30")


@every(
    "there",
    [
        '<title>Tin fell</title><meta itemprop="datePublished" content="2024-05-01">',
        "<script>'<title>Tin fell</title></head><body>'</script>",
        "<svg><title>Arrow</title></svg><title></title>",
        "<!-- <body > --><meta content='2024-05-01'>",
    ],
)
@every("place", ["<title>", "</head>", "</body>"])
def test_title_date_and_language_are_those_of_the_page_as_it_is_shown(there, place):
    html = PAGE.replace(place, there + place)
    shown, main = (extract_text(html, InputSettings(main_text=asked)) for asked in (False, True))
    assert main == shown._replace(body=main.body)
    assert MORE in main.body


JSON = f'<script type="application/ld+json">{{"@type": "NewsArticle", "articleBody": "{TEXT} {MORE}"}}</script>'


@every(
    "html",
    [
        PAGE,
        PAGE.replace("<p>", "<p><style>p {color: red}</style>a<script>b()</script>c<svg><text>d</text></svg>e "),
        f"<html><head>{JSON}</head><body><div id=app></div></body></html>",
        f'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">{PAGE[15:]}',
        f'<?xml version="1.0" encoding="latin-1"?>\n{PAGE[15:]}',
        PAGE.replace(' lang="en-GB">', ' lang="en-GB" />\n'),
        PAGE.replace("Tin", "T\x01i\ufffen\uffff"),
        f"<p>{TEXT}</p><p>{MORE}</p>",
        f"<title>Tin</title><p>{TEXT}</p><p>{MORE}</p>",
    ],
)
def test_the_main_text_is_what_the_extractor_finds_in_the_page_as_it_is_written(html):
    found = trafilatura.extract(html, fast=True, include_comments=False)
    assert extract_text(html, InputSettings(main_text=True)).body == (found or extract_page(html).body)


def test_it_may_be_asked_for_of_some_files_only(folder):
    for name in ("a.html", "b.html"):
        (folder / name).write_text(PAGE)
    first, second = read("a.html", "b.html", for_files=(("b.*", (("main_text", True),)),))
    assert ["Sport" in one.zones["body"] for one in (first, second)] == [True, False]


@pytest.mark.parametrize(
    "html", ["<p>Tin", "<html><body><a href=x>Tin</a></body>", "<title>Tin</title>", "", "<div>" * 5000]
)
def test_a_page_without_a_main_text_is_read_as_it_is_shown(folder, html):
    (folder / "a.html").write_text(html)
    assert read("a.html", main_text=True) == read("a.html")


def test_a_very_long_page_is_read_as_it_is_shown(folder):
    (folder / "a.html").write_text(PAGE + "<p>" + "tin " * 600_000)
    assert read("a.html", main_text=True) == read("a.html")


def test_whatever_the_extractor_raises_the_page_is_read_as_it_is_shown(folder, monkeypatch):
    def fail(*_, **__):
        raise RecursionError

    monkeypatch.setattr(trafilatura, "bare_extraction", fail)
    (folder / "a.html").write_text(PAGE)
    assert read("a.html", main_text=True) == read("a.html")


def test_without_the_package_one_sentence_says_what_to_install(folder, monkeypatch):
    (folder / "a.html").write_text(PAGE)
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    monkeypatch.setattr(main_text, "find_spec", lambda name: None)
    with pytest.raises(TextcatError, match=r"--main-text needs .* run `pip install 'textcat-margin\[web\]'`"):
        find_sources(["a.html"], InputSettings(main_text=True))
    assert len(read("a.html")) == 1


def test_no_tree_is_made_of_a_long_page_with_a_tag_of_many_attributes(monkeypatch):
    # A tag of 30,000 attributes would take ten seconds.
    many = " ".join(f"a{i}='>'" for i in range(30_000))
    page = PAGE.replace("<body>", f"<body><p {many}>Ore fell.</p>")
    monkeypatch.setattr(lxml.html, "fromstring", lambda *_, **__: pytest.fail("a tree is made"))
    assert main_text.page_tree(page) is None
    shown, main = (extract_text(page, InputSettings(main_text=asked)) for asked in (False, True))
    assert main == shown
    assert "Ore fell." in shown.body
