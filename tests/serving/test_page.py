"""The page of `textcat serve`, in a real Chromium: it asks nobody but its server, and runs nothing that it is sent."""

import csv
import dataclasses
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path

import forked_commands
import pytest
from commands import COMMAND

import textcat
from textcat.corpus.corrections import Corrections

PAGE = Path(textcat.__file__).parent / "serving" / "page"
STORY = "Wheat exports rose 😀😀 to 12 mln tonnes, the ministry said.\nCorn shipments fell."
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"'><svg onload=alert(3)>",
    "javascript:alert(4)//%0a#&?topic=x",
    "\u202e<b>evil</b>\u2066" + "long " * 60,
)

HOSTILE_CARD = "# Evil\n\n" + "".join(
    f"{text}\n\n[link]({text})\n\n![picture]({text})\n\n"
    for text in (*HOSTILE, "javascript:alert(5)", "http://127.0.0.1:9/x.gif")
)
# What `textcat card` writes has such parts.
WHOLE_CARD = (
    "---\nlicense: mit\n---\n# News\n\n|a|b|\n|-|-|\n|1|2|\n\n## Use\n\n```sh\ntextcat tag model"
    + " long" * 40
    + "\n```\n\n"
    "- **Limits**: `en`, [a link](https://example.org/)\n"
)
# The scripts of the page: what it needs for one text, and what it does besides.
SCRIPTS = (("page", "common"), ("card", "corrections", "figures", "links", "many", "names"))
WORDS = ("wheat", "gold", "coffee", "copper", "rice")


