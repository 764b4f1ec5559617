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


@pytest.fixture(scope="session")
def newswire_model(tmp_path_factory) -> Path:
    """A model of the corpus newswire by the recipe paum, in its folder."""
    import textcat

    tagger = textcat.Tagger.fit(textcat.open_corpus("newswire"), textcat.read_recipe("paum"))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "newswire")
