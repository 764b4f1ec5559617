"""Counts and times of requests for Prometheus, summed over all processes of the server."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from textcat.serving.alarms import Alarms
    from textcat.serving.shadow import Shadow

Versions: TypeAlias = Callable[[], list[tuple[str, str]]]
# environment variable with the folder of the processes' counts, if there are several processes
SHARED = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MOST_CHILDREN = 5000  # number of counters that are cached: clients may send any method


class Metrics(Collector):
    """Count the requests and documents of a server process.

    `versions` returns the names and versions of its models. `shadow` is the shadow model of one of them, if any;
    `alarms` are the alarms about the tags of one of them, if any.
    """

    def __init__(self, versions: Versions = list, shadow: Shadow | None = None, alarms: Alarms | None = None) -> None:
        self._registry, self._versions, self._shadow, self._alarms = CollectorRegistry(), versions, shadow, alarms
        options: dict[str, Any] = {"namespace": "textcat", "registry": self._registry}
        self._requests = Counter("requests", "Answered requests.", ("method", "route", "status"), **options)
        self._seconds = Histogram(
            "request_seconds",
            "Seconds from a request's head to its last byte.",
            ("route",),
            buckets=_SECONDS,
            **options,
        )
        self._documents = Counter("documents", "Documents tagged or explained.", ("model",), **options)
        self._loads = Counter("model_loads", "Models loaded.", ("model", "outcome"), **options)
        mode: Any = {"multiprocess_mode": "livesum"}
        self.running = Gauge("requests_running", "Requests that are being answered.", **options, **mode)
        self.batches = Histogram("batch_documents", "Documents that were tagged together.", buckets=_BATCHES, **options)
        self.left_out = Counter(
            "shadow_left_out_documents", "Documents that the shadow had no time for.", ("model",), **options
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._models: dict[str, Counter] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request, and record the seconds that it took."""
        answered, times = self._children.get((method, route, status)) or self.prepare(method, route, status)
        answered.inc()
        times.observe(seconds)

    def prepare(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """Return the counter and the times of requests with a method, route and status; make both at the first call.

        A server makes both when it starts. If they were made during large requests, they would lie scattered in the
        memory of these requests, and Python gives only those parts of memory back in which nothing is left.
        """
        label = method if method in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        children = self._requests.labels(label, route, str(status)), self._seconds.labels(route)
        if len(self._children) < _MOST_CHILDREN:
            self._children[method, route, status] = children
        return children

    def renew(self) -> None:
        """Write all counts again, as new numbers that lie together in memory.

        Python frees memory by arenas of a megabyte, and one number is enough to keep an arena in use. Numbers that were
        last changed during a large request lie in the arenas of that request, which can be freed afterwards.
        """
        children = [self.running, self.batches, *self._models.values(), *chain(*self._children.values())]
        values = [value for child in dict.fromkeys(children) for value in _values(child)]
        # freed together; if each were freed at once, the next would take its place
        former = [value.get() for value in values]
        for value in values:
            value.inc(0)
        del former

    def documents(self, model: str, n: int) -> None:
        """Count n documents that a model tagged or explained."""
        if model not in self._models:
            self._models[model] = self._documents.labels(model)
        self._models[model].inc(n)

    def loaded(self, model: str, outcome: str) -> None:
        """Count an attempt to load a model; `outcome` is "loaded" or "failed"."""
        self._loads.labels(model, outcome).inc()

    def text(self) -> bytes:
        """Return all counts in Prometheus' text format."""
        registry = self._registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        models = CollectorRegistry()
        models.register(self)
        return generate_latest(registry) + generate_latest(models)

    def collect(self) -> Iterable[Metric]:
        """Yield a metric with the names and versions of this process's models, and the metrics of shadow and alarms.

        After a model is replaced, other processes may have its former version for some seconds.
        """
        if versions := self._versions():
            labels = ("model", "version")
            family = GaugeMetricFamily("textcat_model_info", "The served models and their versions.", labels=labels)
            for name_and_version in versions:
                family.add_metric(name_and_version, 1)
            yield family
        if self._shadow is not None:
            of_shadow = (self._shadow.name, self._shadow.version)
            for name, n in self._shadow.counts().items():
                about = f"Of documents that the shadow tagged, too: {name.replace('_', ' ')}."
                counted = CounterMetricFamily(f"textcat_shadow_{name}", about, labels=("model", "shadow"))
                counted.add_metric(of_shadow, n)
                yield counted
        if self._alarms is not None:
            yield from _alarm_metrics(self._alarms)


def _alarm_metrics(alarms: Alarms) -> Iterator[Metric]:
    """Yield how many documents are compared with a folder of tags, and how many topics' shares have changed.

    For each of these topics, yield the present share divided by the former one, and the day since when. Each process
    looks for changes once a day. The number of documents, which the processes share, grows while documents are tagged.
    """
    labels, of_model = ("model", "version"), (alarms.name, alarms.version)
    for name, about, n in (
        ("monitored_documents", "Documents whose tags are compared with the folder's.", alarms.documents),
        ("alarms", "Topics whose share of the documents has changed beyond chance.", len(alarms.changes)),
    ):
        family = GaugeMetricFamily(f"textcat_{name}", about, labels=labels)
        family.add_metric(of_model, n)
        yield family
    ratio = GaugeMetricFamily(
        "textcat_alarm_ratio",
        "Share of the documents with a topic, divided by the share before.",
        labels=(*labels, "topic"),
    )
    since = GaugeMetricFamily(
        "textcat_alarm_since_timestamp_seconds",
        "Day since which the share probably differs.",
        labels=(*labels, "topic"),
    )
    for change in alarms.changes:
        ratio.add_metric((*of_model, change.topic), change.now / change.before if change.before else math.inf)
        day = datetime.fromisoformat(change.since).replace(tzinfo=timezone.utc)
        since.add_metric((*of_model, change.topic), day.timestamp())
    yield from (ratio, since)


def _values(child: Any) -> list[Any]:
    return [child._sum, *child._buckets] if isinstance(child, Histogram) else [child._value]
