"""Where tests find real data: the folder named by TEXTCAT_CORPORA, never a download."""

import gc
import importlib
import json
import multiprocessing
import os
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import clusters
import optional_tools
import pytest
from forked_commands import IMPORTED
from hypothesis import settings
from not_run import leave_out, pytest_make_collect_report, pytest_runtest_makereport, pytest_terminal_summary  # noqa: F401
from typer.main import get_command

# There is a process that runs tests for each processor: further threads of BLAS would wait busily for one of them. What
# tests start has as many as users have, and a test of several sets their number.
with patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
    for library in ("numpy", "scipy.linalg"):  # each loads a BLAS of its own
        importlib.import_module(library)

# A property is tried by a few examples, other ones in each run, or by many. These machines are shared: an example that
# once takes long is no failure.
settings.register_profile("few", max_examples=12, deadline=None)
settings.register_profile("many", max_examples=150, deadline=None)
settings.load_profile("many" if "TEXTCAT_LONG" in os.environ else "few")


def pytest_make_parametrize_id(val, argname):
    """Name no bytes: packed ones hold the time, and a test must have the same name in every process that runs tests."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage among tests and modules while they are collected, and for little of it afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000)


def pytest_runtest_setup(item):
    marks = ("hypothesis", "sampled", "where_long")
    if "TEXTCAT_LONG_LATER" in os.environ and any(map(item.get_closest_marker, marks)):
        pytest.skip("step: the last one of .ci/run tries many examples, and looks at all data")
    mark = item.get_closest_marker("where_long")
    if mark and "TEXTCAT_LONG" not in os.environ:
        pytest.skip(f"time: {mark.args[0]}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the long tests: at the end, no process that runs tests is to wait for another one's."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session", autouse=True)
def at_once():
    """Wait for no disk: no test cuts the power, and what tests start in processes of their own does wait."""

    def sync(descriptor):
        os.fstat(descriptor)  # which fails, too, if it is closed

    with patch.object(os, "fsync", sync):
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_workers():
    """Fork what would be spawned from a process that has imported textcat: to import it takes half a second each time.

    What commands start in tests that run them as processes of their own is spawned.
    """
    context_of = multiprocessing.get_context

    def get_context(method=None):
        if method != "spawn" or not hasattr(os, "fork"):
            return context_of(method)
        context = context_of("forkserver")
        context.set_forkserver_preload(IMPORTED)
        return context

    with patch.object(multiprocessing, "get_context", get_context):
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_once():
    """Make each command of textcat once: thousands are run in a process that runs tests, and a user runs one.

    The app of a command alone is another one for each run, but has the same functions.
    """
    commands = {}

    def get_command_once(app):
        functions = app.info, *(info.callback for info in app.registered_commands), len(app.registered_groups)
        key = tuple(map(id, functions))
        if key not in commands:
            commands[key] = functions, get_command(app)  # which keeps what has these identities
        return commands[key][1]

    with patch("typer.main.get_command", get_command_once):
        yield


LANGUAGES = {}


@pytest.fixture(scope="module", autouse=True)
def languages_once():
    """Set up the tokenizer of a language once: each training and each model that is read has one.

    Tests of tokenizers, and of where their tables are, have new ones.
    """
    from textcat.features import tokens

    open_language = tokens.open_language

    def open_once(lang, tables=None):
        key = lang, id(tables)
        if key not in LANGUAGES:
            LANGUAGES[key] = open_language(lang, tables), tables
        return LANGUAGES[key][0]

    with patch.object(tokens, "open_language", open_once):
        yield


@pytest.fixture(scope="session", autouse=True)
def newswire_once():
    """Read the corpus newswire once: hundreds of tests open it. What training frees, lists and texts, is copied."""
    from textcat.corpus import catalogue

    read, there = catalogue.read_corpus, {}

    def read_once(card, data, *options):
        *changes, _, unused = options
        if card.name != "newswire" or any(changes):
            return read(card, data, *options)
        key = data, os.stat(data).st_mtime_ns, unused
        if key not in there or there[key][0] != card:
            there[key] = card, read(card, data, *options)
        corpus = there[key][1]
        parts = {part: getattr(corpus, part) for part in ("train", "test", "unused")}
        copies = {
            part: [replace(each, zones={**each.zones}) for each in documents] for part, documents in parts.items()
        }
        return replace(corpus, **copies)

    with patch.object(catalogue, "read_corpus", read_once):
        yield


@pytest.fixture(scope="session", autouse=True)
def one_split():
    """Choose, forecast and weigh by one split of few documents, not by up to 25: most trainings are for something else.

    Its value is the number that users have, by the name of the constant.
    """
    from textcat.training import few_choices, forecast, shortlist

    most = {
        "textcat.training.few_choices.MOST_FOLDS": few_choices.MOST_FOLDS,
        "textcat.training.forecast.MOST_SPLITS": forecast.MOST_SPLITS,
        "textcat.training.shortlist.LEAST_HELD_OUT": shortlist.LEAST_HELD_OUT,
    }
    with ExitStack() as patches:
        for name in most:
            patches.enter_context(patch(name, 1))
        yield most


@pytest.fixture
def all_splits(one_split, monkeypatch):
    """Choose and forecast as for users: for tests of that, or of what another process trains or a page prints."""
    for name, most in one_split.items():
        monkeypatch.setattr(name, most)


def _corpus_file(name: str) -> Path:
    folder = os.environ.get("TEXTCAT_CORPORA")
    if not folder:
        pytest.skip(f"data: {name} is absent, TEXTCAT_CORPORA is not set to a folder of corpora")
    path = Path(folder, name)
    if not path.exists():
        pytest.skip(f"data: {name} is absent from TEXTCAT_CORPORA={folder}")
    return path


@pytest.fixture(scope="session")
def corpus_file():
    return _corpus_file


@pytest.fixture(scope="session")
def reuters_archive() -> Path:
    return _corpus_file("reuters21578.tar.gz")


@pytest.fixture(scope="session")
def reuters(reuters_archive: Path):
    """Reuters-21578, read once for all tests of a process: its documents cannot be changed."""
    import textcat

    return textcat.open_corpus("reuters21578", reuters_archive.parent)


@pytest.fixture(scope="session")
def newsgroups_archive() -> Path:
    return _corpus_file("20news-bydate.tar.xz")


@pytest.fixture(scope="session")
def finna_titles() -> Path:
    return _corpus_file("yso-finna-en.tsv.xz")


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window, and by their options the pages that tests have left: to open one anew takes long."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        path = optional_tools.chromium() or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("Chromium is absent: neither on the path, nor named by TEXTCAT_CHROMIUM, nor playwright's own")
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium, defaultdict(list)
        chromium.close()


@pytest.fixture(scope="module")
def dask_processes():
    with clusters.two_processes() as cluster:
        yield cluster


@pytest.fixture
def cluster(dask_processes):
    """A Dask cluster with all its workers: those that another test has killed are there again."""
    clusters.wait_for_workers(dask_processes)
    return dask_processes


def _wait_for_function(page, function, **options):
    """Wait until a function of JavaScript returns what counts as true; by default, each look at it would draw a frame.

    An expression would be evaluated at each look, which the policy of our pages allows at the first one only.
    """
    assert "=>" in function, f"no function: {function}"
    return type(page).wait_for_function(page, function, polling=10, **options)


@pytest.fixture
def new_page(browser):
    """Open an address in a page that keeps nothing of other tests; nothing may go wrong that the test has not provoked.

    The list `new_page.asked` has the addresses that were asked, from the first page on.
    """
    chromium, idle = browser
    asked, wrong, opened = [], [], []

    def open_(address, *, provoked=False, **options):
        pages = idle[repr(options)]
        context = {"viewport": {"width": 1280, "height": 900}, **options}
        page = pages.pop() if pages else chromium.new_context(**context).new_page()
        page.wait_for_function = partial(_wait_for_function, page)
        page.set_default_timeout(60_000)
        heard = [
            (page.context, "request", lambda request: asked.append(request.url)),
            (page, "pageerror", lambda error: wrong.append(str(error))),
            (page, "dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss())),
            (page, "console", lambda message: None if provoked else wrong.append(message.text)),
        ]
        for source, event, hear in heard:
            source.on(event, hear)
        opened.append((page, pages, heard))
        page.route("**/nowhere", lambda route: route.abort())  # else the first route set later comes too late
        page.goto(address)
        return page

    open_.asked = asked
    yield open_
    for page, pages, heard in opened:
        page.unroute_all(behavior="wait")  # else a test after this one gets the error of an answer that was cut off
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.mouse.move(0, 0)
        page.goto("about:blank")
        for source, event, hear in heard:
            source.remove_listener(event, hear)
        pages.append(page)
    assert not wrong


@pytest.fixture
def look():
    """Look at a page: it is not too wide, and axe-core finds nothing that shuts anybody out, by some of its rules."""
    path = optional_tools.axe()

    def look_(page, view="", **options):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        if path:
            if page.evaluate("!window.axe"):
                page.evaluate(path.read_text(encoding="utf-8"))
            passed, *violations = page.evaluate(
                """options => axe.run({resultTypes: ["violations"], ...options}).then(({passes, violations}) =>
                [passes.length, ...violations.map(({id, nodes}) => [id, nodes[0].html])])""",
                options,
            )
            assert passed
            assert not violations, view

    yield look_
    if not path:
        pytest.skip("axe-core is absent, so only widths are looked at: TEXTCAT_AXE may name its axe.min.js")


@pytest.fixture(scope="session")
def newswire():
    """The corpus newswire, read once for all tests of a process."""
    import textcat

    return textcat.open_corpus("newswire")


@pytest.fixture(scope="session")
def newswire_part(newswire, tmp_path_factory):
    """A part of the newswire in a file, of which every training is short: 200 training documents, and 40 test ones."""
    path = tmp_path_factory.mktemp("corpora") / "part.jsonl"
    documents = [*newswire.train[:200], *newswire.test[:40]]
    lines = [{"id": each.id, **each.zones, "topics": each.topics, "split": each.split} for each in documents]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture(scope="session")
def newswire_tagger(newswire):
    """A tagger of the corpus newswire by the recipe paum, which no test may change."""
    import textcat

    return textcat.train(newswire, textcat.read_recipe("paum"))


@pytest.fixture(scope="session")
def newswire_model(newswire_tagger, tmp_path_factory) -> Path:
    """The same in its folder, which no test may change."""
    import textcat

    return textcat.save(newswire_tagger, tmp_path_factory.mktemp("models") / "newswire")


@pytest.fixture(scope="session")
def other_model(newswire, tmp_path_factory) -> Path:
    """The folder of another model of the same topics."""
    import textcat

    tagger = textcat.train(newswire, textcat.read_recipe("paum").changed(None, tau_pos=1.0))
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "other")


@pytest.fixture(scope="session")
def promising_model(newswire, tmp_path_factory) -> Path:
    """The folder of a model that makes promises for some topics of newswire."""
    import textcat

    recipe = textcat.read_recipe("default").with_settings(
        ["promise.precision=0.8", "promise.recall=0.8", "promise.confidence=0.8"]
    )
    tagger = textcat.train(newswire, recipe)
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "promising")


@pytest.fixture(scope="session")
def tagged_archive(newswire, promising_model, tmp_path_factory) -> Path:
    """A folder of the tags of 300 documents, which no test may change; `archive` beside it has two files of texts."""
    import textcat

    above = tmp_path_factory.mktemp("tagged")
    (above / "archive").mkdir()
    documents = newswire.train[:300]
    for name, part in (("a", documents[:200]), ("b", documents[200:])):
        lines = [
            {"id": each.id, **each.zones, "date": f"2024-{1 + number % 3:02}-01"} for number, each in enumerate(part)
        ]
        (above / "archive" / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    textcat.tag_archive(promising_model, [above / "archive"], above / "tags", jobs=1)
    return above / "tags"
