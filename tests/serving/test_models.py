"""What is told of models and topics."""

import json
import re
from dataclasses import replace

import numpy as np
from serving_requests import TAG, get

import textcat


def test_models_topics_and_the_description_can_be_asked_for(service, store):
    served = get(service, "/api/v1/models").json()
    assert served["limits"] == {"bytes": 20_000, "documents": 50}
    (model,) = served["models"]
    assert model == get(service, "/api/v1/models/news").json()
    assert model["corpus"] == "newswire"
    listed = get(service, "/api/v1/models/news/topics", params={"query": "WHE"}).json()
    assert [row["topic"] for row in listed["topics"]] == [t for t in store["news"].tagger.topics if "whe" in t]
    topic = get(service, "/api/v1/models/news/topic", params={"name": "wheat", "terms": 3}).json()
    assert [(row["term"], row["weight"]) for row in topic["terms"]] == store["news"].tagger.terms("wheat", 3)
    schema = get(service, "/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    assert TAG.replace("news", "{model}") in schema["paths"]
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schema)))
    assert used == schema["components"]["schemas"].keys()


def test_thresholds_that_no_score_or_every_score_exceeds_are_numbers_of_json(tmp_path, newswire_tagger):
    from textcat.serving.http.log import Log
    from textcat.serving.store import Store
    from textcat.serving.tagging import Service

    thresholds = newswire_tagger.decisions.thresholds.copy()
    thresholds[:2] = np.inf, -np.inf
    decisions = replace(newswire_tagger.decisions, thresholds=thresholds)
    store = Store({"news": textcat.save(replace(newswire_tagger, decisions=decisions), tmp_path / "news")})
    store.load()
    listed = get(Service(store, log=Log(None)), "/api/v1/models/news/topics").json()["topics"]
    by_name = {row["topic"]: row["threshold"] for row in listed}
    first, second, third = newswire_tagger.topics[:3]
    assert (by_name[first], by_name[second]) == (np.finfo(np.float32).max, np.finfo(np.float32).min)
    assert by_name[third] == thresholds[2]


def test_the_card_in_a_models_folder_is_told_as_it_is_now(tmp_path, newswire_model):
    from shutil import copytree

    from textcat.serving.http.log import Log
    from textcat.serving.store import Store
    from textcat.serving.tagging import Service

    folder = copytree(newswire_model, tmp_path / "news")
    store = Store({"news": folder})
    store.load()
    service, path = Service(store, log=Log(None)), "/api/v1/models/news/card"
    answer = get(service, path).json()
    assert (answer["model"], answer["text"], answer["elements"]) == ("news", None, None)
    (folder / "README.md").write_text("# Mine\n\n<b>bold</b> *said*\n")
    answer = get(service, path).json()
    assert answer["text"] == "# Mine\n\n<b>bold</b> *said*\n"
    assert answer["elements"] == [["h1", "", ["Mine"]], ["p", "", ["<b>bold</b> ", ["em", "", ["said"]]]]]
    (folder / "README.md").write_bytes(b"x" * 1_000_000)
    assert get(service, path).json()["text"] is None
    (folder / "README.md").unlink()
    (tmp_path / "secret").write_text("not for others\n")
    (folder / "README.md").symlink_to(tmp_path / "secret")
    assert get(service, path).json()["text"] is None
    assert get(service, "/api/v1/models/none/card").status_code == 404
