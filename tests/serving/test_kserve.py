"""Clients of KServe's protocol: health, readiness, and what is told of models."""

import shutil

import pytest
from serving_requests import assert_problem, get

import textcat
from textcat.serving.http.log import Log
from textcat.serving.kserve import KServeModel, KServeModelReady, KServeReady, KServeServer
from textcat.serving.store import Store
from textcat.serving.tagging import Service


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v2", KServeServer),
        ("/v2/health/ready", KServeReady),
        ("/v2/models/news", KServeModel),
        ("/v2/models/news/ready", KServeModelReady),
    ],
)
def test_answers_are_as_their_routes_describe_them(service, path, kind):
    answer = get(service, path).json()
    assert kind.model_validate(answer, strict=True).model_dump() == answer


def test_the_version_is_that_of_the_loaded_model(service, store):
    assert get(service, "/v2").json() == {"name": "textcat", "version": textcat.__version__, "extensions": []}
    described = get(service, "/v2/models/news").json()
    assert described["versions"] == [described["version"]] == [store["news"].version]
    assert get(service, "/v2/models/news/ready").json()["version"] == described["version"]


def test_a_server_is_live_at_once_and_ready_when_its_models_are_loaded(newswire_model):
    store = Store({"news": newswire_model})
    service = Service(store, log=Log(None))
    assert get(service, "/v2/health/live").json() == {"live": True}
    waiting = get(service, "/v2/health/ready")
    assert_problem(waiting, 503, "being loaded")
    assert waiting.headers["retry-after"] == "1"
    store.load()
    assert get(service, "/v2/health/ready").json() == {"ready": True}


def test_a_server_with_a_damaged_model_says_so_instead_of_that_it_is_ready(newswire_model, tmp_path):
    damaged = shutil.copytree(newswire_model, tmp_path / "damaged")
    (damaged / "weights.npy").write_bytes(b"")
    store = Store({"news": newswire_model, "other": damaged})
    service = Service(store, log=Log(None))
    store.load_again()
    assert_problem(get(service, "/v2/health/ready"), 503, "The model 'other' cannot be loaded, as weights.npy")


@pytest.mark.parametrize("path", ["/v2/models/other", "/v2/models/other/ready"])
def test_a_model_that_is_not_served_is_refused_by_its_name(service, path):
    assert_problem(get(service, path), 404, "'other'", "/api/v1/models")
