"""The page that teaches topics, in a real Chromium: by keyboard, by several people, with hostile texts and topics."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

import textcat

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from textcat.corpus.documents import Document
from textcat.serving.teaching import serve
from textcat.teaching.pool import Pool
from textcat.teaching.queues import Queue
from textcat.teaching.session import Session

PAGE = Path(textcat.__file__).parent / "serving" / "page"
HOSTILE = "<img src=x onerror=alert(1)>\"'></script><svg onload=alert(2)>\u202e#&?topic=x"
WORDS = ("wheat", "gold", "coffee", "copper", "rice")
# Rules of axe, and options of a page: in the dark, it has the same elements, in other colours and sizes.
VIEWS = [
    ({"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}, {}),
    (
        {"type": "rule", "values": ["color-contrast", "target-size"]},
        {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}, "reduced_motion": "reduce"},
    ),
]
pytestmark = pytest.mark.long


def test_the_scripts_are_small_and_build_nodes_by_text():
    script = "".join(
        (PAGE / name).read_text(encoding="utf-8")
        for name in ("teach.js", "duplicates.js", "people.js", "screening.js", "common.js")
    )
    page, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("teach.html", "teach.css"))
    assert len(script.encode()) <= 56_000
    dangerous = r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|srcdoc|DOMParser"
    assert not re.findall(dangerous + r"|createContextualFragment|setHTML|import\(|innerText|javascript:", script)
    assert set(re.findall(r"https?://[^\s\"'`)]+", script + page + style)) == {
        "http://www.w3.org/2000/svg",
        "https://doi.org/",
    }
    assert not re.findall(r"\son\w+=|style=|<style|<script(?! type=\"module\" src=)|@import|url\(", page + style)


@pytest.fixture(scope="module")
def pool():
    documents = [
        Document(
            f"d{i}" if i else HOSTILE,
            {
                "title": f"{WORDS[i % 5]} report {i}" if i != 5 else f"{HOSTILE} wheat",
                "body": f"Prices 😀 of {WORDS[i % 5]} rose in week {i}.\n" * (1 + i % 3) + (HOSTILE if i == 5 else ""),
            },
        )
        for i in range(60)
    ]
    return Pool.from_documents(documents, ids=[document.id for document in documents])


@pytest.fixture
def served(served_by):
    return partial(served_by, serve)


@pytest.fixture
def session(pool):
    return Session.create(None, pool)


@pytest.fixture
def visit(served, new_page, session):
    """Open the page as somebody; at the end, nobody else was asked, and nothing went wrong that was not provoked."""
    urls = {}

    def open_(person="Ada", hash_="", *, of=session, queues=(), **options):
        server = urls.get(id(of)) or urls.setdefault(id(of), served(of, queues=queues))
        page = new_page(server + hash_, **options)
        page.wait_for_selector("#who[open]")
        page.keyboard.type(person)
        page.keyboard.press("Enter")
        page.wait_for_selector("#reading:not(.old) #document-title:not(:empty), #new-topic")
        return page

    yield open_
    assert new_page.asked
    ours = (*urls.values(), "data:image/svg+xml,", "blob:http://127.0.0.1:")
    assert not [url for url in new_page.asked if not url.startswith(ours)]


def _says(page, selector, words):
    page.wait_for_function(
        "([selector, words]) => document.querySelector(selector).textContent.includes(words)", arg=[selector, words]
    )


def _title(page):
    return page.locator("#document-title").text_content()


def _answer(page, key):
    """Press a key, and wait for the next document."""
    before = page.locator("#document-id").text_content()
    page.keyboard.press(key)
    page.wait_for_function("before => document.querySelector('#document-id').textContent !== before", arg=before)


def _focused(page):
    return page.evaluate("document.activeElement.id")


@pytest.fixture
def wheat(session):
    session.add_topic("wheat", description="wheat and its prices")
    return session


def test_a_topic_begins_and_is_taught_by_keys_alone(visit, session):
    page = visit()
    assert page.locator("#topics h1").is_visible()
    page.locator("#new-name").focus()
    page.keyboard.type("wheat")
    page.keyboard.press("Tab")
    page.keyboard.type("wheat and its prices")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("Reports on wheat.")
    page.keyboard.press("Tab")
    page.keyboard.type("other crop\nno report")
    page.keyboard.press("Tab")
    page.keyboard.type("gold report")  # an example to look for; not taken
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples input")
    page.locator("#new-name").press("Enter")
    page.wait_for_selector("#document-title:not(:empty)")
    assert page.locator("#judge-heading").text_content() == "Is this about wheat?"
    _says(page, "#why", "scores highest")
    for _ in range(16):
        assert _focused(page) == "document"  # from which a screen reader begins to read
        _answer(page, "y" if "wheat" in _title(page) else "n")
    assert sum(session.view.labels("wheat").values()) == 12
    _says(page, "#said", "Next: ")
    _says(page, "#progress", "12 found in 16 answers")
    assert "12 found after 16 answers" in page.locator("#progress svg").get_attribute("aria-label")
    last = session.view.judgements("wheat")[-1]
    _answer(page, "u")
    assert last not in session.view.judgements("wheat")
    assert page.locator("#document-id").text_content() == f"Document {last.id}"
    _says(page, "#why", "Taken back")
    page.keyboard.press("c")
    page.keyboard.type("yes, no, skip, undo / and ?")  # shortcuts are not active while one types
    page.keyboard.press("Enter")
    _answer(page, "s")
    (skipped,) = [each for each in session.view.judgements("wheat") if each.answer == "skip"]
    assert (skipped.note, skipped.person) == ("yes, no, skip, undo / and ?", "Ada")
    assert page.input_value("#note") == ""


def test_buttons_keep_the_focus_and_everything_is_reached_by_tab(visit, wheat):
    page = visit()
    page.wait_for_selector("#words .speaking")
    page.locator("#skip").focus()
    order = []
    for _ in range(18):
        order.append(_focused(page))
        page.keyboard.press("Tab")
    expected = ["skip", "to-judge", "to-search", "to-judged", "to-people", "to-topics", "topic", "person", "keys"]
    assert order == [*expected, "note", "yes", "no", "skip-it", "undo", "target", *order[15:]]
    page.locator("#yes").focus()
    _answer(page, "Enter")
    assert _focused(page) == "yes"
    assert [each.answer for each in wheat.view.judgements("wheat")] == ["yes"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_keys_can_be_turned_off_and_do_nothing_with_a_modifier(visit, wheat):
    page = visit()
    title = _title(page)
    for keys in ("Control+y", "Alt+n", "x"):
        page.keyboard.press(keys)
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("y")
    page.uncheck("#use-keys")
    page.click("#help-close")
    page.keyboard.press("y")
    page.reload()
    page.wait_for_selector("#document-title:not(:empty)")
    page.keyboard.press("n")
    page.wait_for_timeout(100)
    assert _title(page) == title
    assert not wheat.view.judgements("wheat")
    assert page.locator("#person").text_content() == "Ada"  # the browser has kept it


def test_a_search_teaches_too_and_what_was_judged_can_be_changed(visit, wheat):
    page = visit()
    page.keyboard.press("/")
    page.wait_for_selector("#search:not([hidden])")
    assert _focused(page) == "query"
    page.keyboard.type("copper week")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-list li")
    page.locator("#search-list li").first.get_by_role("button", name="no").click()
    page.wait_for_selector("#search-list [aria-pressed=true]")
    page.locator("#search-list .head").nth(1).click()
    _says(page, "#why", "Not asked for")
    page.keyboard.press("n")
    _says(page, "#why", "scores highest")
    assert [(each.answer, each.source) for each in wheat.view.judgements("wheat")] == [("no", "search")] * 2
    page.click("#to-judged")
    page.wait_for_selector("#judged-list li")
    page.locator("#judged-list li").first.get_by_role("button", name="yes").press("Enter")
    page.wait_for_selector("#judged-list .yes[aria-pressed=true]")
    assert [each.answer for each in wheat.view.judgements("wheat")] == ["no", "yes"]
    page.select_option("#of-answer", "yes")
    _says(page, "#judged-found", "1 judgement")
    page.select_option("#of-person", "=")
    _says(page, "#judged-found", "Nothing")
    page.keyboard.press("Escape")


def test_words_are_marked_for_and_against(visit, wheat):
    page = visit(provoked=True)
    page.wait_for_selector("#document-text mark")
    assert "wheat" in page.locator("#document-text mark").all_text_contents()  # behind what JavaScript counts twice
    button = page.locator("#words li", has_text="wheat").first.get_by_role("button", name="for")
    button.press("Enter")
    page.wait_for_selector("#keywords .chips .pro")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.fill("#word", "gold")
    page.click("#word-against")
    page.wait_for_selector("#keywords .chips .con")
    assert wheat.keywords("wheat") == {"gold": False, "wheat": True}
    page.fill("#word", "xyzzy")
    page.locator("#word").press("Enter")
    _says(page, "#error", "xyzzy")
    page.locator("#keywords .con").click()
    page.wait_for_selector("#keywords .con", state="detached")
    page.keyboard.press("u")
    _says(page, "#said", "keyword was taken back")
    page.wait_for_selector("#keywords .con")


def test_people_disagree_and_somebody_settles_it(visit, wheat):
    for person, answers in {"Ada": "yyn", "Ben": "nyn", "Eve": "nyn"}.items():
        for position, answer in zip((0, 5, 1), answers, strict=True):
            wheat.answer("wheat", position, {"y": "yes", "n": "no"}[answer], person, "search")
    page = visit("Judge")
    page.click("#to-people")
    page.wait_for_selector("#people-page table")
    assert "Kappa 0." in page.locator("#people-page").inner_text()
    page.click("#people-page a:text('Go through them')")
    _says(page, "#why", "People disagree")
    _says(page, "#earlier", "by Ben")
    page.keyboard.press("y")
    _says(page, "#nothing", "All of this list")
    assert not wheat.view.agreement("wheat").disagreements
    assert wheat.view.judgements("wheat")[-1].source == "adjudicated"


def test_a_list_is_gone_through_and_several_topics_are_judged_by_one_reading(visit, wheat):
    wheat.add_topic("gold", query="gold")
    page = visit(queues=[Queue("odd labels", "gold", [(3, True), (6, False)])])
    page.click("#to-topics")
    page.click("#queues a")
    _says(page, "#why", "probably wrongly")
    page.select_option("#also-topics select", "no")
    page.keyboard.press("n")
    _says(page, "#why", "but probably should")
    page.keyboard.press("y")
    _says(page, "#nothing", "All of this list")
    assert [(each.position, each.answer) for each in wheat.view.judgements("gold")] == [(3, "no"), (6, "yes")]
    assert [(each.position, each.answer) for each in wheat.view.judgements("wheat")] == [(3, "no")]
    page.select_option("#topic", "wheat")
    _says(page, "#judge-heading", "wheat")


def test_with_the_strategy_uncertain_it_asks_about_all_topics_at_once(visit, wheat):
    wheat.add_topic("gold", query="gold", strategy="uncertain", random_share=0)
    page = visit()
    page.wait_for_selector("#also", state="visible")
    assert not page.locator("#all-box").is_visible()  # the strategy of wheat is another
    wheat.change_topic("wheat", strategy="uncertain", random_share=0)
    page.reload()
    page.check("#all")
    topics, asked = ["wheat", "gold"], []
    for n in range(6):
        expected = wheat.next_of(topics, "Ada")
        _says(page, "#document-id", expected.id)
        _says(page, "#judge-heading", expected.topic)
        asked.append(expected.topic)
        (other,) = {*topics} - {expected.topic}
        page.select_option("#also-topics select", "yes" if other in _title(page) else "no")
        page.fill("#note", f"note {n}")
        page.click("#document-text")
        page.keyboard.press("y" if expected.topic in _title(page) else "n")
        page.wait_for_function(
            "id => !document.querySelector('#document-id').textContent.endsWith(id)", arg=expected.id
        )
        assert page.input_value("#note") == ""
    assert {*asked} == {*topics}
    for topic in topics:
        judgements = wheat.view.judgements(topic)
        assert len(judgements) == 6
        assert all(
            (each.answer == "yes") == (topic in wheat.view.pool.document(each.position)["title"]) for each in judgements
        )
    again = wheat.view.judgements(asked[-1])[-1].id
    page.keyboard.press("u")
    _says(page, "#why", "Taken back")
    _says(page, "#document-id", again)
    assert [len(wheat.view.judgements(topic)) for topic in topics] == [5, 5]
    page.select_option("#topic", "wheat")  # a topic of one's own choice
    _says(page, "#judge-heading", "wheat")
    assert not page.is_checked("#all")


def test_everything_is_downloaded(visit, wheat):
    for position in range(10):
        wheat.answer("wheat", position, "no" if position % 5 else "yes", "Ada", "search")
    page = visit()
    page.click("#to-topics")
    page.wait_for_selector("#exports button")
    buttons = [button.get_attribute("id") for button in page.locator("#exports button").all()]
    assert len(buttons) == 13
    for n, button in enumerate(buttons):
        if n == 6:  # Chromium lets a page download ten files in a row
            page = visit("Bob")
            page.click("#to-topics")
            page.wait_for_selector("#exports button")
        what, form = button.removeprefix("export-").split("-")
        with page.expect_download() as waiting:
            page.click(f"#{button}")
        assert waiting.value.suggested_filename == f"{what}.{form}"
        assert waiting.value.path().stat().st_size > 100


@pytest.fixture
def doubled(pool):
    """A session with two groups of duplicates, of three and of two records."""
    texts = [pool.document(i) for i in (*range(12), 0, 0, 5)]
    records = [Document(f"d{i}", zones, fields={"year": "2001"}) for i, zones in enumerate(texts)]
    session = Session.create(None, Pool.from_documents(records))
    session.add_topic("wheat")
    return session


def test_a_record_is_split_off_its_duplicates_and_put_back(visit, doubled):
    page = visit(of=doubled)
    page.click("#to-duplicates")
    _says(page, "#duplicates-found", "2 groups")
    assert [group.locator("li").count() for group in page.locator("#duplicates-list .group").all()] == [3, 2]
    assert "2001 · Document d12" in page.locator("#duplicates-list .meta").nth(1).text_content()
    page.locator("#duplicates-list button").nth(1).click()
    _says(page, "#notice", "Split off")
    assert [len(members) for _, members in doubled.view.groups.all_members()].count(2) == 2
    assert _focused(page) == "duplicates-heading"
    page.click("#notice button")
    _says(page, "#said", "taken back")
    assert page.locator("#duplicates-list .group").first.locator("li").count() == 3
    page.locator("#duplicates-list .group").nth(1).locator("button").first.click()
    _says(page, "#duplicates-found", "1 group")
    page.click("#duplicates-list a")
    _says(page, "#document-id", "d0")


@pytest.mark.parametrize(("rules", "options"), VIEWS, ids=["light", "dark and narrow"])
def test_axe_finds_nothing_in_the_list_of_duplicates(visit, look, doubled, rules, options):
    page = visit(of=doubled, **options)
    page.click("#to-duplicates")
    page.wait_for_selector("#duplicates-list li")
    look(page, "duplicates", runOnly=rules)


def test_a_reference_is_screened_with_its_fields_the_criteria_and_exclusion_reasons(visit):
    fields = {"authors": ["Doe, J.", "Roe, R."], "journal": "Tin", "year": "2001", "doi": "10.1/a<b", "note": HOSTILE}
    titles = ("Tin in adults", "Tin in mice", "Gold in mice")
    pool = Pool.from_documents([Document(title, {"title": title}, fields=fields) for title in titles])
    review = Session.create(None, pool)
    reasons = ["wrong population", HOSTILE]
    review.add_topic("tin", criteria="Adults.\n  No animals.", exclusion_reasons=reasons)
    page = visit(of=review)
    assert page.locator("#criteria .criteria").text_content() == "Adults.\n  No animals."
    assert page.locator(".reference").text_content() == "Doe, J.; Roe, R. · Tin · 2001 · doi:10.1/a<b"
    assert page.locator(".reference a").get_attribute("href") == "https://doi.org/10.1/a%3Cb"
    page.locator(".fields summary").click()
    assert page.locator(".fields dd").text_content() == HOSTILE
    page.evaluate("document.querySelector('#document-text').style.height = '200vh'")  # a long text
    for answer in ("#no", "#exclusions button:last-child"):
        assert page.evaluate(
            "([where]) => document.querySelector(where).getBoundingClientRect().bottom <= innerHeight", [answer]
        )
    _answer(page, "y")
    _answer(page, "1")
    page.locator("#exclusions button").nth(1).click()
    page.wait_for_selector("#nothing:not([hidden])")
    assert [one.exclusion_reason for one in review.view.judgements("tin")] == ["", *reasons]
    page.click("#to-judged")
    page.locator("#screened summary").click()
    page.wait_for_selector(".counts")
    rows = [row.text_content() for row in page.locator(".counts tr").all()]
    assert rows[0] == "Identified3"
    assert {"Excluded2", "wrong population1", f"{HOSTILE}1", "Included1", "Not screened0"} <= {*rows}


def test_errors_are_told_and_an_answer_that_was_not_kept_can_be_given_again(visit, wheat):
    page = visit(provoked=True)
    title = _title(page)
    page.route("**/answer", lambda route: route.abort())
    page.keyboard.press("y")
    _says(page, "#error", "The server does not answer")
    assert _title(page) == title
    page.unroute("**/answer")
    with page.expect_request("**/answer") as sent:
        _answer(page, "y")
    assert len(wheat.view.judgements("wheat")) == 1
    assert not page.locator("#error").text_content()  # it is mended
    assert sent.value.headers["if-match"] == wheat.fingerprint
    page.route("**/answer", lambda route: route.continue_(headers={**route.request.headers, "if-match": "another"}))
    page.keyboard.press("y")
    _says(page, "#error", "This page is old: The server now has another session")
    page.click("#error button:text('Reload the page')")
    page.wait_for_selector("#reading:not(.old) #document-title:not(:empty)")
    assert not page.locator("#error").text_content()
    assert len(wheat.view.judgements("wheat")) == 1
    problem = {"title": "Unauthorized", "status": 401, "detail": "A key is needed."}
    body = json.dumps(problem)
    page.route("**/api/**", lambda route: route.fulfill(status=401, content_type="application/problem+json", body=body))
    page.keyboard.press("y")
    page.wait_for_selector("#key")


def test_hostile_topics_texts_ids_and_people_run_nothing(visit, session):
    """Without the policy, which would hold scripts back even if there were some."""
    session.add_topic(HOSTILE, description=HOSTILE, query="wheat")
    session.add_topic("other")
    session.set_keyword(HOSTILE, "wheat", True)
    session.answer(HOSTILE, 10, "yes", HOSTILE, "search", HOSTILE)
    session.answer(HOSTILE, 10, "no", "Ada", "search", HOSTILE)
    page = visit(HOSTILE, provoked=True, bypass_csp=True, queues=[Queue(HOSTILE, HOSTILE, [(0, True), (5, None)])])
    assert HOSTILE in page.locator("#judge-heading").text_content()
    page.click("#to-topics")
    page.click("#queues a")
    _says(page, "#why", "From the list")
    for _ in range(2):
        page.wait_for_selector("#words .speaking")
        before = len(session.view.judgements(HOSTILE))
        page.keyboard.press("y")
        page.wait_for_function("() => document.querySelector('#reading:not(.old)')")
        assert len(session.view.judgements(HOSTILE)) == before + 1
    for view in ("search", "judged", "people", "topics"):
        page.click(f"#to-{view}")
        if view == "search":
            page.fill("#query", "report wheat")
            page.keyboard.press("Enter")
            page.wait_for_selector("#search-list li")
        page.wait_for_timeout(50)
        assert page.evaluate("document.querySelectorAll('body script, img, main svg:not([viewBox]), b b').length") == 0
    assert HOSTILE in page.locator("#person").text_content()


def test_the_policy_of_the_server_holds_nothing_back_that_the_page_needs(visit, wheat):
    page = visit()
    policy = page.evaluate("fetch('/').then(answer => answer.headers.get('content-security-policy'))")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    page.evaluate("addEventListener('securitypolicyviolation', event => console.error(event.violatedDirective))")
    _answer(page, "y")
    page.wait_for_selector("#progress svg")
    page.click("#to-topics")
    with page.expect_download():
        page.click("#export-labels-csv")


@pytest.mark.parametrize(("rules", "options"), VIEWS, ids=["light", "dark and narrow"])
def test_axe_finds_nothing_and_no_view_is_too_wide(visit, look, wheat, rules, options):
    wheat.add_topic("gold, silver, and whatever else is mined")
    for person, answer in (("Ben", "yes"), ("Eve", "no")):
        for position in (0, 1, 2):
            wheat.answer("wheat", position, answer if position else "yes", person, "search", note="a note")
    wheat.set_keyword("wheat", "gold", False)
    page = visit(provoked=True, queues=[Queue("odd labels", "wheat", [(3, True)])], **options)

    def check(view):
        look(page, view, runOnly=rules)

    _answer(page, "y")
    page.wait_for_selector("#words .speaking")
    page.wait_for_selector("#progress svg")
    check("judge")
    page.keyboard.press("?")
    check("help")
    page.keyboard.press("Escape")
    page.click("#person")
    check("who")
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    page.wait_for_selector("#search:not([hidden])")
    page.keyboard.type("report")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-list li")
    page.locator("#search-list button").first.click()
    page.wait_for_selector("#search-list [aria-pressed=true]")
    check("search")
    for view, content in (
        ("judged", "#judged-list li"),
        ("people", "#people-page li"),
        ("topics", "#topics-page table"),
    ):
        page.click(f"#to-{view}")
        page.wait_for_selector(content)
        check(view)
    page.fill("#new-example", "report")
    page.click("#find-example")
    page.wait_for_selector("#examples input")
    check("examples")
    page.route("**/api/**", lambda route: route.abort())
    page.click("#begin") if page.locator("#begin").count() else page.locator("#new-name").press("Enter")
    page.click("#to-judged")
    page.wait_for_selector("#error .message")
    check("error")


def test_a_scripted_person_teaches_a_reuters_topic_by_keyboard_alone(visit, reuters):
    """Of 837 documents, 18 are about cocoa: nine of ten are found, from the name of the topic alone."""
    documents = [document for i, document in enumerate(reuters.test) if i % 4 == 0 or "cocoa" in document.topics]
    session = Session.create(None, Pool.from_documents(documents, ids=[document.id for document in documents]))
    session.add_topic("cocoa")
    relevant = {document.id for document in documents if "cocoa" in document.topics}
    page = visit("a script", of=session)
    found, n = set(), 0
    while len(found) < 0.9 * len(relevant) and n < 40:
        id = page.locator("#document-id bdi").text_content()
        found |= {id} & relevant
        _answer(page, "y" if id in relevant else "n")
        n += 1
    assert len(found) >= 0.9 * len(relevant)
    assert n < 40
    _says(page, "#progress", f"{n} answers")
