"""The texts of files that are sent."""

from news_items import NITF
from scanned_pages import alto, mets
from serving_requests import assert_problem, post
from web_records import MORE, PAGE, response

from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_the_texts_of_a_file_are_read_by_a_process_with_limits(store, monkeypatch):
    service = Service(store, log=Log(None))
    answer = post(service, "/api/v1/text?name=a.txt", content=b"Wheat exports rose.")
    assert "Wheat exports rose." in answer.json()["zones"]["body"]
    for name in ("../../etc/passwd", "/etc/passwd", "http://127.0.0.1/a.txt"):  # a name only tells the format
        answer = post(service, "/api/v1/text", params={"name": name}, content=b"a text")
        assert "root:" not in answer.text
    assert_problem(post(service, "/api/v1/text?name=a.pdf", content=b"no PDF"), 422, "a.pdf")
    monkeypatch.setattr("textcat.serving.files.MEMORY", 1)  # not that of the other process
    slow = Service(store, log=Log(None), limits=Limits(timeout=0.01))
    assert post(slow, "/api/v1/text?name=a.txt", content=b"a").status_code == 503


def test_a_news_item_is_a_file_whatever_its_name_says(store):
    service = Service(store, log=Log(None))
    for how in ({"params": {"name": "a.xml"}}, {"headers": {"Content-Type": "application/xml"}}, {}):
        answer = post(service, "/api/v1/text", content=NITF.encode(), **how)
        assert answer.json()["zones"]["title"] == "Tin étain rose", answer.text


def test_a_scanned_page_is_a_file_and_a_mets_file_is_told(store):
    service = Service(store, log=Log(None))
    for how in ({"params": {"name": "a.xml"}}, {"headers": {"Content-Type": "application/alto+xml"}}, {}):
        answer = post(service, "/api/v1/text", content=alto(), **how)
        assert answer.json()["zones"] == {"body": "Tin rose\nDie Erzgrube schloss."}, answer.text
    assert_problem(post(service, "/api/v1/text?name=mets.xml", content=mets()), 422, "ALTO files")


def test_of_web_pages_the_main_text_is_read_if_the_service_is_told_to(store):
    for name, data in (("a.html", PAGE.encode()), ("a.warc", response(PAGE))):
        bodies = []
        for main_text in (False, True):
            service = Service(store, log=Log(None), main_text=main_text)
            zones = post(service, "/api/v1/text", params={"name": name}, content=data).json()["zones"]
            assert zones["title"] == "Tin rose"
            assert MORE in zones["body"]
            bodies.append(zones["body"])
        assert ["Imprint" in body for body in bodies] == [True, False]
