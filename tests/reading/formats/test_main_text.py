"""The main text of pages: what surrounds it is left out, and pages without one are read as they are shown."""

import sys

import pytest
import trafilatura
from read_sources import read
from web_records import MORE, PAGE, TEXT

from textcat.errors import TextcatError
from textcat.reading import InputSettings, find_sources
from textcat.reading.formats import main_text


def test_a_page_is_read_without_what_surrounds_its_main_text(folder):
    (folder / "a.html").write_text(PAGE)
    (shown,), (main,) = read("a.html"), read("a.html", main_text=True)
    assert "Sport" in shown.zones["body"]
    assert main.zones["title"] == "Tin rose"
    assert TEXT in main.zones["body"]
    assert MORE in main.zones["body"]
    assert "Sport" not in main.zones["body"]
    assert (main.id, main.date) == (shown.id, shown.date) == ("a.html", "2024-04-30")


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