def test_the_script_is_small_and_builds_nodes_by_text():
    page, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("index.html", "page.css"))
    main, further = ("".join((PAGE / f"{name}.js").read_text(encoding="utf-8") for name in names) for names in SCRIPTS)
    script = main + further
    assert (len(main.encode()) <= 50_000, len(further.encode()) <= 20_000) == (True, True)
    dangerous = r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|srcdoc|DOMParser"
    assert not re.findall(dangerous + r"|createContextualFragment|setHTML|import\(|innerText|javascript:", script)
    addresses = re.findall(r"https?://[^\s\"'`)]+", script + page + style)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name, which nobody asks for
    assert not re.findall(r"\son\w+=|style=|<style|<script(?! type=\"module\" src=)|@import|url\(", page + style)
    assert page.count("src=") == 1


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder to which the server adds corrections."""
    return tmp_path_factory.mktemp("corrections")


@pytest.fixture(scope="module")
def server(tmp_path_factory, newswire_model, kept):
    """A server of the model `newswire`, of one of two topics, and of one whose topics and terms are hostile."""
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    folder = tmp_path_factory.mktemp("served")
    recipe = textcat.read_recipe("paum")
    tagger, corpus = textcat.load(newswire_model), textcat.open_corpus("newswire")
    textcat.save(dataclasses.replace(tagger, evaluation=textcat.evaluate(tagger, corpus)), folder / "newswire")
    named = {"wheat": "Wheat and flour", "maize": HOSTILE[0]}
    textcat.save(dataclasses.replace(tagger, topic_names=named), folder / "named")
    news = {"grain": "wheat corn tonnes exports", "gold": "gold ounces mine"}
    for name, texts in {
        "two": news,
        "hostile": {
            topic: f"{word} <script>alert({word})</script>" for word, topic in zip(WORDS, HOSTILE, strict=True)
        },
    }.items():
        records = [{"text": text, "topics": [topic]} for topic, text in texts.items() for _ in range(4)]
        textcat.save(textcat.train(textcat.Corpus.from_records(records), recipe), folder / name)
    (folder / "newswire" / "README.md").write_text(WHOLE_CARD)
    (folder / "hostile" / "README.md").write_text(HOSTILE_CARD)
    models = [folder / name for name in ("newswire", "two", "hostile", "named")]
    process = forked_commands.Popen(
        [*COMMAND, "serve", *models, "--port", "0", "--workers", "1", "--corrections", kept],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield _address(process)
    finally:
        process.terminate()
        process.wait(60)


def _address(process):
    """Return the URL that the server says it listens on."""
    said, end = b"", time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stderr], [], [], 1)[0]:
            said += os.read(process.stderr.fileno(), 4096)
        if found := re.search(rb"http://127\.0\.0\.1:[0-9]+", said):
            return found[0].decode() + "/"
    raise AssertionError(f"the server does not say where it listens: {said.decode()}")


@pytest.fixture
def visit(new_page, server):
    """Open the page; at the end, nobody else was asked, and nothing went wrong that the test has not provoked."""

    def open_(hash_="", **options):
        page = new_page(server + hash_, **options)
        page.wait_for_selector("#model option", state="attached")
        return page

    yield open_
    assert new_page.asked
    assert not [url for url in new_page.asked if not url.startswith((server, "data:image/svg+xml,"))]


def _tag(page, text=STORY, title=""):
    page.fill("#title", title)
    page.fill("#body", text)
    page.wait_for_selector("#given .row")


def _names(page, where="#given"):
    return page.locator(f"{where} .name").all_inner_texts()


def _marks(page, field="body"):
    return page.locator(f"#{field}-under mark").all_text_contents()


def _says(page, selector, words):
    page.wait_for_function(
        "([selector, words]) => document.querySelector(selector).textContent.includes(words)", arg=[selector, words]
    )


def _slide(page, selector, value):
    page.locator(selector).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def _point_at(page, selector):
    """Move the mouse to where an element is: the text field lies over it, and it may be drawn again at any moment."""
    find = """selector => {
        const box = document.querySelector(selector)?.getBoundingClientRect();
        return box?.width ? [box.x + box.width / 2, box.y + box.height / 2] : null;
    }"""
    page.mouse.move(*page.wait_for_function(find, arg=selector).json_value())


def test_a_text_gets_its_topics_and_the_words_that_speak_for_them(visit):
    page = visit()
    _tag(page)
    assert {"wheat", "maize", "grain"} <= set(_names(page))
    _says(page, "#summary", f"{len(_names(page))} topics given")
    row = page.locator("#given .row", has_text="maize")
    row.hover()
    _says(page, "#legend", "maize")
    assert "Corn" in _marks(page)  # after two characters that JavaScript counts twice
    assert page.locator("#body-under").text_content() == STORY + "\u200b"
    page.locator("#given .row", has_text="wheat").hover()
    _says(page, "#legend", "wheat")
    assert page.locator("#body-under mark.m4").first.text_content() == "Wheat"
    row.click()
    reasons = page.locator("#given .details:not([hidden]) .reasons bdi")
    assert reasons.first.inner_text() == "corn"
    _says(page, "#given .details:not([hidden]) .sum", "above the threshold")
    assert "null" not in page.locator("#given .details:not([hidden])").inner_text()
    reasons.first.hover()
    assert page.locator("#body-under mark.on").all_text_contents() == ["Corn"]
    _point_at(page, "#body-under mark.on")
    assert re.fullmatch(r"corn\s*\+[0-9.]+", page.locator("#tip p").first.inner_text())


def test_evidence_is_shown_in_the_title_and_in_the_body_and_stays_in_place_while_one_types(visit):
    page = visit()
    _tag(page, title="Gold and wheat")
    page.locator("#given .row", has_text="wheat").hover()
    page.wait_for_selector("#title-under mark.m4")
    assert "wheat" in _marks(page, "title")
    waiting = []
    page.route("**/tag", lambda route: waiting.append(route))  # no answer comes any more
    page.locator("#body").press("Control+Home")
    page.keyboard.type("New ")
    assert page.locator("#body-under").text_content() == "New " + STORY + "\u200b"
    assert "Wheat" in _marks(page)
    page.unroute("**/tag")
    for route in waiting:  # without an answer, the page would be waited for without end
        route.continue_()


def test_the_marks_lie_under_the_words(visit):
    page = visit()
    _tag(page, ("Wheat exports rose to 12 mln tonnes\tthe ministry said. " * 7 + "\n\n") * 40)
    for field in ("title", "body"):
        heights = page.evaluate(f"['{field}', '{field}-under'].map(id => document.getElementById(id).scrollHeight)")
        assert heights[0] == heights[1]
    assert page.evaluate("body_ = document.getElementById('body'), body_.scrollHeight <= body_.clientHeight")


def test_topics_are_reached_and_explained_by_keyboard(visit):
    page = visit()
    _tag(page)
    page.locator("#given .row").first.focus()
    first, second = _names(page)[:2]
    _says(page, "#legend", first)
    page.keyboard.press("ArrowDown")
    _says(page, "#legend", second)
    page.keyboard.press("Enter")
    page.wait_for_selector("#given .reasons")
    focused = page.locator(":focus")
    assert focused.get_attribute("aria-expanded") == "true"
    assert second in focused.inner_text()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Escape")
    assert focused.get_attribute("aria-expanded") == "false"
    order = []
    page.locator("#skip").focus()
    for _ in range(10):
        order.append(page.evaluate("document.activeElement.id"))
        page.keyboard.press("Tab")
    assert order == ["skip", "to-read", "to-many", "to-topics", "to-compare", "model", "title", "body", "open", "link"]


def test_sliders_choose_the_topics(visit):
    page = visit()
    _tag(page)
    before = _names(page)
    _slide(page, "#minimal", 0.99)
    kept = _names(page)
    assert set(kept) < set(before)
    assert page.locator("#minimal").get_attribute("aria-valuetext").startswith("99")
    _slide(page, "#minimal", 0)
    _says(page, "#unfold", "40 more")  # a long list is folded
    assert page.locator("#given .row").count() == 10
    page.click("#unfold")
    page.wait_for_function("() => document.querySelectorAll('#given .row').length === 50")
    page.click("#unfold")
    page.wait_for_function("() => document.querySelectorAll('#given .row').length === 10")
    page.click("#minimal-reset")
    assert _names(page) == before
    page.locator("#given .row", has_text="wheat").click()
    page.wait_for_selector(".own")
    _slide(page, ".own", 1)
    assert "wheat" not in _names(page)
    assert "wheat" in _names(page, "#others")
    page.get_by_label("Reset to the model’s threshold").click()
    assert _names(page) == before


def test_a_file_is_read_by_the_server_wherever_it_is_dropped(visit):
    page = visit("#view=topics", provoked=True)
    drop = """([name, data]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([data], name, {type: "text/plain"}));
      for (const kind of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
    }"""
    page.evaluate(drop, ["<img src=x onerror=alert(1)>.txt", STORY])
    page.wait_for_selector("#given .row")
    assert page.input_value("#body").strip() == STORY
    assert page.locator("#notice").inner_text().startswith("Read from <img src=x onerror=alert(1)>.txt")
    problem = {"title": "Unprocessable Content", "status": 422, "detail": "The file is no text, <b>but</b> noise."}
    page.route("**/api/v1/text*", lambda route: _answer(route, problem, 422))
    page.evaluate(drop, ["noise.bin", "\0"])
    _says(page, "#error", "Unprocessable Content: The file is no text, <b>but</b> noise.")
    assert page.input_value("#body").strip() == STORY


def _answer(route, content, status=200):
    kind = "application/json" if status == 200 else "application/problem+json"
    route.fulfill(status=status, content_type=kind, body=json.dumps(content))


def test_a_topic_has_a_page_of_terms_quality_and_curve(visit):
    page = visit("#view=topics")
    page.wait_for_selector("#topic-rows tr")
    assert page.locator("#topic-rows tr").count() == 50
    page.fill("#query", "PALM")
    _says(page, "#topics-found", "1 topic")
    assert page.locator("#topic-rows a").all_inner_texts() == ["palm-oil"]
    page.fill("#query", "xyz")
    _says(page, "#topics-found", "No topic has “xyz” in its id or name.")
    page.fill("#query", "wheat")
    _says(page, "#topics-found", "1 topic")
    page.click("#topic-rows a")
    page.wait_for_selector("#topic-page svg")
    assert page.evaluate("document.activeElement.id") == "topic-heading"
    assert page.locator("#topic-page .terms th[scope=row]").first.inner_text() == "wheat"
    assert "Average precision" in page.locator("#topic-page").inner_text()
    assert "means 50" in page.locator("#topic-page svg").get_attribute("aria-label")
    assert page.title() == "wheat · newswire · textcat"


def test_two_models_are_compared(visit):
    page = visit("#view=compare&with=two")
    _says(page, "#compare-summary", "There is no text to compare on")
    page.click("#compare-summary a")
    _tag(page)
    page.click("#to-compare")
    page.select_option("#right", "two")
    page.wait_for_selector(".versus .differs")
    page.locator("#differ").check()
    page.wait_for_function("() => document.querySelectorAll('.versus tbody tr:not(.differs)').length === 0")
    page.locator("#differ").uncheck()
    page.locator(".versus button", has_text="grain").click()
    page.wait_for_function("() => document.querySelectorAll('.pane .reading').length === 2")
    for pane in page.locator(".pane").all():
        assert "Wheat" in pane.locator("mark").all_text_contents()
    assert "with=two" in page.url


def test_the_address_leads_back_forward_and_to_others(visit):
    page = visit("#model=newswire&topic=wheat")
    _tag(page)
    page.wait_for_selector("#given .reasons")
    page.locator("#given .row", has_text="maize").click()
    page.click("#to-topics")
    page.wait_for_selector("#topics:not([hidden])")
    page.go_back()
    page.wait_for_selector("#read:not([hidden])")
    page.wait_for_function("() => document.querySelector('[aria-expanded=true]').textContent.startsWith('maize')")
    page.go_back()
    page.wait_for_function("() => document.querySelector('[aria-expanded=true]').textContent.startsWith('wheat')")
    page.go_forward()
    page.wait_for_function("() => document.querySelector('[aria-expanded=true]').textContent.startsWith('maize')")
    page.click("#link")
    _says(page, "#notice", "link")
    other = visit(page.url.partition("/#")[2] and "#" + page.url.partition("#")[2])
    other.wait_for_selector("#given .reasons")
    assert other.input_value("#body") == STORY
    assert other.locator("[aria-expanded=true]").inner_text().startswith("maize")
    other.locator("#body").press("End")
    other.keyboard.type("!")
    other.wait_for_function("() => !location.hash.includes('z=')")


def test_a_damaged_address_is_told_and_leaves_a_page_that_works(visit):
    page = visit("#z=%00&model=none&view=none", provoked=True)
    for hash_ in ("z=AAAA", "model=none", "view=topic&topic=none", "z=!&view=compare"):
        page.locator("#error button", has_text="Dismiss").click()
        page.evaluate("hash => { location.hash = hash; }", hash_)
        page.wait_for_selector("#error .message")
    page.evaluate("location.hash = '%ff=&&=&view=none&topic=none'")
    page.wait_for_selector("#read:not([hidden])")
    _tag(page)


def test_a_model_that_is_replaced_is_told_and_asked_again(visit):
    page = visit()
    _tag(page)

    def replaced(route):
        answer = route.fetch()
        _answer(route, {**answer.json(), "version": "0123456789ab"})

    page.route(re.compile("/(tag|explain)$"), replaced)
    page.locator("#body").press("End")
    page.keyboard.type(" Rice.")
    _says(page, "#notice", "version 0123456789ab now answers")
    _says(page, "#version", "0123456789ab")
    page.wait_for_selector("#given .row")


def test_errors_are_told_and_can_be_tried_again(visit):
    page = visit(provoked=True)
    page.route("**/tag", lambda route: route.abort())
    page.fill("#body", STORY)
    _says(page, "#error", "The server does not answer")
    page.unroute("**/tag")
    page.locator("#error button", has_text="Try again").click()
    page.wait_for_selector("#given .row")
    assert not page.locator("#error").inner_text()
    page.route("**/tag", lambda route: route.fulfill(status=502, content_type="text/html", body="<h1>Bad Gateway"))
    page.fill("#body", "Gold.")
    _says(page, "#error", "The server answered 502")


def test_a_server_with_keys_asks_for_one(visit):
    page = visit(provoked=True)
    keys = []

    def guarded(route):
        keys.append(route.request.headers.get("authorization"))
        if keys[-1] == "Bearer right":
            return route.continue_()
        return _answer(route, {"title": "Unauthorized", "status": 401, "detail": "A key is needed."}, 401)

    page.route("**/api/v1/**", guarded)
    page.fill("#body", STORY)
    _says(page, "#error", "A key is needed.")
    page.fill("#key", "right")
    page.keyboard.press("Enter")
    page.wait_for_selector("#given .row")
    assert keys[0] is None
    assert "right" not in page.url


def test_a_text_beyond_the_limit_is_not_sent_and_a_long_one_is_not_marked(visit):
    page = visit()
    page.route("**/api/v1/models", lambda route: _answer(route, {**route.fetch().json(), "limits": {"bytes": 300_000}}))
    page.reload()
    page.wait_for_selector("#model option", state="attached")
    long = "document.getElementById('body').value = ('wheat '.repeat(99) + '\\n').repeat(%d)"
    page.evaluate(long % 510)
    page.locator("#title").press("a")
    _says(page, "#size", "the server takes 300 kB at most")
    assert not _names(page)
    page.evaluate(long % 340)
    page.locator("#title").press("Backspace")
    page.wait_for_selector("#given .row")
    _says(page, "#legend", "too long to mark")
    assert not _marks(page)
    _tag(page)
    page.wait_for_selector("#body-under mark")


def test_the_card_of_a_model_is_shown_with_its_topics(visit):
    page = visit("#view=topics&model=newswire")
    page.click("#card summary")
    assert page.inner_text("#card-text h2") == "News"
    assert page.locator("#card-text td").all_inner_texts() == ["1", "2"]
    page.select_option("#model", "two")
    page.wait_for_selector("#card", state="hidden")


def test_a_hostile_card_runs_nothing_and_asks_nobody(visit):
    page = visit("#view=topics&model=hostile")
    page.click("#card summary")
    assert page.inner_text("#card-text h2") == "Evil"
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#card-text")
    addresses = page.locator("#card-text a").evaluate_all("links => links.map(link => link.protocol)")
    assert set(addresses) <= {"http:", "https:"}
    assert page.locator("#card-text :is(img, script, svg, iframe, style, [onclick], [onerror])").count() == 0


def test_hostile_topics_and_texts_run_nothing(visit):
    """Without the policy, which would hold scripts back even if there were some."""
    page = visit("#model=hostile", provoked=True, bypass_csp=True)
    text = " ".join(WORDS)
    page.fill("#title", "</textarea><svg onload=alert(7)>")
    page.fill("#body", f"{text} <script>alert(9)</script><img src=x onerror=alert(8)>")
    page.wait_for_selector(".row")
    shown = _names(page) + _names(page, "#others")
    assert len(shown) == len(HOSTILE)
    for name in shown:
        page.locator(".row", has_text=name).click()
        page.wait_for_selector(".details:not([hidden]) .reasons")
        page.click(".details:not([hidden]) p > a")
        page.wait_for_selector("#topic-page svg")
        assert page.locator("#topic-heading").inner_text() == name
        page.click("#to-read")
    page.click("#to-topics")
    page.wait_for_selector("#topic-rows tr")
    page.click("#to-compare")
    page.locator(".versus button").first.click()
    page.wait_for_selector(".pane .reading")
    assert page.evaluate("document.querySelectorAll('body script, img, svg:not([viewBox]), b > :not(bdi)').length") == 0


def test_the_policy_of_the_server_holds_nothing_back_that_the_page_needs(visit):
    page = visit()
    assert page.evaluate("fetch('/').then(answer => answer.headers.get('content-security-policy'))").startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    page.evaluate("addEventListener('securitypolicyviolation', event => console.error(event.violatedDirective))")
    _tag(page)
    page.click("#to-topics")
    page.wait_for_selector("#topic-rows tr")
    page.click("#topic-rows a")
    page.wait_for_selector("#topic-page svg")


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        ({"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}, {}),
        (
            {"type": "rule", "values": ["color-contrast"]},
            {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}, "reduced_motion": "reduce"},
        ),
    ],
    ids=["light", "dark and narrow"],
)
def test_axe_finds_nothing_and_no_view_is_too_wide(visit, look, rules, options):
    page = visit(provoked=True, **options)

    def check(view):
        look(page, view, runOnly=rules)

    check("empty")
    _tag(page, title="Wheat")
    page.locator("#given .row").first.click()
    page.wait_for_selector(".own")
    _slide(page, ".own", 0.1)
    _slide(page, "#minimal", 0.3)
    check("text")
    page.get_by_role("button", name="Right topic").click()
    page.get_by_text("Look through them").click()
    check("corrections")
    page.click("#corrections-send")
    _says(page, "#notice", "1 text sent.")
    check("corrections that were sent")
    page.click("#given .details:not([hidden]) p > a")
    page.wait_for_selector("#topic-page svg")
    check("topic")
    page.click("#to-topics")
    page.wait_for_selector("#topic-rows tr")
    page.click("#card summary")
    check("topics")
    page.click("#to-compare")
    page.locator(".versus button").first.click()
    page.wait_for_selector(".pane .reading")
    check("compare")
    page.route("**/tag", lambda route: _answer(route, {"title": "Unauthorized", "detail": "A key is needed."}, 401))
    page.click("#to-read")
    page.fill("#body", "gold")
    page.wait_for_selector("#key")
    check("error")


def test_topics_have_their_names_everywhere(visit):
    page = visit("#model=named")
    _tag(page)
    assert "Wheat and flour wheat" in _names(page)
    assert f"{HOSTILE[0]} maize" in _names(page)
    page.locator("#given .row", has_text="Wheat and flour").click()
    page.get_by_text("All about Wheat and flour").click()
    _says(page, "#topic-heading", "Wheat and flour wheat")
    page.click("#back")
    page.fill("#query", "AND FLOUR")
    _says(page, "#topics-found", "1 topic")
    assert page.locator("#topic-rows a").all_inner_texts() == ["Wheat and flour wheat"]


def test_a_link_has_the_threshold_and_its_notice_goes(visit):
    page = visit("#model=newswire", permissions=["clipboard-write"])
    page.clock.install()
    _tag(page)
    page.clock.run_for(1000)
    _slide(page, "#minimal", 0.99)
    page.clock.run_for(1000)
    page.click("#link")
    _says(page, "#notice", "link is")
    page.clock.run_for(10_000)
    assert not page.locator("#notice").text_content()
    other = visit("#" + page.url.partition("#")[2])
    other.wait_for_selector("#given .row")
    assert other.locator("#minimal").get_attribute("aria-valuetext").startswith("99")
    assert _names(other) == _names(page)


def test_an_example_is_a_text_that_the_model_knows(visit):
    page = visit("#model=two")
    page.click("#example")
    page.wait_for_selector("#given .row")
    assert set(page.input_value("#body").split()) <= {"gold", "ounces", "mine", "wheat", "corn", "tonnes", "exports"}


def test_escape_leaves_the_focus_on_the_topic(visit):
    page = visit("#model=newswire")
    _tag(page)
    page.locator("#given .row", has_text="wheat").click()
    page.wait_for_selector("#given .reasons button")
    page.locator("#given .reasons button").first.focus()
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.className === 'row'")
    assert page.evaluate("document.activeElement.parentNode.topic") == "wheat"


def test_corrections_are_collected_and_teach_the_model(visit, tmp_path, newswire_model):
    page = visit("#model=newswire")
    _tag(page, "Plain words on the harvest of zorn.", "Zorn up")
    page.locator("#others .row").first.click()
    topic = page.evaluate("document.querySelector('#read [aria-expanded=true]').parentNode.topic")
    page.get_by_role("button", name="Wrong topic").click()
    page.fill("#missing", "GOLD")
    page.get_by_role("button", name="Add").click()
    _says(page, "#notice", "The text belongs to gold: noted.")
    page.fill("#missing", "nowhere")
    page.get_by_role("button", name="Add").click()
    _says(page, "#error", "The model has no topic “nowhere”.")
    page.reload()  # they are kept
    page.goto(page.url)
    _says(page, "#corrections-n", "1 text corrected.")
    with page.expect_download() as waiting:
        page.click("#corrections-save")
    line = json.loads(waiting.value.path().read_text(encoding="utf-8"))
    assert line | {"id": ""} == {
        "id": "",
        "title": "Zorn up",
        "body": "Plain words on the harvest of zorn.",
        "topics": ["gold"],
        "labelled_for": [topic, "gold"],
    }
    waiting.value.save_as(tmp_path / "corrections.jsonl")
    tagger = textcat.train(textcat.open_corpus("newswire"), "paum", updatable=True)
    textcat.save(tagger, tmp_path / "model")
    result = textcat.learn(tmp_path / "model", textcat.open_corpus(str(tmp_path / "corrections.jsonl")))
    assert [id.startswith("correction-") for id in result.added] == [True]
    page.click("#corrections-drop")
    assert page.locator("#corrections").is_hidden()


def test_corrections_are_looked_through_and_undone(visit):
    page = visit("#model=named")
    texts = ("Plain words on the harvest of zorn.", f"Gold fell. {'Silver was steady. ' * 9}")
    for text in texts:
        page.fill("#body", "")
        page.wait_for_function("() => !document.querySelector('#given .row')")  # none of the text before
        _tag(page, text)
        page.fill("#missing", "Wheat and flour")
        page.get_by_role("button", name="Add").click()
        _says(page, "#notice", "The text belongs to Wheat and flour wheat: noted.")
        page.locator("#others .row").first.click()
        page.get_by_role("button", name="Wrong topic").click()
    _says(page, "#corrections-n", "2 texts corrected.")
    page.get_by_text("Look through them").click()
    listed = page.locator("#corrections-list > li")
    assert listed.count() == 2
    assert listed.nth(0).locator("> button").inner_text() == texts[0]
    assert listed.nth(1).locator("> button").inner_text() == f"{texts[1][:80]}…"
    assert listed.nth(0).locator("li").nth(0).inner_text() == "Wheat and flour wheat right Undo"
    listed.nth(0).locator("> button").click()  # which shows the text again
    assert page.input_value("#body") == texts[0]
    pressed = page.locator("#read .correct [aria-pressed=true]")
    listed.nth(1).get_by_role("button", name="Undo: Wheat and flour is right").click()
    assert listed.nth(1).locator("li").count() == 1
    assert page.evaluate("document.activeElement.textContent") == "Undo"
    while page.locator("#corrections-list [aria-label]").count() > 1:
        page.locator("#corrections-list [aria-label]").last.click()
    _says(page, "#corrections-n", "1 text corrected.")
    page.locator("#corrections-list [aria-label]").click()
    assert page.locator("#corrections").is_hidden()
    assert pressed.count() == 0
    assert page.evaluate("document.activeElement.id") == "body"
    page.reload()
    assert page.locator("#corrections").is_hidden()


def _correct(page, model, text, missing):
    page.select_option("#model", model)
    page.fill("#body", "")
    page.wait_for_function("() => !document.querySelector('#given .row, #others .row')")  # none of the text before
    page.fill("#body", text)
    page.wait_for_selector("#others .row")
    page.fill("#missing", missing)
    page.get_by_role("button", name="Add").click()
    _says(page, "#notice", f"The text belongs to {missing}: noted.")


def test_corrections_are_sent_to_the_server_and_stay_if_it_does_not_take_them(visit, kept):
    before = [*Corrections(kept)]
    page = visit("#model=newswire", provoked=True)
    _correct(page, "newswire", "Plain words on the harvest of zorn.", "gold")
    page.locator("#others .row").first.click()
    topic = page.evaluate("document.querySelector('#read [aria-expanded=true]').parentNode.topic")
    page.get_by_role("button", name="Wrong topic").click()
    page.keyboard.press("Escape")  # the other model lacks the topic
    page.mouse.move(0, 0)
    _correct(page, "two", "Gold of the mine.", "grain")
    page.route("**/corrections", lambda route: route.abort())
    page.focus("#corrections-send")
    page.keyboard.press("Enter")
    _says(page, "#error", "The server does not answer")
    _says(page, "#corrections-n", "2 texts corrected.")
    page.unroute("**/corrections")
    page.route("**/newswire/corrections", lambda route: _answer(route, {"title": "Wrong", "detail": "No such."}, 422))
    page.get_by_role("button", name="Try again").click()
    _says(page, "#notice", "1 text sent. textcat learn MODEL --from FOLDER teaches it to the model.")
    _says(page, "#error", "No such.")
    _says(page, "#corrections-n", "1 text corrected.")
    page.unroute("**/newswire/corrections")
    page.focus("#corrections-send")
    page.keyboard.press("Enter")
    page.wait_for_selector("#corrections", state="hidden")
    assert page.locator("#error").inner_text() == ""
    assert page.evaluate("document.activeElement.id") == "body"
    page.reload()
    assert page.locator("#corrections").is_hidden()
    two, newswire = [*Corrections(kept)][len(before) :]
    assert two.document.zones == {"body": "Gold of the mine."}
    assert newswire.document.zones == {"body": "Plain words on the harvest of zorn."}
    assert [two.answers, newswire.answers] == [{"grain": True}, {"gold": True, topic: False}]
    assert {two.via, newswire.via} == {"page"}
    assert page.locator("#version").inner_text() == f"version {two.model}" != f"version {newswire.model}"


def test_what_a_person_says_while_corrections_are_sent_stays(visit, kept):
    page = visit("#model=two", provoked=True)
    _correct(page, "two", "Gold is dear.", "gold")
    waiting = []
    page.route("**/corrections", lambda route: waiting.append(route))
    page.click("#corrections-send")
    page.click("#corrections-send")  # which sends nothing twice
    page.fill("#missing", "grain")
    page.get_by_role("button", name="Add").click()
    _says(page, "#notice", "The text belongs to grain: noted.")
    assert len(waiting) == 1
    waiting[0].continue_()
    _says(page, "#notice", "1 text sent.")
    page.get_by_text("Look through them").click()
    assert page.locator("#corrections-list ul").inner_text() == "grain right Undo"
    assert [*Corrections(kept)][-1].answers == {"gold": True}


def test_a_server_that_takes_no_corrections_is_sent_none(visit):
    page = visit(provoked=True)
    answer = page.request.get(page.url.partition("#")[0] + "api/v1/models").json()
    page.route("**/api/v1/models", lambda route: _answer(route, {**answer, "corrections": False}))
    page.reload()
    _correct(page, "two", "Gold is dear.", "gold")
    assert page.locator("#corrections-save").is_visible()
    assert page.locator("#corrections-send").is_hidden()


def test_a_given_topic_has_its_status_if_the_model_makes_promises(visit):
    page = visit("#model=newswire", provoked=True)

    def promise(route):
        answer = route.fetch().json()
        for tag in answer["tags"]:
            tag["status"] = "automatic" if tag["topic"] == "wheat" else "review"
        _answer(route, answer)

    page.route("**/tag", promise)
    _tag(page)
    values = page.locator("#given .value").all_inner_texts()
    assert {value.split()[0] for value in values} == {"automatic", "review"}
    assert page.locator("#given li", has_text="wheat").locator(".value").inner_text().startswith("automatic ")
    assert not [value for value in page.locator("#others .value").all_inner_texts() if "review" in value]


def test_many_texts_are_tagged_as_lines_or_as_a_table_and_downloaded(visit, tmp_path):
    page = visit("#view=many&model=named")
    page.fill("#many-lines", f"{' '.join(STORY.split())}\n\nNothing of note.\nNothing.\n")
    page.click("#many-tag")
    _says(page, "#many-told", "3 of 3 texts tagged")
    assert "Wheat and flour wheat" in page.locator(".many tbody tr").first.inner_text()
    table = tmp_path / "a.csv"
    table.write_text(f'nr,abstract\n=1+1,"{STORY} ""so""\nit ends"\n2,Gold\n', encoding="utf-8")
    page.set_input_files("#many-file", table)
    _says(page, "#many-told", "2 of 2 texts tagged")
    assert page.locator("#many-which option").all_inner_texts() == ["nr", "abstract"]
    assert page.input_value("#many-which") == "1"
    with page.expect_download() as waiting:
        page.click("#many-save")
    with open(waiting.value.path(), newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert first["nr"] == "'=1+1"
    assert first["abstract"] == f'{STORY} "so"\nit ends'
    assert "wheat" in first["topics"].split("; ")
    assert "Wheat and flour" in first["names"].split("; ")
    assert len(first["probabilities"].split("; ")) == len(first["topics"].split("; "))
    assert second["abstract"] == "Gold"


def test_many_texts_are_shown_on_a_phone_and_the_likeliest_topic_comes_first(visit):
    page = visit("#view=many&model=newswire", viewport={"width": 360, "height": 700})
    page.fill("#many-lines", " ".join(STORY.split()))
    page.click("#many-tag")
    _says(page, "#many-told", "1 of 1 text tagged")
    assert page.locator(".many tbody tr").is_visible()
    shares = re.findall(r"([\d.]+)\u202f%", page.locator(".many tbody tr").inner_text())
    assert len(shares) > 1
    assert list(map(float, shares)) == sorted(map(float, shares), reverse=True)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_fields_have_the_colours_of_the_scheme(visit):
    page = visit("#model=newswire", color_scheme="dark")
    _tag(page)
    colour = "getComputedStyle(document.querySelector({!r})).backgroundColor".format
    paper = page.evaluate(colour("#body").replace("#body", ".paper"))
    assert page.evaluate(colour("#missing")) == paper
    page.click("#to-many")
    assert page.evaluate(colour("#many-lines")) == paper


def test_of_many_training_documents_the_first_are_shown(visit):
    page = visit("#model=newswire")
    _tag(page)
    page.locator("#given .row").first.click()
    page.wait_for_selector("#given .papers")
    listed = page.locator("#given .details:not([hidden]) .papers > li")
    are_shown = "items => items.map(item => item.checkVisibility({visibilityProperty: true}))"
    shown = listed.evaluate_all(are_shown)
    assert len(shown) > 10
    assert shown == [i < 10 for i in range(len(shown))]
    page.get_by_text(f"{len(shown) - 10} more").click()
    assert all(listed.evaluate_all(are_shown))
