"""Clients of Annif find what they ask for."""

from serving_requests import STORY, get, post

from textcat.serving.annif import Labels
from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_annifs_and_kserves_clients_find_what_they_ask_for(store):
    service = Service(store, log=Log(None), labels=Labels({"": {"wheat": "Weizen"}}))
    (project,) = get(service, "/v1/projects").json()["projects"]
    assert (project["project_id"], project["is_trained"]) == ("news", True)
    answer = post(service, "/v1/projects/news/suggest", data={"text": STORY, "limit": 2}).json()
    assert len(answer["results"]) == 2
    several = post(service, "/v1/projects/news/suggest", data={"text": "gold", "limit": 50}).json()["results"]
    assert [row["score"] for row in several] == sorted((row["score"] for row in several), reverse=True)
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


def suggested(service, **query):
    answer = post(service, "/v1/projects/news/suggest", data={"text": STORY, "limit": 1, **query})
    return answer.json()["results"][0]["label"] if answer.status_code == 200 else answer.json()["detail"]


def test_labels_are_in_the_language_of_the_model_or_the_one_that_is_asked_for(store):
    labels = {"de": {"wheat": "Weizen"}, "en": {"wheat": "Wheat"}, "fi": {}}
    service = Service(store, log=Log(None), labels=Labels(labels))
    assert [suggested(service, language=language) for language in ("", "en", "de", "DE", "fi")] == [
        *("Wheat", "Wheat", "Weizen", "Weizen", None)
    ]
    (project,) = get(service, "/v1/projects").json()["projects"]
    assert (project["vocab"]["languages"], project["vocab_language"]) == (["de", "en", "fi"], "en")
    assert suggested(service, language="sv").startswith("The model has no labels in 'sv', but in en, de, fi")
    url = "/v1/projects/news/suggest-batch"
    assert post(service, f"{url}?language=sv", json={"documents": [{"text": STORY}]}).status_code == 400
    rows = post(service, f"{url}?language=de&limit=1", json={"documents": [{"text": STORY}]}).json()
    assert rows[0]["results"][0]["label"] == "Weizen"


def test_labels_have_the_language_that_the_server_was_told(store):
    service = Service(store, log=Log(None), labels=Labels({"de": {"wheat": "Weizen"}, "en": {"wheat": "Wheat"}}, "de"))
    assert [suggested(service, language=language) for language in ("", "en")] == ["Weizen", "Wheat"]


def test_without_a_vocabulary_labels_are_the_names_of_the_model_in_its_language_only(service):
    assert suggested(service) == suggested(service, language="en") == "wheat"
    assert "has no labels in 'fi'" in suggested(service, language="fi")
