"""Where tests find real data: the folder named by TEXTCAT_CORPORA, never a download."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# These machines are shared: an example that once takes long is no failure.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


def pytest_make_parametrize_id(val, argname):
    """Name no bytes: packed ones hold the time, and a test must have the same name in every process that runs tests."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the long tests: at the end, no process that runs tests is to wait for another one's."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _corpus_file(name: str) -> Path:
    folder = os.environ.get("TEXTCAT_CORPORA")
    if not folder:
        pytest.skip(f"{name} is absent: TEXTCAT_CORPORA is not set to a folder of corpora")
    path = Path(folder, name)
    if not path.exists():
        pytest.skip(f"{name} is absent from TEXTCAT_CORPORA={folder}")
    return path


@pytest.fixture(scope="session")
def reuters_archive() -> Path:
    return _corpus_file("reuters21578.tar.gz")


@pytest.fixture(scope="session")
def newsgroups_archive() -> Path:
    return _corpus_file("20news-bydate.tar.xz")


@pytest.fixture(scope="session")
def finna_titles() -> Path:
    return _corpus_file("yso-finna-en.tsv.xz")


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("TEXTCAT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not path:
        pytest.skip("Chromium is absent: it is neither on the path nor named by TEXTCAT_CHROMIUM")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """Open a page in a context of its own, and its address; nothing may go wrong that the test has not provoked.

    The list `new_page.asked` has the addresses that were asked, from the first page on.
    """
    asked, wrong, contexts = [], [], []

    def open_(address, *, provoked=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(15_000)
        context.on("request", lambda request: asked.append(request.url))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        if not provoked:
            page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(address)
        return page

    open_.asked = asked
    yield open_
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="wait")  # else a test after this one gets the error of an answer that was cut off
        context.close()
    assert not wrong


@pytest.fixture(scope="session")
def newswire_model(tmp_path_factory) -> Path:
    """A model of the corpus newswire by the recipe paum, in its folder."""
    import textcat

    tagger = textcat.Tagger.fit(textcat.open_corpus("newswire"), textcat.read_recipe("paum"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "newswire")
