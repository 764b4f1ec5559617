"""What is counted."""

from serving_requests import TAG, ask, get, post

from textcat.serving.http.keys import Keys, new_key
from textcat.serving.http.limits import Limits
from textcat.serving.http.log import Log
from textcat.serving.http.metrics import Metrics
from textcat.serving.tagging import Service

ROUTE = "/api/v1/models/{model}/tag"


def test_metrics_count_requests_documents_and_name_the_version(service, store):
    post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 7})
    text = get(service, "/metrics").text
    assert 'textcat_documents_total{model="news"} 7.0' in text
    assert 'route="/api/v1/models/{model}/tag-batch",status="200"' in text
    assert f'textcat_model_info{{model="news",version="{store["news"].version}"}} 1.0' in text


def test_a_refused_request_is_counted_at_its_route(store, tmp_path):
    service = Service(store, log=Log(None), limits=Limits(rate_limit=1))
    ask(service, *[("POST", TAG, {"json": {"text": "a"}})] * 3, ("GET", TAG, {}))
    assert post(service, TAG, json={"text": "a"}, headers={"host": "evil.example"}).status_code == 421
    text = service.front.metrics.text().decode()
    assert f'method="POST",route="{ROUTE}",status="429"}} 2.0' in text
    assert f'method="GET",route="{ROUTE}",status="429"}} 1.0' in text
    assert f'method="POST",route="{ROUTE}",status="421"}} 1.0' in text
    (tmp_path / "keys").write_text(new_key("alice")[1])
    closed = Service(store, log=Log(None), keys=Keys(tmp_path / "keys"))
    assert post(closed, TAG, json={"text": "a"}).status_code == 401
    assert get(closed, "/nowhere").status_code == 401
    text = closed.front.metrics.text().decode()
    assert f'method="POST",route="{ROUTE}",status="401"}} 1.0' in text
    assert 'method="GET",route="other",status="401"} 1.0' in text


def test_what_may_be_counted_is_there_from_the_start(service):
    assert f'method="POST",route="{ROUTE}",status="503"}} 0.0' in get(service, "/metrics").text


def test_counts_stay_as_they_are_when_their_numbers_are_made_anew():
    metrics = Metrics()
    for status in (200, 200, 422):
        metrics.count("POST", ROUTE, status, 0.75)
    metrics.documents("news", 3)
    metrics.running.inc()
    metrics.batches.observe(2)
    before = counts_of(metrics)
    metrics.renew()
    assert counts_of(metrics) == before
    assert f'route="{ROUTE}",status="200"}} 2.0' in before
    metrics.count("POST", ROUTE, 200, 0.75)
    assert f'route="{ROUTE}",status="200"}} 3.0' in counts_of(metrics)


def counts_of(metrics):
    return "\n".join(line for line in metrics.text().decode().splitlines() if "_created" not in line)
