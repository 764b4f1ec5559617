"""The site of the documentation opens from disk, and shuts nobody out; `scripts/site --check` builds and tests it."""

import os
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

import textcat

try:
    import tomllib
except ImportError:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LONGEST_DESCRIPTION = 160
QUESTIONS = tomllib.loads(Path(__file__).with_name("site_questions.toml").read_text(encoding="utf-8"))["questions"]
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
DESK = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
FOUND = """() => /found|did not match/i.test(document.querySelector(".search-summary")?.textContent)"""
RESULTS = """() => [...document.querySelectorAll("ul.search > li > a")].map(link => link.getAttribute("href"))"""


@pytest.fixture(scope="session")
def site():
    """The folder of the site, which TEXTCAT_SITE names."""
    if "TEXTCAT_SITE" not in os.environ:
        pytest.skip("step: scripts/site --check builds the site, which executes its notebooks, and looks at its pages")
    return Path(os.environ["TEXTCAT_SITE"]).resolve()


class _Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors, self.described = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and "canonical" not in found.get("rel", ""):
            self.loaded.append(found["href"])
        elif tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        elif tag == "meta" and found.get("name") == "description":
            self.described.append(found["content"])


@pytest.fixture(scope="session")
def pages(site):
    """The pages of the site, parsed."""
    return {path: _Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}


def test_every_source_is_a_page(site, pages):
    sources = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in ROOT.glob("docs/**/*.md")]
    assert sources
    assert {site / source for source in sources} <= set(pages)


def test_links_lead_to_pages_and_anchors_that_there_are(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in anchors):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_no_page_loads_anything_from_elsewhere(pages):
    assert not [(path.name, link) for path, page in pages.items() for link in page.loaded if urlsplit(link).netloc]


def test_every_page_has_one_description(pages):
    for path, page in pages.items():
        assert len(page.described) == 1, path
        assert 20 <= len(page.described[0]) <= LONGEST_DESCRIPTION, path


def test_the_reference_has_every_public_name(pages):
    public = {f"textcat.{name}" for name in textcat.__all__} - {"textcat.rules"}
    for room in ROOT.glob("textcat/*/**/__init__.py"):
        package = ".".join(room.parent.relative_to(ROOT).parts)
        if package not in ("textcat.cli", "textcat.margin"):
            public |= {f"{package}.{name}" for name in getattr(import_module(package), "__all__", ())}
    anchors = set().union(*(page.anchors for path, page in pages.items() if path.parent.name == "python"))
    known = {f"textcat.{name}" for name in textcat.__all__}
    absent = {name for name in public - anchors if f"textcat.{name.rpartition('.')[2]}" not in known & anchors}
    assert not absent
    rules = {f"textcat.margin.rules.{name}" for name in import_module("textcat.margin.rules").RULES}
    assert rules <= anchors


@pytest.mark.parametrize("view", [DESK, PHONE], ids=["on a desk in light", "on a phone in dark"])
def test_pages_shut_nobody_out(pages, new_page, look, view):
    """Each page is looked at in one of the views; with TEXTCAT_LONG in both."""
    every_other = [*pages][[DESK, PHONE].index(view) :: 2]
    page = new_page("about:blank", **view)
    for path in pages if "TEXTCAT_LONG" in os.environ else every_other:
        page.goto(path.as_uri())
        # What axe would load again, browsers keep from pages on disk.
        look(page, path.name, preload=False)


def test_the_first_key_leads_past_the_menu(site, new_page):
    page = new_page((site / "index.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#furo-main-content"


def test_the_search_finds_the_answers_from_disk(site, new_page):
    assert len(QUESTIONS) == 50
    assert not [name for names in QUESTIONS.values() for name in names if not (ROOT / f"docs/{name}.md").exists()]
    page, missed = new_page((site / "search.html").as_uri()), []
    for question, answers in QUESTIONS.items():
        page.goto(f"{(site / 'search.html').as_uri()}?q={quote(question)}")
        page.wait_for_function(FOUND)
        found = [link.partition(".html")[0] for link in page.evaluate(RESULTS)]
        if not set([*dict.fromkeys(found)][:5]) & set(answers):
            missed.append(question)
    assert len(missed) <= 5, missed


@pytest.mark.parametrize("question", ["textcat evaluate", "tag", "corpora fetch"])
def test_the_search_for_a_command_leads_to_its_section(site, new_page, question):
    page = new_page(f"{(site / 'search.html').as_uri()}?q={quote(question)}")
    page.wait_for_function(FOUND)
    section = f"reference/cli.html#textcat-{question.removeprefix('textcat ').replace(' ', '-')}"
    assert section in page.evaluate(RESULTS)[:2]
