"""Clients of Annif find what they ask for."""

from serving_requests import STORY, get, post

from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_annifs_and_kserves_clients_find_what_they_ask_for(store):
    service = Service(store, log=Log(None), labels={"wheat": "Weizen"})
    (project,) = get(service, "/v1/projects").json()["projects"]
    assert (project["project_id"], project["is_trained"]) == ("news", True)
    answer = post(service, "/v1/projects/news/suggest", data={"text": STORY, "limit": 2}).json()
    assert len(answer["results"]) == 2
    assert {"uri", "label", "notation", "score"} == answer["results"][0].keys()
    assert {row["uri"]: row["label"] for row in answer["results"]}["wheat"] == "Weizen"
    documents = [{"document_id": "a", "text": STORY}, {"text": "gold"}]
    rows = post(service, "/v1/projects/news/suggest-batch?limit=1", json={"documents": documents}).json()
    assert [row["document_id"] for row in rows] == ["a", None]
    assert rows[0]["results"] == answer["results"][:1]
    assert get(service, "/v2/health/live").json() == {"live": True}
    assert get(service, "/v2/health/ready").json() == {"ready": True}
    assert get(service, "/v2/models/news/ready").json()["ready"]
    described = get(service, "/v2/models/news").json()
    assert (described["platform"], described["inputs"], described["outputs"]) == ("textcat", [], [])
