"""What every application serves: its page, its description, its counts."""

import json
from pathlib import Path

import pytest
from serving_requests import assert_problem, get

import textcat
from textcat.serving.http.keys import Keys, new_key
from textcat.serving.http.log import Log
from textcat.serving.http.problems import Problem
from textcat.serving.tagging import Service

PAGE = Path(textcat.__file__).parent / "serving" / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


def test_files_of_the_page_are_served_as_they_are_on_disk_under_a_strict_policy(service):
    files = [file for file in PAGE.iterdir() if file.suffix in KINDS]
    assert {file.suffix for file in files} == KINDS.keys()
    for file in files:
        answer = get(service, f"/page/{file.name}")
        assert (answer.content, answer.headers["content-type"]) == (file.read_bytes(), KINDS[file.suffix])
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert get(service, "/").content == (PAGE / service.first_page).read_bytes()


@pytest.mark.parametrize("name", ["absent.js", "", "../application.py", "x" * 1000])
def test_a_file_that_the_page_does_not_have_is_refused_by_its_name(service, name):
    with pytest.raises(Problem) as raised:
        service.page(name)
    assert raised.value.status == 404
    assert repr(name)[:80] in raised.value.detail
    assert len(raised.value.detail) < 200
    if name.isalpha():
        assert_problem(get(service, f"/page/{name}"), 404)


def test_the_description_has_every_route_with_its_problems_and_none_of_fastapis_errors(service):
    schema = json.loads(service.description_json)
    assert schema == service.openapi() == get(service, "/openapi.json").json()
    assert (schema["info"]["title"], schema["info"]["version"]) == (service.title, textcat.__version__)
    assert "ProblemAnswer" in schema["components"]["schemas"]
    assert "HTTPValidationError" not in json.dumps(schema)
    described = {route.path for route in service.routes if route.include_in_schema}
    assert schema["paths"].keys() == described
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            for status in operation["responses"].keys() - {"200"}:
                assert operation["responses"][status]["content"].keys() == {"application/problem+json"}, (path, status)


def test_keys_are_described_where_they_are_needed_alone(service, store, tmp_path):
    (tmp_path / "keys").write_text(new_key("alice")[1])
    closed = Service(store, log=Log(None), keys=Keys(tmp_path / "keys")).openapi()
    assert closed.pop("security") == [{"bearer": []}, {"header": []}]
    assert closed["components"].pop("securitySchemes").keys() == {"bearer", "header"}
    assert closed == service.openapi()
