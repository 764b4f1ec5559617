"""What is counted."""

from serving_requests import TAG, get, post

ROUTE = "/api/v1/models/{model}/tag"


def test_metrics_count_requests_documents_and_name_the_version(service, store):
    post(service, f"{TAG}-batch", json={"documents": [{"text": "a"}] * 7})
    text = get(service, "/metrics").text
    assert 'textcat_documents_total{model="news"} 7.0' in text
    assert 'route="/api/v1/models/{model}/tag-batch",status="200"' in text
    assert f'textcat_model_info{{model="news",version="{store["news"].version}"}} 1.0' in text


def test_what_may_be_counted_is_there_from_the_start(service):
    assert f'method="POST",route="{ROUTE}",status="503"}} 0.0' in get(service, "/metrics").text
